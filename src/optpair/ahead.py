"""What asks need compiled, before they need it.

A form of a program belongs to a padded size, and differs with pending and with failed trials.
"""

from __future__ import annotations

import functools
import threading
from typing import NamedTuple

from optpair.effort import size_ahead
from optpair.engine import Engine
from optpair.history import Observations
from optpair.programs import compile_ahead, rehearse


class _Form(NamedTuple):
    rows: int
    pending: bool
    failed: bool


class Ahead:
    """Compiles for an engine what is needed now, or soon, and once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._begun: set[_Form] = set()
        self.worker: threading.Thread | None = None

    def now(self, observations: Observations) -> None:
        """Have what this ask needs compiled, two programs at a time, while its chains start."""
        form = self._form(observations, self._engine.size(observations))
        if len(observations.y) >= self._engine.initial and form not in self._begun:
            self._begun.add(form)
            rehearse(functools.partial(self._engine.rehearse, *form, recommend=False), beside=2)

    def later(self, observations: Observations) -> None:
        """While a trial runs that was asked for then: have what comes next compiled by and by."""
        engine = self._engine
        n = len(observations.y) + max(len(observations.pending) + 1, len(observations.failed))
        rows = size_ahead(n, engine.initial, engine.cube.dimensions)
        form = self._form(observations, rows)
        busy = self.worker is not None and self.worker.is_alive()
        if engine.settings.ahead and form not in self._begun and not busy:
            self._begun.add(form)
            self.worker = compile_ahead(functools.partial(engine.rehearse, *form))

    def _form(self, observations: Observations, rows: int) -> _Form:
        return _Form(rows, len(observations.pending) > 0, len(observations.failed) > 0)
