"""FITBO: what an evaluation says about f*, where f* bounds the model itself.

By Ru, McLeod, Granziol and Osborne (2018), fast information-theoretic Bayesian optimisation. A GP g
stands for how far f is below its maximum, so that no draw exceeds it, and f is linear in g around
the mean of g:

    (F1)  f(x) = f* − ½ g(x)²
    (F2)  m_g(x) = γ + k(x, X) (K + Σ)⁻¹ (g_i − γ),    γ² = 2 (f* − μ),    g_i² = 2 (f* − y_i)
    (F3)  y ~ N(f* − ½ m_g², v),    v = s m_g²/γ² + σ²
    (F4)  α(x) = ½ log V − ½ E log v,    V = E v + var(f* − ½ m_g²)

E and var are over all sets and their f*: α is the entropy of a mixture of normals, taken for one
normal with its variance, less the mean entropy of its parts; in nats. As f* → ∞ each part is the
posterior itself: g is then far from 0, where the square is linear.

The GP of g has the kernel of f over γ², and so has the noise: then f has its prior variance a where
g is γ, all f* of a set share its factor, and s_g = s/γ².

Where this differs from the paper:
- There f* is a hyperparameter, inferred with the others from the model of g. Here sets come from
  the model of f and f* from its sample paths, as for all acquisition functions, and the
  hyperparameters of g follow from those of f as above.
- The mixture is over sets as well, there as here: α also counts what y says about them.
- Of the paper's two ways to the entropy of the mixture, this is moment matching.
- Values above f*, which noise makes, count as f*. f* − μ is at least ½ √a: closer, f would not vary
  about linearly with g.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from optpair.acquisition.base import Context, OfMoments, Partials, bounded, check_sets
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float
from optpair.runtime.threads import engine_work

CLOSEST = 0.5  # √a that f* is above the prior mean, at least


class Mixture(NamedTuple):
    """What y is expected to be under each set and f*."""

    mean: Float[np.ndarray, "M P q"]  # f* − ½ m_g²
    stretch: Float[np.ndarray, "M P q"]  # (m_g/γ)², the derivative of v by s
    variance: Float[np.ndarray, "M P q"]  # v
    away: Float[np.ndarray, "M P q"]  # the mean, from that of all
    total: Float[np.ndarray, " q"]  # V


@dataclass(frozen=True, repr=False)
class FITBO(OfMoments):
    """α_FITBO (F4), in nats."""

    posterior: Posterior  # with the residuals of g, one fantasy for each f*
    f: Float[np.ndarray, "M P"]
    centre: Float[np.ndarray, "M P"]  # γ
    weights: Float[np.ndarray, "M P"]  # of the optima; one in all

    def mixture(
        self, means: Float[np.ndarray, "M P q"], variance: Float[np.ndarray, "M q"]
    ) -> tuple[Float[np.ndarray, "M P q"], Mixture]:
        """m_g, and the parts of the mixture (F3)."""
        s = bounded(self.posterior, variance)[0][:, None]
        noise = (self.posterior.noise + self.posterior.floor)[:, None, None]
        centre = self.centre[..., None]
        g = centre + means  # (F2)
        stretch = (g / centre) ** 2
        mean, v = self.f[..., None] - 0.5 * g * g, s * stretch + noise
        away = mean - np.einsum("mpq,mp->q", mean, self.weights)
        total = np.einsum("mpq,mp->q", v + away * away, self.weights)
        return g, Mixture(mean, stretch, v, away, total)

    def of_moments(
        self, means: Float[np.ndarray, "M P q"], variance: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, " q"]:
        """α where the means of g − γ are these, nats."""
        _, of = self.mixture(means, variance)
        each = np.log(of.total / of.variance)
        return np.asarray(0.5 * np.einsum("mpq,mp->q", each, self.weights))  # (F4)

    def partials(
        self, means: Float[np.ndarray, "M P q"], variance: Float[np.ndarray, "M q"]
    ) -> Partials:
        """α, and its derivatives: by m_g through the mean of y and through v, by s through v."""
        g, of = self.mixture(means, variance)
        s, free = bounded(self.posterior, variance)
        weights = self.weights[..., None]
        values = 0.5 * np.sum(weights * np.log(of.total / of.variance), (0, 1))
        by_mean = weights * of.away / of.total
        by_v = 0.5 * weights * (1 / of.total - 1 / of.variance)
        by_g = 2 * by_v * s[:, None] / self.centre[..., None] ** 2 - by_mean
        return Partials(values, by_g * g, np.sum(by_v * of.stretch, 1) * free)


def _of(posterior: Posterior, optima: Optima) -> FITBO:
    f, mu = optima.best, posterior.mean[:, None]
    above = np.maximum(f - mu, CLOSEST * np.sqrt(posterior.outputscale)[:, None])
    centre = np.sqrt(2 * above)
    # From f − μ as it is used: where it was raised, f* was.
    below = np.maximum(above[..., None] - posterior.residual, 0.0)
    residual = np.sqrt(2 * below) - centre[..., None]
    warped = replace(
        posterior,
        mean=np.zeros(posterior.sets),
        residual=residual,
        weights=posterior.solve(residual),
    )
    return FITBO(warped, mu + above, centre, optima.weights)


def build(context: Context) -> FITBO:
    """FITBO from what the engine has at hand."""
    return _of(context.posterior, context.need_optima("FITBO"))


@engine_work
def fitbo(posterior: Posterior, optima: Optima) -> FITBO:
    """FITBO as a function of points: `fitbo(posterior, optima)(X)` in nats.

    Of the optima only f* is used. One set with one f* leaves nothing to be learnt: α is 0.
    """
    check_sets(posterior, optima.f)
    return _of(posterior, optima)
