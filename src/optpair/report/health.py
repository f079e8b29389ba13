"""Health: what looks wrong with a search or its model, in sentences that say what to do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optpair.problem.space import Float, Int
from optpair.report.axes import Line, of_parameter
from optpair.report.findings import Findings
from optpair.report.subject import Subject
from optpair.report.words import count, number, percent

EDGE = 0.01  # of an axis: this near its end a value is at the bound
MOSTLY = 0.5  # share of the samples at a bound
MATTERS = 0.02  # share of the variance of a parameter that is worth a word
FAR = 2.0  # half intervals from the prediction: about four standard deviations
NAMED = 3  # trials
FEWEST, MANY = 8, 20  # values, from which on a check says something, and its share is one
HELD = 0.8  # share of the values within their 95 % intervals, at least
DISTINCT = 0.5  # share of the hyperparameter sets


def notes(subject: Subject, found: Findings) -> list[str]:
    """What looks wrong, the most important first; none where nothing does."""
    return [*_explained(found), *_bounds(subject, found), *_far(subject, found), *_mixed(found)]


def inside(found: Findings) -> np.ndarray:
    """Which of the values that were left out lie in the interval that the others predict."""
    check = found.check
    assert check is not None
    return np.asarray((check.predicted.low <= check.y) & (check.y <= check.predicted.high))


def _explained(found: Findings) -> Iterator[str]:
    check = found.check
    if check is None or len(check.y) < FEWEST:
        return
    if check.explained <= 0:
        yield (
            "No parameter explains this outcome: the other trials predict a value no better than "
            "the mean does. It may be noise, or depend on something that is not in the space."
        )
    within = inside(found)
    if len(within) >= MANY and within.mean() < HELD:
        yield (
            f"Only {within.sum()} of {len(within)} values lie in the 95 % interval that the others "
            "predict: intervals on this page may be too narrow."
        )


def _bounds(subject: Subject, found: Findings) -> Iterator[str]:
    assert subject.model is not None
    for name, parameter in subject.model.space.items():
        if not isinstance(parameter, Float | Int) or found.total.get(name, 0.0) < MATTERS:
            continue
        if name not in found.recommended.params:
            continue
        axis = of_parameter(parameter)
        assert isinstance(axis, Line)
        places = np.array([axis.at(star[name]) for star in found.stars if name in star])
        best = axis.at(found.recommended.params[name])
        for end, side, value in ((0.0, "lower", axis.low), (1.0, "upper", axis.high)):
            share = float(np.mean(np.abs(places - end) <= EDGE)) if len(places) else 0.0
            if share >= MOSTLY and abs(best - end) <= EDGE:
                yield (
                    f"{percent(share)} of the samples of the optimum are at the {side} bound of "
                    f"{name} ({number(value)}): widen it, if values beyond make sense."
                )


def _far(subject: Subject, found: Findings) -> Iterator[str]:
    check = found.check
    if check is None or len(check.y) < FEWEST:
        return
    middle = check.predicted.high / 2 + check.predicted.low / 2
    half = np.maximum(check.predicted.high / 2 - check.predicted.low / 2, 1e-300)
    away = np.abs(check.y / 2 - middle / 2) * 2 / half
    doubted = {row.number for row, _ in found.doubted}
    numbers = [subject.told[t].number for t in check.trial]
    far = [
        i for i in np.argsort(-away, kind="stable") if away[i] > FAR and numbers[i] not in doubted
    ]
    for i in far[:NAMED]:
        low, high = (number(float(end[i])) for end in (check.predicted.low, check.predicted.high))
        yield (
            f"Trial {numbers[i]} is far from what the others predict: {number(float(check.y[i]))}, "
            f"where {low} to {high} was expected. If it was a slip, revise it."
        )
    if len(far) > NAMED:
        yield f"So are {count(len(far) - NAMED, 'other')}."


def _mixed(found: Findings) -> Iterator[str]:
    distinct, sets = found.sets
    if sets >= FEWEST and distinct < DISTINCT * sets:
        yield (
            f"Hyperparameters did not mix: only {distinct} of {sets} sets differ, so intervals may "
            "be too narrow. Settings(moves=…) moves them more often."
        )
