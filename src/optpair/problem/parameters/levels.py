"""Levels: numbers in ascending order at uneven places of [0, 1]."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from optpair.problem.layout import Grid

MOST_LEVELS = 2**16
"""More uneven levels than this are better described by a range."""

CLOSEST = 1e-6
"""Of the cube: levels that are closer are one to the model."""

ROUND_OFF = 1e-6
"""Of the distance to the next level: values so close to a level are meant to be on it."""


class Levels:
    """Some values, their places, and the shares of uniform draws that they get."""

    def __init__(
        self, values: Sequence[int | float], at: Sequence[float], *, even_shares: bool
    ) -> None:
        self.values, self.at = tuple(values), np.array(at, dtype=float)
        middles = (self.at[:-1] + self.at[1:]) / 2
        count = len(self.values)
        self.grid = Grid(self.at, middles, np.arange(1, count) / count if even_shares else middles)
        self._middles: list[float] = middles.tolist()

    @property
    def closest(self) -> float:
        """The least distance between two places."""
        return float(np.min(np.diff(self.at)))

    def decode(self, u: float) -> int | float:
        """The value of the nearest level."""
        return self.values[bisect_left(self._middles, u)]

    def encode(self, value: float) -> float:
        """The place of a value that is a level."""
        return float(self.at[bisect_left(self.values, value)])

    def find(self, number: float) -> int | float | None:
        """The level that equals a number, up to round-off, or None."""
        values = self.values
        above = min(max(bisect_left(values, number), 1), len(values) - 1)
        low, high = values[above - 1], values[above]
        for level in (low, high):
            if abs(number - level) <= ROUND_OFF * (high - low):
                return level
        return None
