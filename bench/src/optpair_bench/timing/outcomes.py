"""CPU time of warm asks with several outcomes, or with a fidelity, beside those with one outcome.

Each outcome is a GP sample of its own; a constraint is met by half of the told trials; with a
fidelity, from 1 to 27, a curve that falls is added. The kinds are asked in turn, in one process,
and every ask is told noisy values at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from optpair.engine.settings import Settings
from optpair.optimizer import Optimizer
from optpair.problem.outcomes import Constraint, Objective
from optpair.problem.space import Fidelity, Space
from optpair.trials.trial import Trial
from optpair_bench.methods import unit_space
from optpair_bench.tasks import Task, gp_sample
from optpair_bench.timing.speed import TURN, WARM, told

KINDS: Mapping[str, str] = MappingProxyType(
    {"one objective": "o", "one constraint": "oc", "two objectives": "oo", "a fidelity": "ou"}
)
"""What is timed: a letter for each outcome, and one for a fidelity."""

STEPS, LEVELS = 27, (1, 3, 9, 27)


class Several:
    """An optimiser of some outcomes, with its history."""

    def __init__(self, kinds: str, dimensions: int, n: int) -> None:
        looks, kinds = (
            {"steps": Fidelity(1, STEPS, log=True)} if "u" in kinds else {},
            kinds.strip("u"),
        )
        self._tasks: list[Task] = [gp_sample(dimensions, seed) for seed in range(len(kinds))]
        X = told(self._tasks[0], n)[0]
        Y = np.array([[task.observe(x, i) for task in self._tasks] for i, x in enumerate(X)])
        self._names = [f"y{k}" for k in range(len(kinds))]
        limits = np.median(Y, axis=0).tolist()
        outcomes = {
            name: Objective("maximize") if kind == "o" else Constraint(low=limit)
            for name, kind, limit in zip(self._names, kinds, limits, strict=True)
        }
        settings, self._space = Settings(exploit=0.0, initial=1), unit_space(dimensions)
        space = Space({**self._space, **looks})
        self._optimizer = Optimizer(space, outcomes=outcomes, seed=0, settings=settings)
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            at = dict.fromkeys(looks, LEVELS[i % len(LEVELS)])
            self._tell({**self._space.decode(x), **at}, y)

    def _tell(self, trial: Any, y: np.ndarray) -> None:
        """Tell values, less what a look is short of."""
        params = trial.params if isinstance(trial, Trial) else trial
        y = y - 2 * np.exp(-params.get("steps", np.inf) / 9)
        self._optimizer.tell(trial, dict(zip(self._names, y.tolist(), strict=True)))

    def ask(self, index: int) -> float:
        """CPU seconds of one ask, which is then told noisy values."""
        begin = time.process_time()
        trial = self._optimizer.ask()
        spent = time.process_time() - begin
        x = self._space.encode({name: trial.params[name] for name in self._space})
        self._tell(trial, np.array([task.observe(x, index) for task in self._tasks]))
        return spent


def measure(dimensions: int, n: int, repeats: int) -> dict[str, list[float]]:
    """CPU seconds of each ask, by kind; those that warm up are left out."""
    studies = {name: Several(kinds, dimensions, n - WARM) for name, kinds in KINDS.items()}
    found: dict[str, list[float]] = {name: [] for name in KINDS}
    total = WARM + repeats
    for first in range(0, total, TURN):
        for name, study in studies.items():
            for i in range(first, min(first + TURN, total)):
                found[name].append(study.ask(n - WARM + i))
    return {name: seconds[WARM:] for name, seconds in found.items()}
