"""Textbook formulas and small data for the tests of Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaincinv

from optpair.gp import RBF, Hyperparameters, Kernel, Matern52, Mixed
from optpair.gp.kernels import Radial

STEP = float(np.finfo(float).eps ** (1 / 3))
"""The step of central differences."""
KERNELS: dict[str, Kernel] = {"rbf": RBF(), "matern52": Matern52(), "mixed": Mixed()}

N, D, M = 8, 2, 3
_RNG = np.random.default_rng(0)
X, Y = _RNG.uniform(size=(N, D)), _RNG.normal(size=N)
Q = _RNG.uniform(size=(6, D))
HYPERS = Hyperparameters(
    lengthscale=[[0.3, 0.7], [0.1, 2.0], [0.5, 0.2]],
    outputscale=[1.0, 4.0, 0.3],
    noise=[0.01, 0.3, 0.001],
    mean=[0.2, -1.0, 3.0],
    rough=[0.3, 0.9, 0.01],
)
KNOWN = np.array([np.nan, 0.5, np.nan, 0.02, np.nan, np.nan, 0.1, np.nan])
"""Noise variances, some of them known."""


def changed(hypers: Hyperparameters, **values: object) -> Hyperparameters:
    """The same sets with other values of some hyperparameters."""
    return Hyperparameters(**{**hypers.values(), **values})


def correlation(kernel: str, r: np.ndarray, rough: float = 0.0) -> np.ndarray:
    """h as a function of the distance itself."""
    u = np.sqrt(5) * r
    share = {"rbf": 0.0, "matern52": 1.0, "mixed": rough}[kernel]
    smooth = np.exp(-(r**2) / 2)
    return np.asarray((1 - share) * smooth + share * (1 + u + u**2 / 3) * np.exp(-u))


def k(
    kernel: str, m: int, A: np.ndarray, B: np.ndarray, hypers: Hyperparameters = HYPERS
) -> np.ndarray:
    """k(A, B) of set m, from differences of points rather than a matrix product."""
    r = np.sqrt(np.sum(((A[:, None] - B) / hypers.lengthscale[m]) ** 2, -1))
    rough = hypers.own["rough"][m] if kernel == "mixed" else 0.0
    return np.asarray(hypers.outputscale[m] * correlation(kernel, r, rough))


def textbook(
    kernel: str,
    m: int,
    X: np.ndarray,
    y: np.ndarray,
    noises: np.ndarray,
    Q: np.ndarray,
    hypers: Hyperparameters = HYPERS,
) -> tuple[np.ndarray, np.ndarray]:
    """The posterior's mean and covariance at Q under set m, by solving with K + Σ itself."""
    mu = hypers.mean[m]
    K = k(kernel, m, X, X, hypers) + np.diag(noises)
    cross = k(kernel, m, Q, X, hypers)
    mean = mu + cross @ np.linalg.solve(K, y - mu)
    return mean, k(kernel, m, Q, Q, hypers) - cross @ np.linalg.solve(K, cross.T)


def slopes(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Central differences of a function of rows (q, D) that maps each by itself: (..., q, D)."""
    columns = []
    for direction in np.eye(x.shape[-1]):
        ends = [function(x + sign * STEP * direction) for sign in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * STEP))
    return np.stack(columns, -1)


@dataclass(frozen=True)
class RationalQuadratic(Radial):
    """A kernel as a user would write it: h(r²) = (1 + r²/2α)^−α, a gamma mixture of RBFs."""

    name: ClassVar[str] = "rational_quadratic"
    alpha: float = 2.0

    def terms(self, r2: np.ndarray, own: object, order: int) -> tuple[np.ndarray, ...]:
        a, base = self.alpha, 1 + r2 / (2 * self.alpha)
        factors = (1.0, -1 / 2, (a + 1) / (4 * a), -(a + 1) * (a + 2) / (8 * a**2))
        return tuple(f * base ** -(a + i) for i, f in enumerate(factors[: order + 1]))

    def quantile(self, level: np.ndarray, dimensions: int) -> np.ndarray:
        """By inverting the distribution function numerically, on a grid of lengths."""
        # ω = √g z with g ~ Gamma(α, rate α) and z standard normal: average over quantiles of g.
        shares = (np.arange(4000) + 0.5) / 4000
        g = gammaincinv(self.alpha, shares) / self.alpha
        lengths = np.exp(np.linspace(-30, 8, 3000))
        from scipy.special import gammainc

        below = np.array([gammainc(dimensions / 2, w**2 / (2 * g)).mean() for w in lengths])
        keep = np.concatenate([[True], np.diff(below) > 0])
        return np.asarray(np.exp(np.interp(level, below[keep], np.log(lengths[keep]))))
