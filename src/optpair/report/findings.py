"""Findings: everything that a page shows of a model, in the user's units, asked for once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optpair.engine.answers import Answers, LeftOut, Noise, Pairs
from optpair.engine.earlier import Lending
from optpair.engine.effects import Effects
from optpair.problem.space import Categorical
from optpair.report.plane import Plane
from optpair.report.plane import find as find_plane
from optpair.report.subject import Modelled, Row, Subject
from optpair.trials.estimate import Estimate
from optpair.trials.numbers import to_the_last_digit

GRID = 61  # points of a slice
MOMENTS = {300: 12, 600: 6, 10**9: 4}
"""How many past moments are shown, up to this many values: each costs the cube of the values."""


@dataclass(frozen=True)
class Answer:
    """A point, and what is believed of its noiseless value: the mean, and 95 % of the belief."""

    params: dict[str, Any]
    mean: float
    low: float
    high: float
    trial: int | None = None
    """The number of the trial that it is, where it was chosen for being one."""


@dataclass(frozen=True)
class Moment:
    """What was believed once `told` values were known; `number` is the last of their trials."""

    told: int
    number: int
    mean: float
    low: float
    high: float
    next_gain: float
    gap: float


@dataclass(frozen=True)
class Slice:
    """The value along one parameter, the others as recommended; and how near each trial is."""

    name: str
    values: list[Any]
    predicted: Estimate
    nearness: np.ndarray


class Succeeds(NamedTuple):
    """The chance of success along one parameter, the others as recommended."""

    values: list[Any]
    chance: np.ndarray
    nearness: Mapping[int, float]
    """How near each trial is to that, from 0 to 1, by its number."""


@dataclass(frozen=True)
class Findings:
    """The answers of one model."""

    recommended: Answer
    observed: Row
    expected: Answer  # what the model makes of the observed one
    stars: list[Mapping[str, Any]]
    worth: np.ndarray
    next_gain: float
    gap: float
    gap_interval: tuple[float, float]  # 95 %
    noise: Noise
    moments: list[Moment]
    slices: list[Slice]
    first: Mapping[str, float]  # shares of variance, by parameter; empty if all is flat
    total: Mapping[str, float]
    predicted: Estimate  # of the told trials
    doubted: list[tuple[Row, float]]  # trials with doubtful values, and what is expected
    agree: Mapping[str, float] = field(default_factory=dict)  # see `Pairs`
    check: LeftOut | None = None  # each value beside what the others predict
    plane: Plane | None = None  # of the two parameters that interact most
    success: float | None = None  # the chance of it at the recommendation, where some failed
    succeeds: Mapping[str, Succeeds] = field(default_factory=dict)  # by parameter
    pairs: Mapping[tuple[str, str], float] = field(default_factory=dict)  # see `Effects`
    sets: tuple[int, int] = (1, 1)  # of hyperparameters: how many differ, and how many there are
    borrowed: Mapping[str, Mapping[str, Lending]] = field(default_factory=dict)
    """What each earlier study lends to each outcome."""
    exhausted: bool = False
    """Whether every point has been tried, and none may be tried again."""
    halved: int | None = None
    """About how many more trials it takes until half of the gap is left; None if unknown."""

    @cached_property
    def doubtful(self) -> frozenset[int]:
        """The numbers of the trials with doubtful values."""
        return frozenset(row.number for row, _ in self.doubted)


def gather(subject: Subject) -> Findings | None:
    """Ask everything; None if no trial has a value."""
    model, told, sign = subject.model, subject.told, subject.sign
    if model is None or model.answers is None:
        return None
    answers = model.answers
    now, pairs = answers.data, answers.belief()
    x = pairs.best.x
    effects = answers.effects()
    active = model.decode(x)
    grids = [grid_along(model, x, i) for i, name in enumerate(model.space) if name in active]
    predicted = answers.predict(np.concatenate([now.points, *grids])).times(sign)
    ends = np.cumsum([now.told, *map(len, grids)])
    near = answers.nearness(now.points, x)
    slices = [
        Slice(
            name,
            [model.decode(point)[name] for point in grid],
            Estimate(*(part[ends[i] : ends[i + 1]] for part in predicted)),
            near[:, list(model.space).index(name)],
        )
        for i, (name, grid) in enumerate(zip(active, grids, strict=True))
    ]
    best = answers.best_trial
    mean, _, low, high = (float(part[best]) for part in predicted)
    shares = [by_parameter(model, part) for part in (effects or ())[:2]]
    recommended = _answer(pairs, model, sign)
    if pairs.best.trial is not None:
        trial = told[pairs.best.trial]
        own = to_the_last_digit(recommended.params, trial.params, model.space.targets)
        recommended = replace(recommended, params=own, trial=trial.number)
    check = answers.left_out()
    by_name = dict(zip(active, grids, strict=True))
    chance, along = success(model, answers, x, by_name, subject.rows)
    return Findings(
        check=check._replace(y=sign * check.y, predicted=check.predicted.times(sign)),
        plane=find_plane(model, answers, x, sign, shares[1] if shares else {}, by_name),
        success=chance,
        succeeds=along,
        pairs=named_pairs(model, effects),
        sets=answers.distinct_sets,
        borrowed=answers.borrowed(),
        exhausted=answers.engine.spent(now),
        halved=answers.halved(),
        recommended=recommended,
        observed=told[best],
        expected=Answer(dict(told[best].params), mean, low, high),
        stars=[model.decode(point) for point in pairs.x],
        worth=sign * pairs.f,
        next_gain=pairs.next_gain,
        gap=pairs.gap,
        gap_interval=pairs.gap_interval,
        noise=answers.noise(),
        moments=[
            *_past(subject, model, answers),
            _moment(pairs, model, sign, len(told), told[-1].number),
        ],
        slices=slices,
        first=shares[0] if shares else {},
        total=shares[1] if shares else {},
        predicted=Estimate(*(part[: now.told] for part in predicted)),
        agree=pairs.agree,
        doubted=[(told[one.trial], sign * one.expected) for one in answers.doubts()],
    )


def by_parameter(model: Modelled, shares: np.ndarray) -> dict[str, float]:
    """Shares by the names of the parameters; a fidelity has none, as answers are at its target."""
    found = zip(model.space, map(float, shares), strict=True)
    return {name: share for name, share in found if name not in model.space.targets}


def named_pairs(model: Modelled, effects: Effects | None) -> dict[tuple[str, str], float]:
    """What two parameters explain only together, by their names."""
    names = list(model.space)
    found = {} if effects is None else effects.pairs
    return {(names[j], names[k]): share for (j, k), share in found.items()}


def success(
    model: Modelled,
    answers: Answers,
    x: np.ndarray,
    grids: Mapping[str, np.ndarray],
    rows: Sequence[Row],
) -> tuple[float | None, dict[str, Succeeds]]:
    """The chance of success at a point, and along every parameter; None if none has failed."""
    here = answers.success(x[None])
    if here is None:
        return None, {}
    along, order = {}, list(model.space)
    points = {row.number: row.x for row in rows if row.x is not None}
    near = answers.nearness(np.array(list(points.values())), x, 0)
    for name, grid in grids.items():
        chance = answers.success(grid)
        assert chance is not None
        values = [model.decode(point)[name] for point in grid]
        own = dict(zip(points, near[:, order.index(name)].tolist(), strict=True))
        along[name] = Succeeds(values, chance, own)
    return float(here[0]), along


def _answer(pairs: Pairs, model: Modelled, sign: float) -> Answer:
    mean, _, low, high = (float(part) for part in pairs.best.worth.times(sign))
    return Answer(model.decode(pairs.best.x) | dict(model.single), mean, low, high)


def _moment(pairs: Pairs, model: Modelled, sign: float, told: int, number: int) -> Moment:
    best = _answer(pairs, model, sign)
    return Moment(told, number, best.mean, best.low, best.high, pairs.next_gain, pairs.gap)


def _past(subject: Subject, model: Modelled, answers: Answers) -> list[Moment]:
    """The belief at some moments before now, more of them early."""
    told, counts = subject.told, moments(len(subject.told))
    return [
        _moment(pairs, model, subject.sign, count, told[count - 1].number)
        for count, pairs in zip(counts, answers.past(counts), strict=True)
    ]


def moments(told: int) -> list[int]:
    """How many values were known at the moments that are looked back at."""
    most = next(looks for values, looks in MOMENTS.items() if told <= values)
    share = np.linspace(0, 1, most) ** 1.5
    return sorted({1 + round((told - 1) * s) for s in share} - {told})


def grid_along(model: Modelled, x: np.ndarray, index: int) -> np.ndarray:
    """Legal points of the cube through x along one parameter.

    Within limits the others stay as near to x as they can; where they cannot, there is no point.
    """
    layout, parameter = model.space.layout, list(model.space.values())[index]
    columns = [c for c, owner in enumerate(layout.owner) if owner == index]
    if isinstance(parameter, Categorical):
        own = np.eye(len(columns)) * np.max(x[columns])
    elif layout.last[columns[0]] < GRID and columns[0] in layout.stepped:
        own = layout.levels(columns[0])[:, None]
    else:
        own = np.linspace(0, 1, GRID)[:, None]
    grid = np.repeat(x[None], len(own), axis=0)
    grid[:, columns] = own
    if model.limits is not None:
        grid, legal = model.limits.keeping(grid, np.asarray(layout.owner) == index)
        grid = grid[legal] if legal.any() else x[None]
    return np.array([model.space.encode(model.space.decode(row)) for row in grid])
