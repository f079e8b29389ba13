"""Outcomes: directions, signs and JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from optpair.problem.outcomes import Objective, outcome_from_json


def test_signs_make_larger_better() -> None:
    assert (Objective("minimize").sign, Objective("maximize").sign) == (-1.0, 1.0)
    assert Objective() == Objective("minimize")


@pytest.mark.parametrize("direction", ["min", "", None, 1, ["minimize"], np.array(["minimize"])])
def test_directions(direction: Any) -> None:
    with pytest.raises(ValueError, match="direction must be 'minimize' or 'maximize', not"):
        Objective(direction)


def test_json_and_back() -> None:
    for outcome in (Objective("minimize"), Objective("maximize")):
        assert outcome_from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


@pytest.mark.parametrize("document", [None, [], {}, {"kind": "Wish", "direction": "minimize"}])
def test_what_is_no_outcome(document: Any) -> None:
    with pytest.raises(ValueError, match="is no outcome"):
        outcome_from_json(document)
