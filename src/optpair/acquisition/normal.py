"""Functions of the standard normal that hold on the whole real line, with exact derivatives.

JAX's own are not enough here: its `log_ndtr` is slow, and its `erfcx` returns 0 for arguments
in [26.54, 26.64] (erfc underflows before the asymptotic series takes over), which makes a
hazard infinite near β = −37.6. Two forms are used instead, joined at β = −5:

    β ≥ −5:  φ(β) and Φ(β) = ½ erfc(−β/√2), directly
    β < −5:  Laplace's continued fraction, with t = −β and K_j = j / (t + K_{j+1}):
             φ(β)/Φ(β) = t + K₁,  1 / (t + K₁) being the Mills ratio

Everything that cancels in the lower tail is a product of differences of K₁, K₂ and K₃, which do
not: they go as 1/t, 2/t and 3/t.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Reals: TypeAlias = Float[Array, "..."]

_TAIL = 5.0  # where the fraction takes over, going down
_LEVELS = 24  # of the fraction: at the switch K₁ is exact to 6e-16, K₂ − K₁ to 2e-14
_FLAT = 40.0  # above, φ is 0 in float64
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2PI = math.sqrt(2 * math.pi)


class TruncatedMoments(NamedTuple):
    """What a standard normal f, truncated above at β, looks like from its bound."""

    hazard: Reals  # r = φ(β)/Φ(β), minus the mean of f
    excess: Reals  # β + r, the mean distance of f below the bound
    variance: Reals  # v, the variance of f
    lost: Reals  # 1 − v


def _fraction_polynomials(levels: int) -> tuple[list[float], list[float]]:
    """Coefficients of E₃ and E₄, highest power first: see `lower_tail`."""
    after, current = np.ones(1), np.ones(1)  # E_{levels+2}, E_{levels+1}
    found: dict[int, list[float]] = {}
    for j in range(levels, 2, -1):  # E_j = E_{j+1} + (j+1) u E_{j+2}
        longer = np.polyadd(current, np.polymul([j + 1.0, 0.0], after))
        after, current = current, longer
        found[j] = [float(c) for c in longer]
    return found[3], found[4]


_POLYNOMIALS = {levels: _fraction_polynomials(levels) for levels in (10, _LEVELS)}


def lower_tail(t: Reals, levels: int = _LEVELS) -> tuple[Reals, Reals, Reals]:
    """K₁, K₂ and K₃ of Laplace's continued fraction, K_j = j / (t + K_{j+1}).

    With u = 1/t² and E_j = E_{j+1} + (j+1) u E_{j+2}, all terms positive, and E = 1 at the end,

        K_j = (j / t) E_{j+1} / E_j

    Holds for t ≥ 5 with 24 levels, and for t ≥ 8 with 10 (K₁ to 2e-12).
    """
    u = 1 / (t * t)
    third, fourth = (_horner(c, u) for c in _POLYNOMIALS[levels])
    second = third + 3 * u * fourth
    first = second + 2 * u * third
    return second / (t * first), 2 * third / (t * second), 3 * fourth / (t * third)


def _horner(coefficients: list[float], u: Reals) -> Reals:
    total = jnp.full_like(u, coefficients[0])
    for c in coefficients[1:]:
        total = total * u + c
    return total


def _upper(x: Reals) -> tuple[Reals, Reals]:
    """φ and Φ for x ≥ −5; the square is shared with erfc's own, so that their ratio is sharp."""
    w = -x * _SQRT_HALF
    return jnp.exp(-w * w) / _SQRT_2PI, 0.5 * jax.lax.erfc(w)


@jax.custom_jvp
def truncated_moments(beta: Reals) -> TruncatedMoments:
    """Hazard r, excess β + r, variance v and 1 − v of a standard normal truncated above at β.

        r = φ(β)/Φ(β),   1 − v = r (β + r)                                     (M3)
        r′ = −(1 − v),   (β + r)′ = v,   v′ = r ((β + r)² − v)

    In the lower tail, without cancellation, β + r = K₁, v = K₁ (K₂ − K₁) and
    v′ = r K₁² K₂ (K₃ − K₂). Any β from −1e70 up: v keeps its relative precision as v → 1/β², and
    1 − v is 0 above β = 38.
    """
    return _moments_and_slope(beta)[0]


