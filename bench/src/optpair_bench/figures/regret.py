"""Figures of regret as the paper has them, redrawn from rows; one file per figure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from optpair_bench.analysis import overall, statistics
from optpair_bench.figures import style
from optpair_bench.running.experiments import Experiment, Kind
from optpair_bench.running.rows import Row

Look = tuple[str, Any]
"""A colour and a pattern of dashes."""


def draw(experiment: Experiment, rows: Sequence[Row], folder: Path) -> list[Path]:
    """Every figure of an experiment that its rows allow; the files."""
    if not rows:
        return []
    with style.look():
        drawn = [
            style.save(curves(experiment, rows, kind), folder / f"{experiment.name}-{kind}.png")
            for kind in experiment.kinds
        ]
        if experiment.name == "pairs":
            drawn.append(style.save(seconds(experiment, rows), folder / "pairs-seconds.png"))
    return drawn


def drawn(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    """The methods that get a curve: the experiment's own, and ours and peers with several seeds.

    All are in tables.
    """
    several = {row["method"] for row in rows if row["seed"] != rows[0]["seed"]}
    return [
        name
        for name in statistics.methods_of(rows, experiment)
        if name in experiment.methods
        or (name.partition(":")[0] in style.BESIDE and name in several)
    ]


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A colour a method; variants differ in colour, or in dashes where there are other methods."""
    plain = [name.partition(":")[0] for name in names]
    if len(set(plain)) == 1 and len(names) > 1:
        return {n: (c, "-") for n, c in zip(names, style.SERIES, strict=False)}
    found: dict[str, Look] = {}
    for name, base in zip(names, plain, strict=True):
        earlier = plain[: names.index(name)].count(base) + (base in style.PEERS)
        found[name] = (style.COLOURS.get(base, style.GREY), style.DASHES[earlier % 4])
    return found


