"""Trials as arrays: the one place where names, signs and failures turn into numbers.

Right of here everything is to be maximised, on the unit cube, in raw units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from zlib import crc32

import numpy as np

from optpair.problem.problem import Problem
from optpair.shapes import Bool, Float
from optpair.trials.trial import Trial


class Measured(NamedTuple):
    """The rows of one outcome that were measured; NaN in `noise_var` means unknown."""

    X: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, " n"]
    noise_var: Float[np.ndarray, " n"]
    doubted: Bool[np.ndarray, " n"]
    """Values that are taken for slips, and say nothing."""

    @property
    def exact(self) -> bool:
        """Whether all values are known without noise, and no two at one point differ."""
        if len(self.y) == 0 or np.any(self.noise_var != 0):  # NaN too
            return False
        values = np.column_stack([self.X, self.y])
        return len(np.unique(self.X, axis=0)) == len(np.unique(values, axis=0))


@dataclass(frozen=True)
class Data:
    """Everything that was told, on the cube, to be maximised."""

    X: Float[np.ndarray, "n D"]
    Y: Float[np.ndarray, "n O"]
    """NaN where an outcome was not measured."""
    noise_var: Float[np.ndarray, "n O"]
    """A trial's own or, where it has none, that of all trials; NaN where the noise is unknown."""
    pending: Float[np.ndarray, "p D"]
    failed: Float[np.ndarray, "m D"]
    doubted: Bool[np.ndarray, "n O"]
    """Values that are taken for slips; nobody has judged them at first."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        trials: Iterable[Trial],
        points: Mapping[int, Float[np.ndarray, " D"]],
    ) -> Data:
        """The arrays of some trials, whose points on the cube are given by id."""
        every, D = list(trials), problem.space.layout.dimensions

        def stack(state: str) -> Float[np.ndarray, "k D"]:
            rows = [points[trial.id] for trial in every if trial.state == state]
            return np.array(rows, dtype=np.float64).reshape(len(rows), D)

        told = [trial for trial in every if trial.state == "told"]
        shape = (len(told), len(problem.outcomes))
        Y, noise_var = np.full(shape, np.nan), np.full(shape, np.nan)
        for column, (name, outcome) in enumerate(problem.outcomes.items()):
            for row, trial in enumerate(told):
                found = trial.outcomes.get(name)
                if found is not None:
                    Y[row, column] = outcome.sign * found.value
                    own = outcome.noise_var if found.noise_var is None else found.noise_var
                    noise_var[row, column] = np.nan if own is None else own
        known = np.zeros(shape, dtype=bool)
        return cls(stack("told"), Y, noise_var, stack("pending"), stack("failed"), known)

    def __repr__(self) -> str:
        return (
            f"Data({self.told} told, {len(self.pending)} pending, {len(self.failed)} failed; "
            f"{self.outcomes} outcome(s))"
        )

    @property
    def told(self) -> int:
        """n, the number of trials that were told."""
        return len(self.X)

    @property
    def outcomes(self) -> int:
        """O, the number of outcomes."""
        return int(self.Y.shape[1])

    def outcome(self, column: int) -> Measured:
        """The rows of one outcome that were measured."""
        y = self.Y[:, column]
        there = ~np.isnan(y)
        return Measured(
            self.X[there], y[there], self.noise_var[there, column], self.doubted[there, column]
        )

    def doubting(self, column: int, found: Bool[np.ndarray, " k"]) -> Data:
        """The same, where some of the measured values of an outcome are taken for slips."""
        doubted = self.doubted.copy()
        doubted[~np.isnan(self.Y[:, column]), column] = found
        return replace(self, doubted=doubted)

    @property
    def exact(self) -> bool:
        """Whether the values of every outcome are exact."""
        return all(self.outcome(column).exact for column in range(self.outcomes))

    def first(self, count: int) -> Data:
        """After the first `count` told trials, with nothing pending or failed."""
        return replace(
            self,
            X=self.X[:count],
            Y=self.Y[:count],
            noise_var=self.noise_var[:count],
            pending=self.pending[:0],
            failed=self.failed[:0],
            doubted=self.doubted[:count],
        )


def thinned(measured: Measured, most: int) -> Measured:
    """What hyperparameters are inferred from: every row or, of many, `most` of them.

    Those whose contents have the lowest checksums: as good as drawn by lot, and a new row takes the
    place of at most one, in whatever order they come, so that chains can be followed.
    """
    if len(measured.y) <= most:
        return measured
    rows = np.column_stack([measured.X, measured.y])
    keep = np.sort(np.argsort([crc32(row.tobytes()) for row in rows], kind="stable")[:most])
    return Measured(*(part[keep] for part in measured))
