"""Trials as arrays: the one place where names, signs and failures turn into numbers.

Right of here everything is to be maximised, on the unit cube, in raw units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from zlib import crc32

import numpy as np

from optpair.problem.problem import Problem
from optpair.runtime.shapes import Bool, Float, Int
from optpair.trials.trial import Look, Trial

MOST_LOOKS, APART = 6, 3.0  # at a trial, of which all are rows; of more, some that are so far apart


class Measured(NamedTuple):
    """The rows of one outcome that were measured; NaN in `noise_var` means unknown."""

    X: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, " n"]
    noise_var: Float[np.ndarray, " n"]
    doubted: Bool[np.ndarray, " n"]
    """Values that count as mistakes, and are ignored."""
    trial: Int[np.ndarray, " n"]
    """The told trial that each is of."""

    @property
    def several(self) -> bool:
        """Whether some trials have several values: looks on the way, or replicates."""
        return len(np.unique(self.trial)) < len(self.trial)

    @property
    def exact(self) -> bool:
        """Whether all values are known without noise, and no two at one point differ."""
        if len(self.y) == 0 or np.any(self.noise_var != 0):  # NaN too
            return False
        values = np.column_stack([self.X, self.y])
        return len(np.unique(self.X, axis=0)) == len(np.unique(values, axis=0))


@dataclass(frozen=True)
class Data:
    """Everything that was told, on the cube, to be maximised.

    A trial has one row or, where an outcome was measured several times in it, a row for each of
    those values: only the model knows how noisy one of them is.
    """

    X: Float[np.ndarray, "n D"]
    Y: Float[np.ndarray, "n O"]
    """NaN where an outcome was not measured."""
    noise_var: Float[np.ndarray, "n O"]
    """A trial's own or, where it has none, that of all trials; NaN where the noise is unknown."""
    pending: Float[np.ndarray, "p D"]
    failed: Float[np.ndarray, "m D"]
    doubted: Bool[np.ndarray, "n O"]
    """Values that count as mistakes; at first none does."""
    trial: Int[np.ndarray, " n"]
    """Which of the told trials each row is of."""
    cost: Float[np.ndarray, " n"]
    """What a trial cost up to each row, including the looks before it; NaN if unknown."""

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
        kept = [_kept(problem, trial) for trial in told]
        seen = [(i, look) for i, own in enumerate(kept) for look, _ in own]
        counts = [max([len(m.values) for m in look.outcomes.values()]) for _, look in seen]
        first = np.cumsum([0, *counts])
        shape = (int(first[-1]), len(problem.outcomes))
        Y, noise_var = np.full(shape, np.nan), np.full(shape, np.nan)
        for column, (name, outcome) in enumerate(problem.outcomes.items()):
            values: list[float] = []
            variances: list[float] = []
            usual = math.nan if outcome.noise_var is None else outcome.noise_var
            for count, (_, look) in zip(counts, seen, strict=True):
                found = look.outcomes.get(name)
                own = () if found is None else found.values
                known = None if found is None else found.noise_var
                values += own
                values += [math.nan] * (count - len(own))
                variances += [usual if known is None else known] * len(own)
                variances += [math.nan] * (count - len(own))
            Y[:, column], noise_var[:, column] = values, variances
            Y[:, column] *= outcome.sign
        of = np.repeat(np.array([i for i, _ in seen], dtype=int), counts)
        judged = np.zeros(shape, dtype=bool)
        X = stack("told")[of]
        for row, count, (_, look) in zip(first.tolist(), counts, seen, strict=False):
            if look.at:
                for column, u in problem.space.columns_of(look.at).items():
                    X[row : row + count, column] = u
        paid = [total for own in kept for _, total in own]
        cost = np.repeat(np.array(paid, dtype=float), counts)
        return cls(X, Y, noise_var, stack("pending"), stack("failed"), judged, of, cost)

    def __repr__(self) -> str:
        return (
            f"Data({self.told} told, {len(self.pending)} pending, {len(self.failed)} failed; "
            f"{self.outcomes} outcome(s))"
        )

    @property
    def told(self) -> int:
        """The number of trials that were told."""
        return int(self.trial[-1]) + 1 if len(self.trial) else 0

    @property
    def points(self) -> Float[np.ndarray, "t D"]:
        """The point of each told trial, whatever number of rows it has: that of its last look."""
        return self.X[np.searchsorted(self.trial, np.arange(self.told), side="right") - 1]

    @property
    def last(self) -> Bool[np.ndarray, " n"]:
        """The rows of each trial's last look."""
        return np.all(self.points[self.trial] == self.X, axis=1)

    @property
    def outcomes(self) -> int:
        """O, the number of outcomes."""
        return int(self.Y.shape[1])

    def outcome(self, column: int) -> Measured:
        """The rows of one outcome that were measured."""
        y = self.Y[:, column]
        there = ~np.isnan(y)
        return Measured(
            self.X[there],
            y[there],
            self.noise_var[there, column],
            self.doubted[there, column],
            self.trial[there],
        )

    def doubting(self, column: int, found: Bool[np.ndarray, " k"]) -> Data:
        """The same data, with some measured values of an outcome marked as mistakes."""
        doubted = self.doubted.copy()
        doubted[~np.isnan(self.Y[:, column]), column] = found
        return replace(self, doubted=doubted)

    def noiseless(self, columns: list[int]) -> Data:
        """The same, where the values of some outcomes are known to be exact."""
        noise_var = self.noise_var.copy()
        noise_var[:, columns] = np.where(np.isnan(self.Y[:, columns]), np.nan, 0.0)
        return replace(self, noise_var=noise_var)

    def means(self, column: int) -> Float[np.ndarray, " t"]:
        """The mean of each told trial's undoubted values of an outcome; NaN without any.

        Of several looks the last counts.
        """
        counts = ~np.isnan(self.Y[:, column]) & ~self.doubted[:, column] & self.last
        trial, y = self.trial[counts], self.Y[counts, column]
        number = np.bincount(trial, minlength=self.told)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = y / number[trial]
            return np.where(number > 0, np.bincount(trial, share, minlength=self.told), np.nan)

    @property
    def exact(self) -> bool:
        """Whether the values of every outcome are exact."""
        return all(self.outcome(column).exact for column in range(self.outcomes))

    @property
    def settled(self) -> Float[np.ndarray, "k D"]:
        """The points at which every outcome is known or on its way."""
        return np.concatenate([self.X[~np.isnan(self.Y).any(1)], self.pending])

    @property
    def seen(self) -> Float[np.ndarray, "k D"]:
        """The points of all trials, however they ended."""
        return np.concatenate([self.X, self.pending, self.failed])

    def awaiting(self, x: Float[np.ndarray, " D"]) -> Data:
        """The same, with one more pending point."""
        return replace(self, pending=np.concatenate([self.pending, x[None]]))

    def first(self, count: int) -> Data:
        """After the first `count` told trials, with nothing pending or failed."""
        rows = int(np.searchsorted(self.trial, count))
        return replace(
            self,
            X=self.X[:rows],
            Y=self.Y[:rows],
            noise_var=self.noise_var[:rows],
            pending=self.pending[:0],
            failed=self.failed[:0],
            doubted=self.doubted[:rows],
            trial=self.trial[:rows],
            cost=self.cost[:rows],
        )


