"""Cells: disjoint boxes that make up what no point of a front dominates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optpair.runtime.shapes import Bool, Float, Int

BELOW, ABOVE = 0, 1  # the edges −∞ and +∞, which every outcome has


class Cells(NamedTuple):
    """Disjoint boxes: everything that a front does not dominate."""

    edges: tuple[Float[np.ndarray, "M P _"], ...]
    """Of each objective; their numbers begin at 2, as 0 is −∞ and 1 is +∞."""
    lower: tuple[Int[np.ndarray, " B"], ...]
    """The number of each box's lower edge, per objective; above the first objective's is all."""
    upper: tuple[Int[np.ndarray, " B"], ...]

    def bounds(self) -> Float[np.ndarray, "2 M P B K"]:
        """The lower and upper corners of all boxes."""
        found = []
        for index in (self.lower, self.upper):
            sides = []
            for edges, own in zip(self.edges, index, strict=True):
                ends = np.full((*edges.shape[:2], 2), [-np.inf, np.inf])
                sides.append(np.concatenate([ends, edges], -1)[..., own])
            found.append(np.stack(sides, -1))
        return np.stack(found)


def cells(f: Float[np.ndarray, "M P R K"], mask: Bool[np.ndarray, "M P R"]) -> Cells:
    """The boxes that make up what no point of a front dominates.

    Slabs between consecutive values of the last objective; in each, the points that reach that far
    leave the same question with an objective less. R + 1 boxes for two objectives, about R²/2 for
    three. Where a front has no points there is one box, everything.
    """
    most = max(int(mask.sum(-1).max(initial=0)), 1)
    order = np.argsort(~mask, -1, kind="stable")[..., :most]
    there = np.take_along_axis(mask, order, -1)
    points = np.where(there[..., None], np.take_along_axis(f, order[..., None], 2), -np.inf)
    return _cells(points)


def _cells(f: Float[np.ndarray, "M P R K"]) -> Cells:
    M, P, R, K = f.shape
    if K == 1:
        if R == 0:
            return Cells((np.zeros((M, P, 0)),), (np.array([BELOW]),), (np.array([ABOVE]),))
        return Cells((f.max(2),), (np.array([2]),), (np.array([ABOVE]),))
    order = np.argsort(f[..., -1], -1)
    points = np.take_along_axis(f, order[..., None], 2)
    parts = [_cells(points[:, :, i:, :-1]) for i in range(R + 1)]
    edges, lower, upper = [], [], []
    for k in range(K - 1):
        begin = 0
        low: list[np.ndarray] = []
        high: list[np.ndarray] = []
        for part in parts:
            for index, shifted in ((part.lower[k], low), (part.upper[k], high)):
                shifted.append(np.where(index > ABOVE, index + begin, index))
            begin += part.edges[k].shape[-1]
        edges.append(np.concatenate([part.edges[k] for part in parts], -1))
        lower.append(np.concatenate(low))
        upper.append(np.concatenate(high))
    slab = np.repeat(np.arange(R + 1), [len(part.lower[0]) for part in parts])
    edges.append(points[..., -1])
    lower.append(np.where(slab > 0, slab + 1, BELOW))
    upper.append(np.where(slab < R, slab + 2, ABOVE))
    return Cells(tuple(edges), tuple(lower), tuple(upper))
