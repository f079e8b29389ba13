"""Answers about a study as JSON: the recommended point, or the front of the best compromises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optpair.problem.problem import VALUE
from optpair.problem.stop import Stop
from optpair.studies.config import StudyFile
from optpair.trials.trial import Trial

if TYPE_CHECKING:
    from optpair.results.best import Doubted, Predicted, Recommendation
    from optpair.results.front import Front, FrontPoint


def as_json(found: Recommendation | Front, file: StudyFile) -> dict[str, Any]:
    """What a person or a script is told, with the words for people as `text`."""
    from optpair.results.front import Front  # late: commands that only read a study do without it

    answer = _front(found) if isinstance(found, Front) else _point(found, file)
    return answer | {
        "doubted": [_doubted(one, file) for one in found.doubted],
        "left_out": dict(found.left_out),
        "text": str(found),
    }


def to_go(trials: int | None, stop: Stop) -> str:
    """A line for people on when the study will be over; empty if it is."""
    if trials == 0:
        return ""
    if trials is None:
        return f"\nto go          many more trials, or too early to say, until {stop}"
    return f"\nto go          about {trials} more trial{'s' * (trials > 1)} until {stop}"


def _point(found: Recommendation, file: StudyFile) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "params": dict(found.params),
        "mean": found.mean,
        "std": found.std,
        "interval": list(found.interval),
    }
    if found.borrowed:
        answer["borrowed"] = dict(found.borrowed)
    if not file.named:
        observed = {"trial": found.observed.id, "value": found.observed.value}
        return answer | {"best_observed": observed | {"params": dict(found.observed.params)}}
    return answer | {
        "outcomes": _predicted(found.outcomes),
        "chance": found.chance,
        "best_observed": _observed(found.observed),
    }


def _front(found: Front) -> dict[str, Any]:
    return {
        "front": [_compromise(point) for point in found.points],
        "hypervolume": found.hypervolume,
        "hypervolume_interval": list(found.hypervolume_interval),
        "reference": dict(found.reference),
        "best_observed": [_observed(trial) for trial in found.observed],
    }


def chosen(point: FrontPoint) -> dict[str, Any]:
    """One point of a front, in place of its words for people."""
    return {"chosen": _compromise(point), "text": str(point)}


def _compromise(point: FrontPoint) -> dict[str, Any]:
    return {
        "params": dict(point.params),
        "outcomes": _predicted(point.outcomes),
        "chance": point.chance,
    }


def _predicted(outcomes: Mapping[str, Predicted]) -> dict[str, Any]:
    return {
        name: {"mean": own.mean, "std": own.std, "interval": list(own.interval)}
        for name, own in outcomes.items()
    }


def _observed(trial: Trial) -> dict[str, Any]:
    values = {name: found.value for name, found in trial.outcomes.items()}
    return {"trial": trial.id, "outcomes": values, "params": dict(trial.params)}


def _doubted(one: Doubted, file: StudyFile) -> dict[str, Any]:
    named = {} if one.outcome == VALUE and not file.named else {"outcome": one.outcome}
    return {"trial": one.trial.id, **named, "expected": one.expected}
