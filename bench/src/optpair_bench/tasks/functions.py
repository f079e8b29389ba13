"""Functions of the literature on the unit cube, negated, with their known optima.

Bounds are the usual ones, but for Griewank and Rastrigin: there the optimum would be the centre of
the cube, where many a method looks by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.stats import qmc

from optpair.runtime.shapes import Float

Points = Float[np.ndarray, "q d"]
Values = Float[np.ndarray, " q"]
Bounds = tuple[tuple[float, float], ...]


class Optimum(NamedTuple):
    """Where a function is largest, and its value there."""

    x: Float[np.ndarray, " d"]
    f: float


@runtime_checkable
class Function(Protocol):
    """A noiseless function on the unit cube, which stands for the bounds."""

    @property
    def bounds(self) -> Bounds:
        """The range of each input in the function's own units."""
        ...

    def __call__(self, X: Points) -> Values:
        """Values at the points X."""
        ...

    def optimum(self) -> Optimum:
        """The largest value on the cube, and where it is."""
        ...


@dataclass(frozen=True)
class Synthetic:
    """A formula in its own units, and a point where it is largest."""

    formula: Callable[[Points], Values]
    bounds: Bounds
    best: tuple[float, ...]

    def __call__(self, X: Points) -> Values:
        """Values at points of the unit cube."""
        low, high = np.array(self.bounds).T
        return self.formula(low + (high - low) * X)

    def optimum(self) -> Optimum:
        """The largest value, and one point of the unit cube where it is."""
        low, high = np.array(self.bounds).T
        x = (np.array(self.best) - low) / (high - low)
        return Optimum(x, float(self.formula(np.array([self.best]))[0]))


def branin(X: Float[np.ndarray, "q 2"]) -> Values:
    """−Branin: −(x₂ − 5.1x₁²/4π² + 5x₁/π − 6)² − 10(1 − 1/8π) cos x₁ − 10."""
    x1, x2 = X[:, 0], X[:, 1]
    bowl = (x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6) ** 2
    return np.asarray(-bowl - 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) - 10)


def hartmann(X: Points, A: Float[np.ndarray, "4 d"], P: Float[np.ndarray, "4 d"]) -> Values:
    """−Hartmann: Σ_i c_i exp(−Σ_j A_ij (x_j − P_ij)²)."""
    exponent = np.sum(A * (X[:, None, :] - P) ** 2, -1)
    return np.asarray(np.exp(-exponent) @ np.array([1.0, 1.2, 3.0, 3.2]))


def michalewicz(X: Points) -> Values:
    """−Michalewicz: Σ_i sin x_i sin²⁰(i x_i²/π), a sum of functions of one variable."""
    i = np.arange(1, X.shape[1] + 1)
    return np.asarray(np.sum(np.sin(X) * np.sin(i * X**2 / np.pi) ** 20, -1))


def levy(X: Points) -> Values:
    """−Levy, with w = 1 + (x − 1)/4.

    −sin² πw₁ − Σ_{i<d} (w_i − 1)² (1 + 10 sin²(πw_i + 1)) − (w_d − 1)² (1 + sin² 2πw_d)
    """
    w = 1 + (X - 1) / 4
    first, last = w[:, 0], w[:, -1]
    middle = np.sum((w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2), -1)
    end = (last - 1) ** 2 * (1 + np.sin(2 * np.pi * last) ** 2)
    return np.asarray(-(np.sin(np.pi * first) ** 2) - middle - end)


def griewank(X: Points) -> Values:
    """−Griewank: −Σ x_i²/4000 + Π cos(x_i/√i) − 1."""
    i = np.arange(1, X.shape[1] + 1)
    return np.asarray(-np.sum(X**2, -1) / 4000 + np.prod(np.cos(X / np.sqrt(i)), -1) - 1)


def rastrigin(X: Points) -> Values:
    """−Rastrigin: −10d − Σ (x_i² − 10 cos 2πx_i)."""
    return np.asarray(-10 * X.shape[1] - np.sum(X**2 - 10 * np.cos(2 * np.pi * X), -1))


