"""The plane of two parameters: which two are shown, and what is predicted over them."""

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
VARIES = 0.05  # by how much the chance to meet limits changes over a plane that is shown


@dataclass(frozen=True)
class Plane:
    """The predicted value over two parameters, the others as recommended."""

    names: tuple[str, str]
    across: list[Any]
    up: list[Any]
    mean: np.ndarray
    """(across, up), in the user's units, or a probability; NaN where limits leave no point."""
    share: float = 0.0
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
    names = _important(model, total, grids)
    if len(names) < 2:
        return None

    def values(pair: tuple[str, str], most: int) -> tuple[list[np.ndarray], np.ndarray]:
        own, points, legal = _grid(model, x, grids, pair, most)
        mean = sign * answers.predict_all(points)[own_column].mean
        return own, np.where(legal, mean, np.nan).reshape(len(own[0]), len(own[1]))

    pairs = list(combinations(names, 2))
    size = float(np.nanmax(np.abs(answers.data.Y[:, own_column]))) or 1.0  # squares overflow
    best = max(pairs, key=lambda pair: interaction(values(pair, FEW)[1] / size)[0])
    own, mean = values(best, MANY)
    share, some_decide = interaction(mean / size)[1], bool(model.space.conditions.parents)
    return Plane(best, *_axes(model, best, own), mean, share, some_decide)


def chances(
    model: Modelled,
    answers: Answers,
    x: np.ndarray,
    total: Mapping[str, float],
    grids: Mapping[str, np.ndarray],
) -> Plane | None:
    """The chance to meet all limits over the two parameters that matter most to them.

    None without limits, if there are not two, and if the chance hardly changes.
    """
    names = _important(model, total, grids)
    if len(names) < 2:
        return None
    pair = names[0], names[1]
    own, points, legal = _grid(model, x, grids, pair, MANY)
    chance = answers.chance(points)
    if chance is None or not legal.any() or np.ptp(chance[legal]) < VARIES:
        return None
    mean = np.where(legal, chance, np.nan).reshape(len(own[0]), len(own[1]))
    return Plane(pair, *_axes(model, pair, own), mean)


def _important(
    model: Modelled, total: Mapping[str, float], grids: Mapping[str, np.ndarray]
) -> list[str]:
    """The parameters that matter most, of those that are active and decide on no others."""
    names = [n for n in total if n in grids and n not in model.space.conditions.parents]
    return sorted(names, key=lambda name: -total[name])[:CONSIDERED]


def _grid(
    model: Modelled,
    x: np.ndarray,
    grids: Mapping[str, np.ndarray],
    pair: tuple[str, str],
    most: int,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """The points along each of two parameters, those of their plane, and which limits leave."""
    owner, order = np.asarray(model.space.layout.owner), list(model.space)
    own = [_some(grids[name], most) for name in pair]
    points = np.repeat(x[None], len(own[0]) * len(own[1]), axis=0)
    both = np.zeros(len(owner), dtype=bool)
    for name, each in zip(pair, np.meshgrid(*map(_rows, own), indexing="ij"), strict=True):
        columns = owner == order.index(name)
        points[:, columns] = own[pair.index(name)][each.ravel()][:, columns]
        both |= columns
    if model.limits is None:
        return own, points, np.ones(len(points), dtype=bool)
    return own, *model.limits.keeping(points, both)


def _axes(
    model: Modelled, pair: tuple[str, str], own: list[np.ndarray]
) -> tuple[list[Any], list[Any]]:
    """The values of both parameters along the plane."""
    across, up = (
        [model.decode(point)[name] for point in line] for name, line in zip(pair, own, strict=True)
    )
    return across, up


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
