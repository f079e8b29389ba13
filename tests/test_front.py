"""Fronts for people: the nearest point, the best for some weights, and the table."""

from __future__ import annotations

from typing import Any

import pytest

from optpair.problem.outcomes import Constraint, Objective
from optpair.problem.problem import Problem
from optpair.results.best import Predicted
from optpair.results.front import Front, FrontPoint
from optpair.trials.trial import Measurement, Trial
from outcome_cases import SPACE

PROBLEM = Problem(
    SPACE,
    {"gain": Objective("maximize"), "cost": Objective("minimize"), "load": Constraint(high=5)},
)


def one(gain: float, cost: float, chance: float = 0.991) -> FrontPoint:
    values = {"gain": gain, "cost": cost, "load": 1.0}
    outcomes = {name: Predicted(v, 0.1, (v - 0.2, v + 0.2)) for name, v in values.items()}
    return FrontPoint({"x": gain / 10, "y": 0.5}, outcomes, chance)


def front(*points: FrontPoint) -> Front:
    trial = Trial(7, {"x": 0.1, "y": 0.2}, "told", {"gain": Measurement(1.0)})
    return Front(points, 12.3456, (11.0, 14.0), {"gain": 0.0, "cost": 9.0}, (trial,), (), PROBLEM)


FOUND = front(one(1.0, 1.0), one(2.0, 2.0), one(3.0, 4.0), one(4.0, 8.0))


def test_the_nearest_point_is_so_in_units_of_the_front() -> None:
    assert FOUND.nearest({"cost": 2.4}).means["cost"] == 2.0
    assert FOUND.nearest({"gain": 9.0}).means["gain"] == 4.0
    assert FOUND.nearest({"gain": 2.6, "cost": 2.0}).means["gain"] == 2.0  # 0.2 off, not 0.29
    assert front(one(1.0, 1.0)).nearest({"cost": 5.0}).means["cost"] == 1.0


@pytest.mark.parametrize(
    ("weights", "gain"),
    [
        ({"gain": 1}, 4.0),
        ({"cost": 1}, 1.0),
        ({"gain": 1, "cost": 1}, 3.0),  # lacks 1/3 and 3/7; the second point 2/3 and 1/7
        ({"gain": 1, "cost": 4}, 2.0),
        ({"gain": 100, "cost": 1}, 4.0),
        ({"gain": 0, "cost": 2}, 1.0),
    ],
)
def test_the_best_point_for_weights(weights: Any, gain: float) -> None:
    assert FOUND.best_for(weights).means["gain"] == gain
    more = {name: 7 * weight for name, weight in weights.items()}
    assert FOUND.best_for(more).means["gain"] == gain  # only their ratios matter


@pytest.mark.parametrize(
    ("call", "given", "kind", "match"),
    [
        (
            "nearest",
            {"gian": 1.0},
            ValueError,
            "names among .*did you mean 'gain'",
        ),
        ("nearest", {}, TypeError, "values must be a dict with some of 'gain', 'cost', 'load'"),
        (
            "nearest",
            {"gain": float("nan")},
            ValueError,
            r"\['gain'\] must be a finite number",
        ),
        (
            "best_for",
            {"load": 1.0},
            ValueError,
            "weights must have names among 'gain', 'c",
        ),
        ("best_for", {"gain": -1.0}, ValueError, "weights must be at least 0, and one above 0"),
        ("best_for", {"gain": 0.0}, ValueError, "weights must be at least 0, and one above 0"),
        ("best_for", [1, 2], TypeError, "weights must be a dict"),
        (
            "best_for",
            {"gain": float("nan")},
            ValueError,
            r"weights\['gain'\] must be a finite number, not nan",
        ),
    ],
)
def test_what_cannot_be_asked(call: str, given: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        getattr(FOUND, call)(given)


def test_a_table() -> None:
    lines = str(FOUND).splitlines()
    head = "gain (maximize) cost (minimize) load (at most 5) feasible x y"
    assert " ".join(lines[0].split()) == head
    assert (
        " ".join(lines[1].split()) == "1 ± 0.2 1 ± 0.2 1 ± 0.2 99.1 % 0.1 0.5"
    )  # half of the intervals
    assert {len(line) for line in lines[:5]} == {len(lines[0])}
    assert lines[5] == "±              half of the 95 % interval"
    assert lines[6] == (
        "hypervolume    12.346, 95 % interval 11 to 14; reference gain = 0, cost = 9"
    )
    assert lines[7] == "best observed  trials 7"
    assert repr(FOUND) == "Front(4 points, hypervolume=12.346)"
    assert FOUND.feasible
    assert str(FOUND.points[0]).splitlines()[0] == "recommended    x = 0.1, y = 0.5"


def test_where_nothing_is_feasible() -> None:
    lost = front(one(1.0, 1.0, 0.3))
    assert not lost.feasible
    assert "no point is likely to meet all constraints yet" in str(lost)
    assert "with a probability of 30 %" in str(lost.points[0])
