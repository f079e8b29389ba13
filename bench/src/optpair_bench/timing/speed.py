"""Warm asks, timed one by one on a history that grows from n trials, each told a value at once.

The median is reported. Every number of one run comes from the same cores, and those that are
compared are taken in turn, so that other work on the machine is shared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optpair.acquisition import REGISTRY
from optpair.engine.settings import Settings
from optpair.gp import Hyperparameters
from optpair.optimizer import Optimizer
from optpair.problem.defaults import ACQUISITION
from optpair_bench.methods import peers, unit_space
from optpair_bench.tasks import OUTPUTSCALE, Task, gp_sample

WARM = 2  # asks that start the chains of hyperparameters, and are not counted
PAPER_SETS = 10
TURN = 5  # asks in a row, before the next library has its turn


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
    levels: int | None = None
    """Inputs are whole numbers of so many levels, instead of the interval."""

    def __post_init__(self) -> None:
        if self.levels is not None and self.paper:
            raise ValueError(f"the paper's setting has no levels, and {self.levels} were given")
        object.__setattr__(self, "beside", tuple(self.beside))
        object.__setattr__(self, "method", self.method or ("jes" if self.paper else ACQUISITION))
        for method in self.methods:
            if method not in REGISTRY:
                raise ValueError(f"method must be one of {', '.join(REGISTRY)}, not {method!r}")

    @property
    def methods(self) -> tuple[str, ...]:
        """All acquisition functions that are timed."""
        return (self.method, *self.beside)

    @property
    def settings(self) -> Settings:
        """How the library is set."""
        chosen: dict[str, Any] = {"exploit": 0.0, "initial": 1}
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


class Ours:
    """The library's optimiser in the shape of a peer."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def ask(self) -> np.ndarray:
        """The optimiser's next point."""
        self._trial = self._optimizer.ask()
        return self._optimizer.space.encode(self._trial.params)

    def tell(self, x: np.ndarray, y: float) -> None:
        """Tell the trial that was asked for."""
        self._optimizer.tell(self._trial, y)

    def stages(self) -> Mapping[str, float]:
        """Seconds of each stage of the last ask."""
        return self._optimizer.info.seconds


def ours_study(plan: Plan) -> Ours:
    """The library with the plan's history, less the asks that warm it up."""
    return Ours(optimizer(plan, gp_sample(plan.dimensions), max(plan.n - WARM, 1)))


def ours(plan: Plan) -> Timed:
    """The library."""
    study = ours_study(plan)
    name = f"optpair {plan.method}"
    return Timed(name, plan, study, warm=WARM, repeats=plan.repeats, stages=study.stages)


def entries(plan: Plan) -> list[peers.Entry]:
    """The peers that are worth timing at this size."""
    task = gp_sample(plan.dimensions)
    known = (task.lengthscale or 1.0, OUTPUTSCALE, task.noise_var)
    everyone = peers.entries(plan.paper, known, plan.levels)
    return [entry for entry in everyone if entry.most is None or plan.n <= entry.most]


def peer_study(entry: peers.Entry, plan: Plan) -> peers.Peer:
    """Another library with the same history."""
    points = max(plan.n - entry.warm, 1)
    return entry.build(*told(gp_sample(plan.dimensions), points, plan.levels))


def peer(entry: peers.Entry, plan: Plan) -> Timed:
    """Another library."""
    study = peer_study(entry, plan)
    return Timed(entry.name, plan, study, warm=entry.warm, repeats=entry.repeats)


def warm(everyone: Sequence[Timed]) -> list[Timing]:
    """Time all asks of everyone, in turn."""
    while any(timed.left for timed in everyone):
        for timed in everyone:
            timed.turn(TURN)
    return [timed.timing for timed in everyone]
