"""The documentation's picture: every row has its function, and the page says what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from optpair.acquisition import REGISTRY
from optpair_bench.analysis import luck
from optpair_bench.figures import acquisitions, film, optimal_pairs

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("luckiest trial", "recommendation")


def test_picture(tmp_path: Path) -> None:
    best = acquisitions.acquisitions(tmp_path / "a.png", points=101)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert list(best) == list(acquisitions.ROWS)
    # What the page says: the mean, EI and PI stay on the known hill, the others leave it.
    hill = {name for name, x in best.items() if abs(x - 0.3) < 0.05}
    assert {"mean", "ei", "pi"} <= hill
    assert hill.isdisjoint({"jes", "rmes", "gibbon", "mes", "nei", "kg", "ucb"})


def test_the_page_names_every_function() -> None:
    text = (DOCS / "which-acquisition.md").read_text(encoding="utf-8")
    missing = [name for name in REGISTRY if f"`{name}`" not in text]
    assert missing == []
    assert (DOCS / "acquisitions.png").stat().st_size > 10_000
    assert np.all([name in REGISTRY for name in acquisitions.ROWS])


def test_how_it_works(tmp_path: Path) -> None:
    found = optimal_pairs.pairs(tmp_path / "p.png", points=101)
    step = optimal_pairs.conditioning(tmp_path / "c.png", points=101)
    for name in ("p.png", "c.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    text = (DOCS / "how-it-works.md").read_text(encoding="utf-8")
    # What the page says of them.
    assert f"The next trial is at {found['next trial at']:.2f}" in " ".join(text.split())
    assert f"x^* = {step['x*']:.2f}$ with $f^* = {step['f*']:.2f}$" in text
    assert abs(step["most to be learnt at"] - step["x*"]) < 0.02
    assert "the first step is worth 1.47 nats" in text
    assert step["by conditioning"] == pytest.approx(1.47, abs=0.1)  # a coarser grid
    assert step["by truncation"] < 0.05


def test_a_belief_contracts(tmp_path: Path) -> None:
    found = film.film(tmp_path / "f.svg", scenes=(3, 6, 14))
    assert found[14] < 0.3 * found[6]
    root = ElementTree.parse(tmp_path / "f.svg").getroot()
    groups = [g.get("id") for g in root.iter("{http://www.w3.org/2000/svg}g")]
    assert groups == ["s0", "s1", "s2"]
    text = (DOCS / "belief.svg").read_text(encoding="utf-8")
    assert text.count('class="scene"') == len(film.SCENES)
    assert "<script" not in text


def test_the_scenes_of_a_film_follow_each_other(tmp_path: Path) -> None:
    """At every moment of the loop one scene is seen, in order; the last stays the longest."""
    text = film._moving([film.Markup("<g/>")] * 3)
    shown = re.findall(r"([\d.]+)%, ([\d.]+)% \{ opacity: 1 \}", text)
    ends = [(float(a), float(b)) for a, b in shown]
    assert ends == [(0.0, 19.99), (20.0, 39.99), (40.0, 99.99)]
    assert "prefers-reduced-motion" in text


def test_the_winners_curse_as_the_page_has_it(tmp_path: Path) -> None:
    rows = luck.read(DOCS.parent / "bench" / "results" / "luck.jsonl")
    found = {key: (f"{m.value:.2f}", f"{m.error:.2f}") for key, m in luck.summary(rows).items()}
    page = " ".join((DOCS / "noise.md").read_text(encoding="utf-8").replace("−", "-").split())
    promised = [" ± ".join(found[f"the {name} promises too much by"]) for name in NAMES]
    assert f"| promised too much by | {promised[0]} | {promised[1]} |" in page
    below = [" ± ".join(found[f"the {name} is below the optimum by"]) for name in NAMES]
    assert f"without noise | {below[0]} | {below[1]} |" in page
    assert f"is better by {' ± '.join(found['the recommendation is better by'])}" in page
    held = float(found["95 % intervals that hold the truth"][0])
    assert f"held the truth in {100 * held:.0f} % of the" in page
    bold = [r.luckiest > r.luckiest_keeps for r in rows].count(True)
    assert f"in {bold} of the {len(rows)} searches" in page
    luck.draw(rows, tmp_path / "l.png")
    assert (tmp_path / "l.png").read_bytes().startswith(b"\x89PNG")


def test_a_search_promises_and_keeps(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    (first,) = luck.measure(1, out, evaluations=3)
    assert luck.measure(1, out, evaluations=3) == luck.read(out) == [first]
    assert first.low <= first.recommended <= first.high
    best = luck.tasks.make(luck.TASK).optimum.f
    assert max(first.recommended_keeps, first.luckiest_keeps) <= best
