"""Sources of a live page: where a search is read from. This one is the file of a saved run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from optpair import Optimizer
from optpair.report import Row
from optpair.report.either import AnySubject
from optpair.report.subject import OUT
from optpair.report.words import short

LONGEST = 200  # characters of a line that says why a trial failed


@dataclass(frozen=True)
class Running:
    """A trial whose outcome is still to come; `since` and `worker` are empty if unknown."""

    number: int
    state: str
    params: Mapping[str, Any]
    since: str = ""
    worker: str = ""


@dataclass(frozen=True)
class Failure:
    """A trial that failed: the reason in one line, and people's notes."""

    number: int
    reason: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """A search at one moment, without what the model says of it.

    `evaluations` is how many are wanted, None if that is unknown. `paused` is None if no worker
    takes orders. `problem` says why there can be no model; then `rows` are the trials.
    """

    subject: AnySubject | None
    counts: Mapping[str, int]
    running: tuple[Running, ...] = ()
    failures: tuple[Failure, ...] = ()
    evaluations: int | None = None
    paused: bool | None = None
    spent: str = ""
    """What trials have cost, in words, if that is known."""
    problem: str = ""
    rows: tuple[Row, ...] = ()

    @property
    def ended(self) -> int:
        """Evaluations that were made."""
        return self.counts.get("told", 0) + self.counts.get("failed", 0)


class Source(Protocol):
    """A search that can be read again and again while it runs.

    Whatever `read` raises means that the search cannot be read now; the next call tries again.
    """

    name: str
    place: str

    def read(self) -> View:
        """The search as it is now: quick, and without the model."""

    def subject(self) -> AnySubject:
        """The search as it is now, with the answers of the model: this takes seconds."""

    def give(self, order: str) -> None:
        """Give the workers an order: "pause", "resume" or "stop"."""


class Saved:
    """The file of `Optimizer.save`, or the checkpoint of a search, read whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self.name, self.place = path.stem, str(path)
        self._path = path
        self._stamp: tuple[int, ...] | None = None
        self._view = View(None, {})

    def read(self) -> View:
        """The trials in the file."""
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp != self._stamp:
            self._view = _view(Optimizer.load(self._path), self.name)
            self._stamp = stamp
        return self._view

    def subject(self) -> AnySubject:
        """The trials in the file, and what the model says of them."""
        return _subject(Optimizer.load(self._path), self.name)

    def give(self, order: str) -> None:
        """Refuse: a saved run has no workers."""
        raise ValueError(f"{self.place} is a saved run: no worker reads an order to {order}")


def _view(optimizer: Optimizer, name: str) -> View:
    subject = _subject(optimizer, name, answers=False)
    costs = optimizer.space.targets or any(trial.spent is not None for trial in optimizer.trials)
    spent = f"{optimizer.spent:.4g} spent" if costs else ""
    return replace(_listed(subject.rows), subject=subject, spent=spent)


def _subject(optimizer: Optimizer, name: str, *, answers: bool = True) -> AnySubject:
    if optimizer.problem.goal == "best":
        return optimizer.subject(name=name, answers=answers)
    return optimizer.joint_subject(name=name, answers=answers)


def _listed(rows: tuple[Row, ...]) -> View:
    states = [row.state for row in rows]
    return View(
        None,
        {state: states.count(state) for state in dict.fromkeys(states)},
        tuple(Running(r.number, r.state, r.params) for r in rows if r.state in OUT),
        tuple(Failure(r.number, _line(r.message), r.notes) for r in rows if r.state == "failed"),
    )


def _line(reason: str) -> str:
    """The last line of a reason: in a traceback, it says most."""
    lines = reason.strip().splitlines()
    return short(lines[-1].strip(), LONGEST) if lines else ""


def known(subject: AnySubject | None) -> str:
    """A digest of what the model learns from: when it changes, the model is asked again."""
    rows = () if subject is None else subject.rows
    ended = [_learnt(row) for row in rows if row.state not in OUT]
    return hashlib.sha256(repr(ended).encode()).hexdigest()


def _learnt(row: Row) -> tuple[Any, ...]:
    told = row.value, row.noise_var, sorted(row.outcomes.items())
    return row.number, row.state, *told, sorted(row.params.items())
