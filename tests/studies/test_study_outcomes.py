"""Studies with several outcomes: in the file, in results, in storages, and on the command line."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from optpair import Constraint, Objective
from optpair.integrations.optuna import JESSampler
from optpair.studies import lifecycle
from optpair.studies.config import StudyError, load
from optpair.studies.objective import call, parse
from optpair.studies.results import Result, best, values_of
from optpair.studies.storage import find_study, open_study
from optpair.studies.worker import record
from outcome_cases import ALL, SPACE, several, truth
from shell_cases import TINY
from study_cases import run, shown, study_file

OUTCOMES = """
[outcomes]
gain = { direction = "maximize", bounds = [-inf, 1] }
cost = "minimize"
load = { high = 0.5 }
"""
CODE = """
import json, os
p = json.loads(os.environ["OPTPAIR_PARAMS"])
x, y = p["x"], p["y"]
found = {"gain": 1 - (x - 0.8) ** 2 - (y - 0.4) ** 2, "cost": x + (y - 0.4) ** 2}
found["load"] = abs(x - 0.1) if y < 0.9 else None
print(json.dumps(found))
"""
SQUARE = "[space]\nx = { float = [0, 1] }\ny = { float = [0, 1] }\n"


def write(folder: Path, outcomes: str = OUTCOMES, **changes: str) -> Path:
    tiny = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TINY.items())
    command = json.dumps([sys.executable, "code.py"])
    text = f"[study]\nevaluations = 8\n[objective]\ncommand = {command}\n{outcomes}\n{SQUARE}"
    text += f"[settings]\ninitial = 5\n{tiny}\n"
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "code.py").write_text(CODE, encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_with_outcomes(tmp_path: Path) -> None:
    more = 'time = { low = 1, high = 5, noise = 0 }\nyield = { direction = "maximize", noise = 2, '
    more += "guess = [0.9, 0.95], sure = 0.8 }\n"
    file = study_file(tmp_path, OUTCOMES + more)
    assert file.named
    assert file.outcomes == {
        "gain": Objective("maximize", bounds=(None, 1.0)),
        "cost": Objective("minimize"),
        "load": Constraint(high=0.5),
        "time": Constraint(1.0, 5.0, 0.0),
        "yield": Objective("maximize", 2.0, guess=(0.9, 0.95), sure=0.8),
    }
    assert list(file.objectives) == ["gain", "cost", "yield"]
    assert list(file.constraints) == ["load", "time"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[outcomes]", r"\[outcomes\] is empty: name what a trial gives"),
        ("[outcomes]\na = 'minimise'", "not 'minimise'; did you mean 'minimize'"),
        ("[outcomes]\na = 'up'", r"a must be \"minimize\", \"maximize\", .* not 'up'"),
        ("[outcomes]\na = { high = 2 }", "has only constraints, a, so no point is better"),
        ("[outcomes]\na = { high = 1, low = 2 }", "a: low must be below high, not low=2, high=1"),
        ("[outcomes]\na = { hihg = 1 }", "unknown key 'hihg'; did you mean 'high'"),
        ("[outcomes]\na = { direction = 'minimize', high = 1 }", r"either direction \(an objec"),
        ("[outcomes]\na = { noise = 1 }", r"either direction \(an objective\), or low or high"),
        ("[outcomes]\na = { high = nan }", "high must be a finite number, not nan"),
        ("[outcomes]\na = { high = 1, bounds = [0, 1] }", "bounds, guess and sure are for objec"),
        ("[outcomes]\na = { direction = 'minimize', bounds = [1, 0] }", "bounds must increase"),
        ("[outcomes]\na = { direction = 'minimize', bounds = [inf, 1] }", "with inf for no end"),
        ("[outcomes]\nnoise_var = 'minimize'", "cannot have an outcome called 'noise_var'"),
        ("[study]\ndirection = 'minimize'\n[outcomes]\na = 'minimize'", "cannot be given together"),
        ("[study]\nnoise = 0\n[outcomes]\na = 'minimize'", "noise = 0 and .outcomes. cannot be"),
        ("[stop]\ngap = 1\n" + OUTCOMES, "needs one objective, and there are gain, cost"),
        ("outcome = 1", "unknown key 'outcome'; did you mean 'outcomes'"),
    ],
)
def test_outcomes_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, text)


@pytest.mark.parametrize(
    ("output", "values", "noise_var"),
    [
        ('{"gain": 0.5, "cost": 2, "load": 0.1}', {"gain": 0.5, "cost": 2.0, "load": 0.1}, {}),
        ('{"load": null, "gain": -3}', {"gain": -3.0}, {}),
        ('{"cost": 1, "noise_var": {"cost": 0.25}}', {"cost": 1.0}, {"cost": 0.25}),
        ('{"gain": NaN, "cost": 1, "load": Infinity}', {"cost": 1.0}, {}),
        ('{"gain": 1e301, "cost": [NaN, 2]}', {"cost": 2.0}, {}),
    ],
)
def test_values_by_name(
    tmp_path: Path, output: str, values: dict[str, float], noise_var: dict[str, float]
) -> None:
    assert parse(f"epoch 1\n{output}", study_file(tmp_path, OUTCOMES)) == Result(values, noise_var)


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ('{"gain": 0.5, "cots": 2}', "no outcome 'cots': [outcomes] has 'gain', 'cost', 'load'; "),
        ('{"gain": 0.5, "cots": 2}', "did you mean 'cost'?"),
        ("0.5", "must be a table of values by name ('gain', 'cost', 'load'), not 0.5"),
        ('{"gain": NaN, "cost": [NaN]}', "the result has no value of 'gain', 'cost', 'load'"),
        ('{"gain": 1.5}', "gain must be within its bounds, -inf to 1, not 1.5"),
        ('{"gain": true}', "gain must be a finite number, not True"),
        ("{}", "the result has no value of 'gain', 'cost', 'load'"),
        ('{"gain": 0, "noise_var": 1}', "noise_var must have variances by the outcomes' names"),
        ('{"gain": 0, "noise_var": {"cost": 1}}', "noise_var has 'cost', which has no value"),
        ('{"gain": 0, "noise_var": {"gain": -1}}', "must be a finite variance"),
    ],
)
def test_results_that_are_failures(tmp_path: Path, output: str, problem: str) -> None:
    result = parse(output, study_file(tmp_path, OUTCOMES))
    assert not result.values
    assert problem in result.problem


def test_one_outcome_with_a_name_needs_none_in_the_result(tmp_path: Path) -> None:
    file = study_file(tmp_path, '[outcomes]\nloss = "minimize"')
    assert call(lambda _: 2, {}, 0, file) == call(lambda _: {"loss": 2.0}, {}, 0, file)
    assert call(lambda _: 2, {}, 0, file) == Result({"loss": 2.0})


def test_a_storage_keeps_what_was_measured(tmp_path: Path) -> None:
    """All of it for us; values and feasibility for Optuna, where no objective is missing."""
    file = load(write(tmp_path))
    study = open_study(file)
    whole, partial = {"gain": 0.5, "cost": 1.0, "load": 0.75}, {"gain": 0.5, "load": 0.25}
    for values in (whole, partial):
        trial = study.ask(dict(file.space))
        assert record(study, trial, file, trial.params, Result(values, {"gain": 0.1}))
    first, second = lifecycle.trials(study)
    assert (first.state, first.values) == (TrialState.COMPLETE, [0.5, 1.0])
    assert first.constraints == {"load": 0.25}
    assert (second.state, second.values) == (TrialState.PRUNED, None)
    assert [lifecycle.row(t, file)["outcomes"] for t in (first, second)] == [whole, partial]
    assert [lifecycle.row(t, file)["state"] for t in (first, second)] == ["told", "told"]
    assert [d.name for d in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert study.metric_names == ["gain", "cost"]
    study.tell(study.ask(dict(file.space)).number, state=TrialState.PRUNED)
    assert lifecycle.state(study.trials[2]) == "pruned"  # by Optuna's own hand


def test_results_that_come_late_are_trials_of_their_own(tmp_path: Path) -> None:
    """Also where an objective is missing; what somebody said on purpose stands."""
    file, said = load(write(tmp_path)), list[str]()
    study = open_study(file)
    for values in ({"gain": 0.5, "cost": 1.0}, {"gain": 0.5}):
        trial = study.ask(dict(file.space))
        lifecycle.forget(study, study.trials[trial.number], "stale")
        assert record(study, trial, file, trial.params, Result(values), said.append)
        late = study.trials[-1]
        assert (lifecycle.state(late), values_of(late, file)) == ("told", values)
        assert late.params == trial.params
    trial = study.ask(dict(file.space))
    shown("tell", file.path, trial.number, "gain=0.25")
    assert record(study, trial, file, trial.params, Result({"gain": 0.25}), said.append)
    assert not record(study, trial, file, trial.params, Result({"gain": 0.5}), said.append)
    assert said == ["trial 4 gave gain = 0.5, but somebody else has ended it meanwhile: it is told"]
    assert values_of(lifecycle.trials(study)[4], file) == {"gain": 0.25}


def test_what_is_known_is_what_the_optimizer_knows(tmp_path: Path) -> None:
    """The same trials told to a study and to an optimizer: the same front, to the last digit."""
    file = load(write(tmp_path))
    study, own = open_study(file), several(ALL, initial=5)
    points = [{"x": (0.3 + 0.7 * i) % 1, "y": (0.1 + 0.4 * i) % 1} for i in range(8)]
    for i, params in enumerate(points):
        values = truth(params)
        if i == 3:
            del values["cost"]
        if i == 5:
            del values["load"]
        run("tell", tmp_path / "study.toml", "--params", json.dumps(params), json.dumps(values))
        own.tell(params, values)
    sampler = JESSampler(seed=0, search_space=SPACE, settings=own._session.settings)
    study = find_study(file.storage, file.name)
    assert str(sampler.recommend(study)) == str(own.recommend())


def test_run_to_a_front(tmp_path: Path) -> None:
    path = write(tmp_path)
    found = shown("run", path)
    assert found["counts"] == {"told": 8}
    assert found["outcomes"] == {"gain": "maximize", "cost": "minimize", "load": "at most 0.5"}
    front = found["recommendation"]["front"]
    assert all(point["chance"] >= 0.95 or len(front) == 1 for point in front)
    assert set(front[0]["outcomes"]) == {"gain", "cost", "load"}
    rows = shown("export", path)
    assert [row["outcomes"]["cost"] for row in rows] == [truth(r["params"])["cost"] for r in rows]
    file, study = load(path), open_study(load(path))
    on_front = [trial.number for trial in best(lifecycle.trials(study), file)]
    assert [row["trial"] for row in found["best_observed"]] == on_front
    assert found["recommendation"]["hypervolume"] > 0
    text = run("recommend", path)[1]
    assert "gain (maximize)" in text
    best_gain = shown("recommend", path, "--prefer", "gain=1")
    means = [point["outcomes"]["gain"]["mean"] for point in best_gain["front"]]
    assert best_gain["chosen"]["outcomes"]["gain"]["mean"] == max(means)
    cheap = shown("recommend", path, "--near", "cost=-9")
    means = [point["outcomes"]["cost"]["mean"] for point in cheap["front"]]
    assert cheap["chosen"]["outcomes"]["cost"]["mean"] == min(means)
    assert run("recommend", path, "--near", "cost=0")[1].startswith("recommended    x = ")
    code, _, said = run("recommend", path, "--prefer", "gian=1")
    assert code == 1
    assert "not 'gian'; did you mean 'gain'?" in said
    assert run("recommend", path, "--prefer", "1")[0] == 2
    table = list(csv.DictReader(io.StringIO(run("export", path)[1])))
    assert [float(row["gain"]) for row in table] == [row["outcomes"]["gain"] for row in rows]
    page = shown("report", path)
    assert len(page["front"]) == len(front)
    assert "The best compromises" in (tmp_path / "study.html").read_text(encoding="utf-8")


def test_run_under_a_constraint(tmp_path: Path) -> None:
    one = '[outcomes]\ngain = "maximize"\nload = { high = 0.5 }\ncost = { high = 9 }\n[stop]\n'
    path = write(tmp_path, one + "gap = 1e-9\n")
    best_point = shown("run", path)["recommendation"]
    assert 0 <= best_point["chance"] <= 1
    assert best_point["outcomes"]["gain"]["mean"] == best_point["mean"]
    assert set(best_point["best_observed"]["outcomes"]) <= {"gain", "load", "cost"}
    code, text, said = run("recommend", path, "--prefer", "gain=1")
    assert code == 1
    assert "there is only one" in said
    text = run("recommend", path)[1]
    assert "(must be at most 0.5)" in text
    assert "feasible       " in text
    assert "best observed gain = " in run("status", path)[1]
    shown("report", path)
    assert "Beside the limits" in (tmp_path / "study.html").read_text(encoding="utf-8")


def test_ask_tell_and_revise_by_hand(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert [trial["trial"] for trial in shown("ask", path, "--n", 2)] == [0, 1]
    told = shown("tell", path, 0, "gain=-0.5", "cost=2", "load=0.9", "--noise-var", "gain=0.25")
    assert told["outcomes"] == {"gain": -0.5, "cost": 2.0, "load": 0.9}
    assert told["noise_var"] == {"gain": 0.25}
    assert "no trial has all objectives and meets all constraints" in run("status", path)[1]
    assert shown("tell", path, 1, '{"gain": 0.25, "load": null}')["outcomes"] == {"gain": 0.25}
    code, output, _ = run("revise", path, 1, "gain=0.75", "cost=1", "load=0.1")
    assert (code, output) == (0, "trial 1: told, gain = 0.75, cost = 1, load = 0.1\n")
    assert shown("status", path)["best_observed"][0]["outcomes"]["gain"] == 0.75
    assert shown("revise", path, 0, "load=0.2")["outcomes"] == {"load": 0.2}
    assert shown("revise", path, 0, "--failed")["state"] == "failed"
    own = shown("tell", path, "--params", "x=0.5", "--params", "y=0.5", "cost=3")
    assert (own["state"], own["outcomes"]) == ("told", {"cost": 3.0})
    assert shown("status", path)["counts"] == {"failed": 1, "told": 2}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["gian=1"], 1, "there is no outcome 'gian'.*did you mean 'gain'"),
        (
            ["0.5"],
            1,
            "does not say which outcome it is: write gain=0.5, and likewise for cost, load",
        ),
        (["gain=1.5"], 1, "gain must be within its bounds"),
        (["gain=nan"], 2, "must be a finite number, not nan; leave gain out"),
        (["gain=0.5", "gain=2"], 1, "gain must be within its bounds"),
        (["gain=1", "--noise-var", "cost=1"], 1, "noise_var has 'cost', which has no value"),
        (["=1"], 2, "VALUE must be like NAME=VALUE"),
        (["{x}"], 2, "is not JSON"),
    ],
)
def test_what_cannot_be_told(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    path = write(tmp_path)
    shown("ask", path)
    got, _, said = run("tell", path, 0, *words)
    assert got == code
    assert re.search(message, said)
    assert shown("status", path)["counts"] == {"by hand": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"high = 0.5": "high = 0.6"}, "load is { high = 0.5 } there and { high = 0.6 } here"),
        ({'cost = "minimize"': 'cots = "minimize"'}, "cots is missing there and"),
        ({'cost = "minimize"': 'cots = "minimize"'}, "did you mean 'cost'?"),
        ({'cost = "minimize"': 'cost = "maximize"'}, 'cost is "minimize" there and "maximize"'),
        ({"[-inf, 1]": "[0, 1]"}, "bounds = [-inf, 1.0] } there and"),
        ({OUTCOMES: ""}, "gain, cost, load there and none here"),
    ],
)
def test_a_file_whose_outcomes_changed_is_refused(
    tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    path = write(tmp_path)
    shown("ask", path)
    write(tmp_path, **changes)
    for command in ("ask", "status"):
        code, _, said = run(command, path)
        assert code == 1
        assert "with a different [outcomes]: " in said
        assert message in said


def test_outcomes_for_a_study_that_had_none_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    shown("ask", path)
    code, _, said = run("ask", write(tmp_path))
    assert code == 1
    assert "one value without a name there, direction minimize" in said


def test_nothing_is_recommended_before_every_objective_has_a_value(tmp_path: Path) -> None:
    path = write(tmp_path)
    shown("ask", path)
    shown("tell", path, 0, "gain=0.5")
    code, _, said = run("recommend", path)
    assert code == 3
    assert "no trial of study 'study' has a value of cost yet" in said
    assert shown("report", path)["front"] is None


def test_an_acquisition_that_serves_one_objective_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, **{"evaluations = 8": 'evaluations = 8\nsampler = "logei"'})
    code, _, said = run("run", path)
    assert code == 1
    assert "logei" in said
    assert not list(tmp_path.glob("*.db"))


def test_a_study_says_what_its_outcomes_are(tmp_path: Path) -> None:
    """Its storage alone is enough: `optpair report sqlite:///study.db`."""
    shown("run", write(tmp_path))
    found = shown("report", tmp_path / "study.db", "--out", tmp_path / "other.html")
    assert set(found["front"][0]["outcomes"]) == {"gain", "cost", "load"}
    assert optuna.load_study(
        study_name="study", storage=f"sqlite:///{tmp_path}/study.db"
    ).best_trials
