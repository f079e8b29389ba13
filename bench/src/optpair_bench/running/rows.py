"""Rows on disk: one JSON line per run, appended whole, so that a runner may be killed at any time.

What many runs share (settings, versions, when checkpoints are taken) is written once, on a line of
its own, `{"made": NAME, "with": {…}}`; each row has that name. The name is a digest of what it
stands for, so that files may be put together in any order, even by `cat`.

Several runners may share a file. Each row is written under a lock on the file; a run is claimed by
a lock on a byte of a file beside it, which the system takes back when its runner dies.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

fcntl: Any
try:
    import fcntl
except ModuleNotFoundError:  # on systems without it, one runner per file
    fcntl = None

Row = dict[str, Any]
Key = tuple[str, str, str, int, int]
SHARED = ("dimensions", "initial", "noise_var", "model", "settings", "recommends", "versions")
"""What a row has in common with many others, besides the evaluations of its checkpoints."""


def key(row: Row) -> Key:
    """What a run is known by: experiment, task, method, seed and number of evaluations."""
    return row["experiment"], row["task"], row["method"], row["seed"], row["evaluations"]


def read(path: Path) -> dict[Key, Row]:
    """The rows of a file; a line that was cut off by a kill is left out."""
    if not path.exists():
        return {}
    shared: dict[str, Row] = {}
    lines: list[tuple[int, Row]] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        if not isinstance(line, dict) or "made" not in line:
            raise ValueError(f"line {number} of {path} is not a row of `optpair bench run`")
        if "with" in line:
            shared[line["made"]] = line["with"]
        else:
            lines.append((number, line))
    rows: dict[Key, Row] = {}
    for number, line in lines:
        name = line.pop("made")
        if name not in shared:
            raise ValueError(f"line {number} of {path} was made with {name}, which is not there")
        row = join(line, shared[name])
        rows.setdefault(key(row), row)
    return rows


def split(row: Row) -> tuple[Row, Row]:
    """What is the run's own, and what it shares with others."""
    own = {name: value for name, value in row.items() if name not in SHARED}
    points = dict(row["checkpoints"])
    shared = {name: row[name] for name in SHARED if name in row}
    shared["checkpoints"] = points.pop("evaluations", [])
    return own | {"checkpoints": points}, shared


def join(own: Row, shared: Row) -> Row:
    """The whole row again."""
    points = {"evaluations": shared["checkpoints"], **own["checkpoints"]}
    return own | shared | {"checkpoints": points}


def append(path: Path, *rows: Row) -> None:
    """Write rows to the end, each on a line of its own, and before them what they share."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        file.seek(0)
        there = file.read()
        cut = there and not there.endswith(b"\n")  # the line before was cut off
        known = set(there.splitlines(keepends=True))
        text = [b"\n"] if cut else []
        for row in rows:
            own, shared = split(row)
            name = sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()[:10]
            head = _line({"made": name, "with": shared})
            if head not in known:
                known.add(head)
                text.append(head)
            text.append(_line(own | {"made": name}))
        file.write(b"".join(text))
        file.flush()
        os.fsync(file.fileno())


def _line(content: Row) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class Merged:
    """How many rows were added, were there already, and were there with other results."""

    added: int
    there: int
    other: int


def merge(out: Path, files: Sequence[Path]) -> Merged:
    """Add the rows of other files to a file; of two rows of a run, the first one stays."""
    for path in files:
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
    made = read(out)
    new: list[Row] = []
    there = other = 0
    for path in files:
        for name, row in read(path).items():
            if name not in made:
                made[name] = row
                new.append(row)
            elif made[name]["checkpoints"] == row["checkpoints"]:
                there += 1
            else:
                other += 1
    if new:
        append(out, *new)
    return Merged(len(new), there, other)


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
