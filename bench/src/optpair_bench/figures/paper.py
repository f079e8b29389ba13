"""Pictures of the paper: densities of the optimum, the two steps of conditioning, the quality of
moment matching, and where each method looks on a GP sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from optpair import optima
from optpair.acquisition.special.normal import truncated_moments
from optpair.acquisition.special.truncation import moment_matched_gain
from optpair.gp import Posterior, condition
from optpair.runtime.shapes import Float
from optpair_bench import tasks
from optpair_bench.analysis import statistics
from optpair_bench.figures import style
from optpair_bench.figures.belief import HYPERS, X, Y
from optpair_bench.figures.measures import Landscape, approximation_ratio
from optpair_bench.running.experiments import Experiment
from optpair_bench.running.rows import Row

PAIRS = 2000
CERTAIN = 1e-8  # the noise variance of a pair that is conditioned on
NOISE = float(HYPERS.noise[0])


def densities(folder: Path) -> Path:
    """p(x*), p(f*) and p(x*, f*) under one belief about a function of one variable."""
    posterior = condition(HYPERS, X[:, None], Y)
    found = optima.sample(posterior, PAIRS)
    x, f = found.star[0, :, 0], found.best[0]
    grid = np.linspace(0, 1, 401)
    mean, variance = (a[0] for a in posterior.predict(grid[:, None]))
    with style.look():
        figure, axes = plt.subplot_mosaic(
            [["x", "."], ["xf", "f"]],
            figsize=(7.0, 5.2),
            width_ratios=[3.2, 1],
            height_ratios=[1, 2.4],
        )
        axes["xf"].sharex(axes["x"])
        axes["f"].sharey(axes["xf"])
        main = axes["xf"]
        _band(main, grid, mean, np.sqrt(variance), style.GREY, "posterior, ± 2 s.d.")
        main.scatter(x, f, s=5, color=style.BLUE, alpha=0.25, linewidths=0, label="(x*, f*)")
        main.scatter(X, Y, s=26, color=style.ORANGE, edgecolor="black", zorder=4, label="values")
        main.set(xlabel="x", ylabel="objective", xlim=(0, 1))
        main.legend(loc="lower right", fontsize=8, markerscale=1.5)
        axes["x"].hist(x, bins=80, range=(0, 1), density=True, color=style.GREEN)
        axes["x"].set_title("p(x*): what ES and PES ask about")
        axes["f"].hist(f, bins=50, density=True, color=style.ORANGE, orientation="horizontal")
        axes["f"].set_title("p(f*): MES")
        main.set_title("p(x*, f*): JES", loc="left")
        return style.save(figure, folder / "pictures-densities.png")


def conditioning(folder: Path) -> Path:
    """The two steps: conditioning on a pair, then f ≤ f*; and what each takes from y's entropy."""
    grid = np.linspace(0, 1, 401)
    start = condition(HYPERS, X[:, None], Y)
    found = optima.sample(start, 64, seed=3)
    pick = int(np.argsort(found.best[0])[40])
    x, f = float(found.star[0, pick, 0]), float(found.best[0, pick])
    noise_var = np.append(np.full(len(X), np.nan), CERTAIN)
    given = condition(HYPERS, np.append(X, x)[:, None], np.append(Y, f), noise_var=noise_var)
    m, s = _moments(start, grid)
    m_p, s_p = _moments(given, grid)
    beta = (f - m_p) / np.sqrt(s_p)
    cut = truncated_moments(beta)
    m_t, s_t = m_p - np.sqrt(s_p) * cut.hazard, s_p * cut.variance
    steps = (
        ("after seven noisy values", m, s),
        ("given f(x*) = f*", m_p, s_p),
        ("given also f ≤ f* everywhere", m_t, s_t),
    )
    with style.look():
        figure, axes = plt.subplot_mosaic([[0, 1, 2], [3, 3, 3]], figsize=(style.WIDTH, 5.2))
        for i, (title, mean, variance) in enumerate(steps):
            _band(axes[i], grid, mean, np.sqrt(variance + NOISE), style.SKY, "p(y)")
            _band(axes[i], grid, mean, np.sqrt(variance), style.GOLD, "p(f)")
            axes[i].scatter(X, Y, s=20, color=style.ORANGE, edgecolor="black", zorder=4)
            if i:
                axes[i].scatter([x], [f], marker="*", s=120, color=style.BLUE, zorder=5)
                axes[i].axhline(f, color=style.BLUE, linewidth=0.9, linestyle="--")
            axes[i].set(title=title, xlim=(0, 1), ylim=(-2.6, 3.0))
        axes[0].legend(loc="lower right", fontsize=8)
        first = 0.5 * np.log((s + NOISE) / (s_p + NOISE))
        second = moment_matched_gain(beta, s_p, np.full_like(s_p, NOISE))
        axes[3].plot(grid, first, color=style.BLUE, label="conditioning on (x*, f*): local")
        axes[3].plot(grid, second, color=style.ORANGE, label="truncation at f*: everywhere")
        axes[3].set(xlabel="x", ylabel="entropy taken, nats", xlim=(0, 1))
        axes[3].legend(loc="upper right", fontsize=8)
        return style.save(figure, folder / "pictures-conditioning.png")


