"""Methods: what asks for points, ours and those of other libraries."""

from optpair_bench.methods.catalogue import (
    NAMES,
    OURS,
    Control,
    Method,
    Model,
    Setup,
    make,
    parse,
    setup,
    unit_space,
)

__all__ = [
    "NAMES",
    "OURS",
    "Control",
    "Method",
    "Model",
    "Setup",
    "make",
    "parse",
    "setup",
    "unit_space",
]
