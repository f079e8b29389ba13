"""What is usual among some values: those far above all others may be mistakes."""

from __future__ import annotations

import numpy as np

from optpair.runtime.shapes import Bool, Float

FAR = 8.0  # robust spreads above the median
FEWEST = 6  # values: with fewer, there is no telling what is usual


def far_above(y: Float[np.ndarray, " n"], but: Bool[np.ndarray, " n"]) -> list[int]:
    """The rows with values far above the others, the farthest first; `but` some do not count."""
    left = y[~but]
    if len(left) < FEWEST:
        return []
    largest = float(np.max(np.abs(left)))
    relative = y / largest if largest > 0 else y
    middle = np.median(relative[~but])
    unit = 1.4826 * np.median(np.abs(relative[~but] - middle))
    above = np.where(but, -np.inf, relative - middle)
    order = np.argsort(-above, kind="stable")
    return [int(row) for row in order if above[row] > FAR * unit and above[row] > 0]
