"""Joint Entropy Search at other fidelities: what a cheaper look says about the optimum.

The pair (x*, f*) is at the target fidelity. A look at x is taken at u, and the point beside it, at
the target, is t. After conditioning on the pair, with c = cov(f(x, u), f(x, t)),

    (N5)  var[f(x, u) | f(x, t) ≤ f*] = s_p(x, u) (1 − ρ² (1 − v(β))),
          ρ² = c² / (s_p(x, u) s_p(x, t)),   β = (f* − m_p(x, t)) / √s_p(x, t)

That is (M4) with the part ρ² s_p of the variance that is shared with the target in place of s_p,
and the rest of it beside σ²: at the target ρ = 1, and nothing is added. `mf-mes` is the truncation
alone, without knowing where x* is (Takeno et al. 2020, with moments in place of the integral).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from optpair.acquisition.base import Acquisition, Context, Points, Rows, check_sets
from optpair.acquisition.jes import JES, jes
from optpair.acquisition.jes import build as build_at_target
from optpair.acquisition.jes import build_peak as build_peak_at_target
from optpair.acquisition.special.truncation import (
    exact_gain,
    exact_gain_and_slopes,
    moment_matched_gain,
    moment_matched_gain_and_slopes,
)
from optpair.gp.conditioned import Conditioned, ConditionedQuery, Functionals
from optpair.gp.kernels.base import Between
from optpair.gp.posterior import Posterior, Query
from optpair.optima.base import Optima
from optpair.shapes import Float
from optpair.threads import engine_work


class Beside(NamedTuple):
    """Points as they are looked at, and the points beside them at the target."""

    here: Query
    there: Query
    prior: Between
    """The prior covariance of f(x, u) and f(x, t): of the fidelities alone."""

    @classmethod
    def of(cls, posterior: Posterior, targets: Mapping[int, float], X: Points) -> Beside:
        """The posterior at X and beside it."""
        columns, values = list(targets), list(targets.values())
        T, middle = X.copy(), np.full((1, X.shape[1]), 0.5)
        T[:, columns] = middle[:, columns] = values
        line = np.repeat(middle, len(X), 0)
        line[:, columns] = X[:, columns]
        prior = posterior.covariance.between(line, middle)  # kernels are stationary
        return cls(posterior.at(X), posterior.at(T), prior)

    @property
    def covariance(self) -> Float[np.ndarray, "M q"]:
        """Of f(x, u) and f(x, t), given the data."""
        return np.asarray(self.prior.K[..., 0] - np.vecdot(self.here.A, self.there.A))


class Pair(NamedTuple):
    """Points and those beside them, and what they have to do with sampled optima."""

    beside: Beside
    z: ConditionedQuery
    target: ConditionedQuery

    @property
    def covariance(self) -> Float[np.ndarray, "M P q"]:
        """c, given the data and the pair."""
        shared = np.einsum("mpiq,mpiq->mpq", self.z.z, self.target.z)
        return np.asarray(self.beside.covariance[:, None] - shared)


@dataclass(frozen=True, repr=False)
class LookJES(JES):
    """α_JES (M5) of looks at any fidelity, in nats."""

    targets: Mapping[int, float] = field(default_factory=dict)

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """α(x), nats."""
        pair = self._pair(X)
        here, there = pair.beside.here.variance[:, None], pair.beside.there.variance[:, None]
        taken = np.minimum(_squares(pair.z.z), here)
        given, total, noise = self._variances(here, taken)
        beside = self._variances(there, np.minimum(_squares(pair.target.z), there))[0]
        beta = self._above(pair.beside.there.means, pair.target.z) / np.sqrt(beside)
        shared = np.minimum(pair.covariance**2 / beside, given)  # ρ² s_p
        if self.exact:
            truncation = exact_gain(beta, shared / (given + noise))
        else:
            truncation = moment_matched_gain(beta, shared, noise + (given - shared))  # (N5)
        conditioning = -0.5 * np.log1p(-taken / total)
        return np.einsum("mpq,mp->q", conditioning + truncation, self.weights)

    def _pair(self, X: Points) -> Pair:
        beside = Beside.of(self.posterior, self.targets, X)
        here, there = beside.here, beside.there
        return Pair(beside, self.conditioned.at(X, here), self.conditioned.at(there.X, there))

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """α(x), and its derivatives."""
        pair = self._pair(X)
        z, zt = pair.z.z, pair.target.z
        here, there = pair.beside.here.variance[:, None], pair.beside.there.variance[:, None]
        taken, known = np.minimum(_squares(z), here), np.minimum(_squares(zt), there)
        given, total, noise = self._variances(here, taken)
        beside = self._variances(there, known)[0]
        root = np.sqrt(beside)
        beta = self._above(pair.beside.there.means, zt) / root
        c = pair.covariance
        shared = np.minimum(c**2 / beside, given)
        free = shared < given
        if self.exact:
            seen = given + noise
            truncation, by_beta, by_part = exact_gain_and_slopes(beta, shared / seen)
            by_shared, by_given = by_part / seen, -by_part * shared / seen**2
        else:
            rest = noise + (given - shared)
            found = moment_matched_gain_and_slopes(beta, shared, rest)
            truncation, by_beta, by_shared, by_given = found
            by_shared = by_shared - by_given
        by_given = by_given + np.where(free, 0.0, by_shared)
        by_shared = np.where(free, by_shared, 0.0)
        conditioning = -0.5 * np.log1p(-taken / total)
        values = np.einsum("mpq,mp->q", conditioning + truncation, self.weights)

        weights = self.weights[..., None]
        by_above = weights * by_beta / root
        by_c = weights * by_shared * 2 * c / beside
        by_beside = -weights * (by_shared * c**2 / beside + 0.5 * by_beta * beta) / beside
        by_beside = by_beside * (there - known == beside)
        by_given = weights * by_given * (here - taken == given)
        by_taken = weights * (0.5 / (total - taken)) - by_given
        by_here = by_given - weights * 0.5 * taken / (total * (total - taken))
        by_here = by_here * (here >= self.posterior.floor[:, None, None])
        free_here, free_there = _squares(z) < here, _squares(zt) < there
        by_z = 2 * (by_taken * free_here)[:, :, None] * z - by_c[:, :, None] * zt
        by_here = by_here + np.where(free_here, 0.0, by_taken)
        by_zt = -2 * (by_beside * free_there)[:, :, None] * zt - by_c[:, :, None] * z
        by_there = np.where(free_there, by_beside, 0.0)
        by_zt -= by_above[:, :, None] * self.conditioned.shift[..., None]
        by_means = -by_above
        if pair.beside.there.posterior.fantasies == 1:
            by_means = by_means.sum(1, keepdims=True)
        both = by_c.sum(1)[..., None]
        slope = pair.z.pull(by_z, None, by_here.sum(1), -both * pair.beside.there.A)
        aside = pair.target.pull(by_zt, by_means, by_there.sum(1), -both * pair.beside.here.A)
        aside[..., list(self.targets)] = 0.0  # the point beside stays at the target
        slope += aside + pair.beside.prior.pull(both)
        return values, slope.sum(0)


def _squares(z: Float[np.ndarray, "M P I q"]) -> Float[np.ndarray, "M P q"]:
    return np.einsum("mpiq,mpiq->mpq", z, z)


def build_jes(context: Context, *, exact: bool = False) -> Acquisition:
    """JES at every fidelity from what the engine has at hand."""
    return looking(build_at_target(context, exact=exact), context.targets)


def build_peak(context: Context) -> Acquisition:
    """JES with flat optima at every fidelity from what the engine has at hand."""
    return looking(build_peak_at_target(context), context.targets)


def looking(of: Acquisition, targets: Mapping[int, float]) -> Acquisition:
    """The same at every fidelity, where there are some."""
    if not (targets and isinstance(of, JES)):
        return of
    return LookJES(of.conditioned, of.f, of.weights, of.exact, targets)


def _unconditioned(posterior: Posterior, optima: Optima) -> Conditioned:
    """A posterior that knows nothing of the optima."""
    M, P = optima.best.shape
    n = len(posterior.X)
    parts = np.zeros((M, P, 0, 0)), np.zeros((M, P, 0, n)), np.zeros((M, P, 0))
    return Conditioned(posterior, Functionals(()), *parts)


def build_mes(context: Context) -> Acquisition:
    """MF-MES from what the engine has at hand."""
    optima = context.need_optima("Max-value Entropy Search")
    return _mes(context.posterior, optima, context.targets)


def _mes(posterior: Posterior, optima: Optima, targets: Mapping[int, float]) -> Acquisition:
    of = JES(_unconditioned(posterior, optima), optima.best, optima.weights)
    return looking(of, targets)


@engine_work
def mf_jes(
    posterior: Posterior, optima: Optima, targets: Mapping[int, float], *, exact: bool = False
) -> Acquisition:
    """Joint Entropy Search of looks at any fidelity, as a function of points, in nats.

    Args:
        posterior: of the objective.
        optima: optima of sample paths at the target.
        targets: the columns of the fidelities, and what they hold at the target.
        exact: compute the truncation term by quadrature instead of moment matching.
    """
    return looking(jes(posterior, optima, exact=exact), targets)


@engine_work
def mf_mes(posterior: Posterior, optima: Optima, targets: Mapping[int, float]) -> Acquisition:
    """Max-value Entropy Search of looks at any fidelity, as a function of points, in nats.

    `targets` as in `mf_jes`.
    """
    check_sets(posterior, optima.f)
    return _mes(posterior, optima, targets)
