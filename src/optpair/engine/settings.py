"""Settings: every default of the engine, in one frozen place."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from optpair.gp.kernels import Kernel, Matern52, as_kernel
from optpair.gp.priors import Prior


@dataclass(frozen=True)
class Settings:
    """How the engine spends its effort. The defaults suit 1 to 20 parameters.

    Examples:
        >>> Settings(sets=6, exploit=0.0).pairs
        8
    """

    kernel: str | Kernel = field(default_factory=Matern52)
    """`matern52`; `rbf` for very smooth objectives; `mixed` lets the data say which of the two;
    `additive` for many parameters whose effects about add up; or a `Kernel` of your own."""
    sets: int = 12
    """M, the hyperparameter sets averaged over."""
    pairs: int = 8
    """P, the optimal pairs sampled under each set."""
    exploit: float | None = None
    """γ, the chance that a trial confirms the best predicted point instead. None means 0.1, and 0
    where the hyperparameters are known: it guards against a wrong model."""
    initial: int | None = None
    """Space-filling trials told before the model is used; None means one more than parameters; with
    a `Fidelity`, twice as many as other parameters and two more, mostly cheap ones."""
    refresh_every: int = 1
    """Told trials between two updates of the hyperparameters."""
    moves: int | None = None
    """Chains that an update moves by HMC, those that have waited longest first. None means 256 over
    the number of told trials, at least two: all, where there are few trials and they say most."""
    most_rows: int = 256
    """Told trials up to which nothing is spared. Of more, hyperparameters are inferred from this
    many, and fewer sets are used, at least three: each costs time up to its cube. Pending trials
    and failed ones take rows, too, where sets are counted."""
    features: int = 256
    """Random Fourier features in the prior part of a sample path."""
    candidates: int | None = None
    """Space-filling points at which the acquisition function is screened. None means 128 where
    optimal pairs are candidates as well (more found nothing better), and 2048 otherwise."""
    path_candidates: int | None = None
    """Space-filling points at which sample paths are screened. None means 256 in one or two
    dimensions, and 768 in more."""
    starts: int = 4
    """Screened points from which the maximiser climbs."""
    steps: int | None = None
    """Steps of a climb. None means 10 in one dimension, 4 more in each other, and 24 at most."""
    warp: bool = True
    """Whether values far below the median are compressed (see `optpair.trials.transform`); never
    where the space has a `Fidelity`."""
    doubt: bool = True
    """Whether values far above what the other trials predict are doubted, and asked for again (see
    `optpair.engine.doubt`)."""
    repeat: bool = True
    """Whether the best trial is repeated once, after two trials per parameter, where nobody has
    said how noisy values are (see `optpair.engine.repeats`)."""
    prior: Prior = field(default_factory=Prior)
    """Priors over the hyperparameters, on standardised values."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type == "int" or (item.type == "int | None" and value is not None):
                least = 4 if item.name == "path_candidates" else 1
                object.__setattr__(self, item.name, _count(item.name, value, item.type, least))
        if self.exploit is not None:
            object.__setattr__(self, "exploit", _probability("exploit", self.exploit))
        for name in ("warp", "doubt", "repeat"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if not isinstance(self.prior, Prior):
            raise TypeError(f"prior must be a Prior, not {self.prior!r}")


def _count(name: str, value: object, kind: object, least: int) -> int:
    """A plain int of at least so much."""
    accepted = f"{'' if kind == 'int' else 'None or '}an int of at least {least}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be {accepted}, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {accepted}, not {value!r}")
    return int(value)


def _probability(name: str, value: object) -> float:
    """A plain float from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a probability from 0 to 1, not {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability from 0 to 1, not {value!r}")
    return float(value)
