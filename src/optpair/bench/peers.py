"""Other libraries behind one small face: told points of the unit cube, asked for the next.

They maximise, and are imported when they are built.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

PACKAGES = ("optuna", "torch", "botorch")
HOW_TO = "make peers, then .venv-peers/bin/optpair bench speed --peers"


class Peer(Protocol):
    """One study of another library."""

    def ask(self) -> Float[np.ndarray, " d"]:
        """The next point."""
        ...

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """The value at the point that was asked for."""
        ...


@dataclass(frozen=True)
class Entry:
    """How to build a peer from told points and values, and how often it is worth timing."""

    name: str
    build: Callable[[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]], Peer]
    repeats: int
    warm: int = 1


def missing() -> list[str]:
    """The packages that are not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


def has_greenlet() -> bool:
    """Whether Optuna can climb from all its starts at once: without, its times are unfair to it."""
    return find_spec("greenlet") is not None


def versions() -> dict[str, str]:
    """Those of the packages that are installed."""
    return {name: version(name) for name in PACKAGES if name not in missing()}


def entries(paper: bool, hypers: tuple[float, float, float]) -> list[Entry]:
    """The peers. In the paper's setting JES has its budget and the given length scale, output
    scale and noise; otherwise it fits them and has the budget of BoTorch's tutorial.
    """

    def jes(X: np.ndarray, y: np.ndarray) -> Peer:
        if paper:
            return BotorchJES(X, y, pairs=100, raw_samples=10_000, restarts=1, hypers=hypers)
        return BotorchJES(X, y, pairs=64, raw_samples=512, restarts=4)

    budget = "100 pairs, 10,000 raw, 1 start, given" if paper else "64 pairs, 512 raw, 4 starts"
    return [
        Entry("Optuna GPSampler", OptunaGP, repeats=20),
        Entry("BoTorch qLogNEI (512 raw, 10 starts)", BotorchLogNEI, repeats=5),
        Entry(f"BoTorch qJES ({budget})", jes, repeats=1 if paper else 3, warm=0 if paper else 1),
    ]


class OptunaGP:
    """Optuna's GPSampler at its defaults."""

    def __init__(self, X: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space: dict[str, Any] = {
            f"x{i}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(X.shape[1])
        }
        self._study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.GPSampler(seed=0)
        )
        for x, value in zip(X, y, strict=True):
            params = {name: float(u) for name, u in zip(self._space, x, strict=True)}
            self._study.add_trial(
                optuna.trial.create_trial(
                    params=params, distributions=self._space, value=float(value)
                )
            )
        self._trial: Any = None

    def ask(self) -> Float[np.ndarray, " d"]:
        """Fit, and maximise log EI."""
        self._trial = self._study.ask(self._space)
        return np.array([self._trial.params[name] for name in self._space])

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """Tell the trial that was asked for."""
        self._study.tell(self._trial, y)


class _Botorch:
    """What the BoTorch methods share: data as tensors."""

    def __init__(self, X: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> None:
        import torch

        torch.manual_seed(0)
        self._X = torch.tensor(X, dtype=torch.float64)
        self._y = torch.tensor(y, dtype=torch.float64)[:, None]
        self._bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, X.shape[1])

    def tell(self, x: Float[np.ndarray, " d"], y: float) -> None:
        """Add a point."""
        import torch

        self._X = torch.cat([self._X, torch.tensor(x[None])])
        self._y = torch.cat([self._y, torch.tensor([[y]], dtype=torch.float64)])

    def _fitted(self) -> Any:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        model = SingleTaskGP(self._X, self._y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _best(self, acquisition: Any, raw_samples: int, restarts: int) -> Float[np.ndarray, " d"]:
        from botorch.optim import optimize_acqf

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, _ = optimize_acqf(
                acquisition,
                bounds=self._bounds,
                q=1,
                num_restarts=restarts,
                raw_samples=raw_samples,
                options={"init_batch_limit": 512},  # bounds memory, and is no slower
            )
        return np.asarray(x[0].detach().numpy())


class BotorchLogNEI(_Botorch):
    """qLogNoisyExpectedImprovement: fit, then optimise with the tutorials' effort."""

    def ask(self) -> Float[np.ndarray, " d"]:
        """Fit, and maximise the acquisition function."""
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        acquisition = qLogNoisyExpectedImprovement(self._fitted(), self._X)
        return self._best(acquisition, raw_samples=512, restarts=10)


class BotorchJES(_Botorch):
    """qJointEntropySearch on one GP: BoTorch refuses several hyperparameter sets here."""

    def __init__(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        *,
        pairs: int,
        raw_samples: int,
        restarts: int,
        hypers: tuple[float, float, float] | None = None,
    ) -> None:
        super().__init__(X, y)
        self._pairs, self._raw_samples, self._restarts = pairs, raw_samples, restarts
        self._hypers = hypers

    def ask(self) -> Float[np.ndarray, " d"]:
        """Sample optimal pairs, and maximise the acquisition function."""
        from botorch.acquisition.joint_entropy_search import qJointEntropySearch
        from botorch.acquisition.utils import get_optimal_samples

        model = self._fitted() if self._hypers is None else self._given(*self._hypers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, f = get_optimal_samples(model, self._bounds, num_optima=self._pairs)
            acquisition = qJointEntropySearch(model, x, f)
        return self._best(acquisition, self._raw_samples, self._restarts)

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
