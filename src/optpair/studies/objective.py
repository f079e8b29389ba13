"""Evaluate parameters: by a command, or by a Python function."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import string
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from optpair.studies.config import Command, Function, StudyError, StudyFile, names_in
from optpair.studies.results import Result, read

KEPT = 1500
"""Characters of a failed command's output that are kept: storages hold about 2,000."""

HEAD = 300  # characters of an exception that come before its traceback
TAIL = 65536
LONGEST_LINE = 2**24  # bytes of the line that has the value: JSON may hold more than that
GUARD = 'read over || { kill -s TERM -- "-$1"; sleep "$2"; kill -s KILL -- "-$1"; }'
GRACE = 3.0  # seconds between asking a command to stop and stopping it
NAMES = ("OPTPAIR_PARAMS", "OPTPAIR_TRIAL", "OPTPAIR_CHECKPOINT")
"""What a command, or a function, finds in its environment."""


Evaluate = Callable[[Mapping[str, Any], int, Path | None], Result]
"""From parameters, a trial's number and its checkpoint folder to a result."""


def evaluator(file: StudyFile) -> Evaluate:
    """What evaluates the study's parameters."""
    if isinstance(file.objective, Command):
        command = file.objective
        return lambda params, number, folder: run(command, params, number, file, folder)
    if isinstance(file.objective, Function):
        function = find(file.objective, file.folder)
        return lambda params, number, folder: call(function, params, number, file, folder)
    raise StudyError(f"{file.path.name} has no [objective]: use ask and tell")


def find(objective: Function, folder: Path) -> Callable[[dict[str, Any]], Any]:
    """Import the function; modules beside the study file are found."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = importlib.import_module(objective.module)
        for part in objective.name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # of the user's code, whatever it is
        raise StudyError(
            f"[objective] python cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise StudyError(f"[objective] {objective.module}:{objective.name} is not a function")
    return found


def call(
    function: Callable[[dict[str, Any]], Any],
    params: Mapping[str, Any],
    number: int,
    file: StudyFile,
    checkpoint: Path | None = None,
) -> Result:
    """Call a function, which finds in its environment what a command does.

    An exception is a failed trial, and so is `sys.exit`.
    """
    known = {**params, **file.space.labels(params)}
    before = {name: os.environ.pop(name) for name in NAMES if name in os.environ}
    os.environ.update(environment(known, number, checkpoint))
    try:
        returned = function(known)
    except (Exception, SystemExit) as error:
        said = traceback.format_exception_only(error)[-1].strip()
        return Result(problem=f"{said[:HEAD]}\n{traceback.format_exc()[-KEPT:]}")
    finally:
        for name in NAMES:
            os.environ.pop(name, None)
        os.environ.update(before)
    return read(returned, file)


def environment(params: Mapping[str, Any], number: int, checkpoint: Path | None) -> dict[str, str]:
    """What is known of a trial beside its arguments: the parameters, as JSON, and its number.

    If the space has a fidelity, also the folder from which a run continues an earlier look.
    """
    found = (json.dumps(params), str(number), None if checkpoint is None else str(checkpoint))
    return {name: text for name, text in zip(NAMES, found, strict=True) if text is not None}


def run(
    command: Command,
    params: Mapping[str, Any],
    number: int,
    file: StudyFile,
    checkpoint: Path | None = None,
) -> Result:
    """Run a command in the study file's folder; its output goes to temporary files.

    Arguments of parameters that are not there are left out.
    """
    known = {**params, **file.space.labels(params)}
    there = [argument for argument in command.arguments if known.keys() >= set(names_in(argument))]
    arguments = [fill(argument, known) for argument in there]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                arguments,
                cwd=file.folder,
                env={**os.environ, **environment(known, number, checkpoint)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # Ctrl-C is for the worker, which decides
            )
        except (OSError, ValueError) as error:  # a NUL in an argument is a ValueError
            raise StudyError(f"[objective] command cannot be started: {error}") from error
        with _guarded(process):
            try:
                code = process.wait(command.timeout)
            except subprocess.TimeoutExpired:
                _stop(process)
                return Result(problem=f"timed out after {command.timeout:g} s{_kept(out, err)}")
            except BaseException:
                _stop(process)
                raise
        if code != 0:
            return Result(problem=f"exit code {code}{_kept(out, err)}")
        result = parse(_tail(out, LONGEST_LINE), file)
        if not result.values:
            return Result(problem=result.problem + _kept(out, err))
        return result


def fill(argument: str, params: Mapping[str, Any]) -> str:
    """An argument with values in the place of their names. Floats keep every digit."""
    parts = string.Formatter().parse(argument)
    return "".join(
        literal + ("" if name is None else text(params[name])) for literal, name, _, _ in parts
    )


def text(value: object) -> str:
    """A value as a command sees it: strings as they are, anything else as JSON.

    Negative floats are written without an exponent: argparse takes -0.000036 for a number, and
    -3.6e-05 for an option.
    """
    if isinstance(value, float) and value < 0:
        return np.format_float_positional(value, trim="0")
    return value if isinstance(value, str) else json.dumps(value)


def parse(output: str, file: StudyFile) -> Result:
    """The last line of a command's output: a number, or a JSON object with values."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return Result(problem="the command printed no value")
    with contextlib.suppress(ValueError):
        return read(float(lines[-1]), file)
    with contextlib.suppress(ValueError, RecursionError):
        return read(json.loads(lines[-1]), file)
    return Result(
        problem="the last line of the output is neither a number nor a JSON object with a value"
    )


def _tail(file: IO[bytes], most: int = TAIL) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - most))
    return file.read().decode("utf-8", errors="replace")


def _kept(out: IO[bytes], err: IO[bytes]) -> str:
    """The end of what a command wrote."""
    written = [shown for shown in (_tail(out).strip(), _tail(err).strip()) if shown]
    share = KEPT // max(len(written), 1)
    return "".join(f"\n{shown[-share:]}" for shown in written)


@contextlib.contextmanager
def _guarded(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """See that a command does not outlive this process, even one that is killed with SIGKILL.

    A shell waits for a word from here. Where its input ends without one, this process is gone, and
    the shell ends the command and what it started.
    """
    try:
        guard = subprocess.Popen(
            ["sh", "-c", GUARD, "sh", str(process.pid), f"{GRACE:g}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what is sent to this process's group does not reach it
        )
    except OSError:  # a machine without a shell, or full: the command runs unguarded
        yield
        return
    try:
        yield
    finally:
        guard.communicate(b"over\n")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started: politely first."""
    for signal_, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal_)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
