"""The truncation terms against arbitrary precision, closed forms, limits and Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special

from optpair.acquisition.normal import truncated_moments
from optpair.acquisition.truncation import (
    exact_density,
    exact_gain,
    moment_matched_gain,
    noiseless_gain,
    truncated_variance_ratio,
)


def variance_lost(beta: jax.Array) -> jax.Array:
    """1 − v(β)."""
    return truncated_moments(beta).lost


ratio, lost_share, matched_of, gain_of, density = map(
    jax.jit,
    (truncated_variance_ratio, variance_lost, moment_matched_gain, exact_gain, exact_density),
)
STEP = np.finfo(float).eps ** (1 / 3)


@partial(jax.jit, static_argnums=0)
def forward(function: Callable[..., jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.jvp(function, (x,), (jnp.ones_like(x),))


def log_cdf(x: mp.mpf) -> mp.mpf:
    root = mp.sqrt(2)
    return mp.log1p(-mp.erfc(x / root) / 2) if x > 3 else mp.log(mp.erfc(-x / root) / 2)


def true_variance(beta: float) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """v, 1 − v and v′, with digits to spare for the cancellation."""
    with mp.workdps(80):
        b = mp.mpf(beta)
        r = mp.exp(-b * b / 2) / mp.sqrt(2 * mp.pi) / (mp.erfc(-b / mp.sqrt(2)) / 2)
        lost = r * (b + r)
        return 1 - lost, lost, r * ((b + r) ** 2 - (1 - lost))


def true_gain(beta: mp.mpf, rho2: mp.mpf) -> mp.mpf:
    """½ρ²βr − log Φ(β) + E[log Φ(a)]: not the form that the library integrates."""
    rho, c, base = mp.sqrt(rho2), mp.sqrt(1 - rho2), log_cdf(beta)
    r = mp.exp(-beta * beta / 2 - base) / mp.sqrt(2 * mp.pi)
    below = min(beta, mp.mpf(0))
    reach = below + mp.sqrt(below**2 + 200)
    low = rho * (below - reach) - 14 * c if beta < 0 else mp.mpf(-15)
    high = min(rho * beta, mp.mpf(15)) + 14 * c
    edge, width = beta / rho, c / rho
    marks = [edge + k * width for k in (-14, -9, -5, -2, 0, 2, 5)]
    marks += [rho * beta + k * c for k in (-5, 0, 5)] + [rho * (beta - reach / k) for k in (3, 10)]
    marks += [mp.mpf(-5), mp.mpf(0)]
    inside = sorted({low, high, *(m for m in marks if low < m < high)})

    def integrand(z: mp.mpf) -> mp.mpf:
        log_edge = log_cdf((beta - rho * z) / c)
        return mp.exp(-z * z / 2 - base + log_edge) / mp.sqrt(2 * mp.pi) * log_edge

    return rho2 * beta * r / 2 - base + mp.quad(integrand, inside)


# --- v(β) -------------------------------------------------------------------------------------

REFERENCE_V = {
    -30: 0.00110377151189,
    -10: 0.00944537782566,
    -5: 0.0326964346171,
    -1: 0.19909766557,
    0: 0.363380227632,
    1: 0.629686285777,
    3: 0.986666788458,
}


def test_reference_values_of_v():
    beta = np.array(list(REFERENCE_V), float)
    found = np.asarray(ratio(jnp.asarray(beta)))
    # twelve digits are given
    np.testing.assert_allclose(found, list(REFERENCE_V.values()), rtol=5e-12)


# Relative errors of v, of 1 − v and of their derivative. β = −5 belongs to the form above it.
RANGES = [
    (-1e6, -1e4, 1e-15, 4e-16, 4e-15),
    (-1e4, -100.0, 1e-15, 4e-16, 4e-15),
    (-100.0, -5.0, 2e-13, 1e-14, 4e-12),
    (-5.0, -2.0, 1e-12, 4e-14, 2e-11),
    (-2.0, 2.0, 4e-14, 1e-14, 4e-13),
    (2.0, 5.0, 4e-16, 1e-14, 1e-14),
    (5.0, 37.0, 4e-16, 4e-13, 4e-13),
]


@pytest.mark.parametrize(("low", "high", "v_error", "lost_error", "slope_error"), RANGES)
def test_variance_and_derivative_in_every_range(low, high, v_error, lost_error, slope_error):
    beta = np.linspace(low, high, 61)
    found = (*forward(truncated_variance_ratio, beta), *forward(variance_lost, beta))
    v, v_slope, lost, lost_slope = map(np.asarray, found)
    truth = [true_variance(float(b)) for b in beta]
    for i, (v_true, lost_true, slope_true) in enumerate(truth):
        assert abs(float(v[i] / v_true - 1)) < v_error
        assert abs(float(lost[i] / lost_true - 1)) < lost_error
        assert abs(float(v_slope[i] / slope_true - 1)) < slope_error
        assert float(lost_slope[i]) == -float(v_slope[i])


def test_series_of_v_far_down():
    beta = np.array([-1e3, -1e4, -1e6])
    series = 1 / beta**2 - 6 / beta**4 + 50 / beta**6
    np.testing.assert_allclose(ratio(jnp.asarray(beta)), series, rtol=1e-14)


def test_v_grows_with_beta():
    beta = jnp.concatenate([-jnp.logspace(6, -2, 4001), jnp.linspace(-0.01, 8, 2001)[1:]])
    assert bool(jnp.all(jnp.diff(ratio(beta)) > 0))
    across = jnp.linspace(-5.001, -4.999, 201)  # the switch of forms
    assert bool(jnp.all(jnp.diff(ratio(across)) > 0))
    assert bool(jnp.all(jnp.diff(lost_share(beta)) <= 0))


def test_nothing_is_lost_far_above():
    beta = jnp.asarray([38.0, 50.0, 1e3, 1e6, jnp.inf])
    slope = jax.jit(jax.vmap(jax.grad(variance_lost)))(beta)
    np.testing.assert_array_equal(lost_share(beta), 0)
    np.testing.assert_array_equal(ratio(beta), 1)
    np.testing.assert_array_equal(slope, 0)


def truncated_samples(beta: float, n: int, seed: int) -> np.ndarray:
    uniform = np.random.default_rng(seed).uniform(size=n)
    return special.ndtri(uniform * special.ndtr(beta))


@pytest.mark.parametrize("beta", [-6.0, -1.0, 0.5, 2.0])
def test_v_by_monte_carlo(beta):
    squares = (f := truncated_samples(beta, 200_000, seed=1)) - f.mean()
    squares = squares**2
    error = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - float(ratio(jnp.float64(beta)))) < 4 * error


# --- moment matching --------------------------------------------------------------------------

REFERENCE_GAINS = [  # β, ρ², exact, moment-matched
    (-1.0, 0.5, 0.2564664170, 0.2557889260),
    (0.0, 0.9, 0.4661035642, 0.4254362151),
    (1.0, 0.99, 0.2899964713, 0.2283349220),
    (2.0, 0.1, 0.005712899662, 0.005709881580),
]


@pytest.mark.parametrize(("beta", "rho2", "exact", "matched"), REFERENCE_GAINS)
def test_reference_gains(beta, rho2, exact, matched):
    b, r = jnp.float64(beta), jnp.float64(rho2)
    # ten digits are given
    np.testing.assert_allclose(gain_of(b, r), exact, rtol=2e-10)
    np.testing.assert_allclose(matched_of(b, r, 1 - r), matched, rtol=2e-10)


@pytest.mark.parametrize("noise", [0.0, 1e-300, 1e-12, 1e-3, 1.0, 1e6])
def test_moment_matched_gain_keeps_its_precision(noise):
    """Relative 2e-12 in v, hence in the gain, also for tiny gains and without noise."""
    beta = np.concatenate([-np.logspace(6, 0, 13), [0.0, 1.0, 5.0, 20.0, 36.0]])
    s = 0.7
    found = matched_of(jnp.asarray(beta), jnp.float64(s), jnp.float64(noise))
    with mp.workdps(80):
        for b, gain in zip(beta, np.asarray(found), strict=True):
            _, lost, _ = true_variance(b)
            truth = -mp.log1p(-mp.mpf(s) * lost / (mp.mpf(s) + mp.mpf(noise))) / 2
            assert abs(float(gain / truth - 1)) < 2e-12


def test_moment_matched_gain_is_positive_and_smooth_everywhere():
    beta = jnp.concatenate([-jnp.logspace(6, -3, 301), jnp.logspace(-3, 6, 301)])
    b, s, noise = jnp.meshgrid(
        beta, jnp.asarray([0.0, 1e-12, 0.3, 10.0]), jnp.asarray([0.0, 1e-30, 1e-6, 1.0])
    )
    gain = matched_of(b, s, noise)
    assert bool(jnp.all((gain >= 0) & jnp.isfinite(gain)))
    total = jax.jit(jax.grad(lambda *a: jnp.sum(moment_matched_gain(*a)), (0, 1)))
    known = (s > 0) | (noise > 0)
    by_beta, by_s = total(b, s, noise)
    assert bool(jnp.all(jnp.isfinite(by_beta[known]) & jnp.isfinite(by_s[known])))
    assert bool(jnp.all(by_beta <= 0))
    nothing = matched_of(jnp.float64(-1.0), jnp.float64(0.0), jnp.float64(0.0))
    assert float(nothing) == 0


def test_moment_matched_gradient_by_central_differences():
    rng = np.random.default_rng(2)
    beta, s, noise = rng.uniform(-12, 5, 100), rng.uniform(0.1, 2, 100), rng.uniform(0.01, 1, 100)
    slopes = jax.jit(jax.vmap(jax.grad(moment_matched_gain, (0, 1, 2))))(beta, s, noise)
    for k, slope in enumerate(slopes):
        step = [STEP * np.abs(a) if i == k else 0.0 for i, a in enumerate((beta, s, noise))]
        ahead = matched_of(beta + step[0], s + step[1], noise + step[2])
        back = matched_of(beta - step[0], s - step[1], noise - step[2])
        np.testing.assert_allclose(slope, (ahead - back) / (2 * step[k]), rtol=1e-6, atol=1e-9)


# --- the exact gain ---------------------------------------------------------------------------

RHO2 = [1e-6, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-6, 1 - 1e-9]


@pytest.mark.parametrize("beta", [-50.0, -12.0, -6.0, -1.0, 0.0, 1.0, 3.0, 37.0])
def test_exact_gain_by_quadrature_in_high_precision(beta):
    found = np.asarray(gain_of(jnp.full(len(RHO2), beta), jnp.asarray(RHO2)))
    with mp.workdps(20):
        truth = [true_gain(mp.mpf(beta), mp.mpf(rho2)) for rho2 in RHO2]
    np.testing.assert_allclose(found, np.array(truth, float), rtol=0, atol=4e-13)


@pytest.mark.parametrize(
    ("beta", "rho2"),
    [(-40.0, 0.3), (-40.0, 0.9995), (-6.0, 0.99), (0.0, 0.5), (1.5, 0.9999)],
)
def test_exact_gain_derivatives_in_high_precision(beta, rho2):
    by_beta, by_rho2 = jax.jit(jax.grad(exact_gain, (0, 1)))(jnp.float64(beta), jnp.float64(rho2))
    with mp.workdps(24):
        b, r, h = mp.mpf(beta), mp.mpf(rho2), mp.mpf("1e-6")
        beta_slope = (true_gain(b + h, r) - true_gain(b - h, r)) / (2 * h)
        h *= 1 - r
        rho2_slope = (true_gain(b, r + h) - true_gain(b, r - h)) / (2 * h)
    np.testing.assert_allclose(by_beta, float(beta_slope), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(by_rho2, float(rho2_slope), rtol=1e-9, atol=1e-12)


def test_exact_gain_derivatives_by_central_differences():
    rng = np.random.default_rng(3)
    beta, rho2 = rng.uniform(-12, 6, 300), rng.uniform(0.01, 0.999, 300)
    by_beta, by_rho2 = jax.jit(jax.grad(lambda b, r: jnp.sum(exact_gain(b, r)), (0, 1)))(beta, rho2)
    step = STEP * np.maximum(1, np.abs(beta))
    central = (gain_of(beta + step, rho2) - gain_of(beta - step, rho2)) / (2 * step)
    np.testing.assert_allclose(by_beta, central, rtol=1e-6, atol=1e-8)
    step = STEP * (1 - rho2)
    central = (gain_of(beta, rho2 + step) - gain_of(beta, rho2 - step)) / (2 * step)
    np.testing.assert_allclose(by_rho2, central, rtol=1e-6, atol=1e-7)


@pytest.fixture(scope="module")
def grid() -> tuple[np.ndarray, ...]:
    """β, ρ², gain, moment-matched gain and the two slopes over the whole range."""
    beta = np.concatenate([-np.logspace(6, -2, 200), np.logspace(-2, 6, 100)])
    b, r = (a.ravel() for a in np.meshgrid(beta, [0.0, 1e-12, *RHO2, 1 - 1e-12, 1.0]))
    with jax.enable_x64(True):
        gain = gain_of(b, r)
        matched = matched_of(b, r, 1 - r)
        slopes = jax.jit(jax.grad(lambda b, r: jnp.sum(exact_gain(b, r)), (0, 1)))(b, r)
    return b, r, *(np.asarray(a) for a in (gain, matched, *slopes))


def test_exact_gain_is_finite_everywhere(grid):
    for array in grid:
        assert np.all(np.isfinite(array))


def test_moment_matching_is_a_lower_bound(grid):
    _, _, gain, matched, _, _ = grid
    assert np.all(gain >= matched - 1e-13)


def test_exact_gain_falls_with_beta_and_grows_with_rho2(grid):
    _, rho2, _, _, by_beta, by_rho2 = grid
    assert np.all(by_beta <= 1e-12)
    assert np.all(by_rho2[rho2 > 1e-9] >= -1e-10)


def test_exact_gain_vanishes_far_above(grid):
    beta, _, gain, _, by_beta, by_rho2 = grid
    far = beta > 38
    np.testing.assert_allclose(gain[far], 0, atol=1e-15)
    np.testing.assert_allclose(by_beta[far], 0, atol=1e-15)
    np.testing.assert_allclose(by_rho2[far], 0, atol=1e-15)


@pytest.mark.parametrize("beta", [-20.0, -3.0, -1.0, 0.0, 1.0, 3.0])
def test_exact_gain_without_noise(beta):
    """−log Φ(β) + ½ β φ(β)/Φ(β), approached at the rate √(1−ρ²)."""
    log_probability = special.log_ndtr(beta)
    r = np.exp(-(beta**2) / 2 - log_probability) / np.sqrt(2 * np.pi)
    limit = -log_probability + beta * r / 2
    margin = np.array([1e-4, 1e-6, 1e-8, 1e-10])
    left = limit - np.asarray(gain_of(jnp.float64(beta), jnp.asarray(1 - margin)))
    assert np.all(left > 0)
    assert np.all(left < 2 * r * np.sqrt(margin) + 1e-12)
    np.testing.assert_allclose(left[1:-1] / left[2:], 10, rtol=0.02)


def test_half_normal_is_half_of_a_normal():
    np.testing.assert_allclose(gain_of(jnp.float64(0), jnp.float64(1)), np.log(2), atol=2e-6)


@pytest.mark.parametrize("rho2", [1e-3, 0.3, 0.9, 0.9999])
@pytest.mark.parametrize("beta", [-50.0, -8.0, -1.0, 0.0, 2.0, 37.0])
def test_exact_density_integrates_to_one(beta, rho2):
    rho, c = np.sqrt(rho2), np.sqrt(1 - rho2)
    low = rho * min(beta, 0) - rho * (min(beta, 0) + np.sqrt(min(beta, 0) ** 2 + 80)) - 9 * c
    high = rho * min(beta, 9) + 9 * c
    edges = np.linspace(low, high, 6001)  # panels narrower than √(1−ρ²) and 1/β
    x, w = np.polynomial.legendre.leggauss(10)
    half = np.diff(edges)[:, None] / 2
    z = edges[:-1, None] + half * (1 + x)
    mass = np.sum(half * w * np.asarray(density(z, jnp.float64(beta), jnp.float64(rho2))))
    assert abs(mass - 1) < 2e-12


@pytest.mark.parametrize(("beta", "rho2"), [(-1.0, 0.5), (0.5, 0.9), (2.0, 0.99)])
def test_exact_density_is_the_noisy_truncated_normal(beta, rho2):
    """Against the convolution, which the closed form replaces."""
    rho, c = np.sqrt(rho2), np.sqrt(1 - rho2)
    for z in (-2.5, -0.7, 0.0, 0.9 * beta):

        def joint(f: float, z: float = z) -> float:
            noise = (z - rho * f) / c
            return np.exp(-(f**2) / 2 - noise**2 / 2) / (2 * np.pi * c)

        near = [p for p in (z / rho - 3 * c, z / rho, z / rho + 3 * c) if p < beta]
        mass, _ = integrate.quad(joint, -12, beta, points=near or None, epsabs=1e-13)
        found = float(density(jnp.float64(z), jnp.float64(beta), jnp.float64(rho2)))
        np.testing.assert_allclose(found, mass / special.ndtr(beta), rtol=1e-10)


@pytest.mark.parametrize(
    ("beta", "rho2"), [(-4.0, 0.95), (-1.0, 0.5), (0.0, 0.9), (1.0, 0.99), (2.0, 0.3)]
)
def test_exact_gain_by_monte_carlo(beta, rho2):
    f = truncated_samples(beta, 200_000, seed=4)
    noise = np.random.default_rng(5).normal(size=len(f))
    y = np.sqrt(rho2) * f + np.sqrt(1 - rho2) * noise
    log_density = np.log(np.asarray(density(jnp.asarray(y), beta, rho2)))
    gain = 0.5 * np.log(2 * np.pi * np.e) + log_density.mean()
    error = log_density.std() / np.sqrt(len(y))
    assert abs(gain - float(gain_of(jnp.float64(beta), jnp.float64(rho2)))) < 4 * error


def test_exact_gain_broadcasts():
    beta, rho2 = jnp.linspace(-3, 3, 5)[:, None], jnp.asarray([0.2, 0.8, 0.99])
    gain = gain_of(beta, rho2)
    assert gain.shape == (5, 3)
    np.testing.assert_allclose(gain[1, 2], gain_of(beta[1, 0], rho2[2]), rtol=1e-13)


def test_exact_gain_holds_one_node_at_a_time():
    """Neither the value nor the gradient keeps an array for each of the 96 nodes."""
    x = jnp.full(10_000, 0.5)
    for function in (exact_gain, jax.grad(lambda b, r: jnp.sum(exact_gain(b, r)), (0, 1))):
        memory = jax.jit(function).lower(x, x).compile().memory_analysis()
        assert memory.temp_size_in_bytes < 48 * x.nbytes


# --- without noise ------------------------------------------------------------------------------


def true_noiseless(beta: float) -> tuple[mp.mpf, mp.mpf]:
    """−log Φ + ½βr and its derivative, with digits to spare for the cancellation."""
    with mp.workdps(80):
        b = mp.mpf(beta)
        r = mp.exp(-b * b / 2) / mp.sqrt(2 * mp.pi) / (mp.erfc(-b / mp.sqrt(2)) / 2)
        return b * r / 2 - log_cdf(b), -r * (1 + b * (b + r)) / 2


@pytest.mark.parametrize(
    ("low", "high", "error"),
    [(-1e6, -5.0, 1e-14), (-5.0, 2.0, 2e-12), (2.0, 37.0, 1e-12)],
)
def test_noiseless_gain_and_its_slope(low: float, high: float, error: float) -> None:
    beta = -np.geomspace(5.0 + 1e-09, -low, 30) if high == -5.0 else np.linspace(low, high, 40)
    value, slope = (np.asarray(v) for v in forward(noiseless_gain, jnp.asarray(beta)))
    truth = [true_noiseless(b) for b in beta]
    np.testing.assert_allclose(value, [float(t[0]) for t in truth], rtol=error)
    np.testing.assert_allclose(slope, [float(t[1]) for t in truth], rtol=5 * error)


def test_noiseless_gain_is_what_the_exact_one_tends_to() -> None:
    """Noise blurs the edge over √(1 − ρ²) = 1e-6."""
    beta = jnp.linspace(-6.0, 6.0, 25)
    limit = np.asarray(noiseless_gain(beta))
    np.testing.assert_allclose(gain_of(beta, jnp.full(25, 1 - 1e-12)), limit, rtol=1e-4, atol=1e-9)
    assert np.all(np.diff(limit) < 0)


def test_noiseless_gain_far_out() -> None:
    """log|β| + log √2π − ½ far below, 0 far above, and slopes of 1/β and 0."""
    beta = np.array([-1e60, -1e12, 40.0, 1e300])
    value, slope = (np.asarray(v) for v in forward(noiseless_gain, jnp.asarray(beta)))
    expected = np.log(-beta[:2]) + np.log(2 * np.pi) / 2 - 0.5
    np.testing.assert_allclose(value[:2], expected, rtol=1e-14)
    np.testing.assert_allclose(slope[:2], 1 / beta[:2], rtol=1e-12)
    assert value[2:].tolist() == slope[2:].tolist() == [0.0, 0.0]
