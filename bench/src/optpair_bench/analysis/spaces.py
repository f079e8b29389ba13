"""Tables of experiments on other spaces: `beliefs`, `shelf`, `conditional`, `mixtures`, `plates`,
and of those with something similar: `transfer`, `contexts`.

Numbers are log10 of what the recommendation lacks, noiseless, floored at 1e-6 of the spread,
averaged over the seeds of each task, and then over tasks, which weigh equally. On shelves they are
the value of the best row tried, in per cent of the way from the worst row to the best. Differences
are another method's minus the first's, on equal tasks and seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from optpair_bench.analysis import statistics
from optpair_bench.analysis.arena import FLOOR, Arena
from optpair_bench.running.experiments import BELIEF_READ, TRANSFER_READ, Experiment
from optpair_bench.running.rows import Row

COUNTED = {"shelf": (20, 50), "shelf-tuning": (20, 50), "conditional": (20, 50)}
"""Evaluations at which some experiments are read; others after so many a dimension:"""
BUDGETS = (5, 10, 20)
SIMILAR = dict.fromkeys(("transfer", "transfer-tuning", "contexts"), (2, 3, 5, 10))
WHOLE = 20
"""Evaluations a dimension whose regret without a guess is what guesses are to reach earlier."""
HALF = 10
"""The same of searches that know nothing similar;"""
SOONER = (5, 7)
"""and, of those, what else is read."""
TOP = 0.1
"""Chances of being the best row are told apart by so much."""


def arenas(rows: Sequence[Row], key: str, counts: Sequence[int], *, each: bool) -> dict[int, Arena]:
    """What rows have under a key after each count, in all or for each dimension."""
    found = {count: Arena() for count in counts}
    for row in rows:
        points = row["checkpoints"]
        at = dict(zip(points["evaluations"], points.get(key, []), strict=False))
        for count, arena in found.items():
            value = at.get(count * (row["dimensions"] if each else 1))
            if value is not None:
                arena.values.setdefault(row["method"], {})[row["task"], row["seed"]] = value
    return found


def _logs(arena: Arena) -> Arena:
    return Arena(
        {
            method: {key: float(np.log10(max(value, FLOOR))) for key, value in of.items()}
            for method, of in arena.values.items()
        }
    )


def _best(arena: Arena) -> Arena:
    """Of a shelf: the value of the best row."""
    return Arena(
        {
            method: {key: 100 - value for key, value in of.items()}
            for method, of in arena.values.items()
        }
    )


def markdown(rows: Sequence[Row], experiment: Experiment) -> str:
    """The tables of one experiment, and what they mean."""
    shelf, each = experiment.name.startswith("shelf"), experiment.name not in COUNTED
    similar = experiment.name in SIMILAR
    counts = (COUNTED | SIMILAR).get(experiment.name, BUDGETS)
    first, *others = statistics.methods_of(rows, experiment)
    lost = arenas(rows, "simple" if shelf else "inference", counts, each=each)
    legal = arenas(rows, "legal", counts, each=each)
    head = ["budget", "method", "tasks (runs)", "best row, %" if shelf else "log10 regret"]
    head += [f"to {statistics.label(first)}", "legal"]
    lines = [f"| {' | '.join(head)} |", "|---:|---|---:|---:|---:|---:|"]
    for count in counts:
        arena = _best(lost[count]) if shelf else _logs(lost[count])
        for method in (first, *others):
            if method in arena.values:
                budget = f"{count}·D" if each else f"{count}"
                share = f"{legal[count].mean(method):.2%}".replace("100.00%", "100%")
                cells = [budget, statistics.label(method), *_line(arena, method, first)]
                lines.append(f"| {' | '.join([*cells, share])} |")
    text = "\n".join(lines) + "\n"
    if experiment.name.startswith("beliefs"):
        text += f"\n{_reached(rows, first, others)}\n"
    if similar:
        text += f"\n{_earlier(rows, first, others)}\n"
    if shelf:
        text += f"\n{_calibrated(rows, first)}\n"
    return text + f"\n{_notes(first, shelf=shelf)}\n"


def _line(arena: Arena, method: str, first: str) -> list[str]:
    """On how many tasks and runs, the mean, and the difference to the first."""
    own = arena.values[method]
    versus = None if method == first else arena.versus(first, method)
    if versus is not None:
        versus = versus._replace(error=error(arena.differences(first, method), versus.error))
    return [
        f"{len({task for task, _ in own})} ({len(own)})",
        statistics.number(arena.mean(method), 2),
        "" if versus is None else statistics.show(-versus.mean, versus.error, "+"),
    ]


def error(by_task: Mapping[str, Sequence[float]], over_tasks: float) -> float:
    """The standard error of a mean over tasks: over them or, where that is larger, over the runs.

    A few tasks may agree by chance where runs on each of them do not. Runs of all tasks vary alike.
    """
    freedom = sum(len(own) - 1 for own in by_task.values())
    if not freedom:
        return over_tasks
    squares = sum(len(own) * float(np.var(own)) for own in by_task.values())
    each = np.sqrt(squares / freedom * sum(1 / len(own) for own in by_task.values()))
    return float(np.nanmax([over_tasks, each / len(by_task)]))


def needed(
    rows: Sequence[Row],
    method: str,
    first: str,
    counts: Sequence[int] = BELIEF_READ,
    whole: int = WHOLE,
) -> float | None:
    """Evaluations a dimension after which a method has reached what the first has after `whole`.

    That is on the line through the means of log10 regret over the seeds and tasks that both have;
    infinite where it never does, and None where rows are missing.
    """
    have = [{(r["task"], r["seed"]) for r in rows if r["method"] == m} for m in (method, first)]
    both = [row for row in rows if (row["task"], row["seed"]) in have[0] & have[1]]
    found = arenas(both, "inference", counts, each=True)
    curves = {count: _logs(arena) for count, arena in found.items()}
    if not all({method, first} <= set(arena.values) for arena in curves.values()):
        return None
    target = curves[whole].mean(first)
    before, above = 0.0, np.inf
    for count in counts:
        here = curves[count].mean(method)
        if here <= target:
            part = 1.0 if not np.isfinite(above) else (above - target) / (above - here)
            return before + part * (count - before)
        before, above = float(count), here
    return float("inf")


def _reached(rows: Sequence[Row], first: str, others: Sequence[str]) -> str:
    """How many trials guesses save or cost, task by task."""
    names = list(dict.fromkeys(row["task"] for row in rows))
    lines = [
        f"| reaches in … ·D what {statistics.label(first)} has after 20·D | {' | '.join(names)} |"
    ]
    lines.append("|---|" + "---:|" * len(names))
    for method in others:
        each = [[row for row in rows if row["task"] == task] for task in names]
        found = [needed(own, method, first) for own in each]
        if any(value is not None for value in found):
            cells = ["" if v is None else _multiple(v) for v in found]
            lines.append(f"| {statistics.label(method)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _earlier(rows: Sequence[Row], first: str, others: Sequence[str]) -> str:
    """When each method has reached, on average, what a method has in the end."""
    said = []
    for method, other in [(m, first) for m in others] + [(first, m) for m in others]:
        found = needed(rows, method, other, TRANSFER_READ, HALF)
        if found is not None:
            when = f"in {found:.1f}·D" if np.isfinite(found) else f"in more than {HALF}·D"
            said.append(
                f"*{statistics.label(method)}* reaches {when} what *{statistics.label(other)}* "
                f"reaches in {HALF}·D."
            )
    for method in others:
        sooner = [needed(rows, method, first, TRANSFER_READ, whole) for whole in SOONER]
        if None not in sooner:
            said.append(
                f"*{statistics.label(method)}* reaches what *{statistics.label(first)}* reaches in "
                f"{_listed(SOONER)} in {_listed(sooner)}."
            )
    return " ".join(said)


def _listed(counts: Sequence[float | None]) -> str:
    found = [math.inf if own is None else own for own in counts]
    return " and ".join(f"{own:.3g}·D" if own <= HALF else f"over {HALF}·D" for own in found)


def _multiple(value: float) -> str:
    return f"{value:.1f}" if np.isfinite(value) else f"> {BELIEF_READ[-1]}"


def _calibrated(rows: Sequence[Row], first: str) -> str:
    """How often the row that is held to be the best most likely is it, by its chance."""
    pairs = [
        (chance, top)
        for row in rows
        if row["method"] == first
        for chance, top in zip(
            row["checkpoints"].get("chance", []), row["checkpoints"].get("top", []), strict=True
        )
    ]
    lines = ["| chance given to the likeliest row | answers | mean chance | was the best |"]
    lines.append("|---|---:|---:|---:|")
    for low, high in ((0.0, TOP), (TOP, 0.3), (0.3, 0.6), (0.6, 1.0)):
        inside = [p for p in pairs if low <= p[0] < high or p[0] == high == 1.0]
        if inside:
            mean, share = np.mean(inside, axis=0)
            lines.append(f"| {low:.0%} to {high:.0%} | {len(inside)} | {mean:.0%} | {share:.0%} |")
    return "\n".join(lines)


def _notes(first: str, *, shelf: bool) -> str:
    what = (
        "The value of the best row tried, in per cent of the way from the worst row to the best"
        if shelf
        else "log10 of what the recommendation lacks, noiseless, in units of the spread (pipelines "
        f"in their own), floored at {FLOOR:g}"
    )
    worse = "negative" if shelf else "positive"
    return (
        f"{what}. Differences that are {worse} are worse than {statistics.label(first)}, ± the "
        "standard error over the tasks that both have, or over the runs on each where that is "
        "larger; averages of methods that ran on other tasks "
        "cannot be compared. Legal: the share of all points, recommendations among them, "
        "that keep the limits to 1e-12 and have just the parameters that are active."
    )
