"""Data, processes and SciPy's densities for the tests of likelihood and inference."""

from __future__ import annotations

import numpy as np
from scipy import stats

from gp_cases import KERNELS, D, correlation
from optpair.gp import Prior
from optpair.gp.process import Process

_RNG = np.random.default_rng(0)
THETA = _RNG.normal(size=(4, D + 3)) * [0.7, 0.7, 0.5, 0.7, 1.0] - [1.0, 0.3, 0.0, 3.0, 0.0]
ROUGH = np.array([[-0.4], [0.0], [0.3], [1.2]])
"""Log odds of the rough share, in units of 4."""
PRIOR = Prior(noise_floor=1e-3)


def on_plane(kernel: str = "rbf", prior: Prior = PRIOR) -> Process:
    """A process in two dimensions."""
    return Process((0, 1), KERNELS[kernel], prior)


def thetas(kernel: str) -> np.ndarray:
    """Four θ of a process in two dimensions."""
    return np.hstack([THETA, ROUGH]) if kernel == "mixed" else THETA


def log_likelihood(
    kernel: str, theta: np.ndarray, X: np.ndarray, y: np.ndarray, noise_var: np.ndarray
) -> float:
    """log N(y; μ, K + Σ), normalised."""
    noise = PRIOR.noise_floor + np.exp(theta[D + 1])
    r = np.sqrt(np.sum(((X[:, None] - X) / np.exp(theta[:D])) ** 2, -1))
    K = np.exp(theta[D]) * correlation(kernel, r, 1 / (1 + np.exp(-4 * theta[-1])))
    K = K + np.diag(np.where(np.isnan(noise_var), noise, noise_var))
    return float(stats.multivariate_normal.logpdf(y, np.full(len(y), 0.5 * theta[D + 2]), K))


def scipy_log_prior(theta: np.ndarray) -> float:
    """The documented default priors, normalised."""
    centre, covariance = np.full(D, 2**0.5 + 0.5 * np.log(D)), np.eye(D) + 2
    return float(
        stats.multivariate_normal.logpdf(theta[:D], centre, covariance)
        + stats.norm.logpdf(theta[D], 0, 0.7)
        + stats.norm.logpdf(theta[D + 1], -4, 1)
        + np.sum(stats.norm.logpdf(theta[D + 2 :]))
    )
