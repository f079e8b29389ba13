"""Radial ARD kernels: covariances that depend on a scaled distance alone.

    r² = Σ_k (x_k − x'_k)² / ℓ_k²,    k(x, x') = a h(r²)

The functions h are in `stationary.py`.

Derivatives are taken in units of the length scale, so that all of them have the units of f:

    g_k = ℓ_k ∂f/∂x_k,    h_k = ℓ_k² ∂²f/∂x_k²

With δ_k = (x_k − x*_k)/ℓ_k, the covariances of f(x) with those at x* are

    (D1)  cov(f(x), f(x*)) = a h(r²)
    (D2)  cov(f(x), g_k)   = −2 a h′(r²) δ_k
    (D3)  cov(f(x), h_k)   = a (4 h″(r²) δ_k² + 2 h′(r²))

and at one and the same point, where odd derivatives of the kernel are zero,

    (D4)  var f = a,   cov(f, h_k) = 2 a h′(0),   cov(g_k, g_l) = −2 a h′(0) [k = l],
          cov(h_k, h_l) = 4 a h″(0) (1 + 2 [k = l])

Everything is written in r². Where h‴ is infinite at 0 it may be taken as 0: it enters only times
δ³, which is zero faster.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import expit, logit

from optpair.gp.hyperparameters import Block, Hyperparameters
from optpair.gp.kernels.base import (
    Along,
    Columns,
    Frequencies,
    Kernel,
    Others,
    Points,
    even_amplitudes,
)
from optpair.runtime.shapes import Float, Int, Num

Reals = Num[np.ndarray, "..."]
Own = Mapping[str, Reals]


class Radial(Kernel):
    """A kernel h(r²): subclasses say what h and its derivatives are.

    `own` are the kernel's hyperparameters by name, shaped to broadcast against r².
    """

    @abstractmethod
    def terms(self, r2: Reals, own: Own, order: int) -> tuple[Reals, ...]:
        """h, h′, … up to the derivative `order` in r², at most 3; h‴ is taken as 0 at 0."""

    def begin(self, r2: Reals, own: Own) -> tuple[Reals, Callable[[], Reals]]:
        """h, and what gives h′ if it is asked for; r2 and h may be overwritten."""
        (h,) = self.terms(r2, own, 0)
        return h, lambda: self.terms(r2, own, 1)[1]

    def by_own(self, r2: Reals, own: Own) -> dict[str, Reals]:
        """The derivative of h by each of the kernel's own hyperparameters."""
        return {}

    @abstractmethod
    def quantile(self, level: Reals, dimensions: int) -> Reals:
        """Lengths of frequencies, in units of 1/ℓ: the inverse of their distribution function."""

    def lengths(self, draws: Frequencies, own: Own) -> Float[np.ndarray, "M F"]:
        """Lengths of frequencies drawn from the spectral density."""
        return _lengths(self, draws)

    def blocks(self) -> tuple[Block, ...]:
        """No hyperparameters of its own."""
        return ()

    def bind(self, hypers: Hyperparameters, columns: Columns) -> RadialCovariance:
        """The covariance under some hyperparameter sets."""
        names = [block.name for block in self.blocks()]
        missing = [name for name in names if name not in hypers.own]
        if missing:
            raise ValueError(f"the kernel {self!r} needs hyperparameters called {missing}")
        scale = hypers.lengthscale[:, np.asarray(columns, dtype=int)]
        own = {name: hypers.own[name] for name in names}
        return RadialCovariance(self, scale, hypers.outputscale, own)

    def pairwise(self, X: Float[np.ndarray, "n D"], columns: Columns) -> RadialPairs:
        """The covariance at some data."""
        return RadialPairs.of(self, X, columns)


_LOG_ODDS = np.linspace(-20.0, 20.0, 2001)


@lru_cache(maxsize=64)
def _log_lengths(kernel: Radial, dimensions: int) -> Float[np.ndarray, " G"]:
    """log quantiles at levels of these log odds: a table, as exact ones take a microsecond each."""
    return np.log(kernel.quantile(expit(_LOG_ODDS), dimensions))


