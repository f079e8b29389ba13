"""Standard error, for progress and messages: if it is closed, full or gone, work goes on."""

from __future__ import annotations

import atexit
import io
import os
import sys
from contextlib import suppress
from typing import IO

UNWRITABLE = (OSError, ValueError, AttributeError)
"""What writing to a stream raises that is full or gone, closed, or None."""


class Outlet(io.TextIOBase):
    """Standard error as long as it can be written to, then nothing.

    The process's own standard error is written through a copy of its handle: what could not be
    written would stay in the buffer of `sys.stderr`, and Python would exit with code 120.
    """

    _stream: IO[str] | None
    _copy: IO[str] | None

    def __init__(self) -> None:
        self._stream, self._copy = sys.stderr, None
        own = sys.__stderr__
        if own is not None and sys.stderr is own:
            with suppress(*UNWRITABLE):
                handle = os.dup(own.fileno())
                self._copy = open(handle, "w", encoding=self.encoding, errors="replace")  # noqa: SIM115
                self._stream = self._copy

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write, or from the first failure on do nothing."""
        try:
            if self._stream is not None:
                self._stream.write(text)
        except UNWRITABLE:
            self._stream = None
        return len(text)

    def flush(self) -> None:
        """Flush, or from the first failure on do nothing."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except UNWRITABLE:
            self._stream = None

    def isatty(self) -> bool:
        """Whether a terminal is at the other end."""
        return is_terminal(self._stream)

    def fileno(self) -> int:
        """The stream's handle; an OSError where it has none."""
        if self._stream is None:
            raise OSError("standard error cannot be written to")
        return self._stream.fileno()

    def close(self) -> None:
        """Close the copy; standard error itself stays open."""
        if self._copy is not None:
            with suppress(*UNWRITABLE):
                self._copy.close()
        self._stream = self._copy = None
        super().close()


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a stream is a terminal; one that is closed, or None, is not."""
    try:
        return stream is not None and stream.isatty()
    except UNWRITABLE:
        return False


def keep_usable() -> None:
    """Give a command a standard error where it has none, and keep its exit code where it is broken.

    Where it is closed, the first file that is opened would get its number, 2, and with it what
    other programs write to their standard error.
    """
    if sys.stderr is None:
        drop(2)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    atexit.unregister(_settle)
    atexit.register(_settle)


def _settle() -> None:
    """Flush standard error, and drop what it does not take: Python would exit with code 120."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except UNWRITABLE:
        with suppress(*UNWRITABLE):
            drop(2)
            sys.stderr.flush()


def drop(handle: int) -> None:
    """Send what is written to a handle nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    if null != handle:
        os.dup2(null, handle)
        os.close(null)
