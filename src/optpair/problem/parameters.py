"""Parameters: the user's values ↔ columns of the unit cube, and what to say to bad input.

All in plain Python floats and ints, so that a value that was suggested, saved, loaded and told
again is the same value: floats are suggested with 12 digits of the range (on a log scale, of the
value), which survive the way to the cube and back exactly. Any other value comes back rounded to
these digits, and only the ends of a range are ends of the cube. A range that float64 does not
resolve to 1e-9 of itself is refused: what is run would not be the point that was chosen.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cached_property
from typing import Any

import numpy as np

from optpair.problem.defaults import LARGEST
from optpair.problem.layout import HOT

MOST_LEVELS = 2**40
"""More levels than this (log: larger values) would not survive the way through float64."""

Value = None | bool | int | float | str

FINEST = 1e-9
"""Of a continuous range: float64 has to resolve it at least so well."""

_FIRST, _LAST = math.nextafter(0.0, 1.0), math.nextafter(1.0, 0.0)  # inside of the cube
_EXACT = Context(prec=80)  # holds 2**40 levels of any step that float64 can tell apart
_TUNE_NOTHING = "one legal value has nothing to tune: leave it out of the space"


@dataclass(frozen=True)
class Float:
    """A real number between `low` and `high`, both included.

    With `log=True` the scale is logarithmic. With `step` the legal values are low, low + step, …,
    up to the last that is not above `high`; they come out as clean decimals. Without a step, values
    are told apart to 1e-12 of the range, and a range that is narrow beside its bounds, so that
    float64 has fewer than a billion numbers in it, is refused.

    Args:
        low: the lowest value.
        high: the highest value.
        log: whether the scale is logarithmic; `low` must be positive.
        step: the distance between legal values; None means that all are legal.

    Examples:
        >>> from optpair import Space
        >>> Space({"dropout": Float(0, 0.35, step=0.1)}).decode([1.0])
        {'dropout': 0.3}
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            if getattr(self, name) is not None or name != "step":
                _set(self, name, _real(f"Float's {name}", getattr(self, name)))
        _check_range(self)

    @cached_property
    def _last(self) -> int | None:
        """The index of the last level; None on a continuous scale."""
        if self.step is None:
            return None
        span = _EXACT.subtract(_decimal(self.high), _decimal(self.low))
        steps = _EXACT.divide(span, _decimal(self.step))
        return int(_EXACT.add(steps, Decimal("1e-9")))  # high may be 0.7 - 0.4 < 0.3

    def _check(self, name: str, value: object) -> float:
        number = _real(name, value)
        # Round-off is relative to the range; but 0 is not within round-off of a log scale's 1e-9.
        span = self.high - self.low
        below, above = (self.low, self.high) if self.log else (span, span)
        if not self.low - 1e-12 * below <= number <= self.high + 1e-12 * above:
            raise _illegal(name, value, self)
        number = min(max(number, self.low), self.high)
        if self.step is None:
            return number
        level = self._value((number - self.low) / self.step)
        if abs(number - level) > 1e-6 * self.step:
            raise _illegal(name, value, self)
        return level

    def _encode(self, value: float) -> list[float]:
        if self.step is not None and self._last is not None:
            return [round((value - self.low) / self.step) / self._last]
        if value in (self.low, self.high):
            return [float(value == self.high)]
        if self.log:
            u = _log_ratio(value, self.low) / _log_ratio(self.high, self.low)
        else:
            u = (value - self.low) / (self.high - self.low)
        return [min(max(u, _FIRST), _LAST)]  # rounding makes no end of what is none

    def _decode(self, columns: Sequence[float]) -> float:
        u = min(max(columns[0], 0.0), 1.0)
        if self._last is not None:
            return self._value(u * self._last)
        if u in (0.0, 1.0):
            return self.high if u else self.low
        span = self.high - self.low
        digits = 12 - math.floor(math.log10(span))
        value = self._on_log(u) if self.log else round(self.low + u * span, digits)
        return min(max(value, self.low), self.high) + 0.0  # + 0.0: never -0.0

    def _on_log(self, u: float) -> float:
        span = _log_ratio(self.high, self.low)
        # The first form is exact on narrow ranges, the second does not overflow on wide ones.
        t, root = u * span, math.exp(0.5 * u * span)
        value = self.low + self.low * math.expm1(t) if t < 700.0 else self.low * root * root
        # On a range of less than two decades, 12 digits of the value are fewer of the range.
        extra = max(0, math.ceil(math.log10(5.0 / span)))
        return float(f"{value:.{min(11 + extra, 16)}e}")

    def _value(self, index: float) -> float:
        """The value of the nearest level, as the decimal that the user would have written."""
        level = min(round(index), self._last or 0)
        if level == 0 or self.step is None:
            return self.low
        exact = _EXACT.add(_decimal(self.low), _EXACT.multiply(level, _decimal(self.step)))
        digit = Decimal(1).scaleb(math.floor(math.log10(self.step)) - 11, context=_EXACT)
        return min(float(exact.quantize(digit, context=_EXACT)), self.high)


