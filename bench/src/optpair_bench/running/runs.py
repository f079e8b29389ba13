"""Run of a method on a task, with what it found after every few evaluations.

On tasks of several outcomes (`tasks/joint.py`), regrets are what the answer and what all queried
points lack, and *feasible* is the share of the answer's points that truly meet all constraints.

On tasks of other spaces (`tasks/spaces.py`), *legal* is the share of all points so far, the answer
among them, that keep the limits to 1e-12 and have just the parameters that are active. Of a shelf,
*chance* is what our method gives the row that it holds to be the best most likely, and *top* is
whether it is.

*Inference* regret is f(x_opt) − f(x̂) at the recommended point, *simple* regret at the best queried
point; both noiseless. *Observed* is the best noisy value.
"""

from __future__ import annotations

import ast
import platform
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import optpair
from optpair.persistence.documents import settings_to_json
from optpair.problem.space import Space
from optpair.runtime.threads import engine_work
from optpair_bench import methods, tasks
from optpair_bench.methods import joint, peers, spaces
from optpair_bench.running import experiments
from optpair_bench.running.rows import Key, Row
from optpair_bench.tasks import joint as joint_tasks
from optpair_bench.tasks import spaces as space_tasks
from optpair_bench.tasks.joint import JointTask
from optpair_bench.tasks.spaces import Params, SpaceTask

ROOMS = ("problem", "trials", "gp", "cube", "optima", "acquisition", "engine")
ALONE = ("runtime/streams.py",)
"""Packages and modules of the library that decide what is asked and answered."""
WITHIN = 1e-12  # of a limit's largest weight
DIGITS = 5  # of what is written; the logarithm of a regret is right to 2e-5


AnyTask = tasks.Task | JointTask | SpaceTask


@dataclass(frozen=True)
class Run:
    """What one row is the result of."""

    experiment: str
    task: str
    method: str
    seed: int
    evaluations: int

    @property
    def key(self) -> Key:
        """What the run is known by."""
        return self.experiment, self.task, self.method, self.seed, self.evaluations

    def setup(self) -> tuple[AnyTask, methods.Setup]:
        """The task, and the method at the experiment's settings."""
        experiment, task = experiments.get(self.experiment), _task(self.task, self.seed)
        return task, experiment.setup(self.method, task, experiment.cell(self.task))


@lru_cache(maxsize=4)
def _task(name: str, seed: int) -> AnyTask:
    """Kept, so that methods that follow each other share the search for the optimum."""
    if space_tasks.known(name):
        return space_tasks.make(name, seed)
    several = name.partition("@")[0] in joint_tasks.REGISTRY
    return joint_tasks.make(name, seed) if several else tasks.make(name, seed)


class Record:
    """What a run has found so far."""

    def __init__(self, task: tasks.Task) -> None:
        self.task = task
        self.X: list[np.ndarray] = []
        self.best, self.observed = -np.inf, -np.inf
        self.checkpoints: dict[str, list[float]] = {
            name: [] for name in ("evaluations", "inference", "simple", "observed")
        }

    def add(self, x: np.ndarray) -> float:
        """Evaluate a point: its noisy value."""
        y = self.task.observe(x, len(self.X))
        self.X.append(x)
        self.best = max(self.best, float(self.task.value(x[None])[0]))
        self.observed = max(self.observed, y)
        return y

    def check(self, evaluations: int, recommended: np.ndarray) -> None:
        """Write down the regrets at this point."""
        top, value = self.task.optimum.f, float(self.task.value(recommended[None])[0])
        now = (evaluations, top - value, top - self.best, self.observed)
        for numbers, number in zip(self.checkpoints.values(), now, strict=True):
            numbers.append(_short(number))


class JointRecord:
    """What a run on a task of several outcomes has found so far."""

    def __init__(self, task: JointTask) -> None:
        self.task = task
        self.X: list[np.ndarray] = []
        self.checkpoints: dict[str, list[float]] = {
            name: [] for name in ("evaluations", "inference", "simple", "feasible")
        }

    def add(self, x: np.ndarray) -> np.ndarray:
        """Evaluate a point: its noisy outcomes."""
        self.X.append(x)
        return self.task.observe(x, len(self.X) - 1)

    def check(self, evaluations: int, answer: np.ndarray) -> None:
        """Write down what this answer lacks, and how much of it is feasible."""
        share = float(np.mean(self.task.feasible(self.task.value(answer))))
        lost = self.task.lost(answer), self.task.lost(np.array(self.X))
        for numbers, number in zip(
            self.checkpoints.values(), (evaluations, *lost, share), strict=True
        ):
            numbers.append(_short(number))


