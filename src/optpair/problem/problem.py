"""Problems: what the user said before the first trial. No model, no maths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from optpair.problem.beliefs import Belief, Beliefs
from optpair.problem.outcomes import (
    Constraint,
    Direction,
    Objective,
    Outcome,
    as_outcome,
    outcome_from_json,
)
from optpair.problem.space import Space

VALUE = "value"
"""The name of the only outcome, if the user gave none."""

GoalName = Literal["best", "feasible", "front"]
"""What is looked for: the best point, the best that meets all constraints, or a front of them."""


@dataclass(frozen=True)
class Problem:
    """A space to search, and the outcomes of a trial by name, in a fixed order.

    A direction is an objective: `{"accuracy": "maximize", "latency": Constraint(high=20)}`.
    """

    space: Space
    outcomes: Mapping[str, Outcome]
    belief: Belief | None = None
    """The logarithm of a density of where the optimum is, up to a constant, from parameters."""

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise TypeError(
                f"space must be a Space, like Space({{'x': Float(0, 1)}}), not {self.space!r:.80}"
            )
        object.__setattr__(self, "outcomes", _check_outcomes(self.outcomes))
        if self.belief is not None and not callable(self.belief):
            raise TypeError(
                "belief must be a function from a dict of parameters to the logarithm of a "
                f"density, like lambda p: -abs(p['x'] - 3), not {self.belief!r:.80}"
            )

    @classmethod
    def single(cls, space: Space, direction: Direction, noise: float | None = None) -> Problem:
        """A problem with one objective."""
        return cls(space, {VALUE: Objective(direction, noise)})

    @classmethod
    def given(
        cls,
        space: Space,
        direction: Direction | None,
        noise: float | None,
        outcomes: Mapping[str, Outcome | Direction] | None,
    ) -> Problem:
        """A problem with outcomes by name, or with one that needs none."""
        if outcomes is None:
            return cls.single(space, "minimize" if direction is None else direction, noise)
        if direction is not None:
            raise ValueError(
                f"direction={direction!r} and outcomes cannot be given together: with outcomes, "
                "each objective has its own direction; leave direction out"
            )
        if noise is not None:
            raise ValueError(
                f"noise={noise!r} and outcomes cannot be given together: with outcomes, each has "
                "its own noise, like Objective('minimize', noise=0); leave noise out"
            )
        return cls(space, outcomes)  # type: ignore[arg-type]

    @property
    def beliefs(self) -> Beliefs | None:
        """What the user believes about the optimum, or None."""
        found = Beliefs.of(self.space, self.belief, self.objectives)
        return found if found else None

    @property
    def names(self) -> tuple[str, ...]:
        """The outcomes' names, in order."""
        return tuple(self.outcomes)

    @property
    def objectives(self) -> dict[str, Objective]:
        """What is to be as small or as large as possible."""
        return {name: o for name, o in self.outcomes.items() if isinstance(o, Objective)}

    @property
    def constraints(self) -> dict[str, Constraint]:
        """What must stay within limits."""
        return {name: o for name, o in self.outcomes.items() if isinstance(o, Constraint)}

    @property
    def objective(self) -> Objective:
        """The only objective.

        Raises:
            ValueError: where there are several.
        """
        objectives = self.objectives
        if len(objectives) > 1:
            raise ValueError(
                f"there are several objectives, {', '.join(map(repr, objectives))}; each is in "
                "problem.objectives"
            )
        (only,) = objectives.values()
        return only

    @property
    def goal(self) -> GoalName:
        """What is looked for."""
        if len(self.objectives) > 1:
            return "front"
        return "feasible" if self.constraints else "best"

    @property
    def wish(self) -> str:
        """What is wanted, in a few words: `maximize accuracy, keep latency at most 20`."""
        if self.names == (VALUE,):
            return self.objective.direction
        wishes = [f"{o.direction} {name}" for name, o in self.objectives.items()]
        return ", ".join(wishes + [f"keep {name} {o}" for name, o in self.constraints.items()])

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs to build an equal problem.

        Raises:
            TypeError: if there is a function, which no file can hold.
        """
        if self.belief is not None:
            raise TypeError(
                "an optimizer with a belief that is a function cannot be saved: functions are not "
                "written to files. Say it by guess= and sure= of the parameters, or build the "
                "optimizer again and tell its trials"
            )
        outcomes = [{"name": name} | o.to_json() for name, o in self.outcomes.items()]
        return {"space": self.space.to_json(), "outcomes": outcomes}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Problem:
        """The problem that `to_json` described."""
        outcomes = {row["name"]: outcome_from_json(row) for row in document["outcomes"]}
        return cls(Space.from_json(document["space"]), outcomes)


def _check_outcomes(given: object) -> dict[str, Outcome]:
    """Outcomes by name, at least one of them an objective."""
    if not isinstance(given, Mapping):
        raise TypeError(
            "outcomes must be a dict by name, like {'accuracy': 'maximize', "
            f"'latency': Constraint(high=20)}}, not {given!r:.80}"
        )
    if not given:
        raise ValueError("a problem needs at least one outcome")
    for name in given:
        if not isinstance(name, str) or not name:
            raise TypeError(f"an outcome's name must be a text, not {name!r:.80}")
    outcomes = {name: as_outcome(name, outcome) for name, outcome in given.items()}
    if not any(isinstance(outcome, Objective) for outcome in outcomes.values()):
        raise ValueError(
            f"outcomes {', '.join(map(repr, outcomes))} are all constraints, so no point is better "
            "than another; make the one that matters most an Objective('minimize') or "
            "Objective('maximize')"
        )
    return outcomes
