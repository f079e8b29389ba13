"""Controls: points that no model has a say in.

A search without a model is what every other one has to beat. A control gives the i-th point of a
search from the search's key, so that what is pending, told or failed makes no difference.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.cube import Cube
from optpair.maximize import sobol as sobol_points
from optpair.maximize import space_filling

BLOCK = 1024


def random(key: Array, cube: Cube, i: int) -> Float[Array, " D"]:
    """The i-th of independent points: uniform on the cube, in the measure of `Cube.spread`."""
    return cube.spread(jax.random.uniform(jax.random.fold_in(key, i), (cube.parameters,)))


def sobol(key: Array, cube: Cube, i: int) -> Float[Array, " D"]:
    """The i-th point of a Sobol sequence, shifted at random around the torus."""
    points = BLOCK * (1 << (i // BLOCK).bit_length())
    return space_filling(key, cube, jnp.asarray(sobol_points(cube.parameters, points)[i : i + 1]))[
        0
    ]
