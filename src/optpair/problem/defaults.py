"""Defaults and limits that every layer knows."""

ACQUISITION = "jes-peak"
"""The acquisition function unless another is asked for: the one that the evidence favours
(docs/benchmarks.md)."""

ONCE = "ids"
"""The same on a shelf whose rows are tried at most once: there, a trial is also an answer, so what
it costs counts beside what it teaches (docs/shelves.md)."""

LARGEST = 1e300
"""A value beyond ± this is taken for infinite."""

WHOLE = 2**53
"""Whole numbers beyond ± this are not kept by Optuna, which stores them as floats."""
