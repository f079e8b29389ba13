"""Exploitation: the posterior mean, averaged over sets and fantasies.

It is what the recommendation maximises, and what γ-exploit asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.acquisition.base import Acquisition, Context
from optpair.gp.posterior import Posterior
from optpair.runtime import pytree


@pytree
@dataclass(frozen=True)
class Mean(Acquisition):
    """The mean over sets of m(x), in units of y."""

    posterior: Posterior

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """m(x)."""
        return jnp.mean(self.posterior.means(self.posterior.covariance(X)), (0, 1))


def build(context: Context) -> Mean:
    """The mean from what the engine has at hand."""
    return Mean(context.posterior)


def mean(posterior: Posterior) -> Mean:
    """The posterior mean as a function of points: `mean(posterior)(X)`."""
    return Mean(posterior)
