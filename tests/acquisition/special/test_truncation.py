"""The truncation terms against arbitrary precision, closed forms, limits and Monte Carlo."""

from __future__ import annotations

import tracemalloc

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special

from optpair.acquisition.special.normal import truncated_moments, truncated_moments_and_slope
from optpair.acquisition.special.truncation import (
    divergence,
    divergence_and_slopes,
    exact_density,
    exact_gain,
    exact_gain_and_slopes,
    moment_matched_gain,
    moment_matched_gain_and_slopes,
    noiseless_gain,
    noiseless_gain_and_slope,
    truncated_variance_ratio,
)

STEP = np.finfo(float).eps ** (1 / 3)


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


def test_no_floating_point_warning_escapes():
    """A host may have them all raised, underflow included."""
    beta = np.concatenate([-np.logspace(6, -6, 301), np.linspace(0, 45, 451), np.logspace(2, 6, 9)])
    rho2 = np.array([0.0, 1e-12, 0.5, 1 - 1e-9, 1.0])[:, None]
    small = np.array([0.0, 1e-300, 1e-150, 1e-9, 1.0, 1e9])
    with np.errstate(all="raise"):
        truncated_variance_ratio(beta)
        noiseless_gain_and_slope(beta)
        moment_matched_gain_and_slopes(beta, small[:, None], small[:, None, None])
        exact_gain_and_slopes(beta, rho2)
        divergence_and_slopes(beta, rho2)
        exact_density(np.array([-1e3, -9.0, 0.0, 9.0, 1e3])[:, None, None], beta, rho2)


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
    found = truncated_variance_ratio(beta)
    # twelve digits are given
    np.testing.assert_allclose(found, list(REFERENCE_V.values()), rtol=5e-12)


# Relative errors of v, of 1 − v and of their derivative. β = −5 belongs to the form below it.
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
    (_, _, v, lost), v_slope = truncated_moments_and_slope(beta)
    truth = [true_variance(float(b)) for b in beta]
    for i, (v_true, lost_true, slope_true) in enumerate(truth):
        assert abs(float(v[i] / v_true - 1)) < v_error
        assert abs(float(lost[i] / lost_true - 1)) < lost_error
        assert abs(float(v_slope[i] / slope_true - 1)) < slope_error


def test_series_of_v_far_down():
    beta = np.array([-1e3, -1e4, -1e6])
    series = 1 / beta**2 - 6 / beta**4 + 50 / beta**6
    np.testing.assert_allclose(truncated_variance_ratio(beta), series, rtol=1e-14)


def test_v_grows_with_beta():
    beta = np.concatenate([-np.logspace(6, -2, 4001), np.linspace(-0.01, 8, 2001)[1:]])
    assert np.all(np.diff(truncated_variance_ratio(beta)) > 0)
    across = np.linspace(-5.001, -4.999, 201)  # the switch of forms
    assert np.all(np.diff(truncated_variance_ratio(across)) > 0)
    assert np.all(np.diff(truncated_moments(beta).lost) <= 0)


def test_nothing_is_lost_far_above():
    beta = np.asarray([39.0, 50.0, 1e3, 1e6, np.inf])
    moments, slope = truncated_moments_and_slope(beta)
    np.testing.assert_array_equal(moments.lost, 0)
    np.testing.assert_array_equal(moments.variance, 1)
    np.testing.assert_array_equal(slope, 0)


def truncated_samples(beta: float, n: int, seed: int) -> np.ndarray:
    uniform = np.random.default_rng(seed).uniform(size=n)
    return special.ndtri(uniform * special.ndtr(beta))


@pytest.mark.parametrize("beta", [-6.0, -1.0, 0.5, 2.0])
def test_v_by_monte_carlo(beta):
    squares = (f := truncated_samples(beta, 200_000, seed=1)) - f.mean()
    squares = squares**2
    error = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - float(truncated_variance_ratio(np.asarray(beta)))) < 4 * error


# --- moment matching --------------------------------------------------------------------------

