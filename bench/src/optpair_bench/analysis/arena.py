"""Ours beside its peers on `answers`: by dimension, noise and budget, cell by cell.

A cell has all tasks of a class of dimensions at one level of noise, read after so many evaluations
a dimension. Differences are of log10 inference regret in units of the spread, ours minus the
peer's: negative where ours is better. They are paired on equal tasks and seeds, averaged over the
seeds of each task, and then over tasks, which weigh equally; the standard error is over tasks. The
best peer of a cell is the one that fares best in that very cell, among those that have runs on half
of our tasks, or more: who is picked by the result looks better than he is, to our disadvantage.

Regrets are floored at 1e-6 of the spread before the logarithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from optpair_bench.analysis import statistics
from optpair_bench.methods import peers
from optpair_bench.running.experiments import ANSWERS, READ_AT
from optpair_bench.running.rows import Row

FLOOR = 1e-6  # of the spread
CLASSES = (("2", 2), ("3", 3), ("5", 5), ("6–10", 10), ("20", 20), ("50", 50))
"""Names of the classes of dimensions, and the largest dimension of each."""
RIVALS = (*peers.METHODS, "random")
"""What may be the best peer of a cell."""


class Place(NamedTuple):
    """What a cell is known by; in the order of the table."""

    dimensions: int
    """The largest of its class."""
    noise: float
    """In per cent of the spread."""
    budget: int
    """Evaluations a dimension."""

    @property
    def name(self) -> str:
        """The class of dimensions, for people."""
        return next(name for name, most in CLASSES if most == self.dimensions)


class Difference(NamedTuple):
    """Ours minus another's, over the tasks that both have."""

    mean: float
    error: float
    tasks: int
    runs: int


@dataclass
class Arena:
    """One cell: log10 regrets by method and (task, seed)."""

    values: dict[str, dict[tuple[str, int], float]] = field(default_factory=dict)

    def differences(self, ours: str, other: str) -> dict[str, list[float]]:
        """Ours minus another's on the seeds of each task that both have."""
        own, its = self.values[ours], self.values.get(other, {})
        by_task: dict[str, list[float]] = {}
        for key, value in own.items():
            if key in its:
                by_task.setdefault(key[0], []).append(value - its[key])
        return by_task

    def versus(self, ours: str, other: str) -> Difference | None:
        """Ours beside another method; None where they share no run."""
        by_task = self.differences(ours, other)
        if not by_task:
            return None
        mean, error = statistics.mean_and_error(float(np.mean(d)) for d in by_task.values())
        return Difference(mean, error, len(by_task), sum(map(len, by_task.values())))

    def best_peer(self, ours: str) -> tuple[str, Difference] | None:
        """The peer that fares best here, of those that have half of our tasks, or more."""
        least = statistics.ENOUGH * len({task for task, _ in self.values[ours]})
        found = {name: self.versus(ours, name) for name in self.values if name in RIVALS}
        enough = [(n, d) for n, d in found.items() if n != ours and d and d.tasks >= least]
        return max(enough, key=lambda item: item[1].mean, default=None)

    def mean(self, method: str) -> float:
        """The mean log10 regret of a method; tasks weigh equally."""
        by_task: dict[str, list[float]] = {}
        for (task, _), value in self.values[method].items():
            by_task.setdefault(task, []).append(value)
        return float(np.mean([np.mean(values) for values in by_task.values()]))


def cells(rows: Iterable[Row], budgets: Sequence[int] = READ_AT) -> dict[Place, Arena]:
    """The cells of the rows of one experiment, in the order of the table."""
    found: dict[Place, Arena] = {}
    for row in rows:
        most = next((m for _, m in CLASSES if row["dimensions"] <= m), None)
        if most is None:
            raise ValueError(f"{row['task']} has more than {CLASSES[-1][1]} dimensions")
        noise = float(row["task"].partition("@")[2].removesuffix("%") or 0)
        points = row["checkpoints"]
        regrets = dict(zip(points["evaluations"], points["inference"], strict=True))
        for budget in budgets:
            regret = regrets.get(budget * row["dimensions"])
            if regret is not None:
                cell = found.setdefault(Place(most, noise, budget), Arena())
                of = cell.values.setdefault(row["method"], {})
                of[row["task"], row["seed"]] = float(np.log10(max(regret, FLOOR)))
    return dict(sorted(found.items()))


