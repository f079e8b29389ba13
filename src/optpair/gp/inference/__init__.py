"""Inference: how hyperparameters are found, by chains, as the mode, or known beforehand."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference.base import Found, Inference
from optpair.gp.inference.chains import Chains, Marginal, Mixing
from optpair.gp.inference.known import Known
from optpair.gp.inference.mode import Mode
from optpair.gp.kernels import Kernel, Matern52, as_kernel
from optpair.gp.posterior import as_sample
from optpair.gp.priors import Prior
from optpair.gp.process import Process
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work

__all__ = ["Chains", "Found", "Inference", "Known", "Marginal", "Mixing", "Mode", "infer"]


@engine_work
def infer(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: str | Kernel = Matern52(),  # noqa: B008
    prior: Prior | None = None,
    noise_var: ArrayLike | None = None,
    way: Literal["marginal", "map"] = "marginal",
    sets: int = 12,
    seed: int = 0,
) -> Hyperparameters:
    """Hyperparameters that explain points and values, for `gp.condition`.

    Nothing is standardised: the default prior is that of points in the unit cube, and of values
    with a mean of about 0 and a variance of about 1.

    Args:
        X: points, (n, d).
        y: values to be maximised, (n,).
        kernel: a name (`rbf`, `matern52`, `mixed`, `additive`) or a `Kernel`.
        prior: priors of the hyperparameters.
        noise_var: (n,), known variances of the values' noise where finite.
        way: `"marginal"` draws `sets` sets from their posterior, `"map"` finds its mode.
        sets: M, the number of sets that are drawn.
        seed: the same seed gives the same sets.

    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> infer(X, np.sin(6 * X[:, 0]), sets=4)
    Hyperparameters(4 sets of 1 length scales)
    """
    if way not in ("marginal", "map"):
        raise ValueError(f"way must be 'marginal' or 'map', not {way!r}")
    if sets < 1:
        raise ValueError(f"sets must be at least 1, not {sets}")
    points = np.asarray(X, dtype=np.float64)
    d = points.shape[1] if points.ndim == 2 else 1
    sample = as_sample(points, y, noise_var, d)
    process = Process(tuple(range(d)), as_kernel(kernel), prior or Prior())
    inference: Inference = Marginal(sets) if way == "marginal" else Mode()
    found = inference.update(Stream.of(seed), None, sample, process, len(sample.y))
    return inference.hyperparameters(found.state, process)
