"""Outcomes of a trial: what is measured, and what is wanted of it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from optpair.problem.parameters.base import SURE, check_sure

Direction = Literal["minimize", "maximize"]

MOST_NOISE = 1e150
OPEN = ", or None if there is none"
"""A standard deviation beyond this has no finite square."""


@dataclass(frozen=True)
class Objective:
    """An outcome to be made as small or as large as possible.

    Examples:
        >>> Objective("maximize", bounds=(0, 1)).bounds
        (0.0, 1.0)

    Args:
        direction: `"minimize"` or `"maximize"`.
        noise: the standard deviation of every value's noise, 0 if values are exact; None if it is
            not known.
        bounds: limits that it can never exceed, like (0, 1) for an accuracy; either may be None.
            Predictions stay within them.
        guess: a pair of values between which you believe the best possible value to be; a wrong
            guess is forgotten as data come in.
        sure: the probability that the guess is about right; 0.7 by default.
    """

    direction: Direction = "minimize"
    noise: float | None = None
    bounds: tuple[float | None, float | None] | None = None
    guess: tuple[float, float] | None = None
    sure: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.direction, str) or self.direction not in get_args(Direction):
            hint = meant(self.direction, get_args(Direction))
            raise ValueError(
                f"direction must be 'minimize' or 'maximize', not {self.direction!r:.80}{hint}"
            )
        if self.noise is not None:
            object.__setattr__(self, "noise", check_noise(self.noise))
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _check_bounds(self.bounds))
        if self.guess is not None:
            object.__setattr__(self, "guess", _check_guess(self.guess))
            sure = check_sure("Objective's", SURE if self.sure is None else self.sure)
            object.__setattr__(self, "sure", sure)
        elif self.sure is not None:
            raise ValueError(f"Objective's sure={self.sure!r} needs a guess to be sure of")

    @property
    def sign(self) -> float:
        """What values are multiplied by, so that larger is better; and back again."""
        return -1.0 if self.direction == "minimize" else 1.0

    @property
    def noise_var(self) -> float | None:
        """The variance of every value's noise, where it is known."""
        return _squared(self.noise)

    @property
    def reach(self) -> tuple[float, float]:
        """The bounds of sign · value: −∞ and ∞ where there are none."""
        return _signed(self.sign, *(self.bounds or (None, None)))

    @property
    def limits(self) -> tuple[float, float]:
        """An objective has none: −∞ and ∞."""
        return -math.inf, math.inf

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs to build an equal one."""
        known = {} if self.noise is None else {"noise": self.noise}
        within = {} if self.bounds is None else {"bounds": list(self.bounds)}
        guess = {} if self.guess is None else {"guess": list(self.guess), "sure": self.sure}
        return {"kind": "Objective", "direction": self.direction} | known | within | guess


@dataclass(frozen=True)
class Constraint:
    """An outcome that must stay at or above `low`, at or below `high`, or between the two.

    Examples:
        >>> Constraint(high=20).met(18.2)
        True

    Args:
        low: the lowest acceptable value, in the outcome's own units.
        high: the highest acceptable value.
        noise: the standard deviation of every value's noise, 0 if values are exact; None if it is
            not known.
    """

    low: float | None = None
    high: float | None = None
    noise: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check_target(name, value, OPEN))
        if self.low is None and self.high is None:
            raise ValueError(
                "a Constraint needs low or high, like Constraint(high=20.0), or both; an outcome "
                "without a limit is an Objective, or not needed"
            )
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"low must be below high, not low={self.low:g}, high={self.high:g}")
        if self.noise is not None:
            object.__setattr__(self, "noise", check_noise(self.noise))

    @property
    def sign(self) -> float:
        """What values are multiplied by, so that the good side is up where there is one."""
        return -1.0 if self.low is None else 1.0

    @property
    def noise_var(self) -> float | None:
        """The variance of every value's noise, where it is known."""
        return _squared(self.noise)

    @property
    def reach(self) -> tuple[float, float]:
        """A constraint has no bounds: −∞ and ∞."""
        return -math.inf, math.inf

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of sign · value: −∞ or ∞ if there is none."""
        return _signed(self.sign, self.low, self.high)

    def met(self, value: float) -> bool:
        """Whether a value is within the limits."""
        low, high = self.limits
        return low <= self.sign * value <= high

    def __str__(self) -> str:
        least = "" if self.low is None else f"at least {self.low:.5g}"
        most = "" if self.high is None else f"at most {self.high:.5g}"
        return " and ".join(filter(None, (least, most)))

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs to build an equal one."""
        known = {} if self.noise is None else {"noise": self.noise}
        return {"kind": "Constraint", "low": self.low, "high": self.high} | known


