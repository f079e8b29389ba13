"""The noise of a mean over folds, estimated from all trials, which share the same folds.

The score of trial i on fold k of K is modelled as

    s_ik = m_i + b_k + e_ik

The same folds are hard for every trial, so between trials b_k is not noise, but e_ik is. b_k is
averaged over the better half of the trials, as a bad one says little about a fold. The rest of a
trial's spread, v_i, has only d = K − 1 degrees of freedom and may happen to be zero. It is shrunk
towards what the trials have in common (Smyth 2004): with σ_i² = E v_i and the prior
d₀ s₀² / σ_i² ~ χ²(d₀),

    ṽ_i = (d₀ s₀² + d v_i) / (d₀ + d)

with d₀ and s₀² such that log v has the mean and the variance that are observed: spreads that are
alike are pooled, and those that differ by orders of magnitude are left alone. Training sets
overlap, so the errors of the folds go together, and their mean has (Nadeau and Bengio 2003)

    variance_i = (1/K + test/train) ṽ_i

Trials of the same parameters share their error: r of them have r times the variance each.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from optpair.runtime.shapes import Float, Int
from optpair.trials.transform import ROUND_OFF

FEWEST = 3  # trials from which the folds' own difficulty can be told
POOLED = 1000.0  # d₀ at which all trials have the same variance, or almost


def noise_of_means(
    scores: Float[np.ndarray, "n K"], ratio: float, repeats: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " n"] | None:
    """The variance of each trial's mean score; None where no spread is seen.

    ratio: test samples for each training sample. repeats: trials of the same parameters.
    """
    folds, unit = scores.shape[1], float(np.max(np.abs(scores), initial=0.0))
    if folds < 2 or unit == 0.0:
        return None
    spread = _spread(scores / unit)
    if not np.any(spread > 0):
        return None
    relative = (1 / folds + ratio) * _shrunk(spread, folds - 1) * repeats
    with np.errstate(over="ignore", under="ignore"):
        noise: Float[np.ndarray, " n"] = relative * unit * unit
    return noise if np.all(np.isfinite(noise)) else None


def _spread(scores: Float[np.ndarray, "n K"]) -> Float[np.ndarray, " n"]:
    """v_i, unbiased where all trials have the same variance."""
    n, folds = scores.shape
    means = scores.mean(axis=1, keepdims=True)
    rest, factor = scores - means, np.ones(n)
    if n >= FEWEST:
        half = -(-n // 2)
        better = np.argsort(-means[:, 0], kind="stable")[:half]
        rest = rest - rest[better].mean(axis=0)
        factor[:] = 1 + 1 / half
        factor[better] = 1 - 1 / half
    spread = np.sum(rest**2, axis=1) / (folds - 1) / factor
    return np.where(spread > ROUND_OFF**2, spread, 0.0)


def _shrunk(spread: Float[np.ndarray, " n"], d: int) -> Float[np.ndarray, " n"]:
    """ṽ_i."""
    # log v has mean log s₀² + ψ(d/2) − log(d/2) − ψ(d₀/2) + log(d₀/2), variance ψ′(d/2) + ψ′(d₀/2)
    logs = np.log(spread[spread > 0]) - digamma(d / 2) + math.log(d / 2)
    between = float(np.var(logs, ddof=1)) - polygamma(1, d / 2) if len(logs) > 1 else 0.0
    half = _inverse_trigamma(between)
    d0, s0 = 2 * half, math.exp(float(np.mean(logs)) + digamma(half) - math.log(half))
    return (d0 * s0 + d * spread) / (d0 + d)


def _inverse_trigamma(value: float) -> float:
    """x with ψ′(x) = value, from 0.01 to POOLED/2."""
    low, high = math.log(0.01), math.log(POOLED / 2)
    if value <= polygamma(1, math.exp(high)):
        return math.exp(high)
    if value >= polygamma(1, math.exp(low)):
        return math.exp(low)
    return math.exp(brentq(lambda x: polygamma(1, math.exp(x)) - value, low, high))
