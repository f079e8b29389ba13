"""Priors over the hyperparameters of a GP on standardised values.

Length scales, output scale and noise are sampled on the log scale: a density stated on the value
carries its Jacobian. The mean is sampled as a standard normal, then scaled.

| prior        | length scale ℓ            | output scale a     | noise σ²          | mean μ    |
|--------------|---------------------------|--------------------|-------------------|-----------|
| `Prior()`    | LogNormal(√2 + ½log d, √3)| LogNormal(0, 0.7)  | LogNormal(−4, 1)  | N(0, 0.5²)|
| `PAPER`      | Gamma(2.5, 5)             | log-uniform        | log-uniform       | 0         |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

NOISE_FLOOR = 1e-6  # of the variance of y: a noiseless objective keeps finite gains


@dataclass(frozen=True)
class LogNormal:
    """log x ~ N(loc, scale²); `per_dimension` adds ½ log d to loc."""

    loc: float
    scale: float
    per_dimension: bool = False

    def log_density(self, log_x: Float[Array, ...], d: int) -> Float[Array, ...]:
        """Density of log x, up to a constant."""
        return -(((log_x - self._loc(d)) / self.scale) ** 2) / 2

    def start(self, normal: Float[Array, ...], d: int) -> Float[Array, ...]:
        """log x at the given number of standard deviations from the centre."""
        return self._loc(d) + self.scale * normal

    def _loc(self, d: int) -> float:
        return self.loc + 0.5 * math.log(d) * self.per_dimension


@dataclass(frozen=True)
class Gamma:
    """x ~ Gamma(shape, rate); the density of log x carries the Jacobian x."""

    shape: float
    rate: float

    def log_density(self, log_x: Float[Array, ...], d: int) -> Float[Array, ...]:
        """Density of log x, up to a constant: shape·log x − rate·x."""
        return self.shape * log_x - self.rate * jnp.exp(log_x)

    def start(self, normal: Float[Array, ...], d: int) -> Float[Array, ...]:
        """log x near the centre, by the delta method."""
        return math.log(self.shape / self.rate) + normal / math.sqrt(self.shape)


@dataclass(frozen=True)
class LogUniform:
    """log x uniform on [log low, log high], with Gaussian edges that a gradient can follow."""

    low: float
    high: float
    edge: float = 0.1

    def log_density(self, log_x: Float[Array, ...], d: int) -> Float[Array, ...]:
        """Density of log x, up to a constant: flat inside, falling fast outside."""
        below = jnp.maximum(math.log(self.low) - log_x, 0.0)
        above = jnp.maximum(log_x - math.log(self.high), 0.0)
        return -(((below + above) / self.edge) ** 2) / 2

    def start(self, normal: Float[Array, ...], d: int) -> Float[Array, ...]:
        """log x spread over the range."""
        low, high = math.log(self.low), math.log(self.high)
        return low + (high - low) * jax.scipy.special.ndtr(normal)


Density = LogNormal | Gamma | LogUniform


@dataclass(frozen=True)
class Prior:
    """The priors of the four hyperparameters, on standardised values."""

    lengthscale: Density = field(default=LogNormal(math.sqrt(2), math.sqrt(3), per_dimension=True))
    outputscale: Density = field(default=LogNormal(0.0, 0.7))
    noise: Density = field(default=LogNormal(-4.0, 1.0))
    mean_scale: float = 0.5
    noise_floor: float = NOISE_FLOOR


PAPER = Prior(
    lengthscale=Gamma(2.5, 5.0),
    outputscale=LogUniform(1e-2, 1e2),
    noise=LogUniform(1e-6, 1.0),
    mean_scale=0.0,
)
