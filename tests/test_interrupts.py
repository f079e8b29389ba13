"""Ctrl-C, or any exception, at any moment: later calls work, and nothing is left half done."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import optpair
from optpair import Optimizer
from optpair.runtime import threads
from shell_cases import SPACE, cheap, filled, objective, point

HERE = str(Path(optpair.__file__).parent)


class InjectedError(Exception):
    """What is injected."""


def consistent(optimizer: Optimizer, held: set[int]) -> None:
    """Ids increase, points belong to trials, arrays fit, and what is pending is somebody's."""
    history, trials = optimizer._history, optimizer.trials
    ids = [trial.id for trial in trials]
    assert ids == sorted(set(ids))
    assert all(trial_id < history.next_id for trial_id in ids)
    assert {trial.id for trial in trials if trial.state == "pending"} <= held
    data = history.data()
    assert data.told == history.count("told")
    for trial in trials:
        np.testing.assert_array_equal(history.points[trial.id], SPACE.encode(trial.params))
    again = json.loads(json.dumps(optimizer._to_json()))
    assert Optimizer._from_json(again).trials == trials


def free(optimizer: Optimizer) -> bool:
    """Whether another thread can have the optimiser, and the engine."""
    got: list[bool] = []

    def take() -> None:
        got.append(optimizer._lock.now.acquire(timeout=5) and threads._lock.acquire(timeout=5))
        threads._lock.release()
        optimizer._lock.now.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return got == [True] and threads._running == set() and threads._before == {}


def interrupt_at_random(count: int, seed: int) -> int:
    """Real signals at random moments of asks and tells; how many came inside a call."""
    rng = np.random.default_rng(seed)
    optimizer, held, inside = filled(cheap(), [1.0, 0.5, 2.0]), set[int](), 0
    stop = threading.Event()
    waiting: list[float] = []

    def shoot() -> None:
        while not stop.is_set():
            if waiting:
                time.sleep(waiting.pop())
                os.kill(os.getpid(), signal.SIGINT)
            else:
                time.sleep(1e-4)

    shooter = threading.Thread(target=shoot)
    shooter.start()
    typical = np.inf
    for _ in range(4):
        begin = time.perf_counter()
        optimizer.cancel(optimizer.ask())
        typical = min(typical, time.perf_counter() - begin)
    try:
        for i in range(count):
            trial, shot = None, False
            try:
                waiting.append(float(rng.uniform(0, 1.5 * typical)))
                trial = optimizer.ask()
                held.add(trial.id)
                optimizer.tell(trial, objective(dict(trial.params)))
                optimizer.tell(point(i), 1.0)
                shot = True
                time.sleep(5)
            except KeyboardInterrupt:
                inside += not shot
            consistent(optimizer, held)
            for left in optimizer.trials:
                if left.state == "pending":
                    optimizer.cancel(left)
            if len(optimizer.trials) > 12:
                assert free(optimizer)
                optimizer, held = filled(cheap(seed=i), [1.0, 0.5, 2.0]), set()
    finally:
        stop.set()
        shooter.join()
    assert free(optimizer)
    optimizer.tell(optimizer.ask(), 1.0)
    assert np.isfinite(optimizer.recommend().mean)
    return inside


@pytest.mark.skipif(os.name == "nt", reason="signals do not arrive so on Windows")
def test_ctrl_c_at_any_moment() -> None:
    assert threading.current_thread() is threading.main_thread()
    before = np.geterr()
    assert interrupt_at_random(60, seed=0) > 10
    assert np.geterr() == before


def lines_of(call: Callable[[], Any], stop_at: int) -> int:
    """Run a call, break it at the line of that number, and say how many lines were run."""
    seen = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        if event == "line":
            seen += 1
            if seen == stop_at and not _leaves_a_lock(frame):
                sys.settrace(None)
                raise InjectedError
        return trace

    sys.settrace(trace)
    try:
        with suppress(InjectedError):
            call()
    finally:
        sys.settrace(None)
    return seen


def _leaves_a_lock(frame: FrameType) -> bool:
    """Between a block and its release, where the interpreter looks for no signal."""
    source = Path(frame.f_code.co_filename).read_text(encoding="utf-8").splitlines()
    return source[frame.f_lineno - 1].strip().startswith("with ")


CALLS: dict[str, Callable[[Optimizer], object]] = {
    "ask": lambda o: o.ask(),
    "ask for a plate": lambda o: o.ask(3),
    "tell": lambda o: o.tell(4, 1.0),
    "tell parameters": lambda o: o.tell(point(9), 1.0),
    "tell failed": lambda o: o.tell(point(9), failed=True),
    "revise": lambda o: o.revise(1, 7.0),
    "cancel": lambda o: o.cancel(4),
    "recommend": lambda o: o.recommend(),
}


def prepared() -> Optimizer:
    optimizer = filled(cheap(), [1.0, 0.5, 2.0, 0.7])
    optimizer.ask()
    return optimizer


@pytest.mark.parametrize("name", CALLS)
def test_an_exception_at_any_line(name: str) -> None:
    call = CALLS[name]
    start = json.dumps(prepared()._to_json())
    whole = prepared()
    call(whole)
    done = json.dumps(whole._to_json())
    asking = name.startswith("ask")
    expected = whole.ask().params if asking else None
    warm = prepared()
    own = lines_of(lambda: call(warm), -1)
    assert own > 5
    # Its first and last lines are those of an ask, and what is between takes longest.
    ends = {"recommend": 3, "ask for a plate": 8}.get(name, 20)
    first, last = range(1, min(own, ends) + 1), range(max(own - ends, 1), own + 1)
    spread = np.linspace(1, own, 8).astype(int)
    for k in sorted({*first, *spread.tolist(), *last}):
        optimizer = prepared()
        lines_of(lambda optimizer=optimizer: call(optimizer), k)  # type: ignore[misc]
        now = json.dumps(optimizer._to_json())
        broke = now != done
        consistent(optimizer, {4} if broke else {4, 5, 6, 7})
        if broke:  # nothing was changed; an id may have been used up, and chains be warmer
            assert json.loads(now)["trials"] == json.loads(start)["trials"]
            assert json.loads(now)["asked"] == json.loads(start)["asked"]
        assert threads._running == set()
        assert not threads._before
        if expected is not None and broke:
            call(optimizer)
            assert optimizer.ask().params == expected  # as if nothing had been


def test_nothing_of_the_host_is_lost() -> None:
    """Floating-point settings and threads of BLAS are as they were."""
    before = np.geterr()
    limits = [pool["num_threads"] for pool in threads._blas().info()]
    for k in (40, 200, 700):
        lines_of(filled(cheap(), [1.0, 0.5, 2.0, 0.7]).ask, k)
    assert np.geterr() == before
    assert [pool["num_threads"] for pool in threads._blas().info()] == limits
