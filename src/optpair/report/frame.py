"""The paper that charts are drawn on: a box with two axes, and marks at values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from optpair.report.axes import Axis, Choices
from optpair.report.markup import Markup, el, join, px, text
from optpair.report.words import number

SLANT = 5  # more categories than this have slanted labels
STAR = "M0-7.5 2.2-2.4 7.6-2.3 3.4 1.1 4.9 6.4 0 3.3-4.9 6.4-3.4 1.1-7.6-2.3-2.2-2.4Z"


@dataclass(frozen=True)
class Frame:
    """A drawing with two axes, which is scaled to the page's width."""

    x: Axis
    y: Axis
    width: float = 440.0
    height: float = 250.0
    left: float = 50.0
    right: float = 12.0
    top: float = 10.0
    bottom: float = 40.0

    @property
    def across(self) -> float:
        """The width of the box."""
        return self.width - self.left - self.right

    @property
    def down(self) -> float:
        """The height of the box."""
        return self.height - self.top - self.bottom

    def px(self, value: Any) -> float:
        """Where a value of x is."""
        return self.left + self.across * self.x.at(value)

    def py(self, value: Any) -> float:
        """Where a value of y is."""
        return self.top + self.down * (1 - self.y.at(value))

    def x_marks(self) -> Markup:
        """Marks and labels below the box."""
        foot, wanted = self.top + self.down, max(2, int(self.across / 62))
        crowded = isinstance(self.x, Choices) and len(self.x.choices) > SLANT
        parts = []
        for place, label in self.x.ticks(12 if crowded else wanted):
            at = self.left + self.across * place
            turn = f"rotate(-32 {px(at)} {px(foot + 14)})" if crowded else None
            anchor = "end" if crowded else _anchor(place)
            parts.append(el("path", d=f"M{px(at)} {px(foot)}v4", class_="tick"))
            parts.append(el("text", label, x=at, y=foot + 16, text_anchor=anchor, transform=turn))
        return join(parts)

    def y_marks(self) -> Markup:
        """Marks and labels to the left of the box, and fine lines across it."""
        parts = []
        for place, label in self.y.ticks(max(2, int(self.down / 33))):
            at = self.top + self.down * (1 - place)
            line = f"M{px(self.left)} {px(at)}h{px(self.across)}"
            parts.append(el("path", d=line, class_="grid"))
            parts.append(el("text", label, x=self.left - 7, y=at + 4, text_anchor="end"))
        return join(parts)

    def box(self) -> Markup:
        """The line at the foot."""
        foot = self.top + self.down
        return el("path", d=f"M{px(self.left)} {px(foot)}h{px(self.across)}", class_="axis")

    def title(self, label: str) -> Markup:
        """What x is, at the foot."""
        return el(
            "text",
            label,
            x=self.left + self.across / 2,
            y=self.height - 4,
            text_anchor="middle",
            class_="name",
        )

    def line(self, xs: Iterable[Any], ys: Iterable[float], class_: str) -> Markup:
        """A line through some values."""
        points = " ".join(f"{px(self.px(x))} {px(self.py(y))}" for x, y in zip(xs, ys, strict=True))
        return el("path", d=f"M{points}", class_=class_)

    def steps(self, xs: Sequence[Any], ys: Sequence[float], end: Any, class_: str) -> Markup:
        """A line that holds each value until the next."""
        path = f"M{px(self.px(xs[0]))} {px(self.py(ys[0]))}"
        for x, y in zip(xs[1:], ys[1:], strict=True):
            path += f"H{px(self.px(x))}V{px(self.py(y))}"
        return el("path", d=path + f"H{px(self.px(end))}", class_=class_)

    def band(
        self, xs: Sequence[Any], low: Sequence[float], high: Sequence[float], class_: str
    ) -> Markup:
        """The area between two lines."""
        there = [f"{px(self.px(x))} {px(self.py(y))}" for x, y in zip(xs, high, strict=True)]
        back = [f"{px(self.px(x))} {px(self.py(y))}" for x, y in zip(xs, low, strict=True)]
        return el("path", d=f"M{' '.join(there + back[::-1])}Z", class_=class_)

    def dots(self, points: Iterable[tuple[float, float]], class_: str) -> Markup:
        """Many dots as one path, at places of the drawing."""
        path = "".join(f"M{px(x)} {px(y)}h0" for x, y in points)
        return el("path", d=path, class_=f"dots {class_}") if path else Markup()

    def crosses(self, points: Iterable[tuple[float, float]], class_: str) -> Markup:
        """Many crosses as one path, at places of the drawing."""
        path = "".join(f"M{px(x - 2.6)} {px(y - 2.6)}l5.2 5.2m0-5.2l-5.2 5.2" for x, y in points)
        return el("path", d=path, class_=f"crosses {class_}") if path else Markup()

    def limit(self, value: float) -> Markup:
        """A limit of y across the box, where it is within."""
        if not 0 < self.y.at(value) < 1:
            return Markup()
        line = f"M{px(self.left)} {px(self.py(value))}h{px(self.across)}"
        return el("path", el("title", f"limit {number(value)}"), d=line, class_="limit")

    def svg(self, label: str, *parts: object, **attributes: object) -> Markup:
        """The drawing, with a label for those who cannot see it."""
        return drawing(self.width, self.height, label, *parts, **attributes)


def drawing(
    width: float, height: float, label: str, *parts: object, **attributes: object
) -> Markup:
    """An SVG of this size."""
    return el(
        "svg",
        *parts,
        viewBox=f"0 0 {px(width)} {px(height)}",
        role="img",
        aria_label=text(label),
        **attributes,
    )


def mark(x: float, y: float, shape: str, class_: str, title: str | None = None) -> Markup:
    """A star or a disc at a place, with words for the pointer."""
    words = Markup() if title is None else el("title", title)
    place = f"translate({px(x)} {px(y)})"
    if shape == "star":
        return el("path", words, d=STAR, class_=class_, transform=place)
    return el("circle", words, r=5.5, class_=class_, transform=place)


def _anchor(place: float) -> str:
    """Labels at the ends stay inside."""
    return "start" if place < 0.03 else "end" if place > 0.97 else "middle"
