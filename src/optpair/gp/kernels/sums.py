"""Sums of radial kernels, each of some of the columns: what all such kernels share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optpair.gp.kernels.base import (
    Along,
    Columns,
    Frequencies,
    Others,
    Points,
    even_amplitudes,
)
from optpair.gp.kernels.radial import RadialBetween, RadialCovariance, RadialJets, RadialTarget
from optpair.runtime.shapes import Bool, Float, Int, Num


@dataclass(frozen=True)
class Term:
    """A radial kernel of some of the columns: one summand."""

    columns: Int[np.ndarray, " C"]
    stretch: Float[np.ndarray, "sets C"]  # the unit of derivatives, ℓ, in the term's length scales
    covariance: RadialCovariance


class Places(NamedTuple):
    """Where f and its derivatives in a term's columns are among all, and in which units."""

    rows: Int[np.ndarray, " J"]
    within: Columns  # of the term's columns, those in which derivatives are taken
    units: Float[np.ndarray, "sets J"]


class SumCovariance(ABC):
    """A sum of radial kernels under M sets, with the output scale a in all."""

    scale: Num[np.ndarray, "M D"]
    outputscale: Num[np.ndarray, " M"]

    @property
    @abstractmethod
    def terms(self) -> tuple[Term, ...]:
        """The summands."""

    @abstractmethod
    def of_sets(self, chosen: slice | np.ndarray) -> SumCovariance:
        """Of some of the sets."""

    def diagonal(self, X: Points) -> Num[np.ndarray, "M q"]:
        """var f(x) = a."""
        return np.broadcast_to(self.outputscale[:, None], (len(self.outputscale), X.shape[-2]))

    def target(self, Y: Others) -> SumTarget:
        """Points that covariances are taken with, again and again."""
        parts = tuple(t.covariance.target(Y[..., t.columns]) for t in self.terms)
        return SumTarget(self, parts)

    def between(self, X: Points, Y: Others) -> SumBetween:
        """cov(f(x), f(y))."""
        return self.target(Y).between(X)

    def jets(
        self, star: Float[np.ndarray, "M P D"], X: Points, order: int, along: Along = None
    ) -> SumJets:
        """cov of f(x) with f, g and h at each x*: the sum over terms of (D1) to (D3)."""
        return SumJets.of(self, star, X, order, along)

    def places(self, order: int, along: Along) -> tuple[Places, ...]:
        """Where each term's derivatives are among those in the columns `along`."""
        key = order, None if along is None else tuple(map(int, along))
        if key not in self._known:
            self._known[key] = tuple(self._places(term, order, along) for term in self.terms)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[Any, tuple[Places, ...]]:
        """Places that were asked for before: a climb asks for the same again and again."""
        return {}

    def _places(self, term: Term, order: int, along: Along) -> Places:
        wanted = range(self.scale.shape[1]) if along is None else along
        own = {int(column): i for i, column in enumerate(term.columns)}
        found = [(i, own[column]) for i, column in enumerate(wanted) if column in own]
        rows = [0, *(1 + o * len(wanted) + i for o in range(order) for i, _ in found)]
        within = tuple(i for _, i in found)
        own_units = term.stretch[:, list(within)]
        powers = [own_units ** (o + 1) for o in range(order)]
        units = np.concatenate([np.ones((len(own_units), 1)), *powers], -1)
        return Places(np.array(rows), within, units)

    def jet_variance(self, order: int, along: Along = None) -> Float[np.ndarray, "M J J"]:
        """Prior covariance of (f, g, h) at one point: the sum over terms of (D4)."""
        M, D = len(self.scale), self.scale.shape[1] if along is None else len(along)
        V = np.zeros((M, 1 + order * D, 1 + order * D))
        for term, place in zip(self.terms, self.places(order, along), strict=True):
            rows, within, units = place
            own = term.covariance.jet_variance(order, within)
            V[:, rows[:, None], rows] += own * (units[:, :, None] * units[:, None])
        return V

    def frequencies(self, draws: Frequencies) -> Float[np.ndarray, "M F D"]:
        """Draws from the spectral density, in radians per unit of x: each is of one term.

        Each term has as many as its share says, with one level in each of that many equal parts.
        """
        owner = self._owners(draws)
        omega = np.zeros(draws.direction.shape)
        for i, term in enumerate(self.terms):
            own = draws.direction[..., term.columns]
            lengths = np.sqrt(np.sum(own * own, -1, keepdims=True))
            unit = own / np.maximum(lengths, np.finfo(float).tiny)
            level = _levels(draws.level, owner == i)
            found = term.covariance.frequencies(Frequencies(unit, level, draws.coin))
            omega[..., term.columns] += np.where((owner == i)[..., None], found, 0.0)
        return omega

    def amplitudes(self, draws: Frequencies) -> Float[np.ndarray, "M F"]:
        """The same for all frequencies, √(a/F)."""
        return even_amplitudes(self.outputscale, draws)

    def _owners(self, draws: Frequencies) -> Int[np.ndarray, "M F"]:
        """The term of each frequency, by systematic sampling.

        The order of coins is a permutation, and the fraction of their sum is uniform and does not
        depend on the order: one shift for all.
        """
        coin = draws.coin
        place = np.argsort(np.argsort(coin, -1), -1)
        even = (place + coin.sum(-1, keepdims=True) % 1) / coin.shape[-1]
        variances = np.stack([term.covariance.outputscale for term in self.terms], -1)
        ends = np.cumsum(variances / self.outputscale[:, None], -1)[:, None, :-1]
        return np.asarray(np.sum(even[..., None] >= ends, -1))


