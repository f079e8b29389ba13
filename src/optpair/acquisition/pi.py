"""Probability of Improvement over a threshold.

    PI(x) = Φ((m(x) − τ) / √s(x)),    τ = m⁺ + margin · √a                               (M13)

m⁺ is the best posterior mean among the observed points. Without a margin PI hardly leaves the
incumbent; the one used here is small. Probabilities are averaged over sets and fantasies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from optpair.acquisition.base import Context, OfMoments, Partials, bounded, incumbent
from optpair.gp.posterior import Posterior
from optpair.runtime.shapes import Float
from optpair.runtime.threads import engine_work

MARGIN = 0.01  # of the output scale's square root
SQRT_2PI = np.sqrt(2 * np.pi)


@dataclass(frozen=True, repr=False)
class PI(OfMoments):
    """The mean probability of improvement."""

    posterior: Posterior
    threshold: Float[np.ndarray, "M F"]

    def of_moments(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, " q"]:
        """P(f(x) > τ)."""
        s, _ = bounded(self.posterior, variance)
        return np.asarray(ndtr(self._above(means, np.sqrt(s)[:, None])).mean((0, 1)))  # (M13)

    def partials(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Partials:
        """P(f(x) > τ), and its derivatives."""
        s, free = bounded(self.posterior, variance)
        sd = np.sqrt(s)[:, None]
        z = self._above(means, sd)
        by_means = np.exp(-0.5 * z * z) / (SQRT_2PI * sd * (z.shape[0] * z.shape[1]))
        by_variance = -0.5 * np.sum(by_means * z / sd, 1) * free
        return Partials(ndtr(z).mean((0, 1)), by_means, by_variance)

    def _above(self, means: np.ndarray, sd: np.ndarray) -> Float[np.ndarray, "M F q"]:
        return np.asarray((means - self.threshold[..., None]) / sd)


def build(context: Context) -> PI:
    """PI from what the engine has at hand."""
    return pi(context.posterior)


@engine_work
def pi(
    posterior: Posterior, *, margin: float = MARGIN, threshold: float | ArrayLike | None = None
) -> PI:
    """Probability of Improvement as a function of points: `pi(posterior)(X)`.

    `margin`, relative to √a, is added to the best posterior mean; `threshold`, in units of y, one
    value or one per set, replaces both.
    """
    if threshold is None:
        return PI(
            posterior, incumbent(posterior) + margin * np.sqrt(posterior.outputscale)[:, None]
        )
    given = np.asarray(threshold, dtype=np.float64)
    if given.shape not in ((), (posterior.sets,)):
        raise ValueError(
            f"threshold must be a number or have shape ({posterior.sets},), not {given.shape}"
        )
    each = np.broadcast_to(given.reshape(-1, 1), (posterior.sets, posterior.fantasies))
    return PI(posterior, each)
