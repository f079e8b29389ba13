"""Results of trials: what an evaluation gave, and how a storage of Optuna's keeps it."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from optuna.trial import FrozenTrial, TrialState

from optpair.integrations.optuna.attributes import (
    ACTUAL,
    COST,
    FAILED,
    NOISE_VAR,
    NOTES,
    OUTCOMES,
    OUTPUT,
    REPLICATES,
    continues,
    cost_of,
    state,
)
from optpair.integrations.optuna.private import constraint_attribute
from optpair.problem.defaults import LARGEST
from optpair.problem.outcomes import Constraint, Objective, Outcome, meant
from optpair.problem.problem import VALUE
from optpair.studies.config import StudyFile
from optpair.studies.outcomes import NOISE_VAR as NOISE
from optpair.studies.outcomes import PRICE
from optpair.trials.told import is_list


@dataclass(frozen=True)
class Result:
    """What a trial gave: values, and perhaps the variances of their noise, by the outcomes' names.

    Without any value it failed. `problem` says what went wrong; with values, what does not count.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    noise_var: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""
    cost: float | None = None
    replicates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Every value of an outcome that was measured several times; their mean is in `values`."""
    actual: Mapping[str, Any] = field(default_factory=dict)
    """What was really run, of the parameters of which that differs from what was asked for."""
    notes: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.values:
            return f"no value ({self.problem})"
        if self.values.keys() == {VALUE}:
            noise = self.noise_var.get(VALUE)
            return f"{self.values[VALUE]!r}" + (
                "" if noise is None else f" with noise_var {noise!r}"
            )
        noise_var = f" with noise_var {dict(self.noise_var)}" if self.noise_var else ""
        return ", ".join(f"{name} = {value!r}" for name, value in self.values.items()) + noise_var


def brief(values: Mapping[str, float]) -> str:
    """Values for people: a number, or name = number for each outcome."""
    if values.keys() == {VALUE}:
        return f"{values[VALUE]:.5g}"
    return ", ".join(f"{name} = {value:.5g}" for name, value in values.items())


def read(returned: object, file: StudyFile) -> Result:
    """A result from what a function returned, or a command has printed.

    A number will do where there is one outcome; a dict has some outcomes by name, and perhaps
    `noise_var` and `cost`. An outcome that is None was not measured; of several outcomes, neither
    was one that is not finite. A list of numbers says that it was measured several times.
    """
    try:
        return _read(returned, file)
    except ValueError as error:
        return Result(problem=str(error))


def _read(returned: object, file: StudyFile) -> Result:
    names = list(file.outcomes)
    if isinstance(returned, Mapping):
        table = dict(returned)
    elif len(names) == 1:
        table = {names[0]: returned}
    else:
        raise ValueError(
            f"the result must be a table of values by name ({', '.join(map(repr, names))}), not "
            f"{reprlib.repr(returned)}"
        )
    noise = table.pop(NOISE, None)
    cost = None if PRICE in file.outcomes else table.pop(PRICE, None)
    if not file.named:  # there may be other facts beside it
        table = {VALUE: table.get(VALUE)}
    if len(names) > 1:
        table = {name: _finite(given) for name, given in table.items()}
    result = checked(table, noise, file)
    try:
        return replace(result, cost=None if cost is None else check_cost(cost))
    except ValueError as error:
        return replace(result, problem=f"{error}; the value counts without it")


def _finite(given: object) -> object:
    """What was measured of one of several outcomes: None instead of NaN, or of what overflowed."""
    if is_list(given):
        numbers = [own for own in given if _finite(own) is not None]  # type: ignore[attr-defined]
        return numbers or None
    number = as_number(given)
    return given if number is None or abs(number) <= LARGEST else None


def checked(values: Mapping[Any, Any], noise: object, file: StudyFile) -> Result:
    """A result from values by name, and variances likewise.

    Raises:
        ValueError: if a name is none of an outcome, a value is not finite or beyond its bounds, a
            variance has no value, or there is no value at all.
    """
    several = {}
    for name, given in values.items():
        _check_name(name, file.outcomes)
        if given is not None or not file.named:
            numbers = list(given) if is_list(given) else [given]
            if not numbers:
                raise ValueError(f"{_label(name, file)} must not be an empty list")
            several[name] = tuple(_value(name, number, file) for number in numbers)
    if not several:
        raise ValueError(f"the result has no value of {', '.join(map(repr, file.outcomes))}")
    found = {name: math.fsum(v / len(own) for v in own) for name, own in several.items()}
    repeated = {name: own for name, own in several.items() if len(own) > 1}
    return Result(found, _variances(noise, found, file), replicates=repeated)


def _check_name(name: object, outcomes: Mapping[str, Outcome]) -> None:
    if name not in outcomes:
        known = ", ".join(map(repr, outcomes))
        raise ValueError(
            f"there is no outcome {reprlib.repr(name)}: [outcomes] has {known}"
            f"{meant(name, outcomes)}"
        )


def _value(name: str, given: object, file: StudyFile) -> float:
    number, label = as_number(given), _label(name, file)
    if number is None or not abs(number) <= LARGEST:
        raise ValueError(f"{label} must be a finite number, not {reprlib.repr(given)}")
    outcome = file.outcomes[name]
    low, high = outcome.reach
    if not low <= outcome.sign * number <= high:
        ends = (low, high) if outcome.sign > 0 else (-high, -low)
        raise ValueError(
            f"{label} must be within its bounds, {ends[0]:g} to {ends[1]:g}, not {number:g}"
        )
    return number


def _label(name: str, file: StudyFile) -> str:
    """What messages call an outcome."""
    return name if file.named else "the value"


def _variances(noise: object, found: Mapping[str, float], file: StudyFile) -> dict[str, float]:
    if noise is None:
        return {}
    if not isinstance(noise, Mapping):
        if len(file.outcomes) > 1:
            raise ValueError(
                f"noise_var must have variances by the outcomes' names, not {reprlib.repr(noise)}"
            )
        noise = {next(iter(file.outcomes)): noise}
    known = {}
    for name, given in noise.items():
        _check_name(name, file.outcomes)
        variance = as_number(given)
        if variance is None or not 0 <= variance < math.inf:
            given = reprlib.repr(given)
            raise ValueError(f"noise_var must be a finite variance ≥ 0, not {given}")
        if name not in found:
            raise ValueError(f"noise_var has {name!r}, which has no value")
        known[name] = variance
    return known


def check_cost(given: object) -> float:
    """A cost that can be told: a finite number above 0."""
    cost = as_number(given)
    if cost is None or not 0 < cost <= LARGEST:
        raise ValueError(f"the cost must be a finite number above 0, not {reprlib.repr(given)}")
    return cost


def as_number(value: object) -> float | None:
    """The float of what is a number; None of anything else."""
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return None


class Kept(NamedTuple):
    """What a storage keeps of a result: the state, Optuna's values, and attributes."""

    state: TrialState
    values: list[float] | None
    user: dict[str, Any]
    system: dict[str, Any]


