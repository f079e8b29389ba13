"""Functions of the standard normal against arbitrary-precision arithmetic, tails included."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mpmath as mp
import numpy as np
import pytest

from optpair.acquisition.special.normal import (
    hazard,
    log_ei,
    log_ei_and_slope,
    log_ndtr,
    lower_tail,
    truncated_moments,
    truncated_moments_and_slope,
)

DIGITS = 60


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    with mp.workdps(DIGITS):
        yield


def pdf(x: mp.mpf) -> mp.mpf:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def cdf(x: mp.mpf) -> mp.mpf:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def true_hazard(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    r = pdf(x) / cdf(x)
    return r, -r * (x + r)


def true_log_ndtr(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    return mp.log1p(-cdf(-x)) if x > 0 else mp.log(cdf(x)), pdf(x) / cdf(x)


def true_log_ei(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    improvement = pdf(x) + x * cdf(x)
    return mp.log(improvement), cdf(x) / improvement


TRUTH = {hazard: true_hazard, log_ndtr: true_log_ndtr, log_ei: true_log_ei}

SLOPES: dict[Callable[..., np.ndarray], Callable[[np.ndarray], np.ndarray]] = {
    hazard: lambda x: -truncated_moments(x).lost,
    log_ndtr: hazard,
    log_ei: lambda x: log_ei_and_slope(x)[1],
}

# Relative errors of value and derivative. Above 2, φ itself is known to x²/2 units of round-off.
RANGES = [
    (-1e6, -1e4, 4e-16, 4e-16),
    (-1e4, -100.0, 4e-16, 4e-16),
    (-100.0, -5.0, 1e-15, 2e-14),
    (-5.0, -2.0, 2e-15, 3e-14),
    (-2.0, 2.0, 4e-15, 1e-14),
    (2.0, 5.0, 1e-14, 1e-14),
    (5.0, 37.0, 4e-13, 4e-13),
]


def points(low: float, high: float) -> np.ndarray:
    inside = np.linspace(low, high, 61)
    return np.concatenate([inside, [np.nextafter(low, high), np.nextafter(high, low)]])


def value_and_slope(function: Callable[..., np.ndarray], x: np.ndarray) -> tuple[np.ndarray, ...]:
    return function(x), SLOPES[function](x)


def largest_error(found: np.ndarray, truth: list[mp.mpf], floor: float = 1e-280) -> float:
    pairs = zip(found, truth, strict=True)
    return max(float(abs(mp.mpf(float(a)) - b) / max(abs(b), mp.mpf(floor))) for a, b in pairs)


@pytest.mark.parametrize("function", TRUTH, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("low", "high", "value_error", "slope_error"), RANGES)
def test_value_and_derivative_in_every_range(function, low, high, value_error, slope_error):
    x = points(low, high)
    value, slope = value_and_slope(function, x)
    truth = [TRUTH[function](mp.mpf(float(t))) for t in x]
    # log EI passes through 0 near z = 0.9, where only its absolute error means anything
    floor = 0.1 if function is log_ei else 1e-280
    assert largest_error(value, [t[0] for t in truth], floor) < value_error
    assert largest_error(slope, [t[1] for t in truth]) < slope_error


def test_hazard_where_erfc_underflows():
    beta = np.linspace(-37.7, -37.5, 41)
    value, slope = value_and_slope(hazard, beta)
    truth = [true_hazard(mp.mpf(float(b))) for b in beta]
    assert largest_error(value, [t[0] for t in truth]) < 4e-16
    assert largest_error(slope, [t[1] for t in truth]) < 1e-15


def test_far_above_everything_is_flat():
    x = np.array([39.0, 40.0, 1e3, 1e6, 1e200, np.inf])
    for function in (hazard, log_ndtr):
        value, slope = value_and_slope(function, x)
        np.testing.assert_array_equal(value, 0.0)
        np.testing.assert_array_equal(slope, 0.0)
    value, slope = value_and_slope(log_ei, x[:-1])
    np.testing.assert_allclose(value, np.log(x[:-1]), rtol=1e-15)
    np.testing.assert_allclose(slope, 1 / x[:-1], rtol=1e-15)


def test_log_ei_asymptote():
    z = np.array([-1e4, -1e5, -1e6])
    asymptote = -(z**2) / 2 - np.log(np.sqrt(2 * np.pi)) - 2 * np.log(-z)
    np.testing.assert_allclose(log_ei(z), asymptote, rtol=1e-15)


@pytest.mark.parametrize("function", TRUTH, ids=lambda f: f.__name__)
def test_derivatives_are_those_of_the_values(function):
    x = np.linspace(-30, 6, 73)  # −5, the switch, among them
    assert -5.0 in x
    h = np.finfo(float).eps ** (1 / 3) * np.maximum(1, abs(x))
    central = (function(x + h) - function(x - h)) / (2 * h)
    np.testing.assert_allclose(SLOPES[function](x), central, rtol=2e-8, atol=1e-10)


def test_slope_of_the_variance_by_central_differences():
    beta = np.linspace(-30, 6, 73)
    h = np.finfo(float).eps ** (1 / 3) * np.maximum(1, abs(beta))
    ahead, back = truncated_moments(beta + h), truncated_moments(beta - h)
    _, slope = truncated_moments_and_slope(beta)
    central = (ahead.variance - back.variance) / (2 * h)
    np.testing.assert_allclose(slope, central, rtol=2e-7, atol=1e-10)


def test_everything_is_finite_everywhere():
    x = np.concatenate([-np.logspace(6, -6, 997), [0.0], np.logspace(-6, 6, 997)])
    for function in TRUTH:
        value, slope = value_and_slope(function, x)
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(slope))
    moments, slope = truncated_moments_and_slope(x)
    assert all(np.all(np.isfinite(m) & (m >= 0)) for m in moments)
    assert np.all(np.isfinite(slope) & (slope >= 0))


def test_no_floating_point_warning_escapes():
    """A host may have them all raised, underflow included."""
    x = np.concatenate(
        [-np.logspace(70, -6, 997), np.linspace(0, 45, 4501), np.logspace(2, 150, 9)]
    )
    with np.errstate(all="raise"):
        for function in TRUTH:
            value_and_slope(function, x)
        truncated_moments_and_slope(x)
        hazard(np.array([np.inf]))
        truncated_moments_and_slope(np.array([np.inf]))


def test_monotone_through_the_switch():
    x = np.linspace(-5.001, -4.999, 2001)
    assert np.all(np.diff(truncated_moments(x).hazard) < 0)
    assert np.all(np.diff(log_ndtr(x)) > 0)
    assert np.all(np.diff(log_ei(x)) > 0)


def test_hazard_of_the_moments_is_the_hazard():
    """By erfc and the fraction, and by erfcx."""
    beta = np.concatenate([-np.logspace(70, 0, 200), np.linspace(-1, 40, 200)])
    np.testing.assert_allclose(
        truncated_moments(beta).hazard, hazard(beta), rtol=1e-12, atol=1e-307
    )


def test_continued_fraction():
    """K_j against their definition, K₁ = r − t and K_{j+1} = j/K_j − t; the last is the worst."""
    t = np.concatenate([np.linspace(5, 40, 50), [1e3, 1e6]])
    found = lower_tail(t)
    for i, exact in enumerate(map(mp.mpf, t)):
        k1 = pdf(exact) / cdf(-exact) - exact
        k2 = 1 / k1 - exact
        k3 = 2 / k2 - exact
        for k, value, error in zip((k1, k2, k3), found, (1e-15, 1e-14, 2e-13), strict=True):
            assert abs(mp.mpf(float(value[i])) / k - 1) < error


def test_any_shape():
    x = np.linspace(-9, 9, 24).reshape(2, 3, 4)
    turned = np.swapaxes(x, 0, 2)  # not contiguous
    for function in TRUTH:
        assert function(x).shape == x.shape
        np.testing.assert_array_equal(function(x).ravel(), function(x.ravel()))
        np.testing.assert_array_equal(function(turned), np.swapaxes(function(x), 0, 2))
        assert function(np.asarray(0.5)).shape == function(np.asarray(-9.0)).shape == ()
        assert function(np.zeros((0, 3))).shape == (0, 3)
    assert all(m.shape == x.shape for m in truncated_moments(x))


def test_arguments_are_left_as_they_were():
    x = np.linspace(-9, 60, 24)
    before = x.copy()
    for function in (*TRUTH, truncated_moments_and_slope, log_ei_and_slope):
        function(x)
        np.testing.assert_array_equal(x, before)


def test_moments_are_one_family():
    """r′ = −(1 − v) and (β + r)′ = v, by central differences; v + (1 − v) = 1, β + r = excess."""
    beta = np.linspace(-60, 30, 181)
    moments = truncated_moments(beta)
    h = np.finfo(float).eps ** (1 / 3) * np.maximum(1, abs(beta))
    ahead, back = truncated_moments(beta + h), truncated_moments(beta - h)
    central = (ahead.hazard - back.hazard) / (2 * h)
    np.testing.assert_allclose(-moments.lost, central, rtol=1e-7, atol=1e-9)
    central = (ahead.excess - back.excess) / (2 * h)
    np.testing.assert_allclose(moments.variance, central, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(moments.lost + moments.variance, 1, rtol=1e-15)
    np.testing.assert_allclose(moments.excess, beta + moments.hazard, rtol=1e-14, atol=2e-14)


def test_moments_far_above():
    beta = np.array([39.0, 40.0, 41.0, 1e6, 1e300, np.inf])
    moments, slope = truncated_moments_and_slope(beta)
    np.testing.assert_array_equal(moments.excess, beta)
    np.testing.assert_array_equal(moments.variance, 1)
    np.testing.assert_array_equal([moments.hazard, moments.lost, slope], 0)
