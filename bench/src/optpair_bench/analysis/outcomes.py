"""Tables of `constrained` and `fronts`: what answers lack, and how many are truly feasible.

Numbers are log10 of what the answer lacks, noiseless (`JointTask.lost`), floored at 1e-6, averaged
over the seeds of each task, and then over tasks, which weigh equally. Differences are the first
method's minus another's on equal tasks and seeds: negative where the first is better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optpair_bench.analysis import statistics
from optpair_bench.analysis.arena import FLOOR, Arena
from optpair_bench.running.experiments import Experiment
from optpair_bench.running.rows import Row

BUDGETS = (5, 10, 20)
"""Evaluations a dimension."""


def arenas(rows: Sequence[Row], key: str) -> dict[int, Arena]:
    """What rows have under a key after each budget, by method and (task, seed)."""
    found = {budget: Arena() for budget in BUDGETS}
    for row in rows:
        points = row["checkpoints"]
        at = dict(zip(points["evaluations"], points[key], strict=True))
        for budget, arena in found.items():
            value = at.get(budget * row["dimensions"])
            if value is not None:
                of = arena.values.setdefault(row["method"], {})
                of[row["task"], row["seed"]] = value
    return found


def markdown(rows: Sequence[Row], experiment: Experiment) -> str:
    """One table, a line for each budget and method, and what it means."""
    first, *others = statistics.methods_of(rows, experiment) or [""]
    lost, feasible = arenas(rows, "inference"), arenas(rows, "feasible")
    head = ("budget", "method", "tasks (runs)", "log10 lost", f"to {statistics.label(first)}")
    lines = ["| " + " | ".join((*head, "truly feasible", "seconds per ask")) + " |"]
    lines.append("|---:|---|---:|---:|---:|---:|---:|")
    for budget in BUDGETS:
        logs = Arena({m: _logs(v) for m, v in lost[budget].values.items()})
        for method in (first, *others):
            if method in logs.values:
                shown = _line(logs, method, first)
                share = feasible[budget].mean(method)
                cells = [f"{budget}·D", statistics.label(method), *shown, f"{share:.0%}"]
                lines.append(f"| {' | '.join([*cells, _seconds(rows, method)])} |")
    return "\n".join(lines) + "\n\n" + _notes(first)


def _logs(values: dict[tuple[str, int], float]) -> dict[tuple[str, int], float]:
    return {key: float(np.log10(max(value, FLOOR))) for key, value in values.items()}


def _line(logs: Arena, method: str, first: str) -> list[str]:
    """On how many tasks and runs, the mean, and the difference of the first to this one."""
    own = logs.values[method]
    versus = None if method == first else logs.versus(first, method)
    return [
        f"{len({task for task, _ in own})} ({len(own)})",
        statistics.number(logs.mean(method), 2),
        "" if versus is None else statistics.show(-versus.mean, versus.error, "+"),
    ]


def _seconds(rows: Sequence[Row], method: str) -> str:
    """The median over runs of the median ask."""
    asks = [row["ask_seconds"]["median"] for row in rows if row["method"] == method]
    return f"{np.median(asks):.2g}"


def _notes(first: str) -> str:
    return (
        "Lost: of one objective, what the recommendation lacks of the best feasible value, in "
        "units of the objective's spread, and where it is not feasible, what the worst point "
        "lacks; of several, the share of the largest hypervolume that the answer's feasible points "
        f"do not have. Positive differences are worse than {statistics.label(first)}, ± the "
        "standard error over the tasks that both have; averages of methods that ran on other tasks "
        "cannot be compared. Seconds are those of a busy machine.\n"
    )
