"""Parallel coordinates: one line per trial through its parameters to its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optpair.report.axes import Axis
from optpair.report.frame import drawing
from optpair.report.markup import Markup, el, px
from optpair.report.parts import section
from optpair.report.subject import Row
from optpair.report.words import short

MOST_LINES = 300
MOST_AXES = 9  # parameters side by side
LEVELS = 5  # degrees of how good a trial is
WIDTH, TOP, FOOT, SIDE = 720.0, 42.0, 274.0, 36.0
LETTER = 6.2  # units of the drawing, about
ZONE = 15.0  # to both sides of an axis: where a stroke counts


class Column(NamedTuple):
    """An axis with its name, and the value of each trial on it, or None."""

    name: str
    axis: Axis
    values: Sequence[Any]


def columns_of(
    rows: Sequence[Row], scales: Mapping[str, Axis], total: Mapping[str, float]
) -> list[Column]:
    """A column for each parameter that trials have; of many, for those that matter most."""
    there = [name for name in scales if any(name in row.params for row in rows)]
    order = sorted(there, key=lambda name: -total.get(name, 0.0))[:MOST_AXES]
    return [Column(n, scales[n], [row.params.get(n) for row in rows]) for n in order]


def levels(worth: np.ndarray) -> np.ndarray:
    """The rank of each trial among all, in a few levels: the best have the highest.

    >>> levels(np.array([3.0, 1.0, 2.0, 0.0, 9.0]))
    array([3, 1, 2, 0, 4])
    """
    found = np.empty(len(worth), dtype=int)
    found[np.argsort(worth, kind="stable")] = np.arange(len(worth)) * LEVELS // len(worth)
    return found


def all_trials(
    rows: Sequence[Row], columns: Sequence[Column], level: np.ndarray, titles: Sequence[str]
) -> Markup:
    """The section, with what is needed to select trials by dragging along axes.

    Args:
        rows: the trials.
        columns: what each line goes through, in order.
        level: how strongly each trial is drawn, from 0 to 4.
        titles: what the pointer says of each.
    """
    if not 1 < len(rows) <= MOST_LINES or len(columns) < 2:
        return Markup()
    picked = el("output", class_="picked")
    clear = el("button", "show all", type="button", class_="clear", hidden=True)
    return section(
        "Every trial at a glance",
        "One line per trial, through its parameters to its result: the better, the stronger. Point "
        "at a line to see it alone. Drag along an axis to keep the trials that cross it there; "
        "click the axis to undo that.",
        el("div", _drawn(rows, columns, level, titles), class_="threads"),
        el("p", picked, " ", clear, class_="picking"),
        class_="glance",
    )


def _drawn(
    rows: Sequence[Row], columns: Sequence[Column], level: np.ndarray, titles: Sequence[str]
) -> Markup:
    at = np.linspace(SIDE, WIDTH - SIDE, len(columns)).tolist()
    heights = [[_height(c.axis, value) for value in c.values] for c in columns]
    lines = []
    for i in np.argsort(level, kind="stable"):
        own = [height[i] for height in heights]
        path = " ".join(f"{px(x)} {px(y)}" for x, y in zip(at, own, strict=True) if y is not None)
        lines.append(
            el(
                "path",
                el("title", titles[i]),
                d=f"M{path}",
                class_=f"thread level{level[i]}",
                data_n=rows[i].number,
                data_y=" ".join("-" if y is None else px(y) for y in own),
            )
        )
    marks = [
        _marks(x, column, i, at) for i, (x, column) in enumerate(zip(at, columns, strict=True))
    ]
    label = "Every trial through all parameters"
    return drawing(WIDTH, FOOT + 16, label, *lines, *marks, class_="parallel")


def _height(axis: Axis, value: Any) -> float | None:
    return None if value is None else FOOT - (FOOT - TOP) * axis.at(value)


def _title(name: str, i: int, at: Sequence[float]) -> Markup:
    """The name above the i-th axis: every second one is higher, so that neighbours have room."""
    last = i == len(at) - 1
    room = 2 * (at[1] - at[0]) - 10 if len(at) > 2 else WIDTH / 2
    anchor, x = ("start", 0.0) if i == 0 else ("end", WIDTH) if last else ("middle", at[i])
    words = short(name, max(8, min(int(room / LETTER), 40)))
    return el("text", words, x=x, y=TOP - (26 if i % 2 else 12), text_anchor=anchor)


def _marks(x: float, column: Column, i: int, at: Sequence[float]) -> Markup:
    """An axis with its labels, the zone to drag in, and the selected range."""
    labels = (
        el("text", label, x=x + 4, y=FOOT - (FOOT - TOP) * place + 4, class_="on-line")
        for place, label in column.axis.ticks(4)
    )
    zone = {"x": x - ZONE, "y": TOP - 8, "width": 2 * ZONE, "height": FOOT - TOP + 16}
    return el(
        "g",
        el("path", d=f"M{px(x)} {px(TOP)}V{px(FOOT)}", class_="axis"),
        _title(column.name, i, at),
        *labels,
        el("rect", x=x - 6, y=TOP, width=12.0, height=0.0, class_="range"),
        el("rect", class_="zone", data_name=column.name, **zone),
    )
