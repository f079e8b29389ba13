"""Controls: points that no model has a say in.

A search without a model is what every other one has to beat. A control gives the i-th point of a
search from the search's stream, so that what is pending, told or failed makes no difference.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from optpair.cube import Cube
from optpair.maximize import sobol as sobol_points
from optpair.maximize import space_filling
from optpair.runtime import Stream

BLOCK = 1024


def random(stream: Stream, cube: Cube, i: int) -> Float[np.ndarray, " D"]:
    """The i-th of independent points: uniform on the cube, in the measure of `Cube.spread`."""
    return np.asarray(cube.spread(stream.child(i).draw().uniform(size=cube.parameters)))


def sobol(stream: Stream, cube: Cube, i: int) -> Float[np.ndarray, " D"]:
    """The i-th point of a Sobol sequence, shifted at random around the torus."""
    points = sobol_points(cube.parameters, BLOCK * (1 << (i // BLOCK).bit_length()))
    shift = stream.draw().uniform(size=cube.parameters)
    return np.asarray(space_filling(shift, cube, points[i : i + 1])[0])
