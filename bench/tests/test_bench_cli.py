"""Command line of the benchmarks: help, what it runs, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from optpair_bench.cli import app


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]  # type: ignore[union-attr]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_neither_types_nor_sentences_that_are_cut_short(command: str) -> None:
    code, output = run(*filter(None, [command]), "--help")
    assert code == 0
    assert "Usage" in output
    assert "<" not in output.replace("<=", "")
    assert "..." not in output.replace("[ARGS]...", "").replace("FILES...", "").replace("]...", "")


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
def test_refuses_nonsense(arguments: tuple[str, ...], message: str) -> None:
    code, output = run(*arguments)
    assert code == 1
    assert message in output


def test_options_take_several_values() -> None:
    several = ("--dims", "2", "4", "--methods", "lattice", "random", "--repetitions", "3", "--plan")
    code, output = run("run", "gp", *several, "--out", "nowhere.jsonl")
    assert code == 0, output
    assert output.startswith("12 runs, 0 on file\n")
    assert "gp4 random: 3 runs of 200 evaluations" in output


def test_runs_resumes_and_shows(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    arguments = ("synthetic", "--methods", "random", "lattice", "--tasks", "branin@0.01")
    for repetitions, rows in (("1", 2), ("2", 4)):
        code, output = run(
            *("run", *arguments, "--repetitions", repetitions),
            *("--evaluations", "5", "--out", str(out)),
        )
        assert code == 0, output
        assert f"{rows} of {rows} runs are in" in output
        assert out.read_text().count('"seed"') == rows
    code, output = run("merge", str(tmp_path / "all.jsonl"), str(out), str(out))
    assert code == 0, output
    assert "4 rows added" in output
    assert "4 were there" in output
    code, output = run("table", "synthetic", "--rows", str(out))
    assert code == 0, output
    assert "| Branin | random | 2 |" in output


def test_speed_refuses_an_unknown_method() -> None:
    code, output = run("speed", "--method", "guess")
    assert code == 1
    assert "method must be one of" in output


def test_speed_has_one_table_per_command() -> None:
    code, output = run("speed", "--cold", "--studies")
    assert code == 2
    assert "give one of --cold, --studies, --search and --outcomes" in output
