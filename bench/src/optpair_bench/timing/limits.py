"""Limits of speed: what a warm ask would take if it did only its arithmetic.

The machine's rates are measured first, on these cores: matrix products, factorisations, and the
elementary functions of a kernel, of a path's features and of a truncated normal. Each stage's
operations are counted from its shapes; the ratio of its time to theirs says what is left to gain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from optpair.acquisition.truncation import moment_matched_gain
from optpair.effort import chain_moves, climb_steps, padded_size, paths_screened, screened
from optpair.pairs import ANCHORS, ENDING, GROUPS
from optpair.programs import one_blas_thread
from optpair.runtime import double
from scipy.linalg.lapack import dpotrf, dpotri

from optpair.engine.settings import Settings
from optpair.gp import kernels
from optpair.gp.inference import LEAPFROGS
from optpair.gp.paths import cos_sin

Precision = Literal["float64", "float32"]


@dataclass(frozen=True)
class Rates:
    """Seconds an operation."""

    product: float  # a multiplication with its addition, in a matrix product
    factor: float  # the same, in LAPACK's Cholesky factor and the inverse of its matrix
    kernel: float  # an entry of a kernel matrix, from its squared distance
    feature: float  # a cosine with its sine
    gain: float  # a truncation gain


def _fastest(function: Callable[..., Any], *args: Any, repeats: int = 9) -> float:
    run = jax.jit(function)
    jax.block_until_ready(run(*args))  # type: ignore[no-untyped-call]
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(run(*args))  # type: ignore[no-untyped-call]
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


@double
def measure(rows: int, sets: int, precision: Precision = "float64") -> Rates:
    """The rates, at the sizes that an ask works with."""
    rng = np.random.default_rng(0)
    A = jnp.asarray(rng.normal(size=(sets, rows, rows)), precision)
    K = A @ jnp.swapaxes(A, 1, 2) + rows * jnp.eye(rows, dtype=precision)
    block = jnp.asarray(rng.uniform(size=(64, 1024)), precision)
    each, matern = block.size, kernels.Correlation("matern52")
    return Rates(
        product=_fastest(lambda a, b: a @ b, A, K) / (sets * rows**3),
        factor=_factor_rate(np.asarray(K[0], np.float64)),
        kernel=_fastest(lambda r2: kernels.correlation(matern, r2), block) / each,
        feature=_fastest(lambda t: sum(cos_sin(t)), block) / each,
        gain=_fastest(lambda b: moment_matched_gain(b, b, b), block) / each,
    )


def _factor_rate(K: np.ndarray, repeats: int = 30) -> float:
    """A factor takes n³/3 multiplications, the inverse of the matrix 2n³/3 more."""
    seconds = []
    with one_blas_thread():
        for _ in range(repeats):
            begin = time.perf_counter()
            dpotri(dpotrf(K, lower=1)[0], lower=1)
            seconds.append(time.perf_counter() - begin)
    return min(seconds) / len(K) ** 3


def _gram(points: float, others: int, d: int, rates: Rates) -> float:
    return points * others * (d * rates.product + rates.kernel)


KNOWN: Mapping[str, Callable[[int], int]] = {"jes": lambda d: 1, "jes-peak": lambda d: 1 + d}
"""The numbers that a pair says of f at x*, for the acquisition functions that are counted here."""


def stages(
    settings: Settings, method: str, dimensions: int, n: int, rates: Rates, single: Rates
) -> dict[str, float]:
    """Seconds of arithmetic in each stage of a warm ask with sampled hyperparameters.

    `single` are the rates in single precision, in which paths are screened and climbed.
    """
    rows, M, P, d = padded_size(n, dimensions), settings.sets, settings.pairs, dimensions
    F, steps = settings.features // 2, climb_steps(settings, d) + 1

    pairs_of_data = _gram(n / 2, n, d, rates)
    likelihood = pairs_of_data + n**3 / 3 * rates.factor
    # The slope needs the matrix's inverse, and each pair of points once more.
    slope = pairs_of_data + n**3 * rates.factor + n**2 / 2 * d * rates.product
    hyperparameters = M * likelihood + chain_moves(settings, n) * (LEAPFROGS + 1) * slope
    condition = M * (pairs_of_data + 2 * n**3 / 3 * rates.factor)

    def path(paths: int, rates: Rates) -> float:
        """So many paths of a set at one point."""
        features = F * (d * rates.product + rates.feature)
        sums = paths * (2 * F + rows) * rates.product
        return features + sums + _gram(1, rows, d, rates)

    filling = paths_screened(settings, d)
    points = filling + max(filling // 4, ANCHORS)
    climbs = 2 * P * (2 * GROUPS * steps * path(1, single) + (ENDING + 1) * path(1, rates))
    pairs = M * (points * path(P, single) + rows * path(P, rates) + climbs)
    maximise = screening(settings, method, d, n, rates)
    maximise += 2 * settings.starts * steps * _gains(settings, method, d, rows, rates)
    return {
        "hyperparameters": hyperparameters,
        "condition": condition,
        "pairs": pairs,
        "maximise": maximise,
    }


def screening(settings: Settings, method: str, dimensions: int, n: int, rates: Rates) -> float:
    """Seconds of arithmetic in evaluating the acquisition function at all candidates."""
    return candidates(settings) * _gains(
        settings, method, dimensions, padded_size(n, dimensions), rates
    )


def candidates(settings: Settings) -> int:
    """Points at which an ask screens the acquisition function."""
    asked = screened(settings, pairs=True)
    return asked + max(asked // 4, ANCHORS) + settings.sets * settings.pairs


def _gains(settings: Settings, method: str, d: int, rows: int, rates: Rates) -> float:
    """The gains of all pairs at one point."""
    whiten = rows**2 / 2 * rates.product  # C⁻¹ is triangular
    P, J = settings.pairs, KNOWN[method](d)
    # The mean, what the data say of the J numbers, and what these say together.
    products = rows * (1 + J) + J**2
    each = P * (products * rates.product + rates.gain) + _gram(1, P, d, rates)
    return settings.sets * (_gram(1, rows, d, rates) + whiten + each)
