"""Factors of the chance of a forbidden region: mean and variance, with their derivatives.

A tail, an interval or what a front does not dominate; their equations are in `boxes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import special

from optpair.acquisition.special.cells import ABOVE, BELOW, Cells
from optpair.runtime.shapes import Float

FAR = 38.0  # standard deviations: φ is 0 beyond, in float64
SMALL = 4096  # numbers: fewer cost less than the calls that work on them
TINY = 1e-140  # its square does not underflow
SMALLEST = 1e-290  # of a front's chance: below, its half-space is not known
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS  # on [0, 1]
_SQRT_2PI = math.sqrt(2 * math.pi)

Each = Float[np.ndarray, "M P q"]
Moments = tuple[Each, ...]
"""One array per outcome."""


class Factor(NamedTuple):
    """One factor of P = Pr(A | y): its mean p, 1 − p, its variance, and derivatives of both.

    Derivatives are by the means and the variances of some outcomes: two entries for each.
    """

    mean: Each
    rest: Each
    variance: Each
    outcomes: tuple[int, ...]
    by_mean: tuple[tuple[Each, Each], ...] = ()
    """Derivatives of (p, v) by m_o."""
    by_variance: tuple[tuple[Each, Each], ...] = ()
    """And by s_o, at given ρ²."""
    by_share: tuple[Each, ...] = ()
    """Derivatives of v by ρ_o²."""


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * x * x) / _SQRT_2PI


def tail_variance(
    low: np.ndarray, share: np.ndarray, *, slopes: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v(l, ρ²) of (N3c), and its derivatives by l and by ρ².

    The variance of Pr(z > l | y), 0 for ρ² = 0 and Φ(l)(1 − Φ(l)) for ρ² = 1. Eight nodes: relative
    error below 1e-6 for |l| ≤ 3, and below 1e-3 for |l| ≤ 6. Without `slopes` those are 0.
    """
    square = low * low
    start = np.sqrt(np.maximum(1 - share, SMALLEST))
    width = share / (1 + start)  # 1 − √(1 − ρ²), without cancellation
    value, by_low, bend = (np.zeros_like(square) for _ in range(3))
    for node, weight in _groups(square.size, square.ndim):
        t = node * width
        t += start
        left = 1 / (2 - t * t)
        far = square * left
        term = np.exp(-far)
        term *= np.sqrt(left)
        term *= weight
        value += np.add.reduce(term)
        if slopes:
            term *= left
            by_low -= np.add.reduce(term)
            term *= t
            term *= (node - 1) * (1 - 2 * far)
            bend += np.add.reduce(term)
    scale = width / math.pi
    if not slopes:
        return value * scale, by_low, bend
    by_share = (value / math.pi + scale * bend) / (2 * start)  # both ends of t move with ρ²
    return value * scale, 2 * low * by_low * scale, by_share


