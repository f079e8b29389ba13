"""Controls: points that no model has a say in.

A search without a model is what every other one has to beat. A control gives the i-th point of a
search from the search's stream, so that what is pending, told or failed makes no difference.
"""

from __future__ import annotations

import numpy as np

from optpair.cube.candidates import space_filling
from optpair.cube.cube import Cube
from optpair.cube.lattice import lattice as lattice_points
from optpair.shapes import Float
from optpair.streams import Stream

BLOCK = 1024  # lattice points made together, doubled as a search grows


def random(stream: Stream, cube: Cube, i: int) -> Float[np.ndarray, " D"]:
    """The i-th of independent points: uniform on the cube, in the measure of `Cube.spread`."""
    return np.asarray(cube.spread(stream.child(i).draw().uniform(size=(1, cube.parameters)))[0])


def lattice(stream: Stream, cube: Cube, i: int) -> Float[np.ndarray, " D"]:
    """The i-th point of a lattice sequence, shifted at random around the torus."""
    points = lattice_points(cube.parameters, BLOCK * (1 << (i // BLOCK).bit_length()))
    shift = stream.draw().uniform(size=cube.parameters)
    return np.asarray(space_filling(shift, cube, points[i : i + 1])[0])
