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

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from optpair.acquisition.normal import Reals, truncated_moments

DAMPING = 0.9  # the share of an update that is taken
SWEEPS = 60
TOLERANCE = 1e-7
FURTHEST = 100.0  # standard deviations that a cavity is taken to lie below zero, at most
SMALLEST = 1e-14  # of a variance of V: below this a variance of q is round-off


class Sites(NamedTuple):
    """The sites of each vector, and how its last sweep changed q."""

    precision: Float[Array, "*b k"]  # τ
    shift: Float[Array, "*b k"]  # ν
    change: Float[Array, "*b"]  # the largest change of a mean, in sds, or of a log variance
    sweeps: Int[Array, "*b"]


class _State(NamedTuple):
    precision: Array
    shift: Array
    mean: Array
    covariance: Array


def match_site(mean: Reals, variance: Reals) -> tuple[Reals, Reals]:
    """τ and ν of (E1) for a cavity of that mean and variance; neither cancels nor goes negative.

    β is floored at −100: a cavity further on the wrong side contradicts the truncation, and is
    pulled no harder than that.
    """
    beta = jnp.maximum(mean / jnp.sqrt(variance), -FURTHEST)
    moments = truncated_moments(beta)
    precision = moments.lost / (variance * moments.variance)
    pull = jnp.where(
        beta < 0, moments.excess - beta * moments.variance, moments.hazard + beta * moments.lost
    )
    return precision, pull / (jnp.sqrt(variance) * moments.variance)


def propagate(
    mean: Float[Array, "*b k"],
    covariance: Float[Array, "*b k k"],
    active: Bool[Array, "*b k"],
    *,
    sweeps: int = SWEEPS,
    damping: float = DAMPING,
    tolerance: float = TOLERANCE,
) -> Sites:
    """Sites of the truncations that are active; one after the other, damped, all vectors at once.

    A vector stops where a sweep changes q by less than the tolerance: its sites do not depend on
    what it is batched with. Variances of V must be positive.
    """
    k = mean.shape[-1]
    prior = jnp.diagonal(covariance, axis1=-2, axis2=-1)

    def visit(i: Array, state: _State) -> _State:
        column, centre = state.covariance[..., i], state.mean[..., i]
        variance, precision, shift = column[..., i], state.precision[..., i], state.shift[..., i]
        variance = jnp.maximum(variance, SMALLEST * prior[..., i])
        # A cavity is never wider than V: below that, what is left is round-off.
        left = jnp.maximum(1 - precision * variance, variance / prior[..., i])
        matched = match_site((centre - variance * shift) / left, variance / left)
        step = damping * active[..., i]
        more, push = step * (matched[0] - precision), step * (matched[1] - shift)
        scale = 1 / (1 + more * variance)
        moved = column * (scale * (push - more * centre))[..., None]
        outer = column[..., :, None] * column[..., None, :]
        return _State(
            state.precision.at[..., i].add(more),
            state.shift.at[..., i].add(push),
            state.mean + moved,
            state.covariance - (more * scale)[..., None, None] * outer,
        )

    def sweep(carry: tuple[_State, Array, Array]) -> tuple[_State, Array, Array]:
        old, change, count = carry
        new: _State = jax.lax.fori_loop(0, k, visit, old)
        before = jnp.diagonal(old.covariance, axis1=-2, axis2=-1)
        after = jnp.diagonal(new.covariance, axis1=-2, axis2=-1)
        before = jnp.maximum(before, SMALLEST * prior)
        moved = jnp.abs(new.mean - old.mean) / jnp.sqrt(before)
        each = jnp.maximum(moved, jnp.abs(after / before - 1))
        going = change > tolerance

        def keep(a: Array, b: Array) -> Array:
            return jnp.where(going.reshape(going.shape + (1,) * (a.ndim - going.ndim)), a, b)

        state = _State(*map(keep, new, old))
        return state, keep(jnp.max(jnp.where(active, each, 0.0), -1), change), count + going

    def unfinished(carry: tuple[_State, Array, Array]) -> Array:
        _, change, count = carry
        return jnp.any((change > tolerance) & (count < sweeps))

    zero = jnp.zeros_like(mean)
    start = (
        _State(zero, zero, mean, covariance),
        jnp.full(mean.shape[:-1], jnp.inf),
        jnp.zeros(mean.shape[:-1], dtype=int),
    )
    state, change, count = jax.lax.while_loop(unfinished, sweep, start)
    return Sites(state.precision, state.shift, change, count)
