"""The belief over the optimal pair, for any two of its coordinates.

Every axis is drawn once in each place, with the margin of the samples beside it; which two are
seen, and where the dots stand, is changed by the page's script from numbers alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from optpair.report.axes import Axis, Line
from optpair.report.findings import Findings
from optpair.report.frame import Frame, drawing, mark
from optpair.report.markup import Markup, el, join, px
from optpair.report.subject import Row
from optpair.report.words import number, short

WIDTH, HEIGHT = 460.0, 430.0
BOX = {"left": 64.0, "right": 58.0, "top": 62.0, "bottom": 42.0}
MARGIN = 44.0  # of a histogram
BINS = 24
QUINTILES = 5
WORTH = "f* (value)"
MOST_NAMED = 6  # parameters in the words of a dot
UNIT = 1000  # places are whole numbers up to this
INACTIVE = -0.03  # in the margin: the place of what has no value of a parameter


class Cloud:
    """Samples of (x*, f*), trials, the recommendation and the best observed trial."""

    def __init__(
        self,
        found: Findings,
        told: Sequence[Row],
        scales: dict[str, Axis],
        worth: Line,
        sign: float,
    ) -> None:
        self.found, self.told, self.sign = found, told, sign
        self.names = [*scales, WORTH]
        self.scales: list[Axis] = [*scales.values(), worth]
        order = sorted(scales, key=lambda name: -found.total.get(name, 0.0))
        order.sort(key=lambda name: name not in found.recommended.params)  # inactive ones last
        self.start = tuple(sorted(map(self.names.index, [*order, WORTH][:2])))

    def menus(self) -> Markup:
        """What is across and what is up."""
        return join(
            el(
                "label",
                f"{label} ",
                el(
                    "select",
                    *(
                        el("option", name, value=i, selected=i == self.start[which])
                        for i, name in enumerate(self.names)
                    ),
                    id=key,
                ),
            )
            for which, (key, label) in enumerate((("across", "across"), ("up", "up")))
        )

    def data(self) -> Markup:
        """The places of everything on every axis, for the page's script: numbers only."""
        box = {
            "x": BOX["left"],
            "y": BOX["top"],
            "w": WIDTH - BOX["left"] - BOX["right"],
            "h": HEIGHT - BOX["top"] - BOX["bottom"],
        }
        return Markup(json.dumps({"box": box, **self._everything()}, separators=(",", ":")))

    def _everything(self) -> dict[str, list[list[int]]]:
        """Places from 0 to UNIT: one list per axis, for each kind of dot."""
        found, each = self.found, range(len(self.names))
        values, params = [row.value for row in self.told], [row.params for row in self.told]
        marked = (found.recommended, found.observed)
        points, worth = [m.params for m in marked], [found.recommended.mean, found.observed.value]
        return {
            "stars": [self._places(i, found.stars, found.worth, shaken=True) for i in each],
            "trials": [self._places(i, params, values, shaken=True) for i in each],
            "marks": [self._places(i, points, worth) for i in each],
        }

    def _places(
        self, index: int, params: Sequence[Any], values: Any, *, shaken: bool = False
    ) -> list[int]:
        axis, name = self.scales[index], self.names[index]
        if index == len(self.names) - 1:
            return [round(UNIT * axis.at(value)) for value in values]
        places = [axis.at(p[name]) if name in p else INACTIVE for p in params]
        if shaken and axis.levels:
            places = [
                at if at == INACTIVE else at + u * 0.6 / axis.levels
                for at, u in zip(places, _shake(index, len(places)), strict=True)
            ]
        inside = (at if at == INACTIVE else min(max(at, 0.0), 1.0) for at in places)
        return [round(UNIT * at) for at in inside]

    def svg(self) -> Markup:
        """The drawing, as it is before anything is chosen."""
        x, y = self.start
        frame = self._frame(x, y)
        places = self._everything()

        def spots(kind: str) -> list[tuple[float, float]]:
            both = zip(places[kind][x], places[kind][y], strict=True)
            return [
                (frame.left + frame.across * u / UNIT, frame.top + frame.down * (1 - v / UNIT))
                for u, v in both
            ]

        at, (best, seen) = spots("stars"), spots("marks")
        return drawing(
            WIDTH,
            HEIGHT,
            "Samples of the optimum",
            *(self._axis(i, "x", i == x) for i in range(len(self.names))),
            *(self._axis(i, "y", i == y) for i in range(len(self.names))),
            frame.box(),
            frame.dots(spots("trials"), "cloud-trials"),
            el("g", *(el("circle", cx=a, cy=b, r=15, class_="haze") for a, b in at)),
            el("g", *self._stars(at), id="stars"),
            el("g", mark(*best, "disc", "recommended", "recommended"), id="best"),
            el("g", mark(*seen, "star", "observed", "best observed"), id="seen"),
            id="cloud",
        )

    def _stars(self, at: Sequence[tuple[float, float]]) -> list[Markup]:
        worth = self.found.worth
        rank = np.argsort(np.argsort(self.sign * worth, kind="stable"), kind="stable")
        level = rank * QUINTILES // len(worth)
        return [
            el(
                "circle",
                el("title", self._words(i)),
                cx=x,
                cy=y,
                r=3.6,
                class_=f"q{level[i]}",
            )
            for i, (x, y) in enumerate(at)
        ]

    def _words(self, index: int) -> str:
        params = list(self.found.stars[index].items())
        named = [f"{name} {short(value)}" for name, value in params[:MOST_NAMED]]
        more = ["…"] if len(params) > MOST_NAMED else []
        return ", ".join([f"f* {number(float(self.found.worth[index]))}", *named, *more])

    def _frame(self, x: int, y: int) -> Frame:
        return Frame(self.scales[x], self.scales[y], WIDTH, HEIGHT, **BOX)

    def _axis(self, index: int, where: str, seen: bool) -> Markup:
        frame = self._frame(index, index)
        name = self.names[index]
        places = self._places(index, self.found.stars, self.found.worth)
        choices = getattr(self.scales[index], "choices", None)
        bins, _ = np.histogram(places, len(choices) if choices else BINS, (0, UNIT))
        if where == "x":
            parts = [frame.x_marks(), frame.title(name), _above(frame, bins)]
        else:
            middle = frame.top + frame.down / 2
            turn = f"rotate(-90 13 {px(middle)})"
            label = el(
                "text",
                short(name, 40),
                x=13.0,
                y=middle,
                text_anchor="middle",
                transform=turn,
                class_="name",
            )
            parts = [frame.y_marks(), label, _beside(frame, bins)]
        return el("g", *parts, class_=f"{where}-axis" + ("" if seen else " off"), data_k=index)


