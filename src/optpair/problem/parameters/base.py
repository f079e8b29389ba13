"""What all kinds of parameters share: plain numbers, and what to say to bad input.

Everything is plain Python floats and ints, so that a value that was suggested, saved, loaded and
told again is the same value.

Suggestions are legal values. A number that was really run may be anywhere: between two levels, or
outside the range, where the column leaves [0, 1]. A parameter has

    _check(name, value)      a legal value, clean; or an error
    _encode(value)           the columns of a legal value
    _decode(columns)         the nearest legal value
    _accept(name, value)     any value that has a place, clean; or an error
    _place(value)            the columns of such a value
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Value = None | bool | int | float | str
When = Mapping[str, Any]
"""The values of other parameters with which a parameter is active: see `optpair.Space`."""

FARTHEST = 3.0
"""Ranges by which data may be outside: farther ones teach nothing, and are likely mistakes."""

SURE = 0.7
"""The default of `sure`."""

MOST_SURE = 0.99

TUNE_NOTHING = "one legal value has nothing to tune: leave it out of the space"


def assign(p: object, name: str, value: object) -> None:
    """Set a field of a frozen parameter while it is made."""
    object.__setattr__(p, name, value)


def plain(value: object) -> Any:
    """A plain Python value from a scalar of NumPy or another array library."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def settle_when(p: Any) -> None:
    """Make `when` a dict of tuples, or refuse it."""
    given = p.when
    if given is None:
        return
    accepted = "a dict of other parameters' values, like {'kernel': 'poly'} or {'layers': [2, 3]}"
    if not isinstance(given, Mapping) or not given:
        raise TypeError(f"{type(p).__name__}'s when must be {accepted}, not {given!r}")
    clean = {}
    for name, values in given.items():
        if not isinstance(name, str) or isinstance(values, Mapping | set | frozenset):
            raise TypeError(f"{type(p).__name__}'s when must be {accepted}, not {given!r}")
        several = values if isinstance(values, list | tuple) else [values]
        if len(several) == 0:
            raise ValueError(f"{type(p).__name__}'s when has no value of {name!r}: name one")
        clean[name] = tuple(plain(value) for value in several)
    assign(p, "when", clean)


def number_of(name: str, value: object) -> int | float:
    """A finite int or float, as it is."""
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not abs(number) <= sys.float_info.max:  # NaN too, and ints that float() would refuse
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return number


def real(name: str, value: object) -> float:
    """A finite float."""
    return float(number_of(name, value))


def check_flag(p: object, name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise TypeError(f"{p!r}: {name} must be True or False")


def check_far(name: str, value: object, u: float, low: float, high: float) -> None:
    """Refuse data too far from the range to teach anything: most often they have other units."""
    if not -FARTHEST <= u <= 1 + FARTHEST:
        raise ValueError(
            f"{name} is {value!r}, more than {FARTHEST:g} times the range outside of {low!r} to "
            f"{high!r}: is it in other units? If it is right, leave the row out: so far away it "
            "teaches nothing"
        )


def check_positive(name: str, value: float) -> None:
    """Refuse what has no logarithm."""
    if value <= 0:
        raise ValueError(f"{name} must be above 0, as its scale is logarithmic, not {value!r}")


def log_ratio(value: float, low: float) -> float:
    """log(value / low), exact where the two are close, finite where their ratio is not."""
    excess = (value - low) / low
    if math.isfinite(excess) and excess > -0.5:
        return math.log1p(excess)
    return 2.0 * math.log(math.sqrt(value) / math.sqrt(low))


def check_bounds(p: Any) -> None:
    """What Float and Int ask of their bounds and scale alike."""
    check_flag(p, "log", p.log)
    if p.low >= p.high:
        hint = TUNE_NOTHING if p.low == p.high else "did you swap them?"
        raise ValueError(f"{p!r}: low must be below high; {hint}")
    if p.log and p.low <= 0:
        raise ValueError(f"{p!r}: log=True needs low > 0; raise low, or leave log out")


def illegal(name: str, value: object, p: Any, steps: str) -> ValueError:
    """A number outside of a range, or between its levels."""
    return ValueError(f"{name} must be from {p.low!r} to {p.high!r}{steps}, not {value!r}")


def check_sure(label: str, sure: object) -> float:
    """The chance of a guess, as a plain float."""
    number = real(f"{label} sure", sure)
    if not 0 < number <= MOST_SURE:
        raise ValueError(
            f"{label} sure must be the chance that the guess is about right, above 0 and at most "
            f"{MOST_SURE}, not {sure!r}; without a guess, leave both out"
        )
    return number


@dataclass(frozen=True)
class Guessed:
    """What every parameter may have: a guess of where the optimum is.

    `guess` is a legal value, and `sure` the probability that the optimum is near it: for numbers
    within about a tenth of the range, for categories exactly there.
    """

    guess: Any = field(default=None, kw_only=True, repr=False)
    sure: float | None = field(default=None, kw_only=True, repr=False)

    def _check_guess(self) -> None:
        label = f"{type(self).__name__}'s"
        if self.guess is None:
            if self.sure is not None:
                raise ValueError(f"{label} sure={self.sure!r} needs a guess to be sure of")
            return
        assign(self, "guess", self._check(f"{label} guess", self.guess))  # type: ignore[attr-defined]
        assign(self, "sure", check_sure(label, SURE if self.sure is None else self.sure))
