"""The page in a real browser: it renders, its script runs, and nobody else's does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
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
    assert seen.dom.count("<svg") == 9 + len(SPACE)  # a slice each; one with a chance of success


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


def test_a_click_sorts_the_best_first_and_another_the_other_way(page: Path, browse: Browse) -> None:
    """The page with a script of a test's own: what it sees goes into the title."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text(encoding="utf-8"))
    text = text.replace('<button type="button">value<', '<button data-first="down">value<')
    shown = 'document.querySelector(".trials tbody td:nth-child(3) data").value'
    script = f"""const b = [...document.querySelectorAll("th button")][2];
        b.click(); const first = {shown}; b.click();
        document.title = `${{first}} then ${{{shown}}}`;"""
    other = page.with_name("sorted.html")
    other.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    seen = browse(other)
    values = [trial.value for trial in search().trials if trial.value is not None]
    title = re.search("<title>(.*) then (.*)</title>", seen.dom)
    assert title is not None
    assert [float(v) for v in title.groups()] == [max(values), min(values)]


def test_a_stroke_along_an_axis_keeps_the_trials_that_cross_it(page: Path, browse: Browse) -> None:
    """The lower half of the values; then a click on the axis lets go."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text(encoding="utf-8"))
    script = """const zone = [...document.querySelectorAll(".zone")].at(-1);
        const box = zone.getBoundingClientRect();
        const at = (kind, y) => zone.dispatchEvent(new PointerEvent(kind,
            { clientX: box.x + 9, clientY: box.y + y * box.height, pointerId: 1 }));
        zone.setPointerCapture = () => {};
        const said = () => document.querySelector(".picked").textContent;
        const dim = () => document.querySelectorAll("tr.passed").length;
        at("pointerdown", 0.5); at("pointermove", 0.8); at("pointermove", 1); at("pointerup", 1);
        const kept = `${said()}, ${dim()} dim`;
        at("pointerdown", 0.5); at("pointerup", 0.5);
        document.title = `${kept}; ${said()}, ${dim()} dim`;"""
    other = page.with_name("picked.html")
    other.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    seen = browse(other)
    assert seen.console == []
    title = re.search(r"<title>(\d) of 8 trials kept, (\d) dim; , 0 dim</title>", seen.dom)
    assert title is not None
    kept, dim = map(int, title.groups())
    assert 1 < kept < 8
    assert kept + dim == 8


def _chosen(text: str, menu: int, option: int) -> str:
    at = text.index(f'<option value="{option}"', menu)
    return text[:at] + text[at:].replace("<option ", "<option selected ", 1)


@pytest.mark.parametrize("width", [1200, 390])
def test_it_renders_and_nothing_hangs_over_the_edge(
    page: Path, browse: Browse, tmp_path: Path, width: int
) -> None:
    """In a frame of that width: a browser's window cannot be as narrow as a phone."""
    frame = page.with_name(f"frame{width}.html")
    frame.write_text(
        f'<body style="margin:0"><iframe src="{page.name}" style="border:0;width:{width}px;'
        'height:1500px"></iframe>',
        encoding="utf-8",
    )
    shot = tmp_path / "shot.png"
    assert browse(frame, shot=shot).console == []
    picture = imread(shot)[:1400, :width, :3]
    colours = np.unique((picture * 16).astype(int).reshape(-1, 3), axis=0)
    assert len(colours) > 40  # cards, curves, bands and words
    assert np.ptp(picture[:, -8:].reshape(-1, 3), axis=0).max() < 0.05


def test_what_is_wrong_would_be_seen(tmp_path: Path, browse: Browse) -> None:
    path = tmp_path / "wrong.html"
    path.write_text("<script>document.title='owned'; throw 1</script>", encoding="utf-8")
    seen = browse(path)
    assert "<title>owned</title>" in seen.dom
    assert len(seen.console) == 1