REFERENCE_GAINS = [  # β, ρ², exact, moment-matched
    (-1.0, 0.5, 0.2564664170, 0.2557889260),
    (0.0, 0.9, 0.4661035642, 0.4254362151),
    (1.0, 0.99, 0.2899964713, 0.2283349220),
    (2.0, 0.1, 0.005712899662, 0.005709881580),
]


@pytest.mark.parametrize(("beta", "rho2", "exact", "matched"), REFERENCE_GAINS)
def test_reference_gains(beta, rho2, exact, matched):
    b, r = np.asarray(beta), np.asarray(rho2)
    # ten digits are given
    np.testing.assert_allclose(exact_gain(b, r), exact, rtol=2e-10)
    np.testing.assert_allclose(moment_matched_gain(b, r, np.asarray(1 - r)), matched, rtol=2e-10)


@pytest.mark.parametrize("noise", [0.0, 1e-300, 1e-12, 1e-3, 1.0, 1e6])
def test_moment_matched_gain_keeps_its_precision(noise):
    """Relative 2e-12 in v, hence in the gain, also for tiny gains and without noise."""
    beta = np.concatenate([-np.logspace(6, 0, 13), [0.0, 1.0, 5.0, 20.0, 36.0]])
    s = 0.7
    found = moment_matched_gain(beta, np.asarray(s), np.asarray(noise))
    with mp.workdps(80):
        for b, gain in zip(beta, found, strict=True):
            _, lost, _ = true_variance(b)
            truth = -mp.log1p(-mp.mpf(s) * lost / (mp.mpf(s) + mp.mpf(noise))) / 2
            assert abs(float(gain / truth - 1)) < 2e-12


def test_moment_matched_gain_is_positive_and_smooth_everywhere():
    beta = np.concatenate([-np.logspace(6, -3, 301), np.logspace(-3, 6, 301)])
    b, s, noise = np.meshgrid(beta, [0.0, 1e-12, 0.3, 10.0], [0.0, 1e-30, 1e-6, 1.0])
    gain, by_beta, by_s, by_noise = moment_matched_gain_and_slopes(b, s, noise)
    assert np.all((gain >= 0) & np.isfinite(gain))
    assert np.all((by_beta <= 0) & np.isfinite(by_beta))
    assert np.all((by_s >= 0) & np.isfinite(by_s))
    assert np.all((by_noise <= 0) & np.isfinite(by_noise))
    for array in (gain, by_beta, by_s, by_noise):
        assert np.all(array[(s == 0) & (noise == 0)] == 0)


def test_moment_matched_slopes_by_central_differences():
    rng = np.random.default_rng(2)
    beta, s, noise = rng.uniform(-12, 5, 100), rng.uniform(0.1, 2, 100), rng.uniform(0.01, 1, 100)
    gain, *slopes = moment_matched_gain_and_slopes(beta, s, noise)
    np.testing.assert_array_equal(gain, moment_matched_gain(beta, s, noise))
    for k, slope in enumerate(slopes):
        step = [STEP * np.abs(a) if i == k else 0.0 for i, a in enumerate((beta, s, noise))]
        ahead = moment_matched_gain(beta + step[0], s + step[1], noise + step[2])
        back = moment_matched_gain(beta - step[0], s - step[1], noise - step[2])
        np.testing.assert_allclose(slope, (ahead - back) / (2 * step[k]), rtol=1e-6, atol=1e-9)


def test_moment_matched_slopes_keep_their_precision():
    """Relative errors, also where the noise is all or nothing."""
    beta = np.array([-1e6, -1e3, -20.0, -5.0, -1.0, 0.0, 3.0, 20.0, 36.0])
    for s, noise in ((0.7, 1e-12), (0.7, 0.1), (1e-9, 1.0), (3.0, 1e6)):
        _, *slopes = moment_matched_gain_and_slopes(beta, np.asarray(s), np.asarray(noise))
        with mp.workdps(80):
            for i, b in enumerate(beta):
                v, lost, v_slope = true_variance(b)
                left, total = s * v + mp.mpf(noise), mp.mpf(s) + mp.mpf(noise)
                truth = (-s * v_slope / left, noise * lost / left / total, -s * lost / left / total)
                for slope, t in zip(slopes, truth, strict=True):
                    assert abs(float(slope[i] / (t / 2) - 1)) < 3e-11


