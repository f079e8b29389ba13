"""Claims of the paper, as comparisons that rows can settle.

A claim compares two methods on equal seeds. It is settled at two standard errors, or at what stands
for them in Student's t where seeds are few, task by task:

| expected      | agrees where the difference is surely | disagrees where it is surely |
|---------------|---------------------------------------|------------------------------|
| `better`      | below 0                               | above 0                      |
| `much better` | below −margin                         | above −margin                |
| `worse`       | above 0                               | below 0                      |
| `no worse`    | below the margin                      | above the margin             |
| `equal`       | within the margin                     | beyond it, on either side    |

and is undecided otherwise. The margin is a factor of two in regret, or 0.005 of accuracy. Where the
paper counts tasks, so do we (`counted`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from optpair_bench.analysis import statistics
from optpair_bench.running.experiments import Experiment, Kind
from optpair_bench.running.rows import Row

Verdict = Literal["agrees", "disagrees", "undecided", "better", "equal", "worse"]
Expected = Literal["better", "much better", "worse", "no worse", "equal", "counted"]
MARGIN = {"inference": float(np.log10(2)), "simple": float(np.log10(2)), "observed": 0.005}
EARLY, HALF = 0.2, 0.5  # of the budget


@dataclass(frozen=True)
class Measure:
    """What is compared: a kind of regret at a share of the budget, or how it changes."""

    kind: Kind
    at: float = 1.0
    since: float | None = None
    """The change since this share of the budget."""
    beyond: Kind | None = None
    """How much above this other kind it is."""

    def __call__(self, row: Row) -> float:
        """The number of one run, always so that smaller is better."""
        value = self._value(row, self.kind, self.at)
        if self.since is not None:
            value -= self._value(row, self.kind, self.since)
        if self.beyond is not None:
            value -= self._value(row, self.beyond, self.at)
        return value

    @staticmethod
    def _value(row: Row, kind: Kind, share: float) -> float:
        value = statistics.value(row, kind, at=share * row["evaluations"])
        return -value if kind == "observed" else value


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what it says of pairs of methods.

    The second of a pair may be "" for nothing: the first's measure is compared with 0.
    """

    says: str
    pairs: tuple[tuple[str, str], ...]
    measure: Measure
    expected: Expected = "better"
    tasks: tuple[str, ...] = ()
    """Only these; all of the experiment's if none are given."""
    since_task: str = ""
    """What is measured is the change since this other task, on equal seeds."""


@dataclass(frozen=True)
class Finding:
    """One pair on one task."""

    task: str
    first: str
    second: str
    seeds: int
    mean: float
    error: float
    verdict: Verdict


def judge(mean: float, error: float, seeds: int, expected: Expected, margin: float) -> Verdict:
    """Settle a claim on a difference; one whose error is not known is undecided."""
    reach = statistics.sure(seeds) * error
    low, high = mean - reach, mean + reach
    same = -margin < low and high < margin
    if expected == "counted":
        return "equal" if same else "better" if high < 0 else "worse" if low > 0 else "undecided"
    agrees, disagrees = {
        "better": (high < 0, low > 0),
        "much better": (high < -margin, low > -margin),
        "worse": (low > 0, high < 0),
        "no worse": (high < margin, low > margin),
        "equal": (same, low > margin or high < -margin),
    }[expected]
    return "agrees" if agrees else "disagrees" if disagrees else "undecided"


def findings(claim: Claim, experiment: Experiment, rows: Sequence[Row]) -> list[Finding]:
    """What the rows say of a claim; nothing of tasks and methods that were not run."""
    found = []
    before = _values(claim, experiment, rows, claim.since_task) if claim.since_task else None
    for task in claim.tasks or tuple(cell.task for cell in experiment.cells):
        values = _values(claim, experiment, rows, task)
        if before is not None:
            values = {
                method: {seed: v - before[method][seed] for seed, v in own.items()}
                for method, own in _common(values, before).items()
            }
        for first, second in claim.pairs:
            there = values.get(first, {})
            others = values.get(second, {}) if second else dict.fromkeys(there, 0.0)
            differences = statistics.paired(there, others)
            if differences:
                mean, error = statistics.mean_and_error(differences)
                n, margin = len(differences), MARGIN[claim.measure.kind]
                verdict = judge(mean, error, n, claim.expected, margin)
                found.append(Finding(task, first, second, n, mean, error, verdict))
    return found


def _values(
    claim: Claim, experiment: Experiment, rows: Sequence[Row], task: str
) -> dict[str, dict[int, float]]:
    """What a claim measures on a task, by method and seed."""
    values: dict[str, dict[int, float]] = {}
    for row in statistics.of_task(rows, task, experiment.cell(task).evaluations):
        values.setdefault(row["method"], {})[row["seed"]] = claim.measure(row)
    return values


