"""Predictive Entropy Search: how much an evaluation would say about where the optimum is, x*.

    α(x) = H[y | x] − E_{x*} H[y | x, x*]

x* comes from sample paths; the value f* of a pair is not used. That x* is the maximiser is put into
the GP of its set as what has to hold there, g and h being derivatives in units of the length scale:

    (P1)  g_k(x*) = 0 and h_k(x*) ≤ 0     in each coordinate k where x* is interior and continuous
    (P2)  f(x*) ≥ f(x_b)                  x_b: the datum with the highest posterior mean
    (P3)  f(x) ≤ f(x*)                    x: the query

g = 0 is linear, and exact but for a softness δ (below). The inequalities of (P1) and (P2) become
Gaussian sites by expectation propagation (`special.orthant`), once for each x*. What they leave of
f is a GP again, with mean m_q and covariance k_q. (P3) is then a truncation of t = f(x*) − f(x) at
zero, by moment matching:

    (P4)  v_q(x) = k_q(x, x) − ρ² k_q(x, x) (1 − v(β)),    β = E t/√var t,    ρ = corr(f(x), t)
    (P5)  gain(x) = ½ log(s + σ²) − ½ log(v_q + σ²), in two terms that cannot cancel
    (P6)  α(x) = mean over sets of the mean over that set's x* of gain(x), in nats

Each step only takes variance away, so that no gain is negative.

Where this differs from Hernández-Lobato et al. (2014):
- Off-diagonal entries of the Hessian are left free. There they are fixed at the path's values: that
  is knowledge of the path beyond x*, and would be counted as if x* had told it.
- (P2) compares two values of f, so that noise is dealt with by the GP; there the noisy max y is
  compared with f(x*), as if its noise were new. Without noise the two agree.
- On faces and in discrete coordinates nothing holds of the derivatives, and nothing is conditioned.

The maximum of a path is found to a finite precision, so that g = 0 holds up to a standard deviation
of √δ = 1e-3 √a; a gradient that the data already know to be a little off cannot then tear the mean
away. The inequalities are softened by 1e-4 √a, which keeps covariances positive definite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optpair.acquisition.base import Acquisition, Context, Points, Rows, check_sets, interior
from optpair.acquisition.special import orthant
from optpair.acquisition.special.truncation import (
    moment_matched_gain,
    moment_matched_gain_and_slopes,
)
from optpair.cube.cube import Cube
from optpair.gp.conditioned import Conditioned, ConditionedQuery, Functionals, seen
from optpair.gp.linalg import inverse_factors
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Bool, Float, Int
from optpair.runtime.threads import engine_work

DELTA = 1e-6  # of the output scale: how exactly a gradient is zero
SOFTNESS = 1e-8  # of the output scale, the same for the inequalities


class Remaining(NamedTuple):
    """f at the queries, before and after conditioning on x*; t = f(x*) − f(x)."""

    variance: Float[np.ndarray, "M 1 q"]  # s
    known: Float[np.ndarray, "M P q"]  # what (P1) and (P2) take, but for round-off
    taken: Float[np.ndarray, "M P q"]  # the same, at most s
    mean: Float[np.ndarray, "M P q"]  # m_q
    given: Float[np.ndarray, "M P q"]  # k_q(x, x)
    gap: Float[np.ndarray, "M P q"]  # E t
    spread: Float[np.ndarray, "M P q"]  # var t
    slack: Float[np.ndarray, "M P q"]  # −cov(f(x), t)
    share: Float[np.ndarray, "M P q"]  # ρ² k_q(x, x), what knowing t would take


@dataclass(frozen=True, repr=False)
class PES(Acquisition):
    """α_PES (P6), in nats.

    With z = (g, −h, f(x*) − f(x_b)) at one x*, `conditioned` maps the covariances of f(x) with
    (f(x*), g, h, f(x_b)) to those with L⁻¹z and, in the last row, to k_q(x, x*). L⁻¹ is such that
    k_q(x, x) = s − |cov(f(x), L⁻¹z)|².
    """

    conditioned: Conditioned
    star_mean: Float[np.ndarray, "M P"]  # of f(x*), under q
    star_variance: Float[np.ndarray, "M P"]
    weights: Float[np.ndarray, "M P"]  # of the optima; one in all
    change: Float[np.ndarray, "M P"]  # of q in the last sweep of EP
    sweeps: Int[np.ndarray, "M P"]

    @property
    def posterior(self) -> Posterior:
        """The posterior, without the optima."""
        return self.conditioned.posterior

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.dimensions

    @property
    def converged(self) -> Bool[np.ndarray, "M P"]:
        """Whether EP converged for each x*: its last sweep changed almost nothing."""
        return self.change <= orthant.TOLERANCE

    @property
    def report(self) -> str:
        """How EP went, in a line."""
        done = self.converged
        return (
            f"EP converged for {done.mean():.1%} of {done.size} optima; largest last change "
            f"{np.max(self.change):.1e}, {np.max(self.sweeps)} sweeps"
        )

    def left(self, at: ConditionedQuery) -> Remaining:
        """What (P1) and (P2) leave of f(x), and of t."""
        floor = self.posterior.floor[:, None, None]
        variance = at.query.variance[:, None]
        z, cross = at.z[:, :, :-1], at.z[:, :, -1]
        known = np.einsum("mpiq,mpiq->mpq", z, z)
        taken = np.minimum(known, variance)
        mean = at.query.means + np.einsum("mpiq,mpi->mpq", at.z, self.conditioned.shift)
        given = np.maximum(variance - taken, floor)
        slack = cross - given
        spread = np.maximum(self.star_variance[..., None] - cross - slack, floor)
        share = np.minimum(slack * slack / spread, given)
        gap = self.star_mean[..., None] - mean
        return Remaining(variance, known, taken, mean, given, gap, spread, slack, share)

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """α(x), nats."""
        left = self.left(self.conditioned.at(X, self.posterior.at(X)))
        noise = self.posterior.noise[:, None, None]
        beta = left.gap / np.sqrt(left.spread)
        truncation = moment_matched_gain(beta, left.share, left.given - left.share + noise)  # (P4)
        conditioning = -0.5 * np.log1p(-left.taken / self._total(left.variance))
        gains = conditioning + truncation  # (P5)
        return np.asarray(np.einsum("mpq,mp->q", gains, self.weights))  # (P6)

    def _total(self, variance: Float[np.ndarray, "M 1 q"]) -> Float[np.ndarray, "M 1 q"]:
        """s + σ²."""
        floor = self.posterior.floor[:, None, None]
        return np.asarray(np.maximum(variance, floor) + self.posterior.noise[:, None, None] + floor)

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """α(x), and its derivatives."""
        at = self.conditioned.at(X, self.posterior.at(X))
        left = self.left(at)
        floor = self.posterior.floor[:, None, None]
        noise = self.posterior.noise[:, None, None]
        root = np.sqrt(left.spread)
        beta = left.gap / root
        truncation, by_beta, by_share, by_rest = moment_matched_gain_and_slopes(
            beta, left.share, left.given - left.share + noise
        )
        total = self._total(left.variance)
        conditioning = -0.5 * np.log1p(-left.taken / total)
        values = np.einsum("mpq,mp->q", conditioning + truncation, self.weights)

        by_share -= by_rest
        whole = left.share == left.given  # t says all of f(x)
        by_given = by_rest + np.where(whole, by_share, 0.0)
        by_share = np.where(whole, 0.0, by_share)
        by_slack = 2 * by_share * left.slack / left.spread
        by_spread = -(0.5 * by_beta * beta + by_share * left.share) / left.spread
        by_spread[left.spread <= floor] = 0.0
        by_given += by_spread - by_slack
        by_given[left.given <= floor] = 0.0
        by_taken = 0.5 / (total - left.taken) - by_given
        by_total = -0.5 * left.taken / (total * (total - left.taken))
        by_variance = by_given + np.where(left.variance > floor, by_total, 0.0)
        clipped = left.known > left.variance
        by_variance += np.where(clipped, by_taken, 0.0)
        by_taken = np.where(clipped, 0.0, by_taken)

        weights = self.weights[..., None]
        by_gap = weights * by_beta / root
        by_z = (2 * weights * by_taken)[:, :, None] * at.z
        by_z[:, :, -1] = weights * (by_slack - 2 * by_spread)
        by_z -= by_gap[:, :, None] * self.conditioned.shift[..., None]
        by_means = -by_gap
        if self.posterior.fantasies == 1:
            by_means = by_means.sum(1, keepdims=True)
        return values, at.pull(by_z, by_means, (weights * by_variance).sum(1)).sum(0)


def _rivals(posterior: Posterior) -> Float[np.ndarray, "M F D"]:
    """The datum with the highest posterior mean, under each set and fantasy."""
    return np.asarray(posterior.told[np.argmax(posterior.means_at_data(), -1)])


def _reading(free: Bool[np.ndarray, "M P D"]) -> Float[np.ndarray, "M P J J"]:
    """The map from (f(x*), g, h, f(x_b)) to (z, f(x*)); conditions that do not hold read zero."""
    D = free.shape[-1]
    read = np.zeros((2 * D + 2, 2 * D + 2))
    read[:D, 1 : D + 1] = np.eye(D)
    read[D : 2 * D, D + 1 : 2 * D + 1] = -np.eye(D)
    read[2 * D, [0, -1]] = 1.0, -1.0
    read[2 * D + 1, 0] = 1.0
    always = np.ones((*free.shape[:2], 2), dtype=bool)
    return np.asarray(read * np.concatenate([free, free, always], 2)[..., None])


def _of(posterior: Posterior, optima: Optima, free: Bool[np.ndarray, "M P D"]) -> PES:
    """All that does not depend on the query: one EP for every x*, all at once."""
    x = optima.star
    (M, P, D), k = x.shape, x.shape[2] + 1
    rival = np.broadcast_to(_rivals(posterior), x.shape)
    functionals = Functionals(((2, x), (0, rival)))
    found, read = seen(posterior, functionals), _reading(free)
    mean = np.matvec(read, found.mean)
    V = read @ found.covariance @ read.mT
    a = posterior.outputscale[:, None, None]

    # g = 0, or nothing where it does not hold.
    L_g = inverse_factors(V[:, :, :D, :D] + np.where(free, DELTA * a, a)[..., None] * np.eye(D))
    known = L_g @ V[:, :, :D, D:]
    shift_g = -np.matvec(L_g, mean[..., :D])
    mean = mean[..., D:] + np.einsum("mpji,mpj->mpi", known, shift_g)
    V = V[:, :, D:, D:] - known.mT @ known

    # w = (−h, f(x*) − f(x_b)) ≥ 0, by sites.
    active = np.concatenate([free, np.ones_like(free[..., :1])], -1)
    V_w = V[:, :, :k, :k] + np.where(active, SOFTNESS * a, a)[..., None] * np.eye(k)
    missing = np.maximum(SOFTNESS * a - np.diagonal(V_w, axis1=2, axis2=3), 0.0)
    V_w = V_w + missing[..., None] * np.eye(k)
    sites = orthant.propagate(mean[..., :k], V_w, active)
    root = np.sqrt(sites.precision)
    L_w = inverse_factors(np.eye(k) + root[..., :, None] * root[..., None, :] * V_w)
    R = L_w * root[..., None, :]
    target = np.divide(sites.shift, root, out=np.zeros_like(root), where=root > 0)
    shift_w = np.matvec(L_w, target - root * mean[..., :k])

    lean_w = np.matvec(R, V[:, :, :k, k])  # cov(f(x*), ·), given g = 0
    lean = np.concatenate([known[..., k], lean_w], -1)
    L = np.zeros((M, P, 2 * D + 2, 2 * D + 2))
    L[:, :, :D, :D] = L_g
    L[:, :, D:-1, :D] = -R @ known[..., :k].mT @ L_g
    L[:, :, D:-1, D:-1] = R
    L[:, :, -1, :-1] = -np.einsum("mpi,mpij->mpj", lean, L[:, :, :-1, :-1])
    L[:, :, -1, -1] = 1.0
    fold = L @ read
    shift = np.concatenate([shift_g, shift_w, np.zeros((M, P, 1))], -1)
    return PES(
        Conditioned(posterior, functionals, fold, fold @ found.whitened, shift),
        star_mean=mean[..., k] + np.sum(lean_w * shift_w, -1),
        star_variance=np.maximum(V[:, :, k, k] - np.sum(lean_w**2, -1), 0.0),
        weights=optima.weights,
        change=sites.change,
        sweeps=sites.sweeps,
    )


def build(context: Context) -> PES:
    """PES from what the engine has at hand."""
    optima = context.need_optima("Predictive Entropy Search")
    return _of(context.posterior, optima, context.flat(optima.star))


@engine_work
def pes(posterior: Posterior, optima: Optima, *, cube: Cube | None = None) -> PES:
    """Predictive Entropy Search as a function of points: `pes(posterior, optima)(X)` in nats.

    Of the optima only x* is used. On the legal points of `cube`, discrete columns have no
    derivative conditions. `.converged` (M, P) and `.report` say how EP went.
    """
    check_sets(posterior, optima.x)
    cube = Cube.box(posterior.dimensions) if cube is None else cube
    return _of(posterior, optima, interior(optima.star, cube))
