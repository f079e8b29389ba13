"""Optuna: `optuna.create_study(sampler=JESSampler(seed=0))`.

The sampler is a thin shell over the engine: it reads a study as observations and pending points,
and writes down what it suggests where other processes see it.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

try:
    import optuna
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "JESSampler needs Optuna: pip install 'optpair[optuna]'", name="optuna"
    ) from error
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from optpair import report
from optpair.ahead import Ahead
from optpair.default import ACQUISITION, LARGEST
from optpair.engine import Engine, State
from optpair.gp.posterior import Hyperparameters
from optpair.history import Direction, Observations, Trial, check_noise_var
from optpair.integrations.domain import Domain, only_value, to_parameter
from optpair.integrations.marks import (
    FAILED,
    FORGOTTEN,
    NOISE_VAR,
    OUTPUT,
    is_enqueued,
    mark,
    publish,
    published,
    state,
)
from optpair.optimizer import (
    ANSWER,
    DESIGN,
    SUGGEST,
    Belief,
    Mode,
    Recommendation,
    check_acquisition,
    check_settings,
    make_belief,
    make_engine,
    make_recommendation,
    stream,
)
from optpair.runtime import check_seed
from optpair.settings import Settings

__all__ = ["NOISE_VAR", "JESSampler"]

_ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
_OUT = (TrialState.RUNNING, TrialState.WAITING)

_LOST, _BOUND = ("lost",), ("bound",)
"""Keys of warnings that are given once."""

_log = optuna.logging.get_logger("optuna.optpair")


@dataclass(frozen=True)
class _Row:
    """An ended trial as the engine sees it; no value means that the objective failed."""

    x: np.ndarray
    value: float | None
    noise_var: float | None


@dataclass
class _Desk:
    """What is known of one study: the rows that were read, and the engine's warm state."""

    domain: Domain
    engine: Engine
    sign: float
    rows: dict[int, _Row | None] = field(default_factory=dict)
    state: State = field(default_factory=State)

    def __post_init__(self) -> None:
        self.ahead = Ahead(self.engine)

    def read(self, study: Study) -> list[FrozenTrial]:
        """Read the trials that have ended since the last time, and return them."""
        trials = study.get_trials(deepcopy=False, states=_ENDED)
        new = [trial for trial in trials if trial.number not in self.rows]
        self.rows |= {trial.number: self._row(trial) for trial in new}
        return new

    def _row(self, trial: FrozenTrial) -> _Row | None:
        """None for what teaches nothing: a lost worker, no value, or a point outside the domain.

        A parameter that the objective did not ask for, this time, is where it was suggested.
        """
        x = self.domain.encode(published(trial, self.domain.distributions) or trial.params)
        value = trial.values[0] if trial.values else None
        if value is not None and not abs(value) <= LARGEST:  # infinite: Optuna accepts that
            value = None
        elif value is None and FAILED not in trial.system_attrs:
            return None
        return None if x is None else _Row(x, value, _noise_var(trial))

    def told(self) -> dict[int, _Row]:
        """The trials that gave a value, in order."""
        rows = ((n, row) for n, row in sorted(self.rows.items()) if row is not None)
        return {n: row for n, row in rows if row.value is not None}

    def observations(self, pending: Sequence[np.ndarray]) -> Observations:
        """The arrays that the engine sees."""
        told = list(self.told().values())
        failed = [row.x for row in self.rows.values() if row is not None and row.value is None]
        noise = [np.nan if row.noise_var is None else row.noise_var for row in told]
        return Observations(
            X=self._stack([row.x for row in told]),
            y=self.sign * np.array([row.value for row in told], dtype=np.float64),
            noise_var=np.array(noise, dtype=np.float64),
            pending=self._stack(pending),
            failed=self._stack(failed),
        )

    def pending(self, study: Study, but: int) -> list[np.ndarray]:
        """The points that are being evaluated, here or elsewhere, or are enqueued."""
        points = []
        for trial in study.get_trials(deepcopy=False, states=_OUT):
            params = published(trial, self.domain.distributions)
            if trial.number != but and params is not None:
                points.append(self.domain.encode(params))
        return [point for point in points if point is not None]

    def _stack(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.engine.cube.dimensions)


