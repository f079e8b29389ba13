"""Axes: the place of a value between 0 and 1, and which values get a mark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpair.problem.space import Categorical, Int, Ordinal, Parameter
from optpair.report.subject import Modelled
from optpair.report.words import number, power, short

MOST_LABELS = 12
FEW_LEVELS = 16
Tick = tuple[float, str]


@dataclass(frozen=True)
class Line:
    """Numbers from low to high, on a linear or a logarithmic scale."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @property
    def levels(self) -> int:
        """How many values there are, where that is few; else 0."""
        span = round(self.high - self.low) + 1 if self.whole and not self.log else 0
        return span if span <= FEW_LEVELS else 0

    def at(self, value: Any) -> float:
        """The place of a value; those beyond are at the end."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            place = (math.log(max(float(value), self.low)) - low) / (high - low)
        elif self.whole:  # exactly, however large they are
            place = (value - self.low) / (self.high - self.low)
        else:
            place = (float(value) / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return min(max(place, 0.0), 1.0)

    def ticks(self, wanted: int = 5) -> list[Tick]:
        """Round values, about as many as wanted."""
        values = self._decades(wanted) if self.log else self._steps(wanted)
        return [(self.at(value), label) for value, label in values]

    def _steps(self, wanted: int) -> list[tuple[float, str]]:
        if self.whole:
            step = _nice((self.high - self.low) / wanted)
            every = 5 if step == 2.5 else max(round(step), 1)
            rounds = range(-(-int(self.low) // every), int(self.high) // every + 1)
            return [(i * every, _round(i * every, every)) for i in rounds]
        step = _nice((self.high / 2 - self.low / 2) / wanted * 2)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [(i * step, _round(i * step, step)) for i in range(first, last + 1)]

    def _decades(self, wanted: int) -> list[tuple[float, str]]:
        low, high = math.log10(self.low), math.log10(self.high)
        if high - low >= 2:
            every = max(1, math.ceil((high - low) / wanted))
            exponents = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
            return [(10.0**e, power(e)) for e in exponents if e % every == 0]
        decades = range(math.floor(low), math.ceil(high) + 1)
        for each in ((1, 2, 5), (1, 3), (1,)):
            values = [m * 10.0**e for e in decades for m in each]
            inside = [v for v in values if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]
            if len(inside) <= wanted:
                break
        return [(v, number(v)) for v in inside or [self.low, self.high]]


@dataclass(frozen=True)
class Choices:
    """Categories side by side."""

    choices: tuple[Any, ...]

    @property
    def levels(self) -> int:
        """How many there are."""
        return len(self.choices)

    def at(self, value: Any) -> float:
        """The middle of a category's share."""
        same = [(type(c), repr(c)) for c in self.choices].index((type(value), repr(value)))
        return (same + 0.5) / len(self.choices)

    def ticks(self, wanted: int = MOST_LABELS) -> list[Tick]:
        """Every category or, of many, every few."""
        every = -(-len(self.choices) // max(wanted, 1))
        return [(self.at(c), short(c)) for c in self.choices[::every]]


@dataclass(frozen=True)
class Levels:
    """Some numbers, spaced as the model sees them."""

    parameter: Ordinal

    @property
    def levels(self) -> int:
        """How many there are, where that is few; else 0."""
        count = len(self.parameter.levels)
        return count if count <= FEW_LEVELS else 0

    def at(self, value: Any) -> float:
        """The place of a value, a level or not; those beyond are at the end."""
        return min(max(self.parameter._place(value)[0], 0.0), 1.0)

    def ticks(self, wanted: int = 5) -> list[Tick]:
        """The levels that leave room for each other's labels, the first always."""
        found: list[Tick] = []
        for level in self.parameter.levels:
            if not found or self.at(level) - found[-1][0] > 0.6 / max(wanted, 1):
                found.append((self.at(level), number(level)))
        return found


Axis = Line | Levels | Choices


def of_model(model: Modelled) -> dict[str, Axis]:
    """The axis of every parameter that is modelled, with the categories as the user knows them."""
    return {
        name: of_parameter(
            parameter, model.named(name) if isinstance(parameter, Categorical) else ()
        )
        for name, parameter in model.space.items()
        if name != model.steps
    }


def of_parameter(parameter: Parameter, choices: Sequence[Any] = ()) -> Axis:
    """The axis of a parameter, on its own scale."""
    if isinstance(parameter, Categorical):
        return Choices(tuple(choices or parameter.choices))
    if isinstance(parameter, Ordinal):
        return Levels(parameter)
    return Line(parameter.low, parameter.high, parameter.log, isinstance(parameter, Int))


def of_values(values: Sequence[float] | np.ndarray, *, zero: bool = False) -> Line:
    """An axis that holds some values, with room around them; from 0 where asked."""
    low, high = float(np.min(values)), float(np.max(values))
    low = 0.0 if zero else low
    room = 0.06 * (high / 2 - low / 2) * 2
    if room <= max(abs(low), abs(high)) * 1e-12:
        room = 0.05 * max(abs(low), abs(high)) or 0.5
    return Line(low if zero else low - room, high + room)


def _nice(step: float) -> float:
    """The next of 1, 2, 2.5 and 5 times a power of ten."""
    exponent = math.floor(math.log10(step))
    scale = 10.0**exponent if exponent > -307 else step
    return next((m * scale for m in (1, 2, 2.5, 5) if m * scale >= step * (1 - 1e-9)), 10 * scale)


def _round(value: float, step: float) -> str:
    """A mark's label: as many decimals as the step has."""
    if value == 0:
        return "0"
    if step >= 1e-4 and abs(value) < 1e6:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        decimals += round(step, decimals) != round(step, decimals + 2)
        return f"{value:.{decimals}f}".replace("-", "−")
    return number(value)
