"""The model of one Optuna study: its trials as they were read, and the session about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from optpair.engine.answers import Answers
from optpair.engine.going_on import goes_on
from optpair.engine.session import PRUNE, Session
from optpair.integrations.optuna.attributes import (
    actual_of,
    continues,
    cost_of,
    known_params,
    read_trials,
    revisions,
    state,
)
from optpair.integrations.optuna.outcomes import StudyOutcomes
from optpair.integrations.optuna.space import Domain
from optpair.integrations.optuna.steps import STEP, Steps, variance_of_one
from optpair.problem.problem import Problem
from optpair.trials.data import Data
from optpair.trials.trial import Look, Measurement, Trial

_ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
_OUT = (TrialState.RUNNING, TrialState.WAITING)


@dataclass
class StudyModel:
    """What is known of one study: the trials that were read, and the session that models them."""

    domain: Domain
    outcomes: StudyOutcomes
    session: Session
    trials: dict[int, Trial | None] = field(default_factory=dict)
    points: dict[int, np.ndarray] = field(default_factory=dict)
    revised: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    steps: Steps | None = None
    """Those of whole trials, whether they are modelled or not."""
    averages: bool = False
    """Whether what trials report are running means."""
    continued: dict[int, int] = field(default_factory=dict)
    """From the number of a trial that continues another to the number of that one."""
    ends: dict[int, int] = field(default_factory=dict)
    """The step of each trial's last look, where steps are modelled."""

    @property
    def problem(self) -> Problem:
        """The modelled parameters, and the study's outcomes."""
        return self.session.problem

    def unread(self, study: Study) -> list[FrozenTrial]:
        """The trials that have ended or were revised since the last time."""
        before, self.revised = self.revised, revisions(study)
        trials = read_trials(study, _ENDED, self.revised)
        known = {n for n in self.trials if self.revised.get(n) == before.get(n)}
        if len(known) < len(self.trials):
            self.session.forget()  # chains that followed a wrong value start anew
        return [trial for trial in trials if trial.number not in known]

    def read(self, trials: Iterable[FrozenTrial]) -> None:
        """Take note of trials that have ended."""
        for trial in trials:
            self.trials[trial.number] = self._ended(trial)
            before = continues(trial)
            if before is not None:
                self.continued[trial.number] = before

    def _ended(self, trial: FrozenTrial) -> Trial | None:
        """None for what teaches nothing: a lost worker, no value, or a point outside the domain.

        A parameter that the objective did not ask for this time has its suggested value.
        """
        x, became = self.point(trial), state(trial)
        if x is None or became not in ("told", "failed"):
            return None
        if self.domain.steps is not None and became == "told":
            return self._looked_at(trial, trial.number)
        if self.steps is not None and trial.state == TrialState.PRUNED and trial.values:
            return None  # its last value is not a final one
        self.points[trial.number] = x
        found = self.outcomes.measured(trial) if became == "told" else None
        more: dict[str, Any] = {"cost": cost_of(trial), "told_params": _told_params(trial)}
        if found is None:  # infinite values too: Optuna accepts them
            return Trial(trial.number, dict(trial.params), "failed", **more)
        return Trial(trial.number, dict(trial.params), "told", found, **more)

    def point(self, trial: FrozenTrial, step: int | None = None) -> np.ndarray | None:
        """Where a trial was run; None where that is not known, or nothing that is modelled.

        One that has ended may have been run anywhere: between levels, say, by `enqueue_trial`.
        """
        if self.misnamed(trial):
            return None
        return self.domain.encode(self.ran(trial), step, anywhere=trial.state.is_finished())

    def ran(self, trial: FrozenTrial) -> dict[str, Any]:
        """The modelled parameters as a trial was run with them, as far as they are known."""
        return known_params(trial, self.domain.distributions) | actual_of(trial)

    def misnamed(self, trial: FrozenTrial) -> list[str]:
        """Names of what was really run that are no parameters of the trial."""
        return [name for name in actual_of(trial) if name not in trial.params]

    def _looked_at(self, trial: FrozenTrial, number: int) -> Trial | None:
        """A trial with what it reported on the way; one that did not end counts as it was last."""
        steps, ran = self.domain.steps, _told_params(trial)
        assert steps is not None
        (name,) = self.outcomes.objectives
        looks = {n: {name: Measurement(v)} for n, v in steps.looks(trial).items()}
        if trial.state == TrialState.COMPLETE:
            ended = self.outcomes.measured(trial)
            x = self.point(trial)
            if ended is None and x is not None:
                self.points[number] = x
                return Trial(number, dict(trial.params), "failed", told_params=ran)
            if ended is not None:
                looks[steps.count] = ended
        last = max(looks, default=None)
        if trial.state == TrialState.PRUNED and last is not None:
            limits = self.outcomes.measured(trial) or {}
            looks[last] = {**limits, **looks[last]}
        point = None if last is None else self.point(trial, last)
        if last is None or point is None:
            return None
        self.points[number], self.ends[number] = point, last
        before = tuple(Look({STEP: n}, own) for n, own in looks.items() if n < last)
        told, params = looks[last], dict(trial.params)
        return Trial(number, params, "told", told, told_params=ran, looks=before)

    def has_read(self, trial: FrozenTrial) -> bool:
        """Whether this model has seen the trial as it is: one that ended since is not known yet."""
        return trial.number in self.trials or not trial.state.is_finished()

    def told(self) -> list[Trial]:
        """The trials that gave a value, in order."""
        return [trial for trial in self.runs() if trial.state == "told"]

    def runs(self) -> list[Trial]:
        """The trials that were read, in order; looks at one run are one trial, the last of them.

        What was seen before a trial was continued is among its looks.
        """
        names = () if self.domain.steps is not None else tuple(self.problem.space.targets)
        found: dict[int, Trial] = {}
        for number in sorted(self.trials):
            trial, before = self.trials[number], found.get(self.continued.get(number, -1))
            if trial is None:
                continue
            if names and before is not None and before.state == trial.state == "told":
                at = {name: before.params[name] for name in names}
                seen = [look._replace(at={**at, **look.at}) for look in before.seen]
                trial = replace(trial, looks=(*seen, *trial.looks))
                del found[before.id]
            found[number] = trial
        return list(found.values())

    def resting(
        self, study: Study, continuable: Callable[[FrozenTrial], bool]
    ) -> list[tuple[int, FrozenTrial]]:
        """The told trials that can be taken up again, each with its place among all told ones.

        None of them is at the target, and nobody has tried to go on from it: whoever has may be at
        it now, or has failed.
        """
        trials = study.get_trials(deepcopy=False)
        tried = {continues(t) for t in trials if state(t) not in ("stale", "cancelled")}
        targets, found = self.problem.space.targets, []
        for place, own in enumerate(self.told()):
            trial = trials[own.id]
            whole = all(own.params.get(name) == target for name, target in targets.items())
            if not whole and own.id not in tried and continuable(trial):
                found.append((place, trial))
        return found

    def unmeasured(self) -> list[str]:
        """The objectives of which no trial has a value yet."""
        told = self.told()
        return [o for o in self.outcomes.objectives if not any(o in t.outcomes for t in told)]

    def data(self, study: Study, but: int = -1, *, running: bool = False) -> Data:
        """The arrays that the engine sees; trial `but` is the one that is asked for.

        With `running`, what trials that are under way have reported is among them.
        """
        known, points = self.runs(), dict(self.points)
        for trial in study.get_trials(deepcopy=False, states=_OUT):
            params = known_params(trial, self.domain.distributions)
            x = None if trial.number == but else self.domain.encode(params)
            if x is not None:
                known.append(Trial(trial.number, params))
                points[trial.number] = x
        if running and self.domain.steps is not None:
            known += self._running(study)
        if self.averages and self.domain.steps is not None:
            known = self._with_noise(study, known, self.domain.steps.count)
        return Data.of(self.problem, known, points | self.points)

    def _with_noise(self, study: Study, known: list[Trial], whole: int) -> list[Trial]:
        """The same trials, with the noise of running means where it was not told.

        That of whole trials is inferred: all folds together have each row once, and so differ less
        between trials than as many independent values would.
        """
        variance = variance_of_one(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
        (name,) = self.outcomes.objectives
        if variance is None or self.outcomes.objectives[name].noise is not None:
            return known

        def noisy(found: Mapping[str, Measurement], steps: int) -> dict[str, Measurement]:
            own = found[name]
            told = steps >= whole or own.noise_var is not None or own.replicates
            return {**found, name: own if told else own._replace(noise_var=variance / steps)}

        return [
            trial
            if name not in trial.outcomes or trial.id not in self.ends
            else replace(
                trial,
                outcomes=noisy(trial.outcomes, self.ends[trial.id]),
                looks=tuple(
                    look._replace(outcomes=noisy(look.outcomes, int(look.at[STEP])))
                    for look in trial.looks
                ),
            )
            for trial in known
        ]

    def _running(self, study: Study) -> list[Trial]:
        """What trials that are under way have reported; they are pending as well."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        found = [self._looked_at(trial, -1 - trial.number) for trial in trials]
        return [trial for trial in found if trial is not None]

    def goes_on(self, study: Study, trial: FrozenTrial, complete: int) -> bool:
        """Whether a trial that has just reported is worth continuing."""
        steps, domain = self.domain.steps, self.domain
        ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if steps is None or len(ended) < complete:
            return True
        last = max(steps.looks(trial), default=steps.count)
        further = [level for level in steps.levels if level > last]
        params = known_params(trial, domain.distributions)
        points = [domain.encode(params, n) for n in (last, *further)]
        if last not in steps.levels or not further or any(x is None for x in points):
            return True
        if not any(self._names(trial) == self._names(whole) for whole in ended):
            return True  # nobody knows how a trial of its branch ends
        session, data = self.session, self.data(study, trial.number, running=True)
        stream = session.stream(PRUNE, trial.number).child(last)
        here, *others = [x for x in points if x is not None]
        given = {name: params[name] for name in self.problem.space.contexts}
        engine = session.engine_at(domain.columns(given))
        return goes_on(engine, stream, session.memory, data, here, np.array(others))

    def _names(self, trial: FrozenTrial) -> frozenset[str]:
        """The parameters that a trial has, which say on which branch of the space it is."""
        return frozenset({**known_params(trial, self.domain.distributions), **trial.params})

    def answers(self, study: Study, context: Mapping[str, Any] | None = None) -> Answers:
        """What can be asked of the model now, where some parameters are given.

        Raises:
            TypeError: if the context is not a dict.
            ValueError: if it has something else than legal values of modelled parameters, or lacks
                a `Context`.
        """
        return self.session.answers(self.data(study), fixed=self.fixed(context))

    @property
    def last_context(self) -> dict[str, Any] | None:
        """That of the trial that was told last; None where there is none."""
        told = self.told()
        if not told or not self.problem.space.contexts:
            return None
        return {name: told[-1].params[name] for name in self.problem.space.contexts}

    def fixed(self, context: Mapping[str, Any] | None) -> dict[int, float]:
        """The columns of the given values, at least one for each `Context`; see `answers`."""
        space, names = self.problem.space, list(self.domain.distributions)
        if context is None:
            return space.columns_of(space.check_context(None))
        if not isinstance(context, Mapping):
            raise TypeError(f"context must be a dict like {{{names[0]!r}: …}}, not {context!r:.80}")
        for name in context:
            if name not in names:
                raise ValueError(
                    f"context has {name!r}, which is not modelled; there are "
                    f"{', '.join(map(repr, names))}"
                )
        if space.contexts:
            space.check_context({name: v for name, v in context.items() if name in space.contexts})
        fixed = self.domain.columns(context)
        if context and not fixed:
            raise ValueError(
                f"context {dict(context)!r:.80} cannot be fixed: a value is not legal, or the "
                "study has conditional parameters"
            )
        return fixed


def _told_params(trial: FrozenTrial) -> dict[str, Any] | None:
    """All parameters as they were really run, where that was told."""
    actual = actual_of(trial)
    return {**trial.params, **actual} if actual else None
