"""Rows of `cv_results_` for trials without a successful fit, which scikit-learn leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

Results = dict[str, Any]
RESOURCES = "n_resources"
"""The column of what trials were given of the resource, as scikit-learn's halving calls it."""


class Lost(NamedTuple):
    """A trial without a successful fit: its parameters, and how much of the resource it had."""

    params: Mapping[str, Any]
    resources: int | None = None


def with_lost(results: Results, lost: Mapping[int, Lost], score: float) -> Results:
    """`cv_results_` with a row for each trial without a successful fit."""
    n = len(results["params"]) + len(lost)
    kept = [i for i in range(n) if i not in lost]
    whole: Results = {}
    for key, column in results.items():
        name = key.removeprefix("param_")
        if key == "params":
            rows = dict(zip(kept, column, strict=True))
            rows |= {i: dict(own.params) for i, own in lost.items()}
            whole[key] = [rows[i] for i in range(n)]
        elif key == RESOURCES:
            whole[key] = np.zeros(n, dtype=int)
            whole[key][kept] = column
            whole[key][list(lost)] = [own.resources for own in lost.values()]
        elif name != key:
            values = dict(zip(kept, column, strict=True))
            values |= {i: own.params[name] for i, own in lost.items()}
            whole[key] = np.ma.MaskedArray(np.empty(n, dtype=object), mask=False)
            for i, value in values.items():
                whole[key][i] = value
        elif not key.startswith("rank_"):
            timed = key.endswith(("_fit_time", "_score_time"))
            fill = np.nan if timed else 0.0 * score if key.startswith("std_") else score
            whole[key] = np.full(n, fill, dtype=np.float64)  # also where the score is an int
            whole[key][kept] = column
    for key in results:
        if key.startswith("rank_"):
            means = whole[key.replace("rank_", "mean_", 1)]
            lowest = np.min(means[~np.isnan(means)], initial=np.inf)
            ranked = np.where(np.isnan(means), lowest - 1, means)
            whole[key] = rankdata(-ranked, method="min").astype(np.int32)
    return {key: whole[key] for key in results}


def placed(index: int, lost: Mapping[int, Any]) -> int:
    """The place of a row once those of lost trials are among them."""
    for gone in sorted(lost):
        index += gone <= index
    return index
