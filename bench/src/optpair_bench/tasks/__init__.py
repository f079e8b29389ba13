"""Tasks: noisy functions on the unit cube, each with a known optimum."""

from optpair_bench.tasks.catalogue import (
    OUTPUTSCALE,
    REGISTRY,
    GPSample,
    Task,
    check,
    gp_sample,
    make,
)

__all__ = ["OUTPUTSCALE", "REGISTRY", "GPSample", "Task", "check", "gp_sample", "make"]
