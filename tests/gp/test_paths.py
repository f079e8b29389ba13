"""Sample paths against the posterior they are drawn from, and the fast cosine."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest

from gp_cases import KERNELS, KNOWN, D, N, X, Y, changed, slopes, textbook
from optpair.gp import Hyperparameters, Paths, condition, sample_paths
from optpair.gp.paths import BLOCK, cos_sin

RNG = np.random.default_rng(0)
# Between the data, at a datum, at two points close together, in a corner.
Q = np.concatenate([RNG.uniform(size=(3, D)), X[:1], [[0.5, 0.5], [0.5, 0.51], [1.0, 0.0]]])
SETS, PATHS, FEATURES = 300, 16, 32


def hypers(noise: float = 0.05) -> Hyperparameters:
    """The same set many times: frequencies are drawn for each anew."""
    ones = np.ones(SETS)
    lengths = np.tile([[0.3, 0.6]], (SETS, 1))
    return Hyperparameters(lengths, 2.0 * ones, noise * ones, 0.7 * ones, rough=0.4 * ones)


@pytest.mark.parametrize("kernel", KERNELS)
def test_paths_have_the_posteriors_mean_and_covariance(kernel: str) -> None:
    """300 sets of frequencies, 16 paths each, with only 32 features: every set is unbiased.

    Given its frequencies a path's mean is exactly m(x); over frequencies its covariance is on
    average that of the posterior, as that is linear in the prior's. So the spread over sets holds
    the errors of both the features and the draws, and 4.5 of its standard errors suffice (35
    comparisons).
    """
    posterior = condition(hypers(), X, Y, kernel, KNOWN)
    values = sample_paths(posterior, PATHS, 1, features=FEATURES).at(Q)
    noises = np.where(np.isnan(KNOWN), 0.05, KNOWN)
    mean, covariance = textbook(kernel, 0, X, Y, noises, Q, hypers())
    centred = values - mean

    def check(each: np.ndarray, truth: np.ndarray) -> None:
        error = each.std(0, ddof=1) / np.sqrt(SETS)
        assert np.all(np.abs(each.mean(0) - truth) < 4.5 * error)

    check(centred.mean(1), np.zeros(len(Q)))
    i, j = np.triu_indices(len(Q))
    check(np.mean(centred[..., i] * centred[..., j], 1), covariance[i, j])


def test_paths_of_the_prior() -> None:
    posterior = condition(hypers(), X[:0], Y[:0])
    values = sample_paths(posterior, PATHS, 2, features=FEATURES).at(Q)
    spread = ((values - 0.7) ** 2).mean(1)
    assert np.all(np.abs(spread.mean(0) - 2.0) < 4.5 * spread.std(0) / np.sqrt(SETS))


def test_paths_interpolate_as_the_noise_vanishes() -> None:
    gaps = []
    for noise in (1e-4, 1e-6, 1e-8):
        drawn = sample_paths(condition(hypers(noise), X, Y), PATHS, 3, features=FEATURES)
        gaps.append(np.max(np.abs(drawn.at(X) - Y)))
    # A path is within a few σ of each datum: the largest of 38,400 normals is below 6 σ.
    assert np.all(np.array(gaps) < 6 * np.array([1e-2, 1e-3, 1e-4]))
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]


def few(sets: int = 3) -> Hyperparameters:
    return changed(hypers().some(slice(sets)), lengthscale=[[0.3, 0.6], [0.2, 0.2], [1.0, 0.4]])


def test_own_points_are_the_same_as_shared_ones() -> None:
    drawn = sample_paths(condition(few(), X, Y, "mixed"), PATHS, 4, features=FEATURES)
    points = RNG.uniform(size=(3, 20, D))
    path = RNG.integers(PATHS, size=(3, 20))
    got, _ = drawn.own(points, path)
    for m in range(3):
        shared = drawn.at(points[m])[m]
        np.testing.assert_allclose(got[m], shared[path[m], np.arange(20)], rtol=1e-10, atol=1e-12)
    assert np.std(got) > 0.1  # paths do differ


@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_of_paths(kernel: str) -> None:
    # step²/6·f‴ + eps·f/step ≈ 1e-9 for length scales of 0.2; at a datum too.
    drawn = sample_paths(condition(few(), X, Y, kernel), PATHS, 4, features=FEATURES)
    path = np.arange(3 * len(Q)).reshape(3, len(Q)) % PATHS
    _, exact = drawn.own(np.tile(Q, (3, 1, 1)), path)
    numeric = slopes(lambda q: drawn.own(np.tile(q, (3, 1, 1)), path)[0], Q)
    np.testing.assert_allclose(exact, numeric, rtol=1e-7, atol=1e-6)


def test_blocks_of_points_change_nothing() -> None:
    drawn = sample_paths(condition(few(), X, Y), 2, 4, features=FEATURES)
    many = RNG.uniform(size=(BLOCK + 5, D))
    whole = drawn.at(many)
    np.testing.assert_allclose(whole[..., -5:], drawn.at(many[-5:]), rtol=1e-10, atol=1e-12)


def test_some_of_the_sets() -> None:
    drawn = sample_paths(condition(few(), X, Y, "mixed"), 2, 4, features=FEATURES)
    for chosen in (slice(1, 3), np.array([2, 0])):
        part = drawn.of_sets(chosen)
        assert part.shape == (2, 2)
        np.testing.assert_allclose(part.at(Q), drawn.at(Q)[chosen], rtol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e150])
def test_single_precision_is_the_same_in_other_units(unit: float) -> None:
    """In units of √a and from 0, to single precision: also where f would not fit in it."""
    known = few()
    grown = changed(
        known,
        outputscale=unit**2 * known.outputscale,
        noise=unit**2 * known.noise,
        mean=unit * known.mean,
    )
    paths = sample_paths(condition(grown, X, unit * Y), PATHS, 1, features=FEATURES)
    exact = (paths.at(Q) / unit - 0.7) / np.sqrt(2.0)
    rough = paths.single().at(Q.astype(np.float32))
    assert rough.dtype == np.float32
    np.testing.assert_allclose(rough, exact, rtol=0, atol=1e-4)
    path = np.tile(np.arange(len(Q)), (3, 1))
    alone, slope = paths.single().own(np.tile(Q.astype(np.float32), (3, 1, 1)), path)
    assert alone.dtype == slope.dtype == np.float32
    np.testing.assert_allclose(alone, exact[:, np.arange(len(Q)), np.arange(len(Q))], atol=1e-4)
    truth = paths.own(np.tile(Q, (3, 1, 1)), path)[1] / unit / np.sqrt(2.0)
    np.testing.assert_allclose(slope, truth, rtol=0, atol=2e-3)


def test_single_precision_bears_values_that_are_exact() -> None:
    """Smooth paths through exact values, half of them in one place: right to 0.01 √a.

    Unsmoothed they have an update with entries of 6e4, and are wrong by 0.04 √a.
    """
    rng = np.random.default_rng(3)
    places = rng.uniform(size=(40, D))
    places[20:] = 0.5 + 0.03 * rng.standard_normal((20, D))
    exact = Hyperparameters([[2.0, 3.0]], [1.0], [1e-9], [0.0])
    paths = sample_paths(condition(exact, places, np.sin(3 * places).sum(1)), PATHS, 1)
    points = rng.uniform(size=(200, D))
    truth = paths.at(points)

    def error(given: Paths) -> float:
        return float(np.max(np.abs(given.single().at(points.astype(np.float32)) - truth)))

    assert np.abs(paths.update).max() > 1e4
    assert error(paths) < 0.01
    assert error(replace(paths, smooth=None)) > 0.02
    assert error(paths.of_sets(slice(1))) < 0.01


def test_paths_of_a_set_share_their_frequencies_and_sets_do_not() -> None:
    drawn = sample_paths(condition(hypers(), X, Y), PATHS, 4, features=FEATURES)
    assert drawn.shape == (SETS, PATHS)
    assert drawn.omega.shape == (SETS, FEATURES // 2, D)
    assert drawn.cosine.shape == drawn.sine.shape == (SETS, PATHS, FEATURES // 2)
    assert np.all(drawn.omega[0] != drawn.omega[1])


def test_the_seed_decides() -> None:
    posterior = condition(few(), X, Y)
    first, second, other = (sample_paths(posterior, 4, seed).at(Q) for seed in (6, 6, 7))
    np.testing.assert_array_equal(first, second)
    assert np.abs(other - first).max() > 0.1


def test_a_new_observation_keeps_the_prior_part() -> None:
    """The frequencies and weights of a path do not depend on how many observations there are."""
    fewer, more = (sample_paths(condition(few(), X[:n], Y[:n]), 4, 6) for n in (N - 1, N))
    np.testing.assert_array_equal(fewer.omega, more.omega)
    np.testing.assert_array_equal(fewer.cosine, more.cosine)


@pytest.mark.parametrize(("paths", "features"), [(0, 64), (4, 1)])
def test_too_few_are_refused(paths: int, features: int) -> None:
    message = f"paths must be at least 1 and features 2, not {paths} and {features}"
    with pytest.raises(ValueError, match=message):
        sample_paths(condition(few(), X, Y), paths, features=features)


# --- the fast cosine ----------------------------------------------------------------------------

ANGLES = np.concatenate(
    [
        np.linspace(-15, 15, 4001),
        np.random.default_rng(8).uniform(-1e4, 1e4, 8000),
        np.pi * np.array([0.0, 0.25, 0.5, 0.75, 1.0, -0.5, 2.0, 1e-300]),
        [1e4, -1e4],
    ]
)


def test_fast_cosine_and_sine() -> None:
    """NumPy's reduce their argument to the last digit, as a few of them checked by mpmath show."""
    c, s = cos_sin(ANGLES)
    np.testing.assert_allclose(c, np.cos(ANGLES), rtol=0, atol=2e-14)
    np.testing.assert_allclose(s, np.sin(ANGLES), rtol=0, atol=2e-14)
    with mpmath.workdps(40):
        for i in (3, 4005, 7000, len(ANGLES) - 1):
            assert c[i] == pytest.approx(float(mpmath.cos(mpmath.mpf(float(ANGLES[i])))), abs=2e-14)


def test_fast_cosine_far_out() -> None:
    angles = np.array([1e6 + 0.1, -1e6 + 0.3, 999_999.875])
    c, s = cos_sin(angles)
    np.testing.assert_allclose(c, np.cos(angles), rtol=0, atol=1e-9)
    np.testing.assert_allclose(s, np.sin(angles), rtol=0, atol=1e-9)


def test_fast_cosine_of_any_shape() -> None:
    angles = RNG.uniform(-50, 50, (3, 5, 4001))
    turned = np.swapaxes(angles, 0, 2)
    for values in (angles, turned, angles[:, ::2], angles[:0]):
        c, s = cos_sin(values)
        np.testing.assert_allclose(c, np.cos(values), rtol=0, atol=2e-14)
        np.testing.assert_allclose(s, np.sin(values), rtol=0, atol=2e-14)


def test_cosine_in_single_precision() -> None:
    angles = np.linspace(-60, 60, 4001, dtype=np.float32)
    c, s = cos_sin(angles)
    assert c.dtype == s.dtype == np.float32
    np.testing.assert_allclose(c, np.cos(angles.astype(float)), rtol=0, atol=1e-6)
    np.testing.assert_allclose(s, np.sin(angles.astype(float)), rtol=0, atol=1e-6)
