"""Curves: the intermediate values that trials reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optpair.report import axes
from optpair.report.axes import Line
from optpair.report.frame import Frame
from optpair.report.markup import Markup, el
from optpair.report.parts import legend, section
from optpair.report.subject import OUT, Row
from optpair.report.words import count, number

MOST_CURVES = 300
WORST = 0.9  # quantile of the values beyond which they are drawn at the edge


def curves(rows: Sequence[Row], sign: float, best: int | None, step: str = "step") -> Markup:
    """The section; nothing if no trial reported two values.

    Args:
        rows: all trials.
        sign: what values are multiplied by, so that larger is better.
        best: the number of the best observed trial.
        step: what the values are counted by.
    """
    several = [row for row in rows if _finite(row)]
    if len(several) > MOST_CURVES or all(len(row.steps) < 2 for row in several):
        return Markup()
    pruned = sum(row.state == "pruned" for row in several)
    ended = f" {pruned} of them {'was' if pruned == 1 else 'were'} pruned." if pruned else ""
    entries = [("predicted-line-key", "finished")]
    entries += [("cut-key", "pruned or unfinished")] * any(_cut(row) for row in several)
    entries += [("out-key", "running")] * any(row.state in OUT for row in several)
    entries += [("observed-key", f"trial {best}, the best")] * (best in {r.number for r in several})
    return section(
        "Intermediate values",
        f"What {count(len(several), 'trial')} reported on the way.{ended} Values off the scale are "
        "drawn at the edge.",
        el("figure", _drawn(several, sign, best, step), legend(*entries), class_="plane"),
        class_="curves",
    )


def _finite(row: Row) -> list[tuple[float, float]]:
    """The steps of a trial and their values, in order."""
    return sorted((s, v) for s, v in row.steps.items() if np.isfinite(v))


def _cut(row: Row) -> bool:
    return row.state != "told" and row.state not in OUT


def _drawn(rows: Sequence[Row], sign: float, best: int | None, step: str) -> Markup:
    points = [pair for row in rows for pair in _finite(row)]
    values = np.array([value for _, value in points])
    worst = sign * np.quantile(sign * values, 1 - WORST)
    y = axes.of_values([*values[sign * values >= sign * worst]])
    steps = [step for step, _ in points]
    x = Line(float(min(steps)), float(max(max(steps), min(steps) + 1)))
    frame = Frame(x, y, width=620, height=320, left=56, bottom=42)
    lines = []
    for row in sorted(rows, key=lambda row: row.number == best):
        kind = "out" if row.state in OUT else "cut" if _cut(row) else "whole"
        at, own = zip(*_finite(row), strict=True)
        line = frame.line(at, own, f"curve {'best' if row.number == best else kind}")
        if len(own) == 1:
            line = frame.dots([(frame.px(at[0]), frame.py(own[0]))], "trial")
        end = f", {number(row.value)}" if row.value is not None else ""
        title = el("title", f"trial {row.number}: {row.state}{end}")
        lines.append(el("g", title, line))
    return frame.svg(
        "Intermediate values of trials",
        frame.y_marks(),
        frame.x_marks(),
        frame.box(),
        frame.title(step),
        *lines,
    )
