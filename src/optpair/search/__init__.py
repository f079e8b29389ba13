"""Searches: `minimize` and `maximize`, and what they return."""

from optpair.search.search import Result, maximize, minimize

__all__ = ["Result", "maximize", "minimize"]
