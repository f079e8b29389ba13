"""Charts of several outcomes: predictions beside their limits, and fronts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optpair.problem.outcomes import Constraint
from optpair.report import axes
from optpair.report.axes import Line
from optpair.report.frame import Frame, drawing, mark
from optpair.report.markup import Markup, el, join, px
from optpair.report.outcome_words import interval, mean, wanted
from optpair.report.outcomes import Belief, JointFindings, JointSubject
from optpair.report.subject import Row
from optpair.report.words import number

NEAR = 3.0  # times the spread of the values: those further off are drawn at the edge
FAR = 10.0  # times the extent of an axis: limits further off are left out
BESIDE = 0.8  # times the front's extent: trials further from it are drawn at the edge
MOST_SAMPLES = 800  # of the front that are drawn
ROOM = 13.0  # between numbers of the front
ROW = 86.0  # the height of an outcome beside its limits


def limits_of(outcome: object) -> list[float]:
    """The limits of an outcome, in the user's units; an objective has none."""
    if not isinstance(outcome, Constraint):
        return []
    return [end for end in (outcome.low, outcome.high) if end is not None]


def outcome_axis(values: Sequence[float], shown: Sequence[float], limits: Sequence[float]) -> Line:
    """The axis of an outcome: what is shown, values that are not far off, and limits."""
    told = np.array(values, dtype=float)
    if len(told):
        middle = float(np.median(told))
        away = np.abs(told / 2 - middle / 2)
        told = told[away <= NEAR * float(np.quantile(away, 0.8))]
    inside = [*told, *shown] or [0.0]
    low, high = min(inside), max(inside)
    reach = FAR * (high / 2 - low / 2) or abs(high) or 1.0
    near = [v for v in limits if low / 2 - reach <= v / 2 <= high / 2 + reach]
    return axes.of_values([*inside, *near])


def beside_limits(subject: JointSubject, found: JointFindings) -> Markup:
    """The prediction of every outcome at the recommended point, beside its limits."""
    rows = enumerate(subject.problem.names)
    parts = [_beside(subject, found, name, ROW * i) for i, name in rows]
    label = "Predictions at the recommended point, beside their limits"
    return drawing(420.0, ROW * len(parts), label, *parts)


def _beside(subject: JointSubject, found: JointFindings, name: str, top: float) -> Markup:
    belief, limits = found.best.outcomes[name], limits_of(subject.problem.outcomes[name])
    seen = [row.outcomes[name] for row in found.observed if name in row.outcomes]
    line = outcome_axis([], [belief.low, belief.high, *seen, *limits], ())
    frame = Frame(line, Line(0, 1), 420, top + ROW, left=12, top=top + 30, bottom=26)
    middle, must = frame.top + frame.down / 2, "must be " if limits else ""
    words = el("tspan", f"  {must}{wanted(subject.problem, name)}", class_="more")
    title = f"{mean(belief)}, 95 %: {interval(belief)}"
    x, end = frame.px(belief.low), frame.px(belief.high)
    return join(
        [
            el("text", _cut(name, 28), words, x=12.0, y=top + 20, class_="row"),
            frame.x_marks(),
            frame.box(),
            *(_forbidden(frame, subject.problem.outcomes[name])),
            el(
                "rect",
                x=x,
                y=middle - 5,
                width=max(end - x, 1.0),
                height=10.0,
                rx=5,
                class_="predicted",
            ),
            mark(frame.px(belief.mean), middle, "disc", "recommended", title),
            *(mark(frame.px(v), middle, "star", "observed", number(v)) for v in seen),
        ]
    )


