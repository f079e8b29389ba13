"""One recipe for two sites: what is learnt at one of them helps at the other.

    python examples/two_sites.py

The oven in Turin runs hotter than the one in Lyon, and two batches in three are made in Lyon. The
site is a context: given with every trial, and never chosen.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

from optpair import Context, Float, Optimizer, Space

SPACE = Space(
    {
        "heat": Float(20, 90),
        "hours": Float(0.5, 8, log=True),
        "site": Context(["Lyon", "Turin"]),
    }
)
DICE = random.Random(0)


def made(params: dict[str, Any]) -> float:
    """Stands for a batch: its yield in percent."""
    best = {"Lyon": 60, "Turin": 52}[params["site"]]
    miss = ((params["heat"] - best) / 30) ** 2 + ((params["hours"] - 3) / 4) ** 2
    return 80 - 40 * miss + DICE.gauss(0, 1)


def main(trials: int) -> None:
    """Ask for the site where the next batch is made; answer for each."""
    opt = Optimizer(SPACE, direction="maximize", seed=0)
    for batch in range(trials):
        trial = opt.ask(context={"site": "Turin" if batch % 3 == 2 else "Lyon"})
        opt.tell(trial, made(trial.params))
    for site in ("Lyon", "Turin"):
        print(f"{site}\n{opt.recommend(context={'site': site})}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=24)
    main(**vars(parser.parse_args()))
