"""The sampler: `optuna.create_study(sampler=JESSampler(seed=0))`.

It is a thin shell over a `Session`: it reads a study as trials, and writes down what it suggests
where other processes see it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from optpair import report
from optpair.earlier import list_earlier, read_earlier
from optpair.engine.session import Way
from optpair.engine.settings import Settings
from optpair.gp.hyperparameters import Hyperparameters
from optpair.integrations.optuna.attributes import (
    CONTINUES,
    FAILED,
    FORGOTTEN,
    NOISE_VAR,
    enqueued,
    is_enqueued,
    known_params,
    publish,
    read_trials,
    set_system_attribute,
    set_user_attribute,
)
from optpair.integrations.optuna.model import StudyModel
from optpair.integrations.optuna.options import (
    Options,
    check_bounds,
    check_flag,
    check_function,
    check_guesses,
    check_limits,
    check_names,
)
from optpair.integrations.optuna.outcomes import MET
from optpair.integrations.optuna.private import (
    broken_off,
    set_constraints,
)
from optpair.integrations.optuna.reader import NothingSharedError, StudyReader
from optpair.integrations.optuna.rows import fidelity, is_known, joint_row, row_of
from optpair.integrations.optuna.space import SearchSpace
from optpair.integrations.optuna.steps import STEP
from optpair.problem.beliefs import Belief as Density
from optpair.problem.limits import Where
from optpair.problem.outcomes import Objective, Outcome
from optpair.problem.problem import VALUE, Problem
from optpair.problem.space import Parameter
from optpair.problem.stop import Stop, check_stop
from optpair.report import JointSubject, Subject
from optpair.results.best import Belief, Recommendation
from optpair.results.front import Front, FrontBelief, reference_of
from optpair.runtime.streams import check_seed

__all__ = ["NOISE_VAR", "JESSampler"]


class JESSampler(BaseSampler):
    """Suggests the trial that tells most about the optimum of a study.

    Examples:
        >>> import optuna
        >>> from optpair.integrations.optuna import JESSampler
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=JESSampler(seed=0))
        >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=2)
        >>> len(study.trials)
        2

    It models the parameters that all trials share, with the same distribution, and those that are
    active only with some values of a discrete one, which is learnt from the trials: completed ones,
    and those pruned after a report. The others are sampled independently, with one warning each.

    Trials that are running, in this process or another, or enqueued, are pending. A failed trial
    lowers the chance of success around it; one whose worker died teaches nothing. If trials were
    pruned, everything that trials have reported (`trial.report`) is modelled: a pruned one counts
    with its value at its last step, if it reported any; recommendations are for the last step of
    completed trials. See `JESPruner`. If you know the variance of a value's noise, set the trial's
    user attribute `NOISE_VAR`.

    A study may have several objectives, and constraints, set by `trial.set_constraint` or
    `constraints_func`: a value of at most 0 meets one. Objectives have the names of
    `study.set_metric_names`, or else `"0"`, `"1"` and so on (`"value"` if there is only one);
    constraints have their own names, those of `constraints_func` `"constraint 0"` and so on.

    Threads may share a sampler; processes make their own.

    Args:
        seed: any non-negative int. The same seed gives the same study, if one worker runs it from
            its start. Workers of one study should share it: each trial number has its own stream of
            randomness, and together the first trials are a space-filling design. None draws one.
        search_space: the distributions, if you know them beforehand: the first trials then fill the
            space, instead of being sampled independently. You can give parameters like
            `optpair.Float(0, 1)` instead of distributions, or a whole `optpair.Space`; then
            conditions (`when`), limits, guesses and rows are known, too.
        ordinals: names of categorical parameters whose choices are ordered numbers, as in
            `suggest_categorical("batch", [16, 32, 64])`: they are modelled as an `Ordinal`.
        where: limits, as in `optpair.Space`; they need the `search_space`. Enqueued trials may
            break them.
        guess: where you believe the optimum is: a value for some of the parameters.
        sure: the probability that each guess is about right, as in `optpair.Float`; 0.7 by default.
        belief: a function from a dict of parameters to the logarithm of a density of where the
            optimum is, up to a constant, as in `optpair.Optimizer`.
        independent_sampler: samples what is not modelled; at random by default.
        constraints_func: as in Optuna's own samplers: a function of a trial that has ended with a
            value, which returns a list of numbers, each at most 0 if the trial meets that
            constraint. Since Optuna 5, `trial.set_constraint` replaces it.
        noise: as in `optpair.Optimizer`: `noise=0` if the values of all objectives are exact.
            Another number is for a study with one objective. Trials with `NOISE_VAR` have their
            own: a number, or a dict by the outcomes' names. The noise of constraints is inferred.
        bounds: what the objective can never exceed, like (0, 1) for an accuracy, as in
            `optpair.Objective`: predictions stay within. Of several objectives, a dict by name.
        running_means: whether what `trial.report` tells are means of the values so far, as of the
            folds of a cross-validation: their noise then falls from step to step.
        acquisition: as in `optpair.Optimizer`.
        hyperparameters: as in `optpair.Optimizer`.
        settings: as in `optpair.Optimizer`.
        earlier: as in `optpair.Optimizer`: other studies, files or tables that may be related.
        continuable: a function of a completed trial: whether its run can be continued from a
            checkpoint. If the `search_space` has a `Fidelity`, a suggestion is then an earlier
            trial at a higher fidelity, if that gains most for the additional cost; the user
            attribute `CONTINUES` is the number of that trial.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        search_space: Mapping[str, BaseDistribution | Parameter] | None = None,
        ordinals: Collection[str] = (),
        where: Where = (),
        guess: Mapping[str, Any] | None = None,
        sure: Mapping[str, float] | None = None,
        belief: Density | None = None,
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        noise: float | None = None,
        bounds: tuple[float | None, float | None] | Mapping[str, Any] | None = None,
        running_means: bool = False,
        acquisition: str | Callable[..., Any] | None = None,
        hyperparameters: Way | Hyperparameters = "marginal",
        settings: Settings | None = None,
        earlier: Iterable[Any] = (),
        continuable: Callable[[FrozenTrial], bool] | None = None,
    ) -> None:
        known = None if search_space is None else SearchSpace.of(search_space)
        distributions = None if known is None else known.distributions
        options = Options(
            seed=secrets.randbits(63) if seed is None else check_seed(seed),
            given=known,
            ordinals=check_names(ordinals),
            limits=check_limits(where, known),
            guesses=check_guesses(guess, sure, distributions),
            noise=Objective(noise=noise).noise,
            bounds=check_bounds(bounds),
            averages=check_flag("running_means", running_means),
            engine={
                "acquisition": acquisition,
                "hyperparameters": hyperparameters,
                "settings": settings,
            },
            earlier=list_earlier(earlier),
            belief=check_function("belief", belief),
        )
        self._independent = independent_sampler
        self._constraints_func = check_function("constraints_func", constraints_func)
        self._continuable = check_function("continuable", continuable)
        limited = {} if constraints_func is None else {"constraint 0": MET}
        options.check({VALUE: Objective(), **limited})
        options.domain(options.distributions or {}, guesses=options.guesses)
        self._options, self._reader = options, StudyReader(options)

    def check_outcomes(self, outcomes: Mapping[str, Outcome]) -> None:
        """Refuse options that are wrong for such outcomes now, not at the first suggestion.

        Where the search space is known, earlier studies are read.
        """
        self._options.check(outcomes)
        given = self._options.distributions
        if given is not None and self._options.earlier:
            space = self._options.domain(given, limits=self._options.limits).space
            read_earlier(self._options.earlier, Problem(space, outcomes))

    def __getstate__(self) -> tuple[Any, ...]:
        return self._options, self._independent, self._constraints_func, self._continuable

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        options, self._independent, self._constraints_func, self._continuable = state
        self._options, self._reader = options, StudyReader(options)

    def reseed_rng(self) -> None:
        """Nothing to do here: every trial number has its own stream of randomness."""
        if self._independent is not None:
            self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that are modelled."""
        self._reader.check(study)
        return self._reader.modelled(study)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The engine's suggestion, which other processes can see from now on."""
        self._reader.check(study)
        if not search_space or is_enqueued(trial, search_space):
            return {}
        with self._reader.lock:
            model = self._reader.read(study, search_space)
            seen = model.data(study, but=trial.number, running=True)
            given, contexts = enqueued(trial), model.problem.space.contexts
            _check_given(given, contexts)
            if self._options.limits:  # which the others may break
                given = {name: given[name] for name in contexts}
            fixed = model.domain.columns(given)
            resting = self._resting(study, model)
            places = [place for place, _ in resting]
            x = model.session.suggest(seen, trial.number, share=True, fixed=fixed, resting=places)
            params, taken = model.domain.decode(x), model.session.info.continues
            params |= {name: given[name] for name in contexts}
            if taken is not None:
                before = resting[places.index(taken)][1]
                looks = {name: params[name] for name in model.problem.space.targets}
                params = {**known_params(before, search_space), **looks}
                set_user_attribute(study, trial, CONTINUES, before.number)
                trial.user_attrs[CONTINUES] = before.number  # what the objective sees of it
            publish(study, trial, params, search_space)
            return params

    def _resting(self, study: Study, model: StudyModel) -> list[tuple[int, FrozenTrial]]:
        """The trials that can be taken up again, with their places among the told ones."""
        if self._continuable is None or model.domain.steps is not None:
            return []
        return model.resting(study, self._continuable)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A value for a parameter that is not modelled, or not yet."""
        self._reader.check(study)
        self._reader.say_independent(study, param_name, param_distribution)
        guess = {name: own for name, own in self._options.guesses.items() if name == param_name}
        if guess and trial.number == 0:  # as the first trial of any other search
            self._options.domain({param_name: param_distribution}, guesses=guess)  # which checks it
            return guess[param_name][0]
        sampler = self._independent
        if sampler is None:
            text = f"{self._options.seed}:{trial.number}:{param_name}"
            digest = hashlib.sha256(text.encode()).digest()
            sampler = RandomSampler(seed=int.from_bytes(digest[:4], "little"))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Pass it on to the independent sampler."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Tell a failed objective from a lost worker, and write down what constraints are."""
        if state == TrialState.FAIL and FORGOTTEN not in trial.system_attrs:
            if broken_off():
                set_system_attribute(study, trial, FORGOTTEN, "cancelled")
            else:
                set_system_attribute(study, trial, FAILED, True)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            set_constraints(study, trial, self._constraints_func(trial))
        if self._exhausted(study):
            with suppress(RuntimeError):  # trials are asked for one by one, without `optimize`
                study.stop()

    def _exhausted(self, study: Study) -> bool:
        """Whether each row of a shelf may be tried once, and all have been or are out."""
        given = self._options.given
        if given is None or not given.once:
            return False
        with self._reader.lock:
            self._reader.check(study)
            model = self._reader.read(study, self._reader.modelled(study))
            return model.session.engine.spent(model.data(study, running=True))

    def recommend(
        self,
        study: Study,
        *,
        reference: Mapping[str, float] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The best predicted point of the modelled parameters, with its 95 % interval.

        Args:
            study: any study, sampled by this sampler or not.
            reference: as in `Optimizer.recommend`, for several objectives.
            context: values of parameters that are given, and not chosen: the answer is for these.
                For trials, give them by `study.enqueue_trial({"site": "A"})`. Every `Context` of
                the `search_space` must be among them.

        Returns:
            A `Recommendation`, or a `Front` if there are several objectives.
        """
        with self._reader.lock:
            model, decode = self._reader.answering(study)
            answers, told = model.answers(study, context), model.told()
            problem = model.problem
            found: Recommendation | Front
            if problem.goal == "front":
                front = answers.front(reference_of(reference, problem))
                found = Front.of(front, answers, problem, decode, told)
            elif reference is None:
                found = Recommendation.of(answers.recommend(), answers, problem, decode, told)
            else:
                raise ValueError("reference is for several objectives; there is only one here")
            return replace(found, left_out=self._reader.left_out(study))

    def doubted(self, study: Study) -> list[int]:
        """The numbers of the told trials whose values look like mistakes.

        They do not count until a repeat at the same point agrees; see `Recommendation.doubted`.
        """
        with self._reader.lock:
            model, _ = self._reader.answering(study)
            told = model.told()
            return [told[i].id for i in model.session.doubted(model.data(study))]

    def belief(self, study: Study, *, context: Mapping[str, Any] | None = None) -> Any:
        """Samples of where the optimum is and what it is worth, and what is still unknown.

        Args:
            study: any study, sampled by this sampler or not.
            context: as in `recommend`.

        Returns:
            A `Belief`, or a `FrontBelief` if there are several objectives.
        """
        with self._reader.lock:
            model, decode = self._reader.answering(study)
            answers, told = model.answers(study, context), model.told()
            problem = model.problem
            found: Belief | FrontBelief
            if problem.goal == "front":
                found = FrontBelief.of(answers.sets(), answers, problem, decode, told)
            else:
                found = Belief.of(answers.belief(), answers, problem, decode, told)
            named: Any = replace(found.recommendation, left_out=self._reader.left_out(study))
            return replace(found, recommendation=named)

    def done(self, study: Study, stop: Stop, *, context: Mapping[str, Any] | None = None) -> bool:
        """Whether a study is over: hardly anything is left to be won; see `Optimizer.done`.

        Args:
            study: any study, sampled by this sampler or not.
            stop: how little may be left, and how likely that has to be.
            context: as in `recommend`.

        Returns:
            True if it is over.
        """
        with self._reader.lock:
            model = self._judging(study, stop)
            if model is None:
                return False
            return model.session.done(model.data(study), stop, fixed=model.fixed(context))

    def until(
        self, study: Study, stop: Stop, *, context: Mapping[str, Any] | None = None
    ) -> int | None:
        """About how many more trials it takes until a study is over; see `Optimizer.until`.

        Args:
            study: any study, sampled by this sampler or not.
            stop: how little may be left, and how likely that has to be.
            context: as in `recommend`.

        Returns:
            A number of trials; None if nothing can be said.
        """
        with self._reader.lock:
            model = self._judging(study, stop)
            if model is None:
                return None
            return model.session.until(model.data(study), stop, fixed=model.fixed(context))

    def _judging(self, study: Study, stop: Stop) -> StudyModel | None:
        """The model that says whether a study is over; None where nothing is modelled."""
        check_stop(stop)
        self._reader.check(study)
        modelled = self._reader.modelled(study)
        return self._reader.read(study, modelled) if modelled else None

    def report(
        self,
        study: Study,
        path: str | Path,
        *,
        name: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write a report on a study, sampled by this sampler or not; see `Optimizer.report`.

        Args:
            study: any study, sampled by this sampler or not.
            path: the file.
            name: the heading, the study's name by default.
            context: what the answers are for; by default, if the `search_space` has a `Context`,
                that of the last told trial.

        Returns:
            What the report says, as JSON.
        """
        return report.write(self.subject(study, name=name, context=context), path)

    def subject(
        self,
        study: Study,
        *,
        name: str | None = None,
        answers: bool = True,
        context: Mapping[str, Any] | None = None,
    ) -> Subject | JointSubject:
        """The subject of a report on a study; see `Optimizer.subject`.

        Returns:
            A `JointSubject` if the study has several objectives, or constraints.
        """
        with self._reader.lock:
            self._reader.check(study)
            modelled = self._reader.modelled(study)
            own = self._reader.read(study, modelled) if modelled else None
            outcomes = own.outcomes if own else self._reader.outcomes(study)
            several = len(outcomes.all) > 1
            if several and own is None:
                raise NothingSharedError(study)
            model = None
            if own is not None:
                single = own.domain.constants({})
                context = own.last_context if context is None else context
                asked = own.answers(study, context) if answers and not own.unmeasured() else None
                initial, choices = own.session.engine.initial, own.domain.choices
                steps = "" if own.domain.steps is None else STEP
                model = report.Modelled(own.domain.space, initial, asked, choices, single, steps)
            trials = read_trials(study, revised=None if own is None else own.revised)
            runs = {} if own is None else {run.id: run for run in own.runs()}
            heading = study.study_name if name is None else name
            if several and own is not None and model is not None:
                joint = tuple(joint_row(t, own, runs) for t in trials if own.has_read(t))
                return JointSubject(heading, own.problem, joint, model)
            rows = tuple(row_of(t, own, outcomes, runs) for t in trials if is_known(t, own))
            ((outcome, objective),) = outcomes.objectives.items()
            step = (None if own is None else fidelity(own)) or "step"
            left_out = self._reader.left_out(study)
            return Subject(heading, objective, rows, model, left_out, step, outcome)

    def goes_on(self, study: Study, trial: FrozenTrial, complete: int) -> bool:
        """Whether a trial that has just reported should continue; see `JESPruner`.

        Always true before `complete` trials are complete.
        """
        with self._reader.lock:
            self._reader.check(study)
            self._reader.prunes = True
            modelled = self._reader.modelled(study)
            if not modelled:
                return True
            return self._reader.read(study, modelled).goes_on(study, trial, complete)


def _check_given(given: Mapping[str, Any], contexts: Sequence[str]) -> None:
    """A trial has its context before anything is chosen for it."""
    missing = [name for name in contexts if name not in given]
    if missing:
        example = ", ".join(f"{name!r}: …" for name in contexts)
        raise ValueError(
            f"the trial has no {', '.join(map(repr, missing))}, which is a Context: it is given, "
            f"and not chosen; study.enqueue_trial({{{example}}}) gives it"
        )
