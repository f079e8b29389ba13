"""Outcomes of a cross-validation: which columns of `cv_results_` are searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optpair.integrations.sklearn.arguments import known_noise
from optpair.integrations.sklearn.ranges import TIMES, range_of, with_range
from optpair.optimizer import Optimizer
from optpair.problem.outcomes import Objective, Outcome, as_outcome, meant
from optpair.problem.problem import VALUE
from optpair.results.front import Front
from optpair.runtime.shapes import Float

SCORE = "score"
"""scikit-learn's name of a metric that is the only one."""


def outcomes_of(search: Any, metric: str, objects: Sequence[Any]) -> dict[str, Outcome]:
    """The outcomes of a search, by name; without any, one score is to be maximised.

    A goal that is said in a word has the range of its score; an `Objective` of the user's stays as
    it is.

    Args:
        search: the search, with `outcomes`, `noise`, `scoring`, `refit` and `estimator`.
        metric: what is refitted for.
        objects: what the space may put into the estimator.
    """
    given, noise = search.outcomes, known_noise(search.noise)
    if given is None:
        return {VALUE: _ranged(Objective("maximize", noise), metric, search, objects)}
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
    refit = search.refit
    if len(objectives) > 1 and refit and not callable(refit) and metric not in objectives:
        raise ValueError(
            "refit must name the objective whose best compromise is refitted, one of "
            f"{', '.join(objectives)}, not {refit!r}"
        )
    for name, own in outcomes.items():
        if isinstance(own, Objective) and own is not given[name]:
            outcomes[name] = _ranged(own, name, search, objects)
    return outcomes


def _ranged(outcome: Objective, metric: str, search: Any, objects: Sequence[Any]) -> Objective:
    known = range_of(metric, search.scoring, search.estimator, objects)
    return with_range(outcome, known, np.nan if metric in TIMES else search.error_score)


def named(refit: object, scoring: object, outcomes: object) -> str:
    """The metric that `refit` names, or the only one that there is, as the user calls it."""
    if isinstance(refit, str):
        return refit
    known = isinstance(outcomes, Mapping) and isinstance(scoring, str) and scoring in outcomes
    return str(scoring) if known else SCORE


def scores_of(
    results: Mapping[str, Any], name: str, folds: int, scoring: object
) -> Float[np.ndarray, "n K"]:
    """What all trials have of one outcome: a score per fold, or the mean of a time."""
    if name == scoring and f"mean_test_{name}" not in results:  # the only metric has no other name
        name = SCORE
    if f"mean_test_{name}" in results:
        return np.stack([results[f"split{k}_test_{name}"] for k in range(folds)], axis=1)
    if name in TIMES:
        return np.asarray(results[f"mean_{name}"])[:, None]
    known = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
    if known == [SCORE] and isinstance(scoring, str):
        known = [scoring, SCORE]
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
    same = [trial.id for trial in told if repr(trial.actual) == repr(params)]
    if same:
        return same[0]
    x = optimizer.space.encode(params)
    away = [np.sum((optimizer.space.encode(trial.actual) - x) ** 2) for trial in told]
    return told[int(np.argmin(away))].id
