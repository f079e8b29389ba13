"""Optima of sample paths: `sample(posterior, 8)` draws optimal pairs (x*, f*)."""

from optpair.optima.base import Goal, Optima, Wanted
from optpair.optima.single import Best, sample

__all__ = ["Best", "Goal", "Optima", "Wanted", "sample"]
