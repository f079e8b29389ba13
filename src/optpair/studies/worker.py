"""One worker: ask, evaluate, tell, until the study has its evaluations.

Workers know of each other only through the storage. One that is killed leaves a running trial
behind, which the others find stale after a while and forget.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from types import FrameType
from typing import Any

from optuna import Study, Trial
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.exceptions import OptunaError
from optuna.trial import FrozenTrial, create_trial

from optpair.integrations.optuna.attributes import (
    CONTINUES,
    continues,
    set_system_attribute,
    set_user_attribute,
)
from optpair.integrations.optuna.private import ask_with
from optpair.studies import control, lifecycle
from optpair.studies.checkpoints import CHECKPOINT, checkpoint, doubled
from optpair.studies.config import StudyFile
from optpair.studies.endings import Ending, Endings
from optpair.studies.lifecycle import BEAT, WORKER, Watch, forget
from optpair.studies.objective import Evaluate, evaluator
from optpair.studies.results import Result, brief, kept, values_of
from optpair.studies.spaces import StudySpace
from optpair.studies.storage import first_line, retry, storage_errors

Say = Callable[[str], None]
Told = Callable[[int, Result], None]

OVER = "optpair:over"
"""The attribute of a study that [stop] has ended: what it said."""

PAUSED = "Paused. Resume with optpair resume, or on the page of optpair watch."
SHORTEST = 1e-6  # seconds that an evaluation takes at least
PATIENT = 130
"""Tries to store a value while the storage is away: an hour."""


class Interrupts:
    """Whether to stop: after the first Ctrl-C, when the trial has ended; after the second, now.

    SIGTERM means now.
    """

    def __init__(self, say: Say, parent: int | None = None) -> None:
        self._say, self._parent = say, parent
        self._event = threading.Event()

    def __bool__(self) -> bool:
        orphaned = self._parent is not None and os.getppid() != self._parent
        return self._event.is_set() or orphaned

    def wait(self, seconds: float) -> None:
        """Sleep, or until stopped."""
        self._event.wait(seconds)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM or self._event.is_set():
            raise KeyboardInterrupt
        self._event.set()
        self._say("Finishing the running trial; press Ctrl-C again to abandon it.")

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take Ctrl-C and SIGTERM while this lasts, and what was held back before."""
        before = {n: signal.signal(n, self._interrupt) for n in (signal.SIGINT, signal.SIGTERM)}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def work(
    file: StudyFile,
    study: Study,
    stop: Interrupts,
    say: Say,
    told: Told = lambda *_: None,
    endings: Endings | None = None,
    context: Mapping[str, Any] | None = None,
) -> Ending:
    """Evaluate trials until the study has its evaluations, or until something ends the run.

    `told` is called with a trial's number and result when they are in the storage. `context` is
    given with every trial: a value for each context of the study.
    """
    context = context or {}
    evaluate = evaluator(file)
    endings = endings or Endings(study, file)
    watch, pause = Watch(file.stale_after), min(1.0, file.stale_after / 4)
    was_paused = False
    while not stop:
        trials, orders = look(study, watch, stop, say), control.read(study)
        counts = lifecycle.count(trials)
        if lifecycle.ended(counts) >= file.evaluations or _over(file, study, say, context):
            return Ending("complete")
        ending = endings.reached(orders, trials)
        if ending is not None:
            return ending
        if orders.paused != was_paused:
            was_paused = orders.paused
            say(PAUSED if was_paused else "Resumed.")
        if was_paused:
            stop.wait(min(pause, endings.left))
        elif lifecycle.ended(counts) + lifecycle.out(counts) < file.evaluations:
            _one(file, study, evaluate, say, told, context)
        elif counts["running"]:
            stop.wait(min(pause, endings.left))  # they may yet die
        else:
            return Ending("complete")  # the rest is in people's hands
    return Ending("interrupted")


