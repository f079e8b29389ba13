"""Choices between models of scikit-learn, trained on data that it ships: conditional by nature.

`pipeline-diabetes` is R² of a regression by five folds, `pipeline-cancer` the negated log loss of a
classification by three. Folds are fixed, so values are exact. What is best is not known: of
the first it is the best of 3,000 points that fill the space and of 1,000 around these, of the
second that of 242 logistic models, as all others are far behind.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from optpair.problem.space import Categorical, Float, Int, Space

SPACES: Mapping[str, Space] = {
    "pipeline-diabetes": Space(
        {
            "model": Categorical(["ridge", "svr", "neighbours", "kernel"]),
            "alpha": Float(1e-4, 1e3, log=True, when={"model": ["ridge", "kernel"]}),
            "C": Float(1e-2, 1e3, log=True, when={"model": "svr"}),
            "epsilon": Float(0.1, 100, log=True, when={"model": "svr"}),
            "gamma": Float(1e-4, 10, log=True, when={"model": ["svr", "kernel"]}),
            "k": Int(1, 100, log=True, when={"model": "neighbours"}),
            "weights": Categorical(["uniform", "distance"], when={"model": "neighbours"}),
        }
    ),
    "pipeline-cancer": Space(
        {
            "scale": Categorical(["none", "standard", "robust"]),
            "model": Categorical(["logistic", "neighbours", "bayes", "tree"]),
            "C": Float(1e-4, 1e3, log=True, when={"model": "logistic"}),
            "k": Int(3, 100, log=True, when={"model": "neighbours"}),
            "weights": Categorical(["uniform", "distance"], when={"model": "neighbours"}),
            "smoothing": Float(1e-10, 1, log=True, when={"model": "bayes"}),
            "depth": Int(1, 12, when={"model": "tree"}),
            "leaf": Int(1, 100, log=True, when={"model": "tree"}),
        }
    ),
}
NAMES = tuple(SPACES)
BEST = {"pipeline-diabetes": 0.5075447226789496, "pipeline-cancer": -0.0730920157670008}
WORST = -2.0  # of either: much worse than knowing nothing


@dataclass(frozen=True)
class Pipeline:
    """The score of a pipeline, by its parameters."""

    name: str
    X: Any
    y: Any

    @property
    def space(self) -> Space:
        """Its parameters."""
        return SPACES[self.name]

    @property
    def best(self) -> float:
        """The best score that is known."""
        return BEST[self.name]

    def __call__(self, params: Mapping[str, Any]) -> float:
        """The score by cross-validation, never below −2."""
        from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

        if self.name == "pipeline-diabetes":
            model, score, folds = _regression(params), "r2", KFold(5, shuffle=True, random_state=0)
        else:
            model, score = _classification(params), "neg_log_loss"
            folds = StratifiedKFold(3, shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of climbs that end early
            scores = cross_val_score(model, self.X, self.y, scoring=score, cv=folds)
        return max(float(np.mean(scores)), WORST)


def _regression(p: Mapping[str, Any]) -> Any:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    if p["model"] == "ridge":
        model = Ridge(p["alpha"])
    elif p["model"] == "svr":
        model = SVR(C=p["C"], epsilon=p["epsilon"], gamma=p["gamma"])
    elif p["model"] == "neighbours":
        model = KNeighborsRegressor(p["k"], weights=p["weights"])
    else:
        model = KernelRidge(alpha=p["alpha"], kernel="rbf", gamma=p["gamma"])
    return make_pipeline(StandardScaler(), model)


def _classification(p: Mapping[str, Any]) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import RobustScaler, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    if p["model"] == "logistic":
        model = LogisticRegression(C=p["C"], max_iter=200)
    elif p["model"] == "neighbours":
        model = KNeighborsClassifier(p["k"], weights=p["weights"])
    elif p["model"] == "bayes":
        model = GaussianNB(var_smoothing=p["smoothing"])
    else:
        model = DecisionTreeClassifier(
            max_depth=p["depth"], min_samples_leaf=p["leaf"], random_state=0
        )
    scale = {"none": None, "standard": StandardScaler(), "robust": RobustScaler()}[p["scale"]]
    return model if scale is None else make_pipeline(scale, model)


@cache
def make(name: str) -> Pipeline:
    """The pipeline of that name, with its data."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    load = load_diabetes if name == "pipeline-diabetes" else load_breast_cancer
    X, y = load(return_X_y=True)
    return Pipeline(name, X, y)
