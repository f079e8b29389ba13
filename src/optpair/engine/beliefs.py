"""Prior beliefs in an ask: weights of optima and of queries, and points to consider.

Optima carry weights (B2). An acquisition function that uses no optima is multiplied by the
density itself, to a power that falls with the number n of told trials:

    (B3)  w(x) = π(x)^(10/n), or π(x) up to n = 10
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.acquisition.base import Points
from optpair.cube.halton import halton
from optpair.cube.region import Region
from optpair.engine.model import Model
from optpair.optima.base import Optima
from optpair.problem.beliefs import Beliefs
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream

BELIEVED = 32  # points drawn from the belief and considered in every ask
WHOLE = 10  # told trials up to which a belief counts in full
STEP = 1e-5  # of the cube, for slopes


def believed(optima: Optima, beliefs: Beliefs, model: Model) -> Optima:
    """The optima, weighted by the beliefs about their places and values."""
    M, P, R, D = optima.x.shape
    prior = beliefs.log_density(optima.x.reshape(-1, D)).reshape(M, P, R)
    there = np.maximum(optima.mask.sum(-1), 1)
    total = np.sum(np.where(optima.mask, prior, 0.0), axis=-1) / there
    if beliefs.value is not None:
        (column,) = model.wanted.objectives
        f = model.objective.restore(optima.f[:, :, 0, column].reshape(-1)).reshape(M, P)
        total = total + np.where(optima.mask[:, :, 0], beliefs.log_value(f), 0.0)
    return optima.believed(total)


def drawn(stream: Stream, beliefs: Beliefs, region: Region, count: int) -> Float[np.ndarray, "n D"]:
    """Legal points drawn from the belief."""
    filling = region.fill(halton(stream.child(0), region.cube.parameters, count))
    return region.made_legal(beliefs.drawn(stream.child(1).draw(), filling))


def first_believed(
    stream: Stream, beliefs: Beliefs, region: Region, asked: int
) -> Float[np.ndarray, " D"]:
    """A point of the design from the belief: the guess itself comes first."""
    points = drawn(stream, beliefs, region, BELIEVED)
    if asked == 0:
        best = points[np.argmax(beliefs.log_density(points))]
        return region.made_legal(beliefs.centre(best)[None])[0]
    return points[0]


@dataclass(frozen=True)
class Placed:
    """The weight of a query by the belief about the optimum's place."""

    beliefs: Beliefs
    told: int

    @property
    def _power(self) -> float:
        return min(1.0, WHOLE / max(self.told, 1))  # (B3)

    def log_weight(self, X: Points) -> Float[np.ndarray, " q"]:
        """log w(x)."""
        return self._power * self.beliefs.log_density(X)

    def log_slopes(self, X: Points) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """log w(x), and its derivatives by central differences."""
        slopes = np.empty_like(X)
        for column in range(X.shape[1]):
            step = STEP * (np.arange(X.shape[1]) == column)
            slopes[:, column] = (self.log_weight(X + step) - self.log_weight(X - step)) / (2 * STEP)
        return self.log_weight(X), slopes