@dataclass(frozen=True)
class Int:
    """A whole number between `low` and `high`, both included.

    With `log=True` the scale is logarithmic. With `step` the legal values are low, low + step, …,
    up to the last that is not above `high`.

    Args:
        low: the lowest value.
        high: the highest value.
        log: whether the scale is logarithmic; `low` must be positive.
        step: the distance between legal values.

    Examples:
        >>> from optpair import Space
        >>> Space({"width": Int(16, 1024, log=True)}).decode([0.5])
        {'width': 128}
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            number = _plain(getattr(self, name))
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"Int's {name} must be an int, not {number!r}; or use Float")
            _set(self, name, int(number))
        _check_range(self)

    @property
    def _last(self) -> int:
        """The index of the last level."""
        return (self.high - self.low) // self.step

    def _check(self, name: str, value: object) -> int:
        number = _plain(value)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"{name} must be an int, not {value!r}")
        inside = self.low <= number <= self.high and number == int(number)
        if not inside or (int(number) - self.low) % self.step:
            raise _illegal(name, value, self)
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


@dataclass(frozen=True)
class Categorical:
    """One of some choices without an order: None, bools, ints, floats or strings.

    Choices are told apart by type as well as value: True, 1 and 1.0 are three choices.

    Args:
        choices: a list or tuple of at least two.

    Examples:
        >>> from optpair import Space
        >>> Space({"act": Categorical(["relu", "tanh", None])}).decode([0.1, 0.9, 0.3])
        {'act': 'tanh'}
    """

    choices: Sequence[Value]
    _typed: tuple[tuple[type, Value], ...] = field(init=False, repr=False)  # 1 == True, alas

    def __post_init__(self) -> None:
        # The order of a set changes from process to process, and with it the cube.
        if not isinstance(self.choices, list | tuple | range | np.ndarray):
            accepted = "a list or tuple, like ['a', 'b']"
            raise TypeError(f"Categorical's choices must be {accepted}, not {self.choices!r}")
        _set(self, "choices", tuple(_plain(choice) for choice in self.choices))
        _set(self, "_typed", tuple((type(choice), choice) for choice in self.choices))
        for i, (kind, choice) in enumerate(self._typed):
            if kind not in (type(None), bool, int, float, str):
                accepted = "None, bool, int, float or str (give it a name)"
                raise TypeError(f"Categorical's choices must be {accepted}, not {choice!r}")
            if isinstance(choice, float) and not math.isfinite(choice):
                raise ValueError(f"Categorical's choices must be finite, not {choice!r}")
            if (kind, choice) in self._typed[:i]:
                raise ValueError(f"Categorical's choices must differ: {choice!r} is given twice")
        if len(self.choices) < 2:
            raise ValueError(f"{self!r} must have two choices or more; {_TUNE_NOTHING}")

    def _check(self, name: str, value: object) -> Value:
        plain = _plain(value)
        for kind, choice in self._typed:
            if type(plain) is kind and plain == choice:
                return choice
        raise ValueError(f"{name} must be one of {list(self.choices)!r}, not {value!r}")

    def _encode(self, value: Value) -> list[float]:
        return [HOT * (typed == (type(value), value)) for typed in self._typed]

    def _decode(self, columns: Sequence[float]) -> Value:
        return self.choices[max(range(len(self.choices)), key=columns.__getitem__)]


Parameter = Float | Int | Categorical
KINDS = {kind.__name__: kind for kind in (Float, Int, Categorical)}


def _check_range(p: Float | Int) -> None:
    """What Float and Int ask of their bounds, scale and step alike."""
    if not isinstance(p.log, bool):
        raise TypeError(f"{p!r}: log must be True or False")
    if p.low >= p.high:
        hint = _TUNE_NOTHING if p.low == p.high else "did you swap them?"
        raise ValueError(f"{p!r}: low must be below high; {hint}")
    if p.log and p.low <= 0:
        raise ValueError(f"{p!r}: log=True needs low > 0; raise low, or leave log out")
    if p.log and p.step != (1 if isinstance(p, Int) else None):
        raise ValueError(f"{p!r}: step and log=True do not go together; leave one of them out")
    if isinstance(p, Float) and max(-p.low, p.high, p.high - p.low) > 1e308:
        raise ValueError(f"{p!r}: bounds and high - low must be within 1e308; use other units")
    if p.log and p.low < 1e-300:
        raise ValueError(f"{p!r}: low must be at least 1e-300 with log=True; use other units")
    if p.step is None:
        if math.ulp(max(-p.low, p.high)) > FINEST * (p.high - p.low):
            raise ValueError(
                f"{p!r}: float64 does not resolve so narrow a range to {FINEST:g} of itself; tune "
                "the distance from low"
            )
        return
    if p.step <= 0 or not p._last:
        raise ValueError(f"{p!r}: step must be positive and at most high - low")
    if p._last > MOST_LEVELS:
        raise ValueError(f"{p!r}: more than 2**40 levels; use a continuous Float, and round it")
    if p.log and p.high > MOST_LEVELS:
        raise ValueError(f"{p!r}: high must be at most 2**40 with log=True; leave log out")
    if isinstance(p, Int) and max(-p.low, p.high) > LARGEST:
        raise ValueError(f"Int's bounds must be within ±{LARGEST:g}; tune the distance from low")
    if isinstance(p.step, float) and p.step < 4 * math.ulp(max(-p.low, p.high)):
        raise ValueError(f"{p!r}: such a step is lost in rounding; tune the distance from low")


def _illegal(name: str, value: object, p: Float | Int) -> ValueError:
    steps = "" if p.step is None else f" in steps of {p.step!r}"
    return ValueError(f"{name} must be from {p.low!r} to {p.high!r}{steps}, not {value!r}")


def parameter_to_json(p: Parameter) -> dict[str, Any]:
    """Its kind and what it was made with, ready for `json.dumps`."""
    fields = {f.name: getattr(p, f.name) for f in dataclasses.fields(p) if f.init}
    fields = {k: list(v) if k == "choices" else v for k, v in fields.items()}
    return {"kind": type(p).__name__} | fields


def width(p: Parameter) -> int:
    """The number of columns in the cube."""
    return len(p.choices) if isinstance(p, Categorical) else 1


def _set(p: Parameter, name: str, value: object) -> None:
    object.__setattr__(p, name, value)


def _plain(value: object) -> Any:
    """A plain Python value from a scalar of NumPy or another array library."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def _real(name: str, value: object) -> float:
    number = _plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not abs(number) <= sys.float_info.max:  # NaN too, and ints that float() would refuse
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return float(number)


def _decimal(number: float) -> Decimal:
    """The decimal that the user wrote: 0.1, not 0.1000000000000000055."""
    return Decimal(repr(number))


def _log_ratio(value: float, low: float) -> float:
    """log(value / low), exact where the two are close, finite where their ratio is not."""
    excess = (value - low) / low
    if math.isfinite(excess):
        return math.log1p(excess)
    return 2.0 * math.log(math.sqrt(value) / math.sqrt(low))
