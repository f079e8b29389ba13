"""The mode of the hyperparameters' posterior (MAP), by L-BFGS-B from a few starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference.base import Found
from optpair.gp.inference.documents import array
from optpair.gp.likelihood import Likelihood, Sample
from optpair.gp.process import Process
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream

Theta = Float[np.ndarray, " k"]


def fit_mode(sample: Sample, process: Process, start: Theta | None = None) -> Theta:
    """The mode θ; `start` is among the starts where it is given."""
    from scipy.optimize import minimize  # a tenth of a second, for those who need it

    table = process.table
    starts = [] if start is None else [np.asarray(start)]
    for shift in (-1.0, 0.0):  # standard deviations, of all length scales together
        away = np.zeros(table.size)
        table.parts(away)["lengthscale"][:] = shift / np.sqrt(process.d)
        starts.append(table.start(away))
    likelihood = Likelihood(sample, process)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = likelihood.slope(theta[None])
        return (-float(value[0]), -slope[0]) if np.isfinite(value[0]) else (1e10, slope[0])

    fits = [
        minimize(objective, theta, jac=True, method="L-BFGS-B", options={"maxiter": 200})
        for theta in starts
    ]
    return np.asarray(min(fits, key=lambda fit: fit.fun).x)


@dataclass(frozen=True)
class Mode:
    """One set: the most likely one. Its state is θ, where the next search starts."""

    @property
    def standardises(self) -> bool:
        """Priors are those of standardised values."""
        return True

    @property
    def sets(self) -> int:
        """One."""
        return 1

    def update(
        self, stream: Stream, state: Theta | None, sample: Sample, process: Process, new: int
    ) -> Found:
        """The mode, from the last one and from the prior."""
        return Found(fit_mode(sample, process, state))

    def rescaled(self, state: Theta, ratio: float, offset: float, process: Process) -> Theta:
        """Only a start: it need not follow."""
        return state

    def hyperparameters(self, state: Theta, process: Process) -> Hyperparameters:
        """The mode."""
        return process.table.hyperparameters(state[None])

    def wider(
        self, stream: Stream, state: Theta, sample: Sample, process: Process
    ) -> Hyperparameters | None:
        """There are no more."""
        return None

    def to_json(self, state: Theta) -> Any:
        """θ."""
        return {"theta": state.tolist()}

    def from_json(self, document: Any, process: Process) -> Theta:
        """θ."""
        return array("theta", document["theta"], (process.table.size,))
