"""Whole numbers in a range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from optpair.problem.defaults import LARGEST
from optpair.problem.layout import Column
from optpair.problem.parameters.base import (
    Guessed,
    When,
    assign,
    check_bounds,
    check_far,
    check_positive,
    illegal,
    number_of,
    plain,
    settle_when,
)

MOST_LEVELS = 2**40
"""More levels than this (log: larger values) would not survive the way through float64."""


@dataclass(frozen=True)
class Int(Guessed):
    """A whole number between `low` and `high`, both included.

    With `log=True` the scale is logarithmic. With `step` the legal values are low, low + step, …,
    up to the last that is not above `high`.

    Args:
        low: the lowest value.
        high: the highest value.
        log: whether the scale is logarithmic; `low` must be positive.
        step: the distance between legal values.
        guess: where you believe the optimum is; a wrong guess is forgotten as data come in.
        sure: the probability that the optimum is near the guess; 0.7 by default.
        when: the values of other parameters with which it is active, like `{"kernel": "poly"}`; a
            list means any of its values. None means always.

    Examples:
        >>> from optpair import Space
        >>> Space({"width": Int(16, 1024, log=True)}).decode([0.5])
        {'width': 128}
    """

    called: ClassVar[str] = "Int"
    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int = field(default=1, kw_only=True)
    when: When | None = field(default=None, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            number = plain(getattr(self, name))
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"Int's {name} must be an int, not {number!r}; or use Float")
            assign(self, name, int(number))
        settle_when(self)
        check_bounds(self)
        if self.log and self.step != 1:
            raise ValueError(f"{self!r}: step and log=True do not go together; leave one out")
        if self.step <= 0 or not self._last:
            raise ValueError(f"{self!r}: step must be positive and at most high - low")
        if self._last > MOST_LEVELS:
            raise ValueError(
                f"{self!r}: more than 2**40 levels; use a continuous Float, and round it"
            )
        if self.log and self.high > MOST_LEVELS:
            raise ValueError(f"{self!r}: high must be at most 2**40 with log=True; leave log out")
        if max(-self.low, self.high) > LARGEST:
            raise ValueError(
                f"{self.called}'s bounds must be within ±{LARGEST:g}; tune the distance from low"
            )
        self._check_guess()

    @property
    def _last(self) -> int:
        """The index of the last level."""
        return (self.high - self.low) // self.step

    @property
    def _column(self) -> Column:
        return Column(float(self._last), float(self.low) if self.log else 1.0, self.log)

    def _check(self, name: str, value: object) -> int:
        number = plain(value)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"{name} must be an int, not {value!r}")
        inside = self.low <= number <= self.high and number == int(number)
        if not inside or (int(number) - self.low) % self.step:
            raise illegal(name, value, self, f" in steps of {self.step!r}")
        return int(number)

    def _encode(self, value: int) -> list[float]:
        level = (value - self.low) // self.step
        if self.log:
            return [math.log1p(level / self.low) / math.log1p(self._last / self.low)]
        return [level / self._last]

    def _decode(self, columns: Sequence[float]) -> int:
        u = min(max(columns[0], 0.0), 1.0)
        level = u * self._last
        if self.log:
            level = self.low * math.expm1(u * math.log1p(self._last / self.low))
        return self.low + min(round(level), self._last) * self.step

    def _accept(self, name: str, value: object) -> int | float:
        number = number_of(name, value)
        if self.log:
            check_positive(name, number)
        check_far(name, value, self._place(number)[0], self.low, self.high)
        return number

    def _place(self, value: float) -> list[float]:
        level = (value - self.low) / self.step
        if self.log:
            return [math.log(value / self.low) / math.log1p(self._last / self.low)]
        return [level / self._last]
