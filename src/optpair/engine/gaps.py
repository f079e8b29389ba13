"""Gaps: what sampled paths have left to win at the recommendation."""

from __future__ import annotations

import numpy as np

from optpair.engine.fronts import LARGEST
from optpair.engine.model import CONFIDENCE
from optpair.runtime.shapes import Float


def within(gaps: Float[np.ndarray, " L"], gap: float) -> float:
    """The share of paths with at most so much left to win; 0 without paths."""
    return float(np.mean(gaps <= gap)) if len(gaps) else 0.0


def left_to_win(
    f: Float[np.ndarray, "*n L"], here: Float[np.ndarray, "*n L"]
) -> Float[np.ndarray, "*n L"]:
    """The gap of each path."""
    return np.asarray(2 * np.clip(f / 2 - here / 2, 0.0, LARGEST / 2))  # which cannot overflow


def still_to_win(
    f: Float[np.ndarray, " L"], here: Float[np.ndarray, " L"]
) -> tuple[float, tuple[float, float]]:
    """The gap, f* less the value of the same path at the recommendation: mean, and 95 % interval.

    No path exceeds its own maximum, so a gap below zero only means that the climb fell short. If a
    few paths make up most of the mean, the interval is extended up to it. Without paths the gap is
    zero.
    """
    if len(f) == 0:
        return 0.0, (0.0, 0.0)
    halves = left_to_win(f, here) / 2
    low, high = np.quantile(halves, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    mean = float(np.mean(halves))
    return 2 * mean, (2 * float(low), 2 * max(float(high), mean))
