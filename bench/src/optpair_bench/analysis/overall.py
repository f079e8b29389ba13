"""Summary over all tasks: how a method fares beside ours, on average.

On every task methods are compared on equal seeds, at so many evaluations per dimension; then tasks
weigh equally. A difference has two standard errors: over the seeds, which says how well the average
over these very tasks is known, and over the tasks, which says what other tasks may hold.

Regrets are floored at a thousandth of the noise's standard deviation: a table's regret can be zero,
whose logarithm would outweigh everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optpair_bench.analysis import statistics
from optpair_bench.running.experiments import Kind, budget_of, place
from optpair_bench.running.rows import Row

BUDGETS = (25, 50)  # evaluations per dimension
LEVEL = 0.05


@dataclass(frozen=True)
class Versus:
    """A method beside ours on one task: paired differences, negative where it is better."""

    mean: float
    error: float
    p: float
    """Corrected for the number of methods on the task."""
    direction: float
    pairs: int


@dataclass(frozen=True)
class Block:
    """One task at one budget: what every method found there."""

    experiment: str
    task: str
    dimensions: int
    evaluations: int
    """At the checkpoint that is nearest to what was asked for."""
    wanted: int
    last: int
    """How long the runs are."""
    values: dict[str, dict[int, float]]
    """By method and seed; always so that smaller is better."""
    seconds: dict[str, float]

    def among(self, names: Iterable[str]) -> Block:
        """Only these methods."""
        kept = {name: self.values[name] for name in names if name in self.values}
        return replace(self, values=kept)

    def versus(self, reference: str) -> dict[str, Versus]:
        """Every other method that shares seeds with the reference."""
        own = self.values[reference]
        pairs = {
            name: statistics.paired(values, own)
            for name, values in self.values.items()
            if name != reference
        }
        pairs = {name: differences for name, differences in pairs.items() if differences}
        corrected = statistics.holm([statistics.signed_rank(d) for d in pairs.values()])
        return {
            name: Versus(*statistics.mean_and_error(d), p, statistics.direction(d), len(d))
            for (name, d), p in zip(pairs.items(), corrected, strict=True)
        }

    def best(self, reference: str) -> tuple[str, Versus] | None:
        """The best of the others, of those that share half of the reference's seeds, or more."""
        least = statistics.ENOUGH * len(self.values[reference])
        others = {n: v for n, v in self.versus(reference).items() if v.pairs >= least}
        return min(others.items(), key=lambda item: item[1].mean) if others else None


@dataclass(frozen=True)
class Average:
    """A mean over tasks that weigh equally, and its two standard errors."""

    mean: float
    over_seeds: float
    over_tasks: float

    @classmethod
    def of(cls, means: Sequence[float], errors: Sequence[float]) -> Average:
        """From each task's mean and standard error."""
        n = len(means)
        mean, spread = statistics.mean_and_error(means)
        return cls(mean, float(np.sqrt(np.sum(np.square(errors)))) / n, spread)


@dataclass(frozen=True)
class Standing:
    """A method over all tasks that it shares with ours."""

    method: str
    tasks: int
    runs: int
    rank: Average | None
    """On the tasks on which all of the methods ran; 1 is best."""
    difference: Average | None
    best: int
    """Tasks on which no method with enough seeds is better on average."""
    better: int
    """Tasks on which it is significantly better than ours."""
    worse: int
    tested: int
    """Tasks on which it has seeds enough for that to be seen."""
    seconds: float
    """The median ask of a run, on average over tasks."""


def blocks(
    rows: Iterable[Row], reference: str, budget: int, kind: Kind = "inference"
) -> list[Block]:
    """The tasks on which the reference ran, each with all its methods."""
    by_task: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_task.setdefault((row["experiment"], row["task"]), []).append(row)
    found = []
    for experiment, task in sorted(by_task, key=lambda of: place(*of)):
        every = by_task[experiment, task]
        own = statistics.of_task(every, task, budget_of(experiment, task))
        names = list(dict.fromkeys(row["method"] for row in own))
        if reference not in names:
            continue
        wanted, points = budget * own[0]["dimensions"], own[0]["checkpoints"]["evaluations"]
        floor = statistics.noise_floor(own[0])
        sign = -1.0 if kind == "observed" else 1.0
        values = {
            name: {
                seed: sign * value
                for seed, value in statistics.final(own, name, kind, wanted, floor).items()
            }
            for name in names
        }
        seconds = {
            name: float(np.median([r["ask_seconds"]["median"] for r in own if r["method"] == name]))
            for name in names
        }
        at = points[statistics.nearest(points, wanted)]
        found.append(
            Block(experiment, task, own[0]["dimensions"], at, wanted, points[-1], values, seconds)
        )
    return found


