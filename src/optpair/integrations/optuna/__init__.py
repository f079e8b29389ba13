"""Optuna: `optuna.create_study(sampler=JESSampler(seed=0))`."""

import importlib
from typing import TYPE_CHECKING, Any

try:
    import optuna as _optuna  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "JESSampler needs Optuna: pip install 'optpair[optuna]'", name="optuna"
    ) from error

from optpair.integrations.optuna.attributes import (
    ACTUAL,
    CONTINUES,
    COST,
    NOISE_VAR,
    NOTES,
    REPLICATES,
)

if TYPE_CHECKING:
    from optpair.integrations.optuna.pruner import JESPruner
    from optpair.integrations.optuna.sampler import JESSampler
    from optpair.integrations.optuna.stopping import StopCallback

__all__ = [
    "ACTUAL",
    "CONTINUES",
    "COST",
    "NOISE_VAR",
    "NOTES",
    "REPLICATES",
    "JESPruner",
    "JESSampler",
    "StopCallback",
]

_HOMES = {"JESPruner": "pruner", "JESSampler": "sampler", "StopCallback": "stopping"}


def __getattr__(name: str) -> Any:
    """The sampler, imported on first use: commands that only read a study do without it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
