"""What was really run, in studies: told of a trial, or read from a table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

from optpair import Float, Int, Optimizer, Settings, Space
from optpair.cli.app import app
from optpair.integrations.optuna import ACTUAL, NOTES, JESSampler
from optpair.studies.config import load
from optpair.studies.samplers import make_sampler
from optpair.studies.storage import open_study
from shell_cases import TINY

STUDY = """
[study]
direction = "maximize"
evaluations = 40
storage = "journal:///lab.log"

[space]
catalyst = { float = [0.1, 10.0], log = true, digits = 2 }
temperature = { int = [20, 80], step = 5 }
solvent = { categories = ["MeCN", "DMF"] }
stirrer = { float = [300, 300] }
"""
SHEET = """catalyst (mol %);temperature (°C);solvent;yield (%);operator
0.5;42;MeCN;31.0;Ann
1.0;40;MeCN;48.5;Ann
2.0;60;MeCN;71.5 70.5;Bob
2.0;85;DMF;12.0;Ann
5.0;30;DMF;;Bob
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A study file, and a sheet beside it."""
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in TINY.items())
    (tmp_path / "lab.toml").write_text(f"{STUDY}[settings]\n{settings}", encoding="utf-8")
    (tmp_path / "2025.csv").write_text(SHEET, encoding="utf-8-sig")
    return tmp_path / "lab.toml"


def shown(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code != 0
    return result.output


def model_of(path: Path) -> Any:
    """What the sampler's model has of a study."""
    file = load(path)
    study = open_study(file, make=False)
    sampler = make_sampler(file)
    with sampler._reader.lock:
        return sampler._reader.read(study, sampler._reader.modelled(study))


def test_a_sheet_is_taken_whole_with_what_is_off_the_grid(path: Path) -> None:
    found = shown("import", path, path.with_name("2025.csv"), "--value", "yield")
    assert found == {"told": 4, "failed": 0, "skipped": 1, "known": 0, "notes": ["operator"]} | {
        "doubted": []
    }
    model = model_of(path)
    told = model.told()
    assert [t.actual["temperature"] for t in told] == [42, 40, 60, 85]
    assert [t.params["temperature"] for t in told] == [40, 40, 60, 80]
    assert told[2].outcomes["value"].replicates == (71.5, 70.5)
    space = model.problem.space
    for trial in told:
        ran = {name: trial.actual[name] for name in space}
        np.testing.assert_allclose(model.points[trial.id], space.encode(ran, anywhere=True))
    assert shown("status", path)["best_observed"]["params"]["catalyst"] == 2.0
    for row in shown("ask", path, "--n", 2):
        assert space.fits({name: row["params"][name] for name in space})
        assert row["params"]["stirrer"] == 300


def test_the_same_sheet_again_adds_only_what_is_new(path: Path) -> None:
    sheet = path.with_name("2025.csv")
    shown("import", path, sheet, "--value", "yield")
    with sheet.open("a", encoding="utf-8") as file:
        file.write("1.0;40;MeCN;48.5;Bob\n1.0;40;MeCN;49.5;Bob\n")  # the first was run again
    found = shown("import", path, sheet, "--value", "yield")
    assert (found["told"], found["known"]) == (2, 4)
    assert len(shown("export", path)) == 6


def test_a_plate_is_told_by_one_table(path: Path) -> None:
    sheet = path.with_name("today.csv")
    shown("import", path, path.with_name("2025.csv"), "--value", "yield")
    plate = shown("ask", path, "--n", 3)
    CliRunner().invoke(app, ["export", str(path), "--out", str(sheet)])
    rows = list(csv.DictReader(io.StringIO(sheet.read_text())))
    rows[4]["value"] = "61.5"
    rows[5] |= {"value": "44.5 45.5", "temperature": "37"}  # measured twice, and too cold
    rows[6] |= {"state": "failed", "operator": "Ann"}
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = shown("import", path, sheet)
    assert (found["told"], found["failed"], found["known"]) == (2, 1, 4)
    assert found["notes"] == ["operator"]
    told = shown("export", path)
    assert [row["trial"] for row in told] == list(range(7))
    assert [row["state"] for row in told[4:]] == ["told", "told", "failed"]
    assert told[4]["params"] == plate[0]["params"]
    assert (told[5]["value"], told[5]["replicates"]) == (45.0, [44.5, 45.5])
    assert told[5]["actual"] == {"temperature": 37}
    assert told[6]["notes"] == {"operator": "Ann"}
    assert shown("import", path, sheet)["known"] == 7
    sheet.write_text(sheet.read_text().replace("61.5", "16.5"))
    assert "trial 4 was already told otherwise (value 61.5" in refused("import", path, sheet)


