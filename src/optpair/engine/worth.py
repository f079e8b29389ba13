"""Worth: the value of a point by the averaged means, under constraints that probably hold.

The chance that a point is feasible is a product over constraints k, each averaged over its own
hyperparameter sets: outcomes are independent given the data.

    (W1)  chance(x) = Π_k mean over sets of [Φ((high_k − m_k)/r_k) − Φ((low_k − m_k)/r_k)],
          r_k = c_k √s_k

c_k is the factor by which the intervals of an answer are widened, (L2); for suggestions it is 1.

One objective is worth its mean. Of several objectives o, a compromise with weights w ≥ 0 is worth

    (W2)  worth(x) = min_o w_o (m_o − ideal_o) + 0.01 Σ_o w_o (m_o − ideal_o)

so that every point of the front is the best for some weights, whatever the shape of the front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtri, ndtri_exp

from optpair.acquisition.base import Acquisition, Points, Rows
from optpair.acquisition.mean import Mean, mean
from optpair.acquisition.special.intervals import log_between
from optpair.acquisition.special.normal import hazard
from optpair.engine.model import Model
from optpair.gp.posterior import Posterior
from optpair.optima.base import Wanted
from optpair.runtime.shapes import Bool, Float

SURE = 0.95
"""The chance of being feasible that an answer must have."""
AIM = 0.96  # the chance that a search aims at, so that it ends above `SURE`
STEEP = 10.0  # standardised units per standard deviation by which a chance falls short
SUM = 0.01  # the share of the sum in a compromise
FURTHEST = 1e6  # standard deviations: squares of larger ones lose their digits
IMPOSSIBLE = -1e30  # the logarithm of a chance of zero
HOPELESS = 1e-3
"""The chance below which points are told apart by how far they are beyond the limits."""
ALIKE = 1e-3  # standardised units beyond the limits that make no difference


class _Logs(NamedTuple):
    """The log chance of one constraint under each set and fantasy, and what it depends on."""

    value: Float[np.ndarray, "M F q"]
    by_low: Float[np.ndarray, "M F q"]
    by_high: Float[np.ndarray, "M F q"]
    low: Float[np.ndarray, "M F q"]  # in standard deviations; 0 without a limit
    high: Float[np.ndarray, "M F q"]
    root: Float[np.ndarray, "M 1 q"]  # c √s


@dataclass(frozen=True, eq=False)
class Feasibility:
    """The chance that the noiseless values at a point are within all limits: a `Weight`."""

    posteriors: tuple[Posterior, ...]
    low: Float[np.ndarray, " K"]
    high: Float[np.ndarray, " K"]
    stretch: Float[np.ndarray, " K"]

    @classmethod
    def of(cls, model: Model, *, wider: bool) -> Feasibility:
        """For a model's constraints; `wider` takes the sets of an answer, and (L2)."""
        posteriors = tuple(
            o.wider if wider and o.wider is not None else o.posterior for o in model.outcomes
        )
        plain = cls.within(model.wanted, posteriors)
        if not wider:
            return plain
        columns = model.wanted.constraints
        return replace(plain, stretch=np.array([model.outcomes[c].stretch for c in columns]))

    @classmethod
    def within(cls, wanted: Wanted, posteriors: tuple[Posterior, ...]) -> Feasibility:
        """For given limits, with the posterior of every outcome."""
        columns = list(wanted.constraints)
        own = tuple(posteriors[column] for column in columns)
        return cls(own, wanted.low[columns], wanted.high[columns], np.ones(len(columns)))

    def chance(self, X: Points) -> Float[np.ndarray, " q"]:
        """P, the probability at some points."""
        return np.asarray(np.exp(self.log_weight(X)))

    def log_weight(self, X: Points) -> Float[np.ndarray, " q"]:
        """log P, a block of points at a time."""
        total = np.zeros(len(X))
        for posterior, *limits in self._each():
            means, variance = posterior.moments(X)
            logs = self._logs(posterior, means, variance, *limits)
            total += _log_mean(logs.value)  # (W1)
        return np.clip(total, IMPOSSIBLE, 0.0)

    def log_slopes(self, X: Points) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """log P, and its derivatives."""
        total, slopes = np.zeros(len(X)), np.zeros(X.shape)
        for posterior, *limits in self._each():
            query = posterior.at(X)
            seen = self._logs(posterior, query.means, query.variance, *limits)
            of_all = _log_mean(seen.value)
            share = np.exp(seen.value - of_all) / (seen.value.shape[0] * seen.value.shape[1])
            by_means = -share * (seen.by_low + seen.by_high) / seen.root
            stretched = seen.low * seen.by_low + seen.high * seen.by_high
            by_variance = -share * stretched * limits[-1] ** 2 / (2 * seen.root**2)
            total += of_all
            slopes += query.pull(by_means, by_variance.sum(1)).sum(0)
        return np.clip(total, IMPOSSIBLE, 0.0), slopes

    def _each(self) -> Iterator[tuple[Posterior, float, float, float]]:
        """The posterior, the limits and the stretch of each constraint."""
        return zip(self.posteriors, self.low, self.high, self.stretch, strict=True)

    def _logs(
        self,
        posterior: Posterior,
        means: Float[np.ndarray, "M F q"],
        variance: Float[np.ndarray, "M q"],
        low: float,
        high: float,
        stretch: float,
    ) -> _Logs:
        """The log chance under each set and fantasy."""
        root = stretch * np.sqrt(np.maximum(variance, posterior.floor[:, None]))[:, None]
        ends = [
            np.clip((end - means) / root, -FURTHEST, FURTHEST)
            if np.isfinite(end)
            else np.full(means.shape, end)
            for end in (low, high)
        ]
        value, by_low, by_high = log_between(*ends)
        value = np.maximum(np.nan_to_num(value, nan=IMPOSSIBLE), IMPOSSIBLE)
        below, above = (np.where(np.isfinite(end), end, 0.0) for end in ends)
        return _Logs(value, by_low, by_high, below, above, root)


