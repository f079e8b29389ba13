"""The summary over all tasks, on rows made by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from optpair_bench.analysis import overall
from optpair_bench.cli import app
from optpair_bench.running.rows import Row, append


def row(task: str, method: str, seed: int, *logs: float, d: int = 2, experiment: str = "gp") -> Row:
    """A run with a checkpoint at 0, 10·D, 20·D, …: log10 of its regrets."""
    points = [10 * d * i for i in range(len(logs))]
    regrets = [10.0**log for log in logs]
    return {
        "experiment": experiment,
        "task": task,
        "method": method,
        "seed": seed,
        "evaluations": points[-1],
        "dimensions": d,
        "initial": d + 1,
        "noise_var": 1e-6,
        "checkpoints": {
            "evaluations": points,
            "inference": regrets,
            "simple": regrets,
            "observed": [-r for r in regrets],
        },
        "ask_seconds": {"median": 0.1 * d},
        "seconds": 1.0,
    }


def runs(task: str, method: str, *ends: float, d: int = 2) -> list[Row]:
    return [row(task, method, seed, 0.0, 0.0, end, d=d) for seed, end in enumerate(ends)]


# At the end: on a, mes − jes is −1, −2, −3; on b (4-D) +4, +6; pes only ran on a.
ROWS = [
    *runs("a", "jes", -1, -1, -1),
    *runs("a", "mes", -2, -3, -4),
    *runs("a", "pes", -1, -2, -3),
    *runs("b", "jes", -5, -5, d=4),
    *runs("b", "mes", -1, 1, d=4),
]


def test_differences_by_hand() -> None:
    found = overall.blocks(ROWS, "jes", 20)
    lines = {line.method: line for line in overall.standings(found, "jes")}
    assert list(lines) == ["pes", "jes", "mes"]  # the best first
    mes = lines["mes"]
    assert mes.difference is not None
    # Tasks weigh equally: (−2 + 5) / 2, though a has more seeds.
    assert mes.difference.mean == pytest.approx(1.5)
    # Within a: 1/√3; within b: 1. Together √(1/3 + 1) / 2.
    assert mes.difference.over_seeds == pytest.approx(math.sqrt(4 / 3) / 2)
    assert mes.difference.over_tasks == pytest.approx(3.5)
    assert (mes.tasks, mes.runs, mes.best, lines["jes"].best) == (2, 5, 1, 1)
    pes = lines["pes"]
    assert pes.difference is not None
    assert (pes.tasks, pes.difference.mean) == (1, pytest.approx(-1))
    assert math.isnan(pes.difference.over_tasks)
    assert lines["jes"].difference is None
    assert mes.seconds == pytest.approx(0.3)


def ranks(rows: list[Row], *names: str) -> dict[str, float]:
    found = [block.among(names) for block in overall.blocks(rows, "jes", 20)]
    lines = overall.standings(found, "jes")
    return {line.method: line.rank.mean for line in lines if line.rank is not None}


def test_tasks_stand_in_the_order_of_the_experiments() -> None:
    tasks = [("gp", "gp12"), ("mlp", "hpo-car"), ("gp", "gp2"), ("gp", "nobody's")]
    rows = [row(task, "jes", 0, 0.0, -1.0, experiment=name) for name, task in tasks]
    found = [(block.experiment, block.task) for block in overall.blocks(rows, "jes", 10)]
    assert found == [tasks[2], tasks[0], tasks[3], tasks[1]]


def test_ranks_are_over_tasks_on_which_all_methods_ran() -> None:
    assert ranks(ROWS, "jes", "mes") == {"jes": 1.5, "mes": 1.5}  # each wins one of the two tasks
    # All three ran on a alone: JES shares the second place once, and is last twice.
    assert ranks(ROWS, "jes", "mes", "pes") == {
        "mes": 1.0,
        "pes": pytest.approx((2.5 + 2 + 2) / 3),
        "jes": pytest.approx((2.5 + 3 + 3) / 3),
    }
    more = [*ROWS, *runs("c", "jes", -1, -1), *runs("c", "mes", -1, -2)]
    # On c a tie, 1.5 each, and a loss: (2 + 1 + 1.75) / 3.
    assert ranks(more, "jes", "mes")["jes"] == pytest.approx(4.75 / 3)
    apart = [*runs("a", "jes", -1), row("a", "mes", 7, 0.0, -1.0, -2.0)]
    assert ranks(apart, "jes", "mes") == {}


def test_significance_is_counted_by_task() -> None:
    rows = [
        *runs("a", "jes", *(-1.0,) * 8),
        *runs("a", "mes", *(-1.0 + 0.1 * i for i in range(1, 9))),
        *runs("b", "jes", *(-1.0,) * 8),
        *runs("b", "mes", *(-1.0 - 0.1 * i for i in range(1, 9))),
        *runs("c", "jes", *(-1.0,) * 8),
        *runs("c", "mes", *(-1.0 + 0.1 * i * (-1) ** i for i in range(1, 9))),
    ]
    mes = {s.method: s for s in overall.standings(overall.blocks(rows, "jes", 20), "jes")}["mes"]
    assert (mes.better, mes.worse, mes.tested) == (1, 1, 3)


def test_a_method_with_few_seeds_is_not_the_best() -> None:
    rows = [*runs("a", "jes", -1, -1, -1, -1, -1), *runs("a", "mes", -3, -3)]
    (block,) = overall.blocks(rows, "jes", 20)
    assert block.versus("jes")["mes"].mean == pytest.approx(-2)
    assert block.best("jes") is None
    (more,) = overall.blocks([*rows, *runs("a", "ei", -2, -2, -2)], "jes", 20)
    assert (more.best("jes") or [""])[0] == "ei"


def test_the_budget_goes_by_dimension_and_ends_with_the_run() -> None:
    rows = [row("a", "jes", 0, 0, -1, -2, -3), row("b", "jes", 0, 0, -1, d=4)]
    first, second = overall.blocks(rows, "jes", 20)
    assert (first.evaluations, first.values["jes"]) == (40, {0: pytest.approx(-2)})
    assert (second.evaluations, second.wanted) == (40, 80)
    text = overall.markdown(rows, "jes", budgets=[20])
    assert "Runs that end before 20·D count at their end: B." in text
    assert "nearest checkpoint" not in text
    near = overall.markdown(rows[:1], "jes", budgets=[12])
    assert "12·D is read at the nearest checkpoint, 10·D." in near


def test_a_regret_of_nothing_is_floored_by_the_noise() -> None:
    zero = row("a", "jes", 0, 0, -9)  # the noise's standard deviation is 1e-3
    (block,) = overall.blocks([zero], "jes", 10)
    assert block.values["jes"][0] == pytest.approx(-6)


def test_larger_is_better_for_observed_values() -> None:
    (block, _) = overall.blocks(ROWS, "jes", 20, "observed")
    assert block.versus("jes")["mes"].mean < 0  # its regrets are smaller


def test_the_same_task_of_two_experiments_is_two_tasks() -> None:
    other = row("a", "jes", 0, 0.0, -1.0, experiment="gamma")
    assert len(overall.blocks([*ROWS, other], "jes", 20)) == 3


def test_the_table() -> None:
    alone = [{**row, "task": "hartmann3"} for row in ROWS if row["method"] == "jes"]
    lines = overall.markdown([*ROWS, *alone], "jes", budgets=[10, 20]).splitlines()  # no rivals
    assert lines[2].startswith("| JES | 2 (5) | 1.50, 1.50 |  |  | 1 |  | 0.3 |")
    assert "| +0.00 ± 0.00 (± 0.00) | +1.50 ± 0.58 (± 3.50) | 1 | 0 / 0 of 0 |" in lines[3]
    assert "left out: PES." in "\n".join(lines)
    assert any(
        line.startswith("| A (`gp`) | 40 | 3 | −1.00 ± 0.00 | MES (3) | −2.00") for line in lines
    )
    with pytest.raises(ValueError, match="no task has rows of 'optpair'"):
        overall.markdown(ROWS, "optpair")


def test_the_command(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    append(one, *ROWS[:6])
    append(two, *ROWS[6:])
    arguments = ["summary", str(one), str(two), "--to", "jes", "--budgets", "20"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "difference to JES at 20·D" in done.output
    assert "left out: PES." in done.output
