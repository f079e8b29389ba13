"""Candidates of a search: points to cross-validate, and what the optimizer is told of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from optpair.integrations.sklearn.folds import noise_of_means
from optpair.integrations.sklearn.outcomes import choice
from optpair.integrations.sklearn.ranges import without_round_off
from optpair.integrations.sklearn.resources import Resource
from optpair.integrations.sklearn.rows import RESOURCES
from optpair.integrations.sklearn.space import NumberedSpace
from optpair.integrations.sklearn.splits import Portions
from optpair.optimizer import Optimizer
from optpair.problem.defaults import LARGEST
from optpair.trials.trial import Trial

Point = Trial | Mapping[str, Any]

SHORTEST = 1e-6  # seconds that a cross-validation takes at least


class Candidate(NamedTuple):
    """A point of the search, what the estimator is given, and how much of the resource it gets."""

    point: Point
    run: dict[str, Any]
    """The parameters of the point, with the amount of each fidelity that it really gets."""
    params: dict[str, Any]
    resources: int | None = None

    @classmethod
    def of(
        cls,
        point: Point,
        space: NumberedSpace,
        resource: Resource | None,
        tried: Sequence[Trial],
        *,
        whole: bool,
    ) -> Candidate:
        """From a trial, or from the parameters of another point; `whole` is at the targets.

        An amount that is almost all becomes all, where that was not tried.
        """
        asked = dict(point.params if isinstance(point, Trial) else point)
        run = {**asked, **space.space.targets}
        almost = resource is not None and resource.is_almost_all(asked[resource.name])
        if not (whole or (almost and all(run != trial.actual for trial in tried))):
            run = asked
        return cls(point, run, space.named(run), None if resource is None else run[resource.name])


class Scores(NamedTuple):
    """The scores of one trial on each fold, or one mean of them, by outcome, and its seconds."""

    scores: Mapping[str, np.ndarray]
    seconds: float | None = None


def alike(candidates: Sequence[Candidate], resource: Resource | None) -> Iterator[list[Candidate]]:
    """Candidates in their order, those together that are trained on as many rows."""
    samples = resource is not None and resource.is_samples
    for _, some in groupby(candidates, lambda own: own.resources if samples else None):
        yield list(some)


def more_of(
    candidates: Sequence[Candidate], resource: Resource | None, portions: Portions
) -> dict[str, Any]:
    """What scikit-learn is given beside the parameters of candidates that are alike."""
    if resource is None:
        return {}
    given = [candidate.resources for candidate in candidates]
    more: dict[str, Any] = {"more_results": {RESOURCES: given}}
    return more | ({"cv": portions.of(given[0] or 0)} if resource.is_samples else {})


def next_points(optimizer: Optimizer, left: int, batch: int, metric: str) -> list[Point]:
    """What to evaluate next; the last trial puts the best predicted point to the test."""
    last = last_points(optimizer, metric) or _best_in_part(optimizer, metric) if left == 1 else []
    return last or [*optimizer.ask(min(batch, max(left - 1, 1)))]


def last_points(optimizer: Optimizer, metric: str) -> list[Point]:
    """The best predicted point, where it was not tried and there is enough to predict it from.

    Where there is a fidelity it is at the target, also where few trials have a value.
    """
    told = [trial for trial in optimizer.trials if trial.state == "told"]
    whole = any(_is_whole(trial, optimizer) for trial in told)
    if told and (len(told) > len(optimizer.space) or not whole):
        best = choice(optimizer.recommend(), metric).params
        if all(dict(best) != trial.actual for trial in told):
            return [best]
    return []


def _best_in_part(optimizer: Optimizer, metric: str) -> list[Point]:
    """The best predicted of the points that were looked at with less than all, to be seen whole."""
    targets = optimizer.space.targets
    told = [trial for trial in optimizer.trials if trial.state == "told"]
    seen = [dict(trial.actual) for trial in told if _is_whole(trial, optimizer)]
    others = [{**trial.actual, **targets} for trial in told]
    others = [own for own in others if own not in seen]
    if not others:
        return []
    found, objectives = optimizer.predict(others), optimizer.problem.objectives
    name = metric if metric in objectives else next(iter(objectives))
    means = (found[name] if isinstance(found, dict) else found).mean
    return [others[int(np.argmax(objectives[name].sign * means))]]


def _is_whole(trial: Trial, optimizer: Optimizer) -> bool:
    """Whether a trial was at the targets of all fidelities."""
    return all(trial.actual[name] == u for name, u in optimizer.space.targets.items())


def tell(optimizer: Optimizer, candidate: Candidate, row: Scores, *, timed: bool) -> None:
    """Tell the mean of each outcome, with the seconds as the cost where that is wanted."""
    outcomes = optimizer.problem.outcomes
    values = {
        name: without_round_off(float(np.mean(scores)), outcomes[name])
        for name, scores in row.scores.items()
    }
    cost = max(row.seconds, SHORTEST) if timed and row.seconds is not None else None
    point = candidate.point if isinstance(candidate.point, Trial) else candidate.run
    run = candidate.run if isinstance(point, Trial) and candidate.run != point.params else None
    if all(abs(value) <= LARGEST for value in values.values()):
        optimizer.tell(point, values, params=run, cost=cost)
    else:  # NaN too
        optimizer.tell(point, failed=True, params=run, cost=cost)


def judge_noise(optimizer: Optimizer, rows: Sequence[Scores], ratio: float) -> None:
    """Judge the noise of every trial anew, by all scores so far."""
    told = [trial for trial in optimizer.trials if trial.state == "told"]
    if not told:
        return
    same = Counter(repr(trial.actual) for trial in told)
    repeats = np.array([same[repr(trial.actual)] for trial in told])
    noise = {}
    for name, outcome in optimizer.problem.outcomes.items():
        scores = np.array([rows[trial.id].scores[name] for trial in told])
        found = noise_of_means(scores, ratio, repeats) if outcome.noise is None else None
        if found is not None:
            noise[name] = found
    for i, trial in enumerate(told):
        values = {name: measured.value for name, measured in trial.outcomes.items()}
        own = {name: float(found[i]) for name, found in noise.items()}
        optimizer.revise(trial, values, noise_var=own or None)
