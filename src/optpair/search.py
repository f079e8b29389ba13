"""`minimize` and `maximize`: a whole search in one call, with a SciPy-style result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from optpair.history import Direction, Trial
from optpair.optimizer import Optimizer, Recommendation
from optpair.space import Space

Objective = Callable[[dict[str, Any]], Any]
Callback = Callable[[Optimizer, Trial], None]


@dataclass(frozen=True)
class Result:
    """What a search found.

    `x` and `fun` are the recommended point and its predicted noiseless value; see `recommendation`
    for its interval and for the best observed trial. `optimizer` goes on where this stopped.
    """

    x: Mapping[str, Any]
    fun: float
    recommendation: Recommendation
    nfev: int
    success: bool
    message: str
    optimizer: Optimizer

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial of the search."""
        return self.optimizer.trials


def minimize(
    objective: Objective,
    space: Space,
    evaluations: int,
    *,
    seed: int | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    checkpoint: str | Path | None = None,
    catch: type[Exception] | tuple[type[Exception], ...] = (),
    **options: Any,
) -> Result:
    """Minimise a noisy objective over a space in a given number of evaluations.

    objective: takes a dict of parameters, returns a number. NaN or infinity is a failed trial.
    callbacks: each is called as `callback(optimizer, trial)` after a trial; raising StopIteration
        ends the search.
    checkpoint: a file that is written after every trial; an existing one is continued.
    catch: exceptions of the objective that mean a failed trial; others stop the search.
    options: passed to `Optimizer` (acquisition, hyperparameters, settings).

    >>> from optpair import Float, Space, minimize
    >>> result = minimize(lambda p: abs(p["x"]), Space({"x": Float(-1, 1)}), 3, progress=False)
    >>> result.nfev
    3
    """
    return _search(
        "minimize", objective, space, evaluations, seed, callbacks, progress, checkpoint, catch,
        options,
    )  # fmt: skip


def maximize(
    objective: Objective,
    space: Space,
    evaluations: int,
    *,
    seed: int | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    checkpoint: str | Path | None = None,
    catch: type[Exception] | tuple[type[Exception], ...] = (),
    **options: Any,
) -> Result:
    """Maximise a noisy objective; see `minimize`."""
    return _search(
        "maximize", objective, space, evaluations, seed, callbacks, progress, checkpoint, catch,
        options,
    )  # fmt: skip


def _search(
    direction: Direction,
    objective: Objective,
    space: Space,
    evaluations: int,
    seed: int | None,
    callbacks: Iterable[Callback],
    progress: bool,
    checkpoint: str | Path | None,
    catch: type[Exception] | tuple[type[Exception], ...],
    options: Mapping[str, Any],
) -> Result:
    if isinstance(evaluations, bool) or not isinstance(evaluations, int) or evaluations < 1:
        raise ValueError(f"evaluations must be an int of at least 1, not {evaluations!r}")
    if not callable(objective):
        raise TypeError(f"objective must be callable, not {objective!r}")
    callbacks = list(callbacks)
    optimizer = _start(direction, space, seed, checkpoint, options)
    message = f"{evaluations} evaluations were made"
    with _bar(progress, evaluations, _done(optimizer)) as advance:
        while _done(optimizer) < evaluations:
            trial = _evaluate(optimizer, objective, catch)
            if checkpoint is not None:
                optimizer.save(checkpoint)
            advance(optimizer)
            try:
                for callback in callbacks:
                    callback(optimizer, trial)
            except StopIteration:
                message = "a callback ended the search"
                break
    best = optimizer.recommend()
    return Result(best.params, best.mean, best, _done(optimizer), True, message, optimizer)


def _done(optimizer: Optimizer) -> int:
    return sum(trial.state != "pending" for trial in optimizer.trials)


def _start(
    direction: Direction,
    space: Space,
    seed: int | None,
    checkpoint: str | Path | None,
    options: Mapping[str, Any],
) -> Optimizer:
    """A new optimiser, or the one that the checkpoint holds."""
    fresh = Optimizer(space, direction=direction, seed=seed, **options)
    if checkpoint is None or not Path(checkpoint).exists():
        return fresh
    saved = Optimizer.load(checkpoint)
    if saved.space != fresh.space or saved.direction != direction:
        raise ValueError(
            f"{checkpoint} holds a search of another space or direction; choose another file"
        )
    if seed is not None and saved.seed != seed:
        raise ValueError(f"{checkpoint} holds a search with seed {saved.seed}, not {seed}")
    for trial in saved.trials:
        if trial.state == "pending":  # its evaluation was cut off
            saved.cancel(trial)
    return saved


def _evaluate(
    optimizer: Optimizer,
    objective: Objective,
    catch: type[Exception] | tuple[type[Exception], ...],
) -> Trial:
    trial = optimizer.ask()
    try:
        value = objective(dict(trial.params))
    except catch:
        optimizer.tell(trial, failed=True)
    except BaseException as error:
        optimizer.cancel(trial)
        error.add_note(f"while evaluating {dict(trial.params)}")
        raise
    else:
        if isinstance(value, float) and not math.isfinite(value):
            optimizer.tell(trial, failed=True)
        else:
            optimizer.tell(trial, value)
    return next(t for t in optimizer.trials if t.id == trial.id)


@contextmanager
def _bar(show: bool, total: int, done: int) -> Iterator[Callable[[Optimizer], None]]:
    """A progress bar that shows the best observed value, on standard error."""
    progress = Progress(
        TextColumn("optpair"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        disable=not show,
    )
    task = progress.add_task("search", total=total, completed=done, note="")

    def advance(optimizer: Optimizer) -> None:
        told = [t.value for t in optimizer.trials if t.value is not None]
        best = (min if optimizer.direction == "minimize" else max)(told, default=None)
        note = "" if best is None else f"best observed {best:.6g}"
        progress.update(task, completed=_done(optimizer), note=note)

    with progress:
        yield advance
