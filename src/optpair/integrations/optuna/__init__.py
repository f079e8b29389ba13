"""Optuna: `optuna.create_study(sampler=JESSampler(seed=0))`."""

from typing import TYPE_CHECKING, Any

try:
    import optuna as _optuna  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "JESSampler needs Optuna: pip install 'optpair[optuna]'", name="optuna"
    ) from error

from optpair.integrations.optuna.attributes import NOISE_VAR

if TYPE_CHECKING:
    from optpair.integrations.optuna.sampler import JESSampler

__all__ = ["NOISE_VAR", "JESSampler"]


def __getattr__(name: str) -> Any:
    """The sampler, imported on first use: commands that only read a study do without it."""
    if name != "JESSampler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from optpair.integrations.optuna.sampler import JESSampler

    return JESSampler
