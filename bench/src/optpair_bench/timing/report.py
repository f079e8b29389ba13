"""Report of `optpair bench speed`: stages, asks beside other libraries, growth, cold starts."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from optpair.effort import padded_size, screened
from rich.console import Console
from rich.table import Table

from optpair_bench.methods import peers
from optpair_bench.running import cores
from optpair_bench.running.runs import versions
from optpair_bench.tasks import OUTPUTSCALE, gp_sample
from optpair_bench.timing import limits, speed
from optpair_bench.timing.speed import Plan, Timing

PAPER_SECONDS = {  # the paper's Table 1, on its authors' machine
    "jes": {2: 1.40, 4: 1.50, 6: 1.56},
    "mes": {2: 1.03, 4: 1.21, 6: 1.26},
    "pes": {2: 17.39, 4: 34.53, 6: 62.92},
    "ei": {2: 0.23, 4: 0.30, 6: 0.35},
}
STAGES = ("hyperparameters", "condition", "pairs", "pending", "maximise")


def main(plans: Sequence[Plan], out: Path | None = None) -> None:
    """Measure one plan after the other, print tables and write the numbers."""
    console = Console()
    wanted = any(plan.peers for plan in plans)
    absent = peers.missing() if wanted else []
    if absent:
        console.print(f"No peers: {', '.join(absent)} not installed. To have them: {peers.HOW_TO}")
    elif wanted and not peers.has_greenlet():
        console.print("Optuna's GPSampler is slower without greenlet, which is not installed")
    report: dict[str, Any] = {
        "cores": len(cores.available()),
        "machine": f"{platform.system()} {platform.machine()}",
        "versions": versions() | peers.versions(),
        "plans": [],
    }
    for plan in plans:
        report["plans"].append(one(plan, console, with_peers=plan.peers and not absent))
        if out is not None:
            out.write_text(json.dumps(report, indent=1) + "\n")
    if any(plan.beside for plan in plans):
        console.print(method_table(report["plans"]))
    if len({plan.n for plan in plans}) > 1:
        console.print(growth_table(report["plans"]))


def one(plan: Plan, console: Console, *, with_peers: bool) -> dict[str, Any]:
    """Measure one plan, print its tables, and return its numbers."""
    everyone = [speed.ours(replace(plan, method=method, beside=())) for method in plan.methods]
    if with_peers:
        everyone += [speed.peer(entry, plan) for entry in _entries(plan)]
    with console.status(", ".join(timed.name for timed in everyone)):
        timings = speed.warm(everyone)
    report: dict[str, Any] = {"plan": asdict(plan), "settings": asdict(plan.settings)}
    console.print(_title(plan), style="bold")
    least = {}
    counted = not plan.paper and plan.levels is None and plan.method in limits.KNOWN
    if counted and plan.n <= plan.settings.most_rows:
        rows, sets = padded_size(plan.n, plan.dimensions), plan.settings.sets
        rates, single = limits.measure(rows, sets), limits.measure(rows, sets, "float32")
        least = limits.stages(plan.settings, plan.method, plan.dimensions, plan.n, rates, single)
        report["limits"] = least
        report["screening"] = {
            "seconds": speed.screening(plan),
            "limit": limits.screening(plan.settings, plan.method, plan.dimensions, plan.n, rates),
        }
    console.print(stage_table(timings[0], least))
    if least:
        console.print(_screening(report["screening"]))
    console.print(ask_table(plan, timings))
    report["asks"] = [asdict(timing) | {"median": timing.median} for timing in timings]
    if plan.cold:
        caches = {"as it is": False, "empty": True}
        report["cold"] = {k: speed.cold(plan, empty_cache=v) for k, v in caches.items()}
        console.print(cold_table(report["cold"]))
    if plan.study:
        report["studies"] = speed.studies(plan)
        console.print(study_table(plan, report["studies"]))
    if plan.paced:
        report["paced"] = speed.paced(plan)
        console.print(paced_line(plan, report["paced"]))
    return report


def _entries(plan: Plan) -> list[peers.Entry]:
    """The peers that are worth timing at this size."""
    task = gp_sample(plan.dimensions)
    known = (task.lengthscale or 1.0, OUTPUTSCALE, task.noise_var)
    everyone = peers.entries(plan.paper, known, plan.levels)
    return [entry for entry in everyone if entry.most is None or plan.n <= entry.most]


def _title(plan: Plan) -> str:
    s, count = plan.settings, len(cores.available())
    model = "given" if plan.paper else "sampled"
    candidates = screened(s, pairs=True)
    levels = "" if plan.levels is None else f" of {plan.levels} levels"
    return (
        f"{plan.dimensions}-D{levels}, n = {plan.n}, {s.sets} × {s.pairs} pairs ({model} sets), "
        f"{candidates} candidates, {_count(s.starts, 'start')}, {_count(count, 'core')}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _screening(found: Mapping[str, float]) -> str:
    seconds, limit = found["seconds"], found["limit"]
    return (
        f"of which screening, alone: {1e3 * seconds:.1f} ms, "
        f"limit {1e3 * limit:.1f}, ratio {seconds / limit:.1f}"
    )


def paced_line(plan: Plan, seconds: Sequence[float]) -> str:
    """What a user with slow evaluations waits for, the first time ever."""
    first, *later = seconds
    return (
        f"A study of {plan.paced} evaluations of {plan.pace:g} s each, empty cache: "
        f"first ask {first:.2f} s; later ones {np.median(later):.3f} s in the median, "
        f"{max(later):.2f} s at most"
    )


def stage_table(timing: Timing, least: Mapping[str, float] | None = None) -> Table:
    """Where an ask spends its time and, where it is known, what its arithmetic alone would take."""
    least = least or {}
    table = Table(title="Stages of a warm ask")
    names = [*STAGES, *(name for name in timing.stages if name not in STAGES)]
    shown = {name: timing.stages[name] for name in names if name in timing.stages}
    shown["other"] = max(timing.median - sum(shown.values()), 0.0)
    table.add_column("stage")
    for heading in ("ms", "share", *(("limit", "ratio") if least else ())):
        table.add_column(heading, justify="right")
    bounds = dict(least) | ({"whole ask": sum(least.values())} if least else {})
    for name, seconds in (shown | {"whole ask": timing.median}).items():
        cells = [name, f"{1e3 * seconds:.1f}", f"{seconds / timing.median:.0%}"]
        if name in bounds:
            cells += [f"{1e3 * bounds[name]:.1f}", f"{seconds / bounds[name]:.1f}"]
        table.add_row(*cells)
    return table


def ask_table(plan: Plan, timings: Sequence[Timing]) -> Table:
    """Seconds an ask, and how many times the first line's."""
    own = timings[0]
    table = Table(title="Seconds a warm ask")
    table.add_column("library")
    for heading in ("median", "p95", "asks", "ratio"):
        table.add_column(heading, justify="right")
    for timing in timings:
        p95 = f"{np.quantile(timing.seconds, 0.95):.3f}" if len(timing.seconds) > 1 else ""
        ratio = f"{timing.median / own.median:.1f}"
        table.add_row(timing.name, f"{timing.median:.3f}", p95, str(len(timing.seconds)), ratio)
    for method in plan.methods if plan.paper else ():
        paper = PAPER_SECONDS.get(method, {}).get(own.dimensions)
        if paper is not None:
            label = f"the paper's Table 1, on its authors' machine: {method}"
            table.add_row(label, f"{paper:.3f}", "", "", f"{paper / own.median:.1f}")
    return table


