"""What a report is about: trials in the user's units, and the engine that models them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from optpair.default import LARGEST
from optpair.engine import Engine, State
from optpair.history import Direction, Observations
from optpair.runtime import Stream
from optpair.space import Categorical, Space

OUT = ("pending", "running", "by hand", "enqueued")
"""States of trials whose outcome is still to come."""


@dataclass(frozen=True)
class Row:
    """A trial: what became of it and, where the model knows it, its point of the cube."""

    number: int
    state: str  # "told", "failed", one of OUT, or what teaches nothing
    params: Mapping[str, Any]
    value: float | None = None
    noise_var: float | None = None
    message: str = ""
    x: np.ndarray | None = None

    @property
    def counts(self) -> bool:
        """Whether the model has its value."""
        return self.x is not None and self.value is not None and abs(self.value) <= LARGEST


@dataclass(frozen=True)
class Model:
    """The space that is modelled, and the engine with the state and stream of its answers.

    `choices` are the categories as the user knows them, where the space has only their numbers;
    `single` are parameters with one value.
    """

    space: Space
    engine: Engine
    state: State
    stream: Stream
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    single: Mapping[str, Any] = field(default_factory=dict)

    def named(self, name: str) -> Sequence[Any]:
        """The categories of a parameter."""
        parameter = self.space[name]
        assert isinstance(parameter, Categorical)
        return self.choices.get(name, parameter.choices)

    def decode(self, x: np.ndarray) -> dict[str, Any]:
        """The user's values at a point of the cube."""
        values: dict[str, Any] = self.space.decode(x)
        return {
            name: self.choices[name][v] if name in self.choices else v for name, v in values.items()
        }


@dataclass(frozen=True)
class Subject:
    """A named search with its trials, in order; no model where nothing can be modelled."""

    name: str
    direction: Direction
    rows: tuple[Row, ...]
    model: Model | None
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Parameters that trials have and the model has not, each with the reason."""

    @property
    def sign(self) -> float:
        """What values are multiplied by, so that larger is better."""
        return -1.0 if self.direction == "minimize" else 1.0

    @cached_property
    def told(self) -> tuple[Row, ...]:
        """The trials whose values the model has."""
        return tuple(row for row in self.rows if row.counts)

    def observations(self, told: int | None = None) -> Observations:
        """What the engine sees now, or saw once so many values were told."""
        rows = self.rows
        if told is not None:
            last = self.told[told - 1].number
            rows = tuple(row for row in rows if row.number <= last)
        values = [row for row in rows if row.counts]
        noise = [np.nan if row.noise_var is None else row.noise_var for row in values]
        out = () if told is not None else OUT
        return Observations(
            X=self._stack(values),
            y=self.sign * np.array([row.value for row in values], dtype=np.float64),
            noise_var=np.array(noise, dtype=np.float64),
            pending=self._stack([row for row in rows if row.state in out]),
            failed=self._stack([row for row in rows if row.state == "failed"]),
        )

    def _stack(self, rows: Sequence[Row]) -> np.ndarray:
        assert self.model is not None
        points = [row.x for row in rows if row.x is not None]
        return np.array(points, float).reshape(len(points), self.model.space.cube.dimensions)


def left_out(reasons: Mapping[str, str]) -> list[str]:
    """Parameters that are left out, a line for each reason.

    >>> left_out({"degree": "not in all trials", "gamma": "not in all trials"})
    ['degree, gamma (not in all trials)']
    """
    return [
        f"{', '.join(name for name, given in reasons.items() if given == why)} ({why})"
        for why in dict.fromkeys(reasons.values())
    ]
