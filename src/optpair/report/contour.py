"""The chart of a plane: what is predicted over two parameters, in shades."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from optpair.engine.worth import SURE
from optpair.report.axes import Axis
from optpair.report.frame import Frame, mark
from optpair.report.markup import Markup, el, join, px
from optpair.report.plane import Plane
from optpair.report.subject import Row
from optpair.report.words import number

SHADES = 9


def contour(
    plane: Plane,
    level: np.ndarray,
    best: Mapping[str, Any],
    observed: Sequence[Row],
    told: Sequence[Row],
    scales: Mapping[str, Axis],
    what: str = "The predicted value",
    broken: Collection[int] = (),
) -> Markup:
    """The plane in shades by level, with the trials; those that break a limit are crosses."""
    x, y = plane.names
    frame = Frame(scales[x], scales[y], width=470, height=360, left=78, bottom=42)
    cells: list[list[str]] = [[] for _ in range(SHADES)]
    lefts, tops = _edges(frame, plane.across, x=True), _edges(frame, plane.up, x=False)
    for i in range(len(plane.across)):
        for j in range(len(plane.up)):
            if np.isnan(plane.mean[i, j]):
                continue
            left, right, top, foot = lefts[i], lefts[i + 1], tops[j + 1], tops[j]
            cells[level[i, j]].append(f"M{px(left)} {px(top)}H{px(right)}V{px(foot)}H{px(left)}Z")
    shades = join(
        el("path", d="".join(some), class_=f"shade{k}") for k, some in enumerate(cells) if some
    )
    has = [row for row in told if x in row.params and y in row.params]
    good, bad = (
        [
            (frame.px(row.params[x]), frame.py(row.params[y]))
            for row in has
            if (row.number in broken) == crossed
        ]
        for crossed in (False, True)
    )
    middle = frame.top + frame.down / 2
    turn = f"rotate(-90 13 {px(middle)})"
    return frame.svg(
        f"{what} over {x} and {y}",
        shades,
        frame.x_marks(),
        frame.y_marks(),
        frame.box(),
        frame.title(x),
        el("text", y, x=13.0, y=middle, text_anchor="middle", transform=turn, class_="name"),
        frame.dots(good, "cloud-trials"),
        frame.crosses(bad, "trial"),
        mark(frame.px(best[x]), frame.py(best[y]), "disc", "recommended", "recommended"),
        *(
            mark(
                *(frame.px(row.params[x]), frame.py(row.params[y])),
                *("star", "observed", _title(row)),
            )
            for row in has
            if row.number in {seen.number for seen in observed}
        ),
    )


def _title(row: Row) -> str:
    values = [row.value] if row.value is not None else row.outcomes.values()
    return f"trial {row.number}: {', '.join(map(number, values))}"


def likely(chance: np.ndarray) -> np.ndarray:
    """A shade for each probability: the strongest from 95 %, the others in equal steps below."""
    share = np.nan_to_num(np.minimum(chance / SURE, 1.0))
    return np.asarray((share * (SHADES - 1)).astype(int))


def better(worth: np.ndarray) -> np.ndarray:
    """A shade for each value: equal steps of the better half, the rest in the palest ones."""
    low, high = np.nanquantile(worth, [0.1, 1.0])
    if not high > low:
        return np.zeros(worth.shape, dtype=int)
    share = np.nan_to_num((worth / 2 - low / 2) / (high / 2 - low / 2))
    return np.clip((share * SHADES).astype(int), 0, SHADES - 1)


def _edges(frame: Frame, values: Sequence[Any], *, x: bool) -> list[float]:
    """Where the cells of a line of values begin and end, in units of the drawing."""
    places = np.array([frame.px(v) if x else frame.py(v) for v in values])
    ends = (frame.left, frame.left + frame.across) if x else (frame.top + frame.down, frame.top)
    return [ends[0], *((places[1:] + places[:-1]) / 2), ends[1]]
