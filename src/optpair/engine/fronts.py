"""Fronts: answers where several objectives pull against each other.

A front is made of points that are likely feasible and that no other is predicted to be better than
in all objectives at once. Everything is to be maximised, on the cube, in raw units.
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
from optpair.engine.hypervolume import hypervolume
from optpair.engine.model import CONFIDENCE, Model
from optpair.engine.plate import Info
from optpair.engine.worth import (
    SURE,
    Feasibility,
    compromise,
    non_dominated,
    penalty,
    rank,
    under_constraints,
    unwanted,
)
from optpair.gp.paths import Paths
from optpair.problem.defaults import ACQUISITION
from optpair.shapes import Bool, Float, Int
from optpair.streams import Stream
from optpair.trials.data import Data
from optpair.trials.estimate import Estimate

POINTS = 16  # of a front, at most, unless more are asked for
CLIMBS, MOST_CLIMBS = 32, 256  # compromises that are climbed to: as many as points, between these
BEYOND = 0.1  # of the front's extent: how far below it the reference point is
LARGEST = float(np.finfo(np.float64).max)


class Front(NamedTuple):
    """Points of a front, and what is believed of every outcome there."""

    x: Float[np.ndarray, "R D"]
    outcomes: tuple[Estimate, ...]
    chance: Float[np.ndarray, " R"] | None
    """Of being feasible; None without constraints."""
    reference: Float[np.ndarray, " K"]
    hypervolume: float
    hypervolume_interval: tuple[float, float]
    observed: Int[np.ndarray, " t"]
    """The told trials that no other told trial is better than."""


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


@dataclass(frozen=True)
class Fronts:
    """What is asked of a model with several objectives."""

    engine: Engine
    stream: Stream
    model: Model
    data: Data

    @property
    def columns(self) -> list[int]:
        """Those of the objectives."""
        return list(self.model.wanted.objectives)

    def front(
        self,
        reference: Float[np.ndarray, " K"] | None = None,
        *,
        tried: bool = False,
        points: int = POINTS,
    ) -> Front:
        """The predicted front, of so many points; with `tried` that of the told points alone."""
        x = self._chosen(self._legal if tried else self._candidates(points), points)
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

    def belief(self, reference: Float[np.ndarray, " K"] | None = None) -> Sets:
        """Sampled optimal sets, each of a joint path, and what they promise beyond the front."""
        entry, engine, model = REGISTRY[ACQUISITION], self.engine, self.model
        front = self.front(reference)
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
        )

    def observed(self) -> Int[np.ndarray, " t"]:
        """The told trials that meet all limits, and that no other of them is better than."""
        scaled = self._told()
        whole = ~np.isnan(scaled[:, self.columns]).any(1)
        whole &= self.engine.sought.matches(self.data.points)
        met = np.flatnonzero(whole & (unwanted(self.model.wanted, scaled) == 0))
        return met[non_dominated(scaled[met][:, self.columns])]

    def _told(self) -> Float[np.ndarray, "t O"]:
        """The mean of each told trial's values, standardised; NaN where there is none."""
        outcomes = enumerate(self.model.outcomes)
        return np.stack([o.scaling.standardise(self.data.means(c)) for c, o in outcomes], 1)

    @property
    def _legal(self) -> Float[np.ndarray, "k D"]:
        """The told points that may be recommended."""
        return self.data.X[self.engine.sought.legal(self.data.X)]

    @property
    def _met(self) -> Float[np.ndarray, "k D"]:
        """The told points at which values are within all limits."""
        return self.data.points[unwanted(self.model.wanted, self._told()) == 0]

    def _candidates(self, most: int) -> Float[np.ndarray, "N D"]:
        """Told points, the best of those screened, and where compromises between them climb to."""
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

    def _chosen(self, X: Float[np.ndarray, "N D"], most: int) -> Float[np.ndarray, "R D"]:
        """The front among some points, thinned; where none is sure to be feasible, one point."""
        means = np.stack([self.model.outcomes[c].moments(X)[0].mean(0) for c in self.columns], 1)
        chance = self._chance(X)
        if chance is not None:
            sure = chance >= SURE
            if not sure.any():
                met = np.array([among(x, self._met) for x in X])
                return X[[int(np.argmax(rank(chance, chance, met)))]]
            X, means = X[sure], means[sure]
        front = non_dominated(means)
        X, means = X[front], means[front]
        return X[_apart(means, most)]

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


def _apart(values: Float[np.ndarray, "R K"], most: int) -> Int[np.ndarray, " r"]:
    """So many rows that are far from each other: the best in each column first, then the rest.

    In order of the first column.
    """
    if len(values) == 0:
        return np.zeros(0, dtype=int)
    size = np.ptp(values, axis=0)
    scaled = (values - values.min(0)) / np.where(size > 0, size, 1.0)
    chosen = list(dict.fromkeys(np.argmax(scaled, axis=0).tolist()))[:most]
    near = np.min([np.sum((scaled - scaled[row]) ** 2, 1) for row in chosen], axis=0)
    while len(chosen) < min(most, len(values)) and near.max() > 0:
        chosen.append(int(np.argmax(near)))
        near = np.minimum(near, np.sum((scaled - scaled[chosen[-1]]) ** 2, 1))
    rows = np.array(chosen)
    return rows[np.argsort(values[rows, 0], kind="stable")]


def _volumes(
    values: Float[np.ndarray, "L R K"],
    there: Bool[np.ndarray, "L R"],
    reference: Float[np.ndarray, " K"],
) -> Float[np.ndarray, " L"]:
    """The hypervolume of each set of points, in units that cannot overflow on the way."""
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
    """The best value of each objective; −∞ where there is no point."""
    return np.asarray(np.max(np.where(there[..., None], values, -np.inf), 1, initial=-np.inf))


def _spread(values: Float[np.ndarray, " L"]) -> tuple[float, tuple[float, float]]:
    """The mean, and an interval that holds 95 % of the values, and the mean."""
    half = values / 2
    mean = float(np.mean(half))
    low, high = np.quantile(half, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return 2 * mean, (2 * min(float(low), mean), 2 * max(float(high), mean))
