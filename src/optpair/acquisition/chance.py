"""The chance of being feasible, and improvements that count only as far as they are.

    (C1)  log Pr(feasible) = Σ_k log(Φ(u_k) − Φ(l_k)),    limits in units of √s_k around m_k

A product over constraints, for each set and fantasy by itself. `Improvement` is what constrained EI
and the hypervolume improvement share: the logarithm of a mean over sets and fantasies of something
about the objectives times this chance.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from optpair.acquisition.base import Acquisition, Points, Rows, bounded
from optpair.acquisition.special.intervals import log_between
from optpair.gp.posterior import Posterior, Query
from optpair.optima.base import Wanted
from optpair.runtime.shapes import Bool, Float

Each = Float[np.ndarray, "M F q"]


class OutcomeMoments(NamedTuple):
    """One outcome at q points: its moments, and where its variance is not round-off."""

    query: Query
    means: Each
    sd: Float[np.ndarray, "M 1 q"]
    free: Bool[np.ndarray, "M q"]


class Log(NamedTuple):
    """The logarithm of something about some outcomes, and derivatives by mean and deviation."""

    value: Each
    by: dict[int, tuple[Each, Each]]


class Improvement(Acquisition):
    """The mean over sets and fantasies of an improvement times the chance of being feasible."""

    model: tuple[Posterior, ...]
    wanted: Wanted
    log: bool

    @property
    def posterior(self) -> Posterior:
        """That of the first outcome."""
        return self.model[0]

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.model[0].dimensions

    @abstractmethod
    def improvement(self, seen: list[OutcomeMoments]) -> Log:
        """The logarithm of what is won in the objectives."""

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """The improvement, or its logarithm."""
        value = _log_mean(self._each(self._seen(X))[0])
        return value if self.log else np.exp(value)

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """The improvement, or its logarithm, and its derivatives."""
        seen = self._seen(X)
        each, parts = self._each(seen)
        value = _log_mean(each)
        share = np.exp(each - value) / (each.shape[0] * each.shape[1])
        slope = np.zeros(X.shape)
        for part in parts:
            for o, (by_mean, by_sd) in part.by.items():
                by_variance = (share * by_sd).sum(1) * seen[o].free * (0.5 / seen[o].sd[:, 0])
                by_means = share * by_mean
                if seen[o].means.shape[1] == 1:
                    by_means = by_means.sum(1, keepdims=True)
                slope += seen[o].query.pull(by_means, by_variance).sum(0)
        if self.log:
            return value, slope
        return np.exp(value), np.exp(value)[:, None] * slope

    def _seen(self, X: Points) -> list[OutcomeMoments]:
        found = []
        for posterior in self.model:
            query = posterior.at(X)
            s, free = bounded(posterior, query.variance)
            found.append(OutcomeMoments(query, query.means, np.sqrt(s)[:, None], free))
        return found

    def _each(self, seen: list[OutcomeMoments]) -> tuple[Each, list[Log]]:
        """The logarithm of each set and fantasy, and the parts it is the sum of."""
        parts = [self.improvement(seen)]
        parts += [chance(seen[o], o, self.wanted) for o in self.wanted.constraints]
        total = parts[0].value
        for part in parts[1:]:
            total = total + part.value
        return total, parts


def chance(seen: OutcomeMoments, o: int, wanted: Wanted) -> Log:
    """One term of (C1)."""
    low, high = ((end - seen.means) / seen.sd for end in (wanted.low[o], wanted.high[o]))
    value, by_low, by_high = log_between(low, high)
    stretched = np.zeros_like(value)
    for end, away, by_end in ((wanted.low[o], low, by_low), (wanted.high[o], high, by_high)):
        if np.isfinite(end):
            stretched += by_end * away
    return Log(value, {o: (-(by_low + by_high) / seen.sd, -stretched / seen.sd)})


def _log_mean(each: Each) -> Float[np.ndarray, " q"]:
    """The logarithm of the mean over sets and fantasies."""
    return np.asarray(logsumexp(each, axis=(0, 1)) - np.log(each.shape[0] * each.shape[1]))


def means_at(
    model: tuple[Posterior, ...], X: Float[np.ndarray, "n D"]
) -> list[Float[np.ndarray, "M F n"]]:
    """All outcomes' posterior means at the same points."""
    F = max(posterior.fantasies for posterior in model)
    shape = (model[0].sets, F, len(X))
    return [np.broadcast_to(posterior.moments(X)[0], shape) for posterior in model]


def met(means: list[Float[np.ndarray, "M F n"]], wanted: Wanted) -> Bool[np.ndarray, "M F n"]:
    """Where all posterior means are within their limits."""
    inside = [
        (means[o] >= wanted.low[o]) & (means[o] <= wanted.high[o]) for o in wanted.constraints
    ]
    return np.logical_and.reduce(inside) if inside else np.ones(means[0].shape, dtype=bool)


def observed(model: tuple[Posterior, ...], wanted: Wanted) -> Float[np.ndarray, "n D"]:
    """The points at which some objective was observed."""
    rows = np.concatenate([model[o].X for o in wanted.objectives])
    return np.unique(rows, axis=0) if len(wanted.objectives) > 1 else rows
