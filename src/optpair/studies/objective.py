"""Evaluate parameters: by a command, or by a Python function."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import reprlib
import signal
import string
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from optpair.problem.defaults import LARGEST
from optpair.studies.config import Command, Function, StudyError, StudyFile

KEPT = 1500
"""Characters of a failed command's output that are kept: storages hold about 2,000."""

HEAD = 300  # characters of an exception that stand before its traceback
TAIL = 65536
LONGEST_LINE = 2**24  # bytes of the line that has the value: JSON may hold more than that
GUARD = 'read over || { kill -s TERM -- "-$1"; sleep "$2"; kill -s KILL -- "-$1"; }'
GRACE = 3.0  # seconds between asking a command to stop and stopping it


@dataclass(frozen=True)
class Outcome:
    """A value, perhaps with its noise variance; or what went wrong."""

    value: float | None = None
    noise_var: float | None = None
    problem: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"no value ({self.problem})"
        noise = "" if self.noise_var is None else f" with noise_var {self.noise_var!r}"
        return f"{self.value!r}{noise}"


Evaluate = Callable[[Mapping[str, Any], int], Outcome]
"""From parameters and a trial's number to an outcome."""


def evaluator(file: StudyFile) -> Evaluate:
    """What evaluates the study's parameters."""
    if isinstance(file.objective, Command):
        command = file.objective
        return lambda params, number: run(command, params, number, file.folder)
    if isinstance(file.objective, Function):
        function = find(file.objective, file.folder)
        return lambda params, _: call(function, params)
    raise StudyError(f"{file.path.name} has no [objective]: ask and tell are for such a study")


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


def call(function: Callable[[dict[str, Any]], Any], params: Mapping[str, Any]) -> Outcome:
    """An exception is a failed trial, and so is `sys.exit`."""
    try:
        returned = function(dict(params))
    except (Exception, SystemExit) as error:
        said = traceback.format_exception_only(error)[-1].strip()
        return Outcome(problem=f"{said[:HEAD]}\n{traceback.format_exc()[-KEPT:]}")
    return read(dict(returned) if isinstance(returned, Mapping) else returned)


def run(command: Command, params: Mapping[str, Any], number: int, folder: Path) -> Outcome:
    """Run a command in the study file's folder; its output goes to temporary files.

    The command also finds the parameters, as JSON, and the trial's number in its environment.
    """
    arguments = [fill(argument, params) for argument in command.arguments]
    environment = {"OPTPAIR_PARAMS": json.dumps(dict(params)), "OPTPAIR_TRIAL": str(number)}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                arguments,
                cwd=folder,
                env={**os.environ, **environment},
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
                return Outcome(problem=f"timed out after {command.timeout:g} s{_kept(out, err)}")
            except BaseException:
                _stop(process)
                raise
        if code != 0:
            return Outcome(problem=f"exit code {code}{_kept(out, err)}")
        outcome = parse(_tail(out, LONGEST_LINE))
        if outcome.problem:
            return Outcome(problem=outcome.problem + _kept(out, err))
        return outcome


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


def parse(output: str) -> Outcome:
    """The last line of a command's output: a number, or a JSON object with a value."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return Outcome(problem="the command printed no value")
    with contextlib.suppress(ValueError):
        return read(float(lines[-1]))
    with contextlib.suppress(ValueError, RecursionError):
        return read(json.loads(lines[-1]))
    return Outcome(problem="the last line is neither a number nor a JSON object with a value")


def read(returned: object) -> Outcome:
    """An outcome from a number, or from a dict with `value` and perhaps `noise_var`."""
    table = returned if isinstance(returned, dict) else {"value": returned}
    value, noise_var = _number(table.get("value")), table.get("noise_var")
    if value is None or not abs(value) <= LARGEST:
        given = reprlib.repr(table.get("value"))
        return Outcome(problem=f"the value must be a finite number, not {given}")
    if noise_var is None:
        return Outcome(value)
    variance = _number(noise_var)
    if variance is None or not 0 <= variance < math.inf:
        given = reprlib.repr(noise_var)
        return Outcome(problem=f"noise_var must be a finite variance ≥ 0, not {given}")
    return Outcome(value, variance)


def _number(value: object) -> float | None:
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return None


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
