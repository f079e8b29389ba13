"""Methods on spaces as people have them: ours through each of its doors, and other libraries.

A method asks for parameters, is told a value, and recommends parameters. All maximise.

| name                          | is                                                         |
|-------------------------------|------------------------------------------------------------|
| `optpair`                     | `Optimizer(space)` at its defaults                         |
| `optpair-right`, `-near`, …   | the same with guesses (`SpaceTask.guess`)                  |
| `logei-right`, `logei-wrong`  | log EI, times the belief to a falling power, as in πBO     |
| `optpair-optuna`              | `JESSampler` in code that suggests what a branch needs     |
| `optpair-8`                   | `ask(8)`; all eight are told before the next eight         |
| `optuna-gp-8`, `optuna-tpe-8` | eight trials at once, as `n_jobs=8` has them               |
| `botorch-lognei`              | with linear constraints, or on every row of a shelf        |
| `optpair-after`               | after studies of similar tasks (`related.py`)              |
| `optpair-after-unrelated`     | after studies of nothing of the kind                       |
| `optpair-apart`               | at two sites, with a search for each                       |
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from optpair.acquisition import CONTROLS
from optpair.cube.region import Region
from optpair.engine.session import region_of
from optpair.engine.settings import Settings
from optpair.optimizer import Optimizer
from optpair.problem.space import Categorical, Int, Space
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair_bench.methods.catalogue import OURS, Setup
from optpair_bench.methods.related import After, Sites
from optpair_bench.tasks.spaces import Params, SpaceTask

PLATE = 8


class SpaceMethod(Protocol):
    """One search on one task."""

    def ask(self) -> Params:
        """The next parameters to try."""
        ...

    def tell(self, params: Params, y: float) -> None:
        """The noisy value there."""
        ...

    def recommend(self) -> Params:
        """The answer."""
        ...


def make(chosen: Setup, task: SpaceTask) -> SpaceMethod:
    """A new search."""
    if chosen.name in OTHERS:
        return OTHERS[chosen.name](task)
    if chosen.name in CONTROLS:
        return Random(task)
    if task.space.contexts:
        return Sites(task, chosen.settings, apart=chosen.name == f"{OURS}-apart")
    name, _, kind = chosen.name.partition("-")
    if kind.startswith("after"):
        return After(task, chosen.settings, kind.partition("-")[2])
    space, plate = task.space, 1
    if kind in ("right", "near", "wrong"):
        space = guessed(task, kind)
    elif kind == str(PLATE):
        plate = PLATE
    else:
        name = chosen.name
    acquisition = None if name == OURS else name
    return Search(task, space, acquisition, chosen.settings, plate)


def guessed(task: SpaceTask, kind: str) -> Space:
    """The space with a guess for each parameter."""
    values = task.space.decode(task.guess(kind))
    return Space({name: replace(p, guess=values[name]) for name, p in task.space.items()})


class Search:
    """The library's own optimiser, which may be asked for a plate at a time."""

    def __init__(
        self,
        task: SpaceTask,
        space: Space,
        acquisition: str | None,
        settings: Settings,
        plate: int,
    ) -> None:
        exact = space.table is not None  # what a table says of a row is all there is to know
        self.optimizer = Optimizer(
            space,
            direction="maximize",
            seed=task.seed,
            noise=0.0 if exact else None,
            acquisition=acquisition,
            settings=settings,
        )
        self._plate, self._waiting = plate, list[Any]()
        self._trial: Any = None

    def ask(self) -> Params:
        """The next trial's, or the next of the plate's."""
        if not self._waiting:
            found: Any = self.optimizer.ask(self._plate) if self._plate > 1 else None
            self._waiting = found or [self.optimizer.ask()]
        self._trial = self._waiting.pop(0)
        return dict(self._trial.params)

    def tell(self, params: Params, y: float) -> None:
        """Tell the trial that was asked for."""
        self.optimizer.tell(self._trial, y)

    def recommend(self) -> Params:
        """The best predicted parameters."""
        return dict(self.optimizer.recommend().params)

    def likeliest(self) -> tuple[Params, float]:
        """What is most likely the best, and how likely."""
        return self.optimizer.belief().likeliest(1)[0]


