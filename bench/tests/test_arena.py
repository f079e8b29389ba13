"""The table of `answers`, by hand on made-up rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from optpair_bench.analysis import arena
from optpair_bench.analysis.arena import Place
from optpair_bench.cli import app
from optpair_bench.running.rows import append, read


def row(method: str, task: str, seed: int, regrets: list[float], d: int = 3) -> dict[str, Any]:
    """Regrets after 2, 5, 10 and 20 evaluations per dimension."""
    at = [count * d for count in (2, 5, 10, 20)][: len(regrets)]
    zeros = [0.0] * len(at)
    return {
        "experiment": "answers",
        "task": task,
        "method": method,
        "seed": seed,
        "evaluations": at[-1],
        "dimensions": d,
        "initial": 0,
        "noise_var": 0.0,
        "checkpoints": {
            "evaluations": at,
            "inference": regrets,
            "simple": zeros,
            "observed": zeros,
        },
    }


def whole(method: str, task: str, seed: int, last: float, d: int = 3) -> dict[str, Any]:
    return row(method, task, seed, [1.0, 1.0, 1.0, last], d)


ROWS = [
    # Ours minus TPE: two seeds of −1 and −3 on one task, one of +1 on another: −2 and +1.
    whole("optpair", "opf-levy-3@5%", 0, 1e-2),
    whole("optpair", "opf-levy-3@5%", 1, 1e-4),
    whole("optpair", "opf-alpine-3@5%", 0, 1e-1),
    whole("optuna-tpe-group", "opf-levy-3@5%", 0, 1e-1),
    whole("optuna-tpe-group", "opf-levy-3@5%", 1, 1e-1),
    whole("optuna-tpe-group", "opf-alpine-3@5%", 0, 1e-2),
    # Ours minus GP: −1 and 0 on one task, −1 on the other.
    whole("optuna-gp", "opf-levy-3@5%", 0, 1e-1),
    whole("optuna-gp", "opf-levy-3@5%", 1, 1e-4),
    whole("optuna-gp", "opf-alpine-3@5%", 0, 1.0),
]
CELL = Place(3, 5.0, 20)


def test_differences_are_averaged_by_task() -> None:
    found = arena.cells(ROWS)[CELL]
    tpe = found.versus("optpair", "optuna-tpe-group")
    assert tpe is not None
    # Tasks −2 and +1: mean −0.5, standard deviation 3/√2, over √2 of them.
    assert tpe == pytest.approx((-0.5, 1.5, 2, 3))
    gp = found.versus("optpair", "optuna-gp")
    assert gp == pytest.approx((-0.75, 0.25, 2, 3))
    assert found.versus("optpair", "random") is None
    assert found.mean("optpair") == pytest.approx((-3 - 1) / 2)


def test_the_best_peer_is_the_best_of_the_cell() -> None:
    found = arena.cells(ROWS)[CELL].best_peer("optpair")
    assert found is not None
    assert found[0] == "optuna-tpe-group"
    # One of three tasks of a better peer is not enough, nor is a variant of ours a peer.
    more = [
        *(whole(method, "opf-gulf-3@5%", 0, 1e-2) for method in ("optpair", "optuna-tpe-group")),
        whole("botorch-lognei", "opf-levy-3@5%", 0, 1e-5),
        *(whole("optpair:exploit=0", r["task"], r["seed"], 1e-5) for r in ROWS[:3]),
    ]
    again = arena.cells(ROWS + more)[CELL].best_peer("optpair")
    assert again is not None
    assert again[0] == "optuna-tpe-group"
    third = whole("botorch-lognei", "opf-alpine-3@5%", 0, 1e-5)
    better = arena.cells([*ROWS, *more, third])[CELL].best_peer("optpair")
    assert better is not None
    assert better[0] == "botorch-lognei"


def test_regrets_are_floored_at_a_millionth_of_the_spread() -> None:
    found = arena.cells([whole("random", "opf-levy-3@0%", i, r) for i, r in enumerate((-1, 1e-9))])
    assert list(found[Place(3, 0.0, 20)].values["random"].values()) == [-6.0, -6.0]


def test_classes_and_budgets() -> None:
    rows = [
        row("random", "uq-borehole-8@20%", 0, [1.0, 0.1, 0.01], d=8),
        row("random", "opf-levy-50@0%", 0, [1.0, 0.1], d=50),
    ]
    found = arena.cells(rows)
    assert list(found) == [
        *(Place(10, 20.0, budget) for budget in (2, 5, 10)),
        *(Place(50, 0.0, budget) for budget in (2, 5)),
    ]
    assert found[Place(10, 20.0, 10)].mean("random") == pytest.approx(-2)
    assert Place(10, 20.0, 10).name == "6–10"
    assert np.isnan(found[Place(50, 0.0, 5)].versus("random", "random").error)  # type: ignore[union-attr]


def test_the_table(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    append(path, *ROWS)
    result = CliRunner().invoke(app, ["arena", str(path), "--budgets", "20"])
    assert result.exit_code == 0, result.output
    line = (
        "| 3 | 5 % | 20·D | 2 (3) | −2.00 | Optuna TPE (multivariate) | −0.50 ± 1.50 "
        "| −0.75 ± 0.25 | −0.50 ± 1.50 |"
    )
    assert line in result.output
    assert "floored at 1e-06 of the spread" in result.output
    assert "- 20·D: −0.50 to the best peer of each cell, averaged over cells" in result.output
    assert "at or below it in 1 of 1." in result.output
    only = CliRunner().invoke(app, ["arena", str(path), "--methods", "optuna-gp"])
    assert "TPE" not in only.output


@pytest.mark.parametrize(
    ("rows", "arguments", "message"),
    [
        (ROWS, ("--to", "jes"), "no row is of 'jes'"),
        ([ROWS[0] | {"experiment": "gp"}], (), "must be of answers, answers-tuning, not of gp"),
        ([], (), "there are no rows"),
    ],
)
def test_rows_that_say_nothing(
    tmp_path: Path, rows: list[Any], arguments: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "answers.jsonl"
    append(path, *rows)
    result = CliRunner().invoke(app, ["arena", str(path), *arguments])
    assert result.exit_code == 1
    assert message in result.output


def test_what_pages_quote() -> None:
    root = Path(__file__).parents[2]
    text = arena.markdown(list(read(root / "bench/results/answers.jsonl").values()), "optpair")
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    page = (root / "docs/answers.md").read_text(encoding="utf-8")
    quoted = []
    for line in (line for line in text.splitlines() if line.startswith("- ")):
        budget, difference, level, cells = re.fullmatch(  # type: ignore[union-attr]
            r"- (\d+·D): (\S+ ± \S+) to the best peer .* in (\d+) of (\d+)\.", line
        ).groups()
        assert f"| {budget} | {difference} | in {level} of {cells}" in page
        quoted.append(difference)
    assert "{}, {} and {} after 5, 10 and 20 trials per parameter".format(*quoted[1:]) in readme
