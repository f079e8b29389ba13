"""Triangular factors that do not crash: Cholesky with a jitter ladder, and inverses."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from optpair.runtime.shapes import Float

ROUND_OFF = 4 * float(np.finfo(np.float64).eps)  # of the diagonal, per row: no pivot is smaller
JITTERS = (0.0, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def factorise(K: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, "n n"], float]:
    """C of K = CCᵀ, and the first relative jitter on the ladder that allows it; NaN if none."""
    n, diagonal = len(K), np.diagonal(K)
    for jitter in JITTERS:
        A = K.copy()
        A.flat[:: n + 1] += jitter * diagonal
        C, failed = dpotrf(A.T, lower=1, overwrite_a=1)
        if not failed and np.all(np.diagonal(C) ** 2 > ROUND_OFF * n * diagonal):
            return C, jitter
    return np.full_like(K, np.nan), jitter


def inverse_factor(K: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, "n n"], float]:
    """C⁻¹ of K = CCᵀ, and the relative jitter that it took; NaN where none was enough."""
    C, jitter = factorise(K)
    return (dtrtri(C, lower=1)[0] if len(K) else C), jitter


def inverse_factors(V: Float[np.ndarray, "*b k k"]) -> Float[np.ndarray, "*b k k"]:
    """L⁻¹ of each V = LLᵀ of a batch, with jitter where V needs it."""
    k = V.shape[-1]
    try:
        found = np.linalg.inv(np.linalg.cholesky(V))
        sound = np.isfinite(found).all((-2, -1))
    except np.linalg.LinAlgError:
        found, sound = np.empty_like(V), np.zeros(V.shape[:-2], dtype=bool)
    for index in zip(*np.nonzero(~sound), strict=True):
        found[index] = inverse_factor(V[index])[0]
    return np.tril(found).reshape(*V.shape[:-2], k, k)
