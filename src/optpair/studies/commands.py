"""What the command line does with a study: each command returns what it shows, as JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna import Study
from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from optpair.integrations.optuna.attributes import (
    BY_HAND,
    FAILED,
    NOISE_VAR,
    OUTPUT,
    set_system_attribute,
    set_user_attribute,
)
from optpair.integrations.optuna.attributes import revise as write_revision
from optpair.studies import control, lifecycle, processes
from optpair.studies.config import StudyError, StudyFile
from optpair.studies.control import Order
from optpair.studies.endings import Ending, Endings
from optpair.studies.lifecycle import forget
from optpair.studies.lifecycle import trials as _trials
from optpair.studies.objective import KEPT, Outcome
from optpair.studies.points import point
from optpair.studies.samplers import make_sampler
from optpair.studies.storage import AwayError, open_study, retry, shown, storage_errors
from optpair.studies.worker import Interrupts, Say, add_trial, is_over, suggest, work
from optpair.trials.table import csv_text

if TYPE_CHECKING:
    from optpair.integrations.optuna import JESSampler


LAST = 3
"""Failures that `status` shows."""


class NothingYetError(StudyError):
    """No trial has a value."""


@dataclass(frozen=True)
class Ran:
    """How a run ended, and the study as it was opened, with a sampler that is warm.

    `finished`: a worker saw that all evaluations were made, or are out by hand.
    """

    ending: Ending
    finished: bool
    study: Study | None = None


def run(
    file: StudyFile,
    workers: int,
    say: Say,
    parent: int | None = None,
    *,
    seconds: float | None = None,
    keep_going: bool = False,
    stops: int | None = None,
) -> Ran:
    """Evaluate until the study has its evaluations, or until something else ends the run.

    Args:
        file: the study file.
        workers: how many processes evaluate.
        say: what takes a line for people.
        parent: the process that started this one as one of its workers.
        seconds: after which no trial is started any more.
        keep_going: whether first trials that all fail alike do not end the run.
        stops: orders to stop that were given before the parent's run.
    """
    if file.objective is None:
        raise StudyError(f"{file.path.name} has no [objective]: use ask and tell")
    stop = Interrupts(say, parent)
    study, ending, finished = None, Ending("interrupted"), False
    with stop.listening():
        try:
            if workers == 1:
                study = open_study(file, make_sampler(file))
                endings = Endings(study, seconds, keep_going, stops)
                ending = work(file, study, stop, say, endings=endings)
                finished = ending.kind == "complete"
            else:
                study = open_study(file)  # made here, so that they find it
                endings = Endings(study, seconds, keep_going)
                finished = processes.run(file, workers, stop, say, endings)
                ending = _ending(file, study, endings)
        except KeyboardInterrupt:
            return Ran(Ending("interrupted"), False, study)
        except StudyError as error:
            if not stop:
                raise
            say(str(error))  # what was interrupted may fail in any way
    if stop:
        return Ran(Ending("interrupted"), False, study)
    if ending.reason and parent is None:
        say(ending.reason)
    return Ran(ending, finished, study)


def _ending(file: StudyFile, study: Study, endings: Endings) -> Ending:
    """Why workers have ended, whose processes say only that they did."""
    try:
        trials, orders = _trials(study), control.read(study)
    except AwayError:
        return Ending("complete")  # what they saw stands
    if lifecycle.ended(lifecycle.count(trials)) >= file.evaluations:
        return Ending("complete")
    return endings.reached(orders, trials) or Ending("complete")


def order(file: StudyFile, wanted: Order) -> dict[str, Any]:
    """Give the study's workers an order, and say what they do now."""
    study = open_study(file, make=False)
    now = control.give(study, wanted)
    counts = lifecycle.count(_trials(study))
    return {"study": file.name, "paused": now.paused, "running": counts["running"]}


