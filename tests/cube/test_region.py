"""Regions: what is open, and what is clipped."""

from __future__ import annotations

import numpy as np

from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.problem.linear import Rows

CUBE = Cube.box(3)


def test_the_whole_cube() -> None:
    region = Region.whole(CUBE)
    assert region.open.all()
    X = np.random.default_rng(0).uniform(-0.5, 1.5, (4, 5, 3))
    np.testing.assert_array_equal(region.clip(X), np.clip(X, 0, 1))


def test_a_part_with_a_fixed_column() -> None:
    region = Region(CUBE, np.array([0.2, 0.5, 0.0]), np.array([0.8, 0.5, 1.0]))
    assert region.open.tolist() == [True, False, True]
    X = np.random.default_rng(0).uniform(size=(50, 3))
    clipped = region.clip(X)
    np.testing.assert_array_equal(clipped[:, 1], 0.5)
    np.testing.assert_array_equal(clipped[:, 0], np.clip(X[:, 0], 0.2, 0.8))
    np.testing.assert_array_equal(clipped[:, 2], X[:, 2])
    single = region.clip(X.astype(np.float32))
    assert single.dtype == np.float32
    assert np.all(single[:, 1] == np.float32(0.5))


def test_a_part_is_filled_as_evenly_as_the_whole() -> None:
    """And where a bound holds an optimum, its slope need not be zero."""
    low, high = np.array([0.2, 0.5, 0.0]), np.array([0.6, 0.5, 1.0])
    region = Region(CUBE, low, high)
    U = np.random.default_rng(0).uniform(size=(50, 3))
    np.testing.assert_allclose(region.fill(U), low + (high - low) * U, atol=1e-15)
    np.testing.assert_array_equal(Region.whole(CUBE).fill(U), U)
    assert region.narrowed
    assert not Region.whole(CUBE).fixed({1: 0.5}).narrowed
    X = np.array([[0.2, 0.5, 0.5], [0.6, 0.5, 1.0], [0.3, 0.5, 0.7]])
    assert region.loose(X)[:, [0, 2]].tolist() == [[False, True], [False, False], [True, True]]


def test_points_within_limits() -> None:
    """x + y ≤ 1 in three columns: what is legal, near, snapped and held."""
    rows = Rows(np.array([[1.0, 1.0, 0.0]]), np.array([1.0]), np.array([False]))
    region = Region(CUBE, np.zeros(3), np.ones(3), rows)
    X = np.array([[0.2, 0.3, 0.9], [0.8, 0.8, 0.1], [0.5, 0.5, 1.0]])
    assert region.legal(X).tolist() == [True, False, True]
    np.testing.assert_allclose(region.snap(X), [X[0], [0.5, 0.5, 0.1], X[2]], atol=1e-12)
    np.testing.assert_allclose(region.anchors(X), region.snap(X), atol=1e-12)
    assert region.loose(X[[0, 2]]).tolist() == [[True] * 3, [False] * 3]  # z = 1 is a bound
    anchors = np.repeat(X[[0, 2]], 100, axis=0)
    near = region.near(CUBE.moves(np.random.default_rng(0), 200), anchors, 0.3)
    assert region.legal(near).all()
    assert np.mean(near[:, :2].sum(1) > 1 - 1e-12) > 0.2  # along the face, not away from it
    assert np.mean(np.all(near == anchors, axis=1)) < 0.05


def test_a_function_refuses_points() -> None:
    region = Region(CUBE, np.zeros(3), np.ones(3), allowed=lambda X: X[:, 0] < 0.3)
    filled = region.fill(np.random.default_rng(0).uniform(size=(200, 3)))
    assert np.all(filled[:, 0] < 0.3)
    assert len(np.unique(filled[:, 0])) > 150
    X = np.array([[0.2, 0.3, 0.9], [0.8, 0.8, 0.1]])
    assert region.legal(X).tolist() == region.allows(X).tolist() == [True, False]
    assert region.legal(region.snap(X)).all()
    start = np.full((2, 3), 0.1)
    np.testing.assert_array_equal(region.snap(X, start), [X[0], start[1]])
    near = region.near(CUBE.moves(np.random.default_rng(0), 50), np.repeat(X[:1], 50, axis=0), 0.3)
    assert region.legal(near).all()