def _lengths(kernel: Radial, draws: Frequencies) -> Float[np.ndarray, "M F"]:
    table = _log_lengths(kernel, draws.direction.shape[-1])
    return np.exp(np.interp(logit(draws.level), _LOG_ODDS, table))


@dataclass(frozen=True)
class RadialCovariance:
    """A radial kernel under M sets."""

    kernel: Radial
    scale: Num[np.ndarray, "M D"]
    outputscale: Num[np.ndarray, " M"]
    own: Mapping[str, Num[np.ndarray, " M"]]

    def __repr__(self) -> str:
        return f"RadialCovariance({self.kernel!r}, {len(self.scale)} sets)"

    @cached_property
    def is_unit(self) -> bool:
        """Whether all output scales are 1."""
        return bool(np.all(self.outputscale == 1))

    def shaped(self, axes: int) -> Own:
        """The kernel's own hyperparameters, to broadcast against arrays of so many axes."""
        return {name: v.reshape(v.shape + (1,) * (axes - 1)) for name, v in self.own.items()}

    def scaled(self, X: Others) -> Num[np.ndarray, "M n D"]:
        """Points in length scales from the cube's centre: r² then loses little to round-off."""
        return (X - 0.5) / self.scale[:, None, :]

    def diagonal(self, X: Points) -> Num[np.ndarray, "M q"]:
        """var f(x) = a."""
        return np.broadcast_to(self.outputscale[:, None], (len(self.outputscale), X.shape[-2]))

    def target(self, Y: Others) -> RadialTarget:
        """Points that covariances are taken with, again and again."""
        W = self.scaled(Y)
        square = np.sum(W * W, -1, keepdims=True)
        return RadialTarget(self, np.concatenate([-2 * W, np.ones_like(square), square], -1))

    def between(self, X: Points, Y: Others) -> RadialBetween:
        """cov(f(x), f(y)) = a h(r²)."""
        return self.target(Y).between(X)

    def jets(
        self, star: Float[np.ndarray, "M P D"], X: Points, order: int, along: Along = None
    ) -> RadialJets:
        """cov of f(x) with f, g and h at each x*: (D1) to (D3)."""
        return RadialJets.of(self, star, X, order, along)

    def jet_variance(self, order: int, along: Along = None) -> Float[np.ndarray, "M J J"]:
        """Prior covariance of (f, g, h) at one point (D4)."""
        M, D = len(self.scale), self.scale.shape[1] if along is None else len(along)
        zero = np.zeros((M, 1, 1))
        h, first, second = self.kernel.terms(zero, self.shaped(3), 2)
        V = np.zeros((M, 1 + order * D, 1 + order * D))
        slopes, bends = slice(1, 1 + D), slice(1 + D, 1 + 2 * D)
        V[:, :1, :1] = h
        if order >= 1:
            V[:, slopes, slopes] = -2 * first * np.eye(D)
        if order >= 2:
            V[:, :1, bends] = 2 * first
            V[:, bends, :1] = 2 * first
            V[:, bends, bends] = 4 * second * (1 + 2 * np.eye(D))
        return self.outputscale[:, None, None] * V

    def frequencies(self, draws: Frequencies) -> Float[np.ndarray, "M F D"]:
        """Draws from the spectral density, in radians per unit of x."""
        lengths = self.kernel.lengths(draws, self.own)
        return draws.direction * lengths[..., None] / self.scale[:, None, :]

    def amplitudes(self, draws: Frequencies) -> Float[np.ndarray, "M F"]:
        """The same for all frequencies, √(a/F)."""
        return even_amplitudes(self.outputscale, draws)

    def single(self) -> RadialCovariance:
        """In single precision, with unit output scale."""
        own = {name: value.astype(np.float32) for name, value in self.own.items()}
        ones = np.ones(len(self.outputscale), np.float32)
        return replace(self, scale=self.scale.astype(np.float32), outputscale=ones, own=own)

    def of_sets(self, chosen: slice | np.ndarray) -> RadialCovariance:
        """Of some of the sets."""
        own = {name: value[chosen] for name, value in self.own.items()}
        return RadialCovariance(self.kernel, self.scale[chosen], self.outputscale[chosen], own)


