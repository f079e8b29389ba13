"""Numbers behind pictures: the quality of moment matching, and where each method looked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from optpair.acquisition.special.truncation import exact_gain, moment_matched_gain
from optpair.runtime.shapes import Float
from optpair_bench import tasks
from optpair_bench.running.rows import Row

SIDE = 121
PEAKS = 5
NEAR, AROUND = 0.05, 0.15
"""Half and one and a half times the length scale of the 2-D task."""


def approximation_ratio(
    share: Float[np.ndarray, " a"], quantile: Float[np.ndarray, " b"]
) -> Float[np.ndarray, "b a"]:
    """Moment-matched gain over exact gain, by the noise's share of y's variance and Φ(β)."""
    noise, beta = np.meshgrid(share, ndtri(quantile))
    matched = moment_matched_gain(beta, 1 - noise, noise)
    return np.asarray(matched / exact_gain(beta, 1 - noise))


@dataclass(frozen=True)
class Landscape:
    """A 2-D task on a grid, and its highest peaks, the highest first."""

    side: Float[np.ndarray, " a"]
    values: Float[np.ndarray, "a a"]
    peaks: Float[np.ndarray, "p 2"]

    @classmethod
    def of(cls, task: tasks.Task) -> Landscape:
        """Evaluate the task."""
        side = np.linspace(0, 1, SIDE)
        points = np.stack(np.meshgrid(side, side), -1)
        values = task.value(points.reshape(-1, 2)).reshape(SIDE, SIDE)
        tops = local_maxima(values)[:PEAKS]
        return cls(side, values, np.vstack([task.optimum.x, side[tops[1:, ::-1]]]))


def local_maxima(values: Float[np.ndarray, "a b"]) -> np.ndarray:
    """Where a grid of values is higher than all around, the highest first: row and column."""
    padded, (a, b) = np.pad(values, 1, constant_values=-np.inf), values.shape
    shifts = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    around = [padded[i : i + a, j : j + b] for i, j in shifts]
    peaks = np.argwhere(values > np.max(around, axis=0))
    return np.asarray(peaks[np.argsort(-values[tuple(peaks.T)])])


@dataclass(frozen=True)
class Looks:
    """Where a run looked after its initial design."""

    peaks: int
    """How many of the highest peaks it came near to."""
    near: float
    """The share of its queries that are near the optimum."""
    distance: float
    """The median distance to the optimum of those that are around it; NaN if none are."""
    poor: float
    """The share in the lower half of the values."""


def looks(row: Row, land: Landscape, task: tasks.Task) -> Looks:
    """Where a row's queries are."""
    Q = np.array(row["queries"])[row["initial"] :]
    apart = np.linalg.norm(Q[:, None] - land.peaks[None], axis=-1)
    around = apart[:, 0][apart[:, 0] < AROUND]
    return Looks(
        int(np.sum(apart.min(0) < NEAR)),
        float(np.mean(apart[:, 0] < NEAR)),
        float(np.median(around)) if len(around) else float("nan"),
        float(np.mean(task.value(Q) < np.median(land.values))),
    )
