"""Trials of a study as the rows of a page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from optpair import report
from optpair.integrations.optuna.attributes import (
    OUTPUT,
    WORKER,
    actual_of,
    cost_of,
    notes_of,
    published,
    shown_state,
    state,
)
from optpair.integrations.optuna.model import StudyModel
from optpair.integrations.optuna.outcomes import StudyOutcomes, noise_vars
from optpair.problem.defaults import LARGEST
from optpair.report.rows import on_the_way
from optpair.trials.trial import Trial


def is_known(trial: FrozenTrial, model: StudyModel | None) -> bool:
    """Whether a page shows a trial; one that ended since the model has read is not known yet."""
    return model is None or model.has_read(trial)


def row_of(
    trial: FrozenTrial,
    model: StudyModel | None,
    outcomes: StudyOutcomes,
    runs: Mapping[int, Trial],
) -> report.Row:
    """A trial as a page shows it; `runs` are those of the model, by the number of the last look."""
    params, told = _shown_params(trial, model), state(trial) == "told"
    (name,) = outcomes.objectives
    value = outcomes.values(trial).get(name) if told else None
    finite = value is None or abs(value) <= LARGEST
    became = "pruned" if trial.state == TrialState.PRUNED else shown_state(trial)
    continued = _is_continued(trial, model, runs)
    return report.Row(
        trial.number,
        "continued" if continued else became if finite else "failed",  # as the model takes it
        params,
        value,
        noise_vars(trial, (name,), (name,)).get(name),
        str(trial.user_attrs.get(OUTPUT) or ""),
        None if model is None or continued else _point(trial, model),
        notes=notes_of(trial),
        began=_seconds(trial.datetime_start),
        ended=_seconds(trial.datetime_complete),
        worker=str(trial.user_attrs.get(WORKER, "")),
        steps=_on_the_way(trial, runs.get(trial.number), model),
        cost=cost_of(trial),
    )


def _is_continued(trial: FrozenTrial, model: StudyModel | None, runs: Mapping[int, Trial]) -> bool:
    """Whether the model has a trial as a look of the one that continues it."""
    known = model is not None and model.trials.get(trial.number) is not None
    return known and trial.number not in runs


def _on_the_way(
    trial: FrozenTrial, run: Trial | None, model: StudyModel | None
) -> dict[float, float]:
    """The values that a trial reported, and those of the trials that it continues."""
    if run is not None and model is not None and fidelity(model) is not None:
        return on_the_way(model.problem.space, run)
    return {float(step): value for step, value in trial.intermediate_values.items()}


def fidelity(model: StudyModel) -> str | None:
    """The only fidelity of the space, where it has one and trials do not report steps."""
    names = list(model.problem.space.targets)
    return names[0] if len(names) == 1 and model.domain.steps is None else None


def _seconds(when: datetime | None) -> float | None:
    """A time of Optuna's, in seconds since 1970."""
    return None if when is None else when.timestamp()


def joint_row(trial: FrozenTrial, model: StudyModel, runs: Mapping[int, Trial]) -> report.Row:
    """A trial with several outcomes as a page shows it: told only where the model has it."""
    continued = _is_continued(trial, model, runs)
    params, became = _shown_params(trial, model), shown_state(trial)
    known = model.trials.get(trial.number)
    taken = "left out" if known is None else known.state
    found = {} if known is None else known.outcomes
    return report.Row(
        trial.number,
        "continued" if continued else taken if became == "told" else became,
        params,
        message=str(trial.user_attrs.get(OUTPUT) or ""),
        x=None if continued else _point(trial, model),
        notes=notes_of(trial),
        outcomes={name: own.value for name, own in found.items()},
        began=_seconds(trial.datetime_start),
        ended=_seconds(trial.datetime_complete),
        worker=str(trial.user_attrs.get(WORKER, "")),
    )


def _shown_params(trial: FrozenTrial, model: StudyModel | None) -> dict[str, Any]:
    """What was run; of a trial that has not ended, also what is suggested."""
    params: dict[str, Any] = {**trial.params, **actual_of(trial)}
    if model is not None and not trial.state.is_finished():
        params |= published(trial, model.domain.distributions) or {}
    return params


def _point(trial: FrozenTrial, model: StudyModel) -> np.ndarray | None:
    """What was not asked for, or not yet, is where it was suggested."""
    return model.point(trial)
