"""The search: `JESSearchCV(estimator, space).fit(X, y)`.

The search is a thin shell over `Optimizer` and scikit-learn's own `BaseSearchCV`, which fits,
scores and refits.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from scipy.stats import rankdata
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from optpair import report
from optpair.engine.session import Way
from optpair.engine.settings import Settings
from optpair.front import FrontBelief
from optpair.gp.hyperparameters import Hyperparameters
from optpair.integrations.sklearn.folds import noise_of_means
from optpair.integrations.sklearn.outcomes import (
    choice,
    named,
    outcomes_of,
    predicted_score,
    row_of,
    scores_of,
)
from optpair.integrations.sklearn.space import Choices, NumberedSpace
from optpair.optimizer import Optimizer
from optpair.problem.defaults import ACQUISITION, LARGEST
from optpair.problem.outcomes import Direction, Outcome, check_noise
from optpair.problem.space import Space
from optpair.report import JointSubject, Subject
from optpair.trials.trial import Trial

__all__ = ["JESSearchCV"]

Results = dict[str, Any]
Evaluate = Callable[..., Results]
Point = Trial | Mapping[str, Any]
About = TypeVar("About", Subject, JointSubject)
Row = dict[str, np.ndarray]
"""The scores of one trial on each fold, or one mean of them, by outcome."""


class JESSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Tunes an estimator by cross-validation, and refits it at the recommendation.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> from optpair import Float
        >>> from optpair.integrations.sklearn import JESSearchCV
        >>> X, y = load_diabetes(return_X_y=True)
        >>> space = {"alpha": Float(1e-4, 10, log=True)}
        >>> search = JESSearchCV(Ridge(), space, n_iter=4, random_state=0).fit(X, y)
        >>> bool(search.best_params_["alpha"] < 1)
        True

    Use it as you use `RandomizedSearchCV`: alone, in a pipeline or inside `cross_val_score`. All
    parameters that are not explained here are those of `GridSearchCV`. All trials are scored on the
    same folds, even by a splitter that shuffles.

    The score that a search reports on its own folds is too good; `cross_val_score(search, X, y)`
    tells how well it does on new data.

    Args:
        estimator: the estimator to tune.
        space: a `Space`, or a dict from names (`clf__C` reaches into a pipeline) to `Float`, `Int`,
            `Ordinal`, `Categorical`, or a list of any objects to choose from. A list of numbers is
            an `Ordinal`; a list of one object is a constant. A tuple of two numbers may be meant as
            a range, and is refused. Of SciPy's distributions, `uniform`, `loguniform` and `randint`
            are taken for their ranges. A list of dicts is a choice between them, as in
            `GridSearchCV`.
        n_iter: how many trials, each of which is one cross-validation; fewer where each row of a
            shelf is tried once and none is left.
        batch: how many trials are asked for at once. All their folds share `n_jobs`.
        noise: `"folds"` takes the spread over folds for the noise of a trial's mean score, as
            `optpair.integrations.sklearn.folds` explains; None leaves the noise to the model; a
            number is the standard deviation of a mean score's noise, 0 where only these folds
            matter.
        outcomes: what you want of several metrics, by their names in `scoring` (`"score"` where
            there is only one), and of `"fit_time"` and `"score_time"`: `{"accuracy": "maximize",
            "fit_time": Constraint(high=1)}`. Without it, the metric that `refit` names is
            maximised.
        refit: of several metrics, the name of the one to search for. With several objectives among
            the `outcomes`, the name of the one whose best compromise is refitted.
        error_score: with NaN, a trial fails if one of its folds fails: it has no value, and lowers
            the chance of success around it. A number is the score of a fold that fails; a trial
            fails all the same if all its folds do.
        random_state: an int is the seed of the search.
        acquisition: as in `optpair.Optimizer`.
        hyperparameters: as in `optpair.Optimizer`.
        settings: as in `optpair.Optimizer`.

    Attributes:
        best_params_: the recommendation: of all trials, the one with the best *predicted* score.
            The last trial is at the best predicted point of the whole space, so that it is among
            them if it keeps its promise.
        best_score_: its predicted mean score over these folds.
        recommendation_: both, with a 95 % interval, and the best observed trial, the one that
            `GridSearchCV` would have chosen, which is often only the luckiest. With several
            objectives, a `Front` of trials.
        best_index_: the row of `best_params_` in `cv_results_`. A callable `refit` chooses another.
        cv_results_: a row for every trial, in the order of their ids; NaNs for one that failed.
        optimizer_: the `Optimizer`. It knows the objects of a list by their place, unless all are
            numbers.
    """

    cv_results_: Results
    best_index_: int

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Choices] | Sequence[Mapping[str, Choices]],
        *,
        n_iter: int = 30,
        batch: int = 1,
        noise: Literal["folds"] | float | None = "folds",
        scoring: Any = None,
        outcomes: Mapping[str, Outcome | Direction] | None = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        acquisition: str = ACQUISITION,
        hyperparameters: Way | Hyperparameters = "marginal",
        settings: Settings | None = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space = space
        self.n_iter = n_iter
        self.batch = batch
        self.noise = noise
        self.outcomes = outcomes
        self.random_state = random_state
        self.acquisition = acquisition
        self.hyperparameters = hyperparameters
        self.settings = settings

    def fit(self, X: Any, y: Any = None, **params: Any) -> JESSearchCV:
        """Search, then refit at the recommendation; `params` go where `GridSearchCV`'s go."""
        for name in ("optimizer_", "recommendation_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        given: Any = self.cv
        self.cv: Any = _SameFolds(check_cv(given, y, classifier=is_classifier(self.estimator)))
        try:
            super().fit(X, y, **params)
        finally:
            self.cv = given
        if self._lost:
            self.cv_results_ = _with_lost(self.cv_results_, self._lost, self.error_score)
            self.best_index_ = _placed(self.best_index_, self._lost)
        if not callable(self.refit):
            self.best_score_ = self._score
        del self._lost, self._chosen, self._score
        return self

    def belief(self) -> Any:
        """Samples of where the optimum is and what it is worth, and what is still unknown.

        Returns:
            A `Belief`, or a `FrontBelief` where there are several objectives.
        """
        check_is_fitted(self, "optimizer_")
        numbered_space = NumberedSpace(self.space)
        belief = self.optimizer_.belief()
        if isinstance(belief, FrontBelief):
            params: Any = tuple(tuple(map(numbered_space.named, own)) for own in belief.params)
        else:
            params = tuple(map(numbered_space.named, belief.params))
        best = numbered_space.served(belief.recommendation)
        return replace(belief, params=params, recommendation=best)

    def report(self, path: str | Path, *, name: str | None = None) -> dict[str, Any]:
        """Write a page of HTML on what was found; see `Optimizer.report`.

        Args:
            path: the file.
            name: the page's heading, the estimator's class by default.

        Returns:
            What stands on the page, as JSON.
        """
        check_is_fitted(self, "optimizer_")
        numbered, title = NumberedSpace(self.space), name or type(self.estimator).__name__
        optimizer = self.optimizer_
        if optimizer.problem.goal != "best":
            return report.write(_named(optimizer.joint_subject(name=title), numbered), path)
        return report.write(_named(optimizer.subject(name=title), numbered), path)

    def _run_search(self, evaluate_candidates: Evaluate) -> None:
        """The search itself, called by `BaseSearchCV.fit`."""
        _check_count("n_iter", self.n_iter)
        _check_count("batch", self.batch)
        metric = named(self.refit)
        outcomes = outcomes_of(self.outcomes, _known_noise(self.noise), self.refit)
        numbered_space = NumberedSpace(self.space)
        optimizer = Optimizer(
            numbered_space.space,
            outcomes=outcomes,
            seed=_seed(self.random_state),
            acquisition=self.acquisition,
            hyperparameters=self.hyperparameters,
            settings=self.settings,
        )
        self._lost: dict[int, dict[str, Any]] = {}
        rows: list[Row] = []
        last = None
        while len(rows) < self.n_iter and not optimizer.exhausted:
            points = _next(optimizer, self.n_iter - len(rows), self.batch, metric)
            candidates = [numbered_space.named(_params(point)) for point in points]
            scores, failure = self._evaluate(evaluate_candidates, candidates, len(rows), outcomes)
            rows += scores
            last = failure or last
            for point, row in zip(points, scores, strict=True):
                _tell(optimizer, point, row)
            if isinstance(self.noise, str):  # by the folds
                _revise(optimizer, rows, self.cv.ratio)
        if all(trial.state != "told" for trial in optimizer.trials):
            detail = "" if last is None else f"; of the last, {last}"
            raise ValueError(f"a fit failed in all {len(rows)} evaluations{detail}") from last
        found = optimizer.recommend(tried=True)
        best = choice(found, metric)
        self.optimizer_, self.recommendation_ = optimizer, numbered_space.served(found)
        self._chosen = row_of(optimizer, best.params)
        self._score = predicted_score(best, metric, outcomes)

    def _select_best_index(self, refit: Any, refit_metric: str, results: Results) -> int:
        """The row of the recommendation, where scikit-learn takes the best observed."""
        if callable(refit):
            return int(super()._select_best_index(refit, refit_metric, results))
        return self._chosen - sum(lost < self._chosen for lost in self._lost)

    def _evaluate(
        self,
        evaluate: Evaluate,
        candidates: list[dict[str, Any]],
        done: int,
        names: Collection[str],
    ) -> tuple[list[Row], ValueError | None]:
        """The scores of some candidates by outcome, and the error if every fit of them failed."""
        try:
            with warnings.catch_warnings():  # said of all trials so far, at each of them
                warnings.filterwarnings("ignore", "One or more of the .* scores are non-finite")
                results = evaluate(candidates)
        except ValueError as error:
            if self.error_score == "raise" or not re.match(
                r"\s*All the \d+ fits failed", str(error)
            ):
                raise
            # To scikit-learn that is the end of a search; here it is one bad trial, or a few.
            warnings.warn(str(error), FitFailedWarning, stacklevel=2)
            self._lost |= {done + i: params for i, params in enumerate(candidates)}
            lost = {name: np.full(self.cv.count, np.nan) for name in names}
            return [lost for _ in candidates], error
        columns = {
            name: scores_of(
                results, self._metric(results) if self.outcomes is None else name, self.cv.count
            )[-len(candidates) :]
            for name in names
        }
        if isinstance(self.error_score, Real):  # what failed was scored so, in no time at all
            unscored = results["mean_score_time"][-len(candidates) :] == 0
            for name, scores in columns.items():
                failed = unscored & np.all(scores == self.error_score, axis=1)
                columns[name] = np.where(failed[:, None], np.nan, scores)
        return [
            {name: scores[i] for name, scores in columns.items()} for i in range(len(candidates))
        ], None

    def _metric(self, results: Results) -> str:
        """The name of the metric that is searched for, as `cv_results_` has it."""
        for name in (self.refit, "score"):
            if isinstance(name, str) and f"mean_test_{name}" in results:
                return name
        known = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        raise ValueError(
            f"refit must name the metric to search for, one of {', '.join(known)}, not "
            f"{self.refit!r}"
        )


class _SameFolds:
    """A splitter that splits once, so that trials are compared on the same folds.

    In all else it is the splitter that it was given.
    """

    def __init__(self, cv: Any) -> None:
        self._cv = cv
        self._splits: list[tuple[np.ndarray, np.ndarray]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what it has itself, or what Python asks of anything
            raise AttributeError(name)
        return getattr(self._cv, name)

    def split(self, *args: Any, **kwargs: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The folds of the first call."""
        self._splits = self._splits or list(self._cv.split(*args, **kwargs))
        return iter(self._splits)

    @property
    def count(self) -> int:
        """How many folds there are."""
        return len(self._splits)

    @property
    def ratio(self) -> float:
        """Test samples for each training sample, on average."""
        return float(np.mean([len(test) / max(len(train), 1) for train, test in self._splits]))


def _next(optimizer: Optimizer, left: int, batch: int, metric: str) -> list[Point]:
    """What to evaluate next; the last trial puts the best predicted point to the test."""
    told = [trial for trial in optimizer.trials if trial.state == "told"]
    if left == 1 and len(told) > len(optimizer.space):
        best = choice(optimizer.recommend(), metric).params
        if all(dict(best) != trial.params for trial in told):
            return [best]
    plate = optimizer.ask(min(batch, max(left - 1, 1)))
    return [*plate]


def _params(point: Point) -> Mapping[str, Any]:
    return point.params if isinstance(point, Trial) else point


def _tell(optimizer: Optimizer, point: Point, row: Row) -> None:
    values = {name: float(np.mean(scores)) for name, scores in row.items()}
    if all(abs(value) <= LARGEST for value in values.values()):
        optimizer.tell(point, values)
    else:  # NaN too
        optimizer.tell(point, failed=True)


def _revise(optimizer: Optimizer, rows: list[Row], ratio: float) -> None:
    """Judge the noise of every trial anew, by all scores so far."""
    told = [trial for trial in optimizer.trials if trial.state == "told"]
    if not told:
        return
    same = Counter(repr(trial.params) for trial in told)
    repeats = np.array([same[repr(trial.params)] for trial in told])
    noise = {}
    for name, outcome in optimizer.problem.outcomes.items():
        scores = np.array([rows[trial.id][name] for trial in told])
        found = noise_of_means(scores, ratio, repeats) if outcome.noise is None else None
        if found is not None:
            noise[name] = found
    for i, trial in enumerate(told):
        values = {name: measured.value for name, measured in trial.outcomes.items()}
        own = {name: float(found[i]) for name, found in noise.items()}
        optimizer.revise(trial, values, noise_var=own or None)


def _with_lost(results: Results, lost: Mapping[int, Mapping[str, Any]], score: float) -> Results:
    """`cv_results_` with a row for each trial of which no fit succeeded."""
    n = len(results["params"]) + len(lost)
    kept = [i for i in range(n) if i not in lost]
    whole: Results = {}
    for key, column in results.items():
        name = key.removeprefix("param_")
        if key == "params":
            rows = dict(zip(kept, column, strict=True)) | dict(lost)
            whole[key] = [rows[i] for i in range(n)]
        elif name != key:
            values = dict(zip(kept, column, strict=True)) | {i: p[name] for i, p in lost.items()}
            whole[key] = np.ma.MaskedArray(np.empty(n, dtype=object), mask=False)
            for i, value in values.items():
                whole[key][i] = value
        elif not key.startswith("rank_"):
            timed = key.endswith(("_fit_time", "_score_time"))
            fill = np.nan if timed else 0.0 * score if key.startswith("std_") else score
            whole[key] = np.full(n, fill)
            whole[key][kept] = column
    for key in results:
        if key.startswith("rank_"):
            means = whole[key.replace("rank_", "mean_", 1)]
            lowest = np.min(means[~np.isnan(means)], initial=np.inf)
            ranked = np.where(np.isnan(means), lowest - 1, means)
            whole[key] = rankdata(-ranked, method="min").astype(np.int32)
    return {key: whole[key] for key in results}


def _placed(index: int, lost: Mapping[int, Any]) -> int:
    """The place of a row once those of lost trials are among them."""
    for gone in sorted(lost):
        index += gone <= index
    return index


def _seed(random_state: Any) -> int:
    """scikit-learn's `random_state` as a seed: an int is one, a generator draws one."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _known_noise(given: object) -> float | None:
    """The standard deviation of a mean score's noise; None where folds or model are to say it."""
    if isinstance(given, str) and given != "folds":
        raise ValueError(
            "noise must be 'folds', None, where the model is to infer it, or a standard deviation, "
            f"not {given!r}"
        )
    return None if given is None or isinstance(given, str) else check_noise(given)


def _named(subject: About, numbered: NumberedSpace) -> About:
    """What a page is about, with words for objects in place of their numbers."""
    labels = numbered.labels
    rows = tuple(
        replace(row, params={n: labels[n][v] if n in labels else v for n, v in row.params.items()})
        for row in subject.rows
    )
    assert subject.model is not None
    model = replace(subject.model, choices=labels, single=numbered.single)
    return replace(subject, rows=rows, model=model)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an int of at least 1, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be an int of at least 1, not {value!r}")
