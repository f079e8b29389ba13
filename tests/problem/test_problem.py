"""Problems: a space and outcomes by name, in a fixed order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from optpair.problem.outcomes import Constraint, Objective
from optpair.problem.problem import VALUE, Problem
from optpair.problem.space import Float, Int, Space

SPACE = Space({"x": Float(0, 1), "n": Int(1, 9)})


def test_one_objective_needs_no_name() -> None:
    problem = Problem.single(SPACE, "maximize")
    assert problem.names == (VALUE,)
    assert problem.objective == Objective("maximize")


def test_json_and_back_keeps_the_order() -> None:
    problem = Problem(SPACE, {"b": Objective("maximize"), "a": Objective()})
    again = Problem.from_json(json.loads(json.dumps(problem.to_json())))
    assert again == problem
    assert again.names == ("b", "a")


@pytest.mark.parametrize("space", [None, {"x": (0, 1)}, "x"])
def test_spaces(space: Any) -> None:
    with pytest.raises(TypeError, match=r"space must be a Space, like Space\(\{'x': Float\(0, 1\)"):
        Problem.single(space, "minimize")


def test_a_problem_has_an_outcome() -> None:
    with pytest.raises(ValueError, match="at least one outcome"):
        Problem(SPACE, {})


def test_what_the_user_does_to_his_dict_afterwards_does_not_matter() -> None:
    outcomes = {"a": Objective()}
    problem = Problem(SPACE, outcomes)
    outcomes["b"] = Objective()
    assert problem.names == ("a",)


def test_objectives_and_constraints() -> None:
    limit = Constraint(high=20)
    problem = Problem(SPACE, {"a": "maximize", "b": limit, "c": Objective()})  # type: ignore[dict-item]
    assert problem.objectives == {"a": Objective("maximize"), "c": Objective()}
    assert problem.constraints == {"b": limit}
    assert Problem.from_json(json.loads(json.dumps(problem.to_json()))) == problem
    with pytest.raises(ValueError, match="there are several objectives, 'a', 'c'; each is in"):
        _ = problem.objective
    assert Problem(SPACE, {"b": limit, "a": Objective()}).objective == Objective()


def test_goals() -> None:
    limit = Constraint(high=20)
    assert Problem.single(SPACE, "minimize").goal == "best"
    assert Problem(SPACE, {"a": Objective(), "b": limit}).goal == "feasible"
    assert Problem(SPACE, {"a": Objective(), "b": limit, "c": Objective()}).goal == "front"


@pytest.mark.parametrize(
    ("outcomes", "kind", "match"),
    [
        ([("a", "minimize")], TypeError, "outcomes must be a dict by name, like"),
        ({"a": Constraint(low=1)}, ValueError, "'a' are all constraints, .* matters most an Obj"),
        ({"a": 1}, TypeError, "outcome 'a' must be 'minimize'"),
        ({1: "minimize"}, TypeError, "an outcome's name must be a text, not 1"),
        ({"": "minimize"}, TypeError, "an outcome's name must be a text"),
    ],
)
def test_what_outcomes_cannot_be(outcomes: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        Problem(SPACE, outcomes)
