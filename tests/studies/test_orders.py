"""Orders to workers, endings of runs, revisions and own points, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState, create_trial
from typer.testing import CliRunner

from optpair.cli.app import app
from optpair.integrations.optuna import JESSampler
from optpair.integrations.optuna.attributes import FAILED, OUTPUT, read_trials, revise, revisions
from optpair.studies import control, lifecycle, processes
from optpair.studies.config import StudyError, load
from optpair.studies.control import CONTROL, Control
from optpair.studies.endings import ALIKE, Endings, failing_alike
from optpair.studies.points import point
from optpair.studies.storage import open_study
from optpair.studies.worker import PAUSED, Interrupts, work
from shell_cases import TINY
from study_cases import study_file

FILE = """
[study]
evaluations = {evaluations}
sampler = "random"
stale_after = 0.4
storage = "journal:///study.log"

[objective]
python = "{module}:f"

[settings]
{settings}

[space]
x = {{ float = [-1, 1] }}
n = {{ int = [0, 8], step = 2 }}
c = {{ categories = ["a", "b"] }}
b = {{ categories = [true, false] }}
"""
POINT = ["--params", "x=0.5", "--params", "n=4", "--params", "c=b", "--params", "b=false"]


def write(folder: Path, body: str = "return p['x']", evaluations: int = 3) -> Path:
    """A study whose function is of a module of its own: modules are imported once."""
    module = f"orders_{abs(hash((str(folder), body)))}"
    (folder / f"{module}.py").write_text(f"import time\ndef f(p):\n {body}\n")
    path = folder / "study.toml"
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TINY.items())
    text = FILE.format(evaluations=evaluations, module=module, settings=settings)
    path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_orders_are_kept_with_the_study(tmp_path: Path) -> None:
    path = write(tmp_path)
    study = open_study(load(path))
    assert control.read(study) == Control()
    assert control.give(study, "pause") == Control(True, 0) == control.read(study)
    assert control.give(study, "resume") == Control(False, 0)
    control.give(study, "pause")
    assert control.give(study, "stop") == Control(False, 1)  # a pause ends with it
    assert control.give(study, "stop") == Control(False, 2)
    for nonsense in ("paused", {"paused": "yes", "stops": "1"}, None, [1]):
        study.set_user_attr(CONTROL, nonsense)
        assert control.read(study) == Control()


def test_a_worker_waits_while_paused_and_ends_when_stopped(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    study, said = open_study(file), list[str]()
    control.give(study, "pause")
    endings: list[Any] = []
    worker = threading.Thread(
        target=lambda: endings.append(work(file, study, Interrupts(print), said.append))
    )
    worker.start()
    wait_for(lambda: any("Paused" in line for line in said))
    time.sleep(0.3)
    assert study.trials == []
    control.give(study, "stop")
    worker.join(10)
    assert [ending.kind for ending in endings] == ["stopped"]
    assert study.trials == []
    assert (
        work(file, study, Interrupts(print), said.append).kind == "complete"
    )  # an old stop ends no run


def test_a_worker_goes_on_when_resumed(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    study, said = open_study(file), list[str]()
    control.give(study, "pause")
    worker = threading.Thread(target=lambda: work(file, study, Interrupts(print), said.append))
    worker.start()
    wait_for(lambda: bool(said))
    control.give(study, "resume")
    worker.join(10)
    assert lifecycle.count(study.trials) == {"told": 3}
    assert said[:2] == [PAUSED, "Resumed."]


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_stop_reaches_every_worker(tmp_path: Path) -> None:
    path = write(tmp_path, "time.sleep(0.05); return p['x']", 10**6)
    study = open_study(load(path))
    ended: list[int] = []

    def stop() -> None:
        wait_for(lambda: lifecycle.count(study.trials)["told"] > 0)
        ended.append(run("stop", path)[0])

    thread = threading.Thread(target=stop)
    thread.start()
    code, _, said = run_elsewhere(path)
    thread.join(10)
    assert (code, ended) == (130, [0])
    assert "Stopped with optpair stop" in said
    assert said.count("Stopped with") == 1
    assert lifecycle.count(study.trials)["running"] == 0


def run_elsewhere(path: Path) -> tuple[int, str, str]:
    """`optpair run` with two workers, each a process of its own."""
    command = [sys.executable, "-m", "optpair", "run", str(path), "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_orders_from_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert run("pause", path)[0] == 1  # there is no study yet
    run("ask", path)
    assert run("pause", path)[1] == "study study is paused\n"
    assert "paused: workers wait until optpair resume" in run("status", path)[1]
    assert run("resume", path)[1] == "study study continues\n"
    assert "paused" not in run("status", path)[1]
    assert run("stop", path, "--json")[1].startswith('{\n  "study": "study",\n  "paused": false')


def test_the_time_of_a_run(tmp_path: Path) -> None:
    path = write(tmp_path, "time.sleep(0.1); return p['x']", 10**6)
    begun = time.monotonic()
    code, shown, said = run("run", path, "--seconds", 0.3)
    assert code == 0
    assert time.monotonic() - begun < 20
    assert "The 0.3 seconds of this run are over." in said
    assert "recommended" in shown
    told = lifecycle.count(open_study(load(path)).trials)["told"]
    assert told >= 1
    run("run", path, "--seconds", 0.3)  # each run has its own
    assert lifecycle.count(open_study(load(path)).trials)["told"] > told


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_that_is_none(tmp_path: Path, seconds: str) -> None:
    assert run("run", write(tmp_path), "--seconds", seconds)[0] == 2


def test_first_trials_that_all_fail_alike_end_a_run(tmp_path: Path) -> None:
    path = write(tmp_path, "raise ValueError(f'no gpu {p[\"x\"]}')", 12)
    code, shown, said = run("run", path)
    assert code == 3
    assert (
        f"The first {ALIKE} trials of this run all failed in the same way: ValueError: no gpu"
        in said
    )
    assert f"{ALIKE} of 12 evaluations" in shown
    run("run", path)  # another few, in case it was mended
    assert lifecycle.count(open_study(load(path)).trials) == {"failed": 2 * ALIKE}
    code, shown, _ = run("run", path, "--keep-going")
    assert code == 3
    assert "12 of 12 evaluations" in shown


def test_workers_end_too_where_all_fails(tmp_path: Path) -> None:
    path = write(tmp_path, "raise ValueError('no gpu')", 40)
    code, _, said = run_elsewhere(path)
    assert code == 3
    assert said.count("all failed in the same way: ValueError: no gpu") == 1


def failed(study: optuna.Study, reason: str) -> None:
    study.add_trial(
        create_trial(
            state=TrialState.FAIL, user_attrs={OUTPUT: reason}, system_attrs={FAILED: True}
        )
    )


def test_when_failures_are_alike() -> None:
    study = optuna.create_study()
    for i in range(ALIKE):
        assert failing_alike(study.trials) is None  # not enough
        failed(study, f"exit code 1\nlr = {i / 7} at 0x7f{i}")
    assert failing_alike(study.trials) == f"exit code 1: lr = {(ALIKE - 1) / 7} at 0x7f{ALIKE - 1}"
    assert failing_alike(study.trials, first=1) is None
    failed(study, "exit code 1\nno gpu")
    assert failing_alike(study.trials) is None
    assert failing_alike(study.trials[:-1]) is not None
    study.add_trial(create_trial(value=1.0))
    assert failing_alike([*study.trials[:ALIKE], study.trials[-1]]) is None  # one gave a value


def test_workers_are_told_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, started = load(write(tmp_path)), list[list[str]]()
    monkeypatch.setattr(processes.subprocess, "Popen", lambda c, **_: started.append(c))
    study = open_study(file)
    processes._start(file, Endings(study, file), ())
    processes._start(file, Endings(study, file, 1e6, keep_going=True), ())
    assert "--seconds" not in started[0]
    assert started[1][5] == "--seconds"
    assert 1e6 - 60 < float(started[1][6]) <= 1e6
    assert started[1][7] == "--keep-going"
    assert started[1][8:10] == ["--stops", "0"]


def test_a_worker_that_starts_after_the_order_ends_too(tmp_path: Path) -> None:
    path = write(tmp_path)
    study = open_study(load(path))
    before = control.read(study).stops
    control.give(study, "stop")  # while the worker still imports what it needs
    assert run("run", path, "--worker-of", os.getppid(), "--stops", before)[0] == 130
    assert study.trials == []


def test_limits_count_from_their_start(tmp_path: Path) -> None:
    study, file = optuna.create_study(), study_file(tmp_path)
    for _ in range(ALIKE):
        failed(study, "no gpu")
    endings = Endings(study, file)
    assert endings.reached(control.read(study), study.trials) is None
    assert Endings(study, file, 1e-9).reached(Control(), study.trials).kind == "time"  # type: ignore[union-attr]
    assert endings.reached(Control(False, 1), study.trials).kind == "stopped"  # type: ignore[union-attr]


def test_a_value_is_revised(tmp_path: Path) -> None:
    path = write(tmp_path)
    run("run", path)
    assert run("revise", path, 1, -7.5, "--noise-var", 0.5)[1] == "trial 1: told, -7.5\n"
    assert run("revise", path, 2, "--failed", "--message", "spilt")[1] == "trial 2: failed\n"
    study = open_study(load(path))
    rows = [lifecycle.row(trial, load(path)) for trial in lifecycle.trials(study)]
    assert (rows[1]["value"], rows[1]["noise_var"]) == (-7.5, 0.5)
    assert (rows[2]["state"], rows[2]["value"], rows[2]["output"]) == ("failed", None, "spilt")
    shown = run("status", path)[1]
    assert "trials: 2 told, 1 failed" in shown
    assert "best observed -7.5 in trial 1" in shown
    assert run("revise", path, 2, 0.25)[0] == 0  # and back
    assert lifecycle.trials(study)[2].value == 0.25
    assert study.trials[1].value != -7.5  # Optuna keeps what was told


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((0, 1.0), 1, "trial 0 has no result to correct: it is by hand"),
        ((9, 1.0), 1, "trial 9 is unknown"),
        ((0,), 2, "give one of VALUE and --failed"),
        ((0, 1.0, "--failed"), 2, "give one of VALUE and --failed"),
        ((0, "nan"), 2, "must be a finite number"),
    ],
)
def test_what_cannot_be_revised(
    tmp_path: Path, arguments: tuple[Any, ...], code: int, message: str
) -> None:
    path = write(tmp_path)
    run("ask", path)
    found, _, said = run("revise", path, *arguments)
    assert found == code
    assert message in said
    assert revisions(open_study(load(path))) == {}


def test_the_sampler_goes_by_revisions() -> None:
    """As if the right value had been told from the start."""
    from optpair import Settings

    space = {"x": optuna.distributions.FloatDistribution(-1, 1)}

    def study_of(values: list[float]) -> optuna.Study:
        study = optuna.create_study()
        for i, value in enumerate(values):
            x = -1 + 2 * (0.618034 * i % 1)
            study.add_trial(create_trial(params={"x": x}, distributions=space, value=value))
        return study

    def sampler() -> JESSampler:
        return JESSampler(seed=0, hyperparameters="map", settings=Settings(**TINY))

    right, wrong = [0.5, 0.2, 0.1, 0.4, 0.3, 0.9], [0.5, 0.2, 0.1, 0.4, 40.0, 0.9]
    expected = sampler().recommend(study_of(right))
    study, warm = study_of(wrong), sampler()
    before = warm.recommend(study)
    assert before.mean != expected.mean
    revise(study, 4, 0.3)
    after = warm.recommend(study)
    assert (after.mean, after.params) == (expected.mean, expected.params)
    assert [t.value for t in read_trials(study)] == right
    revise(study, 4, None)
    assert len(warm.subject(study, answers=False).told) == 5


def test_a_point_of_ones_own(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert run("tell", path, *POINT, -0.25, "--noise-var", 0.1)[1] == "trial 0: told, -0.25\n"
    given = '{"x": -1, "n": 0, "c": "a", "b": true}'
    assert run("tell", path, "--params", given, "--failed", "--message", "spilt")[0] == 0
    rows = [lifecycle.row(trial, load(path)) for trial in lifecycle.trials(open_study(load(path)))]
    assert rows[0]["params"] == {"x": 0.5, "n": 4, "c": "b", "b": False}
    assert (rows[0]["value"], rows[0]["noise_var"]) == (-0.25, 0.1)
    assert rows[1]["params"] == {"x": -1.0, "n": 0, "c": "a", "b": True}
    assert (rows[1]["state"], rows[1]["output"]) == ("failed", "spilt")
    assert "3 of 3 evaluations" in run("run", path)[1]  # they count


def test_the_point_of_a_trial_that_is_out_means_that_trial(tmp_path: Path) -> None:
    path = write(tmp_path)
    run("ask", path)
    params = lifecycle.trials(open_study(load(path)))[0].params
    words = [w for n, v in params.items() for w in ("--params", f"{n}={v}")]
    assert run("tell", path, *words, 1.5)[1] == "trial 0: told, 1.5\n"
    assert [t.value for t in lifecycle.trials(open_study(load(path)))] == [1.5]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x=2"], "x must be a number from -1 to 1, not '2'"),
        (["x=nan"], "x must be a number from -1 to 1, not 'nan'"),
        (["x=much"], "x must be a number from -1 to 1, not 'much'"),
        (["n=3"], "n must be an int from 0 to 8 in steps of 2, not '3'"),
        (["n=2.5"], "n must be an int from 0 to 8 in steps of 2"),
        (["c=d"], "c must be one of a, b, not 'd'"),
        (["b=1"], "b must be one of True, False, not '1'"),
        (['{"x": true}'], "x must be a number from -1 to 1, not True"),
        ([f'{{"n": {10**400}}}'], "n must be an int from 0 to 8 in steps of 2"),
        (["y=1"], "--params has 'y', but [space] has x, n, c, b"),
        (["x"], "must be like name=value, or a JSON object, not 'x'"),
        (["{x"], "is not JSON"),
        (["x=0", "x=1"], "gives 'x' twice"),
    ],
)
def test_points_that_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    space = load(write(tmp_path)).space
    right = {"x": "0", "n": "4", "c": "a", "b": "true"}
    named = {word.partition("=")[0].strip('{"').partition('"')[0] for word in words}
    others = [f"{name}={value}" for name, value in right.items() if name not in named]
    with pytest.raises(StudyError) as refused:
        point([*others, *words], space)
    assert message in str(refused.value)


def test_levels_are_numbers_by_any_spelling(tmp_path: Path) -> None:
    levels = "[space]\nlr = { categories = [1e-4, 1.0] }\nn = { categories = [16, 32] }\n"
    space = study_file(tmp_path, space=levels).space
    assert point(["lr=1e-4", "n=16.0"], space) == {"lr": 1e-4, "n": 16}
    assert point(['{"lr": 1, "n": 32}'], space) == {"lr": 1.0, "n": 32}
    with pytest.raises(StudyError, match=r"n must be one of 16, 32, not '17'"):
        point(["lr=1", "n=17"], space)


def test_a_point_lacks_a_parameter(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="--params lacks n, b: give every parameter"):
        point(["x=0", "c=a"], load(write(tmp_path)).space)


def test_a_point_of_ones_own_is_not_cancelled(tmp_path: Path) -> None:
    code, _, said = run("tell", write(tmp_path), *POINT, "--cancel")
    assert code == 2
    assert "--cancel is for a trial that was asked for" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[-1, 1]", "[-1, 2]", "x is { float = [-1.0, 1.0] } there and { float = [-1.0, 2.0] }"),
        ("step = 2", "step = 4", "n is { int = [0, 8], step = 2 } there and { int = [0, 8], step"),
        ('["a", "b"]', '["a", "d"]', 'c is { categories = ["a", "b"] } there and'),
        ("c = {", "d = {", "d is missing there and { categories"),
    ],
)
def test_another_space_names_the_parameter(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = write(tmp_path)
    run("ask", path)
    path.write_text(path.read_text().replace(old, new))
    code, _, said = run("status", path)
    assert code == 1
    assert message in said
