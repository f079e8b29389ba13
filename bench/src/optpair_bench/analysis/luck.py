"""Winner's curse: what the luckiest trial promises and keeps, beside the recommendation.

Every search is a new run of the library at its default settings on a test function whose noiseless
values are known. Both answers promise a value; the function says what each keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import pyplot as plt

from optpair.optimizer import Optimizer
from optpair.persistence import files
from optpair_bench import methods, tasks
from optpair_bench.figures.style import BLUE, GOLD
from optpair_bench.tasks.functions import spread

TASK = "hartmann3"
NOISE_SHARE = 0.5  # of the function's standard deviation
EVALUATIONS = 30


@dataclass(frozen=True)
class Search:
    """One search: the value that each answer promised, and the noiseless one that it keeps."""

    seed: int
    recommended: float
    low: float
    high: float
    recommended_keeps: float
    luckiest: float
    luckiest_keeps: float


def search(seed: int, evaluations: int = EVALUATIONS) -> Search:
    """Maximise the task once."""
    noise_var = (NOISE_SHARE * spread(TASK)) ** 2
    task = replace(tasks.make(TASK, seed), noise_var=noise_var)
    optimizer = Optimizer(methods.unit_space(task.dimensions), direction="maximize", seed=seed)
    for index in range(evaluations):
        trial = optimizer.ask()
        optimizer.tell(trial, task.observe(np.array(list(trial.params.values())), index))
    best = optimizer.recommend()
    lucky = best.observed
    points = np.array([list(p.values()) for p in (best.params, lucky.params)], dtype=float)
    keeps = task.value(points)
    assert lucky.value is not None
    low, high = best.interval
    return Search(seed, best.mean, low, high, float(keeps[0]), lucky.value, float(keeps[1]))


def measure(searches: int, out: Path | None = None, evaluations: int = EVALUATIONS) -> list[Search]:
    """Searches with seeds from 0 on; those that the JSON lines file has are not done again."""
    done = {found.seed: found for found in read(out)} if out is not None and out.exists() else {}
    for seed in range(searches):
        if seed not in done:
            done[seed] = search(seed, evaluations)
            if out is not None:  # whole, or not at all
                lines = [json.dumps(asdict(found)) for found in done.values()]
                files.write(out, "\n".join(lines) + "\n")
    return [done[seed] for seed in range(searches)]


def read(path: Path) -> list[Search]:
    """The searches of a JSON lines file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Search(**json.loads(line)) for line in lines]


class Mean(NamedTuple):
    """A mean over searches, and its standard error."""

    value: float
    error: float


def summary(searches: Iterable[Search]) -> dict[str, Mean]:
    """Means over the searches, in units of the objective; the last is a share."""
    rows = list(searches)
    best = tasks.make(TASK).optimum.f
    found = {
        "the luckiest trial promises too much by": [r.luckiest - r.luckiest_keeps for r in rows],
        "the recommendation promises too much by": [
            r.recommended - r.recommended_keeps for r in rows
        ],
        "the luckiest trial is below the optimum by": [best - r.luckiest_keeps for r in rows],
        "the recommendation is below the optimum by": [best - r.recommended_keeps for r in rows],
        "the recommendation is better by": [r.recommended_keeps - r.luckiest_keeps for r in rows],
        "95 % intervals that hold the truth": [
            float(r.low <= r.recommended_keeps <= r.high) for r in rows
        ],
    }
    return {
        name: Mean(float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5))
        for name, values in found.items()
    }


def draw(searches: Sequence[Search], out: Path) -> None:
    """Promised against kept, one dot per search."""
    optimum = tasks.make(TASK).optimum.f
    figure, axes = plt.subplots(
        1, 2, figsize=(9.0, 4.5), sharex=True, sharey=True, layout="constrained"
    )
    panels = (
        ("the luckiest trial", GOLD, [(r.luckiest, r.luckiest_keeps) for r in searches]),
        ("the recommendation", BLUE, [(r.recommended, r.recommended_keeps) for r in searches]),
    )
    ends = np.array([value for _, _, rows in panels for row in rows for value in row])
    low, high = ends.min() - 0.15, ends.max() + 0.15
    for axis, (title, colour, rows) in zip(axes, panels, strict=True):
        promised, kept = np.array(rows).T
        axis.plot([low, high], [low, high], color="black", linewidth=0.9)
        axis.axhline(optimum, color="black", linewidth=0.9, linestyle=(0, (3, 2)))
        axis.scatter(promised, kept, s=34, color=colour, edgecolor="black", linewidths=0.5)
        axis.set_title(f"{title} (promised − kept: {np.mean(promised - kept):+.2f})", fontsize=11)
        axis.set_xlabel("what it promised")
        axis.set_xlim(low, high)
        axis.set_ylim(low, high)
        axis.set_aspect("equal")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].text(low + 0.1, optimum + 0.04, "the optimum", fontsize=9)
    axes[0].set_ylabel("what it keeps, without noise")
    figure.savefig(out, dpi=130)
    plt.close(figure)
