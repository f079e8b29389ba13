"""Parts that every page has: headings, cards, figures with their keys, parameters, messages."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from optpair.report.markup import Markup, broken, el, join
from optpair.report.words import Verdict, short

LONG, LONGEST = 90, 4000  # characters of a message that are seen at once, and at all


def header(name: str, facts: Sequence[str]) -> Markup:
    """The heading, with a line of facts and the switch for light or dark."""
    return el(
        "header",
        el("div", el("h1", short(name, LONGEST)), el("p", " · ".join(facts))),
        el("button", "◐", id="theme", type="button", title="light or dark"),
    )


def conclusion(said: Verdict) -> Markup:
    """What the page says in a few words."""
    words = el("p", el("strong", said.headline), " ", said.reason)
    return el("section", words, class_=f"verdict {said.level}", id="verdict")


def section(title: str, note: str, *parts: object, class_: str) -> Markup:
    """A card with a heading, and a note below it where there is one."""
    words = [el("p", note, class_="note")] if note else []
    return el("section", el("h2", title), *words, *parts, class_=f"card {class_}")


def figure(caption: str, *parts: object) -> Markup:
    """A drawing below its name."""
    return el("figure", el("figcaption", caption), *parts)


def legend(*entries: tuple[str, str]) -> Markup:
    """What the marks of a figure mean."""
    return el(
        "p", *(el("span", el("i", class_=class_), label) for class_, label in entries), class_="key"
    )


def parameters(params: Mapping[str, Any]) -> Markup:
    """Parameters, one per line."""
    return el(
        "dl",
        *(
            el(
                "div",
                el("dt", broken(name)),
                el(
                    "dd",
                    short(value, 40),
                    title=short(str(value), LONGEST),
                    class_=None if isinstance(value, str) else "number",
                ),
            )
            for name, value in params.items()
        ),
    )


def from_trial(number: int | None) -> list[Markup]:
    """Which trial a recommendation is, where it was chosen from those that were made."""
    return [] if number is None else [el("p", f"It is trial {number}.", class_="note")]


def as_json(params: Mapping[str, Any]) -> Markup:
    """Parameters to copy, folded."""
    shown = json.dumps(dict(params), indent=2, default=str, ensure_ascii=False)
    return el("details", el("summary", "as JSON"), el("pre", shown))


def message(words: str) -> Markup:
    """A message, or its last line with the rest folded away."""
    lines = words.strip().splitlines()
    last = lines[-1] if lines else ""
    if len(lines) <= 1 and len(last) <= LONG:
        return join([last])
    end = words if len(words) <= LONGEST else f"…{words[1 - LONGEST :]}"
    return el("details", el("summary", short(last, LONG)), el("pre", end))


def table(
    heads: Sequence[str],
    rows: Sequence[Markup],
    *,
    sorts: bool = False,
    largest_first: Collection[str] = (),
) -> Markup:
    """A table that scrolls in its card; a click on a heading sorts it, where that is wanted.

    The smallest come first, or the largest in the columns that say so.
    """
    titles: Sequence[object] = heads
    if sorts:
        first = dict.fromkeys(largest_first, "down")
        titles = [el("button", h, type="button", data_first=first.get(h)) for h in heads]
    return el(
        "div",
        el(
            "table",
            el("thead", el("tr", *(el("th", title) for title in titles))),
            el("tbody", *rows),
        ),
        class_="scroll",
        tabindex=0,
    )
