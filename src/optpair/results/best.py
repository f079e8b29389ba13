"""Answers in the user's units: recommendations, predictions, beliefs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optpair.engine.answers import Answer, Answers, Pairs
from optpair.engine.gaps import within
from optpair.engine.worth import SURE
from optpair.problem.beliefs import agreement
from optpair.problem.outcomes import Constraint
from optpair.problem.problem import VALUE, Problem
from optpair.runtime.shapes import Float
from optpair.trials.estimate import Estimate
from optpair.trials.numbers import rounded, to_the_last_digit
from optpair.trials.trial import Trial

Decode = Callable[[np.ndarray], Mapping[str, Any]]

NONE_POSSIBLE = "optimum        no sample has a point that meets all constraints"


@dataclass(frozen=True)
class Doubted:
    """A trial whose value is far from what the others predict, and more likely a mistake.

    It does not count until another trial at the same point agrees; `revise` corrects it.
    """

    trial: Trial
    expected: float
    outcome: str = VALUE

    def __str__(self) -> str:
        value, expected = self.trial.outcomes[self.outcome].value, self.expected
        name = "" if self.outcome == VALUE else f"{self.outcome} "
        return (
            f"trial {self.trial.id}: {name}{value:.5g} is far from the {expected:.5g} that the "
            "others predict there; it does not count until a repeat agrees"
        )


def doubts(answers: Answers, problem: Problem, told: Sequence[Trial]) -> tuple[Doubted, ...]:
    """The trials with doubted values, in the user's units."""
    return tuple(
        Doubted(told[trial], problem.outcomes[name].sign * expected, name)
        for trial, column, expected in answers.doubts()
        for name in problem.names[column : column + 1]
    )


@dataclass(frozen=True)
class Predicted:
    """The predicted noiseless value of one outcome at a point; `interval` is the 95 % interval."""

    mean: float
    std: float
    interval: tuple[float, float]

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Predicted(mean={self.mean:.5g}, {low:.5g} to {high:.5g})"

    @classmethod
    def of(cls, estimate: Estimate, sign: float) -> Predicted:
        """An estimate of one value in the user's units."""
        mean, std, low, high = (float(v) for v in estimate.times(sign))
        return cls(mean, std, (low, high))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.5g}, 95 % interval {low:.5g} to {high:.5g}"


MOST_STUDIES = 4  # that a line names


def by_name(estimates: Sequence[Estimate], problem: Problem) -> dict[str, Predicted]:
    """Estimates of every outcome at a point, in the user's units."""
    pairs = zip(problem.outcomes.items(), estimates, strict=True)
    return {name: Predicted.of(estimate, outcome.sign) for (name, outcome), estimate in pairs}


def borrowed(answers: Answers, problem: Problem) -> dict[str, float]:
    """How much each earlier study explains, by its name: of the only objective."""
    (name,) = problem.objectives
    return {study: own.explains for study, own in answers.borrowed().get(name, {}).items()}


def unmeasured(problem: Problem, told: Sequence[Trial]) -> tuple[str, ...]:
    """The constraints of which no trial has a value."""
    seen = {name for trial in told for look in trial.seen for name in look.outcomes}
    return tuple(name for name in problem.constraints if name not in seen)


def _studies(lent: Mapping[str, float]) -> str:
    """The studies that explain most, in a line."""
    order = sorted(lent, key=lambda name: -lent[name])
    said = [f"{name} (explains {100 * lent[name]:.0f} %)" for name in order[:MOST_STUDIES]]
    more = len(order) - len(said)
    return ", ".join(said) + (f", and {more} more" if more else "")