def _groups(size: int, axes: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Nodes and weights along a first axis: of small arrays all at once, of others one by one."""
    count = len(_NODES) if size <= SMALL else 1
    shape = (count, *(1,) * axes)
    for first in range(0, len(_NODES), count):
        own = slice(first, first + count)
        yield _NODES[own].reshape(shape), _WEIGHTS[own].reshape(shape)


def pair_covariance(
    low: np.ndarray, high: np.ndarray, share: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """cov(Pr(z > l | y), Pr(z > u | y)), and its derivatives by l, u and ρ².

    The integral of the bivariate normal density at (l, u) over the correlation, with the t of
    (N3c): its exponent is −(l + u)²/(4 (2 − t²)) − (l − u)²/(4 t²).
    """
    middle, apart = 0.25 * (low + high) ** 2, 0.25 * (low - high) ** 2
    start = np.sqrt(np.maximum(1 - share, SMALLEST))
    width = share / (1 + start)
    value, by_sum, by_apart = (np.zeros_like(middle) for _ in range(3))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        t2 = (start + node * width) ** 2
        left = 1 / (2 - t2)
        term = weight * np.sqrt(left) * np.exp(-middle * left - apart / t2)
        value += term
        by_sum -= term * left
        by_apart -= term / t2
    scale = width / math.pi
    first, second = 0.5 * (low + high) * by_sum * scale, 0.5 * (low - high) * by_apart * scale
    power = -middle / (1 + share) - apart / start**2
    by_share = np.exp(power) / (2 * math.pi * np.sqrt(1 + share) * start)
    return value * scale, first + second, first - second, by_share


def of_tail(
    objectives: tuple[int, ...],
    boxes: Cells,
    edges: tuple[np.ndarray, ...],
    root: Moments,
    share: Moments,
    *,
    slopes: bool,
) -> Factor:
    """One objective above f*."""
    (o,), away = objectives, edges[0][:, :, 0]
    p, rest = special.ndtr(-away), special.ndtr(away)
    v, by_l, by_share = tail_variance(away, share[0], slopes=slopes)
    if not slopes:
        return Factor(p, rest, v, (o,))
    e = _density(away)
    by_mean = (e / root[0], -by_l / root[0])
    half = 0.5 / root[0] ** 2
    by_variance = (e * away * half, -by_l * away * half)
    return Factor(p, rest, v, (o,), (by_mean,), (by_variance,), (by_share,))


def of_interval(
    o: int,
    low: Each,
    high: Each,
    root: Each,
    share: Each,
    *,
    slopes: bool,
) -> Factor:
    """One constraint between its limits."""
    sides = [(end, sign) for end, sign in ((low, 1.0), (high, -1.0)) if np.any(np.abs(end) < FAR)]
    p, rest = _between(low, high)
    v, by_low, by_high, by_share = (np.zeros_like(p) for _ in range(4))
    for end, sign in sides:
        own, by_end, by_r = tail_variance(end, share, slopes=slopes)
        v += own
        by_share += by_r
        if sign > 0:
            by_low += by_end
        else:
            by_high += by_end
    if len(sides) == 2:
        cross, by_l, by_u, by_r = pair_covariance(low, high, share)
        v -= 2 * cross
        by_low -= 2 * by_l
        by_high -= 2 * by_u
        by_share -= 2 * by_r
    limit = p * rest
    free = (v < limit) & (v > 0)
    v = np.clip(v, 0.0, limit)
    if not slopes:
        return Factor(p, rest, v, (o,))
    at_low, at_high = _density(low), _density(high)
    half = 0.5 / root**2
    by_mean = ((at_low - at_high) / root, -(by_low + by_high) / root * free)
    by_variance = (
        (low * at_low - high * at_high) * half,
        -(by_low * low + by_high * high) * half * free,
    )
    return Factor(p, rest, v, (o,), (by_mean,), (by_variance,), (by_share * free,))


def _between(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Φ(u) − Φ(l) and 1 − that, in whichever tail they are."""
    far = special.ndtr(-np.abs(low)), special.ndtr(-np.abs(high))
    inside = np.where((low < 0) & (high > 0), 1 - far[0] - far[1], np.abs(far[0] - far[1]))
    return inside, special.ndtr(low) + special.ndtr(-high)


class _Sides(NamedTuple):
    """What one objective contributes to every box, and its derivatives by a shift and a stretch."""

    p: np.ndarray
    e: np.ndarray  # ∂p by a shift of the mean
    h: np.ndarray | None = None  # ∂p by the logarithm of √s, and ∂e by a shift
    j: np.ndarray | None = None  # ∂e by the logarithm of √s


def _tails(
    edges: Float[np.ndarray, "M P E q"], lower: np.ndarray, *, slopes: bool
) -> tuple[_Sides, np.ndarray]:
    """Of the first objective, above which all is in the box; and Φ at the lower edges."""
    M, P, E, q = edges.shape
    if np.array_equal(lower[:-1], np.arange(2, E + 2)):
        at = np.empty((M, P, E + 1, q))  # the boxes of two objectives: edge by edge, then −∞
        at[:, :, :-1], at[:, :, -1] = edges, -FAR
    else:
        at = _with_ends(edges)[:, :, lower]
    e = _density(at)
    h = e * at if slopes else None
    sides = _Sides(special.ndtr(-at), e, h, None if h is None else h * at)
    return sides, special.ndtr(at)


def _with_ends(edges: Float[np.ndarray, "M P E q"]) -> Float[np.ndarray, "M P _ q"]:
    """Edges by their numbers: −∞ and +∞ come first."""
    M, P, E, q = edges.shape
    at = np.empty((M, P, E + 2, q))
    at[:, :, BELOW], at[:, :, ABOVE], at[:, :, 2:] = -FAR, FAR, edges
    return at


def _sides(
    edges: Float[np.ndarray, "M P E q"], lower: np.ndarray, upper: np.ndarray, *, slopes: bool
) -> _Sides:
    """Of another objective, box by box: differences between what is at its two edges."""
    M, P, E, q = edges.shape
    if np.array_equal(lower[1:], upper[:-1]) and np.array_equal(lower[1:], np.arange(2, E + 2)):
        at = np.empty((M, P, E + 2, q))  # each edge ends a box and begins the next: no copies
        at[:, :, 0], at[:, :, 1:-1], at[:, :, -1] = -FAR, edges, FAR

        def apart(of: np.ndarray) -> np.ndarray:
            return np.asarray(of[:, :, :-1] - of[:, :, 1:])
    else:
        at = _with_ends(edges)

        def apart(of: np.ndarray) -> np.ndarray:
            return np.asarray(of[:, :, lower] - of[:, :, upper])

    # 1 − Φ is [x < 0] and the tail with a sign: differences lose no digits on either side.
    p = apart(np.copysign(special.ndtr(-np.abs(at)), at))
    p += apart((at < 0).astype(float))
    density = _density(at)
    e = apart(density)
    if not slopes:
        return _Sides(p, e)
    density *= at
    h = apart(density)
    density *= at
    return _Sides(p, e, h, apart(density))


def of_front(
    objectives: tuple[int, ...],
    boxes: Cells,
    edges: tuple[np.ndarray, ...],
    root: Moments,
    share: Moments,
    *,
    slopes: bool,
) -> Factor:
    """Several objectives, not dominated by a front."""
    K = len(objectives)
    first, below = _tails(edges[0], boxes.lower[0], slopes=slopes)
    others = zip(edges[1:], boxes.lower[1:], boxes.upper[1:], strict=True)
    sides = [first, *(_sides(*part, slopes=slopes) for part in others)]

    def summed(**columns: str) -> Each:
        """Σ over boxes of the product over objectives; of objective k, `_k` names the column."""
        product = getattr(sides[0], columns.get("_0", "p"))
        for k in range(1, K):
            product = product * getattr(sides[k], columns.get(f"_{k}", "p"))
        return np.asarray(np.add.reduce(product, 2))

    p = np.clip(summed(), 0.0, 1.0)
    for side in sides[1:]:
        below *= side.p
    rest = np.clip(below.sum(2), 0.0, 1.0)
    p, rest = np.where(rest < 0.5, 1 - rest, p), np.where(p < 0.5, 1 - p, rest)
    shift = [summed(**{f"_{k}": "e"}) for k in range(K)]
    norm = np.maximum(sum(s * s for s in shift), TINY)
    shared = sum(s * s * r for s, r in zip(shift, share, strict=True)) / norm
    smaller = np.minimum(p, rest)
    level = np.where(p < 0.5, -1.0, 1.0) * special.ndtri(np.maximum(smaller, SMALLEST))
    half_space, by_l, by_r = tail_variance(level, shared, slopes=slopes)
    # Of the half-space's variance so much as the first moments are of its own; the rest is of
    # second order in ρ², and all of it is there at ρ² = 1.
    squared = _density(level) ** 2
    sharp = squared > TINY
    part = np.where(sharp, np.minimum(norm / np.maximum(squared, TINY), 1.0), 1.0)
    most = p * rest
    v = part * half_space + (1 - part) * most * shared**2
    if not slopes:
        return Factor(p, rest, v, objectives)
    by_part = np.where(sharp & (part < 1), half_space - most * shared**2, 0.0)
    by_share = part * by_r + 2 * (1 - part) * most * shared
    by_level = part * by_l + 2 * by_part * part * level
    by_p = (1 - part) * shared**2 * (rest - p)
    by_p -= np.where(
        sharp & (smaller > SMALLEST), by_level / np.sqrt(np.maximum(squared, TINY)), 0.0
    )
    turned = [
        2 * s * (by_share * (r - shared) / norm + by_part / np.maximum(squared, TINY))
        for s, r in zip(shift, share, strict=True)
    ]
    by_mean, by_variance, by_own = [], [], []
    for k in range(K):
        stretch, half = summed(**{f"_{k}": "h"}), 0.5 / root[k] ** 2
        by_shift = by_p * shift[k] + turned[k] * stretch
        by_stretch = by_p * stretch + turned[k] * summed(**{f"_{k}": "j"})
        for i in range(K):
            if i != k:
                by_shift += turned[i] * summed(**{f"_{i}": "e", f"_{k}": "e"})
                by_stretch += turned[i] * summed(**{f"_{i}": "e", f"_{k}": "h"})
        by_own.append(by_share * shift[k] ** 2 / norm)
        by_mean.append((shift[k] / root[k], by_shift / root[k]))
        by_variance.append((stretch * half, by_stretch * half))
    parts = tuple(by_mean), tuple(by_variance), tuple(by_own)
    return Factor(p, rest, v, objectives, *parts)
