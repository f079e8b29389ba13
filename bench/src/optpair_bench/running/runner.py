"""Runner of many runs: by processes of this machine or by a Dask cluster, skipping what is on disk.

Rows are written as they are finished; killed at any time, it continues where it was. Each worker is
a new process with one thread.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from optpair.runtime.stderr import Outlet
from optpair_bench import methods, tasks
from optpair_bench.methods import peers
from optpair_bench.running import cores, experiments, rows
from optpair_bench.running.rows import Key, Row
from optpair_bench.running.runs import Run, engine, settings, work
from optpair_bench.tasks import spaces

AHEAD = 2  # runs that a thread of a cluster has at hand


@dataclass(frozen=True)
class Plan:
    """The runs of an experiment. None means the experiment's own number."""

    experiment: str
    tasks: Sequence[str] = ()
    dims: Sequence[int] = ()
    methods: Sequence[str] = ()
    repetitions: int | None = None
    first_seed: int = 0
    evaluations: int | None = None
    paper: bool = False

    def runs(self) -> list[Run]:
        """All of them, repetition by repetition, so that methods can be compared early."""
        experiment = experiments.get(self.experiment)
        names = tuple(self.methods) or experiment.methods
        for name in names:
            peers.check(methods.parse(name)[0])
        cells = experiment.select(self.tasks, self.dims)
        for cell in cells:
            (spaces if spaces.known(cell.task) else tasks).check(cell.task)
        seeds = {cell.task: self._repetitions(experiment, cell) for cell in cells}
        return [
            Run(experiment.name, cell.task, name, seed, self.evaluations or cell.evaluations)
            for seed in range(self.first_seed, self.first_seed + max(seeds.values()))
            for cell in cells
            if seed < self.first_seed + seeds[cell.task]
            for name in dict.fromkeys(names)
        ]

    def _repetitions(self, experiment: experiments.Experiment, cell: experiments.Cell) -> int:
        if self.paper and self.repetitions is not None:
            raise ValueError("give one of repetitions and paper")
        if self.paper and not cell.paper_repetitions:
            raise ValueError(f"{experiment.name} is not in the paper")
        return cell.paper_repetitions if self.paper else self.repetitions or experiment.repetitions


@dataclass
class Outcome:
    """What became of the runs."""

    rows: list[Row]
    failed: dict[Key, str] = field(default_factory=dict)
    elsewhere: int = 0
    """Runs that another runner was doing."""
    outdated: int = 0
    """Rows on disk that were made with other settings, or by another engine, than now."""


