"""The README's examples run as they stand, one after the other, with fewer evaluations."""

import re
from pathlib import Path

import numpy as np
import pytest

from optpair.study.config import load

README = Path(__file__).parents[1] / "README.md"


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one of them saves a file
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    exec(
        "\n".join(blocks)
        .replace("evaluations=30", "evaluations=3")
        .replace("n_trials=20", "n_trials=2"),
        names,
    )
    assert np.asarray(names["mean"]).shape == (2, 1)
    assert (tmp_path / "run.json").exists()


def test_the_study_file_is_one(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    path = tmp_path / "study.toml"
    path.write_text(blocks[0], encoding="utf-8")
    file = load(path)
    assert set(file.space) == {"lr", "width", "act"}
    assert file.storage == f"sqlite:///{tmp_path}/study.db"
