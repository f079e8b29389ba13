"""Pages to test: a study with everything nasty in it, and findings that need no model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, NamedTuple

import numpy as np

from optpair import Categorical, Float, Int, Optimizer, Settings, Space
from optpair.cube.cube import Cube
from optpair.engine.answers import Noise
from optpair.problem.outcomes import Objective
from optpair.report import Modelled, Row, Subject
from optpair.report.findings import Answer, Findings, Moment, Slice
from optpair.trials.estimate import Estimate
from shell_cases import TINY

EVIL = "<script>document.title='owned';throw 1</script>"
SPACE = Space(
    {
        "lr & co": Float(1e-5, 1.0, log=True),
        "depth": Int(1, 8),
        "act": Categorical(["relu", EVIL, "\"'><img src=x onerror=throw(1)>"]),
    }
)
VOID = {"meta", "link", "br", "input", "img", "wbr"}


def value(params: Mapping[str, Any]) -> float:
    return abs(params["depth"] - 4) / 10 + (params["act"] != "relu") + params["lr & co"]


def params(i: int) -> dict[str, Any]:
    choices = SPACE["act"].choices  # type: ignore[union-attr]
    return {
        "lr & co": 10 ** (-5 * (0.618034 * i % 1)),
        "depth": 1 + i % 8,
        "act": choices[i % 3],
    }


def search(values: Sequence[float] | None = None, **options: Any) -> Optimizer:
    """A tiny search with these values, or some, and then a failure."""
    settings = Settings(**TINY)
    optimizer = Optimizer(SPACE, seed=0, hyperparameters="map", settings=settings, **options)
    told = [value(params(i)) for i in range(8)] if values is None else values
    for i, given in enumerate(told):
        optimizer.tell(params(i), given)
    optimizer.tell(params(len(told)), failed=True)
    return optimizer


def made_up(space: Space, told: int) -> tuple[Subject, Findings]:
    """A subject with so many trials, and findings that nobody found."""
    rng = np.random.default_rng(0)
    points = Cube(space.layout).spread(rng.uniform(size=(told, len(space))))
    rows = tuple(
        Row(i, "told", space.decode(x), float(rng.normal()), x=x) for i, x in enumerate(points)
    )
    model = Modelled(space, len(space) + 1, None)
    best = Answer(rows[0].params, 0.0, -0.5, 0.5)
    grid = {name: sorted({row.params[name] for row in rows})[:61] for name in space}
    shares = dict.fromkeys(space, 1 / len(space))
    found = Findings(
        recommended=best,
        observed=rows[1],
        expected=replace(best, params=rows[1].params),
        stars=[row.params for row in rows[:96]],
        worth=rng.normal(size=96),
        next_gain=0.1,
        gap=0.2,
        gap_interval=(0.0, 0.5),
        noise=Noise(0.3, 0.4),
        moments=[Moment(i, i, 0.0, -1.0, 1.0, 0.1, 0.2) for i in (1, told - 1)],
        slices=[
            Slice(name, values, _flat(len(values)), rng.uniform(size=told))
            for name, values in grid.items()
        ],
        first=shares,
        total=shares,
        predicted=_flat(told),
        doubted=[],
    )
    return Subject("made up", Objective("minimize"), rows, model), found


def _flat(points: int) -> Estimate:
    zeros, ones = np.zeros(points), np.ones(points)
    return Estimate(zeros, ones, -2 * ones, 2 * ones)


class Seen(NamedTuple):
    """What a browser made of a page."""

    dom: str
    console: list[str]


Browse = Callable[..., Seen]


class Page(HTMLParser):
    """A page as a tree would see it: every element opened is closed, and ids are unique."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, str] = {}  # the text under every id
        self._open: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert self._open == [], self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), attrs
        self.elements.append((tag, found))
        name = found.get("id")
        if name is not None:
            assert name not in self.words, name
            self.words[name] = ""
        if tag not in VOID:
            self._open.append((tag, name))

    def handle_endtag(self, tag: str) -> None:
        opened = self._open.pop()[0]
        assert opened == tag, (opened, tag)

    def handle_data(self, data: str) -> None:
        for _, name in self._open:
            if name is not None:
                self.words[name] += data

    def all(self, tag: str, class_: str = "") -> list[dict[str, str | None]]:
        return [
            a for t, a in self.elements if t == tag and class_ in (a.get("class") or "").split(" ")
        ] if class_ else [a for t, a in self.elements if t == tag]  # fmt: skip


def numbers(text: str, section: str) -> list[float]:
    """The exact numbers in the element with an id, in order."""
    start = text.index(f'id="{section}"')
    end = min(i for i in (text.find("</article>", start), text.find("</div>", start)) if i > 0)
    return [float(v) for v in re.findall(r'<data value="([^"]+)"', text[start:end])]
