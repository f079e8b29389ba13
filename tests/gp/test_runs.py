"""Observations of one run, which share its luck, against a dense GP and central differences."""

from __future__ import annotations

import numpy as np
import pytest

from gp_cases import STEP
from optpair import gp
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference.mode import fit_mode
from optpair.gp.kernels import Curves, Matern52
from optpair.gp.likelihood import Likelihood, Sample
from optpair.gp.noise import Growth
from optpair.gp.posterior import Posterior, fit
from optpair.gp.process import Process
from optpair.problem.parameters import Price

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(8, 2)), RNG.normal(size=8)
RUN = np.array([0, 0, 0, 1, 2, 2, 3, 4])
NOISE_VAR = np.array([np.nan] * 5 + [0.3, 0.2, np.nan])
SETS = Hyperparameters(
    [[0.4, 1.1], [0.7, 0.5]],
    [1.0, 2.0],
    [0.1, 0.4],
    [0.2, -0.1],
    luck=[0.6, 0.95],
    growth=[[1.5], [0.4]],
)
GROWTH = Growth((Price(1, 1.0, 9.0, True, 9.0),))
SAMPLE = Sample(X, Y, NOISE_VAR, RUN)
Q = RNG.uniform(size=(5, 2))


def inferred(m: int, points: np.ndarray) -> np.ndarray:
    """(L4) from its definition."""
    return np.asarray(SETS.noise[m] * 9 ** (SETS.own["growth"][m, 0] * (1 - points[:, 1])))


def noise_of(m: int) -> np.ndarray:
    """(L3) from its definition."""
    each = np.where(np.isnan(NOISE_VAR), inferred(m, X), NOISE_VAR)
    same = RUN[:, None] == RUN
    share = np.where(np.eye(8, dtype=bool), 1.0, SETS.own["luck"][m])
    return np.asarray(same * share * np.minimum(each[:, None], each))


def fitted(sample: Sample = SAMPLE) -> Posterior:
    return fit(SETS, sample, kernel=Matern52(), columns=(0, 1), growth=GROWTH)


def test_the_posterior_is_that_of_a_dense_gp() -> None:
    posterior = fitted()
    mean, variance = posterior.predict(Q)
    for m in range(2):
        K = posterior.covariance.between(X, X).K[m] + noise_of(m)
        cross = posterior.covariance.between(Q, X).K[m]
        expected = SETS.mean[m] + cross @ np.linalg.solve(K, Y - SETS.mean[m])
        np.testing.assert_allclose(mean[m], expected, rtol=1e-9)
        left = SETS.outputscale[m] - np.sum(cross * np.linalg.solve(K, cross.T).T, 1)
        np.testing.assert_allclose(variance[m], left, rtol=1e-9)
    np.testing.assert_allclose(posterior.means_at_data()[:, 0], posterior.predict(X)[0], rtol=1e-9)


def test_without_luck_or_runs_nothing_changes() -> None:
    plain = fitted(Sample(X, Y, NOISE_VAR))
    assert plain.runs is None
    alone = fitted(Sample(X, Y, NOISE_VAR, np.arange(8)))
    assert alone.runs is None
    none = Hyperparameters(**SETS.values() | {"luck": [0.0, 0.0]})
    unlucky = fit(none, SAMPLE, kernel=Matern52(), columns=(0, 1), growth=GROWTH)
    np.testing.assert_allclose(unlucky.predict(Q)[0], plain.predict(Q)[0], rtol=1e-12)


def test_an_appended_point_is_of_a_run_of_its_own() -> None:
    point, value = np.array([0.3, 0.8]), np.array([[0.5], [0.4]])
    grown = fitted().append(point, value)
    noises = np.append(NOISE_VAR, np.nan)
    for m in range(2):
        whole = Sample(np.vstack([X, point]), np.append(Y, value[m]), noises, np.append(RUN, 9))
        expected = fit(SETS, whole, kernel=Matern52(), columns=(0, 1), growth=GROWTH).predict(Q)
        for got, truth in zip(grown.predict(Q), expected, strict=True):
            np.testing.assert_allclose(got[m], truth[m], rtol=1e-8)
    fewer = grown.of_sets(slice(1, 2))
    np.testing.assert_allclose(fewer.means_at_data()[0], grown.means_at_data()[1])


def test_drawn_noise_has_the_covariance() -> None:
    """200,000 draws of eight numbers, within 4.5 standard errors."""
    posterior = fitted()
    assert posterior.runs is not None
    white = np.random.default_rng(1).standard_normal((2, 200_000, 8))
    drawn = posterior.runs.drawn(posterior.noise_var, white)
    for m in range(2):
        expected = noise_of(m)
        products = drawn[m].T @ drawn[m] / 200_000
        each = np.diag(expected)
        error = np.sqrt((each[:, None] * each + expected**2) / 200_000)
        assert np.all(np.abs(products - expected) < 4.5 * error)


def test_paths_have_the_posterior_variance() -> None:
    """Over 400 sets of 8 paths, within 4.5 standard errors."""
    many = Hyperparameters(**{n: np.repeat(v[:1], 400, axis=0) for n, v in SETS.values().items()})
    posterior = fit(many, SAMPLE, kernel=Matern52(), columns=(0, 1), growth=GROWTH)
    mean, variance = posterior.predict(Q)
    drawn = gp.sample_paths(posterior, 8, features=64).at(Q)
    spread = ((drawn - mean[:, None]) ** 2).mean(1)
    error = spread.std(0) / np.sqrt(len(spread))
    assert np.all(np.abs(spread.mean(0) - variance[0]) < 4.5 * error)


def test_slope_of_the_likelihood_against_central_differences() -> None:
    process = Process((0, 1), Curves(Matern52(), (1,)), runs=True, growth=GROWTH)
    ours = Likelihood(SAMPLE, process)
    theta = 0.5 * np.random.default_rng(1).normal(size=(3, process.table.size))
    _, slope = ours.slope(theta)
    for i, e in enumerate(STEP * np.eye(theta.shape[1])):
        difference = (ours.density(theta + e) - ours.density(theta - e)) / (2 * STEP)
        np.testing.assert_allclose(slope[:, i], difference, rtol=1e-7, atol=1e-6)
    unshared = Likelihood(SAMPLE._replace(run=None), process)
    assert unshared.slope(theta)[1].shape == slope.shape


@pytest.mark.parametrize("luck", [0.0, 1.0])
def test_the_data_say_how_much_looks_share(luck: float) -> None:
    """Curves of 12 points and 6 looks each, with noise that is all common or all their own."""
    rng = np.random.default_rng(5)
    x, u = np.repeat(rng.uniform(size=12), 6), np.tile(np.linspace(0, 1, 6), 12)
    common, own = np.repeat(rng.normal(size=12), 6), rng.normal(size=72)
    y = np.sin(5 * x) + 0.5 * u + 0.4 * (np.sqrt(luck) * common + np.sqrt(1 - luck) * own)
    process = Process((0, 1), Curves(Matern52(), (1,)), runs=True)
    standard = (y - y.mean()) / y.std()
    sample = Sample(np.column_stack([x, u]), standard, np.full(72, np.nan), np.repeat(range(12), 6))
    found = process.table.hyperparameters(fit_mode(sample, process)[None]).own["luck"][0]
    assert found < 0.3 if luck == 0.0 else found > 0.7
