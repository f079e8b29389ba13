"""Last month's study: a model was tuned on other data, and the new search borrows from it.

    python examples/last_month.py

Two data sets of handwritten digits, of the same kind and not the same: the first half of them was
tuned on in May, the second is new. The search is run with May's study and without.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from optpair import Earlier, Float, Optimizer, Space

SPACE = Space({"C": Float(1e-2, 1e3, log=True), "gamma": Float(1e-6, 1e-1, log=True)})
IMAGES, DIGITS = load_digits(return_X_y=True)


def accuracy(params: dict[str, Any], rows: slice) -> float:
    """Cross-validated, of a support vector machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(cross_val_score(SVC(**params), IMAGES[rows], DIGITS[rows], cv=3).mean())


def search(rows: slice, trials: int, **options: Any) -> Optimizer:
    """So many trials on some of the data."""
    opt = Optimizer(SPACE, direction="maximize", seed=0, **options)
    for _ in range(trials):
        trial = opt.ask()
        opt.tell(trial, accuracy(dict(trial.params), rows))
    return opt


def main(trials: int) -> None:
    """Tune on the old data, then on the new with and without what was learnt."""
    old, new = slice(0, 300), slice(900, 1200)
    may = search(old, 15)
    found = {"alone": {}, "after May's study": {"earlier": [Earlier(may, name="May")]}}
    for name, options in found.items():
        best = search(new, trials, **options).recommend()
        print(name, *(f"  {line}" for line in str(best).splitlines()), sep="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=6)
    main(**vars(parser.parse_args()))