@dataclass(frozen=True)
class RadialTarget:
    """n points y under M sets: with w = y/ℓ, the rows (−2w, 1, |w|²).

    The product with rows (z, |z|², 1) is r² = |z|² + |w|² − 2 z·w.
    """

    covariance: RadialCovariance
    rows: Num[np.ndarray, "M n columns"]

    def between(self, X: Points) -> RadialBetween:
        """cov(f(x), f(y)) = a h(r²)."""
        c = self.covariance
        Z = c.scaled(X)
        h, bend = c.kernel.begin(self.squared_distances(Z), c.shaped(3))
        if not c.is_unit:
            h *= c.outputscale[:, None, None]
        return RadialBetween(self, Z, h, bend)

    def squared_distances(self, Z: Num[np.ndarray, "M q D"]) -> Num[np.ndarray, "M q n"]:
        """r² from scaled points, never negative."""
        square = np.vecdot(Z, Z)[..., None]
        left = np.concatenate([Z, square, np.ones_like(square)], -1)
        r2 = left @ self.rows.mT
        return np.maximum(r2, 0, out=r2)

    def of_sets(self, chosen: slice | np.ndarray) -> RadialTarget:
        """Of some of the sets."""
        return RadialTarget(self.covariance.of_sets(chosen), self.rows[chosen])


@dataclass(frozen=True)
class RadialBetween:
    """K between scaled points z (q) and a target (n)."""

    target: RadialTarget
    Z: Num[np.ndarray, "M q D"]
    K: Num[np.ndarray, "M q n"]
    bend: Callable[[], Reals]  # h′

    def pull(self, by_K: Num[np.ndarray, "M q n"]) -> Num[np.ndarray, "M q D"]:
        """Σ by_K ∂K/∂x, ∂K/∂x_k = 2 a h′ (z_k − w_k)/ℓ_k."""
        c, D = self.target.covariance, self.Z.shape[-1]
        bend = self.bend()
        bend *= by_K
        sums = bend @ self.target.rows[..., : D + 1]  # (−2 Σ w, Σ 1), each times by_K h′
        moved = 2 * self.Z * sums[..., D:] + sums[..., :D]
        return moved * (c.outputscale[:, None, None] / c.scale[:, None, :])


