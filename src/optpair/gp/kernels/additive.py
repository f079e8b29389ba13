"""The additive kernel: a sum over parameters, for objectives that are about a sum of their effects.

With h of Matérn-5/2 and r_k² the part of r² that parameter k has, r² = Σ_k r_k²,

    (A1)  k(x, x') = a ((1 − w) (1/d) Σ_k h(d r_k²) + w h(r²))

A draw is the sum of d functions of one parameter each, and of one function of all of them. What one
value of a parameter is worth is learnt from every trial that had it, wherever the others were, so
that many parameters need far fewer trials (Kandasamy et al. 2015; Wang and Jegelka 2017). The share
w of the last function, of interactions, is inferred as the others are: w near 0 is the additive
model of the literature, and w = 1 is Matérn-5/2.

A term of one parameter has the length scale ℓ_k/√d. Two random points are √d times as far apart in
all parameters together as in one, so that both kinds of terms vary alike over the cube, and a prior
of ℓ that grows with √d, as the default does, suits them both. The columns of a category are one
parameter, and one term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from optpair.gp.hyperparameters import Block, Hyperparameters, Logit
from optpair.gp.kernels.base import Along, Columns, Frequencies, Kernel, Others, Points
from optpair.gp.kernels.radial import (
    Matern52,
    RadialBetween,
    RadialCovariance,
    RadialJets,
    RadialPairs,
    RadialTarget,
)
from optpair.gp.priors import Normal
from optpair.shapes import Bool, Float, Int, Num

SHARE = "interactions"  # the hyperparameter w


@dataclass(frozen=True)
class Additive(Kernel):
    """Matérn-5/2 of single parameters, summed, and a share of one of all parameters together.

    log(w/(1 − w)) ~ N(0, spread²), as for the rough share of `Mixed`. Without `interactions` w is 0
    and no hyperparameter.
    """

    name: ClassVar[str] = "additive"
    interactions: bool = True
    spread: float = 4.0

    def blocks(self) -> tuple[Block, ...]:
        """The share w of interactions."""
        return (Block(SHARE, 1, Logit(self.spread), Normal()),) if self.interactions else ()

    def bind(self, hypers: Hyperparameters, columns: Columns) -> AdditiveCovariance:
        """The covariance under some hyperparameter sets."""
        if self.interactions and SHARE not in hypers.own:
            raise ValueError(
                f"the kernel {self!r} needs hyperparameters called {[SHARE]}, or "
                "Additive(interactions=False)"
            )
        scale = hypers.lengthscale[:, np.asarray(columns, dtype=int)]
        share = hypers.own[SHARE] if self.interactions else None
        return AdditiveCovariance(scale, hypers.outputscale, share, columns)

    def pairwise(self, X: Float[np.ndarray, "n D"], columns: Columns) -> AdditivePairs:
        """The covariance at some data."""
        return AdditivePairs(self, RadialPairs.of(Matern52(), X, columns).squares)


@dataclass(frozen=True)
class Term:
    """A radial kernel of some of the columns: one summand of (A1)."""

    columns: Int[np.ndarray, " C"]
    stretch: float  # the unit of derivatives, ℓ, in length scales of the term
    covariance: RadialCovariance


class Places(NamedTuple):
    """Where f and its derivatives in a term's columns are among all, and in which units."""

    rows: Int[np.ndarray, " J"]
    within: Columns  # of the term's columns, those in which derivatives are taken
    units: Float[np.ndarray, " J"]


