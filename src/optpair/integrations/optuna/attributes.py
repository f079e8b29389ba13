"""Attributes of Optuna trials: what other processes need besides parameters and values."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from optpair.integrations.optuna.private import (
    set_system_attribute,
    set_user_attribute,
    study_attributes,
)

__all__ = ["set_system_attribute", "set_user_attribute"]

NOISE_VAR = "optpair:noise_var"
"""The user attribute that holds the variance of a value's noise, where it is known."""

REPLICATES = "optpair:replicates"
"""The user attribute that holds every value of a trial that was measured several times.

A list or, where the study says what its outcomes are, lists by their names. The trial's own value
is their mean.
"""

ACTUAL = "optpair:actual"
"""The user attribute that holds what was really run: values of the parameters that differ.

They may be between levels or outside the range: the model learns from them where they were run.
"""

NOTES = "optpair:notes"
"""The user attribute that holds what people want to remember of a trial: texts by name."""

FAILED = "optpair:failed"
"""Set where the objective failed. A failed trial without it lost its worker: it teaches nothing."""

FORGOTTEN = "optpair:forgotten"
"""Set on a trial that was ended although its objective did not fail: its worker died, say."""

BY_HAND = "optpair:by_hand"
"""Set on trials that people run: they never count as dead."""

OUTPUT = "optpair:output"
"""Why a trial failed: its exception, or the end of what its command printed."""

WORKER = "optpair:worker"
"""Who runs a trial: the machine and the process."""

COST = "optpair:cost"
"""The user attribute that holds what a trial cost, in any unit but always the same."""

CONTINUES = "optpair:continues"
"""The user attribute of a trial that continues another: the number of that one."""

OUTCOMES = "optpair:outcomes"
"""Of a study: its outcomes, as a list of JSON objects in order; see `outcomes.declare`.

Of a trial of such a study: what was measured, numbers by the outcomes' names. A trial that lacks
the value of an objective is PRUNED in Optuna, which has no other state for it.
"""

REVISED = "optpair:revised:"
"""Followed by a trial's number: the study's attribute that corrects what the trial was told.

Optuna's storages change no trial that has ended.
"""

PARAMS = "optpair:params"
LONGEST = 2000
"""How many characters every storage can keep in one attribute."""

State = Literal["told", "failed", "pruned", "running", "by hand", "enqueued", "stale", "cancelled"]


def state(trial: FrozenTrial) -> State:
    """What became of a trial; "stale" means that its worker died."""
    if trial.state == TrialState.WAITING:
        return "enqueued"
    if trial.state == TrialState.RUNNING:
        return "by hand" if BY_HAND in trial.user_attrs else "running"
    if trial.values is not None:
        return "told"
    if trial.state == TrialState.PRUNED:
        return "told" if OUTCOMES in trial.user_attrs else "pruned"
    if FAILED in trial.system_attrs:
        return "failed"
    return "cancelled" if trial.system_attrs.get(FORGOTTEN) == "cancelled" else "stale"


def shown_state(trial: FrozenTrial) -> str:
    """What a page calls its state.

    In a study that was made without optpair, nobody wrote down why a trial failed. The model
    ignores it, as its worker may have died, but Optuna and the page call it a failure.
    """
    unmarked = trial.state == TrialState.FAIL and FORGOTTEN not in trial.system_attrs
    return "failed" if unmarked else state(trial)


def cost_of(trial: FrozenTrial) -> float | None:
    """What a trial cost, where that is known: a finite number above 0."""
    given = trial.user_attrs.get(COST)
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if 0 < given < math.inf else None


def actual_of(trial: FrozenTrial) -> dict[str, Any]:
    """What was really run in place of what was asked for, by parameter."""
    given = trial.user_attrs.get(ACTUAL)
    return dict(given) if isinstance(given, Mapping) else {}


def notes_of(trial: FrozenTrial) -> dict[str, str]:
    """What people want to remember of a trial."""
    given = trial.user_attrs.get(NOTES)
    return {name: str(text) for name, text in given.items()} if isinstance(given, Mapping) else {}


def has_bad_cost(trial: FrozenTrial) -> bool:
    """Whether a trial says what it cost, but that is not a legal cost."""
    return trial.user_attrs.get(COST) is not None and cost_of(trial) is None