def _kept(problem: Problem, trial: Trial) -> list[tuple[Look, float]]:
    """The looks at a trial that become rows, each with what it had cost up to it.

    All or, of many, the last of those between two powers of a third of the target's cost: looks
    that are close say little more than one, and every row costs time.
    """
    if not trial.looks:
        return [(trial.seen[0], math.nan if trial.cost is None else trial.cost)]
    every = list(zip(trial.seen, trial.paid, strict=True))
    if len(every) <= MOST_LOOKS:
        return every
    last = {}
    for i, (look, _) in enumerate(every):
        share = problem.space.relative_cost({**trial.actual, **look.at})
        last[math.ceil(math.log(share) / math.log(APART) - 1e-9)] = i
    return [every[i] for i in sorted(last.values())]


def thinned(measured: Measured, most: int) -> Measured:
    """What hyperparameters are inferred from: every row or, of many, `most` of them.

    These are the rows with the lowest checksums of their contents. That is as good as drawing lots,
    and a new row takes the place of at most one, in whatever order rows come, so that chains can
    follow.
    """
    if len(measured.y) <= most:
        return measured
    rows = np.column_stack([measured.X, measured.y])
    keep = np.sort(np.argsort([crc32(row.tobytes()) for row in rows], kind="stable")[:most])
    return Measured(*(part[keep] for part in measured))
