"""Tables of trials that were run before, elsewhere or by hand, taken into a study."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from optpair.integrations.optuna.attributes import OUTPUT, actual_of, notes_of
from optpair.integrations.optuna.outcomes import StudyOutcomes
from optpair.problem.columns import place
from optpair.problem.problem import Problem
from optpair.problem.space import Space
from optpair.studies import lifecycle
from optpair.studies.config import StudyError, StudyFile
from optpair.studies.doubts import doubted
from optpair.studies.results import Result
from optpair.studies.storage import open_study
from optpair.studies.worker import add_trial, end
from optpair.trials.history import History
from optpair.trials.notes import NOISE_VAR, STATE, TRIAL, noise_column
from optpair.trials.records import Record
from optpair.trials.table import Imported, TableRow, parse_csv, read_text, records
from optpair.trials.trial import Params, State, Trial

STATES: dict[str, State] = {"told": "told", "failed": "failed", "by hand": "pending"}
"""The states of a study's trials that a row may be about, and what a history calls them."""

EXPORTED = {"cost", "continues", "started", "ended", "worker", "output"}
"""Columns that `optpair export` writes, and that are no notes."""


def read_csv(
    file: StudyFile,
    path: Path,
    *,
    value: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "utf-8-sig",
    repeats: bool = False,
) -> dict[str, Any]:
    """Take the rows of a CSV file as trials: all of them, or none if one is refused.

    Points may be between levels or outside their ranges: the storage has the nearest legal ones,
    and the model learns from what was run. The row of a trial that is out by hand tells it; rows
    that the study has already are left out.

    Args:
        file: the study file.
        path: the CSV file, as `Optimizer.read_csv` takes it, or as `optpair export` wrote it.
            Numbers of trials are read only from the latter.
        value: the column of the outcome, if it has another name than the outcome.
        columns: other names of columns: what each is called in the file → what is in it.
        encoding: the encoding of the file.
        repeats: whether rows that the study has already are further measurements.

    Raises:
        StudyError: if the file is not such a table; the message names the line.
    """
    domain = file.space.domain
    alone = domain.constants({})
    fine = [name for name in file.space if name not in domain.distributions and name not in alone]
    if fine:
        raise StudyError(f"[space] {fine[0]} has more values than the model can tell apart")
    problem = Problem(domain.space, file.outcomes)
    try:
        rows, number = _own(parse_csv(read_text(path, encoding)), problem, alone)
        found, skipped, notes = records(problem, rows, value=value, columns=columns, trial=number)
        History(problem).tell_all(found)  # refuses what is not legal before a study is made
        study = open_study(file)
        trials = lifecycle.trials(study)
        _check_free(found, trials)
        told = _history(problem, file, study, trials).tell_all(found, again=not repeats)
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error
    except StudyError:
        raise
    except (TypeError, ValueError) as error:
        raise StudyError(f"{path.name}: {error}") from error
    new = [trial for trial in told if trial is not None]
    for trial in new:
        _store(file, study, trials, trial, alone)
    now = lifecycle.trials(study)
    slips = doubted(file, study, now)
    outcomes = StudyOutcomes.of(study, (), file.noise)
    doubts = tuple(_trial(now[n], problem.space, outcomes) for n in slips)
    counts = Imported(tuple(new), skipped, len(told) - len(new), notes, doubts)
    failed = sum(trial.state == "failed" for trial in new)
    return {
        "told": len(new) - failed,
        "failed": failed,
        "skipped": counts.skipped,
        "known": counts.known,
        "notes": list(counts.notes),
        "doubted": slips,
        "text": str(counts),
    }


def _own(
    rows: list[TableRow], problem: Problem, alone: Collection[str]
) -> tuple[list[TableRow], str | None]:
    """The rows, and the column of trials' numbers; of `optpair export`'s, what can be told."""
    names = set(rows[0].cells) if rows else set()
    if not {TRIAL, STATE} <= names:
        return rows, None
    if not EXPORTED - {"continues"} <= names:
        return rows, TRIAL
    noises = {f"{name} {NOISE_VAR}": noise_column(name, problem) for name in problem.names}
    kept = {name: noises.get(name, name) for name in names - EXPORTED - set(alone)}
    cells = [{kept[n]: cell for n, cell in row.cells.items() if n in kept} for row in rows]
    return [row._replace(cells=own) for row, own in zip(rows, cells, strict=True)], TRIAL


def _check_free(found: Sequence[Record], trials: Sequence[FrozenTrial]) -> None:
    """Refuse a row about a trial that somebody else runs, or that was forgotten."""
    for record in found:
        if record.trial is not None and record.trial < len(trials):
            state = lifecycle.state(trials[record.trial])
            if state not in STATES:
                raise ValueError(
                    f"{record.where}: trial {record.trial} is not out by hand: it is {state}; "
                    "leave the row out; nothing was changed"
                )


def _history(
    problem: Problem, file: StudyFile, study: Study, trials: Sequence[FrozenTrial]
) -> History:
    """The trials that a row may be about, by their numbers; new ones have those of the study."""
    history, outcomes = History(problem), StudyOutcomes.of(study, (), file.noise)
    for trial in trials:
        if lifecycle.state(trial) in STATES:
            try:
                history.put_back(_trial(trial, problem.space, outcomes))
            except (TypeError, ValueError):  # too far away to be told by a table
                continue
    history.begin(len(trials))
    return history


def _trial(trial: FrozenTrial, space: Space, outcomes: StudyOutcomes) -> Trial:
    """A trial of a study as the optimizer has it."""
    state = STATES[lifecycle.state(trial)]
    asked = Params({name: trial.params[name] for name in space if name in trial.params})
    actual = actual_of(trial)
    return Trial(
        trial.number,
        asked,
        state,
        (outcomes.measured(trial) or {}) if state == "told" else {},
        Params({**asked, **actual}) if actual else None,
        notes_of(trial),
        trial.user_attrs.get(OUTPUT) if state == "failed" else None,
    )


def _store(
    file: StudyFile,
    study: Study,
    trials: Sequence[FrozenTrial],
    trial: Trial,
    alone: dict[str, Any],
) -> None:
    """Tell what a row says: of a trial that is out, or as a trial of its own."""
    out = trials[trial.id] if trial.id < len(trials) else None
    space = file.space.domain.space
    legal = {name: _nearest(space, name, own) for name, own in trial.actual.items()}
    asked: Mapping[str, Any] = legal if out is None else out.params
    told = trial.outcomes.items()
    result = Result(
        {name: own.value for name, own in told},
        {name: own.noise_var for name, own in told if own.noise_var is not None},
        trial.reason or "",
        replicates={name: own.replicates for name, own in told if own.replicates},
        actual={name: own for name, own in trial.actual.items() if own != asked.get(name)},
        notes=trial.notes,
    )
    if out is not None:
        end(study, out, file, result)
        return
    params = {name: {**alone, **legal}[name] for name in file.space if name in alone | legal}
    add_trial(study, file, params, result)


def _nearest(space: Space, name: str, value: Any) -> Any:
    """The value itself where it is legal."""
    p = space[name]
    try:
        return p._check(name, value)
    except ValueError:
        return p._decode(place(p, name, value))
