"""Regions: the part of the cube in which one may look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.cube.cube import Cube
from optpair.shapes import Bool, Num


@dataclass(frozen=True, eq=False)
class Region:
    """The legal points of a cube between `low` and `high`; where the two are equal, fixed there."""

    cube: Cube
    low: Num[np.ndarray, " D"]
    high: Num[np.ndarray, " D"]

    @classmethod
    def whole(cls, cube: Cube) -> Region:
        """The whole cube."""
        return cls(cube, np.zeros(cube.dimensions), np.ones(cube.dimensions))

    @property
    def open(self) -> Bool[np.ndarray, " D"]:
        """The columns in which one may move."""
        return self.low < self.high

    def clip(self, X: Num[np.ndarray, "*points D"]) -> Num[np.ndarray, "*points D"]:
        """The nearest points between the bounds."""
        return np.asarray(np.clip(X, self.low.astype(X.dtype), self.high.astype(X.dtype)))
