"""Fronts, in the user's units: the best compromises where several objectives disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optpair.engine import fronts
from optpair.engine.answers import Answers
from optpair.engine.worth import SURE
from optpair.problem.outcomes import check_target, meant
from optpair.problem.problem import Problem
from optpair.results.best import (
    NONE_POSSIBLE,
    Decode,
    Doubted,
    Predicted,
    doubts,
    feasibility,
    shown,
    unmeasured,
)
from optpair.runtime.shapes import Float
from optpair.trials.trial import Trial


@dataclass(frozen=True)
class FrontPoint:
    """One compromise: its parameters, and the prediction of every outcome there.

    `chance` is the probability that it meets all constraints; None without constraints.
    """

    params: Mapping[str, Any]
    outcomes: Mapping[str, Predicted]
    chance: float | None = None

    @property
    def means(self) -> dict[str, float]:
        """The predicted values by the outcomes' names."""
        return {name: predicted.mean for name, predicted in self.outcomes.items()}

    def __str__(self) -> str:
        known = [f"{name} = {shown(value)}" for name, value in self.params.items()]
        lines = [f"recommended    {', '.join(known)}"]
        lines += [f"predicted      {name} {found}" for name, found in self.outcomes.items()]
        if self.chance is not None:
            lines.append(f"feasible       {feasibility(self.chance)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Front:
    """The best predicted compromises: no point is predicted to beat one in every objective.

    `points` are sorted by the first objective, at most 16 unless more are asked for: those that
    have the largest hypervolume together, the best of each objective among them. `observed` are
    the told trials that no other trial beats by its values; with noise, some are only lucky.
    `hypervolume` measures the whole front: the volume, in the product of the objectives' units,
    between its points and `reference`, with its 95 % interval. To compare fronts over time, give
    your own reference point, `recommend(reference={…})`.

    With constraints, every point meets all of them with a probability of at least 95 %; if there
    is no such point, the front is the one point that is likeliest to. `left_out` are parameters
    that trials have but the model does not, each with the reason. `unmeasured` are constraints of
    which no trial has a value yet.
    """

    points: tuple[FrontPoint, ...]
    hypervolume: float
    hypervolume_interval: tuple[float, float]
    reference: Mapping[str, float]
    observed: tuple[Trial, ...]
    doubted: tuple[Doubted, ...]
    problem: Problem
    left_out: Mapping[str, str] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        found: fronts.Front,
        answers: Answers,
        problem: Problem,
        decode: Decode,
        told: Sequence[Trial],
    ) -> Front:
        """The engine's front in the user's units; `told` are the trials of the rows."""
        points = tuple(_point(found, row, problem, decode) for row in range(len(found.x)))
        objectives = problem.objectives.items()
        ends = zip(objectives, found.reference, strict=True)
        return cls(
            points,
            found.hypervolume,
            found.hypervolume_interval,
            {name: outcome.sign * float(end) for (name, outcome), end in ends},
            tuple(told[row] for row in found.observed),
            doubts(answers, problem, told),
            problem,
            unmeasured=unmeasured(problem, told),
        )

    @property
    def feasible(self) -> bool:
        """Whether its points meet all constraints with a probability of at least 95 %."""
        return all(point.chance is None or point.chance >= SURE for point in self.points)

    def nearest(self, values: Mapping[str, float]) -> FrontPoint:
        """The point whose predicted outcomes are closest to some values.

        Distances are in units of the front's extent.

        Args:
            values: what you would like, for some outcomes: `{"accuracy": 0.95, "energy": 3}`.

        Returns:
            One of `points`.
        """
        target = _checked("values", values, self.problem.names)
        means = np.array([[point.means[name] for name in target] for point in self.points])
        away = (means - np.array(list(target.values()))) / _extent(means)
        return self.points[int(np.argmin(np.sum(away**2, axis=1)))]

    def best_for(self, weights: Mapping[str, float]) -> FrontPoint:
        """The best point for some weights of the objectives.

        For each objective, take how far a point is from the best value, in units of the front's
        extent, times the weight; the largest of these decides. With weights 2 and 1, the point
        gives up half as much of the first objective as of the second.

        Args:
            weights: how much objectives matter, `{"accuracy": 2, "energy": 1}`; others not at all.

        Returns:
            One of `points`.
        """
        given = _checked("weights", weights, self.problem.objectives)
        wrong = {name: weight for name, weight in given.items() if weight < 0}
        if wrong or not any(given.values()):
            raise ValueError(f"weights must be at least 0, and one above 0, not {dict(weights)}")
        signs = np.array([self.problem.outcomes[name].sign for name in given])
        means = np.array([[point.means[name] for name in given] for point in self.points]) * signs
        lack = (means.max(0) - means) / _extent(means) * np.array(list(given.values()))
        return self.points[int(np.lexsort((lack.sum(1), lack.max(1)))[0])]

    def __len__(self) -> int:
        return len(self.points)

    def __str__(self) -> str:
        names, all_params = self.problem.names, [name for p in self.points for name in p.params]
        params = list(dict.fromkeys(all_params))
        head = [*(_titled(name, self.problem) for name in names), *params]
        rows = [
            [
                *(_cell(point.outcomes[name]) for name in names),
                *(shown(point.params[name]) if name in point.params else "" for name in params),
            ]
            for point in self.points
        ]
        if self.points[0].chance is not None:
            head.insert(len(names), "feasible")
            for row, point in zip(rows, self.points, strict=True):
                row.insert(len(names), f"{100 * (point.chance or 0.0):.3g} %")
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in (head, *rows)
        ]
        return "\n".join([*lines, *self._remarks()])

    def _remarks(self) -> list[str]:
        low, high = self.hypervolume_interval
        above = ", ".join(f"{name} = {end:.5g}" for name, end in self.reference.items())
        lines = [
            "±              half of the 95 % interval",
            f"hypervolume    {self.hypervolume:.5g}, 95 % interval {low:.5g} to {high:.5g}; "
            f"reference {above}",
            f"best observed  trials {', '.join(str(t.id) for t in self.observed) or 'none'}",
        ]
        if not self.feasible:
            lines.insert(0, f"feasible       {feasibility(self.points[0].chance or 0.0)}")
        from optpair.report import left_out  # late: a search may end without a page

        lines += [f"doubted        {one}" for one in self.doubted]
        lines += [f"not measured   {name}: no trial has a value yet" for name in self.unmeasured]
        return lines + [f"left out       {line}" for line in left_out(self.left_out)]

    def __repr__(self) -> str:
        return f"Front({len(self.points)} points, hypervolume={self.hypervolume:.5g})"


