"""The best feasible point of joint paths: the largest objective where all constraints are met.

Screened on the objective less a penalty, climbed in single precision by the sequential quadratic
climbs of `optpair.optima.sequential`; the best of each path are put onto the active limits in
double precision. A path that seems to have no feasible point is searched once more for the least
violation alone.

Up to 2-D a path is climbed from its best screened peaks: points that are better than all around
them. In more dimensions, where points have no neighbours, from the best of a few groups. Under
several limits climbs get stuck more often: more of them begin, from points that meet all limits if
there are any, and more are ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optpair.cube.candidates import Screening
from optpair.cube.climb import Curvature, climb
from optpair.cube.region import Region
from optpair.gp.paths import Paths
from optpair.optima.base import Optima, Wanted
from optpair.optima.joint import (
    FEASIBLE,
    JointRows,
    Limited,
    Limits,
    Only,
    best_of,
    corrected,
    screened,
    units,
)
from optpair.optima.sequential import WEIGHT, multipliers, rise
from optpair.optima.single import GROUPS, NEARLY, ROUGHLY, bends
from optpair.runtime.shapes import Float, Int, Num

STEEP = 3.0  # what a violation costs where starts are chosen
PEAKS, AROUND = 6, 8  # starts of a path up to 2-D, and the neighbours that a peak is better than
STRICT = 4  # more starts, of the best points that are feasible, where there are several limits
FINALISTS, SEVERAL = 1, 2  # of a path's climbs are ended exactly; under several limits
ENDING, LONGER = 4, 12  # steps in double precision; under several limits
ENDING_RADIUS = 1e-2  # the first one's size
FINALLY = 1e-7  # of √a: what is left to win where those end


@dataclass(frozen=True)
class BestFeasible:
    """The goal of one objective under constraints."""

    wanted: Wanted

    def optima(
        self,
        paths: tuple[Paths, ...],
        region: Region,
        screening: Screening,
        anchors: Float[np.ndarray, "A D"],
        steps: int,
    ) -> Optima:
        """The best feasible point of each joint path, or the least violated one."""
        search = _Search(
            paths, self.wanted.objectives[0], Limits.of(self.wanted, paths), region, steps
        )
        sources = [X.astype(np.float32) for X in screening.points(region, anchors)]
        found = search.found(sources)
        shape = *paths[0].shape, 1
        level, size = units(paths)
        f = level[:, None] + size[:, None] * found.values.T.reshape(*shape[:2], -1)
        there = (found.out <= FEASIBLE).reshape(shape)
        return Optima(found.x.reshape(*shape, -1), f[:, :, None], there, np.zeros(shape[:2]))


class _Found(NamedTuple):
    """A point of each of some paths, its outcomes in units of √a, and how far it is out."""

    x: Float[np.ndarray, "p D"]
    values: Float[np.ndarray, "O p"]
    out: Float[np.ndarray, " p"]


@dataclass(frozen=True)
class _Search:
    """What the stages of a search share."""

    paths: tuple[Paths, ...]
    objective: int
    limits: Limits
    region: Region
    steps: int

    def found(self, sources: list[Num[np.ndarray, "_ D"]]) -> _Found:
        """The point of each joint path."""
        (M, P), D = self.paths[0].shape, self.region.cube.dimensions
        points = np.concatenate(sources)
        values = screened(self.paths, sources)
        out = self._violation(values)
        penalised = values[self.objective] - STEEP * out
        strict = np.where(out > 0, -1e6 * (1 + out), values[self.objective])
        chosen = peaks(penalised, points) if D <= 2 else self._leaders(penalised, sources)
        if D > 2 and self._several:
            best = np.argpartition(-strict, STRICT - 1, axis=-1)[..., :STRICT]
            chosen = np.concatenate([chosen, best], -1)
        starts = points[chosen].reshape(M * P, -1, D)
        # The best point that is feasible as it stands, or the least violated one: always kept.
        fallback = points[np.argmax(strict, -1)]
        everyone = np.arange(M * P)
        ends = self._climbed(everyone, starts, Only(self.objective))
        kept = np.concatenate([ends, fallback.reshape(M * P, 1, D).astype(np.float64)], 1)
        found = self._best(everyone, kept)
        lost = np.flatnonzero(found.out > FEASIBLE)
        if len(lost):
            again = self._rescued(lost, points, out.reshape(M * P, -1)[lost], found.x[lost])
            found.x[lost], found.values[:, lost], found.out[lost] = again
        return found

    @property
    def _several(self) -> bool:
        """Whether there are several limits, between which climbs get stuck."""
        return len(self.limits.sides) > 1

    def _violation(self, values: Num[np.ndarray, "O M P N"]) -> Num[np.ndarray, "M P N"]:
        M = values.shape[1]
        return self.limits.violation(values, np.arange(M)[:, None, None])

    def _leaders(
        self, score: Num[np.ndarray, "M P N"], sources: list[Num[np.ndarray, "_ D"]]
    ) -> Int[np.ndarray, "M P G"]:
        """The best points of a few groups of every source, by their place among all points."""
        found, begin = [], 0
        for X in sources:
            found.append(begin + best_of(score[..., begin : begin + len(X)], GROUPS))
            begin += len(X)
        return np.concatenate(found, -1)

    def _climbed(
        self, owner: Int[np.ndarray, " p"], starts: Num[np.ndarray, "p G D"], score: Only
    ) -> Float[np.ndarray, "p K D"]:
        """Where the best climbs of some paths end, exactly."""
        p, each, D = starts.shape
        finalists, ending = (SEVERAL, LONGER) if self._several else (FINALISTS, ENDING)
        rough = JointRows.rough(self.paths, np.repeat(owner, each))
        up = climb(
            Limited(rough, score, self.limits, WEIGHT),
            starts.reshape(-1, D),
            self.region,
            math.ceil(ROUGHLY * self.steps),
            enough=NEARLY,
            bends=bends(rough.paths[self.objective], rough.owner),
            rivals=each,
            by=rise,
        )
        order = np.argsort(-up.value.reshape(p, each), -1)[:, :finalists]
        rows = (order + each * np.arange(p)[:, None]).reshape(-1)
        x = self.region.clip(self.region.cube.snap(up.x[rows].astype(np.float64)))
        exact = JointRows.exact(self.paths, np.repeat(owner, order.shape[1]))
        known = Curvature(up.curvature.inverse[rows], up.curvature.fresh[rows])
        landscape = Limited(exact, score, self.limits, WEIGHT)
        x, _, known = rise(
            landscape,
            x,
            self.region,
            self.region.cube.continuous,
            ending,
            enough=FINALLY,
            radius=ENDING_RADIUS,
            known=known,
        )
        there = exact.at(x, np.arange(len(x)))
        active = multipliers(landscape, x, self.region, there, known) > 0
        return corrected(exact, self.limits, x, self.region, active, there).reshape(p, -1, D)

    def _best(self, owner: Int[np.ndarray, " p"], kept: Float[np.ndarray, "p K D"]) -> _Found:
        """Of each path's points the best feasible or least violated one."""
        p, K, D = kept.shape
        joint = JointRows.exact(self.paths, np.repeat(owner, K))
        values, _ = joint.at(kept.reshape(-1, D), np.arange(p * K))
        out = self.limits.violation(values, joint.owner // self.paths[0].shape[1])
        rank = np.where(out > FEASIBLE, -1e6 * (1 + out), values[self.objective])
        best = np.arange(p) * K + np.argmax(rank.reshape(p, K), -1)
        return _Found(kept.reshape(-1, D)[best], values[:, best], out[best])

    def _rescued(
        self,
        lost: Int[np.ndarray, " p"],
        points: Num[np.ndarray, "N D"],
        out: Num[np.ndarray, "p N"],
        x: Float[np.ndarray, "p D"],
    ) -> _Found:
        """The least violated points, climbed to; those that are feasible are then made the best."""
        starts = points[best_of(-out, GROUPS)]
        least = self._climbed(lost, starts, Only(self.objective, 0.0))
        found = self._best(lost, np.concatenate([least, x[:, None]], 1))
        saved = np.flatnonzero(found.out <= FEASIBLE)
        if len(saved):
            kept = found.x[saved, None]
            again = self._climbed(lost[saved], kept.astype(np.float32), Only(self.objective))
            better = self._best(lost[saved], np.concatenate([again, kept], 1))
            found.x[saved], found.values[:, saved], found.out[saved] = better
        return found


def peaks(
    score: Num[np.ndarray, "M P N"], points: Num[np.ndarray, "N D"]
) -> Int[np.ndarray, "M P G"]:
    """The best points of each path that none of their neighbours beats; then the best others."""
    exact = points.astype(np.float64)
    square = np.sum(exact**2, -1)
    away = square[:, None] + square - 2 * (exact @ exact.T)
    around = np.argpartition(away, AROUND, axis=1)[:, : AROUND + 1]
    best = score.take(around[:, 0], -1)
    for neighbour in around.T[1:]:
        np.maximum(best, score.take(neighbour, -1), out=best)
    beaten = score < best
    order = np.argpartition(np.where(beaten, 1e6, 0) - score, PEAKS, axis=-1)
    return order[..., :PEAKS]
