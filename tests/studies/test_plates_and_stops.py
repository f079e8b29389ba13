"""Studies that stop by what is left to be won, and plates from the command line."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from optpair import Stop
from optpair.cli.app import app
from optpair.studies import commands
from optpair.studies.config import StudyError, load
from optpair.studies.storage import open_study
from optpair.studies.worker import OVER

FILE = """
[study]
evaluations = 20

[objective]
python = "bowls:bowl"

[space]
x = { float = [0, 1] }

[settings]
sets = 3
pairs = 2
features = 64
candidates = 64
path_candidates = 64
starts = 2
steps = 4
moves = 2
"""


def write(folder: Path, more: str = "") -> Path:
    (folder / "bowls.py").write_text("def bowl(p):\n    return 4 * (p['x'] - 0.3) ** 2\n")
    path = folder / "study.toml"
    path.write_text(FILE + more, encoding="utf-8")
    return path


def shown(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_study_stops_says_so_and_goes_on_when_told_to(tmp_path: Path) -> None:
    path = write(tmp_path, "[stop]\ngap = 0.3\nchance = 0.8\n")
    found = shown("run", path)
    assert 2 < found["ended"] < 20
    assert found["over"] == "at most 0.3 is left to be won, with a chance of 0.8"
    assert found["recommendation"] is not None
    assert shown("run", path)["ended"] == found["ended"]
    text = CliRunner().invoke(app, ["status", str(path)]).stdout
    assert f"\nover: {found['over']}\n" in text
    write(tmp_path, "[stop]\ngap = 0\nchance = 1\n")
    study = open_study(load(path), make=False)
    assert study.user_attrs[OVER] == {"gap": 0.3, "chance": 0.8}
    assert shown("status", path)["over"] is None
    write(tmp_path)
    assert shown("status", path)["over"] is None


def test_a_study_says_how_many_more_trials_it_takes(tmp_path: Path) -> None:
    path = write(tmp_path, "[stop]\ngap = 0.02\n")
    path.write_text(path.read_text().replace("evaluations = 20", "evaluations = 4"))
    found = shown("run", path)
    more = found["recommendation"]["until"]
    assert found["over"] is None
    assert more > 0
    more = shown("recommend", path)["until"]  # by a model that starts anew
    assert more > 0
    text = CliRunner().invoke(app, ["recommend", str(path)]).stdout
    line = f"to go          about {more} more trials until at most 0.02 is left to be won, with a"
    assert text.splitlines()[-1] == f"{line} chance of 0.9"
    write(tmp_path, "[stop]\ngap = 0\nchance = 1\n")  # never
    text = CliRunner().invoke(app, ["recommend", str(path)]).stdout
    assert text.splitlines()[-1].startswith(
        "to go          many more trials, or too early to say, "
    )
    write(tmp_path)
    assert "until" not in shown("recommend", path)


def test_another_worker_finds_a_study_over(tmp_path: Path) -> None:
    file = load(write(tmp_path, "[stop]\ngap = 0.5\n"))
    assert file.stop == Stop(0.5, 0.9)
    open_study(file).set_user_attr(OVER, {"gap": 0.5, "chance": 0.9})
    ran = commands.run(file, 1, print)
    assert ran.finished
    assert commands.status(file)["ended"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[stop]\n", r"\[stop\] needs gap, a number from 0"),
        ("[stop]\ngap = -1\n", r"\[stop\] gap must be a number from 0 to 1e\+300.*not -1"),
        ("[stop]\ngap = true\n", r"\[stop\] gap must be a number"),
        ("[stop]\ngap = nan\n", r"\[stop\] gap must be a number"),
        ("[stop]\ngap = 1\nchance = 2\n", r"\[stop\] chance must be a probability.*not 2"),
        ("[stop]\ngap = 1\nchanse = 0.9\n", r"unknown key 'chanse'; did you mean 'chance'"),
    ],
)
def test_wrong_stops_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        load(write(tmp_path, text))


def test_a_plate_by_hand(tmp_path: Path) -> None:
    path = write(tmp_path)
    one, plate = shown("ask", path), shown("ask", path, "--n", 3)
    assert one["trial"] == 0
    assert [row["trial"] for row in plate] == [1, 2, 3]
    assert len({row["params"]["x"] for row in [one, *plate]}) == 4
    for row in [one, *plate]:
        shown("tell", path, row["trial"], row["params"]["x"])
    later = shown("ask", path, "--n", 4)
    points = sorted(row["params"]["x"] for row in later)
    assert min(b - a for a, b in pairwise(points)) >= 1e-3
    text = CliRunner().invoke(app, ["ask", str(path), "--n", "2"]).stdout
    assert [line.split(":")[0] for line in text.splitlines()] == ["trial 8", "trial 9"]
    assert shown("ask", path, "--n", 1)[0]["trial"] == 10  # a list, as --n is given


@pytest.mark.parametrize("n", ["0", "-1", "1001", "two"])
def test_wrong_sizes_are_refused(tmp_path: Path, n: str) -> None:
    assert CliRunner().invoke(app, ["ask", str(write(tmp_path)), "--n", n]).exit_code == 2


def test_a_plate_that_breaks_off_leaves_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = load(write(tmp_path))
    inner, calls = commands._ask, list[int]()

    def ask(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return inner(*args)

    monkeypatch.setattr(commands, "_ask", ask)
    with pytest.raises(KeyboardInterrupt):
        commands.ask(file, 4)
    assert commands.status(file)["counts"] == {"cancelled": 2}
