"""Joint sample paths as landscapes: a score of the objectives, and limits on the constraints.

Everything is in units of √a of each outcome, from its mean, so that one outcome's violation weighs
as much as another's. With g the gaps beyond the limits (positive where one is violated), what is
climbed is score(f) − ½ ρ Σ max(0, g)².
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from optpair.cube.region import Region
from optpair.gp.paths import Paths
from optpair.optima.base import Wanted
from optpair.optima.single import own_slopes
from optpair.runtime.shapes import Bool, Float, Int, Num

FEASIBLE = 1e-6  # of √a: a violation up to which a point counts as feasible
INSIDE = 1e-7  # of √a: how far within its limit a violated constraint is put
CORRECTIONS = 4  # Newton steps onto the limits,
FURTHEST = 0.1  # none of which goes further than that

Rows = Int[np.ndarray, " r"]
Outcomes = tuple[Num[np.ndarray, "O r"], list[Num[np.ndarray, "r D"]]]
"""Outcomes of rows at their points, and their slopes."""


@dataclass(frozen=True)
class JointRows:
    """Joint paths at points of their own: row i belongs to path `owner[i]` = m·P + p, ascending."""

    paths: tuple[Paths, ...]
    owner: Rows
    level: Float[np.ndarray, "M O"] | None = None
    size: Float[np.ndarray, "M O"] | None = None

    @classmethod
    def rough(cls, paths: tuple[Paths, ...], owner: Rows) -> JointRows:
        """In single precision, which is in these units already."""
        return cls(tuple(p.single() for p in paths), owner)

    @classmethod
    def exact(cls, paths: tuple[Paths, ...], owner: Rows) -> JointRows:
        """In double precision."""
        return cls(paths, owner, *units(paths))

    def at(self, X: Num[np.ndarray, "r D"], rows: Rows) -> Outcomes:
        """Outcomes of the rows at their points, and their slopes."""
        owner = self.owner[rows]
        of_set = owner // self.paths[0].shape[1]
        values, slopes = [], []
        for o, (value, slope) in enumerate(own_slopes(self.paths, X, owner)):
            if self.level is not None and self.size is not None:
                size = self.size[of_set, o]
                values.append((value - self.level[of_set, o]) / size)
                slopes.append(slope / size[:, None])
            else:
                values.append(value)
                slopes.append(slope)
        return np.stack(values), slopes


def units(paths: tuple[Paths, ...]) -> tuple[Float[np.ndarray, "M O"], Float[np.ndarray, "M O"]]:
    """The mean and √a of each set and outcome."""
    level = np.stack([p.mean for p in paths], 1)
    size = np.sqrt(np.stack([p.covariance.outputscale for p in paths], 1))
    return level, size


@dataclass(frozen=True)
class Limits:
    """Limits of each set, in units of √a from the mean: side −1 is the least, +1 the most."""

    sides: tuple[tuple[int, float, Float[np.ndarray, " M"]], ...]
    """The outcome, the side and the limit; where there is no limit there is no entry."""

    @classmethod
    def of(cls, wanted: Wanted, paths: tuple[Paths, ...]) -> Limits:
        """What is wanted, set by set."""
        level, size = units(paths)
        ends = [(o, -1.0, wanted.low[o]) for o in range(len(paths))]
        ends += [(o, 1.0, wanted.high[o]) for o in range(len(paths))]
        return cls(
            tuple(
                (o, side, (end - level[:, o]) / size[:, o])
                for o, side, end in ends
                if np.isfinite(end)
            )
        )

    def gaps(self, values: np.ndarray, of_set: np.ndarray) -> Iterator[np.ndarray]:
        """By how much values are beyond each limit; negative within."""
        for o, side, end in self.sides:
            ends = end.astype(values.dtype)[of_set]
            yield values[o] - ends if side > 0 else ends - values[o]

    def violation(self, values: np.ndarray, of_set: np.ndarray) -> np.ndarray:
        """Σ over limits of how far a value is beyond it."""
        total = np.zeros(values.shape[1:], values.dtype)
        for gap in self.gaps(values, of_set):
            total += np.maximum(gap, 0)
        return total


@runtime_checkable
class Score(Protocol):
    """What the objectives are worth: larger is better."""

    def __call__(
        self, values: Num[np.ndarray, "O r"], rows: Rows
    ) -> tuple[Num[np.ndarray, " r"], Num[np.ndarray, "O r"]]:
        """Scores of rows, and their derivatives by the outcomes."""
        ...


@dataclass(frozen=True)
class Only:
    """The score of one objective is its value; with share 0 nothing but the limits counts."""

    column: int
    share: float = 1.0

    def __call__(
        self, values: Num[np.ndarray, "O r"], rows: Rows
    ) -> tuple[Num[np.ndarray, " r"], Num[np.ndarray, "O r"]]:
        """The objective."""
        by_values = np.zeros_like(values)
        by_values[self.column] = self.share
        return self.share * values[self.column], by_values


class Parts(NamedTuple):
    """What a landscape under limits is made of, row by row."""

    value: Num[np.ndarray, " r"]
    """The score."""
    slope: Num[np.ndarray, "r D"]
    gaps: Num[np.ndarray, "r m"]
    """By how much each limit is violated; negative where it is met."""
    normals: Num[np.ndarray, "r m D"]
    """The slopes of the gaps."""


@dataclass(frozen=True)
class Limited:
    """Joint paths as a landscape: a score, less a quadratic penalty beyond the limits."""

    joint: JointRows
    score: Score
    limits: Limits
    weight: float

    def parts(self, X: Num[np.ndarray, "r D"], rows: Rows) -> Parts:
        """The score and the gaps, with their slopes."""
        return self.of(self.joint.at(X, rows), rows)

    def of(self, outcomes: Outcomes, rows: Rows) -> Parts:
        """The score and the gaps where the outcomes are these."""
        values, slopes = outcomes
        score, by_outcomes = self.score(values, rows)
        slope = by_outcomes[0][:, None] * slopes[0]
        for by_outcome, own in zip(by_outcomes[1:], slopes[1:], strict=True):
            slope += by_outcome[:, None] * own
        of_set = self.joint.owner[rows] // self.joint.paths[0].shape[1]
        sides = self.limits.sides
        gaps = np.empty((len(rows), len(sides)), values.dtype)
        normals = np.empty((*gaps.shape, slope.shape[1]), slope.dtype)
        for i, ((o, side, _), gap) in enumerate(
            zip(sides, self.limits.gaps(values, of_set), strict=True)
        ):
            gaps[:, i], normals[:, i] = gap, side * slopes[o]
        return Parts(score, slope, gaps, normals)

    def values(self, X: Num[np.ndarray, "r D"], rows: Rows) -> Num[np.ndarray, " r"]:
        """The score less the penalty."""
        return self.slopes(X, rows)[0]

    def slopes(
        self, X: Num[np.ndarray, "r D"], rows: Rows
    ) -> tuple[Num[np.ndarray, " r"], Num[np.ndarray, "r D"]]:
        """The score less the penalty, and its derivatives."""
        value, slope, gaps, normals = self.parts(X, rows)
        beyond = np.maximum(gaps, 0)
        value = value - 0.5 * self.weight * np.vecdot(beyond, beyond)
        return value, slope - self.weight * np.vecmat(beyond, normals)


def corrected(
    joint: JointRows,
    limits: Limits,
    X: Float[np.ndarray, "r D"],
    region: Region,
    active: Bool[np.ndarray, "r m"] | None = None,
    there: Outcomes | None = None,
) -> Float[np.ndarray, "r D"]:
    """The points moved onto the limits they violate, along the slopes of those constraints.

    Where some are `active` also onto those of them that they fall short of. `there` is `joint.at`
    of the points, where it is known.

    Newton steps of least length in the free columns; a column that would leave the region is held.
    Where they do not arrive, nothing is moved.
    """
    before, X = X, X.copy()
    free = region.cube.continuous & region.open
    todo = np.arange(len(X))
    for turn in range(CORRECTIONS + 1):
        values, slopes = there if turn == 0 and there else joint.at(X[todo], todo)
        change, out = np.zeros((len(todo), len(values))), np.zeros(len(todo), dtype=bool)
        of_set = joint.owner[todo] // joint.paths[0].shape[1]
        for i, gap in enumerate(limits.gaps(values, of_set)):
            o, side, _ = limits.sides[i]
            kept = np.zeros(len(todo), dtype=bool) if active is None else active[todo, i]
            beyond = gap > 0.5 * FEASIBLE
            out |= beyond | (kept & (gap < -FEASIBLE) & (turn < CORRECTIONS))
            change[:, o] -= side * np.where(beyond | kept, gap + INSIDE, 0.0)
        todo, change = todo[out], change[out]
        if len(todo) == 0 or turn == CORRECTIONS:
            break
        x = X[todo]
        J = np.stack([slope[out] for slope in slopes], 1) * (change != 0)[..., None] * free
        J *= region.cube.awake(x)[:, None]
        step = _shortest(J, change)
        held = ((x <= region.low) & (step < 0)) | ((x >= region.high) & (step > 0))
        step = _shortest(J * ~held[:, None], change)
        longest = np.max(np.abs(step), 1, keepdims=True)
        step *= np.minimum(1, FURTHEST / np.maximum(longest, FURTHEST))
        X[todo] = region.clip(x + step)
    X[todo] = before[todo]
    return X


def _shortest(
    J: Float[np.ndarray, "r O D"], change: Float[np.ndarray, "r O"]
) -> Float[np.ndarray, "r D"]:
    """The shortest step that changes outcomes by so much: Jᵀ (JJᵀ)⁻¹ change."""
    gram = J @ J.mT
    index = np.arange(J.shape[1])
    largest = gram[:, index, index].max(1, initial=0.0)
    gram[:, index, index] += np.maximum(1e-12 * largest, 1e-12)[:, None]
    return np.asarray(np.matvec(J.mT, np.linalg.solve(gram, change[..., None])[..., 0]))


def screened(
    paths: tuple[Paths, ...], sources: Sequence[Num[np.ndarray, "_ D"]]
) -> Num[np.ndarray, "O M P N"]:
    """All joint paths at the points of all sources, in single precision and units of √a."""
    X = np.concatenate(list(sources))
    return np.stack([p.single().at(X) for p in paths])


def best_of(score: Num[np.ndarray, "*paths N"], count: int) -> Int[np.ndarray, "*paths count"]:
    """The best point of each of `count` interleaved groups of each path's."""
    even = score[..., : score.shape[-1] // count * count]
    grouped = even.reshape(*score.shape[:-1], -1, count)
    return np.asarray(np.argmax(grouped, -2) * count + np.arange(count))


def exactly(
    paths: tuple[Paths, ...], x: Float[np.ndarray, "M P R D"]
) -> Float[np.ndarray, "M P R O"]:
    """All outcomes at points of each path, in the paths' own units."""
    M, P, R, D = x.shape
    own = np.broadcast_to(np.repeat(np.arange(P), R), (M, P * R))
    values = [p.own(x.reshape(M, P * R, D), own)[0] for p in paths]
    return np.stack(values, -1).reshape(M, P, R, len(paths))


def feasible(
    limits: Limits, paths: tuple[Paths, ...], f: Float[np.ndarray, "M P R O"]
) -> tuple[Bool[np.ndarray, "M P R"], Float[np.ndarray, "M P R"]]:
    """Whether outcomes of joint paths are within the limits, and how far they are out."""
    level, size = units(paths)
    scaled = np.moveaxis((f - level[:, None, None]) / size[:, None, None], -1, 0)
    of_set = np.broadcast_to(np.arange(f.shape[0])[:, None, None], f.shape[:3])
    out = limits.violation(scaled, of_set)
    return out <= FEASIBLE, out