@truncated_moments.defjvp
def _truncated_moments_jvp(
    primals: tuple[Reals], tangents: tuple[Reals]
) -> tuple[TruncatedMoments, TruncatedMoments]:
    ((beta,), (step,)) = primals, tangents
    moments, slope = _moments_and_slope(beta)
    along = TruncatedMoments(
        -moments.lost * step, moments.variance * step, slope * step, -slope * step
    )
    return moments, along


def _moments_and_slope(
    beta: Reals,
) -> tuple[TruncatedMoments, Reals]:
    far = beta < -_TAIL
    t = jnp.where(far, -beta, _TAIL)
    k1, k2, k3 = lower_tail(t)
    near = jnp.where(far, -_TAIL, jnp.minimum(beta, _FLAT))
    density, probability = _upper(near)
    r = density / probability
    lost = r * (near + r)  # (M3)
    v = 1 - lost
    v_far = k1 * (k2 - k1)
    slope = jnp.where(far, (t + k1) * k1 * k1 * k2 * (k3 - k2), r * ((near + r) ** 2 - v))
    moments = TruncatedMoments(
        hazard=jnp.where(far, t + k1, r),
        excess=jnp.where(far, k1, beta + r),
        variance=jnp.where(far, v_far, v),
        lost=jnp.where(far, 1 - v_far, lost),
    )
    return moments, slope


def hazard(beta: Reals) -> Reals:
    """The (reversed) hazard r = φ(β)/Φ(β) of (M3), with r′ = −r (β + r).

    Any β from −1e150 up; 0 above 38. Relative error below 1e-15 for β ≤ 2, 3e-13 above (φ itself).
    """
    return truncated_moments(beta).hazard


@jax.custom_jvp
def log_ndtr(x: Reals) -> Reals:
    """log Φ(x), with derivative φ(x)/Φ(x).

        −log Φ = log1p((1 − Φ)/Φ)               x ≥ −5
               = ½x² + log(√2π (t + K₁))        x < −5, t = −x

    Relative precision everywhere, also where log Φ → 0 from below.
    """
    far = x < -_TAIL
    t = jnp.where(far, -x, _TAIL)
    k1, _, _ = lower_tail(t)
    smaller = 0.5 * jax.lax.erfc(jnp.minimum(jnp.abs(x), _FLAT) * _SQRT_HALF)
    smaller_near = jnp.where(far, 0.5, smaller)
    odds = smaller_near / (1 - smaller_near)
    excess = jnp.where(far, _SQRT_2PI * (t + k1) - 1, jnp.where(x < 0, 1 / odds, odds))
    return -jnp.log1p(excess) - jnp.where(far, 0.5 * t * t, 0.0)


@log_ndtr.defjvp
def _log_ndtr_jvp(primals: tuple[Reals], tangents: tuple[Reals]) -> tuple[Reals, Reals]:
    ((x,), (step,)) = primals, tangents
    return log_ndtr(x), hazard(x) * step


@jax.custom_jvp
def log_ei(z: Reals) -> Reals:
    """log(φ(z) + z Φ(z)), the log expected improvement at standardised distance z.

        φ + zΦ = Φ K₁ = φ K₁ / (t + K₁)         z < −5, t = −z

    so that it goes as −½z² − log √2π − 2 log|z|, and its derivative Φ/(φ + zΦ) is 1/K₁ = t + K₂.
    Holds for any |z| up to 1e100.
    """
    return _log_ei_and_slope(z)[0]


@log_ei.defjvp
def _log_ei_jvp(primals: tuple[Reals], tangents: tuple[Reals]) -> tuple[Reals, Reals]:
    ((z,), (step,)) = primals, tangents
    value, slope = _log_ei_and_slope(z)
    return value, slope * step


def _log_ei_and_slope(
    z: Reals,
) -> tuple[Reals, Reals]:
    far = z < -_TAIL
    t = jnp.where(far, -z, _TAIL)
    k1, k2, _ = lower_tail(t)
    near = jnp.where(far, -_TAIL, z)
    density, probability = _upper(near)
    improvement = density + near * probability
    value = jnp.log(jnp.where(far, k1 / (_SQRT_2PI * (t + k1)), improvement))
    slope = jnp.where(far, t + k2, probability / improvement)
    return value - jnp.where(far, 0.5 * t * t, 0.0), slope
