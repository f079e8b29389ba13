"""The subject of a report: trials in the user's units, and the answers of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from optpair.cube.region import Region
from optpair.engine.answers import Answers
from optpair.problem.defaults import LARGEST
from optpair.problem.outcomes import Objective
from optpair.problem.space import Categorical, Space

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
    notes: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, float] = field(default_factory=dict)
    """Values by name, where there are several in place of `value`."""
    began: float | None = None
    """When it was started, in seconds since 1970, where that is known."""
    ended: float | None = None
    worker: str = ""
    steps: Mapping[float, float] = field(default_factory=dict)
    """The values that it reported on its way."""
    cost: float | None = None
    """What it cost, where that was told."""

    @property
    def counts(self) -> bool:
        """Whether the model has its value."""
        return self.x is not None and self.value is not None and abs(self.value) <= LARGEST

    def whole(self, targets: Mapping[str, Any]) -> bool:
        """Whether its value is one at these targets of the fidelities, and no earlier one."""
        ended = self.state != "pruned"
        return ended and all(self.params.get(name, to) == to for name, to in targets.items())


@dataclass(frozen=True)
class Modelled:
    """The space that is modelled, and the answers of the model once it has a value.

    `choices` are the categories as the user knows them, where the space has only their numbers;
    `single` are parameters with one value. `steps` is the name of a fidelity that counts the steps
    of trials: the space has it, and the user has no such parameter.
    """

    space: Space
    initial: int
    """Values from which on the model is used."""
    answers: Answers | None
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    single: Mapping[str, Any] = field(default_factory=dict)
    steps: str = ""

    @property
    def limits(self) -> Region | None:
        """Where answers may be, if there are limits on the parameters."""
        region = None if self.answers is None else self.answers.engine.sought
        return region if region is not None and region.limited else None

    @property
    def names(self) -> tuple[str, ...]:
        """The user's parameters that are modelled."""
        return tuple(name for name in self.space if name != self.steps)

    def named(self, name: str) -> Sequence[Any]:
        """The categories of a parameter."""
        parameter = self.space[name]
        assert isinstance(parameter, Categorical)
        return self.choices.get(name, parameter.choices)

    def decode(self, x: np.ndarray) -> dict[str, Any]:
        """The user's values at a point of the cube."""
        values: dict[str, Any] = self.space.decode(x)
        return {
            name: self.choices[name][v] if name in self.choices else v
            for name, v in values.items()
            if name != self.steps
        }


@dataclass(frozen=True)
class Subject:
    """A named search with its trials, in order; no model if nothing can be modelled.

    The told trials that the model has are those of its data, in the same order.
    """

    name: str
    objective: Objective
    rows: tuple[Row, ...]
    model: Modelled | None
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Parameters that trials have but the model does not, each with the reason."""
    step: str = "step"
    """The unit in which intermediate values are counted."""
    outcome: str = "value"
    """What the value is called."""

    @property
    def sign(self) -> float:
        """What values are multiplied by, so that larger is better."""
        return self.objective.sign

    @cached_property
    def told(self) -> tuple[Row, ...]:
        """The trials whose values the model has."""
        return tuple(row for row in self.rows if row.counts)

    def whole(self, row: Row) -> bool:
        """Whether a trial ended with a value at the target, neither pruned nor a cheaper look."""
        return row.whole({} if self.model is None else self.model.space.targets)


def left_out(reasons: Mapping[str, str]) -> list[str]:
    """Parameters that are left out, one line per reason.

    >>> left_out({"degree": "not in all trials", "gamma": "not in all trials"})
    ['degree, gamma (not in all trials)']
    """
    return [
        f"{', '.join(name for name, given in reasons.items() if given == why)} ({why})"
        for why in dict.fromkeys(reasons.values())
    ]
