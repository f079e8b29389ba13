"""Shelves of study files: the rows of a CSV file, which are all that can be tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optpair.problem.space import Space
from optpair.studies.document import StudyError, Table, is_text, is_texts
from optpair.trials import cells
from optpair.trials.table import TableRow, parse_csv

BOOLS = {"true": True, "false": False}


def read_shelf(content: Mapping[str, Any], folder: Path) -> tuple[Space, list[dict[str, Any]]]:
    """The space of the rows that [space] names, and what else the file has on each.

    Raises:
        StudyError: if the file cannot be read, or its rows are not a shelf.
    """
    table = Table("[space]", content)
    path = folder / table.take("rows", "the path of a CSV file", is_text)
    columns = table.take("columns", "names of columns that describe a row", is_texts)
    log = table.take("log", "names of columns on a log scale", is_texts, [])
    repeat = table.take("repeat", "true or false", lambda v: isinstance(v, bool), True)
    table.end()
    try:
        rows = parse_csv(path.read_text(encoding="utf-8-sig"))
        names = list(rows[0].cells) if rows else []
        unknown = [name for name in (*(columns or ()), *log) if name not in names]
        if unknown:
            raise ValueError(f"there is no column {unknown[0]!r}; it has {', '.join(names)}")
        typed = {name: _column(name, rows) for name in names}
        listed = [{name: typed[name][i] for name in names} for i in range(len(rows))]
        space = Space.of_rows(listed, columns=columns, log=log, repeat=repeat)
    except UnicodeDecodeError as error:
        raise StudyError(f"[space] {path.name} is not UTF-8: {error}") from error
    except OSError as error:
        raise StudyError(f"[space] rows {str(path)!r} cannot be read: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        raise StudyError(f"[space] {path.name}: {error}") from error
    labels = [name for name in names if name not in space]
    return space, [{name: row[name] for name in labels} for row in listed] if labels else []


def _column(name: str, rows: Sequence[TableRow]) -> list[Any]:
    """The cells of a column: numbers or bools where all are, or else texts."""
    found = [cells.bare(row.cells[name]) for row in rows]
    known = [cell for cell in found if cell is not None]
    if known and all(cells.NUMBER.match(cell) for cell in known):
        return [None if cell is None else cells.number(name, cell) for cell in found]
    if known and all(cell.lower() in BOOLS for cell in known):
        return [None if cell is None else BOOLS[cell.lower()] for cell in found]
    return found
