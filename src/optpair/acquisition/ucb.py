"""An upper confidence bound.

    UCB(x) = m(x) + κ √s(x),    κ² = ⅖ log(n^(d/2 + 2) π² / (3δ)),   δ = 0.1             (M14)

κ² is the schedule of GP-UCB for d parameters after n observations (Brochu, Cora and de Freitas,
2010), a fifth of what its regret bound asks for, as in the experiments of Srinivas et al. (2010).
Bounds are averaged over sets and fantasies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.acquisition.base import SMALLEST, Acquisition, Context
from optpair.gp.posterior import Posterior
from optpair.runtime import double, pytree

DELTA = 0.1
SHARE = 0.2


@pytree
@dataclass(frozen=True)
class UCB(Acquisition):
    """The mean upper bound, in units of y."""

    posterior: Posterior
    kappa: Float[Array, ""]

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """m(x) + κ √s(x)."""
        means, variance = self.posterior.moments(X)
        floor = SMALLEST * self.posterior.outputscale[:, None]
        sd = jnp.sqrt(jnp.maximum(variance, floor))
        return jnp.mean(means, (0, 1)) + self.kappa * jnp.mean(sd, 0)  # (M14)


def build(context: Context) -> UCB:
    """UCB from what the engine has at hand; pending points count as observations."""
    n = jnp.sum(context.posterior.mask)
    return UCB(context.posterior, schedule(n, context.cube.parameters))


def schedule(n: Array, parameters: int) -> Float[Array, ""]:
    """κ after n observations."""
    power = parameters / 2 + 2
    grown = power * jnp.log(jnp.maximum(n, 1)) + math.log(math.pi**2 / (3 * DELTA))
    return jnp.sqrt(2 * SHARE * grown)


@double
def ucb(posterior: Posterior, *, kappa: float | None = None) -> UCB:
    """An upper confidence bound as a function of points: `ucb(posterior)(X)`, in units of y.

    `kappa` replaces the schedule.
    """
    if kappa is None:
        return UCB(posterior, schedule(jnp.sum(posterior.mask), posterior.X.shape[1]))
    if not 0 <= kappa < math.inf:
        raise ValueError(f"kappa must be at least 0 and finite, not {kappa!r}")
    return UCB(posterior, jnp.asarray(float(kappa)))
