"""The best feasible point of joint paths: the largest objective where all constraints are met.

Screened and climbed in single precision on the objective less a quadratic penalty; the best of each
path are ended in double on the augmented Lagrangian of `optpair.optima.joint`, and put onto the
limits that they still violate by a hair. A path that seems to have no feasible point is searched
once more for the least violation alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optpair.cube.candidates import Screening
from optpair.cube.climb import Curvature, ascend, climb
from optpair.cube.region import Region
from optpair.gp.paths import Paths
from optpair.optima.base import Optima, Wanted
from optpair.optima.joint import (
    FEASIBLE,
    JointRows,
    Lagrangian,
    Limits,
    Only,
    best_of,
    corrected,
    exactly,
    feasible,
    screened,
)
from optpair.optima.single import GROUPS, NEARLY, ROUGHLY, bends
from optpair.shapes import Float, Int, Num

PENALTY, PLANE_PENALTY = 5.0, 30.0  # ρ
FINALISTS, PLANE_FINALISTS = 1, 4  # of a path's climbs are ended exactly; more up to 2-D
STEEP = 3.0  # what a violation costs where starts are chosen
ROUNDS, PLANE_ROUNDS = 2, 4  # climbs in double, with λ brought up to date before each;
ENDING, PLANE_ENDING = 4, 6  # the steps of one,
ENDING_RADIUS = 1e-2  # and the size of its first
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
        x = search.found(sources)
        f = exactly(paths, x[:, :, None])
        there, _ = feasible(search.limits, paths, f)
        return Optima(x[:, :, None], f, there, np.zeros(there.shape[:2]))


@dataclass(frozen=True)
class _Search:
    """What the stages of a search share."""

    paths: tuple[Paths, ...]
    objective: int
    limits: Limits
    region: Region
    steps: int

    def found(self, sources: list[Num[np.ndarray, "_ D"]]) -> Float[np.ndarray, "M P D"]:
        """The point of each joint path."""
        (M, P), D = self.paths[0].shape, self.region.cube.dimensions
        points = np.concatenate(sources)
        values = screened(self.paths, sources)
        out = self._violation(values)
        penalised = values[self.objective] - STEEP * out
        strict = np.where(out > 0, -1e6 * (1 + out), values[self.objective])
        # Up to 2-D groups are close to each other: those who must be feasible look elsewhere.
        scores = (penalised, strict) if D <= 2 else (penalised,)
        leaders = [self._leaders(score, sources) for score in scores]
        starts = points[np.concatenate(leaders, -1)].reshape(M * P, -1, D)
        # The best point that is feasible as it stands, or the least violated one: always kept.
        fallback = points[np.argmax(strict, -1)]
        everyone = np.arange(M * P)
        ends = self._climbed(everyone, starts, Only(self.objective))
        kept = np.concatenate([ends, fallback.reshape(M * P, 1, D).astype(np.float64)], 1)
        x, out_by = self._best(everyone, kept)
        lost = np.flatnonzero(out_by > FEASIBLE)
        if len(lost):
            x[lost] = self._rescued(lost, points, out.reshape(M * P, -1)[lost], x[lost])
        return x.reshape(M, P, D)

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
        penalty = PLANE_PENALTY if D <= 2 else PENALTY
        rough = JointRows.rough(self.paths, np.repeat(owner, each))
        landscape = Lagrangian.plain(rough, score, self.limits, penalty)
        first = math.ceil(ROUGHLY * self.steps)
        up = climb(
            landscape,
            starts.reshape(-1, D),
            self.region,
            first,
            enough=NEARLY,
            bends=bends(rough.paths[self.objective], rough.owner),
            rivals=each,
        )
        # With λ = ρg, the value under the limits is about f − λg: twice the penalty.
        outcomes, _ = rough.at(up.x, np.arange(p * each))
        worth = 2 * up.value - score(outcomes, np.arange(p * each))[0]
        finalists = PLANE_FINALISTS if D <= 2 else FINALISTS
        order = np.argsort(-worth.reshape(p, each), -1)[:, :finalists]
        rows = (order + each * np.arange(p)[:, None]).reshape(-1)
        x = self.region.clip(self.region.cube.snap(up.x[rows].astype(np.float64)))
        known = Curvature(up.curvature.inverse[rows], up.curvature.fresh[rows])
        exact = JointRows.exact(self.paths, np.repeat(owner, order.shape[1]))
        pushed = tuple(pushed[rows].astype(np.float64) for pushed in landscape.updated(outcomes))
        landscape = Lagrangian(exact, score, self.limits, penalty, pushed)
        return self._ended(landscape, x, known).reshape(p, -1, D)

    def _ended(
        self, landscape: Lagrangian, x: Float[np.ndarray, "r D"], known: Curvature
    ) -> Float[np.ndarray, "r D"]:
        """Climbed on in double precision, λ brought up to date between climbs."""
        joint, rows = landscape.joint, np.arange(len(x))
        rounds, steps = (PLANE_ROUNDS, PLANE_ENDING) if x.shape[1] <= 2 else (ROUNDS, ENDING)
        for turn in range(rounds):
            if turn:
                landscape = replace(landscape, multipliers=landscape.updated(joint.at(x, rows)[0]))
            x, _, known = ascend(
                landscape,
                x,
                self.region,
                self.region.cube.continuous,
                steps,
                enough=FINALLY,
                radius=ENDING_RADIUS,
                known=known,
            )
        there = joint.at(x, rows)
        multipliers = landscape.updated(there[0])
        return corrected(joint, self.limits, x, self.region, multipliers, there)

    def _best(
        self, owner: Int[np.ndarray, " p"], kept: Float[np.ndarray, "p K D"]
    ) -> tuple[Float[np.ndarray, "p D"], Float[np.ndarray, " p"]]:
        """Of each path's points the best feasible or least violated one, and its violation."""
        p, K, D = kept.shape
        joint = JointRows.exact(self.paths, np.repeat(owner, K))
        values, _ = joint.at(kept.reshape(-1, D), np.arange(p * K))
        out = self.limits.violation(values, joint.owner // self.paths[0].shape[1])
        rank = np.where(out > FEASIBLE, -1e6 * (1 + out), values[self.objective])
        best = np.argmax(rank.reshape(p, K), -1)
        return kept[np.arange(p), best], out.reshape(p, K)[np.arange(p), best]

    def _rescued(
        self,
        lost: Int[np.ndarray, " p"],
        points: Num[np.ndarray, "N D"],
        out: Num[np.ndarray, "p N"],
        x: Float[np.ndarray, "p D"],
    ) -> Float[np.ndarray, "p D"]:
        """The least violated points, climbed to; those that are feasible are then made the best."""
        starts = points[best_of(-out, GROUPS)]
        least = self._climbed(lost, starts, Only(self.objective, 0.0))
        kept, out_by = self._best(lost, np.concatenate([least, x[:, None]], 1))
        found = np.flatnonzero(out_by <= FEASIBLE)
        if len(found):
            again = self._climbed(
                lost[found], kept[found, None].astype(np.float32), Only(self.objective)
            )
            both = np.concatenate([again, kept[found, None]], 1)
            kept[found] = self._best(lost[found], both)[0]
        return kept
