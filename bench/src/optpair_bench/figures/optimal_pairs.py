"""Pictures of optimal pairs and of conditioning on one: how Joint Entropy Search works.

`pairs` shows what optimal pairs are and where they make the next trial informative; `conditioning`,
what knowing one pair takes from the belief, in the two steps of (M4).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optpair.acquisition import jes
from optpair.acquisition.special.truncation import moment_matched_gain, truncated_variance_ratio
from optpair.optima import Optima
from optpair.runtime.shapes import Float
from optpair_bench.figures.belief import SHOWN, X, Y, belief
from optpair_bench.figures.style import BLUE, GREEN, GREY, ORANGE

BINS = 50


def pairs(out: Path, points: int = 801) -> dict[str, float]:
    """Draw sample paths, their optimal pairs and α; returns where α is largest, and its nats."""
    grid = np.linspace(0.0, 1.0, points)
    posterior, paths, optima = belief()
    alpha = jes(posterior, optima)(grid[:, None])
    figure, axes = plt.subplot_mosaic(
        [["belief", "value"], ["place", "."], ["gain", "."]],
        figsize=(9.0, 6.6),
        height_ratios=[3.4, 1.0, 1.2],
        width_ratios=[5.0, 1.0],
        layout="constrained",
    )
    mean, sd = _moments(grid)
    drawn = paths.at(grid[:, None])[0, :SHOWN]
    where, value = optima.star[0, :, 0], optima.best[0]
    top = axes["belief"]
    _band(top, grid, mean, sd, GREY)
    top.plot(grid, mean, color="black", linewidth=1.6, label="posterior mean, ± 2 s.d.")
    top.plot(grid, drawn.T, color=BLUE, linewidth=0.7, alpha=0.5)
    top.scatter(where, value, s=8, color=BLUE, alpha=0.3, linewidths=0)
    top.scatter(
        where[:SHOWN],
        value[:SHOWN],
        marker="^",
        s=46,
        color=BLUE,
        edgecolor="black",
        linewidths=0.6,
        zorder=5,
        label="their optimal pairs (x*, f*)",
    )
    top.plot([], [], color=BLUE, linewidth=0.9, label=f"{SHOWN} of {len(value)} sample paths")
    top.scatter(X, Y, s=34, color=ORANGE, zorder=4, label="noisy values", edgecolor="black")
    top.set_ylabel("objective")
    top.legend(loc="lower left", ncols=2, fontsize=8.5, frameon=False)
    axes["value"].hist(value, bins=BINS // 2, orientation="horizontal", color=BLUE, alpha=0.5)
    axes["value"].sharey(top)
    axes["value"].set_title("f*", fontsize=10)
    axes["place"].hist(where, bins=BINS, range=(0.0, 1.0), color=BLUE, alpha=0.5)
    axes["place"].set_ylabel("x*")
    best = int(np.argmax(alpha))
    axes["gain"].fill_between(grid, 0.0, alpha, color=BLUE, alpha=0.25, linewidth=0)
    axes["gain"].plot(grid, alpha, color=BLUE, linewidth=1.4)
    axes["gain"].axvline(grid[best], color="black", linewidth=0.9, linestyle=(0, (3, 2)))
    axes["gain"].set_ylabel("α, nats")
    axes["gain"].set_ylim(0.0, None)
    axes["gain"].set_xlabel("x")
    for name in ("value", "place"):
        axes[name].tick_params(labelleft=False, left=False)
    axes["value"].tick_params(labelbottom=False, bottom=False)
    for name in ("belief", "place", "gain"):
        axes[name].set_xlim(0.0, 1.0)
    _save(figure, out)
    return {"next trial at": float(grid[best]), "its gain": float(alpha[best])}


def conditioning(out: Path, points: int = 401) -> dict[str, float]:
    """Draw what one pair takes from the belief, step by step; returns the pair, and the gains."""
    grid = np.linspace(0.0, 1.0, points)
    posterior, _, optima = belief()
    away = np.abs(optima.star[0, :, 0] - 0.76) + np.abs(optima.best[0] - 1.4)
    chosen = slice(int(np.argmin(away)), int(np.argmin(away)) + 1)
    one = Optima.pairs(optima.star[:, chosen], optima.best[:, chosen])
    x, f = float(one.star[0, 0, 0]), float(one.best[0, 0])
    pair, query = jes(posterior, one).conditioned, posterior.at(grid[:, None])
    z = pair.at(grid[:, None], query).z[0, 0, 0]
    s, noise = query.variance[0], float(posterior.noise[0])
    taken, given = z**2, query.means[0, 0] + z * pair.shift[0, 0, 0]  # (K2), (K1)
    left = np.maximum(s - taken, 1e-12)
    beta = (f - given) / np.sqrt(left)
    ratio = truncated_variance_ratio(beta)
    # The mean of a normal cut off at β, in its own units, is −φ(β)/Φ(β); and 1 − v = r (β + r).
    r = (-beta + np.sqrt(beta**2 + 4 * (1 - ratio))) / 2
    known = -np.log1p(-taken / (s + noise)) / 2
    cut = moment_matched_gain(beta, left, np.full_like(left, noise))

    figure, axes = plt.subplots(
        2, 3, figsize=(11.0, 5.2), sharex=True, height_ratios=[2.4, 1.0], layout="constrained"
    )
    mean, sd = _moments(grid)
    steps = (
        ("what is believed", mean, sd, None),
        ("… given f(x*) = f*", given, np.sqrt(left), known),
        ("… and f(x) ≤ f* everywhere", given - r * np.sqrt(left), np.sqrt(left * ratio), cut),
    )
    for axis, (title, centre, width, _) in zip(axes[0], steps, strict=True):
        _band(axis, grid, mean, sd, GREY)
        if centre is not mean:
            _band(axis, grid, centre, width, BLUE)
            axis.scatter([x], [f], marker="^", s=64, color=BLUE, edgecolor="black", zorder=5)
        axis.plot(grid, centre, color="black", linewidth=1.5)
        axis.scatter(X, Y, s=26, color=ORANGE, edgecolor="black", zorder=4)
        axis.set_title(title, fontsize=11)
        axis.set_ylim(-2.6, 3.0)
        axis.set_xlim(0.0, 1.0)
    axes[0, 2].axhline(f, color=BLUE, linewidth=0.9, linestyle=(0, (3, 2)))
    axes[0, 0].set_ylabel("objective")
    axes[1, 0].axis("off")
    axes[1, 0].text(
        0.02,
        0.55,
        "Right: how much less uncertain the value\nof a trial at x is for each step. Their sum,\n"
        "averaged over many pairs, is α.",
        transform=axes[1, 0].transAxes,
        fontsize=9.5,
        va="center",
    )
    for axis, gain, colour in ((axes[1, 1], known, BLUE), (axes[1, 2], cut, GREEN)):
        axis.fill_between(grid, 0.0, gain, color=colour, alpha=0.3, linewidth=0)
        axis.plot(grid, gain, color=colour, linewidth=1.3)
        axis.set_ylim(0.0, 1.08 * float(max(known.max(), cut.max())))
        axis.set_xlabel("x")
    axes[1, 1].set_ylabel("gain, nats")
    _save(figure, out)
    best = int(np.argmax(known + cut))
    return {
        "x*": x,
        "f*": f,
        "most to be learnt at": float(grid[best]),
        "by conditioning": float(known[best]),
        "by truncation": float(cut[best]),
    }


def _moments(
    grid: Float[np.ndarray, " q"],
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Mean and standard deviation of the belief."""
    means, variances = belief()[0].predict(grid[:, None])
    return means[0], np.sqrt(variances[0])


def _band(
    axis: Axes,
    grid: Float[np.ndarray, " q"],
    mean: Float[np.ndarray, " q"],
    sd: Float[np.ndarray, " q"],
    colour: str,
) -> None:
    axis.fill_between(grid, mean - 2 * sd, mean + 2 * sd, color=colour, alpha=0.2, linewidth=0)
    axis.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, out: Path) -> None:
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=130)
    plt.close(figure)
