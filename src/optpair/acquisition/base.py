"""What every acquisition function is: a pytree with `evaluate`, callable on NumPy arrays."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from optpair.maximize import screen
from optpair.runtime import compiled, double

SMALLEST = 1e-12  # of the output scale: below this a variance is round-off


class Acquisition:
    """A function of points on the cube, to be maximised.

    Subclasses are pytrees and define `evaluate`, which is traced. Calling one is for people: it
    takes anything array-like and returns NumPy float64.
    """

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """Values at the points X, each on its own."""
        raise NotImplementedError

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        raise NotImplementedError

    @double
    def __call__(self, X: ArrayLike) -> Float[np.ndarray, " q"]:
        """Values at the points X, shape (q, d)."""
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.dimensions:
            raise ValueError(f"points must have shape (q, {self.dimensions}), not {points.shape}")
        return np.asarray(_evaluate(self, jnp.asarray(points)))


@compiled()
def _evaluate(acquisition: Acquisition, X: Float[Array, "q D"]) -> Float[Array, " q"]:
    return screen(acquisition.evaluate, X)
