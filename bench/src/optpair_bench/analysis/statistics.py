"""Statistics of rows: means, medians, evaluations to a target, paired comparisons and ranks.

Regrets are compared as logarithms to base 10, floored at 1e-8 or, on tables, at a thousandth of the
noise's standard deviation: there a regret can be zero. A mean has its standard error beside it, and
its median: a few lucky runs dominate a mean of logarithms.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, stdtrit
from scipy.stats import rankdata, wilcoxon

from optpair.runtime.shapes import Float
from optpair_bench.methods import NAMES
from optpair_bench.running.experiments import Experiment, Kind
from optpair_bench.running.rows import Row

FLOOR = 1e-8  # regrets below are as good as zero, and log 0 is not a number
FLOOR_SHARE = 1e-3  # of the noise's standard deviation
SURE = float(ndtr(2.0))  # two standard errors of a normal make sure
ENOUGH = 0.5  # of the runs of another method: with fewer a method is not ranked beside it
WHOLE = {
    "optpair": "optpair (default)",
    "optpair-right": "optpair, right guesses",
    "optpair-near": "optpair, near guesses",
    "optpair-after": "after related studies",
    "optpair-after-unrelated": "after unrelated studies",
    "optpair-apart": "a search for each site",
    "optpair-wrong": "optpair, wrong guesses",
    "optpair-optuna": "optpair in Optuna",
    "optpair-8": "optpair, plates of 8",
    "logei-right": "πBO, right guesses",
    "logei-wrong": "πBO, wrong guesses",
    "jes-peak": "JES-peak",
    "jes-exact": "JES-exact",
    "mes-paths": "MES-paths",
    "mean": "mean",
    "ei": "EI",
    "logei": "log EI",
    "nei": "NEI",
    "lognei": "log NEI",
    "optuna-gp": "Optuna GP",
    "optuna-tpe": "Optuna TPE",
    "optuna-tpe-group": "Optuna TPE (multivariate)",
    "optuna-gp-8": "Optuna GP, 8 at once",
    "optuna-tpe-8": "Optuna TPE, 8 at once",
    "botorch-lognei": "BoTorch log NEI",
    "botorch-jes": "BoTorch JES",
    "botorch-lognehvi": "BoTorch log NEHVI",
    "optuna-nsga2": "Optuna NSGA-II",
    "smac-gp": "SMAC (GP)",
    "smac-rf": "SMAC (forest)",
    "random": "random",
    "lattice": "lattice",
    "sobol": "Sobol",
}
RETIRED = {"sobol": "lattice"}
"""Methods of rows on file that the library has no more, and what has taken their place."""
KIND_NAMES: Mapping[Kind, str] = {
    "inference": "log10 inference regret",
    "simple": "log10 simple regret",
    "observed": "best observed value",
}


def noise_floor(row: Row) -> float:
    """A regret that noise hides from anyone."""
    return max(FLOOR, FLOOR_SHARE * float(np.sqrt(row["noise_var"])))


def _floor(row: Row) -> float:
    return noise_floor(row) if row["task"].startswith("hpo-") else FLOOR


def transform(numbers: Iterable[float], kind: Kind, floor: float) -> Float[np.ndarray, " k"]:
    """What is averaged: log10 of regrets, floored, or observed values as they are."""
    values = np.array(list(numbers), dtype=np.float64)
    return values if kind == "observed" else np.log10(np.maximum(values, floor))


@dataclass(frozen=True)
class Curve:
    """Values of one method on one task: a row per seed, a column per checkpoint."""

    evaluations: Float[np.ndarray, " k"]
    seeds: tuple[int, ...]
    values: Float[np.ndarray, "n k"]
    initial: int

    @property
    def mean(self) -> Float[np.ndarray, " k"]:
        """Over the seeds."""
        return np.asarray(self.values.mean(0))

    @property
    def error(self) -> Float[np.ndarray, " k"]:
        """The standard error of the mean; NaN for one seed."""
        n = len(self.values)
        if n < 2:
            return np.full(self.values.shape[1], np.nan)
        return np.asarray(self.values.std(0, ddof=1) / np.sqrt(n))

    @property
    def median(self) -> Float[np.ndarray, " k"]:
        """Over the seeds."""
        return np.asarray(np.median(self.values, axis=0))


def of_task(rows: Iterable[Row], task: str, evaluations: int | None = None) -> list[Row]:
    """The rows of a task with this budget, or with the longest where none has it."""
    own = [row for row in rows if row["task"] == task]
    there = {row["evaluations"] for row in own}
    budget = evaluations if evaluations in there else max(there, default=0)
    return [row for row in own if row["evaluations"] == budget]


def curve(rows: Iterable[Row], method: str, kind: Kind) -> Curve | None:
    """A method's curve from the rows of one task; at the checkpoints that all rows share."""
    own = sorted((row for row in rows if row["method"] == method), key=lambda row: row["seed"])
    if not own:
        return None
    shared = set.intersection(*(set(row["checkpoints"]["evaluations"]) for row in own))
    values = [
        transform(
            (
                value
                for at, value in zip(
                    row["checkpoints"]["evaluations"], row["checkpoints"][kind], strict=True
                )
                if at in shared
            ),
            kind,
            _floor(row),
        )
        for row in own
    ]
    seeds = tuple(row["seed"] for row in own)
    return Curve(np.array(sorted(shared), float), seeds, np.array(values), own[0]["initial"])


