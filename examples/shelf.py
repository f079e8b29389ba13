"""A shelf of 2,000 solvents: find the best one by trying a few, each at most once.

Run `python examples/shelf.py`. The measurements are simulated here; in the lab, `measure` is you.
"""

from __future__ import annotations

import argparse
import random

from optpair import Optimizer, Space


def catalogue(count: int = 2000) -> list[dict[str, object]]:
    """What the supplier has: a number to order by, and what is known of each solvent."""
    rng = random.Random(0)
    return [
        {
            "number": f"S{i:04d}",
            "polarity": round(rng.uniform(0, 1), 3),
            "boiling": round(rng.uniform(35, 210), 1),
            "donor": rng.choice(["none", "weak", "strong"]),
        }
        for i in range(count)
    ]


def measure(solvent: dict[str, object], rng: random.Random) -> float:
    """The yield in per cent, with an error of about one."""
    polarity, boiling = float(str(solvent["polarity"])), float(str(solvent["boiling"]))
    best = 88 - 60 * (polarity - 0.62) ** 2 - ((boiling - 118) / 22) ** 2
    return best - 9 * (solvent["donor"] != "weak") + rng.gauss(0, 1)


def main() -> None:
    """Try some, and say which is the best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=25)
    trials = parser.parse_args().trials
    shelf, rng = catalogue(), random.Random(1)
    space = Space.of_rows(shelf, columns=["polarity", "boiling", "donor"], repeat=False)
    opt = Optimizer(space, direction="maximize", seed=0)
    for _ in range(trials):
        trial = opt.ask()
        row = space.row(trial.params)
        assert row is not None
        opt.tell(trial, measure(shelf[row], rng), notes={"number": shelf[row]["number"]})
    print(opt.recommend())
    for params, chance in opt.belief().likeliest(3):
        row = space.row(params)
        assert row is not None
        print(f"{shelf[row]['number']} is the best with a chance of {chance:.0%}")


if __name__ == "__main__":
    main()
