"""Findings of several outcomes: everything that their page shows, asked for once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optpair.engine.answers import Answers, LeftOut
from optpair.engine.earlier import Lending
from optpair.engine.worth import SURE
from optpair.problem.problem import Problem
from optpair.report.findings import Slice, Succeeds, by_parameter, grid_along, named_pairs, success
from optpair.report.plane import Plane, chances
from optpair.report.plane import find as find_plane
from optpair.report.subject import Modelled, Row
from optpair.trials.estimate import Estimate
from optpair.trials.numbers import to_the_last_digit

INTERACTS = 0.01  # share of the variance over a plane that is worth a picture


@dataclass(frozen=True)
class JointSubject:
    """A named search with several outcomes, and its trials, in order.

    The told trials are those of the model's data, in the same order.
    """

    name: str
    problem: Problem
    rows: tuple[Row, ...]
    model: Modelled

    @cached_property
    def told(self) -> tuple[Row, ...]:
        """The trials in which something was measured."""
        return tuple(row for row in self.rows if row.state == "told")

    def broken(self, row: Row) -> list[str]:
        """The constraints that a trial's values do not meet."""
        limits = self.problem.constraints.items()
        return [n for n, o in limits if n in row.outcomes and not o.met(row.outcomes[n])]

    def missing(self, row: Row) -> list[str]:
        """The outcomes that were not measured in a trial."""
        return [name for name in self.problem.names if name not in row.outcomes]

    def feasible(self, row: Row) -> bool:
        """Whether a trial's values are known to meet all constraints."""
        return not self.broken(row) and not set(self.missing(row)) & set(self.problem.constraints)


class Belief(NamedTuple):
    """What is believed of a number: the mean, and 95 % of the belief."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half of the interval, which cannot overflow."""
        return self.high / 2 - self.low / 2


@dataclass(frozen=True)
class Point:
    """A recommended point, what is believed of every outcome, and the chance to meet the limits."""

    params: dict[str, Any]
    outcomes: Mapping[str, Belief]
    chance: float | None
    trial: int | None = None
    """The number of the trial that it is, where it was chosen for being one."""


@dataclass(frozen=True)
class Volume:
    """The hypervolume of the front, and what is still to be won of it."""

    size: Belief
    gap: Belief
    reference: Mapping[str, float]


@dataclass(frozen=True)
class JointFindings:
    """The answers of a model of several outcomes."""

    points: tuple[Point, ...]  # one, or those of a front
    chosen: int  # the point that slices go through
    observed: tuple[Row, ...]  # the best observed trial, or the observed front
    gap: Mapping[str, Belief]  # by objective
    next_gain: float
    possible: float | None  # that any point meets all limits, where that was asked
    volume: Volume | None  # of a front
    samples: Mapping[str, np.ndarray]  # objectives at the optima that are still possible
    slices: Mapping[str, list[Slice]]  # by outcome, along every parameter
    matters: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]]
    predicted: Mapping[str, Estimate]  # of the told trials
    chance: np.ndarray | None  # of the told trials
    doubted: list[tuple[Row, str, float]]  # trials with doubtful values; what is expected
    checks: Mapping[str, LeftOut]  # by outcome: each value beside what the others predict
    planes: Mapping[str, Plane]  # by objective: the two parameters that interact most
    feasible: Plane | None  # the chance to meet all limits, where it changes
    pairs: Mapping[str, Mapping[tuple[str, str], float]]  # by outcome, see `Effects`
    stars: list[Mapping[str, Any]]  # samples of the optimum; none of a front
    success: float | None  # the chance of it at the point that slices go through
    succeeds: Mapping[str, Succeeds]
    sets: tuple[int, int]  # of hyperparameters: how many differ, and how many there are
    borrowed: Mapping[str, Mapping[str, Lending]]  # what earlier studies lend to each outcome

    def doubtful(self, name: str) -> frozenset[int]:
        """The numbers of the trials whose value of an outcome is in doubt."""
        return frozenset(row.number for row, own, _ in self.doubted if own == name)

    @property
    def best(self) -> Point:
        """The point that slices go through: the only one, or one in the middle of the front."""
        return self.points[self.chosen]

    @property
    def sure(self) -> bool:
        """Whether the points meet all limits with a probability of at least 95 %."""
        return all(point.chance is None or point.chance >= SURE for point in self.points)


def gather(subject: JointSubject) -> JointFindings | None:
    """Ask everything; None if no trial has a value of every objective."""
    answers = subject.model.answers
    if answers is None:
        return None
    front = subject.problem.goal == "front"
    x, common = _front(subject, answers) if front else _best(subject, answers)
    points, signs = answers.data.points, [o.sign for o in subject.problem.outcomes.values()]
    names = subject.problem.names
    told = [own.times(sign) for own, sign in zip(answers.predict_all(points), signs, strict=True)]
    effects = {name: answers.effects(c) for c, name in enumerate(names)}
    matters = {
        name: (by_parameter(subject.model, found.first), by_parameter(subject.model, found.total))
        for name, found in effects.items()
        if found is not None
    }
    grids = _grids(subject.model, x)
    chance, along = success(subject.model, answers, x, grids, subject.rows)
    return JointFindings(
        **common,
        slices={name: _slices(subject, answers, x, c, grids) for c, name in enumerate(names)},
        matters=matters,
        predicted=dict(zip(names, told, strict=True)),
        chance=answers.chance(points),
        doubted=[
            (subject.told[one.trial], names[one.column], signs[one.column] * one.expected)
            for one in answers.doubts()
        ],
        checks={name: _check(answers, c, signs[c]) for c, name in enumerate(names)},
        planes=_planes(subject, answers, x, grids, {n: total for n, (_, total) in matters.items()}),
        feasible=_feasible(subject, answers, x, grids, {n: t for n, (_, t) in matters.items()}),
        pairs={name: named_pairs(subject.model, found) for name, found in effects.items()},
        success=chance,
        succeeds=along,
        sets=answers.distinct_sets,
        borrowed=answers.borrowed(),
    )


