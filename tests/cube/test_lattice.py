"""The lattice sequence: how evenly it fills the cube, against random points and in prefixes."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.cube.lattice import GENERATORS, lattice


def worst_case_error(points: np.ndarray) -> float:
    """P₂ of points on the torus, with weights 1/k in coordinate k: 0 would be exact.

    The mean over all pairs of Π (1 + γ_k 2π² B₂(|x − y|)) − 1, B₂(t) = t² − t + 1/6.
    """
    gaps = np.abs(points[:, None] - points)
    weights = 1 / np.arange(1, points.shape[1] + 1)
    kernel = 1 + weights * 2 * np.pi**2 * (gaps**2 - gaps + 1 / 6)
    return float(np.prod(kernel, -1).mean() - 1)


@pytest.mark.parametrize("dimensions", [1, 2, 5, 12])
@pytest.mark.parametrize("points", [16, 100, 256])
def test_it_integrates_better_than_random_points(dimensions: int, points: int) -> None:
    """The expected error of random points is (Π (1 + γ_k π²/3) − 1)/N."""
    weights = 1 / np.arange(1, dimensions + 1)
    expected = (np.prod(1 + weights * np.pi**2 / 3) - 1) / points
    found = worst_case_error(lattice(dimensions, points))
    share = {1: 0.15, 2: 0.4, 5: 0.9, 12: 1.0}[dimensions]
    assert 0 < found < share * expected
    random = [
        worst_case_error(np.random.default_rng(seed).uniform(size=(points, dimensions)))
        for seed in range(5)
    ]
    assert found < np.mean(random)


def test_powers_of_two_are_lattices() -> None:
    """Sums and differences of points, around the torus, are points again."""
    for m in (3, 6):
        points = lattice(3, 2**m)
        sums = (points[:, None] + points).reshape(-1, 3) % 1
        rows = {tuple(row) for row in points.tolist()}
        assert {tuple(row) for row in sums.tolist()} == rows
        assert len(rows) == 2**m


@pytest.mark.parametrize("points", [5, 37, 64, 100, 1000])
def test_any_prefix_spreads(points: int) -> None:
    """In one dimension each of N equal parts of a power of two up to N has a point."""
    cells = 2 ** int(np.log2(points))
    for column in lattice(8, points).T:
        assert len(np.unique(np.floor(column * cells))) == cells


def test_a_prefix_is_a_prefix() -> None:
    np.testing.assert_array_equal(lattice(4, 100)[:37], lattice(4, 37))
    np.testing.assert_array_equal(lattice(9, 100)[:, :4], lattice(4, 100))


def test_points_are_in_the_cube_and_kept() -> None:
    points = lattice(6, 500)
    assert np.all((points >= 0) & (points < 1))
    assert lattice(6, 500) is points
    with pytest.raises(ValueError, match="read-only"):
        points[0, 0] = 0.5


def test_more_dimensions_than_generators() -> None:
    d = len(GENERATORS) + 16
    N = 2**14
    points = lattice(d, N)
    assert points.shape == (N, d)
    np.testing.assert_array_equal(points[:, : len(GENERATORS)], lattice(len(GENERATORS), N))
    # Every column is a permutation of i/N, and next to no two columns are alike.
    np.testing.assert_array_equal(np.sort(points, 0), np.tile(np.arange(N) / N, (d, 1)).T)
    assert len(np.unique(points[N // 2 + 1])) > d - 3
