"""Estimates: values that are not known exactly, with an interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optpair.runtime.shapes import Float

Values = Float[np.ndarray, "*q"]


class Estimate(NamedTuple):
    """What is believed of noiseless values; `low` to `high` holds 95 % of the belief."""

    mean: Values
    std: Values
    low: Values
    high: Values

    def times(self, sign: float) -> Estimate:
        """Of the values, or of their negatives."""
        ends = (self.low, self.high) if sign > 0 else (-self.high, -self.low)
        mean, low, high = (part + 0.0 for part in (sign * self.mean, *ends))  # −0 becomes 0
        return Estimate(mean, self.std, low, high)

    def row(self, index: int) -> Estimate:
        """One of them."""
        return Estimate(*(np.asarray(part[index]) for part in self))
