"""Mixtures of normals with equal weights: what M hyperparameter sets say of q values."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from optpair.runtime.shapes import Float

TINY = float(np.finfo(float).tiny)
BISECTIONS = 200

Components = Float[np.ndarray, "M q"]


def moments(
    means: Components, sds: Components
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Mean and standard deviation, √(mean variance + variance of the means), of any size."""
    mean = means.mean(0)
    centred = means - mean
    largest = np.maximum(np.maximum(sds, np.abs(centred)).max(0), TINY)
    spread = np.sqrt(((sds / largest) ** 2 + (centred / largest) ** 2).mean(0))
    return mean, largest * spread


def quantile(means: Components, sds: Components, probability: float) -> Float[np.ndarray, " q"]:
    """The values below which a share `probability` of each mixture lies, by bisection."""
    edges = means + sds * ndtri(probability)
    low, high = edges.min(0), edges.max(0)
    width = np.maximum(sds, TINY)
    for _ in range(BISECTIONS):
        middle = low + (high - low) / 2
        if not np.any((low < middle) & (middle < high)):
            break
        with np.errstate(over="ignore"):  # infinitely many deviations away is an answer
            below = ndtr((middle - means) / width).mean(0) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(low + (high - low) / 2)