@dataclass(frozen=True)
class Recommendation:
    """The best predicted point, and how sure that prediction is.

    `mean`, `std` and `interval` (95 %) are of the noiseless value at `params`. `observed` is the
    told trial with the best value: with noise, often only the luckiest one. `doubted` are trials
    whose values look like mistakes, and `left_out` are parameters that trials have but the model
    does not, each with the reason. `outcomes` has the same predictions by the outcomes' names.

    With constraints, it is the best predicted of the points that meet all of them with a
    probability of at least 95 %; `chance` is that probability. If there is no such point, it is
    the one that is most likely to meet them, and `chance` is below 0.95; if that is below 0.001
    everywhere, it is one that is predicted to come closest. `observed` is the best of the trials
    whose values meet the constraints or, if none does, the one that comes closest. `unmeasured` are
    constraints of which no trial has a value yet.

    If all values are exact (`noise=0`), a prediction has to beat the best of them: unless the whole
    interval of the best predicted point is better, the best observed trial is recommended, with its
    value and an interval of zero width. With constraints, it is always the best of the trials that
    met them, if any did.
    """

    params: Mapping[str, Any]
    mean: float
    std: float
    interval: tuple[float, float]
    observed: Trial
    doubted: tuple[Doubted, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, Predicted] = field(default_factory=dict)
    chance: float | None = None
    limits: Mapping[str, Constraint] = field(default_factory=dict, repr=False)
    borrowed: Mapping[str, float] = field(default_factory=dict)
    """How much of the variance each earlier study explains, from 0 to 1, by name."""
    unmeasured: tuple[str, ...] = ()

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
        params, observed = dict(decode(answer.x)), told[answers.best_trial]
        doubted = doubts(answers, problem, told)
        if answer.trial is not None:
            params = to_the_last_digit(params, told[answer.trial].actual, problem.space.targets)
        return cls(
            params,
            mean,
            std,
            (low, high),
            observed,
            doubted,
            outcomes=by_name(answer.outcomes, problem),
            chance=answer.chance,
            limits=problem.constraints,
            borrowed=borrowed(answers, problem),
            unmeasured=unmeasured(problem, told),
        )

    def __str__(self) -> str:
        low, high = self.interval
        best = self.observed
        from optpair.report import left_out  # late: a search may end without a page

        doubted = "".join(f"\ndoubted        {one}" for one in self.doubted)
        missing = "".join(f"\nleft out       {line}" for line in left_out(self.left_out))
        worth = f"predicted      {self.mean:.5g}, 95 % interval {low:.5g} to {high:.5g}"
        if self.std == 0:
            worth = f"exact value    {self.mean:.5g}; no other point is sure to be better"
        lent = f"\nborrowed from  {_studies(self.borrowed)}" if self.borrowed else ""
        if self.chance is not None:
            return self._under_constraints() + lent + doubted + missing
        value = next(iter(best.outcomes.values())).value
        return (
            f"recommended    {listed(self.params)}\n"
            f"{worth}\n"
            f"best observed  {value:.5g} in trial {best.id}: {listed(best.actual)}"
            f"{lent}{doubted}{missing}"
        )

    def _under_constraints(self) -> str:
        """The same for several outcomes, each by its name."""
        assert self.chance is not None
        best, width = self.observed, max(map(len, self.outcomes))
        lines = [f"recommended    {listed(self.params)}"]
        for name, predicted in self.outcomes.items():
            limit = f" (must be {self.limits[name]})" if name in self.limits else ""
            limit += "; no trial has a value yet" if name in self.unmeasured else ""
            lines.append(f"predicted      {name:<{width}} {predicted}{limit}")
        lines.append(f"feasible       {feasibility(self.chance)}")
        values = {name: found.value for name, found in best.outcomes.items()}
        limits = self.limits.items()
        broken = any(name in values and not o.met(values[name]) for name, o in limits)
        kind = "came closest " if broken else "best observed"
        lines.append(f"{kind}  {listed(values)} in trial {best.id}: {listed(best.params)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        low, high = self.interval
        point = rounded(self.params)
        return f"Recommendation({point}, mean={self.mean:.5g}, {low:.5g} to {high:.5g})"


@dataclass(frozen=True)
class Prediction:
    """Predicted noiseless values at some points, one entry per point.

    `low` and `high` are the ends of the 95 % intervals.
    """

    mean: Float[np.ndarray, " q"]
    std: Float[np.ndarray, " q"]
    low: Float[np.ndarray, " q"]
    high: Float[np.ndarray, " q"]


@dataclass(frozen=True)
class Belief:
    """Samples of the optimal pair (x*, f*) in the user's units, and what is still unknown.

    `next_gain` is what the best next trial would teach about the pair, in nats. `gap` is how much
    better the optimum is expected to be than the recommendation, `gap_interval` is the 95 %
    interval of that, and `gaps` are its samples.

    With constraints, `possible` is the probability that there is a point that meets them all, and
    the samples are of the best such points.

    `agree` has each of your guesses, in words, with the share of the samples that agree with it,
    going by the data alone; the samples themselves are weighted by the guesses.
    """

    params: tuple[Mapping[str, Any], ...]
    values: Float[np.ndarray, " L"]
    next_gain: float
    gap: float
    gap_interval: tuple[float, float]
    recommendation: Recommendation
    gaps: Float[np.ndarray, " L"]
    possible: float | None = None
    agree: Mapping[str, float] = field(default_factory=dict)

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
            gaps=pairs.gaps,
            possible=pairs.possible,
            agree=dict(pairs.agree),
        )

    def chance(self, gap: float) -> float:
        """The probability that the optimum is better than the recommendation by at most `gap`.

        Args:
            gap: in units of the objective, at least 0.

        Returns:
            A number from 0 to 1. With constraints, only samples in which a point meets them count;
            0 if there are none.
        """
        return within(self.gaps, gap)

    def likeliest(self, most: int = 10) -> list[tuple[Mapping[str, Any], float]]:
        """The points that are most likely the best, and their probabilities, largest first.

        The probability is the share of the samples that have their optimum there. It is useful if
        points are discrete: on a shelf (`Space.of_rows`), or with levels and categories.

        Args:
            most: the most points to return.

        Returns:
            Pairs of parameters and probability.
        """
        counts: dict[tuple[Any, ...], int] = {}
        first: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        for params in self.params:
            key = tuple((type(value), value) for value in params.values())
            counts[key] = counts.get(key, 0) + 1
            first.setdefault(key, params)
        ranked = sorted(counts, key=lambda key: -counts[key])[:most]
        return [(first[key], counts[key] / len(self.params)) for key in ranked]

    def __str__(self) -> str:
        if len(self.values) == 0:
            return f"{self.recommendation}\n{NONE_POSSIBLE}"
        low, high = np.quantile(self.values, [0.025, 0.975])
        return (
            f"{self.recommendation}\n"
            f"optimum        {low:.5g} to {high:.5g} in 95 % of {len(self.values)} samples\n"
            f"still to win   about {self.gap:.3g}, at most {self.gap_interval[1]:.3g}; the next "
            f"trial is worth {self.next_gain:.3g} nats"
            + "".join(f"\nbelieved       {line}" for line in agreement(self.agree))
        )

    def __repr__(self) -> str:
        samples = len(self.values)
        return f"Belief({samples} samples, gap={self.gap:.5g}, next_gain={self.next_gain:.3g})"


def feasibility(chance: float) -> str:
    """How likely a point is to meet all constraints, as a person would say it."""
    from optpair.report.outcome_words import probability, unlikely  # late: no page may be wanted

    share = probability(chance)
    if chance >= SURE:
        return f"with a probability of {share}"
    return (
        f"no point is likely to meet all constraints yet; this one is {unlikely(chance)}, with a "
        f"probability of {share}"
    )


def listed(items: Mapping[str, Any]) -> str:
    """name = value, name = value: numbers with five digits, text quoted."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in items.items())


def shown(value: Any) -> str:
    """A number with five digits, or text in quotes."""
    return f"{value:.5g}" if isinstance(value, float) else repr(value)
