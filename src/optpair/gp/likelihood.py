"""How well hyperparameters explain the data: log p(θ | y) and its slope.

    log p(θ | y) = −½ rᵀ(K+Σ)⁻¹r − ½ log|K+Σ| + log prior(θ),    r = y − μ,

Looks may be noisier the cheaper they are, and those at one run share its luck: (L4), (L3).

The derivative in K is ½(ααᵀ − (K+Σ)⁻¹) with α = (K+Σ)⁻¹r, without the prior. A chain asks for
this hundreds of times, and most of the work is LAPACK's; each pair of points is visited once.

If a kernel knows e rows beforehand, y_e, they come first and are conditioned on: log p(y | y_e, θ)
is the above for all rows less the above for those alone, whose factor is the first block of the
factor of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from optpair.gp.hyperparameters import Thetas
from optpair.gp.kernels.base import PairwiseFit
from optpair.gp.kernels.related import OFFSET_VAR, Given
from optpair.gp.noise import GROWTH
from optpair.gp.process import SHARED, Process
from optpair.runtime.shapes import Bool, Float, Int

Densities = Float[np.ndarray, " B"]
SHORTEST = 1e-4  # of the points' extent: distances in shorter length scales are lost to round-off


class Sample(NamedTuple):
    """Standardised observations of one outcome; NaN in `noise_var` means inferred."""

    X: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, " n"]
    noise_var: Float[np.ndarray, " n"]
    run: Int[np.ndarray, " n"] | None = None
    """The run that each observation is of, where some are of one run and share its luck."""

    def some(self, chosen: slice | np.ndarray) -> Sample:
        """Some of the observations."""
        run = None if self.run is None else self.run[chosen]
        return Sample(self.X[chosen], self.y[chosen], self.noise_var[chosen], run)


def joined(sample: Sample, given: Given | None) -> Sample:
    """A sample after the rows that are known beforehand."""
    if given is None:
        return sample
    X, y, noise_var, run = sample
    runs = None if run is None else np.concatenate([-1 - np.arange(len(given.y)), run])
    return Sample(
        np.concatenate([given.X, X]),
        np.concatenate([given.y, y]),
        np.concatenate([given.noise_var + OFFSET_VAR, noise_var]),
        runs,
    )


@dataclass(frozen=True)
class _Fit:
    """B sets at the data."""

    values: Mapping[str, Float[np.ndarray, "B _"]]
    noise: Float[np.ndarray, "B n"]  # Σ's diagonal
    kernel: PairwiseFit
    factors: Float[np.ndarray, "B n n"]  # Cholesky's; LAPACK's lower half is C's upper one
    positive: Bool[np.ndarray, " B"]  # whether there is a factor
    weights: Float[np.ndarray, "B n"]  # α
    before: Float[np.ndarray, "B e"]  # α of the rows that are known beforehand
    value: Densities


class Likelihood:
    """log p(θ | y) for one sample, the likelihood to the power `temper`.

    −inf where it is not finite, and where a length scale is too short to be seen.
    """

    def __init__(self, sample: Sample, process: Process) -> None:
        self._table = process.table
        self._pairwise = process.kernel.pairwise(sample.X, process.columns)
        given = process.kernel.given
        self._e = 0 if given is None else len(given.y)
        sample = joined(sample, given)
        self._y = sample.y
        self._known = np.isfinite(sample.noise_var)
        self._noise_var = np.where(self._known, sample.noise_var, 0.0)
        growth = process.growth
        self._logs = None if growth is None else growth.logs(sample.X)
        extent = float(np.ptp(sample.X)) if sample.X.size else 0.0
        self._shortest = max(SHORTEST * extent, np.finfo(np.float64).tiny)
        n = len(sample.y)
        self._together = None
        if sample.run is not None and SHARED in {block.name for block in self._table.blocks}:
            first, second = np.triu_indices(n, 1)
            self._together = np.flatnonzero(sample.run[first] == sample.run[second])
            self._ends = first[self._together], second[self._together]
        self._upper = np.triu(np.ones((n, n), dtype=bool), 1).reshape(-1)
        self._pairs, self._diagonal = np.flatnonzero(self._upper), slice(None, None, n + 1)

    def density(self, theta: Thetas, temper: float = 1.0) -> Densities:
        """log p(θ | y), up to a constant."""
        with np.errstate(all="ignore"):
            value = temper * self._fit(theta).value + self._table.log_prior(theta)[0]
        return np.where(np.isfinite(value), value, -np.inf)

    def slope(self, theta: Thetas, temper: float = 1.0) -> tuple[Densities, Thetas]:
        """log p(θ | y), up to a constant, and its derivative in θ; zero where it is −inf."""
        with np.errstate(all="ignore"):
            fit = self._fit(theta)
            prior, slope = self._table.log_prior(theta)
            value = temper * fit.value + prior
            slope = temper * self._table.chain(theta, self._by_value(fit)) + slope
        finite = np.isfinite(value)
        return np.where(finite, value, -np.inf), np.where(finite[:, None], slope, 0.0)

    def _fit(self, theta: Thetas) -> _Fit:
        values = self._table.values(theta)
        noise, kernel = self._noises(values), self._pairwise.fit(values)
        between = kernel.pairs
        if self._together is not None:
            between = between.copy()
            between[:, self._together] += values[SHARED] * self._least(noise)  # (L3)
        residuals = self._y - values["mean"]
        B, n = residuals.shape
        factors = np.zeros((B, n * n))
        for matrix, pairs in zip(factors, between, strict=True):
            matrix[self._upper] = pairs
        diagonals = factors[:, self._diagonal]  # a view
        diagonals[:] = kernel.diagonal[:, None] + noise
        factors = factors.reshape(B, n, n)
        weights = np.zeros_like(residuals)
        seen = np.all(values["lengthscale"] >= self._shortest, axis=1)
        positive = seen & np.isfinite(kernel.pairs.sum(axis=1) + kernel.diagonal)
        for b in np.flatnonzero(positive):
            factor, failed = dpotrf(factors[b].T, lower=1, clean=0, overwrite_a=1)
            positive[b] = not failed
            if n and not failed:
                weights[b], _ = dpotrs(factor, residuals[b], lower=1)
        diagonals[~positive] = 1.0  # no factor: −∞ below
        value = -np.sum(np.log(diagonals[:, self._e :]), axis=1)
        value -= np.sum(residuals * weights, axis=1) / 2
        before = np.zeros((B, self._e))
        for b in np.flatnonzero(positive) if self._e else ():
            before[b], _ = dpotrs(self._first(factors[b]), residuals[b, : self._e], lower=1)
        value += np.sum(before * residuals[:, : self._e], axis=1) / 2
        value = np.where(positive, value, -np.inf)
        return _Fit(values, noise, kernel, factors, positive, weights, before, value)

    def _first(self, factor: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "e e"]:
        """The factor of the rows that are known beforehand, for LAPACK."""
        return np.asfortranarray(factor[: self._e, : self._e].T)

    def _by_value(self, fit: _Fit) -> dict[str, Float[np.ndarray, "B _"]]:
        """Derivatives by the hyperparameters: a pair of points stands for two entries of K."""
        B, n = fit.weights.shape
        e = self._e
        for b in np.flatnonzero(fit.positive) if n else ():
            first = self._first(fit.factors[b]) if e else None
            inverse, _ = dpotri(fit.factors[b].T, lower=1, overwrite_c=1)
            dsyr(-1.0, fit.weights[b], lower=1, a=inverse, overwrite_a=1)
            if first is not None:
                alone, _ = dpotri(first, lower=1)
                inverse[:e, :e] -= dsyr(-1.0, fit.before[b], lower=1, a=alone)
        flat = fit.factors.reshape(B, n * n)
        flat[~fit.positive] = 0.0
        by_pairs, by_diagonal = flat.take(self._pairs, axis=1), flat[:, self._diagonal] / -2
        by_pairs *= -1
        mean = np.sum(fit.weights, axis=1, keepdims=True) - np.sum(
            fit.before, axis=1, keepdims=True
        )
        found = fit.kernel.pull(by_pairs, np.sum(by_diagonal, axis=1)) | {"mean": mean}
        return found | self._by_noise(fit, by_pairs, by_diagonal)

    def _noises(self, values: Mapping[str, Float[np.ndarray, "B _"]]) -> Float[np.ndarray, "B n"]:
        """The variance of each observation's noise."""
        noise = values["noise"]
        if self._logs is not None:
            noise = noise * np.exp(values[GROWTH] @ self._logs.T)  # (L4)
        return np.where(self._known, self._noise_var, noise)

    def _least(self, noise: Float[np.ndarray, "B n"]) -> Float[np.ndarray, "B t"]:
        """min(σ_i², σ_j²) of pairs of one run."""
        first, second = self._ends
        return np.minimum(noise[:, first], noise[:, second])

    def _by_noise(
        self, fit: _Fit, by_pairs: Float[np.ndarray, "B p"], by_noise: Float[np.ndarray, "B n"]
    ) -> dict[str, Float[np.ndarray, "B _"]]:
        """Derivatives by what the noise depends on, from those by the entries of Σ."""
        found, values = {}, fit.values
        if SHARED in values:
            found[SHARED] = np.zeros_like(values[SHARED])
        if self._together is not None:
            by_luck, (first, second) = by_pairs[:, self._together], self._ends
            found[SHARED] = np.sum(by_luck * self._least(fit.noise), axis=1, keepdims=True)
            lower = np.where(fit.noise[:, first] <= fit.noise[:, second], first, second)
            by_noise, rows = by_noise.copy(), np.arange(len(lower))[:, None]
            np.add.at(by_noise, (rows, lower), values[SHARED] * by_luck)
        free = ~self._known
        if self._logs is None:
            return found | {"noise": np.sum(by_noise[:, free], axis=1, keepdims=True)}
        by_log = by_noise[:, free] * fit.noise[:, free]
        found["noise"] = np.sum(by_log, axis=1, keepdims=True) / values["noise"]
        return found | {GROWTH: by_log @ self._logs[free]}