def markdown(rows: Sequence[Row], ours: str, budgets: Sequence[int] = READ_AT) -> str:
    """A table for each experiment in the rows, and what it means."""
    tables = []
    for experiment in dict.fromkeys(row["experiment"] for row in rows):
        known = [e.name for e in ANSWERS]
        if experiment not in known:
            raise ValueError(f"the rows must be of {', '.join(known)}, not of {experiment}")
        found = cells([row for row in rows if row["experiment"] == experiment], budgets)
        tables += [f"## `{experiment}`", "", *_table(found, ours), "", *_together(found, ours)]
    if not tables:
        raise ValueError("there are no rows: optpair bench run answers")
    return "\n".join([*tables, _notes(ours)]) + "\n"


def _table(found: dict[Place, Arena], ours: str) -> list[str]:
    there = {name for cell in found.values() for name in cell.values}
    if ours not in there:
        raise ValueError(f"no row is of {ours!r}; the methods are {', '.join(sorted(there))}")
    others = sorted(there - {ours}, key=statistics.place)
    head = ["D", "noise", "budget", "tasks (runs)", statistics.label(ours), "best peer", "to it"]
    head += [f"to {statistics.label(name)}" for name in others]
    lines = [f"| {' | '.join(head)} |", "|---|---:|---:|---:|---:|---|" + "---:|" * (len(head) - 6)]
    for place, cell in found.items():
        if ours in cell.values:
            lines.append(f"| {' | '.join(_line(place, cell, ours, others))} |")
    return lines


def _together(found: dict[Place, Arena], ours: str) -> list[str]:
    """One line for each budget: the mean difference to the best peers, and in how many cells."""
    lines = []
    for budget in sorted({place.budget for place in found}):
        here = [cell for place, cell in found.items() if place.budget == budget]
        best = [cell.best_peer(ours) for cell in here if ours in cell.values]
        means = [peer[1].mean for peer in best if peer]
        if means:
            mean = statistics.show(*statistics.mean_and_error(means), "+")
            level = sum(mean <= 0 for mean in means)
            lines.append(
                f"- {budget}·D: {mean} to the best peer of each cell, averaged over cells; at or "
                f"below it in {level} of {len(means)}."
            )
    return [*lines, ""] if lines else []


def _line(place: Place, cell: Arena, ours: str, others: Sequence[str]) -> list[str]:
    own = cell.values[ours]
    best = cell.best_peer(ours)
    return [
        place.name,
        f"{place.noise:g} %",
        f"{place.budget}·D",
        f"{len({task for task, _ in own})} ({len(own)})",
        statistics.number(cell.mean(ours), 2),
        statistics.label(best[0]) if best else "",
        _show(best[1], len(own)) if best else "",
        *(_show(cell.versus(ours, name), len(own)) for name in others),
    ]


def _show(found: Difference | None, runs: int) -> str:
    """Mean and error, and on how many runs where they are not all."""
    if found is None:
        return ""
    few = f" ({found.runs} runs)" if found.runs < runs else ""
    return statistics.show(found.mean, found.error, "+") + few


def _notes(ours: str) -> str:
    return (
        f"Mean log10 inference regret of {statistics.label(ours)} in units of each function's "
        "spread, noiseless, and its difference to others: negative where "
        f"{statistics.label(ours)} is better, ± the standard error over tasks, paired on equal "
        "tasks and seeds. The best peer is the one that fares best in that very cell, of those "
        "with half of the tasks, or more. Budgets count all evaluations, those of a method's own "
        f"start too. Regrets are floored at {FLOOR:g} of the spread before the logarithm."
    )
