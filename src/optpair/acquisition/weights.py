"""Weights: what makes a query wanted besides its information, as factors of an acquisition.

A weight w(x) multiplies what is at least 0, as a failure gains nothing. A worth is pulled to the
worst value seen: it is what is expected where a failure is worth no more than that.

    gain, improvement:   α Π w
    log improvement:     α + Σ log w
    worth:               worst + (α − worst) Π w

The chance of success is one. Labels +1 (told) and −1 (failed) are regressed by a GP of their own
with mean +1, so that nothing is held against a place nobody has tried; the chance of success at x
is P(label > 0) under it. A failed trial never becomes a value of the objective.

What fails with one category may fail because of it, because of another parameter's category, or
because of both together, and one failure cannot tell which: the likeliest length scales would put
all blame on one. So where there are categories, there are two models of the labels. In one,
categories may be alike. In the other they are at least a length scale apart, so that their labels
have a correlation of at most 0.52, and a failure with one leaves about an even chance with another,
of whatever parameter. Each model counts by its prior p_m, which is ¾ for the second, and by its
likelihood:

    (U1)  P = Σ_m ω_m Φ(z_m),   z = (1 + mean)/√(s + σ²),   ω_m ∝ p_m p(labels, θ_m)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import logsumexp

from optpair.acquisition.base import Acquisition, Points, Rows, Values
from optpair.acquisition.special.normal import hazard, log_ndtr
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference.mode import fit_mode
from optpair.gp.kernels import Matern52
from optpair.gp.likelihood import Likelihood, Sample
from optpair.gp.posterior import Posterior, fit
from optpair.gp.priors import Prior
from optpair.gp.process import Process
from optpair.runtime.shapes import Float

FAILED = -2.0  # the label −1, less the mean +1
PRIORS = (0.25, 0.75)  # of the models in which categories may be alike, and are apart


@runtime_checkable
class Weight(Protocol):
    """A positive factor of an acquisition function."""

    def log_weight(self, X: Points) -> Float[np.ndarray, " q"]:
        """log w(x) at the points X."""
        ...

    def log_slopes(self, X: Points) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """log w(x) at the points X, and its derivatives there."""
        ...


@dataclass(frozen=True)
class Success:
    """The chance that a trial at x succeeds, P = Σ ω Φ(z) over the sets of the labels' model."""

    labels: Posterior
    shares: Float[np.ndarray, " M"]
    """ω, which sum to 1."""

    def standardised(self, X: Points) -> Float[np.ndarray, "M q"]:
        """z, the label's mean over its standard deviation: so many sigmas from failing."""
        means, variance = self.labels.moments(X)
        return np.asarray((1 + means[:, 0]) / np.sqrt(variance + self.labels.noise[:, None]))

    def chance(self, X: Points) -> Float[np.ndarray, " q"]:
        """P."""
        return np.asarray(np.exp(self.log_weight(X)))

    def log_weight(self, X: Points) -> Float[np.ndarray, " q"]:
        """log P."""
        return np.asarray(logsumexp(self._logs(self.standardised(X)), axis=0))  # (U1)

    def _logs(self, z: Float[np.ndarray, "M q"]) -> Float[np.ndarray, "M q"]:
        """log ωΦ(z)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.shares)[:, None] + log_ndtr(z))

    def log_slopes(self, X: Points) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """log P, and its derivatives."""
        query = self.labels.at(X)
        variance = query.variance
        total = variance + self.labels.noise[:, None]
        z = (1 + query.means[:, 0]) / np.sqrt(total)
        logs = self._logs(z)
        value = np.asarray(logsumexp(logs, axis=0))
        by_z = np.exp(logs - value) * hazard(z)
        by_means = by_z / np.sqrt(total)
        by_variance = -0.5 * by_z * z / total * (variance > 0)
        return value, query.pull(by_means[:, None], by_variance).sum(0)


def fit_success(
    process: Process,
    told: Float[np.ndarray, "n D"],
    failed: Float[np.ndarray, "m D"],
    most: int,
) -> Success:
    """The chance of success, from the points of told and of failed trials.

    Of the objective's process only the columns and the prior of the length scales matter: the
    border of what fails is rough, and its mean is known. Of more than `most` rows, every k-th says
    what the hyperparameters are.
    """
    X = np.concatenate([told, failed])
    labels = np.repeat([0.0, FAILED], [len(told), len(failed)])
    sample = Sample(X, labels, np.full(len(X), np.nan))
    some = sample.some(slice(None, None, max(-(-len(X) // most), 1)))
    priors = Prior(lengthscale=process.prior.lengthscale, mean_scale=0.0)
    alike = Process(process.columns, Matern52(), priors)
    models = [alike, replace(alike, categories_apart=True)][: 1 + alike.categories]
    modes = [fit_mode(some, own) for own in models]
    logs = [
        np.log(prior) + Likelihood(some, own).density(u[None])[0]
        for prior, own, u in zip(PRIORS, models, modes, strict=False)
    ]
    found = [own.table.hyperparameters(u[None]) for own, u in zip(models, modes, strict=True)]
    names = found[0].values()
    hypers = Hyperparameters(**{n: np.concatenate([h.values()[n] for h in found]) for n in names})
    shares = np.exp(logs - logsumexp(logs))
    return Success(fit(hypers, sample, kernel=alike.kernel, columns=alike.columns), shares)


@dataclass(frozen=True, repr=False)
class Weighted(Acquisition):
    """An acquisition function with weights."""

    acquisition: Acquisition
    weights: tuple[Weight, ...]
    worst: float
    """What a worth comes down to where the weights are 0, in the units of the acquisition."""
    scale: Values
    """What the values of the acquisition are."""

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.acquisition.dimensions

    @property
    def rough(self) -> Weighted:
        """With the rough acquisition function."""
        return replace(self, acquisition=self.acquisition.rough)

    @property
    def _base(self) -> float:
        return self.worst if self.scale == "worth" else 0.0

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """α Π w, α + Σ log w, or worst + (α − worst) Π w."""
        values = self.acquisition.values(X, rows)
        logs = np.sum([weight.log_weight(X) for weight in self.weights], axis=0)
        if self.scale == "log improvement":
            return np.asarray(values + logs)
        return np.asarray(self._base + (values - self._base) * np.exp(logs))

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """Values at the points X, and their derivatives there."""
        values, slopes = self.acquisition.slopes(X, rows)
        each = [weight.log_slopes(X) for weight in self.weights]
        logs, by_logs = (np.sum(parts, axis=0) for parts in zip(*each, strict=True))
        if self.scale == "log improvement":
            return np.asarray(values + logs), np.asarray(slopes + by_logs)
        above, factor = values - self._base, np.exp(logs)
        weighted_slopes = factor[:, None] * (slopes + above[:, None] * by_logs)
        return np.asarray(self._base + above * factor), np.asarray(weighted_slopes)


def weighted(
    acquisition: Acquisition, scale: Values, weights: tuple[Weight, ...], worst: float
) -> Acquisition:
    """The acquisition function as it is to be maximised: itself, where there are no weights."""
    return Weighted(acquisition, weights, worst, scale) if weights else acquisition
