"""Locks: one thread at a time, also after a fork and under Ctrl-C."""

from __future__ import annotations

import os
import threading
import weakref


class Lock:
    """A lock that a forked child does not inherit locked: there it is a new one.

    `with lock.now:` takes the interpreter's own lock: no line of Python runs between taking it and
    the block, or between the block and its release, where Ctrl-C could leave it locked for ever.
    """

    def __init__(self) -> None:
        self.now = threading.RLock()
        _LOCKS.add(self)


_LOCKS: weakref.WeakSet[Lock] = weakref.WeakSet()


def _after_fork() -> None:
    """In a forked child no other thread is running, whatever the parent's were holding."""
    for lock in _LOCKS:
        lock.now = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
