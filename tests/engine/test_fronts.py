"""Fronts: thinned points, volumes of joint paths, and intervals."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.engine.fronts import LARGEST, _neighbours, _spread, _volumes
from optpair.engine.hypervolume import hypervolume
from optpair.engine.worth import non_dominated
from outcome_cases import ALL, FRONT, SPACE, several, told


def test_neighbours_on_a_front() -> None:
    first, second = _neighbours(np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [0.0, 9.0]]))
    assert list(zip(first, second, strict=True)) == [(3, 1), (1, 2), (2, 0)]
    angles = np.linspace(0, np.pi / 2, 9)
    a, b = (grid.ravel() for grid in np.meshgrid(angles, angles))
    values = np.stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), 50 * np.sin(a)], 1)
    first, second = _neighbours(values)
    assert np.all(first < second)
    assert len(set(zip(first, second, strict=True))) == len(first)
    assert set(first) | set(second) == set(range(81))
    scaled = values / [1, 1, 50]
    assert np.linalg.norm(scaled[first] - scaled[second], axis=1).max() < 0.45
    assert len(_neighbours(values[:1])[0]) == 0


def test_volumes_leave_out_what_is_not_there() -> None:
    rng = np.random.default_rng(0)
    values, corner = rng.uniform(size=(5, 6, 2)), np.full(2, 0.1)
    there = rng.uniform(size=(5, 6)) < 0.6
    truth = [hypervolume(v[t], corner) for v, t in zip(values, there, strict=True)]
    np.testing.assert_allclose(_volumes(values, there, corner), truth)
    assert np.all(_volumes(values, np.zeros((5, 6), bool), corner) == 0.0)
    huge = _volumes(np.full((1, 1, 2), 1.7e308), np.ones((1, 1), bool), np.full(2, -1.7e308))
    assert np.isfinite(huge).all()
    some = np.array([[[1e300, 1e300]], [[0.0, 1e300]]])  # the second has no volume
    assert _volumes(some, np.ones((2, 1), bool), np.zeros(2)).tolist() == [LARGEST, 0.0]
    mean, (low, high) = _spread(np.full(96, LARGEST))  # whose sum is beyond all numbers
    assert mean == low == high == LARGEST


def test_an_interval_holds_the_mean() -> None:
    assert _spread(np.array([0.0] * 99 + [300.0])) == (3.0, (0.0, 3.0))
    mean, (low, high) = _spread(np.arange(1000.0))
    assert mean == pytest.approx(499.5)
    assert (low, high) == pytest.approx((24.975, 974.025))


def test_points_between_the_climbs_fill_a_front() -> None:
    """The front y = 0.4 is of x from 0 to 0.8, with values (1 − (x − 0.8)², −x)."""
    optimizer = told(several(FRONT, way="map", candidates=128), 10)
    fronts = optimizer._session.answers(optimizer._history.data())._fronts
    found = fronts._candidates(16)
    coarse = fronts._chosen(found, 999, dense=False)
    dense = fronts._chosen(found, 999, dense=True)
    few = fronts._chosen(found, 16, dense=True)
    assert len(dense) > 2 * len(coarse)
    assert len(few) == 16
    np.testing.assert_array_equal(fronts.front(np.array([0.9, -1.0]), points=16).x, few)

    def volume(x: np.ndarray) -> float:
        values = np.stack([1 - (x[:, 0] - 0.8) ** 2 - (x[:, 1] - 0.4) ** 2, -x[:, 0]], 1)
        return hypervolume(values, np.array([0.36, -0.8]))

    best = volume(np.column_stack([np.linspace(0, 0.8, 999), np.full(999, 0.4)]))
    lost = [best - volume(x) for x in (dense, coarse, few)]
    assert lost[0] < 0.6 * lost[1]
    assert lost[2] < 0.06 * best


def test_no_point_of_a_front_beats_another() -> None:
    optimizer = told(several(ALL, way="map", candidates=128), 10)
    answers = optimizer._session.answers(optimizer._history.data())
    front = answers.front()
    means = np.stack([answers.model.outcomes[c].moments(front.x)[0].mean(0) for c in (0, 1)], 1)
    assert non_dominated(means).all()
    assert front.chance is not None
    assert front.chance.min() >= 0.95
    np.testing.assert_array_equal(front.chance, answers.chance(front.x))
    sets = answers.sets()
    for x, f in zip(sets.x, sets.f, strict=True):
        assert x.shape == (len(f), SPACE.layout.dimensions)
        assert f.shape[1] == 2
