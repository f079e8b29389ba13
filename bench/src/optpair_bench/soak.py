"""Soak test: kill workers of a study at random, again and again, and look for anything lost.

Workers are forked from a server that has the slow imports behind it, so that a new one works
within a moment.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import multiprocessing
import os
import random
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial

from optpair.integrations.optuna.attributes import OUTCOMES
from optpair.studies import config, lifecycle
from optpair.studies.results import Result
from optpair.studies.samplers import make_sampler
from optpair.studies.storage import open_study
from optpair.studies.worker import Interrupts, work

ENDLESS = 10**6
EARLY = 0.1
CLUMPED = 0.05
PRELOADED = [
    "__main__",
    "optpair_bench.soak",
    "optpair.integrations.optuna",
    "scipy.stats",
    "sqlalchemy.orm",
    "alembic.command",
]
SECONDS = "OPTPAIR_SOAK_SECONDS"
BEGUN = "OPTPAIR_SOAK_BEGUN"

FILE = """
[study]
name = "{name}"
seed = {seed}
sampler = "{sampler}"
storage = "{storage}"
stale_after = {stale_after}

[objective]
python = "optpair_bench.soak:{objective}"

[space]
x = {{ float = [-5, 10] }}
y = {{ float = [0, 15] }}

{outcomes}

[settings]
{settings}
"""

SEVERAL = """
[outcomes]
branin = { direction = "minimize", noise = 0 }
reach = { direction = "maximize", noise = 0 }
load = { high = 15.0, noise = 0 }
"""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many workers, how many of them are killed, and how many evaluations follow."""

    folder: Path
    storage: str
    sampler: str = "lattice"
    workers: int = 4
    kills: int = 50
    evaluations: int = 20
    longest: float = 0.1
    """Seconds between two kills at most; one worker in ten may die while it starts."""
    stale_after: float = 1.0
    seconds: float = 0.01
    """How long an evaluation takes."""
    seed: int = 0
    blind: bool = False
    """Whether suggestions ignore what is running, for comparison."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    several: bool = False
    """Whether a trial has two objectives and a constraint."""


def objective(params: Mapping[str, float]) -> float:
    """Branin's function, after a note of when it began and a little sleep."""
    _spend(params)
    return value(params)


def objectives(params: Mapping[str, float]) -> dict[str, float]:
    """Two objectives and a constraint, likewise."""
    _spend(params)
    return values(params)


def _spend(params: Mapping[str, float]) -> None:
    if BEGUN in os.environ:
        line = json.dumps([datetime.now().isoformat(), params["x"], params["y"]])
        with open(os.environ[BEGUN], "a", encoding="utf-8") as out:
            out.write(f"{line}\n")
    time.sleep(float(os.environ.get(SECONDS, "0")) * random.uniform(0.5, 1.5))


def value(params: Mapping[str, float]) -> float:
    """Branin's function: the same parameters always give the same value."""
    x, y = params["x"], params["y"]
    ridge = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return ridge**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def values(params: Mapping[str, float]) -> dict[str, float]:
    """Several outcomes, exact; where y is above 10 an objective is not measured."""
    x, y = params["x"], params["y"]
    found = {"branin": value(params), "reach": x - y / 3, "load": abs(x) + y}
    return found if y <= 10 else {name: v for name, v in found.items() if name != "reach"}


def soak(plan: Plan) -> dict[str, Any]:
    """Kill, let the rest finish, and report."""
    begin = time.monotonic()
    file = _file(plan)
    study = open_study(file, make_sampler(file))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    begun, log = plan.folder / "begun.txt", plan.folder / "told.txt"
    for empty in (begun, log):
        empty.write_text("", encoding="utf-8")
    os.environ |= {SECONDS: str(plan.seconds), BEGUN: str(begun)}
    dice = random.Random(plan.seed)

    def start(evaluations: int) -> tuple[Any, Any]:
        ready = context.Event()
        arguments = (file, evaluations, log, plan.blind, ready)
        process = context.Process(target=_worker, args=arguments)
        process.start()
        return process, ready

    def kill(process: Any) -> None:
        process.kill()
        process.join()

    running = [start(ENDLESS) for _ in range(plan.workers if plan.kills else 0)]
    for _ in range(plan.kills):
        victim, ready = running.pop(dice.randrange(len(running)))
        if dice.random() > EARLY:
            ready.wait(60)
        time.sleep(dice.uniform(0.0, plan.longest))
        kill(victim)
        running.append(start(ENDLESS))
    for process, _ in running:
        kill(process)
    after = lifecycle.ended(lifecycle.count(study.get_trials(deepcopy=False)))
    running = [start(after + plan.evaluations) for _ in range(plan.workers)]
    for process, _ in running:
        process.join()
    return {
        **check(study.get_trials(deepcopy=False), log),
        "apart": apart(study.get_trials(deepcopy=False), begun),
        "kills": plan.kills + plan.workers * bool(plan.kills),
        "wanted": after + plan.evaluations,
        "exit_codes": sorted({process.exitcode for process, _ in running}),
        "seconds": round(time.monotonic() - begin, 1),
    }


