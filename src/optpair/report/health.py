"""Health: what looks wrong with a search or its model, in sentences that say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from optpair.engine.answers import LeftOut
from optpair.problem.space import Float, Int, Space
from optpair.report.axes import Line, of_parameter
from optpair.report.findings import Findings
from optpair.report.outcomes import JointFindings, JointSubject
from optpair.report.subject import Row, Subject
from optpair.report.words import FEWEST, count, number, percent, unexplained

EDGE = 0.01  # of an axis: this near its end a value is at the bound
MOSTLY = 0.5  # share of the samples at a bound
MATTERS = 0.02  # share of the variance of a parameter that is worth a word
FAR = 2.0  # half intervals from the prediction: about four standard deviations
NAMED = 3  # trials
MANY = 20  # values, from which on a check's share is one
HELD = 0.8  # share of the values within their 95 % intervals, at least
DISTINCT = 0.5  # share of the hyperparameter sets


def notes(subject: Subject, found: Findings) -> list[str]:
    """What looks wrong, the most important first."""
    assert subject.model is not None
    doubted = {row.number for row, _ in found.doubted}
    checked = [] if found.check is None else [("", found.check, subject.told, doubted)]
    return [
        *(line for name, check, *_ in checked for line in _explained(check, name)),
        *(
            line
            for line in _bounds(
                subject.model.space, found.stars, found.recommended.params, found.total
            )
            if not unexplained(found.check)  # where nothing is known, the bounds say nothing
        ),
        *(line for one in checked for line in _far(*one)),
        *_mixed(found.sets),
    ]


def joint_notes(subject: JointSubject, found: JointFindings) -> list[str]:
    """What looks wrong with a search for several outcomes; each is named."""
    checked = [
        (name, check, subject.told, {row.number for row, n, _ in found.doubted if n == name})
        for name, check in found.checks.items()
    ]
    objectives = [found.matters[n][1] for n in subject.problem.objectives if n in found.matters]
    matters = {
        name: max((total.get(name, 0.0) for total in objectives), default=0.0)
        for name in subject.model.space
    }
    return [
        *(line for name, check, *_ in checked for line in _explained(check, name)),
        *_bounds(subject.model.space, found.stars, found.best.params, matters),
        *(line for one in checked for line in _far(*one)),
        *_mixed(found.sets),
    ]


def inside(check: LeftOut) -> np.ndarray:
    """Which values are in the interval that the others predict."""
    return np.asarray((check.predicted.low <= check.y) & (check.y <= check.predicted.high))


def _explained(check: LeftOut, name: str) -> Iterator[str]:
    if len(check.y) < FEWEST:
        return
    if unexplained(check):
        yield (
            f"No parameter explains {name or 'this outcome'}: the other trials predict a value no "
            "better than their mean does. It may be all noise, or depend on something that is not "
            "in the space."
        )
    within = inside(check)
    if len(within) >= MANY and within.mean() < HELD:
        yield (
            f"Only {within.sum()} of {len(within)} values{name and f' of {name}'} are in the 95 % "
            "interval that the others predict: the intervals on this page may be too narrow."
        )


def _bounds(
    space: Space,
    stars: Sequence[Mapping[str, Any]],
    best: Mapping[str, Any],
    total: Mapping[str, float],
) -> Iterator[str]:
    for name, parameter in space.items():
        if not isinstance(parameter, Float | Int) or total.get(name, 0.0) < MATTERS:
            continue
        if name not in best or name in space.targets:
            continue
        axis = of_parameter(parameter)
        assert isinstance(axis, Line)
        places = np.array([axis.at(star[name]) for star in stars if name in star])
        for end, side, value in ((0.0, "lower", axis.low), (1.0, "upper", axis.high)):
            share = float(np.mean(np.abs(places - end) <= EDGE)) if len(places) else 0.0
            if share >= MOSTLY and abs(axis.at(best[name]) - end) <= EDGE:
                yield (
                    f"{percent(share)} of the samples of the optimum are at the {side} bound of "
                    f"{name} ({number(value)}): widen the range, if values beyond it make sense."
                )


def _far(name: str, check: LeftOut, told: Sequence[Row], doubted: set[int]) -> Iterator[str]:
    if len(check.y) < FEWEST:
        return
    middle = check.predicted.high / 2 + check.predicted.low / 2
    half = np.maximum(check.predicted.high / 2 - check.predicted.low / 2, 1e-300)
    away = np.abs(check.y / 2 - middle / 2) * 2 / half
    numbers = [told[t].number for t in check.trial]
    far = [
        i for i in np.argsort(-away, kind="stable") if away[i] > FAR and numbers[i] not in doubted
    ]
    of = f"{name} " if name else ""
    for i in far[:NAMED]:
        low, high = (number(float(end[i])) for end in (check.predicted.low, check.predicted.high))
        yield (
            f"Trial {numbers[i]} is far from what the others predict: {of}"
            f"{number(float(check.y[i]))}, where {low} to {high} was expected. If it is a mistake, "
            "revise it."
        )
    if len(far) > NAMED:
        yield f"So are {count(len(far) - NAMED, 'other')}."


def _mixed(sets: tuple[int, int]) -> Iterator[str]:
    distinct, all_sets = sets
    if all_sets >= FEWEST and distinct < DISTINCT * all_sets:
        yield (
            f"Hyperparameters did not mix: only {distinct} of {all_sets} sets differ, so intervals "
            "may be too narrow. More moves may help: Settings(moves=…)."
        )
