"""The layout of a space on the unit cube: which columns are whose, and where their levels are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from optpair.runtime.shapes import Bool, Float

HOT = float(np.sqrt(0.5))
"""What a one-hot column holds for the category that is chosen."""


class Grid(NamedTuple):
    """Levels at uneven places of [0,1]."""

    at: Float[np.ndarray, " L"]
    """Their places, from 0 to 1, in ascending order."""
    middles: Float[np.ndarray, " L-1"]
    """Halfway between neighbours: where the nearest level changes."""
    shares: Float[np.ndarray, " L-1"]
    """Where one level's share of uniform draws ends, and the next one's begins."""


class Column(NamedTuple):
    """The levels of one stepped column, as `Layout` describes them."""

    last: float = 1.0
    offset: float = 1.0
    log: bool = False
    grid: Grid | None = None


class Condition(NamedTuple):
    """A parameter is active only where its parent is, at one of these choices or levels."""

    child: int
    parent: int
    column: int
    """The parent's first."""
    levels: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """Columns of the cube [0,1]^D, and the parameters that they belong to.

    A numeric parameter is one column. A category with k choices is k one-hot columns that hold 0 or
    1/√2, so that two categories are at distance 1, as far as the two ends of a numeric column. A
    stepped column has levels i = 0, 1, …, last, at

        u = i / last                                         linear
        u = log(1 + i/offset) / log(1 + last/offset)         log: the integers offset + i
        u = grid.at[i]                                       uneven

    An inactive parameter is in one place, whatever it would be: the middle of its column or, of
    one-hot columns, the point as far from each category as from any other. Two points of one
    branch then differ in what is active in both alone.

    Columns that are not stepped carry `last = offset = 1`, which nothing reads.
    """

    last: Float[np.ndarray, " D"]
    """The index of the last level, at least 1."""
    offset: Float[np.ndarray, " D"]
    """The lowest integer of a log column."""
    log: Bool[np.ndarray, " D"]
    """Whether the levels are integers on a log scale."""
    owner: tuple[int, ...]
    """The index of the parameter that each column belongs to."""
    stepped: tuple[int, ...]
    """The columns that are numeric and discrete."""
    groups: tuple[tuple[int, int], ...]
    """The first column and the one past the last, of each one-hot group."""
    grids: Mapping[int, Grid] = field(default_factory=dict)
    """The levels of the stepped columns that are uneven."""
    conditions: tuple[Condition, ...] = ()
    """Which parameters are active, parents first; those without a condition always are."""

    def __post_init__(self) -> None:
        for name in ("last", "offset", "log"):
            if np.shape(getattr(self, name)) != (self.dimensions,):
                raise ValueError(
                    f"{name} must have shape ({self.dimensions},), one entry per column, "
                    f"not {np.shape(getattr(self, name))}"
                )
        if sorted(set(self.owner)) != list(range(self.parameters)):
            raise ValueError(f"owner must use every index from 0, not {self.owner}")
        if any(not self.numeric[c] for c in self.stepped):
            raise ValueError(f"stepped {self.stepped} overlaps the one-hot groups {self.groups}")
        for column, grid in self.grids.items():
            if column not in self.stepped or len(grid.at) != self.last[column] + 1:
                raise ValueError(
                    f"grids has {len(grid.at)} levels for column {column}, which must be stepped "
                    "and have last + 1 of them"
                )

    @classmethod
    def box(cls, d: int) -> Layout:
        """The continuous cube [0,1]^d."""
        ones = np.ones(d)
        return cls(ones, ones, np.zeros(d, dtype=bool), tuple(range(d)), (), ())

    @property
    def dimensions(self) -> int:
        """The number of columns, D."""
        return len(self.owner)

    @property
    def parameters(self) -> int:
        """The number of parameters, d."""
        return max(self.owner, default=-1) + 1

    @cached_property
    def numeric(self) -> Bool[np.ndarray, " D"]:
        """Which columns are not one-hot."""
        mask = np.ones(self.dimensions, dtype=bool)
        for start, stop in self.groups:
            mask[start:stop] = False
        return mask

    @cached_property
    def continuous(self) -> Bool[np.ndarray, " D"]:
        """Which columns may take any value in [0,1]."""
        mask = self.numeric.copy()
        mask[list(self.stepped)] = False
        return mask

    @cached_property
    def asleep(self) -> Float[np.ndarray, " D"]:
        """Where the columns of an inactive parameter are."""
        place = np.full(self.dimensions, 0.5)
        for start, stop in self.groups:
            place[start:stop] = HOT / (stop - start)
        return place

    @cached_property
    def deciding(self) -> Bool[np.ndarray, " D"]:
        """The columns of parameters that others depend on."""
        parents = {condition.parent for condition in self.conditions}
        return np.array([owner in parents for owner in self.owner], dtype=bool)

    @cached_property
    def uneven(self) -> tuple[tuple[int, Grid], ...]:
        """The uneven columns' grids, by their places among the stepped ones."""
        return tuple((self.stepped.index(column), grid) for column, grid in self.grids.items())

    def levels(self, column: int) -> Float[np.ndarray, " L"]:
        """Where the levels of a stepped column are."""
        if column in self.grids:
            return self.grids[column].at
        last, offset = self.last[column], self.offset[column]
        index = np.arange(last + 1)
        if not self.log[column]:
            return index / last
        return np.log1p(index / offset) / np.log1p(last / offset)
