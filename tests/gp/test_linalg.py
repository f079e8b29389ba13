"""Factors, their inverses, and the jitter that they need."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.gp.linalg import JITTERS, factorise, inverse_factor, inverse_factors

SINGULAR = np.ones((2, 2))
INDEFINITE = SINGULAR - 1e-6 * np.array([[0.0, -1.0], [-1.0, 0.0]])  # eigenvalue −1e-6
HOPELESS = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalue −1


def positive(n: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(n, n + 2))
    return np.asarray(A @ A.T)


@pytest.mark.parametrize("n", [1, 2, 7, 65])
def test_a_good_matrix_needs_no_jitter(n: int) -> None:
    K = positive(n)
    before = K.copy()
    C, jitter = factorise(K)
    assert jitter == 0
    np.testing.assert_allclose(C, np.linalg.cholesky(K), rtol=1e-9, atol=1e-12)
    inverse, jitter = inverse_factor(K)
    assert jitter == 0
    np.testing.assert_array_equal(inverse, np.tril(inverse))
    np.testing.assert_allclose(inverse @ C, np.eye(n), atol=1e-9)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize(
    ("K", "low", "high"), [(SINGULAR, JITTERS[1], JITTERS[1]), (INDEFINITE, 1e-6, 1e-5)]
)
@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e12])
def test_the_first_jitter_that_is_enough(
    K: np.ndarray, low: float, high: float, unit: float
) -> None:
    C, jitter = factorise(unit * K)
    assert low <= jitter <= high
    np.testing.assert_allclose(C @ C.T, unit * (K + jitter * np.eye(2)), atol=1e-14 * unit)


@pytest.mark.parametrize("K", [HOPELESS, np.full((2, 2), np.nan)], ids=["indefinite", "nan"])
def test_a_hopeless_matrix_gives_nan(K: np.ndarray) -> None:
    for function in (factorise, inverse_factor):
        C, jitter = function(K)
        assert jitter == JITTERS[-1]
        assert not np.isfinite(C).any()


def test_a_batch_is_one_at_a_time() -> None:
    good = np.stack([positive(3, seed) for seed in range(6)]).reshape(2, 3, 3, 3)
    found = inverse_factors(good)
    for index in np.ndindex(2, 3):
        expected = inverse_factor(good[index])[0]
        np.testing.assert_allclose(found[index], expected, rtol=1e-9, atol=1e-12)


def test_a_bad_matrix_does_not_harm_the_others_of_a_batch() -> None:
    batch = np.stack([positive(2), SINGULAR, INDEFINITE])
    found = inverse_factors(batch)
    for m in range(3):
        np.testing.assert_allclose(found[m], inverse_factor(batch[m])[0], rtol=1e-9)
        np.testing.assert_array_equal(found[m], np.tril(found[m]))
    with np.errstate(all="ignore"):
        broken = inverse_factors(np.stack([positive(2), np.full((2, 2), np.nan)]))
    np.testing.assert_allclose(broken[0], found[0])
