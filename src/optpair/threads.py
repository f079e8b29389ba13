"""Threads of BLAS: one while the engine works, unless told otherwise; as before afterwards.

More gain nothing on small matrices, and spin: where another process has the second core, a
factorisation of a millisecond would wait for the scheduler a hundred times as long.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
_inside = 0  # calls that are running now, in all threads
_count = 1  # threads of BLAS that the engine may use
_before: Any = None  # what puts the host's own setting back


@functools.cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of NumPy and SciPy, both loaded before anything is limited."""
    import scipy.linalg.lapack  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


def limit_threads(count: int) -> None:
    """Let the engine use at most so many threads of BLAS; one is the default."""
    global _count
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"count must be an int of at least 1, not {count!r}")
    _count = count


@contextmanager
def few_threads() -> Iterator[None]:
    """Limit the threads of BLAS for a while; who comes last puts the host's setting back."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = _blas().limit(limits=_count)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            if _inside:  # zero in a child that was forked in here: its setting is back already
                _inside -= 1
                if _inside == 0:
                    _before.restore_original_limits()


def engine_work(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function as the engine runs: few threads, and floating-point surprises left silent.

    Results are checked where they matter; a host that makes overflow an error means its own code.
    """

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        with few_threads(), np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return inner


def _after_fork() -> None:
    """In a forked child no other thread is running, whatever the parent's were doing."""
    global _lock, _inside
    _lock = threading.Lock()
    if _inside:
        _inside = 0
        _before.restore_original_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
