"""Exploitation: the posterior mean, averaged over sets and fantasies.

It is what the recommendation maximises, and what γ-exploit asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.acquisition.base import Acquisition, Context, Points, Rows
from optpair.gp.posterior import Posterior
from optpair.runtime.shapes import Float


@dataclass(frozen=True, repr=False)
class Mean(Acquisition):
    """The mean over sets of m(x), in units of y. It needs no variance, so nothing is whitened."""

    posterior: Posterior
    level: float  # the mean of μ over sets
    weights: Float[np.ndarray, "M n"]  # of the data in m(x), divided by M

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.dimensions

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """m(x)."""
        K = self.posterior.target.between(X).K
        return np.asarray(self.level + np.einsum("mqn,mn->q", K, self.weights))

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """m(x), and its derivatives."""
        between = self.posterior.target.between(X)
        values = self.level + np.einsum("mqn,mn->q", between.K, self.weights)
        by_K = np.broadcast_to(self.weights[:, None], between.K.shape)
        return np.asarray(values), between.pull(by_K).sum(0)


def build(context: Context) -> Mean:
    """The mean from what the engine has at hand."""
    return mean(context.posterior)


def mean(posterior: Posterior) -> Mean:
    """The posterior mean as a function of points: `mean(posterior)(X)`."""
    weights = posterior.weights.mean(1) / posterior.sets
    return Mean(posterior, float(np.mean(posterior.mean)), weights)