@dataclass(frozen=True)
class FrontBelief:
    """Samples of the whole optimal front in the user's units, and what is still unknown.

    Each sample is a front: `params` has the parameters of its points, `values` the objectives there
    by name. `next_gain` is what the best next trial would teach about the front, in nats. `gap` is
    how much better the best value of each objective is expected to be on the true front than on the
    recommended one, in its own units, and `hypervolume_gap` how much hypervolume is still to be
    won; intervals are 95 % intervals.

    With constraints, `possible` is the probability that there is a point that meets them all; a
    sample in which there is none is a front without points.
    """

    params: tuple[tuple[Mapping[str, Any], ...], ...]
    values: tuple[Mapping[str, Float[np.ndarray, " R"]], ...]
    next_gain: float
    gap: Mapping[str, float]
    gap_interval: Mapping[str, tuple[float, float]]
    hypervolume_gap: float
    hypervolume_gap_interval: tuple[float, float]
    recommendation: Front
    possible: float | None = None

    @classmethod
    def of(
        cls,
        sets: fronts.Sets,
        answers: Answers,
        problem: Problem,
        decode: Decode,
        told: Sequence[Trial],
    ) -> FrontBelief:
        """The engine's optimal sets in the user's units."""
        objectives = list(problem.objectives.items())
        return cls(
            tuple(tuple(decode(x) for x in own) for own in sets.x),
            tuple(
                {name: o.sign * own[:, k] for k, (name, o) in enumerate(objectives)}
                for own in sets.f
            ),
            sets.next_gain,
            {name: float(sets.gap[k]) for k, (name, _) in enumerate(objectives)},
            {
                name: (float(sets.gap_interval[0, k]), float(sets.gap_interval[1, k]))
                for k, (name, _) in enumerate(objectives)
            },
            sets.hypervolume_gap,
            sets.hypervolume_gap_interval,
            Front.of(sets.front, answers, problem, decode, told),
            sets.possible,
        )

    def __str__(self) -> str:
        if self.possible == 0:
            return f"{self.recommendation}\n{NONE_POSSIBLE}"
        lines = [
            f"still to win   {name}: about {gap:.3g}, at most {self.gap_interval[name][1]:.3g}"
            for name, gap in self.gap.items()
        ]
        lines.append(
            f"still to win   hypervolume: about {self.hypervolume_gap:.3g}, at most "
            f"{self.hypervolume_gap_interval[1]:.3g}; the next trial is worth "
            f"{self.next_gain:.3g} nats"
        )
        return "\n".join([str(self.recommendation), *lines])

    def __repr__(self) -> str:
        return f"FrontBelief({len(self.values)} samples, next_gain={self.next_gain:.3g})"


