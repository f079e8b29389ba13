"""The demo runs to its end, and leaves its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

from optpair import demo


def test_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    demo.main(evaluations=5, repeats=2)
    said = " ".join(capsys.readouterr().out.split())
    for words in ("what it promised", "trained 2 more times", "Still to be won: about"):
        assert words in said
    assert (tmp_path / demo.PICTURE).read_bytes().startswith(b"\x89PNG")