@dataclass(frozen=True)
class AdditiveCovariance:
    """The additive kernel under M sets; without a share there are no interactions."""

    scale: Num[np.ndarray, "M D"]
    outputscale: Num[np.ndarray, " M"]
    share: Num[np.ndarray, " M"] | None
    columns: Columns

    def __repr__(self) -> str:
        return f"AdditiveCovariance({len(self.terms)} terms, {len(self.scale)} sets)"

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Those of single parameters, then that of all of them."""
        a, owner = self.outputscale, np.asarray(self.columns, dtype=int)
        d = max(self.columns) + 1
        rest = a if self.share is None else a * (1 - self.share)
        each = [np.flatnonzero(owner == k) for k in range(d)]
        terms = [self._term(columns, d**0.5, rest / d) for columns in each]
        if self.share is not None:
            terms.append(self._term(np.arange(len(owner)), 1.0, a * self.share))
        return tuple(terms)

    def _term(self, columns: np.ndarray, stretch: float, variance: np.ndarray) -> Term:
        scale = self.scale[:, columns] / stretch
        return Term(columns, stretch, RadialCovariance(Matern52(), scale, variance, {}))

    def diagonal(self, X: Points) -> Num[np.ndarray, "M q"]:
        """var f(x) = a."""
        return np.broadcast_to(self.outputscale[:, None], (len(self.outputscale), X.shape[-2]))

    def target(self, Y: Others) -> AdditiveTarget:
        """Points that covariances are taken with, again and again."""
        parts = tuple(t.covariance.target(Y[..., t.columns]) for t in self.terms)
        return AdditiveTarget(self, parts)

    def between(self, X: Points, Y: Others) -> AdditiveBetween:
        """cov(f(x), f(y)), (A1)."""
        return self.target(Y).between(X)

    def jets(
        self, star: Float[np.ndarray, "M P D"], X: Points, order: int, along: Along = None
    ) -> AdditiveJets:
        """cov of f(x) with f, g and h at each x*: the sum over terms of (D1) to (D3)."""
        return AdditiveJets.of(self, star, X, order, along)

    def places(self, term: Term, order: int, along: Along) -> Places:
        """Where a term's derivatives are among those in the columns `along`."""
        wanted = range(self.scale.shape[1]) if along is None else along
        own = {int(column): i for i, column in enumerate(term.columns)}
        found = [(i, own[column]) for i, column in enumerate(wanted) if column in own]
        rows = [0, *(1 + o * len(wanted) + i for o in range(order) for i, _ in found)]
        units = [1.0, *(term.stretch ** (o + 1) for o in range(order) for _ in found)]
        return Places(np.array(rows), tuple(i for _, i in found), np.array(units))

    def jet_variance(self, order: int, along: Along = None) -> Float[np.ndarray, "M J J"]:
        """Prior covariance of (f, g, h) at one point: the sum over terms of (D4)."""
        M, D = len(self.scale), self.scale.shape[1] if along is None else len(along)
        V = np.zeros((M, 1 + order * D, 1 + order * D))
        for term in self.terms:
            rows, within, units = self.places(term, order, along)
            own = term.covariance.jet_variance(order, within)
            V[:, rows[:, None], rows] += own * (units[:, None] * units)
        return V

    def frequencies(self, draws: Frequencies) -> Float[np.ndarray, "M F D"]:
        """Draws from the spectral density, in radians per unit of x: each is of one term.

        Terms have as many as their shares say, and one level in each of so many equal parts.
        """
        owner = self._owners(draws.coin)
        omega = np.zeros(draws.direction.shape)
        for i, term in enumerate(self.terms):
            own = draws.direction[..., term.columns]
            lengths = np.sqrt(np.sum(own * own, -1, keepdims=True))
            unit = own / np.maximum(lengths, np.finfo(float).tiny)
            level = _levels(draws.level, owner == i)
            found = term.covariance.frequencies(Frequencies(unit, level, draws.coin))
            omega[..., term.columns] += np.where((owner == i)[..., None], found, 0.0)
        return omega

    def _owners(self, coin: Float[np.ndarray, "M F"]) -> Int[np.ndarray, "M F"]:
        """The term of each frequency, by systematic sampling.

        The order of coins is a permutation, and the fraction of their sum is uniform and does not
        depend on the order: one shift for all.
        """
        place = np.argsort(np.argsort(coin, -1), -1)
        even = (place + coin.sum(-1, keepdims=True) % 1) / coin.shape[-1]
        variances = np.stack([term.covariance.outputscale for term in self.terms], -1)
        ends = np.cumsum(variances / self.outputscale[:, None], -1)[:, None, :-1]
        return np.asarray(np.sum(even[..., None] >= ends, -1))

    def single(self) -> AdditiveCovariance:
        """In single precision, with unit output scale."""
        ones = np.ones(len(self.outputscale), np.float32)
        share = None if self.share is None else self.share.astype(np.float32)
        return replace(self, scale=self.scale.astype(np.float32), outputscale=ones, share=share)

    def of_sets(self, chosen: slice | np.ndarray) -> AdditiveCovariance:
        """Of some of the sets."""
        share = None if self.share is None else self.share[chosen]
        return replace(
            self, scale=self.scale[chosen], outputscale=self.outputscale[chosen], share=share
        )


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
class AdditiveTarget:
    """n points y under M sets, for each term."""

    covariance: AdditiveCovariance
    parts: tuple[RadialTarget, ...]

    def between(self, X: Points) -> AdditiveBetween:
        """cov(f(x), f(y)), (A1)."""
        terms = self.covariance.terms
        found = zip(terms, self.parts, strict=True)
        parts = tuple(part.between(X[..., term.columns]) for term, part in found)
        return AdditiveBetween(self.covariance, parts, _sum([part.K for part in parts]))

    def of_sets(self, chosen: slice | np.ndarray) -> AdditiveTarget:
        """Of some of the sets."""
        parts = tuple(part.of_sets(chosen) for part in self.parts)
        return AdditiveTarget(self.covariance.of_sets(chosen), parts)


