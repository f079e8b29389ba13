"""Other libraries behind one small face: told points of the unit cube, asked for the next.

They maximise, and are imported when they are built. Told no points to begin with, each has a start
of its own: Optuna's ten random points, SMAC3's Sobol design of a quarter of the budget at most, and
for BoTorch, which leaves that to its users, 2·D Sobol points.

SMAC3 is there twice: `smac-gp`, its facade for continuous functions (a GP, seconds per ask), and
`smac-rf`, its facade for hyperparameters (a random forest). Vizier's GP-UCB-PE is not: with
google-vizier 0.1.24 comes equinox 0.11.7, which cannot be imported beside JAX 0.10.2; beside an
older JAX (below 0.5) its third suggestion has no values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from optpair.runtime.shapes import Float

PACKAGES = ("optuna", "torch", "botorch")
RUNS_ONLY = ("smac",)
"""Packages of methods of the runner that nobody times."""
HOW_TO = "make peers, then .venv-peers/bin/optpair bench …"
Hypers = tuple[float, float, float]  # length scale, output scale, noise variance


class Peer(Protocol):
    """One study of another library."""

    def ask(self) -> Float[np.ndarray, " d"]:
        """The next point."""
        ...

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """The value at the point that was asked for."""
        ...


@runtime_checkable
class Recommends(Protocol):
    """A peer whose users take more than the best observed point."""

    def recommend(self) -> Float[np.ndarray, " d"]:
        """The argmax of its posterior mean."""
        ...


class About(NamedTuple):
    """What a peer is told: a seed, levels of the inputs, hyperparameters if known, and the budget.

    The budget is that of a search without points given: all its evaluations.
    """

    seed: int = 0
    levels: int | None = None
    hypers: Hypers | None = None
    evaluations: int | None = None


@dataclass(frozen=True)
class Entry:
    """How to build a peer from told points and values, and how often it is worth timing."""

    name: str
    build: Callable[[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]], Peer]
    repeats: int
    warm: int = 1
    most: int | None = None  # told trials up to which it is


def missing() -> list[str]:
    """The packages that are not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


def has_greenlet() -> bool:
    """Whether Optuna can climb from all its starts at once: without, its times are unfair to it."""
    return find_spec("greenlet") is not None


def versions() -> dict[str, str]:
    """Those of the packages that are installed."""
    there = (name for name in PACKAGES + RUNS_ONLY if find_spec(name) is not None)
    return {name: version(name) for name in there}


def entries(paper: bool, hypers: Hypers, levels: int | None = None) -> list[Entry]:
    """The peers. In the paper's setting JES has its budget and the given length scale, output
    scale and noise; otherwise it fits them and has the budget of BoTorch's tutorial.
    """
    about = About(levels=levels)

    def jes(X: np.ndarray, y: np.ndarray) -> Peer:
        if paper:
            known = About(hypers=hypers)
            return BotorchJES(X, y, known, pairs=100, raw_samples=10_000, restarts=1)
        return BotorchJES(X, y, about)

    budget = "100 pairs, 10,000 raw, 1 start, given" if paper else "64 pairs, 512 raw, 4 starts"
    return [
        Entry("Optuna GPSampler", partial(OptunaGP, about=about), repeats=20),
        Entry("BoTorch qLogNEI (512 raw, 10 starts)", partial(BotorchLogNEI, about=about), 5),
        Entry(f"BoTorch qJES ({budget})", jes, 1 if paper else 3, 0 if paper else 1, most=150),
    ]


