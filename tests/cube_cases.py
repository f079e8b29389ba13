"""A small mixed cube whose legal points can be counted."""

from __future__ import annotations

from itertools import product

import numpy as np

from optpair.cube.cube import Cube
from optpair.problem.layout import HOT, Layout

MIXED = Cube(
    Layout(
        last=np.array([1.0, 4.0, 7.0, 1.0, 1.0, 1.0]),
        offset=np.ones(6),
        log=np.array([False, False, True, False, False, False]),
        owner=(0, 1, 2, 3, 3, 3),
        stepped=(1, 2),
        groups=((3, 6),),
    )
)
"""A continuous column, five linear levels, an int from 1 to 8 on a log scale, three choices."""
LEVELS = np.arange(5) / 4, np.log(np.arange(1, 9)) / np.log(8)


def discrete_part() -> np.ndarray:
    """Every legal combination of the discrete columns: 5 × 8 × 3."""
    return np.array([[u, v, *(HOT * e)] for u, v in product(*LEVELS) for e in np.eye(3)])


def is_legal(x: np.ndarray, within: float = 1e-12) -> bool:
    """Whether all points of MIXED are legal."""
    near_one = np.min(np.abs(x[..., None, 1:] - discrete_part()).max(-1), -1) < within
    return bool(np.all(near_one) and np.all((x[..., 0] >= 0) & (x[..., 0] <= 1)))
