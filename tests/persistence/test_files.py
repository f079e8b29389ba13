"""Files: whole or untouched, never overwritten unseen, one search at a time."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from optpair import Optimizer
from optpair.persistence import files
from shell_cases import cheap, point

fcntl: Any = pytest.importorskip("fcntl") if os.name != "nt" else None


def test_places_that_are_none(tmp_path: Path) -> None:
    optimizer = cheap()
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing; make it first"):
        optimizer.save(tmp_path / "missing" / "run.json")
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file in it"):
        optimizer.save(tmp_path)
    for odd in (None, 3.5, ["run.json"]):
        with pytest.raises(TypeError):
            optimizer.save(odd)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> int:
        raise PermissionError(13, "Permission denied", str(args[0]))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        cheap().save(tmp_path / "run.json")
    assert "run.json" in caught.value.__notes__[0]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_cut_off_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path, optimizer = tmp_path / "run.json", cheap()
    optimizer.save(path)
    before = path.read_bytes()
    optimizer.tell(point(0), 1.0)

    def stop(*args: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, step, stop)
        with pytest.raises(type(error)):
            optimizer.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    optimizer.save(path)
    assert Optimizer.load(path).trials == optimizer.trials


def test_two_saves_at_once(tmp_path: Path) -> None:
    path, texts = tmp_path / "run.json", ["a" * 50_000, "b" * 50_000]
    threads = [
        threading.Thread(target=lambda t=t: [files.write(path, t) for _ in range(30)])
        for t in texts
    ]
    for thread in threads:
        thread.start()
    files.write(path, texts[0])
    seen = {path.read_text() for _ in range(50)}
    for thread in threads:
        thread.join()
    assert seen <= set(texts)
    assert list(tmp_path.iterdir()) == [path]


def test_what_others_have_written_is_not_overwritten(tmp_path: Path) -> None:
    path, first = tmp_path / "run.json", cheap()
    first.save(path)
    second = Optimizer.load(path)
    second.tell(point(0), 1.0)
    second.save(path)
    first.tell(point(1), 2.0)
    with pytest.raises(FileExistsError, match="somebody else has written to it"):
        first.save(path)
    assert Optimizer.load(path).trials == second.trials
    first.save(tmp_path / "other.json")
    path.unlink()
    first.save(path)  # nothing is lost
    first.save(path)
    assert Optimizer.load(path).trials == first.trials


def test_a_new_optimizer_may_replace_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    cheap(seed=0).save(path)
    cheap(seed=1).save(path)
    assert Optimizer.load(path).seed == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is a device or a pipe"):
        cheap().save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_claim_keeps_others_out_and_leaves_nothing(tmp_path: Path) -> None:
    path, other = tmp_path / "run.json", tmp_path / "other.json"
    with files.claim(path), files.claim(other):
        for _ in range(2):  # that it was refused has not freed it
            refused = pytest.raises(BlockingIOError, match=r"another search .* has .*run\.json")
            with refused, files.claim(path):
                pass
    with files.claim(path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(fcntl is None, reason="locks of POSIX")
def test_a_claim_is_of_the_file_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock, times = tmp_path / "run.json", fcntl.flock, iter([True])

    def late(handle: int, operation: int) -> None:
        flock(handle, operation)
        if next(times, False):
            (tmp_path / ".run.json.lock").unlink()  # by the one that had it before

    monkeypatch.setattr(fcntl, "flock", late)
    with files.claim(path), pytest.raises(BlockingIOError), files.claim(path):
        pass


@pytest.mark.skipif(fcntl is None, reason="locks of POSIX")
@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    path, optimizer = tmp_path / "run.json", cheap()
    left = tmp_path / ".run.json.0123456789ab.tmp"
    left.touch()

    def refuse(*args: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with files.claim(path):
        optimizer.save(path)
    assert set(tmp_path.iterdir()) == {path, left}  # it may be somebody's


@pytest.mark.skipif(fcntl is None, reason="locks of POSIX")
def test_a_writer_that_hangs_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, optimizer = tmp_path / "run.json", cheap()
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    with FileLock(tmp_path / ".run.json.write.lock"):
        with pytest.raises(TimeoutError, match=r"another process has been writing to it for 0\.1"):
            optimizer.save(path)
        assert not path.exists()
    optimizer.save(path)


TELLER = """
import sys
from optpair.persistence.files import Copies
path, first, copies = sys.argv[1], int(sys.argv[2]), Copies()
for i in range(first, first + 100):
    while True:
        text = copies.read(path).decode()
        try:
            copies.write(path, f"{text}{i}\\n")
            break
        except FileExistsError:
            pass
"""


def test_four_processes_that_save_in_turn_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.touch()
    command = [sys.executable, "-c", TELLER, str(path)]
    tellers = [subprocess.Popen([*command, str(100 * i)]) for i in range(4)]
    assert [teller.wait(60) for teller in tellers] == [0] * 4
    assert sorted(map(int, path.read_text().split())) == list(range(400))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_what_killed_saves_left_is_swept(tmp_path: Path) -> None:
    path, optimizer = tmp_path / "run[1].json", cheap()
    code = (
        "import os, signal, sys; from optpair.persistence import files\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write(sys.argv[1], 'half')"
    )
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", code, path])
        assert killed.returncode == -signal.SIGKILL
    left = [file.name for file in tmp_path.iterdir()]
    assert sum(name.endswith(".tmp") for name in left) == 1  # the second swept the first
    others = {tmp_path / f".run[1].json{end}.0123456789ab.tmp" for end in (".x", "2")}
    for other in others:
        other.touch()  # of run[1].json.x, which somebody may be writing
    optimizer.save(path)
    assert set(tmp_path.iterdir()) == {path, *others}


@pytest.mark.skipif(fcntl is None, reason="locks of POSIX")
def test_a_claim_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    code = (
        "import os, signal, sys; from optpair.persistence import files\n"
        "with files.claim(sys.argv[1]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, path]).returncode == -signal.SIGKILL
    assert [left.name for left in tmp_path.iterdir()] == [".run.json.lock"]
    with files.claim(path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")
def test_modes_and_links_survive(tmp_path: Path) -> None:
    path, link = tmp_path / "run.json", tmp_path / "link.json"
    optimizer = cheap()
    umask = os.umask(0o022)
    try:
        optimizer.save(path)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o640)
    link.symlink_to(path)
    optimizer.tell(point(0), 1.0)
    optimizer.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert len(Optimizer.load(path).trials) == 1
