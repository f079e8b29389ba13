"""What shells need to know before anything heavy is loaded."""

ACQUISITION = "jes-peak"
"""The acquisition function unless another is asked for: the one that the evidence favours
(docs/benchmarks.md)."""

FILLING = ("sobol", "random")
"""Samplers that fill the space, and need no model."""

LARGEST = 1e300
"""A value beyond ± this is taken for infinite."""

WHOLE = 2**53
"""Whole numbers beyond ± this are not kept by Optuna, which stores them as floats."""
