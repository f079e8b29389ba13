"""Points that fill a polytope: where they are, and how evenly."""

from __future__ import annotations

import numpy as np
from scipy import stats

from optpair.cube.hull import Hull
from optpair.cube.lattice import lattice
from optpair.problem.linear import Rows


def rows(A: list[list[float]], b: list[float], equal: list[bool]) -> Rows:
    return Rows(np.array(A, float).reshape(len(b), -1), np.array(b), np.array(equal, dtype=bool))


def box(d: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(d), np.ones(d)


def test_a_mixture_is_filled_uniformly() -> None:
    """Each fraction of a uniform point of the simplex of four is Beta(1, 3)."""
    hull = Hull.of(rows([[1, 1, 1, 1]], [1.0], [True]), *box(4))
    assert len(hull.axes) == 3
    points = hull.points((lattice(4, 1024) + 0.37) % 1.0)
    np.testing.assert_allclose(points.sum(1), 1.0, atol=1e-14)
    assert np.min(points) >= -1e-15
    for column in points.T:
        assert stats.kstest(column, stats.beta(1, 3).cdf).pvalue > 0.01
    # The pool has 512 points of its own, and a sweep makes others of them.
    assert len(np.unique(points.round(6), axis=0)) == 1024


def test_a_thin_slice_is_filled_from_end_to_end() -> None:
    """0 ≤ x − y ≤ 1e-4: the chains find its shape, and go as far as it goes."""
    hull = Hull.of(rows([[1, -1], [-1, 1]], [1e-4, 0.0], [False, False]), *box(2))
    assert len(hull.axes) == 2
    x, y = hull.points(lattice(2, 512)).T
    assert np.all((x - y >= -1e-12) & (x - y <= 1e-4 + 1e-12))
    assert stats.kstest(x, "uniform").pvalue > 0.01
    assert stats.kstest((x - y) * 1e4, "uniform").pvalue > 0.01


def test_limits_that_leave_no_width_are_equalities() -> None:
    """x ≤ y ≤ x, and z = 0.25 by two bounds: one direction is left."""
    hull = Hull.of(
        rows([[1, -1, 0], [-1, 1, 0], [0, 0, 1], [0, 0, -1]], [0, 0, 0.25, -0.25], [False] * 4),
        *box(3),
    )
    assert len(hull.axes) == 1
    points = hull.points(lattice(3, 64))
    np.testing.assert_allclose(points[:, 0], points[:, 1], atol=1e-12)
    np.testing.assert_allclose(points[:, 2], 0.25, atol=1e-12)
    assert np.ptp(points[:, 0]) > 0.9


def test_one_point_is_all_there_is() -> None:
    hull = Hull.of(rows([[1, 1], [1, -1]], [1.0, 0.5], [True, True]), *box(2))
    np.testing.assert_allclose(hull.points(lattice(2, 3)), [[0.75, 0.25]] * 3, atol=1e-12)


def test_the_same_numbers_give_the_same_points_and_others_do_not() -> None:
    limits = rows([[1, 1, 1]], [1.5], [False])
    U = np.random.default_rng(0).uniform(size=(16, 3))
    first, again = (Hull.of(limits, *box(3)).points(U) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    hull = Hull.of(limits, *box(3))
    assert np.min(np.abs(hull.points((U + 0.1) % 1.0) - first).max(1)) > 1e-3
    np.testing.assert_allclose(hull.points(U[5:], 5), first[5:], atol=1e-14)
