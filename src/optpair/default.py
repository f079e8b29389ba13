"""The acquisition function that is used unless another is asked for.

It is the one that the evidence favours (docs/benchmarks.md), and stands alone so that the command
line can name it before anything heavy is loaded.
"""

ACQUISITION = "jes-peak"
