"""Study files and results for the tests of studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from optpair.cli.app import app
from optpair.problem.problem import VALUE
from optpair.studies.config import StudyFile, load
from optpair.studies.results import Result

SPACE = "[space]\nx = { float = [-1, 1] }\n"


def study_file(folder: Path, text: str = "", space: str = SPACE) -> StudyFile:
    """A study of one parameter, x, unless told otherwise."""
    path = folder / "case.toml"
    path.write_text(f"{text}\n{space}", encoding="utf-8")
    file = load(path)
    path.unlink()
    return file


def gave(value: float, noise_var: float | None = None) -> Result:
    """The result of a trial with one value that nobody has named."""
    return Result({VALUE: value}, {} if noise_var is None else {VALUE: noise_var})


def run(*arguments: object) -> tuple[int, str, str]:
    """A command's exit code, and what it wrote."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def shown(*arguments: object) -> Any:
    """What a command shows to scripts."""
    code, output, said = run(*arguments, "--json")
    assert code == 0, said
    return json.loads(output)
