"""Outcomes of a cross-validation: which columns of `cv_results_` are searched for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optpair.front import Front
from optpair.optimizer import Optimizer
from optpair.problem.outcomes import Objective, Outcome, as_outcome, meant
from optpair.problem.problem import VALUE
from optpair.shapes import Float

TIMES = ("fit_time", "score_time")
"""What is known of every trial, beside its scores, as a mean over folds."""

SCORE = "score"
"""scikit-learn's name of a metric that is the only one."""


def outcomes_of(given: object, noise: float | None, refit: object) -> dict[str, Outcome]:
    """The outcomes of a search, by name; None means one score, to be maximised."""
    if given is None:
        return {VALUE: Objective("maximize", noise)}
    if not isinstance(given, Mapping):
        raise TypeError(
            "outcomes must be a dict by the names of metrics, like {'accuracy': 'maximize', "
            f"'fit_time': Constraint(high=1)}}, not {given!r:.80}"
        )
    if noise is not None:
        raise ValueError(
            f"noise={noise!r} and outcomes cannot be given together: with outcomes, each has its "
            "own noise, like Objective('maximize', noise=0); leave noise out"
        )
    outcomes = {name: as_outcome(name, outcome) for name, outcome in given.items()}
    objectives = [name for name, own in outcomes.items() if isinstance(own, Objective)]
    if len(objectives) > 1 and refit and not callable(refit) and named(refit) not in objectives:
        raise ValueError(
            "refit must name the objective whose best compromise is refitted, one of "
            f"{', '.join(objectives)}, not {refit!r}"
        )
    return outcomes


def named(refit: object) -> str:
    """The metric that `refit` names."""
    return refit if isinstance(refit, str) else SCORE


def scores_of(results: Mapping[str, Any], name: str, folds: int) -> Float[np.ndarray, "n K"]:
    """What all trials have of one outcome: a score per fold, or the mean of a time."""
    if f"mean_test_{name}" in results:
        return np.stack([results[f"split{k}_test_{name}"] for k in range(folds)], axis=1)
    if name in TIMES:
        return np.asarray(results[f"mean_{name}"])[:, None]
    known = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
    raise ValueError(
        f"outcomes must be among {', '.join([*known, *TIMES])}, not {name!r}"
        f"{meant(name, [*known, *TIMES])}"
    )


def choice(found: Any, metric: str) -> Any:
    """The point to refit at: of a front, the best for the metric or else for the first objective.

    Returns:
        A `Recommendation`, or a point of a `Front`.
    """
    if not isinstance(found, Front):
        return found
    objectives = found.problem.objectives
    return found.best_for({metric if metric in objectives else next(iter(objectives)): 1})


def predicted_score(best: Any, metric: str, outcomes: Mapping[str, Outcome]) -> float:
    """The prediction of the metric there or, if that is not an outcome, of the first objective."""
    first = next(name for name, own in outcomes.items() if isinstance(own, Objective))
    return float(best.outcomes[metric if metric in outcomes else first].mean)


def row_of(optimizer: Optimizer, params: Mapping[str, Any]) -> int:
    """The id of the first told trial at a point that was tried, to the last digit or nearly."""
    told = [trial for trial in optimizer.trials if trial.state == "told"]
    same = [trial.id for trial in told if repr(trial.params) == repr(params)]
    if same:
        return same[0]
    x = optimizer.space.encode(params)
    away = [np.sum((optimizer.space.encode(trial.params) - x) ** 2) for trial in told]
    return told[int(np.argmin(away))].id
