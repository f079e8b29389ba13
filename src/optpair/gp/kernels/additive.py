"""The additive kernel: a sum over parameters, for objectives that are nearly a sum of effects.

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
from typing import Any, ClassVar

import numpy as np

from optpair.gp.hyperparameters import Block, Hyperparameters, Logit
from optpair.gp.kernels.base import Columns, Kernel
from optpair.gp.kernels.radial import RadialCovariance, RadialPairs
from optpair.gp.kernels.stationary import Matern52
from optpair.gp.kernels.sums import SumCovariance, Term
from optpair.gp.priors import Normal
from optpair.runtime.shapes import Float, Num

SHARE = "interactions"  # the hyperparameter w


@dataclass(frozen=True)
class Additive(Kernel):
    """A sum of Matérn-5/2 kernels of single parameters, and a share of one of all together.

    log(w/(1 − w)) ~ N(0, spread²), as for the rough share of `Mixed`. Without `interactions`, w is
    0 and not a hyperparameter.
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
class AdditiveCovariance(SumCovariance):
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
        units = np.full((1, len(columns)), stretch)
        return Term(columns, units, RadialCovariance(Matern52(), scale, variance, {}))

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
