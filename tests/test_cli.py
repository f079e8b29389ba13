"""The command line: help, versions, exit codes and what is said when something is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import optpair
from optpair.cli import app

LIGHT = """
import sys, types
package = types.ModuleType("optpair")
package.__path__ = [sys.argv[1]]
sys.modules["optpair"] = package  # the package itself imports JAX; the command line must not
import optpair.cli
print(*(name for name in ("jax", "numpy", "scipy") if name in sys.modules))
"""


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize("arguments", [(), ("demo",), ("bench",), ("bench", "run")])
def test_help(arguments: tuple[str, ...]) -> None:
    code, output = run(*arguments, "--help")
    assert code == 0
    assert "Usage" in output


def test_version() -> None:
    assert run("--version") == (0, f"{optpair.__version__}\n")


def test_unknown_command() -> None:
    assert run("optimise")[0] == 2


def test_nothing_heavy_is_imported_for_help() -> None:
    folder = str(Path(optpair.__file__).parent)
    shown = subprocess.run(
        [sys.executable, "-c", LIGHT, folder], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == ""


def test_demo_without_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "optpair.demo", raising=False)
    for name in ("matplotlib", "sklearn"):
        monkeypatch.setitem(sys.modules, name, None)
    code, output = run("demo")
    assert code == 1
    assert output.startswith("Error: the demo needs matplotlib")
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "gps"), "experiment must be one of gp, gp-noisy"),
        (("run", "gp", "--methods", "best"), "method must be one of optpair, jes"),
        (("run", "gp", "--dims", "3"), "has tasks of [2, 4, 6, 12] dimensions"),
        (("run", "gp", "--paper", "--repetitions", "2"), "give one of repetitions and paper"),
        (("table", "gps"), "experiment must be one of"),
        (("figures", "gps"), "experiment must be one of"),
    ],
)
def test_bench_refuses_nonsense(arguments: tuple[str, ...], message: str) -> None:
    code, output = run("bench", *arguments)
    assert code == 1
    assert message in output


def test_options_take_several_values() -> None:
    several = ("--dims", "2", "4", "--methods", "sobol", "random", "--repetitions", "3", "--plan")
    code, output = run("bench", "run", "gp", *several, "--out", "nowhere.jsonl")
    assert code == 0, output
    assert output.startswith("12 runs, 0 on file\n")
    assert "gp4 random: 3 runs of 200 evaluations" in output


def test_bench_runs_resumes_and_shows(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    arguments = ("synthetic", "--methods", "random", "sobol", "--tasks", "branin@0.01")
    for repetitions, rows in (("1", 2), ("2", 4)):
        code, output = run(
            *("bench", "run", *arguments, "--repetitions", repetitions),
            *("--evaluations", "5", "--out", str(out)),
        )
        assert code == 0, output
        assert f"{rows} of {rows} runs are in" in output
        assert out.read_text().count('"seed"') == rows
    code, output = run("bench", "merge", str(tmp_path / "all.jsonl"), str(out), str(out))
    assert code == 0, output
    assert "4 rows added" in output
    assert "4 were there" in output
    code, output = run("bench", "table", "synthetic", "--rows", str(out))
    assert code == 0, output
    assert "| Branin | random | 2 |" in output


def test_speed_refuses_an_unknown_method() -> None:
    code, output = run("bench", "speed", "--method", "guess")
    assert code == 1
    assert "method must be one of" in output
