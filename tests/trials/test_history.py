"""What may be told, what may not, and that a refusal changes nothing."""

from __future__ import annotations

import copy
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optpair import Categorical, Space
from optpair.problem.defaults import LARGEST
from optpair.problem.outcomes import Objective
from optpair.problem.problem import Problem
from optpair.trials.history import History
from optpair.trials.trial import Measurement
from shell_cases import SPACE, point

HERE = {"x": 0.5, "c": "a"}


@pytest.fixture
def history() -> History:
    made = History(Problem.single(SPACE, "minimize"))
    made.tell(HERE, 2.0)
    made.add(point(1))
    return made


def refused(history: History, kind: type[Exception], match: str, *args: Any, **kw: Any) -> None:
    """The call fails with this message, and leaves the history as it was."""
    before = json.dumps(history.to_json())
    with pytest.raises(kind, match=match):
        history.tell(*args, **kw)
    assert json.dumps(history.to_json()) == before
    assert history.data().told == history.count("told")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "0.3",
        b"0.3",
        bytearray(b"3"),
        True,
        np.True_,
        np.array(True),
        1 + 2j,
        np.complex128(1),
        np.array(1 + 0j),
        np.clongdouble(1),
        np.array([[1.0]]),
        ["0.3"],
        [[1.0]],
        [0.2, None],
        np.array("0.3"),
        np.array("0.3", dtype=object),
        np.array(None),
        np.ma.masked,
        object(),
        lambda: 1.0,
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_one_real_number(history: History, value: object) -> None:
    refused(history, TypeError, "value must be one real number, not ", 1, value)
    refused(history, TypeError, "value must be one real number, not ", point(3), value)


def test_a_message_stays_short(history: History) -> None:
    with pytest.raises(TypeError) as caught:
        history.tell(1, np.ones((100, 100)))
    assert len(str(caught.value)) < 200
    with pytest.raises(ValueError, match="a int that cannot be shown"):
        history.tell(1, 10**5000)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float32("nan"),
        np.array(np.inf),
        Decimal("NaN"),
        Decimal("1e400"),
        10**400,
        -(10**400),
        Fraction(10**400),
        2 * LARGEST,
        np.longdouble("1e4000"),
    ],
    ids=repr,
)
def test_a_value_is_finite(history: History, value: object) -> None:
    refused(history, ValueError, r"value must be finite .* tell\(trial, failed=True\)", 1, value)


@pytest.mark.parametrize(
    "value",
    [
        3,
        3.0,
        Decimal(3),
        Fraction(3),
        np.int8(3),
        np.uint64(3),
        np.float16(3),
        np.longdouble(3),
        np.array(3.0),
        np.array(3),
        np.array(Decimal(3)),
    ],
    ids=repr,
)
def test_numbers_of_any_kind_are_taken(history: History, value: Any) -> None:
    told = history.tell(1, value, noise_var=value)
    assert (told.value, told.noise_var) == (3.0, 3.0)
    assert type(told.value) is type(told.noise_var) is float


class Scalar:
    """As the scalars of other array libraries."""

    ndim = 0

    def item(self) -> float:
        return 1 / 3


def test_scalars_of_other_libraries_are_taken(history: History) -> None:
    assert history.tell(1, Scalar()).value == 1 / 3  # type: ignore[arg-type]


@pytest.mark.parametrize("noise_var", [-1.0, -1e-300, math.nan, math.inf, 10**400])
def test_noise_is_a_variance(history: History, noise_var: float) -> None:
    refused(history, ValueError, "noise_var must be a finite", 1, 1.0, noise_var=noise_var)
    refused(history, ValueError, "noise_var must be a finite", HERE, 1.0, noise_var=noise_var)


def test_noise_is_a_number(history: History) -> None:
    refused(history, TypeError, "noise_var must be one real", 1, 1.0, noise_var="0.1")
    refused(history, TypeError, "noise_var must be one real", 1, 1.0, noise_var=[0.1])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"x": 0.0}, "missing 'c'"),
        ({"x": 0.0, "c": "a", "z": 1}, "unknown 'z'"),
        ({"x": 1.5, "c": "a"}, "x must be from -1.0 to 1.0"),
        ({"x": math.nan, "c": "a"}, "x must be a finite number"),
        ({"x": 0.0, "c": "z"}, "c must be one of"),
        ({}, "missing 'x', missing 'c'"),
    ],
)
def test_parameters_must_fit(history: History, params: Any, match: str) -> None:
    refused(history, ValueError, match, params, 1.0)
    refused(history, ValueError, match, params, failed=True)


