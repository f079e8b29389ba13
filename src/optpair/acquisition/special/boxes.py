"""The forbidden region of a vector of outcomes as disjoint boxes, and the gain of ruling it out.

Given an optimum, z = (f_1(x), …, f_O(x)) cannot lie in A: above f* and within all limits or, with
several objectives, within the limits and not dominated by the Pareto set. A is a product: boxes of
the objectives times an interval for each constraint. With z_o ~ N(m_o, s_o),

    (N1)  Z = Pr(A) = Σ_k Π_o [Φ(u_ko) − Φ(l_ko)],   bounds in units of √s_o around m_o
    (N2)  without noise the gain is −log(1 − Z): zero where A is impossible, never negative
    (N3)  with noise, y_o = z_o + ε_o:  gain = E_y[w log w],   w(y) = (1 − Pr(A | y)) / (1 − Z)

(N3) depends on y through P = Pr(A | y) alone. That has the mean Z and, with z and z′ two draws
given one y, whose outcomes have the correlation ρ_o² = s_o/(s_o + σ_o²), the variance
Pr(z, z′ ∈ A) − Z². Taken for a beta distribution with these two moments,

    (N3b)  gain = ψ(ν (1 − Z) + 1) − ψ(ν + 1) − log(1 − Z),   ν = 1/τ − 1,
          τ = var P / (Z (1 − Z))

It is (N2) as σ² → 0 and (N3) to first order in ρ², needs no draws, is smooth and never negative.
Of a product of independent factors, var P = Z² (Π_j (1 + v_j/p_j²) − 1) with p_j and v_j mean and
variance of each; of a normal's tail,

    (N3c)  v(l, ρ²) = ∫_√(1−ρ²)^1 exp(−l²/(2 − t²)) / (π √(2 − t²)) dt

and of a front about that of the half-space with the same Z and the same mean of z.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from optpair.shapes import Bool, Float, Int

FAR = 38.0  # standard deviations: φ is 0 beyond, in float64
TINY = 1e-140  # its square does not underflow
SMALLEST = 1e-290  # of a front's chance: below, its half-space is not known
MOST = 1 - 1e-12  # of τ
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS  # on [0, 1]
_SQRT_2PI = math.sqrt(2 * math.pi)
BELOW, ABOVE = 0, 1  # the edges −∞ and +∞, which every outcome has

Each = Float[np.ndarray, "M P q"]
Moments = tuple[Each, ...]
"""One array per outcome."""


class Cells(NamedTuple):
    """Disjoint boxes: everything that a front does not dominate."""

    edges: tuple[Float[np.ndarray, "M P _"], ...]
    """Of each objective; their numbers begin at 2, as 0 is −∞ and 1 is +∞."""
    lower: tuple[Int[np.ndarray, " B"], ...]
    """The number of each box's lower edge, per objective; above the first objective's is all."""
    upper: tuple[Int[np.ndarray, " B"], ...]

    def bounds(self) -> Float[np.ndarray, "2 M P B K"]:
        """The lower and upper corners of all boxes."""
        found = []
        for index in (self.lower, self.upper):
            sides = []
            for edges, own in zip(self.edges, index, strict=True):
                ends = np.full((*edges.shape[:2], 2), [-np.inf, np.inf])
                sides.append(np.concatenate([ends, edges], -1)[..., own])
            found.append(np.stack(sides, -1))
        return np.stack(found)


def cells(f: Float[np.ndarray, "M P R K"], mask: Bool[np.ndarray, "M P R"]) -> Cells:
    """The boxes that make up what no point of a front dominates.

    Slabs between consecutive values of the last objective; in each, the points that reach that far
    leave the same question with an objective less. R + 1 boxes for two objectives, about R²/2 for
    three. Where a front has no points there is one box, everything.
    """
    most = max(int(mask.sum(-1).max(initial=0)), 1)
    order = np.argsort(~mask, -1, kind="stable")[..., :most]
    there = np.take_along_axis(mask, order, -1)
    points = np.where(there[..., None], np.take_along_axis(f, order[..., None], 2), -np.inf)
    return _cells(points)


def _cells(f: Float[np.ndarray, "M P R K"]) -> Cells:
    M, P, R, K = f.shape
    if K == 1:
        if R == 0:
            return Cells((np.zeros((M, P, 0)),), (np.array([BELOW]),), (np.array([ABOVE]),))
        return Cells((f.max(2),), (np.array([2]),), (np.array([ABOVE]),))
    order = np.argsort(f[..., -1], -1)
    points = np.take_along_axis(f, order[..., None], 2)
    parts = [_cells(points[:, :, i:, :-1]) for i in range(R + 1)]
    edges, lower, upper = [], [], []
    for k in range(K - 1):
        begin = 0
        low: list[np.ndarray] = []
        high: list[np.ndarray] = []
        for part in parts:
            for index, shifted in ((part.lower[k], low), (part.upper[k], high)):
                shifted.append(np.where(index > ABOVE, index + begin, index))
            begin += part.edges[k].shape[-1]
        edges.append(np.concatenate([part.edges[k] for part in parts], -1))
        lower.append(np.concatenate(low))
        upper.append(np.concatenate(high))
    slab = np.repeat(np.arange(R + 1), [len(part.lower[0]) for part in parts])
    edges.append(points[..., -1])
    lower.append(np.where(slab > 0, slab + 1, BELOW))
    upper.append(np.where(slab < R, slab + 2, ABOVE))
    return Cells(tuple(edges), tuple(lower), tuple(upper))


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


@dataclass(frozen=True)
class Forbidden:
    """A, for each optimum of each set."""

    objectives: tuple[int, ...]
    cells: Cells
    limits: tuple[tuple[int, float, float], ...]
    """The columns of the constraints, and between what they are met."""

    def first(self, count: int) -> Forbidden:
        """Of the first `count` optima of each set."""
        edges = tuple(edge[:, :count] for edge in self.cells.edges)
        return replace(self, cells=self.cells._replace(edges=edges))

    def factors(
        self, means: Moments, given: Moments, noise: Moments, *, slopes: bool
    ) -> Iterator[Factor]:
        """The factors of P: that of the objectives, then one of each constraint."""
        share = tuple(s / (s + n) for s, n in zip(given, noise, strict=True))
        by_given = tuple(n / (s + n) ** 2 for s, n in zip(given, noise, strict=True))
        root = tuple(np.sqrt(s) for s in given)
        edges = []
        for o, edge in zip(self.objectives, self.cells.edges, strict=True):
            away = (edge[..., None] - means[o][:, :, None]) / root[o][:, :, None]
            edges.append(np.clip(away, -FAR, FAR))
        made = _of_tail if len(edges) == 1 and edges[0].shape[2] == 1 else _of_front
        own = [tuple(part[o] for o in self.objectives) for part in (root, share, by_given)]
        yield made(self.objectives, self.cells, tuple(edges), *own, slopes=slopes)
        for o, low, high in self.limits:
            below, above = (np.clip((end - means[o]) / root[o], -FAR, FAR) for end in (low, high))
            yield _of_interval(o, below, above, root[o], share[o], by_given[o], slopes=slopes)

    def gain(self, means: Moments, given: Moments, noise: Moments, *, noisy: bool = True) -> Each:
        """(N3b), or (N2) where noise does not count."""
        total = _Total.of(list(self.factors(means, given, noise, slopes=False)))
        return total.gain() if noisy else total.sure()

    def gain_and_slopes(
        self, means: Moments, given: Moments, noise: Moments, *, noisy: bool = True
    ) -> tuple[Each, list[Each], list[Each]]:
        """The gain, and its derivatives by the mean and the variance of each outcome."""
        factors = list(self.factors(means, given, noise, slopes=True))
        total = _Total.of(factors)
        if noisy:
            value, (by_rest, by_tau) = total.gain(), total.by_gain()
        else:
            value, by_rest, by_tau = total.sure(), -1 / total.rest, None
        by_means = [np.zeros_like(value) for _ in means]
        by_given = [np.zeros_like(value) for _ in means]
        for factor in factors:
            by_p, by_v = total.pull(factor, by_rest, by_tau)
            for o, (p_m, v_m), (p_s, v_s) in zip(
                factor.outcomes, factor.by_mean, factor.by_variance, strict=True
            ):
                by_means[o] += by_p * p_m + by_v * v_m
                by_given[o] += by_p * p_s + by_v * v_s
        return value, by_means, by_given

    def log_chance(self, means: Moments, given: Moments) -> Each:
        """log Z."""
        nothing = tuple(np.ones_like(s) for s in given)
        return _Total.of(list(self.factors(means, given, nothing, slopes=False))).log


class _Total(NamedTuple):
    """Z and var P of a product of factors."""

    log: Each  # log Z
    rest: Each  # 1 − Z
    excess: Each  # Π (1 + v/p²) − 1
    tau: Each
    inside: Bool[np.ndarray, "M P q"]  # where τ is not cut off

    @classmethod
    def of(cls, factors: list[Factor]) -> _Total:
        log, spread = np.zeros_like(factors[0].mean), np.zeros_like(factors[0].mean)
        with np.errstate(all="ignore"):
            for factor in factors:
                p = np.maximum(factor.mean, TINY)
                log += np.where(factor.rest < 0.5, np.log1p(-factor.rest), np.log(p))
                spread += np.log1p(factor.variance / p**2)
            rest = np.maximum(-np.expm1(log), TINY)
            excess = np.expm1(np.minimum(spread, 600.0))
            tau = np.exp(log) * excess / rest
        return cls(log, rest, excess, np.clip(tau, 1 - MOST, MOST), (tau > 1 - MOST) & (tau < MOST))

    def sure(self) -> Each:
        """(N2)."""
        return np.asarray(-np.log(self.rest))

    def gain(self) -> Each:
        """(N3b)."""
        nu = 1 / self.tau - 1
        value = special.psi(nu * self.rest + 1) - special.psi(nu + 1) - np.log(self.rest)
        return np.maximum(value, 0.0)

    def by_gain(self) -> tuple[Each, Each]:
        """Derivatives of (N3b) by 1 − Z and by τ."""
        nu = 1 / self.tau - 1
        near, far = trigamma(nu * self.rest + 1), trigamma(nu + 1)
        by_nu = self.rest * near - far
        return nu * near - 1 / self.rest, -by_nu / self.tau**2 * self.inside

    def pull(self, factor: Factor, by_rest: Each, by_tau: Each | None) -> tuple[Each, Each]:
        """Derivatives by p and v of one factor."""
        p = np.maximum(factor.mean, TINY)
        Z = np.exp(self.log)
        by_log = -by_rest * Z
        if by_tau is None:
            return by_log / p, np.zeros_like(p)
        by_log = by_log + by_tau * self.tau / self.rest
        by_spread = by_tau * Z * (self.excess + 1) / self.rest
        by_v = by_spread / (p * p + factor.variance)
        return by_log / p - 2 * by_v * factor.variance / p, by_v


def trigamma(x: np.ndarray) -> np.ndarray:
    """ψ′(x) for x ≥ 1, to 1e-12: eight steps up, then the asymptotic series."""
    total = np.zeros_like(x)
    for _ in range(8):
        total += 1 / (x * x)
        x = x + 1
    u = 1 / (x * x)
    series = 1 / 6 - u * (1 / 30 - u * (1 / 42 - u * (1 / 30 - u * (5 / 66))))
    return np.asarray(total + (1 + 0.5 / x + series * u) / x)


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
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        t = node * width
        t += start
        left = 1 / (2 - t * t)
        far = square * left
        term = np.exp(-far)
        term *= np.sqrt(left)
        term *= weight
        value += term
        if slopes:
            term *= left
            by_low -= term
            term *= t
            bend += (node - 1) * term * (1 - 2 * far)
    scale = width / math.pi
    if not slopes:
        return value * scale, by_low, bend
    by_share = (value / math.pi + scale * bend) / (2 * start)  # both ends of t move with ρ²
    return value * scale, 2 * low * by_low * scale, by_share


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


def _of_tail(
    objectives: tuple[int, ...],
    boxes: Cells,
    edges: tuple[np.ndarray, ...],
    root: Moments,
    share: Moments,
    by_given: Moments,
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
    by_variance = (e * away * half, -by_l * away * half + by_share * by_given[0])
    return Factor(p, rest, v, (o,), (by_mean,), (by_variance,))


def _of_interval(
    o: int,
    low: Each,
    high: Each,
    root: Each,
    share: Each,
    by_given: Each,
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
        (by_share * by_given - (by_low * low + by_high * high) * half) * free,
    )
    return Factor(p, rest, v, (o,), (by_mean,), (by_variance,))


def _between(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Φ(u) − Φ(l) and 1 − that, in whichever tail they are."""
    far = special.ndtr(-np.abs(low)), special.ndtr(-np.abs(high))
    inside = np.where((low < 0) & (high > 0), 1 - far[0] - far[1], np.abs(far[0] - far[1]))
    return inside, special.ndtr(low) + special.ndtr(-high)


