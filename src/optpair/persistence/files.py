"""Files that are never half written, never overwritten unseen, and have one search at a time."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

WITHOUT_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}
"""What a file system without locks answers."""

PATIENCE, GLANCE, POLL = 60.0, 0.05, 0.002
"""Seconds that a save waits for its turn, that a claim tries, and between two tries."""


def write(path: str | Path, text: str) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new, whole."""
    target = check_place(path)
    with _writing(path, target) as alone:
        _replace(target, text, alone)


@contextmanager
def _writing(path: str | Path, target: Path) -> Iterator[bool]:
    """One writer at a time, from what it checks to the rename; yields whether that is sure."""
    try:
        with _locked(target.with_name(f".{target.name}.write.lock"), PATIENCE) as alone:
            yield alone
    except TimeoutError:
        raise TimeoutError(
            f"cannot save to {path}: another process has been writing to it for {PATIENCE:g} "
            "seconds; wait for it, end it, or save to another file"
        ) from None
    except BaseException as error:
        error.add_note(f"while saving to {path}: what was there before is as it was")
        raise


def _replace(target: Path, text: str, alone: bool) -> None:
    """Write beside the target, then rename; remove what killed writers have left, if alone."""
    if alone:
        _sweep(target)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    _flush_folder(target.parent)


def _sweep(target: Path) -> None:
    """Remove the target's temporary files: as they are written under the lock, none is in use."""
    left = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{12}}\.tmp")
    with suppress(OSError):
        for name in filter(left.fullmatch, os.listdir(target.parent)):
            target.with_name(name).unlink()


def check_place(path: str | Path) -> Path:
    """Where the file will be; an error if there can be none."""
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

    If somebody else has written to such a file since, it is not overwritten: two optimisers that
    load one file and save to it in turn would each undo what the other was told.
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
        with _writing(path, target) as alone:
            seen, new = self._seen.get(target, set()), _digest(text.encode())
            if seen and target.exists() and _digest(target.read_bytes()) not in seen:
                raise FileExistsError(
                    f"cannot save to {path}: somebody else has written to it since this optimizer "
                    "did, or read it; load it and tell what is missing there, or save to another "
                    "file"
                )
            self._seen[target] = {new, *seen}  # a write that is cut off leaves one or the other
            _replace(target, text, alone)
            self._seen[target] = {new}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def claim(path: str | Path) -> Iterator[None]:
    """Keep a file to this search while it lasts; an error if another search has it.

    By a lock on a file beside it, which the system releases when the process ends, however it does.
    On a file system without such locks nothing is locked, and `Copies` notices later.
    """
    target = check_place(path)
    with ExitStack() as stack:
        try:
            stack.enter_context(_locked(target.with_name(f".{target.name}.lock"), GLANCE))
        except TimeoutError:
            raise BlockingIOError(
                f"another search that is running has {path}; wait for it, or choose another file"
            ) from None
        yield


@contextmanager
def _locked(beside: Path, patience: float) -> Iterator[bool]:
    """Hold the lock on a file, which is there only meanwhile; TimeoutError where others keep it.

    Yields False, and holds nothing, on a file system without locks.
    """
    from filelock import FileLock  # late: a search without files need not wait for it

    lock = FileLock(beside, timeout=patience, poll_interval=POLL, fallback_to_soft=False)
    try:
        held = bool(lock.acquire())
    except OSError as error:
        if isinstance(error, TimeoutError) or error.errno not in WITHOUT_LOCKS:
            raise
        held = False
    try:
        yield held
    finally:
        with suppress(OSError):  # Windows removes no open file; there the release does
            beside.unlink()
        lock.release()
