"""JESSearchCV keeps scikit-learn's conventions, and answers with what it believes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from optpair import (
    Categorical,
    Constraint,
    Float,
    Hyperparameters,
    Int,
    Optimizer,
    Ordinal,
    Settings,
    Space,
    Stop,
)
from optpair.integrations.sklearn import JESSearchCV
from optpair.integrations.sklearn.folds import noise_of_means
from optpair.integrations.sklearn.space import NumberedSpace
from shell_cases import TINY

KNOWN = Hyperparameters(np.array([[0.4]]), np.array([1.0]), np.array([0.01]), np.array([0.0]))
CHEAP: dict[str, Any] = {
    "n_iter": 6,
    "cv": 3,
    "random_state": 0,
    "acquisition": "logei",
    "hyperparameters": KNOWN,
    "settings": Settings(**TINY),
}
ALPHA = {"alpha": Float(1e-3, 1e3, log=True)}
X, Y = make_classification(90, 5, random_state=0)


class Moody(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Right with probability `right`; fails where asked to, or on some folds."""

    def __init__(self, right: float = 0.5, fails: str = "never") -> None:
        self.right = right
        self.fails = fails

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Moody:
        low = self.right < 0.5
        if self.fails == "always" or (self.fails == "low" and low):
            raise RuntimeError("a bad mood")
        if self.fails == "low on a fold" and low and 0.0 in X[:, 0]:
            raise RuntimeError("a bad fold")
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.weighted_ = sample_weight is not None
        return self

    def predict(self, X: Any) -> Any:
        rng = np.random.default_rng(X.shape[0] + int(1000 * abs(X[0, 0])))
        return np.where(rng.uniform(size=len(X)) < self.right, X[:, -1], 1 - X[:, -1])


