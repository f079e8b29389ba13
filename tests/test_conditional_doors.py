"""Conditional parameters through every door: files, tables, pages, fronts, plates."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from optpair import Categorical, Float, Int, Optimizer, Space

SPACE = Space(
    {
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "kernel": Categorical(["linear", "rbf", "poly"]),
        "gamma": Float(1e-3, 10, log=True, when={"kernel": ["rbf", "poly"]}),
        "x": Float(0, 1),
    }
)


def loss(p: dict[str, Any]) -> float:
    miss = (p["x"] - 0.3) ** 2 + {"linear": 0.3, "rbf": 0.05, "poly": 0.2}[p["kernel"]]
    return miss + (math.log10(p.get("gamma", 0.1)) + 1) ** 2 / 10


@pytest.fixture(scope="module")
def searched() -> Optimizer:
    opt = Optimizer(SPACE, direction="minimize", seed=0)
    for trial in opt.ask(4):
        opt.tell(trial, loss(dict(trial.params)))
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, loss(dict(trial.params)))
    return opt


def test_a_plate_is_legal_and_has_several_branches(searched: Optimizer, tmp_path: Path) -> None:
    searched.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    plate = again.ask(4)
    assert all(SPACE.check(trial.params) == trial.params for trial in plate)
    assert len({tuple(trial.params.items()) for trial in plate}) == 4


def test_a_saved_search_continues_exactly(searched: Optimizer, tmp_path: Path) -> None:
    searched.save(tmp_path / "run.json")
    one, other = (Optimizer.load(tmp_path / "run.json") for _ in range(2))
    assert one.space == SPACE
    assert one.ask().params == other.ask().params
    assert one.recommend().params == other.recommend().params


def test_tables_have_empty_cells(searched: Optimizer) -> None:
    rows = searched.to_rows()
    assert any(row["degree"] is None for row in rows)
    again = Optimizer(SPACE, direction="minimize", seed=0)
    again.tell_many(rows)
    assert [t.params for t in again.trials] == [t.params for t in searched.trials]
    with pytest.raises(ValueError, match="inactive 'degree'"):
        again.tell_many([{"kernel": "linear", "x": 0.1, "degree": 3, "gamma": None, "value": 1.0}])


def test_a_report_shows_what_is_active(searched: Optimizer, tmp_path: Path) -> None:
    searched.report(tmp_path / "run.html")
    best = searched.recommend().params
    assert SPACE.check(best) == best
    page = (tmp_path / "run.html").read_text()
    for name in SPACE:
        assert (f"The predicted value along {name}" in page) == (name in best)


def test_fronts_and_their_pages(tmp_path: Path) -> None:
    opt = Optimizer(SPACE, outcomes={"a": "minimize", "b": "minimize"}, seed=0)
    for _ in range(6):
        trial = opt.ask()
        params = dict(trial.params)
        opt.tell(trial, {"a": loss(params), "b": params["x"]})
    front = opt.recommend()
    assert all(SPACE.check(point.params) == point.params for point in front.points)
    assert "kernel" in str(front)
    opt.report(tmp_path / "front.html")


def test_a_function_of_limits_sees_what_is_active() -> None:
    limited = Space(SPACE, lambda p: p.get("degree", 2) != 3)
    opt = Optimizer(limited, seed=0)
    for trial in opt.ask(12):
        assert limited.allows(trial.params)
