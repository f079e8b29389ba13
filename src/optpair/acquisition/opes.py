"""Output-space Predictive Entropy Search: how much an evaluation says about f*, given the data.

By Hoffman and Ghahramani (2016). Like Max-value Entropy Search it asks about the maximum f*, but
knowing f* tells more than a bound at the query:

    (O1)  f(x_i) ≤ f*     at the data x_i
    (O2)  f(x) ≤ f*       at the query x

(O1) becomes Gaussian sites by expectation propagation (`special.orthant`), once for each f*, and
leaves a GP with mean m_o and variance s_o. It is reached through the data's own rows, as

    (O3)  cov(f(x_i), f(x)) = σ_i² e_iᵀ (K + Σ)⁻¹ k(X, x)

(O2) is then a truncation, by moment matching, as in (M4):

    (O4)  gain(x) = ½ log(s + σ²) − ½ log(s_o v(β) + σ²),    β = (f* − m_o)/√s_o

averaged over f* and sets, in nats. Without noise the values at the data are known, (O1) says
nothing, and it is `gibbon`; under noise a datum that looks better than f* is known to have been
lucky, which lowers f around it and is one more thing that f* tells.

Where this differs from the paper: of the data, each place counts once, and the 16 that are
likeliest to exceed f* have sites (the others are below it anyway); paths are conditioned by
Matheron's rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.acquisition.base import Context, check_sets
from optpair.acquisition.jes import JES
from optpair.acquisition.special import orthant
from optpair.gp.conditioned import Conditioned, Functionals
from optpair.gp.linalg import inverse_factors
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float, Int
from optpair.runtime.threads import engine_work

MOST = 16  # data that have a site
SOFTNESS = 1e-8  # of the output scale, of the inequalities


@dataclass(frozen=True, repr=False)
class OPES(JES):
    """α_OPES, in nats: the two terms of (M4) with another thing known of f*."""


def _likeliest(
    posterior: Posterior,
    places: Int[np.ndarray, " u"],
    above: Float[np.ndarray, "M P n"],
    variance: Float[np.ndarray, "M n"],
) -> Int[np.ndarray, "M K"]:
    """Of some data, those of each set that are likeliest to exceed one of its f*."""
    spread = np.sqrt(variance + SOFTNESS * posterior.outputscale[:, None])
    distance = np.min(above, 1)[:, places] / spread[:, places]
    return np.asarray(places[np.argsort(distance, -1, kind="stable")[:, :MOST]])


def _bounded(posterior: Posterior, f: Float[np.ndarray, "M P"]) -> Conditioned:
    """The posterior that knows (O1), through C⁻¹k(X, x) alone."""
    a, M, P = posterior.outputscale, *f.shape
    prior = posterior.covariance.diagonal(posterior.X)
    noises = posterior.noise_var + posterior.jitter[:, None] * (prior + posterior.noise_var)
    back = posterior.inverse_factor * noises[:, None]  # C⁻¹Σ, by columns
    variance = np.maximum(noises - np.sum(back * back, 1), 0.0)
    above = f[..., None] - posterior.means_at_data()
    places = np.sort(np.unique(posterior.X, axis=0, return_index=True)[1])
    chosen = _likeliest(posterior, places, above, variance)
    back = np.take_along_axis(back, chosen[:, None], 2)  # (O3) is A(x) times this
    k = chosen.shape[1]
    diagonal = np.take_along_axis(noises, chosen, 1)[..., None] * np.eye(k)
    V = diagonal - back.mT @ back + (SOFTNESS * a)[:, None, None] * np.eye(k)
    V = np.broadcast_to(V[:, None], (M, P, k, k))
    mean = np.take_along_axis(above, np.broadcast_to(chosen[:, None], (M, P, k)), 2)
    sites = orthant.propagate(mean, V, np.ones(mean.shape, dtype=bool))
    root = np.sqrt(sites.precision)
    L = inverse_factors(np.eye(k) + root[..., :, None] * root[..., None, :] * V)
    target = np.divide(sites.shift, root, out=np.zeros_like(root), where=root > 0)
    shift = np.matvec(L, target - root * mean)
    # z = L root (f* − f(X)), so that cov(f(x), z) is minus that with f(X).
    whitened = (L * root[..., None, :]) @ back.mT[:, None]
    return Conditioned(posterior, Functionals(()), np.zeros((M, P, k, 0)), whitened, shift)


def _of(posterior: Posterior, optima: Optima) -> OPES:
    return OPES(_bounded(posterior, optima.best), optima.best, optima.weights)


def build(context: Context) -> OPES:
    """OPES from what the engine has at hand."""
    return _of(context.posterior, context.need_optima("Output-space Predictive Entropy Search"))


@engine_work
def opes(posterior: Posterior, optima: Optima) -> OPES:
    """Output-space Predictive Entropy Search: `opes(posterior, optima)(X)` in nats.

    Of the optima only f* is used.
    """
    check_sets(posterior, optima.f)
    return _of(posterior, optima)
