"""Picture of the acquisition functions: one belief, and what each of them makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from optpair.acquisition import REGISTRY, Context
from optpair.cube.cube import Cube
from optpair.cube.lattice import lattice
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair_bench.figures.belief import PAIRS, SHOWN, X, Y, belief
from optpair_bench.figures.style import BLUE, GREEN, GREY, ORANGE

# Information is blue, improvement orange, what is neither green.
ROWS = {
    "jes": (BLUE, "tells most about (x*, f*): where and how much"),
    "jes-peak": (BLUE, "the same, knowing that f is flat at x*"),
    "pes": (BLUE, "tells most about x*: where, not how much"),
    "es": (BLUE, "tells most about which of 32 points is the best"),
    "rmes": (BLUE, "tells most about f*, noise counted exactly"),
    "gibbon": (BLUE, "the same by moment matching, a lower bound"),
    "mes": (BLUE, "tells most about f*, as if there were no noise"),
    "ei": (ORANGE, "improves most on the best mean among the data"),
    "nei": (ORANGE, "the same, the best value being uncertain"),
    "kg": (ORANGE, "improves the best mean most, wherever that is"),
    "pi": (ORANGE, "improves most probably, however little"),
    "ucb": (GREEN, "is best if all goes well"),
    "ts": (GREEN, "is best in one sample of the objective"),
    "mean": (GREEN, "is best on average: no exploration"),
}


def landscape(
    names: tuple[str, ...], grid: Float[np.ndarray, " q"]
) -> dict[str, Float[np.ndarray, " q"]]:
    """The values of each acquisition function under that belief."""
    posterior, paths, optima = belief()
    context = Context((posterior,), Cube.box(1), lattice(1, 512), Stream.of(4), (paths,), optima)
    return {name: REGISTRY[name].build(context)(grid[:, None]) for name in names}


def acquisitions(out: Path, points: int = 801) -> dict[str, float]:
    """Draw the belief and every acquisition function; returns where each would look next."""
    grid = np.linspace(0.0, 1.0, points)
    values = landscape(tuple(ROWS), grid)
    figure, axes = plt.subplots(
        len(ROWS) + 1,
        1,
        sharex=True,
        figsize=(9.0, 3.2 + 0.72 * len(ROWS)),
        height_ratios=[4.2] + [1.0] * len(ROWS),
        layout="constrained",
    )
    _draw_belief(axes[0], grid)
    best = {}
    for axis, (name, (colour, caption)) in zip(axes[1:], ROWS.items(), strict=True):
        best[name] = float(grid[np.argmax(values[name])])
        _draw_row(axis, grid, values[name], name, colour, caption)
    axes[-1].set_xlabel("x")
    figure.savefig(out, dpi=130)
    plt.close(figure)
    return best


def _draw_belief(axis: Axes, grid: Float[np.ndarray, " q"]) -> None:
    posterior, paths, optima = belief()
    means, variances = posterior.predict(grid[:, None])
    mean, sd = means[0], np.sqrt(variances[0])
    drawn = paths.at(grid[:, None])[0, :SHOWN]
    axis.fill_between(grid, mean - 2 * sd, mean + 2 * sd, color=GREY, alpha=0.18, linewidth=0)
    axis.plot(grid, drawn.T, color=BLUE, linewidth=0.6, alpha=0.45)
    axis.plot(grid, mean, color="black", linewidth=1.6, label="posterior mean, ± 2 s.d.")
    axis.plot([], [], color=BLUE, linewidth=0.8, label=f"{SHOWN} of {PAIRS} sample paths")
    axis.scatter(
        optima.star[0, :, 0],
        optima.best[0],
        s=11,
        color=BLUE,
        alpha=0.45,
        linewidths=0,
        label="optimal pairs (x*, f*)",
    )
    axis.scatter(X, Y, s=34, color=ORANGE, zorder=4, label="noisy values", edgecolor="black")
    axis.set_ylabel("objective")
    axis.set_ylim(-2.6, 3.4)
    axis.legend(loc="lower left", ncols=2, fontsize=8.5, frameon=False)
    axis.set_title("What is believed, and where each acquisition function looks next", fontsize=12)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_row(
    axis: Axes,
    grid: Float[np.ndarray, " q"],
    values: Float[np.ndarray, " q"],
    name: str,
    colour: str,
    caption: str,
) -> None:
    low, high = float(values.min()), float(values.max())
    height = (values - low) / (high - low)
    top = grid[np.argmax(height)]
    axis.vlines(X, 0.0, 1.0, color=GREY, alpha=0.5, linewidth=0.7)
    axis.fill_between(grid, 0.0, height, color=colour, alpha=0.25, linewidth=0)
    axis.plot(grid, height, color=colour, linewidth=1.3)
    axis.vlines([top], 0.0, 1.0, color="black", linewidth=0.9, linestyle=(0, (3, 2)), clip_on=False)
    axis.scatter([top], [1.0], marker="v", s=42, color="black", zorder=4, clip_on=False)
    axis.set_ylim(0.0, 1.75)
    axis.set_yticks([])
    axis.set_xlim(0.0, 1.0)
    axis.set_ylabel(name, rotation=0, ha="right", va="center", fontweight="bold", color=colour)
    axis.text(0.005, 1.7, caption, fontsize=8.5, va="top", color="black")
    axis.spines[["top", "right", "left"]].set_visible(False)
