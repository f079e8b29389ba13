"""Report of `optpair bench speed`: one function per table, and the numbers as JSON.

Warm asks stage by stage and beside other libraries, their growth with the trials, cold starts,
whole searches, and the slowest ask of a long one.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from optpair.engine.budget import screened
from optpair.persistence.documents import settings_to_json
from optpair_bench.methods import peers
from optpair_bench.running import cores
from optpair_bench.running.runs import versions
from optpair_bench.timing import outcomes, processes, speed
from optpair_bench.timing.processes import Long, Whole
from optpair_bench.timing.speed import Plan, Timing

PAPER_SECONDS = {  # the paper's Table 1, on its authors' machine
    "jes": {2: 1.40, 4: 1.50, 6: 1.56},
    "mes": {2: 1.03, 4: 1.21, 6: 1.26},
    "pes": {2: 17.39, 4: 34.53, 6: 62.92},
    "ei": {2: 0.23, 4: 0.30, 6: 0.35},
}
STAGES = ("hyperparameters", "condition", "optima", "pending", "maximise", "failures")


def warm(plans: Sequence[Plan], out: Path | None = None) -> None:
    """Time warm asks, one plan after the other."""
    console = Console()
    with_peers = _with_peers(console, any(plan.peers for plan in plans))
    report = _head() | {"plans": []}
    for plan in plans:
        report["plans"].append(one(plan, console, with_peers=plan.peers and with_peers))
        _write(report, out)
    if any(plan.beside for plan in plans):
        console.print(method_table(report["plans"]))
    if len({plan.n for plan in plans}) > 1:
        console.print(growth_table(report["plans"]))


def cold(plans: Sequence[Plan], out: Path | None = None) -> None:
    """Time new processes up to their first suggestion."""
    found = [(plan, processes.cold(plan)) for plan in plans]
    Console().print(cold_table(found))
    _write(_head() | {"cold": [{"plan": asdict(plan)} | numbers for plan, numbers in found]}, out)


def searches(out: Path | None = None, *, wanted: bool) -> None:
    """Time whole searches, beside Optuna's where that is wanted."""
    console = Console()
    with_peers = _with_peers(console, wanted)
    found = [processes.whole(*size, with_peers=with_peers) for size in processes.SEARCHES]
    console.print(search_table(found))
    _write(_head() | {"searches": [asdict(one) for one in found]}, out)


def long(plans: Sequence[Plan], evaluations: int, out: Path | None = None) -> None:
    """Time every ask of a long search."""
    found = [processes.long(plan, evaluations) for plan in plans]
    Console().print(long_table(found))
    _write(_head() | {"long": [asdict(one) for one in found]}, out)


def several(plans: Sequence[Plan], out: Path | None = None) -> None:
    """Time asks with several outcomes beside those with one."""
    found = [(plan, outcomes.measure(plan.dimensions, plan.n, plan.repeats)) for plan in plans]
    Console().print(outcome_table(found))
    _write(_head() | {"outcomes": [{"plan": asdict(p), "seconds": s} for p, s in found]}, out)


def _head() -> dict[str, Any]:
    """Where, and with what, numbers were taken."""
    return {
        "cores": len(cores.available()),
        "machine": f"{platform.system()} {platform.machine()}",
        "versions": versions() | peers.versions(),
    }


def _write(report: Mapping[str, Any], out: Path | None) -> None:
    if out is not None:
        out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _with_peers(console: Console, wanted: bool) -> bool:
    """Whether other libraries are timed as well; says why not, where they are wanted."""
    absent = peers.missing() if wanted else []
    if absent:
        console.print(f"No peers: {', '.join(absent)} not installed. To have them: {peers.HOW_TO}")
    elif wanted and not peers.has_greenlet():
        console.print("Optuna's GPSampler is slower without greenlet, which is not installed")
    return wanted and not absent


def one(plan: Plan, console: Console, *, with_peers: bool) -> dict[str, Any]:
    """Time the warm asks of one plan, print its tables, and return its numbers."""
    own = [replace(plan, method=method, beside=()) for method in plan.methods]
    everyone = [speed.ours(each) for each in own]
    if with_peers:
        everyone += [speed.peer(entry, plan) for entry in speed.entries(plan)]
    with console.status(", ".join(timed.name for timed in everyone)):
        timings = speed.warm(everyone)
        sources = own + [plan] * (len(everyone) - len(own))
        memory = [
            processes.memory(each, timed.name)
            for each, timed in zip(sources, everyone, strict=True)
        ]
    console.print(_title(plan), style="bold")
    console.print(stage_table(timings[0]))
    console.print(ask_table(plan, timings, memory))
    return {
        "plan": asdict(plan),
        "settings": settings_to_json(plan.settings),
        "asks": [
            asdict(timing) | {"median": timing.median, "peak MB": most}
            for timing, most in zip(timings, memory, strict=True)
        ],
    }


