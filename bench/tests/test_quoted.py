"""The regrets that pages quote are those that the commands beside them print, from the rows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from optpair_bench.cli import app

ROOT = Path(__file__).parents[2]

COMMAND = re.compile(r"`optpair bench ((?:table|summary)[^`]*)`")
QUOTED = re.compile(r"[+−]?\d+\.\d\d ± \d+\.\d\d\b(?: \((?:± |−)?\d+\.\d\d\))?")


def plain(text: str) -> str:
    """On one line, whatever is wrapped."""
    return " ".join(text.split())


def stale(text: str, printed: str) -> list[str]:
    """What a page quotes and no command prints."""
    return [quoted for quoted in QUOTED.findall(plain(text)) if quoted not in printed]


@pytest.mark.parametrize(
    ("page", "least"), [("docs/paper.md", 20), ("docs/which-acquisition.md", 60)]
)
def test_quoted_regrets_are_those_of_the_rows(
    page: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(QUOTED.findall(plain(text))) >= least
    outputs = []
    for command in dict.fromkeys(map(plain, COMMAND.findall(text))):
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, done.output
        outputs.append(plain(done.output))
    assert stale(text, " ".join(outputs)) == []


def test_what_changed_is_noticed() -> None:
    printed = "| PES | −3.60 ± 0.16 (−3.54) | +0.34 ± 0.07 (± 0.13) |"
    assert stale("−3.60 ± 0.16 (−3.54), and 0.34 ±\n0.07 above", printed) == []
    assert stale("+3.60 ± 0.16", printed) == ["+3.60 ± 0.16"]
    assert stale("−3.60 ± 0.16 (−3.55)", printed) == ["−3.60 ± 0.16 (−3.55)"]
    assert stale("0.35 ± 0.07 above", printed) == ["0.35 ± 0.07"]
