"""Style of all pictures: colours that the colour-blind tell apart (Okabe and Ito).

Importing it chooses a backend that needs no screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # the backend must be chosen first
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6b6b6b"
GOLD, SKY, PINK, BLACK = "#E69F00", "#56B4E9", "#CC79A7", "#000000"
COLOURS = {
    "jes": BLUE,
    "mes": ORANGE,
    "pes": GREEN,
    "ei": PINK,
    "logei": PINK,
    "optpair": BLACK,
    "jes-peak": GOLD,
    "random": GREY,
    "lattice": GREY,
    "sobol": GREY,
    "optuna-gp": GOLD,
    "optuna-tpe": SKY,
    "botorch-lognei": ORANGE,
    "botorch-jes": GREEN,
    "botorch-lognehvi": ORANGE,
    "optuna-nsga2": PINK,
}
PEERS = (
    "optuna-gp",
    "optuna-tpe",
    "optuna-nsga2",
    "botorch-lognei",
    "botorch-jes",
    "botorch-lognehvi",
)
"""Other libraries: dashed, as their colours are used for our methods, too."""
BESIDE = ("optpair", "jes-peak", *PEERS)
"""Methods that figures show beside those of the experiment."""
SERIES = (BLUE, ORANGE, GREEN, PINK, GOLD, SKY, BLACK, GREY)
WIDTH = 8.4  # inches: letters of 9 points are still 10 pixels high on the pages
DASHES = ("-", (0, (5, 1.5)), (0, (2, 1)), (0, (6, 1.5, 1.5, 1.5)))
SETTINGS: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "figure.constrained_layout.use": True,
}


def light(colour: str, share: float = 0.45) -> tuple[float, float, float]:
    """A colour mixed with white: as a band that hides what is below it."""
    red, green, blue = (1 - share + share * part for part in to_rgb(colour))
    return red, green, blue


@contextmanager
def look() -> Iterator[None]:
    """Figures that are drawn inside have the common look."""
    with plt.rc_context(SETTINGS):
        yield


def save(figure: Figure, out: Path, dpi: int = 130) -> Path:
    """Write a figure as a small PNG, without a date in it, and close it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=dpi, metadata={"Software": None})
    plt.close(figure)
    return out
