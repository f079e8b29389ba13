"""The README's examples run as they stand, one after the other, with fewer evaluations."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from optpair import Settings
from optpair.studies.config import load
from pages import ROOT, blocks, masked

README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return [block.text for block in blocks(README) if block.language == language]


def _without_values(text: str) -> list[str]:
    """Lines without numbers and categories: the objective is noisy."""
    return [re.sub(r"'\w+'", "#", line) for line in masked(text)]


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one of them saves a file
    examples = _blocks("python")
    assert len(examples) == 6
    tiny = Settings(sets=2, pairs=2, candidates=64, path_candidates=64, starts=2, steps=4)
    names: dict[str, object] = {"tiny": tiny}
    text = "\n".join(examples)
    for long, short in (
        ("evaluations=30", "evaluations=3"),
        ("n_trials=20", "n_trials=2"),
        ("evaluations=25", "evaluations=3, hyperparameters='map', settings=tiny"),
        ("JESSampler(seed=0)", "JESSampler(seed=0, hyperparameters='map', settings=tiny)"),
    ):
        assert long in text
        text = text.replace(long, short)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(text, names)
    (shown,) = _blocks("text")
    assert _without_values(out.getvalue()) == _without_values(shown)
    assert np.asarray(names["mean"]).shape == (2, 1)
    for name in ("run.json", "run.html", "study.html"):
        assert (tmp_path / name).exists()


def test_the_study_file_is_one(tmp_path: Path) -> None:
    (text,) = _blocks("toml")
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    file = load(path)
    assert set(file.space) == {"lr", "width", "act"}
    assert file.storage == f"sqlite:///{tmp_path}/study.db"


def test_what_it_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert "docs/demo-belief.png" in links
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for link in links:
        assert (ROOT / link).exists(), link
        assert Path(link).name not in ignored, link
