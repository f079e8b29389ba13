"""Optimal pairs against the paths that they are the optima of."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gp_cases import D, X, Y
from optpair import optima
from optpair.cube.candidates import ANCHORS, Screening
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.gp import Hyperparameters, Paths, condition, sample_paths
from optpair.optima import Best, Optima
from optpair.optima.single import HEIGHT, PathRows, bends
from optpair.problem.layout import HOT, Layout
from optpair.problem.space import Float, Space
from optpair.runtime.streams import Stream

M, P = 4, 50
HYPERS = Hyperparameters(
    lengthscale=[[0.2, 0.2], [0.4, 0.1], [0.7, 0.7], [0.15, 1.5]],
    outputscale=[1.0, 2.0, 0.5, 1.0],
    noise=[0.01, 1e-4, 0.1, 1e-6],
    mean=[0.0, 0.5, -0.5, 0.0],
)
POSTERIOR = condition(HYPERS, X, Y)
BUDGET = {"features": 256, "candidates": 1024, "steps": 24}


def best(
    seed: int, paths: Paths, cube: Cube, anchors: np.ndarray, candidates: int = 1024
) -> Optima:
    screening = Screening.of(Stream.of(seed), cube, candidates)
    with np.errstate(all="ignore"):
        return Best().optima((paths,), Region.whole(cube), screening, anchors, 24)


@pytest.fixture(scope="module")
def drawn() -> tuple[Paths, Optima]:
    """200 paths in two dimensions, and their optima with the engine's default effort."""
    paths = sample_paths(POSTERIOR, P, 1, features=256)
    return paths, best(2, paths, Cube.box(D), POSTERIOR.best_data(ANCHORS))


def test_f_is_the_paths_value_at_x(drawn: tuple[Paths, Optima]) -> None:
    paths, stars = drawn
    assert stars.star.shape == (M, P, D)
    assert np.all((stars.star >= 0) & (stars.star <= 1))
    there, slope = paths.own(stars.star, np.tile(np.arange(P), (M, 1)))
    np.testing.assert_allclose(stars.best, there, rtol=1e-9, atol=1e-9)
    # Inside, the slope is zero: FINAL = 1e-7 of the cube at a curvature of a few a/ℓ².
    inside = (stars.star > 0) & (stars.star < 1)
    assert np.quantile(np.abs(slope[inside]), 0.95) < 1e-2


def test_paths_bend_as_expected_on_average() -> None:
    """Second differences of prior paths against their heights, by regression over all paths."""
    step, own = 1e-3, np.random.default_rng(5)
    posterior = condition(HYPERS, X, Y, noise_var=np.full(len(Y), 1e12))  # the data say nothing
    paths = sample_paths(posterior, 200, 6, features=2048)
    expected = bends(paths.single(), 200 * np.arange(M)).inverse
    at = own.uniform(0.1, 0.9, (400, D))
    height = paths.at(at) - HYPERS.mean[:, None, None]
    for k, e in enumerate(step * np.eye(D)):
        bent = (paths.at(at + e) - 2 * paths.at(at) + paths.at(at - e)) / step**2
        scaled = -bent * expected[:, k, None, None] * HEIGHT
        # One residual per path: its points are not independent.
        size = np.mean(height**2, (1, 2))
        residual = np.mean((scaled - height) * height, 2) / size[:, None]
        error = np.std(residual, 1) / np.sqrt(residual.shape[1])
        assert np.all(np.abs(residual.mean(1)) < 4 * error)
        assert np.all(error < 0.2)


def test_nothing_beats_an_optimal_pair(drawn: tuple[Paths, Optima]) -> None:
    """At 5,000 random points and at the data: for 99 % of paths, 1e-6 of their spread allowed."""
    paths, stars = drawn
    everywhere = np.concatenate([np.random.default_rng(3).uniform(size=(5000, D)), X])
    highest = paths.at(everywhere).max(-1)
    missed = highest > stars.best + 1e-6 * np.sqrt(HYPERS.outputscale)[:, None]
    assert missed.mean() <= 0.01


