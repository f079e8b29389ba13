"""The Halton sequence: stratified in each coordinate, prefix by prefix, and coordinates apart."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.cube.halton import halton
from optpair.runtime.streams import Stream


@pytest.mark.parametrize(("column", "base"), [(0, 2), (1, 3), (2, 5)])
def test_each_coordinate_has_one_point_in_every_part(column: int, base: int) -> None:
    for power in (1, 2, 3):
        points = halton(Stream.of(3), 3, base**power)[:, column]
        assert sorted((points * base**power).astype(int)) == list(range(base**power))


def test_points_are_those_of_the_stream() -> None:
    few, again = halton(Stream.of(1), 4, 6), halton(Stream.of(1), 4, 6)
    np.testing.assert_array_equal(few, again)
    assert np.abs(few - halton(Stream.of(2), 4, 6)).max() > 0.1
    assert np.all((few >= 0) & (few < 1))


@pytest.mark.parametrize("d", [3, 6, 12])
def test_no_two_coordinates_move_together(d: int) -> None:
    """In d + 1 points the correlation of a pair is no larger than that of random points.

    Of those it is 1/√d in the mean square; 40 streams have a standard error of about a tenth of it.
    """
    found = []
    for seed in range(40):
        C = np.corrcoef(halton(Stream.of(seed), d, d + 1).T)
        found.append(np.mean(C[np.triu_indices(d, 1)] ** 2))
    assert np.mean(found) < 1.3 / d
