"""Joint Entropy Search of several outcomes: constraints, and Pareto sets.

How much an evaluation would say about an optimum of joint paths: the best feasible point with its
outcomes, or a Pareto set. Outcomes o are independent; each is conditioned on by itself, by (K1) and
(K2) with the values at the optimum's points, which leaves m_{o,p} and s_{o,p}. Then

    (N0)  gain_p(x) = Σ_o ½ log((s_o + σ_o²)/(s_{o,p} + σ_o²)) + the gain of ruling A out, (N3b)

with A the region that the optimum forbids to the outcomes at x: see `special.boxes`. As in (M5),
gains are averaged over a set's optima, and over sets. Of a Pareto set, the last term is never taken
to be more than y says of the outcomes at all, Σ_o ½ log(1 + s_{o,p}/σ_o²): a few points leave gaps
that their path does reach, and A seems certain there.

What is conditioned on: an objective's value at the optimum, or at the points of the Pareto set; and
a constraint's where it is active, as that value, the limit, is part of what makes the point the
optimum. A value well within the limits says nothing about the optimum. Where a path has no feasible
point, nothing is conditioned on, and A is what is feasible. `peak` conditions on slopes of zero as
`jes_peak` does, where an optimum has no active constraint: elsewhere the objective is not flat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optpair.acquisition.base import Acquisition, Points, Rows, interior
from optpair.acquisition.special.boxes import Forbidden
from optpair.acquisition.special.cells import cells
from optpair.acquisition.special.factors import Each
from optpair.cube.cube import Cube
from optpair.gp.conditioned import Conditioned, ConditionedQuery, Functionals, condition_on
from optpair.gp.posterior import Posterior, Query
from optpair.optima.base import Optima, Wanted
from optpair.runtime.shapes import Bool, Float

DELTA = 1e-8  # of the output scale: how exactly a value is met,
FLAT = 1e-6  # and a slope is zero
ACTIVE = 1e-3  # of √a: a constraint so close to its limit is active
TINY = float(np.finfo(np.float64).tiny)
RANKED = 4  # one optimum in so many compares candidates


@dataclass(frozen=True)
class Look:
    """One outcome at q points, given each optimum."""

    query: Query
    at: ConditionedQuery | None
    known: Float[np.ndarray, "M P q"]  # what the optimum would take from the variance
    variance: Float[np.ndarray, "M 1 q"]
    mean: Each  # m_p
    given: Each  # s_p
    total: Float[np.ndarray, "M 1 q"]  # s + σ²
    noise: Each

    @property
    def taken(self) -> Each:
        """What it does take: no more than there is."""
        return np.minimum(self.known, self.variance)

    def conditioning(self) -> Each:
        """½ log((s + σ²)/(s_p + σ²))."""
        return np.asarray(-0.5 * np.log1p(-self.taken / self.total))

    def most(self) -> Each:
        """½ log(1 + s_p/σ²): what y says of the outcome, given the optimum."""
        return np.asarray(0.5 * np.log1p(self.given / np.maximum(self.noise, TINY)))

    def pull(
        self, by_mean: Each, by_given: Each, by_noise: Each, weights: Float[np.ndarray, "M P 1"]
    ) -> Float[np.ndarray, "q D"]:
        """From derivatives by m_p and s_p, and those of the conditioning, to those by x.

        The noise is the same everywhere.
        """
        taken, floor = self.taken, self.variance - self.taken == self.given
        left = self.total - taken
        by_given = by_given * floor
        by_taken = weights * (0.5 / left) - by_given
        by_variance = by_given - weights * (0.5 * taken / (self.total * left))
        clipped = self.known > self.variance
        by_variance = by_variance + np.where(clipped, by_taken, 0.0)
        by_taken = np.where(clipped, 0.0, by_taken)
        by_means = by_mean
        if self.query.posterior.fantasies == 1:
            by_means = by_means.sum(1, keepdims=True)
        if self.at is None:
            return self.query.pull(by_means, by_variance.sum(1)).sum(0)
        by_z = 2 * by_taken[:, :, None] * self.at.z
        by_z += by_mean[:, :, None] * self.at.conditioned.shift[..., None]
        return self.at.pull(by_z, by_means, by_variance.sum(1)).sum(0)


def look(outcome: Conditioned | Posterior, X: Points, optima: int) -> Look:
    """One outcome at points, conditioned on each of so many optima, or on none."""
    posterior = outcome.posterior if isinstance(outcome, Conditioned) else outcome
    query = posterior.at(X)
    variance, means = query.variance[:, None], query.means
    shape = (posterior.sets, optima, len(X))
    at = outcome.at(X, query) if isinstance(outcome, Conditioned) else None
    known, mean = np.zeros(shape), np.broadcast_to(means, shape)
    if at is not None:
        known = np.einsum("mpiq,mpiq->mpq", at.z, at.z)  # (K2)
        mean = means + np.einsum("mpiq,mpi->mpq", at.z, at.conditioned.shift)  # (K1)
    floor = posterior.floor[:, None, None]
    noise = np.broadcast_to(posterior.noise[:, None, None], shape)
    given = np.maximum(variance - np.minimum(known, variance), floor)
    total = np.maximum(variance, floor) + (noise[:, :1] + floor)
    return Look(query, at, known, variance, mean, given, total, noise)


@dataclass(frozen=True, repr=False)
class JointJES(Acquisition):
    """The gain (N0) about optima of joint paths, in nats."""

    outcomes: tuple[Conditioned | Posterior, ...]
    forbidden: Forbidden
    weights: Float[np.ndarray, "M P"]  # of the optima; one in all
    noisy: bool = True
    """Whether noise counts in what ruling A out tells: (N3b), or (N2)."""
    bounded: bool = False
    """Whether that is at most what y says of the outcomes."""

    @property
    def posterior(self) -> Posterior:
        """That of the first outcome."""
        first = self.outcomes[0]
        return first.posterior if isinstance(first, Conditioned) else first

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.dimensions

    @property
    def rough(self) -> JointJES:
        """With some of the optima of each set."""
        few = -(-self.weights.shape[1] // RANKED)
        share = self.weights[:, :few] / np.sum(self.weights[:, :few])
        return replace(
            self,
            outcomes=tuple(_first(outcome, few) for outcome in self.outcomes),
            forbidden=self.forbidden.first(few),
            weights=share,
        )

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """α(x), nats."""
        looks = self._looks(X)
        gain = self.forbidden.gain(*_moments(looks), noisy=self.noisy)
        if self.bounded:
            gain = np.minimum(gain, _most(looks))
        for own in looks:
            if own.at is not None:
                gain = gain + own.conditioning()
        return np.einsum("mpq,mp->q", gain, self.weights)  # (N0)

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """α(x), and its derivatives."""
        looks, weights = self._looks(X), self.weights[..., None]
        gain, *slopes = self.forbidden.gain_and_slopes(*_moments(looks), noisy=self.noisy)
        most = _most(looks) if self.bounded else np.full(gain.shape, np.inf)
        over, gain = gain > most, np.minimum(gain, most)
        slope = np.zeros(X.shape)
        for own, by_mean, by_s, by_n in zip(looks, *slopes, strict=True):
            least = np.maximum(own.noise, TINY)
            by_m = np.where(over, 0.0, by_mean)
            by_v = np.where(over, 0.5 / (own.given + own.noise), by_s)
            by_n = np.where(over, -0.5 * own.given / (least * (own.given + least)), by_n)
            slope += own.pull(weights * by_m, weights * by_v, weights * by_n, weights)
            if own.at is not None:
                gain = gain + own.conditioning()
        return np.einsum("mpq,mp->q", gain, self.weights), slope

    def _looks(self, X: Points) -> list[Look]:
        return [look(outcome, X, self.weights.shape[1]) for outcome in self.outcomes]


def _moments(looks: list[Look]) -> tuple[tuple[Each, ...], tuple[Each, ...], tuple[Each, ...]]:
    """m_p, s_p and σ² of all outcomes."""
    parts = zip(*((own.mean, own.given, own.noise) for own in looks), strict=True)
    means, given, noise = (tuple(part) for part in parts)
    return means, given, noise


def _most(looks: list[Look]) -> Each:
    """What y says of all outcomes, given the optimum."""
    return np.asarray(np.sum(np.broadcast_arrays(*(own.most() for own in looks)), axis=0))


def _first(outcome: Conditioned | Posterior, count: int) -> Conditioned | Posterior:
    if isinstance(outcome, Conditioned):
        return outcome.first(count)
    return outcome.some_fantasies(count) if outcome.fantasies > 1 else outcome


def forbidden(optima: Optima, wanted: Wanted) -> Forbidden:
    """What each optimum rules out."""
    columns = list(wanted.objectives)
    boxes = cells(optima.f[..., columns], optima.mask)
    limits = tuple((o, float(wanted.low[o]), float(wanted.high[o])) for o in wanted.constraints)
    return Forbidden(wanted.objectives, boxes, limits)


def joint_jes(
    model: tuple[Posterior, ...],
    optima: Optima,
    wanted: Wanted,
    cube: Cube,
    *,
    peak: bool,
    where: Bool[np.ndarray, "M P D"] | None = None,
) -> JointJES:
    """JES of several outcomes; `peak` also knows slopes of zero, in the interior or `where`."""
    level = interior(optima.star, cube) if where is None else where
    active = near_limits(model, optima, wanted)
    outcomes = []
    for o, posterior in enumerate(model):
        if o in wanted.objectives:
            flat = peak and len(wanted.objectives) == 1
            free = level & (optima.mask & ~active.any(-1))[:, :, :1] if flat else None
            outcomes.append(_conditioned(posterior, optima, o, optima.mask, cube, free))
        else:
            outcomes.append(_conditioned(posterior, optima, o, active[..., o], cube, None))
    front = len(wanted.objectives) > 1
    return JointJES(tuple(outcomes), forbidden(optima, wanted), optima.weights, bounded=front)


def near_limits(
    model: tuple[Posterior, ...], optima: Optima, wanted: Wanted
) -> Bool[np.ndarray, "M P R O"]:
    """The constraints that are active at each point that is there."""
    size = np.sqrt(np.stack([posterior.outputscale for posterior in model], 1))[:, None, None]
    near = np.abs(optima.f - wanted.low) < ACTIVE * size
    near |= np.abs(optima.f - wanted.high) < ACTIVE * size
    return np.asarray(near & optima.mask[..., None])


def _conditioned(
    posterior: Posterior,
    optima: Optima,
    o: int,
    known: Bool[np.ndarray, "M P R"],
    cube: Cube,
    flat: Bool[np.ndarray, "M P D"] | None,
) -> Conditioned | Posterior:
    """An outcome that knows its values at some points of each optimum, and slopes of zero."""
    if not known.any():
        return posterior
    R = optima.x.shape[2]
    if flat is None:
        functionals = Functionals(tuple((0, optima.x[:, :, r]) for r in range(R)))
        softness = np.full(R, DELTA)
        return condition_on(posterior, functionals, optima.f[..., o], known, softness)
    along = tuple(np.flatnonzero(cube.continuous).tolist())
    level = flat[..., list(along)]
    functionals = Functionals(((1, optima.star),), along)
    wanted = np.concatenate([optima.f[:, :, 0, o][..., None], np.zeros(level.shape)], -1)
    softness = np.array([DELTA] + [FLAT] * len(along))
    return condition_on(
        posterior, functionals, wanted, np.concatenate([known, level], -1), softness
    )
