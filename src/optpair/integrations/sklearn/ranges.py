"""Ranges of scikit-learn's own scores: an accuracy is never above 1, a negated error never above 0.

A scorer of one's own has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from optpair.problem.outcomes import Objective, Outcome

Range = tuple[float | None, float | None]

TIMES = ("fit_time", "score_time")
"""What is known of every trial, beside its scores, as a mean over folds."""

SHARE: Range = (0.0, 1.0)
AT_MOST_ONE: Range = (None, 1.0)
AT_MOST_ZERO: Range = (None, 0.0)
AT_LEAST_ZERO: Range = (0.0, None)

RANGES: Mapping[str, Range] = {
    **dict.fromkeys(
        (
            "accuracy",
            "average_precision",
            "balanced_accuracy",
            "completeness_score",
            "fowlkes_mallows_score",
            "homogeneity_score",
            "normalized_mutual_info_score",
            "rand_score",
            "top_k_accuracy",
            "v_measure_score",
        ),
        SHARE,
    ),
    **dict.fromkeys(
        (
            "adjusted_mutual_info_score",
            "adjusted_rand_score",
            "d2_absolute_error_score",
            "d2_brier_score",
            "d2_log_loss_score",
            "explained_variance",
            "r2",
        ),
        AT_MOST_ONE,
    ),
    **dict.fromkeys(("mutual_info_score", "positive_likelihood_ratio"), AT_LEAST_ZERO),
    "matthews_corrcoef": (-1.0, 1.0),
}
"""By the names that `scoring` takes; those of FAMILIES are not repeated here."""

FAMILIES: tuple[tuple[str, Range], ...] = (
    *((family, SHARE) for family in ("f1", "jaccard", "precision", "recall", "roc_auc")),
    ("neg", AT_MOST_ZERO),
)
"""By the beginning of a name, up to an underscore or its end."""

ROUND_OFF = 1e-9
"""By so much a score may be beyond its range: some sums of scikit-learn's end at 1 + 2e-16."""


def range_of_scorer(name: str) -> Range | None:
    """The range of a scorer of scikit-learn's, by its name; None where it is not known."""
    families = (own for family, own in FAMILIES if f"{name}_".startswith(f"{family}_"))
    return RANGES.get(name, next(families, None))


def range_of_score(estimators: Iterable[Any]) -> Range | None:
    """The range of the `score` that all estimators have from scikit-learn; None where not known.

    That of its classifiers is an accuracy, and that of its regressors R² or D², unless `scoring`
    says otherwise.
    """
    ranges = {_range_of_one(each) for each in map(_last, estimators) if not _is_none(each)}
    return ranges.pop() if len(ranges) == 1 else None


def _range_of_one(estimator: Any) -> Range | None:
    score = getattr(type(estimator), "score", None)
    if not getattr(score, "__module__", "").startswith("sklearn."):
        return None
    given = estimator.get_params(deep=False)
    inner = _last(given.get("estimator"))  # whose score some return
    if "scoring" in given or not (_is_none(inner) or _range_of_one(inner)):
        return None
    if is_classifier(estimator):
        return SHARE
    return AT_MOST_ONE if is_regressor(estimator) else None


def _last(estimator: Any) -> Any:
    """What scores in the end: a pipeline has the score of its last step."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def _is_none(step: Any) -> bool:
    """Whether it is a step of a pipeline that is to be put in by the space."""
    return step is None or isinstance(step, str)


def range_of(metric: str, scoring: Any, estimator: Any, objects: Iterable[Any]) -> Range | None:
    """The range of a metric of a search; None where it is not known.

    Args:
        metric: its name among the outcomes.
        scoring: the search's own.
        estimator: the search's own.
        objects: what the space may put into it: another estimator may have another score.
    """
    if metric in TIMES:
        return AT_LEAST_ZERO
    if scoring is None:
        others = [each for each in objects if isinstance(each, BaseEstimator)]
        models = [each for each in others if is_classifier(each) or is_regressor(each)]
        return range_of_score([estimator, *models])
    scorer = scoring
    if not isinstance(scoring, str) and not callable(scoring):
        scorer = scoring.get(metric) if isinstance(scoring, Mapping) else metric
    return range_of_scorer(scorer) if isinstance(scorer, str) else None


def with_range(outcome: Objective, known: Range | None, error_score: object) -> Objective:
    """An objective with the range of its score, and of what a failed fold is scored with."""
    if known is None:
        return outcome
    low, high = known
    if isinstance(error_score, Real) and error_score == error_score:  # not NaN
        low = None if low is None else min(low, float(error_score))
        high = None if high is None else max(high, float(error_score))
    return replace(outcome, bounds=(low, high))


def without_round_off(value: float, outcome: Outcome) -> float:
    """A value that is beyond the bounds of its outcome by round-off only, at that bound."""
    low, high = outcome.reach
    own = outcome.sign * value
    nearest = min(max(own, low), high)
    return outcome.sign * nearest if 0 < abs(own - nearest) <= ROUND_OFF else value
