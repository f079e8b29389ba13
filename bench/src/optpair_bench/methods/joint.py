"""Methods on tasks of several outcomes: ours, random points, and those of other libraries.

A method asks for a point of the unit cube, is told all its outcomes, and answers with points: one
where there is one objective, and a front where there are several. Ours answers with what it
predicts, as does BoTorch on several objectives: the front of its posterior means, of which points
are chosen as ours are, but above the task's reference point, which only BoTorch is told. Optuna's
users get the best observed trials, BoTorch's under constraints the best observed feasible one, as
in its tutorials; where no trial is feasible, that of the least sum of violations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from scipy.stats import qmc

from optpair.acquisition import CONTROLS
from optpair.engine.hypervolume import most_of
from optpair.engine.worth import non_dominated
from optpair.optimizer import Optimizer
from optpair.problem.defaults import ACQUISITION
from optpair.problem.outcomes import Constraint, Objective, Outcome
from optpair.runtime.shapes import Float
from optpair_bench.methods.catalogue import OURS, Setup, unit_space
from optpair_bench.tasks.joint import JointTask

Point = Float[np.ndarray, " d"]
Points = Float[np.ndarray, "q d"]
FRONT = 64  # points of an answer, at most
SCREENED = 2**11
ROUNDS = 4  # of looking around a predicted front
FEWER = (10, 10, 5, 5, 2, 2, 1, 1)  # points of a set that are tried, of BoTorch's JES


class JointMethod(Protocol):
    """One search on one task of several outcomes."""

    def ask(self) -> Point:
        """The next point to evaluate."""
        ...

    def tell(self, x: Point, y: Float[np.ndarray, " O"]) -> None:
        """The noisy outcomes there."""
        ...

    def recommend(self) -> Points:
        """The answer: one point, or a front."""
        ...


def make(chosen: Setup, task: JointTask) -> JointMethod:
    """A new search."""
    if chosen.name in PEERS:
        return PEERS[chosen.name](task)
    if chosen.name in CONTROLS:
        return Random(task)
    acquisition = ACQUISITION if chosen.name == OURS else chosen.name
    return Search(task, acquisition, chosen)


class Search:
    """The library's own optimiser."""

    def __init__(self, task: JointTask, acquisition: str, chosen: Setup) -> None:
        kinds: list[Outcome] = [Objective("maximize")] * task.function.objectives
        kinds += [Constraint(low=0.0)] * (task.outcomes - len(kinds))
        self.names = [f"y{k}" for k in range(task.outcomes)]
        self.optimizer = Optimizer(
            unit_space(task.dimensions),
            outcomes=dict(zip(self.names, kinds, strict=True)),
            seed=task.seed,
            acquisition=acquisition,
            settings=chosen.settings,
        )
        self._several = task.function.objectives > 1
        self._trial: Any = None

    def ask(self) -> Point:
        """The optimiser's next point."""
        self._trial = self.optimizer.ask()
        return self.optimizer.space.encode(self._trial.params)

    def tell(self, x: Point, y: Float[np.ndarray, " O"]) -> None:
        """Tell all outcomes of the trial that was asked for."""
        self.optimizer.tell(self._trial, dict(zip(self.names, y.tolist(), strict=True)))

    def recommend(self) -> Points:
        """The best predicted point, or the predicted front."""
        if not self._several:
            return self.optimizer.space.encode(self.optimizer.recommend().params)[None]
        front = self.optimizer.recommend(points=FRONT)
        return np.array([self.optimizer.space.encode(point.params) for point in front.points])


@dataclass
class _Told:
    """Points and outcomes; the best observed of them are the answer."""

    task: JointTask
    X: list[Point] = field(default_factory=list)
    Y: list[Float[np.ndarray, " O"]] = field(default_factory=list)

    def tell(self, x: Point, y: Float[np.ndarray, " O"]) -> None:
        """Remember the outcomes."""
        self.X.append(x)
        self.Y.append(y)

    def recommend(self) -> Points:
        """The observed front of the feasible trials, or the best of them."""
        X, Y, K = np.array(self.X), np.array(self.Y), self.task.function.objectives
        met = self.task.feasible(Y)
        if not met.any():
            return X[[int(np.argmin(-np.minimum(Y[:, K:], 0).sum(1)))]]
        X, values = X[met], Y[met, :K]
        return X[non_dominated(values)] if K > 1 else X[[int(np.argmax(values))]]


