"""Outcomes: directions, signs and JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from optpair.problem.outcomes import (
    Constraint,
    Objective,
    Outcome,
    as_outcome,
    outcome_from_json,
)


def test_signs_make_larger_better() -> None:
    assert (Objective("minimize").sign, Objective("maximize").sign) == (-1.0, 1.0)
    assert Objective() == Objective("minimize")


@pytest.mark.parametrize("direction", ["min", "", None, 1, ["minimize"], np.array(["minimize"])])
def test_directions(direction: Any) -> None:
    with pytest.raises(ValueError, match="direction must be 'minimize' or 'maximize', not"):
        Objective(direction)


def test_json_and_back() -> None:
    for outcome in (Objective("minimize"), Objective("maximize"), Objective("maximize", 0.5)):
        assert outcome_from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


def test_noise_is_a_standard_deviation() -> None:
    assert (Objective().noise, Objective().noise_var) == (None, None)
    assert (Objective(noise=0).noise, Objective(noise=0).noise_var) == (0.0, 0.0)
    known = Objective(noise=np.float32(0.5))  # type: ignore[arg-type]
    assert (type(known.noise), known.noise, known.noise_var) == (float, 0.5, 0.25)
    assert np.isfinite(Objective(noise=1e150).noise_var or np.nan)
    assert "noise" not in Objective().to_json()


@pytest.mark.parametrize(
    ("noise", "kind"),
    [
        (-0.1, ValueError),
        (np.nan, ValueError),
        (np.inf, ValueError),
        (1e151, ValueError),
        ("0", TypeError),
        (True, TypeError),
        (np.False_, TypeError),
        ([0.1], TypeError),
        (1j, TypeError),
    ],
    ids=str,
)
def test_what_is_no_standard_deviation(noise: Any, kind: type[Exception]) -> None:
    accepted = r"noise must be None, .* or its standard deviation from 0 to 1e\+150, not "
    with pytest.raises(kind, match=accepted + re.escape(repr(noise))):
        Objective(noise=noise)


@pytest.mark.parametrize("document", [None, [], {}, {"kind": "Wish", "direction": "minimize"}])
def test_what_is_no_outcome(document: Any) -> None:
    with pytest.raises(ValueError, match="is not an outcome"):
        outcome_from_json(document)


def test_a_constraint_has_its_good_side_up() -> None:
    low, high, both = Constraint(low=3), Constraint(high=20), Constraint(-1, 1)
    assert (low.sign, high.sign, both.sign) == (1.0, -1.0, 1.0)
    assert low.limits == (3.0, np.inf)
    assert high.limits == (-20.0, np.inf)
    assert both.limits == (-1.0, 1.0)
    assert [high.met(v) for v in (20.0, 20.1)] == [True, False]
    assert [both.met(v) for v in (-1.1, -1.0, 1.0, 1.1)] == [False, True, True, False]
    assert str(both) == "at least -1 and at most 1"


@pytest.mark.parametrize(
    "outcome",
    [
        Constraint(low=1),
        Constraint(high=np.float64(2.5), noise=0.5),
        Constraint(0, 1),
        Objective("maximize", bounds=(0, 1)),
        Objective("minimize", 0.5, (None, 3)),
    ],
)
def test_limits_and_bounds_in_json_and_back(outcome: Outcome) -> None:
    assert outcome_from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


@pytest.mark.parametrize(
    ("given", "kind", "match"),
    [
        ({}, ValueError, r"needs low or high, like Constraint\(high=20.0\)"),
        ({"low": 2, "high": 1}, ValueError, "low must be below high, not low=2, high=1"),
        ({"low": 1, "high": 1}, ValueError, "low must be below high"),
        ({"low": np.nan}, ValueError, "low must be a finite number, .* not nan"),
        ({"high": np.inf}, ValueError, "high must be a finite number, or None if there is none"),
        ({"high": 10**400}, ValueError, "high must be a finite number"),
        (
            {"high": "20"},
            TypeError,
            "high must be a finite number, or None if there is none, not '20'",
        ),
        ({"low": True}, TypeError, "low must be a finite number"),
        ({"low": 1, "noise": -1}, ValueError, "noise must be None"),
    ],
)
def test_what_is_no_constraint(given: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        Constraint(**given)


def test_bounds_follow_the_sign() -> None:
    assert Objective("maximize", bounds=(0, 1)).reach == (0.0, 1.0)
    assert Objective("minimize", bounds=(0, None)).reach == (-np.inf, 0.0)
    assert Objective().reach == (-np.inf, np.inf)
    assert Objective(bounds=(None, None)) == Objective()
    assert Objective(bounds=[0, 1]) == Objective(bounds=(0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bounds", "kind", "match"),
    [
        ((1, 0), ValueError, r"bounds must increase, not \(1, 0\)"),
        ((0, 0), ValueError, "bounds must increase"),
        ((0, np.nan), ValueError, r"bounds\[1\] must be a finite number"),
        (1.0, TypeError, r"bounds must be a pair like \(0, 1\), in which either may be None"),
        ((0, 1, 2), TypeError, "bounds must be a pair"),
        (("0", 1), TypeError, r"bounds\[0\] must be a finite number"),
    ],
)
def test_what_is_no_pair_of_bounds(bounds: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        Objective(bounds=bounds)


def test_a_direction_in_british_spelling_is_recognised() -> None:
    with pytest.raises(ValueError, match=r"not 'minimise'; did you mean 'minimize'\?"):
        Objective("minimise")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"not 'maximise'; did you mean 'maximize'\?"):
        as_outcome("a", "maximise")


def test_a_direction_stands_for_an_objective() -> None:
    assert as_outcome("a", "maximize") == Objective("maximize")
    assert as_outcome("a", Constraint(low=1)) == Constraint(low=1)
    for wrong in ("max", None, Objective, 1):
        with pytest.raises(TypeError, match="outcome 'a' must be 'minimize', 'maximize', an Obj"):
            as_outcome("a", wrong)