def final(
    rows: Iterable[Row],
    method: str,
    kind: Kind,
    at: float | None = None,
    floor: float | None = None,
) -> dict[int, float]:
    """What a method had found by seed: in the end, or at the checkpoint nearest to `at`."""
    own = (row for row in rows if row["method"] == method)
    return {row["seed"]: value(row, kind, at, floor) for row in own}


def value(row: Row, kind: Kind, at: float | None = None, floor: float | None = None) -> float:
    """What one run had found."""
    points = row["checkpoints"]
    index = -1 if at is None else nearest(points["evaluations"], at)
    return float(transform([points[kind][index]], kind, floor or _floor(row))[0])


def nearest(points: Sequence[int], at: float) -> int:
    """The index of the checkpoint nearest to a number of evaluations."""
    return int(np.argmin(np.abs(np.array(points) - at)))


def paired(values: Mapping[int, float], others: Mapping[int, float]) -> list[float]:
    """Differences of two methods on the seeds that both have."""
    return [value - others[seed] for seed, value in values.items() if seed in others]


def methods_of(rows: Iterable[Row], experiment: Experiment) -> list[str]:
    """The methods on file: the experiment's own in its order, then what users get, then others."""
    there = {row["method"] for row in rows}
    own = [method for method in experiment.methods if method in there]
    return own + sorted(there.difference(own), key=place)


def place(method: str) -> tuple[int, str]:
    """Where a method stands among all, wherever it is in a file; unknown ones come last."""
    name = method.partition(":")[0]
    name = RETIRED.get(name, name)
    return NAMES.index(name) if name in NAMES else len(NAMES), method


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """The mean and its standard error; NaN where there are too few values."""
    array = np.array(list(values))
    mean = float(array.mean()) if len(array) else float("nan")
    error = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else float("nan")
    return mean, error


def sure(seeds: int) -> float:
    """The standard errors that make sure: two or, where seeds are few, as many by Student's t.

    >>> [round(sure(n), 1) for n in (10_000, 10, 3)]
    [2.0, 2.3, 4.5]
    """
    return float(stdtrit(seeds - 1, SURE)) if seeds > 1 else float("nan")


def to_target(rows: Iterable[Row], method: str, kind: Kind, target: float) -> list[float]:
    """Evaluations until a regret is at most the target for the first time, by run.

    Infinite where it never is. As fine as the checkpoints are.
    """
    counts = []
    for row in rows:
        if row["method"] == method:
            points = row["checkpoints"]
            reached = (
                at
                for at, regret in zip(points["evaluations"], points[kind], strict=True)
                if regret <= target
            )
            counts.append(float(next(reached, np.inf)))
    return counts


def signed_rank(differences: Sequence[float]) -> float:
    """p of Wilcoxon's signed-rank test that the differences are about zero; NaN for too few.

    Differences of nothing say nothing, and are left out.
    """
    if len(differences) < 6:  # the smallest p of five is 0.06
        return float("nan")
    array = np.round(differences, 9)  # what should be equal is a tie
    return _signed_rank(tuple(array[array != 0].tolist()))


@functools.cache  # a summary asks for the same comparison in several places, and ties are slow
def _signed_rank(differences: tuple[float, ...]) -> float:
    return float(wilcoxon(differences).pvalue) if differences else 1.0


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction of p values for their number; NaN stays and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    real = sorted((p, i) for i, p in enumerate(values) if not np.isnan(p))
    corrected, least = [float("nan")] * len(values), 0.0
    for rank, (p, i) in enumerate(real):
        least = max(least, min(1.0, (len(real) - rank) * p))
        corrected[i] = least
    return corrected


