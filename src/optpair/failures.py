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

from optpair.acquisition.base import Acquisition
from optpair.acquisition.normal import log_ndtr
from optpair.gp.inference import Data, Model, map_fit, posterior
from optpair.gp.posterior import Posterior
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


def fit_success(model: Model, data: Data, failed: Float[np.ndarray, "m D"]) -> SuccessChance:
    """The chance of success from padded data: told points, then `failed` in padded rows."""
    told = int(np.sum(data.mask))
    rows = np.arange(told, told + len(failed))
    X, labels = np.array(data.X), np.zeros(len(data.y))
    mask = np.array(data.mask)
    X[rows], labels[rows], mask[rows] = failed, FAILED, True
    both = Data(X, labels, np.full(len(labels), np.nan), mask)
    model = model._replace(prior=Prior(mean_scale=0.0))
    theta = map_fit(both, model)
    return SuccessChance(posterior(theta[None], both, model=model))


@pytree
@dataclass(frozen=True)
class Weighted(Acquisition):
    """An acquisition function weighted by the chance of success."""

    acquisition: Acquisition
    success: SuccessChance
    is_log: bool = static()

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.acquisition.dimensions

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """α(x) P(success at x), as a logarithm where α is one."""
        values = self.acquisition.evaluate(X)
        if self.is_log:
            return values + log_ndtr(self.success.standardised(X))
        return values * self.success.evaluate(X)


@pytree
@dataclass(frozen=True)
class AverageMean(Acquisition):
    """The posterior mean averaged over sets, to be exploited and recommended.

    With failures about, it is what an evaluation is expected to be worth if a failure is worth no
    more than the worst value seen.
    """

    posterior: Posterior
    success: SuccessChance | None
    worst: Float[Array, ""]

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.X.shape[1]

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """m(x), or (m(x) − worst) P(success at x)."""
        means = jnp.mean(self.posterior.means(self.posterior.covariance(X)), (0, 1))
        if self.success is None:
            return means
        return (means - self.worst) * self.success.evaluate(X)
