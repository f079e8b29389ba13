"""Threads of BLAS and floating-point errors: the engine's own, and the host's left alone."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from optpair import gp, optima
from optpair.runtime import threads
from optpair.runtime.threads import engine_work, few_threads, limit_threads


def blas_threads() -> list[int]:
    """Of each BLAS in this process."""
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def _two() -> Iterator[None]:
    """A host that has chosen two threads."""
    threads._blas()
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture
def chosen() -> list[int]:
    found = blas_threads()
    assert found
    assert set(found) == {2}
    return found


def test_one_thread_inside_and_the_hosts_after(chosen: list[int]) -> None:
    with few_threads():
        assert set(blas_threads()) == {1}
        with few_threads():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == chosen


def test_an_error_inside_puts_them_back(chosen: list[int]) -> None:
    @engine_work
    def broken() -> None:
        raise KeyError(*blas_threads())

    with pytest.raises(KeyError, match="1"):
        broken()
    assert blas_threads() == chosen


def test_threads_come_back_when_another_thread_leaves_last(chosen: list[int]) -> None:
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()
    seen: list[int] = []

    def stay() -> None:
        with few_threads():
            entered.set()
            leave.wait(10)
            seen.extend(blas_threads())
        left.set()

    other = threading.Thread(target=stay)
    with few_threads():
        other.start()
        assert entered.wait(10)
    assert set(blas_threads()) == {1}  # the other still works
    leave.set()
    assert left.wait(10)
    other.join()
    assert set(seen) == {1}
    assert blas_threads() == chosen


def test_threads_come_back_when_two_overlap(chosen: list[int]) -> None:
    """Who leaves last puts them back: here the main thread."""
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with few_threads():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=stay)
    with few_threads():
        other.start()
        assert entered.wait(10)
        leave.set()
        other.join()
        assert set(blas_threads()) == {1}
    assert blas_threads() == chosen


def test_more_threads_where_they_are_wanted(chosen: list[int]) -> None:
    limit_threads(2)
    try:
        with threadpool_limits(1, user_api="blas"), few_threads():
            assert set(blas_threads()) == {2}
    finally:
        limit_threads(1)
    assert blas_threads() == chosen


@pytest.mark.parametrize("count", [0, -1, 1.0, True, None, "2"])
def test_a_number_of_threads_is_a_number(count: object) -> None:
    with pytest.raises(ValueError, match="count must be an int of at least 1"):
        limit_threads(count)  # type: ignore[arg-type]


def in_child(work: str) -> int:
    """The exit code of a forked child that runs one of the functions below."""
    pid = os.fork()
    if pid == 0:
        try:
            ok = globals()[work]()
        except BaseException:
            ok = False
        os._exit(0 if ok else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _enters_and_leaves() -> bool:
    before = set(blas_threads()) == {2}
    with few_threads():
        inside = set(blas_threads()) == {1}
    return before and inside and set(blas_threads()) == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_child_begins_as_the_host_does() -> None:
    """Forked outside of the engine, inside of it, and while another thread holds the lock."""
    assert in_child("_enters_and_leaves") == 0
    with few_threads():
        assert in_child("_enters_and_leaves") == 0
    with threads._lock:
        assert in_child("_enters_and_leaves") == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_child_forked_inside_may_leave_and_come_again() -> None:
    with few_threads():
        pid = os.fork()
    if pid == 0:
        try:
            ok = _enters_and_leaves() and _enters_and_leaves()
        except BaseException:
            ok = False
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_host_that_raises_on_underflow_is_left_alone() -> None:
    """Length scales so short that covariances underflow: the engine does not mind."""
    before = np.seterr(all="raise")
    try:
        hypers = gp.Hyperparameters([[1e-3]], [1.0], [1e-4], [0.0])
        posterior = gp.condition(hypers, [[0.2], [0.5]], [0.0, 2.0])
        mean, _ = posterior.predict([[0.9]])
        posterior.joint([[0.1], [0.9]])
        gp.sample_paths(posterior, 2).at(np.array([[0.9]]))
        stars = optima.sample(posterior, 2, candidates=64)
        assert mean[0, 0] == 0
        assert np.all(np.isfinite(stars.best))
        assert set(np.geterr().values()) == {"raise"}
        with pytest.raises(FloatingPointError):
            np.exp(np.array([-1e4]))
    finally:
        np.seterr(**before)


KEPT = """
import re, threading
from pathlib import Path
import numpy as np
from optpair.runtime import threads

def megabytes():
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmRSS:\\s*(\\d+)", status)[0]) / 1024

def work():
    with threads.few_threads():
        arrays = [np.ones(100_000 // 8) for _ in range(400)]  # 40 MB
    held.append(arrays[-1])  # in use above the others: malloc cannot hand those back by itself

held = []
threads.share_memory()
with threads.few_threads():
    pass  # loads what it needs, and lets malloc keep memory
before = megabytes()
thread = threading.Thread(target=work)
thread.start()
thread.join()
kept = megabytes() - before
threads.return_memory()
print(kept, megabytes() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory as glibc has it")
def test_memory_that_was_kept_can_be_handed_back() -> None:
    said = subprocess.check_output([sys.executable, "-c", KEPT], text=True)
    kept, left = map(float, said.split())
    assert kept > 30
    assert left < 10


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads.ctypes, "CDLL", lambda name: object())
    threads.share_memory()
    threads.return_memory()
