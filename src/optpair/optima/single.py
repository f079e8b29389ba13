"""Optimal pairs (x*, f*): the argmax and max of posterior sample paths of one objective.

Each path is screened at points that fill the space and at points near the best data, and climbed
from the best of each kind. Faces of the cube and discrete coordinates are the climber's business.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optpair.cube.candidates import ANCHORS, Screening
from optpair.cube.climb import Bends, Curvature, ascend, climb
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.gp import paths as gp_paths
from optpair.gp.paths import Paths
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float, Int, Num
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work

GROUPS, PLANE_GROUPS = 4, 2  # places of each kind that a path is climbed from; fewer up to 2-D
ROUGHLY = 0.5  # of a climb's steps are made in single precision, from all of those places
NEARLY = 3e-5  # of √a: what is left to win where they end
ENDING, ENDING_RADIUS = 16, 1e-2  # steps in double precision, and the first one's size
FINALLY = 1e-7  # of a value: what is left where those end
HEIGHT = 2.0  # of a path's maximum over its mean, in √a: paths are taken to bend as they do there


@dataclass(frozen=True)
class PathRows:
    """Sample paths as a landscape: `each` consecutive rows belong to one path."""

    paths: Paths
    each: int

    def values(
        self, X: Num[np.ndarray, "r D"], rows: Int[np.ndarray, " r"]
    ) -> Num[np.ndarray, " r"]:
        """Values of the rows' own paths."""
        return self.slopes(X, rows)[0]

    def slopes(
        self, X: Num[np.ndarray, "r D"], rows: Int[np.ndarray, " r"]
    ) -> tuple[Num[np.ndarray, " r"], Num[np.ndarray, "r D"]]:
        """Values and slopes."""
        ((values, slopes),) = own_slopes((self.paths,), X, rows // self.each)
        return values, slopes


def own_slopes(
    outcomes: tuple[Paths, ...], X: Num[np.ndarray, "r D"], owner: Int[np.ndarray, " r"]
) -> list[tuple[Num[np.ndarray, " r"], Num[np.ndarray, "r D"]]]:
    """Values and slopes of each outcome, row by row of the path m·P + p that is its owner.

    Owners ascend; sets with fewer rows than others are filled up with rows of theirs.
    """
    M, P = outcomes[0].shape
    of_set, path = owner // P, owner % P
    counts = np.bincount(of_set, minlength=M)
    most = int(counts.max())
    if np.all(counts == most):
        own, path = X.reshape(M, most, -1), path.reshape(M, most)
        each = [paths.own(own, path) for paths in outcomes]
        return [(values.reshape(-1), slopes.reshape(X.shape)) for values, slopes in each]
    some = np.flatnonzero(counts)
    first = np.cumsum(counts) - counts
    place = first[some, None] + np.arange(most) % counts[some, None]
    own, path = X[place], path[place]
    there = np.arange(most) < counts[some, None]
    found = []
    for every in outcomes:
        paths = every if len(some) == M else every.of_sets(some)
        values, slopes = paths.own(own, path)
        found.append((values[there], slopes[there]))
    return found


def _leaders(paths: Paths, sources: Sequence[Num[np.ndarray, "_ D"]]) -> Num[np.ndarray, "M P G D"]:
    """For every path, the best point of each of a few interleaved groups of every source."""
    groups = PLANE_GROUPS if sources[0].shape[1] <= 2 else GROUPS
    even = [X[: len(X) // groups * groups] for X in sources]
    values = paths.at(np.concatenate(even))
    found, begin = [], 0
    for X in even:
        own = values[..., begin : begin + len(X)].reshape(*values.shape[:2], -1, groups)
        found.append(X[np.argmax(own, 2) * groups + np.arange(groups)])
        begin += len(X)
    return np.concatenate(found, axis=2)


@dataclass(frozen=True)
class Best:
    """The goal of one objective: the largest value."""

    def optima(
        self,
        paths: tuple[Paths, ...],
        region: Region,
        screening: Screening,
        anchors: Float[np.ndarray, "A D"],
        steps: int,
    ) -> Optima:
        """The optimal pair of every path: found in single precision, ended in double."""
        (objective,) = paths
        (M, P), D = objective.shape, region.cube.dimensions
        rough = objective.single()
        sources = [X.astype(np.float32) for X in screening.points(region, anchors)]
        starts = _leaders(rough, sources)
        each = starts.shape[2]
        rows = PathRows(rough, each)
        first = math.ceil(ROUGHLY * steps)
        up = climb(
            rows,
            starts.reshape(-1, D),
            region,
            first,
            enough=NEARLY,
            bends=bends(rough, np.repeat(np.arange(M * P), each)),
            rivals=each,
        )
        winner = np.argmax(up.value.reshape(-1, each), -1) + each * np.arange(M * P)
        known = _rescaled(up.curvature, winner, np.repeat(objective.covariance.outputscale, P))
        end = ascend(
            PathRows(objective, 1),
            region.clip(region.snap(up.x[winner].astype(np.float64))),
            region,
            region.cube.continuous,
            ENDING,
            enough=FINALLY,
            radius=ENDING_RADIUS,
            known=known,
        )
        return Optima.pairs(end.x.reshape(M, P, D), end.value.reshape(M, P))


def bends(paths: Paths, owner: Int[np.ndarray, " r"]) -> Bends:
    """How paths in units of √a are expected to bend near their maxima, row by row.

    A Gaussian process that is h above its mean bends by −h ℓ⁻² var(ℓ f′)/a on average. So the
    parameters' length scales are known to climbs from their first step on.
    """
    covariance, of_set = paths.covariance, owner // paths.shape[1]
    variance = covariance.jet_variance(1)
    slopes = np.diagonal(variance, axis1=1, axis2=2)[:, 1:] / variance[:, :1, 0]
    inverse = covariance.scale**2 / (HEIGHT * slopes)
    return Bends(inverse[of_set], sized=True)


def _rescaled(
    curvature: Curvature, chosen: Int[np.ndarray, " r"], outputscale: Float[np.ndarray, " r"]
) -> Curvature:
    """What was learnt of some paths in units of √a, in the paths' own."""
    inverse = curvature.inverse[chosen].astype(np.float64)
    return Curvature(inverse / np.sqrt(outputscale)[:, None, None], curvature.fresh[chosen])


@engine_work
def sample(
    posterior: Posterior,
    count: int,
    seed: int = 0,
    *,
    cube: Cube | None = None,
    features: int = 1024,
    candidates: int = 2048,
    steps: int = 30,
) -> Optima:
    """Draw `count` optimal pairs under each hyperparameter set.

    Args:
        posterior: what is known of the objective.
        count: pairs per set, P.
        seed: the same seed gives the same pairs.
        cube: its legal points are where the paths live; [0, 1]^d by default.
        features: random features of a path's prior part.
        candidates: space-filling points at which each path is screened.
        steps: steps of a climb.

    Examples:
        >>> from optpair import gp
        >>> hypers = gp.Hyperparameters([[0.3]], [1.0], [1e-4], [0.0])
        >>> stars = sample(gp.condition(hypers, [[0.2], [0.5]], [0.0, 2.0]), 4)
        >>> stars.star.shape, stars.best.shape, bool((stars.best > 1.9).all())
        ((1, 4, 1), (1, 4), True)
    """
    for name, given, least in (("count", count, 1), ("candidates", candidates, GROUPS)):
        if given < least:
            raise ValueError(f"{name} must be at least {least}, not {given}")
    cube = Cube.box(posterior.dimensions) if cube is None else cube
    stream = Stream.of(seed)
    draws = gp_paths.Draws.of(stream.child(0), posterior, paths=count, features=features)
    screening = Screening.of(stream.child(1), cube, candidates)
    paths = gp_paths.draw(draws, posterior)
    anchors = cube.made_legal(posterior.best_data(ANCHORS))
    return Best().optima((paths,), Region.whole(cube), screening, anchors, steps)