Outcome = Objective | Constraint


def as_outcome(name: str, given: object) -> Outcome:
    """An outcome as it is or, for short, the direction of an objective."""
    if isinstance(given, Outcome):
        return given
    if isinstance(given, str) and given in get_args(Direction):
        return Objective(given)  # type: ignore[arg-type]
    raise TypeError(
        f"outcome {name!r} must be 'minimize', 'maximize', an Objective or a Constraint, "
        f"not {given!r:.80}{meant(given, get_args(Direction))}"
    )


def meant(name: object, names: Iterable[str]) -> str:
    """A question, where a name is nearly one of some: to be put behind an error."""
    close = difflib.get_close_matches(str(name), list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_noise(value: object) -> float:
    """A standard deviation as a plain float, zero allowed."""
    accepted = (
        f"None, where the noise is not known, or its standard deviation from 0 to {MOST_NOISE:g}"
    )
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError(f"noise must be {accepted}, not {value!r:.80}")
    if not 0 <= plain <= MOST_NOISE:  # NaN too
        raise ValueError(f"noise must be {accepted}, not {value!r:.80}")
    return float(plain)


def _squared(noise: float | None) -> float | None:
    return None if noise is None else noise * noise


def _signed(sign: float, low: float | None, high: float | None) -> tuple[float, float]:
    """Two ends after multiplication by a sign, the lower one first."""
    ends = -math.inf if low is None else low, math.inf if high is None else high
    return ends if sign > 0 else (-ends[1], -ends[0])


def check_target(name: str, value: object, instead: str = "") -> float:
    """A finite number as a plain float; `instead` says what else is accepted."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError(f"{name} must be a finite number{instead}, not {value!r:.80}")
    try:
        number = float(plain)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number{instead}, not {value!r:.80}")
    return number


def _check_bounds(given: object) -> tuple[float | None, float | None] | None:
    """A pair of ends, of which either may be None; None if both are."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(
            f"bounds must be a pair like (0, 1), in which either may be None, not {given!r:.80}"
        )
    low, high = (
        None if end is None else check_target(f"bounds[{i}]", end, OPEN)
        for i, end in enumerate(given)
    )
    if low is not None and high is not None and not low < high:
        raise ValueError(f"bounds must increase, not ({low:g}, {high:g})")
    return None if low is None and high is None else (low, high)


def _check_guess(given: object) -> tuple[float, float]:
    """Two values that increase."""
    accepted = "a pair of values like (0.9, 0.95), between which the best one is believed to be"
    if not isinstance(given, tuple | list) or len(given) != 2 or None in given:
        raise TypeError(f"Objective's guess must be {accepted}, not {given!r:.80}")
    low, high = (check_target(f"guess[{i}]", end) for i, end in enumerate(given))
    if not low < high:
        raise ValueError(f"Objective's guess must be {accepted}, not ({low:g}, {high:g})")
    return low, high


def outcome_from_json(document: Any) -> Outcome:
    """The outcome that `to_json` described."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "Objective":
        names = ("noise", "bounds", "guess", "sure")
        return Objective(document["direction"], **{name: document.get(name) for name in names})
    if kind == "Constraint":
        return Constraint(document["low"], document["high"], document.get("noise"))
    raise ValueError(f"{document!r} is not an outcome")