def standings(found: Sequence[Block], reference: str) -> list[Standing]:
    """Every method, the best average difference first."""
    names = list(dict.fromkeys(name for block in found for name in block.values))
    versus = [block.versus(reference) for block in found]
    ranks = _ranks(found, names)
    best = [
        top if top is not None and top[1].mean < 0 else (reference, None)
        for top in (block.best(reference) for block in found)
    ]
    lines = []
    for name in names:
        own = [others[name] for others in versus if name in others]
        if not own and name != reference:
            continue
        there = [b for b in found if name in b.values]
        lines.append(
            Standing(
                name,
                len(found) if name == reference else len(own),
                sum(len(block.values[name]) for block in there),
                ranks.get(name),
                Average.of([v.mean for v in own], [v.error for v in own]) if own else None,
                sum(top == name for top, _ in best),
                sum(v.p < LEVEL and v.direction < 0 for v in own),
                sum(v.p < LEVEL and v.direction > 0 for v in own),
                sum(not np.isnan(v.p) for v in own),
                float(np.mean([block.seconds[name] for block in there])),
            )
        )
    return sorted(lines, key=lambda line: line.difference.mean if line.difference else 0.0)


def _shared(found: Sequence[Block], names: Iterable[str]) -> list[Block]:
    """The tasks that have a seed on which all of the methods ran."""
    every = set(names)
    return [
        block
        for block in found
        if every <= set(block.values) and set.intersection(*(set(block.values[n]) for n in every))
    ]


def _ranks(found: Sequence[Block], names: Sequence[str]) -> dict[str, Average]:
    """Average ranks, over the tasks and seeds that all of the methods have."""
    by_task = [
        statistics.ranks([block.values[name] for name in names]) for block in _shared(found, names)
    ]
    if not by_task or len(names) < 2:
        return {}
    moments = [
        [statistics.mean_and_error(ranks[:, i]) for ranks in by_task] for i in range(len(names))
    ]
    return {
        name: Average.of([m for m, _ in own], [e for _, e in own])
        for name, own in zip(names, moments, strict=True)
    }


def markdown(
    rows: Sequence[Row],
    reference: str,
    kind: Kind = "inference",
    budgets: Sequence[int] = BUDGETS,
    least: float = 0.5,
) -> str:
    """The standings at every budget, and the tasks one by one.

    Methods that ran on no more than the share `least` of the tasks are only named.
    """
    every = {budget: blocks(rows, reference, budget, kind) for budget in budgets}
    last = budgets[-1]
    if not every[last]:
        have = ", ".join(sorted({row["method"] for row in rows})) or "no rows"
        raise ValueError(f"no task has rows of {reference!r} to compare with; there are {have}")
    there = Counter(name for block in every[last] for name in block.values)
    names = [name for name, count in there.items() if count > least * len(every[last])]
    found = {b: _compared(every[b], names) for b in budgets}
    places = {b: {s.method: s for s in standings(found[b], reference)} for b in budgets}
    shown = list(places[last])
    lines = [_head(reference, budgets, last), "|---|" + "---:|" * (5 + len(budgets))]
    for name in shown:
        at_last = places[last][name]
        cells = [statistics.label(name), f"{at_last.tasks} ({at_last.runs})"]
        cells.append(", ".join(filter(None, (_average(places[b][name].rank) for b in budgets))))
        cells += [_difference(places[b][name].difference, kind) for b in budgets]
        ours = name == reference
        tested = f"{at_last.better} / {at_last.worse} of {at_last.tested}"
        cells += [str(at_last.best), "" if ours else tested]
        lines.append(f"| {' | '.join([*cells, f'{at_last.seconds:.2g}'])} |")
    few = [statistics.label(name) for name in there if name not in names]
    notes = [_notes(found, reference, kind)]
    notes += [f"On few of these tasks, and left out: {', '.join(few)}."] if few else []
    return "\n".join([*lines, "", *notes, "", *_by_task(found[last], reference, kind)]) + "\n"


