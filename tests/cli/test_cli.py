"""The command line: help, versions, exit codes and what is said when something is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from typer.testing import CliRunner

import optpair
from optpair.cli import app as cli
from optpair.cli import words
from optpair.cli.app import app

LIGHT = """
import sys, types
package = types.ModuleType("optpair")
package.__path__ = [sys.argv[1]]
sys.modules["optpair"] = package  # the command line imports nothing heavy
import optpair.cli.app
print(*(name for name in ("numpy", "scipy") if name in sys.modules))
"""


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize("arguments", [(), ("demo",), ("run",)])
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


def add(monkeypatch: pytest.MonkeyPatch, *commands: EntryPoint) -> None:
    """Have these commands, and no others, added by other distributions."""
    monkeypatch.setattr(cli, "entry_points", EntryPoints(commands).select)


def test_a_distribution_adds_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brewing.py").write_text(
        "import typer\n"
        "app = typer.Typer(help='Brew.')\n"
        "app.command('cup')(lambda: typer.echo('a cup of tea'))\n"
        "app.command('pot')(lambda: typer.echo('a pot of tea'))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    add(monkeypatch, EntryPoint("brew", "brewing:app", cli.GROUP))
    assert run("demo", "--help")[0] == 0
    assert "brewing" not in sys.modules  # not before it is asked for
    assert run("brew", "pot") == (0, "a pot of tea\n")
    assert re.search(r"\bbrew +Brew\.", run("--help")[1])
    sys.modules.pop("brewing")


def test_ours_are_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, EntryPoint("demo", "nowhere:app", cli.GROUP))
    assert run("demo", "--help")[0] == 0


def test_the_benchmarks_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch)
    code, output = run("bench", "run", "gp")
    assert code == 2
    assert output == "Error: bench is not installed; in a clone: pip install ./bench\n"
    assert run("--help")[0] == 0


def test_help_is_for_people() -> None:
    """No types of programs, and no braces around what has to be given."""
    own = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert {"run", "tell", "watch", "stop"} <= set(own)
    for name in own:
        text = run(name, "--help")[1]
        assert not re.search(r"[<>{}](?!=)", text.replace("<=x", "")), text


@pytest.mark.parametrize(
    ("value", "distribution", "shown"),
    [
        (0.00370842636914, FloatDistribution(1e-5, 1, log=True), "0.0037084"),
        (1000.123456789, FloatDistribution(1000, 1001), "1000.12346"),
        (3.14159265358979, FloatDistribution(-5, 10), "3.1416"),
        (12345.6789, FloatDistribution(0, 1e6), "12350.0"),
        (0.15, FloatDistribution(0, 1, step=0.05), "0.15"),
        (7, IntDistribution(1, 9), "7"),
        ("MeCN", CategoricalDistribution(["MeCN", "DMF"]), "'MeCN'"),
    ],
)
def test_what_is_asked_for_is_shown_as_people_set_it(
    value: object, distribution: BaseDistribution, shown: str
) -> None:
    row = {"trial": 3, "params": {"x": value}}
    assert words.asked(row, {"x": distribution}) == f"x = {shown}"
