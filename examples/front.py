"""Two goals that pull against each other: the best compromises, and how to choose one.

    python examples/front.py

A reaction is to give much and to use little of an expensive catalyst. No recipe is best in both, so
the answer is a list of the best compromises: better in one goal only by being worse in the other.
"""

from __future__ import annotations

import argparse
import math
import random
from typing import Any

from optpair import Float, Objective, Optimizer, Space

SPACE = Space({"catalyst": Float(0.1, 10.0, log=True), "temperature": Float(20.0, 90.0)})
OUTCOMES = {
    "yield": Objective("maximize", bounds=(0, 100)),  # %
    "cost": "minimize",  # euro per batch: the catalyst, and the heating
}
DICE = random.Random(0)


def react(params: dict[str, Any]) -> dict[str, float]:
    """Stands for an experiment; the yield is noisy, the cost nearly known."""
    amount, degrees = params["catalyst"], params["temperature"]
    truth = 95 * amount / (amount + 0.8) * math.exp(-(((degrees - 65) / 40) ** 2))
    cost = 12 * amount + 0.2 * (degrees - 20)
    return {
        "yield": min(max(truth + DICE.gauss(0, 1.5), 0.0), 100.0),
        "cost": cost + DICE.gauss(0, 0.2),
    }


def main(trials: int) -> None:
    """Ask, measure, tell; then choose."""
    opt = Optimizer(SPACE, outcomes=OUTCOMES, seed=0)
    for _ in range(trials):
        trial = opt.ask()
        opt.tell(trial, react(trial.params))
    front = opt.recommend()
    print(front)
    print("\nfor 20 euro:")
    print(front.nearest({"cost": 20.0}))
    print("\nif yield matters twice as much as cost:")
    print(front.best_for({"yield": 2, "cost": 1}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=25)
    main(**vars(parser.parse_args()))
