"""Pareto sets of joint paths against dense grids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_feasible import GRID, INF, ON_GRID, PATHS, M, P, X

from optpair.cube.candidates import Screening
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.optima import Optima, Pareto, Wanted
from optpair.optima.pareto import undominated, weights
from optpair.runtime.streams import Stream


def found(d: int, given: Wanted, points: int = 8) -> Optima:
    cube = Cube.box(d)
    screening = Screening.of(Stream.of(3), cube, 256)
    paths = PATHS[d][: len(given.low)]
    return Pareto(given, points).optima(paths, Region.whole(cube), screening, X[:, :d], 24)


def volume(points: np.ndarray, reference: np.ndarray) -> float:
    """What points of two objectives dominate, above a reference."""
    above = points[(points > reference).all(1)]
    above = above[np.argsort(-above[:, 0])]
    tops = np.maximum.accumulate(above[:, 1])
    steps = np.diff(np.concatenate([reference[1:], tops]))
    return float(np.sum((above[:, 0] - reference[0]) * steps))


def shares(stars: Optima, allowed: np.ndarray, d: int) -> np.ndarray:
    """The hypervolume of each set beside that of the whole grid's front."""
    found = []
    for m, p in np.ndindex(M, P):
        grid = ON_GRID[d][m, p][:, :2]
        reference = np.quantile(grid, 0.25, axis=0)
        whole = volume(grid[allowed[m, p]], reference)
        if whole > 0:
            own = stars.f[m, p][stars.mask[m, p]][:, :2]
            found.append(volume(own, reference) / whole)
    return np.array(found)


@pytest.mark.parametrize("d", [1, 2])
def test_eight_points_dominate_what_a_grids_front_does(d: int) -> None:
    """On average to 4 %, as eight corners of a staircase cut corners."""
    given = Wanted((0, 1), np.full(2, -INF), np.full(2, INF))
    stars = found(d, given)
    assert stars.x.shape == (M, P, 8, d)
    assert stars.mask.any(-1).all()
    everywhere = np.ones((M, P, len(GRID[d])), dtype=bool)
    share = shares(stars, everywhere, d)
    assert np.mean(share) > 0.95
    assert np.mean(shares(found(d, given, 3), everywhere, d)) < np.mean(share)


def test_under_a_constraint_all_points_meet_it() -> None:
    given = Wanted((0, 1), np.array([-INF, -INF, 0.0]), np.full(3, INF))
    stars = found(2, given)
    assert np.all(stars.f[..., 2][stars.mask] > -3e-6)
    share = shares(stars, ON_GRID[2][..., 2] >= 0, 2)
    assert np.mean(share) > 0.88
    nowhere = found(2, Wanted((0, 1), np.array([-INF, -INF, 30.0]), np.full(3, INF)))
    assert not nowhere.mask.any()
    assert np.all(np.isfinite(nowhere.f))


def test_no_point_of_a_set_beats_another() -> None:
    stars = found(2, Wanted((0, 1, 2), np.full(3, -INF), np.full(3, INF)), 10)
    for m, p in np.ndindex(M, P):
        f = stars.f[m, p][stars.mask[m, p]]
        beats = (f[:, None] >= f).all(-1) & (f[:, None] > f).any(-1)
        assert not beats.any()
    for o, path in enumerate(PATHS[2]):
        own = np.broadcast_to(np.repeat(np.arange(P), 10), (M, P * 10))
        values, _ = path.own(stars.x.reshape(M, P * 10, 2), own)
        np.testing.assert_allclose(stars.f[..., o].reshape(M, -1), values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("most", [1, 25, 60, 1000])
def test_some_points_have_one_of_each_optimum(most: int) -> None:
    """Of 4 × 3 optima of up to 8 points; other numbers of points have their turn."""
    mask = np.random.default_rng(1).uniform(size=(4, 3, 8)) < 0.8
    mask[0, 0], mask[1, 1], mask[1, 2] = False, np.arange(8) == 5, True
    places = np.arange(mask.size, dtype=float).reshape(*mask.shape, 1)
    stars = Optima(places, np.zeros((4, 3, 8, 2)), mask, np.zeros((4, 3)))
    chosen = stars.some_points(most)[:, 0].astype(int)
    counts = np.bincount(chosen // 8, minlength=12)
    each = np.maximum(mask.sum(-1).reshape(-1), 1)
    assert np.all(counts >= 1)
    assert np.all(counts <= np.minimum(max(most // 12, 1), each))
    assert np.all(np.diff(chosen) > 0)
    assert 0 in chosen  # nothing is feasible, and the first comes closest
    assert set(chosen) - {0} <= set(np.flatnonzero(mask))
    every = replace(stars, mask=np.ones_like(mask)).some_points(most)[:, 0].astype(int)
    assert len(np.unique(every % 8)) == 8
    if most == 1000:
        assert len(chosen) == mask.sum() + 1


def test_undominated_points() -> None:
    f = np.array([[[1.0, 3.0], [2.0, 2.0], [1.0, 1.0], [2.0, 2.0], [5.0, 5.0]]])
    there = np.array([[True, True, True, True, False]])
    np.testing.assert_array_equal(undominated(f, there), [[True, True, False, False, False]])


@pytest.mark.parametrize(("objectives", "count"), [(2, 8), (3, 10), (4, 12), (3, 2)])
def test_weights_are_spread(objectives: int, count: int) -> None:
    found = weights(objectives, count)
    assert found.shape == (count, objectives)
    assert np.all(found > 0)
    np.testing.assert_allclose(found.max(1), 1.0)
    assert len(np.unique(found.round(6), axis=0)) == count
