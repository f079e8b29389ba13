"""Methods by name: acquisition functions of the library, its controls, and its peers.

A method asks for points of the unit cube, is told values, and recommends a point. Its name may
change settings of the experiment: `jes:pairs=20,exploit=0.05`.

| name                          | is                                                         |
|-------------------------------|------------------------------------------------------------|
| `jes`, `mes`, `logei`, …      | that acquisition function at the experiment's settings     |
| `optpair`                     | what users get: JES with flat peaks, all default settings  |
| `random`, `lattice`           | controls; they recommend the best observed point           |
| `optuna-gp`, `botorch-jes`, … | other libraries (`peers.py`)                               |
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

import numpy as np

from optpair.acquisition import CONTROLS, REGISTRY
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.engine.settings import Settings
from optpair.gp import Hyperparameters
from optpair.optimizer import Optimizer
from optpair.problem.defaults import ACQUISITION
from optpair.problem.space import Float as Real
from optpair.problem.space import Int, Space
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair_bench.methods import peers
from optpair_bench.tasks import OUTPUTSCALE, Task
from optpair_bench.tasks.joint import JointTask
from optpair_bench.tasks.spaces import SpaceTask

Model = Literal["known", "marginal", "map"]
Point = Float[np.ndarray, " d"]

OURS = "optpair"
SINGLE = tuple(name for name, entry in REGISTRY.items() if "best" in entry.goals)
SEVERAL = tuple(name for name in REGISTRY if name not in SINGLE)
DOORS = (
    *(f"{OURS}-{kind}" for kind in ("right", "near", "wrong", "optuna", "8")),
    *(f"{OURS}-{kind}" for kind in ("after", "after-unrelated", "apart")),
    "logei-right",
    "logei-wrong",
)
"""Ours with a guess, within Optuna, eight trials at a time, …: see `spaces.py`."""
NAMES = (OURS, *SINGLE, *CONTROLS, *peers.NAMES, *SEVERAL, *DOORS)


class Method(Protocol):
    """One search on one task, always maximising."""

    def ask(self) -> Point:
        """The next point to evaluate."""
        ...

    def tell(self, x: Point, y: float) -> None:
        """The noisy value at the point that was asked for, or at a point given from outside."""
        ...

    def recommend(self) -> Point:
        """The point to be judged by inference regret."""
        ...


@dataclass(frozen=True)
class Setup:
    """A method's name, how it treats hyperparameters, and its settings on a task."""

    name: str
    model: Model
    settings: Settings

    @property
    def recommends(self) -> str:
        """What its recommendation is."""
        best = self.name in CONTROLS or peers.reports_best_observed(self.name)
        return "best observed" if best else "posterior mean"


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """A method's name and the settings it changes, or an error that says what is accepted.

    >>> parse("jes:pairs=20,exploit=0.05")
    ('jes', {'pairs': 20, 'exploit': 0.05})
    """
    name, _, rest = text.partition(":")
    if name not in NAMES:
        raise ValueError(f"method must be one of {', '.join(NAMES)}, not {name!r}")
    known = {item.name for item in fields(Settings)} - {"initial", "prior"}
    changed = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in known:
            raise ValueError(f"{text!r} changes {key!r}; a method may change {sorted(known)}")
        try:
            changed[key] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            changed[key] = value
    if changed and (name in CONTROLS or name in peers.NAMES):
        raise ValueError(f"{name} has no settings to change: {text!r}")
    return name, changed


def setup(
    text: str,
    task: Task | JointTask | SpaceTask,
    model: Model,
    settings: Mapping[str, Any],
    *,
    own_start: bool = False,
) -> Setup:
    """The method of that name at an experiment's settings, or at the library's own.

    It is given D + 1 points to begin with unless it has a start of its own. The paper's methods
    repeat no trial, and look everywhere.
    """
    name, changed = parse(text)
    if name == OURS or name in DOORS:
        model, settings = "marginal", {}
    own: dict[str, Any] = {} if own_start else {"initial": task.dimensions + 1}
    if name != OURS and not own_start:
        own |= {"repeat": False, "focus": False}
    return Setup(name, model, Settings(**{**settings, **changed, **own}))


