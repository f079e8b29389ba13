"""Trials: read-only, alike after a journey, and readable."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest

from optpair.trials.estimate import Estimate
from optpair.trials.trial import Measurement, Params, Trial


def test_params_are_a_dict_that_stays_as_it_is() -> None:
    params: Any = Params(x=1.0)
    with pytest.raises(TypeError, match=r"read-only; change a copy: dict\(trial.params\)"):
        params["x"] = 2.0
    with pytest.raises(TypeError, match="read-only"):
        params |= {"x": 2.0}
    assert params == {"x": 1.0}
    assert json.dumps(params) == '{"x": 1.0}'
    for same in (copy.deepcopy(params), pickle.loads(pickle.dumps(params))):
        assert same == params
        assert type(same) is Params


def test_a_trial_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Trial(0, Params(x=1.0)).state = "told"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("trial", "text", "value", "noise_var"),
    [
        (Trial(3, Params(x=1.0)), "state='pending')", None, None),
        (
            Trial(3, Params(x=1.0), "told", {"value": Measurement(2.0, 0.5)}),
            "state='told', value=2.0)",
            2.0,
            0.5,
        ),
        (
            Trial(3, Params(x=1.0), "told", {"a": Measurement(2.0), "b": Measurement(1.0)}),
            "state='told', outcomes={'a': 2.0, 'b': 1.0})",
            None,
            None,
        ),
        (
            Trial(3, Params(x=1.0), "told", {"b": Measurement(1.0, 0.5)}, several=True),
            "state='told', outcomes={'b': 1.0})",
            None,
            None,
        ),
        (Trial(3, Params(x=1.0), "failed"), "state='failed')", None, None),
    ],
)
def test_what_came_of_a_trial(
    trial: Trial, text: str, value: float | None, noise_var: float | None
) -> None:
    assert repr(trial) == f"Trial(id=3, params={{'x': 1.0}}, {text}"
    assert (trial.value, trial.noise_var) == (value, noise_var)
    for same in (pickle.loads(pickle.dumps(trial)), copy.deepcopy(trial), copy.copy(trial)):
        assert same == trial
        assert hash(same) == hash(trial)
        assert same.value == value


def test_a_trial_that_came_back_is_read_only_still() -> None:
    trial = Trial(3, Params(x=1.0), "told", {"value": Measurement(2.0)})
    for same in (trial, pickle.loads(pickle.dumps(trial)), copy.deepcopy(trial)):
        with pytest.raises(TypeError):
            same.outcomes["value"] = Measurement(3.0)


def test_an_estimate_of_negatives_swaps_its_ends() -> None:
    estimate = Estimate(*np.array([[1.0, 2.0], [0.5, 0.5], [0.0, 1.0], [3.0, 4.0]]))
    other = estimate.times(-1.0)
    assert [part.tolist() for part in other] == [[-1, -2], [0.5, 0.5], [-3, -4], [0, -1]]
    assert [part.tolist() for part in estimate.times(1.0)] == [p.tolist() for p in estimate]
    assert [float(part) for part in other.row(1)] == [-2, 0.5, -4, -1]


def test_people_read_five_digits() -> None:
    trial = Trial(3, Params(x=1 / 3, n=123456789), "told", {"value": Measurement(2 / 3)})
    shown = "Trial(id=3, params={'x': 0.33333, 'n': 123456789}, state='told', value=0.66667)"
    assert repr(trial) == shown
    assert trial.params["x"] == 1 / 3
