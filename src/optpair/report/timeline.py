"""Timeline: which worker ran which trial, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from optpair.report.axes import Line
from optpair.report.frame import Frame
from optpair.report.markup import Markup, el, join, px
from optpair.report.parts import legend, section
from optpair.report.subject import OUT, Row
from optpair.report.words import count, number, percent, short

MOST_LANES = 24
MOST_BARS = 1000
LANE = 22.0  # units of the drawing
UNITS = ((172_800.0, 86_400.0, "days"), (7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"))
KEYS = {
    "told": ("told-key", "told"),
    "failed": ("failed-key", "failed"),
    "out": ("running-key", "running"),
    "other": ("trial-key", "pruned, stale or cancelled"),
}


class Bar(NamedTuple):
    """A trial on its lane, from when to when in seconds since the first began."""

    row: Row
    lane: int
    start: float
    end: float


def lanes(rows: Sequence[Row]) -> tuple[list[str], list[Bar]]:
    """The names of the lanes, and the trials on them; none where no time is known.

    A lane is a worker, where all have one and they are few; otherwise it has no name, and trials
    that ran at the same time are on different ones. A trial that still runs ends at the last time
    that is known.
    """
    timed = sorted((r for r in rows if r.began is not None), key=lambda r: r.began or 0.0)
    if not timed:
        return [], []
    first = timed[0].began or 0.0
    last = max(max(r.began or first, r.ended or first) for r in timed)
    spans = [
        ((r.began or first) - first, (last if r.ended is None else r.ended) - first) for r in timed
    ]
    spans = [(start, max(end, start)) for start, end in spans]
    workers = list(dict.fromkeys(row.worker for row in timed))
    if all(workers) and len(workers) <= MOST_LANES:
        return workers, [
            Bar(row, workers.index(row.worker), *span)
            for row, span in zip(timed, spans, strict=True)
        ]
    free: list[float] = []  # when each lane is free again
    bars = []
    for row, (start, end) in zip(timed, spans, strict=True):
        lane = next((i for i, until in enumerate(free) if until <= start), len(free))
        free[lane : lane + 1] = [end]
        bars.append(Bar(row, lane, start, end))
    return [""] * len(free), bars


def timeline(rows: Sequence[Row]) -> Markup:
    """The section; nothing if trials have no times, or are too many."""
    names, bars = lanes(rows)
    length = max((bar.end for bar in bars), default=0.0)
    if not length > 0 or len(names) > MOST_LANES or len(bars) > MOST_BARS:
        return Markup()
    busy = sum(bar.end - bar.start for bar in bars) / (len(names) * length)
    kinds = dict.fromkeys(_kind(bar.row) for bar in bars)
    at_once = "one at a time" if len(names) == 1 else f"up to {len(names)} at a time"
    who = count(len(names), "worker") if names[0] else at_once
    middle = sorted(bar.end - bar.start for bar in bars if bar.row.state == "told")
    usual = f" A trial took {duration(middle[len(middle) // 2])} (median)." if middle else ""
    return section(
        "Who ran what, and when",
        f"{count(len(bars), 'trial')} in {duration(length)}, {who}, busy {percent(busy)} of the "
        f"time.{usual}",
        el("div", _drawn(names, bars, length), class_="threads"),
        legend(*(KEYS[kind] for kind in kinds)),
        class_="timeline",
    )


def _drawn(names: Sequence[str], bars: Sequence[Bar], length: float) -> Markup:
    unit, name = _unit(length)
    left = 130.0 if names[0] else 12.0
    frame = Frame(
        *(Line(0.0, length / unit), Line(0.0, 1.0)),
        width=720,
        height=LANE * len(names) + 52,
        left=left,
        bottom=42,
    )
    labels = join(
        el("text", short(who, 20), x=left - 8, y=frame.top + LANE * (i + 0.68), text_anchor="end")
        for i, who in enumerate(names)
        if who
    )
    drawn = (
        el(
            "rect",
            el("title", _title(bar)),
            x=frame.px(bar.start / unit),
            y=frame.top + LANE * bar.lane + 3,
            width=max(frame.px(bar.end / unit) - frame.px(bar.start / unit) - 1, 1.5),
            height=LANE - 6,
            rx=3,
            class_=f"run {_kind(bar.row)}",
        )
        for bar in bars
    )
    rules = "".join(
        f"M{px(frame.left)} {px(frame.top + LANE * i)}h{px(frame.across)}"
        for i in range(len(names) + 1)
    )
    return frame.svg(
        "When each trial ran",
        el("path", d=rules, class_="grid"),
        labels,
        *drawn,
        frame.x_marks(),
        frame.title(name),
    )


def _kind(row: Row) -> str:
    """How a trial is drawn: told, failed, out, or other."""
    if row.state in OUT:
        return "out"
    return row.state if row.state in ("told", "failed") else "other"


def _title(bar: Bar) -> str:
    value = "" if bar.row.value is None else f", {number(bar.row.value)}"
    return f"trial {bar.row.number}: {bar.row.state}{value}, {duration(bar.end - bar.start)}"


def duration(seconds: float) -> str:
    """A duration as people say it.

    >>> duration(0.25), duration(90), duration(9000), duration(1e6)
    ('0.25 s', '90 s', '2.5 hours', '11.6 days')
    """
    unit, name = _unit(seconds)
    return f"{number(seconds / unit, digits=3)} {'s' if name == 'seconds' else name}"


def _unit(length: float) -> tuple[float, str]:
    """What to count a length of time in."""
    return next(((unit, name) for least, unit, name in UNITS if length >= least), (1.0, "seconds"))
