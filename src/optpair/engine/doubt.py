"""Doubt: values that are more likely slips than what the other trials predict there.

Somebody types 494 for 49, a sensor hangs, two rows are swapped. Let a value be a slip with a chance
ε, and then be spread by `SLIP` standard deviations of all values more than the model says. Given
the others, with m and s the mean and variance of its own value there, noise included,

    (V1)  odds of a slip = ε/(1 − ε) · N(y; m, s + SLIP²) / N(y; m, s)

Hyperparameters are the most likely ones without the value: it has no say in what is usual. A value
whose odds are above 1 is doubted: it says nothing until another trial there agrees. Values that
were compressed (far on the bad side) are never far away, and need no doubt; values that are said
to be exact get none.
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
FAR = 8.0  # robust spreads above the median: only values so far up are looked at,
LOOKS = 2  # and of them the farthest
ABSURD = 1e100  # standard deviations: the squares of larger distances overflow
SAME = 1e-6  # of the cube: two trials so close are one point
FEWEST = 6  # values, below which nothing is usual


def doubted(measured: Measured, process: Process, warp: bool, most: int) -> Bool[np.ndarray, " n"]:
    """Which values are more likely slips; of more than `most` others, `most` say what is usual."""
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
    """The rows of values far above the others, the farthest first."""
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
    """Whether another look at the same point found a value closer to this one than to most."""
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
    """log of (V1); −∞ where the value's own noise is known to be as large."""
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
