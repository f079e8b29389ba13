"""Splits of the data: the same folds for all trials, and portions of what they are trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpair.integrations.sklearn.resources import has_classes
from optpair.runtime.shapes import Int

Splits = Iterator[tuple[np.ndarray, np.ndarray]]


class SameFolds:
    """A splitter that splits once, so that trials are compared on the same folds.

    In all else it is the splitter that it was given.
    """

    def __init__(self, cv: Any) -> None:
        self._cv = cv
        self._splits: list[tuple[np.ndarray, np.ndarray]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what it has itself, or what Python asks of anything
            raise AttributeError(name)
        return getattr(self._cv, name)

    def split(self, *args: Any, **kwargs: Any) -> Splits:
        """The folds of the first call."""
        self._splits = self._splits or list(self._cv.split(*args, **kwargs))
        return iter(self._splits)

    @property
    def count(self) -> int:
        """How many folds there are."""
        return len(self._splits)

    @property
    def ratio(self) -> float:
        """Test samples for each training sample, on average."""
        return float(np.mean([len(test) / max(len(train), 1) for train, test in self._splits]))


class Portions:
    """Portions of training folds: the first rows of an order that is drawn once for each fold.

    A larger portion contains the smaller ones. Tests are always on whole folds: rows are left out
    of the training only. Every portion has about the same shares of the classes as its fold.
    """

    def __init__(self, folds: Any, y: Any, seed: int, whole: int, *, classes: bool) -> None:
        self._folds, self._whole = folds, whole
        self._labels = np.asarray(y) if classes and has_classes(y) else None
        self._rng = np.random.default_rng([seed, 0])
        self._orders: list[Int[np.ndarray, " n"]] = []

    def of(self, count: int) -> _Portion:
        """Folds of which each has its share of `count` rows of the whole to train on."""
        return _Portion(self, count / self._whole)

    def split(self, share: float, *args: Any, **kwargs: Any) -> Splits:
        """The folds, with a share of the rows to train on."""
        splits = list(self._folds.split(*args, **kwargs))
        if not self._orders:
            self._orders = [self._order(train) for train, _ in splits]
        for order, (_, test) in zip(self._orders, splits, strict=True):
            yield order[: max(round(share * len(order)), 1)], test

    def _order(self, train: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        mixed = self._rng.permutation(train)
        if self._labels is None:
            return mixed
        _, kind, counts = np.unique(self._labels[mixed], return_inverse=True, return_counts=True)
        place = np.empty(len(mixed))
        for i in range(len(counts)):
            place[kind == i] = (np.arange(counts[i]) + 0.5) / counts[i]
        return mixed[np.argsort(place, kind="stable")]


@dataclass(frozen=True)
class _Portion:
    """A splitter whose training folds are cut."""

    portions: Portions
    share: float

    def split(self, *args: Any, **kwargs: Any) -> Splits:
        """The folds."""
        return self.portions.split(self.share, *args, **kwargs)
