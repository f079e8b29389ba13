"""Fronts: answers for several competing objectives.

A front consists of points that are likely feasible, such that no other point is predicted to be
better in all objectives at once. Points are on the cube, and values are in raw units, to be
maximised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optpair.acquisition.base import bends
from optpair.acquisition.registry import REGISTRY
from optpair.cube.climb import PRECISE, climb
from optpair.cube.cube import among
from optpair.engine import candidates, goals, query, sampling
from optpair.engine.engine import PATHS, SEARCH, Engine
from optpair.engine.hypervolume import hypervolume, most_of
from optpair.engine.model import CONFIDENCE, Model
from optpair.engine.plate import Info
from optpair.engine.worth import (
    SURE,
    Feasibility,
    compromise,
    hopeless,
    non_dominated,
    penalty,
    rank,
    under_constraints,
    unwanted,
)
from optpair.gp.paths import Paths
from optpair.problem.defaults import ACQUISITION
from optpair.runtime.shapes import Bool, Float, Int
from optpair.runtime.streams import Stream
from optpair.trials.data import Data
from optpair.trials.estimate import Estimate

POINTS = 16  # points of a front, at most, unless more are asked for
CLIMBS, MOST_CLIMBS = 32, 256  # compromises to climb to: as many as points, within these limits
HALVINGS = 2  # times that a front gets more points half-way between its points,
PLENTY = 512  # unless it has so many,
NEAR = 2  # and between how many neighbours, per objective but one
BEYOND = 0.1  # how far the reference point is below the front, as a share of its extent
LARGEST = float(np.finfo(np.float64).max)


class Front(NamedTuple):
    """Points of a front, and the belief about every outcome there."""

    x: Float[np.ndarray, "R D"]
    outcomes: tuple[Estimate, ...]
    chance: Float[np.ndarray, " R"] | None
    """The probability of being feasible; None without constraints."""
    reference: Float[np.ndarray, " K"]
    hypervolume: float
    hypervolume_interval: tuple[float, float]
    observed: Int[np.ndarray, " t"]
    """The told trials that no other told trial dominates."""


class Sets(NamedTuple):
    """Sampled optimal sets, and what is still unknown."""

    front: Front
    x: list[Float[np.ndarray, "R D"]]
    f: list[Float[np.ndarray, "R K"]]
    next_gain: float
    gap: Float[np.ndarray, " K"]
    gap_interval: Float[np.ndarray, "2 K"]
    hypervolume_gap: float
    hypervolume_gap_interval: tuple[float, float]
    possible: float | None
    """The share of paths with a feasible point; None without constraints."""


@dataclass(frozen=True)
class Fronts:
    """The answers of a model with several objectives."""

    engine: Engine
    stream: Stream
    model: Model
    data: Data

    @property
    def columns(self) -> list[int]:
        """The columns of the objectives."""
        return list(self.model.wanted.objectives)

    def front(
        self,
        reference: Float[np.ndarray, " K"] | None = None,
        *,
        tried: bool = False,
        points: int = POINTS,
    ) -> Front:
        """The predicted front of `points` points; with `tried`, made of told points only."""
        found = self._legal if tried else self._candidates(points)
        x = self._chosen(found, points, dense=not tried)
        outcomes = tuple(outcome.estimate(x) for outcome in self.model.outcomes)
        observed = self.observed()
        if reference is None:
            reference = self._reference(observed, outcomes)
        paths = sampling.sample(
            self.engine, self.stream.child(PATHS), self.model, self.data, Info(), REGISTRY["ts"]
        ).paths
        assert paths is not None
        values, inside = self._along(paths, x)
        volumes = _volumes(values, inside, reference)
        chance = self._chance(x)
        return Front(x, outcomes, chance, reference, *_spread(volumes), observed)

    def belief(
        self, reference: Float[np.ndarray, " K"] | None = None, *, tried: bool = False
    ) -> Sets:
        """Sampled optimal sets, one per joint path, and what they promise beyond the front."""
        entry, engine, model = REGISTRY[ACQUISITION], self.engine, self.model
        front = self.front(reference, tried=tried)
        sampled = sampling.sample(engine, self.stream.child(PATHS), model, self.data, Info(), entry)
        gain = query.next_gain(engine, self.stream.child(SEARCH), sampled, model, self.data, entry)
        optima = sampled.optima
        assert optima is not None
        assert sampled.paths is not None
        best = np.stack(
            [model.outcomes[c].restore(optima.f[..., c]) for c in self.columns], axis=-1
        )
        M, P = optima.mask.shape[:2]
        best, there = best.reshape(M * P, -1, len(self.columns)), optima.mask.reshape(M * P, -1)
        here, inside = self._along(sampled.paths, front.x)
        both = np.concatenate([best, here], 1), np.concatenate([there, inside], 1)
        volumes = _volumes(*both, front.reference) - _volumes(here, inside, front.reference)
        ahead = np.maximum(_top(best, there) - _top(here, inside), 0.0)
        ahead = np.where(np.isfinite(ahead), ahead, 0.0)
        gaps = [_spread(own) for own in ahead.T]
        x = optima.x.reshape(M * P, *optima.x.shape[2:])
        return Sets(
            front,
            [own[kept] for own, kept in zip(x, there, strict=True)],
            [own[kept] for own, kept in zip(best, there, strict=True)],
            gain,
            np.array([mean for mean, _ in gaps]),
            np.array([ends for _, ends in gaps]).T,
            *_spread(np.maximum(volumes, 0.0)),
            float(np.mean(there.any(1))) if model.wanted.constraints else None,
        )

    def observed(self) -> Int[np.ndarray, " t"]:
        """The told trials that meet all limits and that no other of them dominates."""
        scaled = self._told()
        whole = ~np.isnan(scaled[:, self.columns]).any(1)
        whole &= self.engine.sought.matches(self.data.points)
        met = np.flatnonzero(whole & (unwanted(self.model.wanted, scaled) == 0))
        return met[non_dominated(scaled[met][:, self.columns])]

    def _told(self) -> Float[np.ndarray, "t O"]:
        """The mean of each told trial's values, standardised; NaN if there is none."""
        outcomes = enumerate(self.model.outcomes)
        return np.stack([o.scaling.standardise(self.data.means(c)) for c, o in outcomes], 1)

    @property
    def _legal(self) -> Float[np.ndarray, "k D"]:
        """The told points that may be recommended, at the target; those told there, if any."""
        X = self.data.X[self.engine.anywhere.legal(self.data.X)]
        whole = self.engine.whole(X)
        return X[whole] if whole.any() else self.engine.at_target(X)

    @property
    def _met(self) -> Float[np.ndarray, "k D"]:
        """The told points at the target at which values are within all limits."""
        met = unwanted(self.model.wanted, self._told()) == 0
        return self.data.points[met & self.engine.whole(self.data.points)]

    def _candidates(self, most: int) -> Float[np.ndarray, "N D"]:
        """Told points, the best screened points, and the points that compromises climb to."""
        engine, model, columns = self.engine, self.model, self.columns
        stream = self.stream.child(SEARCH)
        anchors = goals.best_data(engine.sought, model.wanted, model.posteriors, self.data)
        points = candidates.screened(
            engine, stream.child(1), engine.sought, anchors, self.data, optima=False
        )
        points = np.concatenate([points, self._legal])
        climbs = min(max(CLIMBS, most), MOST_CLIMBS)
        plain = compromise(model, _weights(stream.child(2), len(columns), climbs))
        means = np.stack([own.screen(points) for own in plain.means], 1)
        lost = np.zeros(len(points))
        if model.wanted.constraints:
            lost = penalty(Feasibility.of(model, wider=True).log_weight(points))
        best = non_dominated(means - lost[:, None])
        size = np.maximum(np.ptp(means[best], axis=0), 1e-9)
        ideal = means[best].max(0)
        worth = compromise(model, plain.weights / size, ideal)
        rows = np.arange(climbs)
        scores = [worth.of(means, np.full(len(points), row)) - lost for row in rows]
        starts = points[np.argmax(scores, 1)]
        landscape = under_constraints(worth, model, wider=True)
        shape = bends(model.posteriors[0])
        up = climb(landscape, starts, engine.sought, engine.steps, enough=PRECISE, bends=shape)
        told = self.data.X[engine.sought.matches(self.data.X)]
        return np.concatenate([told, points[best], up.x])

    def _chosen(
        self, X: Float[np.ndarray, "N D"], most: int, *, dense: bool
    ) -> Float[np.ndarray, "R D"]:
        """The points among some, and with `dense` between them, that make the best front.

        They do not depend on the reference point that is given for the hypervolume. Only one point
        if none is surely feasible.
        """
        chance = self._chance(X)
        if chance is not None and not (chance >= SURE).any():
            met = np.array([among(x, self._met) for x in X])
            beyond = hopeless(self.model, X, chance)
            return X[[int(np.argmax(rank(chance, chance, met, beyond)))]]
        X, values = self._leading(X, chance)
        for _ in range(HALVINGS if dense else 0):
            if 1 < len(X) < PLENTY:
                X, values = self._halved(X, values)
        columns = [self.model.outcomes[c].restore(values[:, k]) for k, c in enumerate(self.columns)]
        means = np.stack(columns, 1)
        below = means.min(0) - BEYOND * np.ptp(means / 2, axis=0) * 2
        return X[most_of(means, below, most)]

    def _leading(
        self, X: Float[np.ndarray, "N D"], chance: Float[np.ndarray, " N"] | None
    ) -> tuple[Float[np.ndarray, "R D"], Float[np.ndarray, "R K"]]:
        """The front of averaged means among the points that are surely feasible."""
        X = X if chance is None else X[chance >= SURE]
        means = [self.model.outcomes[c].moments(X)[0].mean(0) for c in self.columns]
        values = np.stack(means, 1)
        front = non_dominated(values)
        return X[front], values[front]

    def _halved(
        self, X: Float[np.ndarray, "R D"], values: Float[np.ndarray, "R K"]
    ) -> tuple[Float[np.ndarray, "r D"], Float[np.ndarray, "r K"]]:
        """A front together with the points half-way between its neighbours."""
        first, second = _neighbours(values)
        between = self.engine.sought.made_legal((X[first] + X[second]) / 2)
        more = self._leading(between, self._chance(between))
        X, values = np.concatenate([X, more[0]]), np.concatenate([values, more[1]])
        front = non_dominated(values)
        return X[front], values[front]

    def _chance(self, X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, " N"] | None:
        if not self.model.wanted.constraints:
            return None
        return Feasibility.of(self.model, wider=True).chance(X)

    def _reference(
        self, observed: Int[np.ndarray, " t"], outcomes: tuple[Estimate, ...]
    ) -> Float[np.ndarray, " K"]:
        """A little worse, in every objective, than anything on the observed or predicted front."""
        ends = []
        for column in self.columns:
            told = self.data.means(column)
            seen = np.concatenate([told[observed], outcomes[column].mean])
            extent = float(seen.max() / 2 - seen.min() / 2) * 2
            if extent == 0:
                extent = 2 * float(np.nanmax(told) / 2 - np.nanmin(told) / 2)
            ends.append(seen.min() - BEYOND * (extent or max(abs(float(seen.min())), 1.0)))
        return np.clip(np.array(ends), -LARGEST, LARGEST)

    def _along(
        self, paths: tuple[Paths, ...], x: Float[np.ndarray, "R D"]
    ) -> tuple[Float[np.ndarray, "L R K"], Bool[np.ndarray, "L R"]]:
        """The objectives of every joint path at some points, and where the limits are met."""
        wanted = self.model.wanted
        values = [p.at(x).reshape(-1, len(x)) for p in paths]
        inside = np.ones(values[0].shape, dtype=bool)
        for c in wanted.constraints:
            inside &= (values[c] >= wanted.low[c]) & (values[c] <= wanted.high[c])
        raw = [self.model.outcomes[c].restore(values[c]) for c in self.columns]
        return np.stack(raw, -1), inside


