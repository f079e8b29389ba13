"""Real numbers in a range.

Floats are suggested with 12 digits of the range (on a log scale, of the value), which survive the
way to the cube and back exactly. Any other value comes back rounded to these digits, and only the
ends of a range are ends of the cube. A range that float64 does not resolve to 1e-9 of itself is
refused: what is run would not be the point that was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cached_property
from typing import ClassVar

from optpair.problem.layout import Column
from optpair.problem.parameters.base import (
    Guessed,
    When,
    assign,
    check_bounds,
    check_far,
    check_positive,
    illegal,
    log_ratio,
    plain,
    real,
    settle_when,
)
from optpair.problem.parameters.ints import MOST_LEVELS
from optpair.problem.parameters.levels import MOST_LEVELS as MOST_UNEVEN
from optpair.problem.parameters.levels import Levels

FINEST = 1e-9
"""Of a continuous range: float64 has to resolve it at least so well."""

MOST_DIGITS = 12

_FIRST, _LAST = math.nextafter(0.0, 1.0), math.nextafter(1.0, 0.0)  # inside of the cube
_EXACT = Context(prec=80)  # holds 2**40 levels of any step that float64 can tell apart


@dataclass(frozen=True)
class Float(Guessed):
    """A real number between `low` and `high`, both included.

    With `log=True` the scale is logarithmic. With `step` the legal values are low, low + step, …,
    up to the last that is not above `high`; they come out as clean decimals. With `digits` they
    have that many decimals or, on a log scale, that many significant figures. Without either,
    values are resolved to 1e-12 of the range; a range that is so narrow relative to its bounds that
    float64 has fewer than a billion numbers in it is refused.

    Args:
        low: the lowest value.
        high: the highest value.
        log: whether the scale is logarithmic; `low` must be positive.
        step: the distance between legal values; None means that all are legal.
        digits: the decimals of a legal value or, with `log=True`, its significant figures. Both
            bounds must be such values; on a linear scale, only `low`.
        guess: where you believe the optimum is; a wrong guess is forgotten as data come in.
        sure: the probability that the optimum is near the guess; 0.7 by default.
        when: the values of other parameters with which it is active, like `{"kernel": "poly"}`; a
            list means any of its values. None means always.

    Examples:
        >>> from optpair import Space
        >>> Space({"dropout": Float(0, 0.35, step=0.1)}).decode([1.0])
        {'dropout': 0.3}
        >>> Space({"lr": Float(1e-5, 1, log=True, digits=2)}).decode([0.3])
        {'lr': 0.00032}
    """

    called: ClassVar[str] = "Float"
    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    digits: int | None = field(default=None, kw_only=True)
    when: When | None = field(default=None, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            if getattr(self, name) is not None or name != "step":
                assign(self, name, real(f"{self.called}'s {name}", getattr(self, name)))
        settle_when(self)
        check_bounds(self)
        if self.log and self.step is not None:
            raise ValueError(f"{self!r}: step and log=True do not go together; leave one out")
        if max(-self.low, self.high, self.high - self.low) > 1e308:
            raise ValueError(
                f"{self!r}: bounds and high - low must be within 1e308; use other units"
            )
        if self.log and self.low < 1e-300:
            raise ValueError(
                f"{self!r}: low must be at least 1e-300 with log=True; use other units"
            )
        if self.digits is not None:
            self._check_digits()
        if self._step is not None:
            self._check_step(self._step)
        elif math.ulp(max(-self.low, self.high)) > FINEST * (self.high - self.low):
            raise ValueError(
                f"{self!r}: float64 does not resolve so narrow a range to {FINEST:g} of itself; "
                "tune the distance from low"
            )
        self._check_guess()

    def __repr__(self) -> str:
        digits = "" if self.digits is None else f", digits={self.digits!r}"
        return (
            f"Float(low={self.low!r}, high={self.high!r}, log={self.log!r}, step={self.step!r}"
            f"{digits})"
        )

    def _check_digits(self) -> None:
        digits = plain(self.digits)
        least = 1 if self.log else 0
        if isinstance(digits, bool) or not isinstance(digits, int):
            raise TypeError(f"{self!r}: digits must be an int from {least} to {MOST_DIGITS}")
        if not least <= digits <= MOST_DIGITS:
            raise ValueError(f"{self!r}: digits must be an int from {least} to {MOST_DIGITS}")
        assign(self, "digits", digits)
        if self.step is not None:
            raise ValueError(f"{self!r}: step and digits do not go together; leave one out")
        for name in ("low", "high") if self.log else ("low",):
            bound = getattr(self, name)
            if self._rounded(bound) != bound:
                kind = "significant figures" if self.log else "decimals"
                raise ValueError(
                    f"{self!r}: {name} has more than {digits} {kind}; {self._rounded(bound)!r} "
                    "would do"
                )
        if self.log and 9 * 10 ** (digits - 1) * math.log10(self.high / self.low) > MOST_UNEVEN:
            raise ValueError(
                f"{self!r}: more than {MOST_UNEVEN} levels; give fewer digits, or leave them out"
            )

    def _rounded(self, value: float) -> float:
        assert self.digits is not None
        if self.log:
            return float(f"{value:.{self.digits - 1}e}")
        return float(f"{value:.{self.digits}f}")

    def _check_step(self, step: float) -> None:
        if step <= 0 or not self._last:
            raise ValueError(f"{self!r}: step must be positive and at most high - low")
        if self._last > MOST_LEVELS:
            raise ValueError(
                f"{self!r}: more than 2**40 levels; use a continuous Float, and round it"
            )
        if step < 4 * math.ulp(max(-self.low, self.high)):
            raise ValueError(
                f"{self!r}: such a step is lost in rounding; tune the distance from low"
            )

    @property
    def _step(self) -> float | None:
        """The distance between legal values on a linear scale."""
        if self.digits is None or self.log:
            return self.step
        return float(f"1e-{self.digits}")

    @cached_property
    def _last(self) -> int | None:
        """The index of the last level; None if there are none at even distances."""
        if self._step is None:
            return None
        span = _EXACT.subtract(_decimal(self.high), _decimal(self.low))
        steps = _EXACT.divide(span, _decimal(self._step))
        return int(_EXACT.add(steps, Decimal("1e-9")))  # high may be 0.7 - 0.4 < 0.3

    @cached_property
    def _levels(self) -> Levels | None:
        """The legal values on a log scale with a number of digits."""
        if self.digits is None or not self.log:
            return None
        first, last = (math.floor(math.log10(v)) for v in (self.low, self.high))
        mantissas = range(10 ** (self.digits - 1), 10**self.digits)
        every = (
            float(f"{m}e{exponent + 1 - self.digits}")
            for exponent in range(first - 1, last + 2)  # log10 may be off by one
            for m in mantissas
        )
        values = [value for value in every if self.low <= value <= self.high]
        inner = [self._at(value) for value in values[1:-1]]
        return Levels(values, [0.0, *inner, 1.0], even_shares=False)

    @property
    def _column(self) -> Column | None:
        if self._levels is not None:
            return Column(float(len(self._levels.values) - 1), grid=self._levels.grid)
        return None if self._last is None else Column(float(self._last))

    def _check(self, name: str, value: object) -> float:
        number = real(name, value)
        # Round-off is relative to the range; but 0 is not within round-off of a log scale's 1e-9.
        span = self.high - self.low
        below, above = (self.low, self.high) if self.log else (span, span)
        if not self.low - 1e-12 * below <= number <= self.high + 1e-12 * above:
            raise illegal(name, value, self, self._steps)
        number = min(max(number, self.low), self.high)
        if self._levels is not None:
            found = self._levels.find(number)
            if found is None:
                raise illegal(name, value, self, self._steps)
            return float(found)
        if self._step is None:
            return number
        level = self._value((number - self.low) / self._step)
        if abs(number - level) > 1e-6 * self._step:
            raise illegal(name, value, self, self._steps)
        return level

    @property
    def _steps(self) -> str:
        """What makes a value between the bounds a legal one, in words."""
        if self.log and self.digits is not None:
            return f" with {self.digits} significant figure{'s' * (self.digits > 1)}"
        if self.digits is not None:
            return f" with {self.digits} decimal{'s' * (self.digits != 1)}"
        return "" if self.step is None else f" in steps of {self.step!r}"

    def _encode(self, value: float) -> list[float]:
        if self._levels is not None:
            return [self._levels.encode(value)]
        if self._step is not None and self._last is not None:
            return [round((value - self.low) / self._step) / self._last]
        if value in (self.low, self.high):
            return [float(value == self.high)]
        return [min(max(self._at(value), _FIRST), _LAST)]  # rounding makes no end of what is none

    def _at(self, value: float) -> float:
        """The place of a value on the scale, from 0 at `low` to 1 at `high`, or beyond."""
        if self.log:
            return log_ratio(value, self.low) / log_ratio(self.high, self.low)
        return (value - self.low) / (self.high - self.low)

    def _decode(self, columns: Sequence[float]) -> float:
        u = min(max(columns[0], 0.0), 1.0)
        if self._levels is not None:
            return float(self._levels.decode(u))
        if self._last is not None:
            return self._value(u * self._last)
        if u in (0.0, 1.0):
            return self.high if u else self.low
        span = self.high - self.low
        digits = 12 - math.floor(math.log10(span))
        value = self._on_log(u) if self.log else round(self.low + u * span, digits)
        return min(max(value, self.low), self.high) + 0.0  # + 0.0: never -0.0

    def _on_log(self, u: float) -> float:
        span = log_ratio(self.high, self.low)
        # The first form is exact on narrow ranges, the second does not overflow on wide ones.
        t, root = u * span, math.exp(0.5 * u * span)
        value = self.low + self.low * math.expm1(t) if t < 700.0 else self.low * root * root
        # On a range of less than two decades, 12 digits of the value are fewer of the range.
        extra = max(0, math.ceil(math.log10(5.0 / span)))
        return float(f"{value:.{min(11 + extra, 16)}e}")

    def _value(self, index: float) -> float:
        """The value of the nearest level, as the decimal that the user would have written."""
        level = min(round(index), self._last or 0)
        if level == 0 or self._step is None:
            return self.low
        exact = _EXACT.add(_decimal(self.low), _EXACT.multiply(level, _decimal(self._step)))
        digit = Decimal(1).scaleb(math.floor(math.log10(self._step)) - 11, context=_EXACT)
        return min(float(exact.quantize(digit, context=_EXACT)), self.high)

    def _accept(self, name: str, value: object) -> float:
        number = real(name, value)
        if self.log:
            check_positive(name, number)
        check_far(name, value, self._place(number)[0], self.low, self.high)
        return number

    def _place(self, value: float) -> list[float]:
        if self._step is not None and self._last is not None:
            return [(value - self.low) / self._step / self._last]
        return [self._at(value)]


def _decimal(number: float) -> Decimal:
    """The decimal that the user wrote: 0.1, not 0.1000000000000000055."""
    return Decimal(repr(number))
