"""Shelves: tables of candidates, of which each row can be run and nothing else."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optpair.problem.parameters import Categorical, Float, Int, Parameter, Value
from optpair.problem.parameters.base import plain
from optpair.runtime.shapes import Float as Reals

APART = 1e-5  # of the cube: rows of a shelf that are closer in every column are one to the model
ON = 1e-9  # of the cube: values so close to a row's are that row's
MOST_ROWS = 200_000
MOST_TEXTS = 64
"""Different texts in a column: more are names of rows, not categories."""


@dataclass(frozen=True)
class Shelf:
    """The rows of a table, and whether a row may be tried more than once."""

    rows: tuple[Mapping[str, Value], ...]
    repeat: bool = True

    def to_json(self, names: Collection[str]) -> dict[str, Any]:
        """Column by column."""
        columns = {name: [row[name] for row in self.rows] for name in names}
        return {"columns": columns, "repeat": self.repeat}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Shelf:
        """The shelf that `to_json` described."""
        columns, repeat = document["columns"], document["repeat"]
        if not isinstance(repeat, bool):
            raise ValueError(f"repeat is {repeat!r}")
        rows = zip(*columns.values(), strict=True)
        return cls(tuple(dict(zip(columns, row, strict=True)) for row in rows), repeat)


@dataclass(frozen=True)
class Places:
    """The points of a shelf's rows in the cube."""

    table: Reals[np.ndarray, "N D"]

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree  # late: few spaces are tables

        return cKDTree(self.table)

    def check_apart(self) -> None:
        """Raise if two rows can hardly be told apart."""
        close = next(iter(sorted(self._tree.query_pairs(APART, p=np.inf))), None)
        if close is not None:
            raise ValueError(
                f"rows {close[0]} and {close[1]} differ by less than {APART:g} of every column's "
                "range, so the model cannot tell them apart; put a column on a log scale, log=[…], "
                "or leave one of them out"
            )

    def at(self, x: Reals[np.ndarray, " D"]) -> int | None:
        """The number of the row at a point; None if there is none."""
        far, row = self._tree.query(x, p=np.inf)
        return int(row) if far <= ON else None

    def nearest(self, x: Reals[np.ndarray, " D"]) -> int:
        """The number of the row nearest to a point."""
        return int(self._tree.query(x)[1])


def read_rows(
    rows: object, columns: Sequence[str] | None, log: Collection[str], repeat: object
) -> tuple[dict[str, Parameter], Shelf]:
    """What the columns of a table are, and its rows, clean.

    Raises:
        TypeError: if `rows` is not a table, or a value has a wrong type.
        ValueError: if the table has no use: see `Space.of_rows`.
    """
    if not isinstance(repeat, bool):
        raise TypeError(f"repeat must be True or False, not {repeat!r:.80}")
    table = _listed(rows)
    names = _names(table, columns)
    for name in log:
        if name not in names:
            raise ValueError(
                f"log has {name!r}, which is not a column: {', '.join(map(repr, names))}"
            )
    clean = [{name: _cell(i, name, row[name]) for name in names} for i, row in enumerate(table)]
    found = {name: _parameter(name, [row[name] for row in clean], name in log) for name in names}
    for row in clean:
        for name, p in found.items():
            row[name] = p._check(name, row[name])
    _check_twins(clean)
    return found, Shelf(tuple(clean), repeat)


def _listed(rows: object) -> list[Mapping[Any, Any]]:
    """A list of dicts, also from a pandas table."""
    accepted = "a list of dicts, one per candidate, or a table with to_dict('records')"
    if hasattr(rows, "to_dicts"):  # polars
        rows = rows.to_dicts()
    elif hasattr(rows, "to_dict") and not isinstance(rows, Mapping):
        rows = rows.to_dict("records")
    if isinstance(rows, Mapping | str) or not isinstance(rows, Sequence):
        raise TypeError(f"rows must be {accepted}, not {rows!r:.80}")
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"rows must be {accepted}, but row {i} is {row!r:.80}")
    if len(rows) < 2:
        raise ValueError(
            f"rows has {len(rows)} candidate{'s' * (len(rows) != 1)}, which leaves nothing to "
            "choose: give two or more"
        )
    if len(rows) > MOST_ROWS:
        raise ValueError(
            f"rows has {len(rows)} candidates, and may have {MOST_ROWS}: leave out those that you "
            "would never run, or describe the space by its parameters"
        )
    return list(rows)


def _names(table: list[Mapping[Any, Any]], columns: Sequence[str] | None) -> list[str]:
    """The columns that describe a candidate, in every row."""
    if columns is None:
        names = list(table[0])
    elif isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(f"columns must be a list of names, not {columns!r:.80}")
    else:
        names = list(columns)
    if not names:
        raise ValueError("rows have no columns: a candidate needs at least one that describes it")
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a column's name must be a text, not {name!r:.80}")
        if names.count(name) > 1:
            raise ValueError(f"columns has {name!r} twice")
    for i, row in enumerate(table):
        missing = [name for name in names if name not in row]
        extra = [name for name in row if columns is None and name not in names]
        if missing or extra:
            raise ValueError(
                f"row {i} {'lacks' if missing else 'also has'} {(missing or extra)[0]!r}: every "
                "row must have the same columns; columns=[…] chooses those that describe it"
            )
    return names


def _cell(i: int, name: str, given: object) -> Value:
    """A plain value that is there."""
    value = plain(given)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(
            f"row {i} has {value!r} as {name!r}: every candidate must be described; fill it in, "
            "or leave the row or the column out"
        )
    if type(value) not in (bool, int, float, str):
        raise TypeError(f"row {i} has {given!r:.80} as {name!r}: give a number, a bool or a text")
    return value


def _parameter(name: str, values: list[Any], log: bool) -> Parameter:
    """What a column is: whole numbers, numbers or categories."""
    kinds = {type(value) for value in values}
    if len({*zip(map(type, values), values, strict=True)}) == 1 or len(set(values)) == 1:
        raise ValueError(
            f"column {name!r} is {values[0]!r} in every row, which tells no two candidates apart: "
            "leave it out by columns=[…]"
        )
    try:
        if kinds == {int}:
            return Int(min(values), max(values), log=log)
        if kinds <= {int, float}:
            return Float(min(values), max(values), log=log)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from error
    if log or (kinds - {bool} and kinds - {str}):
        raise ValueError(
            f"column {name!r} has texts or bools"
            + (", which have no log scale" if log else " beside numbers: make it one kind")
        )
    choices = list(dict.fromkeys(values))
    if len(choices) > MOST_TEXTS:
        raise ValueError(
            f"column {name!r} has {len(choices)} different texts, more than {MOST_TEXTS}: these "
            "are names of candidates rather than categories, and teach nothing of each other; "
            "leave it out by columns=[…], and find a trial's row by space.row(trial.params)"
        )
    return Categorical(choices)


def _check_twins(rows: list[dict[str, Any]]) -> None:
    """No two rows may be the same."""
    seen: dict[tuple[Any, ...], int] = {}
    for i, row in enumerate(rows):
        first = seen.setdefault(tuple(row.values()), i)
        if first != i:
            raise ValueError(
                f"rows {first} and {i} are the same, {row!r:.200}: leave one of them out, or add "
                "a column in which they differ"
            )
