"""Sessions: streams, memory, and what is remembered from step to step."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from optpair.engine.session import ANSWER, DESIGN, SUGGEST, Session
from optpair.engine.settings import Settings
from optpair.gp.inference import Known, Marginal, Mode
from optpair.problem.problem import Problem
from optpair.trials.history import History
from shell_cases import KNOWN, SPACE, TINY, objective, point

PROBLEM = Problem.single(SPACE, "minimize")


def session(**options: Any) -> Session:
    return Session(PROBLEM, **{"seed": 0, "settings": Settings(**TINY), **options})


@pytest.fixture(scope="module")
def history() -> History:
    made = History(PROBLEM)
    for i in range(5):
        made.tell(point(i), objective(point(i)))
    return made


def test_purposes_and_counts_have_streams_of_their_own() -> None:
    draws = {
        float(session(seed=seed).stream(purpose, count).draw().uniform())
        for seed in (0, 1)
        for purpose in (DESIGN, SUGGEST, ANSWER)
        for count in (0, 1)
    }
    assert len(draws) == 12


def test_seeds_are_drawn_where_none_is_given() -> None:
    assert session(seed=None).seed != session(seed=None).seed


def test_hyperparameters_by_name() -> None:
    assert isinstance(session().engine.inference, Marginal)
    assert isinstance(session(hyperparameters="map").engine.inference, Mode)
    assert isinstance(session(hyperparameters=KNOWN).engine.inference, Known)
    assert session().engine.initial == 3


def test_a_suggestion_is_remembered_and_an_answer_is_not(history: History) -> None:
    made = session()
    made.answers(history.data())
    assert made.memory == {}
    made.suggest(history.data(), 0)
    kept = made.memory["value"]
    assert kept.told == 5
    answers = made.answers(history.data())
    assert made.memory["value"] is kept
    assert answers.memory["value"] is kept  # nothing new was told
    made.forget()
    assert made.memory == {}


def test_documents_and_back(history: History) -> None:
    made, again = session(), session()
    made.suggest(history.data(), 0)
    again.restore(json.loads(json.dumps(made.to_json())), history.measured())
    assert again.to_json() == made.to_json()
    np.testing.assert_array_equal(made.suggest(history.data(), 1), again.suggest(history.data(), 1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"told": 6}, "the memory has seen 6 values"),
        ({"told": 0}, "the memory has seen 0 values"),
        ({"told": True}, "the memory has seen True values"),
    ],
)
def test_a_memory_of_other_trials(history: History, change: dict[str, Any], match: str) -> None:
    made = session(hyperparameters="map")
    made.suggest(history.data(), 0)
    document = made.to_json()
    with pytest.raises(ValueError, match=match):
        made.restore({"value": document["value"] | change}, history.measured())
    with pytest.raises(ValueError, match="'other' is of no outcome"):
        made.restore({"other": document["value"]}, history.measured())
    assert made.to_json() == document
