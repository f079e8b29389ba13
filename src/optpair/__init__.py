"""Bayesian optimisation that tells where the optimum is, what it is worth, and how sure it is.

>>> from optpair import Float, Space, minimize
>>> space = Space({"x": Float(-2.0, 2.0)})
>>> result = minimize(lambda p: (p["x"] - 1) ** 2, space, evaluations=12, seed=0, progress=False)
>>> bool(abs(result.x["x"] - 1) < 0.1)
True
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optpair import acquisition, gp, optima
    from optpair.earlier import Earlier
    from optpair.engine.settings import Settings
    from optpair.gp import Hyperparameters
    from optpair.optimizer import Optimizer
    from optpair.problem.outcomes import Constraint, Objective
    from optpair.problem.space import Categorical, Context, Fidelity, Float, Int, Ordinal, Space
    from optpair.problem.stop import Stop
    from optpair.results.best import Belief, Prediction, Recommendation
    from optpair.results.front import Front, FrontBelief
    from optpair.runtime.threads import limit_threads
    from optpair.search import Result, maximize, minimize
    from optpair.trials.trial import Trial

__all__ = [
    "Belief",
    "Categorical",
    "Constraint",
    "Context",
    "Earlier",
    "Fidelity",
    "Float",
    "Front",
    "FrontBelief",
    "Hyperparameters",
    "Int",
    "Objective",
    "Optimizer",
    "Ordinal",
    "Prediction",
    "Recommendation",
    "Result",
    "Settings",
    "Space",
    "Stop",
    "Trial",
    "acquisition",
    "gp",
    "limit_threads",
    "maximize",
    "minimize",
    "optima",
]
__version__ = "0.1.0"

# Imported on first use: SciPy takes a while, and parts of the command line do without it.
_HOMES = {
    "Belief": "results.best",
    "Categorical": "problem.space",
    "Constraint": "problem.outcomes",
    "Context": "problem.space",
    "Earlier": "earlier",
    "Fidelity": "problem.space",
    "Float": "problem.space",
    "Front": "results.front",
    "FrontBelief": "results.front",
    "Hyperparameters": "gp",
    "Int": "problem.space",
    "Objective": "problem.outcomes",
    "Optimizer": "optimizer",
    "Ordinal": "problem.space",
    "Prediction": "results.best",
    "Recommendation": "results.best",
    "Result": "search",
    "Settings": "engine.settings",
    "Space": "problem.space",
    "Stop": "problem.stop",
    "Trial": "trials.trial",
    "limit_threads": "runtime.threads",
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
