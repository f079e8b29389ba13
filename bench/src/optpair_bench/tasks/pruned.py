"""Models that are really trained, and looked at on the way: folds of a cross-validation, epochs.

Each trial has a seed of its own: another split of the data, other weights. What a point is worth is
the mean of whole trials with fixed seeds that no trial of a study uses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

JUDGES = 20  # fixed seeds
FIRST_SEED = 1000  # of trials
FOLDS, EPOCHS = 9, 27
ROWS, TEST = 450, 150  # of the data for `epochs`, and how many of them judge

Scores = Iterator[float]
"""The accuracy after each step; the last one is the trial's value."""


@dataclass(frozen=True)
class PrunedTask:
    """A model with its parameters, all on log scales, and how many steps a whole trial has."""

    bounds: Mapping[str, tuple[float, float]]
    steps: int
    trials: int
    train: Callable[[Mapping[str, float], int], Scores]
    means: bool = False
    """Whether each score is the mean of those of the steps so far."""

    def worth(self, params: Mapping[str, float]) -> float:
        """The mean of whole trials."""
        return float(np.mean([list(self.train(params, s))[-1] for s in range(JUDGES)]))


def _folds(params: Mapping[str, float], seed: int) -> Scores:
    """The mean accuracy of a support-vector machine over the folds so far."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    X, y = _cells()
    found: list[float] = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y):
        model = SVC(C=params["C"], gamma=params["gamma"]).fit(X[train], y[train])
        found.append(float(model.score(X[test], y[test])))
        yield float(np.mean(found))


def _epochs(params: Mapping[str, float], seed: int) -> Scores:
    """The accuracy of a network with one hidden layer, epoch by epoch."""
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    X, y = _digits()
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=ROWS - TEST, test_size=TEST, random_state=seed, stratify=y
    )
    model = MLPClassifier(
        hidden_layer_sizes=(round(params["width"]),),
        alpha=params["alpha"],
        learning_rate_init=params["rate"],
        batch_size=32,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a rate of 1 may overflow
        for _ in range(EPOCHS):
            model.partial_fit(X, y, classes=np.arange(10))
            yield float(model.score(X_test, y_test))


@cache
def _cells() -> tuple[Any, Any]:
    """Standardised inputs, and the classes: 200 of the breast-cancer diagnoses."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(y))[:200]
    return ((X - X.mean(0)) / X.std(0))[some], y[some]


@cache
def _digits() -> tuple[Any, Any]:
    """Handwritten digits."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16, y


PRUNED_TASKS: Mapping[str, PrunedTask] = {
    "folds": PrunedTask({"C": (1e-2, 1e3), "gamma": (1e-5, 1.0)}, FOLDS, 24, _folds, means=True),
    "epochs": PrunedTask(
        {"rate": (1e-4, 1.0), "alpha": (1e-6, 10.0), "width": (4.0, 64.0)}, EPOCHS, 24, _epochs
    ),
}
