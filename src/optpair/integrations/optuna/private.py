"""What is used of Optuna's private parts: one function for each, tested by name."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from optuna import Study, Trial
from optuna.study._constrained_optimization import _CONSTRAINTS_KEY
from optuna.trial import FrozenTrial, TrialState, create_trial


def identity(study: Study) -> tuple[Any, int]:
    """What a study is known by: its storage, and its number there."""
    return study._storage, study._study_id


def study_attributes(study: Study) -> dict[str, Any]:
    """The user attributes of a study, which Optuna does not show of Hyperband's brackets."""
    attributes: dict[str, Any] = study._storage.get_study_user_attrs(study._study_id)
    return attributes


def bracket_of(study: Study | None) -> Any:
    """Hyperband's bracket, which Optuna shows as a study of its own; None elsewhere."""
    return getattr(study, "_bracket_id", None)


def ask_with(study: Study, given: Mapping[str, Any]) -> Trial:
    """A new trial of which some parameters are given.

    As `enqueue_trial` and `ask` in one step, between which no other worker can take it.
    """
    template = create_trial(state=TrialState.RUNNING, system_attrs={"fixed_params": dict(given)})
    study._thread_local.cached_all_trials = None
    return Trial(study, study._storage.create_new_trial(study._study_id, template_trial=template))


def set_system_attribute(study: Study, trial: FrozenTrial | Trial, key: str, value: Any) -> None:
    """Set a system attribute of a trial that has not ended."""
    study._storage.set_trial_system_attr(trial._trial_id, key, value)


def set_user_attribute(study: Study, trial: FrozenTrial | Trial, key: str, value: Any) -> None:
    """Set a user attribute of a trial that another process may have asked for."""
    study._storage.set_trial_user_attr(trial._trial_id, key, value)


def set_constraints(study: Study, trial: FrozenTrial, values: Sequence[float]) -> None:
    """Set what `constraints_func` returned where `trial.constraints` and other samplers find it."""
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise TypeError(_wrong(trial, values)) from error
    if any(math.isnan(number) for number in numbers):
        raise ValueError(_wrong(trial, values))
    set_system_attribute(study, trial, _CONSTRAINTS_KEY, numbers)


def _wrong(trial: FrozenTrial | Trial, values: Any) -> str:
    return (
        "constraints_func must return a list of numbers, each at most 0 if the trial meets that "
        f"constraint, and for trial {trial.number} returned {values!r:.80}"
    )


def constraint_attribute(name: str) -> str:
    """The system attribute in which `trial.set_constraint` keeps a constraint's value."""
    return f"{_CONSTRAINTS_KEY}:{name}"


def broken_off() -> bool:
    """Whether the trial that is being told ends with the search: by Ctrl-C, or an error not caught.

    Optuna calls it failed all the same, and keeps what it knows of the error to itself.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_run_trial" and "func_err" in frame.f_locals:
            error, caught = frame.f_locals["func_err"], frame.f_locals.get("catch", ())
            return error is not None and not isinstance(error, caught)
    return False
