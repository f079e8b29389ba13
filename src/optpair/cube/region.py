"""Regions: the part of the cube in which one may look.

Everything that searches asks a region, and nothing else, where it may go: for points that fill it
(`fill`), points near others (`near`, `snap`, `neighbours`), and steps of a climb (`hold`, `step`,
`allows`). In a box that is immediate. Within linear limits, points move along the faces; where a
function decides, steps that it does not allow are refused. A table has only its rows and nothing
between them: they are listed, and nothing is climbed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from optpair.cube.cube import Cube, Moves
from optpair.cube.faces import Held, hold, restore, slide
from optpair.cube.hull import POOL, Hull
from optpair.cube.lattice import lattice
from optpair.cube.levels import Levels
from optpair.problem.linear import Rows
from optpair.runtime.shapes import Bool, Float, Int, Num

Points = Num[np.ndarray, "*points D"]
Allowed = Callable[[Float[np.ndarray, "n D"]], Bool[np.ndarray, " n"]]

CLOSE, CLOSE_SINGLE = 1e-9, 1e-6  # of the cube: a climb so near a face is at it
SAMPLE = 2**14  # points at which a function is asked before its region is taken to be empty
FEW = 8  # points that rounding should find; where there are fewer, others are looked for
TRIES = 8  # other points that are tried in place of one that is not allowed


@dataclass(frozen=True, eq=False)
class Region:
    """The legal points of a cube between `low` and `high`; where the two are equal, fixed there.

    With `rows` they are within these linear limits as well, and with `allowed` only those that a
    function allows.
    """

    cube: Cube
    low: Num[np.ndarray, " D"]
    high: Num[np.ndarray, " D"]
    rows: Rows | None = None
    allowed: Allowed | None = None
    table: Float[np.ndarray, "N D"] | None = None
    """The only points, where these are the rows of a table."""
    once: bool = False
    """Whether each of them is asked for at most once."""

    @classmethod
    def whole(cls, cube: Cube) -> Region:
        """The whole cube."""
        return cls(cube, np.zeros(cube.dimensions), np.ones(cube.dimensions))

    def fixed(self, values: Mapping[int, float]) -> Region:
        """The part of it in which some columns hold given values."""
        low, high = self.low.copy(), self.high.copy()
        columns = list(values)
        low[columns] = high[columns] = list(values.values())
        return replace(self, low=low, high=high)

    def matches(self, X: Num[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        """Which points hold the values of all fixed columns, legal or not."""
        return np.all((np.abs(X - self.low) <= CLOSE) | ~self.held, axis=1)

    @property
    def held(self) -> Bool[np.ndarray, " D"]:
        """The columns that are fixed."""
        return self.low == self.high

    @property
    def narrowed(self) -> bool:
        """Whether columns in which one may move have less room than the cube."""
        return bool(np.any(self.open & (self.high - self.low < 1.0)))

    @property
    def open(self) -> Bool[np.ndarray, " D"]:
        """The columns in which one may move."""
        return (self.low < self.high) & (self.table is None)

    @property
    def is_box(self) -> bool:
        """Whether the bounds are all there is."""
        return self.rows is None and self.allowed is None and self.table is None

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree  # a search without a table starts sooner

        assert self.table is not None
        return cKDTree(self.table)

    @cached_property
    def _order(self) -> Int[np.ndarray, " N"]:
        """The rows of the table so that neighbours in this order are close: halves of halves."""
        assert self.table is not None
        return np.asarray(self._tree.indices)

    def listed(self, most: int | None = None) -> Float[np.ndarray, "N D"] | None:
        """All points, where they are the rows of a table and no more than `most`."""
        few = self.table is not None and (most is None or len(self.table) <= most)
        return self.table if few else None

    def left(self, X: Num[np.ndarray, "n D"]) -> int:
        """How many rows of the table are not among these points."""
        return int(np.count_nonzero(self._left(X)))

    def _left(self, X: Num[np.ndarray, "n D"]) -> Bool[np.ndarray, " N"]:
        assert self.table is not None
        left = np.ones(len(self.table), dtype=bool)
        far, row = self._tree.query(X.reshape(-1, self.cube.dimensions), p=np.inf)
        left[row[far <= CLOSE]] = False
        return left

    def without(self, X: Num[np.ndarray, "n D"]) -> Region:
        """The region without points that are not to be asked for again, where it is a table.

        Where nothing is left it stays as it is, unless each row is asked for once.

        Raises:
            ValueError: if nothing is left, and each row is asked for at most once.
        """
        if self.table is None or len(X) == 0:
            return self
        left = self._left(X)
        if left.any():
            return replace(self, table=self.table[left])
        if self.once:
            raise ValueError(
                f"all {len(self.table)} rows have been tried, and repeat=False: there is nothing "
                "left to ask for; tell or cancel what is out, and see recommend()"
            )
        return self

    @cached_property
    def coupled(self) -> Int[np.ndarray, " C"]:
        """The columns that occur in linear limits."""
        none = np.zeros(0, dtype=int)
        return none if self.rows is None else np.flatnonzero(self.rows.A.any(0))

    @cached_property
    def _coupled(self) -> Bool[np.ndarray, " D"]:
        mask = np.zeros(self.cube.dimensions, dtype=bool)
        mask[self.coupled] = True
        return mask

    @cached_property
    def _inner(self) -> Rows:
        """The linear limits in the coupled columns, all normals of length 1."""
        assert self.rows is not None
        A = self.rows.A[:, self.coupled]
        length = np.sqrt(np.sum(A**2, axis=1))
        return Rows(A / length[:, None], self.rows.b / length, self.rows.equal)

    @cached_property
    def _hull(self) -> Hull:
        columns = self.coupled
        return Hull.of(self._inner, self.low[columns], self.high[columns])

    @cached_property
    def _levels(self) -> Levels:
        assert self.rows is not None
        return Levels.of(self.rows, self.cube.layout, self.low, self.high)

    def clip(self, X: Points) -> Points:
        """The nearest points between the bounds."""
        return np.asarray(np.clip(X, self.low.astype(X.dtype), self.high.astype(X.dtype)))

    def legal(self, X: Num[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        """Which points may be suggested; data may be anywhere."""
        if self.table is not None:
            return np.asarray(self._tree.query(X, p=np.inf)[0] <= CLOSE)
        found = self.cube.is_legal(X)
        found &= np.all((self.low - CLOSE <= X) & (self.high + CLOSE >= X), axis=1)
        if self.rows is not None:
            found &= self._within(X)
        if self.allowed is not None and found.any():
            found[found] = self.allowed(np.asarray(X[found], dtype=np.float64))
        return found

    def made_legal(self, X: Num[np.ndarray, "n D"]) -> Num[np.ndarray, "n D"]:
        """Points that are legal as they are, and a legal point near each other one."""
        legal = self.legal(X)
        return X if legal.all() else np.where(legal[:, None], X, self.snap(X))

    def allows(self, X: Num[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        """Which points a step may end at, by the limits that `step` does not keep by itself."""
        if self.allowed is None or len(X) == 0:
            return np.ones(len(X), dtype=bool)
        return self.allowed(np.asarray(X, dtype=np.float64))

    def _within(self, X: Num[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        assert self.rows is not None
        over = X @ self.rows.A.T - self.rows.b
        return np.all(np.where(self.rows.equal, np.abs(over), over) <= self._levels.met, axis=1)

    def fill(self, U: Num[np.ndarray, "N d"], first: int = 0) -> Float[np.ndarray, "N D"]:
        """Points that fill the region, from points of [0,1]^d, one column per parameter.

        `first` is the number of the first of them, where they are some of many.
        """
        if self.table is not None:
            count = len(self.table)
            share = np.minimum((U[:, 0] * count).astype(int), count - 1)
            return self.table[self._order[share]]
        X = self._filled(U, first)
        if self.allowed is None:
            return X
        bad = np.flatnonzero(~self.allowed(X))
        for turn in range(1, TRIES + 1):
            if len(bad) == 0:
                return X
            shift = lattice(U.shape[1], TRIES + 1)[turn]
            X[bad] = self._filled((U[bad] + shift) % 1.0, first + turn)
            bad = bad[~self.allowed(X[bad])]
        X[bad] = self._known[(first + bad) % len(self._known)]
        return X

    def _filled(self, U: Num[np.ndarray, "N d"], first: int) -> Float[np.ndarray, "N D"]:
        """Within the bounds and linear limits; continuous columns fill the room between bounds."""
        X = self.cube.spread(U)
        X = self.clip(np.where(self.cube.continuous, self.low + (self.high - self.low) * X, X))
        if self.rows is None:
            return X
        owner = np.array(self.cube.layout.owner)[self.coupled]
        X[:, self.coupled] = self._hull.points(U[:, owner], first)
        return self._settled(X, self._pool[(first + np.arange(len(X))) % len(self._pool)])

    @cached_property
    def _pool(self) -> Float[np.ndarray, "P D"]:
        """Points within the linear limits, for when there is none near another point."""
        X = self.cube.spread(lattice(self.cube.parameters, POOL))
        X[:, self.coupled] = self._hull.points(np.zeros((POOL, 0)))
        X = self._rounded(self.clip(X))
        X = X[self._within(X)]
        if len(X) < FEW and not self._levels.none:
            more = self._rounded(self.clip(self._levels.solved()))
            X = np.concatenate([X, more[self._within(more)]])
        return X

    @cached_property
    def _known(self) -> Float[np.ndarray, "P D"]:
        """Points of a large sample that are allowed."""
        X = self._filled(lattice(self.cube.parameters, SAMPLE), 0)
        return X[self.allows(X)]

    def check(self) -> None:
        """An error where no point is found in the region."""
        if self.rows is not None and not self._levels.none and len(self._pool) == 0:
            raise ValueError(
                "where: no legal values were found within the linear limits, though some may "
                "exist; use fewer levels, or a Float without steps"
            )
        if self.allowed is not None and len(self._known) == 0:
            raise ValueError(
                f"where's function allows none of {SAMPLE} points all over the space: check it, or "
                "narrow the ranges around what it allows; limits that are linear, like "
                "'a + b == 1', are better written as texts"
            )

    def snap(
        self, X: Num[np.ndarray, "n D"], start: Num[np.ndarray, "n D"] | None = None
    ) -> Num[np.ndarray, "n D"]:
        """Legal points near others; where there are none, those of `start`, which are legal."""
        if self.is_box:
            return self.clip(self.cube.snap(X))
        if self.table is not None:
            return self.table[self._tree.query(X)[1]]
        found = self._settled(X.astype(np.float64), start)
        bad = ~self.allows(found)
        if bad.any():
            found[bad] = self._nearest(X[bad]) if start is None else start[bad]
        return found

    def _nearest(self, X: Num[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
        pool = self._pool if self.allowed is None else self._known
        return _closest(X, pool)

    def _settled(
        self, X: Float[np.ndarray, "n D"], start: Num[np.ndarray, "n D"] | None
    ) -> Float[np.ndarray, "n D"]:
        """Points within the linear limits near others, or those of `start`, or known ones."""
        found = self._rounded(self.clip(X))
        if self.rows is None:
            return found
        bad = np.flatnonzero(~self._within(found))
        if len(bad) == 0:
            return found
        begin = _closest(X[bad], self._pool) if start is None else start[bad].astype(np.float64)
        found[bad] = begin
        if self._levels.none:  # on the way there, as far as it goes
            found[bad] = self.step(begin, (X[bad] - begin)[:, self.coupled], self.coupled)
        return found

    def _rounded(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
        """Legal values in every column, in the linear limits where a few corrections do it."""
        if self.rows is None:
            return self.cube.snap(X)
        wanted = self._restored(X, np.zeros(len(self.coupled), dtype=bool))
        found = self._levels.repaired(self.cube.snap(wanted), wanted)
        return self._restored(found, ~self.cube.continuous[self.coupled])

    def _restored(
        self, X: Float[np.ndarray, "n D"], fixed: Bool[np.ndarray, " C"]
    ) -> Float[np.ndarray, "n D"]:
        """Corrected towards the linear limits in the columns of these that are not fixed."""
        columns, inner, found = self.coupled, self._inner, X.copy()
        x = X[:, columns]
        low = np.where(fixed, x, self.low[columns])
        high = np.where(fixed, x, self.high[columns])
        found[:, columns] = restore(inner.A, inner.b, inner.equal, x, low, high)
        return found

    @property
    def limited(self) -> bool:
        """Whether there are limits beside the bounds."""
        return self.rows is not None or self.allowed is not None

    def keeping(
        self, X: Float[np.ndarray, "n D"], columns: Bool[np.ndarray, " D"]
    ) -> tuple[Float[np.ndarray, "n D"], Bool[np.ndarray, " n"]]:
        """Points moved within the limits while these columns stay, and which of them are legal."""
        found = X
        if self.rows is not None:
            still = columns | ~self.cube.continuous
            found = self._restored(X, still[self.coupled])
        return found, self.legal(found)

    def anchors(self, X: Num[np.ndarray, "n D"]) -> Num[np.ndarray, "n D"]:
        """Points of the region for points that were tried: the same ones, or the nearest."""
        X = self.clip(X)
        if self.is_box:
            return X
        if self.table is not None:
            return self.snap(X)
        bad = ~self.legal(X) | np.any(np.abs(self.cube.snap(X) - X) > CLOSE, axis=1)
        if bad.any():
            X[bad] = self.snap(X[bad])
        return X

    def near(
        self, moves: Moves, X: Num[np.ndarray, "N D"], scale: float | Float[np.ndarray, " ..."]
    ) -> Num[np.ndarray, "N D"]:
        """Points near others of the region: see `Cube.perturb`."""
        moved = self.clip(self.cube.perturb(moves, X, scale))
        if self.is_box:
            return moved
        if self.table is not None:
            return self.snap(moved)
        if self.rows is not None and self._levels.none:
            columns = self.coupled
            rest = X.copy()
            rest[:, ~self._coupled] = moved[:, ~self._coupled]
            moved = self.step(rest, (moved - X)[:, columns], columns)
        elif self.rows is not None:
            moved = self._settled(moved, X)
        bad = ~self.allows(moved)
        moved[bad] = X[bad]
        return moved

    def neighbours(
        self, X: Num[np.ndarray, "n D"], most: int | None = None, turn: int = 0
    ) -> Num[np.ndarray, "n K D"]:
        """Points one discrete move away: see `Cube.neighbours`; where a move leaves, no move.

        Columns that share a limit are moved in pairs as well, so that one makes up for the other.
        Of more than `most` moves some are made at each turn, others at the next.
        """
        if self.is_box:
            return self.clip(self.cube.neighbours(X, _turn(self.cube.discrete_moves, most, turn)))
        near = self.cube.neighbours(X)
        if self.rows is not None:
            near = np.concatenate([near, self._levels.exchanged(X)], axis=1)
        near = near[:, _turn(near.shape[1], most, turn)]
        flat = self.clip(near.reshape(-1, X.shape[1]).astype(np.float64))
        here = np.repeat(X, near.shape[1], axis=0)
        if self.rows is not None:
            flat = self._restored(flat, ~self.cube.continuous[self.coupled])
        bad = ~self.legal(flat)
        flat[bad] = here[bad]
        return flat.reshape(near.shape)

    def loose(self, X: Points) -> Bool[np.ndarray, "*points D"]:
        """The columns that nothing holds: between their bounds, and not at a linear limit.

        There, in its interior, the slope of an optimum is zero.
        """
        found = (self.low + CLOSE_SINGLE < X) & (self.high - CLOSE_SINGLE > X)
        if self.rows is None:
            return found
        slack = self.rows.b - X @ self.rows.A.T
        tight = self.rows.equal | (slack <= CLOSE_SINGLE)
        return np.asarray(found & ~np.any(tight[..., :, None] & (self.rows.A != 0.0), axis=-2))

    def hold(
        self,
        x: Num[np.ndarray, "r D"],
        slope: Num[np.ndarray, "r C"],
        columns: Int[np.ndarray, " C"],
    ) -> Held:
        """What climbs at x may not move along, of the columns that are free."""
        low, high = self.low[columns].astype(x.dtype), self.high[columns].astype(x.dtype)
        here = x[:, columns]
        if self.rows is None:
            return Held(((here <= low) & (slope < 0)) | ((here >= high) & (slope > 0)))
        close = CLOSE if x.dtype == np.float64 else CLOSE_SINGLE
        inner, slack = self._inner, self._slack(x)
        A = np.zeros((len(inner.b), self.cube.dimensions))
        A[:, self.coupled] = inner.A
        return hold(A[:, columns], inner.equal, slack, here, low, high, slope, close)

    def step(
        self,
        x: Num[np.ndarray, "r D"],
        move: Num[np.ndarray, "r C"],
        columns: Int[np.ndarray, " C"],
    ) -> Num[np.ndarray, "r D"]:
        """Points moved along some columns, within bounds and linear limits."""
        after = x.copy()
        low, high = self.low[columns].astype(x.dtype), self.high[columns].astype(x.dtype)
        after[:, columns] = np.clip(x[:, columns] + move, low, high)
        if self.rows is None:
            return after
        inner = self._inner
        own = self._coupled[columns]
        both = columns[own]
        at = np.searchsorted(self.coupled, both)
        after[:, both] = slide(
            inner.A[:, at], inner.equal, self._slack(x), x[:, both], move[:, own],
            self.low[both], self.high[both],
        )  # fmt: skip
        return after

    def _slack(self, x: Num[np.ndarray, "r D"]) -> Float[np.ndarray, "r k"]:
        inner = self._inner
        return np.asarray(inner.b - x[:, self.coupled].astype(np.float64) @ inner.A.T)


def _turn(moves: int, most: int | None, turn: int) -> slice:
    """The moves that are made at a turn, at most so many."""
    every = 1 if most is None else max(-(-moves // most), 1)
    return slice(turn % every, None, every)


def _closest(X: Num[np.ndarray, "n D"], pool: Float[np.ndarray, "P D"]) -> Float[np.ndarray, "n D"]:
    """The point of a pool that is closest to each point."""
    return pool[[int(np.argmin(np.sum((pool - x) ** 2, axis=1))) for x in X]]
