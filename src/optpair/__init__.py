"""Bayesian optimisation that tells where the optimum is, what it is worth, and how sure it is.

>>> from optpair import Float, Space, minimize
>>> space = Space({"x": Float(-2.0, 2.0)})
>>> result = minimize(lambda p: (p["x"] - 1) ** 2, space, evaluations=12, seed=0, progress=False)
>>> bool(abs(result.x["x"] - 1) < 0.1)
True
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optpair import acquisition, gp, pairs
    from optpair.gp import Hyperparameters
    from optpair.history import Trial
    from optpair.optimizer import Belief, Optimizer, Prediction, Recommendation
    from optpair.runtime import limit_threads
    from optpair.search import Result, maximize, minimize
    from optpair.settings import Settings
    from optpair.space import Categorical, Float, Int, Space

__all__ = [
    "Belief",
    "Categorical",
    "Float",
    "Hyperparameters",
    "Int",
    "Optimizer",
    "Prediction",
    "Recommendation",
    "Result",
    "Settings",
    "Space",
    "Trial",
    "acquisition",
    "gp",
    "limit_threads",
    "maximize",
    "minimize",
    "pairs",
]
__version__ = "0.1.0"

# Imported on first use: JAX takes seconds, and parts of the command line do without it.
_HOMES = {
    "Belief": "optimizer",
    "Categorical": "space",
    "Float": "space",
    "Hyperparameters": "gp",
    "Int": "space",
    "Optimizer": "optimizer",
    "Prediction": "optimizer",
    "Recommendation": "optimizer",
    "Result": "search",
    "Settings": "settings",
    "Space": "space",
    "Trial": "history",
    "limit_threads": "runtime",
    "maximize": "search",
    "minimize": "search",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOMES.get(name, name)}")
    value = getattr(home, name) if name in _HOMES else home
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """A package whose `maximize` is the function, whoever imports the module of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "maximize" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
