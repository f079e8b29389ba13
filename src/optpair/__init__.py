"""Bayesian optimisation that tells where the optimum is, what it is worth, and how sure it is.

>>> from optpair import Float, Space, minimize
>>> space = Space({"x": Float(-2.0, 2.0)})
>>> result = minimize(lambda p: (p["x"] - 1) ** 2, space, evaluations=12, seed=0, progress=False)
>>> bool(abs(result.x["x"] - 1) < 0.1)
True
"""

from optpair import acquisition, gp, pairs
from optpair.gp import Hyperparameters
from optpair.history import Trial
from optpair.optimizer import Belief, Optimizer, Recommendation
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
    "Recommendation",
    "Result",
    "Settings",
    "Space",
    "Trial",
    "acquisition",
    "gp",
    "maximize",
    "minimize",
    "pairs",
]
__version__ = "0.1.0"
