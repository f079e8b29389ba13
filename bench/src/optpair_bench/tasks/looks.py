"""Tasks with a fidelity: functions of the unit cube and of u, from 0, cheapest, to 1, the target.

All are to be minimised, and what they are worth at u = 1 is the question. `borehole`, `currin` and
`hartmann6` are the literature's, between their low fidelity and their high one; in `curves` a loss
falls by a power of the epochs that depends on the parameters, so that curves cross; in `misled`
what is cheap has nothing to do with the target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from optpair_bench.tasks.functions import HARTMANN6_A, HARTMANN6_P

Point = np.ndarray


def _borehole(x: Point, u: float) -> float:
    """Minus the flow of water through a borehole, in hundreds of cubic metres per year."""
    low = np.array([0.05, 100, 63070, 990, 63.1, 700, 1120, 9855])
    high = np.array([0.15, 50000, 115600, 1110, 116, 820, 1680, 12045])
    rw, r, tu, hu, tl, hl, length, kw = low + x * (high - low)
    wide = np.log(r / rw)
    leak = 2 * length * tu / (wide * rw**2 * kw)
    fine = 2 * np.pi * tu * (hu - hl) / (wide * (1 + leak + tu / tl))
    coarse = 5 * tu * (hu - hl) / (wide * (1.5 + leak + tu / tl))
    return float(-(u * fine + (1 - u) * coarse) / 100)


def _currin(x: Point, u: float) -> float:
    def fine(a: float, b: float) -> float:
        top = 2300 * a**3 + 1900 * a**2 + 2092 * a + 60
        falls = 1 - np.exp(-1 / (2 * max(b, 1e-9)))
        return float(falls * top / (100 * a**3 + 500 * a**2 + 4 * a + 20))

    a, b = x
    around = [(min(a + 0.05, 1), b + 0.05), (min(a + 0.05, 1), max(0, b - 0.05))]
    around += [(max(a - 0.05, 0), b + 0.05), (max(a - 0.05, 0), max(0, b - 0.05))]
    coarse = sum(fine(*place) for place in around) / 4
    return -(u * fine(a, b) + (1 - u) * coarse)


def _hartmann6(x: Point, u: float) -> float:
    weights = np.array([1.0, 1.2, 3.0, 3.2]) - 0.3 * (1 - u) * np.array([1.0, -1.0, 1.0, 1.0])
    return float(-np.sum(weights * np.exp(-np.sum(HARTMANN6_A * (x - HARTMANN6_P) ** 2, axis=1))))


def _curves(x: Point, u: float) -> float:
    end = (x[0] - 0.6) ** 2 + 0.7 * (x[1] - 0.3) ** 2 + 0.4 * (x[2] - x[0]) ** 2
    end += 0.3 * (x[3] - 0.5) ** 2
    rate = 0.25 + 0.9 * (1 - x[0])  # what is best in the end is slow at first
    return float(end + 1.5 * 27 ** (-rate * u))


def _misled(x: Point, u: float) -> float:
    here = 4 * ((x[0] - 0.25) ** 2 + (x[1] - 0.7) ** 2) + 0.2 * np.cos(9 * x[0])
    there = 4 * ((x[0] - 0.8) ** 2 + (x[1] - 0.15) ** 2) + 0.4 * np.sin(11 * x[1])
    return float(here if u > 0.9 else there)


@dataclass(frozen=True)
class LookTask:
    """A function, its dimensions, and the standard deviation of its noise."""

    function: Callable[[Point, float], float]
    dimensions: int
    noise: float

    @cached_property
    def best(self) -> float:
        """The lowest value at the target: the best of climbs from many starts."""
        starts = np.random.default_rng(0).uniform(size=(64, self.dimensions))
        bounds = [(0.0, 1.0)] * self.dimensions
        return float(
            min(minimize(self.function, x, args=(1.0,), bounds=bounds).fun for x in starts)
        )


LOOK_TASKS: Mapping[str, LookTask] = {
    "borehole": LookTask(_borehole, 8, 0.02),
    "currin": LookTask(_currin, 2, 0.1),
    "hartmann6": LookTask(_hartmann6, 6, 0.02),
    "curves": LookTask(_curves, 4, 0.01),
    "misled": LookTask(_misled, 2, 0.02),
}
