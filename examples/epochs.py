"""A network by epochs: most runs are short, and the answer is for long ones.

    python examples/epochs.py

A small network learns digits. How many epochs it is trained for is a fidelity: each suggestion has
as many as teach most for what they cost, and the recommendation is for all 27. The budget is that
of six whole runs.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from optpair import Fidelity, Float, Int, Space, minimize

SPACE = Space(
    {
        "rate": Float(1e-4, 0.1, log=True),
        "alpha": Float(1e-6, 1.0, log=True),
        "width": Int(8, 64, log=True),
        "epochs": Fidelity(1, 27, log=True),
    }
)
DIGITS = load_digits()
X, X_TEST, Y, Y_TEST = train_test_split(
    DIGITS.data / 16, DIGITS.target, train_size=600, random_state=0, stratify=DIGITS.target
)


def train(params: dict[str, Any]) -> float:
    """The log loss on new data after so many epochs."""
    net = MLPClassifier(
        (params["width"],), learning_rate_init=params["rate"], alpha=params["alpha"], random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(params["epochs"]):
            net.partial_fit(X, Y, classes=np.arange(10))
    return float(log_loss(Y_TEST, net.predict_proba(X_TEST)))


def main(budget: float) -> None:
    """Search, and say what it took."""
    result = minimize(train, SPACE, budget_cost=budget, seed=0, progress=False)
    print(result)
    epochs = [trial.params["epochs"] for trial in result.trials]
    print(f"{len(epochs)} runs of {sum(epochs)} epochs in all, {epochs.count(27)} of them whole")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=6.0, help="in whole runs")
    main(**vars(parser.parse_args()))
