"""Joint Entropy Search: how much an evaluation would say about the optimal pair (x*, f*).

For one set and one pair, with s* = s(x*), m* = m(x*) and q(x) = cov(f(x), f(x*)):

    (M1)  m_p(x) = m(x) + q(x) (f* − m*) / (s* + δ)
    (M2)  s_p(x) = s(x) − q(x)² / (s* + δ)
    (M3)  β = (f* − m_p) / √s_p, and v(β) the variance of a standard normal truncated above at β
    (M4)  gain_p(x) = ½ log(s + σ²) − ½ log(s_p v + σ²), in two terms that cannot cancel
    (M5)  α(x) = mean over sets of the mean over that set's pairs of gain_p(x)

The first term of (M4), what knowing f(x*) = f* takes from the variance at x, is exact. The second,
what knowing f(x) ≤ f* takes, is moment-matched (a lower bound) or, with `exact`, an integral.

δ keeps a pair at which the posterior is already certain from dividing by zero. It is relative to
the output scale: the smaller it is, the closer to a noiseless observation of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.acquisition.base import Acquisition, Context, check_sets, pair_gain
from optpair.gp.posterior import Posterior
from optpair.pairs import OptimalPairs
from optpair.runtime import compiled, double, pytree, static

DELTA = 1e-8


@pytree
@dataclass(frozen=True)
class JES(Acquisition):
    """α_JES (M5), in nats."""

    posterior: Posterior
    x: Float[Array, "M P D"]
    f: Float[Array, "M P"]
    whitened: Float[Array, "M P n"]  # C⁻¹k(X, x*)
    surprise: Float[Array, "M P"]  # (f* − m*) / (s* + δ)
    precision: Float[Array, "M P"]  # 1 / (s* + δ)
    exact: bool = static()

    def conditioned(
        self, X: Float[Array, "q D"]
    ) -> tuple[Float[Array, "M q"], Float[Array, "M P q"], Float[Array, "M P q"]]:
        """s, what a pair takes from it, and f* − m_p."""
        posterior = self.posterior
        K = posterior.covariance(X)
        A = posterior.whiten(K)
        variance = posterior.variance(A)
        q = posterior.prior_covariance(self.x, X) - self.whitened @ jnp.swapaxes(A, 1, 2)
        mean_given = posterior.means(K) + q * self.surprise[..., None]  # (M1)
        taken = jnp.minimum(q * q * self.precision[..., None], variance[:, None])  # (M2)
        return variance, taken, self.f[..., None] - mean_given

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """α(x), nats."""
        return pair_gain(self.posterior, *self.conditioned(X), exact=self.exact)


def build(context: Context, *, exact: bool = False) -> JES:
    """JES from what the engine has at hand."""
    if context.stars is None:
        raise ValueError("Joint Entropy Search needs optimal pairs")
    return _of(context.posterior, context.stars, DELTA, exact)


def _of(
    posterior: Posterior, stars: OptimalPairs, delta: float | Float[Array, ""], exact: bool
) -> JES:
    """What is shared by all candidates is computed once."""
    x, f = jnp.asarray(stars.x), jnp.asarray(stars.f)
    K = posterior.covariance(x)
    A = posterior.whiten(K)
    means = posterior.means(K)  # (M, F, P): with fantasies, pair p belongs to fantasy p
    own = means[:, 0] if means.shape[1] == 1 else jnp.diagonal(means, axis1=1, axis2=2)
    scale = posterior.variance(A) + delta * posterior.outputscale[:, None]
    return JES(posterior, x, f, A, (f - own) / scale, 1 / scale, exact)


_compiled = compiled("exact")(_of)


@double
def jes(
    posterior: Posterior, stars: OptimalPairs, *, delta: float = DELTA, exact: bool = False
) -> JES:
    """Joint Entropy Search as a function of points: `jes(posterior, stars)(X)` in nats.

    `delta` (relative to the output scale) softens the conditioning on a pair; `exact` computes the
    truncation term by quadrature instead of moment matching, at several times the cost.
    """
    check_sets(posterior, stars.f)
    return _compiled(posterior, stars, delta, exact)
