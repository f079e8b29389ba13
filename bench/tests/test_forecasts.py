"""How many more trials a search was said to take: what is measured, and how it is counted."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from optpair_bench.analysis import forecasts
from optpair_bench.analysis.coverage import KINDS
from optpair_bench.analysis.forecasts import FACTORS, LAST, Foretold, constant, share, table


def row(said: int | None, came: int | None, told: int = 10) -> Foretold:
    return Foretold("rugged", 0, told, 0.1, 0.9, said, came)


def test_what_can_be_judged() -> None:
    assert not row(None, 4).judged
    assert row(4, 8).judged
    assert row(4, 8).ratio == 2
    late = (LAST - 10) // max(FACTORS)
    assert row(late, None).judged
    assert row(late, None).ratio == math.inf
    assert not row(late + 1, None).judged


def test_shares_within_a_factor() -> None:
    ratios = [1 / 3, 0.5, 1.0, 2.0, 3.0, math.inf]
    assert share(ratios, 2) == 0.5
    assert share(ratios, 3) == pytest.approx(5 / 6)
    assert math.isnan(share([], 2))
    best, number = constant([row(1, 4), row(9, 4), row(9, 8), row(None, 1)], 2)
    assert (best, -number) == (1.0, 4)
    text = table([row(4, 8), row(4, 2), row(2, 7), row(None, 1)])
    assert "0.67" in text.splitlines()[-3]
    assert text.splitlines()[-2] == "saying 4 each time, within 2: 1.00"


def test_searches_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasts, "KINDS", {"integers": KINDS["integers"]})
    monkeypatch.setattr(forecasts.search, "__defaults__", ((6,), 9))
    out = tmp_path / "rows.jsonl"
    rows = forecasts.measure(1, out)
    assert 0 < len(rows) <= len(forecasts.STOPS)
    assert all(found.came is None or 1 <= found.came <= 3 for found in rows)
    assert forecasts.read(out) == rows
    monkeypatch.setattr(forecasts, "search", None)  # nothing is done again
    assert forecasts.measure(1, out) == rows


def test_the_page_quotes_the_rows() -> None:
    root = Path(__file__).parents[2]
    rows = forecasts.read(root / "bench" / "results" / "forecasts.jsonl")
    page = " ".join((root / "docs" / "faq.md").read_text(encoding="utf-8").split())
    ratios = [row.ratio for row in rows if row.judged]
    two, three = (f"{share(ratios, factor):.0%}".replace("%", " %") for factor in FACTORS)
    assert f"In {len(ratios)} cases" in page
    assert f"within a factor of two in {two} and of three in {three}" in page
    best, number = constant(rows, 3)
    assert (
        f"Saying {-number} each time would have been right within three in {best:.0%}".replace(
            "%", " %"
        )
        in page
    )
