"""Tables in and out: results in a spreadsheet or in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optpair.engine.session import Session
from optpair.persistence import files
from optpair.runtime.locks import Lock
from optpair.trials import table
from optpair.trials.history import History


class Tables:
    """The part of an `Optimizer` that reads and writes tables of trials."""

    _history: History
    _session: Session
    _lock: Lock

    def tell_many(
        self,
        rows: Any,
        *,
        value: str | None = None,
        columns: Mapping[str, str] | None = None,
        trial: str | None = "trial",
    ) -> table.Imported:
        """Tell many results at once, measured here or before: all rows, or none if one is refused.

        A row has a column for each parameter and for the outcome; `noise_var`, `failed`, `state`
        and `reason` are understood, and other columns are kept as notes. Numbers may be text. A row
        without a value is skipped, unless it has failed. Points may be between levels or outside
        the space: the model learns from them, but they are never suggested or recommended.

        Args:
            rows: a list of dicts, or a table of pandas or polars.
            value: the column of the outcome; by default the outcome's name, which is `"value"` if
                you gave none.
            columns: from the names in the rows to the names here.
            trial: the column of trial numbers, as `to_rows` writes it. The row of a pending trial
                tells that trial; a row that was told already with the same value is skipped. None
                if the numbers belong to another search.

        Returns:
            The trials, and what was skipped, known or kept as notes.

        Raises:
            ValueError: if a column is missing, or a row is not legal; the message names the row,
                and nothing changes.
        """
        return self._tell_rows(table.rows_of(rows), value=value, columns=columns, trial=trial)

    def read_csv(
        self,
        path: str | Path,
        *,
        value: str | None = None,
        columns: Mapping[str, str] | None = None,
        trial: str | None = "trial",
        delimiter: str | None = None,
        encoding: str = "utf-8-sig",
        repeats: bool = False,
    ) -> table.Imported:
        """Tell the results in a CSV file, as `tell_many` does.

        Rows that were told already, with the same parameters and values, are skipped: you can read
        the same sheet again after adding rows to it.

        Args:
            path: the file. Its first line has the names of the columns, which may include a unit:
                `temp (K)` is parameter `temp`.
            value: as in `tell_many`.
            columns: as in `tell_many`.
            trial: as in `tell_many`.
            delimiter: the character between two cells; by default whichever of `,`, `;`, tab and
                `|` is most frequent in the first line.
            encoding: the encoding of the file.
            repeats: whether rows that are the same as told trials are further measurements of them.

        Returns:
            The trials, and what was skipped, known, doubted or kept as notes.

        Raises:
            ValueError: if the file is not such a table, or has a row that has changed since it was
                read; the message names the line, and nothing changes.
        """
        if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1):
            raise ValueError(f"delimiter must be one character, like ';', not {delimiter!r}")
        text = table.read_text(path, encoding)
        try:
            rows = table.parse_csv(text, delimiter)
            options = {"value": value, "columns": columns, "trial": trial}
            return self._tell_rows(rows, again=not repeats, **options)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{path}: {error}") from None  # the line says it all

    def _tell_rows(
        self, rows: Sequence[table.TableRow], *, again: bool = False, **options: Any
    ) -> table.Imported:
        with self._lock.now:
            records, skipped, notes = table.records(self._history.problem, rows, **options)
            found = self._history.tell_all(records, again=again)
            told = [trial for trial in self._history if trial.state == "told"]
            doubted = tuple(told[i] for i in self._session.doubted(self._history.data()))
        trials = tuple(trial for trial in found if trial is not None)
        return table.Imported(trials, skipped, len(found) - len(trials), notes, doubted)

    def to_rows(self) -> list[dict[str, Any]]:
        """A dict per trial, for a table: number, state, values, parameters, reason and notes.

        Parameters are what was really run; if that differs, `asked …` is what was asked for.
        `tell_many` reads such rows, and `to_csv` writes them.
        """
        return table.to_rows(self._history.problem, tuple(self._history))

    def to_csv(self, path: str | Path) -> None:
        """Write the trials as CSV, in one atomic step; `read_csv` reads it.

        Text that a spreadsheet would take for a formula gets a `'` in front.
        """
        files.check_place(path)
        files.write(path, table.to_csv(self._history.problem, tuple(self._history)))
