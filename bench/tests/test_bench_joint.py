"""Tasks, methods and tables of several outcomes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import qmc
from typer.testing import CliRunner

from optpair_bench.analysis import outcomes
from optpair_bench.cli import app
from optpair_bench.methods import joint as methods
from optpair_bench.methods.catalogue import setup
from optpair_bench.running import experiments
from optpair_bench.running.rows import append
from optpair_bench.running.runs import Run, run
from optpair_bench.tasks import check, joint


@pytest.mark.parametrize("name", joint.CONSTRAINED)
def test_the_best_is_reached_and_not_beaten(name: str) -> None:
    """SLSQP from the best of many points, scaled; beam and reducer have hardly a feasible one."""
    task = joint.make(name)
    function, scale = task.function, task.function.spread
    starts = qmc.Sobol(task.dimensions, rng=1).random(2**11)
    Y = task.value(starts) / scale
    worth = Y[:, 0] + 10 * np.minimum(Y[:, 1:], 0).sum(1)
    top = -np.inf
    for x in starts[np.argsort(-worth)[:12]]:
        end = minimize(
            lambda u: -task.value(u[None])[0, 0] / scale[0],
            x,
            constraints={"type": "ineq", "fun": lambda u: task.value(u[None])[0, 1:] / scale[1:]},
            bounds=[(0, 1)] * task.dimensions,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 300},
        )
        y = task.value(np.clip(end.x, 0, 1)[None])[0]
        if np.all(y[1:] >= -1e-7 * scale[1:]):
            top = max(top, y[0])
    assert abs(top - function.best) < 1e-4 * scale[0]
    assert (top - function.best) / scale[0] < 1e-5  # by the slack of SLSQP at most


def test_fronts_that_are_known_lose_what_is_between_their_points() -> None:
    """A staircase of n steps of an arc loses about half a step of area: less with more."""
    lost = []
    for count in (50, 500):
        t = np.linspace(0, 1, count)
        arc = np.column_stack([t, *[np.full(count, 0.5)] * 3])
        lost.append(joint.make("dtlz2").lost(arc))
        ramp = np.column_stack([t, *[np.zeros(count)] * 3])
        assert joint.make("zdt1").lost(ramp) < 2 / count
        assert joint.make("zdt2").lost(ramp) < 2 / count
    assert lost[1] < 0.15 * lost[0] < 0.01


def test_what_is_not_feasible_counts_for_nothing() -> None:
    task = joint.make("gramacy")
    good, bad = np.array([[0.1954, 0.4047]]), np.array([[0.0, 0.0]])
    assert task.feasible(task.value(np.concatenate([good, bad]))).tolist() == [True, False]
    assert task.lost(good) < 2e-3
    assert task.lost(np.concatenate([bad, good])) == task.lost(good)
    assert task.lost(bad) > 2  # as the worst point: about −2 of −0.6, in units of 0.4
    front = joint.make("c2-dtlz2")
    assert front.lost(np.full((1, 4), 0.25)) == 1.0


def test_noise_is_that_of_each_outcome() -> None:
    task = joint.make("g24@5%", seed=3)
    x = np.full(2, 0.3)
    draws = np.array([task.observe(x, k) for k in range(400)])
    ratio = draws.std(0) / (0.05 * task.function.spread)
    assert np.all(np.abs(ratio - 1) < 0.15)  # s.e. 0.035
    assert np.array_equal(task.observe(x, 7), draws[7])


@pytest.mark.parametrize("name", ["gramacy@5", "gramacy@-5%", "nobody"])
def test_tasks_that_are_not(name: str) -> None:
    with pytest.raises(ValueError, match="gramacy"):
        joint.make(name)
    with pytest.raises(ValueError, match=r"5|task must be"):
        check(name)


@pytest.mark.parametrize(
    ("experiment", "task"), [("constrained", "gramacy"), ("fronts", "c2-dtlz2")]
)
def test_a_run_leaves_a_row(experiment: str, task: str) -> None:
    for method in ("optpair:sets=2,pairs=2", "random"):
        row = run(Run(experiment, task, method, 1000, 6))
        points = row["checkpoints"]
        dimensions = row["dimensions"]
        assert points["evaluations"] == [count for count in (2 * dimensions,) if count < 6] + [6]
        assert all(0 <= share <= 1 for share in points["feasible"])
        assert all(lost >= 0 for lost in points["inference"] + points["simple"])


def test_answers_of_those_who_predict_nothing_are_observed() -> None:
    task = joint.make("branin-currin")
    chosen = setup("random", task, "marginal", {}, own_start=True)
    search = methods.make(chosen, task)
    for x in np.random.default_rng(0).random((20, 2)):
        search.tell(x, task.value(x[None])[0])
    front = task.value(search.recommend())
    assert np.array_equal(np.argsort(front[:, 0]), np.argsort(-front[:, 1]))


def row(method: str, task: str, lost: float, feasible: float) -> dict[str, object]:
    zeros = {"settings": None, "model": None, "recommends": "", "versions": {}, "noise_var": 0.0}
    return zeros | {
        "experiment": "constrained",
        "task": task,
        "method": method,
        "seed": 0,
        "evaluations": 40,
        "dimensions": 2,
        "initial": 0,
        "checkpoints": {
            "evaluations": [10, 20, 40],
            "inference": [1.0, 1.0, lost],
            "simple": [1.0, 1.0, lost],
            "feasible": [1.0, 1.0, feasible],
        },
        "ask_seconds": {"median": 0.5, "p95": 1.0, "total": 9.0},
    }


def test_the_table_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours ends at −2 and −4, the other at −1 and −1: +1 and +3, that is +2 ± 1."""
    rows = [
        row("optpair", "gramacy", 1e-2, 1.0),
        row("optpair", "g24", 1e-4, 1.0),
        row("optuna-gp", "gramacy", 1e-1, 1.0),
        row("optuna-gp", "g24", 1e-1, 0.0),
    ]
    text = outcomes.markdown(rows, experiments.get("constrained"))
    assert "| 20·D | optpair (default) | 2 (2) | −3.00 |  | 100% | 0.5 |" in text
    assert "| 2 (2) | −1.00 | +2.00 ± 1.00 | 50% | 0.5 |" in text
    monkeypatch.chdir(tmp_path)
    append(Path("rows.jsonl"), *rows)
    shown = CliRunner().invoke(app, ["table", "constrained", "--rows", "rows.jsonl"])
    assert text in shown.output
    empty = CliRunner().invoke(app, ["table", "fronts"])
    assert empty.exit_code == 1
    assert "optpair bench run fronts" in empty.output


@pytest.mark.parametrize("name", ["constrained", "fronts"])
def test_the_page_shows_what_the_command_prints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    printed = CliRunner().invoke(app, ["table", name]).output
    table = [line for line in printed.splitlines() if line.startswith("|")]
    assert len(table) > 8
    assert "\n".join(table) in Path("docs/outcomes.md").read_text(encoding="utf-8")