class _Optuna:
    """A study of Optuna's, with the sampler at its defaults."""

    def __init__(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        about: About = About(),  # noqa: B008 — immutable
    ) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._last = 1 if about.levels is None else about.levels - 1
        one: Any = optuna.distributions.FloatDistribution(0.0, 1.0)
        if about.levels is not None:
            one = optuna.distributions.IntDistribution(0, self._last)
        self._space: dict[str, Any] = {f"x{i}": one for i in range(X.shape[1])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a sampler is experimental
            sampler = self._sampler(about.seed, len(X))
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        for x, value in zip(X, y, strict=True):
            self._study.add_trial(
                optuna.trial.create_trial(
                    params=self._params(x), distributions=self._space, value=float(value)
                )
            )
        self._trial: Any = None

    def ask(self) -> Float[np.ndarray, " d"]:
        """Its next point."""
        self._trial = self._study.ask(self._space)
        return np.array([self._trial.params[name] / self._last for name in self._space])

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """Tell the trial that was asked for."""
        self._study.tell(self._trial, y)

    def _sampler(self, seed: int, told: int) -> Any:
        raise NotImplementedError

    def _params(self, x: Float[np.ndarray, " d"]) -> dict[str, Any]:
        levels = x * self._last
        values = levels if self._last == 1 else np.rint(levels).astype(int)
        return dict(zip(self._space, values.tolist(), strict=True))


class OptunaGP(_Optuna):
    """GPSampler: a fit, and log EI. Its model is used from the first point on, as the others'."""

    def _sampler(self, seed: int, told: int) -> Any:
        import optuna

        own: Any = {"n_startup_trials": told} if told else {}  # else a start of its own
        return optuna.samplers.GPSampler(seed=seed, **own)


class OptunaTPE(_Optuna):
    """TPESampler, Optuna's default."""

    def _sampler(self, seed: int, told: int) -> Any:
        import optuna

        return optuna.samplers.TPESampler(seed=seed)


class OptunaTPEGroup(_Optuna):
    """TPESampler on all inputs at once, in groups, as its documentation advises."""

    def _sampler(self, seed: int, told: int) -> Any:
        import optuna

        return optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)


