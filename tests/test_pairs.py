"""Optimal pairs against the paths that they are the optima of."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optpair.maximize import Search
from optpair.runtime import Stream, make_key

from optpair import pairs
from optpair.cube import HOT, Cube
from optpair.gp import Hyperparameters, condition
from optpair.gp import paths as gp_paths
from optpair.gp.paths import Paths

N, D, M, P = 8, 2, 4, 50
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(N, D)), RNG.normal(size=N)
HYPERS = Hyperparameters(
    lengthscale=[[0.2, 0.2], [0.4, 0.1], [0.7, 0.7], [0.15, 1.5]],
    outputscale=[1.0, 2.0, 0.5, 1.0],
    noise=[0.01, 1e-4, 0.1, 1e-6],
    mean=[0.0, 0.5, -0.5, 0.0],
)
EFFORT = {"features": 256, "candidates": 1024, "steps": 24}


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def optima(seed: int, paths: Paths, cube: Cube) -> pairs.OptimalPairs:
    search = Search.of(Stream.of(seed), cube, 1024, pairs.ANCHORS)
    return jax.jit(pairs.optima, static_argnums=3)(paths, cube, search, 24)


@pytest.fixture(scope="module")
def drawn() -> tuple[Paths, pairs.OptimalPairs]:
    """200 paths in two dimensions, and their optima with the engine's default effort."""
    with jax.enable_x64(True):
        paths = gp_paths.sample(make_key(1), condition(HYPERS, X, Y), paths=P, features=256)
        found = optima(2, paths, Cube.box(D))
        return paths, jax.tree.map(np.asarray, found)


def values(paths: Paths, points: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(Paths.at)(paths, jnp.asarray(points)))


def test_f_is_the_paths_value_at_x(drawn: tuple[Paths, pairs.OptimalPairs]) -> None:
    paths, stars = drawn
    assert stars.x.shape == (M, P, D)
    assert np.all((stars.x >= 0) & (stars.x <= 1))
    there = np.asarray(jax.jit(Paths.own)(paths, jnp.asarray(stars.x)[:, :, None]))[..., 0]
    np.testing.assert_allclose(stars.f, there, rtol=1e-9, atol=1e-9)


def test_nothing_beats_an_optimal_pair(drawn: tuple[Paths, pairs.OptimalPairs]) -> None:
    """At 5,000 random points and at the data: for 99 % of paths, 1e-6 of their spread allowed."""
    paths, stars = drawn
    everywhere = np.concatenate([np.random.default_rng(3).uniform(size=(5000, D)), X])
    highest = values(paths, everywhere).max(-1)
    missed = highest > stars.f + 1e-6 * np.sqrt(np.asarray(HYPERS.outputscale))[:, None]
    assert missed.mean() <= 0.01


def test_optima_lie_on_faces_as_often_as_they_should(
    drawn: tuple[Paths, pairs.OptimalPairs],
) -> None:
    """Against the argmax over a grid that includes the faces: path by path, and in share."""
    paths, stars = drawn
    ticks = np.linspace(0, 1, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, D)
    best = grid[values(paths, grid).argmax(-1)]
    expected = np.any((best == 0) | (best == 1), -1)
    exactly = np.any((stars.x == 0) | (stars.x == 1), -1)
    assert 0.2 < expected.mean() < 0.8  # the question is not empty
    # They differ only where the optimum is within a cell of a face, or two optima are close.
    assert np.mean(expected == exactly) > 0.95
    close = np.abs(best - stars.x).max(-1) < 0.05
    assert close.mean() > 0.95


def test_pairs_are_the_same_for_a_key_and_no_other() -> None:
    posterior = condition(HYPERS, X, Y)
    first, second, other = (pairs.sample(seed, posterior, P, **EFFORT) for seed in (5, 5, 6))
    assert isinstance(first.x, np.ndarray)
    assert first.x.dtype == first.f.dtype == np.float64
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.f, second.f)
    assert np.all(first.f != other.f)
    by_key = pairs.sample(make_key(5), posterior, P, **EFFORT)
    np.testing.assert_array_equal(first.x, by_key.x)


def test_optimal_values_are_plausible() -> None:
    """f* is above the posterior mean at its best datum, and by some standard deviations at most.

    E f* ≥ max E f, and over a box of a few length scales the maximum stays below 6 deviations.
    """
    posterior = condition(HYPERS, X, Y)
    stars = pairs.sample(5, posterior, P, **EFFORT)
    mean, _ = posterior.predict(X)
    error = stars.f.std(1) / np.sqrt(P)
    assert np.all(stars.f.mean(1) > mean.max(1) - 4 * error)
    limit = np.asarray(HYPERS.mean) + 6 * np.sqrt(np.asarray(HYPERS.outputscale))
    assert np.all(stars.f.max(1) < np.maximum(limit, Y.max() + 1))


def test_mixed_spaces_give_legal_optima() -> None:
    """A continuous column, five levels, two categories: legal, and the best of all by brute force.

    Each discrete choice is scanned on a grid; a path's optimum is at least as good, for 95 % of 32
    paths.
    """
    cube = Cube(
        last=np.array([1.0, 4.0, 1.0, 1.0]),
        offset=np.ones(4),
        log=np.zeros(4, dtype=bool),
        parameter=(0, 1, 2, 2),
        stepped=(1,),
        groups=((2, 4),),
    )
    hypers = Hyperparameters([[0.3] * 4] * 2, [1.0, 1.0], [0.01, 0.01], [0.0, 0.0])
    points = np.array([[0.1, 0.25, HOT, 0.0], [0.9, 0.75, 0.0, HOT], [0.5, 0.5, HOT, 0.0]])
    posterior = condition(hypers, points, [0.0, 1.0, -1.0])
    paths = gp_paths.sample(make_key(7), posterior, paths=16, features=64)
    stars = optima(8, paths, cube)
    x, f = np.asarray(stars.x), np.asarray(stars.f)
    levels = np.round(4 * x[..., 1])
    np.testing.assert_allclose(4 * x[..., 1], levels, atol=1e-12)
    hot = np.sort(x[..., 2:], -1)
    np.testing.assert_allclose(hot, np.broadcast_to([0.0, HOT], hot.shape), atol=1e-12)
    every = np.array(
        [
            [u, level / 4, *(HOT * e)]
            for u in np.linspace(0, 1, 201)
            for level in range(5)
            for e in np.eye(2)
        ]
    )
    highest = values(paths, every).max(-1)
    assert np.mean(f >= highest - 1e-9) >= 0.95


def test_best_data_are_those_of_highest_mean() -> None:
    posterior = condition(HYPERS, X, Y)
    order = np.argsort(-posterior.predict(X)[0].mean(0))
    best = np.asarray(jax.jit(pairs.best_data, static_argnums=1)(posterior, 12))
    np.testing.assert_array_equal(best, X[order[np.arange(12) % N]])  # repeated, as they are few


def test_at_least_one_pair() -> None:
    with pytest.raises(ValueError, match="n_pairs must be at least 1, not 0"):
        pairs.sample(0, condition(HYPERS, X, Y), 0)
