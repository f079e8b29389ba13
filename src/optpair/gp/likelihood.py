"""How well hyperparameters explain the data: log p(θ | y) and its slope.

The unconstrained vector of one set is θ = (log ℓ_1..d, log a, log σ², μ/scale), and

    log p(θ | y) = −½ rᵀ(K+Σ)⁻¹r − ½ log|K+Σ| + log prior(θ),    r = y − μ,

whose derivative in K is ½(ααᵀ − (K+Σ)⁻¹) with α = (K+Σ)⁻¹r, without the prior.

A chain asks for this hundreds of times on a matrix that LAPACK is fast at, so it runs on the host
as it is: nothing to compile, no padding, and each pair of points is met once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.spatial.distance import pdist, squareform

from optpair.gp.kernels import Kernel, correlation_and_slope
from optpair.gp.posterior import Hyperparameters, square
from optpair.gp.priors import Prior

Thetas = Float[np.ndarray, "B k"]
Densities = Float[np.ndarray, " B"]


class Data(NamedTuple):
    """Standardised observations; NaN noise_var means inferred."""

    X: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, " n"]
    noise_var: Float[np.ndarray, " n"]


class Model(NamedTuple):
    """Kernel, prior, and the parameter each column belongs to."""

    kernel: Kernel
    prior: Prior
    columns: tuple[int, ...]

    @property
    def d(self) -> int:
        """The number of parameters, each with a length scale."""
        return max(self.columns) + 1


def unpack(theta: Thetas, prior: Prior) -> Hyperparameters:
    """θ → hyperparameters; the noise has a floor."""
    return Hyperparameters(
        lengthscale=np.exp(theta[:, :-3]),
        outputscale=np.exp(theta[:, -3]),
        noise=prior.noise_floor + np.exp(theta[:, -2]),
        mean=prior.mean_scale * theta[:, -1],
    )


def log_prior(theta: Thetas, prior: Prior) -> tuple[Densities, Thetas]:
    """log prior(θ), up to a constant, and its slope."""
    d = theta.shape[1] - 3
    densities = (prior.lengthscale, prior.outputscale, prior.noise)
    parts = tuple(
        zip(densities, (theta[:, :d], theta[:, d : d + 1], theta[:, d + 1 : -1]), strict=True)
    )
    mean = theta[:, -1:]
    values = [density.log_density(part, d) for density, part in parts] + [-(mean**2) / 2]
    slopes = [density.slope(part, d) for density, part in parts] + [-mean]
    return np.concatenate(values, axis=1).sum(axis=1), np.concatenate(slopes, axis=1)


@dataclass(frozen=True)
class _Fit:
    """B sets at the data; a vector over pairs of points is in pdist's order."""

    inverse_square: Float[np.ndarray, "B d"]  # 1/ℓ²
    outputscale: Float[np.ndarray, " B"]
    inferred: Float[np.ndarray, " B"]  # noise above its floor
    correlation: Float[np.ndarray, "B p"]  # h
    bend: Float[np.ndarray, "B p"]  # h′
    factors: list[np.ndarray | None]  # Cholesky's, in the lower half; None where it failed
    weights: Float[np.ndarray, "B n"]  # α
    value: Densities


class Likelihood:
    """log p(θ | y) for one data set, the likelihood to the power `temper`; −inf if not finite."""

    def __init__(self, data: Data, model: Model) -> None:
        columns = np.asarray(model.columns)
        self._prior, self._kernel = model.prior, model.kernel
        self._y = data.y
        self._known = np.isfinite(data.noise_var)
        self._noise_var = np.where(self._known, data.noise_var, 0.0)
        parts = [data.X[:, columns == k] for k in range(model.d)]
        self._squares = np.stack([pdist(part, "sqeuclidean") for part in parts])

    def density(self, theta: Thetas, temper: float = 1.0) -> Densities:
        """log p(θ | y), up to a constant."""
        with np.errstate(over="ignore", invalid="ignore"):
            value = temper * self._fit(theta).value + log_prior(theta, self._prior)[0]
        return np.where(np.isfinite(value), value, -np.inf)

    def slope(self, theta: Thetas, temper: float = 1.0) -> tuple[Densities, Thetas]:
        """log p(θ | y), up to a constant, and its derivative in θ; zero where it is −inf."""
        with np.errstate(over="ignore", invalid="ignore"):
            fit = self._fit(theta)
            prior, slope = log_prior(theta, self._prior)
            value, slope = temper * fit.value + prior, temper * self._slope(fit) + slope
        finite = np.isfinite(value)
        return np.where(finite, value, -np.inf), np.where(finite[:, None], slope, 0.0)

    def _fit(self, theta: Thetas) -> _Fit:
        inverse_square, a = np.exp(-2 * theta[:, :-3]), np.exp(theta[:, -3])
        inferred = np.exp(theta[:, -2])
        h, bend = correlation_and_slope(self._kernel, inverse_square @ self._squares)
        pairs = a[:, None] * h
        noises = (self._prior.noise_floor + inferred)[:, None]
        diagonals = a[:, None] + np.where(self._known, self._noise_var, noises)
        residuals = self._y - self._prior.mean_scale * theta[:, -1:]
        weights, values = np.zeros_like(residuals), np.full(len(theta), -np.inf)
        factors: list[np.ndarray | None] = []
        for b, residual in enumerate(residuals):
            factor, values[b] = _factorise(square(pairs[b], diagonals[b]))
            factors.append(factor)
            if factor is not None:
                weights[b], _ = dpotrs(factor, residual, lower=1)
                values[b] -= residual @ weights[b] / 2
        values = np.where(np.isfinite(inverse_square.sum(axis=1)), values, -np.inf)
        return _Fit(inverse_square, a, inferred, h, bend, factors, weights, values)

    def _slope(self, fit: _Fit) -> Thetas:
        """By the chain rule: a pair of points stands for two entries of K."""
        pairs, diagonals = np.zeros_like(fit.bend), np.zeros_like(fit.weights)
        for b, (factor, alpha) in enumerate(zip(fit.factors, fit.weights, strict=True)):
            if factor is not None:
                inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
                diagonals[b] = (alpha**2 - np.diagonal(inverse)) / 2
                # Fortran's lower half is the upper one in C's order, which is what is condensed.
                both = np.outer(alpha, alpha) - inverse.T
                pairs[b] = squareform(both, checks=False) if len(both) > 1 else 0.0
        a, on_diagonal = fit.outputscale, np.sum(diagonals, axis=1)
        by_length = -2 * a[:, None] * fit.inverse_square * ((pairs * fit.bend) @ self._squares.T)
        by_scale = a * (np.sum(pairs * fit.correlation, axis=1) + on_diagonal)
        by_noise = fit.inferred * np.sum(diagonals[:, ~self._known], axis=1)
        by_mean = self._prior.mean_scale * np.sum(fit.weights, axis=1)
        return np.column_stack([by_length, by_scale, by_noise, by_mean])


def _factorise(K: Float[np.ndarray, "n n"]) -> tuple[np.ndarray | None, float]:
    """Cholesky's factor in the place of K, and −½ log|K|; None and −inf where there is none."""
    if len(K) == 0:
        return None, 0.0
    factor, failed = dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        return None, -np.inf
    return factor, -float(np.sum(np.log(np.diagonal(factor))))
