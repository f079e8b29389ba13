"""Posteriors that also know linear functionals of f at sampled points: values, slopes, curvatures.

With z the J functionals of one optimum and ζ what they are known to be,

    (K1)  m_p(x) = m(x) + cov(f(x), z) V⁻¹ (ζ − E z),     V = var z + softness
    (K2)  s_p(x) = s(x) − cov(f(x), z) V⁻¹ cov(z, f(x))

All optima of a set share its factor: with V = LLᵀ, one product gives L⁻¹cov(z, f(x)) for a whole
block of points. J = 1 is JES, 1 + D knows that the slope at x* is zero, PES has 2D + 2 and
conditions only in part, and a Pareto set has one functional for each of its R points. J = 0 is
OPES: what it knows is of f at the data alone, whose covariances with f(x) are in C⁻¹k(X, x).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from optpair.gp.kernels.base import Along, Between, Covariance, Jets, Points
from optpair.gp.posterior import Posterior, Query
from optpair.runtime.shapes import Bool, Float


@dataclass(frozen=True)
class Functionals:
    """f and its derivatives up to an order, at each of some points of each optimum.

    A group is an order (0, 1 or 2) and points (M, P, D); its functionals are f, then the slopes g,
    then the curvatures h, in units of the length scale.
    """

    groups: tuple[tuple[int, Float[np.ndarray, "M P D"]], ...]
    along: Along = None
    """The columns in which derivatives are taken; None means all."""

    @cached_property
    def places(self) -> Float[np.ndarray, "M P R D"] | None:
        """The points of all groups, where these are several and have no derivatives."""
        if len(self.groups) == 1 or any(order for order, _ in self.groups):
            return None
        return np.stack([star for _, star in self.groups], 2) if self.groups else None

    def jets(self, posterior: Posterior, X: Points) -> tuple[Jets, ...]:
        """Prior covariances with f(x), group by group; of values alone, all at once."""
        covariance = posterior.covariance
        if self.places is not None:
            return (Values.of(covariance, self.places, X),)
        return tuple(covariance.jets(star, X, order, self.along) for order, star in self.groups)

    def is_value(self, dimensions: int) -> np.ndarray:
        """Which functionals are values of f: those have the mean, the others none."""
        columns = dimensions if self.along is None else len(self.along)
        parts = [[1.0] + [0.0] * (order * columns) for order, _ in self.groups]
        return np.concatenate(parts)

    def prior(self, posterior: Posterior) -> Float[np.ndarray, "M P J J"]:
        """Their prior covariance."""
        covariance, every = posterior.covariance, self.places
        if every is not None:
            jets = (covariance.jets(star, every, 0, self.along).rows for _, star in self.groups)
            return np.concatenate(list(jets), 2)
        rows = []
        for i, (order, star) in enumerate(self.groups):
            row = []
            for j, (other_order, other) in enumerate(self.groups):
                if i == j:
                    here = covariance.jet_variance(order, self.along)[:, None]
                    row.append(np.broadcast_to(here, (*star.shape[:2], *here.shape[2:])))
                elif other_order == 0:
                    row.append(covariance.jets(star, other[:, :, None], order, self.along).rows)
                elif order == 0:
                    apart = covariance.jets(other, star[:, :, None], other_order, self.along).rows
                    row.append(apart.mT)
                else:
                    raise NotImplementedError("derivatives at two different points")
            rows.append(np.concatenate(row, -1))
        return np.concatenate(rows, -2)


class Values(NamedTuple):
    """Covariances of f(x) with f at R points of each optimum: jets without derivatives."""

    between: Between
    rows: Float[np.ndarray, "M P R q"]

    @classmethod
    def of(cls, covariance: Covariance, places: Float[np.ndarray, "M P R D"], X: Points) -> Values:
        """Products of matrices, set by set."""
        M, P, R, D = places.shape
        between = covariance.between(X, places.reshape(M, P * R, D))
        return cls(between, np.ascontiguousarray(between.K.mT).reshape(M, P, R, -1))

    def pull(self, by_rows: Float[np.ndarray, "M P R q"]) -> Float[np.ndarray, "M q D"]:
        """Σ by_rows · ∂rows/∂x, over all points."""
        M, P, R, q = by_rows.shape
        return self.between.pull(by_rows.reshape(M, P * R, q).mT)


@dataclass(frozen=True)
class Moments:
    """What the data say about some functionals."""

    mean: Float[np.ndarray, "M P J"]
    covariance: Float[np.ndarray, "M P J J"]
    whitened: Float[np.ndarray, "M P J n"]  # C⁻¹ of their covariances with the data


def seen(posterior: Posterior, functionals: Functionals) -> Moments:
    """Mean and covariance of functionals given the data.

    With fantasies, optimum p belongs to fantasy p.
    """
    jets = functionals.jets(posterior, posterior.X)
    rows = np.concatenate([jet.rows for jet in jets], 2)
    if posterior.links is not None:
        posterior.links.load(rows)
    M, P, J, n = rows.shape
    whitened = posterior.whiten(rows.reshape(M, P * J, n)).reshape(rows.shape)
    expected = np.sum(rows * posterior.weights[:, :, None], -1)
    is_value = functionals.is_value(posterior.dimensions)
    return Moments(
        posterior.mean[:, None, None] * is_value + expected,
        functionals.prior(posterior) - whitened @ whitened.mT,
        whitened,
    )


def condition_on(
    posterior: Posterior,
    functionals: Functionals,
    wanted: Float[np.ndarray, "M P J"],
    known: Bool[np.ndarray, "M P J"],
    softness: Float[np.ndarray, " J"],
) -> Conditioned:
    """The posterior that also knows the values of some functionals.

    `softness`, relative to the output scale, is the variance up to which they are known. If
    round-off leaves V without a factor, only the first functional is known.
    """
    found = seen(posterior, functionals)
    a = posterior.outputscale[:, None, None]
    both = known[..., :, None] & known[..., None, :]
    V = np.where(both, found.covariance, 0.0)
    index = np.arange(V.shape[-1])
    V[..., index, index] += np.where(known, softness, 1.0) * a
    L = _inverse_or_first(V, softness[0] * posterior.outputscale)
    shift = np.matvec(L, np.where(known, wanted - found.mean, 0.0))
    fold = L * known[..., None, :]
    return Conditioned(posterior, functionals, fold, fold @ found.whitened, shift)


def _inverse_or_first(
    V: Float[np.ndarray, "M P J J"], least: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "M P J J"]:
    """L⁻¹ of V = LLᵀ, or of its first entry alone where there is no factor."""
    try:
        return np.tril(np.linalg.inv(np.linalg.cholesky(V)))
    except np.linalg.LinAlgError:
        pass
    inverse = np.zeros_like(V)
    for m, p in np.ndindex(V.shape[:2]):
        C, failed = dpotrf(V[m, p], lower=1)
        if failed or not np.all(np.isfinite(C)):
            inverse[m, p, 0, 0] = 1 / np.sqrt(max(V[m, p, 0, 0], least[m]))
        else:
            inverse[m, p] = dtrtri(C, lower=1)[0]
    return inverse


@dataclass(frozen=True)
class Conditioned:
    """A posterior with what `fold` reads of some functionals: z = fold · functionals.

    Rows of `fold` are those of L⁻¹, so that the rows of z are uncorrelated with unit variance.
    """

    posterior: Posterior
    functionals: Functionals
    fold: Float[np.ndarray, "M P I J"]
    whitened: Float[np.ndarray, "M P I n"]  # fold times C⁻¹ of the covariances with the data
    shift: Float[np.ndarray, "M P I"]  # by how much each entry of z is moved

    def first(self, count: int) -> Conditioned:
        """With the first `count` sets of functionals, and of fantasies if there are several."""
        posterior = self.posterior
        if posterior.fantasies > 1:
            posterior = posterior.some_fantasies(count)
        groups = tuple((order, star[:, :count]) for order, star in self.functionals.groups)
        parts = (part[:, :count] for part in (self.fold, self.whitened, self.shift))
        return Conditioned(posterior, replace(self.functionals, groups=groups), *parts)

    def at(self, X: Points, query: Query) -> ConditionedQuery:
        """The covariances of f(x) with z, and what they pull back."""
        jets = self.functionals.jets(self.posterior, X)
        M, P, rank, n = self.whitened.shape
        by_data = self.whitened.reshape(M, P * rank, n) @ query.A.mT
        if jets:
            rows = jets[0].rows if len(jets) == 1 else np.concatenate([jet.rows for jet in jets], 2)
            z = self.fold @ rows
            z -= by_data.reshape(z.shape)
        else:
            z = -by_data.reshape(M, P, rank, query.A.shape[1])
        return ConditionedQuery(self, query, jets, z)


@dataclass(frozen=True)
class ConditionedQuery:
    """z(x) = cov(f(x), z) at q points."""

    conditioned: Conditioned
    query: Query
    jets: tuple[Jets, ...]
    z: Float[np.ndarray, "M P I q"]

    def pull(
        self,
        by_z: Float[np.ndarray, "M P I q"],
        by_means: Float[np.ndarray, "M F q"] | None = None,
        by_variance: Float[np.ndarray, "M q"] | None = None,
        by_A: Float[np.ndarray, "M q n"] | None = None,
    ) -> Float[np.ndarray, "M q D"]:
        """From derivatives by z, the moments and C⁻¹k to those by each point's coordinates."""
        of = self.conditioned
        M, P, rank, q = by_z.shape
        by_rows = of.fold.mT @ by_z
        flat = by_z.reshape(M, P * rank, q).mT
        by_whitened = -(flat @ of.whitened.reshape(M, P * rank, of.whitened.shape[-1]))
        if by_A is not None:
            by_whitened = by_whitened + by_A
        slope = self.query.pull(by_means, by_variance, by_whitened)
        begin = 0
        for jet in self.jets:
            end = begin + jet.rows.shape[2]
            slope += jet.pull(by_rows[:, :, begin:end])
            begin = end
        return slope
