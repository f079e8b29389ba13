"""Several workers on this machine, each a process of its own."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from optpair.studies.config import StudyFile
from optpair.studies.endings import Endings
from optpair.studies.worker import Interrupts, Say


def run(
    file: StudyFile,
    workers: int,
    stop: Interrupts,
    say: Say,
    endings: Endings,
    context: Sequence[str] = (),
) -> bool:
    """Start workers and wait for them; whether one of them saw the study finished.

    Ctrl-C is passed on, once or twice. `context` is words that each of them is given.
    """
    processes = [_start(file, endings, context) for _ in range(workers)]
    told = False
    try:
        for process in processes:
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
                if stop and not told:
                    told = True
                    _signal(processes, signal.SIGINT)
    except BaseException:
        _signal(processes, signal.SIGTERM)
        raise
    finally:
        for process in processes:
            process.wait()
    lost = [process.returncode for process in processes if process.returncode not in (0, 130)]
    if lost:
        say(f"{len(lost)} of {workers} workers ended with exit codes {sorted(set(lost))}.")
    return any(process.returncode == 0 for process in processes)


def _start(file: StudyFile, endings: Endings, context: Sequence[str]) -> subprocess.Popen[bytes]:
    """A worker. A Ctrl-C that is passed on while it starts is held back until it listens."""
    command = [sys.executable, "-m", "optpair", "run", str(file.path)]
    command += ["--seconds", str(endings.left)] * (endings.left < math.inf)
    command += ["--keep-going"] * endings.keep_going
    command += ["--stops", str(endings.stops)]
    command += [f"--context={word}" for word in context]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited
    try:
        # A session of its own: Ctrl-C reaches it through this process only.
        return subprocess.Popen([*command, "--worker-of", str(os.getpid())], start_new_session=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _signal(processes: list[subprocess.Popen[bytes]], number: int) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)