def status(file: StudyFile, study: Study | None = None) -> dict[str, Any]:
    """Counts, the best observed trial, the last failures and what is out.

    `study` is the one that `run` has opened, here and in `recommend`.
    """
    study = study or open_study(file, make=False)
    found = _trials(study)
    counts = lifecycle.count(found)
    told = [trial for trial in found if lifecycle.state(trial) == "told"]
    sign = -1.0 if file.direction == "minimize" else 1.0
    failed = [trial for trial in found if lifecycle.state(trial) == "failed"]
    best = max(told, key=lambda trial: sign * float(trial.value or 0.0), default=None)
    return {
        "study": file.name,
        "storage": shown(file),
        "direction": file.direction,
        "evaluations": file.evaluations,
        "ended": lifecycle.ended(counts),
        "over": str(file.stop) if is_over(file, study) else None,
        "counts": dict(counts),
        "paused": control.read(study).paused,
        "best_observed": best and lifecycle.row(best),
        "failures": [_failure(trial) for trial in failed[-LAST:]],
        "out": [lifecycle.row(t) for t in found if lifecycle.state(t) in ("running", "by hand")],
    }


def _failure(trial: FrozenTrial) -> dict[str, Any]:
    return {"trial": trial.number, "reason": lifecycle.reason(trial.user_attrs.get(OUTPUT))}


def ask(file: StudyFile, n: int = 1) -> list[dict[str, Any]]:
    """Trials for people to run, good together. Each stays out until it is told or cancelled."""
    study = open_study(file, make_sampler(file))
    asked: list[dict[str, Any]] = []
    try:
        while len(asked) < n:
            asked.append(_ask(file, study))
    except BaseException:
        for row in asked:  # nobody gets them
            with suppress(OptunaError, *storage_errors()):
                forget(study, study.get_trials(deepcopy=False)[row["trial"]], "cancelled")
        raise
    return asked


def _ask(file: StudyFile, study: Study) -> dict[str, Any]:
    trial = retry(study.ask)
    try:
        retry(lambda: trial.set_user_attr(BY_HAND, f"{os.environ.get('USER', '')}"))
        params = retry(lambda: suggest(trial, file.space))
    except BaseException:
        with suppress(OptunaError, *storage_errors()):
            forget(study, study.get_trials(deepcopy=False)[trial.number], "cancelled")
        raise
    return {"trial": trial.number, "params": params}


def tell(
    file: StudyFile,
    number: int,
    value: float | None,
    noise_var: float | None,
    outcome: str,
    message: str | None,
) -> dict[str, Any]:
    """Tell a trial's value, that it failed, or that it is to be forgotten."""
    study = open_study(file, make=False)
    found = _trials(study)
    trial = _numbered(file, found, number)
    if trial.state != TrialState.RUNNING:
        raise _not_out(trial)
    try:
        _end(study, trial, value, noise_var, outcome, message)
    except (UpdateFinishedTrialError, ValueError) as error:
        now = _trials(study)[number]  # it came through, and the answer was lost; or somebody else
        if (lifecycle.state(now), now.value) != (outcome, value):
            raise _not_out(now) from error
    return lifecycle.row(_trials(study)[number])


def tell_own(
    file: StudyFile,
    params: Sequence[str],
    value: float | None,
    noise_var: float | None,
    message: str | None,
) -> dict[str, Any]:
    """Tell what a point of one's own gave, as a trial; without a value it failed.

    The point of a trial that is out by hand means that trial.
    """
    own = point(params, file.space)
    study = open_study(file)
    for trial in _trials(study):
        if lifecycle.state(trial) == "by hand" and trial.params == own:
            outcome = "failed" if value is None else "told"
            return tell(file, trial.number, value, noise_var, outcome, message)
    before = len(_trials(study))
    add_trial(study, file.space, own, Outcome(value, noise_var, (message or "")[-KEPT:]))
    new = (t for t in reversed(_trials(study)[before:]) if t.params == own)
    return lifecycle.row(next(new))


