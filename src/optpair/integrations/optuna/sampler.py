"""The sampler: `optuna.create_study(sampler=JESSampler(seed=0))`.

It is a thin shell over a `Session`: it reads a study as trials, and writes down what it suggests
where other processes see it.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import FrozenTrial, TrialState

from optpair import report
from optpair.earlier import list_earlier, read_earlier
from optpair.engine.session import Session, Way, region_of
from optpair.engine.settings import Settings
from optpair.found import Belief, Recommendation
from optpair.front import Front, FrontBelief, reference_of
from optpair.gp.hyperparameters import Hyperparameters
from optpair.integrations.optuna.attributes import (
    FAILED,
    FORGOTTEN,
    NOISE_VAR,
    enqueued,
    is_enqueued,
    publish,
    read_trials,
    set_system_attribute,
)
from optpair.integrations.optuna.conditions import Learnt, alike, learn
from optpair.integrations.optuna.model import StudyModel
from optpair.integrations.optuna.options import (
    check_function,
    check_guesses,
    check_limits,
    check_names,
)
from optpair.integrations.optuna.outcomes import MET, StudyOutcomes, constraint_keys
from optpair.integrations.optuna.private import (
    bracket_of,
    broken_off,
    identity,
    set_constraints,
)
from optpair.integrations.optuna.rows import is_known, joint_row, row_of
from optpair.integrations.optuna.space import Domain, SearchSpace, to_parameter
from optpair.integrations.optuna.steps import Steps
from optpair.problem.defaults import ACQUISITION
from optpair.problem.limits import Where
from optpair.problem.outcomes import Objective, Outcome
from optpair.problem.problem import VALUE, Problem
from optpair.problem.space import Float, Parameter, Space
from optpair.problem.stop import Stop, check_stop
from optpair.report import JointSubject, Subject
from optpair.streams import check_seed

__all__ = ["NOISE_VAR", "JESSampler"]

_LOST = ("lost",)
"""The key of a warning that is given once."""

_log = optuna.logging.get_logger("optuna.optpair")


class NothingSharedError(ValueError):
    """A study without a parameter that can be modelled."""

    def __init__(self, study: Study) -> None:
        super().__init__(
            f"study {study.study_name!r} has no parameter that all completed trials share: there "
            "is nothing to recommend"
        )


class JESSampler(BaseSampler):
    """Suggests the trial that says most about the optimum of a study.

    Examples:
        >>> import optuna
        >>> from optpair.integrations.optuna import JESSampler
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=JESSampler(seed=0))
        >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=2)
        >>> len(study.trials)
        2

    Modelled are the parameters that all completed trials share, with the same distribution, and
    those that are there only with some values of a discrete one: which these are is learnt from
    the trials. The others are sampled independently, and that is said once.

    Trials that are running, in this process or another, are pending points; enqueued ones too. A
    trial that failed lowers the chance of success around it; one whose worker died teaches nothing.
    Where trials were pruned, all that trials have reported (`trial.report`) is modelled as looks at
    them: a pruned one counts as what it was at its last step, and not at all where it reported
    nothing; what is recommended is for the last step of completed trials. See `JESPruner`.
    The variance of one value's noise, where it is known, is the trial's user attribute `NOISE_VAR`.

    A study may have several objectives, and constraints, which `trial.set_constraint` or
    `constraints_func` sets: a value of at most 0 meets one. Objectives have the names of
    `study.set_metric_names`, or else `"0"`, `"1"` and so on (`"value"` where there is only one);
    constraints have their own, those of `constraints_func` `"constraint 0"` and so on.

    Threads may share a sampler; processes make their own.

    Args:
        seed: any non-negative int. The same seed gives the same study, run from its start by one
            worker. Workers of one study should share it: each trial number has its own stream of
            randomness, and the first trials then are one space-filling design. None draws one.
        search_space: the distributions, where they are known beforehand: the first trials then
            fill the space, instead of being sampled independently. Parameters like
            `optpair.Float(0, 1)` stand for distributions, and an `optpair.Space` for all of them:
            what is there only with others (`when`), limits, guesses and rows are then known too.
        ordinals: names of categorical parameters whose choices are numbers in order, as
            `suggest_categorical("batch", [16, 32, 64])`: they are modelled as an `Ordinal`.
        where: limits, as in `optpair.Space`; they need the `search_space`. Enqueued trials may
            break them.
        guess: where you believe the optimum is, a value for each of some parameters; `sure` are
            the chances that it is about there, as in `optpair.Float`, for those not 0.7.
        sure: see `guess`.
        independent_sampler: for what is not modelled; at random by default.
        constraints_func: as Optuna's own samplers have it: a function of a trial that has ended
            with a value, which returns a list of numbers, each of at most 0 where the trial meets
            that constraint. Optuna's way since version 5 is `trial.set_constraint`.
        noise: as in `optpair.Optimizer`: `noise=0` where the values of all objectives are exact.
            Another number is for a study with one objective. Trials with `NOISE_VAR` have their
            own: a number or, by the outcomes' names, a dict. The noise of constraints is inferred.
        acquisition: as in `optpair.Optimizer`.
        hyperparameters: as in `optpair.Optimizer`.
        settings: as in `optpair.Optimizer`.
        earlier: as in `optpair.Optimizer`: other studies, files or tables that may be alike.
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
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        noise: float | None = None,
        acquisition: str | Callable[..., Any] = ACQUISITION,
        hyperparameters: Way | Hyperparameters = "marginal",
        settings: Settings | None = None,
        earlier: Iterable[Any] = (),
    ) -> None:
        self._seed = secrets.randbits(63) if seed is None else check_seed(seed)
        self._given = None if search_space is None else SearchSpace.of(search_space)
        self._ordinals = check_names(ordinals)
        self._limits = check_limits(where, self._given)
        self._guesses = check_guesses(guess, sure, self._given_space)
        self._independent = independent_sampler
        self._constraints_func = check_function(constraints_func)
        self._noise = Objective(noise=noise).noise
        self._options: dict[str, Any] = {
            "acquisition": acquisition,
            "hyperparameters": hyperparameters,
            "settings": settings,
        }
        self._earlier = list_earlier(earlier)
        limited = {} if constraints_func is None else {"constraint 0": MET}
        self.check_outcomes({VALUE: Objective(), **limited})
        self._domain(self._given_space or {}, guesses=self._guesses)
        self._lock = threading.RLock()
        self._study: tuple[Any, int] | None = None
        self._turn_to(None)

    @property
    def _given_space(self) -> dict[str, BaseDistribution] | None:
        """The distributions, where they were given."""
        return None if self._given is None else dict(self._given.distributions)

    def _domain(self, known: Mapping[str, BaseDistribution], **more: Any) -> Domain:
        """The modelled parameters among some."""
        if self._given is None:
            return Domain(known, self._ordinals, **more)
        own, shelf = self._given.parameters, self._given.shelf
        return Domain(known, self._ordinals, given=own, shelf=shelf, **more)

    def check_outcomes(self, outcomes: Mapping[str, Outcome]) -> None:
        """Refuse options that are wrong for such outcomes now, not at the first suggestion."""
        known = self._options["hyperparameters"]
        d = known.parameters if isinstance(known, Hyperparameters) else 1
        space = Space({f"x{i}": Float(0.0, 1.0) for i in range(d)})
        Session(Problem(space, outcomes), seed=self._seed, **self._options)
        if not self._limits:
            return
        if self._given_space is None:
            raise ValueError(
                "where needs search_space: without it the first trials are sampled before the "
                "space is known, and may break a limit; give the distributions"
            )
        region_of(self._domain(self._given_space, limits=self._limits).space)

    def _turn_to(self, study: Study | None) -> Any:
        """Forget what belongs to another study. Returns the bracket, where a pruner has some.

        Optuna shows each of Hyperband's brackets as a study of its own, with its trials alone.
        """
        same = None if study is None else identity(study)
        if same is None or same != self._study:
            self._study = same
            self._shared: dict[Any, IntersectionSearchSpace] = defaultdict(IntersectionSearchSpace)
            self._models: dict[Any, StudyModel] = {}
            self._conditions: dict[Any, tuple[int, Learnt]] = {}
            self._checked = False
            self._prunes = False
            self._said: set[str | tuple[str]] = set()  # parameters by name, and other warnings
        return bracket_of(study)

    def __getstate__(self) -> dict[str, Any]:
        kept = (
            "_seed",
            "_given",
            "_ordinals",
            "_limits",
            "_guesses",
            "_independent",
            "_constraints_func",
            "_noise",
            "_options",
            "_earlier",
        )
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._turn_to(None)

    def reseed_rng(self) -> None:
        """Nothing to do here: every trial number has its own stream of randomness."""
        if self._independent is not None:
            self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that are modelled."""
        self._check(study)
        return self._domain(self._distributions(study)).distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The engine's suggestion, which other processes can see from now on."""
        self._check(study)
        if not search_space or is_enqueued(trial, search_space):
            return {}
        with self._lock:
            model = self._read(study, search_space)
            seen = model.data(study, but=trial.number, running=True)
            given = {} if self._limits else enqueued(trial)
            fixed = model.domain.columns(given)
            x = model.session.suggest(seen, trial.number, share=not fixed, fixed=fixed)
            params = model.domain.decode(x)
            publish(study, trial, params, search_space)
            return params

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A value for a parameter that is not modelled, or not yet."""
        self._check(study)
        self._say(study, param_name, param_distribution)
        guess = {name: own for name, own in self._guesses.items() if name == param_name}
        if guess and trial.number == 0:  # as the first trial of any other search
            self._domain({param_name: param_distribution}, guesses=guess)  # which checks it
            return guess[param_name][0]
        sampler = self._independent
        if sampler is None:
            text = f"{self._seed}:{trial.number}:{param_name}"
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
        if self._given is None or not self._given.once:
            return False
        with self._lock:
            self._check(study)
            model = self._read(study, self._domain(self._distributions(study)).distributions)
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
            study: any study, whoever sampled it.
            reference: as in `Optimizer.recommend`, for several objectives.
            context: values of some parameters that are given, and not chosen: the answer is for
                these. Trials are, where `study.enqueue_trial({"site": "A"})` gives them.

        Returns:
            A `Recommendation`, or a `Front` where there are several objectives.
        """
        with self._lock:
            model, decode = self._answering(study)
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
            return replace(found, left_out=self._left_out(study))

    def belief(self, study: Study) -> Any:
        """Samples of where the optimum is and what it is worth, and what is still unknown.

        Returns:
            A `Belief`, or a `FrontBelief` where there are several objectives.
        """
        with self._lock:
            model, decode = self._answering(study)
            answers, told, problem = model.answers(study), model.told(), model.problem
            found: Belief | FrontBelief
            if problem.goal == "front":
                found = FrontBelief.of(answers.sets(), answers, problem, decode, told)
            else:
                found = Belief.of(answers.belief(), answers, problem, decode, told)
            named: Any = replace(found.recommendation, left_out=self._left_out(study))
            return replace(found, recommendation=named)

    def done(self, study: Study, stop: Stop) -> bool:
        """Whether a study is over: hardly anything is left to be won; see `Optimizer.done`."""
        check_stop(stop)
        with self._lock:
            self._check(study)
            modelled = self._domain(self._distributions(study)).distributions
            if not modelled:
                return False
            model = self._read(study, modelled)
            return model.session.done(model.data(study), stop)

    def report(self, study: Study, path: str | Path, *, name: str | None = None) -> dict[str, Any]:
        """Write a page of HTML on a study, whoever sampled it; see `Optimizer.report`.

        `name` is its heading, the study's name by default.
        """
        return report.write(self.subject(study, name=name), path)

    def subject(
        self, study: Study, *, name: str | None = None, answers: bool = True
    ) -> Subject | JointSubject:
        """What a page on a study is about; see `Optimizer.subject`.

        Returns:
            A `JointSubject` where the study has several objectives, or constraints.
        """
        with self._lock:
            self._check(study)
            known = self._distributions(study)
            modelled = self._domain(known).distributions
            own = self._read(study, modelled) if modelled else None
            outcomes = StudyOutcomes.of(study, (), self._noise) if own is None else own.outcomes
            several = len(outcomes.all) > 1
            if several and own is None:
                raise NothingSharedError(study)
            model = None
            if own is not None:
                single = own.domain.constants({})
                asked = own.answers(study) if answers and not own.unmeasured() else None
                initial, choices = own.session.engine.initial, own.domain.choices
                model = report.Model(own.domain.space, initial, asked, choices, single)
            trials = read_trials(study, revised=None if own is None else own.revised)
            heading = study.study_name if name is None else name
            if several and own is not None and model is not None:
                joint = tuple(joint_row(t, own) for t in trials if own.has_read(t))
                return JointSubject(heading, own.problem, joint, model)
            rows = tuple(row_of(t, own, outcomes) for t in trials if is_known(t, own))
            (objective,) = outcomes.objectives.values()
            return Subject(heading, objective, rows, model, self._left_out(study))

    def _answering(self, study: Study) -> tuple[StudyModel, Callable[[np.ndarray], dict[str, Any]]]:
        """The model of a study, and what decodes its points: all that is modelled or constant."""
        self._check(study)
        known = self._distributions(study)
        modelled = self._domain(known).distributions
        if not modelled:
            raise NothingSharedError(study)
        model = self._read(study, modelled)
        if not model.told():
            raise ValueError(f"no trial of study {study.study_name!r} has a value yet")
        missing = model.unmeasured()
        if missing:
            raise ValueError(
                f"no trial of study {study.study_name!r} has a value of {missing[0]!r} yet, which "
                "is an objective"
            )
        domain = model.domain

        def decode(x: np.ndarray) -> dict[str, Any]:
            params = domain.decode(x)
            return params | domain.constants(params)

        return model, decode

    def _check(self, study: Study) -> None:
        """Refuse a study that the options are not for, at its first trial."""
        if self._checked and identity(study) == self._study:
            return
        count, outcomes = len(study.directions), StudyOutcomes.of(study, (), self._noise)
        if self._noise and count > 1 and outcomes.declared is None:
            raise ValueError(
                f"noise={self._noise:g} is of one objective, and study {study.study_name!r} has "
                f"{count}; leave it out, or set the user attribute {NOISE_VAR!r} of trials to a "
                "dict by the objectives' names"
            )
        if outcomes.declared is not None or count > 1:
            self.check_outcomes(outcomes.all)
        with self._lock:
            self._turn_to(study)
            self._checked = True

    def _distributions(self, study: Study) -> dict[str, BaseDistribution]:
        """What all completed trials share, or what was given."""
        if self._given is not None:
            return dict(self._given.distributions)
        with self._lock:
            shared = self._shared[self._turn_to(study)].calculate(study)
            learnt = self._learnt(study)
            if not learnt:
                return shared
            ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            found = alike(ended)
            return dict(sorted((shared | {name: found[name] for name in learnt}).items()))

    def _learnt(self, study: Study) -> Learnt:
        """The conditions that completed trials show, where no search space was given."""
        if self._given is not None:
            return {}
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        key, count = self._turn_to(study), len(trials)
        known = self._conditions.get(key)
        if known is None or known[0] != count:
            known = self._conditions[key] = count, learn(trials, alike(trials))
        return known[1]

    def _left_out(self, study: Study) -> dict[str, str]:
        """Parameters of completed trials that are not modelled, and why."""
        known = self._distributions(study)
        given = self._given is not None
        why: dict[str, str] = {}
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            for name, d in trial.distributions.items():
                if name not in known:
                    why[name] = "not in search_space" if given else "not in all trials alike"
                elif to_parameter(d) is None and not d.single():
                    why[name] = "too fine for the model"
        return why

    def _read(self, study: Study, distributions: Mapping[str, BaseDistribution]) -> StudyModel:
        """The study as it is now. What was read before is kept while the space stays the same."""
        bracket = self._turn_to(study)
        model = self._models.get(bracket)
        known = self._distributions(study)
        known = {n: d for n, d in known.items() if n in distributions or d.single()}
        learnt = {n: own for n, own in self._learnt(study).items() if n in known}
        steps = self._steps(study)
        same = model is not None and model.domain.learnt == learnt and model.steps == steps
        if model is None or not same or model.domain.distributions != distributions:
            model = self._model(known, learnt, StudyOutcomes.of(study, (), self._noise), steps)
        new = model.unread(study)
        keys = constraint_keys(new) | model.outcomes.constraints.keys()
        outcomes = StudyOutcomes.of(study, keys, self._noise)
        if outcomes != model.outcomes:  # a constraint that no trial had before, or other names
            model = self._model(known, learnt, outcomes, steps)
            new = model.unread(study)
        self._models[bracket] = model
        model.read(new)
        lost = [t.number for t in new if t.values and model.trials[t.number] is None]
        if lost:
            self._warn_once(
                _LOST,
                f"JESSampler leaves out trial {lost[0]}, and those like it: it has no value, or "
                "one outside the search space, of a parameter that is modelled.",
            )
        return model

    def _model(
        self,
        known: Mapping[str, BaseDistribution],
        learnt: Learnt,
        outcomes: StudyOutcomes,
        steps: Steps | None,
    ) -> StudyModel:
        """A model that has read no trial yet."""
        domain = self._domain(
            known,
            limits=self._limits,
            guesses=self._guesses,
            learnt=learnt,
            steps=steps if len(outcomes.all) == 1 and self._may_look else None,
        )
        problem = Problem(domain.space, outcomes.all)
        earlier = read_earlier(self._earlier, problem)
        session = Session(problem, seed=self._seed, earlier=earlier, **self._options)
        return StudyModel(domain, outcomes, session, steps=steps)

    def _steps(self, study: Study) -> Steps | None:
        """The steps of a whole trial, where trials report them and some are or may be pruned."""
        trials = study.get_trials(deepcopy=False)
        pruned = any(t.state == TrialState.PRUNED and t.intermediate_values for t in trials)
        return Steps.of(trials) if pruned or self._prunes else None

    @property
    def _may_look(self) -> bool:
        """Known hyperparameters are of the parameters alone."""
        return not isinstance(self._options["hyperparameters"], Hyperparameters)

    def goes_on(self, study: Study, trial: FrozenTrial, complete: int) -> bool:
        """Whether a trial that has just reported is to go on; see `JESPruner`.

        Always before so many trials are complete.
        """
        with self._lock:
            self._check(study)
            self._prunes = True
            modelled = self._domain(self._distributions(study)).distributions
            if not modelled:
                return True
            return self._read(study, modelled).goes_on(study, trial, complete)

    def _warn_once(self, key: tuple[str], message: str) -> None:
        if key not in self._said:
            self._said.add(key)
            _log.warning(message)

    def _say(self, study: Study, name: str, distribution: BaseDistribution) -> None:
        """Say once that a parameter is not modelled; before a trial has ended that is no news."""
        with self._lock:
            self._turn_to(study)
            if name in self._said:
                return
            if to_parameter(distribution) is not None:
                shared = self._distributions(study)
                ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
                if name in shared or not ended:
                    return
                why = (
                    "not all completed trials have it with the same distribution; inside an `if` "
                    "it is modelled once trials show what it depends on"
                )
            else:
                why = f"{distribution} is too fine for the model"
            self._said.add(name)
            _log.warning(f"JESSampler samples {name!r} independently: {why}.")
