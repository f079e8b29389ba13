"""A Gaussian vector known to be non-negative, as a Gaussian again: expectation propagation.

The truncation wᵢ ≥ 0 is replaced by a site exp(−½ τᵢ wᵢ² + νᵢ wᵢ), so that

    q(w) ∝ N(w; b, V) Π_i exp(−½ τᵢ wᵢ² + νᵢ wᵢ)

Each site is chosen so that q, with that one site replaced by the truncation itself, keeps its mean
and variance in wᵢ. With the cavity N(mᵢ, vᵢ), q without site i, and β = mᵢ/√vᵢ,

    (E1)  τᵢ = (1 − v(β)) / (vᵢ v(β)),    νᵢ = (r + β (1 − v(β))) / (√vᵢ v(β))

with r and v of (M3). Truncation is log-concave: τᵢ ≥ 0 and νᵢ ≥ 0 always, so that a site never
takes information away and the covariance of q stays positive definite and below V.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optpair.acquisition.special.normal import Reals, truncated_moments
from optpair.runtime.shapes import Bool, Float, Int

DAMPING = 0.9  # the share of an update that is taken
SWEEPS = 60
TOLERANCE = 1e-7
FURTHEST = 100.0  # standard deviations that a cavity is taken to lie below zero, at most
SMALLEST = 1e-14  # of a variance of V: below this a variance of q is round-off


class Sites(NamedTuple):
    """The sites of each vector, and how its last sweep changed q."""

    precision: Float[np.ndarray, "*b k"]  # τ
    shift: Float[np.ndarray, "*b k"]  # ν
    change: Float[np.ndarray, "*b"]  # the largest change of a mean, in sds, or of a log variance
    sweeps: Int[np.ndarray, "*b"]


class _Batch(NamedTuple):
    """The vectors that have not converged, along the last axis; sweeps work in place."""

    active: Bool[np.ndarray, "k B"]
    prior: Float[np.ndarray, "k B"]  # variances of V
    precision: Float[np.ndarray, "k B"]
    shift: Float[np.ndarray, "k B"]
    mean: Float[np.ndarray, "k B"]  # of q
    covariance: Float[np.ndarray, "k k B"]  # of q

    def keep(self, going: Bool[np.ndarray, " B"]) -> _Batch:
        return _Batch(*(a[..., going] for a in self))


def match_site(mean: Reals, variance: Reals) -> tuple[Reals, Reals]:
    """τ and ν of (E1) for a cavity of that mean and variance; neither cancels nor goes negative.

    β is floored at −100: a cavity further on the wrong side contradicts the truncation, and is
    pulled no harder than that.
    """
    with np.errstate(over="ignore", under="ignore"):
        sd = np.sqrt(variance)
        beta = np.asarray(np.maximum(mean / sd, -FURTHEST))
        hazard, excess, ratio, lost = truncated_moments(beta)
        pull = np.where(beta < 0, excess - beta * ratio, hazard + beta * lost)
        return np.asarray(lost / (variance * ratio)), np.asarray(pull / (sd * ratio))


def propagate(
    mean: Float[np.ndarray, "*b k"],
    covariance: Float[np.ndarray, "*b k k"],
    active: Bool[np.ndarray, "*b k"],
    *,
    sweeps: int = SWEEPS,
    damping: float = DAMPING,
    tolerance: float = TOLERANCE,
) -> Sites:
    """Sites of the truncations that are active; one after the other, damped, all vectors at once.

    A vector stops where a sweep changes q by less than the tolerance, and leaves the batch: its
    sites do not depend on what it is batched with. Variances of V must be positive.
    """
    *shape, k = mean.shape
    size = math.prod(shape)
    batch = _start(mean.reshape(size, k), covariance.reshape(size, k, k), active.reshape(size, k))
    left = np.arange(size)
    precision, shift = np.zeros((size, k)), np.zeros((size, k))
    change, count = np.full(size, np.inf), np.zeros(size, dtype=int)
    with np.errstate(over="ignore", under="ignore"):
        for _ in range(sweeps):
            if not left.size:
                break
            change[left] = _sweep(batch, damping)
            count[left] += 1
            precision[left], shift[left] = batch.precision.T, batch.shift.T
            going = change[left] > tolerance
            left, batch = left[going], batch.keep(going)
    return Sites(
        precision.reshape(mean.shape),
        shift.reshape(mean.shape),
        change.reshape(shape),
        count.reshape(shape),
    )


def _start(
    mean: Float[np.ndarray, "B k"],
    covariance: Float[np.ndarray, "B k k"],
    active: Bool[np.ndarray, "B k"],
) -> _Batch:
    prior = np.diagonal(covariance, axis1=1, axis2=2)
    return _Batch(
        active=active.T,
        prior=prior.T.copy("C"),
        precision=np.zeros(mean.T.shape),
        shift=np.zeros(mean.T.shape),
        mean=mean.T.copy("C"),
        covariance=covariance.transpose(1, 2, 0).copy("C"),
    )


def _sweep(batch: _Batch, damping: float) -> Float[np.ndarray, " B"]:
    """Update every site once; return how much that changed q."""
    mean = batch.mean.copy()
    before = np.maximum(_variances(batch), SMALLEST * batch.prior)
    for i in range(len(mean)):
        _visit(batch, i, damping)
    moved = np.abs(batch.mean - mean) / np.sqrt(before)
    each = np.maximum(moved, np.abs(_variances(batch) / before - 1))
    changed: Float[np.ndarray, " B"] = np.max(np.where(batch.active, each, 0.0), 0, initial=0.0)
    return changed


def _variances(batch: _Batch) -> Float[np.ndarray, "k B"]:
    return np.diagonal(batch.covariance).T


def _visit(batch: _Batch, i: int, damping: float) -> None:
    """Match site i, and update q by it."""
    column, centre, prior = batch.covariance[:, i].copy(), batch.mean[i].copy(), batch.prior[i]
    variance = np.maximum(column[i], SMALLEST * prior)
    precision, shift = batch.precision[i], batch.shift[i]
    # A cavity is never wider than V: below that, what is left is round-off.
    left = np.maximum(1 - precision * variance, variance / prior)
    matched = match_site((centre - variance * shift) / left, variance / left)
    step = damping * batch.active[i]
    more, push = step * (matched[0] - precision), step * (matched[1] - shift)
    scale = 1 / (1 + more * variance)
    batch.precision[i] += more
    batch.shift[i] += push
    batch.mean[:] += column * (scale * (push - more * centre))
    batch.covariance[:] -= (more * scale * column)[:, None] * column
