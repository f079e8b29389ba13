"""Raw values ↔ what the model sees."""

from dataclasses import replace

import numpy as np
import pytest

from optpair.trials.transform import MOST_NOISE, Scaling

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


def test_absurd_values_are_compressed_twice() -> None:
    scaling = replace(Scaling.of(HEAVY), lowest=-1e15)
    assert scaling.knee is not None
    far = scaling.knee - scaling.unit * np.expm1([3.0, 4.0, 30.0])
    depth = (scaling.knee - scaling.warp(far)) / scaling.unit
    np.testing.assert_allclose(depth, [3, 3 + np.log(2), 3 + np.log(28)], rtol=1e-12)
    np.testing.assert_allclose(scaling.restore(scaling.standardise(far)), far, rtol=1e-11)


@pytest.mark.parametrize("far", [1e12, 1e15, 1e30, 1e300])
def test_one_diverged_run_does_not_squeeze_the_others(far: float) -> None:
    good = np.random.default_rng(1).normal(size=12)
    every = np.append(good, -far)
    scaling = Scaling.of(every)
    alone, among = Scaling.of(good).standardise(good), scaling.standardise(good)
    assert np.ptp(among) > np.ptp(alone) / 3
    np.testing.assert_allclose(scaling.restore(scaling.standardise(every)), every, rtol=1e-9)


def test_order_is_kept_across_the_knee() -> None:
    scaling = Scaling.of(HEAVY)
    grid = np.linspace(-3, 2, 1001)
    assert np.all(np.diff(scaling.standardise(grid)) > 0)
    assert np.all(np.diff(scaling.standardise(-np.logspace(-3, 300, 1001))) < 0)


def test_noise_variance_follows_the_slope() -> None:
    scaling = Scaling.of(HEAVY)
    y, step = np.array([-3.0, 0.4, 0.88, 0.95]), 1e-6
    slope = (scaling.standardise(y + step) - scaling.standardise(y - step)) / (2 * step)
    np.testing.assert_allclose(scaling.variance(np.full(4, 0.01), y), 0.01 * slope**2, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 3.5, -1e300, 1e-300])
def test_constant_values_get_an_invertible_scaling(value: float) -> None:
    y = np.full(5, value)
    scaling = Scaling.of(y)
    np.testing.assert_allclose(scaling.standardise(y), 0, atol=1e-12)
    np.testing.assert_allclose(scaling.restore(np.zeros(5)), y, rtol=1e-12)


def test_values_equal_up_to_round_off_leave_no_knee() -> None:
    assert Scaling.of(np.array([0.1 + 0.2, 0.3, 0.3])).knee is None


def test_many_equal_values_still_leave_a_knee() -> None:
    y = np.array([1.0, 1.0, 1.0, 1.0, -1.0, 0.0, 0.5])
    scaling = Scaling.of(y)
    assert scaling.knee is not None
    np.testing.assert_allclose(scaling.restore(scaling.standardise(y)), y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("largest", [1.0, 1e300])
def test_restoring_far_below_stays_finite(largest: float) -> None:
    scaling = Scaling.of(HEAVY / np.max(np.abs(HEAVY)) * largest)
    z = np.array([0.0, -3.0, -10.0, -1e3])
    raw = scaling.restore(z)
    assert np.isfinite(raw).all()
    assert (np.diff(raw) <= 0).all()


@pytest.mark.parametrize("values", [HEAVY, HEAVY[:40], np.append(HEAVY, -1e6)], ids=len)
def test_below_the_lowest_value_the_way_back_is_straight(values: np.ndarray) -> None:
    """No interval explodes: the tangent at the lowest value goes on, without a kink."""
    scaling = Scaling.of(values)
    assert scaling.lowest == np.min(values)
    edge, step = float(scaling.standardise(np.array([scaling.lowest]))[0]), 1e-6
    raw = scaling.restore(edge + step * np.array([1.0, 0.0, -1.0, -2.0]))
    slopes = -np.diff(raw) / step
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-4)
    far = scaling.restore(edge - np.array([0.0, 1.0, 2.0, 1000.0]))
    np.testing.assert_allclose(np.diff(far)[:2], -slopes[-1], rtol=1e-4)
    assert far[3] == pytest.approx(far[0] - 1000 * slopes[-1], rel=1e-4)