def _forbidden(frame: Frame, outcome: object) -> list[Markup]:
    """What is beyond the limits, shaded, with a line at each."""
    if not isinstance(outcome, Constraint):
        return []
    left, right, parts = frame.left, frame.left + frame.across, []
    for end, edge in ((outcome.low, left), (outcome.high, right)):
        if end is not None:
            at = frame.px(end)
            parts.append(
                el(
                    "rect",
                    x=min(at, edge),
                    y=frame.top,
                    width=abs(edge - at),
                    height=frame.down,
                    class_="forbidden",
                )
            )
            line = f"M{px(at)} {px(frame.top - 3)}v{px(frame.down + 3)}"
            parts.append(el("path", el("title", f"limit {number(end)}"), d=line, class_="limit"))
    return parts


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def front(
    subject: JointSubject, found: JointFindings, across: str, up: str, *, wide: bool
) -> Markup:
    """Two objectives: the predicted front with its intervals, the trials and the observed front.

    Where there are only these two, lines join the points.
    """
    x, y = (_axis(subject, found, name) for name in (across, up))
    frame = Frame(x, y, 620 if wide else 340, 400 if wide else 260, left=56, top=26)
    told = [row for row in subject.told if across in row.outcomes and up in row.outcomes]
    sides = [[r for r in told if bool(subject.broken(r)) is bad] for bad in (False, True)]
    good, bad = ([_place(frame, row, across, up) for row in side] for side in sides)
    joined = len(subject.problem.objectives) == 2
    signs = subject.problem.objectives[across].sign, subject.problem.objectives[up].sign
    seen = [_place(frame, row, across, up) for row in found.observed]
    points = [(frame.px(p.outcomes[across].mean), frame.py(p.outcomes[up].mean))
              for p in found.points]  # fmt: skip
    return frame.svg(
        f"The front of {across} and {up}",
        frame.y_marks(),
        frame.x_marks(),
        frame.box(),
        frame.title(f"{_cut(across, 40)} ({wanted(subject.problem, across)})"),
        el("text", f"{_cut(up, 40)} ({wanted(subject.problem, up)})", x=4, y=14, class_="name"),
        _possible(frame, found, across, up),
        frame.dots(good, "trial"),
        frame.crosses(bad, "trial"),
        _stairs(seen, signs[0]) if joined else Markup(),
        _path(points) if joined else Markup(),
        *(_whiskers(frame, p.outcomes[across], p.outcomes[up]) for p in found.points),
        *(mark(*at, "star", "observed", _told(row, across, up))
          for row, at in zip(found.observed, seen, strict=True)),
        *(
            mark(*at, "disc", "recommended", f"compromise {i + 1}") for i, at in enumerate(points)
        ),
        _numbered(points, signs) if wide else Markup(),
    )  # fmt: skip


def _axis(subject: JointSubject, found: JointFindings, name: str) -> Line:
    """The values of an objective: the fronts, and what is not far from them."""
    fronts = [p.outcomes[name].mean for p in found.points]
    fronts += [row.outcomes[name] for row in found.observed]
    low, high = min(fronts), max(fronts)
    reach = BESIDE * (high / 2 - low / 2)
    others = [row.outcomes[name] for row in subject.told if name in row.outcomes]
    others += [end for p in found.points for end in (p.outcomes[name].low, p.outcomes[name].high)]
    if low == high:  # no extent to go by
        return outcome_axis(others, fronts, ())
    near = [v for v in others if low / 2 - reach <= v / 2 <= high / 2 + reach]
    return axes.of_values([*fronts, *near])


def _place(frame: Frame, row: Row, across: str, up: str) -> tuple[float, float]:
    return frame.px(row.outcomes[across]), frame.py(row.outcomes[up])


def _told(row: Row, across: str, up: str) -> str:
    x, y = number(row.outcomes[across]), number(row.outcomes[up])
    return f"trial {row.number}: {across} {x}, {up} {y}"


def _possible(frame: Frame, found: JointFindings, across: str, up: str) -> Markup:
    """Some points of fronts that are still possible, within the box."""
    pairs = list(zip(found.samples[across], found.samples[up], strict=True))
    within = [(x, y) for x, y in pairs if 0 < frame.x.at(x) < 1 and 0 < frame.y.at(y) < 1]
    every = -(-len(within) // MOST_SAMPLES) or 1
    return frame.dots([(frame.px(x), frame.py(y)) for x, y in within[::every]], "possible")


def _stairs(places: Sequence[tuple[float, float]], sign: float) -> Markup:
    """The edge of the region that the observed front beats."""
    if len(places) < 2:
        return Markup()
    (x, y), *rest = sorted(places)
    path = f"M{px(x)} {px(y)}"
    for x, y in rest:
        path += f"H{px(x)}V{px(y)}" if sign < 0 else f"V{px(y)}H{px(x)}"
    return el("path", d=path, class_="line observed-line")


def _path(places: Sequence[tuple[float, float]]) -> Markup:
    points = " ".join(f"{px(x)} {px(y)}" for x, y in sorted(places))
    return el("path", d=f"M{points}", class_="line predicted-line pale")


def _whiskers(frame: Frame, x: Belief, y: Belief) -> Markup:
    """The 95 % intervals of a point, as a cross."""
    at, level = frame.px(x.mean), frame.py(y.mean)
    path = f"M{px(frame.px(x.low))} {px(level)}H{px(frame.px(x.high))}"
    path += f"M{px(at)} {px(frame.py(y.low))}V{px(frame.py(y.high))}"
    return el("path", d=path, class_="whisker")


def _numbered(places: Sequence[tuple[float, float]], signs: tuple[float, float]) -> Markup:
    """The numbers of the table, on the better side of the points, where there is room."""
    parts: list[Markup] = []
    last: tuple[float, float] | None = None
    for i, (x, y) in enumerate(places):
        if last is None or max(abs(x - last[0]), abs(y - last[1])) >= ROOM:
            at, level = x + 9 * signs[0], y - 9 * signs[1] + (8 if signs[1] < 0 else 0)
            anchor = "start" if signs[0] > 0 else "end"
            parts.append(el("text", i + 1, x=at, y=level, text_anchor=anchor, class_="number"))
            last = x, y
    return join(parts)
