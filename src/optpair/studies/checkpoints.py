"""Checkpoints: a folder per run, from which a look at a higher fidelity continues.

A trial has its own folder or, if it continues an earlier one, the folder of that one. A
command that leaves nothing in it cannot continue: its trials are not taken up again.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from optuna import Study, Trial
from optuna.trial import FrozenTrial

from optpair.integrations.optuna.attributes import continues, set_user_attribute, state
from optpair.studies.config import StudyError, StudyFile
from optpair.studies.storage import retry

CHECKPOINT = "optpair:checkpoint"
"""The user attribute of a trial that holds the name of its folder."""

NAME = re.compile(r"\d+-[\da-f]{8}")


@contextmanager
def checkpoint(
    file: StudyFile, study: Study, trial: Trial, before: int | None
) -> Iterator[Path | None]:
    """The folder of a trial while it is evaluated; None if the space has no fidelity.

    `before` is the trial that it continues. An empty folder is removed.
    """
    if not file.space.fidelities:
        yield None
        return
    folder = _folder(file, study, trial, before)
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()


def _folder(file: StudyFile, study: Study, trial: Trial, before: int | None) -> Path:
    """Made where the trial is a run of its own, and noted with it."""
    name = f"{trial.number}-{secrets.token_hex(4)}"  # one of an earlier study may be there
    if before is not None:
        name = _name(retry(lambda: study.get_trials(deepcopy=False))[before]) or name
    folder = _all(file) / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"the checkpoint folder {folder} cannot be made: {error}") from error
    retry(lambda: set_user_attribute(study, trial, CHECKPOINT, name))
    return folder


def continuable(file: StudyFile) -> Callable[[FrozenTrial], bool] | None:
    """Whether a trial can be continued: this machine sees something in its folder."""
    if not file.space.fidelities:
        return None

    def has_left_something(trial: FrozenTrial) -> bool:
        name = _name(trial)
        try:
            return name is not None and any((_all(file) / name).iterdir())
        except OSError:
            return False

    return has_left_something


def doubled(study: Study, trial: Trial, before: int | None) -> bool:
    """Whether another worker is continuing the same trial, `before`.

    A worker that sees another one steps back, and both may do so: what they would write into one
    folder at once would be of no use.
    """
    if before is None:
        return False
    return any(
        t.number != trial.number and continues(t) == before and state(t) == "running"
        for t in retry(lambda: study.get_trials(deepcopy=False))
    )


def _name(trial: FrozenTrial) -> str | None:
    """The name of a trial's folder; whatever a storage has that is none counts as nothing."""
    name = trial.user_attrs.get(CHECKPOINT)
    return name if isinstance(name, str) and NAME.fullmatch(name) else None


def _all(file: StudyFile) -> Path:
    return file.folder / f"{file.path.stem}.checkpoints"
