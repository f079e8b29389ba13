"""The compiled stages of a step: pending points, the acquisition's maximum, the best mean."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.acquisition import REGISTRY, Context, mean
from optpair.cube import Cube
from optpair.failures import SuccessChance, weighted
from optpair.gp.paths import Paths
from optpair.gp.posterior import Posterior, append
from optpair.maximize import maximize, near, space_filling
from optpair.pairs import ANCHORS, OptimalPairs, best_data
from optpair.runtime import compiled


@compiled("starts", "steps", "points", "name")
def choose(
    key: Array,
    posterior: Posterior,
    paths: Paths | None,
    stars: OptimalPairs | None,
    success: SuccessChance | None,
    worst: Array,
    cube: Cube,
    base: Float[Array, "N d"],
    *,
    name: str,
    points: int,
    starts: int,
    steps: int,
) -> tuple[Float[Array, " D"], Float[Array, ""]]:
    """Build the acquisition function `name` and maximise it."""
    entry = REGISTRY[name]
    build_key, key = jax.random.split(key)
    candidates = _candidates(key, posterior, cube, base, points)
    plain = entry.build(Context(posterior, cube, candidates, build_key, paths, stars))
    acquisition = weighted(plain, entry.values, success, worst)
    if stars is not None:
        candidates = jnp.concatenate([stars.x.reshape(-1, candidates.shape[1]), candidates])
    return maximize(acquisition, cube, candidates, starts=starts, steps=steps)


@compiled("starts", "steps", "points")
def best_mean(
    key: Array,
    posterior: Posterior,
    success: SuccessChance | None,
    worst: Array,
    cube: Cube,
    base: Float[Array, "N d"],
    *,
    points: int,
    starts: int,
    steps: int,
) -> tuple[Float[Array, " D"], Float[Array, " M"], Float[Array, " M"]]:
    """The argmax of the averaged posterior mean, with the sets' means and variances there."""
    function = weighted(mean(posterior), "worth", success, worst)
    candidates = _candidates(key, posterior, cube, base, points)
    x, _ = maximize(function, cube, candidates, starts=starts, steps=steps)
    means, variance = posterior.moments(x[None])
    return x, means[:, 0, 0], variance[:, 0]


def _candidates(key: Array, posterior: Posterior, cube: Cube, base: Array, points: int) -> Array:
    near_key, fill_key = jax.random.split(key)
    anchors = best_data(posterior, ANCHORS)
    return jnp.concatenate(
        [near(near_key, cube, anchors, points), space_filling(fill_key, cube, base)]
    )


@compiled()
def fantasise(key: Array, paths: Paths, pending: Float[Array, "n D"], count: Array) -> Posterior:
    """Condition on `count` pending points, each path supplying its own noisy value there."""
    posterior = paths.posterior
    M, P, _ = paths.update.shape
    noise = jnp.sqrt(posterior.noise)[:, None]

    def add(i: Array, grown: Posterior) -> Posterior:
        white = jax.random.normal(jax.random.fold_in(key, i), (M, P))
        return append(grown, pending[i], paths.at(pending[i][None])[:, :, 0] + noise * white)

    shape = (M, P, posterior.residual.shape[2])
    start = replace(
        posterior,
        residual=jnp.broadcast_to(posterior.residual, shape),
        weights=jnp.broadcast_to(posterior.weights, shape),
    )
    grown: Posterior = jax.lax.fori_loop(0, count, add, start)
    return grown
