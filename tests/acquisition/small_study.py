"""A small study that the tests of PES, ES and KG share, and a plain GP to hold against it."""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from optpair.acquisition.base import Acquisition
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.posterior import Posterior, condition

KERNELS = ("rbf", "mixed")
N, D, M, P = 8, 2, 3, 4  # data, columns, sets, optima of a set
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


def one_set(m: int) -> Hyperparameters:
    return Hyperparameters(**{name: value[m : m + 1] for name, value in HYPERS.values().items()})


def changed(**values: np.ndarray) -> Hyperparameters:
    """The sets with other values of some hyperparameters."""
    return Hyperparameters(**HYPERS.values() | values)


def known(hypers: Hyperparameters = HYPERS, kernel: str = "mixed") -> Posterior:
    """The posterior given the data."""
    return condition(hypers, X, Y, kernel)


def grown(values: np.ndarray) -> Posterior:
    """With one pending point, at which each fantasy of a set has a value of its own: (M, F)."""
    return known().append(PENDING, values)


def correlation(r2: np.ndarray, rough: float) -> np.ndarray:
    """h(r²), from its definition; ρ = 0 is RBF, ρ = 1 Matérn-5/2."""
    u = np.sqrt(5 * r2)
    return (1 - rough) * np.exp(-r2 / 2) + rough * (1 + u + u**2 / 3) * np.exp(-u)


def share(kernel: str, rough: float) -> float:
    """ρ of a kernel by its name."""
    return {"rbf": 0.0, "matern52": 1.0, "mixed": rough}[kernel]


def k(m: int, A: np.ndarray, B: np.ndarray, kernel: str = "mixed") -> np.ndarray:
    """The prior covariance of f under set m."""
    r2 = np.sum(((A[:, None] - B) / HYPERS.lengthscale[m]) ** 2, -1)
    return HYPERS.outputscale[m] * correlation(r2, share(kernel, HYPERS.own["rough"][m]))


def textbook(
    m: int,
    points: np.ndarray,
    rows: np.ndarray = X,
    y: np.ndarray = Y,
    *,
    kernel: str = "mixed",
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of f at points under set m, by a plain GP."""
    mu, noise = HYPERS.mean[m], HYPERS.noise[m]
    cross = k(m, rows, points, kernel)
    solved = np.linalg.solve(k(m, rows, rows, kernel) + noise * np.eye(len(rows)), cross).T
    return mu + solved @ (y - mu), k(m, points, points, kernel) - solved @ cross


def both_slopes(alpha: Acquisition, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives by hand and by central differences: (q, D) each."""
    steps = STEP * np.eye(points.shape[1])
    numeric = [(alpha(points + e) - alpha(points - e)) / (2 * STEP) for e in steps]
    values, exact = alpha.slopes(points)
    np.testing.assert_allclose(values, alpha(points), rtol=1e-12, atol=1e-14)
    return exact, np.stack(numeric, 1)
