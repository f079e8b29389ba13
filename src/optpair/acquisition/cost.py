"""Costs: what a query is expected to cost, as a weight of an acquisition function.

    (N6)  α(x) / E[cost(x)],   E[cost] = c(x) exp(m(x) + s(x)/2)

c is what looks at a fidelity are taken to cost beside one at the target, 1 without fidelities; m
and s are of a GP on the logarithm of what told trials cost beyond c, where that differs by more
than a tenth. A cost in other units is the same weight: it is relative to the average of m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.acquisition.base import Points
from optpair.gp.inference.mode import fit_mode
from optpair.gp.kernels import Matern52
from optpair.gp.likelihood import Sample
from optpair.gp.posterior import Posterior, fit
from optpair.gp.priors import Prior
from optpair.gp.process import Process
from optpair.problem.parameters import Price
from optpair.runtime.shapes import Float

ALIKE = np.log(1.1)  # of a logarithm: costs that differ by less are taken to be the same
FEWEST = 3  # told costs, below which nothing is learnt from them


@dataclass(frozen=True)
class Cost:
    """1 / E[cost(x)] (N6), relative to an average query at the target."""

    prices: tuple[Price, ...]
    scale: float = 1.0
    """The standard deviation of the logarithms that the model has standardised."""
    told: Posterior | None = None

    def log_weight(self, X: Points) -> Float[np.ndarray, " q"]:
        """−log E[cost]."""
        found = -np.sum([price.log_cost(X)[0] for price in self.prices], axis=0) + np.zeros(len(X))
        if self.told is None:
            return found
        means, variance = self.told.moments(X)
        return np.asarray(found - self.scale * means[0, 0] - self.scale**2 * variance[0] / 2)

    def log_slopes(self, X: Points) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """−log E[cost], and its derivatives."""
        slopes = np.zeros(X.shape)
        for price in self.prices:
            slopes[:, price.column] -= price.log_cost(X)[1]
        if self.told is None:
            return self.log_weight(X), slopes
        query = self.told.at(X)
        by_means = np.full((1, 1, len(X)), -self.scale)
        by_variance = np.where(query.variance > 0, -(self.scale**2) / 2, 0.0)
        moved = query.pull(by_means, by_variance)
        return self.log_weight(X), slopes + moved[0]


def fit_cost(
    process: Process,
    X: Float[np.ndarray, "n D"],
    cost: Float[np.ndarray, " n"],
    prices: tuple[Price, ...],
    most: int,
) -> Cost | None:
    """What queries cost, from what told trials did, NaN where nobody said; None if all the same.

    Of the objective's process only the columns and the prior of the length scales matter. Of more
    than `most` rows every k-th counts.
    """
    assumed = Cost(prices) if prices else None
    known = np.flatnonzero(~np.isnan(cost))
    known = known[:: max(-(-len(known) // most), 1)]
    if len(known) < FEWEST:
        return assumed
    X = X[known]
    beyond = np.log(cost[known]) - np.sum([price.log_cost(X)[0] for price in prices], axis=0)
    if np.ptp(beyond) <= ALIKE:
        return assumed
    scale = float(np.std(beyond))
    y = (beyond - np.mean(beyond)) / scale
    sample = Sample(X, y, np.full(len(y), np.nan))
    own = Process(process.columns, Matern52(), Prior(lengthscale=process.prior.lengthscale))
    hypers = own.table.hyperparameters(fit_mode(sample, own)[None])
    told = fit(hypers, sample, kernel=own.kernel, columns=own.columns)
    return Cost(prices, scale, told) if told.sound.all() else assumed
