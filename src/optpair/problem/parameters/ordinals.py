"""Numbers to choose from, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from optpair.problem.layout import Column
from optpair.problem.parameters.base import (
    TUNE_NOTHING,
    Guessed,
    When,
    assign,
    check_far,
    check_positive,
    log_ratio,
    number_of,
    plain,
    settle_when,
)
from optpair.problem.parameters.levels import CLOSEST, MOST_LEVELS, Levels

Spacing = Literal["value", "log", "even"]

CROWDED = 0.01
"""Of the range: where two neighbours would be closer, levels are spaced evenly."""


@dataclass(frozen=True)
class Ordinal(Guessed):
    """One of some ordered numbers, as a dial, a rack or a catalogue offers them.

    The model sees the levels in order on one scale, so it learns from one about its neighbours. By
    default they are spaced by value or by logarithm, whichever is more even, or evenly if two of
    them would still be closer than 1 % of the range.

    Args:
        levels: a list or tuple of at least two numbers, in any order; ints stay ints.
        spacing: `"value"`, `"log"` or `"even"`; None chooses.
        guess: where you believe the optimum is; a wrong guess is forgotten as data come in.
        sure: the probability that the optimum is near the guess; 0.7 by default.
        when: the values of other parameters with which it is active, like `{"kernel": "poly"}`; a
            list means any of its values. None means always.

    Examples:
        >>> from optpair import Space
        >>> Ordinal([1, 2, 5, 10]).spacing, Ordinal([10, 20, 25, 30]).spacing
        ('log', 'value')
        >>> Space({"batch": Ordinal([16, 32, 64, 256])}).decode([0.6])
        {'batch': 64}
    """

    levels: Sequence[int | float]
    spacing: Spacing | None = field(default=None, kw_only=True)
    when: When | None = field(default=None, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        settle_when(self)
        if not isinstance(self.levels, list | tuple | range | np.ndarray):
            accepted = "a list or tuple of numbers, like [1, 2, 5, 10]"
            raise TypeError(f"Ordinal's levels must be {accepted}, not {self.levels!r}")
        assign(self, "levels", tuple(sorted(_level(level) for level in self.levels)))
        for below, above in pairwise(self.levels):
            if below == above:
                raise ValueError(f"Ordinal's levels must differ: {above!r} is given twice")
        if len(self.levels) < 2:
            raise ValueError(f"{self!r} must have two levels or more; {TUNE_NOTHING}")
        if len(self.levels) > MOST_LEVELS:
            raise ValueError(
                f"Ordinal has {len(self.levels)} levels, and may have {MOST_LEVELS}: use Int, or "
                "Float with a step"
            )
        if max(-self.low, self.high, float(self.high) - float(self.low)) > 1e308:
            raise ValueError(f"{self!r}: levels and their span must be within 1e308; rescale them")
        self._check_spacing()
        self._check_guess()

    def _check_spacing(self) -> None:
        """Choose the spacing where none is given; refuse one that does not suit the levels."""
        if self.spacing is None:
            known = [self._spaced(way) for way in self._ways]
            best = max(range(len(known)), key=lambda i: known[i].closest)
            chosen = self._ways[best] if known[best].closest >= CROWDED else "even"
            assign(self, "spacing", chosen)
            return
        if not isinstance(self.spacing, str) or self.spacing not in get_args(Spacing):
            raise ValueError(
                f"Ordinal's spacing must be 'value', 'log' or 'even', not {self.spacing!r}"
            )
        if self.spacing == "log" and self.low <= 0:
            raise ValueError(f"{self!r}: spacing='log' needs levels above 0; use 'even'")
        if self._known.closest < CLOSEST:
            raise ValueError(
                f"{self!r}: two levels are closer than {CLOSEST:g} of the range, where the model "
                "cannot tell them apart; use spacing='even'"
            )

    @property
    def low(self) -> int | float:
        """The lowest level."""
        return self.levels[0]

    @property
    def high(self) -> int | float:
        """The highest level."""
        return self.levels[-1]

    @property
    def _ways(self) -> tuple[Spacing, ...]:
        return ("value", "log") if self.low > 0 else ("value",)

    def _spaced(self, way: Spacing) -> Levels:
        inner = [_at(way, level, self.levels) for level in self.levels[1:-1]]
        return Levels(self.levels, [0.0, *inner, 1.0], even_shares=True)

    @cached_property
    def _known(self) -> Levels:
        assert self.spacing is not None
        return self._spaced(self.spacing)

    @property
    def _column(self) -> Column:
        return Column(float(len(self.levels) - 1), grid=self._known.grid)

    def _check(self, name: str, value: object) -> int | float:
        level = self._known.find(number_of(name, value))
        if level is None:
            raise ValueError(f"{name} must be one of {_listed(self.levels)}, not {value!r}")
        return level

    def _encode(self, value: float) -> list[float]:
        return [self._known.encode(value)]

    def _decode(self, columns: Sequence[float]) -> int | float:
        return self._known.decode(columns[0])

    def _accept(self, name: str, value: object) -> int | float:
        number = number_of(name, value)
        if self.spacing == "log":
            check_positive(name, number)
        check_far(name, value, self._place(number)[0], self.low, self.high)
        return number

    def _place(self, value: float) -> list[float]:
        assert self.spacing is not None
        return [_at(self.spacing, value, self.levels)]


def _level(given: object) -> int | float:
    number = plain(given)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(
            f"Ordinal's levels must be numbers, not {given!r}; what has no number is Categorical"
        )
    return number_of("Ordinal's levels", number)


def _at(way: Spacing, value: float, levels: Sequence[int | float]) -> float:
    """Where a value is on a scale on which the first level is at 0 and the last one at 1."""
    low, high = levels[0], levels[-1]
    if way == "value":
        return float(value - low) / float(high - low)
    if way == "log":
        return log_ratio(value, low) / log_ratio(high, low)
    above = min(max(int(np.searchsorted(levels, value)), 1), len(levels) - 1)
    before, after = levels[above - 1], levels[above]
    return (above - 1 + float(value - before) / float(after - before)) / (len(levels) - 1)


def _listed(levels: Sequence[int | float]) -> str:
    """All levels or, of many, the first and the last."""
    if len(levels) <= 20:
        return repr(list(levels))
    return f"{list(levels[:3])!r} … {list(levels[-2:])!r} ({len(levels)} levels)"
