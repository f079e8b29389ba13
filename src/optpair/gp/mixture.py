"""A mixture of normals with equal weights: what M hyperparameter sets say of one value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Mixture:
    """Means and standard deviations of the components."""

    means: Float[np.ndarray, " M"]
    sds: Float[np.ndarray, " M"]

    @property
    def mean(self) -> float:
        """The mean of the mixture."""
        return float(np.mean(self.means))

    @property
    def sd(self) -> float:
        """The standard deviation: √(mean variance + variance of the means)."""
        centred = self.means - self.mean
        largest = float(max(np.max(self.sds), np.max(np.abs(centred)), TINY))
        return largest * float(
            np.sqrt(np.mean((self.sds / largest) ** 2 + (centred / largest) ** 2))
        )

    def quantile(self, probability: float) -> float:
        """The value below which a share `probability` of the mixture lies, by bisection."""
        edges = self.means + self.sds * ndtri(probability)
        low, high = float(edges.min()), float(edges.max())
        for _ in range(200):
            middle = low + (high - low) / 2
            if not low < middle < high:
                break
            with np.errstate(over="ignore"):  # infinitely many deviations away is an answer
                share = np.mean(ndtr((middle - self.means) / np.maximum(self.sds, TINY)))
            low, high = (middle, high) if share < probability else (low, middle)
        return low + (high - low) / 2
