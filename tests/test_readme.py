"""The README's examples run as they stand, one after the other, with fewer evaluations."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one of them saves a file
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    exec("\n".join(blocks).replace("evaluations=30", "evaluations=3"), names)
    assert np.asarray(names["mean"]).shape == (2, 1)
    assert (tmp_path / "run.json").exists()
