"""`minimize` and `maximize`: a whole search in one call, with a SciPy-style result."""

from __future__ import annotations

import inspect
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optpair.found import listed
from optpair.front import Front
from optpair.optimizer import Optimizer
from optpair.persistence import files
from optpair.problem.defaults import LARGEST
from optpair.problem.outcomes import Direction, meant
from optpair.problem.problem import VALUE, Problem
from optpair.problem.space import Space
from optpair.problem.stop import Stop, check_stop
from optpair.stderr import Outlet, is_terminal
from optpair.trials.numbers import as_number
from optpair.trials.trial import Trial

Objective = Callable[[dict[str, Any]], Any]
Callback = Callable[[Optimizer, Trial], None]
Catch = type[Exception] | tuple[type[Exception], ...]

LONGEST = 2000  # characters of a reason that are kept
SHORTEST = 1e-9  # seconds, which a clock may take for none


@dataclass(frozen=True)
class Result:
    """What a search found.

    `x` and `fun` are the recommended point and its predicted noiseless value; see `recommendation`
    for its interval and for the best observed trial. `optimizer` goes on where this stopped.

    With several objectives `recommendation` is a `Front`, `x` is the compromise on it to whose
    maker all objectives matter alike, and `fun` has its predicted values by name.
    """

    x: Mapping[str, Any]
    fun: Any
    recommendation: Any
    nfev: int
    success: bool
    message: str
    optimizer: Optimizer

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial of the search."""
        return self.optimizer.trials

    def __str__(self) -> str:
        failed = sum(trial.state == "failed" for trial in self.trials)
        extra = f", {failed} of them failed" if failed else ""
        return f"{self.message}{extra}\n{self.recommendation}"

    def __repr__(self) -> str:
        several = isinstance(self.recommendation, Front)
        fun = f"{{{listed(self.fun)}}}" if several else f"{self.fun:.5g}"
        return f"Result(fun={fun}, x={dict(self.x)}, nfev={self.nfev})"


class Budget:
    """What all evaluations together may cost, and how the cost of one is known."""

    def __init__(self, cost: object, seconds: object, price: Any) -> None:
        if cost is not None and seconds is not None:
            raise ValueError(
                "budget_cost and budget_seconds cannot be given together: costs have one unit"
            )
        if price is not None and seconds is not None:
            raise ValueError(
                "cost and budget_seconds cannot be given together: seconds are measured; give "
                "budget_cost"
            )
        if price is not None and not callable(price):
            raise TypeError(
                "cost must be a function from a dict of parameters to what a trial costs, not "
                f"{price!r:.80}"
            )
        self.timed, self.price = seconds is not None, price
        name, most = ("budget_seconds", seconds) if self.timed else ("budget_cost", cost)
        self.most = math.inf if most is None else _above_zero(name, most)

    @property
    def given(self) -> bool:
        """Whether there is one."""
        return self.most < math.inf

    def reason(self, optimizer: Optimizer) -> str:
        """That it is spent, or nothing."""
        if not self.given or optimizer.spent < self.most:
            return ""
        unit = " seconds" if self.timed else ""
        return f"the budget of {self.most:g}{unit} was spent"

    def cost(self, params: dict[str, Any], seconds: float) -> float | None:
        """What an evaluation cost, where that is to be told."""
        if self.price is not None:
            return self.price(params)
        return max(seconds, SHORTEST) if self.timed else None


class End:
    """What ends a search, in a context, before all evaluations are made."""

    def __init__(
        self,
        stop: Stop | None,
        seconds: float | None,
        context: Mapping[str, Any] | None,
        budget: Budget,
    ) -> None:
        self.context = context
        self.stop = None if stop is None else check_stop(stop)
        self.seconds = math.inf if seconds is None else check_seconds(seconds)
        self.budget = budget
        self._begin = time.monotonic()

    def won(self, optimizer: Optimizer) -> str:
        """That hardly anything is left to be won, or nothing."""
        if self.stop is None or not optimizer.done(self.stop, context=self.context):
            return ""
        return f"the search was over: {self.stop}"

    def reason(self, optimizer: Optimizer) -> str:
        """Why the search is to end now, if it is."""
        if time.monotonic() - self._begin >= self.seconds:
            return f"the {self.seconds:g} seconds were over"
        return self.at_once(optimizer)

    def at_once(self, optimizer: Optimizer) -> str:
        """The same, of a search that has just begun: its first trial may take its time."""
        if optimizer.exhausted:
            return "every row had been tried"
        return self.budget.reason(optimizer) or self.won(optimizer)


def minimize(
    objective: Objective,
    space: Space,
    evaluations: int | None = None,
    *,
    seed: int | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    checkpoint: str | Path | None = None,
    catch: Catch = (),
    stop: Stop | None = None,
    seconds: float | None = None,
    context: Mapping[str, Any] | None = None,
    cost: Callable[[dict[str, Any]], float] | None = None,
    budget_cost: float | None = None,
    budget_seconds: float | None = None,
    **options: Any,
) -> Result:
    """Minimise a noisy objective over a space in a given number of evaluations, or for a cost.

    objective: takes a dict of parameters, returns a number or, with `outcomes`, a dict of numbers
        by name. NaN, infinity or a number beyond ±1e300 means that it was not measured; a trial in
        which nothing was measured has failed.
    evaluations: how many trials are to end, well or not; it may be left out where there is a
        budget. There are fewer where a space of rows is used up.
    seed: the same seed and objective give the same points. None draws one.
    callbacks: each is called as `callback(optimizer, trial)` after a trial; raising StopIteration
        ends the search.
    progress: whether a bar is shown, on standard error.
    checkpoint: a file that is written at the start and after every trial. An existing one is
        continued up to `evaluations` in all, with the points of a search that was never cut off;
        its seed and options hold, and others that are given are refused. While a search runs, a
        second one with its checkpoint is refused.
    catch: exceptions of the objective that mean a failed trial; others stop the search.
    stop: ends the search early, once hardly anything is left to be won: `Stop(gap=0.01)`.
    seconds: no trial begins later than so many seconds after the call; the first always does.
    context: a value for each `Context` of the space, that of all trials and of the answer.
    cost: a function from a dict of parameters to what a trial costs, in any unit; each trial is
        what teaches most per cost then.
    budget_cost: no trial begins once all of them have cost so much: by `cost` or, without it, in
        looks at the target of the space's `Fidelity`.
    budget_seconds: the same in seconds of the objective, which are measured and told as costs; so
        the points depend on the clock.
    options: passed to `Optimizer` (outcomes, noise, acquisition, hyperparameters, settings);
        `noise=0` where the objective is exact. With `outcomes`, each objective has its own
        direction, and it does not matter which of `minimize` and `maximize` is called.

    What was evaluated is never lost: whatever exception ends the search, Ctrl-C too, has the
    `Optimizer` as its attribute `optimizer`. Where every evaluation failed there is nothing to
    recommend: that is a RuntimeError.

    Examples:
        >>> from optpair import Float, Space, minimize
        >>> result = minimize(lambda p: abs(p["x"]), Space({"x": Float(-1, 1)}), 3, progress=False)
        >>> result.nfev
        3
    """
    return _search(
        "minimize", objective, space, evaluations, seed, callbacks, progress, checkpoint, catch,
        End(stop, seconds, context, Budget(budget_cost, budget_seconds, cost)), options,
    )  # fmt: skip


def maximize(
    objective: Objective,
    space: Space,
    evaluations: int | None = None,
    *,
    seed: int | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    checkpoint: str | Path | None = None,
    catch: Catch = (),
    stop: Stop | None = None,
    seconds: float | None = None,
    context: Mapping[str, Any] | None = None,
    cost: Callable[[dict[str, Any]], float] | None = None,
    budget_cost: float | None = None,
    budget_seconds: float | None = None,
    **options: Any,
) -> Result:
    """Maximise a noisy objective; see `minimize`."""
    return _search(
        "maximize", objective, space, evaluations, seed, callbacks, progress, checkpoint, catch,
        End(stop, seconds, context, Budget(budget_cost, budget_seconds, cost)), options,
    )  # fmt: skip


def _search(
    direction: Direction,
    objective: Objective,
    space: Space,
    evaluations: int | None,
    seed: int | None,
    callbacks: Iterable[Callback],
    progress: bool,
    checkpoint: str | Path | None,
    catch: Catch,
    end: End,
    options: Mapping[str, Any],
) -> Result:
    _check_objective(objective)
    most = _check_evaluations(evaluations, end.budget)
    callbacks, catch = _check_callbacks(callbacks), _check_catch(catch)
    with nullcontext() if checkpoint is None else files.claim(checkpoint):
        optimizer = _start(direction, space, seed, checkpoint, end.context, options)
        return _run(optimizer, objective, most, callbacks, progress, checkpoint, catch, end)


def _run(
    optimizer: Optimizer,
    objective: Objective,
    evaluations: float,
    callbacks: list[Callback],
    progress: bool,
    checkpoint: str | Path | None,
    catch: Catch,
    end: End,
) -> Result:
    try:
        with _bar(progress, evaluations, _done(optimizer)) as advance:
            why, last = end.at_once(optimizer), None
            while _done(optimizer) < evaluations and not why:
                trial, caught = _evaluate(optimizer, objective, catch, end)
                last = caught or last
                if checkpoint is not None:
                    optimizer.save(checkpoint)
                advance(optimizer)
                ended = _call(callbacks, optimizer, trial)
                why = "a callback ended the search" if ended else end.reason(optimizer)
        return _result(optimizer, why, last, end.context)
    except BaseException as error:
        with suppress(AttributeError):  # an exception may refuse it
            error.optimizer = optimizer  # type: ignore[attr-defined]
        raise


def _check_objective(objective: object) -> None:
    if not callable(objective):
        raise TypeError(f"objective must be callable, not {objective!r}")
    try:
        signature = inspect.signature(objective)
    except (TypeError, ValueError):  # some of those written in C have none
        return
    try:
        signature.bind({})
    except TypeError:
        name = getattr(objective, "__name__", "objective")
        raise TypeError(
            f"objective must take one argument, a dict of parameters, not {name}{signature}; to "
            f"pass them by name: lambda params: {name}(**params)"
        ) from None


def _check_evaluations(evaluations: object, budget: Budget) -> float:
    """How many there are at most, perhaps infinitely many."""
    if evaluations is None:
        if not budget.given:
            raise TypeError(
                "evaluations is missing: say how many trials, or give budget_cost or budget_seconds"
            )
        return math.inf
    if isinstance(evaluations, bool) or not isinstance(evaluations, int | np.integer):
        raise TypeError(f"evaluations must be an int of at least 1, not {evaluations!r}")
    if evaluations < 1:
        raise ValueError(f"evaluations must be an int of at least 1, not {evaluations!r}")
    return int(evaluations)


def check_seconds(seconds: object) -> float:
    """A finite number of seconds above 0."""
    return _above_zero("seconds", seconds)


def _above_zero(name: str, given: object) -> float:
    number = as_number(given, name)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0, not {given!r:.80}")
    return number


def _check_callbacks(callbacks: object) -> list[Callback]:
    listed: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(callable(callback) for callback in listed):
        raise TypeError(f"callbacks must be a list of functions, not {callbacks!r}")
    return listed


def _check_catch(catch: object) -> Catch:
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise TypeError(f"catch must be an Exception class or a tuple of them, not {catch!r}")
    return kinds


def _call(callbacks: list[Callback], optimizer: Optimizer, trial: Trial) -> bool:
    """Call each, and say whether one of them ended the search."""
    try:
        for callback in callbacks:
            callback(optimizer, trial)
    except StopIteration:
        return True
    return False


def _result(
    optimizer: Optimizer, why: str, last: Exception | None, context: Mapping[str, Any] | None
) -> Result:
    done = _done(optimizer)
    if all(trial.state != "told" for trial in optimizer.trials):
        raise RuntimeError(
            f"all {done} evaluations failed, so there is nothing to recommend; the trials are in "
            "this exception's `optimizer`"
        ) from last
    best = optimizer.recommend(context=context)
    made = "1 evaluation was" if done == 1 else f"{done} evaluations were"
    message = f"{made} made" + (f", then {why}" if why else "")
    if isinstance(best, Front):
        point = best.best_for(dict.fromkeys(optimizer.problem.objectives, 1.0))
        return Result(point.params, point.means, best, done, True, message, optimizer)
    return Result(best.params, best.mean, best, done, True, message, optimizer)


def _done(optimizer: Optimizer) -> int:
    return sum(trial.state != "pending" for trial in optimizer.trials)


def _start(
    direction: Direction,
    space: Space,
    seed: int | None,
    checkpoint: str | Path | None,
    context: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Optimizer:
    """A new optimiser, or the one that the checkpoint holds."""
    if "direction" in options:
        raise TypeError(
            f"{direction} takes no direction, and {options['direction']!r:.80} was given: call "
            "minimize or maximize, or give each objective its own direction, "
            "outcomes={'error': 'minimize', 'speed': 'maximize'}"
        )
    single = options.get("outcomes") is None
    fresh = Optimizer(space, direction=direction if single else None, seed=seed, **options)
    fresh.space.check_context(context)
    if checkpoint is None:
        return fresh
    if not Path(checkpoint).exists():
        fresh.save(checkpoint)  # finds out now, not after an evaluation; and keeps the seed
        return fresh
    saved = Optimizer.load(checkpoint)
    if not single or saved.problem.names != fresh.problem.names:
        _same_outcomes(saved, fresh, checkpoint)
    elif fresh.noise is not None and saved.noise != fresh.noise:
        known = "inferred noise" if saved.noise is None else f"noise={saved.noise:g}"
        raise ValueError(
            f"{checkpoint} holds a search with {known}, not noise={fresh.noise:g}; give the same, "
            "leave it out, or choose another file"
        )
    compared = {name: options[name] for name in options if name not in ("noise", "outcomes")}
    options = {"seed": seed, **compared}
    given = [name for name in options if options[name] is not None]
    differ = [name for name in given if saved.configuration[name] != fresh.configuration[name]]
    if single and saved.direction != direction:
        differ.insert(0, "direction")
    if saved.space != fresh.space:  # as JSON, True and 1 would be equal
        differ.insert(0, "space")
    if differ:
        raise ValueError(
            f"{checkpoint} holds a search with another {differ[0]}; give the same one, leave it "
            "out where that is possible, or choose another file"
        )
    for trial in saved.trials:
        if trial.state == "pending":  # its evaluation was cut off
            saved.cancel(trial)
    return saved


def _same_outcomes(saved: Optimizer, fresh: Optimizer, checkpoint: str | Path) -> None:
    """Raise if a checkpoint is of other outcomes."""
    if list(saved.problem.outcomes.items()) != list(fresh.problem.outcomes.items()):
        known = ", ".join(f"{name!r}: {o!r}" for name, o in saved.problem.outcomes.items())
        raise ValueError(
            f"{checkpoint} holds a search with other outcomes, {{{known}}}; give the same, or "
            "choose another file"
        )


def _evaluate(
    optimizer: Optimizer, objective: Objective, catch: Catch, end: End
) -> tuple[Trial, Exception | None]:
    """One trial, and what was caught; a trial that ends in any other exception is cancelled."""
    trial = optimizer.ask(context=end.context)
    caught, found, returned = None, {}, None
    begin = time.perf_counter()
    try:
        try:
            returned = objective(dict(trial.params))
        except catch as error:
            caught = error
        else:
            found = _measured(returned, optimizer.problem)
        cost = end.budget.cost(dict(trial.params), time.perf_counter() - begin)
    except BaseException as error:
        optimizer.cancel(trial)
        error.add_note(f"while evaluating {dict(trial.params)}; this trial was cancelled")
        raise
    try:
        if found:
            optimizer.tell(trial, found, cost=cost)
        else:
            optimizer.tell(trial, failed=True, reason=_why(returned, caught), cost=cost)
    except (TypeError, ValueError) as error:  # beyond the bounds of its outcome, or a bad cost
        optimizer.cancel(trial)
        error.add_note(f"while evaluating {dict(trial.params)}; this trial was cancelled")
        raise
    return next(t for t in optimizer.trials if t.id == trial.id), caught


def _measured(returned: object, problem: Problem) -> dict[str, float]:
    """The numbers that an objective returned and that were measured, by the outcomes' names."""
    what, missing = "what the objective returns", "is a `return` missing? NaN means failed"
    if problem.names == (VALUE,):
        numbers = {VALUE: as_number(returned, what, missing)}
    elif not isinstance(returned, Mapping):
        names = ", ".join(map(repr, problem.names))
        raise TypeError(f"{what} must be a dict with some of {names}, not {returned!r:.80}")
    else:
        for name in returned:
            if name not in problem.outcomes:
                raise ValueError(
                    f"{what} must have names of outcomes, {', '.join(map(repr, problem.names))}, "
                    f"not {name!r}{meant(name, problem.names)}"
                )
        numbers = {name: as_number(v, f"{what} as {name!r}") for name, v in returned.items()}
    return {name: number for name, number in numbers.items() if abs(number) <= LARGEST}


