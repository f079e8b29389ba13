"""Expected Improvement over the best posterior mean, and over incumbents that are uncertain.

    EI(x) = √s (φ(z) + z Φ(z)),    z = (m(x) − m⁺) / √s,    m⁺ = max_i m(x_i)            (M10)

The incumbent m⁺ is what the model believes, never the luckiest noisy value. Improvements are
averaged over sets and fantasies before a logarithm is taken.

Under noise the value of the incumbent is not known, and what is improved on is correlated with what
is looked at. Noisy EI draws the values at all observed points jointly from the posterior, and takes
(M10) under the process conditioned on such a draw, without noise; then it averages over draws:

    NEI(x) = E_{f(X)} [ E[ max(0, f(x) − max_i f(x_i)) | f(X) ] ]                        (M11)

Draws come from Matheron's rule on the data's own rows, exactly: with T a nugget, L Lᵀ = K + T and
u, ε standard normal,

    f̃ = μ + L u + (K + T) w,   w = (K + Σ)⁻¹ (y − μ − L u − √(Σ − T) ε)                   (M12)

is a draw of f + √T η given y, and its weights (K + T)⁻¹ (f̃ − μ) = L⁻ᵀ u + w cancel nowhere. The
values of sample paths at the data would do as draws, but their weights would need a solve with a
nearly singular K that magnifies the error of random features. T is, at each observation, the
smaller of its noise and 1e-8 of the output scale: where there is no noise f̃ = y, and NEI is EI.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from optpair.acquisition.base import Acquisition, Context, incumbent, log_improvement
from optpair.gp.posterior import Posterior, gram, inverse_lower, robust_cholesky
from optpair.runtime import compiled, double, make_key, pytree, static

DRAWS = 32  # of the values at the data, a set
NUGGET = 1e-8  # of the output scale


@pytree
@dataclass(frozen=True)
class EI(Acquisition):
    """The mean EI, or its logarithm, which has a slope to climb where EI itself is 0."""

    posterior: Posterior
    incumbent: Float[Array, "M F"]
    log: bool = static()

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """EI(x) or log EI(x)."""
        value = log_improvement(self.posterior, self.incumbent, X)
        return value if self.log else jnp.exp(value)


def build(context: Context, *, log: bool) -> EI:
    """EI from what the engine has at hand."""
    return _of(context.posterior, log)


def build_noisy(context: Context, *, log: bool) -> EI:
    """Noisy EI from what the engine has at hand; with fantasies, some draws for each."""
    fantasies = context.posterior.residual.shape[1]
    return _noisy(context.key, context.posterior, -(-DRAWS // fantasies), log)


def _of(posterior: Posterior, log: bool) -> EI:
    return EI(posterior, incumbent(posterior), log)


def _noisy(key: Array, posterior: Posterior, draws: int, log: bool) -> EI:
    return _of(_redrawn(key, posterior, draws), log)  # (M11)


def _redrawn(key: Array, posterior: Posterior, draws: int) -> Posterior:
    """Posteriors without noise, as many as draws of the values at the data, for each fantasy.

    Sets share their normal numbers; each observation has a key of its own, so that padding does not
    change what is drawn.
    """
    M, F, n = posterior.residual.shape
    noise_var = posterior.noise_var
    nugget = jnp.minimum(noise_var, NUGGET * posterior.outputscale[:, None])
    kernel, scale, outputscale = posterior.kernel, posterior.scale, posterior.outputscale
    K = gram(kernel, scale, outputscale, nugget, posterior.X, posterior.mask)
    L, jitter = robust_cholesky(K)
    inverse = inverse_lower(L)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(n))
    white = jax.vmap(lambda k: jax.random.normal(k, (2, draws * F)), out_axes=2)(keys)
    u, noise = white[0], jnp.sqrt(jnp.maximum(noise_var - nugget, 0.0))[:, None] * white[1]
    prior = u @ jnp.swapaxes(L, 1, 2)
    residual = jnp.broadcast_to(posterior.residual[:, None], (M, draws, F, n))
    gap = jnp.where(posterior.mask, residual.reshape(M, draws * F, n) - prior - noise, 0.0)
    w = posterior.whiten(gap) @ posterior.inverse_factor
    weights = jnp.where(posterior.mask, u @ inverse + w, 0.0)  # (M12)
    return replace(
        posterior,
        noise_var=nugget,
        residual=jnp.where(posterior.mask, prior + w @ K, 0.0),
        weights=weights,
        inverse_factor=inverse,
        jitter=jitter,
    )


_compiled = compiled("log")(_of)
_compiled_noisy = compiled("draws", "log")(_noisy)


@double
def ei(posterior: Posterior) -> EI:
    """Expected Improvement as a function of points, in units of y: `ei(posterior)(X)`."""
    return _compiled(posterior, False)


@double
def logei(posterior: Posterior) -> EI:
    """Log Expected Improvement as a function of points: `logei(posterior)(X)`."""
    return _compiled(posterior, True)


@double
def nei(posterior: Posterior, key: Array | int = 0, *, draws: int = DRAWS, log: bool = False) -> EI:
    """Noisy Expected Improvement as a function of points, in units of y: `nei(posterior)(X)`.

    `key` is a JAX key or a seed for the `draws` of the values at the data; `log` gives the
    logarithm.
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, not {draws}")
    return _compiled_noisy(make_key(key) if isinstance(key, int) else key, posterior, draws, log)
