"""What pruning saves: tasks, studies that are kept, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from optpair_bench.analysis import pruning
from optpair_bench.analysis.pruning import Study, markdown, measure, read, summaries
from optpair_bench.tasks.pruned import PRUNED_TASKS


@pytest.mark.parametrize("name", PRUNED_TASKS)
def test_a_trial_has_all_its_steps_and_a_seed_of_its_own(name: str) -> None:
    task = PRUNED_TASKS[name]
    params = {key: (low * high) ** 0.5 for key, (low, high) in task.bounds.items()}
    first, again, other = (list(task.train(params, seed)) for seed in (1, 1, 2))
    assert len(first) == task.steps
    assert first == again
    assert first != other
    assert 0.3 < first[-1] <= 1


def test_studies_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optpair_bench.tasks.pruned.JUDGES", 2)
    few = {"folds": replace(PRUNED_TASKS["folds"], trials=9)}
    monkeypatch.setattr(pruning, "PRUNED_TASKS", few)
    out = tmp_path / "rows.jsonl"
    rows = measure(1, out, ["folds"])
    assert [row.method for row in rows] == ["whole", "pruned", "running means"]
    assert rows[0].fits == 81
    assert rows[1].fits < 81
    assert rows[2].fits < 81
    assert read(out) == rows
    monkeypatch.setattr(pruning, "study", None)  # nothing is done again
    assert measure(1, out, ["folds"]) == rows


def test_what_is_said_of_studies() -> None:
    def row(method: str, seed: int, mean: float, keeps: float, fits: int) -> Study:
        return Study("folds", method, seed, fits, {}, mean, mean - 0.02, mean + 0.02, keeps)

    rows = [row("whole", 0, 0.95, 0.95, 216), row("whole", 1, 0.96, 0.95, 216)]
    rows += [row("pruned", 0, 0.90, 0.93, 54), row("pruned", 1, 0.95, 0.96, 108)]
    rows.append(row("pruned", 2, 0.1, 0.9, 1))  # without its whole study
    found = summaries(rows)["folds", "pruned"]
    assert (found.studies, found.held) == (2, 1)
    assert found.fits == pytest.approx(0.375)
    assert found.promised == pytest.approx(-0.02)
    assert found.better == pytest.approx(-0.005)
    assert len({line.count("|") for line in markdown(rows)}) == 1
    assert "+0.0050 ± 0.0050" in markdown(rows)[2]
    assert "1 of 2 | −0.0050 ± 0.0150 |" in markdown(rows)[3]


def test_the_page_quotes_the_rows() -> None:
    root = Path(__file__).parents[2]
    rows = read(root / "bench" / "results" / "pruning.jsonl")
    page = (root / "docs" / "optuna.md").read_text(encoding="utf-8")
    for line in markdown(rows):
        assert line in page