def test_parameters_of_a_wrong_type(history: History) -> None:
    refused(history, TypeError, "x must be a number", {"x": "0", "c": "a"}, 1.0)
    refused(history, TypeError, "trial must be what ask", [("x", 0.0)], 1.0)
    refused(history, TypeError, "trial must be what ask", None, 1.0)
    refused(history, TypeError, "trial must be what ask", True, 1.0)
    refused(history, TypeError, "trial must be what ask", 1.0, 1.0)


def test_each_trial_ends_once(history: History) -> None:
    trial = history[1]
    history.tell(trial, 1.0)
    refused(history, ValueError, r"trial 1 was already told \(value 1.0\)", trial, 2.0)
    refused(history, ValueError, "trial 1 was already told", 1, failed=True)
    with pytest.raises(ValueError, match="only pending trials can be cancelled"):
        history.cancel(trial)
    history.tell(trial.params, 2.0)  # the way out that the message names
    assert [t.value for t in history] == [2.0, 1.0, 2.0]


def test_parameters_of_a_pending_trial_mean_that_trial(history: History) -> None:
    """`tell(trial.params, y)` after an ask: nothing stays pending, nothing is there twice."""
    trial, again = history[1], history.add(history[1].params)
    history.tell(dict(trial.params), 3.0)
    assert [(t.id, t.state, t.value) for t in history][1:] == [
        (1, "told", 3.0),
        (again.id, "pending", None),
    ]
    history.tell(dict(trial.params), failed=True)
    assert history[again.id].state == "failed"
    history.tell(dict(trial.params), 4.0)
    assert [t.value for t in history][1:] == [3.0, None, 4.0]


def test_parameters_of_a_pending_trial_are_told_apart_by_type() -> None:
    history = History(Problem.single(Space({"c": Categorical([1, True])}), "minimize"))
    history.add({"c": 1})
    history.tell({"c": True}, 0.0)
    assert [trial.state for trial in history] == ["pending", "told"]


def test_unknown_and_cancelled_trials(history: History) -> None:
    trial = history[1]
    refused(history, ValueError, "trial 7 is unknown here", 7, 1.0)
    refused(history, ValueError, "trial -1 is unknown here", -1, 1.0)
    history.cancel(trial)
    refused(history, ValueError, "trial 1 is unknown here: never asked, or cancelled", trial, 1.0)
    with pytest.raises(ValueError, match="unknown here"):
        history.cancel(trial)
    assert history.add(point(2)).id == 2  # an id is never used again


def test_a_trial_of_another_history(history: History) -> None:
    other = History(Problem.single(SPACE, "minimize"))
    other.add(HERE)
    foreign = other.add({"x": 0.25, "c": "b"})
    refused(history, ValueError, "trial 1 with .*0.25.* is of another optimizer", foreign, 1.0)


def test_failed_trials_have_no_value(history: History) -> None:
    refused(history, ValueError, "failed=True alone", 1, 1.0, failed=True)
    refused(history, ValueError, "failed=True alone", 1, noise_var=1.0, failed=True)
    refused(history, TypeError, "failed must be True or False", 1, failed="no")
    refused(history, TypeError, r"tell\(trial, failed=True\)", 1)
    assert history.tell(1, failed=np.True_).state == "failed"


def test_params_cannot_be_changed(history: History) -> None:
    mine = dict(HERE)
    trial = history.tell(mine, 1.0)
    mine["x"] = 9.0
    params: Any = trial.params
    for change in (
        lambda: params.__setitem__("x", 9.0),
        lambda: params.update(x=9.0),
        lambda: params.pop("x"),
        lambda: params.popitem(),
        lambda: params.clear(),
        lambda: params.setdefault("z", 1),
        lambda: params.__delitem__("x"),
        lambda: params.__ior__({"x": 9.0}),
    ):
        with pytest.raises(TypeError, match=r"read-only; change a copy: dict\(trial.params\)"):
            change()
    assert trial.params == HERE
    assert json.loads(json.dumps(trial.params)) == HERE
    assert type(dict(trial.params)) is dict