class _Botorch:
    """What the BoTorch methods share: data as tensors, a model, and its recommendation."""

    def __init__(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        about: About = About(),  # noqa: B008 — immutable
    ) -> None:
        import torch

        torch.manual_seed(about.seed)
        self._X = torch.tensor(X, dtype=torch.float64)
        self._y = torch.tensor(y, dtype=torch.float64)[:, None]
        self._bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, X.shape[1])
        self._about = about
        self._start = [] if len(X) else self._design(X.shape[1])

    def ask(self) -> Float[np.ndarray, " d"]:
        """The next point of its start, and then by its acquisition function."""
        return self._start.pop(0) if self._start else self._next()

    def _next(self) -> Float[np.ndarray, " d"]:
        raise NotImplementedError

    def _design(self, dimensions: int) -> list[Float[np.ndarray, " d"]]:
        """2·D scrambled Sobol points: BoTorch has no start of its own, but its tutorials this."""
        from torch.quasirandom import SobolEngine

        engine = SobolEngine(dimensions, scramble=True, seed=self._about.seed)
        return list(engine.draw(2 * dimensions).double().numpy())

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """Add a point."""
        import torch

        self._X = torch.cat([self._X, torch.tensor(x[None])])
        self._y = torch.cat([self._y, torch.tensor([[y]], dtype=torch.float64)])

    def recommend(self) -> Float[np.ndarray, " d"]:
        """The argmax of the posterior mean, as in BoTorch's tutorial on entropy search."""
        from botorch.acquisition import PosteriorMean

        return self._best(PosteriorMean(self._model()), raw_samples=1024, restarts=4)

    def _model(self) -> Any:
        """Hyperparameters as given or, without that, fitted."""
        return self._fitted() if self._about.hypers is None else self._given(*self._about.hypers)

    def _fitted(self) -> Any:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        model = SingleTaskGP(self._X, self._y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _given(self, lengthscale: float, outputscale: float, noise: float) -> Any:
        from botorch.models import SingleTaskGP
        from gpytorch.kernels import RBFKernel, ScaleKernel
        from gpytorch.means import ZeroMean

        kernel = ScaleKernel(RBFKernel(ard_num_dims=self._X.shape[1])).double()
        model = SingleTaskGP(
            self._X,
            self._y,
            covar_module=kernel,
            mean_module=ZeroMean(),
            outcome_transform=None,
        )
        kernel.base_kernel.lengthscale = lengthscale
        kernel.outputscale = outputscale
        model.likelihood.noise = noise
        return model.eval()

    def _best(self, acquisition: Any, raw_samples: int, restarts: int) -> Float[np.ndarray, " d"]:
        """The maximiser; where inputs have levels, rounded to the nearest."""
        from botorch.optim import optimize_acqf

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, _ = optimize_acqf(
                acquisition,
                bounds=self._bounds,
                q=1,
                num_restarts=restarts,
                raw_samples=raw_samples,
                options={"init_batch_limit": 512},  # bounds memory, and is no slower
            )
        x = np.asarray(found[0].detach().numpy())
        last = None if self._about.levels is None else self._about.levels - 1
        return x if last is None else np.rint(x * last) / last


class BotorchLogNEI(_Botorch):
    """qLogNoisyExpectedImprovement, optimised with the tutorials' effort."""

    def _next(self) -> Float[np.ndarray, " d"]:
        """Maximise the acquisition function."""
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        acquisition = qLogNoisyExpectedImprovement(self._model(), self._X)
        return self._best(acquisition, raw_samples=512, restarts=10)


class BotorchJES(_Botorch):
    """qJointEntropySearch on one GP: BoTorch refuses several hyperparameter sets here."""

    def __init__(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        about: About = About(),  # noqa: B008 — immutable
        *,
        pairs: int = 64,
        raw_samples: int = 512,
        restarts: int = 4,
    ) -> None:
        super().__init__(X, y, about)
        self._pairs, self._raw_samples, self._restarts = pairs, raw_samples, restarts

    def _next(self) -> Float[np.ndarray, " d"]:
        """Sample optimal pairs, and maximise the acquisition function."""
        from botorch.acquisition.joint_entropy_search import qJointEntropySearch
        from botorch.acquisition.utils import get_optimal_samples

        model = self._model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, f = get_optimal_samples(model, self._bounds, num_optima=self._pairs)
            acquisition = qJointEntropySearch(model, x, f)
        return self._best(acquisition, self._raw_samples, self._restarts)


class _Smac:
    """A search of SMAC3's, with a facade at its defaults; it minimises, so values are negated."""

    facade = ""

    def __init__(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        about: About = About(),  # noqa: B008 — immutable
    ) -> None:
        if len(X) or about.levels is not None or about.evaluations is None:
            raise ValueError("SMAC begins by itself on continuous inputs: run it on answers only")
        import smac
        from ConfigSpace import ConfigurationSpace
        from ConfigSpace import Float as Real

        space = ConfigurationSpace(seed=about.seed)
        self._names = [f"x{i}" for i in range(X.shape[1])]
        space.add([Real(name, (0.0, 1.0)) for name in self._names])
        self._folder = TemporaryDirectory()  # it writes files, and they go with it
        scenario = smac.Scenario(
            space,
            deterministic=True,  # without, it would ask for points again
            n_trials=about.evaluations,
            seed=about.seed,
            output_directory=Path(self._folder.name),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._search = getattr(smac, self.facade)(
                scenario, lambda config, seed: 0.0, logging_level=False, overwrite=True
            )
        self._trial: Any = None

    def ask(self) -> Float[np.ndarray, " d"]:
        """Its next point."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._trial = self._search.ask()
        return np.array([self._trial.config[name] for name in self._names])

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """Tell the trial that was asked for."""
        from smac.runhistory.dataclasses import TrialValue

        self._search.tell(self._trial, TrialValue(cost=-y))


class SmacGP(_Smac):
    """BlackBoxFacade: a GP and EI."""

    facade = "BlackBoxFacade"


class SmacRF(_Smac):
    """HyperparameterOptimizationFacade: a random forest and log EI."""

    facade = "HyperparameterOptimizationFacade"


Build = Callable[[Float[np.ndarray, "n d"], Float[np.ndarray, " n"], About], Peer]
METHODS: Mapping[str, Build] = MappingProxyType(
    {
        "optuna-gp": OptunaGP,
        "optuna-tpe": OptunaTPE,
        "optuna-tpe-group": OptunaTPEGroup,
        "botorch-lognei": BotorchLogNEI,
        "botorch-jes": BotorchJES,
        "smac-gp": SmacGP,
        "smac-rf": SmacRF,
    }
)
"""Methods of the runner, and how each is built from the initial points and values."""
NAMES = (*METHODS, "botorch-lognehvi", "optuna-nsga2", "optuna-gp-8", "optuna-tpe-8")
"""Those that `joint.py` and `spaces.py` build too."""


def reports_best_observed(name: str) -> bool:
    """Whether the users of that method get the best observed point for an answer."""
    return name.startswith(("optuna-", "smac-"))


NEEDS = {
    "optuna-gp": ("optuna", "torch"),
    "optuna-gp-8": ("optuna", "torch"),
    "optuna-nsga2": ("optuna",),
    "optuna-tpe": ("optuna",),
    "optuna-tpe-8": ("optuna",),
    "optuna-tpe-group": ("optuna",),
    "smac-gp": ("smac",),
    "smac-rf": ("smac",),
}
"""Packages of methods; the others are BoTorch's."""


def check(name: str) -> None:
    """An error where the packages of that method are not installed."""
    absent = [p for p in NEEDS.get(name, ("torch", "botorch")) if find_spec(p) is None]
    if name in NAMES and absent:
        raise ValueError(f"{name} needs {', '.join(absent)}: {HOW_TO}")
