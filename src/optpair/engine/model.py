"""Models: one posterior per outcome, and what is remembered of each between two steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpair.acquisition.weights import Success
from optpair.gp import mixture
from optpair.gp.posterior import Posterior
from optpair.shapes import Float
from optpair.trials.estimate import Estimate
from optpair.trials.transform import Scaling

CONFIDENCE = 0.95


@dataclass(frozen=True)
class OutcomeMemory:
    """What the next step starts from: hyperparameters, and the scaling that they belong to."""

    told: int
    """Values at the last update."""
    scaling: Scaling
    state: Any
    """Of the inference."""


Memory = Mapping[str, OutcomeMemory]
"""By outcome. It makes the next step cheap, never right."""


@dataclass(frozen=True)
class OutcomeModel:
    """The model of one outcome: standardised, with the way back to raw units."""

    scaling: Scaling
    posterior: Posterior
    wider: Posterior | None = None
    """Under more sets, where what a point is worth is the question, and not where to look."""

    def moments(
        self, X: Float[np.ndarray, "q D"]
    ) -> tuple[Float[np.ndarray, "M q"], Float[np.ndarray, "M q"]]:
        """The sets' means and variances of the noiseless value, standardised."""
        of = self.posterior if self.wider is None else self.wider
        means, variance = of.moments(X)
        return means.mean(1), variance

    def estimate(self, X: Float[np.ndarray, "q D"]) -> Estimate:
        """What the sets say of the values at X, in raw units, to be maximised."""
        return restored(*self.moments(X), self.scaling)


def restored(
    means: Float[np.ndarray, "M q"], variances: Float[np.ndarray, "M q"], scaling: Scaling
) -> Estimate:
    """What the sets say of some values, in raw units; quantiles pass through any scaling."""
    sds = np.sqrt(variances)
    mean, sd = mixture.moments(means, sds)
    low, high = (
        scaling.restore(mixture.quantile(means, sds, p))
        for p in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    )
    below, above = scaling.restore(mean - sd), scaling.restore(mean + sd)
    return Estimate(scaling.restore(mean), above / 2 - below / 2, low, high)


@dataclass(frozen=True)
class Model:
    """The models of all outcomes, with the same number of sets, and the chance of success."""

    outcomes: tuple[OutcomeModel, ...]
    success: Success | None
    worst: float
    """The lowest standardised value of the objective: what a failure is worth, at most."""

    def __repr__(self) -> str:
        return f"Model({', '.join(repr(posterior) for posterior in self.posteriors)})"

    @property
    def objective(self) -> OutcomeModel:
        """The model of the only outcome."""
        (only,) = self.outcomes
        return only

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """The posterior of each outcome."""
        return tuple(outcome.posterior for outcome in self.outcomes)

    @property
    def jitter(self) -> float:
        """The largest relative jitter that a factorisation needed."""
        return max(float(np.max(posterior.jitter)) for posterior in self.posteriors)


def mean_at(posterior: Posterior, X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, " N"]:
    """The posterior mean averaged over sets, without variances, a block of points at a time."""
    weights = posterior.weights.mean(1, keepdims=True)
    means = np.full(len(X), posterior.mean.mean())
    for block in posterior.blocks(len(X)):
        K = posterior.target.between(X[block]).K
        means[block] += (weights @ K.mT)[:, 0].mean(0)
    return means
