"""The figure of cheaper looks: regret against what was spent, task by task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.artist import Artist

from optpair_bench.analysis.fidelity import METHODS, PER_DIMENSION, Spent, logs
from optpair_bench.figures.style import (
    BLACK,
    BLUE,
    GOLD,
    GREEN,
    ORANGE,
    PINK,
    SKY,
    WIDTH,
    look,
    save,
)
from optpair_bench.tasks.looks import LOOK_TASKS

COLOURS = {
    "full": GOLD,
    "optpair": BLACK,
    "continued": GREEN,
    "mf-mes": PINK,
    "mf-kg": BLUE,
    "tpe-hyperband": SKY,
    "botorch-mf-mes": ORANGE,
}
NAMES = {
    "full": "whole looks only",
    "optpair": "optpair",
    "continued": "optpair, going on",
    "tpe-hyperband": "TPE + Hyperband",
    "botorch-mf-mes": "BoTorch MF-MES",
}


def draw(rows: list[Spent], out: Path) -> Path:
    """Mean log10 regret of recommendations, ± one standard error, against the cost."""
    tasks = [name for name in LOOK_TASKS if any(row.task == name for row in rows)]
    with look():
        figure, axes = plt.subplots(1, len(tasks), figsize=(WIDTH, 2.5), squeeze=False)
        for axis, name in zip(axes[0], tasks, strict=True):
            budget = PER_DIMENSION * LOOK_TASKS[name].dimensions
            for method in METHODS:
                found = logs(rows, name, method)
                if len(found) == 0:
                    continue
                cost = budget * np.arange(1, found.shape[1] + 1) / found.shape[1]
                mean, colour = found.mean(0), COLOURS.get(method, BLUE)
                error = found.std(0, ddof=1) / len(found) ** 0.5 if len(found) > 1 else 0 * mean
                axis.fill_between(cost, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
                axis.plot(cost, mean, color=colour, label=NAMES.get(method, method))
            axis.set_title(name)
            axis.set_xlabel("cost, in whole looks")
        axes[0][0].set_ylabel("log10 regret")
        shown: dict[str, Artist] = {}
        for axis in axes[0]:
            handles, labels = axis.get_legend_handles_labels()
            shown |= dict(zip(labels, handles, strict=True))
        lines, names = list(shown.values()), list(shown)
        figure.legend(lines, names, loc="outside upper center", ncols=len(names))
        return save(figure, out)