def _weights(stream: Stream, count: int, climbs: int) -> Float[np.ndarray, "W K"]:
    """Weights of compromises: evenly spaced for two objectives, else drawn; all sum to one."""
    if count == 2:
        share = (np.arange(climbs) + 0.5) / climbs
        return np.column_stack([share, 1 - share])
    return stream.draw().dirichlet(np.ones(count), climbs)


def _neighbours(
    values: Float[np.ndarray, "R K"],
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
    """Pairs of rows that are next to each other on a front."""
    if values.shape[1] == 2:
        order = np.argsort(values[:, 0], kind="stable")
        return order[:-1], order[1:]
    size = np.ptp(values, axis=0)
    scaled = values / np.where(size > 0, size, 1.0)
    away = np.sum((scaled[:, None] - scaled) ** 2, -1)
    np.fill_diagonal(away, np.inf)
    count = min(NEAR * (values.shape[1] - 1), len(values) - 1)
    near = np.argsort(away, axis=1, kind="stable")[:, :count]
    pairs = np.stack([np.repeat(np.arange(len(values)), count), near.reshape(-1)])
    pairs = np.unique(np.sort(pairs, axis=0), axis=1)
    return pairs[0], pairs[1]


def _volumes(
    values: Float[np.ndarray, "L R K"],
    there: Bool[np.ndarray, "L R"],
    reference: Float[np.ndarray, " K"],
) -> Float[np.ndarray, " L"]:
    """The hypervolume of each set of points, computed in units that cannot overflow."""
    halves = np.where(there[..., None], values / 2 - reference / 2, 0.0)
    size = np.maximum(np.max(halves, axis=(0, 1), initial=0.0), 1e-300)
    zero = np.zeros(len(reference))
    found = np.array([hypervolume(own, zero) for own in halves / size])
    with np.errstate(over="ignore"):
        unit = min(float(np.prod(np.minimum(2 * size, LARGEST))), LARGEST)
        return np.minimum(found * unit, LARGEST)


def _top(
    values: Float[np.ndarray, "L R K"], there: Bool[np.ndarray, "L R"]
) -> Float[np.ndarray, "L K"]:
    """The best value of each objective; −∞ if there is no point."""
    return np.asarray(np.max(np.where(there[..., None], values, -np.inf), 1, initial=-np.inf))


def _spread(values: Float[np.ndarray, " L"]) -> tuple[float, tuple[float, float]]:
    """The mean, and an interval that contains 95 % of the values as well as the mean."""
    top = float(np.max(values, initial=0.0)) or 1.0  # in units of it nothing overflows
    shares = values / top
    mean = float(np.mean(shares))
    low, high = np.quantile(shares, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return top * mean, (top * min(float(low), mean), top * max(float(high), mean))
