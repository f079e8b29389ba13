"""Conditional parameters in searches over estimators: each is set where it is active."""

from __future__ import annotations

from sklearn.datasets import load_diabetes
from sklearn.svm import SVR

from optpair import Categorical, Float, Int, Space
from optpair.integrations.sklearn import JESSearchCV


def test_each_trial_sets_what_is_active() -> None:
    X, y = load_diabetes(return_X_y=True)
    space = Space(
        {
            "kernel": Categorical(["linear", "poly"]),
            "degree": Int(2, 3, when={"kernel": "poly"}),
            "C": Float(1, 100, log=True),
        }
    )
    search = JESSearchCV(SVR(), space, evaluations=6, random_state=0, cv=2).fit(X[:60], y[:60])
    for params in search.cv_results_["params"]:
        assert space.check(params) == params
    assert {len(params) for params in search.cv_results_["params"]} == {2, 3}
    assert search.cv_results_["param_degree"].mask.any()
    assert space.check(search.best_params_) == search.best_params_
