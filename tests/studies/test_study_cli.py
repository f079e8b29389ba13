"""Studies from the command line: run, resume, ask, tell, and what scripts get to see."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState
from typer.testing import CliRunner

from optpair.cli.app import app
from optpair.integrations.optuna.attributes import FAILED
from optpair.studies import lifecycle, storage
from optpair.studies.config import StudyError, load
from optpair.studies.lifecycle import BEAT, Watch, forget
from optpair.studies.results import Result
from optpair.studies.samplers import make_sampler
from optpair.studies.storage import open_storage, open_study
from optpair.studies.worker import Interrupts, beating, look, record
from shell_cases import shell
from study_cases import gave

FILE = """
[study]
evaluations = 4
sampler = "lattice"
direction = "maximize"
stale_after = 0.5

[objective]
command = ["{python}", "-c", "{code}", "{{x}}", "{{c}}"]

[space]
x = {{ float = [-1, 1] }}
c = {{ categories = ["a", "b"] }}
"""
GOOD = "import sys; print(float(sys.argv[1]) ** 2)"


def write(folder: Path, code: str = GOOD, **changes: str) -> Path:
    text = FILE.format(python=sys.executable, code=code)
    for old, new in changes.items():
        text = text.replace(old, new)
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def shown(*arguments: object) -> Any:
    code, output = run(*arguments, "--json")
    assert code == 0, output
    return json.loads(output)


def test_run_resumes_and_exports(tmp_path: Path) -> None:
    path = write(tmp_path)
    first = shown("run", path)
    assert first["counts"] == {"told": 4}
    again = shown("run", path)
    assert again == first  # nothing left to do
    write(tmp_path, evaluations="evaluations = 6 #")
    assert shown("run", path)["ended"] == 6
    rows = shown("export", path)
    assert [row["value"] for row in rows] == [row["params"]["x"] ** 2 for row in rows]
    assert shown("status", path)["best_observed"]["value"] == max(row["value"] for row in rows)
    _, text = run("export", path)
    table = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["x"]) for row in table] == [row["params"]["x"] for row in rows]
    out = tmp_path / "trials.csv"
    assert run("export", path, "--out", out)[0] == 0
    assert out.read_text() == text
    assert "6 of 6 evaluations; trials: 6 told" in run("status", path)[1]
    write(tmp_path, evaluations="evaluations = 5 #")
    assert "6 evaluations, of which 5 were wanted; trials: 6 told" in run("status", path)[1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="shells of Linux")
@pytest.mark.parametrize(
    ("redirection", "workers"), [("2>/dev/full", 1), ("2>&-", 2), ("2> >(exec true)", 1)]
)
def test_a_standard_error_that_cannot_be_written_to_ends_nothing(
    tmp_path: Path, redirection: str, workers: int
) -> None:
    path = write(tmp_path)
    command = f"{shlex.quote(sys.executable)} -m optpair run {path} --workers {workers} --json"
    ran = shell(f"{command} {redirection}")
    assert (
        json.loads(ran.stdout)["counts"]["told"] == 4
    )  # one that two workers asked for at once is cancelled
    assert ran.returncode == 0


def test_the_engine_suggests_and_recommends(tmp_path: Path) -> None:
    tiny = """
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
    path = write(tmp_path, lattice="jes", **{"[space]": tiny + "[space]"})
    found = shown("run", path)
    best = found["recommendation"]
    assert found["counts"] == {"told": 4}
    assert -1 <= best["params"]["x"] <= 1
    assert best["interval"][0] <= best["mean"] <= best["interval"][1]
    assert best["best_observed"]["value"] == found["best_observed"]["value"]
    again = shown("recommend", path)
    assert again["best_observed"] == best["best_observed"]
    text = run("run", path)[1]
    assert "95 % interval" in text
    assert text.count("best observed") == 1
    assert text.endswith(run("recommend", path)[1])
    page = shown("report", path)
    assert page["path"] == str(tmp_path / "study.html")
    assert page["recommendation"]["mean"] == again["mean"]
    assert page["recommendation"]["params"] == again["params"]
    assert "<h1>study</h1>" in (tmp_path / "study.html").read_text(encoding="utf-8")


