"""CPU time of warm asks with several outcomes, beside those with one.

Each outcome is a GP sample of its own; a constraint is met by half of the told trials. The kinds
are asked in turn, in one process, and every ask is told noisy values at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from optpair.engine.settings import Settings
from optpair.optimizer import Optimizer
from optpair.problem.outcomes import Constraint, Objective
from optpair_bench.methods import unit_space
from optpair_bench.tasks import Task, gp_sample
from optpair_bench.timing.speed import TURN, WARM, told

KINDS: Mapping[str, str] = MappingProxyType(
    {"one objective": "o", "one constraint": "oc", "two objectives": "oo"}
)
"""What is timed: a letter for each outcome."""


class Several:
    """An optimiser of some outcomes, with its history."""

    def __init__(self, kinds: str, dimensions: int, n: int) -> None:
        self._tasks: list[Task] = [gp_sample(dimensions, seed) for seed in range(len(kinds))]
        X = told(self._tasks[0], n)[0]
        Y = np.array([[task.observe(x, i) for task in self._tasks] for i, x in enumerate(X)])
        self._names = [f"y{k}" for k in range(len(kinds))]
        limits = np.median(Y, axis=0).tolist()
        outcomes = {
            name: Objective("maximize") if kind == "o" else Constraint(low=limit)
            for name, kind, limit in zip(self._names, kinds, limits, strict=True)
        }
        settings = Settings(exploit=0.0, initial=1)
        space = unit_space(dimensions)
        self._optimizer = Optimizer(space, outcomes=outcomes, seed=0, settings=settings)
        for x, y in zip(X, Y, strict=True):
            self._optimizer.tell(space.decode(x), dict(zip(self._names, y.tolist(), strict=True)))

    def ask(self, index: int) -> float:
        """CPU seconds of one ask, which is then told noisy values."""
        begin = time.process_time()
        trial = self._optimizer.ask()
        spent = time.process_time() - begin
        x = self._optimizer.space.encode(trial.params)
        values = [task.observe(x, index) for task in self._tasks]
        self._optimizer.tell(trial, dict(zip(self._names, values, strict=True)))
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
