"""Ask and tell: the face of the library, in the user's units."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    SupportsFloat,
    TypeVar,
    get_args,
    overload,
)

import numpy as np

from optpair.earlier import read_earlier
from optpair.engine.answers import Answers
from optpair.engine.earlier import Lending
from optpair.engine.model import Model
from optpair.engine.plate import Info
from optpair.engine.session import Session, Way, check_plate
from optpair.engine.settings import Settings
from optpair.gp.hyperparameters import Hyperparameters
from optpair.persistence import documents
from optpair.persistence.files import Copies
from optpair.problem.beliefs import Belief as Density
from optpair.problem.outcomes import Direction, Outcome
from optpair.problem.problem import Problem
from optpair.problem.space import Space
from optpair.problem.stop import Stop, check_stop
from optpair.results.best import Belief, Prediction, Recommendation
from optpair.results.front import Front, FrontBelief, points_of, reference_of
from optpair.runtime.locks import Lock
from optpair.tables import Tables
from optpair.trials.earlier import EarlierStudy
from optpair.trials.history import History
from optpair.trials.told import Told
from optpair.trials.trial import State, Trial

if TYPE_CHECKING:
    from optpair.report import JointSubject, Subject

P = ParamSpec("P")
R = TypeVar("R")


def _locked(
    method: Callable[Concatenate[Optimizer, P], R],
) -> Callable[Concatenate[Optimizer, P], R]:
    """One thread at a time."""

    @functools.wraps(method)
    def inner(self: Optimizer, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock.now:
            return method(self, *args, **kwargs)

    return inner


class Optimizer(Tables):
    """Suggests trials, learns from their results, and recommends the best predicted point.

    Examples:
        >>> from optpair import Float, Optimizer, Space
        >>> opt = Optimizer(Space({"x": Float(-1, 1)}), direction="minimize", seed=0)
        >>> trial = opt.ask()
        >>> opt.tell(trial, trial.params["x"] ** 2)
        >>> len(opt.trials)
        1

    Threads may share one: each call waits for the one before. A forked child continues with its
    own copy.

    Args:
        space: the parameters to tune.
        direction: `"minimize"`, which is the default, or `"maximize"`.
        outcomes: instead of `direction`, what is measured in a trial and what is wanted, by name:
            `{"accuracy": Objective("maximize", bounds=(0, 1)), "energy": "minimize",
            "latency": Constraint(high=20)}`. At least one must be an objective; with several
            objectives the answer is a `Front`.
        seed: any non-negative int; the same seed, asks and tells give the same points. None draws
            one.
        noise: the standard deviation of every value's noise, in units of the objective; 0 if
            values are exact. None leaves it to be inferred. A trial's own `noise_var` takes
            precedence. With `outcomes`, each has its own `noise`.
        acquisition: a name in `optpair.acquisition.names()`, or a function of your own: see
            `optpair.acquisition.own`. None means `"jes-peak"` or, for one objective on a shelf
            whose rows are tried at most once, `"ids"`.
        hyperparameters: `"marginal"` (averaged over by MCMC), `"map"` (the posterior mode), or
            known `Hyperparameters` in your units.
        settings: see `Settings`.
        belief: where you believe the optimum is, in addition to the `guess` of each parameter: a
            function from a dict of parameters to the logarithm of a density, up to a constant. It
            cannot be saved.
        earlier: studies of something similar, whose spaces overlap with this one: optimisers,
            files that `save` wrote, CSV files, Optuna studies, tables (lists of dicts, or of
            pandas), or an `Earlier` of one of these. How related each is, is inferred; an unrelated
            one is soon ignored.
    """

    def __init__(
        self,
        space: Space,
        *,
        direction: Direction | None = None,
        outcomes: Mapping[str, Outcome | Direction] | None = None,
        seed: int | None = None,
        noise: float | None = None,
        acquisition: str | Callable[..., Any] | None = None,
        hyperparameters: Way | Hyperparameters = "marginal",
        settings: Settings | None = None,
        belief: Density | None = None,
        earlier: Iterable[Any] = (),
    ) -> None:
        problem = replace(Problem.given(space, direction, noise, outcomes), belief=belief)
        self._history = History(problem)
        self._session = Session(
            problem,
            seed=seed,
            acquisition=acquisition,
            hyperparameters=hyperparameters,
            settings=settings,
            earlier=read_earlier(earlier, problem),
        )
        self._asked = 0
        self._lock = Lock()
        self._copies = Copies()

    @property
    def problem(self) -> Problem:
        """The space and the outcomes."""
        return self._history.problem

    @property
    def space(self) -> Space:
        """The space that is searched."""
        return self.problem.space

    @property
    def direction(self) -> Direction:
        """`"minimize"` or `"maximize"`, of the only objective."""
        return self.problem.objective.direction

    @property
    def noise(self) -> float | None:
        """The standard deviation of the only objective's noise, if that is known."""
        return self.problem.objective.noise

    @property
    def seed(self) -> int:
        """The seed, drawn or given."""
        return self._session.seed

    @property
    def configuration(self) -> dict[str, Any]:
        """Everything it was made with, as JSON."""
        return {
            "problem": self.problem.to_json(),
            "earlier": [study.to_json() for study in self._session.earlier],
            **documents.session_to_json(self._session),
        }

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial so far: pending, told and failed."""
        return tuple(self._history)

    @property
    def spent(self) -> float:
        """What all trials have cost: as told or, if nothing was told, in looks at the target."""
        return self._history.spent()

    @property
    def exhausted(self) -> bool:
        """Whether every point was tried or is pending, and none may be repeated.

        None may on a shelf with `repeat=False`, and with `Settings(once=True)` as long as points
        are few enough to be listed: no more than 4096, of levels and choices alone.
        """
        return self._session.engine.spent(self._history.data())

    @property
    def info(self) -> Info:
        """How the last suggestion was made: kind, mixing of chains, jitter, seconds per stage."""
        return self._session.info

    def __repr__(self) -> str:
        counts = [f"{self._history.count(state)} {state}" for state in get_args(State)]
        return (
            f"<Optimizer: {self.problem.wish} over {len(self.space)} parameters; "
            f"trials: {', '.join(counts)}; seed {self.seed}>"
        )

    @overload
    def ask(self, *, context: Mapping[str, Any] | None = None) -> Trial: ...

    @overload
    def ask(self, n: int, *, context: Mapping[str, Any] | None = None) -> list[Trial]: ...

    def ask(
        self, n: int | None = None, *, context: Mapping[str, Any] | None = None
    ) -> Trial | list[Trial]:
        """The next trial to run, or a plate: `ask(8)` is a list of eight, chosen together.

        Each is pending until it is told or cancelled. The trials of a plate differ by at least 1e-3
        of a parameter's range, unless the space has too few legal points: then points are repeated
        or, if values are exact, the list is shorter, with at least one trial.

        Args:
            n: how many trials; None means one trial that is not in a list.
            context: a value for each `Context` of the space, in which the trials will be run.

        Returns:
            A `Trial`, or a list of them if n is given.

        Raises:
            TypeError: if n is not an int, or the context is not a dict.
            ValueError: if n is below 1 or above 1000, or if the context is missing or not legal.
        """
        count = 1 if n is None else check_plate(n)
        given = self.space.check_context(context)
        trials: list[Trial] = []
        try:
            with self._lock.now:
                trials = self._ask(count, given, together=n is not None)
            return trials[0] if n is None else trials
        except BaseException:  # Ctrl-C on the way out
            if trials:
                self._take_back(trials)
            raise

    def _ask(self, count: int, context: Mapping[str, Any], *, together: bool) -> list[Trial]:
        """Trials that somebody gets: an ask that breaks off, by Ctrl-C too, changes nothing."""
        asked, number = self._asked, self._history.next_id
        fixed, decode = self.space.columns_of(context), self._decoder(context)
        try:
            data = self._history.data()
            if together:
                points = self._session.plate(data, asked, count, fixed=fixed)
            else:
                points = self._session.suggest(data, asked, fixed=fixed)[None]
            self._asked = asked + len(points)
            return [self._history.add(decode(x)) for x in points]
        except BaseException:
            self._history.withdraw(number)
            self._asked = asked
            raise

    def _decoder(self, context: Mapping[str, Any]) -> Callable[[np.ndarray], dict[str, Any]]:
        """From a point to the user's values, with the context to the last digit."""
        return lambda x: {**self.space.decode(x), **context}

    @_locked
    def _take_back(self, trials: list[Trial]) -> None:
        """Undo an ask whose trials nobody got; where others came after them, only cancel these."""
        if self._history.next_id == trials[-1].id + 1:
            self._history.withdraw(trials[0].id)
            self._asked -= len(trials)
        else:
            for trial in trials:
                self._history.cancel(trial)

    @_locked
    def tell(
        self,
        trial: Trial | int | Mapping[str, Any],
        value: Told = None,
        *,
        noise_var: Told = None,
        failed: bool = False,
        params: Mapping[str, Any] | None = None,
        notes: Mapping[str, object] | None = None,
        reason: str | None = None,
        at: Mapping[str, Any] | None = None,
        cost: SupportsFloat | None = None,
    ) -> None:
        """Tell the result of a trial: a finite value, values by name, or `failed=True`.

        With `at`, it is one of several looks at the trial, each closer to the target than the one
        before; the last one is the trial's value.

        Args:
            trial: what `ask` returned, its id, or a dict of parameters. The parameters of a pending
                trial mean that trial; any others are a point of your own.
            value: the value, within ±1e300, or a list if it was measured several times. With
                several outcomes, a dict by name, without those that were not measured.
            noise_var: the variance of this value's noise, if you know it; it replaces the
                optimizer's `noise`. With several outcomes, a dict by name. Of a list, every value
                has this variance.
            failed: whether the evaluation failed.
            params: what was really run, if that differs from what was asked for: all parameters, or
                those that differ. They may be between levels or outside the space: the model learns
                from them, but they are never suggested or recommended.
            notes: text or numbers to keep with the trial, by name.
            reason: why it failed.
            at: the value of each `Fidelity` at this look, like `{"epochs": 9}`, if that is not what
                was asked for.
            cost: what it cost, above 0, in any unit as long as it is always the same; for a look,
                what it cost in addition to the one before. If costs differ, suggestions are what
                teaches most per cost.

        Raises:
            ValueError: if the value, the trial or the point is not legal; then nothing changes.
        """
        told: dict[str, Any] = {"params": params, "notes": notes, "reason": reason}
        told |= {"at": at, "cost": cost}
        self._history.tell(trial, value, noise_var=noise_var, failed=failed, **told)

    @_locked
    def revise(
        self,
        trial: Trial | int,
        value: Told = None,
        *,
        noise_var: Told = None,
        failed: bool = False,
        params: Mapping[str, Any] | None = None,
        notes: Mapping[str, object] | None = None,
        reason: str | None = None,
        at: Mapping[str, Any] | None = None,
        cost: SupportsFloat | None = None,
    ) -> None:
        """Correct the result of a trial: as `tell`, and it replaces what was told before.

        What was really run stays as it was unless `params` says otherwise, and so does the cost;
        notes are added. With several looks, the last one is meant, unless `at` names another.
        """
        told: dict[str, Any] = {"params": params, "notes": notes, "reason": reason}
        told |= {"at": at, "cost": cost}
        before, memory = self._history.known(trial), self._session.memory
        try:
            after = self._history.revise(trial, value, noise_var=noise_var, failed=failed, **told)
            if _values(before) != _values(after) or before.actual != after.actual:
                self._session.forget()  # chains that followed a wrong value start anew
        except BaseException:
            self._history.put_back(before)
            self._session.memory = memory
            raise

    @_locked
    def cancel(self, trial: Trial | int) -> None:
        """Forget a suggestion that will never be evaluated. It teaches nothing."""
        self._history.cancel(trial)

    @_locked
    def recommend(
        self,
        *,
        tried: bool = False,
        reference: Mapping[str, float] | None = None,
        points: int | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The best predicted point over the whole space, with its 95 % interval.

        If all values are exact, it is the best observed trial unless another point is sure to be
        better; see `Recommendation`. With several objectives, the best compromises: see `Front`.

        Args:
            tried: whether to choose among the told trials only.
            reference: the point from which the hypervolume of a front is measured, a value per
                objective; by default one that is a little worse than the front in all of them.
            points: the most points that a front may have; 16 by default.
            context: a value for each `Context` of the space, for which the answer is.

        Returns:
            A `Recommendation`, or a `Front` if there are several objectives.
        """
        given = self.space.check_context(context)
        answers, told, problem = self._answers(given, tried=tried), self._told(), self.problem
        decode = self._decoder(given)
        if problem.goal == "front":
            wanted = points_of(points)
            front = answers.front(reference_of(reference, problem), points=wanted)
            return Front.of(front, answers, problem, decode, told)
        if reference is not None:
            raise ValueError("reference is for several objectives; there is only one here")
        if points is not None:
            raise ValueError("points is for several objectives; there is only one here")
        return Recommendation.of(answers.recommend(), answers, problem, decode, told)

    @_locked
    def belief(self, *, tried: bool = False, context: Mapping[str, Any] | None = None) -> Any:
        """Samples of where the optimum is and what it is worth, and what is still unknown.

        Args:
            tried: whether the recommendation, beyond which something may be left to be won, is one
                of the told trials, as `recommend(tried=True)`; samples are over the whole space.
            context: a value for each `Context` of the space, for which the answer is.

        Returns:
            A `Belief`, or a `FrontBelief` if there are several objectives.
        """
        given = self.space.check_context(context)
        answers, told, problem = self._answers(given, tried=tried), self._told(), self.problem
        decode = self._decoder(given)
        if problem.goal == "front":
            return FrontBelief.of(answers.sets(), answers, problem, decode, told)
        return Belief.of(answers.belief(), answers, problem, decode, told)

    @_locked
    def done(self, stop: Stop, *, context: Mapping[str, Any] | None = None) -> bool:
        """Whether the search is over: hardly anything is left to be won.

        It costs no more than a belief, and next to nothing while the samples of the last ask show
        that the end is far off; `belief().chance(gap)` always computes it. A search is never over
        before the first design is, while a value is in doubt or, with constraints, while the
        recommendation is not likely to meet them.

        Args:
            stop: how little may be left, and how likely that has to be.
            context: a value for each `Context` of the space, for which the answer is.

        Returns:
            True if it is over.

        Raises:
            ValueError: if there are several objectives.
        """
        fixed = self.space.columns_of(self.space.check_context(context))
        return self._session.done(self._history.data(), check_stop(stop), fixed=fixed)

    @_locked
    def until(self, stop: Stop, *, context: Mapping[str, Any] | None = None) -> int | None:
        """About how many more trials it takes until the search is over; 0 once it is.

        It simulates searches of sampled functions. This is a rough guide: right within a factor of
        three in about four of five cases (`optpair bench forecasts`). Pending trials count among
        them.

        Args:
            stop: how little may be left, and how likely that has to be.
            context: a value for each `Context` of the space, for which the answer is.

        Returns:
            A number of trials; None if nothing can be said: if it would take more than 50, before
            the first design is over, while a value is in doubt, with constraints or a `Fidelity`,
            or if trials are not chosen by a model.

        Raises:
            ValueError: if there are several objectives.
        """
        fixed = self.space.columns_of(self.space.check_context(context))
        return self._session.until(self._history.data(), check_stop(stop), fixed=fixed)

    @_locked
    def predict(self, params: Sequence[Mapping[str, Any]]) -> Any:
        """Predict the noiseless value at some points, told or not.

        Args:
            params: a dict per point, with every parameter and every context. A `Fidelity` that is
                left out is at its target.

        Returns:
            A `Prediction`, or a dict of them by the outcomes' names if there are several.
        """
        if isinstance(params, Mapping) or not isinstance(params, Sequence):
            raise TypeError(
                "params must be a list of dicts, one per point (of a pandas table: "
                f"table.to_dict('records')), not {params!r}"
            )
        targets = self.space.targets
        rows = [self.space.encode({**targets, **point} if targets else point) for point in params]
        X = np.array(rows, float).reshape(len(rows), self.space.layout.dimensions)
        estimates = self._answers({}).predict_all(X)
        pairs = zip(self.problem.outcomes.items(), estimates, strict=True)
        found = {name: Prediction(*own.times(outcome.sign)) for (name, outcome), own in pairs}
        return found if len(found) > 1 else next(iter(found.values()))

    @_locked
    def borrowed(self) -> dict[str, dict[str, Lending]]:
        """How much each earlier study contributes, by outcome and by the study's name.

        `explains` is the share of the present function's variance, at the trials, that the study's
        rows explain alone; `alike` is the share of its own variance that it has in common with the
        present function. `used` is how many of its rows the model uses, of `rows` in all.
        """
        return self._answers({}).borrowed()

    @_locked
    def model(self) -> Model:
        """The conditioned model: a posterior per outcome, standardised, and the scaling of each.

        `model.objective.posterior` is what `optpair.acquisition` and `optpair.optima` take.
        """
        return self._answers({}).model

    @_locked
    def report(
        self,
        path: str | Path,
        *,
        name: str = "optpair",
        tried: bool = False,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write a report: one HTML file that needs nothing else.

        Args:
            path: the file.
            name: the heading.
            tried: whether to recommend one of the told trials, as `recommend(tried=True)`.
            context: a value for each `Context` of the space, for which the answers are; by default
                that of the last told trial.

        Returns:
            What the report says, as JSON: the path, the recommendation (with several objectives,
            the front), and more.
        """
        from optpair import report  # late: a search may end without a page

        if self.problem.goal != "best":
            return report.write(self.joint_subject(name=name, tried=tried, context=context), path)
        return report.write(self.subject(name=name, tried=tried, context=context), path)

    def _reported(self, context: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The context of a page: what is given, or that of the last told trial."""
        told = self._told()
        if context is None and told and self.space.contexts:
            last = told[-1].actual
            context = {name: last[name] for name in self.space.contexts}
        return self.space.check_context(context)

    @_locked
    def subject(
        self,
        *,
        name: str = "optpair",
        answers: bool = True,
        tried: bool = False,
        context: Mapping[str, Any] | None = None,
    ) -> Subject:
        """The subject of a report: the trials as they are now, and the model's answers.

        Args:
            name: the heading.
            answers: whether to ask the model, which takes some seconds.
            tried: as in `report`.
            context: as in `report`.

        Raises:
            ValueError: if there are several outcomes: see `joint_subject`.
        """
        if self.problem.goal != "best":
            raise ValueError(
                "subject is for one objective without constraints; Optimizer.report writes the "
                "page of several outcomes"
            )
        from optpair import report

        asked = None
        if answers and self._history.count("told"):
            asked = self._answers(self._reported(context), tried=tried)
        model = report.Modelled(self.space, self._session.engine.initial, asked)
        step = next(iter(self.space.targets), "step")
        rows = report.rows_of(self._history)
        (outcome,) = self.problem.objectives
        return report.Subject(name, self.problem.objective, rows, model, step=step, outcome=outcome)

    @_locked
    def joint_subject(
        self,
        *,
        name: str = "optpair",
        answers: bool = True,
        tried: bool = False,
        context: Mapping[str, Any] | None = None,
    ) -> JointSubject:
        """The subject of a report on several outcomes; see `subject`."""
        from optpair import report

        measured = self._history.measured()
        asked = None
        if answers and all(measured[o] for o in self.problem.objectives):
            asked = self._answers(self._reported(context), tried=tried)
        model = report.Modelled(self.space, self._session.engine.initial, asked)
        rows = report.joint_rows_of(self._history)
        return report.JointSubject(name, self.problem, rows, model)

    @_locked
    def save(self, path: str | Path) -> None:
        """Write everything that exact continuation needs, as JSON, in one atomic step.

        Args:
            path: the file, which is replaced if it exists.

        Raises:
            FileExistsError: if somebody else has changed the file since this optimizer loaded or
                saved it; then it stays as it is.
        """
        self._copies.write(path, documents.dumps(self._to_json()))

    @classmethod
    def load(cls, path: str | Path) -> Optimizer:
        """The optimiser that `save` wrote; it continues as the saved one would have.

        Args:
            path: the file.

        Returns:
            The optimiser, with all its trials.

        Raises:
            ValueError: if the file is damaged, or of another version of the format.
        """
        copies = Copies()
        document = documents.loads(copies.read(path), path)
        with documents.blame(path):
            loaded = cls._from_json(document)
        loaded._copies = copies
        return loaded

    def _answers(self, context: Mapping[str, Any], *, tried: bool = False) -> Answers:
        """The model of an answer in a context, which is checked."""
        if self._history.count("told") == 0:
            failed = self._history.count("failed")
            extra = f": all {failed} that ended have failed" if failed else ""
            raise ValueError(f"no trial has a value yet{extra}; tell at least one value first")
        measured = self._history.measured()
        missing = [name for name in self.problem.objectives if not measured[name]]
        if missing:
            raise ValueError(
                f"no trial has a value of {missing[0]!r} yet, which is an objective; tell at least "
                "one value of it first"
            )
        fixed = self.space.columns_of(context)
        answers = self._session.answers(self._history.data(), fixed=fixed)
        return replace(answers, only_tried=tried)

    def _told(self) -> list[Trial]:
        """The trials of the rows of data."""
        return [trial for trial in self._history if trial.state == "told"]

    def __reduce__(self) -> tuple[Callable[..., Optimizer], tuple[dict[str, Any]]]:
        with self._lock.now:
            return Optimizer._from_json, (self._to_json(),)

    def _to_json(self) -> dict[str, Any]:
        earlier = [study.to_json() for study in self._session.earlier]
        return {
            **documents.session_to_json(self._session),
            "asked": self._asked,
            "memory": self._session.to_json(),
            **self._history.to_json(),
            **({"earlier": earlier} if earlier else {}),
        }

    @classmethod
    def _from_json(cls, document: Mapping[str, Any]) -> Optimizer:
        history = History.from_json(document)
        earlier = document.get("earlier", ())
        optimizer = cls(
            history.space,
            outcomes=history.problem.outcomes,
            earlier=[EarlierStudy.from_json(study, history.problem) for study in earlier],
            **documents.session_from_json(document),
        )
        optimizer._history = history
        optimizer._asked = documents.as_count(document["asked"])
        optimizer._session.restore(document["memory"], history.measured())
        return optimizer


def _values(trial: Trial) -> dict[str, tuple[float, ...]]:
    """Every value that was measured in a trial."""
    looks = enumerate(trial.seen)
    return {f"{i} {name}": m.values for i, look in looks for name, m in look.outcomes.items()}
