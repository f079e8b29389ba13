"""Functions of the standard normal that hold on the whole real line, with exact derivatives.

Two forms are used, joined at β = −5:

    β > −5:  φ(β) and Φ(β) = ½ erfc(−β/√2), directly
    β ≤ −5:  Laplace's continued fraction, with t = −β and K_j = j / (t + K_{j+1}):
             φ(β)/Φ(β) = t + K₁,  1 / (t + K₁) being the Mills ratio

Everything that cancels in the lower tail is a product of differences of K₁, K₂ and K₃, which do
not: they go as 1/t, 2/t and 3/t. Few entries lie there, and only those pay for the fraction.
The hazard alone cancels nowhere and comes from erfcx, which costs half as much again as erfc.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import special

from optpair.runtime.shapes import Float

Reals: TypeAlias = Float[np.ndarray, "..."]

TAIL = 5.0  # where the fraction takes over, going down
FLAT = 40.0  # above, φ is 0 in float64
_LEVELS = 24  # of the fraction: at the switch K₁ is exact to 6e-16, K₂ − K₁ to 2e-14
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2PI = math.sqrt(2 * math.pi)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


class TruncatedMoments(NamedTuple):
    """Moments of a standard normal f, truncated above at β, as seen from its bound."""

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


_POLYNOMIALS = _fraction_polynomials(_LEVELS)


def lower_tail(t: Reals) -> tuple[Reals, Reals, Reals]:
    """K₁, K₂ and K₃ of Laplace's continued fraction, K_j = j / (t + K_{j+1}).

    With u = 1/t² and E_j = E_{j+1} + (j+1) u E_{j+2}, all terms positive, and E = 1 at the end,

        K_j = (j / t) E_{j+1} / E_j

    Holds for t ≥ 5.
    """
    with np.errstate(over="ignore", under="ignore"):
        u = np.asarray(1 / (t * t))
        third, fourth = (_horner(c, u) for c in _POLYNOMIALS)
        second = third + 3 * u * fourth
        first = second + 2 * u * third
        return second / (t * first), 2 * third / (t * second), 3 * fourth / (t * third)


def _horner(coefficients: list[float], u: Reals) -> Reals:
    total = np.full_like(u, coefficients[0])
    for c in coefficients[1:]:
        total *= u
        total += c
    return total


def truncated_moments(beta: Reals) -> TruncatedMoments:
    """Hazard r, excess β + r, variance v and 1 − v of a standard normal truncated above at β.

        r = φ(β)/Φ(β),   1 − v = r (β + r)

    as in (M3). In the lower tail, without cancellation, β + r = K₁ and v = K₁ (K₂ − K₁). Any β from
    −1e70 up: v keeps its relative precision as v → 1/β², and 1 − v is 0 above β = 39.
    """
    return truncated_moments_and_slope(beta)[0]


def truncated_moments_and_slope(beta: Reals) -> tuple[TruncatedMoments, Reals]:
    """The moments of `truncated_moments`, and v′, the derivative of the variance.

        r′ = −(1 − v),   (β + r)′ = v,   v′ = r ((β + r)² − v)

    which is r K₁² K₂ (K₃ − K₂) in the lower tail.
    """
    flat = beta.reshape(-1)
    with np.errstate(over="ignore", under="ignore"):
        excess = np.clip(flat, -TAIL, FLAT)
        r = _hazard_above(excess)
        excess += r
        lost = r * excess  # (M3)
        variance = 1 - lost
        slope = excess * excess
        slope -= variance
        slope *= r
        np.maximum(excess, flat, out=excess)  # above the clip, where r is 0
        far = np.flatnonzero(flat <= -TAIL)
        if far.size:
            t = -flat[far]
            k1, k2, k3 = lower_tail(t)
            r[far] = t + k1
            excess[far] = k1
            variance[far] = k1 * (k2 - k1)
            lost[far] = 1 - variance[far]
            slope[far] = r[far] * k1 * k1 * k2 * (k3 - k2)
    moments = (a.reshape(beta.shape) for a in (r, excess, variance, lost))
    return TruncatedMoments(*moments), slope.reshape(beta.shape)


def _hazard_above(beta: Reals) -> Reals:
    """φ/Φ for β ≥ −5; the square is shared with erfc's own, so that their ratio is sharp."""
    w = beta * -_SQRT_HALF
    r = w * w
    np.negative(r, out=r)
    np.exp(r, out=r)
    special.erfc(w, out=w)
    r /= w
    r *= _SQRT_2_OVER_PI
    return r


def hazard(beta: Reals) -> Reals:
    """The (reversed) hazard r = φ(β)/Φ(β) = √(2/π) / erfcx(−β/√2) of (M3).

    Its derivative is r′ = −r (β + r), minus the `lost` of `truncated_moments`.
    Any β from −1e150 up; 0 above 38. Relative error below 1e-15 for β ≤ 2, 3e-13 above (φ itself).
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(_SQRT_2_OVER_PI / special.erfcx(beta * -_SQRT_HALF))  # (M3)


def log_ndtr(x: Reals) -> Reals:
    """log Φ(x), with derivative φ(x)/Φ(x), the `hazard`.

    SciPy's, which keeps its relative precision everywhere, also where log Φ → 0 from below.
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(special.log_ndtr(x))


def log_ei(z: Reals) -> Reals:
    """log(φ(z) + z Φ(z)), the log expected improvement at standardised distance z.

        φ + zΦ = Φ K₁ = φ K₁ / (t + K₁)         z ≤ −5, t = −z

    so that it goes as −½z² − log √2π − 2 log|z|. Holds for any |z| up to 1e100.
    """
    return log_ei_and_slope(z)[0]


def log_ei_and_slope(z: Reals) -> tuple[Reals, Reals]:
    """The value of `log_ei` and its derivative, Φ/(φ + zΦ), which is 1/K₁ = t + K₂ far down."""
    flat = z.reshape(-1)
    with np.errstate(over="ignore", under="ignore"):
        near = np.maximum(flat, -TAIL)
        w = near * -_SQRT_HALF
        probability = 0.5 * special.erfc(w)
        # erfc squares w as well, so that the ratio of the two is sharp
        improvement = np.exp(-w * w) / _SQRT_2PI + near * probability
        slope = probability / improvement
        value = np.log(improvement)
        far = np.flatnonzero(flat <= -TAIL)
        if far.size:
            t = -flat[far]
            k1, k2, _ = lower_tail(t)
            value[far] = np.log(k1 / (_SQRT_2PI * (t + k1))) - 0.5 * t * t
            slope[far] = t + k2
    return value.reshape(z.shape), slope.reshape(z.shape)