class JESSampler(BaseSampler):
    """Suggests the trial that says most about the optimum of a study.

    >>> import optuna
    >>> from optpair.integrations.optuna import JESSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=JESSampler(seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=2)
    >>> len(study.trials)
    2

    Modelled are the parameters that all completed trials share, with the same distribution; the
    others are sampled independently, and that is said once. Trials that are running, in this
    process or another, are pending points; enqueued ones too. A trial that failed lowers the
    chance of success around it; one whose worker died teaches nothing. A pruned trial counts with
    the last value it reported, and not at all where it reported none. The variance of a value's
    noise, where it is known, is the trial's user attribute `NOISE_VAR`.

    seed: any non-negative int. The same seed gives the same study, run from its start by one
        worker. Workers of one study should share it: each trial number has its own stream of
        randomness, and the first trials then are one space-filling design. None draws one.
    search_space: the distributions, where they are known beforehand: the first trials then fill
        the space, instead of being sampled independently.
    independent_sampler: for what is not modelled; at random by default.
    acquisition, hyperparameters, settings: as in `optpair.Optimizer`.

    A study has one objective. Threads may share a sampler; processes make their own.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        independent_sampler: BaseSampler | None = None,
        acquisition: str = ACQUISITION,
        hyperparameters: Mode | Hyperparameters = "marginal",
        settings: Settings | None = None,
    ) -> None:
        self._seed = secrets.randbits(63) if seed is None else check_seed(seed)
        self._given_space = None if search_space is None else dict(search_space)
        self._independent = independent_sampler
        self._acquisition = check_acquisition(acquisition)
        self._hyperparameters = hyperparameters
        self._settings = check_settings(settings)
        self._lock = threading.RLock()
        self._study: tuple[Any, int] | None = None
        self._turn_to(None)

    def _turn_to(self, study: Study | None) -> Any:
        """Forget what belongs to another study. Returns the bracket, where a pruner has some.

        Optuna shows each of Hyperband's brackets as a study of its own, with its trials alone.
        """
        same = None if study is None else (study._storage, study._study_id)
        if same is None or same != self._study:
            self._study = same
            self._shared: dict[Any, IntersectionSearchSpace] = defaultdict(IntersectionSearchSpace)
            self._desks: dict[Any, _Desk] = {}
            self._said: set[str | tuple[str]] = set()  # parameters by name, and other warnings
        return getattr(study, "_bracket_id", None)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_seed", "_given_space", "_independent", "_acquisition", "_hyperparameters")
        return {name: getattr(self, name) for name in (*kept, "_settings")}

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
        return Domain(self._distributions(study)).distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The engine's suggestion, which other processes can see from now on."""
        self._check(study)
        if not search_space or is_enqueued(trial, search_space):
            return {}
        with self._lock:
            desk = self._read(study, search_space)
            observations = desk.observations(desk.pending(study, but=trial.number))
            desk.ahead.now(observations)
            x, desk.state, _ = desk.engine.suggest(
                stream(self._seed, SUGGEST, trial.number),
                desk.state,
                observations,
                trial.number,
                stream(self._seed, DESIGN, 0),
            )
            params = desk.domain.decode(x)
            publish(study, trial, params, search_space)
            desk.ahead.later(observations)
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
        """Tell a failure of the objective from one that Optuna makes of a lost worker."""
        if state == TrialState.FAIL and FORGOTTEN not in trial.system_attrs:
            if _broken_off():
                mark(study, trial, FORGOTTEN, "cancelled")
            else:
                mark(study, trial, FAILED, True)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)

    def recommend(self, study: Study) -> Recommendation:
        """The best predicted point of the modelled parameters, with its 95 % interval."""
        with self._lock:
            desk, single = self._answering(study)
            best = desk.engine.recommend(*self._question(desk, study))
            found = make_recommendation(
                best, lambda x: desk.domain.decode(x) | single, desk.sign, _observed(desk, study)
            )
            return replace(found, left_out=self._left_out(study))

    def belief(self, study: Study) -> Belief:
        """Samples of where the optimum is and what it is worth, and what is still unknown."""
        with self._lock:
            desk, single = self._answering(study)
            pairs = desk.engine.belief(*self._question(desk, study))
            found = make_belief(
                pairs, lambda x: desk.domain.decode(x) | single, desk.sign, _observed(desk, study)
            )
            best = replace(found.recommendation, left_out=self._left_out(study))
            return replace(found, recommendation=best)

    def report(self, study: Study, path: str | Path, *, name: str | None = None) -> dict[str, Any]:
        """Write a page of HTML on a study, whoever sampled it; see `Optimizer.report`.

        `name` is its heading, the study's name by default.
        """
        with self._lock:
            self._check(study)
            known = self._distributions(study)
            modelled = Domain(known).distributions
            desk = self._read(study, modelled) if modelled else None
            model = None
            if desk is not None:
                key, state, _ = self._question(desk, study)
                single = {n: only_value(d) for n, d in known.items() if d.single()}
                choices = desk.domain.choices
                model = report.Model(desk.domain.space, desk.engine, state, key, choices, single)
            rows = tuple(_reported(t, desk) for t in study.get_trials(deepcopy=False))
            direction: Direction = (
                "minimize" if study.direction == StudyDirection.MINIMIZE else "maximize"
            )
            heading = study.study_name if name is None else name
            left_out = self._left_out(study)
            return report.write(report.Subject(heading, direction, rows, model, left_out), path)

    def _question(self, desk: _Desk, study: Study) -> tuple[Any, State, Observations]:
        key = stream(self._seed, ANSWER, len(desk.told()))
        return key, desk.state, desk.observations(desk.pending(study, but=-1))

    def _answering(self, study: Study) -> tuple[_Desk, dict[str, Any]]:
        """The desk, and the parameters that have one value."""
        self._check(study)
        known = self._distributions(study)
        modelled = Domain(known).distributions
        if not modelled:
            raise ValueError(
                f"study {study.study_name!r} has no parameter that all completed trials share: "
                "there is nothing to recommend"
            )
        desk = self._read(study, modelled)
        if not desk.told():
            raise ValueError(f"no trial of study {study.study_name!r} has a value yet")
        return desk, {name: only_value(d) for name, d in known.items() if d.single()}

    def _check(self, study: Study) -> None:
        if len(study.directions) != 1:
            raise ValueError(
                f"JESSampler is for one objective, and study {study.study_name!r} has "
                f"{len(study.directions)}; give it one direction, or use another sampler"
            )

    def _distributions(self, study: Study) -> dict[str, BaseDistribution]:
        """What all completed trials share, or what was given."""
        if self._given_space is not None:
            return self._given_space
        with self._lock:
            return self._shared[self._turn_to(study)].calculate(study)

    def _left_out(self, study: Study) -> dict[str, str]:
        """Parameters of completed trials that are not modelled, and why."""
        known = self._distributions(study)
        given = self._given_space is not None
        why: dict[str, str] = {}
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            for name, d in trial.distributions.items():
                if name not in known:
                    why[name] = "not in search_space" if given else "not in all trials alike"
                elif to_parameter(d) is None and not d.single():
                    why[name] = "too fine for the model"
        return why

    def _read(self, study: Study, distributions: Mapping[str, BaseDistribution]) -> _Desk:
        """The study as it is now. What was read before is kept while the space stays the same."""
        bracket = self._turn_to(study)
        desk = self._desks.get(bracket)
        if desk is None or desk.domain.distributions != distributions:
            domain = Domain(distributions)
            engine = make_engine(
                domain.space, self._acquisition, self._hyperparameters, self._settings
            )
            sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
            desk = self._desks[bracket] = _Desk(domain, engine, sign)
        new = desk.read(study)
        lost = [t.number for t in new if t.values and desk.rows[t.number] is None]
        if lost:
            self._warn_once(
                _LOST,
                f"JESSampler leaves out trial {lost[0]}, and those like it: it has no value, or "
                "one outside the search space, of a parameter that is modelled.",
            )
        bound = [t.number for t in new if t.constraints]
        if bound:
            self._warn_once(
                _BOUND,
                f"JESSampler ignores constraints, which trial {bound[0]} has: it may suggest and "
                "recommend what breaks them. Where a trial breaks one, raise an error that "
                "catch= names; it then counts as failed.",
            )
        return desk

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
                why = "not all completed trials have it with the same distribution"
            else:
                why = f"{distribution} is too fine for the model"
            self._said.add(name)
            _log.warning(f"JESSampler samples {name!r} independently: {why}.")


