"""log p(θ | y) against SciPy's multivariate normal, and its slope against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gp_cases import KERNELS, KNOWN, STEP, D, N, X, Y
from inference_cases import PRIOR, log_likelihood, on_plane, scipy_log_prior, thetas
from optpair.gp import PAPER, Prior
from optpair.gp.likelihood import SHORTEST, Likelihood, Sample
from optpair.gp.process import Process


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("noise_var", [np.full(N, np.nan), KNOWN], ids=["inferred", "some-known"])
def test_log_posterior_is_scipys(kernel: str, noise_var: np.ndarray) -> None:
    """Likelihood and prior, each up to a constant: (n/2) log 2π and the prior's normaliser."""
    process, theta = on_plane(kernel), thetas(kernel)
    ours = Likelihood(Sample(X, Y, noise_var), process)
    prior, _ = process.table.log_prior(theta)
    expected = [log_likelihood(kernel, each, X, Y, noise_var) for each in theta]
    plain = np.array(expected) + N / 2 * np.log(2 * np.pi)
    np.testing.assert_allclose(ours.density(theta), plain + prior, rtol=1e-9)
    np.testing.assert_allclose(ours.density(theta, 0.3), 0.3 * plain + prior, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_log_prior_is_the_documented_one(kernel: str) -> None:
    theta = thetas(kernel)
    gaps = on_plane(kernel).table.log_prior(theta)[0] - [scipy_log_prior(each) for each in theta]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


@pytest.mark.parametrize("prior", [PRIOR, PAPER], ids=["default", "paper"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_against_central_differences(kernel: str, prior: Prior) -> None:
    """Of all data, of one point and of none; the paper's log-uniform priors inside and outside."""
    # Differences err by step²/6·f‴ + eps·f/step, some 1e-9 for values and slopes of order 10.
    for n in (N, 1, 0):
        ours = Likelihood(Sample(X[:n], Y[:n], KNOWN[:n]), on_plane(kernel, prior))
        theta = thetas(kernel)
        outside = theta[:1].copy()
        outside[:, D : D + 2] += 4.9, 3.2
        theta = np.concatenate([theta, outside])
        for power in (1.0, 0.3):
            value, slope = ours.slope(theta, power)
            np.testing.assert_array_equal(value, ours.density(theta, power))
            for i, e in enumerate(STEP * np.eye(theta.shape[1])):
                ends = [ours.density(theta + s * e, power) for s in (1, -1)]
                difference = (ends[0] - ends[1]) / (2 * STEP)
                np.testing.assert_allclose(slope[:, i], difference, rtol=1e-7, atol=1e-6)


def test_several_sets_are_one_at_a_time() -> None:
    """An impossible set among them harms no other."""
    ours = Likelihood(Sample(X, Y, KNOWN), on_plane("mixed"))
    theta = thetas("mixed").copy()
    theta[1, 0] = -800.0
    value, slope = ours.slope(theta)
    for b in range(len(theta)):
        alone = ours.slope(theta[b : b + 1])
        np.testing.assert_allclose(value[b], alone[0][0], rtol=1e-13)
        np.testing.assert_allclose(slope[b], alone[1][0], rtol=1e-10, atol=1e-12)


def test_columns_share_the_length_scale_of_their_parameter() -> None:
    """Two columns of one parameter have one length scale: as with two equal ones."""
    sample = Sample(X, Y, KNOWN)
    short, long = np.array([[-1.0, 0.1, -3.0, 0.2]]), np.array([[-1.0, -1.0, 0.1, -3.0, 0.2]])
    one, two = (Process(columns, KERNELS["rbf"], PRIOR) for columns in ((0, 0), (0, 1)))
    gaps = [
        Likelihood(sample, process).density(theta) - process.table.log_prior(theta)[0]
        for theta, process in ((short, one), (long, two))
    ]
    assert gaps[0] == pytest.approx(gaps[1])


def test_impossible_hyperparameters_have_no_density() -> None:
    ours = Likelihood(Sample(X, Y, KNOWN), on_plane())
    equal = Likelihood(Sample(X[[0, 0]], Y[:2], np.zeros(2)), on_plane())
    bad = np.zeros((4, 5))
    bad[0, 2], bad[1, 1], bad[2, 0] = 800.0, np.nan, -800.0
    value, slope = ours.slope(bad)
    np.testing.assert_array_equal(ours.density(bad), value)
    np.testing.assert_array_equal(np.isneginf(value), [True, True, True, False])
    np.testing.assert_array_equal(slope.any(axis=1), [False, False, False, True])
    assert equal.density(np.zeros((1, 5))) == -np.inf  # a point twice, both without noise


def test_one_observation_is_a_normal() -> None:
    """y ~ N(μ, a + σ²)."""
    process = Process((0,), KERNELS["matern52"], PRIOR)
    theta = np.array([[0.3, 0.2, -1.0, 0.4]])
    ours = Likelihood(Sample(X[:1, :1], Y[:1], np.full(1, np.nan)), process)
    sd = np.sqrt(np.exp(0.2) + 1e-3 + np.exp(-1.0))
    truth = stats.norm.logpdf(Y[0], 0.2, sd) + np.log(2 * np.pi) / 2
    got = ours.density(theta) - process.table.log_prior(theta)[0]
    np.testing.assert_allclose(got, truth, rtol=1e-12)


def test_a_length_scale_that_cannot_be_seen_is_impossible() -> None:
    """Distances of 1e10 length scales have lost their digits, and a matrix of them its factor."""
    process = Process((0, 1))
    rng = np.random.default_rng(0)
    likelihood = Likelihood(
        Sample(rng.uniform(size=(6, 2)), rng.standard_normal(6), np.full(6, np.nan)), process
    )
    theta = process.table.start(np.zeros((2, process.table.size)))
    process.table.parts(theta)["lengthscale"][1, 0] = np.log(0.5 * SHORTEST)
    density, slope = likelihood.slope(theta)
    assert np.isfinite(density[0])
    assert density[1] == -np.inf
    assert not slope[1].any()
