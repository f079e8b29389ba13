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

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.special import logsumexp

from optpair.acquisition.base import Context, OfMoments, Partials, bounded, incumbent
from optpair.acquisition.special.normal import log_ei, log_ei_and_slope
from optpair.gp.linalg import factorise
from optpair.gp.posterior import Posterior
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work

DRAWS = 32  # of the values at the data, per set
NUGGET = 1e-8  # of the output scale

White = Float[np.ndarray, "2 draws n"]
"""Standard normal numbers: u and ε of (M12), for each draw and fantasy."""


@dataclass(frozen=True, repr=False)
class EI(OfMoments):
    """The mean EI, or its logarithm, which has a slope to climb where EI itself is 0."""

    posterior: Posterior
    incumbent: Float[np.ndarray, "M F"]
    log: bool

    def of_moments(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, " q"]:
        """EI(x) or log EI(x)."""
        s, _ = bounded(self.posterior, variance)
        sd = np.sqrt(s)[:, None]
        value = _log_mean(np.log(sd) + log_ei(self._above(means, sd)))  # (M10)
        return value if self.log else np.exp(value)

    def partials(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Partials:
        """EI(x) or log EI(x), and its derivatives.

        Those of log √s + log EI(z) by m and s are r/√s and (1 − r z)/2s, with r the slope of log EI
        in z. Each set and fantasy counts by its share in the mean.
        """
        s, free = bounded(self.posterior, variance)
        sd = np.sqrt(s)[:, None]
        z = self._above(means, sd)
        log_improvement, slope = log_ei_and_slope(z)
        each = np.log(sd) + log_improvement
        value = _log_mean(each)
        share = np.exp(each - value) / (z.shape[0] * z.shape[1])
        by_means = share * slope / sd
        by_variance = np.sum(share * (1 - slope * z), 1) * (0.5 / s) * free
        if self.log:
            return Partials(value, by_means, by_variance)
        improvement = np.exp(value)
        return Partials(improvement, improvement * by_means, improvement * by_variance)

    def _above(self, means: np.ndarray, sd: np.ndarray) -> Float[np.ndarray, "M F q"]:
        return np.asarray((means - self.incumbent[..., None]) / sd)


def _log_mean(each: Float[np.ndarray, "M F q"]) -> Float[np.ndarray, " q"]:
    """The logarithm of the mean over sets and fantasies."""
    return np.asarray(logsumexp(each, axis=(0, 1)) - np.log(each.shape[0] * each.shape[1]))


def build(context: Context, *, log: bool) -> EI:
    """EI from what the engine has at hand."""
    return _of(context.posterior, log)


def build_noisy(context: Context, *, log: bool) -> EI:
    """Noisy EI from what the engine has at hand; with fantasies, some draws for each."""
    draws = -(-DRAWS // context.posterior.fantasies)
    return _noisy(context.posterior, white(context.stream, context.posterior, draws), log)


def _of(posterior: Posterior, log: bool) -> EI:
    return EI(posterior, incumbent(posterior), log)


def _noisy(posterior: Posterior, white: White, log: bool) -> EI:
    return _of(redrawn(posterior, white), log)  # (M11)


def white(stream: Stream, posterior: Posterior, draws: int) -> White:
    """Sets share them, and one more observation leaves those of the others as they are."""
    shape = (len(posterior.X), 2, draws * posterior.fantasies)
    return np.moveaxis(stream.draw().standard_normal(shape), 0, 2)


def redrawn(posterior: Posterior, white: White) -> Posterior:
    """Posteriors without noise, one for each draw of the values at the data and each fantasy.

    The draws of `white` are those of the first fantasy, the second, …, and again from the first.
    """
    noise_var, X = posterior.noise_var, posterior.X
    nugget = np.minimum(noise_var, NUGGET * posterior.outputscale[:, None])
    diagonal = posterior.covariance.diagonal(X) + nugget
    K = posterior.covariance.between(X, X).K
    index = np.arange(len(X))
    K[:, index, index] = diagonal
    L, inverse, jitter = np.empty_like(K), np.empty_like(K), np.empty(len(K))
    for m, gram in enumerate(K):
        L[m], jitter[m] = factorise(gram)
        inverse[m] = dtrtri(L[m], lower=1)[0]
    u, noise = white[0], np.sqrt(noise_var - nugget)[:, None] * white[1]
    prior = u @ L.mT
    residual = np.tile(posterior.residual, (1, len(u) // posterior.fantasies, 1))
    w = posterior.solve(residual - prior - noise)
    return replace(
        posterior,
        noise_var=nugget,
        residual=prior + w @ K,
        weights=u @ inverse + w,  # (M12)
        inverse_factor=inverse,
        jitter=jitter,
    )


@engine_work
def ei(posterior: Posterior) -> EI:
    """Expected Improvement as a function of points, in units of y: `ei(posterior)(X)`."""
    return _of(posterior, False)


@engine_work
def logei(posterior: Posterior) -> EI:
    """Log Expected Improvement as a function of points: `logei(posterior)(X)`."""
    return _of(posterior, True)


@engine_work
def nei(posterior: Posterior, seed: int = 0, *, draws: int = DRAWS, log: bool = False) -> EI:
    """Noisy Expected Improvement as a function of points, in units of y: `nei(posterior)(X)`.

    `seed` is that of the `draws` of the values at the data; `log` gives the logarithm.
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, not {draws}")
    return _noisy(posterior, white(Stream.of(seed), posterior, draws), log)
