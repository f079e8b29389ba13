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
from optpair.runtime.shapes import Bool
from optpair.trials.data import Measured
from optpair.trials.transform import Scaling
from optpair.trials.usual import FEWEST, far_above

CHANCE = 0.002  # ε
SLIP = 10.0  # standard deviations of the other values
LOOKS = 2  # values that are examined: of those far above all others, the farthest
ABSURD = 1e100  # standard deviations: the squares of larger distances overflow
SAME = 1e-6  # of the cube: two trials this close count as one point


def doubted(measured: Measured, process: Process, warp: bool, most: int) -> Bool[np.ndarray, " n"]:
    """Which values are more likely slips, judged by at most `most` of the other values."""
    n = len(measured.y)
    found = np.zeros(n, dtype=bool)
    for _ in range(n // FEWEST):  # one doubt at a time: the next is judged without it
        for row in far_above(measured.y, found)[:LOOKS]:
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
