"""When trials ran, and what they reported on their way."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from optpair import Fidelity, Float, Optimizer, Settings, Space
from optpair.integrations.optuna import JESSampler
from optpair.report import Row
from optpair.report.curves import curves
from optpair.report.timeline import duration, lanes, timeline
from shell_cases import TINY


def row(
    number: int, began: float, ended: float | None, worker: str = "", state: str = "told"
) -> Row:
    return Row(number, state, {}, 1.0, began=began, ended=ended, worker=worker)


def test_a_worker_has_a_lane() -> None:
    rows = [
        row(0, 5, 9, "a"),
        row(1, 5, 12, "b"),
        row(2, 9, 25, "a"),
        row(3, 12, None, "b", "running"),
    ]
    names, bars = lanes(rows)
    assert names == ["a", "b"]
    assert [(b.row.number, b.lane, b.start, b.end) for b in bars] == [
        (0, 0, 0, 4),
        (1, 1, 0, 7),
        (2, 0, 4, 20),
        (3, 1, 7, 20),  # until now
    ]
    text = timeline(rows)
    assert "4 trials in 20 s, 2 workers, busy 100 % of the time." in text
    assert "A trial took 7 s (median)." in text
    assert re.findall(r'class="run (\w+)"', text) == ["told", "told", "told", "out"]


def test_without_names_trials_at_the_same_time_are_apart() -> None:
    rows = [row(0, 0, 4), row(1, 1, 2), row(2, 2, 3), row(3, 3.5, 4)]
    names, bars = lanes(rows)
    assert names == ["", ""]
    assert [bar.lane for bar in bars] == [0, 1, 1, 1]
    assert "up to 2 at a time, busy 81 % of the time" in timeline(rows)


@pytest.mark.parametrize("rows", [[], [Row(0, "told", {}, 1.0)], [row(0, 3, 3)]])
def test_without_times_there_is_no_timeline(rows: list[Row]) -> None:
    assert timeline(rows) == ""


def test_a_clock_that_went_back_harms_nothing() -> None:
    _, bars = lanes([row(0, 10, 4), row(1, 11, 12)])
    assert [bar.end - bar.start for bar in bars] == [0, 1]


def test_times_as_people_say_them() -> None:
    assert [duration(s) for s in (0, 59.4, 600, 86_400)] == [
        "0 s",
        "59.4 s",
        "10 minutes",
        "24 hours",
    ]


def test_values_on_the_way() -> None:
    rows = [
        replace(row(i, 0, 1), steps={1: 3.0, 2: 2.0 + i, 4: float("nan")}, state=state)
        for i, state in enumerate(["told", "pruned", "running", "told"])
    ]
    text = curves(rows, -1.0, 3)
    assert re.findall(r'class="curve (\w+)"', text) == ["whole", "cut", "out", "best"]
    assert "What 4 trials reported on the way. 1 of them was pruned." in text
    assert "nan" not in text
    assert curves([row(0, 0, 1), replace(row(1, 0, 1), steps={1: 2.0})], -1.0, 0) == ""
    rows[1] = replace(rows[1], steps={1: 2.5})  # pruned at its first step: a dot
    text = curves(rows, -1.0, 3)
    assert re.findall(r'class="curve (\w+)"', text) == ["whole", "out", "best"]
    assert text.count('class="dots trial"') == 1
    assert "What 4 trials reported on the way. 1 of them was pruned." in text


def test_an_optuna_study_has_both() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1, 1)
        for step in range(3):
            trial.report(x**2 + 1 / (1 + step), step)
        if trial.number == 2:
            raise optuna.TrialPruned
        return x**2

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=6)
    subject = JESSampler(seed=0).subject(study, answers=False)
    assert [len(r.steps) for r in subject.rows] == [3] * 6
    assert all((r.ended or 0) >= (r.began or 1) > 1e9 for r in subject.rows)
    assert subject.rows[2].state == "pruned"


def test_looks_at_a_fidelity_are_values_on_the_way(tmp_path: Path) -> None:
    space = Space({"x": Float(0, 1), "epochs": Fidelity(1, 9)})
    optimizer = Optimizer(space, seed=0, hyperparameters="map", settings=Settings(**TINY))
    for i in range(6):
        trial = optimizer.ask()
        for epochs in (1, 3, 9):
            value = (trial.params["x"] - 0.3) ** 2 + 1 / epochs
            optimizer.tell(trial, value, at={"epochs": epochs}, cost=2.0 + i)
    subject = optimizer.subject(answers=False)
    assert [list(r.steps) for r in subject.rows] == [[1, 3, 9]] * 6
    assert [r.cost for r in subject.rows] == [3 * (2.0 + i) for i in range(6)]
    optimizer.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What 6 trials reported on the way." in text
    assert '<data value="81.0">81</data>' in text  # spent
    assert "bound of epochs" not in text  # the target is where it is on purpose
    assert '<option value="0"' in text
    assert ">epochs</option>" not in text
