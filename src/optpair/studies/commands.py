"""Commands on a study: each returns what it shows, as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna import Study
from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from optpair.integrations.optuna.attributes import BY_HAND, OUTPUT
from optpair.integrations.optuna.attributes import revise as write_revision
from optpair.problem.problem import VALUE
from optpair.studies import control, lifecycle, processes
from optpair.studies.answers import as_json, chosen, to_go
from optpair.studies.checkpoints import continuable
from optpair.studies.config import ENDLESS, StudyError, StudyFile
from optpair.studies.control import Order
from optpair.studies.doubts import doubted
from optpair.studies.endings import Ending, Endings
from optpair.studies.lifecycle import forget
from optpair.studies.lifecycle import trials as _trials
from optpair.studies.objective import KEPT
from optpair.studies.points import actual as read_actual
from optpair.studies.points import context as read_context
from optpair.studies.points import point
from optpair.studies.results import Result, best, checked, listed, spending, values_of
from optpair.studies.samplers import make_sampler
from optpair.studies.storage import AwayError, open_study, retry, shown, storage_errors
from optpair.studies.worker import Interrupts, Say, add_trial, end, is_over, suggest, work
from optpair.studies.worker import ask as ask_in

if TYPE_CHECKING:
    from optpair.integrations.optuna import JESSampler


TOLD = ("told", "failed")
"""States of trials that have a result."""

LAST = 3
"""Failures that `status` shows."""


ONLY = ""
"""The key for the only outcome, if a number was told without a name."""


class NothingYetError(StudyError):
    """No trial has a value."""


@dataclass(frozen=True)
class Ran:
    """How a run ended, and the study as it was opened, with a sampler that is warm.

    `finished`: a worker saw that all evaluations were made, or are out by hand.
    """

    ending: Ending
    finished: bool
    study: Study | None = None


def run(
    file: StudyFile,
    workers: int,
    say: Say,
    parent: int | None = None,
    *,
    seconds: float | None = None,
    keep_going: bool = False,
    stops: int | None = None,
    context: Sequence[str] = (),
) -> Ran:
    """Evaluate until the study has its evaluations, or until something else ends the run.

    Args:
        file: the study file.
        workers: how many processes evaluate.
        say: what takes a line for people.
        parent: the process that started this one as one of its workers.
        seconds: after which no trial is started any more.
        keep_going: whether first trials that all fail alike do not end the run.
        stops: orders to stop that were given before the parent's run.
        context: words like site=A, for each context of the study.
    """
    if file.objective is None:
        raise StudyError(f"{file.path.name} has no [objective]: use ask and tell")
    given = read_context(context, file.space)
    stop = Interrupts(say, parent)
    study, ending, finished = None, Ending("interrupted"), False
    with stop.listening():
        try:
            if workers == 1:
                sampler = make_sampler(file, continuable=continuable(file))
                study = open_study(file, sampler)
                endings = Endings(study, file, seconds, keep_going, stops)
                ending = work(file, study, stop, say, endings=endings, context=given)
                finished = ending.kind in ("complete", "spent")
            else:
                study = open_study(file)  # made here, so that they find it
                endings = Endings(study, file, seconds, keep_going)
                finished = processes.run(file, workers, stop, say, endings, context)
                ending = _ending(file, study, endings)
        except KeyboardInterrupt:
            return Ran(Ending("interrupted"), False, study)
        except StudyError as error:
            if not stop:
                raise
            say(str(error))  # what was interrupted may fail in any way
    if stop:
        return Ran(Ending("interrupted"), False, study)
    if ending.reason and parent is None:
        say(ending.reason)
    return Ran(ending, finished, study)


def _ending(file: StudyFile, study: Study, endings: Endings) -> Ending:
    """Why workers have ended, whose processes say only that they did."""
    try:
        trials, orders = _trials(study), control.read(study)
    except AwayError:
        return Ending("complete")  # trust what they saw
    if lifecycle.ended(lifecycle.count(trials)) >= file.evaluations:
        return Ending("complete")
    return endings.reached(orders, trials) or Ending("complete")


def order(file: StudyFile, wanted: Order) -> dict[str, Any]:
    """Give the study's workers an order, and say what they do now."""
    study = open_study(file, make=False)
    now = control.give(study, wanted)
    counts = lifecycle.count(_trials(study))
    return {"study": file.name, "paused": now.paused, "running": counts["running"]}


