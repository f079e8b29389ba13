"""What scikit-learn's own scores never exceed is known to a search; of one's own, nothing is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RANSACRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR

from optpair import Float, Int, Objective, Settings
from optpair.integrations.sklearn import JESSearchCV
from optpair.integrations.sklearn.ranges import (
    range_of_score,
    range_of_scorer,
    with_range,
    without_round_off,
)
from shell_cases import TINY

X, Y = load_iris(return_X_y=True)
OPTIONS: dict[str, Any] = {
    "n_iter": 4,
    "cv": 3,
    "random_state": 0,
    "hyperparameters": "map",
    "settings": Settings(**TINY),
}
K = {"n_neighbors": Int(1, 30, log=True)}


def bounds(search: JESSearchCV, name: str = "value") -> Any:
    return search.fit(X, Y).optimizer_.problem.outcomes[name].bounds


def test_every_score_of_scikit_learn_has_its_range() -> None:
    """Each is 1, 0 or nothing at the top; whoever adds a score to scikit-learn is told here."""
    for name in get_scorer_names():
        known = range_of_scorer(name)
        assert known is not None, name
        top = {"neg": 0.0, "mutual": None, "positive": None}.get(name.split("_")[0], 1.0)
        assert known[1] == top, name
    assert range_of_scorer("accuracy") == range_of_scorer("f1_macro") == (0.0, 1.0)
    assert range_of_scorer("roc_auc_ovr") == (0.0, 1.0)
    assert range_of_scorer("matthews_corrcoef") == (-1.0, 1.0)
    assert range_of_scorer("r2") == (None, 1.0)
    assert range_of_scorer("negative") is range_of_scorer("f10") is None


class Own(SVC):  # type: ignore[misc]
    """With a score of its own."""

    def score(self, X: Any, y: Any) -> float:
        return 7.0


def test_the_score_of_an_estimator_is_known_if_it_is_scikit_learns() -> None:
    assert range_of_score([SVC()]) == range_of_score([make_pipeline(PCA(), SVC())]) == (0.0, 1.0)
    assert range_of_score([SVR(), Ridge()]) == (None, 1.0)
    assert range_of_score([make_pipeline(StandardScaler(), "passthrough"), SVR()]) == (None, 1.0)
    assert range_of_score([Own()]) is range_of_score([SVC(), make_pipeline(Own())]) is None
    assert range_of_score([KNeighborsClassifier()]) == (0.0, 1.0)
    assert range_of_score([TweedieRegressor(), RANSACRegressor(Ridge())]) == (None, 1.0)
    assert range_of_score([LogisticRegressionCV(scoring="neg_log_loss")]) is None
    assert range_of_score([JESSearchCV(SVC(), {}, scoring="neg_log_loss")]) is None
    assert range_of_score([SelfTrainingClassifier(Own())]) is None
    assert range_of_score([SVC(), SVR()]) is range_of_score([PCA()]) is None
    assert range_of_score([Pipeline([("clf", "passthrough")])]) is None


def test_searches_have_bounds_by_themselves() -> None:
    assert bounds(JESSearchCV(KNeighborsClassifier(), K, **OPTIONS)) == (0, 1)
    losses = JESSearchCV(KNeighborsClassifier(), K, scoring="neg_log_loss", **OPTIONS)
    assert bounds(losses) == (None, 0)
    pipe = Pipeline([("reduce", PCA()), ("clf", SVC())])
    models = {"reduce": [PCA(2), PCA(3)], "clf": [SVC(), LogisticRegression()]}
    assert bounds(JESSearchCV(pipe, models, **OPTIONS)) == (0, 1)
    strange = {"clf": [SVC(), Own()]}
    assert bounds(JESSearchCV(pipe, strange, **{**OPTIONS, "n_iter": 2})) is None
    both = JESSearchCV(
        KNeighborsClassifier(),
        K,
        scoring=["accuracy", "neg_log_loss"],
        outcomes={"neg_log_loss": "maximize", "fit_time": "minimize"},
        refit="neg_log_loss",
        **OPTIONS,
    )
    assert bounds(both, "neg_log_loss") == (None, 0)
    assert bounds(both, "fit_time") == (0, None)
    several = {"scoring": ["accuracy", "neg_log_loss"], "refit": "accuracy"}
    assert bounds(JESSearchCV(KNeighborsClassifier(), K, **several, **OPTIONS)) == (0, 1)


def test_a_scorer_of_ones_own_has_none() -> None:
    def accuracy(model: Any, X: Any, y: Any) -> float:
        return 100 * float(model.score(X, y))

    own = JESSearchCV(KNeighborsClassifier(), K, scoring=accuracy, **OPTIONS)
    assert bounds(own) is None
    assert own.recommendation_.mean > 50
    named = {"scoring": {"accuracy": accuracy}, "refit": "accuracy"}
    assert bounds(JESSearchCV(KNeighborsClassifier(), K, **named, **OPTIONS)) is None
    said = {"outcomes": {"score": Objective("maximize")}}
    assert bounds(JESSearchCV(KNeighborsClassifier(), K, **said, **OPTIONS), "score") is None


def test_no_prediction_leaves_the_range() -> None:
    """With three trials intervals are wide: on iris they went up to 1.13."""
    space = {"C": Float(0.01, 1000, log=True), "gamma": Float(1e-4, 10, log=True)}
    search = JESSearchCV(SVC(), space, **{**OPTIONS, "n_iter": 3}).fit(X, Y)
    belief = search.belief()
    low, high = search.recommendation_.interval
    assert 0 <= low < search.best_score_ <= high <= 1
    assert belief.values.max() <= 1
    assert search.best_score_ + belief.gap_interval[1] <= 1 + 1e-12


def test_values_at_the_bound_do_no_harm() -> None:
    """A perfect score in most trials: the search goes on, and the answer is one of them."""
    many, labels = np.repeat(np.eye(3), 20, axis=0), np.repeat(np.arange(3), 20)
    space = {"C": Float(1e-3, 1e3, log=True), "gamma": Float(1e-3, 1e3, log=True)}
    search = JESSearchCV(SVC(), space, **{**OPTIONS, "n_iter": 8}).fit(many, labels)
    scores = search.cv_results_["mean_test_score"]
    assert np.count_nonzero(scores == 1.0) >= 4
    assert search.cv_results_["mean_test_score"][search.best_index_] == 1.0
    assert search.best_score_ == pytest.approx(1.0, abs=0.01)
    assert search.best_score_ <= 1.0


def test_bounds_change_no_point_that_is_tried() -> None:
    free = {"outcomes": {"score": Objective("maximize")}}
    one = JESSearchCV(KNeighborsClassifier(), K, **{**OPTIONS, "n_iter": 8}).fit(X, Y)
    other = JESSearchCV(KNeighborsClassifier(), K, **free, **{**OPTIONS, "n_iter": 8}).fit(X, Y)
    assert one.cv_results_["params"] == other.cv_results_["params"]
    assert one.best_params_ == other.best_params_


class Fickle(KNeighborsClassifier):  # type: ignore[misc]
    """Fails on the fold without the last row, with few neighbours."""

    def fit(self, X: Any, y: Any) -> Fickle:
        if self.n_neighbors < 5 and X[-1, -1] != 1.8:
            raise RuntimeError("too few")
        super().fit(X, y)
        return self


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("score", [-1, -1.0, 2.0, 0, math.nan])
def test_what_failed_folds_are_scored_with_is_never_refused(score: float) -> None:
    search = JESSearchCV(
        Fickle(), K, error_score=score, **{**OPTIONS, "n_iter": 8, "cv": KFold(3, shuffle=True)}
    ).fit(X, Y)
    low, high = search.optimizer_.problem.outcomes["value"].bounds
    assert (low, high) == (min(0, score) if score == score else 0, max(1, score))
    means = search.cv_results_["mean_test_score"]
    assert np.array_equal(means[np.isfinite(means)], [t.value for t in told(search)])


def told(search: JESSearchCV) -> list[Any]:
    return [trial for trial in search.optimizer_.trials if trial.state == "told"]


def test_round_off_is_not_beyond_a_bound() -> None:
    area = with_range(Objective("maximize"), range_of_scorer("roc_auc"), math.nan)
    assert without_round_off(1 + 2.3e-16, area) == 1.0
    assert without_round_off(-1e-12, area) == 0.0
    assert without_round_off(1.01, area) == 1.01  # which is refused by name
    assert without_round_off(0.3, area) == 0.3
    loss = with_range(Objective("minimize"), (0.0, None), math.nan)
    assert without_round_off(-2e-16, loss) == 0.0

    def above(model: Any, X: Any, y: Any) -> float:
        return 1 + 1e-15

    search = JESSearchCV(
        KNeighborsClassifier(),
        K,
        scoring=above,
        outcomes={"score": Objective("maximize", bounds=(0, 1))},
        **OPTIONS,
    ).fit(X, Y)
    assert all(trial.value == 1.0 for trial in search.optimizer_.trials)


def test_the_only_metric_may_be_called_by_its_name() -> None:
    options = {**OPTIONS, "scoring": "r2"}
    data = load_diabetes(return_X_y=True)
    space = {"alpha": Float(1e-3, 10, log=True)}
    wanted: dict[str, Any] = {"r2": "maximize", "fit_time": "minimize"}
    search = JESSearchCV(Ridge(), space, outcomes=wanted, **options).fit(*data)
    assert search.optimizer_.problem.outcomes["r2"].bounds == (None, 1)
    values = [trial.outcomes["r2"].value for trial in search.optimizer_.trials]
    assert values == pytest.approx(search.cv_results_["mean_test_score"])
    with pytest.raises(ValueError, match="outcomes must be among r2, score, fit_time, score_time"):
        JESSearchCV(Ridge(), space, outcomes={"mae": "maximize"}, **options).fit(*data)
