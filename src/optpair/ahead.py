"""What asks need compiled, before they need it.

The form of a program belongs to a padded size, and differs with pending and with failed trials.
"""

from __future__ import annotations

import functools
import threading
from typing import NamedTuple

from optpair.effort import size_ahead
from optpair.engine import Engine
from optpair.history import Observations
from optpair.programs import compile_ahead, rehearse


class _Need(NamedTuple):
    """What decides which forms of the programs an ask needs: the arguments of a rehearsal."""

    rows: int
    pending: bool
    failed: bool


class Ahead:
    """Compiles for an engine what is needed now, or soon, and once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._begun: set[_Need] = set()
        self.worker: threading.Thread | None = None

    def now(self, observations: Observations) -> None:
        """Have what this ask needs compiled, two programs at a time, while its chains start."""
        need = _need(observations, self._engine.size(observations))
        if len(observations.y) >= self._engine.initial and need not in self._begun:
            self._begun.add(need)
            rehearse(functools.partial(self._engine.rehearse, *need, recommend=False), beside=2)

    def later(self, observations: Observations) -> None:
        """While a trial runs that was asked for then: have what comes next compiled by and by."""
        engine = self._engine
        n = len(observations.y) + max(len(observations.pending) + 1, len(observations.failed))
        rows = size_ahead(n, engine.initial, engine.cube.dimensions)
        need = _need(observations, rows)
        busy = self.worker is not None and self.worker.is_alive()
        if engine.settings.ahead and need not in self._begun and not busy:
            self._begun.add(need)
            self.worker = compile_ahead(functools.partial(engine.rehearse, *need))


def _need(observations: Observations, rows: int) -> _Need:
    return _Need(rows, len(observations.pending) > 0, len(observations.failed) > 0)