def status(file: StudyFile, study: Study | None = None) -> dict[str, Any]:
    """Counts, the best observed trial or front, the last failures and what is out.

    `study` is the one that `run` has opened, here and in `recommend`.
    """
    study = study or open_study(file, make=False)
    found = _trials(study)
    counts = lifecycle.count(found)
    failed = [trial for trial in found if lifecycle.state(trial) == "failed"]
    slips = doubted(file, study, found)
    sure = [trial for trial in found if trial.number not in slips]
    observed = [lifecycle.row(trial, file) for trial in best(sure, file)]
    return {
        "study": file.name,
        "storage": shown(file),
        **_wanted(file),
        "evaluations": None if file.evaluations == ENDLESS else file.evaluations,
        **spending(found, file),
        "ended": lifecycle.ended(counts),
        "over": str(file.stop) if is_over(file, study) else None,
        "counts": dict(counts),
        "paused": control.read(study).paused,
        "best_observed": observed if len(file.objectives) > 1 else next(iter(observed), None),
        "doubted": [lifecycle.row(found[number], file) for number in slips],
        "failures": [_failure(trial) for trial in failed[-LAST:]],
        "out": [
            lifecycle.row(t, file) for t in found if lifecycle.state(t) in ("running", "by hand")
        ],
    }


def _wanted(file: StudyFile) -> dict[str, Any]:
    """What is wanted: a direction, or a few words for each outcome."""
    words = {name: objective.direction for name, objective in file.objectives.items()}
    if not file.named:
        return {"direction": words[VALUE]}
    limits = {name: str(constraint) for name, constraint in file.constraints.items()}
    return {"outcomes": {name: (words | limits)[name] for name in file.outcomes}}


def _failure(trial: FrozenTrial) -> dict[str, Any]:
    return {"trial": trial.number, "reason": lifecycle.reason(trial.user_attrs.get(OUTPUT))}


