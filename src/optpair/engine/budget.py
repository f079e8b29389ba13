"""Budgets: how much work each part of a step gets."""

from __future__ import annotations

import math

from optpair.engine.settings import Settings

CANDIDATES, CANDIDATES_BESIDE_OPTIMA = 2048, 128
STARS = 128  # sampled optima that are screened, at least one for each optimum
LISTED = 10_000  # rows of a table up to which all are screened beside sampled optima
MANY, FEW = 8, 5  # parameters, and trials for each of them
FOCUSED = (5, 12)  # parameters
GROWN = 1.5  # times as many looks, after which chains start anew
PATH_CANDIDATES = 768  # a third of them in one or two dimensions


def screened(settings: Settings, *, optima: bool) -> int:
    """Space-filling points at which a function is screened, with or without sampled optima."""
    return settings.candidates or (CANDIDATES_BESIDE_OPTIMA if optima else CANDIDATES)


def paths_screened(settings: Settings, dimensions: int) -> int:
    """Space-filling points at which sample paths are screened: few fill one or two dimensions."""
    fewer = 3 if dimensions <= 2 else 1
    return settings.path_candidates or PATH_CANDIDATES // fewer


def boxed(parameters: int, told: int) -> bool:
    """Whether points are screened only around the best data: for few trials, many parameters.

    >>> [boxed(7, 10), boxed(8, 39), boxed(8, 40)]
    [False, True, False]
    """
    return parameters >= MANY and told < FEW * parameters


def focused(parameters: int) -> bool:
    """Whether queries are chosen around the best trial, once values are exact.

    >>> [focused(count) for count in (4, 5, 12, 13)]
    [False, True, True, False]
    """
    return FOCUSED[0] <= parameters <= FOCUSED[1]


def anew(before: int, now: int) -> bool:
    """Whether chains start anew, as the number of looks has grown by about a half.

    Where trials have several looks, what those of one trial share may be taken for its luck or for
    the point that it was at. Chains that have settled on one of the two seldom find the other.

    >>> [anew(4, 5), anew(5, 6), anew(6, 7), anew(7, 20)]
    [False, True, False, True]
    """
    return math.floor(math.log(now, GROWN)) > math.floor(math.log(max(before, 1), GROWN))


def climb_steps(settings: Settings, dimensions: int) -> int:
    """Steps of a climb: nearly all climbs have converged by then."""
    return settings.steps or min(6 + 4 * dimensions, 24)


def starts(settings: Settings, fidelities: int) -> int:
    """Points from which the maximiser climbs: half as many if an evaluation costs twice as much."""
    return max(settings.starts // 2, 1) if fidelities else settings.starts


def set_stride(rows: int, sets: int, most: int) -> int:
    """The stride between the sets in use: many data leave little doubt, and a set costs n³.

    At least three sets stay, or all if there are fewer.
    """
    return max(1, min(-(-rows // most), sets // 3))


def scarce(rows: int, sets: int, most: int) -> bool:
    """Whether there are so many data that the smallest number of sets is used.

    >>> [scarce(rows, 12, 256) for rows in (256, 768, 769)]
    [False, False, True]
    """
    return set_stride(rows, sets, most) == max(sets // 3, 1) > 1