def continues(trial: FrozenTrial | Trial) -> int | None:
    """The number of the trial that this one continues, at a higher fidelity, or None."""
    given = trial.user_attrs.get(CONTINUES)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def revise(
    study: Study,
    number: int,
    value: float | Mapping[str, float] | None,
    noise_var: float | Mapping[str, float] | None = None,
    message: str | None = None,
    replicates: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
    actual: Mapping[str, Any] | None = None,
) -> None:
    """Correct what a trial that has ended was told; without a value it failed.

    Where the study says what its outcomes are, values, variances and replicates are by their names.
    What was really run stays as it was, unless `actual` says otherwise.
    """
    said = {"value": _plain(value), "noise_var": _plain(noise_var), "message": message}
    said |= {"replicates": replicates} if replicates else {}
    said |= {} if actual is None else {"actual": dict(actual)}
    study.set_user_attr(f"{REVISED}{number}", said)


def _plain(given: Any) -> Any:
    return dict(given) if isinstance(given, Mapping) else given


def revisions(study: Study) -> dict[int, dict[str, Any]]:
    """The last correction of each trial that has one."""
    found = study_attributes(study).items()
    return {
        int(key.removeprefix(REVISED)): said
        for key, said in found
        if key.startswith(REVISED) and key.removeprefix(REVISED).isdecimal()
    }


def read_trials(
    study: Study,
    states: Sequence[TrialState] | None = None,
    revised: Mapping[int, Mapping[str, Any]] | None = None,
) -> list[FrozenTrial]:
    """The trials of a study as they count now: corrected where they were revised.

    Args:
        study: the study.
        states: those to be read; all by default.
        revised: what `revisions` gave, where that was read before.
    """
    corrections = revisions(study) if revised is None else revised
    if not corrections:
        return study.get_trials(deepcopy=False, states=states)
    names = _objective_names(study)
    found = [
        _corrected(trial, corrections[trial.number], names)
        if trial.number in corrections
        else trial
        for trial in study.get_trials(deepcopy=False)
    ]
    return [trial for trial in found if states is None or trial.state in states]


def _objective_names(study: Study) -> list[str]:
    """The names of the objectives, where the study says what its outcomes are."""
    told = study_attributes(study).get(OUTCOMES, ())
    return [own["name"] for own in told if own["kind"] == "Objective"]


def _corrected(trial: FrozenTrial, said: Mapping[str, Any], names: Sequence[str]) -> FrozenTrial:
    """A copy of the trial, told anew. One that has not ended is as it is."""
    if not trial.state.is_finished():
        return trial
    now, value = copy.copy(trial), said.get("value")
    failed = value is None
    values = [value.get(name) for name in names] if isinstance(value, Mapping) else [value]
    whole = None not in values
    now.state = TrialState.COMPLETE if whole else TrialState.PRUNED
    now.state = TrialState.FAIL if failed else now.state
    now.values = values if whole else None
    noted = {NOISE_VAR: said.get("noise_var"), OUTPUT: said.get("message")}
    noted[REPLICATES] = said.get("replicates")
    noted[OUTCOMES] = value if isinstance(value, Mapping) else None
    noted[ACTUAL] = said.get("actual", actual_of(trial)) or None
    kept = {key: v for key, v in trial.user_attrs.items() if key not in noted}
    now.user_attrs = kept | {key: v for key, v in noted.items() if v is not None}
    system = {key: v for key, v in trial.system_attrs.items() if key not in (FAILED, FORGOTTEN)}
    now.system_attrs = system | ({FAILED: True} if failed else {})
    return now


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
    known = known_params(trial, distributions)
    return known if len(known) == len(distributions) else None


def known_params(
    trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]
) -> dict[str, Any]:
    """What was suggested, enqueued or asked for, of some parameters."""
    known = {**_suggested(trial, distributions), **enqueued(trial), **trial.params}
    return {name: known[name] for name in distributions if name in known}


def enqueued(trial: FrozenTrial) -> dict[str, Any]:
    """What `study.enqueue_trial` fixed."""
    return dict(trial.system_attrs.get("fixed_params", {}))


def is_enqueued(trial: FrozenTrial, names: Mapping[str, Any]) -> bool:
    """Whether `study.enqueue_trial` fixed all these parameters."""
    return names.keys() <= enqueued(trial).keys()


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
