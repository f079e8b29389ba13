"""Optimal pairs (x*, f*): the argmax and max of posterior sample paths.

Each path is screened at points that fill the space and at points near the best data, and climbed
from the best of each kind. Faces of the cube and discrete coordinates are the maximiser's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.cube import Cube
from optpair.gp import paths as gp_paths
from optpair.gp.paths import Paths
from optpair.gp.posterior import Posterior
from optpair.maximize import Search, ascend, climb, screen
from optpair.runtime import Numbers, Stream, compiled, double, pytree, single, to_numpy

GROUPS = 2  # places of each kind that a path is climbed from
ENDING, ENDING_RADIUS = 10, 1e-2  # steps in double precision, and the first one's size
ANCHORS = 8  # best data points that the screening looks around


@pytree
@dataclass(frozen=True)
class OptimalPairs:
    """P optimal pairs of each of M sets: where a path is largest, and its value there."""

    x: Float[Numbers, "M P D"]
    f: Float[Numbers, "M P"]


def best_data(posterior: Posterior, count: int) -> Float[Array, "A D"]:
    """The observed points of highest posterior mean, averaged over sets; repeated if few."""
    means = jnp.mean(posterior.means_at_data(), (0, 1))
    order = jnp.argsort(jnp.where(posterior.mask, -means, jnp.inf))
    seen = jnp.maximum(jnp.sum(posterior.mask), 1)
    return posterior.X[order[jnp.arange(count) % seen]]


def _leaders(paths: Paths, sources: Sequence[Float[Array, "_ D"]]) -> Float[Array, "M P G D"]:
    """For every path, the best point of each of a few interleaved groups of every source."""
    even = [X[: len(X) // GROUPS * GROUPS] for X in sources]
    values = screen(paths.at, jnp.concatenate(even))
    found, begin = [], 0
    for X in even:
        own = values[..., begin : begin + len(X)].reshape(*values.shape[:2], -1, GROUPS)
        found.append(X[jnp.argmax(own, 2) * GROUPS + jnp.arange(GROUPS)])
        begin += len(X)
    return jnp.concatenate(found, axis=2)


def optima(paths: Paths, cube: Cube, search: Search, steps: int) -> OptimalPairs:
    """The optimal pair of every path: found in single precision, ended in double."""
    anchors = best_data(paths.posterior, ANCHORS)
    rough = paths.rough()
    starts = _leaders(rough, single(search.points(cube, anchors)))
    x, f = climb(rough.own, single(cube), starts, steps)
    winner = jnp.argmax(f, -1)[..., None, None]
    x = cube.snap(jnp.take_along_axis(x, winner, 2).astype(float))
    x, f = ascend(paths.own, x, cube.continuous, ENDING, ENDING_RADIUS)
    return OptimalPairs(x[:, :, 0], f[:, :, 0])


@compiled("steps")
def _sample(
    draws: gp_paths.Draws, search: Search, posterior: Posterior, cube: Cube, *, steps: int
) -> OptimalPairs:
    return optima(gp_paths.draw(draws, posterior), cube, search, steps)


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
    for name, given, least in (("n_pairs", n_pairs, 1), ("candidates", candidates, GROUPS)):
        if given < least:
            raise ValueError(f"{name} must be at least {least}, not {given}")
    cube = Cube.box(posterior.scale.shape[1]) if cube is None else cube
    stream = Stream.of(key)
    draws = gp_paths.Draws.of(stream.child(0), posterior, paths=n_pairs, features=features)
    search = Search.of(stream.child(1), cube, candidates, ANCHORS)
    return to_numpy(_sample(draws, search, posterior, cube, steps=steps))
