"""Hypervolume: how much of the space of objectives a front dominates, above a reference point.

    (W3)  HV(F, r) = volume of the union over f in F of the boxes from r to f

All objectives are to be maximised. One dimension at a time: between two neighbouring values of the
last objective, the cross section is the hypervolume of those points that reach up to there.

Of a long front, people are shown the few points with the largest hypervolume together. With two
objectives, a_i and b_i above the reference and sorted by the first, best first, j points of which
the last one is i have at most

    (W4)  V_j(i) = max over k < i of V_{j−1}(k) + a_i (b_i − b_k),   V_1(i) = a_i b_i

With more objectives each point is the one that adds most to those chosen before, as counted by
points of a lattice.
"""

from __future__ import annotations

import numpy as np

from optpair.cube.lattice import lattice
from optpair.runtime.shapes import Float, Int

COUNTED = 2**13  # points of the lattice
TINY = 1e-300


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


def most_of(
    front: Float[np.ndarray, "R O"], reference: Float[np.ndarray, " O"], count: int
) -> Int[np.ndarray, " r"]:
    """The rows of a front, at most so many, that have the largest hypervolume together.

    The best row of each objective is among them, unless `count` is less than the number of
    objectives. They are ordered by the first objective. No row may dominate another one.

    >>> most_of(np.array([[0.0, 5.0], [1.0, 4.9], [3.0, 3.0], [5.0, 0.0]]), np.full(2, -1.0), 3)
    array([0, 2, 3])
    """
    rows = np.lexsort((front[:, 1], -front[:, 0]))
    above = np.maximum(front[rows] / 2 - reference / 2, 0.0)
    above = above / np.maximum(above.max(0, initial=0.0), TINY)
    if len(rows) > count:
        exact = front.shape[1] == 2 and count > 1
        rows = rows[_chain(*above.T, count=count) if exact else _covering(above, count)]
    return rows[np.argsort(front[rows, 0], kind="stable")]


def _chain(
    a: Float[np.ndarray, " R"], b: Float[np.ndarray, " R"], *, count: int
) -> Int[np.ndarray, " r"]:
    """The best rows of two objectives, the first and the last among them; a falls and b rises."""
    adds = a[:, None] * (b[:, None] - b)
    adds[np.triu_indices(len(a))] = -np.inf
    volume = np.full(len(a), -np.inf)
    volume[0] = a[0] * b[0]
    before = []
    for _ in range(count - 1):
        each = volume + adds  # (W4)
        before.append(each.argmax(1))
        volume = each.max(1)
    chosen = [len(a) - 1]
    for last in reversed(before):
        chosen.append(int(last[chosen[-1]]))
    return np.array(chosen)


def _covering(above: Float[np.ndarray, "R O"], count: int) -> Int[np.ndarray, " r"]:
    """Rows that cover points of a lattice, one after another; the best of each objective first."""
    ends = list(dict.fromkeys(np.argmax(above, axis=0).tolist()))
    points = lattice(above.shape[1], COUNTED)
    covers = np.ones((len(above), COUNTED), dtype=bool)
    for own, at in zip(above.T, points.T, strict=True):
        covers &= at < own[:, None]
    adds = covers.sum(1)
    chosen: list[int] = []
    for turn in range(count):
        row = ends[turn] if len(ends) <= count and turn < len(ends) else int(np.argmax(adds))
        new = np.flatnonzero(covers[row])
        adds -= covers[:, new].sum(1)
        covers[:, new] = False
        adds[row] = -1
        chosen.append(row)
    return np.array(chosen)