@pytest.mark.parametrize(
    "shapes", [((3, 4, 5), (3, 4, 5), (3, 1, 1)), ((5,), (4, 1), ()), ((), (2, 3), (3,)), ((),) * 3]
)
def test_moment_matched_gain_broadcasts(shapes):
    rng = np.random.default_rng(6)
    arrays = [np.asarray(rng.uniform(0.1, 2, shape)) for shape in shapes]
    before = [a.copy() for a in arrays]
    found = moment_matched_gain_and_slopes(*arrays)
    slow = moment_matched_gain_and_slopes(*(a.copy() for a in np.broadcast_arrays(*arrays)))
    for a, b in zip(found, slow, strict=True):
        assert a.shape == np.broadcast_shapes(*shapes)
        np.testing.assert_allclose(a, b, rtol=1e-14)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


# --- the exact gain ---------------------------------------------------------------------------

RHO2 = [1e-6, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-6, 1 - 1e-9]


@pytest.mark.parametrize("beta", [-50.0, -12.0, -6.0, -1.0, 0.0, 1.0, 3.0, 37.0])
def test_exact_gain_by_quadrature_in_high_precision(beta):
    found = exact_gain(np.full(len(RHO2), beta), np.asarray(RHO2))
    with mp.workdps(20):
        truth = [true_gain(mp.mpf(beta), mp.mpf(rho2)) for rho2 in RHO2]
    np.testing.assert_allclose(found, np.array(truth, float), rtol=0, atol=4e-13)


@pytest.mark.parametrize(
    ("beta", "rho2"),
    [(-40.0, 0.3), (-40.0, 0.9995), (-6.0, 0.99), (0.0, 0.5), (1.5, 0.9999)],
)
def test_exact_gain_derivatives_in_high_precision(beta, rho2):
    _, by_beta, by_rho2 = exact_gain_and_slopes(np.asarray(beta), np.asarray(rho2))
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
    gain, by_beta, by_rho2 = exact_gain_and_slopes(beta, rho2)
    np.testing.assert_array_equal(gain, exact_gain(beta, rho2))
    step = STEP * np.maximum(1, np.abs(beta))
    central = (exact_gain(beta + step, rho2) - exact_gain(beta - step, rho2)) / (2 * step)
    np.testing.assert_allclose(by_beta, central, rtol=1e-6, atol=1e-8)
    step = STEP * (1 - rho2)
    central = (exact_gain(beta, rho2 + step) - exact_gain(beta, rho2 - step)) / (2 * step)
    np.testing.assert_allclose(by_rho2, central, rtol=1e-6, atol=1e-7)


@pytest.fixture(scope="module")
def grid() -> tuple[np.ndarray, ...]:
    """β, ρ², gain, moment-matched gain and the two slopes over the whole range."""
    beta = np.concatenate([-np.logspace(6, -2, 200), np.logspace(-2, 6, 100)])
    b, r = (a.ravel() for a in np.meshgrid(beta, [0.0, 1e-12, *RHO2, 1 - 1e-12, 1.0]))
    gain, *slopes = exact_gain_and_slopes(b, r)
    return b, r, gain, moment_matched_gain(b, r, 1 - r), *slopes


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
    left = limit - exact_gain(np.asarray(beta), 1 - margin)
    assert np.all(left > 0)
    assert np.all(left < 2 * r * np.sqrt(margin) + 1e-12)
    np.testing.assert_allclose(left[1:-1] / left[2:], 10, rtol=0.02)


def test_half_normal_is_half_of_a_normal():
    np.testing.assert_allclose(exact_gain(np.asarray(0.0), np.asarray(1.0)), np.log(2), atol=2e-6)


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
    mass = np.sum(half * w * exact_density(z, np.asarray(beta), np.asarray(rho2)))
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
        found = float(exact_density(np.asarray(z), np.asarray(beta), np.asarray(rho2)))
        np.testing.assert_allclose(found, mass / special.ndtr(beta), rtol=1e-10)


