"""Cores: how many a process may use, and starting processes that may use fewer.

Numerical libraries size their thread pools when they start, so a limit holds only for processes
that are started under it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

RERUN = "OPTPAIR_BENCH_THREADS"
POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def available() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def pinned(chosen: Iterable[int]) -> Iterator[None]:
    """Processes that are started inside may use the chosen cores only, where that can be set."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(chosen))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Processes that are started inside have thread pools of one."""
    before = {name: os.environ.get(name) for name in POOLS}
    os.environ.update(dict.fromkeys(POOLS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def limited(threads: int) -> bool:
    """Whether this process was started for that number of threads."""
    return os.environ.get(RERUN) == str(threads)


def rerun(threads: int) -> int:
    """Run this command again in a process with that many cores; its exit code.

    Where it can, the new process takes this one's place, so that a signal reaches it.
    """
    cores = available()
    if threads > len(cores):
        raise ValueError(f"--threads {threads}: only {len(cores)} cores are available")
    environment = os.environ | dict.fromkeys((*POOLS, RERUN), str(threads))
    command = [sys.executable, *sys.orig_argv[1:]]
    with pinned(cores[-threads:]):
        if os.name == "posix":
            os.execve(command[0], command, environment)
        return subprocess.run(command, env=environment, check=False).returncode
