"""What the commands share: a study file that is read, and what is shown of it."""

from __future__ import annotations

import json as json_
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpair.cli.exit_codes import NOTHING_YET, fail
from optpair.runtime.stderr import Outlet, drop

if TYPE_CHECKING:
    from optpair.studies.config import StudyFile

File = Annotated[Path, typer.Argument(help="The study file.", metavar="STUDY.TOML")]
Json = Annotated[bool, typer.Option("--json", help="JSON, on standard output.")]


@contextmanager
def study_of(path: Path) -> Iterator[StudyFile]:
    """The study file; what is wrong with it, or with its storage, becomes an exit code."""
    try:
        from optpair.studies import commands, config, storage
    except ModuleNotFoundError as error:
        fail(f"studies need {error.name}: pip install 'optpair[optuna]'")
    try:
        file = config.load(path)
    except config.StudyError as error:
        fail(str(error))
    try:
        yield file
    except commands.NothingYetError as error:
        fail(str(error), NOTHING_YET)
    except config.StudyError as error:
        fail(str(error))
    except storage.AwayError as error:
        fail(f"{storage.shown(file)} is away: {error}; run this again when it is back")


def show(data: Any, json: bool, text: str) -> None:
    """Show data as JSON, or else a text."""
    typer.echo(json_.dumps(data, indent=2) if json else text)


@contextmanager
def aside(json: bool) -> Iterator[None]:
    """Send what an objective prints, here or in a process of its own, to standard error.

    Standard output is for the JSON.
    """
    if not json:
        yield
        return
    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        with Outlet() as outlet, redirect_stdout(outlet):
            yield
    finally:
        try:
            sys.stdout.flush()  # what was written past the redirection
        except OSError:  # standard error does not take it, and it is not for standard output
            drop(1)
            sys.stdout.flush()
        os.dup2(out, 1)
        os.close(out)
