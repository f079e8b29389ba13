"""How well hyperparameters explain the data: log p(θ | y) and its slope.

The unconstrained vector of one set is θ = (log ℓ_1..d, log a, log σ², μ/scale), followed by
log(ρ/(1 − ρ))/scale for a kernel that has a rough share ρ, and

    log p(θ | y) = −½ rᵀ(K+Σ)⁻¹r − ½ log|K+Σ| + log prior(θ),    r = y − μ,

whose derivative in K is ½(ααᵀ − (K+Σ)⁻¹) with α = (K+Σ)⁻¹r, without the prior.

A chain asks for this hundreds of times on a matrix that LAPACK is fast at, so it runs on the host
as it is: nothing to compile, no padding, and each pair of points is met once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.spatial.distance import pdist
from scipy.special import expit

from optpair.gp.kernels import Correlation, Kernel, correlation_and_slopes
from optpair.gp.posterior import Hyperparameters
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

    @property
    def k(self) -> int:
        """The length of θ."""
        return self.d + (4 if self.kernel == "mixed" else 3)


class Parts(NamedTuple):
    """The columns of θ by what they are of."""

    lengthscale: Float[np.ndarray, "B d"]
    outputscale: Float[np.ndarray, "B 1"]
    noise: Float[np.ndarray, "B 1"]
    mean: Float[np.ndarray, "B 1"]
    rough: Float[np.ndarray, "B r"]  # one column, or none where the kernel has no rough share

    @classmethod
    def of(cls, theta: Thetas, d: int) -> Parts:
        """Views of θ, which has d length scales."""
        return cls(*np.split(theta, [d, d + 1, d + 2, d + 3], axis=1))


def unpack(theta: Thetas, model: Model) -> Hyperparameters:
    """θ → hyperparameters; the noise has a floor."""
    parts, prior = Parts.of(theta, model.d), model.prior
    rough = expit(prior.rough_scale * parts.rough)
    return Hyperparameters(
        lengthscale=np.exp(parts.lengthscale),
        outputscale=np.exp(parts.outputscale[:, 0]),
        noise=prior.noise_floor + np.exp(parts.noise[:, 0]),
        mean=prior.mean_scale * parts.mean[:, 0],
        rough=rough[:, 0] if rough.size else None,
    )


def log_prior(theta: Thetas, model: Model) -> tuple[Densities, Thetas]:
    """log prior(θ), up to a constant, and its slope."""
    d, prior = model.d, model.prior
    densities = (prior.lengthscale, prior.outputscale, prior.noise)
    *by_density, mean, rough = Parts.of(theta, d)
    parts, normal = tuple(zip(densities, by_density, strict=True)), np.hstack([mean, rough])
    values = [density.log_density(part, d) for density, part in parts] + [-(normal**2) / 2]
    slopes = [density.slope(part, d) for density, part in parts] + [-normal]
    return np.concatenate(values, axis=1).sum(axis=1), np.concatenate(slopes, axis=1)


@dataclass(frozen=True)
class _Fit:
    """B sets at the data; a vector over pairs of points is in pdist's order."""

    inverse_square: Float[np.ndarray, "B d"]  # 1/ℓ²
    outputscale: Float[np.ndarray, " B"]
    inferred: Float[np.ndarray, " B"]  # noise above its floor
    rough: Float[np.ndarray, "B r"]  # ρ
    correlation: Float[np.ndarray, "B p"]  # h
    bend: Float[np.ndarray, "B p"]  # h′
    by_rough: Float[np.ndarray, "B p"] | None  # the derivative of h in ρ
    factors: Float[np.ndarray, "B n n"]  # Cholesky's; LAPACK's lower half is C's upper one
    positive: Bool[np.ndarray, " B"]  # whether there is a factor
    weights: Float[np.ndarray, "B n"]  # α
    value: Densities


