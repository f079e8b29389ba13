"""Pareto sets of joint paths: points at which no objective can grow unless another one falls.

Each of R weights w has a scalarisation, a smooth form of Chebyshev's,

    −(1/t) log Σ_o exp(−t w_o (f_o − u_o)),    u_o the best value of f_o on the screened front

with objectives in units of that front's extent. It grows with every objective, so that its maximum
is a Pareto point, and as it is nearly min_o w_o (f_o − u_o) it reaches dents of the front as well.
Points are screened, climbs start from the best for each weight, and what is dominated is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optpair.cube.candidates import Screening
from optpair.cube.climb import climb
from optpair.cube.region import Region
from optpair.gp.paths import Paths
from optpair.optima.base import Optima, Wanted
from optpair.optima.joint import (
    JointRows,
    Limited,
    Limits,
    Rows,
    corrected,
    exactly,
    feasible,
    screened,
    units,
)
from optpair.optima.single import NEARLY, ROUGHLY, bends
from optpair.runtime.shapes import Bool, Float, Num

POINTS = 8  # of a Pareto set
SHARP = 16.0  # t
LEAST = 0.02  # of the largest weight: no objective counts for nothing
PENALTY = 30.0  # ρ of the limits
ALIKE = 1e-3  # of the front's extent: two points that are one


@dataclass(frozen=True)
class Pareto:
    """The goal of several objectives: a set of points, none of which another one beats."""

    wanted: Wanted
    points: int = POINTS
    """R, how many points there are per set, at most."""

    def optima(
        self,
        paths: tuple[Paths, ...],
        region: Region,
        screening: Screening,
        anchors: Float[np.ndarray, "A D"],
        steps: int,
    ) -> Optima:
        """The Pareto set of each joint path; without feasible points, the least violated one."""
        (M, P), D, R = paths[0].shape, region.cube.dimensions, self.points
        limits = Limits.of(self.wanted, paths)
        X = [x.astype(np.float32) for x in screening.points(region, anchors)]
        values, points = screened(paths, X), np.concatenate(X)
        out = limits.violation(values, np.arange(M)[:, None, None])
        objectives = self.wanted.objectives
        score = Chebyshev.of(values, out, objectives, weights(len(objectives), R))
        starts = points[score.leaders(values, out)].reshape(-1, D)
        rough = JointRows.rough(paths, np.repeat(np.arange(M * P), R))
        landscape = Limited(rough, score, limits, PENALTY)
        shape = bends(rough.paths[objectives[0]], rough.owner)
        up = climb(
            landscape, starts, region, math.ceil(ROUGHLY * steps), enough=NEARLY, bends=shape
        )
        x = region.clip(region.cube.snap(up.x.astype(np.float64)))
        if limits.sides:
            x = corrected(JointRows.exact(paths, rough.owner), limits, x, region)
        x = x.reshape(M, P, R, D)
        f = exactly(paths, x)
        there, _ = feasible(limits, paths, f)
        if not there.all():  # the screened points take over that are feasible as they stand
            safe = points[score.leaders(values, 1e6 * out)].reshape(M, P, R, D)
            x = np.where(there[..., None], x, safe.astype(np.float64))
            f = exactly(paths, x)
            there, _ = feasible(limits, paths, f)
        extent = score.extent.reshape(M, P, R, -1) * units(paths)[1][:, None, None, objectives]
        kept = undominated(f[..., objectives] / extent, there, ALIKE)
        return Optima(x, f, kept, np.zeros((M, P)))


def weights(objectives: int, count: int) -> Float[np.ndarray, "R K"]:
    """Weights that spread evenly over the simplex, its corners first; the largest is 1."""
    found = np.eye(objectives)
    if count > objectives:
        found = np.concatenate([found, _inner(objectives, count - objectives)])
    found = np.maximum(found[:count], LEAST)
    return np.asarray(found / found.max(1, keepdims=True))


def _inner(objectives: int, count: int) -> Float[np.ndarray, "r K"]:
    """Inside the simplex: equal steps of two objectives, a low-discrepancy sequence of more."""
    if objectives == 2:
        share = np.arange(1, count + 1) / (count + 1)
        return np.stack([share, 1 - share], 1)
    # A Kronecker sequence by the generalised golden ratio, sorted: spacings are the weights.
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / objectives)
    steps = ratio ** -np.arange(1.0, objectives)
    u = np.sort((0.5 + np.arange(1, count + 1)[:, None] * steps) % 1, 1)
    edges = np.pad(u, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
    return np.diff(edges, axis=1)


@dataclass(frozen=True)
class Chebyshev:
    """Smooth Chebyshev scalarisations: row i has the (i mod R)-th weight."""

    objectives: tuple[int, ...]
    best: Num[np.ndarray, "r K"]
    """u of each row, in units of √a."""
    extent: Num[np.ndarray, "r K"]
    weights: Num[np.ndarray, "r K"]

    @classmethod
    def of(
        cls,
        values: Num[np.ndarray, "O M P N"],
        out: Num[np.ndarray, "M P N"],
        objectives: tuple[int, ...],
        given: Float[np.ndarray, "R K"],
    ) -> Chebyshev:
        """In units of the screened fronts: of feasible points or, without any, of all."""
        of = values[list(objectives)]
        allowed = (out <= 0) | (out > 0).all(-1, keepdims=True)
        inside = np.where(allowed, of, -np.inf)
        best = inside.max(-1)  # (K, M, P)
        # Where one objective is best, the others are at their worst on the front, or nearly.
        corner = np.argmax(inside, -1)
        at_corner = np.take_along_axis(of[:, None], corner[None, ..., None], -1)[..., 0]
        extent = np.maximum(best - at_corner.min(1), 1e-3)
        R = len(given)
        rows = [np.repeat(a.reshape(len(objectives), -1).T, R, 0) for a in (best, extent)]
        tiled = np.tile(given, (len(rows[0]) // R, 1)).astype(of.dtype)
        return cls(objectives, rows[0], rows[1], tiled)

    def __call__(
        self, values: Num[np.ndarray, "O r"], rows: Rows
    ) -> tuple[Num[np.ndarray, " r"], Num[np.ndarray, "O r"]]:
        """The scalarisation, and its derivatives by the outcomes."""
        of = values[list(self.objectives)].T
        steep = (SHARP * self.weights[rows] / self.extent[rows]).astype(of.dtype)
        each = steep * (of - self.best[rows].astype(of.dtype))
        least = each.min(1)
        share = np.exp(least[:, None] - each)
        total = share.sum(1)
        by_values = np.zeros_like(values)
        by_values[list(self.objectives)] = (steep * share / total[:, None]).T / SHARP
        return (least - np.log(total)) / SHARP, by_values

    def leaders(
        self, values: Num[np.ndarray, "O M P N"], out: Num[np.ndarray, "M P N"]
    ) -> Num[np.ndarray, " r"]:
        """The screened point that each row's min_o w_o (f_o − u_o), less violations, likes best."""
        _, M, P, N = values.shape
        R = len(self.weights) // (M * P)
        found = np.empty((R, M, P), dtype=int)
        for i in range(R):
            worst = np.full((M, P, N), np.inf, values.dtype)
            for k, o in enumerate(self.objectives):
                own = (a[i::R, k].reshape(M, P, 1) for a in (self.best, self.extent, self.weights))
                best, extent, weight = own
                np.minimum(worst, (values[o] - best) * (weight / extent), out=worst)
            found[i] = np.argmax(worst - out, -1)
        return np.moveaxis(found, 0, -1).reshape(-1)


def undominated(
    f: Float[np.ndarray, "*paths R K"], there: Bool[np.ndarray, "*paths R"], alike: float = 0.0
) -> Bool[np.ndarray, "*paths R"]:
    """Which points no other one of the set beats, or equals (up to `alike`) and comes before."""
    mine, other = f[..., :, None, :], f[..., None, :, :]
    no_worse = (other >= mine).all(-1)
    first = np.tri(f.shape[-2], k=-1, dtype=bool)
    same = (np.abs(other - mine) <= alike).all(-1)
    beaten = (no_worse & ((other > mine).any(-1) | first)) | (same & first)
    return np.asarray(there & ~(beaten & there[..., None, :]).any(-1))