def kept(result: Result, file: StudyFile) -> Kept:
    """What a storage keeps of a result.

    A trial that lacks an objective has no values to Optuna; all that was measured is an attribute.
    """
    user: dict[str, Any] = {OUTPUT: result.problem} if result.problem else {}
    user |= {COST: result.cost} if result.cost is not None else {}
    user |= {ACTUAL: dict(result.actual)} if result.actual else {}
    user |= {NOTES: dict(result.notes)} if result.notes else {}
    if not result.values:
        return Kept(TrialState.FAIL, None, user, {FAILED: True})
    if not file.named:
        user |= {NOISE_VAR: result.noise_var[VALUE]} if result.noise_var else {}
        user |= {REPLICATES: list(result.replicates[VALUE])} if result.replicates else {}
        return Kept(TrialState.COMPLETE, list(result.values.values()), user, {})
    user |= {OUTCOMES: dict(result.values)}
    user |= {NOISE_VAR: dict(result.noise_var)} if result.noise_var else {}
    user |= {REPLICATES: listed(result)} if result.replicates else {}
    excess = {
        constraint_attribute(name): _excess(outcome, result.values[name])
        for name, outcome in file.constraints.items()
        if name in result.values
    }
    if not all(name in result.values for name in file.objectives):
        return Kept(TrialState.PRUNED, None, user, excess)
    values = [result.values[name] for name in file.objectives]
    return Kept(TrialState.COMPLETE, values, user, excess)


