"""Levels within linear limits: rounding that is repaired, and exchanges between two columns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from optpair.problem.layout import Layout
from optpair.problem.linear import Rows, levels
from optpair.runtime.shapes import Float, Int, Num

MET = 1e-11  # of a row's largest weight: what rounding leaves of a limit that is met
ROUNDS = 32  # levels that a rounded point is moved by, at most, to be within limits
LARGEST = 12  # levels that one column moves by to make up for another
SOLVED = 16  # points that are looked for one by one, where rounding finds none


@dataclass(frozen=True, eq=False)
class Levels:
    """The stepped columns that occur in linear limits."""

    rows: Rows
    layout: Layout
    columns: Int[np.ndarray, " S"]
    weights: Float[np.ndarray, "k S"]
    """What one level more adds to each row."""
    least: Float[np.ndarray, " k"]
    """The least that all other columns add to each row."""
    most: Float[np.ndarray, " k"]
    met: Float[np.ndarray, " k"]
    """By how much a row may be missed: less than by one level."""
    pairs: Int[np.ndarray, "Q S"]
    """Levels by which two columns are moved together, so that a row stays what it is."""

    @classmethod
    def of(
        cls,
        rows: Rows,
        layout: Layout,
        low: Num[np.ndarray, " D"],
        high: Num[np.ndarray, " D"],
    ) -> Levels:
        """Those of some rows, between bounds."""
        stepped = np.isin(np.arange(layout.dimensions), layout.stepped)
        columns = np.flatnonzero(stepped & rows.A.any(0))
        weights = rows.A[:, columns] / layout.last[columns]
        others = np.where(stepped, 0.0, rows.A)
        ends = np.sort([others * low, others * high], axis=0).sum(-1)
        smallest = np.min(np.where(weights != 0.0, np.abs(weights), np.inf), axis=1, initial=np.inf)
        met = np.minimum(MET, np.maximum(0.1 * smallest, 1e-14))
        return cls(rows, layout, columns, weights, ends[0], ends[1], met, _pairs(rows, weights))

    @property
    def none(self) -> bool:
        """Whether only continuous columns occur in the limits."""
        return len(self.columns) == 0

    def repaired(
        self, X: Float[np.ndarray, "n D"], wanted: Float[np.ndarray, "n D"]
    ) -> Float[np.ndarray, "n D"]:
        """Legal points of the cube whose levels leave room for the other columns to meet the rows.

        One level at a time, the one that helps most; of those that help alike, the one that stays
        nearest to where the point was wanted. Some may not get there.
        """
        if self.none:
            return X
        last = self.layout.last[self.columns]
        level, target = np.rint(X[:, self.columns] * last), wanted[:, self.columns] * last
        moves = np.concatenate([np.eye(len(last)), -np.eye(len(last))])
        going = np.arange(len(X))
        for _ in range(ROUNDS):
            missed = self._missed(level[going])
            going, missed = going[missed > 0.0], missed[missed > 0.0]
            if len(going) == 0:
                break
            tried = level[going, None] + moves
            inside = np.all((tried >= 0) & (tried <= last), axis=-1)
            far = np.sum(np.abs(tried - target[going, None]) / last, axis=-1)
            left = self._missed(tried)
            score = np.where(inside & (left < missed[:, None]), left + 1e-6 * far, np.inf)
            best = np.argmin(score, axis=1)
            helped = np.isfinite(score[np.arange(len(going)), best])
            going, best = going[helped], best[helped]
            level[going] += moves[best]
        found = X.copy()
        found[:, self.columns] = level / last
        return found

    def _missed(self, level: Float[np.ndarray, "*n S"]) -> Float[np.ndarray, " *n"]:
        """By how much the rows are missed, whatever the other columns do."""
        left = self.rows.b - level @ self.weights.T
        over, under = self.least - left, np.where(self.rows.equal, left - self.most, 0.0)
        missed = np.maximum(over, under)
        return np.asarray(np.sum(np.where(missed > self.met, missed, 0.0), axis=-1))

    def exchanged(self, X: Num[np.ndarray, "n D"]) -> Num[np.ndarray, "n Q D"]:
        """Points with two columns moved, one making up for the other; out of range, none."""
        last = self.layout.last[self.columns]
        level = np.rint(X[:, self.columns] * last)[:, None] + self.pairs
        inside = np.all((level >= 0) & (level <= last), axis=-1, keepdims=True)
        moved = np.repeat(X[:, None], len(self.pairs), axis=1)
        here = moved[..., self.columns]
        moved[..., self.columns] = np.where(inside, level / last, here)
        return moved

    def solved(self) -> Float[np.ndarray, "n D"]:
        """Some points with levels within the rows, in all directions."""
        rng = np.random.default_rng(0)
        found = [
            levels(self.rows, self.layout, rng.standard_normal(self.layout.dimensions))
            for _ in range(SOLVED)
        ]
        points = [point for point in found if point is not None]
        return np.array(points).reshape(len(points), self.layout.dimensions)


def _pairs(rows: Rows, weights: Float[np.ndarray, "k S"]) -> Int[np.ndarray, "Q S"]:
    """Both ways, for every two columns that share a row; one with = before others."""
    order = np.argsort(~rows.equal, kind="stable")
    S, found = weights.shape[1], []
    for i, j in combinations(range(S), 2):
        shared = [k for k in order if weights[k, i] != 0.0 and weights[k, j] != 0.0]
        if not shared:
            continue
        ratio = -weights[shared[0], i] / weights[shared[0], j]  # of j's levels to i's
        share = Fraction(ratio).limit_denominator(LARGEST)
        if abs(float(share) - ratio) > 1e-9 * abs(ratio) or abs(share.numerator) > LARGEST:
            continue
        move = np.zeros(S, dtype=int)
        move[[i, j]] = share.denominator, share.numerator
        found += [move, -move]
    return np.array(found, dtype=int).reshape(len(found), S)