def revise(
    file: StudyFile,
    number: int,
    value: float | None,
    noise_var: float | None,
    message: str | None,
) -> dict[str, Any]:
    """Correct what a trial that has ended was told; without a value it failed."""
    study = open_study(file, make=False)
    trial = _numbered(file, _trials(study), number)
    if lifecycle.state(trial) not in ("told", "failed"):
        raise StudyError(
            f"trial {number} was not told: it is {lifecycle.state(trial)}; revise corrects a value "
            "or a failure, tell gives one"
        )
    said = None if message is None else message[-KEPT:]
    retry(lambda: write_revision(study, number, value, noise_var, said))
    return lifecycle.row(_trials(study)[number])


def _numbered(file: StudyFile, found: list[FrozenTrial], number: int) -> FrozenTrial:
    if not 0 <= number < len(found):
        raise StudyError(f"trial {number} is unknown: study {file.name!r} has {len(found)} trials")
    return found[number]


def _not_out(trial: FrozenTrial) -> StudyError:
    return StudyError(f"trial {trial.number} is not out: it is {lifecycle.state(trial)}")


def _end(
    study: Study,
    trial: FrozenTrial,
    value: float | None,
    noise_var: float | None,
    outcome: str,
    message: str | None,
) -> None:
    if outcome == "cancelled":
        retry(lambda: forget(study, trial, "cancelled"))
        return
    if message:
        retry(lambda: set_user_attribute(study, trial, OUTPUT, message[-KEPT:]))
    if noise_var is not None:
        retry(lambda: set_user_attribute(study, trial, NOISE_VAR, noise_var))
    if outcome == "failed":
        retry(lambda: set_system_attribute(study, trial, FAILED, True))
    state = TrialState.FAIL if outcome == "failed" else TrialState.COMPLETE
    retry(lambda: study.tell(trial.number, value, state=state))


def recommend(file: StudyFile, study: Study | None = None) -> dict[str, Any]:
    """The best predicted point, with its interval, and the best observed trial beside it."""
    study = study or open_study(file, make=False)
    if not any(lifecycle.state(trial) == "told" for trial in _trials(study)):
        raise NothingYetError(f"no trial of study {file.name!r} has a value yet")
    sampler = _answering(file, study)
    found = retry(lambda: sampler.recommend(study), *_storages_own())
    return {
        "params": dict(found.params),
        "mean": found.mean,
        "std": found.std,
        "interval": list(found.interval),
        "best_observed": {
            "trial": found.observed.id,
            "value": found.observed.value,
            "params": dict(found.observed.params),
        },
        "doubted": [{"trial": d.trial.id, "expected": d.expected} for d in found.doubted],
        "left_out": dict(found.left_out),
        "text": str(found),
    }


def report(file: StudyFile, out: Path | None) -> dict[str, Any]:
    """Write a page on the study, beside its file or to `out`, and say what stands on it."""
    study = open_study(file, make=False)
    path = out or file.path.with_suffix(".html")
    sampler = _answering(file, study)
    return retry(lambda: sampler.report(study, path, name=file.name), *_storages_own())


def _answering(file: StudyFile, study: Study) -> JESSampler:
    """The sampler that has suggested, and is warm; or a new one that has a model."""
    from optpair.integrations.optuna import JESSampler

    if isinstance(study.sampler, JESSampler):
        return study.sampler
    return make_sampler(file)


def _storages_own() -> list[type[Exception]]:
    """Errors of a storage that is away, and not those of the file that a page is written to."""
    return [error for error in storage_errors() if error is not OSError]


def export(file: StudyFile) -> list[dict[str, Any]]:
    """Every trial."""
    return [lifecycle.row(trial) for trial in _trials(open_study(file, make=False))]


def as_csv(file: StudyFile, rows: list[dict[str, Any]]) -> str:
    """Rows of `export` as CSV, one column a parameter. No text is a spreadsheet's formula."""
    columns = ["trial", "state", "value", "noise_var"]
    more = ["started", "ended", "worker", "output"]
    cells = []
    for row in rows:
        values = [row["params"].get(name) for name in file.space]
        cells.append([*(row[c] for c in columns), *values, *(row[c] for c in more)])
    return csv_text([*columns, *file.space, *more], cells)