def test_trials_travel(history: History) -> None:
    trial = history[1]
    for same in (pickle.loads(pickle.dumps(trial)), copy.deepcopy(trial), copy.copy(trial)):
        assert same == trial
        assert hash(same) == hash(trial)
    assert history.tell(pickle.loads(pickle.dumps(trial)), 1.0).value == 1.0


def test_json_and_back(history: History) -> None:
    history.tell(1, failed=True)
    history.tell(point(2), 1e-300, noise_var=0.0)
    history.cancel(history.add(point(3)))
    history.add(point(4))
    document = json.loads(json.dumps(history.to_json()))
    again = History.from_json(document)
    assert list(again) == list(history)
    assert again.to_json() == history.to_json()
    for name in ("X", "Y", "noise_var", "pending", "failed"):
        left, right = (getattr(h.data(), name) for h in (again, history))
        assert left.tobytes() == right.tobytes()
    assert again.add(point(5)).id == history.add(point(5)).id == 5


def test_the_engine_maximises() -> None:
    low, high = (
        History(Problem.single(SPACE, "minimize")),
        History(Problem.single(SPACE, "maximize")),
    )
    for i, value in enumerate([3.0, 1.0, 2.0]):
        low.tell(point(i), value)
        high.tell(point(i), -value)
    assert low.data().Y.tolist() == high.data().Y.tolist() == [[-3.0], [-1.0], [-2.0]]


def test_a_revised_trial_is_as_if_told_so_at_first(history: History) -> None:
    for given in ({"value": 3.0, "noise_var": 0.25}, {"failed": True}, {"value": 2.0}):
        revised = history.revise(0, **given)
        told = History(Problem.single(SPACE, "minimize"))
        told.tell(HERE, **given)
        told.add(point(1))
        assert history[0] == revised
        assert json.dumps(history.to_json()) == json.dumps(told.to_json())


@pytest.mark.parametrize(
    ("trial", "given", "kind", "match"),
    [
        (1, {"value": 0.1}, ValueError, "trial 1 is pending: tell it"),
        (7, {"value": 0.1}, ValueError, "trial 7 is unknown"),
        (0, {"value": 0.1, "noise_var": -1.0}, ValueError, "noise_var must be a finite variance"),
        (0, {"value": np.nan}, ValueError, "value must be finite"),
        (0, {"value": 1.0, "failed": True}, ValueError, "a failed trial has no value"),
        (0, {}, TypeError, "value must be one real number"),
        (HERE, {"value": 0.1}, TypeError, "parameters do not say which is meant"),
    ],
)
def test_a_refused_revision_changes_nothing(
    history: History, trial: Any, given: dict[str, Any], kind: type[Exception], match: str
) -> None:
    before = json.dumps(history.to_json())
    with pytest.raises(kind, match=match):
        history.revise(trial, **given)
    assert json.dumps(history.to_json()) == before


THREE = Problem(
    SPACE, {"loss": Objective(), "gain": Objective("maximize"), "size": Objective(bounds=(0, 1))}
)


def test_several_outcomes_are_told_by_name() -> None:
    history = History(THREE)
    told = history.tell(HERE, {"gain": 2, "loss": 1.0}, noise_var={"loss": 0.5})
    assert told.outcomes == {"loss": Measurement(1.0, 0.5), "gain": Measurement(2.0, None)}
    assert told.value is told.noise_var is None
    assert repr(told).endswith("state='told', outcomes={'gain': 2.0, 'loss': 1.0})")
    assert history.measured() == {"loss": 1, "gain": 1, "size": 0}
    alone = history.tell(point(1), {"size": 0.5})
    assert alone.value is None  # which of the three it is, its name says
    again = History.from_json(json.loads(json.dumps(history.to_json())))
    assert list(again) == list(history)
    assert again.problem == THREE


