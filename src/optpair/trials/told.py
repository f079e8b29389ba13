"""Told values: what `tell` says of a trial, by the names of its outcomes, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

import numpy as np

from optpair.problem.outcomes import Outcome, meant
from optpair.problem.problem import Problem
from optpair.trials.notes import check_notes, check_reason
from optpair.trials.numbers import FAILED, check_noise_var, check_value, shown
from optpair.trials.trial import Measurement

MISSING = "leave out an outcome that was not measured"

Value = SupportsFloat | Sequence[SupportsFloat]
"""A number, or a list of them where it was measured several times."""

Told = Value | Mapping[str, Value] | None
"""A value, or values by the names of their outcomes."""


def read_told(problem: Problem, value: object, noise_var: object, failed: object) -> dict[str, Any]:
    """What `tell` changes in a trial, checked before anything is changed."""
    if not isinstance(failed, bool | np.bool_):
        raise TypeError(f"failed must be True or False, not {shown(failed)}")
    if failed:
        if value is not None or noise_var is not None:
            raise ValueError("a failed trial has no value: pass failed=True alone")
        return {"state": "failed", "outcomes": {}}
    values, noises = _by_name(problem, value, "value"), _by_name(problem, noise_var, "noise_var")
    outcomes = {}
    for name, given in values.items():
        noise = noises.pop(name, None)
        label = f"noise_var[{name!r}]" if isinstance(noise_var, Mapping) else "noise_var"
        if is_list(noise):
            raise TypeError(
                f"{label} must be one real number, the variance of each value, not {shown(noise)}"
            )
        known = None if noise is None else check_noise_var(noise, label)
        numbers = list(given) if is_list(given) else [given]
        outcomes[name] = _measured(problem, name, numbers, known)
    if any(noise is not None for noise in noises.values()):
        raise ValueError(f"noise_var is given for {', '.join(noises)}, which has no value")
    return {"state": "told", "outcomes": outcomes}


def read_remarks(problem: Problem, notes: object, reason: object, failed: object) -> dict[str, Any]:
    """What `tell` keeps beside the values."""
    notes = check_notes(notes, problem)
    return {"notes": notes, "reason": check_reason(reason, failed=bool(failed))}


def _by_name(problem: Problem, given: object, what: str) -> dict[str, Any]:
    """One number for the only outcome, or some by the names of their outcomes."""
    names = problem.names
    if not isinstance(given, Mapping):
        if len(names) > 1 and given is None and what == "noise_var":
            return {}
        if len(names) > 1:
            raise TypeError(
                f"{what} must be a dict with some of {', '.join(map(repr, names))}, "
                f"not {shown(given)}" + (f"; {FAILED}" if given is None else "")
            )
        return {names[0]: given}
    unknown = [name for name in given if name not in names]
    if unknown or not given:
        hint = meant(unknown[0], names) if unknown else f"; {FAILED}"
        raise ValueError(
            f"{what} must have names of outcomes, {', '.join(map(repr, names))}, "
            f"not {shown(dict(given))}{hint}"
        )
    return dict(given)


def _measured(
    problem: Problem, name: str, given: list[Any], noise_var: float | None
) -> Measurement:
    """What was measured of an outcome, once or several times."""
    several = len(problem.outcomes) > 1
    way_out = f"{MISSING}; {FAILED}" if several else FAILED
    label = name if several else "value"
    if not given:
        raise ValueError(f"{label!r} is an empty list; {way_out}")
    numbers = [check_value(number, label, way_out) for number in given]
    for number in numbers:
        check_reach(name, number, problem.outcomes[name])
    if len(numbers) == 1:
        return Measurement(numbers[0], noise_var)
    mean = math.fsum(number / len(numbers) for number in numbers)
    return Measurement(mean, noise_var, tuple(numbers))


def check_reach(name: str, number: float, outcome: Outcome) -> None:
    """Raise where a value is beyond what its outcome can ever be."""
    low, high = outcome.reach
    if not low <= outcome.sign * number <= high:
        ends = (low, high) if outcome.sign > 0 else (-high, -low)
        raise ValueError(
            f"{name} must be within its bounds, {ends[0]:g} to {ends[1]:g}, not {number:g}; if it "
            "can be there, make the optimizer with wider bounds, or without"
        )


def is_list(given: object) -> bool:
    """Whether these are several numbers: a list, a tuple, or an array of one dimension."""
    return isinstance(given, list | tuple) or getattr(given, "ndim", 0) == 1