def test_where_nothing_is_below_the_knee_the_way_back_is_the_identity() -> None:
    scaling = Scaling.of(np.array([1.0, 1.1, 1.2, 1.3, 1.4, 1.5]))
    raised = replace(scaling, lowest=2.0)
    z = np.linspace(-9, 3, 13)
    np.testing.assert_allclose(raised.restore(z), scaling.loc + scaling.scale * z, rtol=1e-12)


@pytest.mark.parametrize(
    "y",
    [
        [1.0],
        [0.0, 0.0],
        [5.0] * 9,
        [0.1 + 0.2, 0.3],  # round-off
        [1e300, -1e300, 0.0],
        [1e300, 1e-300],
        [1e-300, 3e-300],
        [5e-324, 0.0],
        [1.0, 2.0, 4.0],
    ],
)
@pytest.mark.parametrize("warp", [True, False])
def test_degenerate_and_huge_values(y: list[float], warp: bool) -> None:
    values = np.array(y)
    scaling = Scaling.of(values, warp)
    z = scaling.standardise(values)
    assert np.all(np.abs(z) <= 3)
    assert scaling.scale > 0
    largest = np.max(np.abs(values))
    np.testing.assert_allclose(scaling.restore(z), values, rtol=1e-12, atol=1e-12 * largest)
    for noise_var in (0.0, 1e-300, 1.0, 1e300):
        assert 0 <= scaling.variance(np.array([noise_var]), values[:1])[0] <= MOST_NOISE


def test_without_the_warp_it_is_mean_and_deviation() -> None:
    scaling = Scaling.of(np.array([1.0, 3.0]), warp=False)
    assert (scaling.loc, scaling.scale, scaling.knee) == (2.0, 1.0, None)
    variance = scaling.variance(np.array([np.nan, 4.0]), np.array([1.0, 3.0]))
    assert np.isnan(variance[0])  # unknown stays unknown
    assert variance[1] == 4.0


SKEWED = np.concatenate([-np.geomspace(1e-4, 3, 20), np.geomspace(1e-4, 1e8, 30)])


def test_around_a_limit_values_are_standardised_and_restored() -> None:
    for size in (1e-200, 1.0, 1e200):
        y, centre = (SKEWED + 2) * size, 2 * size
        scaling = Scaling.around(y, centre, 0.1 * size)
        z = scaling.standardise(y)
        assert (np.mean(z), np.std(z)) == pytest.approx((0, 1), abs=1e-12)
        np.testing.assert_allclose(scaling.restore(z), y, rtol=1e-11, atol=1e-13 * size)


def test_around_a_limit_it_is_linear_near_and_a_logarithm_far_away() -> None:
    scaling = Scaling.around(SKEWED, 1.0, 0.5)
    away = np.array([1e-4, 1e6])
    for sign in (-1, 1):
        warped = sign * (scaling.warp(1 + sign * away) - 1)
        np.testing.assert_allclose(warped, [1e-4, 0.5 * np.log(4e6)], rtol=1e-7)  # (Y1)


def test_slopes_are_those_of_the_warp() -> None:
    for scaling in (Scaling.around(SKEWED, 0.3, 0.5), Scaling.of(HEAVY), Scaling.of(HEAVY, False)):
        y = np.array([-50.0, 0.1, 0.2, 0.93, 7.0])
        slope = (scaling.warp(y + 1e-5) - scaling.warp(y - 1e-5)) / 2e-5
        np.testing.assert_allclose(scaling.slope(y), slope, rtol=1e-6)


def test_beyond_what_was_seen_around_a_limit_the_way_back_is_a_tangent() -> None:
    y = np.array([-3.0, 0.0, 1.0, 4.0])
    scaling = Scaling.around(y, 1.0, 0.5)  # seen: up to 4 away from the centre
    z = scaling.standardise(np.array([-3.0, 5.0]))
    steps = np.array([-1.0, 1.0]) / scaling.scale
    far = scaling.restore(z + 3 * steps) - scaling.restore(z)
    np.testing.assert_allclose(far, 3 * np.array([-1, 1]) / scaling.slope(np.array([-3.0, 5.0])))
    assert np.all(np.isfinite(scaling.restore(np.array([-1e300, 1e300]))))


def test_a_scaling_around_a_limit_is_saved() -> None:
    scaling = Scaling.around(SKEWED, 1.0, 0.5)
    assert Scaling.from_json(scaling.to_json()) == scaling
