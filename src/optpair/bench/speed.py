"""Seconds an ask: warm and cold, stage by stage, and beside other libraries.

Warm asks are timed one by one on a history that grows from n trials, each told a noisy value at
once; the median is reported. Every number of one run comes from the same cores.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from optpair import acquisition, gp, pairs
from optpair.acquisition import NAMES
from optpair.bench import cores, limits, peers
from optpair.bench.methods import unit_space
from optpair.bench.runs import versions
from optpair.bench.tasks import OUTPUTSCALE, Task, gp_sample
from optpair.engine import CANDIDATES_BESIDE_PAIRS, padded_size
from optpair.gp import Hyperparameters
from optpair.gp.inference import MOST_ROWS
from optpair.optimizer import Optimizer
from optpair.settings import Settings

WARM = 2  # asks that compile and are not counted
PAPER_SETS = 10
PAPER_SECONDS = {  # the paper's Table 1, on its authors' machine
    "jes": {2: 1.40, 4: 1.50, 6: 1.56},
    "mes": {2: 1.03, 4: 1.21, 6: 1.26},
    "pes": {2: 17.39, 4: 34.53, 6: 62.92},
    "ei": {2: 0.23, 4: 0.30, 6: 0.35},
}
STAGES = ("hyperparameters", "condition", "pairs", "pending", "maximise")

_COLD = """
import sys, time
begin = time.perf_counter()
import optpair
imported = time.perf_counter() - begin
from optpair.bench.speed import cold_ask
cold_ask(imported, sys.argv[1])
"""

_OBJECTIVE = """
import json, random, sys
plan = json.loads(sys.argv[1])
noise = random.Random(0)
names = [f"x{i}" for i in range(plan["dimensions"])]
def objective(params):
    return sum((params[name] - 0.3) ** 2 for name in names) + 0.05 * noise.gauss(0, 1)
"""

_STUDY = (
    _OBJECTIVE
    + """
import optpair
space = optpair.Space({name: optpair.Float(0, 1) for name in names})
optimizer = optpair.Optimizer(space, seed=0, acquisition=plan["method"])
for _ in range(plan["study"]):
    trial = optimizer.ask()
    optimizer.tell(trial, objective(trial.params))
"""
)

_OPTUNA_STUDY = (
    _OBJECTIVE
    + """
import optuna
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0))
space = {name: optuna.distributions.FloatDistribution(0, 1) for name in names}
for _ in range(plan["study"]):
    trial = study.ask(space)
    study.tell(trial, objective(trial.params))
"""
)


@dataclass(frozen=True)
class Plan:
    """What to measure. None means the library's default or, in the paper's setting, the paper's."""

    dimensions: int = 6
    n: int = 100
    sets: int | None = None
    pairs: int | None = None
    candidates: int | None = None
    method: str = "jes"
    beside: tuple[str, ...] = ()
    """Other acquisition functions, timed after `method` in the same way."""
    repeats: int = 20
    paper: bool = False
    peers: bool = False
    cold: bool = True
    study: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "beside", tuple(self.beside))
        for method in self.methods:
            if method not in NAMES:
                raise ValueError(f"method must be one of {', '.join(NAMES)}, not {method!r}")

    @property
    def methods(self) -> tuple[str, ...]:
        """All acquisition functions that are timed."""
        return (self.method, *self.beside)

    @property
    def settings(self) -> Settings:
        """How the library is set."""
        chosen: dict[str, Any] = {"exploit": 0.0, "initial": 1, "ahead": False}
        if self.paper:
            chosen |= {"kernel": "rbf", "sets": PAPER_SETS, "pairs": 10}
            chosen |= {"candidates": 10_000, "starts": 1}
        given = {"sets": self.sets, "pairs": self.pairs, "candidates": self.candidates}
        return Settings(**(chosen | {k: v for k, v in given.items() if v is not None}))