def _title(plan: Plan) -> str:
    s, count = plan.settings, len(cores.available())
    model = "given" if plan.paper else "sampled"
    candidates = screened(s, optima=True)
    levels = "" if plan.levels is None else f" of {plan.levels} levels"
    return (
        f"{plan.dimensions}-D{levels}, n = {plan.n}, {s.sets} × {s.pairs} pairs ({model} sets), "
        f"{candidates} candidates, {_count(s.starts, 'start')}, {_count(count, 'core')}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def stage_table(timing: Timing) -> Table:
    """Where an ask spends its time."""
    table = Table(title="Stages of a warm ask")
    names = [*STAGES, *(name for name in timing.stages if name not in STAGES)]
    shown = {name: timing.stages[name] for name in names if name in timing.stages}
    shown["other"] = max(timing.median - sum(shown.values()), 0.0)
    table.add_column("stage")
    for heading in ("ms", "share"):
        table.add_column(heading, justify="right")
    for name, seconds in (shown | {"whole ask": timing.median}).items():
        table.add_row(name, f"{1e3 * seconds:.1f}", f"{seconds / timing.median:.0%}")
    return table


def ask_table(plan: Plan, timings: Sequence[Timing], memory: Sequence[float]) -> Table:
    """Seconds per ask, how many times the first line's, and the most memory of a process."""
    own = timings[0]
    table = Table(title="Seconds per warm ask")
    table.add_column("library")
    for heading in ("median", "p95", "asks", "ratio", "peak MB"):
        table.add_column(heading, justify="right")
    for timing, most in zip(timings, memory, strict=True):
        p95 = f"{np.quantile(timing.seconds, 0.95):.3f}" if len(timing.seconds) > 1 else ""
        cells = [f"{timing.median:.3f}", p95, str(len(timing.seconds))]
        table.add_row(timing.name, *cells, f"{timing.median / own.median:.1f}", f"{most:.0f}")
    for method in plan.methods if plan.paper else ():
        paper = PAPER_SECONDS.get(method, {}).get(own.dimensions)
        if paper is not None:
            label = f"the paper's Table 1, on its authors' machine: {method}"
            table.add_row(label, f"{paper:.3f}", "", "", f"{paper / own.median:.1f}", "")
    return table


def method_table(reports: Sequence[Mapping[str, Any]]) -> Table:
    """The acquisition functions beside each other, one line per plan: the columns of Table 1."""
    table = Table(title="Seconds per warm ask, mean ± standard deviation (ratio to the first)")
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
    """How the time of an ask grows with the told trials, one line per plan."""
    table = Table(title="Median seconds per warm ask")
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


def cold_table(found: Sequence[tuple[Plan, Mapping[str, float]]]) -> Table:
    """The first ask of a new process."""
    table = Table(title="A new process, up to the model's first suggestion: seconds")
    table.add_column("task")
    for heading in ("imports", "first ask", "in all", "peak MB"):
        table.add_column(heading, justify="right")
    for plan, numbers in found:
        times = [f"{numbers[key]:.2f}" for key in ("imports", "first ask", "in all")]
        name = f"{plan.dimensions}-D, n = {plan.n}"
        table.add_row(name, *times, f"{numbers['peak MB']:.0f}")
    return table


def outcome_table(found: Sequence[tuple[Plan, Mapping[str, Sequence[float]]]]) -> Table:
    """CPU seconds per ask with several outcomes, and how many times that of one."""
    table = Table(title="Warm asks: median CPU milliseconds (ratio to one objective)")
    table.add_column("task")
    for name in outcomes.KINDS:
        table.add_column(name, justify="right")
    for plan, seconds in found:
        medians = [float(np.median(own)) for own in seconds.values()]
        cells = [f"{1e3 * median:.1f} ({median / medians[0]:.2f})" for median in medians]
        table.add_row(f"{plan.dimensions}-D, n = {plan.n}", *cells)
    return table


def search_table(found: Sequence[Whole]) -> Table:
    """Whole searches, from process start to end."""
    table = Table(title="Whole searches of instant evaluations, from the start of the process")
    table.add_column("task")
    table.add_column("library")
    for heading in ("seconds", "ratio", "peak MB"):
        table.add_column(heading, justify="right")
    for whole in found:
        task = f"{whole.dimensions}-D, {_count(whole.evaluations, 'evaluation')}"
        first = whole.seconds[processes.OURS]
        for name, seconds in whole.seconds.items():
            cells = [f"{seconds:.2f}", f"{seconds / first:.1f}", f"{whole.memory[name]:.0f}"]
            table.add_row(task, name, *cells)
            task = ""
    return table


def long_table(found: Sequence[Long]) -> Table:
    """The slowest ask of a long search beside those around it."""
    table = Table(title="Every ask of a search of instant evaluations, seconds")
    table.add_column("task")
    for heading in ("median", "slowest", "in trial", "median near it", "ratio", "peak MB"):
        table.add_column(heading, justify="right")
    for one in found:
        most = one.seconds[one.slowest]
        cells = [f"{np.median(one.seconds):.3f}", f"{most:.3f}", str(one.slowest)]
        cells += [f"{one.near:.3f}", f"{most / one.near:.1f}", f"{one.memory:.0f}"]
        table.add_row(f"{one.dimensions}-D, {len(one.seconds)} trials", *cells)
    return table