def test_the_last_line_of_a_run_is_of_the_sampler_that_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is warm; a new one would start its chains again."""
    from optpair.integrations.optuna import JESSampler

    suggested, asked = set[int](), list[int]()

    def suggest(sampler: JESSampler, *_: Any) -> dict[str, Any]:
        suggested.add(id(sampler))
        return {}

    def recommend(sampler: JESSampler, study: optuna.Study, **context: Any) -> Any:
        asked.append(id(sampler))
        raise StorageInternalError("away")

    monkeypatch.setattr(JESSampler, "sample_relative", suggest)
    monkeypatch.setattr(JESSampler, "recommend", recommend)
    monkeypatch.setattr(storage.time, "sleep", lambda seconds: None)
    assert run("run", write(tmp_path, lattice="jes"))[0] == 0
    assert set(asked) == suggested
    assert len(suggested) == 1


def test_failures_keep_their_output_and_leave_nothing_to_recommend(tmp_path: Path) -> None:
    path = write(tmp_path, "import sys; sys.exit('no gpu')")
    assert run("run", path)[0] == 3
    rows = shown("export", path)
    assert [row["state"] for row in rows] == ["failed"] * 4
    assert rows[0]["output"] == "exit code 1\nno gpu"
    result = CliRunner().invoke(app, ["recommend", str(path)])
    assert result.exit_code == 3
    assert "has a value yet" in result.stderr


def test_why_a_trial_failed_is_said(tmp_path: Path) -> None:
    code = "import sys; print('epoch 1'); sys.exit('no gpu' if float(sys.argv[1]) < 2 else 0)"
    path = write(tmp_path, code)
    result = CliRunner().invoke(app, ["run", str(path)])
    assert "trial 0: failed: exit code 1: no gpu\n" in result.stderr
    assert shown("status", path)["failures"] == [
        {"trial": i, "reason": "exit code 1: no gpu"} for i in (1, 2, 3)
    ]
    assert "\nfailed: trial 3: exit code 1: no gpu\n" in run("status", path)[1]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (None, "it gave no reason"),
        ("timed out after 3 s", "timed out after 3 s"),
        ("exit code 1\nepoch 1\n10 %\r\x1b[31mno gpu\n\n", "exit code 1: [31mno gpu"),
        ("spilt\n" + "x" * 999, "spilt: " + "x" * 199 + "…"),
    ],
)
def test_a_reason_is_one_line(output: str | None, reason: str) -> None:
    assert lifecycle.reason(output) == reason


def test_text_in_csv_is_no_formula(tmp_path: Path) -> None:
    path = write(tmp_path, **{'["a", "b"]': '["=1+1", "-a"]', "c = ": '"@c" = ', "{c}": "{@c}"})
    for i in range(4):
        asked = shown("ask", path)
        said = {1: ["--failed", "--message", "+1"], 2: ["--failed", "--message", "\tx"]}
        shown("tell", path, asked["trial"], *said.get(i, [-0.5]))
    rows = shown("export", path)
    table = list(csv.DictReader(io.StringIO(run("export", path)[1])))
    assert [row["'@c"] for row in table] == ["'" + row["params"]["@c"] for row in rows]
    assert [row["output"] for row in table] == ["", "'+1", "'\tx", ""]
    assert [row["value"] for row in table] == ["-0.5", "", "", "-0.5"]  # numbers stay numbers
    assert [float(row["x"]) for row in table] == [row["params"]["x"] for row in rows]


def test_a_report_without_values_shows_what_failed(tmp_path: Path) -> None:
    path = write(tmp_path, "import sys; sys.exit('no <b>gpu</b>')")
    run("run", path)
    out = tmp_path / "other.html"
    code, output = run("report", path, "--out", out)
    assert code == 0
    assert output.startswith(f"{out}\nNothing to recommend yet. 4 trials failed")
    text = out.read_text(encoding="utf-8")
    assert "4 trials failed" in text
    assert "no &lt;b&gt;gpu&lt;/b&gt;" in text
    result = CliRunner().invoke(app, ["report", str(path), "--out", str(tmp_path / "no" / "page")])
    assert result.exit_code == 1
    assert "there is no folder" in result.stderr


def test_ask_and_tell_by_hand(tmp_path: Path) -> None:
    path = write(tmp_path)
    asked = [shown("ask", path) for _ in range(4)]
    assert [trial["trial"] for trial in asked] == [0, 1, 2, 3]
    assert set(asked[0]["params"]) == {"x", "c"}
    assert shown("run", path)["counts"] == {"by hand": 4}  # waits for nobody
    assert shown("tell", path, 0, -0.5)["value"] == -0.5
    assert shown("tell", path, 1, "--noise-var", 0.25, 2)["noise_var"] == 0.25
    assert shown("tell", path, 2, "--failed", "--message", "spilt")["output"] == "spilt"
    assert shown("tell", path, 3, "--cancel")["state"] == "cancelled"
    assert shown("status", path)["counts"] == {"told": 2, "failed": 1, "cancelled": 1}
    assert shown("run", path)["counts"]["told"] == 3  # the cancelled one is made up for


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("tell", 0, 1.0), 1, "trial 0 is not out: it is told; optpair revise corrects it"),
        (("tell", 9, 1.0), 1, "trial 9 is unknown"),
        (("tell", 0), 2, "give one of VALUE, --failed and --cancel"),
        (("tell", 0, 1.0, "--failed"), 2, "give one of"),
        (("tell", 0, "nan"), 2, "must be a finite number"),
        (("tell", 0, 1.0, "--noise-var", "inf"), 2, "--noise-var must be a finite variance"),
        (("tell", 0, "--failed", "--noise-var", 1), 2, "--noise-var goes with VALUE"),
        (("tell", 0, "many"), 2, "VALUE must be a number, not 'many'"),
        (("tell", 0, "33,1"), 2, "VALUE must be a number, not '33,1'; write 33.1"),
        (("tell", 0, "43.5 %"), 2, "VALUE must be a number, not '43.5 %'; write 43.5"),
    ],
)
def test_what_cannot_be_told(
    tmp_path: Path, arguments: tuple[Any, ...], code: int, message: str
) -> None:
    path = write(tmp_path)
    shown("ask", path)
    shown("tell", path, 0, 1.0)
    result = CliRunner().invoke(app, [arguments[0], str(path), *map(str, arguments[1:])])
    assert result.exit_code == code
    assert message in result.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"maximize": "minimize"}, "different direction maximize"),
        ({"[-1, 1]": "[-1, 2]"}, "with a different [space]"),
        ({"= 4": "= 4\nnoise = 0"}, "with a different noise: inferred there and 0 here; change"),
        ({"lattice": "sobool"}, "acquisition must be one of"),
        ({"[objective]": "[objectives]"}, "unknown key 'objectives'"),
        ({"lattice": "jes", "[space]": "[settings]\nset = 3\n[space]"}, "unknown key 'set'"),
        ({"lattice": "jes", "[space]": "[settings]\nsets = 0\n[space]"}, "sets must be an int"),
        ({'sampler = "lattice"': 'storage = "oracle+x://h/d"'}, "cannot be opened"),
        ({sys.executable: "/no/such/python"}, "cannot be started"),
    ],
)
def test_another_study_or_a_mistake_is_refused(
    tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    path = write(tmp_path)
    shown("ask", path)
    write(tmp_path, **changes)
    result = CliRunner().invoke(app, ["run", str(path)])
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_study_keeps_its_noise(tmp_path: Path) -> None:
    path = write(tmp_path, **{"= 4": "= 4\nnoise = 0"})
    assert shown("run", path)["counts"] == {"told": 4}
    assert make_sampler(load(path))._options.noise == 0.0
    for line, here in {"noise = 0.5": "0.5", "": "inferred"}.items():
        write(tmp_path, **{"= 4": f"= 5\n{line}"})
        for command in ("run", "ask", "recommend"):
            result = CliRunner().invoke(app, [command, str(path)])
            assert result.exit_code == 1
            assert f"different noise: 0 there and {here} here; change it back" in result.stderr
    write(tmp_path, **{"= 4": "= 5\nnoise = 0.0"})
    assert shown("run", path)["counts"] == {"told": 5}


def test_without_optuna_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[:2] == ["optpair", "studies"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("optpair.studies", raising=False)
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.setitem(sys.modules, "optuna.distributions", None)
    result = CliRunner().invoke(app, ["status", str(write(tmp_path))])
    assert result.exit_code == 1
    assert "pip install 'optpair[optuna]'" in result.stderr


def test_status_does_without_the_engine(tmp_path: Path) -> None:
    path = write(tmp_path)
    shown("ask", path)
    script = (
        "import sys; from optpair.studies import commands, config;"
        f"commands.status(config.load({str(path)!r}));"
        "print('optpair.engine.session' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout == "False\n", found.stderr


SLOW = "import sys, time; time.sleep(1); print(float(sys.argv[1]) ** 2)"


@pytest.mark.parametrize(("workers", "times"), [(1, 1), (1, 2), (2, 2)])
def test_ctrl_c(tmp_path: Path, workers: int, times: int) -> None:
    """Once: what runs is finished and told. Twice: it is abandoned, and forgotten."""
    code = SLOW if times == 1 else SLOW.replace("sleep(1)", "sleep(60)")
    path = write(tmp_path, code, lattice="random")  # SciPy takes a second to import
    study = open_study(load(path))
    command = [sys.executable, "-m", "optpair", "run", str(path), "--workers", str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(600):
        if lifecycle.count(study.trials)["running"] == workers and all(
            t.params for t in study.trials
        ):
            break
        time.sleep(0.05)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    process.communicate(timeout=60)
    assert process.returncode == 130
    state = "told" if times == 1 else "cancelled"
    assert lifecycle.count(study.trials) == {state: workers}


def test_ctrl_c_while_workers_start(tmp_path: Path) -> None:
    path = write(tmp_path, lattice="random")
    command = [sys.executable, "-m", "optpair", "run", str(path), "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("*.db")):
        time.sleep(0.02)
    time.sleep(0.5)  # the study is made, and the workers import what they need
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "workers ended" not in said
    assert lifecycle.count(open_study(load(path)).trials)["running"] == 0


@pytest.mark.parametrize("command", ["status", "recommend", "report", "export", "tell"])
@pytest.mark.parametrize("storage", ["sqlite:///s.db", "journal:///s.log"])
def test_what_reads_a_study_makes_none(tmp_path: Path, command: str, storage: str) -> None:
    path = write(tmp_path, **{"[objective]": f'storage = "{storage}"\n[objective]'})
    arguments = [command, str(path), *(["0", "1.5"] if command == "tell" else [])]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert (
        f"there is no study 'study' in {storage.partition(':')[0]}:///{tmp_path}" in result.stderr
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.toml"]
    shown("ask", path)
    write(tmp_path, **{"[objective]": f'storage = "{storage}"\nname = "other"\n[objective]'})
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "there is no study 'other'" in result.stderr
    studies = optuna.get_all_study_names(open_storage(load(path).storage))
    assert studies == ["study"]


def test_a_database_without_tables_stays_so(tmp_path: Path) -> None:
    (tmp_path / "study.db").touch()
    result = CliRunner().invoke(app, ["status", str(write(tmp_path))])
    assert result.exit_code == 1
    assert "there is no study 'study'" in result.stderr
    assert (tmp_path / "study.db").stat().st_size == 0


def test_a_stale_trial_is_found_by_its_beat_alone(tmp_path: Path) -> None:
    study = open_study(load(write(tmp_path)))
    alive, dead, silent = (study.ask() for _ in range(3))
    shown("ask", tmp_path / "study.toml")  # by hand: never stale
    dead.set_user_attr(BEAT, 1e18)  # another machine's clock
    watch = Watch(0.2)
    found: list[int] = []
    for beat in range(4):
        alive.set_user_attr(BEAT, float(beat))
        found = [trial.number for trial in watch.stale(study.get_trials(deepcopy=False))]
        time.sleep(0.15)
    assert found == [dead.number, silent.number]


def test_who_slept_lets_the_others_beat_before_calling_them_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a machine's sleep no beat has changed; those that live beat again at once."""
    study = open_study(load(write(tmp_path)))
    alive, dead = study.ask(), study.ask()
    watch, stop, said = Watch(1.0), Interrupts(print), list[str]()
    clock = time.monotonic
    with beating(alive, 0.05):
        look(study, watch, stop, said.append)
        monkeypatch.setattr(lifecycle.time, "monotonic", lambda: clock() + 1000)
        found = look(study, watch, stop, said.append)
    assert [lifecycle.state(trial) for trial in found] == ["running", "stale"]
    assert said == [f"trial {dead.number}: stale, its worker is gone"]


