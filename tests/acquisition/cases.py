"""What the tests of acquisition functions share: one small study."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from scipy import stats

from optpair.acquisition import Acquisition
from optpair.gp import Hyperparameters, Posterior
from optpair.gp import condition as gp_condition

KERNELS = ("rbf", "mixed")
N, D, M, P = 8, 2, 3, 4  # data, columns, sets, pairs of a set
_source = np.random.default_rng(0)
X, Y = _source.uniform(size=(N, D)), _source.normal(size=N)
HYPERS = Hyperparameters(
    lengthscale=[[0.3, 0.7], [0.2, 0.4], [0.5, 0.25]],
    outputscale=[1.0, 4.0, 0.5],
    noise=[0.01, 0.3, 0.05],
    mean=[0.2, -1.0, 0.5],
    rough=[0.3, 0.9, 0.01],
)
PENDING = np.array([0.35, 0.85])
STEP = np.finfo(float).eps ** (1 / 3)  # of central differences


def source() -> np.random.Generator:
    """Where the data came from, as they left it."""
    return deepcopy(_source)


def changed(hypers: Hyperparameters = HYPERS, **values: Any) -> Hyperparameters:
    """The same sets with other values."""
    return Hyperparameters(**hypers.values() | values)


def chosen(index: list[int]) -> Hyperparameters:
    """Some of the sets, in that order."""
    return Hyperparameters(**{name: v[index] for name, v in HYPERS.values().items()})


def one_set(m: int) -> Hyperparameters:
    return chosen([m])


def condition(
    hypers: Hyperparameters,
    X: Any,
    y: Any,
    kernel: str | None = None,
    noise_var: Any = None,
) -> Posterior:
    """With the kernel `mixed` where the hyperparameters have its share."""
    usual = "mixed" if "rough" in hypers.own else "matern52"
    return gp_condition(hypers, X, y, kernel or usual, noise_var)


def k(m: int, A: np.ndarray, B: np.ndarray, kernel: str = "mixed") -> np.ndarray:
    """The prior covariance of f under set m, from its definition."""
    r = np.sqrt(np.sum(((A[:, None] - B) / HYPERS.lengthscale[m]) ** 2, -1))
    u = np.sqrt(5) * r
    share = {"rbf": 0.0, "matern52": 1.0, "mixed": HYPERS.own["rough"][m]}[kernel]
    h = (1 - share) * np.exp(-(r**2) / 2) + share * (1 + u + u**2 / 3) * np.exp(-u)
    return np.asarray(HYPERS.outputscale[m] * h)


def textbook(
    m: int,
    points: np.ndarray,
    rows: np.ndarray = X,
    y: np.ndarray = Y,
    *,
    noises: np.ndarray | None = None,
    kernel: str = "mixed",
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of f at points under set m, by a plain GP."""
    mu, noise = HYPERS.mean[m], HYPERS.noise[m]
    each = np.full(len(rows), noise) if noises is None else noises
    cross = k(m, rows, points, kernel)
    solved = np.linalg.solve(k(m, rows, rows, kernel) + np.diag(each), cross).T
    return mu + solved @ (y - mu), k(m, points, points, kernel) - solved @ cross


def log_density(y: np.ndarray | float, m: float, s: float, noise: float, f: float) -> np.ndarray:
    """Of y = f(x) + ε, where f(x) ~ N(m, s) is known to be below f; without noise, of f(x)."""
    total = s + noise
    log = stats.norm.logpdf(y, m, np.sqrt(total)) - stats.norm.logcdf((f - m) / np.sqrt(s))
    if noise > 0:
        edge = (f - m - s / total * (y - m)) / np.sqrt(s * noise / total)
        log = log + stats.norm.logcdf(edge)
    return np.asarray(log)


def grown(values: np.ndarray) -> Posterior:
    """With one pending point, at which each fantasy of a set has a value of its own: (M, F)."""
    return condition(HYPERS, X, Y).append(PENDING, values)


def slopes(alpha: Acquisition, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The derivative in every direction, exact and by central differences: (D, q) each."""
    ends = [(alpha(points + STEP * e), alpha(points - STEP * e)) for e in np.eye(points.shape[1])]
    return alpha.gradient(points).T, np.array([(up - down) / (2 * STEP) for up, down in ends])