def _levels(
    level: Float[np.ndarray, "M F"], chosen: Bool[np.ndarray, "M F"]
) -> Float[np.ndarray, "M F"]:
    """Levels of some frequencies, one in each of as many equal parts; the others are of no use.

    Each level is in a part of its own, so that its place in it does not depend on its rank.
    """
    inside = level * level.shape[-1] % 1
    rank = np.argsort(np.argsort(np.where(chosen, level, 2.0), -1), -1)
    count = np.maximum(chosen.sum(-1, keepdims=True), 1)
    return np.asarray(np.where(chosen, (rank + inside) / count, 0.5))


@dataclass(frozen=True)
class SumTarget:
    """n points y under M sets, for each term."""

    covariance: SumCovariance
    parts: tuple[RadialTarget, ...]

    def between(self, X: Points) -> SumBetween:
        """cov(f(x), f(y))."""
        terms = self.covariance.terms
        found = zip(terms, self.parts, strict=True)
        parts = tuple(part.between(X[..., term.columns]) for term, part in found)
        return SumBetween(self.covariance, parts, _sum([part.K for part in parts]))

    def of_sets(self, chosen: slice | np.ndarray) -> SumTarget:
        """Of some of the sets."""
        parts = tuple(part.of_sets(chosen) for part in self.parts)
        return SumTarget(self.covariance.of_sets(chosen), parts)


def _sum(parts: list[np.ndarray]) -> np.ndarray:
    """The sum of some arrays, none of which is changed."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


@dataclass(frozen=True)
class SumBetween:
    """K between q points and a target (n)."""

    covariance: SumCovariance
    parts: tuple[RadialBetween, ...]
    K: Num[np.ndarray, "M q n"]

    def pull(self, by_K: Num[np.ndarray, "M q n"]) -> Num[np.ndarray, "M q D"]:
        """Σ by_K ∂K/∂x, term by term."""
        moved = np.zeros((*self.K.shape[:2], self.covariance.scale.shape[1]), self.K.dtype)
        for term, part in zip(self.covariance.terms, self.parts, strict=True):
            moved[..., term.columns] += part.pull(by_K)
        return moved


@dataclass(frozen=True)
class SumJets:
    """cov of f(x) with (f, g, h) at x*; axes (set, star, row, x)."""

    covariance: SumCovariance
    places: tuple[Places, ...]
    parts: tuple[RadialJets, ...]
    rows: Float[np.ndarray, "M P J q"]

    @classmethod
    def of(
        cls,
        covariance: SumCovariance,
        star: Float[np.ndarray, "M P D"],
        X: Points,
        order: int,
        along: Along = None,
    ) -> SumJets:
        """X is shared, (q, D), or each star has points of its own, (M, P, q, D)."""
        terms = covariance.terms
        places = covariance.places(order, along)
        parts = tuple(
            t.covariance.jets(star[..., t.columns], X[..., t.columns], order, p.within)
            for t, p in zip(terms, places, strict=True)
        )
        J = 1 + order * (star.shape[2] if along is None else len(along))
        rows = np.zeros((*star.shape[:2], J, X.shape[-2]))
        for place, part in zip(places, parts, strict=True):
            rows[:, :, place.rows] += part.rows * place.units[:, None, :, None]
        return cls(covariance, places, parts, rows)

    def pull(self, by_rows: Float[np.ndarray, "M P J q"]) -> Float[np.ndarray, "M q D"]:
        """Σ by_rows ∂rows/∂x, over all stars, term by term."""
        M, _, _, q = self.rows.shape
        moved = np.zeros((M, q, self.covariance.scale.shape[1]))
        found = zip(self.covariance.terms, self.places, self.parts, strict=True)
        for term, place, part in found:
            own = by_rows[:, :, place.rows] * place.units[:, None, :, None]
            moved[..., term.columns] += part.pull(own)
        return moved
