"""Problems: what the user said before the first trial. No model, no maths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optpair.problem.outcomes import Direction, Objective, outcome_from_json
from optpair.problem.space import Space

VALUE = "value"
"""The name of the outcome where there is only one and nobody has named it."""


@dataclass(frozen=True)
class Problem:
    """A space to search, and the outcomes of a trial by name, in a fixed order."""

    space: Space
    outcomes: Mapping[str, Objective]

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise TypeError(
                f"space must be a Space, like Space({{'x': Float(0, 1)}}), not {self.space!r:.80}"
            )
        if not self.outcomes:
            raise ValueError("a problem needs at least one outcome")
        object.__setattr__(self, "outcomes", dict(self.outcomes))

    @classmethod
    def single(cls, space: Space, direction: Direction, noise: float | None = None) -> Problem:
        """A problem with one objective."""
        return cls(space, {VALUE: Objective(direction, noise)})

    @property
    def names(self) -> tuple[str, ...]:
        """The outcomes' names, in order."""
        return tuple(self.outcomes)

    @property
    def objective(self) -> Objective:
        """The only outcome."""
        (only,) = self.outcomes.values()
        return only

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs to build an equal problem."""
        outcomes = [{"name": name} | o.to_json() for name, o in self.outcomes.items()]
        return {"space": self.space.to_json(), "outcomes": outcomes}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Problem:
        """The problem that `to_json` described."""
        outcomes = {row["name"]: outcome_from_json(row) for row in document["outcomes"]}
        return cls(Space.from_json(document["space"]), outcomes)
