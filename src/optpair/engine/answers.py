"""Answers: the questions that people ask of a model conditioned on the data.

Points are on the cube, and values are in raw units, to be maximised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from optpair.acquisition.registry import REGISTRY, Entry
from optpair.engine import fitting, optimum, query, sampling
from optpair.engine.earlier import Borrowed, Lending, lending
from optpair.engine.effects import Effects, variance_shares
from optpair.engine.engine import AHEAD, PATHS, SEARCH, Engine
from optpair.engine.forecast import Forecast, forecast
from optpair.engine.fronts import POINTS, Front, Fronts, Sets
from optpair.engine.gaps import left_to_win, still_to_win, within
from optpair.engine.model import Memory, Model, mean_at, restored
from optpair.engine.plate import Info, Sampled
from optpair.engine.worth import SURE, Feasibility, hopeless, rank, unwanted
from optpair.optima.base import Optima
from optpair.problem.defaults import ACQUISITION
from optpair.problem.stop import Stop
from optpair.runtime.shapes import Bool, Float, Int
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work
from optpair.trials.data import Data
from optpair.trials.estimate import Estimate

CAUTION = 0.5  # standard deviations subtracted from a mean before points are compared
COUNTED = 8  # times as many samples as in an ask, by which rows of a table are told apart
COMPARED = 256  # told points, those with the best means, considered for a recommendation
NOTHING: Mapping[str, float] = MappingProxyType({})


class Answer(NamedTuple):
    """A point, and the belief about its noiseless value."""

    x: Float[np.ndarray, " D"]
    worth: Estimate
    observed: bool = False
    """Whether this is the best observed point and its value is exact."""
    outcomes: tuple[Estimate, ...] = ()
    """The belief about every outcome there."""
    chance: float | None = None
    """The probability that all constraints are met; None without constraints."""
    trial: int | None = None
    """The told trial at this point, where it was chosen for being one."""


class Doubt(NamedTuple):
    """A doubted value of a told trial, and the value that the other trials predict there."""

    trial: int
    column: int
    expected: float


class Pairs(NamedTuple):
    """Sampled optimal pairs, and what is still unknown."""

    best: Answer
    x: Float[np.ndarray, "L D"]
    f: Float[np.ndarray, " L"]
    next_gain: float
    gap: float
    gap_interval: tuple[float, float]
    gaps: Float[np.ndarray, " L"]
    agree: Mapping[str, float] = NOTHING
    """Each guess in words, and the share of optima that agree with it by the data alone."""
    possible: float | None = None
    """The share of paths with a feasible point; None without constraints. Only these paths have
    pairs."""


class LeftOut(NamedTuple):
    """Each measured value, and what the other values predict for it, noise included."""

    trial: Int[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    predicted: Estimate
    explained: float
    """The share of the values' variance that is predicted, on the model's scale."""


class Noise(NamedTuple):
    """The standard deviation of a value's noise, and its share of the variance of the values."""

    std: float
    share: float | None  # None if all values are the same