class _Sides(NamedTuple):
    """What one objective contributes to every box, and its derivatives by a shift and a stretch."""

    p: np.ndarray
    e: np.ndarray  # ∂p by a shift of the mean
    h: np.ndarray  # ∂p by the logarithm of √s, and ∂e by a shift
    j: np.ndarray | None  # ∂e by the logarithm of √s


def _sides(
    edges: Float[np.ndarray, "M P E q"], lower: np.ndarray, upper: np.ndarray, *, slopes: bool
) -> _Sides:
    """Of one objective, box by box."""
    ends = np.full((*edges.shape[:2], 2, edges.shape[3]), np.array([-FAR, FAR])[:, None])
    all_edges = np.concatenate([ends, edges], 2)
    tail, density = special.ndtr(-np.abs(all_edges)), _density(all_edges)
    low, high = all_edges[:, :, lower], all_edges[:, :, upper]
    apart = np.abs(tail[:, :, lower] - tail[:, :, upper])
    across = (low < 0) & (high > 0)
    p = np.where(across, 1 - tail[:, :, lower] - tail[:, :, upper], apart)
    moved = density * all_edges
    e = density[:, :, lower] - density[:, :, upper]
    h = moved[:, :, lower] - moved[:, :, upper]
    if not slopes:
        return _Sides(p, e, h, None)
    moved = moved * all_edges
    return _Sides(p, e, h, moved[:, :, lower] - moved[:, :, upper])


