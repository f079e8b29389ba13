"""Models: one posterior per outcome, and what is remembered of each between two steps.

The sets of an answer say how far the truth may be from the mean, if the model is right. How wrong
it is can be seen where it foretells each of the n values from the others: by z_i standard
deviations. That is an estimate from n squares, whose standard error is √(2/n) of it: the model may
be so much worse than it looks. And few values hardly say how large a spread is, where a slope and a
length scale of each of D columns are learnt from them as well. An interval is therefore wider
around its mean, by the factor

    (L2)  c = max(1, √((1 + √(2/n)) mean of z_i²)) · t_ν(.975)/Φ⁻¹(.975),   ν = max(n − 2D − 1, 3)

with the quantile of Student's t. It is near 1 where values are many and foretold as they should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtri, stdtrit

from optpair.acquisition.cost import Cost
from optpair.acquisition.weights import Success, Weight
from optpair.gp import mixture
from optpair.gp.posterior import Posterior
from optpair.optima.base import Wanted
from optpair.shapes import Float
from optpair.trials.estimate import Estimate
from optpair.trials.transform import MOST_NOISE, Scaling

CONFIDENCE = 0.95
FEWEST_DEGREES = 3  # of freedom: with fewer the spread of a t has no meaning


@dataclass(frozen=True)
class OutcomeMemory:
    """What the next step starts from: hyperparameters, and the scaling that they belong to."""

    told: int
    """Values at the last update."""
    scaling: Scaling
    state: Any
    """Of the inference."""
    matches: tuple[tuple[float, float], ...] = ()
    """The units of earlier studies."""


Memory = Mapping[str, OutcomeMemory]
"""By outcome. It makes the next step cheap, never right."""


@dataclass(frozen=True)
class OutcomeModel:
    """The model of one outcome: standardised, with the way back to raw units."""

    scaling: Scaling
    posterior: Posterior
    wider: Posterior | None = None
    """Under more sets, where what a point is worth is the question, and not where to look."""
    reach: tuple[float, float] = (-np.inf, np.inf)
    """Raw values that can never be left."""

    def restore(self, z: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """From the model's values to raw ones, within the values that are possible.

        A value beyond them is read as the nearest possible one, and a sample path as resting on its
        bound. That is monotone: quantiles pass through it, the maximum of a path stays where it is,
        and an interval holds the truth whenever it did before, as the truth is possible. Leaving
        out the paths that go beyond instead would leave none where it matters, near the bound.
        """
        return np.clip(self.scaling.restore(z), *self.reach)

    def moments(
        self, X: Float[np.ndarray, "q D"]
    ) -> tuple[Float[np.ndarray, "M q"], Float[np.ndarray, "M q"]]:
        """The sets' means and variances of the noiseless value, standardised."""
        of = self.posterior if self.wider is None else self.wider
        means, variance = of.moments(X)
        return means.mean(1), variance

    def estimate(self, X: Float[np.ndarray, "q D"]) -> Estimate:
        """What the sets say of the values at X, in raw units, to be maximised.

        Around their mean the sets of an answer are spread by (L2); given hyperparameters are
        believed as they are.
        """
        means, variance = self.moments(X)
        centre = means.mean(0)
        return restored(centre + self.stretch * (means - centre), self.stretch**2 * variance, self)

    @cached_property
    def stretch(self) -> float:
        """How much wider the intervals of an answer are than its sets say."""
        return 1.0 if self.wider is None else stretch(self.wider)


@runtime_checkable
class Restores(Protocol):
    """A monotone way back to raw values."""

    def restore(self, z: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """From the model's values to raw ones."""
        ...


def restored(
    means: Float[np.ndarray, "M q"], variances: Float[np.ndarray, "M q"], scaling: Restores
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


def stretch(posterior: Posterior) -> float:
    """(L2) of a posterior; values that teach nothing do not count."""
    counted = np.all(posterior.noise_var[:, posterior.before :] < MOST_NOISE, axis=0)
    n = int(np.sum(counted))
    if n < 2:  # nothing was foretold
        return 1.0
    means, variance = posterior.left_out()
    squares = ((posterior.values - means) ** 2 / variance)[:, counted]
    degrees, level = max(n - 2 * posterior.dimensions - 1, FEWEST_DEGREES), (1 + CONFIDENCE) / 2
    heavy = stdtrit(degrees, level) / ndtri(level)
    worse = (1 + np.sqrt(2 / n)) * np.mean(squares)
    return float(max(1.0, np.sqrt(worse)) * heavy)  # (L2)


@dataclass(frozen=True)
class Model:
    """The models of all outcomes, with the same number of sets, and the chance of success."""

    outcomes: tuple[OutcomeModel, ...]
    success: Success | None
    cost: Cost | None
    """What queries cost, where that differs."""
    worst: float
    """The lowest standardised value of the first objective: what a failure is worth, at most."""
    wanted: Wanted = field(default_factory=Wanted.single)
    """What is wanted of each outcome, standardised."""

    def __repr__(self) -> str:
        return f"Model({', '.join(repr(posterior) for posterior in self.posteriors)})"

    @property
    def objective(self) -> OutcomeModel:
        """The model of the only objective."""
        (only,) = self.wanted.objectives
        return self.outcomes[only]

    @property
    def weights(self) -> tuple[Weight, ...]:
        """What else than its information makes a query wanted."""
        return tuple(w for w in (self.success, self.cost) if w is not None)

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