def _grids(model: Modelled, x: np.ndarray) -> dict[str, np.ndarray]:
    """Points along every parameter that is active at x."""
    active = model.decode(x)
    return {name: grid_along(model, x, i) for i, name in enumerate(model.space) if name in active}


def _check(answers: Answers, column: int, sign: float) -> LeftOut:
    found = answers.left_out(column)
    return found._replace(y=sign * found.y, predicted=found.predicted.times(sign))


def _planes(
    subject: JointSubject,
    answers: Answers,
    x: np.ndarray,
    grids: Mapping[str, np.ndarray],
    total: Mapping[str, Mapping[str, float]],
) -> dict[str, Plane]:
    """The plane of each objective in which two parameters interact."""
    names, found = subject.problem.names, {}
    for name, objective in subject.problem.objectives.items():
        column, shares = names.index(name), total.get(name, {})
        plane = find_plane(
            *(subject.model, answers, x, objective.sign, shares, grids), column=column
        )
        if plane is not None and plane.share >= INTERACTS:
            found[name] = plane
    return found


def _feasible(
    subject: JointSubject,
    answers: Answers,
    x: np.ndarray,
    grids: Mapping[str, np.ndarray],
    total: Mapping[str, Mapping[str, float]],
) -> Plane | None:
    """The plane of the two parameters that matter most to any limit."""
    most: dict[str, float] = {}
    for name in subject.problem.constraints:
        for parameter, share in total.get(name, {}).items():
            most[parameter] = max(share, most.get(parameter, 0.0))
    return chances(subject.model, answers, x, most, grids)


def _best(subject: JointSubject, answers: Answers) -> tuple[np.ndarray, dict[str, Any]]:
    """The best point under constraints."""
    problem, pairs = subject.problem, answers.belief()
    best, (name,) = pairs.best, problem.objectives
    estimates = zip(problem.outcomes.items(), best.outcomes, strict=True)
    outcomes = {n: _believed(own, o.sign) for (n, o), own in estimates}
    params, trial = subject.model.decode(best.x), None
    if best.trial is not None:
        exact = subject.told[best.trial]
        params = to_the_last_digit(params, exact.params, subject.model.space.targets)
        trial = exact.number
    return best.x, {
        "points": (Point(params, outcomes, best.chance, trial),),
        "chosen": 0,
        "observed": (subject.told[answers.best_trial],),
        "gap": {name: Belief(pairs.gap, *pairs.gap_interval)},
        "next_gain": pairs.next_gain,
        "possible": pairs.possible,
        "volume": None,
        "samples": {name: problem.objective.sign * pairs.f},
        "stars": [subject.model.decode(point) for point in pairs.x],
    }


def _front(subject: JointSubject, answers: Answers) -> tuple[np.ndarray, dict[str, Any]]:
    """The best compromises between several objectives."""
    problem, sets = subject.problem, answers.sets()
    found, signs = sets.front, [o.sign for o in problem.objectives.values()]
    points = tuple(
        Point(
            subject.model.decode(x),
            {
                name: _believed(own.row(row), o.sign)
                for (name, o), own in zip(problem.outcomes.items(), found.outcomes, strict=True)
            },
            None if found.chance is None else float(found.chance[row]),
        )
        for row, x in enumerate(found.x)
    )
    chosen = _middle(points, problem)
    named = list(enumerate(problem.objectives))
    values = np.concatenate([own for own in sets.f if len(own)] or [np.empty((0, len(signs)))])
    return found.x[chosen], {
        "points": points,
        "chosen": chosen,
        "observed": tuple(subject.told[row] for row in found.observed),
        "gap": {name: Belief(float(sets.gap[k]), *sets.gap_interval[:, k]) for k, name in named},
        "next_gain": sets.next_gain,
        "possible": sets.possible,
        "volume": Volume(
            Belief(found.hypervolume, *found.hypervolume_interval),
            Belief(sets.hypervolume_gap, *sets.hypervolume_gap_interval),
            {name: signs[k] * float(found.reference[k]) for k, name in named},
        ),
        "samples": {name: signs[k] * values[:, k] for k, name in named},
        "stars": [],
    }


def _believed(estimate: Estimate, sign: float) -> Belief:
    mean, _, low, high = (float(part) for part in estimate.times(sign))
    return Belief(mean, low, high)


def _middle(points: tuple[Point, ...], problem: Problem) -> int:
    """The point whose largest lack of the best value of an objective is smallest."""
    means = np.array([[o.sign * p.outcomes[n].mean / 2 for n, o in problem.objectives.items()]
                      for p in points])  # fmt: skip
    extent = np.ptp(means, axis=0)
    lack = (means.max(0) - means) / np.where(extent > 0, extent, 1.0)
    return int(np.argmin(lack.max(1)))


def _slices(
    subject: JointSubject,
    answers: Answers,
    x: np.ndarray,
    column: int,
    grids: Mapping[str, np.ndarray],
) -> list[Slice]:
    """One outcome along every parameter, the others as recommended."""
    model, name = subject.model, subject.problem.names[column]
    has = np.array([name in row.outcomes for row in subject.told], dtype=bool)
    near = answers.nearness(answers.data.points[has], x, column)
    order, sign, found = list(model.space), subject.problem.outcomes[name].sign, []
    for parameter, grid in grids.items():
        estimate = answers.predict_all(grid)[column].times(sign)
        values = [model.decode(point)[parameter] for point in grid]
        found.append(Slice(parameter, values, estimate, near[:, order.index(parameter)]))
    return found
