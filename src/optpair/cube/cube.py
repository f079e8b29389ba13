"""The legal points of the unit cube, as arrays: snapping, spreading, neighbours, perturbations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from optpair.cube.lattice import lattice
from optpair.problem.layout import HOT, Layout
from optpair.runtime.shapes import Bool, Float, Int, Num

Points = Num[np.ndarray, "*points D"]
CLOSE = 1e-9  # two points of the cube that are the same
CHOSEN = 0.75 * HOT  # one-hot columns of a category that is chosen are above
FRESH = 8  # values that are tried of parameters that a discrete move makes active


class Moves(NamedTuple):
    """The random numbers of N perturbations: see `Cube.perturb`."""

    noise: Float[np.ndarray, "N D"]  # standard normal
    subset: Bool[np.ndarray, "N d"]  # parameters that move; about two, or 30 %
    nudge: Bool[np.ndarray, "N S"]  # stepped columns that move at least one level


@dataclass(frozen=True, eq=False)
class Cube:
    """Which points of [0,1]^D stand for something the user can run."""

    layout: Layout

    @classmethod
    def box(cls, d: int) -> Cube:
        """The continuous cube [0,1]^d."""
        return cls(Layout.box(d))

    @property
    def dimensions(self) -> int:
        """The number of columns, D."""
        return self.layout.dimensions

    @property
    def parameters(self) -> int:
        """The number of parameters, d."""
        return self.layout.parameters

    @property
    def continuous(self) -> Bool[np.ndarray, " D"]:
        """Which columns may take any value in [0,1]."""
        return self.layout.continuous

    def snap(self, X: Points) -> Points:
        """The nearest legal point.

        Stepped columns are rounded in the user's units rather than on the log scale (uneven ones
        to the nearest place), and in a one-hot group the largest entry wins, the first on ties.
        """
        legal = self._with_levels(np.clip(X, 0.0, 1.0), self._level(X))
        for start, stop in self.layout.groups:
            _choose(legal, start, stop, np.argmax(X[..., start:stop], axis=-1))
        return self.settled(legal)

    def awake(self, X: Points) -> Bool[np.ndarray, "*points D"]:
        """Which columns belong to parameters that are active there."""
        layout = self.layout
        active = np.ones((*X.shape[:-1], self.parameters), dtype=bool)
        for child, parent, column, levels in layout.conditions:
            if layout.numeric[column]:
                met = np.isin(self._level(X)[..., layout.stepped.index(column)], levels)
            else:
                met = np.any(X[..., [column + level for level in levels]] > CHOSEN, axis=-1)
            active[..., child] &= met & active[..., parent]
        return active[..., np.array(layout.owner, dtype=int)]

    def settled(self, X: Points) -> Points:
        """The same points, with inactive parameters in the one place that is theirs."""
        if not self.layout.conditions:
            return X
        return np.where(self.awake(X), X, self.layout.asleep.astype(X.dtype))

    def woken(
        self,
        before: Num[np.ndarray, "*before D"],
        after: Points,
        fresh: Num[np.ndarray, "*fresh D"],
    ) -> Points:
        """Points after a move; parameters that were inactive before it have fresh values."""
        if not self.layout.conditions:
            return after
        return self.settled(np.where(self.awake(before), after, fresh.astype(after.dtype)))

    def is_legal(self, X: Num[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        """Which rows stand for something that could be suggested; data may be anywhere."""
        return np.asarray(np.all(np.abs(self.snap(X) - X) < CLOSE, axis=1))

    def made_legal(self, X: Num[np.ndarray, "n D"]) -> Num[np.ndarray, "n D"]:
        """Rows that are legal as they are, and the nearest legal point of each other one."""
        return np.asarray(np.where(self.is_legal(X)[:, None], X, self.snap(X)))

    def spread(self, U: Num[np.ndarray, "*points d"]) -> Points:
        """Legal points from uniform ones of [0,1]^d, one column per parameter."""
        return self.settled(self._everywhere(U))

    def _everywhere(self, U: Num[np.ndarray, "*points d"]) -> Points:
        """The values of all parameters, active or not.

        Categories and linear levels are equally likely. A level on a log scale is as likely as
        its cell [v − ½, v + ½] is wide there, so that the end levels get a whole cell, where
        rounding would give them half of one. Uneven levels have shares of their own.
        """
        U = np.clip(U, 0.0, 1.0)
        X = U[..., np.array(self.layout.owner, dtype=int)]
        u, last, offset, log = self._stepped(X)
        edge = offset - 0.5
        value = edge * np.exp(u * np.log1p((last + 1.0) / edge))
        level = np.floor(np.where(log, value - edge, u * (last + 1.0)))
        for place, grid in self.layout.uneven:
            level[..., place] = np.searchsorted(grid.shares, u[..., place], side="right")
        X = self._with_levels(X, np.clip(level, 0.0, last))
        for start, stop in self.layout.groups:
            share = U[..., self.layout.owner[start]] * (stop - start)
            _choose(X, start, stop, np.asarray(np.minimum(share.astype(int), stop - start - 1)))
        return X

    @property
    def discrete_moves(self) -> int:
        """K = 2·len(stepped) + Σ (k − 1), the number of `neighbours` of a point."""
        layout = self.layout
        return 2 * len(layout.stepped) + sum(stop - start - 1 for start, stop in layout.groups)

    def neighbours(
        self, X: Points, some: slice = slice(None)
    ) -> Num[np.ndarray, "*points moves D"]:
        """Legal points one discrete move away from a legal point: all K of them, or some.

        Each stepped column goes one level up and one down (at an end it stays), each group to
        each of its other categories. A move that decides on other parameters is made several
        times, with other values of what becomes active.
        """
        layout = self.layout
        here, wanted = X[..., None, :], np.arange(self.discrete_moves)[some]
        current, last = self._level(X), self._stepped(X)[1]
        moves = [np.zeros((*X.shape[:-1], 0, self.dimensions), X.dtype)]
        columns, begin = np.array(layout.stepped, dtype=int), 0
        for level in (np.minimum(current + 1.0, last), np.maximum(current - 1.0, 0.0)):
            own = columns[_within(wanted, begin, len(columns)), None] == np.arange(self.dimensions)
            moved = self._with_levels(X, level)[..., None, :]
            moves.append(np.where(own, moved, here))
            begin += len(columns)
        for start, stop in layout.groups:
            k = stop - start
            others = _within(wanted, begin, k - 1)
            chosen = np.argmax(X[..., start:stop], axis=-1)
            copies = np.repeat(here, len(others), axis=-2)
            _choose(copies, start, stop, (chosen[..., None] + 1 + others) % k)
            moves.append(copies)
            begin += k - 1
        near = np.concatenate(moves, axis=-2)
        if not layout.conditions:
            return near
        every = [*layout.stepped, *layout.stepped]
        every += [start for start, stop in layout.groups for _ in range(stop - start - 1)]
        times = np.where(layout.deciding[np.array(every, dtype=int)[wanted]], FRESH, 1)
        fresh = self._everywhere((lattice(self.parameters, FRESH) + 0.5) % 1.0)
        which = np.concatenate([np.arange(count) for count in times])
        return self.woken(here, np.repeat(near, times, axis=-2), fresh[which])

    def moves(self, rng: np.random.Generator, points: int) -> Moves:
        """The random numbers of `points` perturbations."""
        d = self.parameters
        each = rng.uniform(size=(points, d)) < min(1.0, max(0.3, 2.0 / d))
        one = rng.integers(d, size=(points, 1)) == np.arange(d)
        nudge = rng.uniform(size=(points, len(self.layout.stepped))) < 0.5
        return Moves(rng.standard_normal((points, self.dimensions)), each | one, nudge)

    def perturb(
        self, moves: Moves, X: Num[np.ndarray, "N D"], scale: float | Float[np.ndarray, " ..."]
    ) -> Num[np.ndarray, "N D"]:
        """Legal points near legal points: a random, non-empty subset of parameters moves.

        Numeric columns take a Gaussian step of standard deviation `scale`, clipped so that a
        fair share lands on faces, where many optima are. A stepped column whose step was too
        short for a level moves by one all the same, half of the time. Categories are redrawn.
        """
        noise = moves.noise
        moved = np.clip(X + scale * noise, 0.0, 1.0)
        moved = self._with_levels(moved, self._nudged(moves.nudge, X, moved, noise))
        for start, stop in self.layout.groups:  # the largest of k normals: a uniform category
            _choose(moved, start, stop, np.argmax(noise[..., start:stop], axis=-1))
        owner = np.array(self.layout.owner, dtype=int)
        moved = np.where(moves.subset[..., owner], moved, X)
        if not self.layout.conditions:
            return moved
        first = np.searchsorted(owner, np.arange(self.parameters))
        return self.woken(X, moved, self._everywhere(ndtr(noise[..., first])))

    def _nudged(
        self, nudge: np.ndarray, X: np.ndarray, moved: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """The levels of moved points, half of those that stayed sent one level on."""
        here, there, last = self._level(X), self._level(moved), self._stepped(X)[1]
        outward = np.where(self._stepped(noise)[0] < 0.0, -1.0, 1.0)
        inward = np.where(here <= 0.0, 1.0, np.where(here >= last, -1.0, outward))
        return np.where((there == here) & nudge, here + inward, there)

    def _stepped(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The stepped columns of X, and of `last`, `offset` and `log`."""
        columns, layout = np.array(self.layout.stepped, dtype=int), self.layout
        return X[..., columns], layout.last[columns], layout.offset[columns], layout.log[columns]

    def _level(self, X: np.ndarray) -> Float[np.ndarray, "*points S"]:
        """The index of the level nearest to each stepped column, in the user's units."""
        u, last, offset, log = self._stepped(np.clip(X, 0.0, 1.0))
        on_log = offset * np.expm1(u * np.log1p(last / offset))
        level = np.asarray(np.clip(np.rint(np.where(log, on_log, u * last)), 0.0, last))
        for place, grid in self.layout.uneven:
            level[..., place] = np.searchsorted(grid.middles, u[..., place])
        return level

    def _with_levels(self, X: np.ndarray, level: np.ndarray) -> np.ndarray:
        """A copy of X with its stepped columns at these levels."""
        X = X.copy()
        if self.layout.stepped:
            _, last, offset, log = self._stepped(X)
            on_log = np.log1p(level / offset) / np.log1p(last / offset)
            # One logarithm can come out in two ways, in and out of a vector: set u = 1 by hand.
            u = np.where(log & (level < last), on_log, level / last)
            for place, grid in self.layout.uneven:
                u[..., place] = grid.at[level[..., place].astype(int)]
            X[..., np.array(self.layout.stepped, dtype=int)] = u
        return X


def _within(wanted: Int[np.ndarray, " w"], begin: int, count: int) -> Int[np.ndarray, " o"]:
    """The wanted ones among `count` numbers from `begin` on, counted from there."""
    return wanted[(wanted >= begin) & (wanted < begin + count)] - begin


def _choose(X: np.ndarray, start: int, stop: int, category: np.ndarray) -> None:
    """Set one group of columns of X to a category, in place."""
    X[..., start:stop] = HOT * (category[..., None] == np.arange(stop - start))


def among(
    x: Float[np.ndarray, " D"], rows: Float[np.ndarray, "n D"], within: float = CLOSE
) -> bool:
    """Whether a point is one of the rows, up to a distance in each column."""
    return bool(np.any(np.all(np.abs(rows - x) < within, axis=1)))