RIGHT = {"right": Float(0.0, 1.0)}
# The last column is the answer; the first is 0 in the last fold only.
TOLD = np.c_[np.arange(90.0)[::-1] // 30, np.arange(90) % 2]
ANSWER = np.arange(90) % 2


def moody(fails: str = "never", **options: Any) -> JESSearchCV:
    return JESSearchCV(Moody(fails=fails), RIGHT, **{**CHEAP, "cv": KFold(3), **options})


def test_the_answer_is_the_best_predicted_trial() -> None:
    search = moody(n_iter=8).set_params(space={"right": Float(0.0, 0.9)})  # never perfect
    results, best = search.fit(TOLD, ANSWER).cv_results_, search.recommendation_
    assert search.best_params_ == best.params == results["params"][search.best_index_]
    assert search.best_params_["right"] > 0.8
    assert search.best_score_ == best.mean != results["mean_test_score"][search.best_index_]
    assert best.interval[0] < best.mean < best.interval[1]
    assert best.observed.value == results["mean_test_score"].max()
    assert search.best_estimator_.right == search.best_params_["right"]
    assert search.score(TOLD, ANSWER) > 0.8
    assert list(search.classes_) == [0, 1]
    assert search.n_features_in_ == 2
    assert search.n_splits_ == 3


def test_a_list_of_one_is_given_as_it_is() -> None:
    search = moody().set_params(space={"fails": ["never"], "right": Float(0, 1)}).fit(TOLD, ANSWER)
    assert search.best_params_["fails"] == "never"
    assert list(search.best_params_) == ["fails", "right"]
    assert set(search.cv_results_["param_fails"]) == {"never"}
    assert search.optimizer_.space.names == ("right",)


def test_trials_and_rows_go_together() -> None:
    search = moody().fit(TOLD, ANSWER)
    results = search.cv_results_
    assert len(results["params"]) == 6
    for trial, params, mean in zip(
        search.optimizer_.trials, results["params"], results["mean_test_score"], strict=True
    ):
        assert trial.params == params
        assert trial.value == mean
    assert results["rank_test_score"].min() == 1
    assert results["param_right"].tolist() == [p["right"] for p in results["params"]]
    belief = search.belief()
    assert set(belief.params[0]) == {"right"}


def test_the_last_trial_is_the_best_predicted_point() -> None:
    search = moody(n_iter=4, random_state=0).fit(TOLD, ANSWER)
    *first, last = search.optimizer_.trials
    scores = np.stack([search.cv_results_[f"split{k}_test_score"] for k in range(3)], axis=1)
    noise = noise_of_means(scores[:3], 0.5, np.ones(3, dtype=int))
    assert noise is not None
    options = {name: CHEAP[name] for name in ("acquisition", "hyperparameters", "settings")}
    again = Optimizer(Space(RIGHT), direction="maximize", seed=0, **options)
    for trial, noise_var in zip(first, noise, strict=True):
        again.tell(trial.params, trial.value, noise_var=noise_var)
    assert again.recommend().params == last.params


def test_noise_is_the_spread_over_folds_or_inferred_or_known() -> None:
    folds = moody().fit(TOLD, ANSWER).optimizer_.trials
    assert all(trial.noise_var is not None and trial.noise_var > 0 for trial in folds)
    for noise in (None, 0):
        other = moody(noise=noise).fit(TOLD, ANSWER).optimizer_
        assert other.noise == noise
        assert all(trial.noise_var is None for trial in other.trials)
    one = moody(cv=ShuffleSplit(1, random_state=0)).fit(TOLD, ANSWER).optimizer_.trials
    assert all(trial.noise_var is None for trial in one)


@pytest.mark.parametrize("noise", ["folds", None, 0, 1.0])
@pytest.mark.parametrize("batch", [1, 4])
def test_on_the_same_folds_no_point_is_tried_twice(noise: Any, batch: int) -> None:
    """A copy of a cross-validation is no evidence: the search ends once all points were tried."""
    space = {"right": Ordinal([0.1, 0.3, 0.5, 0.7, 0.9]), "fails": ["never", "on Sundays"]}
    options = {**CHEAP, "cv": KFold(3), "hyperparameters": "map", "n_iter": 16, "batch": batch}
    search = JESSearchCV(Moody(), space, noise=noise, **options)
    with pytest.warns(UserWarning, match="every point had been tried after 10 of n_iter=16 trials"):
        search.fit(TOLD, ANSWER)
    assert search.ended_ == "every point had been tried"
    assert len({repr(params) for params in search.cv_results_["params"]}) == 10
    assert len(search.cv_results_["params"]) == 10
    assert search.best_params_["right"] == 0.9


def test_all_trials_see_the_same_folds() -> None:
    seen: list[tuple[int, ...]] = []

    def score(model: Any, X: Any, y: Any) -> float:
        seen.append(tuple(X[:, 0]))
        return float(model.right)

    X = np.c_[np.arange(90.0), ANSWER]
    moody(cv=ShuffleSplit(2), scoring=score, n_iter=3, refit=False).fit(X, ANSWER)
    assert len(seen) == 6
    assert len(set(seen)) == 2


@pytest.mark.parametrize("batch", [1, 2, 4, 9])
def test_batches_keep_to_the_budget(batch: int) -> None:
    search = moody(batch=batch, n_iter=5).fit(TOLD, ANSWER)
    assert [trial.id for trial in search.optimizer_.trials] == list(range(5))


def test_a_seed_decides_everything() -> None:
    def points(random_state: Any) -> list[Any]:
        return [
            p["right"]
            for p in moody(random_state=random_state).fit(TOLD, ANSWER).cv_results_["params"]
        ]

    assert points(1) == points(1) != points(2)
    assert points(np.random.RandomState(3)) == points(np.random.RandomState(3))
    assert points(None) != points(None)
    generator = np.random.RandomState(3)
    assert points(generator) != points(generator)


def test_a_failed_trial_is_no_value() -> None:
    search = moody("low", n_iter=8)
    with pytest.warns(FitFailedWarning, match="a bad mood"):
        search.fit(TOLD, ANSWER)
    trials, results = search.optimizer_.trials, search.cv_results_
    failed = [trial.state == "failed" for trial in trials]
    assert 0 < sum(failed) < 8
    assert failed == [trial.params["right"] < 0.5 for trial in trials]
    assert np.isnan(results["mean_test_score"]).tolist() == failed
    assert np.isnan(results["split1_test_score"]).tolist() == failed
    assert results["params"] == [dict(trial.params) for trial in trials]
    assert results["param_right"].tolist() == [trial.params["right"] for trial in trials]
    worst = 8 - sum(failed) + 1
    assert (results["rank_test_score"] == worst).tolist() == failed
    assert search.best_params_ == results["params"][search.best_index_]
    assert search.best_params_["right"] > 0.5
    assert {len(column) for column in results.values()} == {8}


def test_where_all_points_were_tried_the_answer_is_one_with_a_value() -> None:
    search = moody("low", n_iter=8).set_params(space={"right": [0.2, 0.9]})
    with (
        pytest.warns(FitFailedWarning, match="a bad mood"),
        pytest.warns(UserWarning, match="every point had been tried after 2 of n_iter=8 trials"),
    ):
        search.fit(TOLD, ANSWER)
    assert {trial.state for trial in search.optimizer_.trials} == {"failed", "told"}
    assert search.best_params_ == search.recommendation_.params == {"right": 0.9}
    assert search.cv_results_["params"][search.best_index_] == search.best_params_


def test_a_fold_that_fails_is_a_failed_trial() -> None:
    search = moody("low on a fold", n_iter=8)
    with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 3"):
        search.fit(TOLD, ANSWER)
    failed = [trial.state == "failed" for trial in search.optimizer_.trials]
    assert 0 < sum(failed) < 8
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == failed


def test_a_number_for_failures_is_the_score_of_a_fold() -> None:
    search = moody("low on a fold", error_score=-1.0, n_iter=8)
    with pytest.warns(FitFailedWarning):
        search.fit(TOLD, ANSWER)
    values = np.array([trial.value for trial in search.optimizer_.trials])
    assert values == pytest.approx(search.cv_results_["mean_test_score"])
    low = np.array([trial.params["right"] < 0.5 for trial in search.optimizer_.trials])
    assert 0 < low.sum() < 8
    assert (values[low] < 0).all()


@pytest.mark.parametrize("score", [0, -1, np.int64(0)])
def test_an_int_for_failures_is_as_good_as_a_float(score: Any) -> None:
    results = []
    for given in (score, float(score)):
        with pytest.warns(FitFailedWarning):
            search = moody("low", error_score=given, n_iter=8).fit(TOLD, ANSWER)
        assert any(trial.state == "failed" for trial in search.optimizer_.trials)
        results.append({k: v for k, v in search.cv_results_.items() if not k.endswith("_time")})
    for name, column in results[0].items():
        np.testing.assert_array_equal(column, results[1][name])
    assert results[0]["mean_test_score"].dtype == np.float64


@pytest.mark.parametrize("batch", [1, 3])
def test_a_number_for_failures_does_not_make_a_trial_succeed(batch: int) -> None:
    search = moody("low", error_score=2.0, n_iter=8, batch=batch)  # better than any score
    with pytest.warns(FitFailedWarning):
        search.fit(TOLD, ANSWER)
    low = np.array([trial.params["right"] < 0.5 for trial in search.optimizer_.trials])
    assert 0 < low.sum() < 8
    assert [trial.state == "failed" for trial in search.optimizer_.trials] == low.tolist()
    assert (search.cv_results_["mean_test_score"][low] == 2.0).all()
    assert (search.cv_results_["rank_test_score"][low] == 1).all()
    assert search.best_params_["right"] > 0.5
    always = moody("always", error_score=0.0)
    with pytest.warns(FitFailedWarning), pytest.raises(ValueError, match="in all 6 evaluations"):
        always.fit(TOLD, ANSWER)


def test_errors_can_be_raised() -> None:
    with pytest.raises(RuntimeError, match="a bad mood"):
        moody("always", error_score="raise").fit(TOLD, ANSWER)


def test_nothing_succeeds() -> None:
    search = moody("always")
    with (
        pytest.warns(FitFailedWarning, match="a bad mood"),
        pytest.raises(ValueError, match="a fit failed in all 6 evaluations") as caught,
    ):
        search.fit(TOLD, ANSWER)
    assert "a bad mood" in str(caught.value)
    with pytest.raises(NotFittedError):
        search.belief()


def test_other_value_errors_are_not_taken_for_failures() -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'left'"):
        JESSearchCV(Moody(), {"left": Float(0, 1)}, **CHEAP).fit(TOLD, ANSWER)


def test_several_metrics() -> None:
    metrics = {"good": "accuracy", "bad": lambda model, X, y: -model.score(X, y)}
    search = moody(scoring=metrics, refit="bad", n_iter=8).fit(TOLD, ANSWER)
    assert search.best_params_["right"] < 0.2
    assert search.best_score_ == search.recommendation_.mean
    assert {"mean_test_good", "mean_test_bad"} <= set(search.cv_results_)
    for refit in (False, lambda results: 0):
        with pytest.raises(
            ValueError, match="refit must name the metric to search for, one of good, bad"
        ):
            moody(scoring=metrics, refit=refit).fit(TOLD, ANSWER)
    function = moody(scoring=lambda *a: {"one": a[0].right}, refit="one").fit(TOLD, ANSWER)
    assert function.best_params_["right"] > 0.8


def test_no_refit_and_a_refit_of_ones_own() -> None:
    without = moody(refit=False).fit(TOLD, ANSWER)
    assert without.best_params_ == without.recommendation_.params
    assert not hasattr(without, "best_estimator_")
    first = moody(refit=lambda results: 0).fit(TOLD, ANSWER)
    assert first.best_index_ == 0
    assert (
        first.best_params_
        == first.cv_results_["params"][0]
        == {"right": first.best_estimator_.right}
    )
    assert not hasattr(first, "best_score_")


def test_a_pipeline_inside_and_outside() -> None:
    inside = make_pipeline(StandardScaler(), LogisticRegression())
    space = Space({"logisticregression__C": Float(1e-3, 1e3, log=True)})
    search = JESSearchCV(inside, space, **CHEAP)
    outside = Pipeline([("scale", StandardScaler()), ("search", search)])
    assert outside.fit(X, Y).score(X, Y) > 0.8
    assert outside[-1].best_params_ == {"logisticregression__C": outside[-1].best_estimator_[-1].C}
    assert outside.predict_proba(X).shape == (90, 2)
    outside.set_params(search__n_iter=3, search__estimator__logisticregression__tol=1e-3)
    scores = cross_val_score(outside, X, Y, cv=2)
    assert scores.shape == (2,)
    assert (scores > 0.6).all()


def test_choices_may_be_any_objects() -> None:
    scalers = [StandardScaler(), MinMaxScaler(), "passthrough"]
    pipe = Pipeline([("scale", "passthrough"), ("model", LogisticRegression())])
    search = JESSearchCV(pipe, {"scale": scalers}, **{**CHEAP, "n_iter": 3}).fit(X, Y)
    assert search.best_params_["scale"] in scalers
    assert all(row in scalers for row in search.cv_results_["param_scale"])
    assert search.recommendation_.observed.params["scale"] in scalers
    assert search.belief().params[0]["scale"] in scalers
    clone(search).fit(X, Y)


def test_mixed_spaces_by_name() -> None:
    space = {
        "C": Float(0.1, 10, log=True),
        "max_iter": Int(50, 99),
        "fit_intercept": Categorical([True, False]),
    }
    search = JESSearchCV(
        LogisticRegression(), space, **{**CHEAP, "hyperparameters": "map", "n_iter": 3}
    )
    search.fit(X, Y)
    assert list(search.best_params_) == list(space)


def test_numbers_in_a_list_are_ordinals() -> None:
    space = {"alpha": [10, 0.1, np.float64(1.0)], "fit_intercept": [True, False]}
    search = JESSearchCV(Ridge(), space, **{**CHEAP, "hyperparameters": "map", "n_iter": 3})
    search.fit(X, Y)
    alpha = search.optimizer_.space["alpha"]
    assert alpha == Ordinal([0.1, 1, 10], spacing="log")
    assert isinstance(search.optimizer_.space["fit_intercept"], Categorical)
    assert all(any(p["alpha"] is a for a in space["alpha"]) for p in search.cv_results_["params"])


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        (stats.uniform(1, 3), Float(1, 4)),
        (stats.loguniform(1e-3, 1), Float(1e-3, 1, log=True)),
        (stats.reciprocal(1e-3, 1), Float(1e-3, 1, log=True)),
        (stats.randint(1, 5), Int(1, 4)),
        (np.array([1, 10, 100]), Ordinal([1, 10, 100])),
        (range(3), Ordinal([0, 1, 2])),
        ((1, 2, 3), Ordinal([1, 2, 3])),
        ([1, 1], Categorical([0, 1])),
        ([1, None], Categorical([0, 1])),
        (("a", "b"), Categorical([0, 1])),
    ],
)
def test_what_a_space_may_be_made_of(given: Any, parameter: Any) -> None:
    assert NumberedSpace({"alpha": given}).space == Space({"alpha": parameter})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0.1, 10), r"is it a range\? Write Float\(0.1, 10\), with log=True"),
        (
            stats.norm(0, 1),
            "SciPy's norm, which is not understood: uniform, loguniform",
        ),
        (stats.expon(), "Give the range and the scale instead"),
        (stats.uniform, "is not understood"),
        ([], "must have something to choose from"),
        ("rbf", r"must be a list to choose from, .*: \['rbf'\]"),
        (0.5, r"has one value only is a list of it: \[0.5\]"),
        ((1e-3, 10, "log-uniform"), r"Write Float\(0.001, 10, log=True\)"),
        ((1, 10, "uniform"), r"Write Float\(1, 10\), or Int"),
    ],
)
def test_what_a_space_cannot_be_made_of(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        NumberedSpace({"alpha": given})


def test_groups_and_weights_arrive() -> None:
    groups = np.arange(90) % 3
    search = moody(cv=GroupKFold(3), n_iter=2)
    search.fit(TOLD, ANSWER, groups=groups, sample_weight=np.ones(90))
    assert search.best_estimator_.weighted_
    with sklearn.config_context(enable_metadata_routing=True):
        routed = JESSearchCV(
            Moody().set_fit_request(sample_weight=True).set_score_request(sample_weight=False),
            RIGHT,
            **{**CHEAP, "n_iter": 2, "cv": GroupKFold(3)},
        )
        routed.fit(TOLD, ANSWER, groups=groups, sample_weight=np.ones(90))
        assert routed.best_estimator_.weighted_


def test_several_processes_fit() -> None:
    search = JESSearchCV(Ridge(), ALPHA, **{**CHEAP, "n_jobs": 2, "batch": 2})
    alone = clone(search).set_params(n_jobs=None).fit(X, Y)
    assert search.fit(X, Y).cv_results_["params"] == alone.cv_results_["params"]


def test_pickles_and_clones() -> None:
    search = JESSearchCV(Ridge(), ALPHA, **CHEAP).fit(X, Y)
    copy = pickle.loads(pickle.dumps(search))
    assert (copy.predict(X) == search.predict(X)).all()
    assert copy.recommendation_ == search.recommendation_
    assert copy.optimizer_.ask().params == search.optimizer_.ask().params
    fresh = clone(search)
    assert not hasattr(fresh, "best_params_")
    assert fresh.get_params()["space"] == ALPHA
    assert fresh.fit(X, Y).best_params_ == search.best_params_
    assert "space={'alpha': Float(low=0.001" in repr(search)
    with pytest.raises(NotFittedError):
        clone(search).belief()


@pytest.mark.parametrize(
    ("option", "value", "kind", "match"),
    [
        ("n_iter", 0, ValueError, "n_iter must be an int of at least 1, not 0"),
        ("n_iter", 2.5, TypeError, "n_iter must be an int"),
        ("batch", True, TypeError, "batch must be an int"),
        ("noise", "none", ValueError, "noise must be 'folds', None, .*, not 'none'"),
        ("noise", -1.0, ValueError, "noise must be None, .*, not -1.0"),
        ("space", Float(0, 1), TypeError, "space must be a Space, a dict"),
        ("space", {"right": 3}, TypeError, "must be a list to choose from"),
        ("space", {"right": [0.5]}, ValueError, "space has nothing to tune"),
        ("space", {"right": []}, ValueError, "'right' must have something to choose from"),
        ("random_state", -1, ValueError, "seed must be a non-negative int"),
        ("acquisition", "best", ValueError, "acquisition must be one of"),
    ],
)
def test_wrong_options(option: str, value: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        moody(**{option: value} if option != "space" else {}).set_params(**{option: value}).fit(
            TOLD, ANSWER
        )


NOT_KEPT = {
    "check_estimators_nan_inf": "a fold that fails warns; that all trials have one is the error",
    "check_dtype_object": "likewise",
}


@pytest.mark.filterwarnings("ignore")  # they fit on NaNs, on one class, and the like
@parametrize_with_checks(
    [
        JESSearchCV(
            LogisticRegression(),
            {"C": Float(0.1, 10, log=True)},
            **{**CHEAP, "n_iter": 2, "cv": 2},
        ),
    ],
    expected_failed_checks=lambda estimator: NOT_KEPT,
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_limits_of_a_space_are_kept() -> None:
    space = Space({"alpha": Float(0.0, 1.0)}, where="0.25 <= alpha <= 0.5")
    search = JESSearchCV(Ridge(), space, **CHEAP).fit(X, Y)
    found = [params["alpha"] for params in search.cv_results_["params"]]
    assert all(0.25 <= alpha <= 0.5 for alpha in found)
    assert 0.25 <= search.best_params_["alpha"] <= 0.5


def test_the_report_names_the_objects_of_lists(tmp_path: Path) -> None:
    space: dict[str, Any] = {
        "svc__C": Float(0.1, 10.0, log=True),
        "svc__kernel": ["rbf", "linear"],
        "standardscaler": [StandardScaler(), "passthrough"],
        "svc__shrinking": [True],
    }
    pipeline = make_pipeline(StandardScaler(), SVC())
    settings = Settings(**TINY)
    search = JESSearchCV(
        pipeline, space, n_iter=4, random_state=0, hyperparameters="map", settings=settings
    )
    search.fit(X[:60], Y[:60])
    shown = search.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>Pipeline</h1>" in text
    assert "4 parameters, 3 modelled" in text
    for words in ("StandardScaler()", "passthrough", "rbf", "linear"):
        assert words in text
    best = shown["recommendation"]["params"]
    assert best["svc__kernel"] in ("rbf", "linear")
    assert best["standardscaler"] in ("StandardScaler()", "passthrough")
    assert best["svc__shrinking"] == "True"
    json.dumps(shown)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_search_ends_where_hardly_anything_is_left_to_be_won(batch: int) -> None:
    options = {**CHEAP, "n_iter": 12, "batch": batch}
    space = {"alpha": Float(1e-3, 10, log=True)}
    search = JESSearchCV(Ridge(), space, stop=Stop(gap=1.0, chance=0.8), **options).fit(X, Y)
    assert search.ended_ == "the search was over: at most 1 is left to be won, with a chance of 0.8"
    trials = search.optimizer_.trials
    assert len(trials) == len(search.cv_results_["params"]) < 12
    assert dict(search.best_params_) in search.cv_results_["params"]
    assert search.optimizer_.done(Stop(gap=1.0, chance=0.8))
    whole = JESSearchCV(Ridge(), space, stop=Stop(gap=0), **options).fit(X, Y)
    assert len(whole.optimizer_.trials) == 12
    assert whole.ended_ == ""


def test_a_search_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("optpair.search.ends.time.monotonic", lambda: float(next(clock)))
    options = {**CHEAP, "n_iter": 30}
    search = JESSearchCV(Ridge(), {"alpha": Float(1e-3, 10, log=True)}, seconds=4, **options)
    search.fit(X, Y)
    assert search.ended_ == "the 4 seconds were over"
    assert 4 <= len(search.optimizer_.trials) <= 5  # one each second, and the best predicted
    assert search.best_params_ in search.cv_results_["params"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"stop": 0.1}, TypeError, "stop must be a Stop"),
        ({"seconds": 0}, ValueError, "seconds must be a finite number above 0"),
    ],
)
def test_ends_of_no_use_are_refused(given: Any, error: type[Exception], message: str) -> None:
    search = JESSearchCV(Ridge(), {"alpha": Float(1e-3, 10, log=True)}, **{**CHEAP, **given})
    with pytest.raises(error, match=message):
        search.fit(X, Y)


