"""Outcomes of an Optuna study: its objectives and constraints, and what a trial has of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import optuna
from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from optpair.integrations.optuna.attributes import NOISE_VAR, OUTCOMES, REPLICATES
from optpair.integrations.optuna.private import study_attributes
from optpair.problem.defaults import LARGEST
from optpair.problem.outcomes import (
    Constraint,
    Direction,
    Objective,
    Outcome,
    meant,
    outcome_from_json,
)
from optpair.problem.problem import VALUE
from optpair.trials.numbers import check_noise_var, check_value
from optpair.trials.trial import Measurement

Bounds = tuple[float | None, float | None] | Mapping[str, Any] | None
"""Bounds of the only objective, or of objectives by name."""

MET = Constraint(high=0.0)
"""What Optuna calls feasible: a value of at most 0."""

MEASURED_TWICE = 2  # values, at least, of what was measured several times

_log = optuna.logging.get_logger("optuna.optpair")


@dataclass(frozen=True)
class StudyOutcomes:
    """The outcomes of a study by name, in the order of its directions, then its constraints."""

    objectives: Mapping[str, Objective]
    constraints: Mapping[str, str]
    """The name of each constraint by the key that Optuna has for it."""
    declared: Mapping[str, Outcome] | None = None
    """What the study itself says of them, in an order of their own."""

    @classmethod
    def of(
        cls, study: Study, keys: Collection[str], noise: float | None, bounds: Bounds = None
    ) -> StudyOutcomes:
        """Those that a study declares, or else those that Optuna knows of.

        The keys are of the constraints that some trials have.
        """
        told = declared(study)
        if told is not None:
            objectives = {name: o for name, o in told.items() if isinstance(o, Objective)}
            return cls(objectives, {}, told)
        directions = study.directions
        names = [VALUE]
        if keys or len(directions) > 1:
            names = _objective_names(study, len(directions))
        pairs = zip(names, directions, strict=True)
        within = bounds if isinstance(bounds, Mapping) else dict.fromkeys(names, bounds)
        objectives = {n: Objective(_direction(own), noise, within.get(n)) for n, own in pairs}
        return cls(objectives, _constraint_names(keys, names))

    @property
    def all(self) -> dict[str, Outcome]:
        """What a `Problem` needs."""
        if self.declared is not None:
            return dict(self.declared)
        return {**self.objectives, **dict.fromkeys(self.constraints.values(), MET)}

    def measured(self, trial: FrozenTrial) -> dict[str, Measurement] | None:
        """What a told trial has of each outcome; None where one is beyond all bounds.

        A constraint that the trial has no value of is left out, as is one that is met by an
        infinite margin.
        """
        found = self.values(trial)
        if not found or not all(abs(value) <= LARGEST for value in found.values()):
            return None
        objectives, names = tuple(self.objectives), tuple(self.all)
        noise = noise_vars(trial, objectives, names)
        several = replicates(trial, found, objectives, names)
        return {
            name: Measurement(float(v), noise.get(name), several.get(name, ()))
            for name, v in found.items()
        }

    def values(self, trial: FrozenTrial) -> dict[str, float]:
        """The values of a told trial by the outcomes' names, those that it has."""
        if self.declared is not None:
            told = trial.user_attrs.get(OUTCOMES, {})
            return {name: told[name] for name in self.declared if name in told}
        found = dict(zip(self.objectives, trial.values, strict=True))
        for key, value in trial.constraints.items():
            if value >= -LARGEST:
                found[self.constraints[key]] = value
        return found


