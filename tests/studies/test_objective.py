"""Commands and functions: values, failures, and that nothing passes through a shell."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from optpair.studies.config import Command, Function, StudyError
from optpair.studies.objective import KEPT, call, find, parse, run
from optpair.studies.results import Result
from study_cases import gave, study_file


def script(code: str, *arguments: str, timeout: float | None = None) -> Command:
    return Command((sys.executable, "-c", code, *arguments), timeout)


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("epoch 1\n0.25\n\n", gave(0.25)),
        ("-1e-300", gave(-1e-300)),
        ('{"value": 2, "noise_var": 0.5, "more": []}', gave(2.0, 0.5)),
        ('{"value": 2}', gave(2.0)),
    ],
)
def test_the_last_line_is_the_value(tmp_path: Path, output: str, result: Result) -> None:
    assert parse(output, study_file(tmp_path)) == result


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", "printed no value"),
        ("0.25\ndone", "neither a number nor a JSON object"),
        ("nan", "finite number, not nan"),
        ("inf", "finite number, not inf"),
        ("1e301", "finite number, not 1e"),
        ("true", "finite number, not True"),
        ('"0.5"', "finite number, not '0.5'"),
        ("[]", "must not be an empty list"),
        ('["a"]', "finite number, not 'a'"),
        ('{"loss": 1}', "finite number, not None"),
        ("1" * 400, "finite number, not inf"),
        ("[" * 10**5, "neither a number nor a JSON object"),
        ('{"value": "' + "x" * 10**4 + '"}', "finite number, not 'xxx"),
        ('{"value": 1, "noise_var": -1}', "noise_var must be a finite variance"),
    ],
)
def test_no_value_is_a_failure_that_says_why(tmp_path: Path, output: str, problem: str) -> None:
    result = parse(output, study_file(tmp_path))
    assert not result.values
    assert problem in result.problem
    assert len(result.problem) < 200


def test_names_are_only_names(tmp_path: Path) -> None:
    """A parameter may be called what Python's format would take for something else."""
    params = {"0": 1, "a.b": 2, "c[d]": 3, "e f": 4}
    argument = "{0},{a.b},{c[d]},{e f},{{0}}"
    code = "import sys; print(1 if sys.argv[1] == '1,2,3,4,{{0}}' else sys.argv)"
    assert run(script(code, argument), params, 0, study_file(tmp_path)) == gave(1.0)


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("import json; print(json.dumps(dict(curve=[0.1] * 10**5, value=2)))", gave(2.0)),
        ("print('3' + ' ' * 10**5)", gave(3.0)),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)) * 99 + b'\\n4\\n')", gave(4.0)),
    ],
)
def test_much_output_is_no_trouble(tmp_path: Path, code: str, result: Result) -> None:
    assert run(script(code), {}, 0, study_file(tmp_path)) == result


def test_binary_output_is_a_failure_that_can_be_stored(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 9)"
    result = run(script(code), {}, 0, study_file(tmp_path))
    assert result.problem.startswith("the last line of the output is neither")
    json.dumps(result.problem).encode("ascii")


def test_values_arrive_exactly_and_through_no_shell(tmp_path: Path) -> None:
    params: dict[str, Any] = {
        "f": 0.1 + 0.2,
        "tiny": 5e-324,
        "i": 2**40,
        "b": True,
        "s": "$HOME; touch hacked `id` \"'\n*",
    }
    code = "import sys, os, json; json.dump([sys.argv[1:], os.environ['OPTPAIR_PARAMS'], \
os.environ['OPTPAIR_TRIAL'], os.getcwd()], open('seen.json', 'w')); print(1)"
    names = [f"{{{name}}}" for name in params]
    assert run(script(code, *names, "--x={f}{{}}"), params, 7, study_file(tmp_path)) == gave(1.0)
    seen, environment, number, folder = json.loads((tmp_path / "seen.json").read_text())
    assert float(seen[0]) == params["f"]
    assert float(seen[1]) == params["tiny"]
    assert seen[2:] == [str(2**40), "true", params["s"], "--x=0.30000000000000004{}"]
    assert json.loads(environment) == params
    assert (number, Path(folder)) == ("7", tmp_path)
    assert os.listdir(tmp_path) == ["seen.json"]


@pytest.mark.parametrize("form", [["--x", "{x}"], ["--x={x}"], ["{x}"]])
@pytest.mark.parametrize("x", [-3.6e-05, -0.1 - 0.2, -1e22, -5e-324, -1e300, -2.0, -7, 3.6e-05])
def test_argparse_takes_every_number(tmp_path: Path, form: list[str], x: float) -> None:
    code = f"""
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument({form[0].partition("=")[0].strip("{}")!r}, type={type(x).__name__})
print(json.dumps(dict(value=parser.parse_args().x)))
"""
    result = run(script(code, *form), {"x": x}, 0, study_file(tmp_path))
    assert result == gave(x), result.problem


def test_a_failed_command_leaves_its_words(tmp_path: Path) -> None:
    code = (
        "import sys; print('y' * 99999 + 'end'); print('out of memory', file=sys.stderr); exit(3)"
    )
    result = run(script(code), {}, 0, study_file(tmp_path))
    assert not result.values
    assert result.problem.startswith("exit code 3\nyyy")
    assert result.problem.endswith("yend\nout of memory")
    assert len(result.problem) < KEPT + 50


def test_a_timeout_ends_the_command_and_its_children(tmp_path: Path) -> None:
    child = "import time, pathlib; time.sleep(2); pathlib.Path('late').touch()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    begin = time.monotonic()
    result = run(script(code, timeout=0.5), {}, 0, study_file(tmp_path))
    assert result.problem.startswith("timed out after 0.5 s")
    assert time.monotonic() - begin < 2
    time.sleep(2.2 - (time.monotonic() - begin))
    assert not (tmp_path / "late").exists()


def test_a_command_that_is_not_there_is_no_failed_trial(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be started"):
        run(Command(("no-such-program",), None), {}, 0, study_file(tmp_path))
    with pytest.raises(StudyError, match="cannot be started: embedded null byte"):
        run(script("print(1)", "{s}"), {"s": "a\0b"}, 0, study_file(tmp_path))


def test_functions(tmp_path: Path) -> None:
    (tmp_path / "mine_to_find.py").write_text("class A:\n    f = staticmethod(lambda p: p['x'])\n")
    file = study_file(tmp_path)
    assert call(find(Function("mine_to_find", "A.f"), tmp_path), {"x": 2}, 0, file) == gave(2.0)
    assert call(lambda p: {"value": 1, "noise_var": 0.1}, {}, 0, file) == gave(1.0, 0.1)
    assert "ZeroDivisionError" in call(lambda p: 1 / 0, {}, 0, file).problem
    assert "finite number, not None" in call(lambda p: None, {}, 0, file).problem
    problem = call(lambda p: 1 / 0, {}, 0, file).problem
    assert problem.startswith("ZeroDivisionError: division by zero\n")
    assert "SystemExit" in call(lambda p: sys.exit(2), {}, 0, file).problem
    (tmp_path / "mine_is_broken.py").write_text("def f(:\n")
    for name in ("nothing:f", "math:nothing", "math:pi", "mine_is_broken:f"):
        with pytest.raises(StudyError, match=r"\[objective\]"):
            find(Function(*name.split(":")), tmp_path)
