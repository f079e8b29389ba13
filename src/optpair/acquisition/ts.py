"""Thompson sampling: the next trial is where one sample of the objective is largest.

The path is drawn under one hyperparameter set, chosen at random. What is pending needs no
fantasies: another ask has another path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
from jaxtyping import Array, Float

from optpair.acquisition.base import Acquisition, Context
from optpair.gp import paths as gp_paths
from optpair.gp.paths import Paths
from optpair.gp.posterior import Posterior
from optpair.runtime import double, make_key, pytree

SHARED = ("X", "mask")  # what the sets of a posterior have in common


@pytree
@dataclass(frozen=True)
class TS(Acquisition):
    """One sample path, in units of y."""

    path: Paths  # of one set

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.path.posterior.X.shape[1]

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """f(x)."""
        return self.path.at(X)[0, 0]


def build(context: Context) -> TS:
    """One of the paths that the engine has drawn."""
    if context.paths is None:
        raise ValueError("Thompson sampling needs sample paths")
    set_key, path_key = jax.random.split(context.key)
    sets, paths, _ = context.paths.update.shape
    chosen = jax.random.randint(set_key, (), 0, sets)
    return _one(context.paths, chosen, jax.random.randint(path_key, (), 0, paths))


def _one(paths: Paths, chosen: Array, path: Array) -> TS:
    """One path of one set."""
    posterior = _of_set(paths.posterior, chosen)
    drawn = (x[chosen, path][None, None] for x in (paths.cosine, paths.sine, paths.update))
    return TS(Paths(posterior, paths.turns[chosen][None], *drawn))


def _of_set(posterior: Posterior, chosen: Array) -> Posterior:
    own = {name: part for name, part in vars(posterior).items() if name not in SHARED}
    return replace(posterior, **jax.tree.map(lambda x: x[chosen][None], own))


@double
def ts(posterior: Posterior, key: Array | int = 0, *, features: int = 1024) -> TS:
    """One sample of the objective as a function of points: `ts(posterior, key)(X)`.

    `key` is a JAX key or a seed: it chooses the hyperparameter set, and the path under it.
    """
    set_key, path_key = jax.random.split(make_key(key) if isinstance(key, int) else key)
    chosen = jax.random.randint(set_key, (), 0, len(posterior.mean))
    own = _of_set(posterior, chosen)
    return TS(gp_paths.sample(path_key, own, paths=1, features=features))
