"""The search: `JESSearchCV(estimator, space).fit(X, y)`.

The search is a thin shell over `Optimizer` and scikit-learn's own `BaseSearchCV`, which fits,
scores and refits.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.validation import _num_samples, check_is_fitted

from optpair import report
from optpair.engine.session import Way
from optpair.engine.settings import Settings
from optpair.gp.hyperparameters import Hyperparameters
from optpair.integrations.sklearn.arguments import check_count, check_names, seed_of
from optpair.integrations.sklearn.candidates import (
    Candidate,
    Scores,
    alike,
    judge_noise,
    last_points,
    more_of,
    next_points,
    tell,
)
from optpair.integrations.sklearn.outcomes import (
    choice,
    named,
    outcomes_of,
    predicted_score,
    row_of,
    scores_of,
)
from optpair.integrations.sklearn.resources import resource_of
from optpair.integrations.sklearn.rows import Lost, Results, placed, with_lost
from optpair.integrations.sklearn.space import Choices, NumberedSpace
from optpair.integrations.sklearn.splits import Portions, SameFolds
from optpair.integrations.sklearn.subjects import named_subject
from optpair.optimizer import Optimizer
from optpair.problem.outcomes import Direction, Outcome
from optpair.problem.space import Space
from optpair.problem.stop import Stop
from optpair.results.front import FrontBelief
from optpair.search.ends import Budget, End

__all__ = ["JESSearchCV"]

Evaluate = Callable[..., Results]


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
        n_iter: how many trials, each of which is one cross-validation; fewer where all points of a
            small space, or all rows of a shelf, have been tried: all trials share the folds, so
            nothing is tried twice.
        stop: ends the search early, once hardly anything is left to be won: `Stop(gap=0.01)`.
        seconds: ends it after this many seconds. After either, one more trial is made: at the best
            predicted point, if that was not tried.
        batch: how many trials are asked for at once. All their folds share `n_jobs`.
        noise: `"folds"` takes the spread over folds for the noise of a trial's mean score, as
            `optpair.integrations.sklearn.folds` explains; None leaves the noise to the model; a
            number is the standard deviation of a mean score's noise, 0 where only these folds
            matter.
        outcomes: what you want of several metrics, by their names in `scoring` (or `"score"` where
            there is only one), and of `"fit_time"` and `"score_time"`: `{"accuracy": "maximize",
            "fit_time": Constraint(high=1)}`. Without it, the metric that `refit` names is
            maximised. What scikit-learn's own scores never exceed is known, unless you give an
            `Objective` with other `bounds`, or without.
        refit: of several metrics, the name of the one to search for. With several objectives among
            the `outcomes`, the name of the one whose best compromise is refitted.
        error_score: with NaN, a trial fails if one of its folds fails: it has no value, and lowers
            the chance of success around it. A number is the score of a fold that fails; a trial
            fails all the same if all its folds do.
        random_state: an int is the seed of the search.
        resource: what makes a cross-validation cheaper if there is less of it, as in
            `HalvingGridSearchCV`: `"n_samples"`, the rows to train on, or the name of a parameter
            like `"n_estimators"`. Each trial gets the amount that teaches most for its cost; the
            answer, and the refit, are for all of it.
        min_resources: the least of it: an int, or a share between 0 and 1. `"auto"` is a
            twenty-seventh; of rows, at least two per fold and class.
        max_resources: all of it: an int. `"auto"` is all rows, or the estimator's own value.
        cost: what a trial costs: `"resource"`, in proportion to that, or `"seconds"`, the measured
            seconds of its fits and scores; then the points are no longer the same each time. It
            also works without a resource.
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
            With a `resource`, `n_resources` is how much of it each had.
        ended_: why there are fewer than `n_iter` trials; otherwise empty.
        optimizer_: the `Optimizer`. It knows the objects of a list by their place, unless all are
            numbers.
    """

    cv_results_: Results
    best_index_: int

    def __new__(cls, *_: Any, **given: Any) -> JESSearchCV:
        """A search; what other searches call their space is refused with the way out."""
        check_names(given)
        return super().__new__(cls)

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Choices] | Sequence[Mapping[str, Choices]],
        *,
        n_iter: int = 30,
        stop: Stop | None = None,
        seconds: float | None = None,
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
        resource: str | None = None,
        min_resources: int | float | Literal["auto"] = "auto",
        max_resources: int | Literal["auto"] = "auto",
        cost: Literal["resource", "seconds"] = "resource",
        acquisition: str | None = None,
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
        self.stop = stop
        self.seconds = seconds
        self.batch = batch
        self.noise = noise
        self.outcomes = outcomes
        self.random_state = random_state
        self.resource = resource
        self.min_resources = min_resources
        self.max_resources = max_resources
        self.cost = cost
        self.acquisition = acquisition
        self.hyperparameters = hyperparameters
        self.settings = settings

    def fit(self, X: Any, y: Any = None, **params: Any) -> JESSearchCV:
        """Search, then refit at the recommendation; `params` go where `GridSearchCV`'s go."""
        for name in ("optimizer_", "recommendation_", "ended_", "_resource"):  # of an earlier fit
            self.__dict__.pop(name, None)
        given: Any = self.cv
        self.cv: Any = SameFolds(check_cv(given, y, classifier=is_classifier(self.estimator)))
        self._data = X, y, params.get("groups")
        try:
            super().fit(X, y, **params)
        finally:
            self.cv = given
            del self._data
        if self._lost:
            self.cv_results_ = with_lost(self.cv_results_, self._lost, self.error_score)
            self.best_index_ = placed(self.best_index_, self._lost)
        if not callable(self.refit):
            self.best_score_ = self._score
        del self._lost, self._chosen, self._score
        return self

    def belief(self) -> Any:
        """Samples of where the optimum is and what it is worth, and what is still unknown.

        Its recommendation is `recommendation_`, one of the trials.

        Returns:
            A `Belief`, or a `FrontBelief` if there are several objectives.
        """
        check_is_fitted(self, "optimizer_")
        numbered_space = NumberedSpace(self.space, self._resource)
        belief = self.optimizer_.belief(tried=True)
        if isinstance(belief, FrontBelief):
            params: Any = tuple(tuple(map(numbered_space.named, own)) for own in belief.params)
        else:
            params = tuple(map(numbered_space.named, belief.params))
        best = numbered_space.served(belief.recommendation)
        return replace(belief, params=params, recommendation=best)

    def report(self, path: str | Path, *, name: str | None = None) -> dict[str, Any]:
        """Write a report with the names of your objects; see `Optimizer.report`.

        What it recommends is `recommendation_`, one of the trials.

        Args:
            path: the file.
            name: the heading, by default the estimator's class.

        Returns:
            What the report says, as JSON.
        """
        check_is_fitted(self, "optimizer_")
        title, optimizer = name or type(self.estimator).__name__, self.optimizer_
        numbered = NumberedSpace(self.space, self._resource)
        one = optimizer.problem.goal == "best"
        about: Any = optimizer.subject if one else optimizer.joint_subject
        return report.write(named_subject(about(name=title, tried=True), numbered), path)

    def _run_search(self, evaluate_candidates: Evaluate) -> None:
        """The search itself, called by `BaseSearchCV.fit`."""
        check_count("n_iter", self.n_iter)
        check_count("batch", self.batch)
        metric, seed = named(self.refit, self.scoring, self.outcomes), seed_of(self.random_state)
        self._check_cost()
        end = End(self.stop, self.seconds, None, Budget(None, None, None))
        X, y, groups = self._data
        splits = self.cv.get_n_splits(X, y, groups)
        self._resource = resource = resource_of(self, X, y, splits)
        numbered_space = NumberedSpace(self.space, resource)
        outcomes = outcomes_of(self, metric, numbered_space.objects)
        optimizer = Optimizer(
            numbered_space.space,
            outcomes=outcomes,
            seed=seed,
            acquisition=self.acquisition,
            hyperparameters=self.hyperparameters,
            settings=self._settings(),
        )
        classes = is_classifier(self.estimator)
        portions = Portions(self.cv, y, seed, _num_samples(X), classes=classes)
        self._lost: dict[int, Lost] = {}
        rows: list[Scores] = []
        last, ended = None, end.at_once(optimizer)
        while not ended and len(rows) < self.n_iter:
            ended = end.reason(optimizer) if rows else ""
            if ended:
                points = [] if optimizer.exhausted else last_points(optimizer, metric)
            else:
                points = next_points(optimizer, self.n_iter - len(rows), self.batch, metric)
            whole = bool(ended) or len(rows) == self.n_iter - 1  # the last one
            tried = optimizer.trials
            asked = [Candidate.of(p, numbered_space, resource, tried, whole=whole) for p in points]
            for some in alike(asked, resource):
                found, failure = self._evaluate(
                    evaluate_candidates,
                    some,
                    more_of(some, resource, portions),
                    len(rows),
                    outcomes,
                )
                rows += found
                last = failure or last
                for candidate, row in zip(some, found, strict=True):
                    tell(optimizer, candidate, row, timed=self.cost == "seconds")
            if isinstance(self.noise, str):  # by the folds
                judge_noise(optimizer, rows, self.cv.ratio)
        shelf = optimizer.space.shelf  # of whose rows the user said that each is tried once
        if optimizer.exhausted and len(rows) < self.n_iter and (shelf is None or shelf.repeat):
            noun = optimizer.space.noun
            warnings.warn(
                f"{ended} after {len(rows)} of n_iter={self.n_iter} trials: on the same folds, no "
                f"{noun} has another score a second time",
                UserWarning,
                stacklevel=4,
            )
        if all(trial.state != "told" for trial in optimizer.trials):
            detail = "" if last is None else f"; the last one: {last}"
            raise ValueError(f"a fit failed in all {len(rows)} evaluations{detail}") from last
        found = optimizer.recommend(tried=True)
        best = choice(found, metric)
        self.ended_ = ended
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
        candidates: Sequence[Candidate],
        more: Mapping[str, Any],
        done: int,
        names: Collection[str],
    ) -> tuple[list[Scores], ValueError | None]:
        """The scores of some candidates by outcome, and the error if every fit of them failed.

        `more` is what scikit-learn is given beside their parameters.
        """
        try:
            with warnings.catch_warnings():  # said of all trials so far, at each of them
                warnings.filterwarnings("ignore", "One or more of the .* scores are non-finite")
                results = evaluate([candidate.params for candidate in candidates], **more)
        except ValueError as error:
            if self.error_score == "raise" or not re.match(
                r"\s*All the \d+ fits failed", str(error)
            ):
                raise
            # To scikit-learn that is the end of a search; here it is one bad trial, or a few.
            warnings.warn(str(error), FitFailedWarning, stacklevel=2)
            self._lost |= {done + i: Lost(c.params, c.resources) for i, c in enumerate(candidates)}
            lost = {name: np.full(self.cv.count, np.nan) for name in names}
            return [Scores(lost) for _ in candidates], error
        columns = {
            name: scores_of(
                results,
                self._metric(results) if self.outcomes is None else name,
                self.cv.count,
                self.scoring,
            )[-len(candidates) :]
            for name in names
        }
        if isinstance(self.error_score, Real):  # what failed was scored so, in no time at all
            unscored = results["mean_score_time"][-len(candidates) :] == 0
            for name, scores in columns.items():
                failed = unscored & np.all(scores == self.error_score, axis=1)
                columns[name] = np.where(failed[:, None], np.nan, scores)
        seconds = self.cv.count * (results["mean_fit_time"] + results["mean_score_time"])
        seconds = seconds[-len(candidates) :]
        return [
            Scores({name: scores[i] for name, scores in columns.items()}, float(seconds[i]))
            for i in range(len(candidates))
        ], None

    def _settings(self) -> Settings:
        """The settings; on the same folds a repeat has the same errors, and teaches nothing."""
        return replace(self.settings or Settings(), once=True)

    def _check_cost(self) -> None:
        """Refuse what a cost cannot be."""
        if self.cost not in ("resource", "seconds"):
            raise ValueError(f"cost must be 'resource' or 'seconds', not {self.cost!r:.80}")

    def _metric(self, results: Results) -> str:
        """The name of the metric that is searched for, as `cv_results_` has it."""
        for name in (self.refit, "score"):
            if isinstance(name, str) and f"mean_test_{name}" in results:
                return name
        known = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        raise ValueError(
            f"refit must name the metric to search for, one of {', '.join(known)}, not "
            f"{self.refit!r}; to search without a refit, say what is wanted: outcomes="
            f"{{{known[0]!r}: 'maximize'}}"
        )


# That of __init__, for help and for scikit-learn's checks; Python would take that of __new__.
_SELF, *_OPTIONS = inspect.signature(JESSearchCV.__init__).parameters.values()
JESSearchCV.__signature__ = inspect.Signature(_OPTIONS)
