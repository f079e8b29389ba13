"""Help texts: arguments by their own names, without the types that programs give them."""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperCommand


class PlainCommand(TyperCommand):
    """A command whose help says STUDY.TOML, and not {STUDY.TOML} <path>."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; arguments keep quiet about their types."""
        found = super().get_params(ctx)
        for parameter in found:
            if isinstance(parameter, TyperArgument):
                parameter.display_type = _nothing  # type: ignore[method-assign]
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The line that shows how it is called."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


def _nothing(ctx: Any) -> str:
    return ""
