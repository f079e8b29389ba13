"""Trials that were measured several times: in results, in storages, and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from optpair import Float, Optimizer, Space
from optpair.integrations.optuna import REPLICATES, JESSampler
from optpair.studies.commands import Told, tell
from optpair.studies.config import StudyError, load
from optpair.studies.objective import parse
from optpair.studies.results import read
from optpair.studies.samplers import make_sampler
from optpair.studies.storage import open_study
from shell_cases import TINY
from study_cases import run, shown, study_file

SPACE = "[space]\nx = { float = [0, 1] }\n"
ONE = f"[study]\ndirection = 'maximize'\n{SPACE}"
TWO = f"[outcomes]\ngain = 'maximize'\nload = {{ high = 9 }}\n{SPACE}"


def write(folder: Path, text: str = ONE) -> Path:
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in TINY.items())
    path = folder / "study.toml"
    path.write_text(f"{text}[settings]\n{settings}", encoding="utf-8")
    return path


def test_a_result_may_be_a_list(tmp_path: Path) -> None:
    file = study_file(tmp_path)
    result = read([1.0, 2.0, 6.0], file)
    assert result.values == {"value": 3.0}
    assert result.replicates == {"value": (1.0, 2.0, 6.0)}
    assert parse('{"value": [1, 2], "noise_var": 0.5}', file).replicates == {"value": (1.0, 2.0)}
    assert read(np.array([1.0, 2.0]), file).values == {"value": 1.5}
    assert not read([4.0], file).replicates
    assert read([4.0], file).values == {"value": 4.0}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "the value must not be an empty list"),
        ([1.0, None], "the value must be a finite number, not None"),
        ([1.0, float("nan")], "the value must be a finite number, not nan"),
        ([[1.0], 2.0], "the value must be a finite number, not [1.0]"),
    ],
)
def test_lists_that_are_no_result(tmp_path: Path, given: Any, message: str) -> None:
    result = read(given, study_file(tmp_path))
    assert not result.values
    assert result.problem == message


def _rows(path: Path) -> list[Any]:
    """What the model has of a study's trials."""
    file = load(path)
    model = _model(open_study(file, make=False), make_sampler(file))
    return [{n: (m.value, m.values) for n, m in t.outcomes.items()} for t in model.told()]


def _model(study: optuna.Study, sampler: Any) -> Any:
    reader = sampler._reader
    return reader.read(study, reader.modelled(study))


def test_values_that_were_measured_in_turn(tmp_path: Path) -> None:
    path = write(tmp_path)
    shown("ask", path)
    told = shown("tell", path, 0, 2, 3, 7)
    assert (told["value"], told["replicates"]) == (4.0, [2.0, 3.0, 7.0])
    shown("tell", path, "--params", "x=0.5", 1, 2)
    shown("tell", path, "--params", "x=0.25", 5)
    assert _rows(path) == [
        {"value": (4.0, (2.0, 3.0, 7.0))},
        {"value": (1.5, (1.0, 2.0))},
        {"value": (5.0, (5.0,))},
    ]
    assert shown("revise", path, 0, 4, 6)["replicates"] == [4.0, 6.0]
    assert shown("revise", path, 1, 8)["replicates"] is None
    assert [row["value"] for row in _rows(path)] == [
        (5.0, (4.0, 6.0)),
        (8.0, (8.0,)),
        (5.0, (5.0,)),
    ]


def test_of_several_outcomes(tmp_path: Path) -> None:
    path = write(tmp_path, TWO)
    shown("ask", path)
    told = shown("tell", path, 0, "gain=1", "load=4", "gain=3")
    assert told["outcomes"] == {"gain": 2.0, "load": 4.0}
    assert told["replicates"] == {"gain": [1.0, 3.0]}
    shown("tell", path, "--params", "x=0.5", '{"gain": [1, 2], "load": [3, 5, 7]}')
    assert shown("revise", path, 0, "load=1", "load=2")["replicates"] == {"load": [1.0, 2.0]}
    assert _rows(path) == [
        {"load": (1.5, (1.0, 2.0))},
        {"gain": (1.5, (1.0, 2.0)), "load": (5.0, (3.0, 5.0, 7.0))},
    ]


def test_a_table_holds_every_value(tmp_path: Path) -> None:
    path, table = write(tmp_path), tmp_path / "trials.csv"
    shown("tell", path, "--params", "x=0.5", 1, 2)
    shown("tell", path, "--params", "x=0.25", 5)
    run("export", path, "--out", table)
    lines = [line.split(",")[:3] for line in table.read_text().splitlines()]
    assert lines == [["trial", "state", "value"], ["0", "told", "1.0 2.0"], ["1", "told", "5.0"]]
    opt = Optimizer(Space({"x": Float(0, 1)}), direction="maximize")
    opt.read_csv(table, trial=None)
    assert [t.outcomes["value"].replicates for t in opt.trials] == [(1.0, 2.0), ()]


def test_a_weight_of_a_compromise_is_one_number(tmp_path: Path) -> None:
    path = write(tmp_path, TWO)
    code, _, said = run("recommend", path, "--prefer", "gain=1", "--prefer", "gain=2")
    assert code == 2
    assert "--prefer is given twice for gain" in said


def _measured(value: float, several: object) -> tuple[float, ...]:
    """What the model has of a trial of plain Optuna code."""
    sampler = JESSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    trial.set_user_attr(REPLICATES, several)
    study.tell(trial, value)
    return _model(study, sampler).trials[0].outcomes["value"].values


def test_in_plain_optuna() -> None:
    assert _measured(2.0, [1.0, 3.0]) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("several", "message"),
    [
        ([1.0, 4.0], "value averages 2.5 there, and the trial has 2.0; tell the mean as the value"),
        ([2.0], "it must be a list of two numbers or more"),
        ("2 2", "it must be a list of two numbers or more"),
        ([1.0, "3"], "it must be one real number, not str"),
        ({"loss": [1.0, 3.0]}, "it must have names among 'value', not 'loss'"),
    ],
)
def test_what_is_wrong_is_said_and_not_used(
    several: object, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert _measured(2.0, several) == (2.0,)
    assert f"Trial 0's {REPLICATES} is not used: {message}" in caplog.text


def test_a_study_refuses_them_as_it_refuses_one(tmp_path: Path) -> None:
    path = write(tmp_path)
    shown("ask", path)
    code, _, said = run("tell", path, 0, 1, "nan")
    assert code == 2
    assert "must be a finite number" in said
    with pytest.raises(StudyError, match="a number alone does not say which outcome it is"):
        tell(load(write(tmp_path, TWO)), 0, Told({"": [1.0, 2.0]}))
