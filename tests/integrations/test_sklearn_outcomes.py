"""JESSearchCV with several metrics: limits that must hold, and goals that disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from optpair import Constraint, Float, Objective, Settings
from optpair.integrations.sklearn import JESSearchCV
from optpair.results.front import Front, FrontBelief
from shell_cases import TINY

X = np.linspace(0, 1, 30)[:, None]
OPTIONS: dict[str, Any] = {
    "n_iter": 7,
    "cv": 3,
    "random_state": 0,
    "hyperparameters": "map",
    "settings": Settings(**{**TINY, "initial": 5}),
}
SPACE = {"a": Float(0, 1), "kind": ["u"]}


class Known(BaseEstimator):  # type: ignore[misc]
    """Its scores follow from `a` alone, up to the fold; it fails below `least`."""

    def __init__(self, a: float = 0.5, kind: str = "", least: float = 0.0) -> None:
        self.a, self.kind, self.least = a, kind, least

    def fit(self, X: Any, y: Any = None) -> Known:
        if self.a < self.least:
            raise RuntimeError("too small")
        return self


def left(model: Known, X: Any, y: Any = None) -> float:
    return float(-((model.a - 0.2) ** 2) + 0.01 * model.a * np.mean(X))


def right(model: Known, X: Any, y: Any = None) -> float:
    return float(-((model.a - 0.8) ** 2) + 0.01 * model.a * np.mean(X))


BOTH = {"left": left, "right": right}


def test_a_limit_on_another_metric_is_kept() -> None:
    outcomes = {"left": "maximize", "right": Constraint(low=-0.04)}  # a from 0.6 to 1
    search = JESSearchCV(
        Known(), SPACE, scoring=BOTH, outcomes=outcomes, refit="left", **OPTIONS
    ).fit(X)
    assert 0.58 < search.best_params_["a"] < 0.75
    assert search.best_params_["kind"] == "u"
    assert search.best_estimator_.a == search.best_params_["a"]
    assert search.recommendation_.chance is not None
    assert search.best_score_ == search.recommendation_.outcomes["left"].mean
    row = search.cv_results_["params"][search.best_index_]
    assert row == search.best_params_
    trial = search.optimizer_.trials[search.best_index_]
    for name in BOTH:  # what was told is what scikit-learn has
        told = trial.outcomes[name]
        assert told.value == search.cv_results_[f"mean_test_{name}"][search.best_index_]
        assert told.noise_var is not None


@pytest.mark.parametrize(("refit", "at"), [("left", 0.2), ("right", 0.8)])
def test_of_a_front_the_best_for_the_named_objective_is_refitted(refit: str, at: float) -> None:
    outcomes = dict.fromkeys(BOTH, "maximize")
    search = JESSearchCV(
        Known(), SPACE, scoring=BOTH, outcomes=outcomes, refit=refit, **OPTIONS
    ).fit(X)
    assert isinstance(search.recommendation_, Front)
    assert abs(search.best_params_["a"] - at) < 0.12
    best = search.recommendation_.best_for({refit: 1})
    assert best.params == pytest.approx(search.best_params_)
    assert search.best_score_ == best.means[refit]
    belief = search.belief()
    assert isinstance(belief, FrontBelief)
    assert belief.params[0][0]["kind"] == "u"


def test_the_only_score_as_a_limit_on_times() -> None:
    outcomes = {"fit_time": Objective("minimize"), "score": Constraint(low=-1.0)}
    search = JESSearchCV(clone(Known()), SPACE, scoring=left, outcomes=outcomes, **OPTIONS).fit(X)
    assert search.recommendation_.chance >= 0.95
    assert search.best_score_ == search.recommendation_.outcomes["score"].mean
    times = [trial.outcomes["fit_time"].value for trial in search.optimizer_.trials]
    assert times == list(search.cv_results_["mean_fit_time"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("error_score", [np.nan, -9.0])
def test_a_trial_whose_fits_fail_has_no_outcome(error_score: float) -> None:
    search = JESSearchCV(
        Known(least=0.3),
        SPACE,
        scoring=BOTH,
        outcomes={
            "left": "maximize",
            "right": Constraint(low=-0.5),
            "fit_time": Constraint(high=9),
        },
        refit="left",
        error_score=error_score,
        **{**OPTIONS, "n_iter": 5},
    ).fit(X)
    for trial in search.optimizer_.trials:
        assert (trial.state == "failed") == (trial.params["a"] < 0.3)
    assert {trial.state for trial in search.optimizer_.trials} == {"told", "failed"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcomes": {"lefd": "maximize"}}, "not 'lefd'; did you mean 'left'?"),
        ({"outcomes": "left"}, "outcomes must be a dict by the names of metrics"),
        ({"outcomes": {"left": "up"}}, "outcome 'left' must be 'minimize', 'maximize'"),
        ({"outcomes": {"left": Constraint(low=0)}}, "are all constraints"),
        ({"outcomes": {"left": "maximize"}, "noise": 0.1}, "noise=0.1 and outcomes cannot be"),
        (
            {"outcomes": {"fit_time": "minimize", "left": "maximize"}, "refit": "right"},
            "refit must name the objective .*, one of fit_time, left, not 'right'",
        ),
    ],
)
def test_what_outcomes_cannot_be(options: dict[str, Any], message: str) -> None:
    search = JESSearchCV(Known(), SPACE, scoring=BOTH, **{"refit": "left", **OPTIONS, **options})
    with pytest.raises((TypeError, ValueError), match=message):
        search.fit(X)
