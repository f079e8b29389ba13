"""Studies in any Optuna storage as sources of a live page."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from optuna import Study
from optuna.trial import FrozenTrial

from optpair.integrations.optuna import JESSampler
from optpair.integrations.optuna.attributes import (
    OUTPUT,
    cost_of,
    published,
    read_trials,
    shown_state,
)
from optpair.integrations.optuna.reader import NothingSharedError
from optpair.report import Row
from optpair.report.either import AnySubject
from optpair.studies import control, lifecycle
from optpair.studies.config import ENDLESS, StudyError, StudyFile
from optpair.studies.control import ORDERS
from optpair.studies.results import spending, spent_words
from optpair.studies.samplers import make_sampler
from optpair.studies.storage import (
    NOISE,
    SPACE,
    file_of,
    find_study,
    is_there,
    open_study,
    without_secrets,
)
from optpair.watch.sources import Failure, Running, View

if TYPE_CHECKING:
    from pathlib import Path

NOTHING_SHARED = "no parameter is in all completed trials yet"


class Stored:
    """A study by its storage and name, or by its study file. It is reopened after it was away."""

    def __init__(self, url: str, name: str, file: StudyFile | None = None) -> None:
        self.name, self.place = name, without_secrets(url)
        self._url, self._file = url, file
        self._study: Study | None = None
        self._sampler: JESSampler | None = None
        self._inode: int | None = None
        self._lock = threading.Lock()

    def read(self) -> View:
        """The trials in the storage."""
        study = self._open()
        try:
            trials, attributes = read_trials(study), study.user_attrs
            counts = Counter(map(shown_state, trials))
            assert self._sampler is not None
            subject = self._sampler.subject(study, name=self.name, answers=False)
        except NothingSharedError:  # of several objectives, before a trial has ended
            return _unmodelled(trials)
        except Exception:
            self._study = None
            raise
        return View(
            subject,
            counts,
            tuple(_running(t) for t in trials if lifecycle.state(t) in ("running", "by hand")),
            tuple(
                Failure(t.number, lifecycle.reason(t.user_attrs.get(OUTPUT)))
                for t in trials
                if shown_state(t) == "failed"
            ),
            self._wanted,
            control.of(attributes).paused if SPACE in attributes else None,
            self._spent(trials),
        )

    @property
    def _wanted(self) -> int | None:
        """How many evaluations the file wants; None if it does not say."""
        if self._file is None or self._file.evaluations == ENDLESS:
            return None
        return self._file.evaluations

    def _spent(self, trials: Sequence[FrozenTrial]) -> str:
        """What trials have cost, if that is known."""
        if self._file is not None:
            return spent_words(spending(trials, self._file))
        costs = [cost for cost in map(cost_of, trials) if cost is not None]
        return f"{sum(costs):.4g} spent" if costs else ""

    def subject(self) -> AnySubject:
        """The trials in the storage, and what the model says of them."""
        study = self._open()
        assert self._sampler is not None
        return self._sampler.subject(study, name=self.name)

    def give(self, order: str) -> None:
        """Leave an order in the storage, where the workers find it."""
        if order not in ORDERS:
            raise ValueError(f"an order is one of {', '.join(ORDERS)}, not {order!r}")
        study = self._open()
        if SPACE not in study.user_attrs:
            raise StudyError(f"study {self.name!r} has no workers of optpair run to {order}")
        control.give(study, order)

    def _open(self) -> Study:
        """The study, or an error if it is away. A file that was replaced is opened again."""
        with self._lock:
            path = file_of(self._url)
            if not is_there(self._url):
                self._study = None
                raise StudyError(f"there is no file {path}")
            inode = None if path is None else _inode(path)
            if self._study is None or inode != self._inode:
                self._study, self._inode = self._find(), inode
            return self._study

    def _find(self) -> Study:
        if self._file is not None:
            self._sampler = make_sampler(self._file)
            return open_study(self._file, self._sampler, make=False)
        study = find_study(self._url, self.name)
        self._sampler = JESSampler(seed=0, noise=study.user_attrs.get(NOISE))
        return study


def _inode(path: Path) -> int:
    return path.stat().st_ino


def _unmodelled(trials: Sequence[FrozenTrial]) -> View:
    """A view without a model. The objectives have numbers, as in Optuna."""
    rows = tuple(
        Row(
            *(t.number, t.state.name.lower(), dict(t.params)),
            outcomes={f"value {i}": value for i, value in enumerate(t.values or ())},
        )
        for t in trials
    )
    return View(None, Counter(row.state for row in rows), problem=NOTHING_SHARED, rows=rows)


def _running(trial: FrozenTrial) -> Running:
    since = trial.datetime_start
    return Running(
        trial.number,
        lifecycle.state(trial),
        published(trial, trial.distributions) or dict(trial.params),
        "" if since is None else since.strftime("%Y-%m-%d %H:%M:%S"),
        str(trial.user_attrs.get(lifecycle.WORKER, "")),
    )
