"""Steps of trials: what Optuna's `trial.report` says, as looks at rising fidelities.

Where reports are running means, the n-th one is r_n = (s_1 + … + s_n)/n, and its noise falls with
n. The single values are known again, and so is their variance v, from whole trials:

    s_n = n r_n − (n − 1) r_{n−1},    Var r_n = v/n
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from optpair.problem.defaults import LARGEST
from optpair.problem.parameters import Fidelity
from optpair.problem.space import Parameter

STEP = "optpair:step"
"""The name of the fidelity, which no parameter of a study has."""

APART = 3  # each look that is kept is this many times as far as the one before; so is the last
FEWEST = 3  # running means from which a trial shows their spread
LONG = 8  # steps from which on their scale is logarithmic


@dataclass(frozen=True)
class Steps:
    """The steps that a whole trial of a study has: the first, and how many."""

    first: int
    count: int

    @classmethod
    def of(cls, trials: Iterable[FrozenTrial]) -> Steps | None:
        """From the completed trials or, while there are none, beyond all reports; None without.

        A trial that was pruned has not come to its end.
        """
        told = [(trial, _finite(trial)) for trial in trials]
        reported = [(trial, steps) for trial, steps in told if steps]
        if not reported:
            return None
        first = min(min(steps) for _, steps in reported)
        whole = [max(s) for trial, s in reported if trial.state == TrialState.COMPLETE]
        last = max(whole) if whole else max(max(steps) for _, steps in reported) + 1
        return cls(first, last - first + 1) if last > first else None

    @property
    def fidelity(self) -> Parameter:
        """Steps from 1 on."""
        return Fidelity(1, self.count, log=self.count >= LONG)

    @property
    def levels(self) -> list[int]:
        """The numbers of steps at which trials are compared, the last included."""
        found, level = [self.count], self.count
        while level > 1:
            level = -(-level // APART)
            found.append(level)
        return found[::-1]

    def looks(self, trial: FrozenTrial) -> dict[int, float]:
        """Reported values by the number of their step: those at the levels, and the last."""
        told = {step - self.first + 1: v for step, v in _finite(trial).items()}
        told = {n: v for n, v in told.items() if 1 <= n <= self.count}
        last = max(told, default=0)
        return {n: told[n] for n in sorted(told) if n in self.levels or n == last}


def variance_of_one(trials: Iterable[FrozenTrial]) -> float | None:
    """v, the variance of one of the values of which trials report running means.

    The median of whole trials, as a bad one may be far noisier; None where they show no spread.
    """
    found = []
    for trial in trials:
        values = _singles(trial) if trial.state == TrialState.COMPLETE else []
        if len(values) >= FEWEST:
            with np.errstate(over="ignore", invalid="ignore"):
                found.append(float(np.var(values, ddof=1)) / _middle(len(values) - 1))
    middle = float(np.median(found)) if found else 0.0
    return middle if 0 < middle < math.inf else None


def _middle(d: int) -> float:
    """The median of χ²(d)/d, about."""
    return (1 - 2 / (9 * d)) ** 3


def _singles(trial: FrozenTrial) -> list[float]:
    """The values behind the running means of a trial; none where a step is missing."""
    told = _finite(trial)
    steps = sorted(told)
    if not steps or steps[-1] - steps[0] + 1 != len(steps):
        return []
    sums = [0.0, *(n * told[step] for n, step in enumerate(steps, 1))]
    return [after - before for before, after in pairwise(sums)]


def _finite(trial: FrozenTrial) -> Mapping[int, float]:
    values = trial.intermediate_values.items()
    return {step: v for step, v in values if math.isfinite(v) and abs(v) <= LARGEST}