@pytest.mark.parametrize(
    ("value", "noise_var", "kind", "match"),
    [
        (1.0, None, TypeError, "value must be a dict with some of 'loss', 'gain', 'size'"),
        (None, None, TypeError, "value must be a dict with .* not None; if the evaluation failed"),
        ({"los": 1.0}, None, ValueError, "outcomes, 'loss', .*; did you mean 'loss'?"),
        ({}, None, ValueError, "must have names of outcomes, .*; if the evaluation failed, say so"),
        ({"loss": None}, None, TypeError, "loss must be one real number"),
        ({"loss": math.nan}, None, ValueError, "loss must be finite .*; leave out an outcome that"),
        ({"loss": []}, None, ValueError, "'loss' is an empty list; leave out an outcome that was"),
        ({"loss": [1.0, math.nan]}, None, ValueError, "loss must be finite"),
        ({"loss": [[1.0]]}, None, TypeError, "loss must be one real number"),
        ({"size": 1.1}, None, ValueError, "size must be within its bounds, 0 to 1, not 1.1; if it"),
        ({"size": [0.5, -1]}, None, ValueError, "size must be within its bounds, 0 to 1, not -1"),
        ({"loss": 1.0}, 0.1, TypeError, "noise_var must be a dict with some of"),
        ({"loss": 1.0}, {"gain": 0.1}, ValueError, "noise_var is given for gain, which has no"),
        (
            {"loss": [1, 2]},
            {"loss": [1, 2]},
            TypeError,
            r"'loss'. must be one real number, the variance",
        ),
        ({"loss": 1.0}, {"loss": -1.0}, ValueError, r"noise_var.'loss'. must be a finite variance"),
    ],
)
def test_what_several_outcomes_cannot_be(
    value: Any, noise_var: Any, kind: type[Exception], match: str
) -> None:
    history = History(THREE)
    history.add(HERE)
    refused(history, kind, match, 0, value, noise_var=noise_var)


def test_the_only_outcome_may_be_named(history: History) -> None:
    assert history.tell(1, {"value": 4.0}, noise_var={"value": 0.5}).value == 4.0


def test_a_point_of_the_users_own_is_added_and_told_at_once(history: History) -> None:
    """Nobody sees it pending in between: there is one assignment, of a trial that was told."""
    seen: list[str] = []

    class Watched(dict[int, Any]):
        def __setitem__(self, key: int, entry: Any) -> None:
            seen.append(entry.trial.state)
            super().__setitem__(key, entry)

    history._entries = Watched(history._entries)
    history.tell(point(9), 1.0)
    history.tell(point(10), failed=True)
    assert seen == ["told", "failed"]


def test_the_newest_trial_is_withdrawn_without_a_trace(history: History) -> None:
    before = json.dumps(history.to_json())
    number = history.next_id
    history.withdraw(number)  # it never came to be
    assert json.dumps(history.to_json()) == before
    assert history.add(point(3)).id == number
    history.withdraw(number)
    assert json.dumps(history.to_json()) == before


def test_points_are_those_of_the_trials(history: History) -> None:
    assert {i: x.tolist() for i, x in history.points.items()} == {
        trial.id: SPACE.encode(trial.params).tolist() for trial in history
    }
    history.cancel(1)
    assert set(history.points) == {0}


def test_the_only_outcome_may_be_a_list_too(history: History) -> None:
    for number, given in enumerate([[1.0, 2.0, 6.0], (4, 5), np.array([0.5, 1.5]), [7.0]]):
        told = history.tell(point(40 + number), given)
        assert told.outcomes["value"].values == tuple(given)
        assert told.value == pytest.approx(np.mean(given))
    assert told.outcomes["value"] == Measurement(7.0)
    refused(history, ValueError, "'value' is an empty list; if the evaluation failed", 1, [])
    refused(history, ValueError, "value must be finite", 1, [1.0, math.nan])
    history.revise(told.id, [6.0, 8.0], noise_var=0.5)
    assert history[told.id].outcomes["value"] == Measurement(7.0, 0.5, (6.0, 8.0))


def test_replicates_are_kept_one_by_one() -> None:
    history = History(THREE)
    told = history.tell(HERE, {"loss": [1.0, 2.0, 6.0], "gain": np.array([2, 4]), "size": 0.5})
    assert told.outcomes["loss"] == Measurement(3.0, None, (1.0, 2.0, 6.0))
    assert told.outcomes["gain"].values == (2.0, 4.0)
    assert told.outcomes["size"] == Measurement(0.5)
    assert history.measured() == {"loss": 3, "gain": 2, "size": 1}
    history.tell(point(1), {"loss": [7.0]}, noise_var={"loss": 0.5})
    assert history[1].outcomes["loss"] == Measurement(7.0, 0.5)
    again = History.from_json(json.loads(json.dumps(history.to_json())))
    assert list(again) == list(history)
    assert again[0].outcomes["loss"].replicates == (1.0, 2.0, 6.0)
    huge = history.tell(point(2), {"loss": [1e300] * 3})
    assert huge.outcomes["loss"].value == pytest.approx(1e300)
