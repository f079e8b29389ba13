"""Progress: a bar on standard error."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from optpair.optimizer import Optimizer
from optpair.problem.space import Fidelity
from optpair.runtime.stderr import Outlet, is_terminal


@contextmanager
def bar(show: bool, total: float, done: int) -> Iterator[Callable[[Optimizer], None]]:
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
        progress.update(task, completed=evaluated(optimizer), note=note)

    with outlet, progress:
        yield advance


def _note(optimizer: Optimizer) -> str:
    """The best value observed at the target fidelity, where there is one outcome."""
    if optimizer.problem.goal != "best":
        return ""
    looks = {n: p.target for n, p in optimizer.space.items() if isinstance(p, Fidelity)}
    whole = [t for t in optimizer.trials if looks.items() <= t.params.items()]
    told = [t.value for t in whole if t.value is not None]
    best = (min if optimizer.direction == "minimize" else max)(told, default=None)
    return "" if best is None else f"best observed {best:.5g}"


def evaluated(optimizer: Optimizer) -> int:
    """How many trials have ended, well or not."""
    return sum(trial.state != "pending" for trial in optimizer.trials)
