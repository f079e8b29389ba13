"""Tables of trials: rows of dicts or of a CSV file, as people have them, and back.

A column is known by its name, exactly; a unit behind it in brackets, as in `temp (K)`, is left
out. Parameters and outcomes must be there, other columns are kept as notes.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from optpair.problem.problem import Problem
from optpair.trials import cells
from optpair.trials.notes import FAILED, REASON, STATE, TRIAL, column, noise_column, taken_names
from optpair.trials.records import Record
from optpair.trials.trial import Trial

UNIT = re.compile(r"^(?P<name>.*?\S)\s*[(\[](?P<unit>[^()\[\]]*)[)\]]$")
DELIMITERS = ",;\t|"
STATES = {"told", "failed", "pending", "running", "by hand", "enqueued", "cancelled", "stale"}
ASKED = "asked "
"""The prefix of the columns with what was asked for, which are written but never read."""

NOTE = " (note)"
"""What follows the name of a note that would be taken for another column."""


class TableRow(NamedTuple):
    """A row of a table, with its place for error messages."""

    where: str
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Imported:
    """What was taken from a table."""

    trials: tuple[Trial, ...]
    """The trials that were told or failed, in the order of the rows."""
    skipped: int = 0
    """Rows without a value."""
    known: int = 0
    """Rows of trials that had been told already, with the same values."""
    notes: tuple[str, ...] = field(default=())
    """The columns that were kept as notes."""
    doubted: tuple[Trial, ...] = field(default=())
    """All trials whose values look like mistakes; see `Recommendation.doubted`."""

    def __str__(self) -> str:
        failed = sum(trial.state == "failed" for trial in self.trials)
        parts = [f"{len(self.trials) - failed} told", f"{failed} failed"]
        parts += [f"{self.skipped} without a value skipped"] * bool(self.skipped)
        parts += [f"{self.known} known already"] * bool(self.known)
        notes = f"; kept as notes: {', '.join(self.notes)}" if self.notes else ""
        return f"{', '.join(parts)}{notes}{''.join(map(_doubt, self.doubted))}"


def _doubt(trial: Trial) -> str:
    """A line about a value that looks like a mistake."""
    values = {name: own.value for name, own in trial.outcomes.items()}
    shown = [
        f"{value:.5g}" if len(values) == 1 else f"{n} {value:.5g}" for n, value in values.items()
    ]
    return (
        f"\ndoubted: trial {trial.id} with {', '.join(shown)}, far better than the others predict; "
        "revise it if it is a mistake"
    )


def read_text(path: str | Path, encoding: str = "utf-8-sig") -> str:
    """The text of a file of people's, or an error that says how it may be read."""
    content = Path(path).read_bytes()
    try:
        return content.decode(encoding)
    except (LookupError, UnicodeError) as error:
        wide = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        other = "utf-16" if wide else "cp1252"
        raise ValueError(
            f"{path} is not in {encoding}: {error}; say encoding={other!r}, or save it as UTF-8"
        ) from error


def rows_of(given: Any) -> list[TableRow]:
    """The rows of a list of dicts, or of a table that can turn into one."""
    rows = given
    if hasattr(given, "to_dicts"):
        rows = given.to_dicts()
    elif hasattr(given, "to_dict") and not isinstance(given, Mapping):
        rows = given.to_dict("records")
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise TypeError(f"rows must be a list of dicts, or a table like pandas', not {given!r:.80}")
    found = []
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
            raise TypeError(f"rows[{i}] must be a dict by the names of columns, not {row!r:.80}")
        found.append(TableRow(f"rows[{i}]", {name.strip(): cell for name, cell in row.items()}))
    return found