def test_what_a_stale_trial_gives_late_is_kept(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    study = open_study(file)
    params = {"x": 0.5, "c": "a"}
    for outcome in (gave(0.25, 0.1), Result(problem="broken")):
        trial = study.ask()
        forget(study, study.trials[trial.number], "stale")
        assert record(study, trial, file, params, outcome)
    assert lifecycle.count(study.trials) == {"stale": 2, "told": 1, "failed": 1}
    told, failed = (t for t in study.trials if lifecycle.state(t) != "stale")
    assert (told.value, told.params) == (0.25, params)
    assert (failed.params, lifecycle.row(failed, file)["output"]) == (params, "broken")


@pytest.mark.parametrize("state", ["cancelled", "failed", "told"])
def test_a_trial_that_somebody_ended_does_not_end_its_worker(tmp_path: Path, state: str) -> None:
    path = write(tmp_path)
    file = load(path)
    study = open_study(file)
    said: list[str] = []
    trial = study.ask()
    shown("tell", path, 0, *{"cancelled": ["--cancel"], "failed": ["--failed"], "told": [7]}[state])
    stored = record(study, trial, file, {"x": 0.5, "c": "a"}, gave(0.25), said.append)
    assert not stored
    assert lifecycle.count(study.trials) == {state: 1}
    assert f"somebody else has ended it meanwhile: it is {state}" in said[0]


def test_what_came_through_though_the_answer_was_lost_is_stored(tmp_path: Path) -> None:
    path = write(tmp_path)
    file = load(path)
    study = open_study(file)
    for outcome in (gave(0.25), Result(problem="broken")):
        trial = study.ask()
        for _ in range(2):  # the second time is after an answer that was lost
            assert record(study, trial, file, {"x": 0.5, "c": "a"}, outcome)
    assert lifecycle.count(study.trials) == {"told": 1, "failed": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's $PPID")
def test_workers_that_were_killed_are_an_error(tmp_path: Path) -> None:
    path = write(tmp_path)
    text = path.read_text().splitlines()
    kill = 'command = ["sh", "-c", "kill -9 $PPID; sleep 1; echo 1"]'
    path.write_text("\n".join(kill if line.startswith("command") else line for line in text))
    code, output = run("run", path, "--workers", 2)
    assert code == 1
    assert "0 of 4 evaluations; trials: 2 running" in output


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_takes_its_command_along(tmp_path: Path, workers: int) -> None:
    """And what the command has started."""
    code = (
        "import os, pathlib, subprocess, time; "
        "child = subprocess.Popen(['sleep', '60']); "
        "pathlib.Path(f'{{os.getppid()}}.pids').write_text("
        "f'{{os.getpid()}} {{child.pid}} over'); time.sleep(60)"
    )
    path = write(tmp_path, code, lattice="random")
    command = [sys.executable, "-m", "optpair", "run", str(path), "--workers", str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    notes: list[Path] = []
    for _ in range(600):
        if len(notes) == workers:
            break
        time.sleep(0.05)
        notes = [p for p in tmp_path.glob("*.pids") if p.read_text().endswith("over")]
    for note in notes:
        os.kill(int(note.stem), signal.SIGKILL)
    process.wait(60)
    started = [int(pid) for note in notes for pid in note.read_text().split()[:2]]
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(map(alive, started)):
        time.sleep(0.05)
    assert [pid for pid in started if alive(pid)] == []


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie, which nobody has waited for yet, does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip() != "" and not shown.stdout.startswith("Z")


def test_what_is_out_by_hand_is_no_error(tmp_path: Path) -> None:
    path = write(tmp_path)
    shown("ask", path)
    assert shown("run", path)["counts"] == {"by hand": 1, "told": 3}


@pytest.mark.parametrize("workers", [1, 2])
def test_json_is_alone_on_standard_output(tmp_path: Path, workers: int) -> None:
    body = ["print('called')", "sys.__stdout__.write('past')", "os.system('echo shell')"]
    lines = ["import os, sys", "print('imported')", "def f(p):", *(f" {line}" for line in body)]
    (tmp_path / "talks.py").write_text("\n".join([*lines, " return p['x']"]))
    path = write(tmp_path)
    text = path.read_text().splitlines()
    call = 'python = "talks:f"'
    path.write_text("\n".join(call if line.startswith("command") else line for line in text))
    command = [sys.executable, "-m", "optpair", "run", path, "--json", "--workers", workers]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["ended"] == 4
    for said in ("imported", "called", "past", "shell"):
        assert said in done.stderr


def test_a_study_of_several_objectives_is_refused(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    optuna.create_study(
        study_name=file.name, storage=file.storage, directions=["maximize", "minimize"]
    )
    with pytest.raises(StudyError, match="with a different direction maximize, minimize"):
        open_study(file)


def test_forgetting_never_undoes_a_value(tmp_path: Path) -> None:
    study = open_study(load(write(tmp_path)))
    trial = study.ask()
    before = study.trials[0]
    study.tell(trial, 1.0)
    forget(study, before, "stale")
    assert lifecycle.count(study.trials) == {"told": 1}


def test_states_of_a_study_that_others_wrote() -> None:
    study = optuna.create_study()
    space = {"x": FloatDistribution(0, 1)}
    study.enqueue_trial({"x": 0.1})
    for state, attributes in (
        (TrialState.FAIL, {}),
        (TrialState.FAIL, {FAILED: True}),
        (TrialState.PRUNED, {}),
    ):
        study.add_trial(
            optuna.create_trial(
                state=state, params={"x": 0.5}, distributions=space, system_attrs=attributes
            )
        )
    assert [lifecycle.state(t) for t in study.trials] == ["enqueued", "stale", "failed", "pruned"]
