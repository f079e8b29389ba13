"""Functions that others wrote: cut boxes, optima that nothing beats, noise, and the split."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from optpair_bench import tasks
from optpair_bench.tasks import catalogue, optima, packages
from optpair_bench.tasks.packages import ENTRIES, Packaged, Source

installed = pytest.mark.skipif(
    not all(map(find_spec, ("opfunu", "uqtestfuns"))), reason="needs ./bench[arena]"
)
quiet = pytest.mark.filterwarnings(
    "ignore:pkg_resources is deprecated", "ignore:Deprecated call to `pkg_resources"
)


def bowl(X: np.ndarray) -> np.ndarray:
    """Smallest at (3, 4), and 7 there."""
    return 7 + np.sum((X - [3.0, 4.0]) ** 2, -1)


RAW = Packaged(bowl, np.array([0.0, 0.0]), np.array([10.0, 10.0]))


def test_a_function_is_negated_and_in_units_of_its_spread() -> None:
    function = Packaged(bowl, np.array([0.0, 10.0]), np.array([10.0, 2.0]), spread=2.0)
    # The second input runs backwards, from 10 to 2: 0.75 stands for 4.
    assert function(np.array([[0.3, 0.75]]))[0] == pytest.approx(-3.5)
    assert function(np.array([[0.0, 0.0]]))[0] == pytest.approx(-(7 + 9 + 36) / 2)
    assert function.bounds == ((0.0, 10.0), (2.0, 10.0))
    inside = function.inside(np.array([3.0, 4.0]))
    assert inside is not None
    np.testing.assert_allclose(inside, [0.3, 0.75])
    assert function.inside(np.array([3.0, 1.0])) is None
    with pytest.raises(ValueError, match="optpair bench optima"):
        function.optimum()


def test_a_box_is_cut_by_the_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "claimed", lambda name: np.empty((0, 2)))
    first, again, other = (packages.cut(name, RAW) for name in ("a-2", "a-2", "b-2"))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    ends = np.array([packages.cut(f"f{i}-2", RAW) for i in range(400)])
    low, high = ends.min(1) / 10, ends.max(1) / 10
    share = 1 - (high - low)
    assert packages.CUT[0] - 1e-12 <= share.min() <= share.max() <= packages.CUT[1] + 1e-12
    assert np.all((low == 0) != (high == 1))  # one end is cut
    backwards = np.mean(ends[:, 0] > ends[:, 1])
    assert abs(backwards - 0.5) < 4 * 0.5 / np.sqrt(800)


def test_a_cut_spares_the_best_point_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "claimed", lambda name: np.array([[0.4, 9.9]]))
    for i in range(100):
        function = Packaged(bowl, *packages.cut(f"f{i}-2", RAW))
        assert function.inside(np.array([0.4, 9.9])) is not None


def test_no_family_is_on_both_sides() -> None:
    sides = [
        {ENTRIES[name].source.family for name in packages.names(tuning=tuning)}
        for tuning in (True, False)
    ]
    assert not sides[0] & sides[1]
    assert sorted(packages.names(tuning=True) + packages.names(tuning=False)) == sorted(ENTRIES)
    assert ENTRIES["opf-ackley-3"].source.family == ENTRIES["opf-rotated-ackley-5"].source.family


def test_families_are_dealt_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [("c", (5, 2)), ("a", (3,)), ("b", (2,)), ("d", (3,))]
    monkeypatch.setattr(
        packages, "SOURCES", tuple(Source("opfunu", name, name, dims) for name, dims in sources)
    )
    assert packages.tuning_families() == {"b", "a"}  # of b and c in 2-D, a and d in 3-D


def test_dimensions_that_are_covered() -> None:
    count = Counter(entry.dimensions for entry in ENTRIES.values())
    assert {d: count[d] for d in (2, 3, 5, 20, 50)} == {2: 10, 3: 24, 5: 24, 20: 6, 50: 3}
    assert sum(count[d] for d in range(6, 11)) == 10
    for d in (2, 3, 5, 20):
        half = sum(ENTRIES[name].dimensions == d for name in packages.names(tuning=True))
        assert abs(half - count[d] / 2) <= 1


def test_every_function_was_measured() -> None:
    known = packages.measured()
    assert set(known) == set(ENTRIES)
    for name, found in known.items():
        x = np.array(found["x"])
        assert x.shape == (ENTRIES[name].dimensions,)
        assert x.min() >= 0
        assert x.max() <= 1
        assert np.abs(x - 0.5).max() > 0.04, name  # not the centre
        assert np.ptp(x) > 0.04, name  # not on the diagonal
        assert found["spread"] > 0


def test_noise_in_per_cent_of_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: True)
    monkeypatch.setattr(packages, "load", lambda name: RAW)
    assert tasks.make("opf-levy-3@20%").noise_var == pytest.approx(0.04)
    assert tasks.make("opf-levy-3@0%").noise_var == 0.0
    for bad in ("0.05", "-5%", "much%", "nan%"):
        with pytest.raises(ValueError, match="per cent of the spread ≥ 0, like 5%"):
            tasks.make(f"opf-levy-3@{bad}")
    with pytest.raises(ValueError, match="a finite variance"):
        tasks.make("branin@5%")


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs uqtestfuns: pip install '\./bench\[arena\]'"):
        tasks.make("uq-borehole-8@5%")


def test_the_search_finds_a_known_optimum() -> None:
    found = optima.search(RAW, points=64)
    np.testing.assert_allclose(found.x, [0.3, 0.4], atol=1e-4)
    assert found.f == pytest.approx(-7.0, abs=1e-8)


def test_the_best_point_is_the_package_s_unless_a_better_one_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packages, "bare", lambda name: RAW)
    monkeypatch.setattr(packages, "claimed", lambda name: np.array([[3.0, 4.0]]))
    assert optima.measure("any")["from"] == "package"
    monkeypatch.setattr(packages, "claimed", lambda name: np.array([[3.1, 4.0], [-3.0, 4.0]]))
    path = tmp_path / "measured.json"
    assert dict(optima.write(path, ["b", "a"]))["a"]["from"] == "search"
    spread = optima.measure("any")["spread"]
    draws = bowl(10 * np.random.default_rng(0).random((4000, 2)))
    # The variance of a sample variance: (kurtosis − 1)/n of its square.
    kurtosis = np.mean((draws - draws.mean()) ** 4) / draws.var() ** 2
    assert abs(spread**2 / draws.var() - 1) < 4 * np.sqrt((kurtosis - 1) / 4000)


@installed
@quiet
@pytest.mark.parametrize("name", list(ENTRIES))
def test_nothing_beats_the_best_point_known(name: str) -> None:
    task = tasks.make(name)
    best = task.optimum
    assert task.dimensions == ENTRIES[name].dimensions
    rng = np.random.default_rng(1)
    points = rng.random((2000, task.dimensions))
    points[::4] = np.clip(2 * points[::4] - 0.5, 0, 1)  # some of them on faces
    near = np.clip(best.x + 0.01 * rng.standard_normal((200, task.dimensions)), 0, 1)
    values = task.value(np.vstack([points, near]))
    assert np.isfinite(values).all()
    assert values.max() <= best.f + 1e-6


@installed
@quiet
@pytest.mark.parametrize("name", ["opf-levy-3", "opf-rotated-rastrigin-5", "uq-borehole-8"])
def test_the_spread_is_one_and_noise_is_a_share_of_it(name: str) -> None:
    task, n = tasks.make(f"{name}@20%"), 3000
    values = task.value(np.random.default_rng(2).random((n, task.dimensions)))
    kurtosis = np.mean((values - values.mean()) ** 4) / values.var() ** 2
    assert abs(values.var() - 1) < 4 * np.sqrt((kurtosis - 1) / n)
    x = np.full(task.dimensions, 0.4)
    noise = np.array([task.observe(x, i) for i in range(n)]) - task.value(x[None])[0]
    assert abs(noise.std() / 0.2 - 1) < 4 / np.sqrt(2 * n)


@installed
@quiet
def test_values_are_those_of_the_package() -> None:
    import opfunu
    import uqtestfuns

    for name, function in (
        ("opf-rotated-rastrigin-5", opfunu.cec_based.F122013(ndim=5).evaluate),
        ("uq-ishigami-3", lambda z: uqtestfuns.Ishigami()(z[None])[0]),
    ):
        ours = packages.load(name)
        x = np.random.default_rng(3).random(len(ours.start))
        z = ours.start + (ours.end - ours.start) * x
        assert ours(x[None])[0] * ours.spread == pytest.approx(-function(z), rel=1e-12)
