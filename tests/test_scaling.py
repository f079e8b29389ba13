import numpy as np
import pytest

from optpair.scaling import Scaling

RNG = np.random.default_rng(0)
HEAVY = np.concatenate([RNG.normal(0.9, 0.03, 40), RNG.uniform(0.1, 0.7, 15)])


@pytest.mark.parametrize("warp", [True, False])
@pytest.mark.parametrize("size", [1e-300, 1e-3, 1.0, 1e12, 1e300])
def test_values_of_any_size_are_standardised_and_restored(size: float, warp: bool) -> None:
    y = HEAVY * size
    scaling = Scaling.of(y, warp)
    z = scaling.standardise(y)
    assert np.mean(z) == pytest.approx(0, abs=1e-12)
    assert np.std(z) == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(scaling.restore(z), y, rtol=1e-11)


def test_better_half_is_kept_linear_and_the_tail_is_compressed() -> None:
    scaling = Scaling.of(HEAVY)
    assert scaling.knee is not None
    good = HEAVY[scaling.knee < HEAVY]
    np.testing.assert_allclose(scaling.warp(good), good, rtol=0)
    unit = 1.4826 * np.median(HEAVY[np.median(HEAVY) <= HEAVY] - np.median(HEAVY))
    assert scaling.unit == pytest.approx(unit, rel=1e-12)
    assert scaling.knee == pytest.approx(np.median(HEAVY) - unit, rel=1e-12)
    low = scaling.knee - 5 * unit
    assert scaling.warp(np.array([low]))[0] == pytest.approx(scaling.knee - unit * np.log(6))


def test_order_is_kept_across_the_knee() -> None:
    scaling = Scaling.of(HEAVY)
    grid = np.linspace(-3, 2, 1001)
    assert np.all(np.diff(scaling.standardise(grid)) > 0)


def test_noise_variance_follows_the_slope() -> None:
    scaling = Scaling.of(HEAVY)
    y, step = np.array([0.05, 0.4, 0.88, 0.95]), 1e-6
    slope = (scaling.standardise(y + step) - scaling.standardise(y - step)) / (2 * step)
    np.testing.assert_allclose(scaling.variance(np.full(4, 0.01), y), 0.01 * slope**2, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 3.5, -1e300, 1e-300])
def test_constant_values_get_an_invertible_scaling(value: float) -> None:
    y = np.full(5, value)
    scaling = Scaling.of(y)
    np.testing.assert_allclose(scaling.standardise(y), 0, atol=1e-12)
    np.testing.assert_allclose(scaling.restore(np.zeros(5)), y, rtol=1e-12)


def test_many_equal_values_still_leave_a_knee() -> None:
    y = np.array([1.0, 1.0, 1.0, 1.0, -1.0, 0.0, 0.5])
    scaling = Scaling.of(y)
    assert scaling.knee is not None
    np.testing.assert_allclose(scaling.restore(scaling.standardise(y)), y, rtol=1e-12, atol=1e-12)


def test_restoring_far_below_stays_finite() -> None:
    assert np.isfinite(Scaling.of(HEAVY).restore(-1e6))