def is_over(file: StudyFile, study: Study) -> bool:
    """Whether a worker has found that [stop] ends the study; it holds while the file says it."""
    if file.stop is None:
        return False
    return retry(lambda: study.user_attrs).get(OVER) == asdict(file.stop)


def _over(file: StudyFile, study: Study, say: Say, context: Mapping[str, Any]) -> bool:
    """Whether [stop] ends the study; where this worker finds that, all others are told."""
    stop = file.stop
    if stop is None or is_over(file, study):
        return stop is not None
    done = getattr(study.sampler, "done", None)
    if done is None or not retry(lambda: done(study, stop, context=context or None)):
        return False
    retry(lambda: study.set_user_attr(OVER, asdict(stop)))
    say(f"the study is over: {stop}")
    return True


def look(study: Study, watch: Watch, stop: Interrupts, say: Say) -> list[FrozenTrial]:
    """All trials, after the stale ones have been forgotten.

    Where this worker has not looked for a while, its machine or the storage may have been at rest,
    and the others with it: they get the time for a beat.
    """
    trials = lifecycle.trials(study)
    dead = watch.stale(trials)
    if dead and watch.slept:
        stop.wait(watch.patience / 2)
        trials = lifecycle.trials(study)
        dead = watch.stale(trials)
    for trial in dead:
        retry(lambda trial=trial: forget(study, trial, "stale"))  # type: ignore[misc]
        say(f"trial {trial.number}: stale, its worker is gone")
    return lifecycle.trials(study) if dead else trials


def ask(study: Study, context: Mapping[str, Any]) -> Trial:
    """A new trial, in a context where there is one."""
    return retry(lambda: ask_with(study, context) if context else study.ask())


def _one(
    file: StudyFile,
    study: Study,
    evaluate: Evaluate,
    say: Say,
    told: Told,
    context: Mapping[str, Any],
) -> None:
    """One trial, from ask to tell; cancelled where this worker is stopped in between."""
    trial = ask(study, context)
    try:
        with beating(trial, file.stale_after / 4):
            surplus = _surplus(study, trial.number, file.evaluations)
            params = {} if surplus else retry(lambda: suggest(trial, file.space))
            before = continues(trial)
            if surplus or doubled(study, trial, before):
                forget(study, _frozen(study, trial.number), "cancelled")
                return
            with checkpoint(file, study, trial, before) as folder:
                result = _timed(file, lambda: evaluate(params, trial.number, folder))
            stored = record(study, trial, file, params, result, say)
    except BaseException:
        with suppress(OptunaError, *storage_errors()):
            forget(study, study.get_trials(deepcopy=False)[trial.number], "cancelled")
        raise
    if not stored:
        return
    told(trial.number, result)
    failed = f"failed: {lifecycle.reason(result.problem)}"
    on = "" if before is None else f" (continues trial {before})"
    aside = f"; {result.problem}" if result.values and result.problem else ""
    say(f"trial {trial.number}: {brief(result.values) if result.values else failed}{on}{aside}")


def _timed(file: StudyFile, evaluate: Callable[[], Result]) -> Result:
    """A result, with its seconds as its cost where the budget is of seconds."""
    begun = time.perf_counter()
    result = evaluate()
    if file.budget is None or not file.budget.timed:
        return result
    return replace(result, cost=max(time.perf_counter() - begun, SHORTEST))


def suggest(trial: Trial, space: StudySpace) -> dict[str, Any]:
    """A value for every parameter that is there."""
    params: dict[str, Any] = {}
    for name in space.order:
        if space.conditions.holds(name, params):
            params[name] = _suggest(trial, name, space[name])
    return {name: params[name] for name in space if name in params}


def _suggest(trial: Trial, name: str, d: BaseDistribution) -> Any:
    if isinstance(d, CategoricalDistribution):
        return trial.suggest_categorical(name, d.choices)
    if isinstance(d, FloatDistribution):
        return trial.suggest_float(name, d.low, d.high, log=d.log, step=d.step)
    low, high, step, log = (getattr(d, key) for key in ("low", "high", "step", "log"))
    return trial.suggest_int(name, low, high, step=step, log=log)


