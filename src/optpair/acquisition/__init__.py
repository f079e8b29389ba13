"""Acquisition functions, one idea a file, and their registry.

`jes(posterior, stars)`, `pes(posterior, stars)`, `es(posterior, points)` and `logei(posterior)`
return functions of points (q, d) -> (q,). The registry names those that `Optimizer(acquisition=…)`
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal

from optpair.acquisition.base import Acquisition, Context
from optpair.acquisition.ei import build as build_logei
from optpair.acquisition.ei import logei
from optpair.acquisition.es import build as build_es
from optpair.acquisition.es import es
from optpair.acquisition.jes import build as build_jes
from optpair.acquisition.jes import jes
from optpair.acquisition.pes import build as build_pes
from optpair.acquisition.pes import pes

__all__ = ["REGISTRY", "Acquisition", "Context", "Entry", "es", "jes", "logei", "pes"]


@dataclass(frozen=True)
class Entry:
    """How to build an acquisition function from traced arrays.

    `needs` says what of a context it uses beside the posterior; `is_log`, that its values are
    logarithms, so that a weight is added rather than multiplied.
    """

    build: Callable[[Context], Acquisition]
    summary: str
    needs: Literal["nothing", "paths", "pairs"] = "pairs"
    is_log: bool = False


REGISTRY: Mapping[str, Entry] = MappingProxyType(
    {
        "jes": Entry(build_jes, "Joint Entropy Search, truncation by moment matching"),
        "jes-exact": Entry(
            partial(build_jes, exact=True), "Joint Entropy Search, truncation by quadrature"
        ),
        "pes": Entry(
            build_pes, "Predictive Entropy Search: the maximiser alone, by expectation propagation"
        ),
        "es": Entry(
            build_es, "Entropy Search on representer points, by Monte Carlo", needs="nothing"
        ),
        "logei": Entry(
            build_logei,
            "Expected Improvement over the best posterior mean, as a logarithm",
            needs="nothing",
            is_log=True,
        ),
    }
)
