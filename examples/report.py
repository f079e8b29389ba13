"""A report of a search with everything on it: scales, levels, categories, failures and noise.

    python examples/report.py --trials 40

The objective is made up, so that it takes seconds: a training run that diverges where the learning
rate is too large, and whose best learning rate depends on the width. It leaves `report.html`.
"""

import argparse
import math
import random

from optpair import Categorical, Float, Int, Optimizer, Ordinal, Space

space = Space(
    {
        "learning_rate": Float(1e-5, 1.0, log=True),
        "width": Int(16, 1024, log=True),
        "layers": Int(1, 4),
        "dropout": Float(0, 0.6),
        "activation": Categorical(["relu", "tanh", "gelu"]),
        "batch": Ordinal([16, 32, 64, 128]),
    }
)


def accuracy(params):
    """What a training run would give; None where it diverges."""
    rate, width = math.log10(params["learning_rate"]), math.log2(params["width"] / 200)
    if params["learning_rate"] > 0.5:
        return None
    lost = (rate + 2 + 0.3 * width) ** 2 / 30 + width**2 / 60 + (params["layers"] - 3) ** 2 / 80
    lost += (params["dropout"] - 0.2) ** 2 / 3 + (params["activation"] == "tanh") * 0.03
    return 0.95 - lost + random.gauss(0, 0.01)


def main():
    """Search, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    trials = parser.parse_args().trials
    random.seed(1)
    opt = Optimizer(space, direction="maximize", seed=0)
    for _ in range(trials):
        trial = opt.ask()
        value = accuracy(trial.params)
        if value is None:
            opt.tell(trial, failed=True, reason="diverged")
        else:
            opt.tell(trial, value)
    said = opt.report("report.html", name="A made-up training run")
    print(said["verdict"])
    print(opt.recommend())


if __name__ == "__main__":
    main()
