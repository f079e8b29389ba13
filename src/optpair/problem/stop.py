"""When a search is over: what the user says of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.problem.defaults import LARGEST


@dataclass(frozen=True)
class Stop:
    """Over once it is likely enough that hardly anything is left to be won.

    That is, once the model gives a chance of at least `chance` that the optimum is better than the
    recommendation by at most `gap`. Under constraints, only samples with a point that meets them
    count, and a search is never over while the recommendation is not likely to meet them. It needs
    one objective: for a front, what is left to be won is not a single number.

    Examples:
        >>> Stop(gap=0.01).chance
        0.9

    Args:
        gap: what need not be won any more, in units of the objective; 0 or more.
        chance: a probability above 0, up to 1.
    """

    gap: float
    chance: float = 0.9

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", _number("gap", self.gap, GAP))
        object.__setattr__(self, "chance", _number("chance", self.chance, CHANCE))
        if not 0 <= self.gap <= LARGEST:  # NaN too
            raise ValueError(f"gap must be {GAP}, not {self.gap!r}")
        if not 0 < self.chance <= 1:
            raise ValueError(f"chance must be {CHANCE}, not {self.chance!r}")

    def __str__(self) -> str:
        return f"at most {self.gap:.5g} is left to be won, with a chance of {self.chance:.3g}"


GAP = f"a number from 0 to {LARGEST:g}, in units of the objective"
CHANCE = "a probability above 0, up to 1"


def _number(name: str, value: object, accepted: str) -> float:
    """A plain float."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError(f"{name} must be {accepted}, not {value!r:.80}")
    return float(plain) if abs(plain) <= LARGEST else float("inf")


def check_stop(given: object) -> Stop:
    """What was given, where it is a Stop."""
    if not isinstance(given, Stop):
        raise TypeError(f"stop must be a Stop, like Stop(gap=0.01), not {given!r:.80}")
    return given