def declare(outcomes: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """What a study's attribute `OUTCOMES` is, for these outcomes."""
    return [{"name": name} | outcome.to_json() for name, outcome in outcomes.items()]


def declared(study: Study) -> dict[str, Outcome] | None:
    """The outcomes that a study says it has; None where it leaves them to Optuna."""
    told = study_attributes(study).get(OUTCOMES)
    return None if told is None else {own["name"]: outcome_from_json(own) for own in told}


def constraint_keys(trials: Iterable[FrozenTrial]) -> frozenset[str]:
    """The keys of the constraints that trials with a value have."""
    return frozenset(key for trial in trials if trial.values for key in trial.constraints)


def noise_vars(
    trial: FrozenTrial, objectives: tuple[str, ...], names: tuple[str, ...]
) -> dict[str, float]:
    """The known noise variances of a trial's outcomes; what is wrong is said, and not used."""
    return _read(trial, NOISE_VAR, objectives, names, "0.01", check_noise_var)


def replicates(
    trial: FrozenTrial,
    values: Mapping[str, float],
    objectives: tuple[str, ...],
    names: tuple[str, ...],
) -> dict[str, tuple[float, ...]]:
    """Every value of a trial's outcomes that were measured several times; see `noise_vars`.

    Those that do not average what the trial was told are not used, either.
    """
    found = _read(trial, REPLICATES, objectives, names, "[1.2, 1.4]", _check_several)
    for name, own in list(found.items()):
        mean = math.fsum(value / len(own) for value in own)
        if not math.isclose(mean, values.get(name, math.nan), rel_tol=1e-9, abs_tol=1e-300):
            del found[name]
            _log.warning(
                f"Trial {trial.number}'s {REPLICATES} is not used: {name} averages {mean:g} there, "
                f"and the trial has {values.get(name)}; tell the mean as the value."
            )
    return found


def _check_several(given: Any) -> tuple[float, ...]:
    if not isinstance(given, list | tuple) or len(given) < MEASURED_TWICE:
        raise TypeError(f"it must be a list of two numbers or more, not {given!r:.80}")
    return tuple(check_value(number, "it", "leave out what was not measured") for number in given)


def _read(
    trial: FrozenTrial,
    key: str,
    objectives: tuple[str, ...],
    names: tuple[str, ...],
    example: str,
    check: Callable[[Any], Any],
) -> dict[str, Any]:
    """What an attribute says of a trial's outcomes."""
    given = trial.user_attrs.get(key)
    if given is None:
        return {}
    try:
        return _by_name(given, objectives, names, example, check)
    except (TypeError, ValueError) as error:
        _log.warning(f"Trial {trial.number}'s {key} is not used: {error}")
        return {}


def _by_name(
    given: Any,
    objectives: tuple[str, ...],
    names: tuple[str, ...],
    example: str,
    check: Callable[[Any], Any],
) -> dict[str, Any]:
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                known = ", ".join(map(repr, names))
                raise ValueError(
                    f"it must have names among {known}, not {name!r}{meant(name, names)}"
                )
        return {name: check(value) for name, value in given.items()}
    if len(objectives) > 1:
        raise ValueError(
            f"of several objectives it must be a dict by name, like "
            f"{{{objectives[0]!r}: {example}}}, not {given!r:.80}"
        )
    return {objectives[0]: check(given)}


def _direction(given: StudyDirection) -> Direction:
    return "minimize" if given == StudyDirection.MINIMIZE else "maximize"


def _objective_names(study: Study, count: int) -> list[str]:
    """The study's names of its metrics, where each has one of its own; else numbers."""
    given = study.metric_names or []
    if len(set(given)) == count and all(isinstance(name, str) and name for name in given):
        return list(given)
    return [VALUE] if count == 1 else [str(i) for i in range(count)]


def _constraint_names(keys: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """A name for each constraint, in an order that does not depend on which trial came first.

    Those of `constraints_func` are numbers to Optuna, as objectives without names are.
    """
    numbers = sorted((key for key in keys if key.isdecimal()), key=int)
    texts = sorted(key for key in keys if not key.isdecimal())
    names: dict[str, str] = {}
    for key in [*texts, *numbers]:
        name = f"constraint {key}" if key.isdecimal() or not key else key
        while name in taken or name in names.values():
            name = f"constraint {name}"
        names[key] = name
    return names
