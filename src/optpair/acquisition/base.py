"""What every acquisition function is, and what it may be built from."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from optpair.acquisition.normal import log_ei
from optpair.acquisition.truncation import exact_gain, moment_matched_gain
from optpair.cube import Cube
from optpair.gp.paths import Paths
from optpair.gp.posterior import Posterior
from optpair.maximize import screen
from optpair.pairs import OptimalPairs
from optpair.runtime import compiled, double, pytree

FACE = 1e-6  # a coordinate closer to 0 or 1 is on a face
SMALLEST = 1e-12  # of the output scale: below this a variance is round-off


@pytree
@dataclass(frozen=True)
class Context:
    """What an acquisition function may be built from, all of it traced.

    With pending points the posterior has a fantasy for each path: path p, pair p and fantasy p
    belong together.
    """

    posterior: Posterior
    cube: Cube
    points: Float[Array, "N D"]
    """Legal points that fill the space and surround the best data: those that are screened."""
    key: Array
    paths: Paths | None = None
    """Sample paths, where the registry says that they are needed."""
    stars: OptimalPairs | None = None
    """The paths' maximisers and maxima, where the registry says that they are needed."""


class Acquisition:
    """A function of points on the cube, to be maximised.

    Subclasses are pytrees with a posterior and define `evaluate`, which is traced. Calling one is
    for people: it takes anything array-like and returns NumPy float64.
    """

    posterior: Posterior
    screened: Float[Array, " N"] | None = None
    """Values at its context's points, where building it has told them."""

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """Values at the points X, each on its own."""
        raise NotImplementedError

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.X.shape[1]

    @double
    def __call__(self, X: ArrayLike) -> Float[np.ndarray, " q"]:
        """Values at the points X, shape (q, d)."""
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.dimensions:
            raise ValueError(f"points must have shape (q, {self.dimensions}), not {points.shape}")
        return np.asarray(_evaluate(self, jnp.asarray(points)))


def incumbent(posterior: Posterior) -> Float[Array, "M F"]:
    """m⁺ = max_i m(x_i), the best posterior mean among the observed points."""
    return jnp.max(jnp.where(posterior.mask, posterior.means_at_data(), -jnp.inf), -1)


def log_improvement(
    posterior: Posterior, incumbent: Float[Array, "M F"], X: Float[Array, "q D"]
) -> Float[Array, " q"]:
    """The logarithm of the mean Expected Improvement (M10) over sets and fantasies."""
    means, variance = posterior.moments(X)
    floor = SMALLEST * posterior.outputscale[:, None]
    sd = jnp.sqrt(jnp.maximum(variance, floor))[:, None]
    each = jnp.log(sd) + log_ei((means - incumbent[..., None]) / sd)  # (M10)
    count = each.shape[0] * each.shape[1]
    total: Array = logsumexp(each, axis=(0, 1))
    return total - jnp.log(float(count))


def check_sets(posterior: Posterior, values: Array | np.ndarray) -> None:
    """Raise if what was drawn under each set is of another number of sets than the posterior."""
    sets, given = np.shape(posterior.mean)[0], np.shape(values)[0]
    if sets != given:
        raise ValueError(f"pairs of {given} hyperparameter sets, but the posterior has {sets}")


@compiled()
def _evaluate(acquisition: Acquisition, X: Float[Array, "q D"]) -> Float[Array, " q"]:
    return screen(acquisition.evaluate, X)


def interior(x: Float[Array, "M P D"], continuous: Bool[Array, " D"]) -> Bool[Array, "M P D"]:
    """The coordinates of optima in which the slope is zero: continuous, and not on a face."""
    return continuous & (x > FACE) & (x < 1 - FACE)


def pair_gain(
    posterior: Posterior,
    variance: Float[Array, "M q"],
    taken: Float[Array, "M P q"],
    above: Float[Array, "M P q"],
    *,
    exact: bool,
) -> Float[Array, " q"]:
    """(M3) to (M5): the mean gain, in nats, from s, what a pair takes from it, and f* − m_p."""
    noise = posterior.noise[:, None, None]
    floor = SMALLEST * posterior.outputscale[:, None, None]
    variance_given = jnp.maximum(variance[:, None] - taken, floor)
    beta = above / jnp.sqrt(variance_given)  # (M3)
    total = jnp.maximum(variance[:, None], floor) + noise
    conditioning = -jnp.log1p(-taken / (total + floor)) / 2
    if exact:
        truncation = exact_gain(beta, variance_given / (variance_given + noise))
    else:
        truncation = moment_matched_gain(beta, variance_given, noise)
    return jnp.mean(conditioning + truncation, (0, 1))  # (M4), (M5)
