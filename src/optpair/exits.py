"""How a command ends."""

from __future__ import annotations

from typing import NoReturn

import typer

ERROR, USAGE, NOTHING_YET, INTERRUPTED = 1, 2, 3, 130
"""Exit codes: something is wrong; with the arguments; no trial has a value; Ctrl-C."""


def fail(message: str, code: int = ERROR) -> NoReturn:
    """End with a message and an exit code."""
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(code)
