"""What people are told, in their own units: recommendations, predictions, beliefs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optpair.engine.answers import Answer, Answers, Pairs
from optpair.problem.problem import Problem
from optpair.shapes import Float
from optpair.trials.trial import Trial

Decode = Callable[[np.ndarray], Mapping[str, Any]]


@dataclass(frozen=True)
class Doubted:
    """A trial whose value is more likely a slip than what the others predict there.

    It counts for nothing until another trial at the same point agrees; `revise` corrects it.
    """

    trial: Trial
    expected: float

    def __str__(self) -> str:
        value, expected = self.trial.value, self.expected
        return (
            f"trial {self.trial.id}: {value:.5g} is far from the {expected:.5g} that the others "
            "predict there; it does not count until a repeat agrees"
        )


@dataclass(frozen=True)
class Recommendation:
    """The best predicted point, and how sure that prediction is.

    `mean`, `std` and `interval` (95 %) are about the noiseless value at `params`. `observed` is the
    told trial with the best value: under noise, often only the luckiest one. `doubted` are trials
    whose values look like slips, and `left_out` are parameters that trials have and the model has
    not, each with the reason.

    Where all values are exact (`noise=0`), a prediction has to beat the best of them: unless the
    whole interval of the best predicted point is better, the best observed trial is recommended,
    with its value and an interval of no width.
    """

    params: Mapping[str, Any]
    mean: float
    std: float
    interval: tuple[float, float]
    observed: Trial
    doubted: tuple[Doubted, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        answer: Answer,
        answers: Answers,
        problem: Problem,
        decode: Decode,
        told: Sequence[Trial],
    ) -> Recommendation:
        """The engine's answer in the user's units; `told` are the trials of the rows."""
        sign = problem.objective.sign
        mean, std, low, high = (float(v) for v in answer.worth.times(sign))
        params, observed = dict(decode(answer.x)), told[answers.best_row]
        doubts = answers.doubts().items()
        doubted = tuple(Doubted(told[row], sign * expected) for row, expected in doubts)
        if answer.observed:  # to the last digit
            params |= {name: v for name, v in observed.params.items() if name in params}
        return cls(params, mean, std, (low, high), observed, doubted)

    def __str__(self) -> str:
        low, high = self.interval
        best = self.observed
        from optpair.report import left_out  # late: a search may end without a page

        doubted = "".join(f"\ndoubted        {one}" for one in self.doubted)
        missing = "".join(f"\nleft out       {line}" for line in left_out(self.left_out))
        worth = f"predicted      {self.mean:.5g}, 95 % interval {low:.5g} to {high:.5g}"
        if self.std == 0:
            worth = f"exact value    {self.mean:.5g}; no other point is sure to be better"
        return (
            f"recommended    {_listed(self.params)}\n"
            f"{worth}\n"
            f"best observed  {best.value:.5g} in trial {best.id}: {_listed(best.params)}"
            f"{doubted}{missing}"
        )

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Recommendation({dict(self.params)}, mean={self.mean:.5g}, {low:.5g} to {high:.5g})"


@dataclass(frozen=True)
class Prediction:
    """What is believed of the noiseless value at some points, one entry per point.

    `low` and `high` hold 95 % of the belief.
    """

    mean: Float[np.ndarray, " q"]
    std: Float[np.ndarray, " q"]
    low: Float[np.ndarray, " q"]
    high: Float[np.ndarray, " q"]


@dataclass(frozen=True)
class Belief:
    """Samples of the optimal pair (x*, f*) in the user's units, and what is still unknown.

    `next_gain` is what the best next trial would teach about the pair, in nats. `gap` is how much
    better the optimum is expected to be than the recommendation, and `gap_interval` holds 95 % of
    that belief.
    """

    params: tuple[Mapping[str, Any], ...]
    values: Float[np.ndarray, " L"]
    next_gain: float
    gap: float
    gap_interval: tuple[float, float]
    recommendation: Recommendation

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        answers: Answers,
        problem: Problem,
        decode: Decode,
        told: Sequence[Trial],
    ) -> Belief:
        """The engine's optimal pairs in the user's units."""
        return cls(
            params=tuple(decode(x) for x in pairs.x),
            values=problem.objective.sign * pairs.f,
            next_gain=pairs.next_gain,
            gap=pairs.gap,
            gap_interval=pairs.gap_interval,
            recommendation=Recommendation.of(pairs.best, answers, problem, decode, told),
        )

    def __str__(self) -> str:
        low, high = np.quantile(self.values, [0.025, 0.975])
        return (
            f"{self.recommendation}\n"
            f"optimum        {low:.5g} to {high:.5g} in 95 % of {len(self.values)} samples\n"
            f"still to win   about {self.gap:.3g}, at most {self.gap_interval[1]:.3g}; the next "
            f"trial is worth {self.next_gain:.3g} nats"
        )

    def __repr__(self) -> str:
        samples = len(self.values)
        return f"Belief({samples} samples, gap={self.gap:.5g}, next_gain={self.next_gain:.3g})"


def _listed(items: Mapping[str, Any]) -> str:
    """name = value, name = value: numbers with five digits, text quoted."""
    return ", ".join(f"{name} = {_shown(value)}" for name, value in items.items())


def _shown(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else repr(value)
