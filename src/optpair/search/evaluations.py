"""Evaluations: one trial each, from ask to tell."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from optpair.optimizer import Optimizer
from optpair.problem.defaults import LARGEST
from optpair.problem.outcomes import meant
from optpair.problem.problem import VALUE, Problem
from optpair.search.ends import End
from optpair.trials.numbers import as_number
from optpair.trials.told import is_list
from optpair.trials.trial import Trial

Objective = Callable[[dict[str, Any]], Any]
Catch = type[Exception] | tuple[type[Exception], ...]

LONGEST = 2000  # characters of a reason that are kept


def evaluate(
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
        error.add_note(
            f"while evaluating {dict(trial.params)}, which gave {returned!r:.200}; this trial was "
            "cancelled"
        )
        raise
    return next(t for t in optimizer.trials if t.id == trial.id), caught


def _measured(returned: object, problem: Problem) -> dict[str, list[float]]:
    """The numbers that an objective returned and that were measured, by the outcomes' names."""
    what, missing = "what the objective returns", "is a `return` missing? NaN means failed"
    if problem.names == (VALUE,):
        numbers = {VALUE: [as_number(returned, what, missing)]}
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
        numbers = {
            name: [
                as_number(v, f"{what} as {name!r}") for v in (given if is_list(given) else [given])
            ]
            for name, given in returned.items()
        }
    kept = {name: [v for v in own if abs(v) <= LARGEST] for name, own in numbers.items()}
    return {name: own for name, own in kept.items() if own}


def _why(returned: object, caught: Exception | None) -> str:
    """Why a trial failed, as text that any file takes."""
    if caught is None:
        return f"it gave {returned}"[:LONGEST]
    said = "".join(traceback.format_exception_only(caught)).strip()
    return said[:LONGEST].encode(errors="backslashreplace").decode()
