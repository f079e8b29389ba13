"""Priors over the hyperparameters of a GP on standardised values.

Length scales, output scale and noise are sampled on the log scale: a density stated on the value
carries its Jacobian. The mean is sampled as a standard normal, then scaled. A kernel's own
hyperparameters have their priors in the kernel.

| prior        | length scale ℓ            | output scale a     | noise σ²          | mean μ    |
|--------------|---------------------------|--------------------|-------------------|-----------|
| `Prior()`    | LogNormal(√2 + ½log d, √3)| LogNormal(0, 0.7)  | LogNormal(−4, 1)  | N(0, 0.5²)|
| `PAPER`      | Gamma(2.5, 5)             | log-uniform        | log-uniform       | 0         |

With constraints, the prior of the noise is LogNormal(−8, 2), for both.

By default the logarithms of any two length scales have the correlation ⅔: whether a function is
smooth or rough is mostly a matter of the function, and only then of the parameter. Alone, each has
the prior of the table (Hvarfner et al. 2024). With twenty parameters and sixty trials independent
length scales are hardly better known after than before, and half of the parameters are believed to
be idle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtr

from optpair.runtime.shapes import Float

Logs = Float[np.ndarray, "..."]

NOISE_FLOOR = 1e-6  # of the variance of y: a noiseless objective keeps finite gains
FLOOR_UNDER_LIMITS = 1e-3  # of that: exact limits are met to more digits than an optimum is flat


@dataclass(frozen=True)
class LogNormal:
    """log x ~ N(loc, scale²); `per_dimension` adds ½ log d to loc.

    Of the k entries of one hyperparameter, on the last axis, any two have the correlation `shared`:

        cov(log x) = scale² ((1 − shared) I + shared 11ᵀ)

    so that learning about some says something about the others.
    """

    loc: float
    scale: float
    per_dimension: bool = False
    shared: float = 0.0

    def __post_init__(self) -> None:
        _check(self, loc=False, scale=True, shared=False)
        if not 0 <= self.shared < 1:
            raise ValueError(f"LogNormal.shared must be from 0 to below 1, not {self.shared!r}")

    def log_density(self, log_x: Logs, d: int) -> Logs:
        """Density of log x, up to a constant; its sum over the entries is what counts."""
        away = log_x - self._loc(d)
        return np.asarray(away * self._pull(away) / -2)

    def slope(self, log_x: Logs, d: int) -> Logs:
        """The derivative of the log density."""
        return -self._pull(log_x - self._loc(d))

    def start(self, normal: Logs, d: int) -> Logs:
        """log x at the given number of standard deviations from the centre."""
        k, own = np.shape(normal)[-1], 1 - self.shared
        total = np.sum(normal, -1, keepdims=True)
        common = (math.sqrt(own + k * self.shared) - math.sqrt(own)) * total / k
        return np.asarray(self._loc(d) + self.scale * (math.sqrt(own) * normal + common))

    def normal(self, k: int, d: int) -> tuple[Logs, Logs]:
        """The centre and the precision matrix of k entries."""
        return np.full(k, self._loc(d)), self._pull(np.eye(k))

    def _pull(self, away: Logs) -> Logs:
        """cov(log x)⁻¹ times a distance from the centre."""
        k, own = away.shape[-1], 1 - self.shared
        common = self.shared / (own + k * self.shared) * np.sum(away, -1, keepdims=True)
        return np.asarray((away - common) / (own * self.scale**2))

    def _loc(self, d: int) -> float:
        return self.loc + 0.5 * math.log(d) * self.per_dimension


@dataclass(frozen=True)
class Gamma:
    """x ~ Gamma(shape, rate); the density of log x carries the Jacobian x."""

    shape: float
    rate: float

    def __post_init__(self) -> None:
        _check(self, shape=True, rate=True)

    def log_density(self, log_x: Logs, d: int) -> Logs:
        """Density of log x, up to a constant: shape·log x − rate·x."""
        return np.asarray(self.shape * log_x - self.rate * np.exp(log_x))

    def slope(self, log_x: Logs, d: int) -> Logs:
        """The derivative of the log density."""
        return np.asarray(self.shape - self.rate * np.exp(log_x))

    def start(self, normal: Logs, d: int) -> Logs:
        """log x near the centre, by the delta method."""
        return math.log(self.shape / self.rate) + normal / math.sqrt(self.shape)


@dataclass(frozen=True)
class LogUniform:
    """log x uniform on [log low, log high], with Gaussian edges that a gradient can follow."""

    low: float
    high: float
    edge: float = 0.1

    def __post_init__(self) -> None:
        _check(self, low=True, high=True, edge=True)
        if not self.low < self.high:
            raise ValueError(f"low must be below high, not {self.low} and {self.high}")

    def log_density(self, log_x: Logs, d: int) -> Logs:
        """Density of log x, up to a constant: flat inside, falling fast outside."""
        return -((self._outside(log_x) / self.edge) ** 2) / 2

    def slope(self, log_x: Logs, d: int) -> Logs:
        """The derivative of the log density."""
        return -self._outside(log_x) / self.edge**2

    def _outside(self, log_x: Logs) -> Logs:
        """How far above the range, or minus how far below."""
        return np.asarray(log_x - np.clip(log_x, math.log(self.low), math.log(self.high)))

    def start(self, normal: Logs, d: int) -> Logs:
        """log x spread over the range."""
        low, high = math.log(self.low), math.log(self.high)
        return np.asarray(low + (high - low) * ndtr(normal))


def _check(density: object, **positive: bool) -> None:
    """Logs that a density can be made of, or an error that names the one that is not."""
    for name, above_zero in positive.items():
        value = getattr(density, name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or (above_zero and value <= 0):
            kind = "a finite number above zero" if above_zero else "a finite number"
            raise ValueError(f"{type(density).__name__}.{name} must be {kind}, not {value!r}")


@dataclass(frozen=True)
class Normal:
    """x ~ N(0, 1): of an entry of θ that is scaled afterwards."""

    def normal(self, k: int, d: int) -> tuple[Logs, Logs]:
        """The centre and the precision matrix of k entries."""
        return np.zeros(k), np.eye(k)

    def log_density(self, x: Logs, d: int) -> Logs:
        """Density of x, up to a constant."""
        return -(x**2) / 2

    def slope(self, x: Logs, d: int) -> Logs:
        """The derivative of the log density."""
        return -x

    def start(self, normal: Logs, d: int) -> Logs:
        """x at the given number of standard deviations from the centre."""
        return normal


Density = LogNormal | Gamma | LogUniform | Normal
DENSITIES = ("lengthscale", "outputscale", "noise", "noise_under_limits")


@dataclass(frozen=True)
class Prior:
    """The priors of the hyperparameters, on standardised values."""

    lengthscale: Density = field(default=LogNormal(math.sqrt(2), math.sqrt(3), True, 2 / 3))
    outputscale: Density = field(default=LogNormal(0.0, 0.7))
    noise: Density = field(default=LogNormal(-4.0, 1.0))
    noise_under_limits: Density = field(default=LogNormal(-8.0, 2.0))
    """That of the noise if there are constraints. Answers keep a distance from limits that grows
    with the noise, so the absence of noise has to be noticed."""
    mean_scale: float = 0.5
    noise_floor: float = NOISE_FLOOR

    def __post_init__(self) -> None:
        for name in DENSITIES:
            if not isinstance(getattr(self, name), LogNormal | Gamma | LogUniform):
                raise ValueError(
                    f"{name} must be a LogNormal, Gamma or LogUniform, not {getattr(self, name)!r}"
                )
        _check(self, noise_floor=True, mean_scale=False)
        if self.mean_scale < 0:
            raise ValueError(f"Prior.mean_scale must be at least zero, not {self.mean_scale!r}")

    def under_limits(self) -> Prior:
        """The priors where there are constraints."""
        floor = self.noise_floor * FLOOR_UNDER_LIMITS
        return replace(self, noise=self.noise_under_limits, noise_floor=floor)


PAPER = Prior(
    lengthscale=Gamma(2.5, 5.0),
    outputscale=LogUniform(1e-2, 1e2),
    noise=LogUniform(1e-6, 1.0),
    noise_under_limits=LogUniform(1e-6, 1.0),
    mean_scale=0.0,
)