class SpaceRecord:
    """What a run on a space of any kind has found so far."""

    def __init__(self, task: SpaceTask, method: Any) -> None:
        self.task, self.method = task, method
        self.X: list[Params] = []
        self.checkpoints: dict[str, list[float]] = {
            name: [] for name in ("evaluations", "inference", "simple", "legal")
        }
        self.ours = task.space.table is not None and isinstance(method, spaces.Search)
        if self.ours:
            self.checkpoints |= {"chance": [], "top": []}

    def add(self, x: Params) -> float:
        """Evaluate a point: its noisy value."""
        self.X.append(x)
        return self.task.observe(x, len(self.X) - 1)

    def check(self, evaluations: int, answer: Params) -> None:
        """Write down what this answer lacks, and what all points lack."""
        legal = [legally(self.task.space, x) for x in (*self.X, answer)]
        now = [self.task.lost([answer]), self.task.lost(self.X), float(np.mean(legal))]
        if self.ours:
            row, chance = self.method.likeliest()
            now += [chance, float(self.task.lost([row]) == 0)]
        for numbers, number in zip(self.checkpoints.values(), [evaluations, *now], strict=True):
            numbers.append(_short(number))


def legally(space: Space, params: Params) -> bool:
    """Whether just what is active has a legal value, and linear limits hold to 1e-12.

    That is counted in units of a limit's largest weight.
    """
    if not space.fits(params):
        return False
    if space.table is not None:
        return space.row(params) is not None
    if not len(space.rows.b):
        return True
    excess = space.rows.A @ space.encode(params) - space.rows.b
    return bool(np.all(np.where(space.rows.equal, np.abs(excess), excess) <= WITHIN))


def _begin(
    task: AnyTask, chosen: methods.Setup, evaluations: int
) -> tuple[Any, Record | JointRecord | SpaceRecord]:
    """A new search, and a record of it."""
    if isinstance(task, SpaceTask):
        method = spaces.make(chosen, task)
        return method, SpaceRecord(task, method)
    if isinstance(task, JointTask):
        return joint.make(chosen, task), JointRecord(task)
    return methods.make(chosen, task, evaluations), Record(task)


def run(spec: Run) -> Row:
    """Do one run and return its row."""
    began, begin = datetime.now(UTC), time.perf_counter()
    task, chosen = spec.setup()
    experiment = experiments.get(spec.experiment)
    method, record = _begin(task, chosen, spec.evaluations)
    x: Any
    for x in task.initial(experiment.initial(task.dimensions)):
        method.tell(x, record.add(x))
    read = experiment.cell(spec.task).read
    when = set(experiment.schedule(spec.evaluations, task.dimensions, read))
    if 0 in when:
        record.check(0, method.recommend())
    asks: list[float] = []
    for count in range(1, spec.evaluations + 1):
        tick = time.perf_counter()
        x = method.ask()
        asks.append(time.perf_counter() - tick)
        method.tell(x, record.add(x))
        if count in when:
            record.check(count, method.recommend())
    row = _head(spec, task, chosen) | {
        "checkpoints": record.checkpoints,
        "ask_seconds": {
            "median": _short(float(np.median(asks)), 4),
            "p95": _short(float(np.quantile(asks, 0.95)), 4),
            "total": _short(sum(asks), 4),
        },
        "seconds": _short(time.perf_counter() - begin, 4),
        "began": began.isoformat(timespec="seconds"),
        "versions": versions() | (peers.versions() if chosen.name in peers.NAMES else {}),
    }
    if experiment.keep_queries:
        row["queries"] = [[_short(u, 5) for u in x] for x in np.array(record.X)]
    return row


def _head(spec: Run, task: AnyTask, chosen: methods.Setup) -> Row:
    """What the run was made with."""
    own = chosen.recommends == "posterior mean" and chosen.name not in peers.NAMES
    return asdict(spec) | {
        "dimensions": task.dimensions,
        "initial": experiments.get(spec.experiment).initial(task.dimensions),
        "noise_var": task.noise_var,
        "optimum": _short(task.optimum.f, 9),
        "model": chosen.model if own else None,
        "settings": settings(chosen) if own else None,
        "recommends": chosen.recommends,
    }


def settings(chosen: methods.Setup) -> dict[str, Any]:
    """Settings as they are written."""
    return settings_to_json(chosen.settings)


def work(spec: Run) -> Row:
    """A run as a worker does it: on one thread of BLAS, the task's values too."""
    return engine_work(run)(spec)


def _short(number: float, digits: int = DIGITS) -> float:
    """A number as it is written."""
    return number if isinstance(number, int) else float(f"{number:.{digits}g}")


def versions() -> dict[str, str]:
    """What a result was made with."""
    packages = {name: version(name) for name in ("numpy", "scipy")}
    own = {"optpair": optpair.__version__, "engine": engine()}
    return {**own, "python": platform.python_version(), **packages}


@cache
def engine() -> str:
    """A digest of the code that decides what is asked and answered, whatever its comments say."""
    home = Path(optpair.__file__).parent
    files = [path for room in ROOMS for path in (home / room).rglob("*.py")]
    files += [home / name for name in ALONE]
    code = [ast.dump(ast.parse(path.read_bytes())) for path in sorted(files)]
    return sha256("\n".join(code).encode()).hexdigest()[:10]