def method_table(reports: Sequence[Mapping[str, Any]]) -> Table:
    """The acquisition functions beside each other, a line a plan: the columns of Table 1."""
    table = Table(title="Seconds a warm ask, mean ± standard deviation (ratio to the first)")
    table.add_column("task")
    methods = [reports[0]["plan"]["method"], *reports[0]["plan"]["beside"]]
    for method in methods:
        table.add_column(method, justify="right")
    for report in reports:
        plan, asks = report["plan"], report["asks"][: len(methods)]
        means = [float(np.mean(ask["seconds"])) for ask in asks]
        cells = [
            f"{mean:.3f} ± {np.std(ask['seconds']):.3f} ({mean / means[0]:.2f})"
            for mean, ask in zip(means, asks, strict=True)
        ]
        table.add_row(f"{plan['dimensions']}-D, n = {plan['n']}", *cells)
    return table


def growth_table(reports: Sequence[Mapping[str, Any]]) -> Table:
    """How the time of an ask grows with the told trials, a line a plan."""
    table = Table(title="Median seconds a warm ask")
    table.add_column("task")
    names = list(dict.fromkeys(ask["name"] for report in reports for ask in report["asks"]))
    for name in names:
        table.add_column(name, justify="right")
    for report in reports:
        plan = report["plan"]
        medians = {ask["name"]: f"{ask['median']:.3f}" for ask in report["asks"]}
        cells = [medians.get(name, "") for name in names]
        table.add_row(f"{plan['dimensions']}-D, n = {plan['n']}", *cells)
    return table


def cold_table(first: Mapping[str, Mapping[str, float]]) -> Table:
    """The first ask of a new process."""
    table = Table(title="A new process, seconds")
    table.add_column("cache of compiled code")
    for heading in ("import", "first ask", "peak MB"):
        table.add_column(heading, justify="right")
    for name, numbers in first.items():
        times = [f"{numbers[k]:.2f}" for k in ("import", "first ask")]
        table.add_row(name, *times, f"{numbers['peak MB']:.0f}")
    return table


def study_table(plan: Plan, seconds: Mapping[str, float]) -> Table:
    """Whole studies, from process start to end."""
    table = Table(title=f"A whole study of {plan.study} instant evaluations, seconds")
    table.add_column("library")
    for heading in ("seconds", "ratio"):
        table.add_column(heading, justify="right")
    for name, value in seconds.items():
        table.add_row(name, f"{value:.1f}", f"{value / seconds['optpair']:.1f}")
    return table
