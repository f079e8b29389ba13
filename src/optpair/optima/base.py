"""Optima of joint sample paths, and the goals that say what an optimum is.

Prior beliefs about the place and the value of the optimum make some of L optima count more:

    (B2)  w_p ∝ (π(x*_p) ρ(f*_p))^η,   the largest η ≤ 1 with 1/Σ w_p² ≥ L/3

The weights are for paths that follow from the data alone. As data come in, the optima of paths
agree, and so do their weights: if they agree on another place than was believed, π is the same for
all of them, and the wrong belief is forgotten. Until then η keeps a third of them in effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from optpair.cube.candidates import Screening
from optpair.cube.region import Region
from optpair.gp.paths import Paths
from optpair.runtime.shapes import Bool, Float, Int

KEPT = 1 / 3  # of the optima count in effect, whatever was believed of them


@dataclass(frozen=True)
class Optima:
    """P optima of each of M sets; each is R points with O outcomes.

    With one objective and no constraint R = O = 1, and an optimum is the pair (x*, f*).
    """

    x: Float[np.ndarray, "M P R D"]
    f: Float[np.ndarray, "M P R O"]
    mask: Bool[np.ndarray, "M P R"]
    """Which of the R points are there: sets of points may have different sizes."""
    log_weight: Float[np.ndarray, "M P"]
    """The log of the prior belief in each optimum; zero means that all count alike."""

    @classmethod
    def pairs(cls, x: Float[np.ndarray, "M P D"], f: Float[np.ndarray, "M P"]) -> Optima:
        """Optimal pairs: one point and one value each."""
        x, f = np.asarray(x, dtype=np.float64), np.asarray(f, dtype=np.float64)
        there = np.ones((*f.shape, 1), dtype=bool)
        return cls(x[:, :, None], f[:, :, None, None], there, np.zeros(f.shape))

    @property
    def star(self) -> Float[np.ndarray, "M P D"]:
        """x* of optimal pairs."""
        return self.x[:, :, 0]

    @property
    def best(self) -> Float[np.ndarray, "M P"]:
        """f* of optimal pairs."""
        return self.f[:, :, 0, 0]

    def some_points(self, most: int) -> Float[np.ndarray, "N D"]:
        """All points or, of several per optimum, about `most`: at least one of each optimum.

        Consecutive optima give points of consecutive numbers. Of a path without a feasible point it
        is the first, which comes closest.
        """
        there = self.mask.copy()
        there[..., 0] |= ~there.any(-1)
        M, P, _ = there.shape
        stride = -(-there.sum(-1, keepdims=True) // max(most // (M * P), 1))
        turn = np.cumsum(there, -1) + np.arange(M * P).reshape(M, P, 1)
        return self.x[there & (turn % stride == 0)]

    @property
    def weights(self) -> Float[np.ndarray, "M P"]:
        """The share of each optimum in an average over all: one in all."""
        relative = np.exp(self.log_weight - self.log_weight.max())
        return np.asarray(relative / relative.sum())

    def believed(self, log_prior: Float[np.ndarray, "M P"]) -> Optima:
        """With weights by what was believed beforehand, log π(x*) + log ρ(f*)."""
        return replace(self, log_weight=flattened(log_prior))

    def evenly(self) -> Int[np.ndarray, " L"]:
        """Indices of as many optima that count alike; by their weights, some occur repeatedly."""
        edges = np.cumsum(self.weights.reshape(-1))
        ticks = (np.arange(len(edges)) + 0.5) / len(edges)
        return np.minimum(np.searchsorted(edges, ticks * edges[-1]), len(edges) - 1)

    def __repr__(self) -> str:
        M, P, R, D = self.x.shape
        return f"Optima({M} sets of {P}, {R} point(s) each in {D}-D, {self.f.shape[3]} outcome(s))"


def flattened(log_prior: Float[np.ndarray, "M P"]) -> Float[np.ndarray, "M P"]:
    """η times the logarithm of a prior, so that a third of the optima count, in effect."""
    low, high = 0.0, 1.0
    if _effective(log_prior) >= KEPT:
        return log_prior
    for _ in range(30):
        middle = (low + high) / 2
        if _effective(middle * log_prior) >= KEPT:  # (B2)
            low = middle
        else:
            high = middle
    return low * log_prior


def _effective(log_weight: Float[np.ndarray, "M P"]) -> float:
    """1/Σ w² as a share of the number of weights."""
    w = np.exp(log_weight - log_weight.max())
    return float(w.sum() ** 2 / (w**2).sum() / w.size)


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is wanted of each of O outcomes, in the units of the paths.

    An objective is to be as large as possible. A constraint is met between `low` and `high`.
    """

    objectives: tuple[int, ...]
    """The columns of the objectives; the others are constraints."""
    low: Float[np.ndarray, " O"]
    """−∞ where there is no limit, as for every objective."""
    high: Float[np.ndarray, " O"]

    @classmethod
    def single(cls) -> Wanted:
        """One objective and no constraint."""
        return cls((0,), np.array([-np.inf]), np.array([np.inf]))

    @property
    def constraints(self) -> tuple[int, ...]:
        """The columns of the constraints."""
        return tuple(o for o in range(len(self.low)) if o not in self.objectives)

    @property
    def goal(self) -> Literal["best", "feasible", "front"]:
        """The name of what an optimum is: one point, one under constraints, or a Pareto set."""
        if len(self.objectives) > 1:
            return "front"
        return "feasible" if self.constraints else "best"


@runtime_checkable
class Goal(Protocol):
    """What an optimum of joint paths is."""

    def optima(
        self,
        paths: tuple[Paths, ...],
        region: Region,
        screening: Screening,
        anchors: Float[np.ndarray, "A D"],
        steps: int,
    ) -> Optima:
        """The optimum of each joint path in a region."""
        ...
