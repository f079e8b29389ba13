"""Boards: what a live page shows of each search, kept up to date while a page is open.

A board reads its search about once a second, and asks the model only when a trial has ended or was
revised. All boards together spend at most a quarter of one core on the model, and each at most a
tenth on reading: they rest in proportion to the processor time that they used. While no page is
open, nothing is read at all.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from optpair.report.either import (
    AnyFindings,
    AnySubject,
    content,
    gather,
    verdict,
    without_answers,
)
from optpair.report.markup import Markup
from optpair.report.trials import trials
from optpair.report.words import Verdict
from optpair.runtime.threads import return_memory
from optpair.watch.sources import Source, View, known

INTERVAL = 1.0  # seconds between two looks
LOOKED_AT = 60.0  # seconds after the last request, for which a page counts as open
REST, REST_OF_READING = 3.0, 9.0  # seconds of rest for each second of work
AGAIN = 30.0  # seconds until a model that could not be asked is asked again
LONGEST = 300  # characters of a problem that are shown


class Pace:
    """Whose turn it is to ask the model: one board at a time, with a rest after each."""

    def __init__(self, rest: float = REST) -> None:
        self._rest, self._next = rest, 0.0
        self._lock = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Yields whether it is this thread's turn now."""
        mine = time.monotonic() >= self._next and self._lock.acquire(blocking=False)
        if not mine:
            yield False
            return
        begun = time.thread_time()
        try:
            yield True
        finally:
            self._next = time.monotonic() + self._rest * (time.thread_time() - begun)
            self._lock.release()


@dataclass(frozen=True)
class Snapshot:
    """What is known of a search: the last view of it, and what the model last said."""

    view: View | None = None
    away: str = ""
    """Why the search cannot be read now, if it cannot."""
    since: str = ""
    """Since when it cannot be read."""
    problem: str = ""
    """Why the model has nothing to say."""
    subject: AnySubject | None = None
    found: AnyFindings | None = None
    report: Markup = Markup("")  # noqa: RUF009
    behind: bool = True
    """Whether trials have ended that the model has not seen."""

    @property
    def version(self) -> str:
        """A digest of everything that the page shows."""
        facts = (_facts(self.view), self.away, self.since, self.problem, self.behind, self.report)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

    @property
    def said(self) -> Verdict | None:
        """Whether going on is worth it."""
        return None if self.subject is None else verdict(self.subject, self.found)


def _facts(view: View | None) -> object:
    """Everything in a view except the arrays."""
    if view is None:
        return None
    told = (view.counts, view.running, view.failures)
    return (*told, view.evaluations, view.paused, view.spent)


class Board:
    """One search, followed by a thread of its own. `changed` is notified when its page changes."""

    def __init__(self, source: Source, pace: Pace, changed: threading.Condition) -> None:
        self.source = source
        self.snapshot = Snapshot()
        self.version = self.snapshot.version
        self.asked = 0
        """How often the model was asked."""
        self._pace, self._changed = pace, changed
        self._known, self._again = "", -math.inf
        self._wanted = -math.inf
        self._wake = threading.Event()

    def want(self) -> None:
        """Note that a page is open."""
        idle = time.monotonic() - self._wanted > LOOKED_AT
        self._wanted = time.monotonic()
        if idle:
            self._wake.set()

    def wake(self) -> None:
        """End the rest."""
        self._wake.set()

    def hurry(self) -> None:
        """Look at once."""
        self._wanted = time.monotonic()
        self._wake.set()

    def follow(self, over: threading.Event) -> None:
        """Look again and again while a page is open, until `over` is set."""
        while not over.is_set():
            rest = INTERVAL
            if time.monotonic() - self._wanted <= LOOKED_AT:
                begun = time.thread_time()
                self.look()
                rest = max(INTERVAL, REST_OF_READING * (time.thread_time() - begun))
                self.ask()
            self._wake.wait(rest)
            self._wake.clear()

    def look(self) -> None:
        """Read the search, and show what is new. The model is not asked."""
        before = self.snapshot
        try:
            view = self.source.read()
        except Exception as error:  # whatever it is, the page lives on and says so
            since = before.since or datetime.now().strftime("%H:%M:%S")
            self._show(replace(before, away=_line(error), since=since))
            return
        digest = known(view.subject)
        now = replace(before, view=view, away="", since="", behind=digest != self._known)
        if view.subject is None:
            self._known = ""
            now = replace(now, problem=view.problem, behind=False, subject=None, found=None)
            now = replace(now, report=trials(view.rows))
        elif not now.behind and now.subject is not None and _aside(now) != _aside(before):
            now = _written(now, replace(now.subject, rows=view.subject.rows), now.found)
        self._show(now)

    def ask(self) -> None:
        """Ask the model, if there is something it has not seen and it is this board's turn."""
        view = self.snapshot.view
        if self.snapshot.away or not self.snapshot.behind or view is None:
            return
        if time.monotonic() < self._again:
            return
        with self._pace.turn() as mine:
            if not mine:
                return
            self.asked += 1
            try:
                subject, found = self._asked()
                now = replace(_written(self.snapshot, subject, found), problem="")
                self._known = known(subject)
            except Exception as error:  # a storage that is away now is found out by the next look
                now = replace(self.snapshot, problem=_line(error))
                self._again = time.monotonic() + AGAIN
            return_memory()
        self._show(replace(now, behind=known(view.subject) != self._known))

    def _asked(self) -> tuple[AnySubject, AnyFindings | None]:
        """What the model says now. The model itself is not kept."""
        subject = self.source.subject()
        return without_answers(subject), gather(subject)

    def _show(self, now: Snapshot) -> None:
        version = now.version
        with self._changed:
            self.snapshot = now
            if version != self.version:
                self.version = version
                self._changed.notify_all()


def _aside(snapshot: Snapshot) -> object:
    """What the page shows about trials, but the model does not learn from."""
    view = snapshot.view
    rows = () if view is None or view.subject is None else view.subject.rows
    return view and (view.running, [(row.message, dict(row.notes)) for row in rows])


def _written(snapshot: Snapshot, subject: AnySubject, found: AnyFindings | None) -> Snapshot:
    return replace(snapshot, subject=subject, found=found, report=content(subject, found))


def _line(error: Exception) -> str:
    """What an error says, in one line."""
    said = str(error).strip().splitlines()
    text = said[0] if said else type(error).__name__
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