def points_of(given: object) -> int:
    """How many points a front may have, as the user said; 16 where nothing was said."""
    if given is None:
        return fronts.POINTS
    plain = given.item() if isinstance(given, np.generic) else given
    if isinstance(plain, bool) or not isinstance(plain, int):
        raise TypeError(f"points must be a whole number, at least 1, not {given!r:.80}")
    if plain < 1:
        raise ValueError(f"points must be at least 1, not {plain}")
    return plain


def reference_of(
    given: Mapping[str, float] | None, problem: Problem
) -> Float[np.ndarray, " K"] | None:
    """A reference point of the user's, one value per objective, to be maximised."""
    if given is None:
        return None
    values = _checked("reference", given, problem.objectives)
    missing = [name for name in problem.objectives if name not in values]
    if missing:
        raise ValueError(f"reference needs a value of every objective; {missing[0]!r} is missing")
    return np.array([o.sign * values[name] for name, o in problem.objectives.items()])


def _point(found: fronts.Front, row: int, problem: Problem, decode: Decode) -> FrontPoint:
    pairs = zip(problem.outcomes.items(), found.outcomes, strict=True)
    outcomes = {name: Predicted.of(own.row(row), o.sign) for (name, o), own in pairs}
    chance = None if found.chance is None else float(found.chance[row])
    return FrontPoint(decode(found.x[row]), outcomes, chance)


def _titled(name: str, problem: Problem) -> str:
    """The head of a column: which way is better, or what must hold."""
    if name in problem.constraints:
        return f"{name} ({problem.constraints[name]})"
    return f"{name} ({problem.objectives[name].direction})"


def _cell(predicted: Predicted) -> str:
    low, high = predicted.interval
    return f"{predicted.mean:.4g} ± {high / 2 - low / 2:.2g}"


def _extent(values: Float[np.ndarray, "R K"]) -> Float[np.ndarray, " K"]:
    """How far the front extends in each column; 1 where it does not."""
    extent = np.ptp(values, axis=0)
    return np.where(extent > 0, extent, 1.0)


def _checked(
    what: str, given: object, names: Sequence[str] | Mapping[str, Any]
) -> dict[str, float]:
    """Finite numbers by name."""
    known = ", ".join(map(repr, names))
    if not isinstance(given, Mapping) or not given:
        raise TypeError(f"{what} must be a dict with some of {known}, not {given!r:.80}")
    for name in given:
        if name not in names:
            raise ValueError(
                f"{what} must have names among {known}, not {name!r}{meant(name, names)}"
            )
    return {name: check_target(f"{what}[{name!r}]", value) for name, value in given.items()}
