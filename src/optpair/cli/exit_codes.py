"""How a command ends, and what it says on the way."""

from __future__ import annotations

from contextlib import suppress
from typing import NoReturn

import typer

from optpair.runtime.stderr import UNWRITABLE

ERROR, USAGE, NOTHING_YET, INTERRUPTED = 1, 2, 3, 130
"""Exit codes: something is wrong; with the arguments; no trial has a value; Ctrl-C."""


def say(message: str) -> None:
    """Write a line to standard error, if it takes it."""
    with suppress(*UNWRITABLE):
        typer.echo(message, err=True)


def fail(message: str, code: int = ERROR) -> NoReturn:
    """End with a message and an exit code."""
    say(f"Error: {message}")
    raise typer.Exit(code)
