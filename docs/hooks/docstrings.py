"""Docstrings as Markdown: lines `name: what it is` become a list, and examples become code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Class, Extension, Function, Module

ARGUMENT = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*): (.+)$")


def as_markdown(text: str) -> str:
    """The same text, paragraph by paragraph."""
    return "\n\n".join(_paragraph(part) for part in re.split(r"\n\s*\n", text))


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return f"```pycon\n{text}\n```"
    lines = text.splitlines()
    if not ARGUMENT.match(lines[0]):
        return text
    found = [ARGUMENT.match(line) for line in lines]
    shown = [f"- `{m[1]}`: {m[2]}" if m else line for m, line in zip(found, lines, strict=True)]
    return "\n".join(shown)


class PlainDocstrings(Extension):
    """Rewrites the docstrings of what is loaded."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called once the package was read."""
        _rewrite(pkg)


def _rewrite(obj: Module | Class | Function | Any) -> None:
    if obj.docstring is not None:
        obj.docstring.value = as_markdown(obj.docstring.value)
    for member in getattr(obj, "members", {}).values():
        if not member.is_alias:
            _rewrite(member)