def make(chosen: Setup, task: Task, evaluations: int | None = None) -> Method:
    """A new search; peers that begin by themselves may want to know how long it will be."""
    if chosen.name in CONTROLS:
        return Control(task, chosen.name)
    if chosen.name in peers.METHODS:
        known = chosen.model == "known"
        return Other(task, chosen.name, known=known, evaluations=evaluations)
    acquisition = ACQUISITION if chosen.name == OURS else chosen.name
    return Search(task, acquisition, chosen.model, chosen.settings)


def unit_space(dimensions: int, levels: int | None = None) -> Space:
    """The unit cube as a space, or so many levels of each input."""
    one = Real(0.0, 1.0) if levels is None else Int(0, levels - 1)
    return Space({f"x{i}": one for i in range(dimensions)})


def known_hyperparameters(task: Task) -> Hyperparameters:
    """Those of the GP that the task was drawn from."""
    if task.lengthscale is None:
        raise ValueError(
            f"the hyperparameters of {task.name} are not known: only gp tasks are drawn from a GP"
        )
    return Hyperparameters(
        lengthscale=np.full((1, task.dimensions), task.lengthscale),
        outputscale=np.array([OUTPUTSCALE]),
        noise=np.array([task.noise_var]),
        mean=np.zeros(1),
    )


class Search:
    """The library's own optimiser, with one of its acquisition functions."""

    def __init__(self, task: Task, acquisition: str, model: Model, settings: Settings) -> None:
        self.optimizer = Optimizer(
            unit_space(task.dimensions, task.levels),
            direction="maximize",
            seed=task.seed,
            acquisition=acquisition,
            hyperparameters=known_hyperparameters(task) if model == "known" else model,
            settings=settings,
        )
        self._trial: Any = None

    def ask(self) -> Point:
        """The optimiser's next point."""
        self._trial = self.optimizer.ask()
        return self.optimizer.space.encode(self._trial.params)

    def tell(self, x: Point, y: float) -> None:
        """Tell the trial that was asked for, or a point from outside."""
        trial, self._trial = self._trial, None
        self.optimizer.tell(self.optimizer.space.decode(x) if trial is None else trial, y)

    def recommend(self) -> Point:
        """The argmax of the averaged posterior mean."""
        return self.optimizer.space.encode(self.optimizer.recommend().params)


@dataclass
class _Told:
    """Points and values; the best observed point is what is recommended."""

    task: Task
    name: str
    X: list[Point] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def tell(self, x: Point, y: float) -> None:
        """Remember the value."""
        self.X.append(x)
        self.y.append(y)

    def recommend(self) -> Point:
        """The best observed point."""
        return self.X[int(np.argmax(self.y))]


@dataclass
class Control(_Told):
    """Points that no model has a say in."""

    asked: int = 0

    def ask(self) -> Point:
        """The next one of the sequence."""
        cube = Cube(unit_space(self.task.dimensions, self.task.levels).layout)
        self.asked += 1
        return CONTROLS[self.name](Stream.of(self.task.seed), Region.whole(cube), self.asked - 1)


@dataclass
class Other(_Told):
    """Another library, built when its first point is asked for."""

    known: bool = False
    evaluations: int | None = None
    peer: peers.Peer | None = None

    def ask(self) -> Point:
        """Its next point."""
        if self.peer is None:
            X = np.reshape(self.X, (len(self.X), self.task.dimensions))
            self.peer = peers.METHODS[self.name](X, np.array(self.y), self._task())
        return self.peer.ask()

    def tell(self, x: Point, y: float) -> None:
        """Tell it, once it is there."""
        super().tell(x, y)
        if self.peer is not None:
            self.peer.tell(x, y)

    def recommend(self) -> Point:
        """What its user would take: what it recommends or, without that, the best observed."""
        peer: object = self.peer
        return peer.recommend() if isinstance(peer, peers.Recommends) else super().recommend()

    def _task(self) -> peers.About:
        known = self.known and self.task.lengthscale is not None
        hypers = (self.task.lengthscale or 1.0, OUTPUTSCALE, self.task.noise_var)
        return peers.About(
            self.task.seed, self.task.levels, hypers if known else None, self.evaluations
        )
