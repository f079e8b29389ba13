"""Readers of studies: what is modelled of a study, and what was read of it before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from optpair.earlier import read_earlier
from optpair.engine.session import Session
from optpair.integrations.optuna.attributes import (
    ACTUAL,
    COST,
    NOISE_VAR,
    actual_of,
    has_bad_cost,
)
from optpair.integrations.optuna.conditions import Learnt, Shown, learn_from
from optpair.integrations.optuna.model import StudyModel
from optpair.integrations.optuna.options import Options
from optpair.integrations.optuna.outcomes import Bounds, StudyOutcomes, constraint_keys
from optpair.integrations.optuna.private import bracket_of, identity
from optpair.integrations.optuna.space import to_parameter
from optpair.integrations.optuna.steps import Steps
from optpair.problem.outcomes import meant
from optpair.problem.problem import Problem

_LOST, _COST = ("lost",), ("cost",)
"""Keys of warnings that are given once."""

_log = optuna.logging.get_logger("optuna.optpair")


def _left_out(trials: Sequence[FrozenTrial], model: StudyModel) -> str:
    """What to say of trials whose values the model cannot use: which, and why the first is one."""
    first, more = trials[0], len(trials) - 1
    wrong, others = model.misnamed(first), f" and {more} more like it" if more else ""
    why = f"it has no parameter {wrong[0]!r}" if wrong else model.domain.refusal(model.ran(first))
    said = f" ({ACTUAL})" if actual_of(first) else ""
    return f"The model leaves out trial {first.number}{others}{said}: {why or 'it was pruned'}."


class NothingSharedError(ValueError):
    """A study without a parameter that can be modelled."""

    def __init__(self, study: Study) -> None:
        super().__init__(
            f"study {study.study_name!r} has no parameter that all completed trials share: there "
            "is nothing to recommend"
        )


class StudyReader:
    """Reads one study at a time, and keeps what it has read; threads may share it, by its lock."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.lock = threading.RLock()
        self._study: tuple[Any, int] | None = None
        self._turn_to(None)

    def _turn_to(self, study: Study | None) -> Any:
        """Forget what belongs to another study. Returns the bracket, where a pruner has some.

        Optuna shows each of Hyperband's brackets as a study of its own, with its trials alone.
        """
        same = None if study is None else identity(study)
        if same is None or same != self._study:
            self._study = same
            self.models: dict[Any, StudyModel] = {}
            self._seen: dict[Any, tuple[tuple[int, int], Shown]] = {}
            self._checked = False
            self.prunes = False
            self._said: set[str | tuple[str]] = set()  # parameters by name, and other warnings
        return bracket_of(study)

    def answering(self, study: Study) -> tuple[StudyModel, Callable[[np.ndarray], dict[str, Any]]]:
        """The model of a study, and what decodes its points: all that is modelled or constant."""
        self.check(study)
        modelled = self.modelled(study)
        if not modelled:
            raise NothingSharedError(study)
        model = self.read(study, modelled)
        if not model.told():
            raise ValueError(f"no trial of study {study.study_name!r} has a value yet")
        missing = model.unmeasured()
        if missing:
            raise ValueError(
                f"no trial of study {study.study_name!r} has a value of {missing[0]!r} yet, which "
                "is an objective"
            )
        domain = model.domain
        order = dict.fromkeys(name for trial in model.told() for name in trial.params)

        def decode(x: np.ndarray) -> dict[str, Any]:
            params = domain.decode(x)
            params |= domain.constants(params)
            return {name: params[name] for name in (*order, *params) if name in params}

        return model, decode

    def check(self, study: Study) -> None:
        """Refuse a study that the options are not for, at its first trial."""
        if self._checked and identity(study) == self._study:
            return
        count, noise = len(study.directions), self.options.noise
        outcomes = self.outcomes(study)
        if noise and count > 1 and outcomes.declared is None:
            raise ValueError(
                f"noise={noise:g} is for one objective, and study {study.study_name!r} has "
                f"{count}; leave it out, or set the user attribute {NOISE_VAR!r} of trials to a "
                "dict by the objectives' names"
            )
        if outcomes.declared is None:
            _check_names(self.options.bounds, study, outcomes)
        if outcomes.declared is not None or count > 1:
            self.options.check(outcomes.all)
        with self.lock:
            self._turn_to(study)
            self._checked = True

    def outcomes(self, study: Study, keys: Collection[str] = ()) -> StudyOutcomes:
        """The outcomes of a study; the keys are of the constraints that some trials have."""
        return StudyOutcomes.of(study, keys, self.options.noise, self.options.bounds)

    def modelled(self, study: Study) -> dict[str, BaseDistribution]:
        """The distributions of the parameters that are modelled."""
        return self.options.domain(self.distributions(study)).distributions

    def distributions(self, study: Study) -> dict[str, BaseDistribution]:
        """What ended trials show, or what was given."""
        if self.options.given is not None:
            return dict(self.options.given.distributions)
        with self.lock:
            return self._shown(study).distributions

    def _shown(self, study: Study) -> Shown:
        """The parameters and conditions that trials show, where no search space was given."""
        if self.options.given is not None:
            return Shown({}, {})
        trials = _telling(study)
        whole = [trial for trial in trials if trial.state == TrialState.COMPLETE]
        key, count = self._turn_to(study), (len(trials), len(whole))
        known = self._seen.get(key)
        if known is None or known[0] != count:
            known = self._seen[key] = count, learn_from(trials, whole)
        return known[1]

    def left_out(self, study: Study) -> dict[str, str]:
        """Parameters of ended trials that are not modelled, and why."""
        known = self.distributions(study)
        given = self.options.given is not None
        why: dict[str, str] = {}
        for trial in _telling(study):
            for name, d in trial.distributions.items():
                if name not in known:
                    why[name] = (
                        "not in search_space"
                        if given
                        else "not in all trials, or not with the same distribution"
                    )
                elif to_parameter(d) is None and not d.single():
                    why[name] = "too fine for the model"
        return why

    def read(self, study: Study, distributions: Mapping[str, BaseDistribution]) -> StudyModel:
        """The study as it is now. What was read before is kept while the space stays the same."""
        bracket = self._turn_to(study)
        model = self.models.get(bracket)
        known = self.distributions(study)
        known = {n: d for n, d in known.items() if n in distributions or d.single()}
        learnt = {n: own for n, own in self._shown(study).conditions.items() if n in known}
        steps = self._steps(study)
        same = model is not None and model.domain.learnt == learnt and model.steps == steps
        if model is None or not same or model.domain.distributions != distributions:
            model = self._model(known, learnt, self.outcomes(study), steps)
        new = model.unread(study)
        keys = constraint_keys(new) | model.outcomes.constraints.keys()
        outcomes = self.outcomes(study, keys)
        if outcomes != model.outcomes:  # a constraint that no trial had before, or other names
            model = self._model(known, learnt, outcomes, steps)
            new = model.unread(study)
        self.models[bracket] = model
        model.read(new)
        lost = [trial for trial in new if trial.values and model.trials[trial.number] is None]
        if lost:
            self._warn_once(_LOST, _left_out(lost, model))
        for trial in new:
            if has_bad_cost(trial):
                self._warn_once(
                    _COST,
                    f"Trial {trial.number}'s {COST} is ignored, as are others like it: it must be "
                    f"a finite number above 0, not {trial.user_attrs[COST]!r:.80}.",
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
        options = self.options
        domain = options.domain(
            known,
            limits=options.limits,
            guesses=options.guesses,
            learnt=learnt,
            steps=steps if len(outcomes.objectives) == 1 and options.may_look else None,
        )
        belief = options.belief and domain.with_names(options.belief)
        problem = Problem(domain.space, outcomes.all, belief)
        earlier = read_earlier(options.earlier, problem)
        session = Session(problem, seed=options.seed, earlier=earlier, **options.engine)
        return StudyModel(domain, outcomes, session, steps=steps, averages=options.averages)

    def _steps(self, study: Study) -> Steps | None:
        """The steps of a whole trial, where trials report them and some are or may be pruned."""
        trials = study.get_trials(deepcopy=False)
        pruned = any(t.state == TrialState.PRUNED and t.intermediate_values for t in trials)
        return Steps.of(trials) if pruned or self.prunes else None

    def _warn_once(self, key: tuple[str], message: str) -> None:
        if key not in self._said:
            self._said.add(key)
            _log.warning(message)

    def say_independent(self, study: Study, name: str, distribution: BaseDistribution) -> None:
        """Warn once that a parameter is not modelled, but not before a trial has ended."""
        with self.lock:
            self._turn_to(study)
            if name in self._said:
                return
            if to_parameter(distribution) is not None:
                if name in self.distributions(study) or not _telling(study):
                    return
                why = (
                    "not every trial has it, with the same distribution. A parameter inside an "
                    "`if` is modelled once trials show on which discrete parameter it depends; "
                    "search_space=Space(..., when=...) says so from the start"
                )
            else:
                why = f"{distribution} is too fine for the model"
            self._said.add(name)
            _log.warning(f"JESSampler samples {name!r} independently: {why}.")


def _check_names(bounds: Bounds, study: Study, outcomes: StudyOutcomes) -> None:
    """Bounds are of the only objective, or of objectives by name."""
    names = list(outcomes.objectives)
    if isinstance(bounds, tuple) and len(names) > 1:
        raise ValueError(
            f"bounds={bounds} are for one objective, and study {study.study_name!r} has "
            f"{len(names)}; give a dict like {{{names[0]!r}: {bounds}}}"
        )
    for name in bounds if isinstance(bounds, Mapping) else ():
        if name not in names:
            known = ", ".join(map(repr, names))
            raise ValueError(
                f"bounds has {name!r}, and the objectives of study {study.study_name!r} are "
                f"called {known}{meant(name, names)}"
            )


def _telling(study: Study) -> list[FrozenTrial]:
    """The trials that tell which parameters there are: complete, or pruned after a report.

    One that was pruned without any may have ended before it asked for all of its parameters.
    """
    ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    return [t for t in ended if t.state == TrialState.COMPLETE or t.intermediate_values]
