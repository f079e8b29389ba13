"""What a benchmark can run: every acquisition function of the library, and its controls.

A method asks for points of the unit cube, is told values, and recommends a point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from jaxtyping import Float

from optpair.acquisition import NAMES
from optpair.bench.tasks import OUTPUTSCALE, Task
from optpair.gp import Hyperparameters
from optpair.optimizer import Optimizer
from optpair.settings import Settings
from optpair.space import Float as Real
from optpair.space import Space

Model = Literal["known", "marginal", "map"]

PAPER_PAIRS = 100
PAPER_FEATURES = 1024


class Method(Protocol):
    """One search on one task, always maximising."""

    def ask(self) -> Float[np.ndarray, " d"]:
        """The next point to evaluate."""
        ...

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """The noisy value at the point that was asked for, or at a point given from outside."""
        ...

    def recommend(self) -> Float[np.ndarray, " d"]:
        """The point to be judged by inference regret."""
        ...


def unit_space(dimensions: int) -> Space:
    """The unit cube as a space."""
    return Space({f"x{i}": Real(0.0, 1.0) for i in range(dimensions)})


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


def default_model(task: Task) -> Model:
    """Known hyperparameters for GP samples, as in the paper; marginalised ones otherwise."""
    return "marginal" if task.lengthscale is None else "known"


def make_settings(task: Task, model: Model, given: Mapping[str, Any]) -> Settings:
    """The paper's settings where hyperparameters are known, else the library's; then `given`."""
    chosen: dict[str, Any] = {"initial": task.dimensions + 1}
    if model == "known":
        known_hyperparameters(task)  # or an error that says why there are none
        chosen |= {"kernel": "rbf", "pairs": PAPER_PAIRS, "exploit": 0.0}
        chosen |= {"features": PAPER_FEATURES}
    return Settings(**{**chosen, **{k: v for k, v in given.items() if v is not None}})


def check_name(name: str) -> str:
    """The name of a method, or an error that lists them."""
    if name not in NAMES:
        raise ValueError(f"method must be one of {', '.join(NAMES)}, not {name!r}")
    return name


def make(name: str, task: Task, model: Model, settings: Settings) -> Method:
    """A new search by the method of that name."""
    if check_name(name) == "random":
        return RandomSearch(task)
    return Search(task, name, model, settings)


class Search:
    """The library's own optimiser, with one of its acquisition functions."""

    def __init__(self, task: Task, acquisition: str, model: Model, settings: Settings) -> None:
        self.optimizer = Optimizer(
            unit_space(task.dimensions),
            direction="maximize",
            seed=task.seed,
            acquisition=acquisition,
            hyperparameters=known_hyperparameters(task) if model == "known" else model,
            settings=settings,
        )
        self._trial: Any = None

    def ask(self) -> Float[np.ndarray, " d"]:
        """The optimiser's next point."""
        self._trial = self.optimizer.ask()
        return _point(self._trial.params)

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """Tell the trial that was asked for, or a point from outside."""
        trial, self._trial = self._trial, None
        if trial is None:
            trial = {f"x{i}": float(u) for i, u in enumerate(x)}
        self.optimizer.tell(trial, y)

    def recommend(self) -> Float[np.ndarray, " d"]:
        """The argmax of the averaged posterior mean."""
        return _point(self.optimizer.recommend().params)


@dataclass
class RandomSearch:
    """Uniform queries; recommends the best observed point."""

    task: Task
    best: tuple[float, Float[np.ndarray, " d"]] | None = None
    asked: int = 0

    def ask(self) -> Float[np.ndarray, " d"]:
        """A uniform point."""
        self.asked += 1
        return self.task.generator("random", self.asked).random(self.task.dimensions)

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """Remember the best value."""
        if self.best is None or y > self.best[0]:
            self.best = (y, x)

    def recommend(self) -> Float[np.ndarray, " d"]:
        """The best observed point."""
        if self.best is None:
            raise ValueError("no value was told yet")
        return self.best[1]


def _point(params: Mapping[str, Any]) -> Float[np.ndarray, " d"]:
    return np.array([float(params[f"x{i}"]) for i in range(len(params))])
