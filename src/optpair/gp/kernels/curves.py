"""The kernel of curves: a common curve over the fidelities, and a part of each point's own.

With h of a radial kernel, r² over all columns and Δ² the squared distance in the fidelities alone,

    (A2)  k(x, x') = a ((1 − w) h(r²) + w h(Δ²/λ²))

A draw is a function of the fidelities that all points share, plus one of all columns. The bias of
cheap looks, and most of a learning curve, is the same for all points: it is learnt from all of
them, has a length scale λ of its own, and does not count against the looks. How much looks at a low
fidelity say about the target then depends on the fidelity's length scale in r² alone: it is long if
curves run in parallel, and short if they cross. w and λ are inferred like the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any, ClassVar

import numpy as np

from optpair.gp.hyperparameters import Block, Exp, Hyperparameters, Logit
from optpair.gp.kernels.base import Columns, Frequencies, Kernel, Others, Points
from optpair.gp.kernels.radial import (
    Own,
    Radial,
    RadialBetween,
    RadialCovariance,
    RadialPairs,
    RadialTarget,
)
from optpair.gp.kernels.sums import SumCovariance, Term
from optpair.gp.priors import LogNormal, Normal
from optpair.runtime.shapes import Float, Int, Num

SHARE, LENGTH = "common", "curve"  # the hyperparameters w and λ
MANY = 64  # points, of which so many may have the same fidelities that it is worth a look
EIGHTH = 8  # one frequency in so many is of the common curve, which is of few columns


@dataclass(frozen=True)
class Curves(Kernel):
    """A radial kernel of all parameters, and a share of one of the fidelities alone.

    log(w/(1 − w)) ~ N(0, spread²), as for the rough share of `Mixed`; λ ~ LogNormal(log ½, 0.8).
    """

    name: ClassVar[str] = "curves"
    base: Radial
    fidelities: tuple[int, ...]
    """The columns of the fidelities."""
    spread: float = 4.0

    def blocks(self) -> tuple[Block, ...]:
        """Those of the radial kernel, w and λ."""
        share = Block(SHARE, 1, Logit(self.spread), Normal())
        return (*self.base.blocks(), share, Block(LENGTH, 1, Exp(), LogNormal(log(0.5), 0.8)))

    def bind(self, hypers: Hyperparameters, columns: Columns) -> CurvesCovariance:
        """The covariance under some hyperparameter sets."""
        missing = [name for name in (SHARE, LENGTH) if name not in hypers.own]
        if missing:
            raise ValueError(f"a space with a Fidelity needs hyperparameters called {missing}")
        own = self.base.bind(hypers, columns)
        share, length = hypers.own[SHARE], hypers.own[LENGTH]
        return CurvesCovariance(own, share, length, np.array(self.fidelities, dtype=int))

    def pairwise(self, X: Float[np.ndarray, "n D"], columns: Columns) -> CurvesPairs:
        """The covariance at some data."""
        squares = RadialPairs.of(self.base, X, columns).squares
        owner = [columns[column] for column in self.fidelities]
        return CurvesPairs(self, squares, squares[sorted(set(owner))].sum(0))


@dataclass(frozen=True)
class CurvesCovariance(SumCovariance):
    """The kernel under M sets."""

    whole: RadialCovariance
    """Of all columns, with all of the output scale."""
    share: Num[np.ndarray, " M"]
    length: Num[np.ndarray, " M"]
    fidelities: Int[np.ndarray, " C"]

    def __repr__(self) -> str:
        return f"CurvesCovariance({self.whole.kernel!r}, {len(self.share)} sets)"

    @property
    def scale(self) -> Num[np.ndarray, "M D"]:  # type: ignore[override]
        """The length scale of each column in r²."""
        return self.whole.scale

    @property
    def outputscale(self) -> Num[np.ndarray, " M"]:  # type: ignore[override]
        """a."""
        return self.whole.outputscale

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """That of all columns, then that of the fidelities."""
        a, w, own = self.outputscale, self.share, self.whole
        every = replace(own, outputscale=a * (1 - w))
        scale = np.repeat(self.length[:, None], len(self.fidelities), 1)
        common = RadialCovariance(own.kernel, scale, a * w, own.own)
        columns = np.arange(self.scale.shape[1])
        units = self.scale[:, self.fidelities] / scale
        same = np.ones((1, len(columns)))
        return Term(columns, same, every), Term(self.fidelities, units, common)

    def target(self, Y: Others) -> CurvesTarget:  # type: ignore[override]
        """Points that covariances are taken with, again and again."""
        every, common = self.terms
        own = common.covariance.target(Y[..., self.fidelities])
        return CurvesTarget(self, every.covariance.target(Y), own)

    def _owners(self, draws: Frequencies) -> Int[np.ndarray, "M F"]:
        """The term of each frequency: a fixed number of each. Levels are made even afterwards."""
        place = np.argsort(np.argsort(draws.level, -1), -1)
        return np.asarray(place < self._few(draws.level.shape[-1]), dtype=int)

    @staticmethod
    def _few(count: int) -> int:
        return -(-count // EIGHTH) if count > 1 else 0

    def amplitudes(self, draws: Frequencies) -> Float[np.ndarray, "M F"]:
        """The standard deviation of each frequency's weight: a term's is shared among its own."""
        count = draws.coin.shape[-1]
        few = self._few(count)
        every, common = (term.covariance.outputscale for term in self.terms)
        sizes = [np.sqrt(every / (count - few)), np.sqrt(common / max(few, 1))]
        return np.where(self._owners(draws) == 0, *(size[:, None] for size in sizes))

    def single(self) -> CurvesCovariance:
        """In single precision, with unit output scale."""
        share, length = self.share.astype(np.float32), self.length.astype(np.float32)
        return replace(self, whole=self.whole.single(), share=share, length=length)

    def of_sets(self, chosen: slice | np.ndarray) -> CurvesCovariance:
        """Of some of the sets."""
        whole = self.whole.of_sets(chosen)
        return replace(self, whole=whole, share=self.share[chosen], length=self.length[chosen])


@dataclass(frozen=True)
class CurvesTarget:
    """n points y under M sets, for each term."""

    covariance: CurvesCovariance
    every: RadialTarget
    common: RadialTarget

    def between(self, X: Points) -> CurvesBetween:
        """cov(f(x), f(y)); of points with the same fidelities the common part is made once."""
        every, common = self.every.between(X), self._alike(X[..., self.covariance.fidelities])
        return CurvesBetween(self.covariance, every, common, every.K + common.K)

    def _alike(self, u: Points) -> RadialBetween:
        """The common part: one row where all points have the same fidelities, which is kept."""
        first = u.reshape(-1, u.shape[-1])[:1]
        if np.all(u == first):
            key = first.tobytes()
            if key not in self._kept:
                self._kept.clear()
                self._kept[key] = self.common.between(first)
            return self._kept[key]
        if u.ndim == 2 and len(u) >= MANY:
            some, place = np.unique(u, axis=0, return_inverse=True)
            return _repeated(self.common.between(some), place.reshape(-1))
        return self.common.between(u)

    @cached_property
    def _kept(self) -> dict[bytes, RadialBetween]:
        """The last such row: climbs of sample paths ask for the target again and again."""
        return {}

    def of_sets(self, chosen: slice | np.ndarray) -> CurvesTarget:
        """Of some of the sets."""
        every, common = self.every.of_sets(chosen), self.common.of_sets(chosen)
        return CurvesTarget(self.covariance.of_sets(chosen), every, common)


def _repeated(one: RadialBetween, place: Int[np.ndarray, " q"]) -> RadialBetween:
    """The same at points that are each one of those."""
    return RadialBetween(one.target, one.Z[:, place], one.K[:, place], lambda: one.bend()[:, place])


@dataclass(frozen=True)
class CurvesBetween:
    """K between q points and a target (n); the common part may be one row for all."""

    covariance: CurvesCovariance
    every: RadialBetween
    common: RadialBetween
    K: Num[np.ndarray, "M q n"]

    def pull(self, by_K: Num[np.ndarray, "M q n"]) -> Num[np.ndarray, "M q D"]:
        """Σ by_K ∂K/∂x, term by term."""
        moved, own = self.every.pull(by_K), self.common
        if own.K.shape[1] == self.K.shape[1]:
            slope = own.pull(by_K)
        else:
            c, C = own.target.covariance, own.Z.shape[-1]
            sums = by_K @ (own.bend().mT * own.target.rows[..., : C + 1])
            slope = (2 * own.Z * sums[..., C:] + sums[..., :C]) * (
                c.outputscale[:, None, None] / c.scale[:, None, :]
            )
        moved[..., self.covariance.fidelities] += slope
        return moved


@dataclass(frozen=True)
class CurvesPairs:
    """Squared distances of all pairs of data: parameter by parameter, and in the fidelities."""

    kernel: Curves
    squares: Float[np.ndarray, "d p"]
    apart: Float[np.ndarray, " p"]

    def fit(self, values: Mapping[str, Float[np.ndarray, "B _"]]) -> CurvesPairsFit:
        """Under the hyperparameters `values`, by name."""
        base = self.kernel.base
        own = {block.name: values[block.name] for block in base.blocks()}
        r2 = values["lengthscale"] ** -2 @ self.squares
        q2 = values[LENGTH] ** -2 * self.apart
        every, common = base.terms(r2, own, 1), base.terms(q2, own, 1)
        w, a = values[SHARE], values["outputscale"]
        correlation = every[0] + w * (common[0] - every[0])  # (A2)
        found = (r2, q2, every, common, correlation)
        return CurvesPairsFit(self, values, own, *found, a[:, 0], a * correlation)


@dataclass(frozen=True)
class CurvesPairsFit:
    """Covariances of all pairs of data under B sets."""

    of: CurvesPairs
    values: Mapping[str, Float[np.ndarray, "B _"]]
    own: Own
    r2: Float[np.ndarray, "B p"]
    q2: Float[np.ndarray, "B p"]
    every: tuple[Float[np.ndarray, "B p"], ...]  # h and h′ at r²
    common: tuple[Float[np.ndarray, "B p"], ...]  # and at Δ²/λ²
    correlation: Float[np.ndarray, "B p"]
    diagonal: Float[np.ndarray, " B"]
    pairs: Float[np.ndarray, "B p"]

    def pull(
        self, by_pairs: Float[np.ndarray, "B p"], by_diagonal: Float[np.ndarray, " B"]
    ) -> dict[str, Any]:
        """Derivatives by the value of each hyperparameter, by name."""
        a, w, length = (self.values[name] for name in ("outputscale", SHARE, LENGTH))
        (h, bend), (g, curved) = self.every, self.common
        by_square = (1 - w) * ((by_pairs * bend) @ self.of.squares.T)  # of 1/ℓ², over a
        by_curve = np.sum(by_pairs * curved * self.q2, axis=1, keepdims=True)
        found = {
            "lengthscale": -2 * a * by_square / self.values["lengthscale"] ** 3,
            "outputscale": (np.sum(by_pairs * self.correlation, axis=1) + by_diagonal)[:, None],
            SHARE: a * np.sum(by_pairs * (g - h), axis=1, keepdims=True),
            LENGTH: -2 * a * w * by_curve / length,
        }
        base = self.of.kernel.base
        here, there = base.by_own(self.r2, self.own), base.by_own(self.q2, self.own)
        for name in here:
            slope = here[name] + w * (there[name] - here[name])
            found[name] = a * np.sum(by_pairs * slope, axis=1, keepdims=True)
        return found
