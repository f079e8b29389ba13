"""The best point within a limit: a faster model that is accurate enough, or the other way round.

    python examples/constraint.py

A model is tuned for its accuracy, and has to answer within 20 ms. Both are measured in every trial,
with some noise, and nobody knows beforehand where the limit runs.
"""

from __future__ import annotations

import argparse
import math
import random
from typing import Any

from optpair import Constraint, Float, Int, Objective, Space, minimize

SPACE = Space({"layers": Int(1, 12), "width": Int(16, 1024, log=True), "dropout": Float(0.0, 0.6)})
DICE = random.Random(0)


def train(params: dict[str, Any]) -> dict[str, float]:
    """Stands for a training run: what it reaches, and how long one answer takes."""
    size = params["layers"] * math.log2(params["width"])
    fit = 1 - math.exp(-size / 25) - 0.3 * (params["dropout"] - 0.2) ** 2
    milliseconds = 0.6 * params["layers"] * (params["width"] / 64) ** 0.5
    return {
        "accuracy": min(0.96 * fit + DICE.gauss(0, 0.005), 1.0),
        "latency": milliseconds * math.exp(DICE.gauss(0, 0.03)),
    }


def main(trials: int) -> None:
    """Search, and say what was found."""
    result = minimize(
        train,
        SPACE,
        trials,
        outcomes={
            "accuracy": Objective("maximize", bounds=(0, 1)),
            "latency": Constraint(high=20.0),
        },
        seed=0,
        progress=False,
    )
    print(result)
    print(f"chance that it is fast enough: {result.recommendation.chance:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=30)
    main(**vars(parser.parse_args()))
