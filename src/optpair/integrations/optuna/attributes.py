"""Attributes of Optuna trials: what is written beside parameters and value for other processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from optpair.integrations.optuna.private import set_system_attribute, set_user_attribute

__all__ = ["set_system_attribute", "set_user_attribute"]

NOISE_VAR = "optpair:noise_var"
"""The user attribute that holds the variance of a value's noise, where it is known."""

FAILED = "optpair:failed"
"""Set where the objective failed. A failed trial without it lost its worker: it teaches nothing."""

FORGOTTEN = "optpair:forgotten"
"""Set on a trial that is ended though its objective did not fail: its worker died, say."""

BY_HAND = "optpair:by_hand"
"""Set on trials that people run: nobody takes them for dead."""

OUTPUT = "optpair:output"
"""What a failed trial had to say."""

PARAMS = "optpair:params"
LONGEST = 2000
"""Characters that every storage keeps in one attribute."""

State = Literal["told", "failed", "pruned", "running", "by hand", "enqueued", "stale", "cancelled"]


def state(trial: FrozenTrial) -> State:
    """What became of a trial; pruned, stale and cancelled ones are forgotten by the model."""
    if trial.state == TrialState.WAITING:
        return "enqueued"
    if trial.state == TrialState.RUNNING:
        return "by hand" if BY_HAND in trial.user_attrs else "running"
    if trial.value is not None:
        return "told"
    if trial.state == TrialState.PRUNED:
        return "pruned"
    if FAILED in trial.system_attrs:
        return "failed"
    return "cancelled" if trial.system_attrs.get(FORGOTTEN) == "cancelled" else "stale"


def publish(
    study: Study,
    trial: FrozenTrial,
    params: Mapping[str, Any],
    distributions: Mapping[str, BaseDistribution],
) -> None:
    """Let other processes see all parameters of a trial at once, before it is evaluated.

    Optuna stores parameters one by one, as the objective asks for them. Text that is too long for
    one attribute is cut in pieces that say how many there are.
    """
    internal = {name: distributions[name].to_internal_repr(v) for name, v in params.items()}
    text = json.dumps(internal)
    pieces = [text[i : i + LONGEST] for i in range(0, len(text), LONGEST)]
    for i, piece in enumerate(pieces):
        set_system_attribute(study, trial, f"{PARAMS}:{i + 1}/{len(pieces)}", piece)


def published(
    trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]
) -> dict[str, Any] | None:
    """What is known of a trial's parameters before it has ended; None while one is missing."""
    known = {**_suggested(trial, distributions), **_enqueued(trial), **trial.params}
    if not distributions.keys() <= known.keys():
        return None
    return {name: known[name] for name in distributions}


def _enqueued(trial: FrozenTrial) -> dict[str, Any]:
    """What `study.enqueue_trial` fixed."""
    return dict(trial.system_attrs.get("fixed_params", {}))


def is_enqueued(trial: FrozenTrial, names: Mapping[str, Any]) -> bool:
    """Whether `study.enqueue_trial` fixed all these parameters."""
    return names.keys() <= _enqueued(trial).keys()


def _suggested(trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """What `publish` wrote, once all pieces are there."""
    pieces = {key: text for key, text in trial.system_attrs.items() if key.startswith(PARAMS)}
    if not pieces:
        return {}
    count = int(next(iter(pieces)).rpartition("/")[2])
    if len(pieces) < count:
        return {}
    text = "".join(pieces[f"{PARAMS}:{i + 1}/{count}"] for i in range(count))
    internal = json.loads(text)
    try:
        return {
            name: distributions[name].to_external_repr(value)
            for name, value in internal.items()
            if name in distributions
        }
    except (IndexError, ValueError):  # the choices have changed since
        return {}
