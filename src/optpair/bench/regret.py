"""Regret: how far from the optimum a method's recommendation and its queries are.

*Inference* regret is f(x_opt) − f(x̂) at the recommended point, *simple* regret at the best queried
point; both noiseless. A run is (task, method, seed, configuration) and gives one row of a JSON
lines file. Rows that are there are not run again, so a benchmark can be killed at any time.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import optpair
from optpair.bench import cores, methods, tasks

FLOOR = 1e-8  # regrets below are as good as zero, and log 0 is not a number
BUDGET = 50  # evaluations a dimension, after the initial design

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What one row is the result of. None means the default for the task."""

    task: str
    method: str
    seed: int
    noise_var: float | None = None
    evaluations: int | None = None
    every: int = 10
    model: methods.Model | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> tuple[tasks.Task, methods.Model, Any, int]:
        """The task, how hyperparameters are treated, the settings and the number of evaluations."""
        task = _task(self.task, self.seed, self.noise_var)
        model = self.model or methods.default_model(task)
        settings = methods.make_settings(task, model, self.settings)
        return task, model, settings, self.evaluations or BUDGET * task.dimensions

    def identity(self) -> Row:
        """The head of the row: all that decides the result."""
        task, model, settings, evaluations = self.build()
        head = {
            "task": self.task,
            "method": methods.check_name(self.method),
            "seed": self.seed,
            "noise_var": task.noise_var,
            "evaluations": evaluations,
            "every": self.every,
            "model": model,
            "settings": asdict(settings),
        }
        plain: Row = json.loads(json.dumps(head))
        return plain


@lru_cache(maxsize=4)
def _task(name: str, seed: int, noise_var: float | None) -> tasks.Task:
    """Kept, so that methods that follow each other share the search for the optimum."""
    return tasks.make(name, seed, noise_var)


