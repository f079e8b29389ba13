"""Entropy Search: the expected fall in the entropy of x* over a few representer points.

Of Hennig and Schuler (2012), by Monte Carlo. R representer points z stand for the space, drawn anew
for every function in proportion to Expected Improvement, without replacement. Under one set the
posterior of f(z) is N(m, V), V = LLᵀ, and S draws f_s = m + Lε_s say which point is likely to be
the best. An outcome y at x, standardised to ξ ~ N(0, 1), moves every draw along one direction,
c = cov(f(z), f(x)):

    (S1)  t = s(x) + σ²,    c̃ = L⁻¹c,    ρ² = |c̃|²/t,    γ = 1/(t (1 + √(1 − ρ²)))
    (S2)  f_s(ξ) = f_s + c (ξ/√t − γ c̃·ε_s),   draws of N(m + cξ/√t, V − ccᵀ/t)
    (S3)  p_i(ξ) = mean over s of softmax_i(f_s(ξ)/T),   the chance that x* is z_i
    (S4)  α(x) = H[Σ_k w_k p(ξ_k)] − Σ_k w_k H[p(ξ_k)],   in nats, averaged over sets

with K Gauss–Hermite outcomes ξ_k of weights w_k. V − ccᵀ/t = L(I − c̃c̃ᵀ/t)Lᵀ, and
I − γc̃c̃ᵀ is the root of what is in brackets: hence (S2). The draws are the same for all x and ξ, and
as ξ moves f_s by a term without s, one exponential a draw serves all outcomes.

The softmax stands for the argmax, which counted draws would turn into steps without a slope. T is
a share (`TEMPERATURE`) of the mean gap between a draw's best and second best value, so that it
shrinks with what is left to be decided (to 1/105 of the largest standard deviation of f(z), where
numbers end); the derivative is exact for (S4) as it stands here. An average of p(ξ_k), rather than
the p of now, is the entropy to start from: the two are equal in the limit, and by concavity no gain
is negative.

With few draws gains come out too large. An entropy of S draws over R points about as likely falls
short by (R − 1)/(2S) nats. The average of p(ξ_k) holds more different draws than each p(ξ_k)
does, so that the first entropy of (S4) falls short by less than the second: α is too large by up
to that, 0.03 nats with 512 draws (one set) and 0.24 with 64 (twelve sets), and by less where x
decides little.

The density that representer points are drawn from would enter an entropy of x* over the continuum,
but not its expected fall: the mean of p(ξ) is the p of now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from optpair.acquisition.base import SMALLEST, Acquisition, Context, incumbent, log_improvement
from optpair.gp.posterior import Posterior, inverse_lower, robust_cholesky
from optpair.maximize import screen
from optpair.runtime import compiled, double, make_key, pytree

REPRESENTERS = 32
DRAWS = 768  # over all sets and fantasies
FEWEST, MOST = 32, 512  # of them, for one set and fantasy
OUTCOMES = 5
TEMPERATURE = 0.25
SOFTNESS = 1e-8  # of the output scale, on the diagonal of V
CLOSEST = 1e-6  # 1 − ρ², at least
RANGE = 600.0  # e to the power of more is too large or too small a number


@pytree
@dataclass(frozen=True)
class ES(Acquisition):
    """α_ES (S4), in nats."""

    posterior: Posterior
    z: Float[Array, "R D"]
    whitened: Float[Array, "M R n"]  # C⁻¹k(X, z)
    inverse: Float[Array, "M R R"]  # L⁻¹
    mixed: Float[Array, "M R S"]  # L⁻ᵀε, so that c̃·ε = c·L⁻ᵀε
    draws: Float[Array, "M F S R"]  # f_s
    temperature: Float[Array, "M F"]  # T
    outcomes: Float[Array, " K"]  # ξ
    weights: Float[Array, " K"]  # w

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """α(x), nats."""
        posterior = self.posterior
        A = jnp.swapaxes(posterior.whiten(posterior.covariance(X)), 1, 2)
        floor = SMALLEST * posterior.outputscale[:, None]
        variance = jnp.maximum(posterior.outputscale[:, None] - jnp.sum(A * A, 1), floor)
        total = variance + posterior.noise[:, None]
        c = posterior.prior_covariance(self.z, X) - self.whitened @ A  # (M, R, q)
        rho2 = jnp.sum((self.inverse @ c) ** 2, 1) / total
        gamma = 1 / (total * (1 + jnp.sqrt(jnp.maximum(1 - rho2, CLOSEST))))  # (S1)
        back = gamma[:, None] * (jnp.swapaxes(self.mixed, 1, 2) @ c)  # (M, S, q)

        def of_one(args: tuple[Array, ...]) -> Array:
            """The gain under one set and fantasy."""
            c, root, back, draws, temperature = args
            direction = (c / temperature).T  # (q, R)
            now = draws / temperature - direction[:, None] * back.T[..., None]  # (q, S, R)
            lift = self.outcomes[:, None, None] * (direction / root[:, None])  # (K, q, R)
            E, G = (jnp.exp(v - jax.lax.stop_gradient(_largest(v))) for v in (now, lift))
            total = jnp.einsum("qsr,kqr->qsk", E, G)
            p = G * jnp.einsum("qsr,qsk->kqr", E, 1 / total) / len(draws)  # (S2), (S3)
            before = _entropy(jnp.tensordot(self.weights, p, 1))
            return before - self.weights @ _entropy(p)  # (S4)

        M, F, S, R = self.draws.shape
        own = [jnp.repeat(v, F, 0) for v in (c, jnp.sqrt(total), back)]
        draws, temperature = self.draws.reshape(M * F, S, R), self.temperature.reshape(-1)
        return jnp.mean(jax.lax.map(of_one, (*own, draws, temperature)), 0)


def _largest(v: Float[Array, "*b R"]) -> Float[Array, "*b 1"]:
    return jnp.max(v, -1, keepdims=True)


def _entropy(p: Float[Array, "*b R"]) -> Float[Array, "*b"]:
    """−Σ p log p, with 0 log 0 = 0 and a finite slope there."""
    return -jnp.sum(p * jnp.log(jnp.maximum(p, 1e-300)), -1)


def _representers(
    key: Array, posterior: Posterior, points: Float[Array, "N D"], count: int
) -> Float[Array, "R D"]:
    """Points drawn in proportion to their mean Expected Improvement, without replacement.

    The largest of log EI plus Gumbel noise are such a draw.
    """
    if count == len(points):
        return points
    improvement = screen(partial(log_improvement, posterior, incumbent(posterior)), points)
    score = improvement + jax.random.gumbel(key, (len(points),))
    return points[jax.lax.top_k(score, count)[1]]


def _of(
    key: Array,
    posterior: Posterior,
    points: Float[Array, "N D"],
    representers: int,
    draws: int,
    outcomes: int,
    temperature: float | Float[Array, ""],
) -> ES:
    """Representer points, and what all candidates share."""
    point_key, draw_key = jax.random.split(key)
    z = _representers(point_key, posterior, points, representers)
    K = posterior.covariance(z)
    W = posterior.whiten(K)
    a = posterior.outputscale[:, None, None]
    V = posterior.prior_covariance(z, z) - W @ jnp.swapaxes(W, 1, 2)
    L, _ = robust_cholesky(V + SOFTNESS * a * jnp.eye(representers))
    inverse = inverse_lower(L)
    white = jax.random.normal(draw_key, (draws, representers))
    values = posterior.means(K)[:, :, None] + (white @ jnp.swapaxes(L, 1, 2))[:, None]
    nodes, weights = np.polynomial.hermite_e.hermegauss(outcomes)
    # |c_i|/√t is at most the standard deviation of f(z_i), and two may move apart.
    widest = jnp.sqrt(jnp.max(jnp.diagonal(V, axis1=1, axis2=2), -1, keepdims=True))
    coldest = jnp.maximum(2 * np.max(nodes) / RANGE * widest, SMALLEST**0.5 * jnp.sqrt(a[..., 0]))
    return ES(
        posterior,
        z,
        W,
        inverse,
        jnp.swapaxes(white @ inverse, 1, 2),
        values,
        jnp.maximum(temperature * _gap(values), coldest),
        jnp.asarray(nodes),
        jnp.asarray(weights / weights.sum()),
    )


def _gap(draws: Float[Array, "M F S R"]) -> Float[Array, "M F"]:
    """The mean distance between the best and the second best value of a draw."""
    if draws.shape[-1] == 1:
        return jnp.zeros(draws.shape[:2])
    best = jax.lax.top_k(draws, 2)[0]
    return jnp.mean(best[..., 0] - best[..., 1], -1)


def _draws(posterior: Posterior) -> int:
    """Draws for each set and fantasy: the more of these, the fewer."""
    M, F, _ = posterior.weights.shape
    return int(np.clip(DRAWS // (M * F), FEWEST, MOST))


def _fewer(posterior: Posterior) -> Posterior:
    """With no more fantasies of what is pending than there are draws for."""
    M, F, _ = posterior.weights.shape
    some = slice(min(F, max(DRAWS // (M * FEWEST), 1)))
    return replace(
        posterior, residual=posterior.residual[:, some], weights=posterior.weights[:, some]
    )


def build(context: Context) -> ES:
    """ES from what the engine has at hand."""
    count = min(REPRESENTERS, len(context.points))
    posterior = _fewer(context.posterior)
    S = _draws(posterior)
    return _of(context.key, posterior, context.points, count, S, OUTCOMES, TEMPERATURE)


_compiled = compiled("representers", "draws", "outcomes")(_of)


@double
def es(
    posterior: Posterior,
    points: ArrayLike,
    key: Array | int = 0,
    *,
    representers: int = REPRESENTERS,
    draws: int | None = None,
    outcomes: int = OUTCOMES,
    temperature: float = TEMPERATURE,
) -> ES:
    """Entropy Search as a function of points: `es(posterior, points)(X)` in nats.

    Representer points are drawn from `points` (N, d), all of which are taken if there are no more
    than `representers`. `draws` is the number of draws for each set, `outcomes` that of y, and
    `temperature` the softmax's, relative to the mean gap between the best two values of a draw.
    """
    given = np.asarray(points, dtype=np.float64)
    d = np.shape(posterior.X)[1]
    if given.ndim != 2 or given.shape[1] != d or len(given) == 0:
        raise ValueError(f"points must have shape (N, {d}), not {given.shape}")
    draws = _draws(posterior) if draws is None else draws
    counts = {"representers": representers, "draws": draws, "outcomes": outcomes}
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    return _compiled(
        make_key(key) if isinstance(key, int) else key,
        posterior,
        jnp.asarray(given),
        min(representers, len(given)),
        draws,
        outcomes,
        temperature,
    )