def test_optima_lie_on_faces_as_often_as_they_should(drawn: tuple[Paths, Optima]) -> None:
    """Against the argmax over a grid that includes the faces: path by path, and in share."""
    paths, stars = drawn
    ticks = np.linspace(0, 1, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, D)
    found = grid[paths.at(grid).argmax(-1)]
    expected = np.any((found == 0) | (found == 1), -1)
    exactly = np.any((stars.star == 0) | (stars.star == 1), -1)
    assert 0.2 < expected.mean() < 0.8  # the question is not empty
    # They differ only where the optimum is within a cell of a face, or two optima are close.
    assert np.mean(expected == exactly) > 0.95
    assert np.mean(np.abs(found - stars.star).max(-1) < 0.05) > 0.95


def test_in_one_dimension_a_dense_grid_agrees() -> None:
    """4,001 points: within 1e-4·curvature of the optimum, for all 200 paths but one."""
    hypers = Hyperparameters([[0.1], [0.4]], [1.0, 3.0], [1e-3, 1e-3], [0.0, 1.0])
    posterior = condition(hypers, X[:, :1], Y)
    paths = sample_paths(posterior, 100, 3, features=256)
    stars = best(4, paths, Cube.box(1), posterior.best_data(ANCHORS))
    grid = np.linspace(0, 1, 4001)[:, None]
    highest = paths.at(grid).max(-1)
    size = np.sqrt(hypers.outputscale)[:, None]
    assert np.mean(stars.best < highest - 1e-6 * size) <= 0.005
    assert np.mean(stars.best > highest + 1e-4 * size) <= 0.005


@pytest.mark.parametrize("texts", [["x + y <= 0.8", "x <= 2*y"], ["x + y == 0.7"]])
def test_within_limits_a_dense_grid_agrees(texts: list[str]) -> None:
    """Every optimum is legal, and no legal point of a grid beats it: for 99 % of paths."""
    space = Space({"x": Float(0, 1), "y": Float(0, 1)}, where=texts)
    cube = Cube.box(2)
    region = Region(cube, np.zeros(2), np.ones(2), space.rows)
    paths = sample_paths(POSTERIOR, P, 1, features=256)
    screening = Screening.of(Stream.of(2), cube, 1024)
    stars = Best().optima((paths,), region, screening, POSTERIOR.best_data(ANCHORS), 24)
    assert region.legal(stars.star.reshape(-1, 2)).all()
    ticks = np.linspace(0, 1, 201)
    grid = np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2)
    if len(texts) == 1:
        grid = np.linspace([0.0, 0.7], [0.7, 0.0], 2001)
    highest = paths.at(grid[region.legal(grid)]).max(-1)
    size = np.sqrt(HYPERS.outputscale)[:, None]
    assert np.mean(highest > stars.best + 1e-6 * size) <= 0.01
    # A cell of the grid is 0.005: it misses less than 1 % of a path's spread.
    assert np.mean(stars.best > highest + 1e-2 * size) <= 0.02


def test_more_candidates_find_more(drawn: tuple[Paths, Optima]) -> None:
    """Paths are the same: f* grows on average, and falls short of all of it for few paths."""
    paths, _ = drawn
    anchors = POSTERIOR.best_data(ANCHORS)
    found = [best(2, paths, Cube.box(D), anchors, count).best for count in (2, 32, 1024)]
    for fewer, more in pairwise(found):
        assert np.mean(more) >= np.mean(fewer)
        assert np.mean(more < fewer - 1e-6) < 0.05


def test_pairs_are_the_same_for_a_seed_and_no_other() -> None:
    first, second, other = (optima.sample(POSTERIOR, 8, seed, **BUDGET) for seed in (5, 5, 6))
    assert first.x.dtype == first.f.dtype == np.float64
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.f, second.f)
    assert np.all(first.f != other.f)
    np.testing.assert_array_equal(first.mask, np.ones((M, 8, 1), dtype=bool))
    np.testing.assert_array_equal(first.weights, 1 / (8 * M))
    assert repr(first) == "Optima(4 sets of 8, 1 point(s) each in 2-D, 1 outcome(s))"


def test_optimal_values_are_plausible() -> None:
    """f* is above the posterior mean at its best datum, and by some standard deviations at most.

    E f* ≥ max E f, and over a box of a few length scales the maximum stays below 6 deviations.
    """
    f = optima.sample(POSTERIOR, P, 5, **BUDGET).best
    mean, _ = POSTERIOR.predict(X)
    error = f.std(1) / np.sqrt(P)
    assert np.all(f.mean(1) > mean.max(1) - 4 * error)
    limit = HYPERS.mean + 6 * np.sqrt(HYPERS.outputscale)
    assert np.all(f.max(1) < np.maximum(limit, Y.max() + 1))


