"""Comparison of two files of rows, say of an older engine and of today's: did anything get worse?

Runs are paired: the same experiment, task, method, seed and number of evaluations. What is compared
is what each pair had found in the end; a difference is new minus old, and negative where the new
one has the smaller regret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from optpair_bench.analysis import statistics
from optpair_bench.running.experiments import Kind, place
from optpair_bench.running.rows import Key, Row


@dataclass(frozen=True)
class Change:
    """What became of some pairs of runs: the mean difference, and its standard error."""

    pairs: int
    mean: float
    error: float

    @classmethod
    def of(cls, differences: Sequence[float]) -> Change:
        """From the differences."""
        return cls(len(differences), *statistics.mean_and_error(differences))

    def verdict(self, kind: Kind) -> str:
        """Whether the difference is sure, by Student's t; of observed values more is better."""
        if self.pairs < 2 or not abs(self.mean) > statistics.sure(self.pairs) * self.error:
            return "" if self.pairs > 1 else "too few"
        larger_is_better = kind == "observed"
        return "better" if (self.mean > 0) == larger_is_better else "**worse**"


def differences(
    old: Mapping[Key, Row], new: Mapping[Key, Row], kind: Kind = "inference"
) -> dict[tuple[str, str, str], list[float]]:
    """New minus old by method, experiment and task, in the order of the experiments."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for key, row in new.items():
        if key in old:
            experiment, task, method, _, _ = key
            change = statistics.value(row, kind) - statistics.value(old[key], kind)
            found.setdefault((method, experiment, task), []).append(change)
    order = sorted(found, key=lambda of: (statistics.place(of[0]), place(of[1], of[2])))
    return {of: found[of] for of in order}


def markdown(old: Mapping[Key, Row], new: Mapping[Key, Row], kind: Kind = "inference") -> str:
    """The differences task by task, method by method, and over all, as a table."""
    cells = differences(old, new, kind)
    if not cells:
        raise ValueError(
            f"none of the {len(new)} new runs is among the {len(old)} old ones; a pair has the "
            "same experiment, task, method, seed and number of evaluations"
        )
    digits = 4 if kind == "observed" else 2
    title = f"{statistics.KIND_NAMES[kind]}, new − old, mean ± s.e."
    lines = [f"| method | task | pairs | {title} | |", "|---|---|---:|---:|---|"]

    def add(method: str, task: str, values: Sequence[float]) -> None:
        change = Change.of(values)
        shown = statistics.show(change.mean, change.error, "+", digits)
        lines.append(f"| {method} | {task} | {change.pairs} | {shown} | {change.verdict(kind)} |")

    for method in dict.fromkeys(of[0] for of in cells):
        own = {of: values for of, values in cells.items() if of[0] == method}
        for (_, experiment, task), values in own.items():
            add(statistics.label(method), f"{statistics.task_label(task)} (`{experiment}`)", values)
        if len(own) > 1:
            add(f"**{statistics.label(method)}**", "all of these", list(chain(*own.values())))
    if len(lines) > 3:
        add("**all**", "", list(chain(*cells.values())))
    return "\n".join(lines) + "\n"
