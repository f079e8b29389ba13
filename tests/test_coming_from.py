"""The other libraries' code on “Coming from another library” runs, where they are installed.

To check it, run this file in an environment that has them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from pages import ROOT, Block, blocks

PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
OTHERS = [block for block in blocks(PAGE) if block.title is not None]


def test_every_library_has_both_sides() -> None:
    ours = [block for block in blocks(PAGE) if block.title is None]
    assert len(OTHERS) == len(ours) == 5
    assert PAGE.count('<div class="grid" markdown>') == 5


@pytest.mark.parametrize("block", OTHERS, ids=lambda block: str(block.title))
def test_what_stands_there_of_others_runs(block: Block, tmp_path: Path) -> None:
    for name in re.findall(r"^(?:from|import) (\w+)", block.text, re.M):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    command = [sys.executable, "-W", "ignore", "-c", block.text]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
