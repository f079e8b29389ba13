"""Optimal pairs (x*, f*): the argmax and max of posterior sample paths.

Each path is screened at points that fill the space and at points near the best data, and climbed
from the best of each kind. Faces of the cube and discrete coordinates are the maximiser's business.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from optpair.cube import Cube
from optpair.gp import paths as gp_paths
from optpair.gp.paths import Paths
from optpair.gp.posterior import Posterior
from optpair.maximize import climb, near, screen, sobol, space_filling
from optpair.runtime import compiled, double, make_key, pytree, to_numpy

GROUPS = 2  # places of each kind that a path is climbed from
ANCHORS = 8  # best data points that the screening looks around


@pytree
@dataclass(frozen=True)
class OptimalPairs:
    """P optimal pairs of each of M sets: where a path is largest, and its value there."""

    x: Float[Array | np.ndarray, "M P D"]
    f: Float[Array | np.ndarray, "M P"]


def best_data(posterior: Posterior, count: int) -> Float[Array, "A D"]:
    """The observed points of highest posterior mean, averaged over sets; repeated if few."""
    means = jnp.mean(posterior.means(posterior.covariance(posterior.X)), (0, 1))
    order = jnp.argsort(jnp.where(posterior.mask, -means, jnp.inf))
    seen = jnp.maximum(jnp.sum(posterior.mask), 1)
    return posterior.X[order[jnp.arange(count) % seen]]


def _leaders(paths: Paths, X: Float[Array, "N D"]) -> Float[Array, "M P G D"]:
    """For every path, the best point of each of a few interleaved groups of candidates."""
    even = X[: len(X) // GROUPS * GROUPS]
    values = screen(paths.at, even)
    best = jnp.argmax(values.reshape(*values.shape[:2], -1, GROUPS), 2)
    return even[best * GROUPS + jnp.arange(GROUPS)]


@compiled("points", "steps")
def optima(
    key: Array,
    paths: Paths,
    cube: Cube,
    base: Float[Array, "N d"],
    *,
    points: int,
    steps: int,
) -> OptimalPairs:
    """The optimal pair of every path.

    `base` are the Sobol points of the screening, `points` the number of points near the data.
    """
    fill_key, near_key = jax.random.split(key)
    anchors = best_data(paths.posterior, ANCHORS)
    sources = (space_filling(fill_key, cube, base), near(near_key, cube, anchors, points))
    starts = jnp.concatenate([_leaders(paths, X) for X in sources], axis=2)
    x, f = climb(paths.own, cube, starts, steps)
    winner = jnp.argmax(f, -1)[..., None]
    return OptimalPairs(
        x=jnp.take_along_axis(x, winner[..., None], 2)[:, :, 0],
        f=jnp.take_along_axis(f, winner, 2)[:, :, 0],
    )


@double
def sample(
    key: Array | int,
    posterior: Posterior,
    n_pairs: int,
    *,
    cube: Cube | None = None,
    features: int = 1024,
    candidates: int = 2048,
    steps: int = 30,
) -> OptimalPairs:
    """Draw `n_pairs` optimal pairs under each hyperparameter set, as NumPy arrays.

    `key` is a JAX key or a seed. The paths live on [0, 1]^d, or on the legal points of `cube`.

    >>> from optpair import gp
    >>> hypers = gp.Hyperparameters([[0.3]], [1.0], [1e-4], [0.0])
    >>> stars = sample(0, gp.condition(hypers, [[0.2], [0.5]], [0.0, 2.0]), 4)
    >>> stars.x.shape, stars.f.shape, bool((stars.f > 1.9).all())
    ((1, 4, 1), (1, 4), True)
    """
    if n_pairs < 1:
        raise ValueError(f"n_pairs must be at least 1, not {n_pairs}")
    cube = Cube.box(posterior.scale.shape[1]) if cube is None else cube
    path_key, optima_key = jax.random.split(make_key(key) if isinstance(key, int) else key)
    paths = gp_paths.sample(path_key, posterior, paths=n_pairs, features=features)
    base = jnp.asarray(sobol(cube.parameters, candidates))
    points = max(candidates // 4, ANCHORS)
    return to_numpy(optima(optima_key, paths, cube, base, points=points, steps=steps))
