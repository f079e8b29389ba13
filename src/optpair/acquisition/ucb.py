"""An upper confidence bound.

    UCB(x) = m(x) + κ √s(x),    κ² = ⅖ log(n^(d/2 + 2) π² / (3δ)),   δ = 0.1             (M14)

κ² is the schedule of GP-UCB for d parameters after n observations (Brochu, Cora and de Freitas,
2010), a fifth of what its regret bound asks for, as in the experiments of Srinivas et al. (2010).
Bounds are averaged over sets and fantasies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optpair.acquisition.base import Context, OfMoments, Partials, bounded
from optpair.gp.posterior import Posterior
from optpair.runtime.shapes import Float

DELTA = 0.1
SHARE = 0.2


@dataclass(frozen=True, repr=False)
class UCB(OfMoments):
    """The mean upper bound, in units of y."""

    posterior: Posterior
    kappa: float

    def of_moments(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, " q"]:
        """m(x) + κ √s(x)."""
        s, _ = bounded(self.posterior, variance)
        return np.asarray(means.mean((0, 1)) + self.kappa * np.sqrt(s).mean(0))  # (M14)

    def partials(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Partials:
        """m(x) + κ √s(x), and its derivatives."""
        s, free = bounded(self.posterior, variance)
        by_means = np.full(means.shape, 1 / (means.shape[0] * means.shape[1]))
        by_variance = 0.5 * self.kappa / (np.sqrt(s) * len(s)) * free
        return Partials(self.of_moments(means, variance), by_means, by_variance)


def build(context: Context) -> UCB:
    """UCB from what the engine has at hand; pending points count as observations."""
    posterior = context.posterior
    return UCB(posterior, schedule(len(posterior.told), context.cube.parameters))


def schedule(n: int, parameters: int) -> float:
    """κ after n observations."""
    power = parameters / 2 + 2
    grown = power * math.log(max(n, 1)) + math.log(math.pi**2 / (3 * DELTA))
    return math.sqrt(2 * SHARE * grown)


def ucb(posterior: Posterior, *, kappa: float | None = None) -> UCB:
    """An upper confidence bound as a function of points: `ucb(posterior)(X)`, in units of y.

    `kappa` replaces the schedule.
    """
    if kappa is None:
        return UCB(posterior, schedule(len(posterior.told), posterior.dimensions))
    if not 0 <= kappa < math.inf:
        raise ValueError(f"kappa must be at least 0 and finite, not {kappa!r}")
    return UCB(posterior, float(kappa))