def check(found: list[FrozenTrial], log: Path) -> dict[str, Any]:
    """What the workers said they told, against what is stored.

    A value of a worker that was taken for dead, and was only slow, is found in a trial of its own.
    """
    lines = (line.split(maxsplit=1) for line in log.read_text().splitlines())
    said = [(int(number), json.loads(values)) for number, values in lines]
    told = {t.number: t for t in found if lifecycle.state(t) == "told"}
    whole = {n: t for n, t in told.items() if t.params.keys() == {"x", "y"} and _stored(t)}
    values = [_stored(t) for t in whole.values()]
    points = [tuple(sorted(t.params.items())) for t in whole.values()]
    late = [n for n, v in said if n not in told and v in values]
    return {
        "counts": dict(lifecycle.count(found)),
        "told": len(told),
        "partly": sum(t.values is None for t in told.values()),
        "said": len(said),
        "lost": [n for n, v in said if n not in late and (n not in told or _stored(told[n]) != v)],
        "late": late,
        "half_written": [n for n in told if n not in whole],
        "wrong": [n for n, t in whole.items() if _stored(t) != _given(t)],
        "duplicated": len(points) - len(set(points)) + len(said) - len({n for n, _ in said}),
    }


def _stored(trial: FrozenTrial) -> dict[str, float]:
    """The values of a trial by name, and as Optuna has them where it has all objectives."""
    if OUTCOMES not in trial.user_attrs:
        return {"value": trial.value} if trial.value is not None else {}
    found: dict[str, float] = trial.user_attrs[OUTCOMES]
    objectives = [found[name] for name in ("branin", "reach") if name in found]
    return found if trial.values in (None, objectives) else {}


def _given(trial: FrozenTrial) -> dict[str, float]:
    """What the objective gives for a trial's parameters."""
    several = OUTCOMES in trial.user_attrs
    return values(trial.params) if several else {"value": value(trial.params)}


def apart(found: list[FrozenTrial], begun: Path) -> list[dict[str, float]]:
    """How far, on the unit square, a trial is from the nearest of those that it could see.

    Those were being evaluated when it was asked for. A row for each quarter of the study, as
    distances shrink with what is left to learn; `clumped` is the share that is nearer than 0.05.
    """
    rows = [json.loads(line) for line in begun.read_text(encoding="utf-8").splitlines()]
    seen_from = {(x, y): datetime.fromisoformat(time_) for time_, x, y in rows}
    told = [t for t in found if lifecycle.state(t) == "told"]
    points = {t.number: (t.params["x"], t.params["y"]) for t in told}

    def nearest(trial: FrozenTrial) -> float:
        start = trial.datetime_start or datetime.max
        distances = [
            math.dist(points[trial.number], points[other.number]) / 15
            for other in told
            if other.number != trial.number
            and seen_from[points[other.number]] < start < (other.datetime_complete or start)
        ]
        return min(distances, default=math.inf)

    ends = [len(told) * i // 4 for i in range(5)]
    return [_summary([nearest(t) for t in told[a:b]]) for a, b in itertools.pairwise(ends)]


def _summary(nearest: list[float]) -> dict[str, float]:
    near = sorted(d for d in nearest if d < math.inf)
    if not near:
        return {"trials": 0}
    return {
        "trials": len(near),
        "mean": round(sum(near) / len(near), 4),
        "median": round(near[len(near) // 2], 4),
        "clumped": round(sum(d < CLUMPED for d in near) / len(near), 3),
    }


def _file(plan: Plan) -> config.StudyFile:
    path = plan.folder / "soak.toml"
    text = FILE.format(
        name=f"soak-{plan.sampler}-{time.time_ns()}",
        seed=plan.seed,
        sampler=plan.sampler,
        storage=plan.storage,
        stale_after=plan.stale_after,
        objective="objectives" if plan.several else "objective",
        outcomes=SEVERAL if plan.several else "",
        settings="\n".join(f"{name} = {json.dumps(v)}" for name, v in plan.settings.items()),
    )
    path.write_text(text, encoding="utf-8")
    return config.load(path)


def _worker(file: config.StudyFile, evaluations: int, log: Path, blind: bool, ready: Any) -> None:
    """One worker, which writes down what it has told after it was told."""
    file = dataclasses.replace(file, evaluations=evaluations)
    if blind:
        from optpair.integrations.optuna import model

        model._OUT = ()  # type: ignore[assignment]
    out = os.open(log, os.O_WRONLY | os.O_APPEND)

    def told(number: int, result: Result) -> None:
        os.write(out, f"{number} {json.dumps(dict(result.values))}\n".encode())

    stop = Interrupts(print)
    with stop.listening():
        study = open_study(file, make_sampler(file))
        ready.set()
        work(file, study, stop, lambda _: None, told)
