"""What knowing f ≤ f* tells: a normal truncated above at β, seen through noise.

f is standard normal, truncated above at β; y = ρ f + √(1−ρ²) ε has unit variance without the
truncation, and ρ² = s/(s + σ²). The gain is the entropy, in nats, that the truncation takes from y:
`moment_matched_gain` takes y for a normal with the right variance, a lower bound; `exact_gain`
adds what is lost by that. `noiseless_gain` is that of f itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from optpair.acquisition.normal import Reals, log_ndtr, lower_tail, truncated_moments

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS  # on [0, 1]
_REACH = 8.5  # standard deviations: what lies further has a mass of 2e-17
_LOW = 5.0  # below, the continued fraction with all its levels
_FLAT = 40.0  # above, φ is 0 in float64
_TAIL = 8.0  # of the edge: below, the continued fraction with 10 levels
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
    remaining = jnp.maximum(s * moments.variance + noise, _TINY)
    return 0.5 * jnp.log1p(s * moments.lost / remaining)  # (M4)


@jax.custom_jvp
def noiseless_gain(beta: Reals) -> Reals:
    """The truncation gain without noise, H[f] − H[f | f ≤ β], in nats.

        −log Φ(β) + ½ β φ(β)/Φ(β)                        β ≥ −5                          (M6)
        log(√2π (t + K₁)) − ½ t K₁                       β < −5, t = −β

    Falls from ∞ (as log|β|) to 0 (as ½ β φ(β)), with derivative −½ r (1 + β (β + r)), which is
    −½ r K₁ K₂ in the lower tail. Relative precision everywhere from −1e70 to where φ underflows;
    0 above 38.
    """
    return _noiseless_gain_and_slope(beta)[0]


@noiseless_gain.defjvp
def _noiseless_gain_jvp(primals: tuple[Reals], tangents: tuple[Reals]) -> tuple[Reals, Reals]:
    ((beta,), (step,)) = primals, tangents
    value, slope = _noiseless_gain_and_slope(beta)
    return value, slope * step


def _noiseless_gain_and_slope(beta: Reals) -> tuple[Reals, Reals]:
    """One erfc for φ/Φ and log Φ = −log1p((1 − Φ)/Φ), where two functions would take two."""
    far = beta < -_LOW
    t = jnp.where(far, -beta, _LOW)
    k1, k2, _ = lower_tail(t)
    near = jnp.clip(beta, -_LOW, _FLAT)
    w = near * _SQRT_HALF
    smaller = 0.5 * jax.lax.erfc(jnp.abs(w))
    larger = 1 - smaller
    probability, rest = jnp.where(near < 0, smaller, larger), jnp.where(near < 0, larger, smaller)
    r = jnp.exp(-w * w) / (_SQRT_2PI * probability)
    below = jnp.log(_SQRT_2PI * (t + k1)) - 0.5 * t * k1
    value = jnp.where(far, below, 0.5 * near * r + jnp.log1p(rest / probability))  # (M6)
    return value, -0.5 * jnp.where(far, (t + k1) * k1 * k2, r * (1 + near * (near + r)))


def exact_gain(beta: Reals, rho2: Reals) -> Reals:
    """The truncation gain itself, H[N(0, 1)] − H[y], in nats.

        gain = moment-matched gain + KL(g ‖ N(E y, var y))

    as the entropy of a normal with y's moments lies KL above that of y, whose density g is
    `exact_density`. The KL term is a 1-D integral, and so are its derivatives:
    ∂KL = ∫ g ∂(log g) log(g/n). It is at least the moment-matched gain (to 1e-14), 0 as β → ∞, and
    tends to −log Φ(β) + ½ β φ(β)/Φ(β), the gain without noise, as ρ² → 1.

    Any β, and ρ² from 0 to 1 − 1e-12 (clipped there: the slope in ρ² is infinite at 1).
    Within 2e-13 of the truth for −50 ≤ β ≤ 37 and ρ² ≤ 1 − 1e-9. Work arrays are those of one node,
    whatever the number of nodes, also under `jax.grad`.
    """
    beta, rho2 = jnp.broadcast_arrays(beta, rho2)
    inside = jnp.clip(rho2, _RHO2_MARGIN, 1 - _RHO2_MARGIN)
    return moment_matched_gain(beta, rho2, 1 - rho2) + _divergence(beta, inside)


def exact_density(z: Reals, beta: Reals, rho2: Reals) -> Reals:
    """The density g of y, a truncated normal seen through noise.

        g(z) = φ(z) Φ((β − ρz)/√(1−ρ²)) / Φ(β)

    Holds for any z and β, and ρ² from 0 to 1 − 1e-12.
    """
    frame = _frame(beta, jnp.clip(rho2, _RHO2_MARGIN, 1 - _RHO2_MARGIN))
    return jnp.exp(_at_edge(frame, frame.rho * frame.below - z).log_density)


class _Frame(NamedTuple):
    """What all nodes share. With d = ρ min(β, 0) − z, distances stay small wherever β is."""

    rho: Reals
    c: Reals  # √(1−ρ²)
    below: Reals  # min(β, 0)
    above: Reals  # max(β, 0)
    base: Reals  # −log Φ(β) − ½ min(β, 0)² − log √2π
    hazard: Reals
    mean: Reals  # of d
    variance: Reals  # of d, and of y


def _frame(beta: Reals, rho2: Reals) -> _Frame:
    moments = truncated_moments(beta)
    scaled = _SQRT_2PI * jnp.where(beta < 0, moments.hazard, 1.0)
    normaliser = jnp.where(beta < 0, jnp.log(scaled), -log_ndtr(jnp.maximum(beta, 0.0)))
    rho = jnp.sqrt(rho2)
    return _Frame(
        rho=rho,
        c=jnp.sqrt(1 - rho2),
        below=jnp.minimum(beta, 0.0),
        above=jnp.maximum(beta, 0.0),
        base=normaliser - _LOG_SQRT_2PI,
        hazard=moments.hazard,
        mean=rho * jnp.where(beta < 0, moments.excess, moments.hazard),
        variance=1 - rho2 + rho2 * moments.variance,
    )


class _Edge(NamedTuple):
    log_density: Reals
    hazard: Reals  # φ(a)/Φ(a)


def _in_bulk(frame: _Frame, d: Reals) -> Reals:
    """log g in the panel where Φ(a) = 1, capped: where Φ(a) < 1 all through, its width is 0."""
    return jnp.minimum(_away_from_edge(frame, d), 100.0)


def _away_from_edge(frame: _Frame, d: Reals) -> Reals:
    """log g where Φ(a) = 1: base + ½ (min(β, 0)² − z²), factored."""
    rho, c, m = frame.rho, frame.c, frame.below
    return frame.base + 0.5 * (c * c * m / (1 + rho) + d) * ((1 + rho) * m - d)


def _at_edge(frame: _Frame, d: Reals) -> _Edge:
    """log g, and the hazard at a = (β − ρz)/√(1−ρ²).

    (z, a) is (β, q) turned by the angle whose cosine is ρ, so z² + a² = β² + q² with
    q = (z − ρβ)/√(1−ρ²): far down, where Φ(a) = φ(a)/(t + K₁), the two large squares
    become one of moderate size.
    """
    rho, c, m, p = frame.rho, frame.c, frame.below, frame.above
    a = (p + rho * d) / c + c * m
    far = a < -_TAIL
    t = jnp.maximum(-a, _TAIL)
    k1, _, _ = lower_tail(t, levels=10)
    w = -jnp.maximum(a, -_TAIL) * _SQRT_HALF
    erfc = jax.lax.erfc(w)
    q = (d + rho * p) / c
    square = jnp.where(far, frame.base - 0.5 * (p * p + q * q), _away_from_edge(frame, d))
    log_density = square + jnp.log(jnp.where(far, 1 / (_SQRT_2PI * (t + k1)), 0.5 * erfc))
    return _Edge(log_density, jnp.where(far, t + k1, _SQRT_2_OVER_PI * jnp.exp(-w * w) / erfc))


def _panels(
    frame: _Frame,
) -> tuple[Reals, Reals, Reals]:
    """The window of d that holds the mass, and where Φ(a) becomes 1 (a = 8.5) inside it.

    f lies between −√(min(β, 0)² + 72) and min(β, 8.5), the noise within 8.5 √(1−ρ²).
    """
    rho, c, m, p = frame.rho, frame.c, frame.below, frame.above
    spread = 72 / (jnp.sqrt(m * m + 72) - m)  # m + √(m² + 72)
    low = -jnp.minimum(rho * jnp.minimum(p, _REACH) + _REACH * c, _REACH)
    high = jnp.minimum(rho * spread + _REACH * c, spread - c * c * m / (1 + rho))
    split = jnp.clip((_REACH * c - p - c * c * m) / rho, low, high)
    return low, split, high


@jax.custom_jvp
def _divergence(beta: Reals, rho2: Reals) -> Reals:
    """KL(g ‖ n) = ∫ g log(g/n), n the normal with g's mean and variance."""
    frame = _frame(beta, rho2)
    low, split, high = _panels(frame)

    def add(i: Array, total: Reals) -> Reals:
        node, weight = jnp.asarray(_NODES)[i], jnp.asarray(_WEIGHTS)[i]
        edge, bulk = low + (split - low) * node, split + (high - split) * node
        at_edge = _kl_term(frame, edge, _at_edge(frame, edge).log_density)
        in_bulk = _kl_term(frame, bulk, _in_bulk(frame, bulk))
        return total + weight * ((split - low) * at_edge + (high - split) * in_bulk)

    total: Reals = jax.lax.fori_loop(0, len(_NODES), add, jnp.zeros_like(beta))
    return total


