"""Looks, costs, contexts and earlier studies that cannot be: refused everywhere, nothing lost."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from optpair import Context, Fidelity, Float, Optimizer, Settings, Space, minimize
from optpair.integrations.optuna import COST, JESSampler
from shell_cases import TINY
from study_cases import run, shown

optuna.logging.set_verbosity(optuna.logging.ERROR)
QUICK = Settings(**TINY)
SPACE = Space({"x": Float(0, 1), "epochs": Fidelity(1, 81, log=True)})
MESH = Space({"x": Float(0, 1), "h": Fidelity(0.01, 0.1, target=0.01)})
UNRELATED = [{"z": 1.0, "value": 2.0}, {"z": 2.0, "value": 1.0}]
BAD_COSTS = (0, -1, math.nan, math.inf, "3", True)
FILE = """
[study]
evaluations = 3
sampler = "random"
{study}
[objective]
python = "refused:f"
[space]
x = {{ float = [0, 1] }}
epochs = {{ fidelity = [1, 81], log = true }}
"""


def write(folder: Path, code: str = "def f(p):\n    return p['x']\n", study: str = "") -> Path:
    (folder / "refused.py").write_text(code, encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(FILE.format(study=study), encoding="utf-8")
    return path


@contextmanager
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Let what Optuna warns of be seen."""
    logger, before = logging.getLogger("optuna"), optuna.logging.get_verbosity()
    logger.addHandler(caplog.handler)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
        logger.removeHandler(caplog.handler)


def refuse(opt: Optimizer, act: Callable[[], Any], said: str) -> None:
    """An error that says so, and an optimiser that is as it was."""
    before = opt._to_json()
    with pytest.raises((TypeError, ValueError), match=said):
        act()
    assert opt._to_json() == before


# --- fidelities beyond their range ----------------------------------------------------------------


