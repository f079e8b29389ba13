"""Files that are never half written, never overwritten unseen, and have one search at a time."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]


def write(path: str | Path, text: str) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new, whole."""
    target = check_place(path)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(beside, target)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        error.add_note(f"while saving to {path}: what was there before is as it was")
        raise
    _flush_folder(target.parent)


def check_place(path: str | Path) -> Path:
    """Where the file will be; an error where there can be none."""
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.is_dir():
        raise IsADirectoryError(f"cannot save to {path}: it is a folder; name a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {path}: there is no folder {target.parent}; make it first"
        )
    if target.exists() and not target.is_file():  # the rename would replace it
        raise OSError(f"cannot save to {path}: it is a device or a pipe; name a file")
    return target


def _flush_folder(folder: Path) -> None:
    """Make a rename outlive a power cut, where the system allows."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Copies:
    """What one optimiser has read from files and written to them.

    Where somebody else has written to such a file since, it is not overwritten: two that load one
    file and save to it in turn would each undo what the other was told.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, set[str]] = {}

    def read(self, path: str | Path) -> bytes:
        """What the file holds."""
        content = Path(path).read_bytes()
        self._seen[Path(os.path.realpath(path))] = {_digest(content)}
        return content

    def write(self, path: str | Path, text: str) -> None:
        """Write the file, or a FileExistsError."""
        target = check_place(path)
        seen, new = self._seen.get(target, set()), _digest(text.encode())
        if seen and target.exists() and _digest(target.read_bytes()) not in seen:
            raise FileExistsError(
                f"cannot save to {path}: somebody else has written to it since this optimizer "
                "did, or read it; load it and tell what is missing there, or save to another file"
            )
        self._seen[target] = {new, *seen}  # a write that is cut off leaves the one or the other
        write(path, text)
        self._seen[target] = {new}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def claim(path: str | Path) -> Iterator[None]:
    """Keep a file to this search while it lasts; an error where another search has it.

    By a lock on a file beside it, which the system releases when the process ends, however that
    is. Where there are no such locks nothing is kept, and `Copies` finds out later.
    """
    target = check_place(path)
    beside = target.with_name(f".{target.name}.lock")
    try:
        handle = _lock(beside)
        while not _is(handle, beside):  # whoever had it has removed the file in between
            os.close(handle)
            handle = _lock(beside)
    except BlockingIOError:
        raise BlockingIOError(
            f"another search that is running has {path}; wait for it, or choose another file"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            beside.unlink()
        os.close(handle)


def _lock(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # a file system without locks
        pass
    return handle


def _is(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
