"""Film of a belief that contracts: an SVG that moves by itself, with no script."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from optpair import Belief, Float, Optimizer, Space
from optpair.report.axes import Line
from optpair.report.frame import Frame, mark
from optpair.report.markup import Markup, el, join, px
from optpair.report.words import number

SCENES = (2, 3, 4, 5, 6, 8, 10, 13, 17, 22)  # told trials
SECONDS = 1.6  # per scene; the last stays three times as long
POINTS = 101
NOISE = 0.12
SHOWN = 64  # samples of the optimum
BINS = 40
STYLE = """
:root { --ground: #fff; --ink: #1c2230; --soft: #626b7d; --rule: #e4e5e8; --predicted: #3157d5;
  --trial: #8b93a3; --chosen: #00805a; --truth: #b87400; }
@media (prefers-color-scheme: dark) { :root { --ground: #191d27; --ink: #e9ebf1; --soft: #99a2b4;
  --rule: #2c3240; --predicted: #8ba6ff; --trial: #7c869a; --chosen: #2fd6a3; --truth: #ffb739; } }
text { font: 19px system-ui, sans-serif; fill: var(--soft); }
.said { fill: var(--ink); font-size: 23px; }
.ground { fill: var(--ground); } .grid { stroke: var(--rule); fill: none; }
.axis, .tick { stroke: var(--trial); fill: none; } .band { fill: var(--predicted); opacity: .16; }
.line { fill: none; stroke: var(--predicted); stroke-width: 2.5; }
.truth { fill: none; stroke: var(--truth); stroke-width: 2; stroke-dasharray: 5 5; }
.star { fill: var(--predicted); opacity: .35; } .hills { fill: var(--predicted); opacity: .6; }
.trial { fill: var(--trial); } .newest { fill: var(--ink); }
.recommended { fill: var(--chosen); stroke: var(--ground); stroke-width: 2; }
"""


def truth(x: float) -> float:
    """Two hills, of which the second is a little higher: 1, at 0.72."""
    return math.exp(-(((x - 0.72) / 0.12) ** 2)) + 0.8 * math.exp(-(((x - 0.25) / 0.15) ** 2))


def film(out: Path, scenes: Sequence[int] = SCENES) -> dict[int, float]:
    """Draw the film; how far apart 80 % of the sampled places are, by the number of trials."""
    rng = random.Random(3)
    optimizer = Optimizer(Space({"x": Float(0, 1)}), direction="maximize", seed=2)
    drawn, spread = [], {}
    for count in range(1, max(scenes) + 1):
        trial = optimizer.ask()
        optimizer.tell(trial, truth(trial.params["x"]) + rng.gauss(0, NOISE))
        if count in scenes:
            belief = optimizer.belief()
            places = np.array([point["x"] for point in belief.params])
            spread[count] = float(np.ptp(np.quantile(places, [0.1, 0.9])))
            drawn.append(_scene(optimizer, belief, count))
    out.write_text(_moving(drawn), encoding="utf-8")
    return spread


def _frame() -> Frame:
    return Frame(Line(0, 1), Line(-0.6, 1.8), width=720, height=440, left=56, top=50, bottom=124)


def _scene(optimizer: Optimizer, belief: Belief, count: int) -> Markup:
    frame, grid = _frame(), np.linspace(0, 1, POINTS)
    told = optimizer.predict([{"x": float(x)} for x in grid])
    trials = [t for t in optimizer.trials if t.value is not None]
    dots = (
        el("circle", cx=frame.px(t.params["x"]), cy=frame.py(t.value), r=4.5,
           class_="newest" if t is trials[-1] else "trial")
        for t in trials
    )  # fmt: skip
    stars = zip(belief.params[:SHOWN], belief.values[:SHOWN], strict=True)
    samples = (
        el("circle", cx=frame.px(p["x"]), cy=frame.py(v), r=4.0, class_="star") for p, v in stars
    )
    best = belief.recommendation
    low, high = (number(end, digits=2) for end in best.interval)
    value, place = number(best.mean, digits=3), number(best.params["x"], digits=2)
    said = f"{count} trials: {value} at {place}, 95 % {low} to {high}"
    return join(
        [
            frame.band(list(grid), list(told.low), list(told.high), "band"),
            frame.line(grid, told.mean, "line"),
            *samples,
            *dots,
            mark(frame.px(best.params["x"]), frame.py(best.mean), "disc", "recommended"),
            _hills(frame, [point["x"] for point in belief.params]),
            el("text", said, x=56.0, y=30.0, class_="said"),
        ]
    )


def _hills(frame: Frame, places: Sequence[float]) -> Markup:
    """Where the samples of the optimum are, below the picture."""
    heights, edges = np.histogram(places, BINS, (0, 1))
    foot, tall, wide = frame.height - 12, 44 / len(places) ** 0.5, frame.across / BINS - 1
    path = "".join(
        f"M{px(frame.px(edge))} {px(foot)}v{px(-tall * n**0.5)}h{px(wide)}v{px(tall * n**0.5)}Z"
        for edge, n in zip(edges[:-1], heights, strict=True)
        if n
    )
    return el("path", d=path, class_="hills")


def _moving(scenes: Sequence[Markup]) -> str:
    """All scenes in one drawing, one after the other; the last alone where motion is unwanted."""
    frame, grid = _frame(), np.linspace(0, 1, POINTS)
    whole = SECONDS * (len(scenes) + 2)
    rules = [STYLE, f".scene {{ opacity: 0; animation: {whole:g}s linear infinite }}\n"]
    for i in range(len(scenes)):
        start = 100 * SECONDS * i / whole
        end = 100.0 if i == len(scenes) - 1 else 100 * SECONDS * (i + 1) / whole
        shown = f"{start:.2f}%, {end - 0.01:.2f}% {{ opacity: 1 }}"
        rules.append(f"#s{i} {{ animation-name: k{i} }} @keyframes k{i} {{ 0% {{ opacity: 0 }} ")
        rules.append(f"{max(start - 0.01, 0):.2f}% {{ opacity: {int(i == 0)} }} {shown} ")
        rules.append(f"{end:.2f}% {{ opacity: {int(end == 100)} }} 100% {{ opacity: 0 }} }}\n")
    rules.append("@media (prefers-reduced-motion) { .scene { animation: none } ")
    rules.append(f"#s{len(scenes) - 1} {{ opacity: 1 }} }}")
    drawn = frame.svg(
        "A belief about the optimum of a noisy function, which contracts as trials come",
        el("style", Markup("".join(rules))),
        el("rect", width=720, height=440, rx=8, class_="ground"),
        *(frame.y_marks(), frame.x_marks(), frame.box()),
        frame.line(grid, [truth(float(x)) for x in grid], "truth"),
        el("text", "where the optimum may be", x=56.0, y=364.0),
        *(el("g", scene, class_="scene", id=f"s{i}") for i, scene in enumerate(scenes)),
        xmlns="http://www.w3.org/2000/svg",
    )
    return f"{drawn}\n"