def direction(differences: Sequence[float]) -> float:
    """Which way Wilcoxon's test sees them: the sum of their signed ranks."""
    array = np.array([d for d in differences if d != 0])
    return float(np.sum(np.sign(array) * rankdata(np.abs(array)))) if len(array) else 0.0


def ranks(
    found: Sequence[Mapping[int, float]], *, larger: bool = False
) -> Float[np.ndarray, "n m"]:
    """The ranks of methods, 1 the best, by seed; only seeds that all of them have."""
    shared = sorted(set.intersection(*(set(values) for values in found)))
    if not shared:
        return np.zeros((0, len(found)))
    sign = -1.0 if larger else 1.0
    table = [[sign * values[seed] for values in found] for seed in shared]
    return np.asarray(rankdata(table, axis=1))


def average_ranks(rows: Sequence[Row], names: Sequence[str], kind: Kind) -> dict[str, float]:
    """The mean rank of each method, on equal seeds; tasks weigh equally.

    Empty where no task has runs of all methods on one seed.
    """
    by_task = []
    for task in dict.fromkeys(row["task"] for row in rows):
        own = of_task(rows, task)
        found = ranks([final(own, n, kind) for n in names], larger=kind == "observed")
        if len(found):
            by_task.append(found.mean(0))
    if not by_task:
        return {}
    return dict(zip(names, np.mean(by_task, axis=0).tolist(), strict=True))


