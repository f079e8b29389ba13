"""`minimize` and `maximize`: a whole search in one call, with a SciPy-style result."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optpair.optimizer import Optimizer
from optpair.persistence import files
from optpair.problem.outcomes import Direction
from optpair.problem.space import Space
from optpair.problem.stop import Stop
from optpair.results.best import listed
from optpair.results.front import Front
from optpair.search.checkpoints import start
from optpair.search.ends import Budget, End
from optpair.search.evaluations import Catch, Objective, evaluate
from optpair.search.progress import bar, evaluated
from optpair.trials.numbers import rounded
from optpair.trials.trial import Trial

Callback = Callable[[Optimizer, Trial], None]


@dataclass(frozen=True)
class Result:
    """What a search found.

    `x` and `fun` are the recommended point and its predicted noiseless value; `recommendation` also
    has its interval and the best observed trial. `optimizer` continues where this stopped.

    With several objectives `recommendation` is a `Front`, `x` is its compromise with equal weights,
    and `fun` has the predicted values there by name.
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
        return f"Result(fun={fun}, x={rounded(self.x)}, nfev={self.nfev})"


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
    """Minimise a noisy objective over a space, in a number of evaluations or within a budget.

    Nothing that was evaluated is ever lost: whatever exception ends the search, even Ctrl-C, has
    the `Optimizer` as its attribute `optimizer`.

    Args:
        objective: takes a dict of parameters, returns a number or, with `outcomes`, a dict of
            numbers by name, or of lists of what was measured several times. NaN, infinity or a
            number beyond ±1e300 means that it was not measured; a trial in which nothing was
            measured has failed.
        space: the parameters to tune.
        evaluations: how many trials to evaluate, failures included; it may be left out if there is
            a budget. There are fewer if a space of rows is used up.
        seed: the same seed and objective give the same points. None draws one.
        callbacks: each is called as `callback(optimizer, trial)` after a trial; raising
            StopIteration ends the search.
        progress: whether to show a bar on standard error.
        checkpoint: a file that is written at the start and after every trial. If it exists, its
            search continues, up to `evaluations` in all, with the points of a search that was never
            cut off; its seed and options apply, and different ones are refused. While a search
            runs, a second one with its checkpoint is refused.
        catch: exceptions of the objective that mean a failed trial; others stop the search.
        stop: ends the search early, once hardly anything is left to be won: `Stop(gap=0.01)`.
        seconds: no trial begins later than this many seconds after the call, except the first.
        context: a value for each `Context` of the space, for all trials and for the answer.
        cost: a function from a dict of parameters to what a trial costs, in any unit; trials are
            then what teaches most per cost.
        budget_cost: no trial begins once all of them together have cost this much: by `cost` or,
            without it, in looks at the target of the space's `Fidelity`.
        budget_seconds: the same in seconds of the objective, which are measured and told as costs;
            so the points depend on the clock.
        options: passed to `Optimizer` (outcomes, noise, acquisition, hyperparameters, settings);
            `noise=0` if the objective is exact. With `outcomes`, each objective has its own
            direction, and `minimize` and `maximize` do the same.

    Returns:
        The recommended point, its predicted value, and everything else that was found.

    Raises:
        RuntimeError: if every evaluation failed, so that there is nothing to recommend.

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
        optimizer = start(direction, space, seed, checkpoint, end.context, options)
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
        with bar(progress, evaluations, evaluated(optimizer)) as advance:
            why, last = end.at_once(optimizer), None
            while evaluated(optimizer) < evaluations and not why:
                trial, caught = evaluate(optimizer, objective, catch, end)
                last = caught or last
                if checkpoint is not None:
                    optimizer.save(checkpoint)
                advance(optimizer)
                ended = _call(callbacks, optimizer, trial)
                why = "a callback ended the search" if ended else end.reason(optimizer)
        return _result(optimizer, why, last, end)
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


def _result(optimizer: Optimizer, why: str, last: Exception | None, end: End) -> Result:
    done = evaluated(optimizer)
    if all(trial.state != "told" for trial in optimizer.trials):
        raise RuntimeError(
            f"all {done} evaluations failed, so there is nothing to recommend; the trials are in "
            "this exception's `optimizer`"
        ) from last
    best = optimizer.recommend(context=end.context)
    made = "1 evaluation was" if done == 1 else f"{done} evaluations were"
    message = f"{made} made" + (f", then {why}" if why else "") + end.to_go(optimizer)
    if isinstance(best, Front):
        point = best.best_for(dict.fromkeys(optimizer.problem.objectives, 1.0))
        return Result(point.params, point.means, best, done, True, message, optimizer)
    return Result(best.params, best.mean, best, done, True, message, optimizer)