def record(
    study: Study,
    trial: Trial,
    file: StudyFile,
    params: Mapping[str, Any],
    result: Result,
    say: Say = lambda _: None,
) -> bool:
    """Tell a result; whether it is stored. A storage that is away is waited for.

    Where others took this worker for dead and have ended its trial, the result becomes a trial of
    its own. If somebody ended it on purpose, what they told counts.
    """

    def tell() -> bool:
        try:
            end(study, trial, file, result)
        except storage_errors():
            raise
        except (OptunaError, ValueError):
            now = _frozen(study, trial.number)
            ended = lifecycle.state(now)
            if ended not in ("told", "failed", "cancelled", "stale"):
                raise
            if ended == "stale":
                add_trial(study, file, params, result, run_of=now)
            elif ended == "cancelled" or values_of(now, file) != result.values:
                say(f"{gave}, but somebody else has ended it meanwhile: it is {ended}")
                return False
        return True

    gave = f"trial {trial.number} gave {result}"
    try:
        return tell()
    except storage_errors() as error:
        say(f"{gave}, and waits for the storage, which is away: {first_line(error)}")
        try:
            return retry(tell, tries=PATIENT)
        except BaseException:
            say(f"{gave}, which could not be stored")
            raise


def add_trial(
    study: Study,
    file: StudyFile,
    params: Mapping[str, Any],
    result: Result,
    run_of: FrozenTrial | None = None,
) -> None:
    """Add a trial that was not asked for, or whose result came too late (`run_of`)."""
    to_keep = kept(result, file)
    run = {} if run_of is None else run_of.user_attrs
    run = {key: run[key] for key in (CONTINUES, CHECKPOINT) if key in run}
    new = create_trial(
        state=to_keep.state,
        params=dict(params),
        distributions={name: file.space[name] for name in params},
        values=to_keep.values,
        user_attrs=run | to_keep.user,
        system_attrs=to_keep.system,
    )
    retry(lambda: study.add_trial(new))


def end(study: Study, trial: Trial | FrozenTrial, file: StudyFile, result: Result) -> None:
    """Tell a result: attributes first, so that a reader who sees the trial ended sees all of it."""
    to_keep = kept(result, file)
    for key, value in to_keep.user.items():
        retry(lambda key=key, value=value: set_user_attribute(study, trial, key, value))  # type: ignore[misc]
    for key, value in to_keep.system.items():
        retry(lambda key=key, value=value: set_system_attribute(study, trial, key, value))  # type: ignore[misc]
    try:
        study.tell(trial.number, to_keep.values, state=to_keep.state)
    except storage_errors():  # it may have come through, and only the answer was lost
        if lifecycle.state(_frozen(study, trial.number)) not in ("told", "failed"):
            retry(lambda: study.tell(trial.number, to_keep.values, state=to_keep.state))


def _surplus(study: Study, number: int, evaluations: int) -> bool:
    """Whether earlier trials suffice: of workers that asked at once, the first go ahead."""
    earlier = retry(lambda: study.get_trials(deepcopy=False))[:number]
    counts = lifecycle.count(earlier)
    return lifecycle.ended(counts) + lifecycle.out(counts) >= evaluations


def _frozen(study: Study, number: int) -> FrozenTrial:
    return retry(lambda: study.get_trials(deepcopy=False))[number]


@contextmanager
def beating(trial: Trial, interval: float) -> Iterator[None]:
    """Give signs of life while a trial runs. What ends the trial stops them."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(interval):
            with suppress(OptunaError, *storage_errors()):  # ended by others, or away for a moment
                trial.set_user_attr(BEAT, time.time())

    retry(lambda: trial.set_user_attr(WORKER, f"{socket.gethostname()}:{os.getpid()}"))
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