def test_the_point_of_a_trial_that_is_out_tells_that_trial(path: Path) -> None:
    sheet = path.with_name("today.csv")
    params = shown("ask", path)["params"]
    header, row = ",".join(params), ",".join(map(str, params.values()))
    sheet.write_text(f"{header},value\n{row},61.5\n{row},61.5\n")
    assert shown("import", path, sheet)["told"] == 2
    assert [row["value"] for row in shown("export", path)] == [61.5, 61.5]
    assert shown("status", path)["out"] == []
    assert shown("import", path, sheet)["known"] == 2
    assert shown("import", path, sheet, "--repeats")["told"] == 2


def test_a_row_that_was_corrected_is_referred_to_its_trial(path: Path) -> None:
    sheet = path.with_name("2025.csv")
    shown("import", path, sheet, "--value", "yield")
    sheet.write_text(SHEET.replace("48.5", "84.5"), encoding="utf-8")
    said = " ".join(refused("import", path, sheet, "--value", "yield").split())
    assert "line 3: it was read before as trial 1 (48.5;" in said
    shown("revise", path, 1, 84.5)
    assert shown("import", path, sheet, "--value", "yield")["known"] == 4


def test_a_row_that_is_refused_changes_nothing(path: Path) -> None:
    sheet = path.with_name("2025.csv")
    sheet.write_text(SHEET.replace("12.0", "twelve"), encoding="utf-8")
    said = refused("import", path, sheet, "--value", "yield")
    assert "2025.csv: line 5: yield (%) must be a number, not 'twelve'; nothing was changed" in said
    assert not path.with_name("lab.log").exists()
    sheet.write_text(SHEET.replace("DMF;12.0", "THF;12.0"), encoding="utf-8")
    assert "line 5: solvent must be one of" in refused("import", path, sheet, "--value", "yield")
    assert "no column of outcome 'value'" in refused("import", path, sheet)
    assert "cannot be read" in refused("import", path, path.with_name("none.csv"))
    sheet.write_text(SHEET, encoding="utf-16")
    said = refused("import", path, sheet, "--value", "yield")
    assert "say encoding='utf-16'" in " ".join(said.split())
    found = shown("import", path, sheet, "--value", "yield", "--encoding", "utf-16")
    assert found["told"] == 4


def test_columns_and_failures_of_a_sheet(path: Path) -> None:
    sheet = path.with_name("2025.csv")
    text = "cat,temperature,solvent,value,failed,reason\n1,40,DMF,,true,it burnt\n1,45,DMF,3,,\n"
    sheet.write_text(text, encoding="utf-8")
    found = shown("import", path, sheet, "--columns", "cat=catalyst")
    assert (found["told"], found["failed"]) == (1, 1)
    assert shown("status", path)["failures"] == [{"trial": 0, "reason": "it burnt"}]
    assert shown("import", path, sheet, "--columns", "cat=catalyst")["known"] == 2
    assert "--columns must be like NAME=NAME" in refused("import", path, sheet, "--columns", "cat")


def test_what_was_really_run_is_told_with_a_trial(path: Path) -> None:
    shown("import", path, path.with_name("2025.csv"), "--value", "yield")
    asked = shown("ask", path)
    number, other = asked["trial"], "DMF" if asked["params"]["solvent"] == "MeCN" else "MeCN"
    ran = ["--actual", "catalyst=1.663", "--actual", f"solvent={other}"]
    told = shown("tell", path, number, "68.9", *ran)
    assert told["params"] == asked["params"]
    assert told["actual"] == {"catalyst": 1.663, "solvent": other}
    assert model_of(path).told()[-1].actual["catalyst"] == 1.663
    revised = shown("revise", path, number, "66.9", "--actual", "temperature=58.7")
    assert revised["actual"] == {"catalyst": 1.663, "solvent": other, "temperature": 58.7}
    assert shown("revise", path, number, "67")["actual"] == revised["actual"]
    again = shown("revise", path, number, "67", "--actual", f"solvent={asked['params']['solvent']}")
    assert again["actual"] == {"catalyst": 1.663, "temperature": 58.7}
    rows = list(csv.DictReader(io.StringIO(CliRunner().invoke(app, ["export", str(path)]).stdout)))
    assert rows[-1]["temperature"] == "58.7"
    assert rows[-1]["asked temperature"] == str(asked["params"]["temperature"])
    assert rows[0]["operator"] == "Ann"
    shown("report", path)
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert "1.663" in page
    assert "operator" in page


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("temp=58", "--actual has 'temp', but trial 0 has catalyst"),
        ("temperature=900", "temperature is 900, more than 3 times the range"),
        ("temperature=hot", "--actual temperature must be a number, not 'hot'"),
        ("solvent=THF", "--actual solvent must be one of MeCN, DMF"),
        ("catalyst=-1", "catalyst must be above 0"),
        ("stirrer=400", "--actual stirrer must be a number from 300 to 300"),
    ],
)
def test_what_cannot_have_been_run_is_refused(path: Path, given: str, message: str) -> None:
    shown("ask", path)
    said = " ".join(refused("tell", path, 0, "1.0", "--actual", given).split())
    assert message in said
    assert shown("status", path)["counts"] == {"by hand": 1}


