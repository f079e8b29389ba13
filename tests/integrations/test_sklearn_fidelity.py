"""A parameter of an estimator as a fidelity: few trees first, the answer for all of them."""

from __future__ import annotations

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

from optpair import Fidelity, Int, Space
from optpair.integrations.sklearn import JESSearchCV

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
