"""The chance that a normal is between two limits, as a logarithm that holds in both tails."""

from __future__ import annotations

import math

import numpy as np

from optpair.acquisition.special.normal import Reals, log_ndtr

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def log_between(low: Reals, high: Reals) -> tuple[Reals, Reals, Reals]:
    """log(Φ(u) − Φ(l)), and its derivatives by l and u; a limit may be infinite.

    Both ends are turned into the lower half first, where log Φ keeps its precision:
    log Φ(u) + log(1 − Φ(l)/Φ(u)). Holds for any l < u.
    """
    with np.errstate(all="ignore"):
        turned = low > -high
        a, b = np.where(turned, -high, low), np.where(turned, -low, high)
        upper = log_ndtr(b)
        value = upper + np.log1p(-np.exp(log_ndtr(a) - upper))
        by_low = -np.exp(-0.5 * low * low - _LOG_SQRT_2PI - value)
        by_high = np.exp(-0.5 * high * high - _LOG_SQRT_2PI - value)
    finite = np.isfinite(low), np.isfinite(high)
    return value, np.where(finite[0], by_low, 0.0), np.where(finite[1], by_high, 0.0)