def _log_mean(logs: Float[np.ndarray, "M F q"]) -> Float[np.ndarray, " q"]:
    """log of the mean over sets and fantasies."""
    return np.asarray(logsumexp(logs, axis=(0, 1)) - np.log(logs.shape[0] * logs.shape[1]))


@dataclass(frozen=True, repr=False)
class Compromise(Acquisition):
    """The worth of compromises; row i of a climb has the i-th weights, or all share the same."""

    means: tuple[Mean, ...]
    weights: Float[np.ndarray, "W O"]
    ideal: Float[np.ndarray, " O"]

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.means[0].dimensions

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """The worth."""
        return self.of(np.stack([own.values(X) for own in self.means], 1), rows)

    def of(self, means: Float[np.ndarray, "q O"], rows: Rows = None) -> Float[np.ndarray, " q"]:
        """The worth where the objectives have these means."""
        short = self._weights(len(means), rows) * (means - self.ideal)
        return np.asarray(short.min(1) + SUM * short.sum(1))  # (W2)

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """The worth, and its derivatives: those of the objective that is furthest behind."""
        each = [own.slopes(X) for own in self.means]
        means, by_x = np.stack([v for v, _ in each], 1), np.stack([s for _, s in each], 1)
        weights = self._weights(len(X), rows)
        short = weights * (means - self.ideal)
        share = SUM * weights
        behind = np.arange(len(X)), short.argmin(1)
        share[behind] += weights[behind]
        return np.asarray(short.min(1) + SUM * short.sum(1)), np.einsum("qo,qod->qd", share, by_x)

    def _weights(self, count: int, rows: Rows) -> Float[np.ndarray, "q O"]:
        if len(self.weights) == 1 or rows is None:
            return np.repeat(self.weights[:1], count, axis=0)
        return self.weights[rows]


@dataclass(frozen=True, repr=False)
class Penalised(Acquisition):
    """A worth, less a penalty if the chance of being feasible is below `AIM`.

    Φ⁻¹(chance) says by how many standard deviations a point is feasible; each one that is missing
    from Φ⁻¹(AIM) costs `STEEP`.
    """

    worth: Acquisition
    feasibility: Feasibility

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.worth.dimensions

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """The worth under constraints."""
        return self.worth.values(X, rows) - penalty(self.feasibility.log_weight(X))

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """The worth under constraints, and its derivatives."""
        values, slopes = self.worth.slopes(X, rows)
        logs, by_x = self.feasibility.log_slopes(X)
        z = _deviations(logs)
        aim = ndtri(AIM)
        by_log = STEEP / hazard(np.minimum(z, aim)) * (z < aim)  # dz / d log Φ(z) = Φ/φ
        return values - penalty(logs), slopes + by_log[:, None] * by_x


