"""Expected Improvement over the best posterior mean among the observed points, in log form.

    EI(x) = √s (φ(z) + z Φ(z)),    z = (m(x) − m⁺) / √s,    m⁺ = max_i m(x_i)

The incumbent m⁺ is what the model believes, never the luckiest noisy value. Improvements are
averaged over sets and fantasies before the logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.acquisition.base import SMALLEST, Acquisition, Context
from optpair.acquisition.normal import log_ei
from optpair.gp.posterior import Posterior
from optpair.runtime import compiled, double, pytree


@pytree
@dataclass(frozen=True)
class LogEI(Acquisition):
    """log of the mean EI."""

    posterior: Posterior
    incumbent: Float[Array, "M F"]

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.X.shape[1]

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """log EI(x)."""
        means, variance = self.posterior.moments(X)
        floor = SMALLEST * self.posterior.outputscale[:, None]
        sd = jnp.sqrt(jnp.maximum(variance, floor))[:, None]
        each = jnp.log(sd) + log_ei((means - self.incumbent[..., None]) / sd)
        count = each.shape[0] * each.shape[1]
        return jax.scipy.special.logsumexp(each, axis=(0, 1)) - jnp.log(float(count))


def build(context: Context) -> LogEI:
    """Log EI from what the engine has at hand."""
    return _of(context.posterior)


def _of(posterior: Posterior) -> LogEI:
    means = posterior.means(posterior.covariance(posterior.X))
    return LogEI(posterior, jnp.max(jnp.where(posterior.mask, means, -jnp.inf), -1))


_compiled = compiled()(_of)


@double
def logei(posterior: Posterior) -> LogEI:
    """Log Expected Improvement as a function of points: `logei(posterior)(X)`."""
    return _compiled(posterior)