def listed(result: Result) -> dict[str, list[float]]:
    """The replicates as JSON has them."""
    return {name: list(own) for name, own in result.replicates.items()}


def _excess(outcome: Constraint, value: float) -> float:
    """How far a value is beyond its limits; at most 0 where it meets them, as Optuna has it."""
    ends = [outcome.low is not None and outcome.low - value]
    ends += [outcome.high is not None and value - outcome.high]
    return max(end for end in ends if end is not False)


def values_of(trial: FrozenTrial, file: StudyFile) -> dict[str, float]:
    """The values of a trial by the outcomes' names; none where it was not told."""
    if state(trial) != "told":
        return {}
    if not file.named:
        return {VALUE: trial.values[0]}
    told = trial.user_attrs.get(OUTCOMES, {})
    return {name: told[name] for name in file.outcomes if name in told}


def spent(trials: Iterable[FrozenTrial], file: StudyFile) -> float:
    """What the trials that have ended cost: as was told or, where not, in looks at the target."""
    known = {trial.number: trial for trial in trials}
    ended = [trial for trial in known.values() if state(trial) in ("told", "failed")]
    costs = [(trial, cost_of(trial)) for trial in ended]
    return math.fsum(
        _relative_cost(trial, known, file) if cost is None else cost for trial, cost in costs
    )


def _relative_cost(trial: FrozenTrial, known: Mapping[int, FrozenTrial], file: StudyFile) -> float:
    """What a trial costs; if it continues another, only the additional cost."""
    before = known.get(-1 if (number := continues(trial)) is None else number)
    paid = 0.0 if before is None else file.space.relative_cost(before.params)
    return max(file.space.relative_cost(trial.params) - paid, 0.0)


def spending(trials: Sequence[FrozenTrial], file: StudyFile) -> dict[str, Any]:
    """What was spent, and what may be: where costs were told, or where looks cost less."""
    told = any(cost_of(trial) is not None for trial in trials)
    if file.budget is None and not told and not file.space.fidelities:
        return {}
    return {
        "spent": spent(trials, file),
        "budget": None if file.budget is None else file.budget.most,
        "unit": "seconds" if file.budget is not None and file.budget.timed else "",
    }


def spent_words(found: Mapping[str, Any]) -> str:
    """What `spending` says, for people: 3.2 of 8 seconds spent."""
    if not found:
        return ""
    budget = "" if found["budget"] is None else f" of {found['budget']:g}"
    unit = f" {found['unit']}" if found["unit"] else ""
    return f"{found['spent']:.4g}{budget}{unit} spent"


def best(trials: list[FrozenTrial], file: StudyFile) -> list[FrozenTrial]:
    """The best of some trials by their values: of several objectives, those on the front.

    Only those count that have a value of every objective, and meet every constraint.
    """
    values = {trial.number: values_of(trial, file) for trial in trials}
    signs = {name: o.sign for name, o in file.objectives.items()}
    able = [trial for trial in trials if _meets(values[trial.number], file)]
    if not able:
        return []
    rows = [[sign * values[trial.number][name] for name, sign in signs.items()] for trial in able]
    if len(signs) == 1:
        return [able[max(range(len(able)), key=lambda i: rows[i][0])]]
    import numpy as np

    from optpair.engine.worth import non_dominated  # late: few studies have several objectives

    front = non_dominated(np.array(rows))
    return [trial for trial, on in zip(able, front, strict=True) if on]


def _meets(values: Mapping[str, float], file: StudyFile) -> bool:
    return all(
        name in values and (isinstance(outcome, Objective) or outcome.met(values[name]))
        for name, outcome in file.outcomes.items()
    )
