"""The posterior against a dense textbook computation, appended rows, strips, bad matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gp_cases import HYPERS, KERNELS, KNOWN, D, M, N, Q, X, Y, changed, k, slopes, textbook
from optpair.gp import Hyperparameters, Matern52, condition
from optpair.gp.likelihood import Sample
from optpair.gp.posterior import BLOCK, Posterior, check_factor, fit

RNG = np.random.default_rng(1)


def noises(m: int, given: np.ndarray = KNOWN) -> np.ndarray:
    """The noise variance of each observation under set m."""
    return np.where(np.isnan(given), HYPERS.noise[m], given)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("noise_var", [None, KNOWN], ids=["inferred", "some-known"])
def test_moments_are_the_textbooks(kernel: str, noise_var: np.ndarray | None) -> None:
    # A known noise variance replaces the set's at that observation and nowhere else.
    posterior = condition(HYPERS, X, Y, kernel, noise_var)
    mean, variance = posterior.predict(Q)
    together, joint = posterior.joint(Q)
    assert mean.shape == variance.shape == (M, len(Q))
    assert mean.dtype == variance.dtype == np.float64
    for m in range(M):
        given = np.full(N, np.nan) if noise_var is None else noise_var
        truth = textbook(kernel, m, X, Y, noises(m, given), Q)
        np.testing.assert_allclose(mean[m], truth[0], rtol=1e-9)
        np.testing.assert_allclose(variance[m], np.diagonal(truth[1]), rtol=1e-9)
        np.testing.assert_allclose(together[m], truth[0], rtol=1e-9)
        np.testing.assert_allclose(joint[m], truth[1], rtol=1e-9, atol=1e-12)


def test_a_kernel_by_name_or_as_itself() -> None:
    for name, kernel in KERNELS.items():
        a, b = condition(HYPERS, X, Y, name), condition(HYPERS, X, Y, kernel)
        np.testing.assert_array_equal(a.predict(Q)[0], b.predict(Q)[0])
    np.testing.assert_array_equal(
        condition(HYPERS, X, Y).predict(Q)[0], condition(HYPERS, X, Y, Matern52()).predict(Q)[0]
    )


def test_several_sets_are_one_at_a_time() -> None:
    whole = condition(HYPERS, X, Y)
    together = whole.predict(Q)
    for m in range(M):
        alone = condition(HYPERS.some(slice(m, m + 1)), X, Y).predict(Q)
        part = whole.of_sets(slice(m, m + 1)).predict(Q)
        for a, b, c in zip(together, alone, part, strict=True):
            np.testing.assert_allclose(a[m], b[0], rtol=1e-12)
            np.testing.assert_allclose(a[m], c[0], rtol=1e-12)
    turned = whole.of_sets(np.array([2, 0])).predict(Q)
    np.testing.assert_allclose(turned[0], together[0][[2, 0]], rtol=1e-12)


def test_sets_are_factorised_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = condition(HYPERS, X, Y, noise_var=KNOWN)
    monkeypatch.setattr("optpair.gp.posterior.TOGETHER", 2 * N * N)  # two sets, then one
    parts = condition(HYPERS, X, Y, noise_var=KNOWN)
    np.testing.assert_array_equal(parts.inverse_factor, whole.inverse_factor)


def test_points_are_looked_at_in_blocks() -> None:
    many = RNG.uniform(size=(BLOCK + 3, D))
    posterior = condition(HYPERS, X, Y)
    means, variance = posterior.moments(many)
    query = posterior.at(many)
    np.testing.assert_allclose(means, query.means, rtol=1e-12)
    np.testing.assert_allclose(variance, query.variance, rtol=1e-9, atol=1e-14)
    means, variance = posterior.moments(many[:0])
    assert (means.shape, variance.shape) == ((M, 1, 0), (M, 0))


@pytest.mark.parametrize("kernel", KERNELS)
def test_means_at_the_data_need_no_covariance(kernel: str) -> None:
    posterior = condition(HYPERS, X, Y, kernel, KNOWN).append(Q[0], np.ones((M, 2)))
    slow = posterior.at(posterior.X).means
    np.testing.assert_allclose(posterior.means_at_data(), slow, rtol=0, atol=1e-9)


def test_means_at_the_data_where_jitter_was_needed() -> None:
    """Duplicates without noise that disagree: the jitter is all that lets the mean pass between."""
    hypers = Hyperparameters([[0.5, 0.5]], [2.0], [0.0], [0.1])
    twice = np.concatenate([X, X])
    posterior = condition(hypers, twice, np.concatenate([Y, Y + 1.0]), "rbf")
    assert posterior.jitter[0] > 0
    slow = posterior.at(posterior.X).means
    np.testing.assert_allclose(posterior.means_at_data(), slow, rtol=0, atol=1e-4)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130, 300])
def test_whitening_by_strips_is_a_product_with_the_inverse(n: int) -> None:
    posterior = condition(HYPERS, RNG.uniform(size=(n, D)), RNG.normal(size=n))
    K = RNG.normal(size=(M, 5, n))
    plain, turned = posterior.inverse_factor, np.swapaxes(posterior.inverse_factor, 1, 2)
    np.testing.assert_array_equal(plain, np.tril(plain))
    for got, expected in (
        (posterior.whiten(K), K @ turned),
        (posterior.unwhiten(K), K @ plain),
        (posterior.solve(K), K @ (turned @ plain)),
    ):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * scale)


def test_noise_of_a_future_query() -> None:
    """Inferred, or the median of the known ones where all are known."""
    np.testing.assert_array_equal(condition(HYPERS, X, Y).noise, HYPERS.noise)
    np.testing.assert_array_equal(condition(HYPERS, X, Y, noise_var=KNOWN).noise, HYPERS.noise)
    every = np.array([0.5, 0.1, 0.2, 0.9, 0.8, 0.3, 0.4, 0.7])
    np.testing.assert_allclose(condition(HYPERS, X, Y, noise_var=every).noise, 0.45)


@pytest.mark.parametrize("kernel", KERNELS)
def test_limits(kernel: str) -> None:
    """No noise: the data themselves. All noise: the prior."""
    exact = changed(HYPERS, noise=np.full(M, 1e-10))
    mean, variance = condition(exact, X, Y, kernel).predict(X)
    np.testing.assert_allclose(mean, np.tile(Y, (M, 1)), atol=1e-4)
    np.testing.assert_allclose(variance, 0.0, atol=1e-9)
    deaf = changed(HYPERS, noise=np.full(M, 1e12))
    mean, variance = condition(deaf, X, Y, kernel).predict(Q)
    np.testing.assert_allclose(mean, HYPERS.mean[:, None] * np.ones(6), rtol=1e-9)
    np.testing.assert_allclose(variance, HYPERS.outputscale[:, None] * np.ones(6))


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_moments_against_joint_draws(kernel: str) -> None:
    """Regress draws of f(x) on draws of y: no formula for conditional normals in it."""
    rng = np.random.default_rng(3)
    draws, points = 40_000, np.concatenate([X, Q[:1]])
    mean, variance = condition(HYPERS, X, Y, kernel).predict(Q[:1])
    for m in range(M):
        K = k(kernel, m, points, points) + 1e-12 * np.eye(N + 1)
        f = rng.normal(size=(draws, N + 1)) @ np.linalg.cholesky(K).T
        y = f[:, :N] + np.sqrt(HYPERS.noise[m]) * rng.normal(size=(draws, N))
        weights, _, _, _ = np.linalg.lstsq(y, f[:, N])
        left = f[:, N] - y @ weights
        # The residual variance has relative standard error √(2/draws); the prediction's standard
        # error is that of a regression: √(s · rᵀ(yᵀy)⁻¹r).
        assert abs(left.var() / variance[m, 0] - 1) < 4 * np.sqrt(2 / draws)
        r = Y - HYPERS.mean[m]
        error = np.sqrt(variance[m, 0] * r @ np.linalg.solve(y.T @ y, r))
        assert abs(HYPERS.mean[m] + r @ weights - mean[m, 0]) < 4 * error


@pytest.mark.parametrize("kernel", KERNELS)
def test_pull_of_the_moments(kernel: str) -> None:
    # At fresh points and at observed ones, where the distance is zero. Central differences with
    # step eps^⅓ err by about step²·k‴ ≈ 4e-11·a/ℓ³.
    posterior = condition(HYPERS, X, Y, kernel).append(Q[0], np.ones((M, 1)))
    posterior = posterior.with_fantasies(2)
    posterior = posterior.append(Q[1], RNG.normal(size=(M, 2)))
    points = np.concatenate([Q, X[:2], [[0.0, 1.0]]])
    by_means, by_variance = RNG.normal(size=(M, 2, 9)), RNG.normal(size=(M, 9))
    by_whitened = 0.1 * RNG.normal(size=(M, 9, N + 2))

    def total(parts: tuple[bool, bool, bool]) -> np.ndarray:
        def value(X: np.ndarray) -> np.ndarray:
            query = posterior.at(X)
            found = np.zeros((M, 9))
            if parts[0]:
                found += np.sum(by_means * query.means, 1)
            if parts[1]:
                found += by_variance * query.variance
            if parts[2]:
                found += np.sum(by_whitened * query.A, -1)
            return found

        return slopes(value, points)

    query = posterior.at(points)
    given = (by_means, by_variance, by_whitened)
    for parts in ((True, False, False), (False, True, False), (False, False, True), (True,) * 3):
        exact = query.pull(*(g if used else None for g, used in zip(given, parts, strict=True)))
        np.testing.assert_allclose(exact, total(parts), rtol=1e-6, atol=3e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_appended_is_refitted(kernel: str) -> None:
    """Two points, each with values of its own under three fantasies, one row at a time."""
    fantasies = np.random.default_rng(4).normal(size=(2, M, 3))
    grown = condition(HYPERS, X, Y, kernel, KNOWN)
    for x, values in zip(Q[:2], fantasies, strict=True):
        grown = grown.append(x, values)
    assert grown.fantasies == 3
    means, variance = grown.moments(Q)
    both = np.concatenate([X, Q[:2]])
    for m in range(M):
        noise = np.concatenate([noises(m), [HYPERS.noise[m]] * 2])
        for f in range(3):
            y = np.concatenate([Y, fantasies[:, m, f]])
            truth = textbook(kernel, m, both, y, noise, Q)
            np.testing.assert_allclose(means[m, f], truth[0], rtol=1e-8)
            np.testing.assert_allclose(variance[m], np.diagonal(truth[1]), rtol=1e-8, atol=1e-12)
        K = k(kernel, m, both, both) + np.diag(noise)
        inverse = np.linalg.inv(np.linalg.cholesky(K))
        np.testing.assert_allclose(grown.inverse_factor[m], inverse, atol=1e-8 * inverse.max())
    np.testing.assert_allclose(grown.some_fantasies(1).moments(Q)[0], means[:, :1], rtol=1e-12)
    np.testing.assert_allclose(grown.predict(Q)[0], means.mean(1), rtol=1e-12)


def test_appending_over_a_strip_is_refitting() -> None:
    rows, y = RNG.uniform(size=(66, D)), RNG.normal(size=66)
    grown = condition(HYPERS, rows[:63], y[:63])
    for i in range(63, 66):
        grown = grown.append(rows[i], np.full((M, 1), y[i]))
    whole = condition(HYPERS, rows, y)
    for a, b in zip(grown.predict(Q), whole.predict(Q), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-10)


def test_appending_a_duplicate_without_noise_stays_finite() -> None:
    silent = changed(HYPERS, noise=np.zeros(M))
    plain = condition(silent, X, Y, "mixed")
    means, variance = plain.append(X[0], np.full((M, 1), Y[0])).moments(Q)
    # The copy agrees with what is known: it teaches nothing.
    np.testing.assert_allclose(means[:, 0], plain.predict(Q)[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(variance, plain.predict(Q)[1], rtol=1e-4, atol=1e-7)


def test_appending_changes_nothing_in_place() -> None:
    posterior = condition(HYPERS, X, Y)
    before = posterior.predict(Q)
    posterior.append(Q[0], np.ones((M, 1))).append(Q[1], np.ones((M, 1)))
    for a, b in zip(posterior.predict(Q), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert repr(posterior) == "Posterior(3 sets, 8 observations in 2-D)"


@pytest.mark.parametrize(("kernel", "copies"), [("rbf", 2), ("matern52", 200)])
def test_duplicates_without_noise_climb_the_ladder(kernel: str, copies: int) -> None:
    """Copies that disagree are averaged, and the jitter is reported for the sets that needed it."""
    mixed = Hyperparameters([[0.3, 0.3]] * 2, [2.0, 2.0], [0.0, 1.0], [0.0, 0.0])
    values = np.arange(copies) % 2 * 1.0
    posterior = condition(mixed, np.tile([[0.3, 0.7]], (copies, 1)), values, kernel)
    jitter = posterior.jitter
    assert 0 < jitter[0] <= 1e-8
    assert jitter[1] == 0
    mean, variance = posterior.predict([[0.3, 0.7], [0.9, 0.1]])
    # Without noise the average; solving at a condition number of copies/1e-10 leaves 1e-3.
    assert mean[0, 0] == pytest.approx(0.5, abs=1e-3)
    assert 0 <= variance[0, 0] <= 2.0 * jitter[0]
    # With unit noise: a/(a + 1/copies) of the way to the average.
    assert mean[1, 0] == pytest.approx(0.5 * 2 / (2 + 1 / copies), rel=1e-9)
    assert variance[1, 0] == pytest.approx(2 / copies / (2 + 1 / copies), rel=1e-9)


def test_the_ladder_is_relative_to_the_units_of_y() -> None:
    rows = np.array([[0.2, 0.4], [0.2, 0.4], [0.7, 0.1]])
    values = np.array([1.0, 1.0, -1.0])
    found = []
    for unit in (1.0, 1e-6, 1e6):
        hypers = Hyperparameters([[0.3, 0.3]], [unit**2], [0.0], [0.0])
        posterior = condition(hypers, rows, unit * values)
        assert posterior.jitter[0] > 0
        mean, variance = posterior.predict(Q)
        found.append((mean / unit, variance / unit**2))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_factor_of_round_off_is_not_taken_for_a_good_one() -> None:
    """A repeated point without noise makes K singular: 40 sets, and none may get away with it."""
    rng = np.random.default_rng(5)
    sets = 40
    scale, outputs = rng.uniform(0.05, 1.0, (sets, 2)), 10 ** rng.uniform(-1, 1, sets)
    hypers = Hyperparameters(scale, outputs, np.zeros(sets), np.zeros(sets))
    twice = np.concatenate([X[:5], X[:1]])
    posterior = condition(hypers, twice, Y[:6])
    mean, _ = posterior.predict(X[:1])
    assert np.all(posterior.jitter > 0)
    # The jitter of 1e-10 is what keeps the two apart: the average, to about √1e-10 of values ~ 1.
    np.testing.assert_allclose(mean[:, 0], (Y[0] + Y[5]) / 2, atol=1e-3)


def test_a_hopeless_matrix_names_its_sets() -> None:
    posterior = condition(HYPERS, X, Y)
    broken = posterior.inverse_factor.copy()
    broken[1] = np.nan
    with pytest.raises(FloatingPointError, match=r"set\(s\) \[1\].*jitter of 0\.001"):
        check_factor(replace(posterior, inverse_factor=broken))
    check_factor(posterior)


def test_one_observation() -> None:
    one = Hyperparameters([[0.3]], [2.0], [0.5], [1.0])
    mean, variance = condition(one, [[0.5]], [3.0], "rbf").predict([[0.5], [0.8]])
    h = np.exp(-0.5)
    np.testing.assert_allclose(mean[0], [1 + 2 * 2 / 2.5, 1 + 2 * h * 2 / 2.5])
    np.testing.assert_allclose(variance[0], [2 - 4 / 2.5, 2 - 4 * h**2 / 2.5])


def test_constant_values_stay_constant_at_the_data() -> None:
    """With the mean at the constant the posterior is flat, whatever the factor does."""
    flat = changed(HYPERS, mean=np.full(M, 5.0))
    mean, _ = condition(flat, X, np.full(N, 5.0)).predict(Q)
    np.testing.assert_array_equal(mean, 5.0)


def test_without_data_it_is_the_prior() -> None:
    hypers = Hyperparameters([[0.3]], [2.0], [0.1], [1.5])
    posterior = condition(hypers, np.zeros((0, 1)), [])
    mean, variance = posterior.predict([[0.5], [0.7]])
    np.testing.assert_allclose(mean, [[1.5, 1.5]])
    np.testing.assert_allclose(variance, [[2.0, 2.0]])
    first = posterior.append(np.array([0.5]), np.array([[3.0]]))
    alone = condition(hypers, [[0.5]], [3.0])
    np.testing.assert_allclose(first.predict([[0.6]]), alone.predict([[0.6]]), rtol=1e-12)


def test_best_data_are_those_of_highest_mean() -> None:
    posterior = condition(HYPERS, X, Y)
    order = np.argsort(-posterior.predict(X)[0].mean(0))
    best = posterior.best_data(12)
    np.testing.assert_array_equal(best, X[order[np.arange(12) % N]])  # repeated, as they are few
    assert condition(HYPERS, X[:0], Y[:0]).best_data(4).shape == (0, D)


def test_columns_of_one_parameter_share_a_length_scale() -> None:
    wide = Hyperparameters([[0.4, 0.4, 0.9]], [1.0], [0.1], [0.0])
    short = Hyperparameters([[0.4, 0.9]], [1.0], [0.1], [0.0])
    Z, z = RNG.uniform(size=(5, 3)), RNG.uniform(size=(2, 3))
    sample = Sample(Z, Y[:5], np.full(5, np.nan))
    a = fit(short, sample, kernel=Matern52(), columns=(0, 0, 1))
    b = fit(wide, sample, kernel=Matern52(), columns=(0, 1, 2))
    assert isinstance(a, Posterior)
    np.testing.assert_allclose(a.predict(z), b.predict(z), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": X[:, :1]}, r"points must have shape \(q, 2\), not \(8, 1\)"),
        ({"X": X[0]}, r"points must have shape \(q, 2\), not \(2,\)"),
        ({"y": Y[:-1]}, r"y and noise_var must have shape \(8,\).*\(7,\)"),
        ({"noise_var": KNOWN[:-1]}, r"y and noise_var must have shape \(8,\).*\(7,\)"),
        ({"y": np.where(np.arange(N) == 3, np.nan, Y)}, "finite"),
        ({"X": np.concatenate([X[:-1], [[np.inf, 0.0]]])}, "finite"),
        ({"X": X + 1e6}, "length scales away from 0, where distances between them are lost"),
        ({"noise_var": np.where(np.arange(N) == 3, -0.1, KNOWN)}, "noise_var must not be negative"),
        (
            {"kernel": "cubic"},
            "kernel must be one of rbf, matern52, mixed, additive, or a Kernel, not 'cubic'",
        ),
    ],
)
def test_condition_refuses(change: dict[str, object], message: str) -> None:
    arguments = {"X": X, "y": Y, "kernel": "rbf", "noise_var": None, **change}
    with pytest.raises(ValueError, match=message):
        condition(HYPERS, **arguments)


def test_predict_refuses_points_of_another_space() -> None:
    for ask in (condition(HYPERS, X, Y).predict, condition(HYPERS, X, Y).joint):
        with pytest.raises(ValueError, match=r"shape \(q, 2\), not \(4, 1\)"):
            ask(np.full((4, 1), 0.5))
