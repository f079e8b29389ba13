"""Outcomes: directions, signs and JSON."""

from __future__ import annotations

import json
import re
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
    with pytest.raises(ValueError, match="is no outcome"):
        outcome_from_json(document)
