"""Rows on disk: one JSON line a run, appended whole, so that a runner may be killed at any time.

Several runners may share a file. Each row is written under a lock on the file; a run is claimed by
a lock on a byte of a file beside it, which the system takes back when its runner dies.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

fcntl: Any
try:
    import fcntl
except ModuleNotFoundError:  # on systems without it, one runner a file
    fcntl = None

Row = dict[str, Any]
Key = tuple[str, str, str, int, int]


def key(row: Row) -> Key:
    """What a run is known by: experiment, task, method, seed and number of evaluations."""
    return row["experiment"], row["task"], row["method"], row["seed"], row["evaluations"]


def read(path: Path) -> dict[Key, Row]:
    """The rows of a file; a line that was cut off by a kill is left out."""
    if not path.exists():
        return {}
    rows: dict[Key, Row] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if not isinstance(row, dict) or "checkpoints" not in row or "experiment" not in row:
            raise ValueError(f"line {number} of {path} is not a row of `optpair bench run`")
        rows.setdefault(key(row), row)
    return rows


def append(path: Path, row: Row) -> None:
    """Write one row to the end, on a line of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":  # the line before was cut off
                file.write(b"\n")
        file.write(json.dumps(row, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


class Claims:
    """Runs that this process is doing, seen by other runners of the same file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path.with_name(f".{path.name}.claims")
        self._file: BinaryIO = self._path.open("a+b")

    def take(self, run: Iterable[object]) -> bool:
        """Claim a run; False where another process has claimed it."""
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte(run))
        except OSError:
            return False
        return True

    def drop(self, run: Iterable[object]) -> None:
        """Give a claim back."""
        if fcntl is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._byte(run))

    def close(self) -> None:
        """Give all claims back."""
        self._file.close()

    @staticmethod
    def _byte(run: Iterable[object]) -> int:
        return zlib.crc32(json.dumps(list(run)).encode())
