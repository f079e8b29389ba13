"""Models: one posterior per outcome, and what is remembered about each between two steps.

If the model is right, the sets of an answer say how far the truth may be from the mean. How wrong
the model is shows when it predicts each of the n values from the others and misses by z_i standard
deviations. The mean of n squares has a relative standard error of √(2/n), so the model may be that
much worse than it looks. And few values hardly determine a spread if a slope and a length scale of
each of d parameters are learnt from them as well. Intervals are therefore widened around their
means by the factor

    (L2)  c = max(1, √((1 + √(2/n)) mean of z_i²)) · t_ν(.975)/Φ⁻¹(.975),   ν = max(n − 2d − 1, 3)

with the quantile of Student's t. It is near 1 if values are many, and predicted as they should be.
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
from optpair.runtime.shapes import Float
from optpair.trials.estimate import Estimate
from optpair.trials.transform import MOST_NOISE, Scaling

CONFIDENCE = 0.95
FEWEST_DEGREES = 3  # degrees of freedom: with fewer, a t distribution has no variance to speak of


@dataclass(frozen=True)
class OutcomeMemory:
    """What the next step starts from: hyperparameters, and the scaling they belong to."""

    told: int
    """Values at the last update."""
    scaling: Scaling
    state: Any
    """Of the inference."""
    matches: tuple[tuple[float, float], ...] = ()
    """The units of earlier studies."""
    several: bool = False
    """Whether some trials had several looks: then their noise may grow as looks get cheaper."""


Memory = Mapping[str, OutcomeMemory]
"""The memory of each outcome. It makes the next step cheaper, but no more correct."""


@dataclass(frozen=True)
class OutcomeModel:
    """The model of one outcome: standardised, with the way back to raw units."""

    scaling: Scaling
    posterior: Posterior
    wider: Posterior | None = None
    """The posterior under more sets, for what a point is worth rather than where to try next."""
    reach: tuple[float, float] = (-np.inf, np.inf)
    """Bounds that raw values never exceed."""
    parameters: int | None = None
    """d, each with a length scale; as many as columns where None."""

    def restore(self, z: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """From the model's values to raw ones, within the bounds.

        A value beyond a bound counts as the bound itself. That is monotone: quantiles pass through
        it, the maximum of a path stays where it is, and an interval still contains the truth if it
        did before, as the truth is within the bounds. Dropping the paths that exceed a bound
        instead would leave none near the bound, where they matter.
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
        """What the sets say about the values at X, in raw units, to be maximised.

        The sets of an answer are widened around their mean by (L2); known hyperparameters are
        trusted as they are.
        """
        means, variance = self.moments(X)
        centre = means.mean(0)
        return restored(centre + self.stretch * (means - centre), self.stretch**2 * variance, self)

    @cached_property
    def stretch(self) -> float:
        """How much wider the intervals of an answer are than its sets say."""
        return 1.0 if self.wider is None else stretch(self.wider, self.parameters)


@runtime_checkable
class Restores(Protocol):
    """A monotone way back to raw values."""

    def restore(self, z: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """From the model's values to raw ones."""
        ...


def restored(
    means: Float[np.ndarray, "M q"], variances: Float[np.ndarray, "M q"], scaling: Restores
) -> Estimate:
    """What the sets say about some values, in raw units; quantiles pass through any scaling."""
    sds = np.sqrt(variances)
    mean, sd = mixture.moments(means, sds)
    low, high = (
        scaling.restore(mixture.quantile(means, sds, p))
        for p in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    )
    below, above = scaling.restore(mean - sd), scaling.restore(mean + sd)
    return Estimate(scaling.restore(mean), above / 2 - below / 2, low, high)


def stretch(posterior: Posterior, parameters: int | None = None) -> float:
    """(L2) of a posterior; values without information do not count.

    A category has a column for each choice, but one length scale.
    """
    counted = np.all(posterior.noise_var[:, posterior.before :] < MOST_NOISE, axis=0)
    n = int(np.sum(counted))
    if n < 2:  # nothing was predicted
        return 1.0
    means, variance = posterior.left_out()
    squares = ((posterior.values - means) ** 2 / variance)[:, counted]
    d = posterior.dimensions if parameters is None else parameters
    degrees, level = max(n - 2 * d - 1, FEWEST_DEGREES), (1 + CONFIDENCE) / 2
    heavy = stdtrit(degrees, level) / ndtri(level)
    worse = (1 + np.sqrt(2 / n)) * np.mean(squares)
    return float(max(1.0, np.sqrt(worse)) * heavy)  # (L2)


@dataclass(frozen=True)
class Model:
    """The models of all outcomes, with the same number of sets, and the chance of success."""

    outcomes: tuple[OutcomeModel, ...]
    success: Success | None
    cost: Cost | None
    """What queries cost, if costs differ."""
    worst: float
    """The lowest standardised value of the first objective: a failure is worth no more."""
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
        """What makes a query desirable besides its information."""
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
