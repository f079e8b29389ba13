"""Studies that go on with a trial: a folder per run, in the environment of the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from optuna import Study
from optuna.trial import FrozenTrial, create_trial

from optpair.integrations.optuna import CONTINUES
from optpair.integrations.optuna.attributes import set_user_attribute
from optpair.studies import worker
from optpair.studies.checkpoints import CHECKPOINT, checkpoint, continuable, doubled
from optpair.studies.config import StudyError, StudyFile, load
from optpair.studies.objective import call
from optpair.studies.results import spent
from optpair.studies.samplers import make_sampler
from optpair.studies.storage import open_study
from shell_cases import TINY
from study_cases import gave, run, shown

LOOKS = "[space]\nx = { float = [0, 1] }\nepochs = { fidelity = [1, 81], log = true }\n"
CODE = """
import json, math, os, pathlib, sys
x, epochs = float(sys.argv[1]), int(sys.argv[2])
done = pathlib.Path(os.environ["OPTPAIR_CHECKPOINT"], "done")
before = json.loads(done.read_text()) if done.exists() else {"epochs": 0, "x": x}
assert before["x"] == x and before["epochs"] < epochs, before
KEEP
loss = (x - 0.3) ** 2 + 2 * math.exp(-epochs / 20)
print(json.dumps({"value": loss, "cost": epochs - before["epochs"]}))
"""
KEEP = 'done.write_text(json.dumps({"epochs": epochs, "x": x}))'


def write(folder: Path, keep: str = KEEP, text: str = "", evaluations: int = 24) -> Path:
    quick = {**TINY, "exploit": 0.0}
    tiny = "\n".join(f"{name} = {json.dumps(value)}" for name, value in quick.items())
    command = json.dumps([sys.executable, "code.py", "{x}", "{epochs}"])
    (folder / "code.py").write_text(CODE.replace("KEEP", keep), encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(
        f"[study]\nevaluations = {evaluations}\n[objective]\ncommand = {command}\n{LOOKS}"
        f"{text}[settings]\n{tiny}\n",
        encoding="utf-8",
    )
    return path


def add(study: Study, file: StudyFile, params: dict[str, Any], **user: Any) -> FrozenTrial:
    distributions = {name: file.space[name] for name in params}
    study.add_trial(
        create_trial(params=params, distributions=distributions, value=1.0, user_attrs=user)
    )
    return study.trials[-1]


def test_a_run_takes_trials_up_where_they_were_left(tmp_path: Path) -> None:
    path = write(tmp_path)
    code, _, said = run("run", path)
    assert code == 0, said
    rows = shown("export", path)
    assert all(row["state"] == "told" for row in rows), rows  # the command finds what it left
    on = [row for row in rows if row["continues"] is not None]
    assert len(on) >= 3
    for row in on:
        before = rows[row["continues"]]
        assert f"trial {row['trial']}: {row['value']:.5g} (continues trial " in said
        assert row["params"]["x"] == before["params"]["x"]
        assert row["cost"] == row["params"]["epochs"] - before["params"]["epochs"]
    folders = list((tmp_path / "study.checkpoints").iterdir())
    assert len(folders) == len(rows) - len(on)  # one per run
    head = run("export", path)[1].splitlines()[0]
    assert head.startswith("trial,state,value,noise_var,cost,x,epochs,continues,started")
    assert shown("recommend", path)["params"]["epochs"] == 81
    assert "Intermediate values" in page(path, tmp_path / "page.html")


def page(path: Path, out: Path) -> str:
    shown("report", path, "--out", out)
    return out.read_text(encoding="utf-8")


def test_a_command_that_leaves_nothing_starts_anew(tmp_path: Path) -> None:
    path = write(tmp_path, keep="")
    shown("run", path)
    assert {row["continues"] for row in shown("export", path)} == {None}
    assert list((tmp_path / "study.checkpoints").iterdir()) == []  # empty folders are no use


def test_folders_that_are_gone_are_not_gone_on_from(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    study = open_study(file)
    can = continuable(file)
    assert can is not None
    trial = add(study, file, {"x": 0.5, "epochs": 1}, **{CHECKPOINT: "0-00c0ffee"})
    assert not can(trial)
    folder = tmp_path / "study.checkpoints" / "0-00c0ffee"
    folder.mkdir(parents=True)
    assert not can(trial)  # nothing is in it
    (folder / "weights").write_text("1")
    assert can(trial)
    for name in ("../study.checkpoints/0-00c0ffee", "", 3, None, ".."):
        assert not can(add(study, file, {"x": 0.5, "epochs": 1}, **{CHECKPOINT: name}))


def test_a_trial_has_a_folder_of_its_own_or_that_of_its_run(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    study = open_study(file)
    first, other, later = (study.ask() for _ in range(3))
    with checkpoint(file, study, first, None) as folder:
        assert folder is not None
        assert folder.is_dir()
        assert folder.parent == tmp_path / "study.checkpoints"
        (folder / "weights").write_text("1")
    with checkpoint(file, study, other, None) as another:
        assert another != folder
    assert another is not None
    assert not another.exists()
    with checkpoint(file, study, later, 0) as same:
        assert same == folder
    assert study.trials[2].user_attrs[CHECKPOINT] == folder.name
    (tmp_path / "plain").mkdir()
    plain = tmp_path / "plain" / "study.toml"
    plain.write_text("[space]\nx = { float = [0, 1] }\n", encoding="utf-8")
    with checkpoint(load(plain), study, first, None) as nothing:
        assert nothing is None
    (tmp_path / "blocked.checkpoints").write_text("a file")
    blocked = tmp_path / "blocked.toml"
    blocked.write_text(LOOKS, encoding="utf-8")
    with (
        pytest.raises(StudyError, match=r"checkpoint folder .* cannot be made"),
        checkpoint(load(blocked), study, first, None),
    ):
        pass


def test_of_two_workers_that_go_on_from_one_trial_none_writes_over_the_other(
    tmp_path: Path,
) -> None:
    file = load(write(tmp_path))
    study = open_study(file)
    add(study, file, {"x": 0.5, "epochs": 1})
    one, other = study.ask(), study.ask()
    for trial in (one, other):
        set_user_attribute(study, trial, CONTINUES, 0)
    assert doubled(study, one, 0)
    assert doubled(study, other, 0)
    assert not doubled(study, one, None)
    study.tell(other, 1.0)
    assert not doubled(study, one, 0)


def test_a_worker_steps_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, evaluations=3)
    told = iter([True, False, False, False])
    monkeypatch.setattr(worker, "doubled", lambda *_: next(told))
    assert run("run", path)[0] == 0
    assert [row["state"] for row in shown("export", path)] == ["cancelled", "told", "told", "told"]


def test_a_result_that_comes_late_stays_in_its_run(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    study = open_study(file)
    add(study, file, {"x": 0.5, "epochs": 1})
    trial = study.ask()
    set_user_attribute(study, trial, CONTINUES, 0)
    set_user_attribute(study, trial, CHECKPOINT, "0-00c0ffee")
    worker.forget(study, study.trials[1], "stale")
    params = {"x": 0.5, "epochs": 9}
    assert worker.record(study, trial, file, params, gave(2.0))
    late = study.trials[2].user_attrs
    assert (late[CONTINUES], late[CHECKPOINT]) == (0, "0-00c0ffee")


def test_going_on_is_taken_to_cost_what_is_beyond(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    study = open_study(file)
    add(study, file, {"x": 0.5, "epochs": 9})
    add(study, file, {"x": 0.5, "epochs": 81}, **{CONTINUES: 0})
    add(study, file, {"x": 0.5, "epochs": 27})
    assert spent(study.trials, file) == pytest.approx(1 + 27 / 81)


def test_a_function_finds_what_a_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    file, folder = load(write(tmp_path)), tmp_path / "here"
    monkeypatch.setenv("OPTPAIR_TRIAL", "outer")
    monkeypatch.delenv("OPTPAIR_CHECKPOINT", raising=False)
    seen: dict[str, str] = {}

    def look(params: dict[str, Any]) -> float:
        seen.update(os.environ)
        os.environ["OPTPAIR_CHECKPOINT"] = "its own business"
        return params["x"] / 0

    assert "ZeroDivisionError" in call(look, {"x": 1.0}, 7, file, folder).problem
    assert json.loads(seen["OPTPAIR_PARAMS"]) == {"x": 1.0}
    assert (seen["OPTPAIR_TRIAL"], seen["OPTPAIR_CHECKPOINT"]) == ("7", str(folder))
    assert os.environ["OPTPAIR_TRIAL"] == "outer"
    assert "OPTPAIR_CHECKPOINT" not in os.environ


def test_people_start_anew(tmp_path: Path) -> None:
    """`optpair ask` is for people, who have no folder."""
    assert make_sampler(load(write(tmp_path)))._continuable is None
