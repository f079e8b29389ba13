"""The noise of means over folds: unbiased, pooled where that helps, never zero by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import polygamma

from optpair.integrations.sklearn.folds import POOLED, _inverse_trigamma, _spread, noise_of_means

K, RATIO = 5, 0.25
CORRECTION = 1 / K + RATIO
SIGMA = 0.1


def ones(n: int) -> np.ndarray:
    return np.ones(n, dtype=int)


def scores(rng: np.random.Generator, sigma: np.ndarray, hard: float = 3.0) -> np.ndarray:
    """m_i + b_k + e_ik, with folds that differ much more than the trials' own errors."""
    n = len(sigma)
    noise = sigma[:, None] * rng.standard_normal((n, K))
    return rng.normal(0, 1, (n, 1)) + rng.normal(0, hard, (1, K)) + noise


@pytest.mark.parametrize("n", [3, 4, 9])
def test_the_spread_is_unbiased_however_hard_the_folds_are(n: int) -> None:
    rng = np.random.default_rng(0)
    means = [_spread(scores(rng, np.full(n, SIGMA))).mean() for _ in range(2000)]
    error = np.std(means) / len(means) ** 0.5
    assert abs(np.mean(means) - SIGMA**2) < 4 * error
    assert error < 0.02 * SIGMA**2


def test_two_trials_cannot_tell_folds_from_noise() -> None:
    given = np.array([[0.0, 2.0], [1.0, 3.0]])
    assert _spread(given) == pytest.approx([2.0, 2.0])  # the same folds are hard: not seen yet
    three = np.array([[0.0, 2.0], [1.0, 3.0], [2.0, 4.0]])
    assert noise_of_means(three, RATIO, ones(3)) is None


def test_pooling_beats_each_trial_by_itself() -> None:
    rng = np.random.default_rng(1)
    pooled, alone = [], []
    for _ in range(200):
        given = scores(rng, np.full(12, SIGMA))
        noise = noise_of_means(given, RATIO, ones(12))
        assert noise is not None
        pooled.append(np.mean((noise / CORRECTION - SIGMA**2) ** 2))
        alone.append(np.mean((_spread(given) - SIGMA**2) ** 2))
    assert np.mean(pooled) < 0.25 * np.mean(alone)


def test_spreads_of_other_magnitudes_are_left_alone() -> None:
    rng = np.random.default_rng(2)
    sigma = np.where(np.arange(20) % 2, 1e-3, 1e3)
    ratios = []
    for _ in range(50):
        given = sigma[:, None] * rng.standard_normal((20, K)) - 1e4 * (sigma[:, None] > 1)
        noise = noise_of_means(given, RATIO, ones(20))
        assert noise is not None
        ratios.append(noise / CORRECTION / sigma**2)
    assert np.mean(ratios, axis=0) == pytest.approx(np.ones(20), abs=0.6)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.2)


def test_no_spread_by_chance_is_not_no_noise() -> None:
    given = np.array([[0.9, 0.8, 0.9], [0.8, 0.9, 0.9], [0.7, 0.7, 0.8], [0.85, 0.85, 0.85]])
    noise = noise_of_means(given, 0.5, ones(4))
    assert noise is not None
    assert noise.min() > 0.2 * np.median(noise)


@pytest.mark.parametrize(
    "given",
    [np.ones((4, 3)), np.zeros((4, 3)), np.arange(4.0)[:, None], np.full((3, 3), 0.1) + 1e-17],
)
def test_no_spread_at_all_is_left_to_the_model(given: np.ndarray) -> None:
    assert noise_of_means(given, 0.5, ones(len(given))) is None


def test_units_repeats_and_overlap() -> None:
    given = scores(np.random.default_rng(3), np.full(6, SIGMA))
    noise = noise_of_means(given, RATIO, ones(6))
    assert noise is not None
    assert noise_of_means(1e3 * given, RATIO, ones(6)) == pytest.approx(1e6 * noise)
    repeats = np.array([1, 2, 1, 2, 1, 1])
    assert noise_of_means(given, RATIO, repeats) == pytest.approx(noise * repeats)
    assert noise_of_means(given, 0.0, ones(6)) == pytest.approx(noise / K / CORRECTION)
    assert noise_of_means(1e300 * given, RATIO, ones(6)) is None  # no such variance in float64


@pytest.mark.parametrize("x", [0.02, 0.5, 2.0, 100.0])
def test_inverse_of_trigamma(x: float) -> None:
    assert _inverse_trigamma(float(polygamma(1, x))) == pytest.approx(x, rel=1e-9)


def test_inverse_of_trigamma_ends() -> None:
    assert _inverse_trigamma(-1.0) == pytest.approx(POOLED / 2)
    assert _inverse_trigamma(1e9) == pytest.approx(0.01)
