"""Where trials fail: the chance of success, and how it weighs on what is maximised.

Labels +1 (told) and −1 (failed) are regressed by a GP of their own with mean +1, so that nothing is
held against a place nobody has tried; the chance of success at x is P(label > 0) under it. A failed
trial never becomes a value of the objective.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from optpair.acquisition import Values
from optpair.acquisition.base import Acquisition
from optpair.acquisition.normal import log_ndtr
from optpair.gp.inference import map_fit
from optpair.gp.likelihood import Data, Model, unpack
from optpair.gp.posterior import Posterior, fit
from optpair.gp.priors import Prior
from optpair.runtime import pytree, static

FAILED = -2.0  # the label −1, less the mean +1


@pytree
@dataclass(frozen=True)
class SuccessChance:
    """P(a trial at x succeeds)."""

    labels: Posterior

    def standardised(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """The label's mean over its standard deviation: success is this many sigmas away."""
        means, variance = self.labels.moments(X)
        return (1 + means[0, 0]) / jnp.sqrt(variance[0] + self.labels.noise[0])

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """The chance of success."""
        return ndtr(self.standardised(X))


def fit_success(
    model: Model,
    told: Float[np.ndarray, "n D"],
    failed: Float[np.ndarray, "m D"],
    size: int,
    most: int,
) -> SuccessChance:
    """The chance of success, from the points of told and of failed trials.

    Of more than `most` rows, every k-th says what the hyperparameters are.
    """
    X = np.concatenate([told, failed])
    labels = np.repeat([0.0, FAILED], [len(told), len(failed)])
    data = Data(X, labels, np.full(len(X), np.nan))
    model = model._replace(kernel="matern52", prior=Prior(mean_scale=0.0))  # a border is rough
    k = -(-len(X) // most)
    theta = map_fit(Data(*(rows[::k] for rows in data)), model)
    hypers = unpack(theta[None], model)
    return SuccessChance(fit(hypers, *data, kernel=model.kernel, columns=model.columns, size=size))


@pytree
@dataclass(frozen=True)
class Weighted(Acquisition):
    """An acquisition function weighted by the chance of success.

    What is at least 0 is multiplied by it, as a failure gains nothing. A worth is pulled to the
    worst value seen: it is what is expected where a failure is worth no more than that.
    """

    acquisition: Acquisition
    success: SuccessChance
    worst: Float[Array, ""]
    values: Values = static()

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.acquisition.dimensions

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """α P, log α + log P, or worst + (α − worst) P, with P the chance of success at x."""
        values = self.acquisition.evaluate(X)
        if self.values == "log improvement":
            return values + log_ndtr(self.success.standardised(X))
        base = self.worst if self.values == "worth" else 0.0
        return base + (values - base) * self.success.evaluate(X)


def weighted(
    acquisition: Acquisition,
    values: Values,
    success: SuccessChance | None,
    worst: Float[Array, ""],
) -> Acquisition:
    """The acquisition function as it is to be maximised: as it is, where nothing has failed."""
    return acquisition if success is None else Weighted(acquisition, success, worst, values)