def everywhere(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    """The methods that have half as many runs as the first, or more, on every task of the rows."""
    there: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        there[row["task"]][row["method"]] += 1
    every = list(names)
    return [
        name
        for name in every
        if all(runs[name] >= max(ENOUGH * runs[every[0]], 1) for runs in there.values())
    ]


@dataclass(frozen=True)
class Line:
    """A line of the summary: one method on one task."""

    task: str
    method: str
    runs: int
    mean: float
    error: float
    median: float
    reached: float
    """The share of the runs that reached the target."""
    evaluations: float
    """The median number of evaluations to the target; infinite where half of the runs fail."""
    difference: tuple[float, float] | None
    """Paired with the first method on equal seeds: mean and standard error."""
    pairs: int
    """How many seeds both have."""
    p: float
    seconds: float
    """The median ask, over the runs' medians."""


def summary(rows: Sequence[Row], experiment: Experiment, kind: Kind) -> list[Line]:
    """Every method on every task, paired with the experiment's first.

    p values are corrected for the number of methods on the task.
    """
    first = (methods_of(rows, experiment) or [""])[0]
    lines: list[Line] = []
    for cell in experiment.cells:
        own = of_task(rows, cell.task, cell.evaluations)
        names = methods_of(own, experiment)
        found = [_line(own, cell.task, name, first, kind, experiment.target) for name in names]
        corrected = holm([line.p for line in found])
        lines += [replace(line, p=p) for line, p in zip(found, corrected, strict=True)]
    return lines


def _line(rows: Sequence[Row], task: str, name: str, first: str, kind: Kind, target: float) -> Line:
    values = final(rows, name, kind)
    differences = [] if name == first else paired(values, final(rows, first, kind))
    reached = to_target(rows, name, kind, target)
    mean, error = mean_and_error(values.values())
    return Line(
        task,
        name,
        len(values),
        mean,
        error,
        float(np.median(list(values.values()))),
        float(np.mean(np.isfinite(reached))),
        float(np.median(reached)),
        mean_and_error(differences) if differences else None,
        len(differences),
        signed_rank(differences),
        float(np.median([row["ask_seconds"]["median"] for row in rows if row["method"] == name])),
    )


def markdown(rows: Sequence[Row], experiment: Experiment, kind: Kind) -> str:
    """The summary as a table, with the average ranks below it."""
    lines = summary(rows, experiment, kind)
    if not lines:
        return "Not run yet.\n"
    regret = kind != "observed"
    head = ["task", "method", "runs", f"{KIND_NAMES[kind]}, mean ± s.e. (median)"]
    head += [f"evaluations to {experiment.target:g}"] if regret else []
    first = methods_of(rows, experiment)[0]
    head += [f"difference to {label(first)}", "p", "s/ask"]
    table = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for line in lines:
        cells = [task_label(line.task), label(line.method), str(line.runs)]
        cells.append(f"{show(line.mean, line.error, digits=2 if regret else 4)} ")
        cells[-1] += f"({number(line.median, 2 if regret else 4)})"
        cells += [_target(line)] if regret else []
        digits = 2 if regret else 4
        cells.append("" if line.difference is None else show(*line.difference, "+", digits))
        cells += ["" if np.isnan(line.p) else f"{line.p:.2g}", f"{line.seconds:.2g}"]
        table.append("| " + " | ".join(cells) + " |")
    sign = "negative is better" if regret else "positive is better"
    return (
        "\n".join(table)
        + f"\n\nDifferences are paired on equal seeds, {sign}; p is Wilcoxon's signed-rank test, "
        + f"Holm-corrected over the methods of a task.\n{_ranking(rows, experiment, kind)}"
    )


def _ranking(rows: Sequence[Row], experiment: Experiment, kind: Kind) -> str:
    """A sentence on average ranks; empty where fewer than two methods ran on every task."""
    own = [row for c in experiment.cells for row in of_task(rows, c.task, c.evaluations)]
    found = average_ranks(own, everywhere(own, methods_of(own, experiment)), kind)
    if len(found) < 2:
        return ""
    shown = ", ".join(f"{label(n)} {r:.2f}" for n, r in sorted(found.items(), key=lambda x: x[1]))
    return (
        "\nAverage rank (1 is best) on equal seeds, of the methods that have half as many runs as "
        f"{label(methods_of(own, experiment)[0])}, or more, on every task: {shown}.\n"
    )


def _target(line: Line) -> str:
    if line.reached == 0:
        return "never"
    count = f"{line.evaluations:.0f}" if np.isfinite(line.evaluations) else "–"
    return f"{count} ({100 * line.reached:.0f} % reach it)"


def number(value: float, digits: int, sign: str = "") -> str:
    """A number as it is shown; nothing is never less than nothing.

    >>> number(-0.001, 2), number(-0.5, 1, "+")
    ('0.00', '−0.5')
    """
    return f"{round(value, digits) + 0.0:{sign}.{digits}f}".replace("-", "−")


def show(mean: float, error: float, sign: str = "", digits: int = 2) -> str:
    """A mean and, where it has one, its standard error."""
    spread = "" if np.isnan(error) else f" ± {error:.{digits}f}"
    return number(mean, digits, sign) + spread


def label(method: str) -> str:
    """A method's name for people.

    >>> label("jes:exploit=0.05"), label("pes"), label("jes:pairs=4")
    ('JES, γ = 0.05', 'PES', 'JES, 4 pairs')
    """
    name, _, rest = method.partition(":")
    shown = WHOLE.get(name, name.upper())
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        words = {"exploit": f"γ = {value}", "pairs": f"{value} pairs"}
        shown += f", {words.get(key, part)}"
    return shown


def task_label(task: str) -> str:
    """A task's name for people.

    >>> task_label("gp4@0.1"), task_label("hartmann6@0.01"), task_label("hpo-credit_g")
    ('GP 4-D, σ² = 0.1', 'Hartmann-6', 'credit-g')
    >>> task_label("opf-rotated-ackley-5@20%")
    'Rotated ackley 5-D, noise 20 %'
    >>> task_label("gramacy@5%")
    'Gramacy, noise 5 %'
    """
    plain, _, noise = task.partition("@")
    if found := re.fullmatch(r"gp(\d+)", plain):
        return f"GP {found[1]}-D" + (f", σ² = {noise}" if noise else "")
    if plain.startswith("hpo-"):
        return plain[4:].replace("_", "-")
    if found := re.fullmatch(r"(?:opf|uq)-(.+)-(\d+)", plain):
        level = f", noise {noise.removesuffix('%')} %" if noise else ""
        return f"{found[1].replace('-', ' ').capitalize()} {found[2]}-D{level}"
    words = {"dixon-price": "Dixon–Price", "live-mlp": "live network"}
    label = words.get(plain) or re.sub(r"^(hartmann)(\d)$", r"\1-\2", plain).capitalize()
    return label + (f", noise {noise[:-1]} %" if noise.endswith("%") else "")


def beaten(rows: Iterable[Row]) -> list[Row]:
    """Rows in which a method beat the optimum, which is then wrong."""
    return [
        row
        for row in rows
        if min(row["checkpoints"]["inference"] + row["checkpoints"]["simple"]) < -1e-6
    ]
