"""Tables in and out: what was measured before, in a spreadsheet or in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optpair.locks import Lock
from optpair.persistence import files
from optpair.trials import table
from optpair.trials.history import History


class Tables:
    """The part of an `Optimizer` that reads and writes tables of trials."""

    _history: History
    _lock: Lock

    def tell_many(
        self,
        rows: Any,
        *,
        value: str | None = None,
        columns: Mapping[str, str] | None = None,
        trial: str | None = "trial",
    ) -> table.Imported:
        """Report what was measured, here or before: every row, or none where one is refused.

        A row has a column for each parameter and for the outcome; `noise_var`, `failed`, `state`
        and `reason` are understood, and other columns are kept as notes. Numbers may be text. A row
        without a value is skipped, unless it has failed. Points may be between levels or outside
        of the space: the model learns from them, but they are never suggested or recommended.

        Args:
            rows: a list of dicts, or a table of pandas or polars.
            value: the column of the outcome; by default it is called as the outcome is, `"value"`
                unless that was named.
            columns: what columns are called in the rows → what they are called here.
            trial: the column of trials' numbers, as `to_rows` has it. A row of a trial that is
                pending here is told as that trial, and one that was told already with the same
                value is left out. None where numbers are of another search.

        Returns:
            The trials, and what was skipped, known or kept as notes.

        Raises:
            ValueError: if a column is missing, or a row is not legal; it names the row, and nothing
                is changed then.
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
    ) -> table.Imported:
        """Report what a CSV file holds, as `tell_many` does.

        Args:
            path: the file. Its first line has the names of columns, perhaps with a unit behind
                them: `temp (K)` is parameter `temp`.
            value: as in `tell_many`, and so are `columns` and `trial`.
            columns: what columns are called in the file → what they are called here.
            trial: the column of trials' numbers; None where they are of another search.
            delimiter: what is between two cells; by default the one of `,`, `;`, tab and `|` that
                the first line has most of.
            encoding: how letters are written.

        Returns:
            The trials, and what was skipped, known or kept as notes.

        Raises:
            ValueError: if the file is no such table; it names the line, and nothing is changed.
        """
        if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1):
            raise ValueError(f"delimiter must be one character, like ';', not {delimiter!r}")
        try:
            text = Path(path).read_text(encoding=encoding)
        except (LookupError, UnicodeError) as error:
            raise ValueError(
                f"{path} is not in {encoding}: {error}; say encoding='cp1252', or save it as UTF-8"
            ) from error
        try:
            rows = table.parse_csv(text, delimiter)
            return self._tell_rows(rows, value=value, columns=columns, trial=trial)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{path}: {error}") from None  # the line says it all

    def _tell_rows(self, rows: Sequence[table.Row], **options: Any) -> table.Imported:
        with self._lock.now:
            records, skipped, notes = table.records(self._history.problem, rows, **options)
            found = self._history.tell_all(records)
        trials = tuple(trial for trial in found if trial is not None)
        return table.Imported(trials, skipped, len(found) - len(trials), notes)

    def to_rows(self) -> list[dict[str, Any]]:
        """A dict per trial, for a table: number, state, values, parameters, reason and notes.

        Parameters are what was really run; where that differs, `asked …` is what was asked for.
        `tell_many` reads such rows, `to_csv` writes them.
        """
        return table.to_rows(self._history.problem, tuple(self._history))

    def to_csv(self, path: str | Path) -> None:
        """Write the trials as CSV, in one atomic step; `read_csv` reads it.

        A `'` stands before text that a spreadsheet would take for a formula.
        """
        files.check_place(path)
        files.write(path, table.to_csv(self._history.problem, tuple(self._history)))
