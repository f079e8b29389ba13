"""The documentation's picture: every row has its function, and the page says what it shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from optpair.acquisition import REGISTRY
from optpair.bench import pictures

DOCS = Path(__file__).parents[2] / "docs"


def test_picture(tmp_path: Path) -> None:
    best = pictures.acquisitions(tmp_path / "a.png", points=101)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert list(best) == list(pictures.ROWS)
    # What the page says: the mean, EI and PI stay on the known hill, the others leave it.
    hill = {name for name, x in best.items() if abs(x - 0.3) < 0.05}
    assert {"mean", "ei", "pi"} <= hill
    assert hill.isdisjoint({"jes", "rmes", "gibbon", "mes", "nei", "kg", "ucb"})


def test_the_page_names_every_function() -> None:
    text = (DOCS / "which-acquisition.md").read_text(encoding="utf-8")
    missing = [name for name in REGISTRY if f"`{name}`" not in text]
    assert missing == []
    assert (DOCS / "acquisitions.png").stat().st_size > 10_000
    assert np.all([name in REGISTRY for name in pictures.ROWS])