def _of_front(
    objectives: tuple[int, ...],
    boxes: Cells,
    edges: tuple[np.ndarray, ...],
    root: Moments,
    share: Moments,
    by_given: Moments,
    *,
    slopes: bool,
) -> Factor:
    """Several objectives, not dominated by a front."""
    K = len(objectives)
    parts = zip(edges, boxes.lower, boxes.upper, strict=True)
    sides = [_sides(*part, slopes=slopes) for part in parts]

    def summed(**columns: str) -> Each:
        """Σ over boxes of the product over objectives; of objective k, `_k` names the column."""
        product = getattr(sides[0], columns.get("_0", "p"))
        for k in range(1, K):
            product = product * getattr(sides[k], columns.get(f"_{k}", "p"))
        return np.asarray(np.sum(product, 2))

    p = np.clip(summed(), 0.0, 1.0)
    reach = edges[0]
    below = np.zeros_like(sides[0].p)
    bounded = boxes.lower[0] > ABOVE
    below[:, :, bounded] = special.ndtr(reach[:, :, boxes.lower[0][bounded] - 2])
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
    by_mean, by_variance = [], []
    for k in range(K):
        stretch, half = summed(**{f"_{k}": "h"}), 0.5 / root[k] ** 2
        by_shift = by_p * shift[k] + turned[k] * stretch
        by_stretch = by_p * stretch + turned[k] * summed(**{f"_{k}": "j"})
        for i in range(K):
            if i != k:
                by_shift += turned[i] * summed(**{f"_{i}": "e", f"_{k}": "e"})
                by_stretch += turned[i] * summed(**{f"_{i}": "e", f"_{k}": "h"})
        by_own = by_share * shift[k] ** 2 / norm * by_given[k]
        by_mean.append((shift[k] / root[k], by_shift / root[k]))
        by_variance.append((stretch * half, by_stretch * half + by_own))
    return Factor(p, rest, v, objectives, tuple(by_mean), tuple(by_variance))
