"""Tables of trials that were run before or elsewhere, taken into a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from optpair.integrations.optuna.attributes import actual_of
from optpair.problem.columns import place
from optpair.problem.problem import Problem
from optpair.problem.space import Space
from optpair.studies import lifecycle
from optpair.studies.config import StudyError, StudyFile
from optpair.studies.results import Result, checked, values_of
from optpair.studies.storage import open_study
from optpair.studies.worker import add_trial
from optpair.trials.records import Record
from optpair.trials.table import Imported, parse_csv, read_text, records
from optpair.trials.trial import Trial


def read_csv(
    file: StudyFile,
    path: Path,
    *,
    value: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "utf-8-sig",
) -> dict[str, Any]:
    """Take the rows of a CSV file as trials: all of them, or none if one is refused.

    Points may be between levels or outside their ranges: the storage has the nearest legal ones,
    and the model learns from what was run. Rows that the study has already are left out.

    Args:
        file: the study file.
        path: the CSV file, as `Optimizer.read_csv` takes it; numbers of trials are not read.
        value: the column of the outcome, where it is not called as the outcome is.
        columns: other names of columns: what each is called in the file → what is in it.
        encoding: the encoding of the file.

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
        rows = parse_csv(read_text(path, encoding))
        found, skipped, notes = records(problem, rows, value=value, columns=columns, trial=None)
        ready = [_trial(file, problem.space, record) for record in found]
    except OSError as error:
        raise StudyError(f"{path} cannot be read: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        raise StudyError(f"{path.name}: {error}") from error
    study = open_study(file)
    known = Counter(
        _key({**trial.params, **actual_of(trial)}, values_of(trial, file))
        for trial in lifecycle.trials(study)
        if lifecycle.state(trial) in ("told", "failed")
    )
    added: list[Trial] = []
    for legal, result in ready:
        params = {name: {**alone, **legal}[name] for name in file.space if name in alone | legal}
        key = _key({**params, **result.actual}, result.values)
        if known[key]:
            known[key] -= 1
            continue
        add_trial(study, file, params, result)
        added.append(Trial(len(added), params, "told" if result.values else "failed"))
    counts = Imported(tuple(added), skipped, len(ready) - len(added), notes)
    told = sum(trial.state == "told" for trial in added)
    return {
        "told": told,
        "failed": len(added) - told,
        "skipped": counts.skipped,
        "known": counts.known,
        "notes": list(counts.notes),
        "text": str(counts),
    }


def _trial(file: StudyFile, space: Space, record: Record) -> tuple[dict[str, Any], Result]:
    """The legal values nearest to what a row says, and its result with what was really run."""
    values: Any = record.value or {}
    try:
        ran = space.check(record.params, anywhere=True)
        result = Result(problem=record.reason or "")
        if not record.failed:
            result = checked(values, record.noise_var, file)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{record.where}: {error}; nothing was changed") from error
    legal = {name: _nearest(space, name, own) for name, own in ran.items()}
    actual = {name: own for name, own in ran.items() if own != legal[name]}
    return legal, replace(result, actual=actual, notes=record.notes)


def _nearest(space: Space, name: str, value: Any) -> Any:
    """The value itself where it is legal."""
    p = space[name]
    try:
        return p._check(name, value)
    except ValueError:
        return p._decode(place(p, name, value))


def _key(params: Mapping[str, Any], values: Mapping[str, float]) -> Hashable:
    """What rows that are the same have in common."""
    return tuple(sorted(params.items())), tuple(sorted(values.items()))