CUBE = Cube(
    Layout(
        last=np.array([1.0, 4.0, 1.0, 1.0]),
        offset=np.ones(4),
        log=np.zeros(4, dtype=bool),
        owner=(0, 1, 2, 2),
        stepped=(1,),
        groups=((2, 4),),
    )
)


def check_legal(x: np.ndarray) -> None:
    np.testing.assert_allclose(4 * x[..., 1], np.round(4 * x[..., 1]), atol=1e-12)
    hot = np.sort(x[..., 2:], -1)
    np.testing.assert_allclose(hot, np.broadcast_to([0.0, HOT], hot.shape), atol=1e-12)


def test_mixed_spaces_give_legal_optima() -> None:
    """A continuous column, five levels, two categories: legal, and the best of all by brute force.

    Each discrete choice is scanned on a grid; a path's optimum is at least as good, for 95 % of 32
    paths.
    """
    hypers = Hyperparameters([[0.3] * 4] * 2, [1.0, 1.0], [0.01, 0.01], [0.0, 0.0])
    points = np.array([[0.1, 0.25, HOT, 0.0], [0.9, 0.75, 0.0, HOT], [0.5, 0.5, HOT, 0.0]])
    posterior = condition(hypers, points, [0.0, 1.0, -1.0])
    paths = sample_paths(posterior, 16, 7, features=64)
    stars = best(8, paths, CUBE, posterior.best_data(ANCHORS))
    check_legal(stars.star)
    every = np.array(
        [
            [u, level / 4, *(HOT * e)]
            for u in np.linspace(0, 1, 201)
            for level in range(5)
            for e in np.eye(2)
        ]
    )
    highest = paths.at(every).max(-1)
    assert np.mean(stars.best >= highest - 1e-9) >= 0.95


def test_without_data_optima_are_those_of_the_prior() -> None:
    hypers = Hyperparameters([[0.3] * 4], [1.0], [0.01], [2.0])
    prior = condition(hypers, np.zeros((0, 4)), [])
    stars = optima.sample(prior, 16, cube=CUBE, features=64, candidates=128)
    check_legal(stars.star)
    assert np.all(stars.best > 2.0)


def test_rows_of_paths_are_their_own_paths() -> None:
    """Rows in any number a set, none of some sets: as each path by itself."""
    paths = sample_paths(POSTERIOR, 3, 1, features=64)
    landscape = PathRows(paths, 2)  # rows 0, 1 are path 0 of set 0, and so on
    points = np.random.default_rng(4).uniform(size=(M * 3 * 2, D))
    for rows in (np.arange(24), np.array([0, 1, 4, 7, 8, 9, 20]), np.array([13]), np.arange(6, 18)):
        values, slopes = landscape.slopes(points[rows], rows)
        np.testing.assert_array_equal(landscape.values(points[rows], rows), values)
        for i, row in enumerate(rows):
            m, p = divmod(row // 2, 3)
            one = np.tile(points[row], (M, 1, 1))
            value, slope = paths.own(one, np.full((M, 1), p))
            assert values[i] == pytest.approx(value[m, 0], rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(slopes[i], slope[m, 0], rtol=1e-9, atol=1e-10)


def test_weights_of_optima() -> None:
    stars = Optima.pairs(np.zeros((2, 3, D)), np.zeros((2, 3)))
    believed = Optima(
        stars.x, stars.f, stars.mask, np.log([[1.0, 2.0, 1.0], [3.0, 3.0, 0.5]]) + 900
    )
    # A belief weighs the sets as well: those whose optima are likelier count for more.
    np.testing.assert_allclose(believed.weights * 10.5, [[1.0, 2.0, 1.0], [3.0, 3.0, 0.5]])
    np.testing.assert_allclose(stars.weights, 1 / 6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "count must be at least 1, not 0"),
        ({"candidates": 1}, "candidates must be at least 4, not 1"),
    ],
)
def test_too_few_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        optima.sample(POSTERIOR, **{"count": 1, **change})
