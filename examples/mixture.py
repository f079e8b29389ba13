"""A mixture of five fractions that sum to one, of which at most one half is solvent.

    python examples/mixture.py --trials 30

The "experiment" is a formula with noise; put your own in its place.
"""

from __future__ import annotations

import argparse
import math
import random

from optpair import Float, Optimizer, Space

PARTS = ("water", "ethanol", "glycerol", "sugar", "salt")
SPACE = Space(
    {name: Float(0, 1) for name in PARTS},
    where=["water + ethanol + glycerol + sugar + salt == 1", "water + ethanol <= 0.5"],
)


def strength(parts: dict[str, float], noise: random.Random) -> float:
    """What one measurement gives: best at 0.3, 0.1, 0.4, 0.2 and no salt."""
    best = dict(zip(PARTS, (0.3, 0.1, 0.4, 0.2, 0.0), strict=True))
    away = sum((parts[name] - share) ** 2 for name, share in best.items())
    return 100 * math.exp(-4 * away) + noise.gauss(0, 0.5)


def main() -> None:
    """Search, and say what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=30)
    trials = parser.parse_args().trials
    noise, opt = random.Random(0), Optimizer(SPACE, direction="maximize", seed=0)
    for _ in range(trials):
        trial = opt.ask()
        opt.tell(trial, strength(dict(trial.params), noise))
    print(opt.recommend())
    total = max(abs(sum(trial.params.values()) - 1) for trial in opt.trials)
    print(f"the fractions of all {trials} trials sum to one within {total:.0e}")


if __name__ == "__main__":
    main()
