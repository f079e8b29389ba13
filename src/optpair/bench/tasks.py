"""Benchmark tasks: noisy functions on the unit cube whose optimum is known.

Every task is **maximised**; functions that the literature minimises are negated here.

| name                  | function                                         | noise            |
|-----------------------|--------------------------------------------------|------------------|
| `gp2 gp4 gp6 gp12`    | GP sample, a new one a seed: RBF, ℓ = 0.05·d, a = 10 | σ² = 0.01    |
| `branin`              | −Branin on [−5, 10] × [0, 15]                    | σ = 10 % of its sd |
| `hartmann3 hartmann6` | −Hartmann                                        | σ = 10 % of its sd |
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.stats import qmc

FEATURES = 10_000
OUTPUTSCALE = 10.0
GP_NOISE_VAR = 0.01
NOISE_SHARE = 0.1  # of a synthetic function's standard deviation
BLOCK = 64  # rows evaluated at once: their features stay in cache


class Optimum(NamedTuple):
    """Where a task is largest, and its noiseless value there."""

    x: Float[np.ndarray, " d"]
    f: float


@runtime_checkable
class Function(Protocol):
    """A noiseless function on the unit cube."""

    @property
    def dimensions(self) -> int:
        """The number of inputs, d."""
        ...

    def __call__(self, X: Float[np.ndarray, "q d"]) -> Float[np.ndarray, " q"]:
        """Values at the points X."""
        ...

    def optimum(self) -> Optimum:
        """The largest value on the cube, and where it is."""
        ...


@dataclass(frozen=True)
class Task:
    """A noisy function to be maximised. The same name, seed and noise make the same task."""

    name: str
    seed: int
    function: Function
    noise_var: float

    @property
    def dimensions(self) -> int:
        """The number of inputs, d."""
        return self.function.dimensions

    @property
    def lengthscale(self) -> float | None:
        """ℓ of the GP that the task was drawn from; None where it was not drawn from one."""
        return self.function.lengthscale if isinstance(self.function, GPSample) else None

    @cached_property
    def optimum(self) -> Optimum:
        """Where the task is largest, and its noiseless value there."""
        return self.function.optimum()

    def value(self, X: Float[np.ndarray, "q d"]) -> Float[np.ndarray, " q"]:
        """Noiseless values at the points X."""
        return self.function(np.asarray(X, dtype=np.float64))

    def observe(self, x: Float[np.ndarray, " d"], index: int) -> float:
        """A noisy value at one point. The noise belongs to the index, whatever the point."""
        noise = self.generator("noise", index).standard_normal()
        return float(self.value(x[None])[0] + np.sqrt(self.noise_var) * noise)

    def initial(self, points: int) -> Float[np.ndarray, "q d"]:
        """Uniform points to begin with, the same for every method."""
        return self.generator("initial").random((points, self.dimensions))

    def generator(self, purpose: str, index: int = 0) -> np.random.Generator:
        """Randomness that belongs to this task, seed, purpose and index."""
        return _generator(self.name, self.seed, purpose, index)


def _generator(name: str, seed: int, purpose: str, index: int = 0) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(f"{name} {purpose}".encode()), seed, index])


@dataclass(frozen=True)
class GPSample:
    """A draw from a GP prior with an RBF kernel, in random Fourier features.

    f(x) = √(2a/F) Σ_j w_j cos(ω_j·x + b_j),   ω ~ N(0, I/ℓ²),   b ~ U(0, 2π),   w ~ N(0, 1)
    """

    lengthscale: float
    omega: Float[np.ndarray, "d F"]
    phase: Float[np.ndarray, " F"]
    weight: Float[np.ndarray, " F"]

    @classmethod
    def draw(cls, rng: np.random.Generator, dimensions: int, features: int = FEATURES) -> GPSample:
        """A new function with ℓ = 0.05·d: 0.1, 0.2, 0.3, 0.6 for 2, 4, 6, 12 dimensions."""
        lengthscale = 0.05 * dimensions
        return cls(
            lengthscale,
            rng.standard_normal((dimensions, features)) / lengthscale,
            rng.uniform(0, 2 * np.pi, features),
            np.sqrt(2 * OUTPUTSCALE / features) * rng.standard_normal(features),
        )

    @property
    def dimensions(self) -> int:
        """The number of inputs, d."""
        return len(self.omega)

    def __call__(self, X: Float[np.ndarray, "q d"]) -> Float[np.ndarray, " q"]:
        """Values at the points X, in the precision of X."""
        omega, phase, weight = (
            a.astype(X.dtype, copy=False) for a in (self.omega, self.phase, self.weight)
        )
        values = np.empty(len(X), X.dtype)
        for begin in range(0, len(X), BLOCK):
            # So thin products are not worth the threads of a matrix library.
            angle = np.einsum("qd,df->qf", X[begin : begin + BLOCK], omega)
            angle += phase
            np.cos(angle, out=angle)
            values[begin : begin + BLOCK] = np.einsum("qf,f->q", angle, weight)
        return values

    def gradient(self, x: Float[np.ndarray, " d"]) -> tuple[float, Float[np.ndarray, " d"]]:
        """The value at one point, and the gradient there."""
        angle = np.einsum("d,df->f", x, self.omega) + self.phase
        return float(np.cos(angle) @ self.weight), -self.omega @ (np.sin(angle) * self.weight)

    def optimum(self, points: int = 2**14, starts: int = 96, seed: int = 0) -> Optimum:
        """The largest value on the cube: dense screening, then ascent from many starts.

        Half of the points fill the cube, the others lie on its faces, edges and corners, where
        most maxima are in many dimensions. Starts keep a distance from each other. All are climbed
        roughly, the best of them to the last digit.
        """
        X = _candidates(self.dimensions, points, seed)
        values = self(X.astype(np.float32))  # single precision is enough for a start
        chosen = X[_spread_best(X, values, starts, self.lengthscale)]
        rough = sorted((self._climb(x, "TNC", ftol=1e-6) for x in chosen), key=lambda end: -end.f)
        ends = [self._climb(x, "L-BFGS-B", ftol=1e-15, gtol=1e-9) for x, _ in rough[:4]]
        return max(ends, key=lambda end: end.f)

    def _climb(self, x: Float[np.ndarray, " d"], method: str, **options: float) -> Optimum:
        """Ascend inside the cube.

        L-BFGS-B is the more exact, but loses milliseconds a step to SciPy's threads on small
        problems; TNC does not.
        """

        def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.gradient(x)
            return -value, -gradient

        bounds = [(0.0, 1.0)] * len(x)
        end = minimize(negative, x, jac=True, method=method, bounds=bounds, options=options)
        point = np.clip(end.x, 0.0, 1.0)
        return Optimum(point, float(self(point[None])[0]))


def _candidates(dimensions: int, points: int, seed: int) -> Float[np.ndarray, "N d"]:
    """Sobol points, half of them stretched beyond the cube and pulled back onto its faces."""
    u = qmc.Sobol(dimensions, scramble=True, rng=seed).random(points)
    stretch = np.repeat([1.0, 1.5, 3.0], [points // 2, points // 4, points - 3 * points // 4])
    rows = np.random.default_rng(seed).permutation(points)
    return np.asarray(np.clip(0.5 + (u - 0.5) * stretch[rows, None], 0.0, 1.0))


def _spread_best(
    X: Float[np.ndarray, "N d"], values: Float[np.ndarray, " N"], count: int, distance: float
) -> list[int]:
    """Indices of the best points, each at least `distance` from the better ones chosen."""
    chosen: list[int] = []
    free = np.ones(len(X), dtype=bool)
    for index in np.argsort(-values):
        if free[index]:
            chosen.append(int(index))
            if len(chosen) == count:
                break
            free &= np.sum((X - X[index]) ** 2, -1) >= distance**2
    return chosen


@dataclass(frozen=True)
class Synthetic:
    """A function of the literature on the unit cube, with its known optimum."""

    formula: Callable[[Float[np.ndarray, "q d"]], Float[np.ndarray, " q"]]
    best: tuple[float, ...]

    @property
    def dimensions(self) -> int:
        """The number of inputs, d."""
        return len(self.best)

    def __call__(self, X: Float[np.ndarray, "q d"]) -> Float[np.ndarray, " q"]:
        """Values at the points X."""
        return self.formula(X)

    def optimum(self) -> Optimum:
        """The largest value, and one point where it is."""
        x = np.array(self.best)
        return Optimum(x, float(self(x[None])[0]))


def branin(X: Float[np.ndarray, "q 2"]) -> Float[np.ndarray, " q"]:
    """−Branin: −(x₂ − 5.1x₁²/4π² + 5x₁/π − 6)² − 10(1 − 1/8π) cos x₁ − 10."""
    x1, x2 = 15 * X[:, 0] - 5, 15 * X[:, 1]
    bowl = (x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6) ** 2
    return np.asarray(-bowl - 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) - 10)


def hartmann(
    X: Float[np.ndarray, "q d"], A: Float[np.ndarray, "4 d"], P: Float[np.ndarray, "4 d"]
) -> Float[np.ndarray, " q"]:
    """−Hartmann: Σ_i c_i exp(−Σ_j A_ij (x_j − P_ij)²)."""
    exponent = np.sum(A * (X[:, None, :] - P) ** 2, -1)
    return np.asarray(np.exp(-exponent) @ np.array([1.0, 1.2, 3.0, 3.2]))


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
SYNTHETIC = {
    # x₁ = π, x₂ = 2.275: the square is zero and the cosine −1, so the value is −10/8π exactly.
    "branin": Synthetic(branin, ((np.pi + 5) / 15, 2.275 / 15)),
    "hartmann3": Synthetic(partial(hartmann, A=HARTMANN3_A, P=HARTMANN3_P), HARTMANN3_BEST),
    "hartmann6": Synthetic(partial(hartmann, A=HARTMANN6_A, P=HARTMANN6_P), HARTMANN6_BEST),
}


@lru_cache
def spread(name: str) -> float:
    """The standard deviation of a synthetic function over the cube, by Sobol points."""
    function = SYNTHETIC[name]
    points = qmc.Sobol(function.dimensions, scramble=True, rng=0).random(2**14)
    return float(np.std(function(points)))


def gp_sample(dimensions: int, seed: int = 0) -> Task:
    """A new GP sample a seed, in any number of dimensions."""
    name = f"gp{dimensions}"
    function = GPSample.draw(_generator(name, seed, "function"), dimensions)
    return Task(name, seed, function, GP_NOISE_VAR)


def synthetic(name: str, seed: int = 0) -> Task:
    """A function of the literature; the seed is that of the noise and of the initial points."""
    return Task(name, seed, SYNTHETIC[name], (NOISE_SHARE * spread(name)) ** 2)


REGISTRY: Mapping[str, Callable[[int], Task]] = MappingProxyType(
    {f"gp{d}": partial(gp_sample, d) for d in (2, 4, 6, 12)}
    | {name: partial(synthetic, name) for name in SYNTHETIC}
)


def make(name: str, seed: int = 0, noise_var: float | None = None) -> Task:
    """The task of that name; `noise_var` replaces its own noise variance.

    >>> make("branin", noise_var=0.01).optimum.f
    -0.39788735772973816
    """
    if name not in REGISTRY:
        raise ValueError(f"task must be one of {', '.join(REGISTRY)}, not {name!r}")
    task = REGISTRY[name](seed)
    if noise_var is None:
        return task
    if not (np.isfinite(noise_var) and noise_var >= 0):
        raise ValueError(f"noise_var must be a finite variance ≥ 0, not {noise_var}")
    return replace(task, noise_var=float(noise_var))