def run(spec: Run) -> Row:
    """Do one run and return its row."""
    began, begin = datetime.now(UTC), time.perf_counter()
    task, model, settings, evaluations = spec.build()
    method = methods.make(spec.method, task, model, settings)
    initial = task.initial(settings.initial or task.dimensions + 1)
    for index, x in enumerate(initial):
        method.tell(x, task.observe(x, index))
    best, asks, checkpoints = float(task.value(initial).max()), [], []
    for count in range(1, evaluations + 1):
        tick = time.perf_counter()
        x = method.ask()
        asks.append(time.perf_counter() - tick)
        method.tell(x, task.observe(x, len(initial) + count - 1))
        best = max(best, float(task.value(x[None])[0]))
        if count % spec.every == 0 or count == evaluations:
            recommended = float(task.value(method.recommend()[None])[0])
            checkpoints.append(
                {
                    "evaluations": count,
                    "inference": task.optimum.f - recommended,
                    "simple": task.optimum.f - best,
                }
            )
    return spec.identity() | {
        "optimum": task.optimum.f,
        "checkpoints": checkpoints,
        "ask_seconds": {
            "median": float(np.median(asks)),
            "p95": float(np.quantile(asks, 0.95)),
            "total": sum(asks),
        },
        "seconds": time.perf_counter() - begin,
        "began": began.isoformat(timespec="seconds"),
        "cores": len(cores.available()),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """What a result was made with."""
    packages = {name: version(name) for name in ("jax", "jaxlib", "blackjax", "numpy", "scipy")}
    return {"optpair": optpair.__version__, "python": platform.python_version(), **packages}


def read(path: Path) -> list[Row]:
    """The rows of a file; a last line that was cut off by a kill is left out."""
    if not path.exists():
        return []
    rows: list[Row] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if not isinstance(row, dict) or "checkpoints" not in row:
            raise ValueError(f"line {number} of {path} is not a row of `optpair bench regret`")
        rows.append(row)
    return rows


def append(path: Path, row: Row) -> None:
    """Write one row to the end, on a line of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":  # the line before was cut off
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def benchmark(
    runs: Iterable[Run], out: Path | None, workers: int = 1, console: Console | None = None
) -> list[Row]:
    """Do the runs that are not in the file yet; return the rows of all of them."""
    kept = {} if out is None else {_key(row): row for row in read(out)}
    keys = {_key(spec.identity()): spec for spec in runs}
    missing = {key: spec for key, spec in keys.items() if key not in kept}
    with _bar(len(keys), len(keys) - len(missing), console) as advance:
        for row in _rows(list(missing.values()), workers):
            if out is not None:
                append(out, row)
            kept[_key(row)] = row
            advance(row)
    return [kept[key] for key in keys]


def _key(row: Row) -> str:
    names = ("task", "method", "seed", "noise_var", "evaluations", "every", "model", "settings")
    return json.dumps([row.get(name) for name in names], sort_keys=True)


def _rows(runs: Sequence[Run], workers: int) -> Iterator[Row]:
    """The rows, as they are finished."""
    if workers <= 1:
        yield from map(run, runs)
        return
    pools = [
        ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_end_with_parent)
        for _ in range(min(workers, len(runs)))
    ]
    available = cores.available()
    try:
        todo = iter(runs)
        busy: dict[Future[Row], ProcessPoolExecutor] = {}
        for i, pool in enumerate(pools):
            with cores.pinned([available[i % len(available)]]):  # for the worker that starts now
                busy[pool.submit(run, next(todo))] = pool
        while busy:
            done, _ = wait(busy, return_when=FIRST_COMPLETED)
            for future in done:
                pool = busy.pop(future)
                if (spec := next(todo, None)) is not None:
                    busy[pool.submit(run, spec)] = pool
                yield future.result()
    finally:
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """A worker whose parent was killed ends too, rather than wait for work for ever."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _bar(total: int, done: int, console: Console | None) -> Iterator[Callable[[Row], None]]:
    progress = Progress(
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=console or Console(stderr=True),
    )
    task = progress.add_task("runs", total=total, completed=done, note=f"{done} on file")

    def advance(row: Row) -> None:
        last = row["checkpoints"][-1]["inference"]
        note = f"{row['method']} seed {row['seed']}: regret {last:.2g} in {row['seconds']:.0f} s"
        progress.update(task, advance=1, note=note)

    with progress:
        yield advance


def log_regrets(rows: Iterable[Row], method: str, kind: str) -> dict[int, float]:
    """log10 of a method's final regret, floored, by seed."""
    return {
        row["seed"]: float(np.log10(max(row["checkpoints"][-1][kind], FLOOR)))
        for row in rows
        if row["method"] == method
    }


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """The mean and its standard error; NaN where there are too few values."""
    array = np.array(list(values))
    mean = float(array.mean()) if len(array) else float("nan")
    error = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else float("nan")
    return mean, error


def tables(rows: Sequence[Row]) -> list[Table]:
    """Final regrets of each method, and its paired difference from the first."""
    first, names = rows[0], list(dict.fromkeys(row["method"] for row in rows))
    title = (
        f"{first['task']}, {first['evaluations']} evaluations, "
        f"{first['model']} hyperparameters, noise variance {first['noise_var']:.4g}"
    )
    return [_table(rows, names, kind, title) for kind in ("inference", "simple")]


def _table(rows: Sequence[Row], names: Sequence[str], kind: str, title: str) -> Table:
    result = Table(
        title=f"log10 {kind} regret: {title}",
        caption=f"mean ± standard error; Δ is paired, against {names[0]}; negative is better",
    )
    result.add_column("method")
    for heading in ("runs", "mean", "median", "Δ", "s/ask", "p95"):
        result.add_column(heading, justify="right")
    base = log_regrets(rows, names[0], kind)
    for name in names:
        own = log_regrets(rows, name, kind)
        paired = mean_and_error(own[seed] - base[seed] for seed in own if seed in base)
        asks = [row["ask_seconds"] for row in rows if row["method"] == name]
        result.add_row(
            name,
            str(len(own)),
            _show(mean_and_error(own.values())),
            f"{np.median(list(own.values())):.2f}",
            "" if name == names[0] else _show(paired, sign="+"),
            *(f"{np.median([ask[part] for ask in asks]):.3f}" for part in ("median", "p95")),
        )
    return result


def _show(pair: tuple[float, float], sign: str = "") -> str:
    return f"{pair[0]:{sign}.2f} ± {pair[1]:.2f}"


def beaten(rows: Iterable[Row]) -> list[Row]:
    """Rows in which a method beat the optimum, which is then wrong."""
    return [
        row
        for row in rows
        if min(min(c["inference"], c["simple"]) for c in row["checkpoints"]) < -1e-6
    ]
