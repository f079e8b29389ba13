"""Spaces of study files: parameters that are not always there, and the rows of a CSV file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from optpair import Categorical, Float, Int, Ordinal, Settings, Space
from optpair.integrations.optuna import JESSampler
from optpair.studies.config import StudyError, load
from shell_cases import TINY
from study_cases import run, shown, study_file

TREE = """
[space]
kernel = { categories = ["rbf", "poly", "linear"] }
gamma = { float = [1e-3, 10], log = true, when = { kernel = ["rbf", "poly"] } }
degree = { int = [2, 5], when = { kernel = "poly" } }
offset = { float = [0, 1], when = { degree = [3, 5] } }
"""
ACTIVE = {
    "linear": [{"kernel"}],
    "rbf": [{"kernel", "gamma"}],
    "poly": [{"kernel", "gamma", "degree"}, {"kernel", "gamma", "degree", "offset"}],
}
CANDIDATES = """code;pKa;ring;mass
C01;3.5;true;10
C02;7.0;false;100
C03;7.5;true;1000
C04;9.25;true;20
C05;11;false;50
"""
SHELF = '[space]\nrows = "candidates.csv"\ncolumns = ["pKa", "ring", "mass"]\nlog = ["mass"]\n'


def write(folder: Path, space: str, *arguments: str, evaluations: int = 8, study: str = "") -> Path:
    tiny = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TINY.items())
    command = json.dumps([sys.executable, "code.py", *arguments])
    head = f"[study]\nevaluations = {evaluations}\n{study}\n[objective]\ncommand = {command}\n"
    path = folder / "study.toml"
    path.write_text(f"{head}{space}[settings]\ninitial = 5\n{tiny}\n", encoding="utf-8")
    (folder / "candidates.csv").write_text(CANDIDATES, encoding="utf-8")
    (folder / "code.py").write_text(
        "import json, os, sys\n"
        "seen = [sys.argv[1:], json.loads(os.environ['OPTPAIR_PARAMS'])]\n"
        "open('seen.txt', 'a').write(json.dumps(seen) + '\\n')\n"
        "print(len(sys.argv))\n",
        encoding="utf-8",
    )
    return path


def seen(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "seen.txt").read_text().splitlines()]


def test_a_parameter_is_there_only_with_others(tmp_path: Path) -> None:
    names = ("kernel", "gamma", "degree", "offset")
    path = write(tmp_path, TREE, *(f"--{name}={{{name}}}" for name in names))
    best = shown("run", path)["recommendation"]["params"]
    for params in [row["params"] for row in shown("export", path)] + [best]:
        assert set(params) in ACTIVE[params["kernel"]]
        assert ("offset" in params) == (params.get("degree") in (3, 5))
    for arguments, params in seen(tmp_path):
        given = [argument.partition("=")[0].strip("-") for argument in arguments]
        assert given == [name for name in names if name in params]
    page = shown("report", path)["recommendation"]["params"]
    assert set(page) in ACTIVE[page["kernel"]]


def test_points_of_ones_own_have_what_is_there(tmp_path: Path) -> None:
    path = write(tmp_path, TREE)
    own = ["--params", "kernel=poly", "--params", "gamma=1", "--params", "degree=2"]
    assert shown("tell", path, *own, 0.5)["params"] == {"kernel": "poly", "gamma": 1.0, "degree": 2}
    code, _, said = run("tell", path, *own, "--params", "offset=0.5", 0.5)
    assert code == 1
    assert "--params has 'offset', which is there only when degree is one of 3, 5" in said
    code, _, said = run("tell", path, "--params", "kernel=rbf", 0.5)
    assert "--params lacks gamma" in said
    code, _, said = run("tell", path, "--params", "kernel=linear", "--params", "gamma=1", 0.5)
    assert "'gamma', which is there only when kernel is one of 'rbf', 'poly'" in said


def test_another_condition_is_another_space(tmp_path: Path) -> None:
    shown("ask", write(tmp_path, TREE))
    code, _, said = run("ask", write(tmp_path, TREE.replace("[3, 5]", "[3]")))
    assert code == 1
    assert "offset is { float = [0.0, 1.0], when = { degree = [3, 5] } } there and" in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x = { int = [1, 3], when = { kernle = 'poly' } }", "when of 'x' names 'kernle'"),
        ("x = { int = [1, 3], when = { kernel = 'poyl' } }", "'poyl'"),
        ("x = { int = [1, 3], when = 'poly' }", "when must be a table like { kernel = 'poly' }"),
        ("x = { int = [3, 3], when = { kernel = 'poly' } }", "has one value, or more than"),
        ("x = { int = [1, 3], when = {} }", "when must be a dict of other parameters' values"),
    ],
)
def test_conditions_that_are_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, space=f"{TREE}{line}\n")


def test_an_option_is_not_left_alone(tmp_path: Path) -> None:
    arguments = ("--kernel={kernel}", "--gamma={gamma}", "--degree", "{degree}", "{offset}")
    with pytest.raises(
        StudyError, match=r"would leave the option without a value .* '--degree={degree}'"
    ):
        load(write(tmp_path, TREE, *arguments))


def test_a_shelf(tmp_path: Path) -> None:
    path = write(tmp_path, SHELF + "repeat = false\n", "{code}", evaluations=50)
    file = load(path)
    assert file.evaluations == 5  # no more than there are rows
    assert file.space == {
        "pKa": FloatDistribution(3.5, 11.0),
        "ring": CategoricalDistribution([True, False]),
        "mass": IntDistribution(10, 1000, log=True),
    }
    asked = shown("ask", path)
    line = next(line for line in CANDIDATES.splitlines() if asked["row"]["code"] in line)
    assert float(line.split(";")[1]) == asked["params"]["pKa"]
    shown("tell", path, asked["trial"], 1.0)
    found = shown("run", path)
    assert found["counts"] == {"told": 5}
    codes = [arguments[0] for arguments, _ in seen(tmp_path)]
    assert sorted([*codes, asked["row"]["code"]]) == ["C01", "C02", "C03", "C04", "C05"]
    for (code,), params in seen(tmp_path):
        assert params["code"] == code
    rows = [row["params"] for row in shown("export", path)]
    assert found["recommendation"]["params"] in rows
    code, _, said = run("ask", path)
    assert code == 1
    assert "all 5 rows have been tried" in said
    assert shown("status", path)["counts"] == {"told": 5, "cancelled": 1}
    assert shown("report", path)["next_gain"] == 0


def test_a_plate_is_no_larger_than_what_is_left_of_a_shelf(tmp_path: Path) -> None:
    path = write(tmp_path, SHELF + "repeat = false\n")
    asked = shown("ask", path, "--n", 9)
    assert [trial["trial"] for trial in asked] == [0, 1, 2, 3, 4]
    assert len({trial["row"]["code"] for trial in asked}) == 5
    assert shown("status", path)["counts"] == {"by hand": 5, "cancelled": 1}


@pytest.mark.parametrize(
    ("space", "table", "message"),
    [
        ('rows = "none.csv"', "", "none.csv' cannot be read: No such file"),
        ('rows = "case.csv"', "", "case.csv: the file is empty"),
        ('rows = "case.csv"', "a\n1\n", "rows has 1 candidate, which leaves nothing"),
        ('rows = "case.csv"', "a,b\n1,2\n3,\n", "row 1 has None as 'b'"),
        ('rows = "case.csv"\ncolumns = ["c"]', "a,b\n1,2\n", "there is no column 'c'; it has a, b"),
        ('rows = "case.csv"\nlog = ["a"]', "a\n0\n1\n", "log=True needs low > 0"),
        ('rows = "case.csv"\nx = { int = [1, 2] }', "a\n0\n1\n", "unknown key 'x'"),
    ],
)
def test_shelves_that_are_refused(tmp_path: Path, space: str, table: str, message: str) -> None:
    (tmp_path / "case.csv").write_text(table, encoding="utf-8")
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, space=f"[space]\n{space}\n")


def test_a_space_in_the_sampler() -> None:
    """Optuna code that knows its space: conditions, rows, limits and digits hold from the start."""
    space = Space(
        {
            "kernel": Categorical(["rbf", "poly"]),
            "degree": Int(2, 5, when={"kernel": "poly"}),
            "lr": Float(1e-3, 1, log=True, digits=1),
            "batch": Ordinal([16, 32, 128]),
            "a": Float(0, 1),
            "b": Float(0, 1, step=0.3),
        },
        where=["a <= b"],
    )
    sampler = JESSampler(seed=0, search_space=space, settings=Settings(initial=3, **TINY))
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        kernel = trial.suggest_categorical("kernel", ["rbf", "poly"])
        degree = trial.suggest_int("degree", 2, 5) if kernel == "poly" else 0
        lr = trial.suggest_float("lr", 1e-3, 1, log=True)
        batch = trial.suggest_categorical("batch", [16, 32, 128])
        a, b = trial.suggest_float("a", 0, 1), trial.suggest_float("b", 0, 0.9, step=0.3)
        return degree + lr + a + b + 1 / batch

    study.optimize(objective, n_trials=7)
    for params in [trial.params for trial in study.trials] + [sampler.recommend(study).params]:
        assert space.allows(params)
        assert float(f"{params['lr']:.0e}") == params["lr"]
    with pytest.raises(ValueError, match="where is given twice"):
        JESSampler(search_space=space, where=["b <= a"])


def test_rows_in_the_sampler() -> None:
    rows = [{"pKa": 2.0 + i, "ring": i % 2 == 0} for i in range(6)]
    sampler = JESSampler(seed=0, search_space=Space.of_rows(rows), settings=Settings(**TINY))
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        ring = trial.suggest_categorical("ring", [True, False])
        return trial.suggest_float("pKa", 2, 7) + ring

    study.optimize(objective, n_trials=6)
    for params in [trial.params for trial in study.trials] + [sampler.recommend(study).params]:
        assert dict(params) in rows
