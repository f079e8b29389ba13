"""A parameter of an estimator as a fidelity: few trees first, the answer for all of them."""

from __future__ import annotations

import pickle
import re
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from optpair import Constraint, Fidelity, Float, Int, Settings, Space, Stop
from optpair.integrations.sklearn import JESSearchCV
from optpair.integrations.sklearn.splits import Portions, SameFolds
from shell_cases import TINY

X, Y = load_diabetes(return_X_y=True)
SPACE = {"min_samples_leaf": Int(1, 60, log=True), "n_estimators": Fidelity(2, 32, log=True)}


def test_the_answer_is_for_all_trees() -> None:
    for space in (SPACE, Space(SPACE)):
        search = JESSearchCV(
            RandomForestRegressor(random_state=0), space, n_iter=10, cv=3, random_state=0
        ).fit(X[:200], Y[:200])
        tried = [params["n_estimators"] for params in search.cv_results_["params"]]
        assert min(tried) == 2
        assert tried.count(32) < 10
        assert search.best_params_["n_estimators"] == 32
        assert search.best_estimator_.n_estimators == 32
        assert tried[search.best_index_] == 32
        assert search.recommendation_.params["n_estimators"] == 32
        assert search.optimizer_.spent < 8


# --- resources, as scikit-learn's halving has them ----------------------------------------------


class Counted(BaseEstimator, RegressorMixin):
    """Remembers the rows that it was trained on; the best width is 0.4."""

    def __init__(self, width: float = 1.0, rounds: int = 30) -> None:
        self.width, self.rounds = width, rounds

    def fit(self, X: np.ndarray, y: np.ndarray) -> Counted:
        self.rows_ = tuple(X[:, 0].astype(int))
        self.biased_ = 1 / len(X) + 1 / self.rounds
        if self.width > 0.9:
            raise ArithmeticError("too wide")
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), (self.width - 0.4) ** 2 + self.biased_)


def score(estimator: Counted, X: np.ndarray, y: np.ndarray) -> float:
    LOOKED.append((estimator.rows_, tuple(X[:, 0].astype(int)), estimator.rounds))
    return -float(estimator.predict(X)[0])


LOOKED: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []
ROWS, TARGETS = np.arange(270.0)[:, None], np.zeros(270)
QUICK = Settings(**TINY)
SHARES = {"a": 0.6, "b": 0.3, "c": 0.1}


def searched(**options: Any) -> JESSearchCV:
    LOOKED.clear()
    given: dict[str, Any] = {"n_iter": 12, "cv": 3, "scoring": score, "random_state": 0}
    given |= {"space": {"width": Float(0, 0.8)}, "settings": QUICK, **options}
    return JESSearchCV(Counted(), given.pop("space"), **given).fit(ROWS, TARGETS)


def test_rows_are_a_resource() -> None:
    search = searched(resource="n_samples")
    given = search.cv_results_["n_resources"]
    assert given.dtype == int
    assert (given.min(), given.max(), given[-1]) == (10, 270, 270)
    assert len(set(given)) > 2
    assert len(LOOKED) == 3 * 12
    folds = [LOOKED[3 * i : 3 * i + 3] for i in range(12)]
    for n, looks in zip(given, folds, strict=True):
        assert [len(train) for train, _, _ in looks] == [max(round(n / 270 * 180), 1)] * 3
        assert [test for _, test, _ in looks] == [test for _, test, _ in folds[0]]  # always whole
        assert all(not set(train) & set(test) for train, test, _ in looks)
    by_size = sorted(folds, key=lambda looks: len(looks[0][0]))
    for fewer, more in pairwise(by_size):  # what was trained on is trained on again
        assert all(set(a[0]) <= set(b[0]) for a, b in zip(fewer, more, strict=True))
    assert search.best_params_.keys() == {"width"}
    assert given[search.best_index_] == 270
    assert len(search.best_estimator_.rows_) == 270
    assert search.recommendation_.params.keys() == {"width"}
    assert search.belief().params[0].keys() == {"width"}
    assert search.best_score_ == search.recommendation_.mean
    assert search.optimizer_.spent == pytest.approx(given.sum() / 270)


