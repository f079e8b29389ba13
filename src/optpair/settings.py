"""Every default of the engine, in one frozen place."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from optpair.gp.kernels import Kernel, check_kernel
from optpair.gp.priors import Prior


@dataclass(frozen=True)
class Settings:
    """How the engine spends its effort. The defaults suit 1 to 20 parameters.

    >>> Settings(sets=6, exploit=0.0).pairs
    8
    """

    kernel: Kernel = "matern52"
    """`matern52`, or `rbf` for very smooth objectives."""
    sets: int = 12
    """M, the hyperparameter sets averaged over."""
    pairs: int = 8
    """P, the optimal pairs sampled under each set."""
    exploit: float = 0.1
    """γ, the chance that a trial confirms the best predicted point instead."""
    initial: int | None = None
    """Space-filling trials told before the model is used; None means one more than parameters."""
    refresh_every: int = 1
    """Told trials between two updates of the hyperparameters."""
    transitions: int = 4
    """HMC transitions of each chain in an update."""
    features: int = 512
    """Random Fourier features in the prior part of a sample path."""
    candidates: int = 2048
    """Space-filling points at which the acquisition function is screened."""
    path_candidates: int = 1024
    """Space-filling points at which sample paths are screened."""
    starts: int = 6
    """Screened points from which the maximiser climbs."""
    steps: int = 24
    """Steps of a climb."""
    prior: Prior = field(default_factory=Prior)
    """Priors over the hyperparameters, on standardised values."""

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type == "int" and not _is_count(value):
                raise ValueError(f"{item.name} must be an int of at least 1, not {value!r}")
        if self.initial is not None and not _is_count(self.initial):
            raise ValueError(f"initial must be None or an int of at least 1, not {self.initial!r}")
        if isinstance(self.exploit, bool) or not isinstance(self.exploit, int | float):
            raise ValueError(f"exploit must be a probability, not {self.exploit!r}")
        if not 0 <= self.exploit <= 1:
            raise ValueError(f"exploit must be a probability in [0, 1], not {self.exploit!r}")
        if not isinstance(self.prior, Prior):
            raise ValueError(f"prior must be a Prior, not {self.prior!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
