"""Functions of the standard normal against arbitrary-precision arithmetic, tails included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from optpair.acquisition.normal import hazard, log_ei, log_ndtr, lower_tail, truncated_moments

DIGITS = 60


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True), mp.workdps(DIGITS):
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


@partial(jax.jit, static_argnums=0)
def forward(function: Callable[..., jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.jvp(function, (x,), (jnp.ones_like(x),))


def value_and_slope(function: Callable[..., jax.Array], x: np.ndarray) -> tuple[np.ndarray, ...]:
    value, slope = forward(function, jnp.asarray(x))
    return np.asarray(value), np.asarray(slope)


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


def test_hazard_where_erfcx_of_jax_is_zero():
    beta = np.linspace(-37.7, -37.5, 41)
    assert 0.0 in np.asarray(jax.scipy.special.erfcx(-beta / np.sqrt(2)))  # why we have our own
    value, slope = value_and_slope(hazard, beta)
    truth = [true_hazard(mp.mpf(float(b))) for b in beta]
    assert largest_error(value, [t[0] for t in truth]) < 4e-16
    assert largest_error(slope, [t[1] for t in truth]) < 1e-15


def test_far_above_everything_is_flat():
    x = np.array([38.0, 40.0, 1e3, 1e6, 1e200, np.inf])
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
    np.testing.assert_allclose(np.asarray(log_ei(jnp.asarray(z))), asymptote, rtol=1e-15)


@pytest.mark.parametrize("function", TRUTH, ids=lambda f: f.__name__)
def test_derivatives_are_those_of_the_values(function):
    x = np.linspace(-30, 6, 73)  # −5, the switch, among them
    assert -5.0 in x
    value, slope, second = (
        jax.jit(jax.vmap(f)) for f in (function, jax.grad(function), jax.grad(jax.grad(function)))
    )
    h = np.finfo(float).eps ** (1 / 3) * np.maximum(1, abs(x))
    central = (value(x + h) - value(x - h)) / (2 * h)
    np.testing.assert_allclose(slope(x), central, rtol=2e-8, atol=1e-10)
    central = (slope(x + h) - slope(x - h)) / (2 * h)
    np.testing.assert_allclose(second(x), central, rtol=1e-6, atol=1e-8)


def test_derivatives_are_finite_everywhere_in_reverse_mode():
    x = jnp.concatenate([-jnp.logspace(6, -6, 997), jnp.logspace(-6, 6, 997)])
    for function in TRUTH:
        value = jax.jit(function)(x)
        slope = jax.jit(jax.grad(lambda x, f=function: jnp.sum(f(x))))(x)
        assert bool(jnp.all(jnp.isfinite(value)))
        assert bool(jnp.all(jnp.isfinite(slope)))


def test_monotone_through_the_switch():
    x = jnp.linspace(-5.001, -4.999, 2001)
    assert bool(jnp.all(jnp.diff(jax.jit(hazard)(x)) < 0))
    assert bool(jnp.all(jnp.diff(jax.jit(log_ndtr)(x)) > 0))
    assert bool(jnp.all(jnp.diff(jax.jit(log_ei)(x)) > 0))


@pytest.mark.parametrize(
    ("levels", "start", "errors"),
    [(24, 5.0, (1e-15, 1e-14, 2e-13)), (10, 8.0, (2e-12, 5e-11, 1e-9))],
)
def test_continued_fraction(levels, start, errors):
    """K_j against their definition, K₁ = r − t and K_{j+1} = j/K_j − t; the last is the worst."""
    t = np.concatenate([np.linspace(start, 40, 50), [1e3, 1e6]])
    found = [np.asarray(k) for k in jax.jit(lambda t: lower_tail(t, levels))(t)]
    for i, exact in enumerate(map(mp.mpf, t)):
        k1 = pdf(exact) / cdf(-exact) - exact
        k2 = 1 / k1 - exact
        k3 = 2 / k2 - exact
        for k, value, error in zip((k1, k2, k3), found, errors, strict=True):
            assert abs(mp.mpf(float(value[i])) / k - 1) < error


def test_any_shape():
    x = jnp.linspace(-9, 9, 24).reshape(2, 3, 4)
    for function in map(jax.jit, TRUTH):
        assert function(x).shape == x.shape
        np.testing.assert_allclose(function(x).ravel(), function(x.ravel()), rtol=1e-14)
        assert function(jnp.float64(0.5)).shape == ()
    assert all(m.shape == x.shape for m in jax.jit(truncated_moments)(x))


def test_moments_are_one_family():
    """r′ = −(1 − v), (β + r)′ = v, and (1 − v)′ = −v′."""
    beta = jnp.linspace(-60, 30, 181)
    one = jnp.ones_like(beta)
    moments, along = jax.jit(lambda b: jax.jvp(truncated_moments, (b,), (one,)))(beta)
    np.testing.assert_array_equal(along.hazard, -moments.lost)
    np.testing.assert_array_equal(along.excess, moments.variance)
    np.testing.assert_array_equal(along.lost, -along.variance)
    np.testing.assert_allclose(moments.lost + moments.variance, 1, rtol=1e-15)