def _common(
    values: Mapping[str, Mapping[int, float]], others: Mapping[str, Mapping[int, float]]
) -> dict[str, dict[int, float]]:
    """The values of methods and seeds that others have too."""
    return {
        method: {seed: v for seed, v in own.items() if seed in others[method]}
        for method, own in values.items()
        if method in others
    }


def conclusion(found: Sequence[Finding]) -> str:
    """All findings of a claim in a word or two.

    >>> conclusion([])
    'not run yet'
    """
    counts = Counter(finding.verdict for finding in found)
    if not found:
        return "not run yet"
    if counts["better"] + counts["equal"] + counts["worse"]:
        names: tuple[Verdict, ...] = ("better", "equal", "worse", "undecided")
        return ", ".join(f"{name} on {counts[name]}" for name in names)
    if counts["agrees"] and counts["disagrees"]:
        return f"in part: {counts['agrees']} of {len(found)}"
    if not counts["undecided"]:
        return "agrees" if counts["agrees"] else "disagrees"
    settled = "agrees" if counts["agrees"] else "disagrees" if counts["disagrees"] else ""
    if not settled:
        return "undecided"
    return f"{settled} where decided: {len(found) - counts['undecided']} of {len(found)}"


def markdown(experiment: Experiment, rows: Sequence[Row]) -> str:
    """The claims of an experiment beside what the rows say; empty where the paper has none."""
    every = CLAIMS.get(experiment.name, ())
    if every and not rows:
        return "\n".join(["The paper says:", "", *(f"- {claim.says}" for claim in every)])
    lines = ["| the paper says | seen here: difference ± s.e. (seeds) | |", "|---|---|---|"]
    for claim in every:
        found = findings(claim, experiment, rows)
        word = conclusion(found)
        lines.append(f"| {claim.says} | {_seen(found, claim)} | **{word}** |")
    return "\n".join(lines) if len(lines) > 2 else ""


def tally(experiment: Experiment, rows: Sequence[Row]) -> str:
    """How many comparisons agree, disagree and are undecided."""
    counts: Counter[str] = Counter(
        finding.verdict
        for claim in CLAIMS.get(experiment.name, ())
        for finding in findings(claim, experiment, rows)
    )
    return words(counts)


def words(counts: Mapping[str, int]) -> str:
    """How many of each verdict.

    >>> words({"agrees": 2, "disagrees": 0, "undecided": 1})
    '2 agree, 1 undecided'
    """
    plural = {"agrees": "agree", "disagrees": "disagree", "undecided": "undecided"}
    return ", ".join(f"{counts[v]} {many}" for v, many in plural.items() if counts.get(v))


def _seen(found: Sequence[Finding], claim: Claim) -> str:
    observed = claim.measure.kind == "observed"
    sign, digits = (-1.0, 4) if observed else (1.0, 2)  # accuracies as they are: larger is better
    parts = []
    for one in found:
        task = statistics.task_label(one.task)
        pair = f", {_pair(one)}" if one.second or len(claim.pairs) > 1 else ""
        number = statistics.show(sign * one.mean, one.error, "+", digits)
        parts.append(f"{task}{pair}: {number} ({one.seeds})")
    return "; ".join(parts)


def _pair(finding: Finding) -> str:
    first, second = statistics.label(finding.first), statistics.label(finding.second)
    return f"{first} − {second}" if finding.second else first


def _gamma(method: str, share: float) -> str:
    return f"{method}:exploit={share:g}"


