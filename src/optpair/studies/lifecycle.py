"""What became of a study's trials, and which of those that run are still alive."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from optuna import Study
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from optpair.integrations.optuna.attributes import (
    FORGOTTEN,
    NOISE_VAR,
    OUTPUT,
    REPLICATES,
    WORKER,
    State,
    actual_of,
    continues,
    cost_of,
    notes_of,
    read_trials,
    set_system_attribute,
    state,
)
from optpair.problem.problem import VALUE
from optpair.studies.config import StudyFile
from optpair.studies.results import values_of
from optpair.studies.storage import retry

__all__ = [
    "BEAT",
    "WORKER",
    "State",
    "Watch",
    "count",
    "ended",
    "forget",
    "out",
    "reason",
    "row",
    "state",
    "trials",
]

BEAT = "optpair:beat"
"""Written again and again while a trial runs: the time, by the worker's clock."""

LONGEST = 200  # characters of a line that says why a trial failed

Forgotten = Literal["stale", "cancelled"]


def trials(study: Study) -> list[FrozenTrial]:
    """All trials of a study, as they count now."""
    return retry(lambda: read_trials(study))


def count(trials: Iterable[FrozenTrial]) -> Counter[State]:
    """How many trials are in each state."""
    return Counter(state(trial) for trial in trials)


def ended(counts: Counter[State]) -> int:
    """Evaluations that were made."""
    return counts["told"] + counts["failed"]


def out(counts: Counter[State]) -> int:
    """Evaluations that are being made."""
    return counts["running"] + counts["by hand"]


def row(trial: FrozenTrial, file: StudyFile) -> dict[str, Any]:
    """A trial as JSON."""
    values = values_of(trial, file)
    return {
        "trial": trial.number,
        "state": state(trial),
        **({"outcomes": values} if file.named else {"value": values.get(VALUE)}),
        "replicates": trial.user_attrs.get(REPLICATES),
        "noise_var": trial.user_attrs.get(NOISE_VAR),
        "cost": cost_of(trial),
        "params": dict(trial.params),
        "actual": actual_of(trial),
        "notes": notes_of(trial),
        **({"continues": continues(trial)} if file.space.fidelities else {}),
        "started": trial.datetime_start and trial.datetime_start.isoformat(),
        "ended": trial.datetime_complete and trial.datetime_complete.isoformat(),
        "worker": trial.user_attrs.get(WORKER),
        "output": trial.user_attrs.get(OUTPUT),
    }


def reason(output: str | None) -> str:
    """Why a trial failed, in one line: what happened, and the last line of what it wrote."""
    printable = "".join(c if c.isprintable() else "\n" for c in output or "")
    lines = [line.strip() for line in printable.splitlines() if line.strip()]
    if not lines:
        return "it gave no reason"
    ends = dict.fromkeys(_short(line) for line in (lines[0], lines[-1]))
    return ": ".join(ends)


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def forget(study: Study, trial: FrozenTrial, why: Forgotten) -> None:
    """End a trial that teaches nothing, unless somebody else has ended it."""
    try:
        set_system_attribute(study, trial, FORGOTTEN, why)
        study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
    except UpdateFinishedTrialError:
        pass


class Watch:
    """Finds running trials that gave no sign of life for a while, by this process's own clock.

    Clocks of different machines are never compared: what counts is that a beat does not change.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.slept = False
        """Whether the look before was long ago: then workers may have had no chance to beat."""
        self._looked = time.monotonic()
        self._seen: dict[int, tuple[object, float]] = {}

    def stale(self, trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
        """Those whose beat has not changed for longer than the patience."""
        now = time.monotonic()
        self.slept, self._looked = now - self._looked > self.patience / 2, now
        running = [trial for trial in trials if state(trial) == "running"]
        before, self._seen = self._seen, {}
        for trial in running:
            beat = trial.user_attrs.get(BEAT)
            old = before.get(trial.number)
            self._seen[trial.number] = old if old and old[0] == beat else (beat, now)
        return [t for t in running if now - self._seen[t.number][1] > self.patience]