class Random(_Told):
    """Uniform points, for control."""

    def ask(self) -> Point:
        """The next of them."""
        rng = np.random.default_rng([self.task.seed, len(self.X)])
        return rng.random(self.task.dimensions)


class _Optuna(_Told):
    """A study of Optuna's, with its directions and constraints."""

    @cached_property
    def _study(self) -> Any:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a sampler is experimental
            sampler = self._sampler(self.task.seed)
        return optuna.create_study(
            directions=["maximize"] * self.task.function.objectives, sampler=sampler
        )

    def ask(self) -> Point:
        """Its next point."""
        import optuna

        one = optuna.distributions.FloatDistribution(0.0, 1.0)
        names = [f"x{i}" for i in range(self.task.dimensions)]
        self._trial: Any = self._study.ask(dict.fromkeys(names, one))
        return np.array([self._trial.params[name] for name in names])

    def tell(self, x: Point, y: Float[np.ndarray, " O"]) -> None:
        """Tell the trial that was asked for; Optuna wants constraints to be at most 0."""
        super().tell(x, y)
        count = self.task.function.objectives
        for k, slack in enumerate(y[count:].tolist()):
            self._trial.set_constraint(f"c{k}", -slack)
        self._study.tell(self._trial, y[:count].tolist())

    def _sampler(self, seed: int) -> Any:
        raise NotImplementedError


class OptunaGP(_Optuna):
    """GPSampler: log EI under constraints, log EHVI for several objectives."""

    def _sampler(self, seed: int) -> Any:
        import optuna

        return optuna.samplers.GPSampler(seed=seed)


class OptunaNSGA2(_Optuna):
    """NSGAIISampler, whose first generation is a fifth of the largest budget."""

    def _sampler(self, seed: int) -> Any:
        import optuna

        return optuna.samplers.NSGAIISampler(seed=seed, population_size=4 * self.task.dimensions)