@dataclass(frozen=True)
class Timing:
    """Seconds of each timed ask, and the medians of its stages."""

    name: str
    dimensions: int
    seconds: list[float]
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The median ask."""
        return float(np.median(self.seconds))


def given_sets(task: Task, sets: int) -> Hyperparameters:
    """Sets scattered around the truth, as a sampler's would be."""
    rng = task.generator("sets")

    def around(value: float, *shape: int) -> np.ndarray:
        return value * np.exp(0.2 * rng.standard_normal((sets, *shape)))

    return Hyperparameters(
        lengthscale=around(task.lengthscale or 1.0, task.dimensions),
        outputscale=around(OUTPUTSCALE),
        noise=around(task.noise_var),
        mean=np.zeros(sets),
    )


def told(task: Task, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform points with noisy values."""
    X = task.initial(points)
    return X, np.array([task.observe(x, i) for i, x in enumerate(X)])


def optimizer(plan: Plan, task: Task, points: int) -> Optimizer:
    """The library's optimiser with a history of that many trials."""
    settings = plan.settings
    opt = Optimizer(
        unit_space(task.dimensions),
        direction="maximize",
        seed=0,
        acquisition=plan.method,
        hyperparameters=given_sets(task, settings.sets) if plan.paper else "marginal",
        settings=settings,
    )
    for x, y in zip(*told(task, points), strict=True):
        opt.tell({f"x{i}": float(u) for i, u in enumerate(x)}, float(y))
    return opt


def warm(plan: Plan) -> Timing:
    """Time the library's asks."""
    task = gp_sample(plan.dimensions)
    opt = optimizer(plan, task, max(plan.n - WARM, 1))
    seconds: list[float] = []
    stages: list[dict[str, float]] = []
    for index in range(WARM + plan.repeats):
        begin = time.perf_counter()
        trial = opt.ask()
        seconds.append(time.perf_counter() - begin)
        stages.append(opt.info.seconds)
        x = np.array(list(trial.params.values()), dtype=np.float64)
        opt.tell(trial, task.observe(x, plan.n + index))
    names = dict.fromkeys(name for stage in stages for name in stage)
    medians = {k: float(np.median([s.get(k, 0.0) for s in stages[WARM:]])) for k in names}
    return Timing(f"optpair {plan.method}", plan.dimensions, seconds[WARM:], medians)


def screening(plan: Plan) -> float:
    """Seconds of evaluating the acquisition function at the candidates of one ask, and no more."""
    task, settings = gp_sample(plan.dimensions), plan.settings
    posterior = gp.condition(
        given_sets(task, settings.sets), *told(task, padded_size(plan.n)), kernel="matern52"
    )
    alpha = acquisition.jes(posterior, pairs.sample(0, posterior, settings.pairs))
    X = task.generator("screening").uniform(size=(limits.candidates(settings), plan.dimensions))
    seconds = []
    for _ in range(WARM + plan.repeats):
        begin = time.perf_counter()
        alpha(X)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds[WARM:]))


def _screening(found: Mapping[str, float]) -> str:
    seconds, limit = found["seconds"], found["limit"]
    return (
        f"of which screening, alone: {1e3 * seconds:.1f} ms, "
        f"limit {1e3 * limit:.1f}, ratio {seconds / limit:.1f}"
    )


def cold_ask(imported: float, arguments: str) -> None:
    """In a new process: time the first ask that uses the model, and print it as JSON."""
    plan = Plan(**json.loads(arguments))
    opt = optimizer(plan, gp_sample(plan.dimensions), plan.n)
    begin = time.perf_counter()
    opt.ask()
    first = time.perf_counter() - begin
    print(json.dumps({"import": imported, "first ask": first, "peak MB": _peak()}))