def _compared(found: Sequence[Block], names: Iterable[str]) -> list[Block]:
    """With these methods alone, and without tasks that one of them has to itself, if others are."""
    kept = [block.among(names) for block in found]
    return [block for block in kept if len(block.values) > 1] or kept


def _head(reference: str, budgets: Sequence[int], last: int) -> str:
    ours = statistics.label(reference)
    head = ["method", "tasks (runs)", f"average rank at {', '.join(f'{b}·D' for b in budgets)}"]
    head += [f"difference to {ours} at {b}·D" for b in budgets]
    head += [f"best at {last}·D on", f"better / worse than {ours} on", "s/ask"]
    return f"| {' | '.join(head)} |"


def _notes(every: Mapping[int, Sequence[Block]], reference: str, kind: Kind) -> str:
    found = every[max(every)]
    tasks = "one task" if len(found) == 1 else f"{len(found)} tasks, which weigh equally"
    names = {name for block in found for name in block.values}
    shared = _shared(found, names)
    ranked = f"the {len(shared)} tasks" if len(shared) != 1 else "the one task"
    counts = [len(set.intersection(*(set(b.values[n]) for n in names))) for b in shared] or [0]
    seeds = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return (
        f"{statistics.KIND_NAMES[kind].capitalize()} over {tasks}. Ranks (1 is best) are over "
        f"{ranked} on which all of these methods ran, on the seeds that all have ({seeds} a task). "
        f"Differences to {statistics.label(reference)} are paired on equal seeds, negative "
        "where the method is better, ± their standard error over seeds; in brackets, over tasks. "
        "Best are only those that have half of its seeds, or more. Better and worse are by "
        "Wilcoxon's signed-rank test at 5 %, Holm-corrected over a task's methods, of the tasks "
        "with the six seeds that it takes. Regrets are floored at a thousandth of the noise's "
        f"standard deviation.{_read_at(every)}"
    )


def _read_at(every: Mapping[int, Sequence[Block]]) -> str:
    """Where the numbers of a budget are not those of that budget."""
    text = ""
    for budget, found in every.items():
        ends = [b for b in found if b.last < b.wanted]
        others = {b.evaluations // b.dimensions for b in found if b not in ends} - {budget}
        if others:
            near = " or ".join(f"{count}·D" for count in sorted(others))
            text += f" {budget}·D is read at the nearest checkpoint, {near}."
        if ends:
            names = ", ".join(statistics.task_label(block.task) for block in ends)
            text += f" Runs that end before {budget}·D count at their end: {names}."
    return text


def _by_task(found: Sequence[Block], reference: str, kind: Kind) -> list[str]:
    """A line per task: ours, and the best of the others."""
    name = statistics.KIND_NAMES[kind]
    lines = [
        f"| task | evaluations | seeds | {statistics.label(reference)}, {name} | "
        "best of the others (seeds) | its difference | p |",
        "|---|---:|---:|---:|---|---:|---:|",
    ]
    for block in found:
        top = block.best(reference)
        own = statistics.mean_and_error(block.values[reference].values())
        sign = -1.0 if kind == "observed" else 1.0
        digits = _digits(kind)
        cells = [f"{statistics.task_label(block.task)} (`{block.experiment}`)"]
        cells += [str(block.evaluations), str(len(block.values[reference]))]
        cells.append(statistics.show(sign * own[0], own[1], digits=digits))
        if top is not None:
            name_there, it = top
            cells.append(f"{statistics.label(name_there)} ({it.pairs})")
            cells.append(statistics.show(it.mean, it.error, "+", digits))
            cells.append("" if np.isnan(it.p) else f"{it.p:.2g}")
        else:
            cells += ["", "", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _average(found: Average | None) -> str:
    return "" if found is None else statistics.number(found.mean, 2)


def _difference(found: Average | None, kind: Kind) -> str:
    if found is None:
        return ""
    digits = _digits(kind)
    tasks = "" if np.isnan(found.over_tasks) else f" (± {found.over_tasks:.{digits}f})"
    return statistics.show(found.mean, found.over_seeds, "+", digits) + tasks


def _digits(kind: Kind) -> int:
    return 4 if kind == "observed" else 2