@dataclass(frozen=True)
class RadialJets:
    """cov of f(x) with (f, g, h) at x*; axes (set, star, coordinate or row, x)."""

    covariance: RadialCovariance
    delta: Float[np.ndarray, "M P D q"]
    terms: tuple[Reals, ...]  # h, h′, …, one more than there are orders
    order: int
    along: slice | Int[np.ndarray, " C"]  # the columns in which derivatives are taken
    rows: Float[np.ndarray, "M P J q"]

    @classmethod
    def of(
        cls,
        covariance: RadialCovariance,
        star: Float[np.ndarray, "M P D"],
        X: Points,
        order: int,
        along: Along = None,
    ) -> RadialJets:
        """X is shared, (q, D), or each star has points of its own, (M, P, q, D)."""
        at = X if X.ndim == 4 else X[..., None, :, :]
        delta = (at - star[:, :, None]) / covariance.scale[:, None, None]
        delta = np.ascontiguousarray(delta.mT)
        r2 = np.sum(delta * delta, -2, keepdims=True)
        terms = covariance.kernel.terms(r2, covariance.shaped(4), order + 1)
        columns = slice(None) if along is None else np.asarray(along, dtype=int)
        own = delta[:, :, columns]
        C = own.shape[2]
        rows = np.empty((*delta.shape[:2], 1 + order * C, delta.shape[3]))
        rows[:, :, :1] = terms[0]  # (D1)
        if order >= 1:
            np.multiply(own, -2 * terms[1], out=rows[:, :, 1 : 1 + C])  # (D2)
        if order >= 2:
            rows[:, :, 1 + C :] = 4 * terms[2] * own * own + 2 * terms[1]  # (D3)
        rows *= covariance.outputscale[:, None, None, None]
        return cls(covariance, delta, terms, order, columns, rows)

    def pull(self, by_rows: Float[np.ndarray, "M P J q"]) -> Float[np.ndarray, "M q D"]:
        """Σ by_rows ∂rows/∂x, over all stars."""
        c, own = self.covariance, self.delta[:, :, self.along]
        terms, C = self.terms, own.shape[2]
        radial = 2 * terms[1] * by_rows[:, :, :1]
        if self.order >= 1:
            slopes = by_rows[:, :, 1 : 1 + C]
            radial -= 4 * terms[2] * np.sum(slopes * own, 2, keepdims=True)
        if self.order >= 2:
            bends = by_rows[:, :, 1 + C :]
            radial += 8 * terms[3] * np.sum(bends * own * own, 2, keepdims=True)
            radial += 4 * terms[2] * np.sum(bends, 2, keepdims=True)
        moved = radial * self.delta
        if self.order >= 1:
            moved[:, :, self.along] -= 2 * terms[1] * slopes
        if self.order >= 2:
            moved[:, :, self.along] += 8 * terms[2] * own * bends
        total = np.sum(moved, 1)  # over stars: (M, D, q)
        return total.mT * (c.outputscale[:, None, None] / c.scale[:, None, :])


@dataclass(frozen=True)
class RadialPairs:
    """Squared distances of all pairs of data, parameter by parameter."""

    kernel: Radial
    squares: Float[np.ndarray, "d p"]

    @classmethod
    def of(cls, kernel: Radial, X: Float[np.ndarray, "n D"], columns: Columns) -> RadialPairs:
        """Pairs are in the order of `numpy.triu_indices(n, 1)`."""
        first, second = np.triu_indices(len(X), 1)
        apart = (X[first] - X[second]) ** 2
        owner = np.asarray(columns)
        parts = [apart[:, owner == k].sum(axis=1) for k in range(max(columns) + 1)]
        return cls(kernel, np.stack(parts))

    def fit(self, values: Mapping[str, Float[np.ndarray, "B _"]]) -> RadialPairsFit:
        """Under the hyperparameters `values`, by name."""
        inverse_square = values["lengthscale"] ** -2
        own = {block.name: values[block.name] for block in self.kernel.blocks()}
        r2 = inverse_square @ self.squares
        h, bend = self.kernel.terms(r2, own, 1)
        a = values["outputscale"]
        return RadialPairsFit(self, values, own, r2, h, bend, a[:, 0], a * h)


@dataclass(frozen=True)
class RadialPairsFit:
    """Covariances of all pairs of data under B sets."""

    of: RadialPairs
    values: Mapping[str, Float[np.ndarray, "B _"]]
    own: Own
    r2: Float[np.ndarray, "B p"]
    h: Float[np.ndarray, "B p"]
    bend: Float[np.ndarray, "B p"]
    diagonal: Float[np.ndarray, " B"]
    pairs: Float[np.ndarray, "B p"]

    def pull(
        self, by_pairs: Float[np.ndarray, "B p"], by_diagonal: Float[np.ndarray, " B"]
    ) -> dict[str, Any]:
        """Derivatives by the value of each hyperparameter, by name."""
        a, lengths = self.values["outputscale"], self.values["lengthscale"]
        by_square = (by_pairs * self.bend) @ self.of.squares.T  # of 1/ℓ², over a
        found = {
            "lengthscale": -2 * a * by_square / lengths**3,
            "outputscale": (np.sum(by_pairs * self.h, axis=1) + by_diagonal)[:, None],
        }
        for name, slope in self.of.kernel.by_own(self.r2, self.own).items():
            found[name] = a * np.sum(by_pairs * slope, axis=1, keepdims=True)
        return found
