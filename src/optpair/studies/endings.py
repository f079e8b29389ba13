"""Endings of a run: what ends it before all evaluations are made."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from optuna import Study
from optuna.trial import FrozenTrial

from optpair.integrations.optuna.attributes import OUTPUT
from optpair.studies import control, lifecycle
from optpair.studies.config import StudyFile
from optpair.studies.control import Control
from optpair.studies.results import spent

ALIKE = 5
"""A run ends after this many failures, if they are the first trials and have the same reason."""

NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?|0x[0-9a-f]+", re.I)


@dataclass(frozen=True)
class Ending:
    """Why a run ended, with a sentence if that needs one.

    "complete": all evaluations were made, or are out by hand. "interrupted": by Ctrl-C. "stopped":
    by an order. "time": its time was up. "alike": its first trials all failed in the same way.
    "spent": the budget of all trials is used up.
    """

    kind: Literal["complete", "interrupted", "stopped", "time", "alike", "spent"]
    reason: str = ""

    @property
    def stopped(self) -> bool:
        """Whether a person ended it."""
        return self.kind in ("interrupted", "stopped")


class Endings:
    """What ends one run of a study: an order, its time, or first trials that all fail alike."""

    def __init__(
        self,
        study: Study,
        file: StudyFile,
        seconds: float | None = None,
        keep_going: bool = False,
        stops: int | None = None,
    ) -> None:
        self._file = file
        self._seconds = math.inf if seconds is None else seconds
        self._started = time.monotonic()
        self.keep_going = keep_going
        self.stops = control.read(study).stops if stops is None else stops
        """How many orders to stop were given before the run, for workers that start late."""
        self._first = len(lifecycle.trials(study))

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._seconds - (time.monotonic() - self._started))

    def reached(self, orders: Control, trials: Sequence[FrozenTrial]) -> Ending | None:
        """Why this run must end now; None if it continues."""
        if orders.stops > self.stops:
            return Ending("stopped", "Stopped with optpair stop, or on the page of optpair watch.")
        if self.left == 0.0:
            return Ending("time", f"The {self._seconds:g} seconds of this run are over.")
        budget = self._file.budget
        if budget is not None and spent(trials, self._file) >= budget.most:
            return Ending("spent", f"The budget of {budget} is spent.")
        reason = None if self.keep_going else failing_alike(trials, self._first)
        if reason is None:
            return None
        return Ending(
            "alike",
            f"The first {ALIKE} trials of this run all failed in the same way: "
            f"{reason.rstrip('.')}. Fix the objective and run this again, or use --keep-going.",
        )


def failing_alike(trials: Sequence[FrozenTrial], first: int = 0) -> str | None:
    """The one reason for which all trials from a number on failed, if they are enough.

    None if any trial of the study has a value. Reasons that differ only by numbers are alike.
    """
    states = [lifecycle.state(trial) for trial in trials]
    if "told" in states:
        return None
    failed = [t for t, s in zip(trials, states, strict=True) if s == "failed" and t.number >= first]
    if len(failed) < ALIKE:
        return None
    reasons = [lifecycle.reason(trial.user_attrs.get(OUTPUT)) for trial in failed]
    alike = len({NUMBER.sub("#", reason) for reason in reasons}) == 1
    return reasons[-1] if alike else None