def _shake(index: int, dots: int) -> np.ndarray:
    """Evenly spread shifts in (-0.5, 0.5), in an order of its own for every axis.

    With the same order for two axes, the dots of a cell would be on its diagonal.
    """
    return (np.random.default_rng(index).permutation(dots) + 0.5) / max(dots, 1) - 0.5


def _above(frame: Frame, bins: np.ndarray) -> Markup:
    """The margin across, above the box."""
    tall, foot = MARGIN / max(int(bins.max()), 1), frame.top - 6
    step = frame.across / len(bins)
    path = "".join(
        f"M{px(frame.left + i * step + 0.5)} {px(foot)}v{px(-tall * n)}h{px(step - 1)}"
        f"v{px(tall * n)}Z"
        for i, n in enumerate(bins)
        if n
    )
    return el("path", d=path, class_="hills")


def _beside(frame: Frame, bins: np.ndarray) -> Markup:
    """The margin up, to the right of the box."""
    long, side = MARGIN / max(int(bins.max()), 1), frame.left + frame.across + 6
    step = frame.down / len(bins)
    path = "".join(
        f"M{px(side)} {px(frame.top + frame.down - i * step - 0.5)}h{px(long * n)}"
        f"v{px(-(step - 1))}h{px(-long * n)}Z"
        for i, n in enumerate(bins)
        if n
    )
    return el("path", d=path, class_="hills")