@pytest.mark.parametrize(
    ("beta", "rho2"), [(-4.0, 0.95), (-1.0, 0.5), (0.0, 0.9), (1.0, 0.99), (2.0, 0.3)]
)
def test_exact_gain_by_monte_carlo(beta, rho2):
    f = truncated_samples(beta, 200_000, seed=4)
    noise = np.random.default_rng(5).normal(size=len(f))
    y = np.sqrt(rho2) * f + np.sqrt(1 - rho2) * noise
    log_density = np.log(exact_density(y, np.asarray(beta), np.asarray(rho2)))
    gain = 0.5 * np.log(2 * np.pi * np.e) + log_density.mean()
    error = log_density.std() / np.sqrt(len(y))
    assert abs(gain - float(exact_gain(np.asarray(beta), np.asarray(rho2)))) < 4 * error


def test_exact_gain_broadcasts():
    beta, rho2 = np.linspace(-3, 3, 5)[:, None], np.asarray([0.2, 0.8, 0.99])
    gain = exact_gain(beta, rho2)
    assert gain.shape == (5, 3)
    np.testing.assert_allclose(gain[1, 2], exact_gain(beta[1], rho2[2:])[0], rtol=1e-13)


def test_exact_slope_where_rho2_is_clipped():
    """The KL term is constant there: what is left is the slope of the moment-matched gain."""
    beta, one = np.linspace(-9, 3, 25), np.ones(25)
    _, _, by_rho2 = exact_gain_and_slopes(beta, one)
    _, _, by_s, by_noise = moment_matched_gain_and_slopes(beta, one, np.zeros(25))
    np.testing.assert_array_equal(by_rho2, by_s - by_noise)


def test_exact_gain_one_by_one_is_all_at_once():
    """Blocks and panels are put together where they belong."""
    rng = np.random.default_rng(7)
    beta, rho2 = rng.uniform(-15, 45, 700), rng.uniform(0, 1, 700)
    together = exact_gain_and_slopes(beta, rho2)
    for i in range(0, 700, 7):
        alone = exact_gain_and_slopes(beta[i : i + 1], rho2[i : i + 1])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_allclose(a[0], b[i], rtol=1e-11, atol=1e-14)


