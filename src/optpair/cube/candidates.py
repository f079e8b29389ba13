"""Candidates: points that fill the space, and points near the best data.

Hundreds of points fill a plane, and say next to nothing about a cube of twenty dimensions: nearly
all of them are far from anything good. A *boxed* screening fills boxes around the best data
instead; climbs may leave them. A region that is only a part of the cube is small enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optpair.cube.cube import Cube, Moves
from optpair.cube.lattice import lattice
from optpair.cube.region import Region
from optpair.runtime.shapes import Float, Num
from optpair.runtime.streams import Stream

ANCHORS = 8  # best data points that a screening looks around
BOXES, SIDE = 4, 0.4  # boxes of a boxed screening, and their side


def space_filling(
    shift: Float[np.ndarray, " d"], cube: Cube, base: Float[np.ndarray, "N d"]
) -> Float[np.ndarray, "N D"]:
    """Legal points that fill the space: lattice points, shifted around the torus."""
    return cube.spread((base + shift) % 1.0)


def near(
    scale: Float[np.ndarray, "N 1"],
    moves: Moves,
    region: Region,
    anchors: Float[np.ndarray, "A D"],
) -> Float[np.ndarray, "N D"]:
    """Legal points at given distances from the anchors; the anchors themselves come first."""
    points = len(scale)
    centres = np.tile(anchors, (-(-points // len(anchors)), 1))[:points]
    moved = region.near(moves, centres, scale)
    moved[: len(anchors)] = centres[: len(anchors)]
    return moved


def _boxes(
    U: Float[np.ndarray, "N d"], region: Region, anchors: Num[np.ndarray, "A D"]
) -> Float[np.ndarray, "N d"]:
    """Points of [0,1]^d, as many of them in a box around each of the first anchors.

    A box gets consecutive points of the lattice, which fill it evenly. Categories stay free, and so
    do parameters that occur in linear limits.
    """
    layout = region.cube.layout
    first = np.searchsorted(layout.owner, np.arange(layout.parameters))
    box = np.arange(len(U)) * min(BOXES, len(anchors)) // len(U)
    centre = anchors[box][:, first]
    low = np.clip(centre - SIDE / 2, 0.0, 1.0 - SIDE)
    return np.where(layout.numeric[first] & ~np.isin(first, region.coupled), low + SIDE * U, U)


class Screening(NamedTuple):
    """The points of a screening, up to the anchors that some of them surround."""

    base: Float[np.ndarray, "N d"]  # lattice points
    shift: Float[np.ndarray, " d"]  # of all of them
    scale: Float[np.ndarray, "n 1"]  # distances from the anchors
    moves: Moves
    boxed: bool = False

    @classmethod
    def of(
        cls,
        stream: Stream,
        cube: Cube,
        points: int,
        anchors: int = ANCHORS,
        *,
        boxed: bool = False,
    ) -> Screening:
        """`points` that fill the space, and a quarter as many at 0.001 to 0.3 from the anchors."""
        rng, around = stream.draw(), max(points // 4, anchors)
        return cls(
            lattice(cube.parameters, points),
            rng.uniform(size=cube.parameters),
            10 ** rng.uniform(-3.0, -0.5, (around, 1)),
            cube.moves(rng, around),
            boxed,
        )

    def points(
        self, region: Region, anchors: Num[np.ndarray, "A D"], most: int | None = None
    ) -> tuple[Float[np.ndarray, "n D"], Float[np.ndarray, "N D"]]:
        """Those near the anchors, and those that fill the space.

        Without anchors the first of those that fill the space is one. A table of no more than
        `most` rows is filled by all of them, some twice, so that they are a multiple of `ANCHORS`.
        """
        every = region.listed(most)
        if every is None:
            U = (self.base + self.shift) % 1.0
            boxed = self.boxed and len(anchors) > 0 and not region.narrowed
            filling = region.fill(_boxes(U, region, anchors) if boxed else U)
        else:
            filling = np.resize(every, (-(-len(every) // ANCHORS) * ANCHORS, every.shape[1]))
        anchors = region.anchors(anchors) if len(anchors) else filling[:1]
        return near(self.scale, self.moves, region, anchors), filling