def _reported(trial: FrozenTrial, desk: _Desk | None) -> report.Row:
    """A trial as a page shows it."""
    params: dict[str, Any] = dict(trial.params)
    if desk is not None:  # what was not asked for, or not yet, is where it was suggested
        params |= published(trial, desk.domain.distributions) or {}
    value = trial.values[0] if trial.values else None
    finite = value is None or abs(value) <= LARGEST
    return report.Row(
        trial.number,
        state(trial) if finite else "failed",  # as the model takes it
        params,
        value,
        _noise_var(trial),
        str(trial.user_attrs.get(OUTPUT) or ""),
        None if desk is None else desk.domain.encode(params),
    )


def _observed(desk: _Desk, study: Study) -> Trial:
    """The best observed trial, as the library's own record."""
    told = desk.told()
    number = max(told, key=lambda n: desk.sign * float(told[n].value or 0.0))
    row, trial = told[number], study.get_trials(deepcopy=False)[number]
    return Trial(number, dict(trial.params), "told", row.value, row.noise_var)


def _broken_off() -> bool:
    """Whether the trial that is being told ends with the search: by Ctrl-C, or an error not caught.

    Optuna calls it failed all the same, and keeps what it knows of the error to itself.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_run_trial" and "func_err" in frame.f_locals:
            error, caught = frame.f_locals["func_err"], frame.f_locals.get("catch", ())
            return error is not None and not isinstance(error, caught)
    return False


def _noise_var(trial: FrozenTrial) -> float | None:
    given = trial.user_attrs.get(NOISE_VAR)
    if given is None:
        return None
    try:
        return check_noise_var(given)
    except (TypeError, ValueError) as error:
        _log.warning(f"Trial {trial.number}'s {NOISE_VAR} is not used: {error}.")
        return None
