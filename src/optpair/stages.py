"""The compiled stages of a step: paths and their optima, pending points, the acquisition's maximum,
the best mean.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.acquisition import REGISTRY, Context, mean
from optpair.cube import Cube
from optpair.failures import SuccessChance, weighted
from optpair.gp import paths as gp_paths
from optpair.gp.paths import Draws, Paths
from optpair.gp.posterior import Posterior, append
from optpair.maximize import Search, maximize, space_filling
from optpair.pairs import ANCHORS, OptimalPairs, best_data, optima
from optpair.runtime import Numbers, compiled


class Sampled(NamedTuple):
    """The posterior with pending points in it, and the paths or pairs that are needed."""

    posterior: Posterior
    paths: Paths | None
    stars: OptimalPairs | None


@compiled()
def fill(
    shift: Float[Numbers, " d"], cube: Cube, base: Float[Numbers, "N d"]
) -> Float[Array, "N D"]:
    """Points of an initial design."""
    return space_filling(shift, cube, base)


@compiled("steps", "pairs")
def sample(
    draws: Draws, search: Search, posterior: Posterior, cube: Cube, *, steps: int, pairs: bool
) -> Sampled:
    """Paths, and their optimal pairs where `pairs`; the posterior has a fantasy for each path."""
    paths = gp_paths.draw(draws, posterior)
    stars = optima(paths, cube, search, steps) if pairs else None
    shape = paths.update.shape
    wide = replace(
        posterior,
        residual=jnp.broadcast_to(posterior.residual, shape),
        weights=jnp.broadcast_to(posterior.weights, shape),
    )
    return Sampled(wide, paths, stars)


@compiled()
def fantasise(
    white: Float[Numbers, "n M P"],
    posterior: Posterior,
    paths: Paths,
    pending: Float[Numbers, "n D"],
    count: Numbers,
) -> Posterior:
    """Condition on `count` pending points, each path supplying its own noisy value there."""
    noise = jnp.sqrt(posterior.noise)[:, None]

    def add(i: Array, grown: Posterior) -> Posterior:
        values = paths.at(pending[i][None])[:, :, 0] + noise * white[i]
        return append(grown, pending[i], values)

    grown: Posterior = jax.lax.fori_loop(0, count, add, posterior)
    return grown


@compiled("starts", "steps", "name", plain=True)
def choose(
    words: Numbers,
    search: Search,
    sampled: Sampled,
    success: SuccessChance | None,
    worst: Numbers,
    cube: Cube,
    *,
    name: str,
    starts: int,
    steps: int,
) -> tuple[Float[Array, " D"], Float[Array, ""]]:
    """Build the acquisition function `name` and maximise it; `words` are those of its key."""
    entry = REGISTRY[name]
    posterior, paths, stars = sampled
    key = jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")
    candidates = _candidates(search, posterior, cube)
    plain = entry.build(Context(posterior, cube, candidates, key, paths, stars))
    acquisition = weighted(plain, entry.values, success, jnp.asarray(worst))
    if stars is not None:
        x = jnp.asarray(stars.x)
        candidates = jnp.concatenate([x.reshape(-1, x.shape[-1]), candidates])
    values = acquisition.screened
    return maximize(acquisition, cube, candidates, values, starts=starts, steps=steps)


@compiled("starts", "steps", plain=True)
def best_mean(
    search: Search,
    posterior: Posterior,
    success: SuccessChance | None,
    worst: Numbers,
    cube: Cube,
    *,
    starts: int,
    steps: int,
) -> tuple[Float[Array, " D"], Float[Array, " M"], Float[Array, " M"]]:
    """The argmax of the averaged posterior mean, with the sets' means and variances there."""
    function = weighted(mean(posterior), "worth", success, jnp.asarray(worst))
    candidates = _candidates(search, posterior, cube)
    x, _ = maximize(function, cube, candidates, starts=starts, steps=steps)
    means, variance = posterior.moments(x[None])
    return x, means[:, 0, 0], variance[:, 0]


def _candidates(search: Search, posterior: Posterior, cube: Cube) -> Float[Array, "N D"]:
    return jnp.concatenate(search.points(cube, best_data(posterior, ANCHORS)))
