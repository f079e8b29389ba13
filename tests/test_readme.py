"""The README's examples run as they stand, one after the other, with fewer evaluations."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from pages import ROOT, blocks, masked

README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return [block.text for block in blocks(README) if block.language == language]


def _without_values(text: str) -> list[str]:
    """Lines without numbers and categories: the objective is noisy."""
    return [re.sub(r"'\w+'", "#", line) for line in masked(text)]


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one of them saves a file
    text = "\n".join(_blocks("python"))
    assert "evaluations=30" in text
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(text.replace("evaluations=30", "evaluations=3"), {})
    (shown,) = _blocks("text")
    assert _without_values(out.getvalue()) == _without_values(shown)
    for name in ("run.json", "run.html"):
        assert (tmp_path / name).exists()


def test_a_newcomer_reads_it_to_the_end() -> None:
    words = [word for word in README.split() if re.search(r"\w", word)]  # no bars of tables
    assert len(words) <= 700


def test_what_it_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert "docs/report.png" in links
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for link in links:
        assert (ROOT / link).exists(), link
        assert Path(link).name not in ignored, link