def _moments(
    posterior: Posterior, grid: Float[np.ndarray, " q"]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    mean, variance = posterior.predict(grid[:, None])
    return mean[0], np.maximum(variance[0], 1e-12)


def _band(
    axis: Axes,
    grid: Float[np.ndarray, " q"],
    mean: Float[np.ndarray, " q"],
    sd: Float[np.ndarray, " q"],
    colour: str,
    name: str,
) -> None:
    shade = style.light(colour)
    axis.fill_between(grid, mean - 2 * sd, mean + 2 * sd, color=shade, linewidth=0, label=name)
    axis.plot(grid, mean, color="black", linewidth=1.0)


def approximation(folder: Path, points: int = 81) -> Path:
    """How much of the truncation's gain moment matching sees."""
    share = np.logspace(-4, np.log10(0.99), points)
    quantile = np.logspace(-6, np.log10(0.99), points)
    ratio = approximation_ratio(share, quantile)
    with style.look():
        figure, axis = plt.subplots(figsize=(5.6, 4.2))
        mesh = axis.pcolormesh(share, quantile, ratio, cmap="viridis", vmax=1.0, shading="nearest")
        lines = axis.contour(share, quantile, ratio, levels=[0.8, 0.9, 0.95, 0.99], colors="w")
        lines.set_linewidth(1.0)
        axis.clabel(lines, fontsize=8, inline=False)
        axis.set(xscale="log", yscale="log", xlabel="noise, share of the variance of y")
        axis.set_ylabel("truncation quantile Φ(β)")
        axis.grid(visible=False)
        figure.colorbar(mesh, label="moment-matched gain / exact gain")
        return style.save(figure, folder / "approximation.png")


def queries(experiment: Experiment, rows: Sequence[Row], folder: Path) -> Path | None:
    """Where each method looked on one GP sample: yellow early, red late."""
    found = {row["method"]: row for row in rows if "queries" in row and row["seed"] == 0}
    names = [name for name in statistics.methods_of(rows, experiment) if name in found]
    if not names:
        return None
    land = Landscape.of(tasks.make("gp2", 0))
    with style.look():
        figure, axes = plt.subplots(2, 2, figsize=(7.4, 7.0), sharex=True, sharey=True)
        for axis, name in zip(axes.flat, names, strict=False):
            Q = np.array(found[name]["queries"])
            axis.contourf(land.side, land.side, land.values, levels=24, cmap="viridis")
            axis.scatter(
                *Q.T,
                c=np.arange(len(Q)),
                cmap="autumn_r",
                s=16,
                edgecolor="black",
                lw=0.4,
                clip_on=False,
                zorder=3,
            )
            ring = {"s": 190, "facecolor": "none", "linewidths": 1.8, "clip_on": False, "zorder": 4}
            axis.scatter(*land.peaks[1:].T, edgecolor="#c8c8c8", **ring)
            axis.scatter(*land.peaks[:1].T, edgecolor="white", **ring)
            axis.set(title=statistics.label(name), xlim=(0, 1), ylim=(0, 1), aspect="equal")
            axis.grid(visible=False)
        for axis in axes.flat[len(names) :]:
            axis.set_visible(False)
        figure.supxlabel(
            f"{len(Q)} queries each, yellow to red; white, the optimum; grey, other high peaks",
            fontsize=8,
        )
        return style.save(figure, folder / "pictures-queries.png")