class Estimate:
    """How long runs take, from those that were made."""

    def __init__(self, made: Iterable[Row]) -> None:
        self._seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for row in made:
            self.add(row)

    def add(self, row: Row) -> None:
        """Learn from a row; seconds go by evaluation, as budgets may differ."""
        each = row["seconds"] / (row["evaluations"] + row["initial"])
        for group in self._groups(row["task"], row["method"]):
            self._seconds[group].append(each)

    def of(self, spec: Run) -> tuple[float, bool]:
        """Seconds of a run, and whether such a run was seen: this task and method."""
        groups = self._groups(spec.task, spec.method)
        for group in groups:
            if self._seconds[group]:
                each = float(np.median(self._seconds[group][-50:]))
                return each * spec.evaluations, group == groups[0]
        return 0.0, False

    def left(self, runs: Iterable[Run], workers: int, running: Iterable[Run] = ()) -> str:
        """The time that runs will take, in words; what is running is taken for half done."""
        guesses, half = [self.of(spec) for spec in runs], [self.of(spec) for spec in running]
        if not guesses + half:
            return ""
        seconds = (sum(s for s, _ in guesses) + 0.5 * sum(s for s, _ in half)) / workers
        sure = all(seen for _, seen in guesses + half)
        if seconds == 0:
            return "time left unknown"
        return f"{'about' if sure else 'very roughly'} {duration(seconds)} left"

    @staticmethod
    def _groups(task: str, method: str) -> list[tuple[str, ...]]:
        return [(task, method), ("method", method), ()]


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(42), duration(5000), duration(200_000)
    ('42 s', '1 h 23 min', '2 d 7 h')
    """
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def describe(runs: Sequence[Run], out: Path, workers: int) -> str:
    """What is to be done, and how long that will take by the rows on file."""
    made = rows.read(out)
    todo = [spec for spec in runs if spec.key not in made]
    estimate = Estimate(made.values())
    lines = [f"{len(runs)} runs, {len(runs) - len(todo)} on file"]
    for kind in dict.fromkeys((spec.task, spec.method) for spec in todo):
        own = [spec for spec in todo if (spec.task, spec.method) == kind]
        seconds, seen = estimate.of(own[0])
        each = duration(seconds) if seconds else "an unknown time"
        lines.append(
            f"{kind[0]} {kind[1]}: {len(own)} runs of {own[0].evaluations} evaluations, "
            f"{'' if seen or not seconds else 'very roughly '}{each} each"
        )
    return "\n".join([*lines, estimate.left(todo, workers)]).strip()


def benchmark(
    runs: Sequence[Run],
    out: Path,
    workers: int = 1,
    scheduler: str | None = None,
    console: Console | None = None,
) -> Outcome:
    """Do the runs that are not in the file yet; say what became of all of them."""
    store, claims = Store(out), rows.Claims(out)
    queue = Queue(deque(spec for spec in runs if spec.key not in store.rows))
    outcome = Outcome([], outdated=_outdated(runs, store.rows))
    estimate = Estimate(store.rows.values())
    with ExitStack() as stack:
        stack.callback(claims.close)
        if queue.todo:
            slots = stack.enter_context(_cluster(scheduler) if scheduler else _local(workers))
            say = stack.enter_context(_bar(len(runs), len(runs) - len(queue.todo), console))
            hands = len(slots) // AHEAD if scheduler else len(slots)
            for spec, found in _results(queue, slots, store, claims, outcome):
                if isinstance(found, str):
                    outcome.failed[spec.key] = found
                    say(1, f"{_name(spec)} failed: {found}")
                    continue
                estimate.add(found)
                left = estimate.left(queue.todo, hands, queue.running)
                say(1, f"{_name(spec)}: {_brief(found)}; {left}".rstrip("; "))
    store.refresh()
    outcome.rows = [store.rows[spec.key] for spec in runs if spec.key in store.rows]
    return outcome


class Store:
    """The file of rows, read again when another runner has written to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[Key, Row] = {}
        self._size = -1
        self.refresh()

    def refresh(self) -> None:
        """Read the file if it has grown."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size != self._size:
            self.rows, self._size = rows.read(self.path), size

    def add(self, row: Row) -> None:
        """Write a row."""
        rows.append(self.path, row)
        self.rows[rows.key(row)] = row


Slot = Callable[[Run], Future[Row]]
"""Where a run is submitted; each has one at a time."""


@dataclass
class Queue:
    """Runs that wait, and runs that someone is doing, and where."""

    todo: deque[Run]
    busy: dict[Future[Row], tuple[Run, Slot]] = field(default_factory=dict)

    @property
    def running(self) -> list[Run]:
        """What is being done."""
        return [spec for spec, _ in self.busy.values()]


def _results(
    queue: Queue, slots: Sequence[Slot], store: Store, claims: rows.Claims, outcome: Outcome
) -> Iterator[tuple[Run, Row | str]]:
    """Rows as they are finished, or why there is none.

    Runs that another runner has claimed are looked at again in the end: it may have been killed.
    """
    todo, busy = queue.todo, queue.busy
    tried: set[Key] = set()
    claimed: list[Run] = []

    def start(slot: Slot) -> None:
        while todo:
            spec = todo.popleft()
            if not claims.take(spec.key):
                claimed.append(spec)
                continue
            store.refresh()  # another runner may have finished it just before
            if spec.key in store.rows:
                claims.drop(spec.key)
                continue
            busy[slot(spec)] = spec, slot
            return

    for slot in slots:
        start(slot)
    again = False
    while busy or (claimed and not again):
        if not busy:
            again = True
            todo.extend(claimed)
            claimed.clear()
            for slot in slots:
                start(slot)
            continue
        done, _ = wait(busy, return_when=FIRST_COMPLETED)
        for future in done:
            spec, slot = busy.pop(future)
            error = future.exception()
            if isinstance(error, BrokenProcessPool) and spec.key not in tried:
                tried.add(spec.key)  # its worker was killed: once more
                todo.appendleft(spec)
            else:
                if error is None:
                    store.add(future.result())
                yield spec, future.result() if error is None else f"{type(error).__name__}: {error}"
            claims.drop(spec.key)
            start(slot)
    store.refresh()
    outcome.elsewhere = sum(spec.key not in store.rows for spec in claimed)


def _outdated(runs: Sequence[Run], made: dict[Key, Row]) -> int:
    """How many rows on file have other settings, or another engine, than a run would have now."""
    now: dict[tuple[str, str], str] = {}
    count = 0
    for spec in runs:
        row = made.get(spec.key)
        if row is None or row["settings"] is None:
            continue
        kind = (spec.task, spec.method)
        if kind not in now:
            now[kind] = json.dumps(settings(spec.setup()[1]), sort_keys=True)
        same = row["versions"].get("engine") == engine()
        count += not same or json.dumps(row["settings"], sort_keys=True) != now[kind]
    return count


@contextmanager
def _local(workers: int) -> Iterator[list[Slot]]:
    """Processes of this machine, each with one thread; one that was killed is replaced."""
    pools: list[ProcessPoolExecutor] = []

    def slot(index: int) -> Slot:
        def submit(spec: Run) -> Future[Row]:
            try:
                return pools[index].submit(work, spec)
            except BrokenProcessPool:
                pools[index] = _pool()
                return pools[index].submit(work, spec)

        return submit

    with cores.single_threaded():
        pools += [_pool() for _ in range(workers)]
        try:
            yield [slot(i) for i in range(workers)]
        finally:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """A worker whose parent was killed ends too, rather than wait for work for ever."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _cluster(address: str) -> Iterator[list[Slot]]:
    """The workers of a Dask cluster, which must have one thread each."""
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise ValueError(f"a cluster needs {error.name}: pip install './bench[cluster]'") from error
    try:
        client: Any = Client(address, timeout="20s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ValueError(f"no Dask scheduler answers at {address!r}: {error}") from error
    with client:
        threads = client.nthreads()
        if not threads or max(threads.values()) > 1:
            raise ValueError(
                f"the cluster at {address} has workers of {sorted(threads.values())} threads; "
                f"start them with one each: dask worker {address} --nworkers 4 --nthreads 1"
            )
        executor = client.get_executor(pure=False)
        yield [partial(executor.submit, work)] * (AHEAD * len(threads))


@contextmanager
def _bar(total: int, done: int, console: Console | None) -> Iterator[Callable[[int, str], None]]:
    """Progress: a bar on a terminal, lines elsewhere."""
    screen = console or Console(file=Outlet())  # type: ignore[arg-type]
    progress = Progress(
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=screen,
        disable=not screen.is_terminal,
    )
    task = progress.add_task("runs", total=total, completed=done, note=f"{done} on file")
    count = done

    def say(step: int, note: str) -> None:
        nonlocal count
        count += step
        progress.update(task, advance=step, note=note)
        if not screen.is_terminal:
            line = f"{time.strftime('%H:%M:%S')} {count} of {total} runs; {note}"
            screen.print(line, soft_wrap=True, highlight=False)

    with progress:
        yield say


def _name(spec: Run) -> str:
    return f"{spec.task} {spec.method} seed {spec.seed}"


def _brief(row: Row) -> str:
    regret = row["checkpoints"]["inference"][-1]
    return f"regret {regret:.2g} in {duration(row['seconds'])}"
