"""`optpair watch` and `optpair report` on anything, and help that reads well."""

from __future__ import annotations

import re
import socket
import sys
import urllib.request
from itertools import pairwise
from pathlib import Path
from subprocess import PIPE, Popen

import optuna
import pytest
from typer.testing import CliRunner

from optpair import Optimizer
from optpair.cli.app import app
from shell_cases import SPACE, cheap, filled, point

COMMANDS = [
    "run",
    "ask",
    "tell",
    "revise",
    "recommend",
    "report",
    "status",
    "export",
    "watch",
    "pause",
    "resume",
    "stop",
    "demo",
]


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_neither_types_of_flags_nor_broken_lines(command: str) -> None:
    code, text, _ = run(*filter(None, [command]), "--help")
    assert code == 0
    assert "<" not in text.replace("<=", "")
    assert "..." not in text.replace("[ARGS]...", "").replace("TARGET...", "").replace("]...", "")
    paragraphs = [re.split(r"\n  (?=\S)", p) for p in text.split("\n\n") if p.startswith("  ")]
    for lines in paragraphs:  # the next word would not have fitted
        for line, following in pairwise(lines):
            assert len(line.strip()) + 1 + len(following.split()[0]) > 76, line


def test_a_report_of_any_database(tmp_path: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = f"sqlite:///{tmp_path}/foreign.db"
    study = optuna.create_study(study_name="a b", storage=url)
    for x in (0.1, 0.9):
        study.add_trial(
            optuna.create_trial(
                params={"x": x},
                distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
                value=x,
            )
        )
    out = tmp_path / "page.html"
    code, shown, _ = run("report", url, "--out", out)
    assert code == 0
    assert shown.startswith(f"{out}\nToo early to say.")
    assert "<h1>a b</h1>" in out.read_text(encoding="utf-8")
    assert run("report", tmp_path / "foreign.db")[0] == 0
    assert (tmp_path / "foreign.html").exists()
    optuna.create_study(study_name="c", storage=url, directions=["minimize"] * 2)
    code, _, said = run("report", url)
    assert code == 2
    assert "has several studies: 'a b', 'c'; --study says which" in said
    assert run("report", url, "--study", "a b", "--out", out)[0] == 0
    code, _, said = run("report", url, "--study", "c", "--out", out)
    assert code == 1
    assert "study 'c' has no parameter that all completed trials share" in said


def test_a_report_of_a_saved_run(tmp_path: Path) -> None:
    filled(cheap(), [0.5, 0.2, 0.4]).save(tmp_path / "run.json")
    code, shown, _ = run("report", tmp_path / "run.json")
    assert code == 0
    assert shown.startswith(f"{tmp_path}/run.html\n")


def test_a_report_of_a_saved_run_with_several_outcomes(tmp_path: Path) -> None:
    optimizer = Optimizer(SPACE, outcomes={"loss": "minimize", "size": "minimize"}, seed=0)
    optimizer.tell(point(0), {"loss": 1.0, "size": 2.0})
    optimizer.save(tmp_path / "run.json")
    code, shown, _ = run("report", tmp_path / "run.json")
    assert code == 0
    assert shown.startswith(f"{tmp_path}/run.html\n")
    assert "The best compromises" in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_watch_serves_until_ctrl_c(tmp_path: Path) -> None:
    filled(cheap(), [0.5]).save(tmp_path / "run.json")
    command = [sys.executable, "-m", "optpair", "watch", str(tmp_path / "run.json"), "--port", "0"]
    with Popen(command, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", url)
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert b"<h1>run</h1>" in answer.read()
        process.send_signal(2)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    filled(cheap(), [0.5]).save(tmp_path / "run.json")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, said = run("watch", tmp_path / "run.json", "--port", port)
    assert code == 1
    assert f"cannot serve at 127.0.0.1, port {port}" in said


def test_what_cannot_be_watched(tmp_path: Path) -> None:
    code, _, said = run("watch", tmp_path / "nothing")
    assert code == 1
    assert said.startswith(f"Error: there is no file {tmp_path}/nothing; give a study file")
    assert said.count("\n") == 1