def _peak() -> float:
    """The most memory that this process has held, in MB.

    On Linux not by `getrusage`, which counts what the parent held when this one was started.
    """
    status = Path("/proc/self/status")
    if status.exists():
        kept = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if kept:
            return int(kept[1]) / 2**10
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def in_new_process(script: str, plan: Plan, *, empty_cache: bool) -> str:
    """What a script prints, with the cache of compiled code as it is or with an empty one."""
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        if empty_cache:
            environment["XDG_CACHE_HOME"] = folder
            environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        command = [sys.executable, "-c", script, json.dumps(asdict(plan))]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"the new process failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def cold(plan: Plan, *, empty_cache: bool) -> dict[str, float]:
    """Time the imports and the first ask of a new process."""
    printed = in_new_process(_COLD, plan, empty_cache=empty_cache)
    seconds: dict[str, float] = json.loads(printed.splitlines()[-1])
    return seconds


def studies(plan: Plan) -> dict[str, float]:
    """Seconds of whole studies of instant evaluations, each in a new process, imports included."""
    runs = {"optpair": (_STUDY, False), "optpair, empty cache": (_STUDY, True)}
    if plan.peers and not peers.missing():
        runs["Optuna GPSampler"] = (_OPTUNA_STUDY, False)
    in_new_process(_STUDY, plan, empty_cache=False)  # fills the cache
    seconds = {}
    for name, (script, empty) in runs.items():
        begin = time.perf_counter()
        in_new_process(script, plan, empty_cache=empty)
        seconds[name] = time.perf_counter() - begin
    return seconds


def peer(entry: peers.Entry, plan: Plan) -> Timing:
    """Time another library's asks on the same history."""
    dimensions = plan.dimensions
    task = gp_sample(dimensions)
    study = entry.build(*told(task, max(plan.n - entry.warm, 1)))
    seconds: list[float] = []
    for index in range(entry.warm + min(plan.repeats, entry.repeats)):
        begin = time.perf_counter()
        x = study.ask()
        seconds.append(time.perf_counter() - begin)
        study.tell(x, task.observe(x, plan.n + index))
    return Timing(entry.name, dimensions, seconds[entry.warm :])


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
    timings = [warm(replace(plan, method=method, beside=())) for method in plan.methods]
    report: dict[str, Any] = {"plan": asdict(plan), "settings": asdict(plan.settings)}
    console.print(_title(plan), style="bold")
    least = {}
    if not plan.paper and plan.method == "jes" and plan.n <= MOST_ROWS:
        rows, sets = padded_size(plan.n), plan.settings.sets
        rates, single = limits.measure(rows, sets), limits.measure(rows, sets, "float32")
        least = limits.stages(plan.settings, plan.dimensions, plan.n, rates, single)
        report["limits"] = least
        report["screening"] = {
            "seconds": screening(plan),
            "limit": limits.screening(plan.settings, plan.dimensions, plan.n, rates),
        }
    console.print(stage_table(timings[0], least))
    if least:
        console.print(_screening(report["screening"]))
    task = gp_sample(plan.dimensions)
    known = (task.lengthscale or 1.0, OUTPUTSCALE, task.noise_var)
    for entry in peers.entries(plan.paper, known) if with_peers else []:
        if entry.most is not None and plan.n > entry.most:
            continue
        with console.status(entry.name):
            timings.append(peer(entry, plan))
        console.print(f"{entry.name}: {timings[-1].median:.3f} s")
    console.print(ask_table(plan, timings))
    report["asks"] = [asdict(timing) | {"median": timing.median} for timing in timings]
    if plan.cold:
        caches = {"as it is": False, "empty": True}
        report["cold"] = {k: cold(plan, empty_cache=v) for k, v in caches.items()}
        console.print(cold_table(report["cold"]))
    if plan.study:
        report["studies"] = studies(plan)
        console.print(study_table(plan, report["studies"]))
    return report


def _title(plan: Plan) -> str:
    s, count = plan.settings, len(cores.available())
    model = "given" if plan.paper else "sampled"
    candidates = s.candidates or CANDIDATES_BESIDE_PAIRS
    return (
        f"{plan.dimensions}-D, n = {plan.n}, {s.sets} × {s.pairs} pairs ({model} sets), "
        f"{candidates} candidates, {_count(s.starts, 'start')}, {_count(count, 'core')}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


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