def test_a_parameter_is_a_resource() -> None:
    search = searched(resource="rounds", min_resources=0.1, batch=3)
    given = search.cv_results_["n_resources"]
    assert [params["rounds"] for params in search.cv_results_["params"]] == list(given)
    assert [rounds for _, _, rounds in LOOKED[::3]] == list(given)
    assert (given.min(), given.max()) == (3, 30)  # the estimator's own value is all of it
    assert search.best_params_["rounds"] == search.best_estimator_.rounds == 30
    assert {len(train) for train, _, _ in LOOKED} == {180}
    other = searched(resource="rounds", max_resources=90, min_resources=45, n_iter=5)
    assert set(other.cv_results_["n_resources"]) <= set(range(45, 91))
    assert other.best_params_["rounds"] == 90


def test_the_last_trial_is_whole_however_few_there_are() -> None:
    for count in (1, 2, 3):
        search = searched(resource="n_samples", n_iter=count)
        given = search.cv_results_["n_resources"]
        assert len(given) == count
        assert given[-1] == 270


@pytest.mark.parametrize("resource", ["n_samples", "rounds"])
@pytest.mark.parametrize("seed", range(3))
def test_the_answer_was_seen_whole(resource: str, seed: int) -> None:
    """The last trial of the budget is whole, another point where the best predicted one was."""
    search = searched(resource=resource, random_state=seed, n_iter=14)
    most, given = {"n_samples": 270, "rounds": 30}[resource], search.cv_results_["n_resources"]
    assert given[-1] == most
    assert given[search.best_index_] == most
    trials = search.optimizer_.trials
    seen = [trial.actual["width"] for trial in trials if trial.actual[resource] == most]
    for trial in trials:  # almost all is all, and may be the answer, unless that is known
        amount = trial.actual[resource]
        assert amount < 0.9 * most or amount == most or trial.actual["width"] in seen
    assert len({repr(trial.actual) for trial in trials}) == 14  # no copies
    if resource == "rounds":
        assert [trial.actual for trial in trials] == search.cv_results_["params"]


def test_the_end_by_a_stop_is_whole_too() -> None:
    search = searched(resource="n_samples", stop=Stop(gap=10.0, chance=0.5))
    assert search.ended_
    assert search.cv_results_["n_resources"].max() == 270
    assert search.cv_results_["n_resources"][search.best_index_] == 270


def test_a_fidelity_of_ones_own_is_whole_in_the_end() -> None:
    space = {"width": Float(0, 0.8), "rounds": Fidelity(1, 30, log=True)}
    search = searched(space=space, n_iter=9)
    assert search.cv_results_["params"][-1]["rounds"] == 30


def test_the_same_seed_gives_the_same_portions() -> None:
    one = searched(resource="n_samples").cv_results_["params"], list(LOOKED)
    assert one == (searched(resource="n_samples").cv_results_["params"], LOOKED)


def test_seconds_may_be_the_cost() -> None:
    search = searched(resource="n_samples", cost="seconds")
    times = search.cv_results_["mean_fit_time"] + search.cv_results_["mean_score_time"]
    assert search.optimizer_.spent == pytest.approx(3 * times.sum())
    plain = searched(cost="seconds", n_iter=4)
    assert [trial.cost for trial in plain.optimizer_.trials] == [
        trial.spent for trial in plain.optimizer_.trials
    ]
    assert all(trial.cost > 0 for trial in plain.optimizer_.trials)
    assert all(trial.cost is None for trial in searched(n_iter=3).optimizer_.trials)


def test_what_fails_has_its_resources_too() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = searched(
            space={"width": Float(0, 1)}, resource="n_samples", n_iter=16, random_state=1
        )
    failed = [trial.id for trial in search.optimizer_.trials if trial.state == "failed"]
    assert failed
    given = search.cv_results_["n_resources"]
    for trial in search.optimizer_.trials:
        assert given[trial.id] == trial.actual["n_samples"]
    assert np.isnan(search.cv_results_["mean_test_score"][failed]).all()
    assert given[search.best_index_] == 270


