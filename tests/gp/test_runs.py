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
from optpair.gp.noise import Growing, Growth, Runs
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


STEPS = np.array([1, 2, 4, 9])
FOLDS = np.column_stack([np.full(4, 0.3), np.log(STEPS) / np.log(9)])


def test_means_of_independent_values_are_of_this_kind() -> None:
    """κ = 1 and η = 1: the covariance of means of j and of k values is τ²/max(j, k)."""
    tau2 = 0.45
    noise = tau2 / 9 * Growing(GROWTH, np.ones((1, 1))).factor(FOLDS)
    np.testing.assert_allclose(noise[0], tau2 / STEPS, rtol=1e-12)
    covariance = Runs(np.zeros(4, dtype=int), np.ones(1)).covariance(noise)[0] + np.diag(noise[0])
    np.testing.assert_allclose(covariance, tau2 / np.maximum(STEPS[:, None], STEPS), rtol=1e-12)
    errors = np.sqrt(tau2) * np.random.default_rng(2).standard_normal((200_000, 9))
    means = np.stack([errors[:, :k].mean(1) for k in STEPS], 1)
    each = np.diag(covariance)
    error = np.sqrt((each[:, None] * each + covariance**2) / 200_000)
    assert np.all(np.abs(means.T @ means / 200_000 - covariance) < 4.5 * error)


def test_earlier_means_say_nothing_beside_later_ones() -> None:
    """Where the fidelity changes nothing but the noise, and all luck is shared."""
    flat = [[0.5, 1e4]], [1.0], [0.05], [0.0]
    hypers = Hyperparameters(*flat, luck=[1.0], growth=[[1.3]])
    y, unknown, runs = np.array([0.9, 0.2, 0.5, 0.4]), np.full(4, np.nan), np.zeros(4, dtype=int)
    every = Sample(FOLDS, y, unknown, runs)
    both = [
        fit(hypers, sample, kernel=Matern52(), columns=(0, 1), growth=GROWTH).predict(Q)
        for sample in (every, every.some(slice(3, 4)))
    ]
    for of_all, of_last in zip(*both, strict=True):
        np.testing.assert_allclose(of_all, of_last, rtol=1e-6, atol=1e-7)


def test_noises_that_are_alike_are_drawn_in_closed_form() -> None:
    """Within 4.5 standard errors of 200,000 draws, as by a factor of the covariance."""
    runs, white = Runs(RUN, SETS.own["luck"]), np.random.default_rng(1)
    noise = np.array([[0.5], [2.0]]) * np.ones(8)
    drawn = runs.drawn(noise, white.standard_normal((2, 200_000, 8)))
    for m in range(2):
        expected = runs.covariance(noise)[m] + np.diag(noise[m])
        error = np.sqrt((noise[m, 0] ** 2 + expected**2) / 200_000)
        assert np.all(np.abs(drawn[m].T @ drawn[m] / 200_000 - expected) < 4.5 * error)


@pytest.mark.parametrize("rate", [0.0, 1.5])
def test_the_data_say_how_noise_grows(rate: float) -> None:
    """Means of folds at 1, 3 and 9 of 9 for 24 points, or looks that are all as noisy."""
    rng, n = np.random.default_rng(5), np.array([1, 3, 9])
    x, steps = np.repeat(rng.uniform(size=24), 3), np.tile(n, 24)
    y = np.sin(5 * x) + 0.1 * (9 / steps) ** (rate / 2) * rng.normal(size=72)
    scaled = (y - y.mean()) / y.std()
    points = np.column_stack([x, np.log(steps) / np.log(9)])
    sample = Sample(points, scaled, np.full(72, np.nan), np.repeat(range(24), 3))
    process = Process((0, 1), Curves(Matern52(), (1,)), runs=True, growth=GROWTH)
    found = process.table.hyperparameters(fit_mode(sample, process)[None]).own["growth"]
    assert found.shape == (1, 1)
    assert found[0, 0] < 0.5 if rate == 0.0 else 1.0 < found[0, 0] < 2.0