@pytest.mark.parametrize(
    ("catalyst", "temperature", "message"),
    [
        (0.1234, 40, "catalyst must be from 0.1 to 10.0 with 2 significant figures, not 0.1234"),
        (1.2, 37, "temperature must be an int from 20 to 80 in steps of 5, not 37"),
    ],
)
def test_a_typed_point_off_the_grid_is_referred_to_a_table(
    path: Path, catalyst: float, temperature: int, message: str
) -> None:
    params = {"catalyst": catalyst, "temperature": temperature, "solvent": "DMF", "stirrer": 300}
    said = " ".join(refused("tell", path, "--params", json.dumps(params), 30).split())
    assert f"--params {message}; if it was really run so, a table takes it as data" in said
    path.with_name("one.csv").write_text(
        f"catalyst,temperature,solvent,value\n{catalyst},{temperature},DMF,30\n"
    )
    assert shown("import", path, path.with_name("one.csv"))["told"] == 1
    (told,) = model_of(path).told()
    assert (told.actual["catalyst"], told.actual["temperature"]) == (catalyst, temperature)


def test_a_number_of_a_trial_is_not_taken_for_a_value(path: Path) -> None:
    point = {"catalyst": 1.0, "temperature": 45, "solvent": "MeCN", "stirrer": 300}
    own = ["--params", json.dumps(point)]
    shown("ask", path)
    message = "0 is the number of a trial that is out: with --params, give values alone (0.0 is"
    assert message in " ".join(refused("tell", path, 0, 33.1, *own).split())
    assert shown("tell", path, "0.0", 33.1, *own)["replicates"] == [0.0, 33.1]
    assert shown("tell", path, 0, *own)["value"] == 0.0


