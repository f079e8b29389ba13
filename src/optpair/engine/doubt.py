"""Doubt: values that are more likely mistakes than results, judged by the other trials.

Somebody types 494 for 49, a sensor hangs, two rows are swapped. Suppose that a value is a slip with
probability ε, and that slips are spread more widely than the model says, by `SLIP` standard
deviations of all values. With m and s the mean and variance that the other values predict for it,
noise included,

    (V1)  odds of a slip = ε/(1 − ε) · N(y; m, s + SLIP²) / N(y; m, s)

Hyperparameters are the most likely ones without the value, so that it cannot make itself look
usual. A value with odds above 1 is doubted: it does not count until another trial at the same
point agrees. Values on the bad side are compressed, so they are never far away and need no doubt;
values known to be exact are never doubted.
"""

from __future__ import annotations

import numpy as np

from optpair.gp.inference.mode import fit_mode
from optpair.gp.likelihood import Sample
from optpair.gp.posterior import fit
from optpair.gp.process import Process
from optpair.shapes import Bool, Float
from optpair.trials.data import Measured
from optpair.trials.transform import Scaling

CHANCE = 0.002  # ε
SLIP = 10.0  # standard deviations of the other values
FAR = 8.0  # robust spreads above the median: only values at least so high are examined,
LOOKS = 2  # and of these only the farthest
ABSURD = 1e100  # standard deviations: the squares of larger distances overflow
SAME = 1e-6  # of the cube: two trials this close count as one point
FEWEST = 6  # values: with fewer, there is no telling what is usual


def doubted(measured: Measured, process: Process, warp: bool, most: int) -> Bool[np.ndarray, " n"]:
    """Which values are more likely slips, judged by at most `most` of the other values."""
    n = len(measured.y)
    found = np.zeros(n, dtype=bool)
    for _ in range(n // FEWEST):  # one doubt at a time: the next is judged without it
        for row in _far(measured.y, found)[:LOOKS]:
            others = ~found
            others[row] = False
            if measured.noise_var[row] == 0 or _agreed(measured, row):
                continue
            if _log_odds(measured, row, others, process, warp, most) > 0:
                found[row] = True
                break
        else:
            break
    return found


def _far(y: Float[np.ndarray, " n"], found: Bool[np.ndarray, " n"]) -> list[int]:
    """The rows whose values are far above the others, the farthest first."""
    left = y[~found]
    if len(left) < FEWEST:
        return []
    largest = float(np.max(np.abs(left)))
    relative = y / largest if largest > 0 else y
    middle = np.median(relative[~found])
    unit = 1.4826 * np.median(np.abs(relative[~found] - middle))
    above = np.where(found, -np.inf, relative - middle)
    order = np.argsort(-above, kind="stable")
    return [int(row) for row in order if above[row] > FAR * unit and above[row] > 0]


def _agreed(measured: Measured, row: int) -> bool:
    """Whether a repeat at the same point gave a value closer to this one than to the others."""
    same = np.all(np.abs(measured.X - measured.X[row]) < SAME, axis=1)
    same[row] = False
    middle = np.median(measured.y)
    halfway = measured.y[row] / 2 + middle / 2
    return bool(np.any(measured.y[same] > halfway))


def _log_odds(
    measured: Measured,
    row: int,
    others: Bool[np.ndarray, " n"],
    process: Process,
    warp: bool,
    most: int,
) -> float:
    """log of (V1); −∞ if the value's own noise is known to be that large."""
    X, y, noise_var, *_ = (part[others] for part in measured)
    scaling = Scaling.of(y, warp)
    sample = Sample(X, scaling.standardise(y), scaling.variance(noise_var, y))
    k = max(-(-len(y) // most), 1)
    theta = fit_mode(sample.some(slice(None, None, k)), process)
    hypers = process.table.hyperparameters(theta[None])
    posterior = fit(hypers, sample, kernel=process.kernel, columns=process.columns)
    means, variance = posterior.moments(measured.X[row][None])
    value = scaling.standardise(measured.y[row])
    own = scaling.variance(measured.noise_var[row], measured.y[row])
    total = float(variance[0, 0]) + (float(posterior.noise[0]) if np.isnan(own) else float(own))
    square = min(abs(float(value - means[0, 0, 0])), ABSURD) ** 2
    wide = total + SLIP**2
    likelier = 0.5 * (np.log(total / wide) + square / total - square / wide)
    return float(np.log(CHANCE / (1 - CHANCE)) + likelier)
