"""Best feasible points of joint paths against dense grids."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

from optpair.cube.candidates import Screening
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.gp import Hyperparameters, Paths, condition, sample_paths
from optpair.optima import Best, BestFeasible, Optima, Wanted
from optpair.problem.layout import HOT, Layout
from optpair.runtime.streams import Stream

INF = np.inf
P, M = 12, 2
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(6, 2))
HYPERS = Hyperparameters([[0.3, 0.4], [0.5, 0.25]], [1.0, 4.0], [0.01, 1e-4], [0.0, 0.5])


def drawn(d: int, outcomes: int) -> tuple[Paths, ...]:
    hypers = Hyperparameters(
        HYPERS.lengthscale[:, :d], HYPERS.outputscale, HYPERS.noise, HYPERS.mean
    )
    values = np.random.default_rng(5).normal(size=(outcomes, len(X)))
    posteriors = [condition(hypers, X[:, :d], y) for y in values]
    return tuple(sample_paths(p, P, i, features=128) for i, p in enumerate(posteriors))


PATHS = {d: drawn(d, 3) for d in (1, 2)}
GRID = {
    1: np.linspace(0, 1, 2001)[:, None],
    2: np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), -1).reshape(-1, 2),
}
ON_GRID = {d: np.stack([p.at(GRID[d]) for p in PATHS[d]], -1) for d in (1, 2)}


def wanted(*limits: tuple[float, float]) -> Wanted:
    low, high = zip((-INF, INF), *limits, strict=True)
    return Wanted((0,), np.array(low), np.array(high))


def found(d: int, given: Wanted, cube: Cube | None = None) -> Optima:
    cube = Cube.box(d) if cube is None else cube
    screening = Screening.of(Stream.of(3), cube, 256)
    paths = PATHS[d][: len(given.low)]
    return BestFeasible(given).optima(paths, Region.whole(cube), screening, X[:, :d], 24)


def out_of(f: np.ndarray, given: Wanted) -> np.ndarray:
    """By how much limits are violated, in all."""
    return np.maximum(np.maximum(given.low - f, f - given.high), 0.0).sum(-1)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(
    "limits",
    [
        [(0.0, INF)],  # active for many paths, and it cuts the region in pieces
        [(-INF, -0.3)],
        [(-0.4, 0.3)],
        [(-0.02, 0.02)],  # thin, nearly an equality
        [(0.0, INF), (-INF, 0.5)],
    ],
)
def test_a_dense_grid_finds_nothing_better(d: int, limits: list[tuple[float, float]]) -> None:
    """Nor anything feasible where nothing was found; for 95 % of paths, which have many optima.

    What is found is at least what the grid has, as it is refined: by a cell's width times a slope.
    """
    given = wanted(*limits)
    stars, values = found(d, given), ON_GRID[d][..., : len(given.low)]
    feasible = out_of(values, given) == 0
    best = np.where(feasible, values[..., 0], -INF).max(-1)
    there = stars.mask[..., 0]
    assert stars.x.shape == (M, P, 1, d)
    assert stars.f.shape == (M, P, 1, len(given.low))
    assert np.all((stars.x >= 0) & (stars.x <= 1))
    assert np.all(there | ~feasible.any(-1))
    assert np.all(out_of(stars.f[:, :, 0], given)[there] <= 3e-6)
    size = np.sqrt(HYPERS.outputscale)[:, None]
    assert np.mean((stars.f[..., 0, 0] < best - 1e-5 * size)[there]) <= 0.05
    assert np.mean((stars.f[..., 0, 0] > best + 0.3 * size)[there & np.isfinite(best)]) <= 0.1
    ends = np.stack([given.low, given.high])[:, 1]
    assert (np.abs(stars.f[..., 1, None] - ends) < 1e-5).any()  # some are active


def test_several_limits_leave_little_to_be_found() -> None:
    """Six limits in 4-D: as good as the best of 32,768 points, for all but two of 64 paths.

    With no more climbs than under a single limit, four fall short, by up to 0.4 √a.
    """
    d, K, short = 4, 6, 0
    grid = qmc.Sobol(d, rng=0).random(2**15)
    for seed in (1, 5):
        rng = np.random.default_rng(seed)
        places, slopes = rng.uniform(size=(30, d)), rng.normal(size=(K + 1, d))
        hypers = Hyperparameters([[1.0] * d], [1.0], [1e-9], [0.0])
        paths = tuple(
            sample_paths(condition(hypers, places, np.sin(3 * places @ z + k)), 32, k, features=256)
            for k, z in enumerate(slopes)
        )
        given = wanted(*((np.sin(1.2 * z.sum() + k) - 0.3, INF) for k, z in enumerate(slopes) if k))
        region, screening = Region.whole(Cube.box(d)), Screening.of(Stream.of(3), Cube.box(d), 256)
        stars = BestFeasible(given).optima(paths, region, screening, places, 22)
        values = np.stack([path.at(grid) for path in paths], -1)
        best = np.where(out_of(values, given) == 0, values[..., 0], -INF).max(-1)
        assert stars.mask.all()
        short += int(np.sum(stars.f[:, :, 0, 0] < best - 1e-3))
    assert short <= 2


def test_f_holds_the_paths_at_x() -> None:
    stars = found(2, wanted((0.0, INF)))
    for o, path in enumerate(PATHS[2][:2]):
        values, _ = path.own(stars.x[:, :, 0], np.tile(np.arange(P), (M, 1)))
        np.testing.assert_allclose(stars.f[:, :, 0, o], values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_without_a_feasible_point_it_is_the_least_violated(d: int) -> None:
    """c ≥ 30 holds nowhere: x* is where c is largest, for 90 % of paths."""
    given = wanted((30.0, INF))
    stars = found(d, given)
    assert not stars.mask.any()
    least = out_of(ON_GRID[d][..., :2], given).min(-1)
    assert np.mean(out_of(stars.f[:, :, 0], given) <= least + 1e-3) >= 0.9


def test_a_constraint_that_always_holds_changes_nothing() -> None:
    screening, region = Screening.of(Stream.of(3), Cube.box(2), 256), Region.whole(Cube.box(2))
    best = Best().optima(PATHS[2][:1], region, screening, X, 24)
    stars = found(2, wanted((-50.0, 50.0)))
    assert stars.mask.all()
    assert np.mean(stars.f[:, :, 0, 0] >= best.best - 1e-6) >= 0.95


def test_twice_the_same() -> None:
    first, second = (found(2, wanted((0.0, INF))) for _ in range(2))
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.f, second.f)


def test_mixed_spaces_give_legal_points() -> None:
    """A continuous column, five levels, two categories: as good as brute force, for 90 %."""
    layout = Layout(
        last=np.array([1.0, 4.0, 1.0, 1.0]),
        offset=np.ones(4),
        log=np.zeros(4, dtype=bool),
        owner=(0, 1, 2, 2),
        stepped=(1,),
        groups=((2, 4),),
    )
    cube = Cube(layout)
    hypers = Hyperparameters([[0.4] * 4], [1.0], [0.01], [0.0])
    points = np.array([[0.1, 0.25, HOT, 0.0], [0.9, 0.75, 0.0, HOT]])
    paths = tuple(
        sample_paths(condition(hypers, points, [0.0, 1.0]), 16, i, features=64) for i in (0, 1)
    )
    given = wanted((0.0, INF))
    screening = Screening.of(Stream.of(3), cube, 128)
    stars = BestFeasible(given).optima(paths, Region.whole(cube), screening, points, 24)
    np.testing.assert_allclose(cube.snap(stars.x), stars.x, atol=1e-12)
    every = np.array(
        [
            [u, level / 4, *(HOT * e)]
            for u in np.linspace(0, 1, 101)
            for level in range(5)
            for e in np.eye(2)
        ]
    )
    f, c = (path.at(every) for path in paths)
    best = np.where(c >= 0, f, -INF).max(-1)
    there = stars.mask[..., 0]
    assert np.all(there | ~np.isfinite(best))
    assert np.mean((stars.f[..., 0, 0] >= best - 1e-5)[there]) >= 0.9
