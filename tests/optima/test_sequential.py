"""Sequential quadratic climbs: multipliers, convergence, and the starts that they begin from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from optpair.cube.climb import Curvature, Ended
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.gp import Hyperparameters, condition, sample_paths
from optpair.optima.base import Wanted
from optpair.optima.feasible import PEAKS, peaks
from optpair.optima.joint import JointRows, Limited, Limits, Only
from optpair.optima.sequential import MOST, WEIGHT, _least, multipliers, rise
from optpair.optima.single import bends

D, M, P = 3, 2, 20
HYPERS = Hyperparameters([[0.4] * D, [0.7] * D], [1.0, 3.0], [1e-3, 1e-3], [0.0, 0.2])
RNG = np.random.default_rng(1)
X = RNG.uniform(size=(8, D))
PATHS = tuple(
    sample_paths(condition(HYPERS, X, RNG.normal(size=8)), P, i, features=128) for i in range(3)
)
WANTED = Wanted((0,), np.array([-np.inf, -0.5, -np.inf]), np.array([np.inf, 0.5, 0.3]))
REGION = Region.whole(Cube.box(D))
OWNER = np.arange(M * P)


def landscape(share: float = 1.0) -> Limited:
    limits = Limits.of(WANTED, PATHS)
    return Limited(JointRows.exact(PATHS, OWNER), Only(0, share), limits, WEIGHT)


def ended(share: float = 1.0) -> tuple[Limited, Ended]:
    land = landscape(share)
    start = np.tile(np.array([0.4, 0.5, 0.6]), (M * P, 1))
    shape = bends(PATHS[0], OWNER)
    return land, rise(land, start, REGION, np.ones(D, dtype=bool), 60, enough=1e-12, bends=shape)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_multipliers_solve_their_quadratic_programme(m: int) -> None:
    """Against SciPy's bounded least squares: ½ λᵀAλ − λᵀb = ½ |Jλ − J⁻ᵀb|² up to a constant."""
    J = np.random.default_rng(m).normal(size=(200, m, 5))
    J[:, -1] += 0.8 * J[:, 0]  # slopes that are nearly parallel
    b = np.random.default_rng(m + 1).normal(size=(200, m))
    found = _least(J @ J.mT, b, np.zeros((200, m)))
    for normals, reached, own in zip(J, b, found, strict=True):
        root = np.linalg.cholesky(normals @ normals.T)
        exact = lsq_linear(root.T, np.linalg.solve(root, reached), (0, MOST), tol=1e-14).x

        def worth(λ: np.ndarray, A: np.ndarray = normals, b: np.ndarray = reached) -> float:
            return float(0.5 * np.sum((λ @ A) ** 2) - λ @ b)

        assert worth(own) <= worth(exact) + 1e-3 * abs(worth(exact)) + 1e-9


def test_two_limits_of_one_outcome_are_not_both_active() -> None:
    """Their slopes are opposite, so that the products cannot be inverted."""
    J = np.random.default_rng(0).normal(size=(50, 1, 3))
    both = np.concatenate([J, -J], 1)
    gaps = np.tile([0.4, -1.4], (50, 1))
    found = _least(both @ both.mT, gaps, np.ones((50, 2)))
    np.testing.assert_allclose(found[:, 0] * np.sum(J**2, (1, 2)), 0.4, rtol=1e-5)
    np.testing.assert_array_equal(found[:, 1], 0.0)


def test_climbs_end_where_nothing_can_be_won() -> None:
    """First-order conditions: within the limits, and the slope is a sum of normals with λ ≥ 0."""
    land, end = ended()
    parts = land.parts(end.x, OWNER)
    there = land.joint.at(end.x, OWNER)
    known = multipliers(land, end.x, REGION, there, end.curvature)
    assert np.mean(parts.gaps.max(1) < 1e-6) == 1.0
    assert np.all(known >= 0)
    assert np.all(known * parts.gaps > -1e-5)  # what is not active has no multiplier
    rest = parts.slope - np.vecmat(known, parts.normals)
    pressed = ((end.x <= 0) & (rest < 0)) | ((end.x >= 1) & (rest > 0))
    assert np.max(np.abs(np.where(pressed, 0, rest))) < 1e-3
    assert np.mean(np.any(known > 1e-3, 1)) > 0.3  # limits hold many of them
    assert np.mean(np.any(pressed, 1)) > 0.1  # and faces do
    np.testing.assert_allclose(end.value, parts.value, atol=1e-6)


def test_with_no_score_violations_vanish_where_they_can() -> None:
    land, end = ended(share=0.0)
    assert np.mean(land.parts(end.x, OWNER).gaps.max(1) < 1e-6) > 0.9


def test_where_nothing_is_free_climbs_stay() -> None:
    land, start = landscape(), np.full((M * P, D), 0.5)
    end = rise(land, start, REGION, np.zeros(D, dtype=bool), 10, enough=1e-9)
    np.testing.assert_array_equal(end.x, start)
    assert np.all(np.isfinite(end.value))


def test_multipliers_do_not_need_a_curvature_of_these_columns() -> None:
    land, end = ended()
    there = land.joint.at(end.x, OWNER)
    other = Curvature(np.ones((M * P, 1, 1)), np.ones(M * P, dtype=bool))
    known = multipliers(land, end.x, REGION, there, other)
    same = multipliers(land, end.x, REGION, there, end.curvature)
    assert np.mean((known > 1e-3) == (same > 1e-3)) > 0.9


def test_peaks_come_before_points_beside_them() -> None:
    """Two bumps on a grid: the higher one's neighbours are better than the other bump's top."""
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * 2), -1).reshape(-1, 2)
    centres = np.array([[0.25, 0.25], [0.75, 0.75]])
    away = np.sum((grid[:, None] - centres) ** 2, -1)
    score = np.max(np.array([2.0, 1.0]) * np.exp(-away / 0.02), 1)
    order = peaks(score[None, None].astype(np.float32), grid)[0, 0]
    assert len(order) == PEAKS
    assert {tuple(point) for point in centres} <= {tuple(point) for point in grid[order].round(9)}