def test_every_portion_has_the_shares_of_classes() -> None:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(["a", "b", "c"], [60, 30, 10]))
    folds = SameFolds(StratifiedKFold(2))
    portions = Portions(folds, y, 0, 100, classes=True)
    for n in (10, 20, 50, 100):
        for train, test in portions.of(n).split(np.zeros((100, 1)), y):
            counts = Counter(y[train])
            assert len(train) == n // 2
            assert all(abs(counts[c] - n / 2 * share) <= 1 for c, share in SHARES.items())
            assert len(test) == 50
    plain = Portions(folds, y, 0, 100, classes=False)
    (train, _), *_ = plain.of(100).split(np.zeros((100, 1)), y)
    assert sorted(train) == sorted(next(folds.split())[0])
    assert list(train) != sorted(train)


def test_enough_rows_for_every_class() -> None:
    y = np.repeat(np.arange(9), 30)
    search = JESSearchCV(
        KNeighborsClassifier(),
        {"n_neighbors": Int(1, 5)},
        resource="n_samples",
        n_iter=3,
        cv=3,
        settings=QUICK,
        random_state=0,
    ).fit(ROWS, y)
    assert search.cv_results_["n_resources"].min() == 2 * 3 * 9


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"resource": "n_sample"}, ValueError, "not 'n_sample'; did you mean 'n_samples'"),
        ({"resource": 3}, ValueError, "resource must be 'n_samples' or a parameter of the est"),
        ({"resource": "width", "max_resources": 9}, ValueError, "space has 'width', which is"),
        ({"resource": "rounds", "max_resources": 1}, ValueError, "int of at least 2, not 1"),
        ({"resource": "rounds", "max_resources": 2.5}, TypeError, "max_resources must be 'auto'"),
        ({"resource": "n_samples", "max_resources": 271}, ValueError, "from 2 to 270, the rows"),
        ({"resource": "n_samples", "min_resources": 270}, ValueError, "an int from 1 to 269"),
        ({"resource": "n_samples", "min_resources": 0}, ValueError, "an int from 1 to 269"),
        ({"resource": "n_samples", "min_resources": 1.5}, ValueError, "between 0 and 1, not 1.5"),
        ({"resource": "n_samples", "min_resources": "few"}, TypeError, "min_resources must be"),
        ({"min_resources": 3}, ValueError, "min_resources=3 needs a resource"),
        ({"max_resources": 3}, ValueError, "max_resources=3 needs a resource"),
        ({"cost": "money"}, ValueError, "cost must be 'resource' or 'seconds', not 'money'"),
    ],
)
def test_resources_that_are_refused(options: dict[str, Any], kind: type, said: str) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        searched(**options)


def test_several_outcomes_of_a_resource(tmp_path: Path) -> None:
    """The answer is at all of the resource, for a constraint as for two objectives."""
    scoring = {"score": score, "size": lambda model, X, y=None: model.width}
    for size in (Constraint(high=0.5), "minimize"):
        outcomes = {"score": "maximize", "size": size}
        search = searched(resource="n_samples", scoring=scoring, refit="score", outcomes=outcomes)
        chosen = search.cv_results_["n_resources"]
        assert len(set(chosen)) > 2
        assert chosen[search.best_index_] == 270
        search.report(tmp_path / "page.html")


def test_resources_that_the_estimator_does_not_say() -> None:
    with pytest.raises(ValueError, match="max_resources must be given where the estimator's own"):
        JESSearchCV(Counted(rounds=None), {"width": Float(0, 1)}, resource="rounds").fit(
            ROWS, TARGETS
        )
    shelf = Space.of_rows([{"width": 0.1}, {"width": 0.2}, {"width": 0.7}])
    with pytest.raises(ValueError, match="a Space of rows cannot be given together"):
        searched(space=shelf, resource="n_samples")


def test_a_search_with_a_resource_is_cloned_pickled_and_reported(tmp_path: Path) -> None:
    search = searched(resource="n_samples", n_iter=6)
    assert clone(search).get_params()["resource"] == "n_samples"
    again = pickle.loads(pickle.dumps(search))
    assert again.best_params_ == search.best_params_
    again.report(tmp_path / "page.html")
    assert "n_samples" in (tmp_path / "page.html").read_text(encoding="utf-8")