class Likelihood:
    """log p(θ | y) for one data set, the likelihood to the power `temper`; −inf if not finite."""

    def __init__(self, data: Data, model: Model) -> None:
        columns = np.asarray(model.columns)
        self._model, self._prior = model, model.prior
        self._y = data.y
        self._known = np.isfinite(data.noise_var)
        self._noise_var = np.where(self._known, data.noise_var, 0.0)
        parts = [data.X[:, columns == k] for k in range(model.d)]
        self._squares = np.stack([pdist(part, "sqeuclidean") for part in parts])
        n = len(data.y)
        rows, columns = np.triu_indices(n, 1)
        self._pairs, self._diagonal = rows * n + columns, slice(None, None, n + 1)

    def density(self, theta: Thetas, temper: float = 1.0) -> Densities:
        """log p(θ | y), up to a constant."""
        with np.errstate(over="ignore", invalid="ignore"):
            value = temper * self._fit(theta).value + log_prior(theta, self._model)[0]
        return np.where(np.isfinite(value), value, -np.inf)

    def slope(self, theta: Thetas, temper: float = 1.0) -> tuple[Densities, Thetas]:
        """log p(θ | y), up to a constant, and its derivative in θ; zero where it is −inf."""
        with np.errstate(over="ignore", invalid="ignore"):
            fit = self._fit(theta)
            prior, slope = log_prior(theta, self._model)
            value, slope = temper * fit.value + prior, temper * self._slope(fit) + slope
        finite = np.isfinite(value)
        return np.where(finite, value, -np.inf), np.where(finite[:, None], slope, 0.0)

    def _fit(self, theta: Thetas) -> _Fit:
        parts, prior = Parts.of(theta, self._model.d), self._prior
        inverse_square, a = np.exp(-2 * parts.lengthscale), np.exp(parts.outputscale[:, 0])
        inferred, rough = np.exp(parts.noise[:, 0]), expit(prior.rough_scale * parts.rough)
        kernel = Correlation(self._model.kernel, rough[:, 0] if rough.size else None)
        h, bend, by_rough = correlation_and_slopes(kernel, inverse_square @ self._squares)
        noises = (prior.noise_floor + inferred)[:, None]
        residuals = self._y - prior.mean_scale * parts.mean
        B, n = residuals.shape
        factors = np.zeros((B, n * n))
        factors[:, self._pairs] = a[:, None] * h
        diagonals = factors[:, self._diagonal]  # a view
        diagonals[:] = a[:, None] + np.where(self._known, self._noise_var, noises)
        factors = factors.reshape(B, n, n)
        weights, positive = np.zeros_like(residuals), np.isfinite(inverse_square.sum(axis=1))
        for b in np.flatnonzero(positive):
            factor, failed = dpotrf(factors[b].T, lower=1, clean=0, overwrite_a=1)
            positive[b] = not failed
            if n and not failed:
                weights[b], _ = dpotrs(factor, residuals[b], lower=1)
        diagonals[~positive] = 1.0  # no factor: −∞ below
        value = -np.sum(np.log(diagonals), axis=1) - np.sum(residuals * weights, axis=1) / 2
        value = np.where(positive, value, -np.inf)
        return _Fit(
            inverse_square, a, inferred, rough, h, bend, by_rough, factors, positive, weights, value
        )

    def _slope(self, fit: _Fit) -> Thetas:
        """By the chain rule: a pair of points stands for two entries of K."""
        B, n = fit.weights.shape
        for b in np.flatnonzero(fit.positive) if n else ():
            inverse, _ = dpotri(fit.factors[b].T, lower=1, overwrite_c=1)
            dsyr(-1.0, fit.weights[b], lower=1, a=inverse, overwrite_a=1)
        flat = fit.factors.reshape(B, n * n)
        flat[~fit.positive] = 0.0
        pairs, diagonals = -flat[:, self._pairs], flat[:, self._diagonal] / -2
        a, on_diagonal = fit.outputscale, np.sum(diagonals, axis=1)
        by_length = -2 * a[:, None] * fit.inverse_square * ((pairs * fit.bend) @ self._squares.T)
        by_scale = a * (np.sum(pairs * fit.correlation, axis=1) + on_diagonal)
        by_noise = fit.inferred * np.sum(diagonals[:, ~self._known], axis=1)
        by_mean = self._prior.mean_scale * np.sum(fit.weights, axis=1)
        columns = [by_length, by_scale, by_noise, by_mean]
        if fit.by_rough is not None:
            rough = self._prior.rough_scale * fit.rough[:, 0] * (1 - fit.rough[:, 0])
            columns.append(a * rough * np.sum(pairs * fit.by_rough, axis=1))
        return np.column_stack(columns)
