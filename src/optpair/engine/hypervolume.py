"""Hypervolume: how much of the space of objectives a front dominates, above a reference point.

    (W3)  HV(F, r) = volume of the union over f in F of the boxes from r to f

All objectives are to be maximised. One dimension at a time: between two neighbouring values of the
last objective, the cross section is the hypervolume of those points that reach up to there.
"""

from __future__ import annotations

import numpy as np

from optpair.runtime.shapes import Float


def hypervolume(front: Float[np.ndarray, "R O"], reference: Float[np.ndarray, " O"]) -> float:
    """The volume between the points of a front and a reference point; 0 without points above it.

    >>> hypervolume(np.array([[1.0, 3.0], [2.0, 1.0]]), np.zeros(2))
    4.0
    """
    above = np.asarray(front, dtype=np.float64) - reference
    above = above[np.all(above > 0, axis=1)]
    return float(_volume(above)) if len(above) else 0.0


def _volume(above: Float[np.ndarray, "R O"]) -> float:
    """The volume between 0 and points above it."""
    if above.shape[1] == 1:
        return float(above.max())
    order = np.argsort(-above[:, -1], kind="stable")
    above = above[order]
    heights = above[:, -1] - np.append(above[1:, -1], 0.0)
    if above.shape[1] == 2:
        return float(np.sum(heights * np.maximum.accumulate(above[:, 0])))
    return float(sum(h * _volume(above[: i + 1, :-1]) for i, h in enumerate(heights) if h > 0))
