"""Studies by cost: fidelities that a command is given, costs that it says, and budgets."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from optpair import Fidelity, Float, Optimizer, Settings, Space
from optpair.integrations.optuna.attributes import COST
from optpair.studies.config import Budget, StudyError, load
from optpair.studies.objective import parse
from optpair.studies.results import spent
from optpair.studies.storage import open_study
from shell_cases import TINY
from study_cases import run, shown, study_file

LOOKS = """
[space]
x = { float = [0, 1] }
epochs = { fidelity = [1, 81], log = true }
"""
CODE = """
import json, os, pathlib, sys
x, epochs = float(sys.argv[1]), int(sys.argv[2])
folder = pathlib.Path(os.environ["OPTPAIR_CHECKPOINT"])
done = folder / "epochs"
before = int(done.read_text()) if done.exists() else 0
done.write_text(str(max(epochs, before)))
print(json.dumps({"value": (x - 0.3) ** 2 + 1 / epochs, "cost": max(epochs - before, 1)}))
"""


def write(folder: Path, budget: str = "[budget]\ncost = 200\n", space: str = LOOKS) -> Path:
    tiny = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TINY.items())
    command = json.dumps([sys.executable, "code.py", "{x}", "{epochs}"])
    path = folder / "study.toml"
    text = f"[objective]\ncommand = {command}\n{budget}{space}[settings]\ninitial = 4\n{tiny}\n"
    path.write_text(text, encoding="utf-8")
    (folder / "code.py").write_text(CODE, encoding="utf-8")
    return path


def test_a_study_by_fidelity_and_cost(tmp_path: Path) -> None:
    path = write(tmp_path)
    found = shown("run", path)
    rows = shown("export", path)
    costs = [row["cost"] for row in rows]
    assert sum(costs) >= 200 > sum(costs[:-1])  # it ends with the trial that spends the budget
    assert (found["spent"], found["budget"], found["evaluations"]) == (sum(costs), 200.0, None)
    assert found["recommendation"]["params"]["epochs"] == 81
    assert len({row["params"]["epochs"] for row in rows}) > 1
    code, text, _ = run("status", path)
    assert re.search(rf"\n{len(rows)} evaluations, {sum(costs):.4g} of 200 spent; trials:", text)
    code, _, said = run("run", path)
    assert (code, len(shown("export", path))) == (0, len(rows))
    assert "The budget of 200 is spent." in said
    assert run("export", path)[1].startswith("trial,state,value,noise_var,cost,x,epochs,")


def test_a_study_knows_what_the_optimizer_knows(tmp_path: Path) -> None:
    """The same looks and costs told to both: the same answer, at the target."""
    path = write(tmp_path)
    space = Space({"x": Float(0, 1), "epochs": Fidelity(1, 81, log=True)})
    own = Optimizer(space, seed=0, settings=Settings(initial=4, **TINY))
    for i in range(6):
        params = {"x": (0.1 + 0.37 * i) % 1, "epochs": (1, 9, 81)[i % 3]}
        value, cost = (params["x"] - 0.3) ** 2 + 1 / params["epochs"], 2.0 * params["epochs"]
        words = ["--params", json.dumps(params), value, "--cost", cost]
        assert shown("tell", path, *words)["cost"] == cost
        own.tell(params, value, cost=cost)
    found, best = shown("recommend", path), own.recommend()
    assert (found["params"], found["mean"]) == (best.params, best.mean)
    assert shown("status", path)["spent"] == own.spent


def test_looks_cost_in_proportion_until_somebody_tells(tmp_path: Path) -> None:
    file = load(write(tmp_path, "[budget]\ncost = 3\n"))
    space = Space({"x": Float(0, 1), "epochs": Fidelity(1, 81, log=True)})
    for epochs in (1, 9, 27, 81):
        params = {"x": 0.5, "epochs": epochs}
        assert file.space.relative_cost(params) == pytest.approx(space.relative_cost(params))
        shown("tell", file.path, "--params", json.dumps(params), 1.0)
    trials = open_study(file).trials
    assert spent(trials, file) == pytest.approx(1 + 27 / 81 + 9 / 81 + 1 / 81)
    assert COST not in trials[0].user_attrs


def test_seconds_are_costs_where_the_budget_is_of_seconds(tmp_path: Path) -> None:
    (tmp_path / "slow_one.py").write_text(
        "import time\ndef f(p):\n    time.sleep(0.1)\n    return p['x']\n", encoding="utf-8"
    )
    text = "[study]\nsampler = 'lattice'\n[objective]\npython = 'slow_one:f'\n"
    path = tmp_path / "timed.toml"
    text += "[budget]\nseconds = 0.35\n[space]\nx = { float = [0, 1] }\n"
    path.write_text(text, encoding="utf-8")
    found = shown("run", path)
    costs = [row["cost"] for row in shown("export", path)]
    assert all(0.1 <= cost < 5 for cost in costs)
    assert 0.35 <= found["spent"] == sum(costs)
    assert len(costs) <= 4
    assert f"{sum(costs):.4g} of 0.35 seconds spent" in run("status", path)[1]


def test_without_a_fidelity_there_is_no_folder_to_go_on_from(tmp_path: Path) -> None:
    plain = "[space]\nx = { float = [0, 1] }\nepochs = { int = [1, 9] }\n"
    _, _, said = run("run", write(tmp_path, "", plain))
    assert "KeyError: 'OPTPAIR_CHECKPOINT'" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[budget]", "must have either cost or seconds"),
        ("[budget]\ncost = 1\nseconds = 2", "must have either cost"),
        ("[budget]\ncost = 0", "cost must be a finite number above 0, not 0"),
        ("[budget]\nsecond = 1", "unknown key 'second'; did you mean 'seconds'"),
    ],
)
def test_budgets_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, text, LOOKS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fidelity = [1, 81], target = 99", "Fidelity's target must be from 1 to 81"),
        ("fidelity = [81, 1]", "low must be below high; did you swap them"),
        ("fidelity = [1, 9], guess = 3", "Fidelity takes low, high, log and target, not guess"),
        ("fidelity = [1, 9], step = 2", "a fidelity has neither step nor digits"),
        ("int = [1, 9], target = 9", "target is for fidelity"),
    ],
)
def test_fidelities_that_are_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study_file(tmp_path, space=f"[space]\nx = {{ float = [0, 1] }}\ne = {{ {line} }}\n")
    with pytest.raises(StudyError, match="has nothing to tune"):
        study_file(tmp_path, space="[space]\ne = { fidelity = [1, 9] }\n")


@pytest.mark.parametrize("cost", ["0", "-1", "NaN", "Infinity", '"3"', "true"])
def test_a_value_without_a_cost_that_is_none(tmp_path: Path, cost: str) -> None:
    result = parse(f'{{"value": 1, "cost": {cost}}}', study_file(tmp_path))
    assert (dict(result.values), result.cost) == ({"value": 1.0}, None)
    assert "the cost must be a finite number above 0, not " in result.problem


def test_costs_that_cannot_be_told(tmp_path: Path) -> None:
    path = write(tmp_path)
    shown("ask", path)
    for words in (["1", "--cost", "0"], ["1", "--cost", "nan"], ["--cancel", "--cost", "2"]):
        code, _, said = run("tell", path, 0, *words)
        assert code == 2
        assert "--cost must be a finite number above 0" in said
    assert shown("tell", path, 0, "--failed", "--cost", 2)["cost"] == 2.0


def test_another_target_is_another_space(tmp_path: Path) -> None:
    shown("ask", write(tmp_path))
    code, _, said = run("ask", write(tmp_path, space=LOOKS.replace("true", "true, target = 27")))
    assert code == 1
    assert "epochs is { fidelity = [1, 81], log = true, target = 81 } there and" in said
    assert load(write(tmp_path)).budget == Budget(200.0)
