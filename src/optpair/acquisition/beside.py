"""Points beside others: where cheaper looks are taken, and the same points at the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from optpair.acquisition.base import Points
from optpair.gp.conditioned import ConditionedQuery
from optpair.gp.kernels.base import Between, Target
from optpair.gp.posterior import Posterior, Query
from optpair.runtime.shapes import Float


def a_target(posterior: Posterior, targets: Mapping[int, float]) -> Target:
    """A point at the target: where it is does not matter, as kernels are stationary."""
    middle = np.full((1, posterior.dimensions), 0.5)
    middle[:, list(targets)] = list(targets.values())
    return posterior.covariance.target(middle)


class Beside(NamedTuple):
    """q points as they are looked at, and the q points beside them at the target, in one query."""

    both: Query
    means: Float[np.ndarray, "M F q"]
    """m(x, t), at the target."""
    variance: Float[np.ndarray, "M Q"]
    """s of the points, then of those beside them."""
    prior: Between
    """The prior covariance of f(x, u) and f(x, t): of the fidelities alone."""

    @classmethod
    def of(
        cls, posterior: Posterior, targets: Mapping[int, float], aside: Target, X: Points
    ) -> Beside:
        """The posterior at X and beside it; `aside` is what `a_target` gives."""
        columns, values = list(targets), list(targets.values())
        T, line = X.copy(), np.full(X.shape, 0.5)
        T[:, columns], line[:, columns] = values, X[:, columns]
        both = posterior.at(np.concatenate([X, T]))
        return cls(both, both.means[..., len(X) :], both.variance, aside.between(line))

    @property
    def X(self) -> Points:
        """The points as they are looked at."""
        return self.both.X[: len(self.both.X) // 2]

    @property
    def whitened(self) -> tuple[Float[np.ndarray, "M q n"], Float[np.ndarray, "M q n"]]:
        """C⁻¹k of the points, and of those beside them."""
        q = self.both.A.shape[1] // 2
        return self.both.A[:, :q], self.both.A[:, q:]

    @property
    def covariance(self) -> Float[np.ndarray, "M q"]:
        """The covariance of f(x, u) and f(x, t), given the data."""
        return np.asarray(self.prior.K[..., 0] - np.vecdot(*self.whitened))

    def folded(
        self, slope: Float[np.ndarray, "M Q D"], targets: Mapping[int, float]
    ) -> Float[np.ndarray, "M q D"]:
        """Derivatives by X from those by both: the points beside stay at the target."""
        q = slope.shape[1] // 2
        slope[:, q:, list(targets)] = 0.0
        return slope[:, :q] + slope[:, q:]


class BySides(NamedTuple):
    """Derivatives of a gain by what it depends on, at points x and at those beside them, t."""

    z: Float[np.ndarray, "M P I q"]
    """By the covariances of f(x) with what is known of the optimum,"""
    zt: Float[np.ndarray, "M P I q"]
    """and of f(t)."""
    means: Float[np.ndarray, "M P q"]
    """By m(t)."""
    here: Float[np.ndarray, "M P q"]
    """By s(x),"""
    there: Float[np.ndarray, "M P q"]
    """and s(t)."""
    c: Float[np.ndarray, "M P q"]
    """By the covariance of f(x) and f(t), given the optimum."""

    def pull(
        self, beside: Beside, at: ConditionedQuery, targets: Mapping[int, float]
    ) -> Float[np.ndarray, "q D"]:
        """Derivatives by x."""
        z, zt = halves(at.z)
        by_c = self.c[:, :, None]
        by_means = self.means
        if beside.both.posterior.fantasies == 1:
            by_means = by_means.sum(1, keepdims=True)
        both, (A, At) = self.c.sum(1)[..., None], beside.whitened
        slope = at.pull(
            np.concatenate([self.z - by_c * zt, self.zt - by_c * z], -1),
            np.concatenate([np.zeros_like(by_means), by_means], -1),
            np.concatenate([self.here.sum(1), self.there.sum(1)], -1),
            np.concatenate([-both * At, -both * A], 1),
        )
        slope = beside.folded(slope, targets) + beside.prior.pull(both)
        return np.asarray(slope.sum(0))


def halves(both: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part of the points, and the part of those beside them."""
    q = both.shape[-1] // 2
    return both[..., :q], both[..., q:]


def squares(z: Float[np.ndarray, "M P I q"]) -> Float[np.ndarray, "M P q"]:
    """What knowing the optimum takes from a variance: at most the variance itself."""
    return np.asarray(np.einsum("mpiq,mpiq->mpq", z, z))
