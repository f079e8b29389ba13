"""The legal points of the unit cube, as arrays: snapping, spreading, neighbours, perturbations.

A numeric parameter is one column. A category with k choices is k one-hot columns that hold 0 or
1/√2, so that two categories are at distance 1, as far as the two ends of a numeric column.

Everything here is pure and may be traced; the caller has entered float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from optpair.runtime import Numbers, pytree, static

HOT = float(np.sqrt(0.5))
"""What a one-hot column holds for the category that is chosen."""

Columns = Float[Numbers, " D"]
Points = Float[Numbers, "*points D"]


class Moves(NamedTuple):
    """The random numbers of N perturbations: see `Cube.perturb`."""

    noise: Float[Numbers, "N D"]  # standard normal
    subset: Bool[Numbers, "N d"]  # parameters that move; about two, or 30 %
    nudge: Bool[Numbers, "N S"]  # stepped columns that move at least one level


@pytree
@dataclass(frozen=True, eq=False)
class Cube:
    """Which points of [0,1]^D stand for something the user can run.

    The structure is compiled in; bounds and steps are arrays, so that two spaces of one
    structure share compiled code. A stepped column has levels i = 0, 1, …, last, at

        u = i / last                                         linear
        u = log(1 + i/offset) / log(1 + last/offset)         log: the integers offset + i

    Columns that are not stepped carry `last = offset = 1`, which nothing reads.
    """

    last: Columns
    """The index of the last level, at least 1."""
    offset: Columns
    """The lowest integer of a log column."""
    log: Bool[Numbers, " D"]
    """Whether the levels are integers on a log scale."""
    parameter: tuple[int, ...] = static()
    """The index of the parameter that each column belongs to."""
    stepped: tuple[int, ...] = static()
    """The columns that are numeric and discrete."""
    groups: tuple[tuple[int, int], ...] = static()
    """The first column and the one past the last, of each one-hot group."""

    def __post_init__(self) -> None:
        for name in ("last", "offset", "log"):
            if np.shape(getattr(self, name)) != (self.dimensions,):
                raise ValueError(
                    f"{name} must have shape ({self.dimensions},), one entry a column, "
                    f"not {np.shape(getattr(self, name))}"
                )
        if sorted(set(self.parameter)) != list(range(self.parameters)):
            raise ValueError(f"parameter must use every index from 0, not {self.parameter}")
        if any(not self.numeric[c] for c in self.stepped):
            raise ValueError(f"stepped {self.stepped} overlaps the one-hot groups {self.groups}")

    @classmethod
    def box(cls, d: int) -> Cube:
        """The continuous cube [0,1]^d."""
        ones = np.ones(d)
        return cls(ones, ones, np.zeros(d, dtype=bool), tuple(range(d)), (), ())

    @property
    def dimensions(self) -> int:
        """The number of columns, D."""
        return len(self.parameter)

    @property
    def parameters(self) -> int:
        """The number of parameters, d."""
        return max(self.parameter, default=-1) + 1

    @property
    def numeric(self) -> np.ndarray:
        """Which columns are not one-hot: (D,)."""
        mask = np.ones(self.dimensions, dtype=bool)
        for start, stop in self.groups:
            mask[start:stop] = False
        return mask

    @property
    def continuous(self) -> np.ndarray:
        """Which columns may take any value in [0,1]: (D,)."""
        mask = self.numeric
        mask[list(self.stepped)] = False
        return mask

    @property
    def is_continuous(self) -> bool:
        """Whether every point of the cube is legal."""
        return not self.stepped and not self.groups

    def snap(self, X: Points) -> Float[Array, "*points D"]:
        """The nearest legal point.

        Stepped columns are rounded in the user's units rather than on the log scale, and in a
        one-hot group the largest entry wins, the first on ties.
        """
        X = jnp.asarray(X)
        legal = self._with_levels(jnp.clip(X, 0.0, 1.0), self._level(X))
        for start, stop in self.groups:
            legal = _choose(legal, start, stop, jnp.argmax(X[..., start:stop], axis=-1))
        return legal

    def spread(self, U: Float[Numbers, "*points d"]) -> Float[Array, "*points D"]:
        """Legal points from uniform ones of [0,1]^d, one column a parameter.

        Categories and linear levels are equally likely. A level on a log scale is as likely as
        its cell [v − ½, v + ½] is wide there, so that the end levels get a whole cell, where
        rounding would give them half of one.
        """
        U = jnp.clip(jnp.asarray(U), 0.0, 1.0)
        X = U[..., np.array(self.parameter, dtype=int)]
        u, last, offset, log = self._stepped(X)
        edge = offset - 0.5
        value = edge * jnp.exp(u * jnp.log1p((last + 1.0) / edge))
        level = jnp.floor(jnp.where(log, value - edge, u * (last + 1.0)))
        X = self._with_levels(X, jnp.clip(level, 0.0, last))
        for start, stop in self.groups:
            share = U[..., self.parameter[start]] * (stop - start)
            X = _choose(X, start, stop, jnp.minimum(share.astype(int), stop - start - 1))
        return X

    def neighbours(self, X: Points) -> Float[Array, "*points K D"]:
        """All legal points one discrete move away from a legal point.

        Each stepped column goes one level up and one down (at an end it stays), each group to
        each of its other categories: K = 2·len(stepped) + Σ (k − 1).
        """
        X = jnp.asarray(X)
        here = X[..., None, :]
        current, last = self._level(X), self._stepped(X)[1]
        moves = [jnp.zeros((*X.shape[:-1], 0, self.dimensions), X.dtype)]
        own = np.array(self.stepped, dtype=int)[:, None] == np.arange(self.dimensions)
        for level in (jnp.minimum(current + 1.0, last), jnp.maximum(current - 1.0, 0.0)):
            moved = self._with_levels(X, level)[..., None, :]
            moves.append(jnp.where(own, moved, here))
        for start, stop in self.groups:
            k = stop - start
            chosen = jnp.argmax(X[..., start:stop], axis=-1)
            others = (chosen[..., None] + np.arange(1, k)) % k
            copies = jnp.broadcast_to(here, (*X.shape[:-1], k - 1, self.dimensions))
            moves.append(_choose(copies, start, stop, others))
        return jnp.concatenate(moves, axis=-2)

    def moves(self, rng: np.random.Generator, points: int) -> Moves:
        """The random numbers of `points` perturbations."""
        d = self.parameters
        each = rng.uniform(size=(points, d)) < min(1.0, max(0.3, 2.0 / d))
        one = rng.integers(d, size=(points, 1)) == np.arange(d)
        nudge = rng.uniform(size=(points, len(self.stepped))) < 0.5
        return Moves(rng.standard_normal((points, self.dimensions)), each | one, nudge)

    def perturb(
        self,
        moves: Moves,
        X: Float[Numbers, "N D"],
        scale: float | Float[Numbers, " ..."],
    ) -> Float[Array, "N D"]:
        """Legal points near legal points: a random, non-empty subset of parameters moves.

        Numeric columns take a Gaussian step of standard deviation `scale`, clipped so that a
        fair share lands on faces, where many optima are. A stepped column whose step was too
        short for a level moves by one all the same, half of the time. Categories are redrawn.
        """
        X, noise = jnp.asarray(X), jnp.asarray(moves.noise)
        moved = jnp.clip(X + scale * noise, 0.0, 1.0)
        moved = self._with_levels(moved, self._nudged(moves.nudge, X, moved, noise))
        for start, stop in self.groups:  # the largest of k equal normals: a uniform category
            moved = _choose(moved, start, stop, jnp.argmax(noise[..., start:stop], axis=-1))
        chosen = jnp.asarray(moves.subset)[..., np.array(self.parameter, dtype=int)]
        return jnp.where(chosen, moved, X)

    def _nudged(self, nudge: Numbers, X: Array, moved: Array, noise: Array) -> Array:
        """The levels of moved points, half of those that stayed sent one level on."""
        here, there, last = self._level(X), self._level(moved), self._stepped(X)[1]
        outward = jnp.where(self._stepped(noise)[0] < 0.0, -1.0, 1.0)
        inward = jnp.where(here <= 0.0, 1.0, jnp.where(here >= last, -1.0, outward))
        return jnp.where((there == here) & nudge, here + inward, there)

    def _stepped(self, X: Array) -> tuple[Array, Columns, Columns, Numbers]:
        """The stepped columns of X, and of `last`, `offset` and `log`."""
        columns = np.array(self.stepped, dtype=int)
        return X[..., columns], self.last[columns], self.offset[columns], self.log[columns]

    def _level(self, X: Array) -> Float[Array, "*points S"]:
        """The index of the level nearest to each stepped column, in the user's units."""
        u, last, offset, log = self._stepped(jnp.clip(X, 0.0, 1.0))
        on_log = offset * jnp.expm1(u * jnp.log1p(last / offset))
        return jnp.clip(jnp.round(jnp.where(log, on_log, u * last)), 0.0, last)

    def _with_levels(self, X: Array, level: Array) -> Float[Array, "*points D"]:
        """X with its stepped columns at these levels."""
        if not self.stepped:
            return X
        _, last, offset, log = self._stepped(X)
        on_log = jnp.log1p(level / offset) / jnp.log1p(last / offset)
        # One logarithm can come out in two ways, in and out of a vector: set u = 1 by hand.
        u = jnp.where(log & (level < last), on_log, level / last)
        return X.at[..., np.array(self.stepped, dtype=int)].set(u)


def _choose(X: Array, start: int, stop: int, category: Array) -> Array:
    """X with one group of columns set to a category."""
    return X.at[..., start:stop].set(HOT * jax.nn.one_hot(category, stop - start, dtype=X.dtype))
