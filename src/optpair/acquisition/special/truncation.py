"""The gain of knowing f ≤ f*: a normal truncated above at β, seen through noise.

f is standard normal, truncated above at β; y = ρ f + √(1−ρ²) ε has unit variance without the
truncation, and ρ² = s/(s + σ²). The gain is the entropy, in nats, that the truncation takes from y:
`moment_matched_gain` takes y for a normal with the right variance, a lower bound; `exact_gain`
adds what is lost by that. `noiseless_gain` is that of f itself. `divergence` is another measure of
the same: how far the truncation moves the distribution of y.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import special

from optpair.acquisition.special.normal import (
    FLAT,
    TAIL,
    Reals,
    TruncatedMoments,
    log_ndtr,
    lower_tail,
    truncated_moments,
    truncated_moments_and_slope,
)
from optpair.runtime.shapes import Bool, Float, Int

Column: TypeAlias = Float[np.ndarray, " N"]
Nodes: TypeAlias = Float[np.ndarray, "*nodes N"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_NODES, _WEIGHTS = 0.5 * (_NODES[:, None] + 1), 0.5 * _WEIGHTS  # on [0, 1]
_BLOCK = 256  # entries integrated at once: 48 times as many numbers still fit the cache
_REACH = 8.5  # standard deviations: what lies further has a mass of 2e-17
_RHO2_MARGIN = 1e-12
_TINY = 1e-150  # its square does not underflow
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2PI = math.sqrt(2 * math.pi)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_LOG_SQRT_2PI = math.log(_SQRT_2PI)


def truncated_variance_ratio(beta: Reals) -> Reals:
    """v(β), the variance of a standard normal truncated above at β (M3).

    v → 1/β² − 6/β⁴ + 50/β⁶ − … as β → −∞ and v → 1 as β → ∞. Any β from −1e70 up. Relative error
    below 1e-12 (worst at β = −5, 1e-15 below −100), that of v′ = r ((β + r)² − v) below 2e-11.
    """
    return truncated_moments(beta).variance


def moment_matched_gain(beta: Reals, s: Reals, noise: Reals) -> Reals:
    """The truncation gain by moment matching, the second term of (M4), in nats.

        −½ log1p(−s (1 − v)/(s + σ²)) = ½ log1p(s (1 − v)/(s v + σ²))

    The form on the right cancels nowhere: not for a small gain, nor where v and σ² both go
    to 0. At least 0. Holds for s ≥ 0 and σ² ≥ 0; where both are 0 nothing can be learnt, and it
    is 0 (s v + σ² is floored at 1e-150).
    """
    moments = truncated_moments(beta)
    with np.errstate(over="ignore", under="ignore"):
        gain = np.asarray(s * moments.variance + noise)
        np.maximum(gain, _TINY, out=gain)
        np.divide(s * moments.lost, gain, out=gain)
        np.log1p(gain, out=gain)
        gain *= 0.5  # (M4)
        return gain


def moment_matched_gain_and_slopes(
    beta: Reals, s: Reals, noise: Reals
) -> tuple[Reals, Reals, Reals, Reals]:
    """The gain of `moment_matched_gain` and its derivatives in β, s and σ².

        −½ s v′/(s v + σ²),   ½ σ² (1 − v)/((s + σ²)(s v + σ²)),   −½ s (1 − v)/(the same)

    All four have the shape that the arguments broadcast to.
    """
    moments, v_slope = truncated_moments_and_slope(beta)
    return _matched_slopes(moments, v_slope, s, noise)


def _matched_slopes(
    moments: TruncatedMoments, v_slope: Reals, s: Reals, noise: Reals
) -> tuple[Reals, Reals, Reals, Reals]:
    """Gain and slopes; a hot loop, so that work arrays are used again."""
    with np.errstate(over="ignore", under="ignore"):
        taken = np.asarray(s * moments.lost)
        remaining = np.asarray(s * moments.variance + noise)
        np.maximum(remaining, _TINY, out=remaining)
        total = np.asarray(remaining + taken)
        by_beta = s * v_slope / remaining
        by_beta *= -0.5
        by_s = moments.lost * noise / remaining
        by_s /= total
        by_s *= 0.5
        taken = taken / remaining
        by_noise = np.divide(taken, total, out=total)
        by_noise *= -0.5
        gain = np.log1p(taken)
        gain *= 0.5  # (M4)
        return np.asarray(gain), np.asarray(by_beta), np.asarray(by_s), by_noise


def noiseless_gain(beta: Reals) -> Reals:
    """The truncation gain without noise, H[f] − H[f | f ≤ β], in nats.

        −log Φ(β) + ½ β φ(β)/Φ(β)                        β > −5,  as in (M6)
        log(√2π (t + K₁)) − ½ t K₁                       β ≤ −5, t = −β

    Falls from ∞ (as log|β|) to 0 (as ½ β φ(β)). Relative precision everywhere from −1e70 to where
    φ underflows; 0 above 39.
    """
    return noiseless_gain_and_slope(beta)[0]


def noiseless_gain_and_slope(beta: Reals) -> tuple[Reals, Reals]:
    """The gain of `noiseless_gain` and its derivative, −½ r (1 + β (β + r)).

    That is −½ r K₁ K₂ in the lower tail. One erfc for φ/Φ and log Φ = −log1p((1 − Φ)/Φ), where two
    functions would take two.
    """
    flat = beta.reshape(-1)
    with np.errstate(over="ignore", under="ignore"):
        near = np.clip(flat, -TAIL, FLAT)
        w = near * _SQRT_HALF
        smaller = 0.5 * special.erfc(np.abs(w))
        larger = 1 - smaller
        below = near < 0
        probability, rest = np.where(below, smaller, larger), np.where(below, larger, smaller)
        r = np.exp(-w * w) / (_SQRT_2PI * probability)
        value = 0.5 * near * r + np.log1p(rest / probability)  # (M6)
        slope = -0.5 * r * (1 + near * (near + r))
        far = np.flatnonzero(flat <= -TAIL)
        if far.size:
            t = -flat[far]
            k1, k2, _ = lower_tail(t)
            value[far] = np.log(_SQRT_2PI * (t + k1)) - 0.5 * t * k1
            slope[far] = -0.5 * (t + k1) * k1 * k2
    return value.reshape(beta.shape), slope.reshape(beta.shape)


def exact_gain(beta: Reals, rho2: Reals) -> Reals:
    """The truncation gain itself, H[N(0, 1)] − H[y], in nats.

        gain = moment-matched gain + KL(g ‖ N(E y, var y))

    as the entropy of a normal with y's moments lies KL above that of y, whose density g is
    `exact_density`. The KL term is a 1-D integral. It is at least the moment-matched gain (to
    1e-14), 0 as β → ∞, and tends to −log Φ(β) + ½ β φ(β)/Φ(β), the gain without noise, as ρ² → 1.

    Any β, and ρ² from 0 to 1 − 1e-12 (clipped there: the slope in ρ² is infinite at 1).
    Within 2e-13 of the truth for −50 ≤ β ≤ 37 and ρ² ≤ 1 − 1e-9. Work arrays do not grow with the
    number of entries.
    """
    return exact_gain_and_slopes(beta, rho2)[0]


def exact_gain_and_slopes(beta: Reals, rho2: Reals) -> tuple[Reals, Reals, Reals]:
    """The gain of `exact_gain` and its derivatives in β and ρ².

    Those of the KL term are integrals too, at the same nodes: ∂KL = ∫ g ∂(log g) log(g/n).
    Where ρ² is clipped, the KL term is constant in it.
    """
    beta, rho2 = np.broadcast_arrays(beta, rho2)
    moments, v_slope = truncated_moments_and_slope(beta)
    rest, inside = np.asarray(1 - rho2), _inside(rho2)
    gain, by_beta, by_s, by_noise = _matched_slopes(moments, v_slope, rho2, rest)
    with np.errstate(over="ignore", under="ignore"):
        kl = _divergence(_frame(beta, inside, moments)).reshape(3, *beta.shape)
        by_rho2 = by_s - by_noise + np.where(inside == rho2, kl[2], 0.0)
        return np.asarray(gain + kl[0]), np.asarray(by_beta + kl[1]), np.asarray(by_rho2)


def divergence(beta: Reals, rho2: Reals) -> Reals:
    """KL(g ‖ N(0, 1)), from y without the truncation to y with it, in nats (M8b).

        KL = KL(g ‖ N(E y, var y)) + ½ (−log(1 − t) − t) + ½ ρ² r²,    t = ρ² (1 − v)

    as divergences add up where the normal between has g's moments. No term is negative. It is
    `exact_gain` − ½ ρ² β r, and tends to −log Φ(β) as ρ² → 1. β and ρ² as there.
    """
    return divergence_and_slopes(beta, rho2)[0]


def divergence_and_slopes(beta: Reals, rho2: Reals) -> tuple[Reals, Reals, Reals]:
    """The divergence and its derivatives in β and ρ².

    Those of the last two terms beside ½ −log(1 − t): ½ ρ² v′ − ρ² r (1 − v) and ½ (r² − (1 − v)).
    """
    beta, rho2 = np.broadcast_arrays(beta, rho2)
    moments, v_slope = truncated_moments_and_slope(beta)
    rest = np.asarray(1 - rho2)
    matched, by_beta, by_s, by_noise = _matched_slopes(moments, v_slope, rho2, rest)
    r, lost, inside = moments.hazard, moments.lost, _inside(rho2)
    with np.errstate(over="ignore", under="ignore"):
        kl = _divergence(_frame(beta, inside, moments)).reshape(3, *beta.shape)
        value = kl[0] + np.maximum(matched - 0.5 * rho2 * lost, 0.0) + 0.5 * rho2 * r * r
        by_beta = by_beta + kl[1] + rho2 * (0.5 * v_slope - r * lost)
        by_rho2 = by_s - by_noise + np.where(inside == rho2, kl[2], 0.0) + 0.5 * (r * r - lost)
        return np.asarray(value), np.asarray(by_beta), np.asarray(by_rho2)


def exact_density(z: Reals, beta: Reals, rho2: Reals) -> Reals:
    """The density g of y, a truncated normal seen through noise.

        g(z) = φ(z) Φ((β − ρz)/√(1−ρ²)) / Φ(β)

    Holds for any z and β, and ρ² from 0 to 1 − 1e-12.
    """
    z, beta, rho2 = np.broadcast_arrays(z, beta, rho2)
    with np.errstate(over="ignore", under="ignore"):
        frame = _frame(beta, _inside(rho2), truncated_moments(beta))
        d = frame.rho * frame.below - z.reshape(-1)
        a, q = _turned(frame, d)
        a = np.minimum(a, _REACH)  # Φ is 1 above
        at_edge = _log_at_edge(frame, q, _scaled(a))
        in_bulk = _log_in_bulk(frame, d) + log_ndtr(np.maximum(a, 0.0))
        return np.exp(np.where(a < 0, at_edge, in_bulk)).reshape(z.shape)


def _inside(rho2: Reals) -> Reals:
    return np.asarray(np.clip(rho2, _RHO2_MARGIN, 1 - _RHO2_MARGIN))


class _Frame(NamedTuple):
    """What all nodes share. With d = ρ min(β, 0) − z, distances stay small wherever β is."""

    rho: Column
    c: Column  # √(1−ρ²)
    below: Column  # min(β, 0)
    above: Column  # max(β, 0)
    base: Column  # −log Φ(β) − ½ min(β, 0)² − log √2π
    hazard: Column
    mean: Column  # of d
    variance: Column  # of d, and of y

    def take(self, entries: Int[np.ndarray, " n"]) -> _Frame:
        return _Frame(*(a[entries] for a in self))


def _frame(beta: Reals, rho2: Reals, moments: TruncatedMoments) -> _Frame:
    beta, rho2 = beta.reshape(-1), rho2.reshape(-1)
    hazard, excess, variance, _ = (a.reshape(-1) for a in moments)
    below, above = np.minimum(beta, 0.0), np.maximum(beta, 0.0)
    scaled = _SQRT_2PI * np.where(beta < 0, hazard, 1.0)
    rho = np.sqrt(rho2)
    return _Frame(
        rho=rho,
        c=np.sqrt(1 - rho2),
        below=below,
        above=above,
        base=np.where(beta < 0, np.log(scaled), -log_ndtr(above)) - _LOG_SQRT_2PI,
        hazard=hazard,
        mean=rho * np.where(beta < 0, excess, hazard),
        variance=1 - rho2 + rho2 * variance,
    )


def _turned(frame: _Frame, d: Nodes) -> tuple[Nodes, Nodes]:
    """a = (β − ρz)/√(1−ρ²) and q = (z − ρβ)/√(1−ρ²), the latter up to its sign.

    (z, a) is (β, q) turned by the angle whose cosine is ρ, so that z² + a² = β² + q².
    """
    rho, c, p = frame.rho, frame.c, frame.above
    return (p + rho * d) / c + c * frame.below, (d + rho * p) / c


def _scaled(a: Nodes) -> Nodes:
    """erfcx(−a/√2), which is Φ(a) exp(½a²), doubled."""
    return np.asarray(special.erfcx(a * -_SQRT_HALF))


def _log_at_edge(frame: _Frame, q: Nodes, scaled: Nodes) -> Nodes:
    """log g for a ≤ 8.5: the large squares z² and a² become one of moderate size, q²."""
    p = frame.above
    return np.asarray(frame.base - 0.5 * (p * p + q * q) + np.log(0.5 * scaled))


def _log_in_bulk(frame: _Frame, d: Nodes) -> Nodes:
    """log g where Φ(a) = 1: base + ½ (min(β, 0)² − z²), factored."""
    rho, c, m = frame.rho, frame.c, frame.below
    return np.asarray(frame.base + 0.5 * (c * c * m / (1 + rho) + d) * ((1 + rho) * m - d))


def _panels(frame: _Frame) -> tuple[Column, Column, Column]:
    """The window of d that holds the mass, and where Φ(a) becomes 1 (a = 8.5) inside it.

    f lies between −√(min(β, 0)² + 72) and min(β, 8.5), the noise within 8.5 √(1−ρ²).
    """
    rho, c, m, p = frame.rho, frame.c, frame.below, frame.above
    spread = 72 / (np.sqrt(m * m + 72) - m)  # m + √(m² + 72)
    low = -np.minimum(rho * np.minimum(p, _REACH) + _REACH * c, _REACH)
    high = np.minimum(rho * spread + _REACH * c, spread - c * c * m / (1 + rho))
    split = np.clip((_REACH * c - p - c * c * m) / rho, low, high)
    return low, split, high


def _divergence(frame: _Frame) -> Float[np.ndarray, "3 N"]:
    """KL(g ‖ n) = ∫ g log(g/n), n the normal with g's mean and variance, and its slopes.

        ∂ log g/∂β = r(a)/√(1−ρ²) − r(β),   ∂ log g/∂ρ² = r(a) (ρβ − z) / (2ρ (1−ρ²)^{3/2})

    with r(a) = 0 in the bulk. A panel without width is not visited.
    """
    low, split, high = _panels(frame)
    sums = np.zeros((3, len(low)))
    for entries in _blocks(split > low):
        start, end = low[entries], split[entries]
        sums[:, entries] += _edge_sums(frame.take(entries), start, end - start)
    for entries in _blocks(high > split):
        start, end = split[entries], high[entries]
        sums[:, entries] += _bulk_sums(frame.take(entries), start, end - start)
    return sums


def _blocks(wanted: Bool[np.ndarray, " N"]) -> Iterator[Int[np.ndarray, " n"]]:
    entries = np.flatnonzero(wanted)
    return (entries[i : i + _BLOCK] for i in range(0, len(entries), _BLOCK))


def _edge_sums(frame: _Frame, start: Column, width: Column) -> Float[np.ndarray, "3 N"]:
    d = start + width * _NODES
    a, q = _turned(frame, d)
    scaled = _scaled(a)
    term = _kl_terms(frame, d, _log_at_edge(frame, q, scaled))
    pulled = term / scaled
    total, by_edge = width * (_WEIGHTS @ term), width * (_WEIGHTS @ pulled) * _SQRT_2_OVER_PI
    pulled *= q
    by_rho2 = width * (_WEIGHTS @ pulled) * _SQRT_2_OVER_PI / (2 * frame.rho * frame.c**2)
    return np.stack([total, by_edge / frame.c - total * frame.hazard, by_rho2])


def _bulk_sums(frame: _Frame, start: Column, width: Column) -> Float[np.ndarray, "3 N"]:
    d = start + width * _NODES
    total = width * (_WEIGHTS @ _kl_terms(frame, d, _log_in_bulk(frame, d)))
    return np.stack([total, -total * frame.hazard, np.zeros_like(total)])


def _kl_terms(frame: _Frame, d: Nodes, log_density: Nodes) -> Nodes:
    """g log(g/n) at the nodes."""
    away = (d - frame.mean) ** 2 / (2 * frame.variance)
    log_normal = 0.5 * np.log(frame.variance) + _LOG_SQRT_2PI
    return np.asarray(np.exp(log_density) * (log_density + away + log_normal))
