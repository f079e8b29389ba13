"""Settings: every default of the engine, in one frozen place."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from optpair.gp.kernels import Kernel, Matern52, as_kernel
from optpair.gp.priors import Prior


@dataclass(frozen=True)
class Settings:
    """Settings of the engine. The defaults suit 1 to 20 parameters.

    Examples:
        >>> Settings(sets=6, exploit=0.0).pairs
        8
    """

    kernel: str | Kernel = field(default_factory=Matern52)
    """`matern52`; `rbf` for very smooth objectives; `mixed` lets the data say which of the two;
    `additive` for many parameters whose effects roughly add up; or a `Kernel` of your own."""
    sets: int = 12
    """M, the number of hyperparameter sets to average over."""
    pairs: int = 8
    """P, the number of optimal pairs sampled under each set."""
    exploit: float | None = None
    """γ, the probability that a trial is the best predicted point instead, which guards against a
    wrong model. None means 0.1, or 0 if the hyperparameters are known."""
    initial: int | None = None
    """How many space-filling trials are told before the model is used. None means one more than
    there are parameters; with a `Fidelity`, twice the number of other parameters plus two, mostly
    cheap ones."""
    refresh_every: int = 1
    """How many told trials there are between two updates of the hyperparameters."""
    moves: int | None = None
    """How many chains an update moves by HMC, those that have waited longest first. None means 256
    divided by the number of told trials, at least two: all chains while there are few trials."""
    most_rows: int = 256
    """The number of told trials up to which all are used. Beyond it, hyperparameters are inferred
    from this many, with fewer sets, at least three, as the time grows with the cube of the rows.
    For the number of sets, pending and failed trials count as rows, too."""
    features: int = 256
    """Random Fourier features in the prior part of a sample path."""
    candidates: int | None = None
    """At how many space-filling points the acquisition function is screened. None means 128 if
    optimal pairs are candidates as well (more found nothing better), and 2048 otherwise."""
    path_candidates: int | None = None
    """At how many space-filling points sample paths are screened. None means 256 in one or two
    dimensions, and 768 in more."""
    starts: int = 4
    """From how many screened points the maximiser climbs."""
    steps: int | None = None
    """How many steps a climb has. None means 10 in one dimension, and 4 more per additional
    dimension, up to 24."""
    warp: bool = True
    """Whether values far worse than the median are compressed (see `optpair.trials.transform`); if
    the space has a `Fidelity`, where that explains them better (see `optpair.engine.warps`)."""
    doubt: bool = True
    """Whether values far better than what the other trials predict are doubted, and asked for again
    (see `optpair.engine.doubt`)."""
    repeat: bool = True
    """Whether the best trial is repeated once, after two trials per parameter, unless the noise is
    given (see `optpair.engine.repeats`)."""
    focus: bool = True
    """Whether most queries are chosen in a box around the best trial if there are five to twelve
    parameters and values are exact (see `optpair.engine.focus`)."""
    once: bool = False
    """Whether no point is asked for twice as long as another is left. Suits an objective whose
    noise is the same each time a point is evaluated."""
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
        for name in ("warp", "doubt", "repeat", "focus", "once"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if not isinstance(self.prior, Prior):
            raise TypeError(f"prior must be a Prior, not {self.prior!r}")


def _count(name: str, value: object, kind: object, least: int) -> int:
    """A plain int, not below a minimum."""
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
