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


@pytest.mark.parametrize("arguments", [(), ("demo",), ("bench",), ("bench", "regret")])
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
        (("brannin",), "task must be one of gp2"),
        (("branin", "--method", "best"), "method must be one of jes"),
        (("branin", "--known"), "branin are not known"),
        (("gp2", "--kernel", "cubic"), "kernel must be one of"),
    ],
)
def test_regret_refuses_nonsense(arguments: tuple[str, ...], message: str) -> None:
    code, output = run("bench", "regret", *arguments)
    assert code == 1
    assert message in output


def test_regret_runs_and_resumes(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    arguments = ("bench", "regret", "branin", "--method", "random", "--tasks", "2")
    for tasks, rows in (("2", 2), ("3", 3)):
        code, output = run(*arguments[:-1], tasks, "--evaluations", "5", "--out", str(out))
        assert code == 0, output
        assert "inference regret" in output
        assert len(out.read_text().splitlines()) == rows


def test_speed_refuses_an_unknown_method() -> None:
    code, output = run("bench", "speed", "--method", "guess")
    assert code == 1
    assert "method must be one of" in output