def _why(returned: object, caught: Exception | None) -> str:
    """Why a trial failed, as text that any file takes."""
    if caught is None:
        return f"it gave {returned}"[:LONGEST]
    said = "".join(traceback.format_exception_only(caught)).strip()
    return said[:LONGEST].encode(errors="backslashreplace").decode()


@contextmanager
def _bar(show: bool, total: float, done: int) -> Iterator[Callable[[Optimizer], None]]:
    """A progress bar that shows the best observed value, on standard error while that works."""
    if not show:
        yield lambda optimizer: None
        return
    from rich.console import Console  # late: a search without a bar need not wait for it
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    outlet = Outlet()
    progress = Progress(
        TextColumn("optpair"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(file=outlet),  # type: ignore[arg-type]
        # The objective's own prints stay on standard output, above the bar where both are seen.
        redirect_stdout=is_terminal(sys.stdout),
    )
    most = None if math.isinf(total) else total
    task = progress.add_task("search", total=most, completed=done, note="")

    def advance(optimizer: Optimizer) -> None:
        note = _note(optimizer)
        progress.update(task, completed=_done(optimizer), note=note)

    with outlet, progress:
        yield advance


def _note(optimizer: Optimizer) -> str:
    """The best observed value, where there is one outcome."""
    if optimizer.problem.goal != "best":
        return ""
    told = [t.value for t in optimizer.trials if t.value is not None]
    best = (min if optimizer.direction == "minimize" else max)(told, default=None)
    return "" if best is None else f"best observed {best:.5g}"
