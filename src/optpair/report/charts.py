"""Charts of a page, one per function: values beside each other, over time, along a parameter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from optpair.engine.answers import LeftOut
from optpair.report import axes
from optpair.report.axes import Choices, Line
from optpair.report.findings import Answer, Findings, Moment, Slice, Succeeds
from optpair.report.frame import SLANT, Frame, mark
from optpair.report.markup import Markup, broken, el, join, px
from optpair.report.subject import Row, Subject
from optpair.report.words import likely, number

MOST_TITLED = 300  # more dots than this say nothing to the pointer
FADES = 5  # degrees of a trial's distance from a slice
WIDE, NARROW = 3.0, 0.5  # times the better half's spread: values further off are drawn at the edge


def value_axis(found: Findings, told: Sequence[Row], sign: float, wide: float = WIDE) -> Line:
    """The axis of the objective: all good values but doubtful ones, and bad ones not far off."""
    believed = [row.value for row in told if row.number not in found.doubtful]
    values = np.array(believed or [row.value for row in told], dtype=float)
    middle = float(np.median(values))
    good = sign * values >= sign * middle
    spread = float(np.quantile(np.abs(values[good] / 2 - middle / 2), 0.9)) * 2
    near = np.abs(values / 2 - middle / 2) * 2 <= wide * spread
    belief = np.quantile(found.worth, [0.01, 0.99])
    best = found.recommended
    return axes.of_values([*values[good | near], *belief, best.low, best.high])


def ruler(found: Findings) -> Markup:
    """The recommendation, the best observed trial and the optimum, on one line of values."""
    best, seen, expected = found.recommended, found.observed, found.expected
    assert seen.value is not None
    shown = [best.low, best.high, seen.value, expected.low, expected.high]
    ends = np.quantile(found.worth, [0.01, 0.99])
    line = axes.of_values([*shown, *ends])
    frame = Frame(line, Line(0, 1), width=420, height=290, left=12, bottom=26, top=6)
    first, second, third, foot = 42.0, 120.0, 168.0, 264.0
    name = f"trial {seen.number}"
    lines = join(
        el("path", d=f"M{px(12 + frame.across * at)} 6V{px(foot)}", class_="grid")
        for at, _ in line.ticks(6)
    )
    return frame.svg(
        f"Recommended {number(best.mean)}, best observed {number(seen.value)}",
        lines,
        frame.x_marks(),
        frame.box(),
        _row_name("recommended", "what it is worth, 95 %", first),
        _interval(frame, best.low, best.high, first, "predicted"),
        mark(frame.px(best.mean), first, "disc", "recommended", _between(best)),
        _row_name(name, "what it gave (star), what it is worth", second),
        _interval(frame, expected.low, expected.high, second, "muted"),
        mark(frame.px(expected.mean), second, "disc", "hollow", _between(expected)),
        mark(frame.px(seen.value), second, "star", "observed", f"{name}: {number(seen.value)}"),
        _row_name("the optimum", "samples of f*", third + 20),
        _hills(frame, found.worth, foot, 62.0),
    )


def _row_name(label: str, more: str, y: float) -> Markup:
    words = el("tspan", f"  {more}", class_="more")
    return el("text", label, words, x=12.0, y=y - 18, class_="row")


def _between(answer: Any) -> str:
    return f"{number(answer.mean)}, 95 %: {number(answer.low)} to {number(answer.high)}"


def _interval(frame: Frame, low: float, high: float, y: float, class_: str) -> Markup:
    x, end = frame.px(low), frame.px(high)
    return el("rect", x=x, y=y - 5, width=max(end - x, 1.0), height=10.0, rx=5, class_=class_)


def _hills(frame: Frame, values: np.ndarray, foot: float, height: float) -> Markup:
    """A histogram of values, standing on a line."""
    bins, edges = np.histogram([frame.px(v) for v in values], 40, (12, 12 + frame.across))
    tall = height / max(int(bins.max()), 1)
    path = "".join(
        f"M{px(edges[i])} {px(foot)}v{px(-tall * n)}h{px(edges[i + 1] - edges[i] - 0.8)}"
        f"v{px(tall * n)}Z"
        for i, n in enumerate(bins)
        if n
    )
    return el("path", d=path, class_="hills")


def progress(found: Findings, subject: Subject, axis: Line) -> Markup:
    """Every trial, the best observed so far, and the best predicted with its band.

    Only whole trials can be the best, and no value that is in doubt.
    """
    rows, told = subject.rows, subject.told
    frame = Frame(_numbers(rows), axis, width=480, height=300)
    whole = [row for row in told if subject.whole(row)] or told
    able = [row for row in whole if row.number not in found.doubtful] or whole
    values = np.array([row.value for row in able], dtype=float)
    best = subject.sign * np.maximum.accumulate(subject.sign * values)
    when = [m.number for m in found.moments]
    failed = [(frame.px(r.number), frame.top + frame.down - 3) for r in rows if r.state == "failed"]
    return frame.svg(
        "Best predicted and best observed value over the trials",
        frame.y_marks(),
        frame.x_marks(),
        frame.box(),
        frame.title("trial"),
        _trials(frame, told, {row.number for row in whole}),
        frame.dots(failed, "failed"),
        frame.band(when, [m.low for m in found.moments], [m.high for m in found.moments], "band"),
        frame.steps([r.number for r in able], list(best), rows[-1].number, "line observed-line"),
        frame.line(when, [m.mean for m in found.moments], "line predicted-line"),
        frame.dots([(frame.px(m.number), frame.py(m.mean)) for m in found.moments], "node"),
    )


def _numbers(rows: Sequence[Row]) -> Line:
    return Line(0, max(rows[-1].number, 1), whole=True)


def _trials(frame: Frame, told: Sequence[Row], whole: Collection[int]) -> Markup:
    """All told trials; those that are not whole are circles."""
    places = [(frame.px(row.number), frame.py(row.value)) for row in told]
    if len(told) > MOST_TITLED:
        return frame.dots(places, "trial")
    return join(
        el(
            "circle",
            el("title", title(row)),
            cx=x,
            cy=y,
            r=2.6,
            class_="trial" if row.number in whole else "part",
        )
        for row, (x, y) in zip(told, places, strict=True)
    )


def title(row: Row) -> str:
    """What is shown when the pointer is on a trial."""
    assert row.value is not None
    return f"trial {row.number}: {number(row.value)}{', pruned' * (row.state == 'pruned')}"


def unknown(moments: Sequence[Moment], rows: Sequence[Row], what: str, label: str) -> Markup:
    """What was still unknown over time: `gap` or `next_gain`, from zero up."""
    values = [float(getattr(m, what)) for m in moments]
    when = [m.number for m in moments]
    frame = Frame(_numbers(rows), axes.of_values(values, zero=True), width=360, height=176)
    last = (frame.px(when[-1]), frame.py(values[-1]))
    return frame.svg(
        label,
        frame.y_marks(),
        frame.x_marks(),
        frame.box(),
        frame.title("trial"),
        frame.band(when, [0.0] * len(values), values, "band"),
        frame.line(when, values, "line predicted-line"),
        frame.dots([(frame.px(x), frame.py(y)) for x, y in zip(when, values, strict=True)], "node"),
        mark(*last, "disc", "recommended", f"now: {number(values[-1])}"),
    )


def along(
    cut: Slice,
    recommended: Answer,
    observed: Row | None,
    told: Sequence[Row],
    failed: Sequence[Row],
    x: axes.Axis,
    y: Line,
    limits: Sequence[float] = (),
    broken: Collection[int] = (),
) -> Markup:
    """The predicted value along one parameter, with its band, and the trials.

    Under constraints, `limits` are those of the value, and `broken` has the numbers of the trials
    that do not meet all of them: crosses.
    """
    slanted = isinstance(x, Choices) and len(x.choices) > SLANT
    left, bottom = (64, 56) if slanted else (46, 26)
    frame = Frame(x, y, width=340, height=210, left=left, bottom=bottom)
    mean, _, low, high = cut.predicted
    best = recommended.params[cut.name]
    crossed = np.array([row.number in broken for row in told], dtype=bool)
    has = np.array([cut.name in row.params for row in told], dtype=bool)
    nearness = np.where(has, cut.nearness, -1.0)
    places = [
        (_beside(frame, row, cut.name) if there else 0.0, frame.py(row.value))
        for row, there in zip(told, has, strict=True)
    ]
    lost = [
        (_beside(frame, row, cut.name), frame.top + frame.down - 3)
        for row in failed
        if cut.name in row.params
    ]
    curve = (
        _posts(frame, cut.values, mean, low, high)
        if isinstance(x, Choices)
        else join(
            [
                frame.band(cut.values, list(low), list(high), "band"),
                frame.line(cut.values, mean, "line predicted-line"),
            ]
        )
    )
    return frame.svg(
        f"The predicted value along {cut.name}",
        frame.y_marks(),
        frame.x_marks(),
        frame.box(),
        el("path", d=f"M{px(frame.px(best))} {px(frame.top)}v{px(frame.down)}", class_="here"),
        curve,
        _faded(frame, places, np.where(crossed, -1.0, nearness)),
        _faded(frame, places, np.where(crossed, nearness, -1.0), crosses=True),
        frame.dots(lost, "failed"),
        *(frame.limit(value) for value in limits),
        mark(frame.px(best), frame.py(recommended.mean), "disc", "recommended"),
        Markup() if observed is None else _seen(frame, observed, cut.name),
    )


def _seen(frame: Frame, seen: Row, name: str) -> Markup:
    if name not in seen.params:
        return Markup()
    at = frame.px(seen.params[name]), frame.py(seen.value)
    return mark(*at, "star", "observed", title(seen))


def _posts(
    frame: Frame, values: Sequence[Any], mean: np.ndarray, low: np.ndarray, high: np.ndarray
) -> Markup:
    """One bar per category."""
    half = min(18.0, 0.34 * frame.across / len(values))
    parts = []
    for value, m, a, b in zip(values, mean, low, high, strict=True):
        x, top, foot = frame.px(value), frame.py(b), frame.py(a)
        parts.append(
            el("rect", x=x - half, y=top, width=2 * half, height=max(foot - top, 1.0), rx=3,
               class_="band")
        )  # fmt: skip
        parts.append(
            el("path", d=f"M{px(x - half)} {px(frame.py(m))}h{px(2 * half)}",
               class_="line predicted-line")
        )  # fmt: skip
    return join(parts)


def _faded(
    frame: Frame,
    places: Sequence[tuple[float, float]],
    nearness: np.ndarray,
    *,
    crosses: bool = False,
) -> Markup:
    """Trials, fainter the further they are from the slice; none if nearness is below 0."""
    degree = np.minimum(np.floor(nearness * FADES).astype(int), FADES - 1)
    drawn = frame.crosses if crosses else frame.dots
    return join(
        drawn([p for p, d in zip(places, degree, strict=True) if d == k], f"fade{k}")
        for k in range(FADES)
    )


def _beside(frame: Frame, row: Row, name: str) -> float:
    """The place of a trial along a parameter, a little aside if others may be there, too."""
    at, levels = frame.px(row.params[name]), frame.x.levels
    if levels:
        at += min(20.0, 100 / levels) * ((0.618034 * row.number) % 1 - 0.5)
    return min(max(at, frame.left), frame.left + frame.across)


def left_out(check: LeftOut, numbers: Sequence[int]) -> Markup:
    """Each value against what the others predict, with 95 % intervals that may be cut off."""
    mean, _, low, high = check.predicted
    axis = axes.of_values([*check.y, *np.quantile(mean, [0, 1])])
    frame = Frame(axis, axis, width=400, height=340, bottom=42)
    inside = (low <= check.y) & (check.y <= high)
    bars = "".join(
        f"M{px(frame.px(m))} {px(frame.py(a))}V{px(frame.py(b))}"
        for m, a, b in zip(check.y, low, high, strict=True)
    )
    places = [(frame.px(y), frame.py(m)) for y, m in zip(check.y, mean, strict=True)]
    dots = (
        el("circle", el("title", f"trial {n}"), cx=x, cy=y, r=3.2, class_="hit" if ok else "miss")
        for n, (x, y), ok in zip(numbers, places, inside, strict=True)
    )
    corner = f"M{px(frame.left)} {px(frame.top + frame.down)}L{px(frame.left + frame.across)} "
    return frame.svg(
        "What the other trials predict of each value",
        frame.y_marks(),
        frame.x_marks(),
        frame.box(),
        frame.title("value that was told"),
        el("path", d=f"{corner}{px(frame.top)}", class_="here"),
        el("path", d=bars, class_="whisker"),
        *dots,
    )


def chance(name: str, own: Succeeds, rows: Sequence[Row], x: axes.Axis) -> Markup:
    """The chance of success along one parameter; trials that were told at the top, failed below."""
    frame = Frame(x, Line(0.0, 1.0), width=340, height=180, left=46, bottom=26)
    top, foot = frame.top + 3, frame.top + frame.down - 3

    def ran(state: str, y: float) -> Markup:
        there = [r for r in rows if r.state == state and name in r.params]
        places = [(_beside(frame, row, name), y) for row in there]
        near = np.array([own.nearness.get(row.number, 0.0) for row in there])
        return el("g", _faded(frame, places, near), class_=f"{state}-dots")

    curve = (
        join(mark(frame.px(v), frame.py(c), "disc", "node-disc", likely(float(c)))
             for v, c in zip(own.values, own.chance, strict=True))
        if isinstance(x, Choices)
        else frame.line(own.values, own.chance, "line predicted-line")
    )  # fmt: skip
    return frame.svg(
        f"The chance of success along {name}",
        *(frame.y_marks(), frame.x_marks(), frame.box()),
        ran("told", top),
        ran("failed", foot),
        curve,
    )


def matters(first: Mapping[str, float], total: Mapping[str, float]) -> Markup:
    """One bar per parameter: what it explains alone, and with others; the largest first."""
    bars = []
    for name in sorted(total, key=lambda name: -total[name]):
        alone, both = (f"{100 * share:.1f}%" for share in (first[name], total[name]))
        bars.append(
            el(
                "li",
                el("span", broken(name), class_="param"),
                el(
                    "span",
                    el("i", class_="both", style=f"width:{both}"),
                    el("i", class_="alone", style=f"width:{alone}"),
                    class_="bar",
                ),
                el("data", f"{100 * total[name]:.0f} %", value=repr(float(total[name]))),
                title=f"{name}: {alone} alone, {both} with its interactions",
            )
        )
    return el("ol", *bars, class_="bars")