@dataclass
class _Told:
    """Parameters and values; the best observed ones are the answer."""

    task: SpaceTask
    points: list[Params] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def tell(self, params: Params, y: float) -> None:
        """Remember the value."""
        self.points.append(params)
        self.y.append(y)

    def recommend(self) -> Params:
        """The best observed."""
        return self.points[int(np.argmax(self.y))]


class Random(_Told):
    """Uniform legal points, for control; of a shelf, each row at most once."""

    @cached_property
    def _region(self) -> Region:
        return region_of(self.task.space)

    def ask(self) -> Params:
        """The next of them."""
        space, region = self.task.space, self._region
        if space.table is not None:
            order = np.random.default_rng(self.task.seed).permutation(len(space.table))
            return space.decode(space.table[order[len(self.y)]])
        point = CONTROLS["random"](Stream.of(self.task.seed), region, len(self.y))
        return space.decode(point)


class _Optuna(_Told):
    """A study in whose objective parameters are suggested as a branch needs them."""

    plate = 1

    @cached_property
    def _study(self) -> Any:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a sampler is experimental
            self.sampler = self._sampler(self.task.seed)
        return optuna.create_study(direction="maximize", sampler=self.sampler)

    def ask(self) -> Params:
        """The next trial's, or the next of those that run at once."""
        waiting = self.__dict__.setdefault("_waiting", [])
        if not waiting:
            for _ in range(self.plate):
                trial = self._study.ask()
                waiting.append((trial, suggested(trial, self.task.space)))
        self._trial, params = waiting.pop(0)
        return dict(params)

    def tell(self, params: Params, y: float) -> None:
        """Tell the trial that was asked for."""
        super().tell(params, y)
        self._study.tell(self._trial, y)

    def _sampler(self, seed: int) -> Any:
        raise NotImplementedError


def suggested(trial: Any, space: Space) -> dict[str, Any]:
    """What an objective of Optuna's would suggest: parents first, and only what is active."""
    params: dict[str, Any] = {}
    for name in space.conditions.order:
        p: Any = space[name]
        if not space.conditions.holds(name, params):
            continue
        if isinstance(p, Categorical):
            params[name] = trial.suggest_categorical(name, list(p.choices))
        elif isinstance(p, Int):
            params[name] = trial.suggest_int(name, p.low, p.high, log=p.log)
        else:
            params[name] = trial.suggest_float(name, p.low, p.high, log=p.log)
    return params


class OursInOptuna(_Optuna):
    """JESSampler, which learns the conditions from the trials."""

    def _sampler(self, seed: int) -> Any:
        from optpair.integrations.optuna import JESSampler

        return JESSampler(seed=seed)

    def recommend(self) -> Params:
        """The best predicted parameters."""
        return dict(self.sampler.recommend(self._study).params)


class TPE(_Optuna):
    """TPESampler on all parameters of a branch at once."""

    def _sampler(self, seed: int) -> Any:
        import optuna

        return optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)


class EightTPE(_Optuna):
    """TPESampler with eight trials at once, which it is told of."""

    plate = PLATE

    def _sampler(self, seed: int) -> Any:
        import optuna

        return optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)


class OneGP(_Optuna):
    """GPSampler, one trial at a time."""

    def _sampler(self, seed: int) -> Any:
        import optuna

        return optuna.samplers.GPSampler(seed=seed)


class EightGP(OneGP):
    """GPSampler with eight trials at once."""

    plate = PLATE


