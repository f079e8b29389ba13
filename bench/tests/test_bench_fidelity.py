"""What cheaper looks save: tasks, searches that are kept, and how costs are counted."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from optpair_bench.analysis import fidelity
from optpair_bench.analysis.fidelity import METHODS, Spent
from optpair_bench.tasks.looks import LOOK_TASKS


@pytest.mark.parametrize("name", LOOK_TASKS)
def test_nothing_beats_the_optimum(name: str) -> None:
    task = LOOK_TASKS[name]
    points = np.random.default_rng(1).uniform(size=(2000, task.dimensions))
    values = [task.function(x, 1.0) for x in points]
    assert task.best <= min(values) + 1e-9
    assert np.ptp(values) > 20 * task.noise
    cheap = [task.function(x, 0.0) for x in points]
    assert abs(np.corrcoef(values, cheap)[0, 1]) > 0.5 or name == "misled"


def test_known_optima() -> None:
    assert LOOK_TASKS["hartmann6"].best == pytest.approx(-3.32237, abs=1e-4)
    assert LOOK_TASKS["currin"].best == pytest.approx(-13.7987, abs=1e-3)


@pytest.mark.parametrize("method", ["full", "optpair", "continued", "tpe-hyperband"])
def test_a_search_spends_what_it_has(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "PER_DIMENSION", 2)
    row = fidelity.search("currin", method, 0, parts=4)
    assert len(row.cost) == len(row.regret) == 4
    assert row.cost == sorted(row.cost)
    assert 4 <= row.cost[-1] < 5.01
    assert min(row.regret) > -1e-9
    assert row.looks == 4 if method == "full" else row.looks > 4


def test_searches_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "PER_DIMENSION", 1)
    out = tmp_path / "rows.jsonl"
    rows = fidelity.measure(1, out, ["tpe-hyperband"], ["misled"])
    assert fidelity.read(out) == rows
    monkeypatch.setattr(fidelity, "search", None)  # nothing is done again
    assert fidelity.measure(1, out, ["tpe-hyperband"], ["misled"]) == rows


def test_the_cost_to_reach_the_end_of_the_full_search() -> None:
    def row(method: str, regret: list[float]) -> Spent:
        return Spent("currin", method, 0, [1.0, 2.0, 3.0, 4.0], regret, 4)

    rows = [row("full", [1.0, 0.1, 0.1, 0.01]), row("optpair", [0.1, 0.01, 1e-3, 1e-4])]
    rows.append(row("mf-kg", [1.0, 1.0, 1.0, 1.0]))
    assert fidelity.cost_to_reach(rows, "currin", "full") == pytest.approx(1.0)
    assert fidelity.cost_to_reach(rows, "currin", "optpair") == pytest.approx(0.5)
    assert math.isinf(fidelity.cost_to_reach(rows, "currin", "mf-kg"))
    assert fidelity.cost_to_reach(rows, "currin", "optpair", "optpair") == pytest.approx(1.0)
    assert fidelity.reached(rows)[2] == "| optpair, what full ends at |  | 0.50 |  |  |  |"
    shown = fidelity.table(rows)
    assert "0.50" in shown
    assert "not reached" in shown
    line = next(line for line in fidelity.markdown(rows) if line.startswith("| currin"))
    assert (
        line == "| currin | 2 | 0.00 / −1.00 / −2.00 | −1.00 / −2.00 / −4.00 | 0.00 / 0.00 / 0.00 |"
    )
    assert set(METHODS) >= {"full", "optpair", "tpe-hyperband"}


def test_the_page_quotes_the_rows() -> None:
    root = Path(__file__).parents[2]
    rows = fidelity.read(root / "bench" / "results" / "fidelity.jsonl")
    page = (root / "docs" / "cheaper-looks.md").read_text(encoding="utf-8")
    for line in [*fidelity.markdown(rows), *fidelity.reached(rows)]:
        assert line in page


def test_what_the_page_says_of_the_rows() -> None:
    root = Path(__file__).parents[2]
    rows = fidelity.read(root / "bench" / "results" / "fidelity.jsonl")
    page = (root / "docs" / "cheaper-looks.md").read_text(encoding="utf-8").replace("\n", " ")
    for other in ("full", "tpe-hyperband"):
        shares = [fidelity.cost_to_reach(rows, task, "optpair", other) for task in LOOK_TASKS]
        assert f"at {np.mean(shares):.2f} of the cost what" in page
    local = math.log10(0.12) - 0.05  # the second-best optimum lacks so much
    for method in ("full", "optpair"):
        ends = fidelity.logs(rows, "hartmann6", method)[:, -1]
        assert (len(ends), int(np.sum(ends > local))) == (8, 5)
