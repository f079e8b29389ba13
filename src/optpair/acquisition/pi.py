"""Probability of Improvement over a threshold.

    PI(x) = Φ((m(x) − τ) / √s(x)),    τ = m⁺ + margin · √a                               (M13)

m⁺ is the best posterior mean among the observed points. Without a margin PI hardly leaves the
incumbent; the one used here is small. Probabilities are averaged over sets and fantasies.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from optpair.acquisition.base import SMALLEST, Acquisition, Context, incumbent
from optpair.acquisition.normal import log_ndtr
from optpair.gp.posterior import Posterior
from optpair.runtime import compiled, double, pytree

MARGIN = 0.01  # of the output scale's square root


@pytree
@dataclass(frozen=True)
class PI(Acquisition):
    """The mean probability of improvement."""

    posterior: Posterior
    threshold: Float[Array, "M F"]

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """P(f(x) > τ)."""
        means, variance = self.posterior.moments(X)
        floor = SMALLEST * self.posterior.outputscale[:, None]
        sd = jnp.sqrt(jnp.maximum(variance, floor))[:, None]
        z = (means - self.threshold[..., None]) / sd
        return jnp.mean(jnp.exp(log_ndtr(z)), (0, 1))  # (M13)


def build(context: Context) -> PI:
    """PI from what the engine has at hand."""
    return _of(context.posterior, MARGIN)


def _of(posterior: Posterior, margin: float | Float[Array, ""]) -> PI:
    step = margin * jnp.sqrt(posterior.outputscale)[:, None]
    return PI(posterior, incumbent(posterior) + step)


_compiled = compiled()(_of)


@double
def pi(
    posterior: Posterior, *, margin: float = MARGIN, threshold: float | ArrayLike | None = None
) -> PI:
    """Probability of Improvement as a function of points: `pi(posterior)(X)`.

    `margin`, relative to √a, is added to the best posterior mean; `threshold`, in units of y, one
    value or one a set, replaces both.
    """
    if threshold is None:
        return _compiled(posterior, margin)
    sets, fantasies, _ = posterior.residual.shape
    given = np.asarray(threshold, dtype=np.float64)
    if given.shape not in ((), (sets,)):
        raise ValueError(f"threshold must be a number or have shape ({sets},), not {given.shape}")
    each = np.broadcast_to(given.reshape(-1, 1), (sets, fantasies))
    return PI(posterior, jnp.asarray(each))
