"""Help texts: what is to be given by its own name, without the types that programs give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption
from typer.models import CommandFunctionType


class PlainCommand(TyperCommand):
    """A command whose help says STUDY.TOML and not {STUDY.TOML} <path>, --n N and not --n <int>."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters: arguments without their types, options with a name for their value."""
        found = super().get_params(ctx)
        for parameter in found:
            if isinstance(parameter, TyperArgument):
                parameter.metavar = parameter.metavar or str(parameter.name).upper()
                parameter.display_type = _nothing  # type: ignore[method-assign]
            elif isinstance(parameter, TyperOption) and not parameter.is_flag:
                name = max(parameter.opts, key=len).lstrip("-")
                parameter.metavar = parameter.metavar or name.upper()
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The line that shows how it is called."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class PlainApp(typer.Typer):
    """An app of plain commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            no_args_is_help=True,
            pretty_exceptions_show_locals=False,
            rich_markup_mode=None,  # its tables call a flag <bool>, and keep docstrings' lines
            **settings,
        )

    def command(
        self, *args: Any, cls: type[TyperCommand] | None = PlainCommand, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """A decorator that makes a function a command."""
        return super().command(*args, cls=cls, **settings)


def _nothing(ctx: Any) -> str:
    return ""
