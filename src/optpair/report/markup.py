"""HTML and SVG by function calls: text is escaped unless it is markup already."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

VOID = {"meta", "link", "br", "input", "wbr"}


class Markup(str):
    """Text that is safe to put on a page as it is."""


def text(value: object) -> Markup:
    """Any text as markup; control characters, which HTML forbids, are shown as �."""
    plain = "".join(c if c >= " " or c in "\n\t" else "\ufffd" for c in str(value))
    return Markup(html.escape(plain.encode("utf-8", "replace").decode()))


def join(parts: Iterable[object]) -> Markup:
    """Parts one after the other, each escaped unless it is markup."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def el(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element; `class_` is class, other underscores are hyphens, None leaves an attribute out.

    >>> el("a", "x < y", class_="b")
    '<a class="b">x &lt; y</a>'
    """
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_value(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{join(children)}</{name}>")


def broken(name: str) -> Markup:
    """A name that a narrow page breaks after its underscores and dots, not inside a word."""
    parts = re.split(r"(?<=[_./-])", name)
    return join([text(parts[0]), *(join([el("wbr"), part]) for part in parts[1:])])


def _value(value: object) -> str:
    return px(value) if isinstance(value, float) else text(value)


def px(value: float) -> str:
    """A coordinate: one decimal is finer than a screen."""
    return f"{value:.1f}".removesuffix(".0")