def dixon_price(X: Points) -> Values:
    """−Dixon–Price: −(x₁ − 1)² − Σ_{i>1} i (2x_i² − x_{i−1})²."""
    i = np.arange(2, X.shape[1] + 1)
    rest = np.sum(i * (2 * X[:, 1:] ** 2 - X[:, :-1]) ** 2, -1)
    return np.asarray(-((X[:, 0] - 1) ** 2) - rest)


def powell(X: Float[np.ndarray, "q d"]) -> Values:
    """−Powell, over groups of four inputs (a, b, c, e).

    −Σ (a + 10b)² + 5(c − e)² + (b − 2c)⁴ + 10(a − e)⁴
    """
    a, b, c, e = (X[:, k::4] for k in range(4))
    terms = (a + 10 * b) ** 2 + 5 * (c - e) ** 2 + (b - 2 * c) ** 4 + 10 * (a - e) ** 4
    return np.asarray(-np.sum(terms, -1))


def _cube(low: float, high: float, dimensions: int) -> Bounds:
    return ((low, high),) * dimensions


HARTMANN3_A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
HARTMANN3_P = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
HARTMANN6_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN3_BEST = (0.114588874, 0.555648895, 0.852546985)
HARTMANN6_BEST = (0.201689511, 0.150010688, 0.476873974, 0.27533243, 0.311651617, 0.657300534)
MICHALEWICZ_BEST = (
    2.2029055202,
    np.pi / 2,
    1.2849915705,
    1.9230584698,
    1.7204697725,
    np.pi / 2,
    1.4544139713,
    1.7560865209,
    1.6557174168,
    np.pi / 2,
)
SYNTHETIC = {
    # x₁ = π, x₂ = 2.275: the square is zero and the cosine −1, so the value is −10/8π exactly.
    "branin": Synthetic(branin, ((-5.0, 10.0), (0.0, 15.0)), (np.pi, 2.275)),
    "hartmann3": Synthetic(
        partial(hartmann, A=HARTMANN3_A, P=HARTMANN3_P), _cube(0.0, 1.0, 3), HARTMANN3_BEST
    ),
    "hartmann6": Synthetic(
        partial(hartmann, A=HARTMANN6_A, P=HARTMANN6_P), _cube(0.0, 1.0, 6), HARTMANN6_BEST
    ),
    "michalewicz": Synthetic(michalewicz, _cube(0.0, np.pi, 10), MICHALEWICZ_BEST),
    "levy": Synthetic(levy, _cube(-10.0, 10.0, 8), (1.0,) * 8),
    "griewank": Synthetic(griewank, _cube(-300.0, 600.0, 6), (0.0,) * 6),
    "rastrigin": Synthetic(rastrigin, _cube(-4.0, 5.12, 4), (0.0,) * 4),
    "dixon-price": Synthetic(
        # x₁ = 1 and 2x_i² = x_{i−1}: every square is zero.
        dixon_price,
        _cube(-10.0, 10.0, 6),
        tuple(2.0 ** (2.0 ** (1 - i) - 1) for i in range(1, 7)),
    ),
    "powell": Synthetic(powell, _cube(-4.0, 5.0, 8), (0.0,) * 8),
}


def noise_share(name: str) -> float:
    """The per cent after the @ of a task's name, as a share; 0 where there is no @.

    >>> noise_share("gramacy@5%"), noise_share("gramacy")
    (0.05, 0.0)
    """
    _, at, noise = name.partition("@")
    if not at:
        return 0.0
    try:
        share = float(noise.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not noise.endswith("%") or not 0 <= share < np.inf:
        raise ValueError(f"after the @ of {name!r} there must be per cent ≥ 0, like 5%")
    return share


@lru_cache
def spread(name: str) -> float:
    """The standard deviation of a synthetic function over the cube, by Sobol points."""
    function = SYNTHETIC[name]
    points = qmc.Sobol(len(function.bounds), scramble=True, rng=0).random(2**14)
    return float(np.std(function(points)))
