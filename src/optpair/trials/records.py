"""Records: what the rows of a table say, and which of them were told before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from optpair.problem.problem import Problem
from optpair.trials.told import Told, read_told
from optpair.trials.trial import Trial


class Record(NamedTuple):
    """What a row of a table says of one trial."""

    where: str
    """The place of the row, for error messages."""
    params: Mapping[str, Any]
    trial: int | None = None
    """The number of a trial that was asked for."""
    value: Told = None
    noise_var: Told = None
    failed: bool = False
    reason: str | None = None
    notes: Mapping[str, str] = MappingProxyType({})


def known_rows(
    problem: Problem, trials: Iterable[Trial], records: Sequence[Record]
) -> list[int | None]:
    """The trial that each row was told as before; None for a row that is new.

    A row and a trial are the same if they have the same parameters and values. Rows that are there
    twice, as a point was measured twice, are the same as two trials.

    Raises:
        ValueError: if a row is not legal, or was changed since it was read.
    """
    told: dict[Hashable, list[int]] = defaultdict(list)
    there = {trial.id: trial for trial in trials}
    for trial in there.values():
        if trial.state != "pending":
            told[_key(trial.actual, trial.state, trial.outcomes)].append(trial.id)
    found = [
        None if record.trial in there else _known(problem, record, told)  # the number decides
        for record in records
    ]
    left = {trial for own in told.values() for trial in own}
    for i, record in enumerate(records):
        after = found[i + 1] if i + 1 < len(records) else None
        before = found[i - 1] if i else None
        changed = None if after is None else after - 1
        beside = i == 0 or before is None or before == (changed or 0) - 1
        if found[i] is None and record.trial is None and changed in left and beside:
            raise ValueError(f"{record.where}: {_changed(there[changed])}; nothing was changed")
    return found


def _known(problem: Problem, record: Record, told: Mapping[Hashable, list[int]]) -> int | None:
    try:
        params = problem.space.check(record.params, anywhere=True)
        outcome = read_told(problem, record.value, record.noise_var, record.failed)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{record.where}: {error}; nothing was changed") from error
    same = told.get(_key(params, outcome["state"], outcome["outcomes"]))
    return same.pop(0) if same else None


def _key(params: Mapping[str, Any], state: str, outcomes: Mapping[str, Any]) -> Hashable:
    return tuple(params.items()), state, tuple(sorted(outcomes.items()))


def _changed(trial: Trial) -> str:
    """What to say of a row that stands where that of a trial stood."""
    values = {name: own.value for name, own in trial.outcomes.items()}
    came = "failed" if trial.state == "failed" else ", ".join(f"{v:g}" for v in values.values())
    return (
        f"it was read before as trial {trial.id} ({came}; {dict(trial.actual)}), and has changed: "
        f"revise({trial.id}, …) corrects that trial, with params= where they have changed; then "
        "read the file again; if both were measured, keep both rows"
    )
