"""Joint Entropy Search: how much an evaluation would say about the optimal pair (x*, f*).

For one set and one pair, with s* = s(x*), m* = m(x*) and q(x) = cov(f(x), f(x*)):

    (M1)  m_p(x) = m(x) + q(x) (f* − m*) / (s* + δ)
    (M2)  s_p(x) = s(x) − q(x)² / (s* + δ)
    (M3)  β = (f* − m_p) / √s_p,   r = φ(β)/Φ(β),   1 − v(β) = r (β + r)
    (M4)  gain_p(x) = ½ log(s + σ²) − ½ log(s_p v + σ²), in two terms that cannot cancel
    (M5)  α(x) = mean over sets of the mean over that set's pairs of gain_p(x), in nats

v(β) is the variance of a standard normal truncated above at β. The first term of (M4), what knowing
f(x*) = f* takes from the variance at x, is exact. The second, what knowing f(x) ≤ f* takes, is
moment-matched (a lower bound) or, with `exact`, an integral.

δ keeps a pair at which the posterior is already certain from dividing by zero. It is relative to
the output scale: the smaller it is, the closer to a noiseless observation of the pair.

(M1) and (M2) are (K1) and (K2) of `optpair.gp.conditioned` with one functional, f(x*). `jes_peak`
knows more of a pair: as x* is where f is largest, f is flat there in every coordinate in which x*
is interior and continuous, and slopes are linear in f as well. With g the derivatives in units of
the length scale, z = (f(x*), g) is known to be (f*, 0). Without slopes it is `jes` itself: where x*
is in a corner, or all coordinates are discrete. What a look at the flanks of a peak says of where
its top is counts here, and does not in `jes`. A slope is softened by a standard deviation of
1e-3 √a: the maximum of a path is found to a finite precision, and a slope that the data already
know to be a little off cannot then tear the mean away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from optpair.acquisition.base import Acquisition, Context, Points, Rows, check_sets, interior
from optpair.acquisition.joint import JointJES, joint_jes
from optpair.acquisition.special.truncation import (
    exact_gain,
    exact_gain_and_slopes,
    moment_matched_gain,
    moment_matched_gain_and_slopes,
)
from optpair.cube.cube import Cube
from optpair.gp.conditioned import Conditioned, Functionals, condition_on
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima, Wanted
from optpair.runtime.shapes import Bool, Float
from optpair.runtime.threads import engine_work

DELTA = 1e-8  # of the output scale: how exactly f* is met,
FLAT = 1e-6  # and a slope is zero
RANKED = 2  # one pair in so many compares candidates


@dataclass(frozen=True, repr=False)
class JES(Acquisition):
    """α_JES (M5), in nats."""

    conditioned: Conditioned
    f: Float[np.ndarray, "M P"]
    weights: Float[np.ndarray, "M P"]  # of the pairs; one in all
    exact: bool = False

    @property
    def posterior(self) -> Posterior:
        """The posterior, without the pairs."""
        return self.conditioned.posterior

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.dimensions

    @property
    def rough(self) -> JES:
        """With some of the pairs of each set: what they say differs little from point to point."""
        few = -(-self.f.shape[1] // RANKED)
        share = self.weights[:, :few] / np.sum(self.weights[:, :few])
        first = self.conditioned.first(few)
        return replace(self, conditioned=first, f=self.f[:, :few], weights=share)

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """α(x), nats."""
        query = self.posterior.at(X)
        at = self.conditioned.at(X, query)
        variance = query.variance[:, None]
        taken = np.minimum(np.einsum("mpiq,mpiq->mpq", at.z, at.z), variance)  # (M2), (K2)
        above = self._above(query.means, at.z)
        given, total, noise = self._variances(variance, taken)
        beta = above / np.sqrt(given)  # (M3)
        if self.exact:
            truncation = exact_gain(beta, given / (given + noise))
        else:
            truncation = moment_matched_gain(beta, given, noise)
        conditioning = -0.5 * np.log1p(-taken / total)
        return np.einsum("mpq,mp->q", conditioning + truncation, self.weights)  # (M4), (M5)

    def _above(self, means: np.ndarray, z: np.ndarray) -> Float[np.ndarray, "M P q"]:
        shift = self.conditioned.shift
        return self.f[..., None] - (means + np.einsum("mpiq,mpi->mpq", z, shift))  # (M1), (K1)

    def _variances(
        self, variance: np.ndarray, taken: np.ndarray, noise: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """s_p, s + σ² and σ²."""
        floor = self.posterior.floor[:, None, None]
        noise = self.posterior.noise[:, None, None] if noise is None else noise
        return (
            np.maximum(variance - taken, floor),
            np.maximum(variance, floor) + (noise + floor),
            noise,
        )

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """α(x), and its derivatives."""
        query = self.posterior.at(X)
        at = self.conditioned.at(X, query)
        variance = query.variance[:, None]
        known = np.einsum("mpiq,mpiq->mpq", at.z, at.z)
        taken = np.minimum(known, variance)
        above = self._above(query.means, at.z)
        given, total, noise = self._variances(variance, taken)
        root = np.sqrt(given)
        beta = above / root
        if self.exact:
            seen = given + noise
            truncation, by_beta, by_share = exact_gain_and_slopes(beta, given / seen)
            by_given = by_share * noise / seen**2
        else:
            truncation, by_beta, by_given, _ = moment_matched_gain_and_slopes(beta, given, noise)
        left = total - taken
        conditioning = -0.5 * np.log1p(-taken / total)
        values = np.einsum("mpq,mp->q", conditioning + truncation, self.weights)

        weights = self.weights[..., None]
        by_above = weights * by_beta / root
        by_given = (by_given - 0.5 * by_beta * beta / given) * (variance - taken == given)
        by_taken = weights * (0.5 / left - by_given)
        by_variance = weights * (by_given - 0.5 * taken / (total * left))
        clipped = known > variance
        by_variance += np.where(clipped, by_taken, 0.0)
        by_taken = np.where(clipped, 0.0, by_taken)
        by_z = 2 * by_taken[:, :, None] * at.z
        by_z -= by_above[:, :, None] * self.conditioned.shift[..., None]
        by_means = -by_above
        if query.posterior.fantasies == 1:
            by_means = by_means.sum(1, keepdims=True)
        return values, at.pull(by_z, by_means, by_variance.sum(1)).sum(0)


def build(context: Context, *, exact: bool = False) -> JES | JointJES:
    """JES from what the engine has at hand."""
    optima, wanted = context.need_optima("Joint Entropy Search"), context.wanted
    if wanted.goal != "best":
        return joint_jes(context.model, optima, wanted, context.cube, peak=False)
    return _jes(context.posterior, optima, DELTA, exact)


def build_peak(context: Context) -> JES | JointJES:
    """JES with flat optima from what the engine has at hand."""
    optima, wanted = context.need_optima("Joint Entropy Search"), context.wanted
    if wanted.goal != "best":
        flat = context.flat(optima.star)
        return joint_jes(context.model, optima, wanted, context.cube, peak=True, where=flat)
    return _peak(context.posterior, optima, context.cube, context.flat(optima.star))


def _jes(posterior: Posterior, optima: Optima, delta: float, exact: bool) -> JES:
    known = np.ones((*optima.best.shape, 1), dtype=bool)
    softness = np.array([delta])
    functionals = Functionals(((0, optima.star),))
    wanted = optima.best[..., None]
    conditioned = condition_on(posterior, functionals, wanted, known, softness)
    return JES(conditioned, optima.best, optima.weights, exact)


def _peak(
    posterior: Posterior, optima: Optima, cube: Cube, where: Bool[np.ndarray, "M P D"]
) -> JES:
    along = tuple(np.flatnonzero(cube.continuous).tolist())
    flat = where[..., list(along)]
    known = np.concatenate([np.ones((*flat.shape[:2], 1), dtype=bool), flat], -1)
    softness = np.array([DELTA] + [FLAT] * len(along))
    functionals = Functionals(((1, optima.star),), along)
    wanted = np.concatenate([optima.best[..., None], np.zeros(flat.shape)], -1)
    conditioned = condition_on(posterior, functionals, wanted, known, softness)
    return JES(conditioned, optima.best, optima.weights)


@overload
def jes(
    model: Posterior,
    optima: Optima,
    wanted: None = None,
    *,
    delta: float = DELTA,
    exact: bool = False,
) -> JES: ...


@overload
def jes(model: tuple[Posterior, ...], optima: Optima, wanted: Wanted) -> JointJES: ...


@engine_work
def jes(
    model: Posterior | tuple[Posterior, ...],
    optima: Optima,
    wanted: Wanted | None = None,
    *,
    delta: float = DELTA,
    exact: bool = False,
) -> JES | JointJES:
    """Joint Entropy Search as a function of points: `jes(posterior, optima)(X)` in nats.

    Args:
        model: the posterior of the objective or, with `wanted`, of each outcome.
        optima: optima of sample paths.
        wanted: what is wanted of each outcome, where there are several.
        delta: softens the conditioning on a pair, relative to the output scale; one outcome only.
        exact: compute the truncation term by quadrature instead of moment matching, at several
            times the cost; one outcome only.
    """
    if wanted is not None or isinstance(model, tuple):
        several = _several(model, optima, wanted)
        return joint_jes(*several, Cube.box(several[0][0].dimensions), peak=False)
    check_sets(model, optima.f)
    return _jes(model, optima, delta, exact)


@overload
def jes_peak(
    model: Posterior, optima: Optima, wanted: None = None, *, cube: Cube | None = None
) -> JES: ...


@overload
def jes_peak(
    model: tuple[Posterior, ...], optima: Optima, wanted: Wanted, *, cube: Cube | None = None
) -> JointJES: ...


@engine_work
def jes_peak(
    model: Posterior | tuple[Posterior, ...],
    optima: Optima,
    wanted: Wanted | None = None,
    *,
    cube: Cube | None = None,
) -> JES | JointJES:
    """JES with flat optima as a function of points: `jes_peak(posterior, optima)(X)` in nats.

    On the legal points of `cube`, discrete columns have no slope. `model` and `wanted` as in `jes`.
    """
    if wanted is not None or isinstance(model, tuple):
        several = _several(model, optima, wanted)
        whole = Cube.box(several[0][0].dimensions) if cube is None else cube
        return joint_jes(*several, whole, peak=True)
    check_sets(model, optima.f)
    cube = Cube.box(model.dimensions) if cube is None else cube
    return _peak(model, optima, cube, interior(optima.star, cube))


def _several(
    model: Posterior | tuple[Posterior, ...], optima: Optima, wanted: Wanted | None
) -> tuple[tuple[Posterior, ...], Optima, Wanted]:
    """Posteriors, optima and wishes that fit together, or an error that says what does not."""
    posteriors = model if isinstance(model, tuple) else (model,)
    if wanted is None:
        raise ValueError(
            f"{len(posteriors)} posteriors need `wanted`, which says what is wanted of each outcome"
        )
    for posterior in posteriors:
        check_sets(posterior, optima.f)
    if not len(posteriors) == len(wanted.low) == optima.f.shape[3]:
        raise ValueError(
            f"model, wanted and optima must be of the same outcomes, not of {len(posteriors)}, "
            f"{len(wanted.low)} and {optima.f.shape[3]}"
        )
    return posteriors, optima, wanted