def test_exact_gain_does_not_hold_every_node():
    """No array for each of the 96 nodes of all entries."""
    x = np.full(20_000, 0.5)
    tracemalloc.start()
    exact_gain_and_slopes(x, x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 48 * x.nbytes


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
    value, slope = noiseless_gain_and_slope(beta)
    truth = [true_noiseless(b) for b in beta]
    np.testing.assert_allclose(value, [float(t[0]) for t in truth], rtol=error)
    np.testing.assert_allclose(slope, [float(t[1]) for t in truth], rtol=5 * error)


def test_noiseless_gain_is_what_the_exact_one_tends_to() -> None:
    """Noise blurs the edge over √(1 − ρ²) = 1e-6."""
    beta = np.linspace(-6.0, 6.0, 25)
    limit = noiseless_gain(beta)
    gain = exact_gain(beta, np.asarray(1 - 1e-12))
    np.testing.assert_allclose(gain, limit, rtol=1e-4, atol=1e-9)
    assert np.all(np.diff(limit) < 0)


def test_noiseless_gain_far_out() -> None:
    """log|β| + log √2π − ½ far below, 0 far above, and slopes of 1/β and 0."""
    beta = np.array([-1e60, -1e12, 40.0, 1e300])
    value, slope = noiseless_gain_and_slope(beta)
    expected = np.log(-beta[:2]) + np.log(2 * np.pi) / 2 - 0.5
    np.testing.assert_allclose(value[:2], expected, rtol=1e-14)
    np.testing.assert_allclose(slope[:2], 1 / beta[:2], rtol=1e-12)
    assert value[2:].tolist() == slope[2:].tolist() == [0.0, 0.0]


def test_noiseless_slope_by_central_differences() -> None:
    beta = np.linspace(-30, 6, 73)  # −5, the switch, among them
    h = STEP * np.maximum(1, np.abs(beta))
    central = (noiseless_gain(beta + h) - noiseless_gain(beta - h)) / (2 * h)
    np.testing.assert_allclose(noiseless_gain_and_slope(beta)[1], central, rtol=1e-7, atol=1e-10)


def test_noiseless_gain_is_finite_everywhere_and_of_any_shape() -> None:
    beta = np.concatenate([-np.logspace(6, -6, 301), np.logspace(-6, 6, 301)]).reshape(2, 7, -1)
    value, slope = noiseless_gain_and_slope(beta)
    assert value.shape == slope.shape == beta.shape
    assert np.all(np.isfinite(value) & (value >= 0))
    assert np.all(np.isfinite(slope) & (slope <= 0))
    assert noiseless_gain(np.asarray(-9.0)).shape == ()


# --- divergence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [-50.0, -6.0, -1.0, 0.0, 1.0, 3.0, 37.0])
def test_divergence_by_quadrature_in_high_precision(beta: float) -> None:
    """E[log Φ(a)] − log Φ(β), which is the gain of `true_gain` without ½ρ²βr."""
    found = divergence(np.full(len(RHO2), beta), np.asarray(RHO2))
    truth = []
    with mp.workdps(20):
        b = mp.mpf(beta)
        r = mp.exp(-b * b / 2 - log_cdf(b)) / mp.sqrt(2 * mp.pi)
        truth = [true_gain(b, mp.mpf(rho2)) - mp.mpf(rho2) * b * r / 2 for rho2 in RHO2]
    np.testing.assert_allclose(found, np.array(truth, float), rtol=1e-12, atol=4e-13)


def test_divergence_without_noise_is_the_surprise() -> None:
    """−log Φ(β), approached at the rate √(1−ρ²); nothing is learnt from noise alone."""
    beta = np.array([-20.0, -3.0, 0.0, 1.0, 3.0])
    near = divergence(beta, np.asarray(1 - 1e-10))
    np.testing.assert_allclose(near, -special.log_ndtr(beta), rtol=1e-4)
    np.testing.assert_allclose(divergence(beta, np.asarray(0.0)), 0.0, atol=1e-9)


@pytest.mark.parametrize(("beta", "rho2"), [(-4.0, 0.95), (-1.0, 0.5), (1.0, 0.99), (2.0, 0.3)])
def test_divergence_by_monte_carlo(beta: float, rho2: float) -> None:
    f = truncated_samples(beta, 200_000, seed=4)
    y = np.sqrt(rho2) * f + np.sqrt(1 - rho2) * np.random.default_rng(5).normal(size=len(f))
    log_density = np.log(exact_density(y, np.asarray(beta), np.asarray(rho2)))
    ratio = log_density + 0.5 * y * y + 0.5 * np.log(2 * np.pi)
    error = ratio.std() / np.sqrt(len(y))
    assert abs(ratio.mean() - float(divergence(np.asarray(beta), np.asarray(rho2)))) < 4 * error


def test_divergence_derivatives_by_central_differences() -> None:
    rng = np.random.default_rng(3)
    beta, rho2 = rng.uniform(-12, 6, 300), rng.uniform(0.01, 0.999, 300)
    value, by_beta, by_rho2 = divergence_and_slopes(beta, rho2)
    np.testing.assert_array_equal(value, divergence(beta, rho2))
    step = STEP * np.maximum(1, np.abs(beta))
    central = (divergence(beta + step, rho2) - divergence(beta - step, rho2)) / (2 * step)
    np.testing.assert_allclose(by_beta, central, rtol=1e-6, atol=1e-8)
    step = STEP * (1 - rho2)
    central = (divergence(beta, rho2 + step) - divergence(beta, rho2 - step)) / (2 * step)
    np.testing.assert_allclose(by_rho2, central, rtol=1e-6, atol=1e-7)


def test_divergence_is_finite_and_not_negative_anywhere(grid: tuple[np.ndarray, ...]) -> None:
    beta, rho2, *_ = grid
    value, by_beta, by_rho2 = divergence_and_slopes(beta, rho2)
    for array in (value, by_beta, by_rho2):
        assert np.all(np.isfinite(array))
    assert np.min(value) >= -1e-14
    assert np.all(by_beta <= 1e-12)
    np.testing.assert_allclose(value[beta > 38], 0, atol=1e-15)