class BotorchLogNEI(_Told):
    """qLogNoisyExpectedImprovement with BoTorch's own linear constraints, or on each row.

    It begins with 2·D points: of its sampler of polytopes, or of the rows.
    """

    def ask(self) -> Params:
        """The next point of its start, and then by its acquisition function."""
        import torch

        started = len(self.y) < 2 * self.task.dimensions
        torch.manual_seed(1000 * self.task.seed + len(self.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = self._start[len(self.y)] if started else self._next()
        space = self.task.space
        if space.table is not None:
            return space.decode(x)
        return dict(zip(space, map(float, x), strict=True))  # as it is: legal or not

    @cached_property
    def _start(self) -> Float[np.ndarray, "n d"]:
        count, table = 2 * self.task.dimensions, self.task.space.table
        if table is not None:
            rng = np.random.default_rng(self.task.seed)
            return table[rng.choice(len(table), count, replace=False)]
        from botorch.utils.sampling import get_polytope_samples

        unequal, equal = self._limits
        drawn = get_polytope_samples(
            count, self._bounds, unequal or None, equal or None, seed=self.task.seed
        )
        return np.asarray(drawn.numpy())

    @cached_property
    def _limits(self) -> tuple[list[Any], list[Any]]:
        """As BoTorch has them: columns, weights and what the sum is at least, or exactly."""
        import torch

        rows = self.task.space.rows
        found: tuple[list[Any], list[Any]] = ([], [])
        for a, b, equal in zip(rows.A, rows.b, rows.equal, strict=True):
            columns = np.flatnonzero(a)
            sign = 1.0 if equal else -1.0
            limit = (torch.tensor(columns), torch.tensor(sign * a[columns]), float(sign * b))
            found[bool(equal)].append(limit)
        return found

    @property
    def _bounds(self) -> Any:
        import torch

        return torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, len(self.task.space))

    @property
    def _inputs(self) -> Any:
        import torch

        encode = self.task.space.encode
        return torch.tensor(np.array([encode(p, anywhere=True) for p in self.points]))

    def _model(self) -> Any:
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        model = SingleTaskGP(self._inputs, torch.tensor(self.y)[:, None].double())
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _next(self) -> Float[np.ndarray, " d"]:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        acquisition = qLogNoisyExpectedImprovement(self._model(), self._inputs)
        return self._best(acquisition, raw=512, starts=10)

    def _best(self, acquisition: Any, raw: int, starts: int) -> Float[np.ndarray, " d"]:
        import torch
        from botorch.optim import optimize_acqf

        table = self.task.space.table
        if table is not None:
            tried = {self.task.space.row(p) for p in self.points}
            left = np.array([i for i in range(len(table)) if i not in tried])
            with torch.no_grad():
                blocks = torch.tensor(table[left])[:, None].split(1024)
                values = torch.cat([acquisition(block) for block in blocks])
            return table[left[int(values.argmax())]]
        unequal, equal = self._limits
        found, _ = optimize_acqf(
            acquisition,
            self._bounds,
            1,
            starts,
            raw_samples=raw,
            options={"batch_limit": 5, "maxiter": 200},
            inequality_constraints=unequal or None,
            equality_constraints=equal or None,
        )
        return np.asarray(found[0].detach().numpy())

    def recommend(self) -> Params:
        """The argmax of the posterior mean under the limits; of a shelf, the best observed."""
        if self.task.space.table is not None or len(self.y) < 2 * self.task.dimensions:
            return super().recommend()
        from botorch.acquisition import PosteriorMean

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = self._best(PosteriorMean(self._model()), raw=1024, starts=4)
        return dict(zip(self.task.space, map(float, x), strict=True))


OTHERS: Mapping[str, Callable[[SpaceTask], SpaceMethod]] = MappingProxyType(
    {
        "optpair-optuna": OursInOptuna,
        "optuna-tpe-group": TPE,
        "optuna-tpe-8": EightTPE,
        "optuna-gp": OneGP,
        "optuna-gp-8": EightGP,
        "botorch-lognei": BotorchLogNEI,
    }
)
"""Methods that are no `Optimizer`."""
