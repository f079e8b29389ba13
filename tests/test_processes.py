"""Forks, spawned processes, threads and event loops: an optimiser works in all of them."""

from __future__ import annotations

import asyncio
import copy
import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from optpair import Optimizer, Trial
from shell_cases import cheap, filled, objective, python

VALUES = [1.0, 0.5, 2.0, 0.7]
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def work(optimizer: Optimizer, path: str) -> tuple[Any, ...]:
    """Everything that an optimiser does."""
    trial = optimizer.ask()
    optimizer.tell(trial, objective(dict(trial.params)))
    best = optimizer.recommend()
    optimizer.save(path)
    return trial, best.mean, len(Optimizer.load(path).trials)


def suggest(seed: int) -> Trial:
    return filled(cheap(seed), VALUES).ask()


def in_child(connection: Any, optimizer: Optimizer, path: str) -> None:
    connection.send(work(optimizer, path))


@FORKS
def test_a_forked_child_goes_on_with_a_copy(tmp_path: Path) -> None:
    """After the parent has asked, and while another of its threads is inside the optimiser."""
    optimizer = filled(cheap(), VALUES)
    optimizer.cancel(optimizer.ask())
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with optimizer._lock.now:
            taken.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    try:
        process = context.Process(
            target=in_child, args=(there, optimizer, str(tmp_path / "child.json"))
        )
        process.start()
        assert here.poll(60)
        got = here.recv()
        process.join(60)
    finally:
        done.set()
        holder.join()
    assert process.exitcode == 0
    assert got == work(optimizer, str(tmp_path / "parent.json"))


FORK_WHILE_ASKING = """
import copy, os, pickle, sys, threading
from shell_cases import cheap, filled

optimizer = filled(cheap(), [1.0, 0.5, 2.0, 0.7])
stop = threading.Event()

def ask():
    while not stop.is_set():
        optimizer.cancel(optimizer.ask())

thread = threading.Thread(target=ask)
thread.start()
for _ in range(12):
    child = os.fork()
    if child == 0:
        again = copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))
        asked = [each.ask() for each in (*again, optimizer)]
        os._exit(0 if asked[0] == asked[1] else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
print("done")
"""


@FORKS
def test_copies_in_a_forked_child_while_a_thread_of_the_parent_asks() -> None:
    done = python(FORK_WHILE_ASKING)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


SPAWN = """
import multiprocessing
from test_processes import suggest

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(suggest, [0, 1]) == [suggest(0), suggest(1)]
    print("done")
"""


def test_spawned_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPAWN)
    done = python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_workers_of_joblib() -> None:
    joblib = pytest.importorskip("joblib")
    done = python(
        "import joblib\nfrom test_processes import suggest\n"
        "found = joblib.Parallel(n_jobs=2)(joblib.delayed(suggest)(i) for i in range(2))\n"
        "assert found == [suggest(0), suggest(1)], found\n"
        "from joblib.externals.loky import get_reusable_executor\n"
        "get_reusable_executor().shutdown()\nprint('done')\n"
    )
    assert joblib is not None
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def evaluate(optimizer: Optimizer) -> int:
    trial = optimizer.ask()
    optimizer.tell(trial, objective(dict(trial.params)))
    return trial.id


def test_a_pool_of_threads_shares_one() -> None:
    optimizer = filled(cheap(), VALUES)
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(evaluate, [optimizer] * 8))
    assert sorted(ids) == list(range(4, 12))
    assert {trial.state for trial in optimizer.trials} == {"told"}


def test_an_event_loop() -> None:
    optimizer = filled(cheap(), VALUES)

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        calls = [loop.run_in_executor(None, evaluate, optimizer) for _ in range(4)]
        return await asyncio.gather(*calls)

    assert sorted(asyncio.run(main())) == [4, 5, 6, 7]


def test_ask_in_a_worker_thread_gives_the_same_point() -> None:
    here, there = (filled(cheap(), VALUES) for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(there.ask).result() == here.ask()


def test_copies_are_independent() -> None:
    optimizer = filled(cheap(), VALUES)
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        other.tell(other.ask(), 1.0)
    assert len(optimizer.trials) == 4
