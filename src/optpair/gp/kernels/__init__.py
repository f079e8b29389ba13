"""Kernels: `RBF`, `Matern52`, `Mixed`, `Additive`, and those that you write."""

from __future__ import annotations

from optpair.gp.kernels.additive import Additive
from optpair.gp.kernels.base import Columns, Covariance, Frequencies, Kernel
from optpair.gp.kernels.curves import Curves
from optpair.gp.kernels.radial import Radial
from optpair.gp.kernels.related import Given, Related
from optpair.gp.kernels.stationary import RBF, Matern52, Mixed

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel for kernel in (RBF(), Matern52(), Mixed(), Additive())
}
"""The kernels that have a name."""

__all__ = [
    "KERNELS",
    "RBF",
    "Additive",
    "Columns",
    "Covariance",
    "Curves",
    "Frequencies",
    "Given",
    "Kernel",
    "Matern52",
    "Mixed",
    "Radial",
    "Related",
    "as_kernel",
]


def as_kernel(given: object) -> Kernel:
    """A kernel from its name or from itself, or an error that lists the names."""
    if isinstance(given, Kernel):
        return given
    if isinstance(given, str) and given in KERNELS:
        return KERNELS[given]
    kind = ValueError if isinstance(given, str) else TypeError
    raise kind(f"kernel must be one of {', '.join(KERNELS)}, or a Kernel, not {given!r}")
