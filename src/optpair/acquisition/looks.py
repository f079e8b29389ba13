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
from functools import cached_property

import numpy as np

from optpair.acquisition.base import Acquisition, Context, Points, Rows, check_sets
from optpair.acquisition.beside import Beside, BySides, a_target, halves, squares
from optpair.acquisition.jes import JES, jes
from optpair.acquisition.jes import build as build_at_target
from optpair.acquisition.jes import build_peak as build_peak_at_target
from optpair.acquisition.joint import JointJES
from optpair.acquisition.joint_looks import LookJointJES, unconditioned
from optpair.acquisition.special.truncation import (
    exact_gain,
    exact_gain_and_slopes,
    moment_matched_gain,
    moment_matched_gain_and_slopes,
)
from optpair.gp.kernels.base import Target
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float
from optpair.runtime.threads import engine_work


@dataclass(frozen=True, repr=False)
class LookJES(JES):
    """α_JES (M5) of looks at any fidelity, in nats."""

    targets: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def _aside(self) -> Target:
        return a_target(self.posterior, self.targets)

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """α(x), nats."""
        beside = Beside.of(self.posterior, self.targets, self._aside, X)
        z, zt = halves(self.conditioned.at(beside.both.X, beside.both).z)
        here, there = halves(beside.variance[:, None])
        taken = np.minimum(squares(z), here)
        given, total, noise = self._variances(here, taken, self.posterior.noise_at(X)[:, None])
        aside = self._variances(there, np.minimum(squares(zt), there))[0]
        beta = self._above(beside.means, zt) / np.sqrt(aside)
        c = beside.covariance[:, None] - np.einsum("mpiq,mpiq->mpq", z, zt)
        shared = np.minimum(c**2 / aside, given)  # ρ² s_p
        if self.exact:
            truncation = exact_gain(beta, shared / (given + noise))
        else:
            truncation = moment_matched_gain(beta, shared, noise + (given - shared))  # (N5)
        conditioning = -0.5 * np.log1p(-taken / total)
        return np.einsum("mpq,mp->q", conditioning + truncation, self.weights)

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """α(x), and its derivatives."""
        beside = Beside.of(self.posterior, self.targets, self._aside, X)
        at = self.conditioned.at(beside.both.X, beside.both)
        (z, zt), (here, there) = halves(at.z), halves(beside.variance[:, None])
        known_here, known = squares(z), squares(zt)
        taken = np.minimum(known_here, here)
        given, total, noise = self._variances(here, taken, self.posterior.noise_at(X)[:, None])
        aside = self._variances(there, np.minimum(known, there))[0]
        root = np.sqrt(aside)
        beta = self._above(beside.means, zt) / root
        c = beside.covariance[:, None] - np.einsum("mpiq,mpiq->mpq", z, zt)
        shared = np.minimum(c**2 / aside, given)
        truncation, by_beta, by_shared, by_given, by_noise = self._truncation(
            beta, shared, given, noise
        )
        left = total - taken
        values = np.einsum("mpq,mp->q", truncation - 0.5 * np.log1p(-taken / total), self.weights)

        weights, free = self.weights[..., None], shared < given
        by_given = by_given + np.where(free, 0.0, by_shared)
        by_shared = np.where(free, by_shared, 0.0)
        by_c = weights * by_shared * 2 * c / aside
        by_aside = -weights * (by_shared * c**2 / aside + 0.5 * by_beta * beta) / aside
        by_aside = by_aside * (there - np.minimum(known, there) == aside)
        by_given = weights * by_given * (here - taken == given)
        by_taken = weights * (0.5 / left) - by_given
        by_total = weights * 0.5 * taken / (total * left)
        by_here = by_given - by_total
        by_here = by_here * (here >= self.posterior.floor[:, None, None])
        clipped = known_here >= here
        by_here = by_here + np.where(clipped, by_taken, 0.0)
        by_there = np.where(known < there, by_aside, 0.0)
        by_above = weights * by_beta / root
        by_zt = -2 * by_there[:, :, None] * zt
        by_zt -= by_above[:, :, None] * self.conditioned.shift[..., None]
        by_z = 2 * np.where(clipped, 0.0, by_taken)[:, :, None] * z
        sides = BySides(by_z, by_zt, -by_above, by_here, by_there, by_c)
        by_noise = np.sum(weights * by_noise - by_total, axis=1)
        return values, sides.pull(beside, at, self.targets) + self.posterior.pull_noise(X, by_noise)

    def _truncation(
        self,
        beta: Float[np.ndarray, "M P q"],
        shared: Float[np.ndarray, "M P q"],
        given: Float[np.ndarray, "M P q"],
        noise: Float[np.ndarray, "M 1 _"],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Its gain (N5), and the derivatives by β, ρ² s_p, s_p and σ²."""
        if self.exact:
            seen = given + noise
            gain, by_beta, by_part = exact_gain_and_slopes(beta, shared / seen)
            by_seen = -by_part * shared / seen**2
            return gain, by_beta, by_part / seen, by_seen, by_seen
        rest = noise + (given - shared)
        gain, by_beta, by_shared, by_rest = moment_matched_gain_and_slopes(beta, shared, rest)
        return gain, by_beta, by_shared - by_rest, by_rest, by_rest


def build_jes(context: Context, *, exact: bool = False) -> Acquisition:
    """JES at every fidelity from what the engine has at hand."""
    return looking(build_at_target(context, exact=exact), context.targets)


def build_peak(context: Context) -> Acquisition:
    """JES with flat optima at every fidelity from what the engine has at hand."""
    return looking(build_peak_at_target(context), context.targets)


def looking(of: Acquisition, targets: Mapping[int, float]) -> Acquisition:
    """The same at every fidelity, where there are some."""
    if not targets:
        return of
    if isinstance(of, JointJES):
        return LookJointJES.of(of, targets)
    assert isinstance(of, JES)
    return LookJES(of.conditioned, of.f, of.weights, of.exact, targets)


def build_mes(context: Context) -> Acquisition:
    """MF-MES from what the engine has at hand."""
    optima = context.need_optima("Max-value Entropy Search")
    return _mes(context.posterior, optima, context.targets)


def _mes(posterior: Posterior, optima: Optima, targets: Mapping[int, float]) -> Acquisition:
    M, P = optima.best.shape
    of = JES(unconditioned(posterior, M, P), optima.best, optima.weights)
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