def parse_csv(text: str, delimiter: str | None = None) -> list[TableRow]:
    """The rows of a CSV file; the delimiter is the one that the header has most of."""
    header = text.lstrip("\r\n").partition("\n")[0]
    if delimiter is None:
        outside = re.sub(r'"[^"]*"', "", header)
        delimiter = max(DELIMITERS, key=outside.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        lines = [(reader.line_num, line) for line in reader if any(cell.strip() for cell in line)]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error
    if not lines:
        raise ValueError("the file is empty: it needs a line of column names")
    names = [name.strip() or f"column {i + 1}" for i, name in enumerate(lines[0][1])]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two columns are called {name!r}: rename one of them")
    return [
        TableRow(f"line {at}", dict(_fitted(at, names, line, delimiter))) for at, line in lines[1:]
    ]


def _fitted(
    at: int, names: Sequence[str], line: Sequence[str], delimiter: str
) -> Iterator[tuple[str, str]]:
    """The cells of a line by the names of their columns; empty ones may be left out at its end."""
    if any(cell.strip() for cell in line[len(names) :]):
        hint = "; decimal commas? Write points" if delimiter == "," else ""
        raise ValueError(
            f"line {at}: it has {len(line)} cells, and the header has {len(names)}{hint}"
        )
    return zip(names, [*line, *[""] * len(names)], strict=False)


class _Columns(NamedTuple):
    """Which columns hold what: the names of columns by the names of what is in them."""

    params: Mapping[str, str]
    values: Mapping[str, str]
    noises: Mapping[str, str]
    special: Mapping[str, str]
    notes: Mapping[str, str]


def records(
    problem: Problem,
    rows: Sequence[TableRow],
    *,
    value: str | None = None,
    columns: Mapping[str, str] | None = None,
    trial: str | None = TRIAL,
) -> tuple[list[Record], int, tuple[str, ...]]:
    """What the rows say, how many have no value, and which columns are notes.

    Args:
        problem: the parameters and outcomes that are to be found.
        rows: of `rows_of` or `parse_csv`.
        value: the column of the only outcome, where it is not called as the outcome is.
        columns: other names of columns: what each is called in the rows → what is in it.
        trial: the column of trials' numbers; None if the numbers are of another search.
    """
    if not rows:
        return [], 0, ()
    names = list(dict.fromkeys(name for row in rows for name in row.cells))
    other = _other_names(columns, names)
    names = [other[name] for name in names]
    rows = [
        TableRow(row.where, {other[name]: cells.bare(cell) for name, cell in row.cells.items()})
        for row in rows
    ]
    found = _columns(problem, names, rows, value, trial)
    kept = [_record(problem, found, row) for row in rows]
    told = [record for record in kept if record is not None]
    noted = {name for record in told for name in record.notes}
    return told, len(kept) - len(told), tuple(name for name in found.notes if name in noted)


def _other_names(columns: object, names: Sequence[str]) -> dict[str, str]:
    """What each column is to be called."""
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a dict of names to names, not {columns!r:.80}")
    given = dict(columns or {})
    for name in given:
        if name not in names:
            raise ValueError(f"columns has {name!r}; there are {', '.join(map(repr, names))}")
    found = {name: str(given.get(name, name)) for name in names}
    for name, other in found.items():
        if list(found.values()).count(other) > 1:
            raise ValueError(f"two columns would be called {other!r}, one of them is {name!r}")
    return found


def _columns(
    problem: Problem,
    names: list[str],
    rows: Sequence[TableRow],
    value: str | None,
    trial: str | None,
) -> _Columns:
    params = {name: find(name, names, f"parameter {name!r}") for name in problem.space}
    outcomes = {name: column(name, problem) for name in problem.names}
    if value is not None:
        if len(outcomes) > 1:
            raise ValueError(
                f"value={value!r} is for one outcome; of several, rename columns: "
                f"columns={{{value!r}: {problem.names[0]!r}}}"
            )
        outcomes = dict.fromkeys(outcomes, value)
    values = {n: find(c, names, f"outcome {c!r}", needed=False) for n, c in outcomes.items()}
    if not any(values.values()):
        hint = "" if value else "; name the column of the outcome: value='yield'"
        raise _missing(f"outcome {next(iter(outcomes.values()))!r}", "", names, hint)
    measured = {name: found for name, found in values.items() if found}
    noises = {n: noise_column(n, problem) for n in measured if noise_column(n, problem) in names}
    special = {}
    for role, check in ((TRIAL, _is_number), (STATE, _is_state), (FAILED, _is_flag)):
        name = trial if role == TRIAL else column(role, problem)
        if name in names and all(check(row.cells.get(name)) for row in rows):
            special[role] = name
    used = [*params.values(), *measured.values(), *noises.values(), *special.values()]
    for name in used:
        if used.count(name) > 1:
            raise ValueError(f"column {name!r} cannot be two things at once: see value= and trial=")
    used += [f"{ASKED}{name}" for name in problem.space]
    if trial is None:
        used.append(column(TRIAL, problem))
    notes = {_note(name, problem): name for name in names if name not in used}
    return _Columns(params, measured, noises, special, notes)


def _note(name: str, problem: Problem) -> str:
    """The name of a note: that of its column, unless one of the trials' own is called so."""
    return f"{name}{NOTE}" if name in taken_names(problem) else name


def _is_number(cell: Any) -> bool:
    if isinstance(cell, float):  # of a column with gaps
        return cell >= 0 and cell == int(cell)
    return cell is None or re.fullmatch(r"\d{1,18}", str(cell), re.ASCII) is not None


def _is_state(cell: Any) -> bool:
    return cell is None or str(cell).lower() in STATES


def _is_flag(cell: Any) -> bool:
    return cell is None or str(cell).lower() in cells.YES | cells.NO


def bare_name(name: str) -> str:
    """The name of a column without its unit."""
    return _split(name)[0]


def _split(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit."""
    found = UNIT.match(name)
    return (found["name"], found["unit"].strip()) if found else (name, "")


def find(wanted: str, names: Sequence[str], what: str, *, needed: bool = True) -> str:
    """The column of that name, perhaps with a unit behind it."""
    stem, unit = _split(wanted)
    near = [name for name in names if _split(name)[0] in (wanted, stem)]
    if wanted in names:
        return wanted
    if not near:
        if not needed:
            return ""
        close = difflib.get_close_matches(wanted.lower(), [n.lower() for n in names], n=1)
        meant = next((n for n in names if close and n.lower() == close[0]), "")
        raise _missing(what, meant, names, "")
    if len(near) > 1:
        raise ValueError(f"{what} has two columns, {near[0]!r} and {near[1]!r}: leave one out")
    other = _split(near[0])[1]
    if other and unit and other != unit:
        raise ValueError(f"column {near[0]!r} has another unit than {what}: convert its values")
    if re.match(r"(log|ln|lg)\b|log\d+", other, re.IGNORECASE):
        raise ValueError(
            f"column {near[0]!r} may hold logarithms of {what}: give the values themselves, and "
            f"call it {wanted!r}"
        )
    return near[0]


def _missing(what: str, meant: str, names: Sequence[str], hint: str) -> ValueError:
    close = ""
    if meant:
        close = f" (did you mean {meant!r}? Rename it, or say columns={{{meant!r}: …}})"
    if not (close or hint):
        hint = "; if it has another name, say columns={'…': '…'}, its name there and here"
    return ValueError(f"no column of {what}{close}{hint}; there are {', '.join(map(repr, names))}")


def _record(problem: Problem, columns: _Columns, row: TableRow) -> Record | None:
    """What a row says; None if it has no value."""
    try:
        return _read(problem, columns, row)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{row.where}: {error}; nothing was changed") from None


def _read(problem: Problem, columns: _Columns, row: TableRow) -> Record | None:
    special = {role: row.cells.get(name) for role, name in columns.special.items()}
    state = str(special.get(STATE, "")).lower()
    failed = state == "failed" or cells.flag(FAILED, special.get(FAILED))
    values, noises = (
        {
            name: read(where, row.cells[where])
            for name, where in found.items()
            if row.cells.get(where) is not None
        }
        for found, read in ((columns.values, cells.numbers), (columns.noises, cells.number))
    )
    if not values and not failed:
        return None
    conditional = problem.space.conditions.when
    params = {
        name: cells.value_of(where, problem.space[name], row.cells.get(where))
        for name, where in columns.params.items()
        if name not in conditional or row.cells.get(where) is not None
    }
    noted = {name: row.cells.get(where) for name, where in columns.notes.items()}
    notes = {name: str(note) for name, note in noted.items() if note is not None}
    number = special.get(TRIAL)
    reason = notes.pop(column(REASON, problem), None) if failed else None
    return Record(
        row.where,
        params,
        None if number is None else int(number),
        values or None,
        noises or None,
        failed,
        reason,
        notes,
    )


def to_rows(problem: Problem, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """A dict per trial, all with the same columns: what `records` reads."""
    notes = list(dict.fromkeys(name for trial in trials for name in trial.notes))
    asked = [n for n in problem.space if any(t.actual.get(n) != t.params.get(n) for t in trials)]
    reasons = any(trial.reason for trial in trials)
    found = []
    for trial in trials:
        row: dict[str, Any] = {
            column(TRIAL, problem): trial.id,
            column(STATE, problem): trial.state,
        }
        for name in problem.names:
            told = trial.outcomes.get(name)
            row[column(name, problem)] = told and (list(told.replicates) or told.value)
            row[noise_column(name, problem)] = told and told.noise_var
        row |= {name: trial.actual.get(name) for name in problem.space}
        row |= {f"{ASKED}{name}": trial.params.get(name) for name in asked}
        row |= {column(REASON, problem): trial.reason} if reasons else {}
        row |= {name: trial.notes.get(name, row.get(name)) for name in notes}
        found.append(row)
    return found


def to_csv(problem: Problem, trials: Sequence[Trial]) -> str:
    """The rows of `to_rows` as CSV. No text is a spreadsheet's formula."""
    rows = to_rows(problem, trials)
    values = [
        name for n in problem.names for name in (column(n, problem), noise_column(n, problem))
    ]
    header = [column(TRIAL, problem), column(STATE, problem), *values, *problem.space]
    return csv_text(rows[0] if rows else header, [row.values() for row in rows])


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A header and rows of cells as CSV, without formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line in (header, *rows):
        writer.writerow(map(cells.guarded, line))
    return text.getvalue()
