"""Optima of sample paths: `sample(posterior, 8)` draws optimal pairs (x*, f*).

`BestFeasible` and `Pareto` are the goals of several outcomes: best feasible points, Pareto sets.
"""

from optpair.optima.base import Goal, Optima, Wanted
from optpair.optima.feasible import BestFeasible
from optpair.optima.pareto import Pareto
from optpair.optima.single import Best, sample

__all__ = ["Best", "BestFeasible", "Goal", "Optima", "Pareto", "Wanted", "sample"]
