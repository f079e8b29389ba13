"""The coverage of intervals: what is measured, and how it is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optpair_bench.analysis import coverage
from optpair_bench.analysis.coverage import KINDS, Held


@pytest.mark.parametrize("name", KINDS)
def test_functions_are_lowest_where_they_say(name: str) -> None:
    kind, rng = KINDS[name], np.random.default_rng(0)
    z = rng.uniform(0 if kind.corner else -0.5, 1 if kind.corner else 0.5, (500, kind.dimensions))
    values = [kind.function(row) for row in z]
    assert kind.function(np.zeros(kind.dimensions)) <= min(values)
    assert np.ptp(values) > 0.2 or name == "nothing but noise"


def test_an_interval_holds_what_is_between_its_ends() -> None:
    held = [Held("rugged", 0, 15, 0.0, 1.0, truth).holds for truth in (-0.01, 0.0, 0.5, 1.0, 1.01)]
    assert held == [False, True, True, True, False]
    assert Held("without noise", 0, 15, 0.1, 0.1, 0.1 + 1e-17).holds


def test_searches_are_kept_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "KINDS", {"integers": KINDS["integers"]})
    monkeypatch.setattr(coverage.search, "__defaults__", ((3, 5),))
    out = tmp_path / "rows.jsonl"
    rows = coverage.measure([0], out)
    assert [row.evaluations for row in rows] == [3, 5]
    assert coverage.read(out) == rows
    monkeypatch.setattr(coverage, "search", None)  # nothing is done again
    assert coverage.measure([0], out) == rows
    kept = [Held("integers", s, 5, 0.0, 1.0, truth) for s, truth in enumerate((0.5, 2.0))]
    assert "0.50 ± 0.15" in coverage.table(kept)


def test_the_page_quotes_the_rows() -> None:
    root = Path(__file__).parents[2]
    rows = coverage.read(root / "bench" / "results" / "coverage.jsonl")
    page = (root / "docs" / "noise.md").read_text(encoding="utf-8")
    for name in KINDS:
        shares = [
            np.mean([row.holds for row in rows if row.kind == name and row.evaluations == n])
            for n in coverage.CHECKPOINTS
        ]
        assert f"| {name} | {shares[0]:.2f} | {shares[1]:.2f} |" in page
