"""Acquisition functions, one idea a file, and their registry.

`jes(posterior, stars)`, `logei(posterior)` and the others return functions of points
(q, d) -> (q,). The registry names those that `Optimizer(acquisition=…)` takes; it also takes the
controls, which need no model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal

import numpy as np
from jaxtyping import Float

from optpair.acquisition import controls
from optpair.acquisition.base import Acquisition, Context
from optpair.acquisition.ei import build as build_ei
from optpair.acquisition.ei import build_noisy as build_nei
from optpair.acquisition.ei import ei, logei, nei
from optpair.acquisition.es import build as build_es
from optpair.acquisition.es import es
from optpair.acquisition.jes import build as build_jes
from optpair.acquisition.jes import jes
from optpair.acquisition.kg import build as build_kg
from optpair.acquisition.kg import kg
from optpair.acquisition.mean import build as build_mean
from optpair.acquisition.mean import mean
from optpair.acquisition.mes import build as build_mes
from optpair.acquisition.mes import build_gumbel as build_mes_gumbel
from optpair.acquisition.mes import gibbon, gumbel_maxima, mes, rmes
from optpair.acquisition.peak import build as build_peak
from optpair.acquisition.peak import jes_peak
from optpair.acquisition.pes import build as build_pes
from optpair.acquisition.pes import pes
from optpair.acquisition.pi import build as build_pi
from optpair.acquisition.pi import pi
from optpair.acquisition.ts import build as build_ts
from optpair.acquisition.ts import ts
from optpair.acquisition.ucb import build as build_ucb
from optpair.acquisition.ucb import ucb
from optpair.cube import Cube
from optpair.runtime import Stream

__all__ = [
    "CONTROLS",
    "NAMES",
    "REGISTRY",
    "Acquisition",
    "Context",
    "Entry",
    "Values",
    "ei",
    "es",
    "gibbon",
    "gumbel_maxima",
    "jes",
    "jes_peak",
    "kg",
    "logei",
    "mean",
    "mes",
    "nei",
    "pes",
    "pi",
    "rmes",
    "ts",
    "ucb",
]

Values = Literal["gain", "improvement", "log improvement", "worth"]
"""What the values of an acquisition function are.

A `gain` (nats, or a probability) and an `improvement` (in units of y) are at least 0; a `worth` is
a value of the objective. This decides how they change with the units of y, and how a chance of
success weighs on them: see `optpair.failures.Weighted`.
"""


@dataclass(frozen=True)
class Entry:
    """How to build an acquisition function from traced arrays.

    `needs` says what of a context it uses beside the posterior; `values`, what its values are.
    """

    build: Callable[[Context], Acquisition]
    summary: str
    needs: Literal["nothing", "paths", "pairs"] = "pairs"
    values: Values = "gain"


REGISTRY: Mapping[str, Entry] = MappingProxyType(
    {
        "jes": Entry(build_jes, "Joint Entropy Search, truncation by moment matching"),
        "jes-exact": Entry(
            partial(build_jes, exact=True), "Joint Entropy Search, truncation by quadrature"
        ),
        "jes-peak": Entry(
            build_peak, "Joint Entropy Search that also knows that the slope at x* is zero"
        ),
        "mes": Entry(
            build_mes_gumbel,
            "Max-value Entropy Search without noise, f* by the Gumbel approximation",
            needs="nothing",
        ),
        "mes-paths": Entry(
            partial(build_mes, form="noiseless"),
            "Max-value Entropy Search without noise, f* from sample paths",
        ),
        "gibbon": Entry(
            partial(build_mes, form="matched"),
            "Max-value Entropy Search with noise by moment matching, f* from sample paths",
        ),
        "rmes": Entry(
            partial(build_mes, form="exact"),
            "Max-value Entropy Search with noise by quadrature, f* from sample paths",
        ),
        "pes": Entry(
            build_pes, "Predictive Entropy Search: the maximiser alone, by expectation propagation"
        ),
        "es": Entry(
            build_es, "Entropy Search on representer points, by Monte Carlo", needs="nothing"
        ),
        "ei": Entry(
            partial(build_ei, log=False),
            "Expected Improvement over the best posterior mean",
            needs="nothing",
            values="improvement",
        ),
        "logei": Entry(
            partial(build_ei, log=True),
            "Expected Improvement over the best posterior mean, as a logarithm",
            needs="nothing",
            values="log improvement",
        ),
        "nei": Entry(
            partial(build_nei, log=False),
            "Expected Improvement over values at the data that are drawn, not known",
            needs="nothing",
            values="improvement",
        ),
        "lognei": Entry(
            partial(build_nei, log=True),
            "Expected Improvement over values at the data that are drawn, as a logarithm",
            needs="nothing",
            values="log improvement",
        ),
        "pi": Entry(
            build_pi, "Probability of Improvement over the best posterior mean", needs="nothing"
        ),
        "ucb": Entry(
            build_ucb,
            "upper confidence bound, GP-UCB's schedule",
            needs="nothing",
            values="worth",
        ),
        "kg": Entry(
            build_kg,
            "knowledge gradient over sampled optima and the best points",
            values="improvement",
        ),
        "ts": Entry(build_ts, "Thompson sampling: one sample path", needs="paths", values="worth"),
        "mean": Entry(build_mean, "the posterior mean: no exploration", "nothing", "worth"),
    }
)

CONTROLS: Mapping[str, Callable[[Stream, Cube, int], Float[np.ndarray, " D"]]] = MappingProxyType(
    {"random": controls.random, "sobol": controls.sobol}
)
"""What needs no model: the i-th point of a search, from a stream of random numbers and the cube."""

NAMES = (*REGISTRY, *CONTROLS)
"""What `Optimizer(acquisition=…)` takes."""