class _Botorch(_Told):
    """What the BoTorch methods share: 2·D Sobol points, a GP per outcome, the maximiser."""

    def ask(self) -> Point:
        """The next point of its start, and then by its acquisition function."""
        d = self.task.dimensions
        if len(self.X) < 2 * d:
            return qmc.Sobol(d, scramble=True, rng=self.task.seed).random(2 * d)[len(self.X)]
        import torch

        torch.manual_seed(1000 * self.task.seed + len(self.X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._next(self._model())

    def _next(self, model: Any) -> Point:
        raise NotImplementedError

    def _model(self) -> Any:
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from gpytorch.mlls import SumMarginalLogLikelihood

        Y = torch.tensor(np.array(self.Y))
        model = ModelListGP(*(SingleTaskGP(self._inputs, Y[:, [k]]) for k in range(Y.shape[1])))
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        return model

    @property
    def _inputs(self) -> Any:
        import torch

        return torch.tensor(np.array(self.X))

    @property
    def _bounds(self) -> Any:
        import torch

        return torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, self.task.dimensions)

    @property
    def _limits(self) -> list[Callable[[Any], Any]] | None:
        """Constraints as BoTorch has them: at most 0."""
        columns = range(self.task.function.objectives, self.task.outcomes)
        return [partial(_exceeded, column=k) for k in columns] or None

    def _best(self, acquisition: Any, raw: int, starts: int) -> Point:
        from botorch.optim import optimize_acqf

        options = {"init_batch_limit": 256, "batch_limit": 5, "maxiter": 200}
        found, _ = optimize_acqf(
            acquisition, self._bounds, 1, starts, raw_samples=raw, options=options
        )
        return np.asarray(found[0].detach().numpy())

    def recommend(self) -> Points:
        """Of several objectives, the front of the posterior means; else the best observed."""
        if self.task.function.objectives == 1 or len(self.X) < 2 * self.task.dimensions:
            return super().recommend()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._predicted(self._model())

    def _predicted(self, model: Any) -> Points:
        """Told points and Sobol points, then points around those of the front, four times."""
        import torch

        K, rng = self.task.function.objectives, np.random.default_rng(len(self.X))
        X = qmc.Sobol(self.task.dimensions, scramble=True, rng=0).random(SCREENED)
        X = np.concatenate([np.array(self.X), X])
        for round_ in range(ROUNDS + 1):
            with torch.no_grad():
                means = model.posterior(torch.tensor(X)).mean.numpy()
            kept = self.task.feasible(means)
            if not kept.any():
                return super().recommend()
            X, means = X[kept], means[kept, :K]
            front = non_dominated(means)
            X, means = X[front], means[front]
            if round_ < ROUNDS:
                near = X[rng.integers(len(X), size=SCREENED // 2)]
                step = 0.1 * 0.5**round_ * rng.standard_normal(near.shape)
                X = np.concatenate([X, np.clip(near + step, 0.0, 1.0)])
        return X[most_of(means, np.array(self.task.function.reference), FRONT)]


def _exceeded(values: Any, column: int) -> Any:
    return -values[..., column]


class BotorchLogNEI(_Botorch):
    """qLogNoisyExpectedImprovement under constraints, with the tutorials' effort."""

    def _next(self, model: Any) -> Point:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.objective import GenericMCObjective

        acquisition = qLogNoisyExpectedImprovement(
            model,
            self._inputs,
            objective=GenericMCObjective(lambda Z, X=None: Z[..., 0]),
            constraints=self._limits,
        )
        return self._best(acquisition, raw=512, starts=10)


class BotorchLogNEHVI(_Botorch):
    """qLogNoisyExpectedHypervolumeImprovement, told the reference point."""

    def _next(self, model: Any) -> Point:
        from botorch.acquisition.multi_objective.logei import (
            qLogNoisyExpectedHypervolumeImprovement,
        )
        from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective

        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model,
            list(self.task.function.reference),
            self._inputs,
            objective=IdentityMCMultiOutputObjective(list(range(self.task.function.objectives))),
            constraints=self._limits,
            prune_baseline=True,
        )
        return self._best(acquisition, raw=512, starts=10)


class BotorchJES(_Botorch):
    """qLowerBoundMultiObjectiveJointEntropySearch, as in its tutorial: 10 sets of 10 points.

    Where it fails, as a path's front has fewer points or an optimum of a path makes its numbers
    break down, others are drawn, at last of fewer points. A candidate whose value is not a number
    counts as the worst.
    """

    def _next(self, model: Any) -> Point:
        if self._limits:
            raise ValueError(f"botorch-jes is for objectives without constraints: {self.task.name}")
        for points in FEWER:
            try:
                return self._drawn(model, points)
            except RuntimeError:
                continue
        return self._drawn(model, 1)

    def _drawn(self, model: Any, points: int) -> Point:
        """The maximiser for sets of so many points."""
        from botorch.acquisition.multi_objective.joint_entropy_search import (
            qLowerBoundMultiObjectiveJointEntropySearch,
        )
        from botorch.acquisition.multi_objective.utils import (
            compute_sample_box_decomposition,
            random_search_optimizer,
            sample_optimal_points,
        )

        sets, fronts = sample_optimal_points(
            model=model,
            bounds=self._bounds,
            num_samples=10,
            num_points=points,
            optimizer=random_search_optimizer,
            optimizer_kwargs={"pop_size": 1024, "max_tries": 10},
        )
        cells = compute_sample_box_decomposition(fronts)
        acquisition = qLowerBoundMultiObjectiveJointEntropySearch(
            model, sets, fronts, cells, estimation_type="LB"
        )
        acquisition.forward = partial(_finite, acquisition.forward)
        return self._best(acquisition, raw=512, starts=4)


def _finite(function: Callable[[Any], Any], X: Any) -> Any:
    """Values, the least of them where one is not a number."""
    import torch

    values = function(X)
    wrong = torch.isnan(values)
    return values if wrong.all() else values.masked_fill(wrong, values[~wrong].min().item())


PEERS: Mapping[str, Callable[[JointTask], JointMethod]] = MappingProxyType(
    {
        "optuna-gp": OptunaGP,
        "optuna-nsga2": OptunaNSGA2,
        "botorch-lognei": BotorchLogNEI,
        "botorch-lognehvi": BotorchLogNEHVI,
        "botorch-jes": BotorchJES,
    }
)
"""Other libraries on several outcomes."""
