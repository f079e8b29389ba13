"""Network that is really trained, on data that ships with scikit-learn: noise as it comes.

Every evaluation has a new seed: another split, other weights, another order. The noiseless value is
the mean over a few fixed seeds that no evaluation uses, and no accuracy is above 1: what is called
regret here is the error rate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from optpair.runtime.shapes import Float
from optpair_bench.tasks.functions import Bounds, Optimum

JUDGES = 10  # fixed seeds whose mean is called noiseless
EPOCHS = 15
TRAIN, TEST = 150, 150


@dataclass(frozen=True)
class MLP:
    """The accuracy of a network with one hidden layer on breast-cancer diagnoses.

    Inputs, all on log scales: alpha from 1e-6 to 10, batch size from 4 to 128, learning rate from
    1e-4 to 1, width from 2 to 64; sizes are rounded.
    """

    noise_var: float = 4e-4  # binomial: 0.95 · 0.05 / TEST, and what the seeds add

    @property
    def bounds(self) -> Bounds:
        """Of the logarithms."""
        ends = ((1e-6, 10.0), (4.0, 128.0), (1e-4, 1.0), (2.0, 64.0))
        return tuple((float(np.log(low)), float(np.log(high))) for low, high in ends)

    def __call__(self, X: Float[np.ndarray, "q 4"]) -> Float[np.ndarray, " q"]:
        """Means over fixed seeds."""
        return np.array([np.mean([self._train(x, s) for s in range(JUDGES)]) for x in X])

    def observe(self, x: Float[np.ndarray, " 4"], rng: np.random.Generator) -> float:
        """The accuracy with a new seed."""
        return self._train(x, int(rng.integers(JUDGES, 2**31)))

    def optimum(self) -> Optimum:
        """The bound that no accuracy passes; nobody knows where the optimum is."""
        return Optimum(np.full(4, np.nan), 1.0)

    def _train(self, x: Float[np.ndarray, " 4"], seed: int) -> float:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import train_test_split
        from sklearn.neural_network import MLPClassifier

        low, high = np.array(self.bounds).T
        alpha, batch, rate, width = np.exp(low + (high - low) * x)
        X, y = _data()
        X, X_test, y, y_test = train_test_split(
            X, y, train_size=TRAIN, test_size=TEST, random_state=seed, stratify=y
        )
        model = MLPClassifier(
            hidden_layer_sizes=(round(width),),
            alpha=alpha,
            batch_size=round(batch),
            learning_rate_init=rate,
            max_iter=EPOCHS,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # few epochs are the point
            warnings.simplefilter("ignore", RuntimeWarning)  # a rate of 1 may overflow
            model.fit(X, y)
        return float(model.score(X_test, y_test))


@lru_cache(maxsize=1)
def _data() -> tuple[Any, Any]:
    """Standardised inputs, and the classes."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(0)) / X.std(0), y
