"""What the tests of acquisition functions share: one study, so that shapes are few."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from optpair.acquisition import Acquisition
from optpair.gp.posterior import Hyperparameters, Posterior, append, fit

KERNELS = ("rbf", "mixed")
N, D, M, P, SIZE = 8, 2, 3, 4, 16  # data, columns, sets, pairs of a set, rows with padding
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

evaluate = jax.jit(lambda alpha, points: alpha.evaluate(points))  # without a block of 256 rows


def source() -> np.random.Generator:
    """Where the data came from, as they left it."""
    return deepcopy(_source)


def one_set(m: int) -> Hyperparameters:
    return Hyperparameters(*(np.asarray(v)[m : m + 1] for v in jax.tree.leaves(HYPERS)))


def k(m: int, A: np.ndarray, B: np.ndarray, kernel: str = "mixed") -> np.ndarray:
    """The prior covariance of f under set m, from its definition."""
    r = np.sqrt(np.sum(((A[:, None] - B) / np.asarray(HYPERS.lengthscale)[m]) ** 2, -1))
    u = np.sqrt(5) * r
    share = {"rbf": 0.0, "matern52": 1.0, "mixed": np.asarray(HYPERS.rough)[m]}[kernel]
    h = (1 - share) * np.exp(-(r**2) / 2) + share * (1 + u + u**2 / 3) * np.exp(-u)
    return np.asarray(HYPERS.outputscale)[m] * h


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
    mu, noise = (np.asarray(v)[m] for v in (HYPERS.mean, HYPERS.noise))
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


def padded(kernel: str = "mixed") -> Posterior:
    """The data in twice as many rows, with something in those that are not there."""
    unknown = np.full(N, np.nan)
    wide = fit(HYPERS, X, Y, unknown, kernel=kernel, columns=tuple(range(D)), size=SIZE)  # type: ignore[arg-type]
    return replace(wide, X=wide.X.at[N:].set(0.3), noise_var=wide.noise_var.at[:, N:].set(2.0))


def grown(values: np.ndarray) -> Posterior:
    """With one pending point, at which each fantasy of a set has a value of its own: (M, F)."""
    return jax.jit(append)(padded(), jnp.asarray(PENDING), jnp.asarray(values))


@jax.jit
def _along(alpha: Acquisition, points: jax.Array, direction: jax.Array) -> jax.Array:
    return jax.jvp(alpha.evaluate, (points,), (jnp.broadcast_to(direction, points.shape),))[1]


def slopes(alpha: Acquisition, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The derivative in every direction, exact and by central differences: (D, q) each."""
    exact = [np.asarray(_along(alpha, jnp.asarray(points), jnp.asarray(e))) for e in np.eye(D)]
    ends = [
        [np.asarray(evaluate(alpha, jnp.asarray(points + s * STEP * e))) for s in (1, -1)]
        for e in np.eye(D)
    ]
    return np.array(exact), np.array([(up - down) / (2 * STEP) for up, down in ends])