@dataclass(frozen=True)
class Answers:
    """A model conditioned on the data once, and everything that can be asked of it."""

    engine: Engine
    stream: Stream
    memory: Memory
    model: Model
    data: Data
    only_tried: bool = False
    """Whether told trials alone are recommended, rather than any point of the space."""

    def __repr__(self) -> str:
        return f"Answers({self.model!r})"

    @cached_property
    def best_point(self) -> Float[np.ndarray, " D"]:
        """The argmax of the averaged posterior mean, or a told point if that is the safer bet.

        Points are compared by m − `CAUTION`·√s, with the moments of all sets together. Early on,
        a model is often wrong where nothing was tried; later the two choices hardly differ.
        """
        predicted = engine_work(optimum.predicted)
        x = predicted(self.engine, self.stream.child(SEARCH), self.model, self.data, wider=True)
        told, met = self.engine.at_target(self.data.X[self.legal]), self._met[self.legal]
        if len(told) > COMPARED and not self.model.wanted.constraints:
            worth = engine_work(mean_at)(self.model.objective.posterior, told)
            best = np.sort(np.argsort(-worth, kind="stable")[:COMPARED])
            told, met = told[best], met[best]
        points = np.concatenate([x[None], told])
        met = np.concatenate([[False], met])
        means, variance = engine_work(self.model.objective.moments)(points)
        spread = np.sqrt(variance.mean(0) + means.var(0))
        worth = means.mean(0) - CAUTION * spread
        chance = self.chance(points)
        beyond = engine_work(hopeless)(self.model, points, chance)
        return points[int(np.argmax(rank(worth, chance, met, beyond)))]

    @engine_work
    def chance(self, X: Float[np.ndarray, "q D"]) -> Float[np.ndarray, " q"] | None:
        """The probability that points meet all constraints; None without constraints."""
        if not self.model.wanted.constraints:
            return None
        return Feasibility.of(self.model, wider=True).chance(X)

    @property
    def column(self) -> int:
        """The column of the only objective."""
        (only,) = self.model.wanted.objectives
        return only

    def _at(self, X: Float[np.ndarray, "q D"], row: int) -> Answer:
        """The belief about point `row` of some points."""
        outcomes = tuple(outcome.estimate(X).row(row) for outcome in self.model.outcomes)
        chance = self.chance(X)
        likely = None if chance is None else float(chance[row])
        return Answer(X[row], outcomes[self.column], outcomes=outcomes, chance=likely)

    @engine_work
    def recommend(self) -> Answer:
        """The best predicted point.

        If values are exact, it is the best of them, unless the whole interval of the best
        predicted point lies above that value. Under constraints it is the best of them at any
        rate: it is certain to meet them.
        """
        if self.only_tried:
            return self.tried()
        observed = self._best_observed
        if observed is not None and observed.chance is not None:
            return observed
        predicted = self._at(self.best_point[None], 0)
        if observed is None or predicted.worth.low > observed.worth.mean:
            return predicted
        return observed

    @cached_property
    def _violations(self) -> Float[np.ndarray, " t"]:
        """How far the values of each told trial are beyond the limits, standardised."""
        means = [
            o.scaling.standardise(self.data.means(c)) for c, o in enumerate(self.model.outcomes)
        ]
        return unwanted(self.model.wanted, np.stack(means, 1))

    @property
    def _met(self) -> Bool[np.ndarray, " n"]:
        """Which rows, at the target fidelity, belong to trials with values within all limits."""
        return (self._violations == 0)[self.data.trial] & self.engine.whole(self.data.X)

    @cached_property
    def legal(self) -> Bool[np.ndarray, " n"]:
        """Which rows may be recommended, at the target fidelity: told points may be illegal."""
        return self.engine.anywhere.legal(self.data.X)

    @property
    def best_trial(self) -> int:
        """The told trial with the best value, perhaps the luckiest; doubted values do not count.

        Under constraints, the best of the trials that meet them or, if none does, of those that
        come closest. Trials in the given context come before others, if there are any, and so do
        trials at the target fidelity.
        """
        there = self.engine.sought.matches(self.data.points)
        best = self._best_of(there if there.any() else ~there)
        assert best is not None
        return best

    def _best_of(self, counts: Bool[np.ndarray, " t"]) -> int | None:
        """The best of some of the told trials; None if there are none."""
        worth = self.data.means(self.column)
        worth = np.where(np.isnan(worth), -np.inf, worth)
        return next((int(t) for t in np.lexsort((-worth, self._violations)) if counts[t]), None)

    @property
    def best_legal_trial(self) -> int | None:
        """The best told trial at a point that may be recommended."""
        return self._best_of(self.engine.sought.legal(self.data.points))

    @engine_work
    def doubts(self) -> list[Doubt]:
        """The doubted values of the objectives."""
        found = []
        for column in self.model.wanted.objectives:
            rows = np.flatnonzero(self.data.doubted[:, column])
            expected = self.model.outcomes[column].estimate(self.data.X[rows]).mean
            trials = self.data.trial[rows]
            found += [
                Doubt(int(t), column, float(e)) for t, e in zip(trials, expected, strict=True)
            ]
        return found

    @property
    def _best_observed(self) -> Answer | None:
        """The point of the best exact value that meets all constraints, if there is one."""
        trial = self.best_legal_trial
        if trial is None:
            return None
        values = [self.data.means(column)[trial] for column in range(self.data.outcomes)]
        if not self.data.exact or np.isnan(values[self.column]) or self._violations[trial] > 0:
            return None
        exact = tuple(Estimate(v, np.zeros(()), v, v) for v in values)
        chance = 1.0 if self.model.wanted.constraints else None
        x = self.data.points[trial]
        return Answer(x, exact[self.column], True, exact, chance, trial)

    @engine_work
    def tried(self) -> Answer:
        """The told trial with the best predicted value, and the belief about it.

        Only trials at the target fidelity count, if there are any.
        """
        if not self.legal.any():
            raise ValueError(
                "none of the told trials is at a legal point: there is nothing to recommend that "
                "was tried; recommend() is over the whole space"
            )
        observed = self._best_observed
        if observed is not None:
            return observed
        X = self.engine.at_target(self.data.X)
        means = self.model.objective.moments(X)[0].mean(0)
        tested = self.legal & self.engine.sought.matches(self.data.X)
        counts = np.flatnonzero(tested if tested.any() else self.legal)
        chance = self.chance(X[counts])
        beyond = hopeless(self.model, X[counts], chance)
        row = int(counts[np.argmax(rank(means[counts], chance, self._met[counts], beyond))])
        return self._at(X, row)._replace(trial=int(self.data.trial[row]))

    @engine_work
    def front(
        self, reference: Float[np.ndarray, " K"] | None = None, *, points: int = POINTS
    ) -> Front:
        """The predicted front of several objectives."""
        return self._fronts.front(reference, tried=self.only_tried, points=points)

    @engine_work
    def sets(self, reference: Float[np.ndarray, " K"] | None = None) -> Sets:
        """Sampled optimal sets of several objectives, and what is still unknown."""
        return self._fronts.belief(reference, tried=self.only_tried)

    @property
    def _fronts(self) -> Fronts:
        return Fronts(self.engine, self.stream, self.model, self.data)

    @engine_work
    def belief(self) -> Pairs:
        """Optimal pairs, and what is still unknown about the optimum."""
        engine, model, entry = self.engine, self.model, REGISTRY[ACQUISITION]
        sampled = self._sampled()
        gain = query.next_gain(engine, self.stream.child(SEARCH), sampled, model, self.data, entry)
        if engine.sought.table is not None:
            sampled = self._sampled(COUNTED)
        assert sampled.optima is not None
        alike = sampled.optima.evenly()
        x = sampled.optima.star.reshape(-1, engine.cube.dimensions)[alike]
        there, (f, here) = _feasible(sampled.optima), self._ends(sampled)
        left, gaps = still_to_win(f, here), left_to_win(f, here)
        possible = float(np.mean(there)) if model.wanted.constraints else None
        agree = self._agree(sampled.optima)
        return Pairs(self.recommend(), x[there], f, gain, *left, gaps, agree, possible)

    def _agree(self, optima: Optima) -> Mapping[str, float]:
        """What the data alone say about each guess: optima are not weighted by it."""
        there = optima.mask[:, :, 0].reshape(-1)
        if self.engine.beliefs is None or not there.any():
            return NOTHING
        x = optima.star.reshape(-1, self.engine.cube.dimensions)
        f = self.model.objective.restore(optima.f[:, :, 0, self.column].reshape(-1))
        return self.engine.beliefs.agreeing(x[there], f[there])

    def _sampled(self, times: int = 1) -> Sampled:
        """Paths and their optima: as many as for an ask, or several times that."""
        entry, stream, settings = (
            REGISTRY[ACQUISITION],
            self.stream.child(PATHS),
            self.engine.settings,
        )
        engine = replace(self.engine, settings=replace(settings, pairs=times * settings.pairs))
        return sampling.sample(engine, stream, self.model, self.data, Info(), entry)

    def _ends(self, sampled: Sampled) -> tuple[Float[np.ndarray, " L"], Float[np.ndarray, " L"]]:
        """Each path's f* and its value at the recommendation, for paths with a feasible point."""
        assert sampled.optima is not None
        assert sampled.paths is not None
        objective, best, column = self.model.objective, self.recommend(), self.column
        alike, there = sampled.optima.evenly(), _feasible(sampled.optima)
        f = objective.restore(sampled.optima.f[:, :, 0, column].reshape(-1))[alike]
        here = np.full(f.shape, best.worth.mean)
        if not best.observed:
            here = objective.restore(sampled.paths[column].at(best.x[None]).reshape(-1))[alike]
        return f[there], here[there]

    @engine_work
    def over(self, stop: Stop) -> bool:
        """Whether hardly anything is left to win; never during the design or a doubt.

        Under constraints, a search is not over before the recommendation is likely to meet them.
        This costs less than a belief, though it looks at the same paths.
        """
        if self.data.told <= self.engine.initial or self.data.doubted.any():
            return False
        chance = self.recommend().chance
        if chance is not None and chance < SURE:
            return False
        gaps = left_to_win(*self._ends(self._sampled()))
        return within(gaps, stop.gap) >= stop.chance

    @engine_work
    def forecast(self) -> Forecast | None:
        """What will be left to win after more trials.

        None if there is no telling: before the design is over, while a value is in doubt, under
        constraints, with several fidelities, if points are not chosen by a model, and if no point
        is left.
        """
        engine, data, wanted = self.engine, self.data, self.model.wanted
        early = data.told <= engine.initial or data.doubted.any()
        modelled = isinstance(engine.acquisition, Entry) and not engine.targets
        if early or wanted.goal != "best" or not modelled or engine.spent(data):
            return None
        stream, x = self.stream.child(AHEAD), self.recommend().x
        return forecast(engine, stream, self.model, self._sampled(), data, x)

    def until(self, stop: Stop) -> int | None:
        """About how many more trials a search takes until it is over; None if unknown."""
        if self.over(stop):
            return 0
        ahead = self.forecast()
        found = None if ahead is None else ahead.until(stop)
        return None if found is None else max(found, 1)

    def halved(self) -> int | None:
        """About how many more trials it takes to halve the gap; None if unknown."""
        ahead = self.forecast()
        return None if ahead is None else ahead.halved()

    @engine_work
    def predict(self, X: Float[np.ndarray, "q D"]) -> Estimate:
        """Predictions of the only objective at some points."""
        return self.model.objective.estimate(X)

    @engine_work
    def predict_all(self, X: Float[np.ndarray, "q D"]) -> tuple[Estimate, ...]:
        """Predictions of every outcome at some points."""
        return tuple(outcome.estimate(X) for outcome in self.model.outcomes)

    @engine_work
    def noise(self) -> Noise:
        """The noise of values near the optimum, where the scaling does not compress them."""
        if self.data.exact:
            return Noise(0.0, 0.0)
        objective = self.model.objective
        variance = float(np.mean(objective.posterior.noise))
        measured = self.data.outcome(self.column)
        spread = float(np.var(objective.scaling.standardise(measured.y[~measured.doubted])))
        std = float(np.sqrt(variance)) * objective.scaling.scale
        return Noise(std, min(variance / spread, 1.0) if spread > 0 else None)

    @engine_work
    def left_out(self, column: int | None = None) -> LeftOut:
        """What the model predicts for each value from the others, by today's hyperparameters.

        Values are those of the only objective, unless another outcome's column is given.
        """
        column = self.column if column is None else column
        objective = self.model.outcomes[column]
        posterior = objective.posterior if objective.wider is None else objective.wider
        means, variance = posterior.left_out()
        measured = self.data.outcome(column)
        z, counts = objective.scaling.standardise(measured.y), ~measured.doubted
        wrong, values = (z - means.mean(0))[counts], z[counts]
        rows = self.data.trial[~np.isnan(self.data.Y[:, column])]
        differ = len(values) > 0 and values.min() < values.max()
        explained = float(1 - np.mean(wrong**2) / np.var(values)) if differ else 0.0
        return LeftOut(rows, measured.y, restored(means, variance, objective), explained)

    def borrowed(self) -> dict[str, dict[str, Lending]]:
        """What each earlier study contributes to the model of an outcome, by its name."""
        found: dict[str, dict[str, Lending]] = {}
        for outcome, (name, lent) in zip(self.model.outcomes, self._lent(), strict=True):
            if lent is not None:
                posterior = outcome.posterior if outcome.wider is None else outcome.wider
                found[name] = lending(lent, posterior)
        return found

    def _lent(self) -> list[tuple[str, Borrowed | None]]:
        return [(name, self.engine.earlier.get(name)) for name in self.engine.outcomes]

    @engine_work
    def success(self, X: Float[np.ndarray, "q D"]) -> Float[np.ndarray, " q"] | None:
        """The probability that trials succeed at some points; None if none has failed."""
        return None if self.model.success is None else self.model.success.chance(X)

    @property
    def distinct_sets(self) -> tuple[int, int]:
        """How many different hyperparameter sets there are, of how many: for the worst outcome."""
        found = []
        for posterior in (outcome.posterior for outcome in self.model.outcomes):
            scales = np.column_stack([posterior.outputscale, posterior.noise, posterior.mean])
            found.append((len(np.unique(scales, axis=0)), posterior.sets))
        return min(found)

    @engine_work
    def effects(self, column: int | None = None) -> Effects | None:
        """Which parameters matter to the predicted value, on the model's scale.

        Values are those of the only objective, unless another outcome's column is given, at the
        target fidelity, as in every answer.
        """
        own = self.column if column is None else column
        engine, posterior = self.engine, self.model.outcomes[own].posterior

        def predicted(U: np.ndarray) -> np.ndarray:
            return mean_at(posterior, engine.at_target(engine.cube.spread(U)))

        return variance_shares(predicted, engine.cube.parameters)

    @engine_work
    def nearness(
        self, X: Float[np.ndarray, "n D"], x: Float[np.ndarray, " D"], column: int | None = None
    ) -> Float[np.ndarray, "n d"]:
        """How close each point is to the slice through x along each parameter, from 0 to 1.

        It is the prior correlation of the value there with the value at the slice's point with
        the same value of the parameter, averaged over the sets. Values are those of the only
        objective, unless another outcome's column is given.
        """
        own = self.column if column is None else column
        layout, covariance = self.engine.cube.layout, self.model.outcomes[own].posterior.covariance
        owner = np.asarray(layout.owner)
        found = np.empty((len(X), layout.parameters))
        for k in range(layout.parameters):
            moved = np.where(owner == k, x, X)  # as if the parameter had the slice's value
            K = covariance.between(moved, x[None]).K[..., 0]
            found[:, k] = (K / covariance.diagonal(x[None])).mean(0)
        return found

    def past(self, counts: Sequence[int]) -> list[Pairs]:
        """The beliefs after given numbers of told trials, by today's hyperparameters."""
        return [self._then(count).belief() for count in counts]

    def _then(self, count: int) -> Answers:
        then = self.data.first(count)
        model = engine_work(fitting.condition)(self.engine, self.memory, then, Info())
        found = replace(
            self,
            stream=self.stream.child(count),
            model=replace(model, success=self.model.success),
            data=then,
        )
        return found if found.legal.any() else replace(found, only_tried=False)


def _feasible(optima: Optima) -> Bool[np.ndarray, " L"]:
    """Which paths have a feasible point, if all paths count alike."""
    return optima.mask[:, :, 0].reshape(-1)[optima.evenly()]
