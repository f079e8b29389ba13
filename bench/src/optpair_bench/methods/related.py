"""Methods that know something similar: earlier studies, and trials at another site."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from optpair.earlier import Earlier
from optpair.engine.settings import Settings
from optpair.optimizer import Optimizer
from optpair.problem.space import Space
from optpair_bench.tasks import related
from optpair_bench.tasks.spaces import Params, SpaceTask, make

BEFORE = 10  # trials per dimension of an earlier study
OTHER_SEED = 7919  # of earlier studies, beside that of a task


@cache
def study(name: str, seed: int, copy: int) -> list[dict[str, Any]]:
    """An earlier study: a search at the library's defaults, of a task or a shifted copy of it."""
    task = make(name, seed)
    function: Callable[[Params], float] = task.value
    if copy:
        function = related.shifted(task.value, task.generator("copy", copy), task.dimensions)
    opt = Optimizer(task.space, direction="maximize", seed=OTHER_SEED * (copy + 1) + seed)
    rng = task.generator("earlier noise", copy)
    for _ in range(BEFORE * task.dimensions):
        trial = opt.ask()
        opt.tell(trial, function(dict(trial.params)) + task.noise * float(rng.normal()))
    return [{**trial.params, "value": trial.value} for trial in opt.trials]


def earlier(task: SpaceTask, kind: str) -> list[Earlier]:
    """Studies of tasks like this one; of the kind `unrelated`, turned into something else."""
    plain = task.name.partition("@")[0]
    if plain in related.TABLES:
        rows = {name: study(name, task.seed, 0) for name in related.TABLES if name != plain}
    else:
        copies = range(1, 1 + related.COPIES)
        rows = {f"copy {i}": study(task.name, task.seed, i) for i in copies}
    if kind == "unrelated":
        rng = task.generator("unlike")
        rows = {name: related.unlike(own, task.space, rng) for name, own in rows.items()}
    return [Earlier(own, name=name) for name, own in rows.items()]


class After:
    """The library's own optimiser after earlier studies."""

    def __init__(self, task: SpaceTask, settings: Settings, kind: str) -> None:
        self.optimizer = Optimizer(
            task.space,
            direction="maximize",
            seed=task.seed,
            settings=settings,
            earlier=earlier(task, kind),
        )

    def ask(self) -> Params:
        """The next trial's."""
        self._trial = self.optimizer.ask()
        return dict(self._trial.params)

    def tell(self, params: Params, y: float) -> None:
        """Tell the trial that was asked for."""
        self.optimizer.tell(self._trial, y)

    def recommend(self) -> Params:
        """The best predicted parameters."""
        return dict(self.optimizer.recommend().params)


class Sites:
    """Trials at two sites in turn: one search with a context, or a search of its own for each."""

    def __init__(self, task: SpaceTask, settings: Settings, *, apart: bool) -> None:
        plain = {name: p for name, p in task.space.items() if name != "site"}
        space = Space(plain) if apart else task.space
        made = [
            Optimizer(space, direction="maximize", seed=task.seed + i, settings=settings)
            for i in range(2 if apart else 1)
        ]
        self._apart, self._count = apart, 0
        self._searches = dict(zip(related.SITES, made * (2 // len(made)), strict=True))
        self._site = task.name.partition("@")[0].rpartition("-")[2]

    def _context(self, site: str) -> dict[str, Any]:
        return {} if self._apart else {"context": {"site": site}}

    def ask(self) -> Params:
        """The next trial's, at the site whose turn it is."""
        site = related.SITES[self._count % 2]
        self._trial = self._searches[site].ask(**self._context(site))
        return {**self._trial.params, "site": site}

    def tell(self, params: Params, y: float) -> None:
        """Tell the trial that was asked for."""
        self._searches[params["site"]].tell(self._trial, y)
        self._count += 1

    def recommend(self) -> Params:
        """The best predicted parameters at the site that the task is about."""
        if self._apart and not any(t.state == "told" for t in self._searches[self._site].trials):
            return {**self._trial.params, "site": self._site}
        best = self._searches[self._site].recommend(**self._context(self._site))
        return {**best.params, "site": self._site}
