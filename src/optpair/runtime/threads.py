"""Threads and memory: one thread of BLAS while the engine works, and as before afterwards.

More threads gain nothing on small matrices, and spin: if another process has the second core, a
factorisation of a millisecond may wait a hundred times as long for the scheduler.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
_running: set[object] = set()  # calls that are running now, in all threads
_count = 1  # threads of BLAS that the engine may use
_before: dict[int, int] = {}  # the host's own setting, by the place of each library


@functools.cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of NumPy and SciPy, both loaded before anything is limited."""
    import scipy.linalg.lapack  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


@functools.cache
def _keep_memory() -> None:
    """Let malloc keep what is freed, up to 62 MB, instead of handing it back to the system.

    Work arrays of a megabyte come and go by the thousand; each would be mapped and cleared anew.
    glibc raises its thresholds to the size of the largest block that was freed: this is one, and it
    is never touched.
    """
    np.empty(31 << 20, dtype=np.uint8)


M_ARENA_MAX = -8  # a parameter of glibc's mallopt


def _glibc(function: str, *arguments: int) -> None:
    """Call a function of glibc's malloc; nothing happens where there is another C library."""
    with suppress(OSError, TypeError, AttributeError):
        getattr(ctypes.CDLL(None), function)(*arguments)


def share_memory() -> None:
    """Let all threads that start from now on take memory from one place.

    With a place of their own, each would keep what it has freed, beyond `return_memory`.
    """
    _glibc("mallopt", M_ARENA_MAX, 1)


def return_memory() -> None:
    """Hand the memory that `_keep_memory` has kept back to the system, before a long rest."""
    _glibc("malloc_trim", 0)


def limit_threads(count: int) -> None:
    """Let the engine use at most this many BLAS threads; the default is one.

    Args:
        count: an int of at least 1. More than one helps only with thousands of trials.
    """
    global _count
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"count must be an int of at least 1, not {count!r}")
    _count = count


def _begin(call: object) -> None:
    """Limit the threads of BLAS while a call runs."""
    with _lock:
        _keep_memory()
        if not _running:
            _before.update({i: lib.num_threads for i, lib in enumerate(_libraries())})
        _running.add(call)
        _set(dict.fromkeys(_before, _count))


def _end(call: object) -> None:
    """Restore the host's setting after the last call. Ending twice does no harm."""
    with _lock:
        _running.discard(call)
        if not _running:
            _restore()


def _restore() -> None:
    _set(_before)
    _before.clear()


def _set(counts: Mapping[int, int]) -> None:
    """Set the threads of each library.

    In threadpoolctl the first thread that sets a number keeps others from setting one; here whoever
    holds our lock may, as the number is the same for all.
    """
    for i, lib in enumerate(_libraries()):
        release = getattr(lib, "clear_controlling_thread", lambda force: None)
        if i in counts and lib.num_threads != counts[i]:
            release(force=True)
            lib.set_num_threads(counts[i])
            release(force=True)


def _libraries() -> list[Any]:
    return list(_blas().lib_controllers)


@contextmanager
def few_threads() -> Iterator[None]:
    """Limit the threads of BLAS for a while."""
    call = object()
    try:
        _begin(call)
        yield
    finally:
        _end(call)


def engine_work(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function as the engine runs: few threads, and floating-point surprises left silent.

    Results are checked where they matter; a host that makes overflow an error means its own code.
    Ctrl-C at any moment leaves the host's settings as they were: those of NumPy belong to a
    context, and the function runs in a copy of it.
    """

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        call = object()
        try:
            _begin(call)
            return contextvars.copy_context().run(_silently, function, *args, **kwargs)
        finally:
            try:
                _end(call)
            except BaseException:
                _end(call)
                raise

    return inner


def _silently(function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)


def _after_fork() -> None:
    """In a forked child no other thread is running, whatever the parent's were doing."""
    global _lock
    _lock = threading.Lock()
    _running.clear()
    if _before:
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