INFERENCE, SIMPLE, OBSERVED = Measure("inference"), Measure("simple"), Measure("observed")
GAP = Measure("simple", beyond="inference")
APART = Measure("inference", beyond="simple")
LATER = Measure("inference", since=HALF)
HARTMANN = ("hartmann3@0.01", "hartmann6@0.01")
OTHERS = (("jes", "mes"), ("jes", "pes"), ("jes", "ei"))
CLAIMS: Mapping[str, tuple[Claim, ...]] = MappingProxyType(
    {
        "gp": (
            Claim(
                "JES ends with far less inference regret than MES.",
                (("jes", "mes"),),
                INFERENCE,
                "much better",
            ),
            Claim(
                "JES ends with far less inference regret than PES.",
                (("jes", "pes"),),
                INFERENCE,
                "much better",
            ),
            Claim(
                "Simple and inference regret are about equal for MES (simple − inference).",
                (("mes", ""),),
                GAP,
                "equal",
            ),
            Claim(
                "For JES inference regret is much less than simple regret (inference − simple).",
                (("jes", ""),),
                APART,
                "much better",
            ),
            Claim(
                "They differ most for PES (simple − inference is less for JES and MES).",
                (("jes", "pes"), ("mes", "pes")),
                GAP,
            ),
        ),
        "gp-noisy": (
            Claim("JES improves for the whole run (in its second half).", (("jes", ""),), LATER),
            Claim(
                "MES and PES slow down at half-way (and win less than JES after it).",
                OTHERS[:2],
                LATER,
            ),
        ),
        "synthetic": (
            Claim(
                "On Branin JES starts slower than MES (simple regret after a fifth).",
                (("jes", "mes"),),
                Measure("simple", EARLY),
                "worse",
                ("branin@0.01",),
            ),
            Claim("… and reaches the same.", (("jes", "mes"),), SIMPLE, "equal", ("branin@0.01",)),
            Claim(
                "On both Hartmann functions JES is among the best at first (after a fifth).",
                OTHERS,
                Measure("simple", EARLY),
                "no worse",
                HARTMANN,
            ),
            Claim("… and clearly the best in the end.", OTHERS, SIMPLE, tasks=HARTMANN),
            Claim(
                "Simple and inference regret are about equal for JES (simple − inference).",
                (("jes", ""),),
                GAP,
                "equal",
            ),
            Claim(
                "They differ very much for PES (inference − simple).",
                (("pes", ""),),
                APART,
                "much better",
            ),
            Claim(
                "On Branin MES's simple regret is less than its inference regret.",
                (("mes", ""),),
                GAP,
                tasks=("branin@0.01",),
            ),
            Claim(
                "On Hartmann-6 MES's inference regret gets worse from a third of the budget on.",
                (("mes", ""),),
                Measure("inference", since=1 / 3),
                "worse",
                HARTMANN[1:],
            ),
        ),
        "mlp": (
            Claim("JES is better than or equal to MES on all.", OTHERS[:1], OBSERVED, "no worse"),
            Claim("PES is behind.", OTHERS[1:2], OBSERVED),
            Claim(
                "JES is better than EI on two tasks, equal on three, EI better on one.",
                OTHERS[2:],
                OBSERVED,
                "counted",
            ),
        ),
        "gamma": (
            Claim(
                "γ > 0 lowers simple regret.",
                tuple((_gamma("jes", g), _gamma("jes", 0)) for g in (0.05, 0.1, 0.2)),
                SIMPLE,
            ),
            Claim(
                "γ of 0.05 or 0.1 gives equal or less inference regret, too.",
                tuple((_gamma("jes", g), _gamma("jes", 0)) for g in (0.05, 0.1)),
                INFERENCE,
                "no worse",
            ),
            Claim(
                "0.2 is slightly worse on Hartmann-6 …",
                ((_gamma("jes", 0.2), _gamma("jes", 0)),),
                INFERENCE,
                "worse",
                HARTMANN[1:],
            ),
            Claim(
                "… and slightly better on Branin and Hartmann-3.",
                ((_gamma("jes", 0.2), _gamma("jes", 0)),),
                INFERENCE,
                tasks=("branin@0.01", "hartmann3@0.01"),
            ),
        ),
        "misspecified": (
            Claim(
                "γ = 0.1 lowers the simple regret of every method.",
                tuple((_gamma(m, 0.1), _gamma(m, 0)) for m in ("jes", "mes", "pes")),
                SIMPLE,
            ),
            Claim(
                "… and their inference regret is equal or less.",
                tuple((_gamma(m, 0.1), _gamma(m, 0)) for m in ("jes", "mes", "pes")),
                INFERENCE,
                "no worse",
            ),
            Claim(
                "Without γ, MES's inference regret on Michalewicz gets worse after 150 trials …",
                ((_gamma("mes", 0), ""),),
                Measure("inference", since=150 / 500),
                "worse",
                ("michalewicz@0.01",),
            ),
            Claim(
                "… and JES's on Levy after about 200.",
                ((_gamma("jes", 0), ""),),
                Measure("inference", since=200 / 400),
                "worse",
                ("levy@0.01",),
            ),
            Claim(
                "MES is generally the best.",
                tuple((_gamma("mes", 0.1), _gamma(m, 0.1)) for m in ("jes", "pes")),
                INFERENCE,
            ),
        ),
        "noise-levels": (
            Claim(
                "MES and PES lose more than JES as noise grows (from σ² = 10⁻⁴ to 20).",
                OTHERS[:2],
                INFERENCE,
                tasks=("gp4@20",),
                since_task="gp4@0.0001",
            ),
            Claim(
                "So JES ends better where there is much noise (σ² ≥ 1: our reading of it).",
                OTHERS[:2],
                INFERENCE,
                tasks=("gp4@1", "gp4@4", "gp4@10", "gp4@20"),
            ),
        ),
        "pairs": (
            Claim(
                "More pairs help a little at first (100 beside 4, after a fifth).",
                (("jes:pairs=100", "jes:pairs=4"),),
                Measure("inference", EARLY),
            ),
            Claim(
                "… and much in higher dimensions.",
                (("jes:pairs=100", "jes:pairs=4"),),
                Measure("inference", EARLY),
                "much better",
                ("gp6", "gp12"),
            ),
            Claim(
                "In 12-D few pairs end better.",
                (("jes:pairs=4", "jes:pairs=100"), ("jes:pairs=4", "jes:pairs=500")),
                INFERENCE,
                tasks=("gp12",),
            ),
        ),
    }
)
