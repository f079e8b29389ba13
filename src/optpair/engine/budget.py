"""Budgets: how much work a step gets, by how much there is to learn from it."""

from __future__ import annotations

from optpair.engine.settings import Settings

CANDIDATES, CANDIDATES_BESIDE_OPTIMA = 2048, 128
STARS = 128  # points of sampled optima that are screened, or one of each optimum
LISTED = 10_000  # rows of a table that are all screened beside sampled optima; of more, some are
MANY, FEW = 8, 5  # parameters, and trials for each of them
PATH_CANDIDATES = 768  # a third of them in one or two dimensions


def screened(settings: Settings, *, optima: bool) -> int:
    """Space-filling points at which a function is screened, beside sampled optima or without."""
    return settings.candidates or (CANDIDATES_BESIDE_OPTIMA if optima else CANDIDATES)


def paths_screened(settings: Settings, dimensions: int) -> int:
    """Space-filling points at which sample paths are screened: a plane is soon filled."""
    fewer = 3 if dimensions <= 2 else 1
    return settings.path_candidates or PATH_CANDIDATES // fewer


def boxed(parameters: int, told: int) -> bool:
    """Whether points are screened around the best data only: few trials of many parameters.

    >>> [boxed(7, 10), boxed(8, 39), boxed(8, 40)]
    [False, True, False]
    """
    return parameters >= MANY and told < FEW * parameters


def climb_steps(settings: Settings, dimensions: int) -> int:
    """Steps of a climb: nearly all have arrived after these."""
    return settings.steps or min(6 + 4 * dimensions, 24)


def starts(settings: Settings, fidelities: int) -> int:
    """Points from which the maximiser climbs: half as many where a look costs twice the time."""
    return max(settings.starts // 2, 1) if fidelities else settings.starts


def set_stride(rows: int, sets: int, most: int) -> int:
    """Every how many-th set is used: many data leave little doubt, and each set costs n³.

    At least three of them stay, or all.
    """
    return max(1, min(-(-rows // most), sets // 3))


def scarce(rows: int, sets: int, most: int) -> bool:
    """Whether there are so many data that as few sets are used as can be.

    >>> [scarce(rows, 12, 256) for rows in (256, 768, 769)]
    [False, False, True]
    """
    return set_stride(rows, sets, most) == max(sets // 3, 1) > 1
