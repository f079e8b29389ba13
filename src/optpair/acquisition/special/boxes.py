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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from optpair.acquisition.special.cells import Cells
from optpair.acquisition.special.factors import (
    FAR,
    TINY,
    Each,
    Factor,
    Moments,
    of_front,
    of_interval,
    of_tail,
)
from optpair.runtime.shapes import Bool

MOST = 1 - 1e-12  # of τ


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
        root = tuple(np.sqrt(s) for s in given)
        edges = []
        for o, edge in zip(self.objectives, self.cells.edges, strict=True):
            away = (edge[..., None] - means[o][:, :, None]) / root[o][:, :, None]
            edges.append(np.clip(away, -FAR, FAR))
        made = of_tail if len(edges) == 1 and edges[0].shape[2] == 1 else of_front
        own = [tuple(part[o] for o in self.objectives) for part in (root, share)]
        yield made(self.objectives, self.cells, tuple(edges), *own, slopes=slopes)
        for o, low, high in self.limits:
            below, above = (np.clip((end - means[o]) / root[o], -FAR, FAR) for end in (low, high))
            yield of_interval(o, below, above, root[o], share[o], slopes=slopes)

    def gain(self, means: Moments, given: Moments, noise: Moments, *, noisy: bool = True) -> Each:
        """(N3b), or (N2) where noise does not count."""
        total = _Total.of(list(self.factors(means, given, noise, slopes=False)))
        return total.gain() if noisy else total.sure()

    def gain_and_slopes(
        self, means: Moments, given: Moments, noise: Moments, *, noisy: bool = True
    ) -> tuple[Each, list[Each], list[Each], list[Each]]:
        """The gain, and its derivatives by mean, variance and noise of each outcome."""
        factors = list(self.factors(means, given, noise, slopes=True))
        total = _Total.of(factors)
        if noisy:
            value, (by_rest, by_tau) = total.gain(), total.by_gain()
        else:
            value, by_rest, by_tau = total.sure(), -1 / total.rest, None
        by_means = [np.zeros_like(value) for _ in means]
        by_given = [np.zeros_like(value) for _ in means]
        by_noise = [np.zeros_like(value) for _ in means]
        for factor in factors:
            by_p, by_v = total.pull(factor, by_rest, by_tau)
            for o, (p_m, v_m), (p_s, v_s), v_r in zip(
                factor.outcomes, factor.by_mean, factor.by_variance, factor.by_share, strict=True
            ):
                by_share = by_v * v_r / (given[o] + noise[o]) ** 2  # ρ² = s/(s + σ²)
                by_means[o] += by_p * p_m + by_v * v_m
                by_given[o] += by_p * p_s + by_v * v_s + by_share * noise[o]
                by_noise[o] -= by_share * given[o]
        return value, by_means, by_given, by_noise

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
    steps = (x + np.arange(8.0).reshape(-1, *(1,) * x.ndim)) ** -2
    total, x = np.add.reduce(steps), x + 8
    u = 1 / (x * x)
    series = 1 / 6 - u * (1 / 30 - u * (1 / 42 - u * (1 / 30 - u * (5 / 66))))
    return np.asarray(total + (1 + 0.5 / x + series * u) / x)