def curves(experiment: Experiment, rows: Sequence[Row], kind: Kind) -> Figure:
    """Means with their errors, and medians, against evaluations: a panel per task."""
    cells = [c for c in experiment.cells if any(row["task"] == c.task for row in rows)]
    names = drawn(experiment, rows)
    shown = looks(names)
    columns = {1: 1, 2: 2, 4: 2}.get(len(cells), 3)
    lines = -(-len(cells) // columns)
    width = style.WIDTH if columns > 1 else 0.65 * style.WIDTH
    figure, axes = plt.subplots(lines, columns, squeeze=False, figsize=(width, 1.5 + 2.2 * lines))
    for axis, cell in zip(axes.flat, cells, strict=False):
        own = statistics.of_task(rows, cell.task, cell.evaluations)
        _panel(axis, own, names, shown, kind, experiment)
        axis.set_title(statistics.task_label(cell.task))
    for axis in axes.flat[len(cells) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel(statistics.KIND_NAMES[kind])
    for index, axis in enumerate(axes.flat[: len(cells)]):
        if index + columns >= len(cells):  # nothing is below it
            axis.set_xlabel("evaluations")
    handles = [
        Line2D([], [], color=shown[n][0], linestyle=shown[n][1], label=statistics.label(n))
        for n in names
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4 if columns > 1 else 3)
    figure.supxlabel(_caption(experiment, rows, kind, names, width=int(15 * width)), fontsize=8)
    return figure


def together(rows: Sequence[Row], reference: str, folder: Path) -> Path | None:
    """Other libraries beside ours, a line per task; None where they share none."""
    budget = overall.BUDGETS[-1]
    found = [b.among([reference, *style.PEERS]) for b in overall.blocks(rows, reference, budget)]
    found = [b for b in found if any(v.pairs > 1 for v in b.versus(reference).values())]
    if not found:
        return None
    with style.look():
        return style.save(_forest(found, reference, budget), folder / "together.png")


def _forest(found: Sequence[overall.Block], reference: str, budget: int) -> Figure:
    """Paired differences and how sure they are: each task, and all of them at the bottom."""
    versus = [
        {name: v for name, v in block.versus(reference).items() if v.pairs > 1} for block in found
    ]
    names = [name for name in style.PEERS if any(name in others for others in versus)]
    labels = [statistics.task_label(block.task) for block in found]
    figure, axis = plt.subplots(figsize=(style.WIDTH, 1.9 + 0.3 * len(found)))
    mean_at = len(found) + 0.4
    for name, offset in zip(names, np.linspace(-0.25, 0.25, len(names)), strict=True):
        own = [(i, others[name]) for i, others in enumerate(versus) if name in others]
        average = overall.Average.of([v.mean for _, v in own], [v.error for _, v in own])
        look: dict[str, Any] = {"color": style.COLOURS[name], "linestyle": "none", "capsize": 0}
        axis.errorbar(
            [v.mean for _, v in own],
            [i + offset for i, _ in own],
            xerr=[statistics.sure(v.pairs) * v.error for _, v in own],
            marker="o",
            markersize=4,
            label=f"{statistics.label(name)} ({_seeds(v.pairs for _, v in own)} seeds)",
            **look,
        )
        axis.errorbar(
            [average.mean],
            [mean_at + offset],
            xerr=[2 * average.over_seeds],
            marker="D",
            markersize=6,
            **look,
        )
    axis.axvline(0, color=style.COLOURS[reference], linewidth=1.2)
    axis.axhline(len(found) - 0.3, color=style.GREY, linewidth=0.6)
    axis.set_yticks([*range(len(found)), mean_at], [*labels, "mean of its tasks"])
    axis.set_ylim(mean_at + 0.5, -0.6)
    axis.set_xlabel(f"log10 inference regret above that of {statistics.label(reference)}")
    figure.legend(loc="outside upper center", ncols=4)
    text = (
        f"After {budget}·D evaluations, or at the end of shorter runs: paired on equal seeds, ± 2 "
        "standard errors, or more where seeds are few (Student's t). Right of the line "
        f"{statistics.label(reference)} is better."
    )
    figure.supxlabel("\n".join(textwrap.wrap(text, int(15 * style.WIDTH))), fontsize=8)
    return figure


def _seeds(counts: Iterable[int]) -> str:
    every = sorted(counts)
    return str(every[0]) if every[0] == every[-1] else f"{every[0]}–{every[-1]}"


def _panel(
    axis: Axes,
    rows: Sequence[Row],
    names: Iterable[str],
    shown: Mapping[str, Look],
    kind: Kind,
    experiment: Experiment,
) -> None:
    for name in names:
        curve = statistics.curve(rows, name, kind)
        if curve is None:
            continue
        x, (colour, dashes) = curve.initial + curve.evaluations, shown[name]
        axis.plot(x, curve.mean, color=colour, linestyle=dashes)
        if len(curve.seeds) > 1:
            band = experiment.errors * curve.error
            axis.fill_between(
                x, curve.mean - band, curve.mean + band, color=colour, alpha=0.18, linewidth=0
            )
            axis.plot(x, curve.median, color=colour, linewidth=0.8, linestyle=":")
    axis.axvline(rows[0]["initial"], color="black", linewidth=0.8, linestyle="--")
    if experiment.name in ("gp-noisy", "noise-levels"):
        axis.axhline(
            np.log10(rows[0]["noise_var"]) / 2, color=style.GOLD, linewidth=1.0, linestyle="--"
        )
    axis.set_xlim(0, None)


def _caption(
    experiment: Experiment, rows: Sequence[Row], kind: Kind, names: Sequence[str], width: int
) -> str:
    many = "1 standard error" if experiment.errors == 1 else f"{experiment.errors} standard errors"
    parts = [
        f"{experiment.title}: mean ± {many} of the {statistics.KIND_NAMES[kind]}; dotted, median"
    ]
    parts.append("black dashes, end of the initial design")
    if experiment.name in ("gp-noisy", "noise-levels"):
        parts.append("gold dashes, log10 of the noise's standard deviation")
    text = "; ".join(parts) + f". Repetitions: {repetitions(rows, names)}."
    return "\n".join(textwrap.wrap(text, width))


def repetitions(rows: Sequence[Row], names: Sequence[str]) -> str:
    """How often each method was run, over the tasks."""
    counts: dict[str, str] = {}
    for name in names:
        seeds: dict[str, set[int]] = {}
        for row in rows:
            if row["method"] == name:
                seeds.setdefault(row["task"], set()).add(row["seed"])
        low, high = min(map(len, seeds.values())), max(map(len, seeds.values()))
        counts[name] = f"{low}" if low == high else f"{low} to {high}"
    usual, times = Counter(counts.values()).most_common(1)[0]
    most = times > len(counts) / 2
    named = [
        f"{count} of {statistics.label(name)}"
        for name, count in counts.items()
        if not (most and count == usual)
    ]
    return "; ".join([usual, *named] if most else named)


def seconds(experiment: Experiment, rows: Sequence[Row]) -> Figure:
    """Seconds an ask against the number of optimal pairs."""
    figure, axis = plt.subplots(figsize=(4.6, 3.4))
    for cell, colour in zip(experiment.cells, style.SERIES, strict=False):
        own = statistics.of_task(rows, cell.task, cell.evaluations)
        points = {
            int(name.partition("pairs=")[2]): np.median(
                [row["ask_seconds"]["median"] for row in own if row["method"] == name]
            )
            for name in statistics.methods_of(own, experiment)
            if "pairs=" in name
        }
        if points:
            pairs = sorted(points)
            title = statistics.task_label(cell.task)
            axis.plot(pairs, [points[p] for p in pairs], "o-", color=colour, label=title)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("optimal pairs")
    axis.set_ylabel("seconds per ask, median")
    axis.legend()
    return figure