def _kl_term(frame: _Frame, d: Reals, log_density: Reals) -> Reals:
    """g log(g/n) at one node."""
    log_normal = -0.5 * ((d - frame.mean) ** 2 / frame.variance + jnp.log(frame.variance))
    return jnp.exp(log_density) * (log_density - log_normal + _LOG_SQRT_2PI)


@_divergence.defjvp
def _divergence_jvp(
    primals: tuple[Reals, Reals],
    tangents: tuple[Reals, Reals],
) -> tuple[Reals, Reals]:
    """∂ log g/∂β = r(a)/√(1−ρ²) − r(β),   ∂ log g/∂ρ² = r(a) (ρβ − z) / (2ρ (1−ρ²)^{3/2})."""
    (beta, rho2), (beta_step, rho2_step) = primals, tangents
    frame = _frame(beta, rho2)
    low, split, high = _panels(frame)
    rho, c = frame.rho, frame.c

    Sums = tuple[Reals, Reals, Reals]

    def add(i: Array, sums: Sums) -> Sums:
        node, weight = jnp.asarray(_NODES)[i], jnp.asarray(_WEIGHTS)[i]
        edge, bulk = low + (split - low) * node, split + (high - split) * node
        log_density, hazard = _at_edge(frame, edge)
        at_edge = weight * (split - low) * _kl_term(frame, edge, log_density)
        in_bulk = weight * (high - split) * _kl_term(frame, bulk, _in_bulk(frame, bulk))
        by_beta = at_edge * (hazard / c - frame.hazard) - in_bulk * frame.hazard
        by_rho2 = at_edge * hazard * (edge + rho * frame.above) / (2 * rho * c**3)
        total, beta_slope, rho2_slope = sums
        return total + at_edge + in_bulk, beta_slope + by_beta, rho2_slope + by_rho2

    zero = jnp.zeros_like(beta)
    value, beta_slope, rho2_slope = jax.lax.fori_loop(0, len(_NODES), add, (zero, zero, zero))
    return value, beta_slope * beta_step + rho2_slope * rho2_step