def said(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_a_slip_is_named_when_it_is_told_and_is_not_the_best(path: Path) -> None:
    rows = [f"{c},{t},MeCN,{40 + c + t / 10}" for c in (0.5, 2.0) for t in (30, 40, 50, 60)]
    path.with_name("may.csv").write_text("\n".join(["catalyst,temperature,solvent,value", *rows]))
    assert "doubted" not in said("import", path, path.with_name("may.csv"))
    point = {"catalyst": 1.0, "temperature": 45, "solvent": "MeCN", "stirrer": 300}
    own = ["--params", json.dumps(point)]
    assert said("tell", path, *own, 454).startswith("trial 8: told, 454; far better than the")
    status = said("status", path)
    assert "best observed 48 in trial 7" in status
    assert "doubted: 454 in trial 8, far better than the others predict" in status
    assert shown("status", path)["doubted"][0]["trial"] == 8
    assert said("revise", path, 8, 45.4) == "trial 8: told, 45.4"
    assert shown("status", path)["doubted"] == []
    assert shown("tell", path, *own, 45.9)["doubted"] is False


def test_what_was_run_goes_with_a_trial_that_has_a_result(path: Path) -> None:
    shown("ask", path)
    assert "--actual is for" in refused("tell", path, 0, "--cancel", "--actual", "temperature=42")
    own = ["--params", "temperature=40"]
    assert "--actual is for" in refused("tell", path, "1", *own, "--actual", "temperature=42")


def test_notes_are_kept_shown_and_exported(path: Path) -> None:
    number = shown("ask", path)["trial"]
    told = shown("tell", path, number, "50", "--notes", "by=Ann", "--notes", "lot = a=7")
    assert told["notes"] == {"by": "Ann", "lot": "a=7"}
    other = shown("ask", path)["trial"]
    failed = shown("tell", path, other, "--failed", "--message", "it burnt", "--notes", "by=Bob")
    assert (failed["state"], failed["notes"]) == ("failed", {"by": "Bob"})
    assert "by,lot" in CliRunner().invoke(app, ["export", str(path)]).stdout.splitlines()[0]
    shown("ask", path)
    assert "--notes must be like NAME=TEXT" in refused("tell", path, 2, "1", "--notes", "Ann")
    assert "--notes goes with" in refused("tell", path, 2, "--cancel", "--notes", "by=Ann")


def test_a_sampler_learns_from_where_a_trial_was_run() -> None:
    """As the optimizer does, to the last digit."""
    space = Space({"x": Float(0, 1), "n": Int(0, 10)})
    sampler = JESSampler(seed=0, search_space=space, settings=Settings(**TINY))
    study = optuna.create_study(sampler=sampler)
    opt = Optimizer(space, direction="minimize", seed=0, settings=Settings(**TINY))
    for i in range(6):
        asked = study.ask()
        params = {"x": asked.suggest_float("x", 0, 1), "n": asked.suggest_int("n", 0, 10)}
        trial = opt.ask()
        assert trial.params == params
        ran = {"n": params["n"] + 0.4} if i % 2 else {}
        if ran:
            asked.set_user_attr(ACTUAL, ran)
            asked.set_user_attr(NOTES, {"by": "Ann"})
        value = (params["x"] - 0.3) ** 2 + params["n"] / 10
        study.tell(asked, value)
        opt.tell(trial, value, params=ran or None)
    assert sampler.recommend(study).params == opt.recommend().params
    assert sampler.recommend(study).mean == opt.recommend().mean
    assert [row.notes for row in sampler.subject(study).rows][1] == {"by": "Ann"}


@pytest.mark.parametrize("given", [{"z": 1.0}, {"x": 1e9}, {"x": "much"}])
def test_what_says_nothing_of_where_a_trial_was_run_is_left_out(
    given: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    sampler = JESSampler(seed=0, search_space={"x": Float(0, 1)}, settings=Settings(**TINY))
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    asked = study.ask()
    asked.suggest_float("x", 0, 1)
    asked.set_user_attr(ACTUAL, given)
    study.tell(asked, 0.5)
    optuna.logging.enable_propagation()
    sampler.recommend(study)
    optuna.logging.disable_propagation()
    assert len(sampler._reader.models) == 1
    assert "leaves out trial 3" in caplog.text
    assert ACTUAL in caplog.text


def test_a_day_on_the_command_line(path: Path) -> None:
    """A sheet of twenty rows, a plate of eight, replicates, a correction and a stop."""
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}[stop]\ngap = 60\nchance = 0.5\n", encoding="utf-8")
    rng = np.random.default_rng(0)
    rows = [SHEET.splitlines()[0]]
    for i in range(20):
        temperature = {3: 42, 7: 85}.get(i, 20 + 5 * int(rng.integers(13)))
        dose, solvent = f"{10 ** rng.uniform(-1, 1):.2g}", ("MeCN", "DMF")[rng.integers(2)]
        value = 80 - abs(temperature - 60) - 8 * (solvent == "DMF")
        rows.append(f"{dose};{temperature};{solvent};{value};{('Ann', 'Bob')[i % 2]}")
    sheet = path.with_name("2025.csv")
    sheet.write_text("\n".join(rows), encoding="utf-8")
    assert shown("import", path, sheet, "--value", "yield")["told"] == 20
    plate = shown("ask", path, "--n", 8)
    assert len({json.dumps(row["params"]) for row in plate}) == 8
    numbers = [row["trial"] for row in plate]
    for number, row in zip(numbers[:5], plate, strict=False):
        value = 80 - abs(row["params"]["temperature"] - 60)
        shown("tell", path, number, value, value + 1)
    near = min(max(plate[5]["params"]["temperature"] + 1.5, 20), 81.5)
    shown("tell", path, numbers[5], 55, "--actual", f"temperature={near}")
    shown("tell", path, numbers[6], "--failed", "--message", "it decomposed", "--notes", "by=Ann")
    shown("tell", path, numbers[7], "--cancel")
    wrong = shown("tell", path, "--params", "catalyst=1", "--params", "temperature=60",
                  "--params", "solvent=MeCN", "--params", "stirrer=300", 791)["trial"]  # fmt: skip
    assert shown("revise", path, wrong, 79.1)["value"] == 79.1
    found = shown("status", path)
    assert found["counts"] == {"told": 27, "failed": 1, "cancelled": 1}
    assert found["best_observed"]["value"] < 100
    answer = shown("recommend", path)
    assert answer["until"] == 0
    assert 45 <= answer["params"]["temperature"] <= 75
