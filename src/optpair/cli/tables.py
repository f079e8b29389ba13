"""Commands for tables of trials: export and import."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated

import typer

from optpair.cli.common import File, Json, show, study_of
from optpair.cli.exit_codes import USAGE, fail


def export(
    file: File,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file instead.", metavar="PATH")
    ] = None,
    json: Json = False,
) -> None:
    """Print every trial as CSV, or as JSON."""
    with study_of(file) as study:
        from optpair.studies.export import as_csv, rows

        found = rows(study)
        text = json_.dumps(found, indent=2) + "\n" if json else as_csv(study, found)
        if out is None:
            sys.stdout.write(text)
            return
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            fail(str(error))


def import_(
    file: File,
    table: Annotated[
        Path, typer.Argument(help="A CSV file with a line of column names.", metavar="TABLE.CSV")
    ],
    value: Annotated[
        str | None,
        typer.Option(help="The outcome's column, if it has another name.", metavar="NAME"),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NAME", help="A column's name, and its name here; repeatable."),
    ] = None,
    encoding: Annotated[
        str, typer.Option(help="The encoding of the file.", metavar="NAME")
    ] = "utf-8-sig",
    repeats: Annotated[
        bool,
        typer.Option("--repeats", help="Rows that the study has already were measured again."),
    ] = False,
    json: Json = False,
) -> None:
    """Read trials from a CSV file: those run before, or by hand.

    Every row is taken, or none if one is refused. Points may be between levels or outside their
    ranges; columns that are not understood are kept as notes; rows that the study has already are
    left out. The row of a trial that is out by hand tells it: by its number, in a table that
    optpair export wrote, or by its parameters. Imported trials count as evaluations.
    """
    with study_of(file) as study:
        from optpair.studies import imports

        other = dict(word.rpartition("=")[::2] for word in columns or ())
        if "" in other:
            fail("--columns must be like NAME=NAME", USAGE)
        found = imports.read_csv(
            study, table, value=value, columns=other, encoding=encoding, repeats=repeats
        )
        show(found, json, found.pop("text"))
