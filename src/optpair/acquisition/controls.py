"""Controls: points that no model has a say in.

A search without a model is what every other one has to beat. A control gives the i-th point of a
search from the search's stream, so that what is pending, told or failed makes no difference.
"""

from __future__ import annotations

import numpy as np

from optpair.cube.lattice import lattice as lattice_points
from optpair.cube.region import Region
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream

BLOCK = 1024  # lattice points made together, doubled as a search grows


def random(stream: Stream, region: Region, i: int) -> Float[np.ndarray, " D"]:
    """The i-th of independent points: uniform on the region, in the measure of `Cube.spread`."""
    rng = stream.child(i).draw()
    U = rng.uniform(size=(1, region.cube.parameters))
    return np.asarray(region.fill(U, int(rng.integers(2**31)))[0])


def lattice(stream: Stream, region: Region, i: int) -> Float[np.ndarray, " D"]:
    """The i-th point of a lattice sequence, shifted at random around the torus."""
    d = region.cube.parameters
    points = lattice_points(d, BLOCK * (1 << (i // BLOCK).bit_length()))
    shift = stream.draw().uniform(size=d)
    return np.asarray(region.fill((points[i : i + 1] + shift) % 1.0, i)[0])
