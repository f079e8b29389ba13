"""Regions: what is open, and what is clipped."""

from __future__ import annotations

import numpy as np

from optpair.cube.cube import Cube
from optpair.cube.region import Region

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
