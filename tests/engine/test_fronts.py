"""Fronts: thinned points, volumes of joint paths, and intervals."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.engine.fronts import LARGEST, _apart, _spread, _volumes
from optpair.engine.hypervolume import hypervolume
from optpair.engine.worth import non_dominated
from outcome_cases import ALL, SPACE, several, told


def test_thinned_points_are_apart_and_keep_the_ends() -> None:
    values = np.column_stack([np.linspace(0, 1, 101), 50 - 50 * np.linspace(0, 1, 101)])
    rows = _apart(values, 5)
    np.testing.assert_allclose(values[rows, 0], [0, 0.25, 0.5, 0.75, 1], atol=0.011)
    assert _apart(values[:3], 5).tolist() == [0, 1, 2]
    assert _apart(np.ones((4, 2)), 5).tolist() == [0]  # copies are one point
    assert _apart(values[:0], 5).tolist() == []


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
