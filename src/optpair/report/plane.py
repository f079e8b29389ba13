"""The plane of two parameters: which two interact most, and the predicted value over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from optpair.engine.answers import Answers
from optpair.report.subject import Modelled

FEW, MANY = 7, 27  # points along a parameter, to compare pairs and to draw
CONSIDERED = 5  # parameters that matter most


@dataclass(frozen=True)
class Plane:
    """The predicted value over two parameters, the others as recommended."""

    names: tuple[str, str]
    across: list[Any]
    up: list[Any]
    mean: np.ndarray  # (across, up), in the user's units; NaN where limits leave no point
    share: float
    """Of the variance over the plane, what neither parameter explains alone."""
    some_decide: bool = False
    """Whether parameters that others depend on were left out of the choice."""


def find(
    model: Modelled,
    answers: Answers,
    x: np.ndarray,
    sign: float,
    total: Mapping[str, float],
    grids: Mapping[str, np.ndarray],
    column: int | None = None,
) -> Plane | None:
    """The plane of the two important parameters that interact most; None if there are not two.

    Both are active at x, and neither decides on others. Values are of the only objective, unless
    another outcome's column is given.
    """
    own_column = answers.column if column is None else column
    names = [n for n in total if n in grids and n not in model.space.conditions.parents]
    names = sorted(names, key=lambda name: -total[name])[:CONSIDERED]
    if len(names) < 2:
        return None
    owner = np.asarray(model.space.layout.owner)
    order = list(model.space)

    def values(pair: tuple[str, str], most: int) -> tuple[list[np.ndarray], np.ndarray]:
        own = [_some(grids[name], most) for name in pair]
        points = np.repeat(x[None], len(own[0]) * len(own[1]), axis=0)
        both = np.zeros(len(owner), dtype=bool)
        for name, each in zip(pair, np.meshgrid(*map(_rows, own), indexing="ij"), strict=True):
            columns = owner == order.index(name)
            points[:, columns] = own[pair.index(name)][each.ravel()][:, columns]
            both |= columns
        legal = np.ones(len(points), dtype=bool)
        if model.limits is not None:
            points, legal = model.limits.keeping(points, both)
        mean = sign * answers.predict_all(points)[own_column].mean
        return own, np.where(legal, mean, np.nan).reshape(len(own[0]), len(own[1]))

    pairs = list(combinations(names, 2))
    size = float(np.nanmax(np.abs(answers.data.Y[:, own_column]))) or 1.0  # squares overflow
    best = max(pairs, key=lambda pair: interaction(values(pair, FEW)[1] / size)[0])
    (across, up), mean = values(best, MANY)
    first, second = best
    return Plane(
        best,
        [model.decode(point)[first] for point in across],
        [model.decode(point)[second] for point in up],
        mean,
        interaction(mean / size)[1],
        bool(model.space.conditions.parents),
    )


def interaction(mean: np.ndarray) -> tuple[float, float]:
    """The variance over a plane that rows and columns do not explain, and its share of all.

    NaNs are left out.

    >>> a = np.array([[0.0], [1.0]])
    >>> interaction(a + a.T), interaction(a * a.T - 0.5 * (a + a.T))[1]
    ((0.0, 0.0), 1.0)
    """
    there = ~np.isnan(mean)
    if not there.any():
        return 0.0, 0.0
    mean = np.where(there, mean, 0.0)

    def averaged(values: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(
            np.sum(values, axis, where=there, keepdims=True)
            / np.maximum(np.sum(there, axis, keepdims=True), 1)
        )

    centred = mean - mean[there].mean()
    rest = centred - averaged(centred, 0) - averaged(centred, 1)
    whole = float(np.mean(centred[there] ** 2))
    left = float(np.mean(rest[there] ** 2))
    return left, left / whole if whole > 0 else 0.0


def _rows(grid: np.ndarray) -> np.ndarray:
    return np.arange(len(grid))


def _some(grid: np.ndarray, most: int) -> np.ndarray:
    """At most this many of a grid's points, including both ends."""
    if len(grid) <= most:
        return grid
    return grid[np.round(np.linspace(0, len(grid) - 1, most)).astype(int)]
