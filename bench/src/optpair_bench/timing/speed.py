"""Seconds per ask: warm and cold, stage by stage, and beside other libraries.

Warm asks are timed one by one on a history that grows from n trials, each told a noisy value at
once; the median is reported. Every number of one run comes from the same cores, and those that are
compared are taken in turn, so that other work on the machine is shared.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from optpair.effort import padded_size

from optpair import acquisition, gp, pairs
from optpair.acquisition import NAMES
from optpair.engine.settings import Settings
from optpair.gp import Hyperparameters
from optpair.optimizer import Optimizer
from optpair.problem.defaults import ACQUISITION
from optpair_bench.methods import peers, unit_space
from optpair_bench.tasks import OUTPUTSCALE, Task, gp_sample
from optpair_bench.timing import limits

WARM = 2  # asks that compile and are not counted
PAPER_SETS = 10
TURN = 5  # asks in a row, before the next library has its turn
STUDY_ROUNDS = 3

_COLD = """
import sys, time
begin = time.perf_counter()
import optpair
imported = time.perf_counter() - begin
from optpair_bench.timing.speed import cold_ask
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

_PACED = (
    _OBJECTIVE
    + """
import time
import optpair
space = optpair.Space({name: optpair.Float(0, 1) for name in names})
optimizer = optpair.Optimizer(space, seed=0, acquisition=plan["method"])
seconds = []
for _ in range(plan["paced"]):
    begin = time.perf_counter()
    trial = optimizer.ask()
    seconds.append(time.perf_counter() - begin)
    time.sleep(plan["pace"])
    optimizer.tell(trial, objective(trial.params))
print(json.dumps(seconds))
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
    method: str = ""
    """Empty means the library's default or, in the paper's setting, `jes`."""
    beside: tuple[str, ...] = ()
    """Other acquisition functions, timed after `method` in the same way."""
    repeats: int = 20
    paper: bool = False
    peers: bool = False
    cold: bool = True
    study: int = 0
    paced: int = 0
    """Evaluations of a study that takes its time over each."""
    pace: float = 1.0
    """Seconds that each of those takes."""
    levels: int | None = None
    """Inputs are whole numbers of so many levels, instead of the interval."""

    def __post_init__(self) -> None:
        if self.levels is not None and (self.paper or self.study or self.paced):
            raise ValueError("the paper's setting and whole studies have no levels")
        if self.paced == 1:
            raise ValueError("a paced study has at least two evaluations")
        object.__setattr__(self, "beside", tuple(self.beside))
        object.__setattr__(self, "method", self.method or ("jes" if self.paper else ACQUISITION))
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


def told(task: Task, points: int, levels: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Uniform points, of so many levels or of all numbers, with noisy values."""
    X = task.initial(points)
    if levels is not None:
        X = np.rint(X * (levels - 1)) / (levels - 1)
    return X, np.array([task.observe(x, i) for i, x in enumerate(X)])


def optimizer(plan: Plan, task: Task, points: int) -> Optimizer:
    """The library's optimiser with a history of that many trials."""
    settings = plan.settings
    opt = Optimizer(
        unit_space(task.dimensions, plan.levels),
        direction="maximize",
        seed=0,
        acquisition=plan.method,
        hyperparameters=given_sets(task, settings.sets) if plan.paper else "marginal",
        settings=settings,
    )
    for x, y in zip(*told(task, points, plan.levels), strict=True):
        opt.tell(opt.space.decode(x), float(y))
    return opt


class Timed:
    """An optimiser whose asks are timed, each told a noisy value at once."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        study: peers.Peer,
        *,
        warm: int,
        repeats: int,
        stages: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        self.name, self._plan, self._study, self._warm = name, plan, study, warm
        self._stages_now = stages
        self._task = gp_sample(plan.dimensions)
        self.left = warm + min(plan.repeats, repeats)
        self._seconds: list[float] = []
        self._stages: list[Mapping[str, float]] = []

    def turn(self, asks: int) -> None:
        """Time so many asks more, or those that are left."""
        for _ in range(min(asks, self.left)):
            begin = time.perf_counter()
            x = self._study.ask()
            self._seconds.append(time.perf_counter() - begin)
            self._stages.append(self._stages_now())
            self._study.tell(x, self._task.observe(x, self._plan.n + len(self._seconds) - 1))
            self.left -= 1

    @property
    def timing(self) -> Timing:
        """What came out, without the asks that warm up."""
        stages = self._stages[self._warm :]
        names = dict.fromkeys(name for stage in stages for name in stage)
        medians = {k: float(np.median([s.get(k, 0.0) for s in stages])) for k in names}
        return Timing(self.name, self._plan.dimensions, self._seconds[self._warm :], medians)


class _Ours:
    """The library's optimiser in the shape of a peer."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def ask(self) -> np.ndarray:
        self._trial = self._optimizer.ask()
        return self._optimizer.space.encode(self._trial.params)

    def tell(self, x: np.ndarray, y: float) -> None:
        self._optimizer.tell(self._trial, y)


def ours(plan: Plan) -> Timed:
    """The library."""
    opt = optimizer(plan, gp_sample(plan.dimensions), max(plan.n - WARM, 1))
    return Timed(
        f"optpair {plan.method}",
        plan,
        _Ours(opt),
        warm=WARM,
        repeats=plan.repeats,
        stages=lambda: opt.info.seconds,
    )


def peer(entry: peers.Entry, plan: Plan) -> Timed:
    """Another library, on the same history."""
    task, points = gp_sample(plan.dimensions), max(plan.n - entry.warm, 1)
    study = entry.build(*told(task, points, plan.levels))
    return Timed(entry.name, plan, study, warm=entry.warm, repeats=entry.repeats)


def warm(everyone: Sequence[Timed]) -> list[Timing]:
    """Time all asks of everyone, in turn."""
    while any(timed.left for timed in everyone):
        for timed in everyone:
            timed.turn(TURN)
    return [timed.timing for timed in everyone]


def screening(plan: Plan) -> float:
    """Seconds of evaluating the acquisition function at the candidates of one ask, and no more."""
    task, settings = gp_sample(plan.dimensions), plan.settings
    posterior = gp.condition(
        given_sets(task, settings.sets),
        *told(task, padded_size(plan.n, plan.dimensions)),
        kernel=settings.kernel,
    )
    stars = pairs.sample(0, posterior, settings.pairs)
    peak = plan.method == "jes-peak"
    alpha = acquisition.jes_peak(posterior, stars) if peak else acquisition.jes(posterior, stars)
    X = task.generator("screening").uniform(size=(limits.candidates(settings), plan.dimensions))
    seconds = []
    for _ in range(WARM + plan.repeats):
        begin = time.perf_counter()
        alpha(X)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds[WARM:]))


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
    """Seconds of whole studies of instant evaluations, each in a new process, imports included.

    The medians of three rounds, in which everyone has a turn: other work on the machine is shared.
    """
    runs = {"optpair": (_STUDY, False), "optpair, empty cache": (_STUDY, True)}
    if plan.peers and not peers.missing():
        runs["Optuna GPSampler"] = (_OPTUNA_STUDY, False)
    in_new_process(_STUDY, plan, empty_cache=False)  # fills the cache
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(STUDY_ROUNDS):
        for name, (script, empty) in runs.items():
            begin = time.perf_counter()
            in_new_process(script, plan, empty_cache=empty)
            seconds[name].append(time.perf_counter() - begin)
    return {name: float(np.median(taken)) for name, taken in seconds.items()}


def paced(plan: Plan) -> list[float]:
    """Seconds of every ask of a study with slow evaluations, on an empty cache.

    All compiling should be hidden behind the evaluations.
    """
    seconds: list[float] = json.loads(in_new_process(_PACED, plan, empty_cache=True))
    return seconds