def _sum(parts: list[np.ndarray]) -> np.ndarray:
    """The sum of some arrays, none of which is changed."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


@dataclass(frozen=True)
class AdditiveBetween:
    """K between q points and a target (n)."""

    covariance: AdditiveCovariance
    parts: tuple[RadialBetween, ...]
    K: Num[np.ndarray, "M q n"]

    def pull(self, by_K: Num[np.ndarray, "M q n"]) -> Num[np.ndarray, "M q D"]:
        """Σ by_K ∂K/∂x, term by term."""
        moved = np.zeros((*self.K.shape[:2], self.covariance.scale.shape[1]), self.K.dtype)
        for term, part in zip(self.covariance.terms, self.parts, strict=True):
            moved[..., term.columns] += part.pull(by_K)
        return moved


@dataclass(frozen=True)
class AdditiveJets:
    """cov of f(x) with (f, g, h) at x*; axes (set, star, row, x)."""

    covariance: AdditiveCovariance
    places: tuple[Places, ...]
    parts: tuple[RadialJets, ...]
    rows: Float[np.ndarray, "M P J q"]

    @classmethod
    def of(
        cls,
        covariance: AdditiveCovariance,
        star: Float[np.ndarray, "M P D"],
        X: Points,
        order: int,
        along: Along = None,
    ) -> AdditiveJets:
        """X is shared, (q, D), or each star has points of its own, (M, P, q, D)."""
        terms = covariance.terms
        places = tuple(covariance.places(term, order, along) for term in terms)
        parts = tuple(
            t.covariance.jets(star[..., t.columns], X[..., t.columns], order, p.within)
            for t, p in zip(terms, places, strict=True)
        )
        J = 1 + order * (star.shape[2] if along is None else len(along))
        rows = np.zeros((*star.shape[:2], J, X.shape[-2]))
        for place, part in zip(places, parts, strict=True):
            rows[:, :, place.rows] += part.rows * place.units[:, None]
        return cls(covariance, places, parts, rows)

    def pull(self, by_rows: Float[np.ndarray, "M P J q"]) -> Float[np.ndarray, "M q D"]:
        """Σ by_rows ∂rows/∂x, over all stars, term by term."""
        M, _, _, q = self.rows.shape
        moved = np.zeros((M, q, self.covariance.scale.shape[1]))
        found = zip(self.covariance.terms, self.places, self.parts, strict=True)
        for term, place, part in found:
            own = by_rows[:, :, place.rows] * place.units[:, None]
            moved[..., term.columns] += part.pull(own)
        return moved


@dataclass(frozen=True)
class AdditivePairs:
    """Squared distances of all pairs of data, parameter by parameter."""

    kernel: Additive
    squares: Float[np.ndarray, "d p"]

    def fit(self, values: Mapping[str, Float[np.ndarray, "B _"]]) -> AdditivePairsFit:
        """Under the hyperparameters `values`, by name."""
        inverse_square = values["lengthscale"] ** -2
        d, matern = len(self.squares), Matern52()
        single, bends = np.zeros((len(inverse_square), self.squares.shape[1])), []
        for k, squares in enumerate(self.squares):
            h, bend = matern.terms(d * inverse_square[:, k : k + 1] * squares, {}, 1)
            single += h / d
            bends.append(bend)
        a, whole = values["outputscale"], None
        correlation = single
        if self.kernel.interactions:
            whole = matern.terms(inverse_square @ self.squares, {}, 1)
            correlation = single + values[SHARE] * (whole[0] - single)
        return AdditivePairsFit(
            self, values, single, bends, whole, correlation, a[:, 0], a * correlation
        )


@dataclass(frozen=True)
class AdditivePairsFit:
    """Covariances of all pairs of data under B sets."""

    of: AdditivePairs
    values: Mapping[str, Float[np.ndarray, "B _"]]
    single: Float[np.ndarray, "B p"]  # the mean of h over parameters
    bends: list[Float[np.ndarray, "B p"]]  # h′ of each
    whole: tuple[Float[np.ndarray, "B p"], ...] | None  # h and h′ of all together
    correlation: Float[np.ndarray, "B p"]
    diagonal: Float[np.ndarray, " B"]
    pairs: Float[np.ndarray, "B p"]

    def pull(
        self, by_pairs: Float[np.ndarray, "B p"], by_diagonal: Float[np.ndarray, " B"]
    ) -> dict[str, Any]:
        """Derivatives by the value of each hyperparameter, by name."""
        a, squares = self.values["outputscale"], self.of.squares
        each = [(by_pairs * b) @ s for b, s in zip(self.bends, squares, strict=True)]
        by_square = np.stack(each, -1)  # of 1/ℓ², over a
        found = {
            "outputscale": (np.sum(by_pairs * self.correlation, axis=1) + by_diagonal)[:, None],
        }
        if self.whole is not None:
            h, bend = self.whole
            found[SHARE] = a * np.sum(by_pairs * (h - self.single), axis=1, keepdims=True)
            by_square += self.values[SHARE] * ((by_pairs * bend) @ squares.T - by_square)
        found["lengthscale"] = -2 * a * by_square / self.values["lengthscale"] ** 3
        return found