@pytest.mark.parametrize("several", [False, True])
def test_belief_and_report_recommend_what_is_refitted(tmp_path: Path, *, several: bool) -> None:
    """Not the best point of the whole space, which nobody has tried."""
    more = {"outcomes": {"score": "maximize", "fit_time": Constraint(high=100)}} if several else {}
    options = {**CHEAP, "hyperparameters": "map", "n_iter": 7, **more}
    space = {"C": Float(1e-3, 1e3, log=True), "gamma": Float(1e-3, 1e3, log=True)}
    search = JESSearchCV(SVC(), space, **options).fit(X, Y)
    untried = search.optimizer_.recommend()
    assert untried.params != search.best_params_  # there would be something to confuse
    belief = search.belief()
    assert belief.recommendation.params == search.recommendation_.params == search.best_params_
    assert belief.recommendation.mean == search.best_score_
    shown = search.report(tmp_path / "page.html")["recommendation"]
    assert shown["params"] == search.best_params_
    assert shown["trial"] == search.best_index_
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"It is trial {search.best_index_}." in text


def test_the_front_of_belief_and_report_is_of_trials(tmp_path: Path) -> None:
    outcomes: dict[str, Any] = {"score": "maximize", "fit_time": "minimize"}
    options = {**CHEAP, "hyperparameters": "map", "acquisition": "ehvi", "n_iter": 7}
    space = {"C": Float(1e-3, 1e3, log=True), "gamma": Float(1e-3, 1e3, log=True)}
    search = JESSearchCV(SVC(), space, outcomes=outcomes, refit="score", **options).fit(X, Y)
    front = [point.params for point in search.recommendation_.points]
    assert [point.params for point in search.belief().recommendation.points] == front
    shown = search.report(tmp_path / "page.html")["front"]
    assert [point["params"] for point in shown] == front


@pytest.mark.parametrize("name", ["param_distributions", "param_grid", "search_spaces"])
def test_what_others_call_the_space_is_refused_with_the_way_out(name: str) -> None:
    with pytest.raises(TypeError, match=f"has no '{name}': .* as space="):
        JESSearchCV(Ridge(), **{name: ALPHA})
    assert clone(JESSearchCV(Ridge(), ALPHA)).get_params()["space"].keys() == ALPHA.keys()


@pytest.mark.parametrize("space", [{"alpha": [1.0]}, {}, {"alpha": [1.0], "solver": ["svd"]}])
def test_one_value_for_each_parameter_is_nothing_to_tune(space: Any) -> None:
    with pytest.raises(ValueError, match=r"space has nothing to tune: .* fit the estimator itself"):
        JESSearchCV(Ridge(), space, **CHEAP).fit(X, Y)