def _deviations(log_chance: Float[np.ndarray, " q"]) -> Float[np.ndarray, " q"]:
    """Φ⁻¹ of a chance, from its logarithm."""
    return np.asarray(ndtri_exp(np.minimum(log_chance, 0.0)))


def penalty(log_chance: Float[np.ndarray, " q"]) -> Float[np.ndarray, " q"]:
    """The penalty for a chance that is too small."""
    return STEEP * np.maximum(ndtri(AIM) - _deviations(log_chance), 0.0)


def plain(model: Model) -> Acquisition:
    """The mean of the only objective."""
    return mean(model.objective.posterior)


def compromise(
    model: Model,
    weights: Float[np.ndarray, "W O"],
    ideal: Float[np.ndarray, " O"] | None = None,
) -> Compromise:
    """Compromises between the objectives, relative to `ideal` or the best means at the data."""
    posteriors = [model.outcomes[column].posterior for column in model.wanted.objectives]
    if ideal is None:
        means = [posterior.means_at_data().mean((0, 1)) for posterior in posteriors]
        ideal = np.array([np.max(own, initial=0.0) for own in means])
    return Compromise(tuple(mean(p) for p in posteriors), weights, ideal)


def under_constraints(worth: Acquisition, model: Model, *, wider: bool) -> Acquisition:
    """The same worth, less the penalty if there are constraints."""
    if not model.wanted.constraints:
        return worth
    return Penalised(worth, Feasibility.of(model, wider=wider))


def rank(
    worth: Float[np.ndarray, " q"],
    chance: Float[np.ndarray, " q"] | None,
    met: Bool[np.ndarray, " q"] | None = None,
    beyond: Float[np.ndarray, " q"] | None = None,
) -> Float[np.ndarray, " q"]:
    """What recommendations are ranked by: the first of these rules that some point fulfils.

    1. The best worth among points whose chance of being feasible is at least `SURE`.
    2. The largest chance among tried points whose values were within all limits (`met`).
    3. The best worth among points that are predicted to come closest to the limits: `beyond` is how
       far they are beyond, where that is known (`hopeless`).
    4. The largest chance.
    """
    if chance is None:
        return worth
    sure = chance >= SURE
    if sure.any():
        return np.where(sure, worth, -np.inf)
    if met is not None and met.any():
        return np.where(met, chance, -np.inf)
    if beyond is None:
        return chance
    return np.where(beyond <= beyond.min() + ALIKE, worth, -np.inf)


def non_dominated(values: Float[np.ndarray, "q O"]) -> Bool[np.ndarray, " q"]:
    """The rows that no other row dominates (at least as good in all columns, better in one).

    Of equal rows, the first stays.
    """
    order = np.lexsort(-values.T[::-1])
    keep, front = np.zeros(len(values), dtype=bool), np.empty((0, values.shape[1]))
    for row in order:
        if not np.any(np.all(front >= values[row], axis=1)):
            keep[row] = True
            front = np.concatenate([front, values[row][None]])
    return keep


def unwanted(wanted: Wanted, Y: Float[np.ndarray, "t O"]) -> Float[np.ndarray, " t"]:
    """How far values are beyond their limits in total; missing values are infinitely far."""
    out = np.zeros(len(Y))
    for column in wanted.constraints:
        low, high = wanted.low[column], wanted.high[column]
        beyond = np.maximum(np.maximum(low - Y[:, column], Y[:, column] - high), 0.0)
        out += np.where(np.isnan(beyond), np.inf, beyond)
    return out


def hopeless(
    model: Model, X: Points, chance: Float[np.ndarray, " q"] | None
) -> Float[np.ndarray, " q"] | None:
    """How far predicted values are beyond the limits, if no point has a chance to speak of."""
    if chance is None or chance.max() >= HOPELESS:
        return None
    means = [outcome.moments(X)[0].mean(0) for outcome in model.outcomes]
    return unwanted(model.wanted, np.stack(means, 1))