def ask(file: StudyFile, n: int = 1, context: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Trials for people to run, good together. Each stays out until it is told or cancelled.

    There are fewer where each row of a shelf is tried once, and fewer are left. `context` is words
    like site=A, for each context of the study.
    """
    given = read_context(context, file.space)
    study = open_study(file, make_sampler(file))
    asked: list[dict[str, Any]] = []
    try:
        while len(asked) < n:
            asked.append(_ask(file, study, given))
    except BaseException as error:
        if isinstance(error, ValueError) and asked and file.space.shelf is not None:
            return asked
        for row in asked:  # nobody gets them
            with suppress(OptunaError, *storage_errors()):
                forget(study, study.get_trials(deepcopy=False)[row["trial"]], "cancelled")
        if isinstance(error, ValueError):  # every row of a shelf has been tried
            raise StudyError(str(error)) from error
        raise
    return asked


def _ask(file: StudyFile, study: Study, context: Mapping[str, Any]) -> dict[str, Any]:
    trial = ask_in(study, context)
    try:
        retry(lambda: trial.set_user_attr(BY_HAND, f"{os.environ.get('USER', '')}"))
        params = retry(lambda: suggest(trial, file.space))
    except BaseException:
        with suppress(OptunaError, *storage_errors()):
            forget(study, study.get_trials(deepcopy=False)[trial.number], "cancelled")
        raise
    labels = file.space.labels(params)
    return {"trial": trial.number, "params": params, **({"row": labels} if labels else {})}


@dataclass(frozen=True)
class Told:
    """What was told of a trial, before the outcomes' names are checked.

    Values and variances are by name, `ONLY` for the only outcome; several values of one were
    measured in turn. Without values it failed.
    """

    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    noise_var: Mapping[str, float] = field(default_factory=dict)
    message: str | None = None
    cost: float | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def result(self, file: StudyFile) -> Result:
        """What the study takes of it."""
        problem = (self.message or "")[-KEPT:]
        if not self.values:
            return Result(problem=problem, cost=self.cost, notes=self.notes)
        values, noise = (_named(given, file) for given in (self.values, self.noise_var))
        try:
            found = checked(values, noise or None, file)
            return replace(found, cost=self.cost, notes=self.notes)
        except ValueError as error:
            raise StudyError(str(error)) from error


def _named(given: Mapping[str, Any], file: StudyFile) -> dict[str, Any]:
    """Numbers by the names of their outcomes."""
    names = list(file.outcomes)
    if ONLY in given and len(names) > 1:
        number = given[ONLY] if isinstance(given[ONLY], float) else given[ONLY][0]
        raise StudyError(
            f"a number alone does not say which outcome it is: write {names[0]}={number:g}, "
            f"and likewise for {', '.join(names[1:])}"
        )
    return {name or names[0]: value for name, value in given.items()}


def tell(file: StudyFile, number: int, told: Told, actual: Sequence[str] = ()) -> dict[str, Any]:
    """Tell what a trial gave, or that it failed.

    `actual` is words like temperature=58.7: what was really run in place of what was asked for.
    """
    result = told.result(file)
    if actual:
        asked = _numbered(file, _trials(open_study(file, make=False)), number)
        ran = read_actual(actual, file.space, asked)
        result = replace(result, actual=ran)
    return _ended(file, number, lambda study, trial: end(study, trial, file, result), result.values)


def cancel(file: StudyFile, number: int) -> dict[str, Any]:
    """Forget a trial that was asked for."""
    return _ended(file, number, lambda s, t: retry(lambda: forget(s, t, "cancelled")), None)


def _ended(
    file: StudyFile,
    number: int,
    action: Callable[[Study, FrozenTrial], None],
    values: Mapping[str, float] | None,
) -> dict[str, Any]:
    """End a trial that is out; `values` are those that it then has, None if it is forgotten."""
    study = open_study(file, make=False)
    trial = _numbered(file, _trials(study), number)
    if trial.state != TrialState.RUNNING:
        raise _not_out(trial)
    wanted = "cancelled" if values is None else "told" if values else "failed"
    try:
        action(study, trial)
    except (UpdateFinishedTrialError, ValueError) as error:
        now = _trials(study)[number]  # it came through, and the answer was lost; or somebody else
        if (lifecycle.state(now), values_of(now, file)) != (wanted, values or {}):
            raise _not_out(now) from error
    return _told_row(file, study, number)


def _told_row(file: StudyFile, study: Study, number: int) -> dict[str, Any]:
    """A trial as JSON, and whether its value looks like a mistake."""
    found = _trials(study)
    row = lifecycle.row(found[number], file)
    return row | {"doubted": row["state"] == "told" and number in doubted(file, study, found)}


def tell_own(
    file: StudyFile, params: Sequence[str], told: Told, number: int | None = None
) -> dict[str, Any]:
    """Tell what a point of one's own gave, as a trial; without a value it failed.

    The point of a trial that is out by hand means that trial. `number` is the first of several
    values, if it may be meant as the number of a trial.
    """
    own, result = point(params, file.space), told.result(file)
    study = open_study(file)
    for trial in _trials(study):
        if lifecycle.state(trial) == "by hand" and trial.number == number:
            raise StudyError(
                f"{number} is the number of a trial that is out: with --params, give values alone "
                f"({number}.0 is one); what was really run for that trial is --actual"
            )
        if lifecycle.state(trial) == "by hand" and trial.params == own:
            return tell(file, trial.number, told)
    before = len(_trials(study))
    add_trial(study, file, own, result)
    new = (t for t in reversed(_trials(study)[before:]) if t.params == own)
    return _told_row(file, study, next(new).number)


def revise(file: StudyFile, number: int, told: Told, actual: Sequence[str] = ()) -> dict[str, Any]:
    """Correct what a trial that has ended was told; without a value it failed.

    What was really run stays as it was, unless `actual` says otherwise, as in `tell`.
    """
    result = told.result(file)
    study = open_study(file, make=False)
    trial = _numbered(file, _trials(study), number)
    if lifecycle.state(trial) not in TOLD:
        raise StudyError(
            f"trial {number} has no result to correct: it is {lifecycle.state(trial)}; use tell to "
            "give it one"
        )
    value: Any = dict(result.values) if file.named else result.values.get(VALUE)
    noise: Any = dict(result.noise_var) if file.named else result.noise_var.get(VALUE)
    several: Any = listed(result) if file.named else listed(result).get(VALUE)
    noise = None if noise == {} else noise
    said = None if told.message is None else told.message[-KEPT:]
    ran = read_actual(actual, file.space, trial)
    retry(lambda: write_revision(study, number, value or None, noise, said, several, ran))
    return _told_row(file, study, number)


def _numbered(file: StudyFile, found: list[FrozenTrial], number: int) -> FrozenTrial:
    if not 0 <= number < len(found):
        raise StudyError(f"trial {number} is unknown: study {file.name!r} has {len(found)} trials")
    return found[number]


def _not_out(trial: FrozenTrial) -> StudyError:
    state, number = lifecycle.state(trial), trial.number
    ways = "; optpair revise corrects it, and --params tells another evaluation of its point"
    return StudyError(f"trial {number} is not out: it is {state}{ways * (state in TOLD)}")


def recommend(
    file: StudyFile,
    study: Study | None = None,
    *,
    prefer: Mapping[str, float] | None = None,
    near: Mapping[str, float] | None = None,
    context: Sequence[str] = (),
) -> dict[str, Any]:
    """The best predicted point or front, with intervals, and what was best observed beside it.

    `prefer` and `near` choose one point of a front: see `Front.best_for` and `Front.nearest`.
    `context` is what the answer is for: words like site=A, for each context of the study.
    """
    given = read_context(context, file.space) or None
    if (prefer or near) and len(file.objectives) == 1:
        raise StudyError("--prefer and --near choose among several objectives; there is only one")
    study = study or open_study(file, make=False)
    told = [values_of(trial, file) for trial in _trials(study)]
    for name in file.objectives:
        if not any(name in values for values in told):
            missing = f" of {name}" if file.named else ""
            raise NothingYetError(f"no trial of study {file.name!r} has a value{missing} yet")
    sampler = _answering(file, study)
    found = retry(lambda: sampler.recommend(study, context=given), *_storages_own())
    answer, stop = as_json(found, file), file.stop
    if stop is not None:
        more = retry(lambda: sampler.until(study, stop, context=given), *_storages_own())
        answer["until"] = more
        answer["text"] += to_go(more, stop)
    if prefer or near:
        try:
            answer |= chosen(found.best_for(prefer) if prefer else found.nearest(near))
        except (TypeError, ValueError) as error:
            raise StudyError(str(error)) from error
    return answer


def report(file: StudyFile, out: Path | None, context: Sequence[str] = ()) -> dict[str, Any]:
    """Write a report on the study, next to its file or to `out`, and return what it says.

    `context` is what its answers are for; without it, the context of the last told trial.
    """
    given = read_context(context, file.space) if context else None
    study = open_study(file, make=False)
    path = out or file.path.with_suffix(".html")
    sampler = _answering(file, study)
    return retry(
        lambda: sampler.report(study, path, name=file.name, context=given), *_storages_own()
    )


def _answering(file: StudyFile, study: Study) -> JESSampler:
    """The sampler that has suggested, and is warm; or a new one that has a model."""
    from optpair.integrations.optuna import JESSampler

    if isinstance(study.sampler, JESSampler):
        return study.sampler
    return make_sampler(file)


def _storages_own() -> list[type[Exception]]:
    """Errors of a storage that is away, and not those of the file that a page is written to."""
    return [error for error in storage_errors() if error is not OSError]