@pytest.mark.parametrize("epochs", [0, 82, 2.5, math.nan, math.inf, "9", None, True])
def test_fidelities_beyond_their_range(epochs: Any) -> None:
    opt = Optimizer(SPACE, seed=0, settings=QUICK)
    trial = opt.ask()
    own = {"x": 0.5, "epochs": epochs}
    refuse(opt, lambda: opt.tell(trial, 1.0, at={"epochs": epochs}), "epochs'? must be")
    refuse(opt, lambda: opt.tell(own, 1.0), "epochs must be")
    opt.tell(trial, 1.0, at={"epochs": 9})
    refuse(opt, lambda: opt.revise(trial, 2.0, at={"epochs": epochs}), "epochs'? must be")
    refuse(opt, lambda: opt.predict([own]), "epochs must be")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Fidelity(math.nan, 3), "Fidelity's low must be a finite number, not nan"),
        (lambda: Fidelity(1, math.inf), "Fidelity's high must be a finite number, not inf"),
        (lambda: Fidelity(1, 81, target=100), "Fidelity's target must be from 1 to 81"),
        (lambda: Fidelity(1, 81, target=math.nan), "Fidelity's target must be from 1 to 81"),
        (lambda: Context(["A", "A"]), "Context's choices must differ: 'A' is given twice"),
        (lambda: Context(3), "Context's choices must be a list or tuple, like .*, not 3"),
        (lambda: Context(math.nan, 3), "Context's low must be a finite number, not nan"),
    ],
)
def test_errors_name_the_parameter_as_it_was_written(make: Callable[[], Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        make()


@pytest.mark.parametrize("at", [{}, {"epoch": 9}, {"x": 0.5}, {"epochs": 9, "x": 0.5}, 9, None])
def test_looks_that_name_no_fidelity(at: Any) -> None:
    opt = Optimizer(SPACE, seed=0, settings=QUICK)
    trial = opt.ask()
    if at is None:  # as it was asked for
        opt.tell(trial, 1.0, at=at)
        assert opt.trials[0].looks == ()
    else:
        refuse(opt, lambda: opt.tell(trial, 1.0, at=at), "at must|at has|at is")


def test_a_fidelity_beyond_its_range_in_a_study(tmp_path: Path) -> None:
    path = write(tmp_path)
    for epochs in ("99", "0", "2.5", "nan"):
        words = ["--params", "x=0.5", "--params", f"epochs={epochs}", 1.0]
        code, _, said = run("tell", path, *words)
        assert code == 1
        assert f"--params epochs must be an int from 1 to 81, not '{epochs}'" in said
    shown("tell", path, "--params", "x=0.5", "--params", "epochs=9", 1.0)
    assert len(shown("export", path)) == 1


def test_a_fidelity_beyond_its_range_in_optuna(caplog: pytest.LogCaptureFixture) -> None:
    """Optuna runs what was enqueued; the model leaves it out, and says so."""
    study = optuna.create_study(sampler=JESSampler(seed=0, search_space=SPACE, settings=QUICK))
    study.enqueue_trial({"x": 0.5, "epochs": 99})

    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0, 1) + trial.suggest_int("epochs", 1, 81, log=True)

    with logged(caplog), pytest.warns(UserWarning, match="out of range"):
        study.optimize(objective, n_trials=2)
    assert "leaves out trial 0" in caplog.text
    model = study.sampler._reader.read(study, study.sampler._options.distributions)
    assert [trial.id for trial in model.told()] == [1]


# --- looks out of order ---------------------------------------------------------------------------


def test_looks_out_of_order() -> None:
    opt = Optimizer(SPACE, seed=0, settings=QUICK)
    trial = opt.ask()
    opt.tell(trial, 3.0, at={"epochs": 3}, cost=3.0)
    opt.tell(trial, 2.0, at={"epochs": 9}, cost=6.0)
    for epochs in (1, 3, 9):
        said = f"looked at with epochs=9, and epochs={epochs} is not beyond that: looks at one"
        refuse(opt, lambda e=epochs: opt.tell(trial, 1.0, at={"epochs": e}), said)
    refuse(opt, lambda: opt.revise(trial, 1.0, at={"epochs": 5}), "has no look at")
    refuse(opt, lambda: opt.tell(trial, failed=True, at={"epochs": 27}), "a look that failed")
    opt.tell(trial, 1.0, at={"epochs": 81}, cost=72.0)
    assert opt.spent == 81.0


def test_looks_get_closer_to_a_low_target() -> None:
    """A mesh gets finer: down is closer."""
    opt = Optimizer(MESH, seed=0, settings=QUICK)
    trial = opt.ask()
    for h, value in ((0.1, 3.0), (0.05, 2.0), (0.01, 1.0)):
        opt.tell(trial, value, at={"h": h})
        refuse(opt, lambda: opt.tell(trial, 1.0, at={"h": 0.1}), "is not beyond that")
    assert [look.at["h"] for look in opt.trials[0].looks] == [0.1, 0.05]
    X = opt._history.data().X
    assert np.all(np.diff(X[:, 1]) < 0)
    assert X[-1, 1] == 0.0


# --- costs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", BAD_COSTS)
def test_costs_that_are_none(cost: Any) -> None:
    opt = Optimizer(SPACE, seed=0, settings=QUICK)
    trial, said = opt.ask(), "cost must be (a finite number above 0|one real number)"
    refuse(opt, lambda: opt.tell(trial, 1.0, cost=cost), said)
    refuse(opt, lambda: opt.tell(trial, 1.0, at={"epochs": 3}, cost=cost), said)
    refuse(opt, lambda: opt.tell(trial, failed=True, cost=cost), said)
    opt.tell(trial, 1.0, cost=2.0)
    refuse(opt, lambda: opt.revise(trial, 1.0, cost=cost), said)
    for name in ("budget_cost", "budget_seconds"):
        if cost is not math.inf or name == "budget_cost":
            with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
                minimize(lambda p: 1.0, SPACE, progress=False, **{name: cost})


def test_a_bad_cost_shows_the_value_that_it_goes_with() -> None:
    with pytest.raises(ValueError, match="cost must be a finite number above 0, not 0") as error:
        minimize(lambda p: 0.125, SPACE, 2, cost=lambda p: 0, progress=False)
    assert "which gave 0.125; this trial was cancelled" in error.value.__notes__[0]


@pytest.mark.parametrize("cost", ["0", "-1", "float('nan')", "'3'", "True"])
def test_a_value_counts_though_its_cost_does_not(tmp_path: Path, cost: str) -> None:
    path = write(tmp_path, f"def f(p):\n    return {{'value': p['x'], 'cost': {cost}}}\n")
    code, _, said = run("run", path)
    assert code == 0
    assert "the cost must be a finite number above 0, not" in said
    rows = shown("export", path)
    assert [row["value"] for row in rows] == [row["params"]["x"] for row in rows]
    assert {row["cost"] for row in rows} == {None}
    assert all("the value counts without it" in row["output"] for row in rows)


def test_costs_that_optuna_cannot_use(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=JESSampler(seed=0, search_space=SPACE, settings=QUICK))

    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr(COST, (0, -1, "3", 2.0)[trial.number])
        return trial.suggest_float("x", 0, 1) + trial.suggest_int("epochs", 1, 81, log=True)

    with logged(caplog):
        study.optimize(objective, n_trials=4)
        model = study.sampler._reader.read(study, study.sampler._options.distributions)
    assert caplog.text.count("Trial 0's optpair:cost is ignored") == 1
    assert caplog.text.count("is ignored") == 1
    data = model.data(study)
    assert data.told == 4  # no value is lost
    assert np.array_equal(data.cost, [np.nan] * 3 + [2.0], equal_nan=True)


# --- contexts and earlier studies -----------------------------------------------------------------


def test_a_context_that_is_missing() -> None:
    space = Space({"x": Float(0, 1), "site": Context(["A", "B"])})
    opt = Optimizer(space, seed=0, settings=QUICK)
    refuse(opt, opt.ask, "context is missing: 'site' must be given")
    refuse(opt, lambda: opt.ask(3), "context is missing")
    refuse(opt, lambda: opt.ask(context={}), "context is missing 'site'")
    refuse(opt, lambda: opt.ask(context={"site": "C"}), "must be one of")
    opt.tell(opt.ask(context={"site": "A"}), 1.0)
    for ask in (opt.recommend, opt.belief):
        refuse(opt, ask, "context is missing")
    ran = []
    with pytest.raises(ValueError, match="context is missing"):
        minimize(ran.append, space, 3, progress=False)
    assert ran == []


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: None])
def test_an_earlier_file_that_cannot_be_read(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    """It is refused before anything is asked for, and before a sampler has a study."""
    path = tmp_path / "may.json"
    make(path)
    said = r"earlier\[1\]: .*may.json cannot be read: (No such file|Is a directory)"
    old = [{"x": 0.1, "epochs": 9, "value": 1.0}]
    with pytest.raises(ValueError, match=said):
        Optimizer(SPACE, earlier=[old, path])
    with pytest.raises(ValueError, match=said):
        JESSampler(earlier=[old, str(path)])


def test_earlier_studies_with_nothing_in_common(tmp_path: Path) -> None:
    said = "shares no parameter with the space, which has 'x', 'epochs'; rename its columns, or"
    with pytest.raises(ValueError, match=said):
        Optimizer(SPACE, earlier=[UNRELATED])
    ran = []
    with pytest.raises(ValueError, match=said):
        minimize(ran.append, SPACE, 3, earlier=[UNRELATED], progress=False)
    assert ran == []
    study = optuna.create_study(sampler=JESSampler(search_space=SPACE, earlier=[UNRELATED]))
    with pytest.raises(ValueError, match=said):
        study.ask().suggest_float("x", 0, 1)
    (tmp_path / "old.csv").write_text("z,value\n1,2\n2,1\n", encoding="utf-8")
    path = write(tmp_path, study='earlier = ["old.csv"]')
    for command in ("ask", "run"):
        code, _, error = run(command, path)
        assert code == 1
        assert error.startswith("Error: study.toml: earlier[0]: old shares no parameter with")
    assert not (tmp_path / "study.db").exists()  # nothing was asked for
    write(tmp_path)
    shown("tell", path, "--params", json.dumps({"x": 0.5, "epochs": 9}), 1.0)
    write(tmp_path, study='earlier = ["old.csv"]')
    assert run("recommend", path)[0] == 1
