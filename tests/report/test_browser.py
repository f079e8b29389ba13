"""The page in a real browser: it renders, its script runs, and nobody else's does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from report_cases import EVIL, SPACE, Browse, search


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("browser") / "page.html"
    search().report(path, name=EVIL)
    return path


def test_a_script_in_a_name_does_nothing_and_nothing_is_wrong(page: Path, browse: Browse) -> None:
    seen = browse(page)
    assert seen.console == []
    assert "<title>&lt;script&gt;document.title='owned'" in seen.dom
    assert seen.dom.count("<script") == 2
    assert seen.dom.count("<svg") == 5 + len(SPACE)


def test_the_cloud_shows_the_two_axes_that_are_chosen(page: Path, browse: Browse) -> None:
    text = page.read_text(encoding="utf-8").replace(" selected>", ">")
    text = _chosen(text, text.index('id="across"'), 1)
    text = _chosen(text, text.index('id="up"'), 3)
    other = page.with_name("other.html")
    other.write_text(text, encoding="utf-8")
    seen = browse(other)
    assert seen.console == []
    shown = re.findall(r'class="([xy])-axis" data-k="(\d)"', seen.dom)
    assert shown == [("x", "1"), ("y", "3")]


def _chosen(text: str, menu: int, option: int) -> str:
    at = text.index(f'<option value="{option}"', menu)
    return text[:at] + text[at:].replace("<option ", "<option selected ", 1)


@pytest.mark.parametrize("width", [1200, 500])
def test_it_renders(page: Path, browse: Browse, tmp_path: Path, width: int) -> None:
    from matplotlib.image import imread

    shot = tmp_path / "shot.png"
    browse(page, width, shot)
    picture = imread(shot)[:, :, :3]
    assert picture.shape[1] == width
    colours = np.unique((picture * 16).astype(int).reshape(-1, 3), axis=0)
    assert len(colours) > 40  # cards, curves, bands and words
    margin = picture[:, -3:].reshape(-1, 3)
    assert np.ptp(margin, axis=0).max() < 0.1  # nothing hangs over the edge


def test_what_is_wrong_would_be_seen(tmp_path: Path, browse: Browse) -> None:
    path = tmp_path / "wrong.html"
    path.write_text("<script>document.title='owned'; throw 1</script>", encoding="utf-8")
    seen = browse(path)
    assert "<title>owned</title>" in seen.dom
    assert len(seen.console) == 1
