"""The posterior against a dense textbook computation, padded rows, appended rows, bad matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optpair.gp.posterior import (
    JITTERS,
    Hyperparameters,
    Posterior,
    append,
    check_factor,
    condition,
    fit,
    robust_cholesky,
)

KERNELS = ("rbf", "matern52", "mixed")
N, D, M, SIZE = 8, 2, 3, 16
RNG = np.random.default_rng(0)
X, Y, Q = RNG.uniform(size=(N, D)), RNG.normal(size=N), RNG.uniform(size=(6, D))
HYPERS = Hyperparameters(
    lengthscale=[[0.3, 0.7], [0.1, 2.0], [0.5, 0.2]],
    outputscale=[1.0, 4.0, 0.3],
    noise=[0.01, 0.3, 0.001],
    mean=[0.2, -1.0, 3.0],
    rough=[0.3, 0.9, 0.01],
)
KNOWN = np.array([np.nan, 0.5, np.nan, 0.02, np.nan, np.nan, 0.1, np.nan])

append_row = jax.jit(append)
factorise = jax.jit(robust_cholesky)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def k(kernel: str, m: int, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    scale = np.asarray(HYPERS.lengthscale)[m]
    r = np.sqrt(np.sum(((A[:, None] - B) / scale) ** 2, -1))
    u = np.sqrt(5) * r
    share = {"rbf": 0.0, "matern52": 1.0, "mixed": np.asarray(HYPERS.rough)[m]}[kernel]
    h = (1 - share) * np.exp(-(r**2) / 2) + share * (1 + u + u**2 / 3) * np.exp(-u)
    return np.asarray(HYPERS.outputscale)[m] * h


def textbook(
    kernel: str, m: int, X: np.ndarray, y: np.ndarray, noises: np.ndarray, Q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """m(x) and s(x), by solving with K + Σ itself."""
    mu = np.asarray(HYPERS.mean)[m]
    K = k(kernel, m, X, X) + np.diag(noises)
    cross = k(kernel, m, Q, X)
    mean = mu + cross @ np.linalg.solve(K, y - mu)
    variance = np.diagonal(k(kernel, m, Q, Q) - cross @ np.linalg.solve(K, cross.T))
    return mean, variance


def padded(kernel: str, noise_var: np.ndarray, hypers: Hyperparameters = HYPERS) -> Posterior:
    """The same data in 16 rows; what is in the padding should not matter, so it is nonsense."""
    wide = fit(hypers, X, Y, noise_var, kernel=kernel, columns=(0, 1), size=SIZE)
    return replace(wide, X=wide.X.at[N:].set(0.123), noise_var=wide.noise_var.at[:, N:].set(1e-3))


def one_set(m: int) -> Hyperparameters:
    return Hyperparameters(*(np.asarray(v)[m : m + 1] for v in jax.tree.leaves(HYPERS)))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("noise_var", [None, KNOWN], ids=["inferred", "some-known"])
def test_moments_are_the_textbooks(kernel: str, noise_var: np.ndarray | None) -> None:
    # A known noise variance replaces the set's at that observation and nowhere else.
    mean, variance = condition(HYPERS, X, Y, kernel, noise_var).predict(Q)
    assert mean.shape == variance.shape == (M, len(Q))
    assert mean.dtype == variance.dtype == np.float64
    for m in range(M):
        inferred = np.full(N, np.asarray(HYPERS.noise)[m])
        given = np.full(N, np.nan) if noise_var is None else noise_var
        noises = np.where(np.isnan(given), inferred, given)
        truth = textbook(kernel, m, X, Y, noises, Q)
        np.testing.assert_allclose(mean[m], truth[0], rtol=1e-9)
        np.testing.assert_allclose(variance[m], truth[1], rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_padding_changes_nothing(kernel: str) -> None:
    plain, wide = condition(HYPERS, X, Y, kernel, KNOWN), padded(kernel, KNOWN)
    for a, b in zip(plain.predict(Q), wide.predict(Q), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    np.testing.assert_allclose(wide.noise, plain.noise)
    np.testing.assert_array_equal(wide.weights[..., N:], 0.0)


def test_padding_does_not_change_the_jitter_either() -> None:
    """The ladder is relative to the diagonal of the data, whatever the units of y are."""
    tiny = Hyperparameters([[0.3, 0.3]], [1e-12], [0.0], [0.0])
    rows = np.array([[0.2, 0.4], [0.2, 0.4], [0.7, 0.1]])
    values, unknown = np.array([1e-6, 1e-6, -1e-6]), np.full(3, np.nan)
    plain = condition(tiny, rows, values)
    wide = fit(tiny, rows, values, unknown, kernel="matern52", columns=(0, 1), size=SIZE)
    assert float(plain.jitter[0]) > 0
    for a, b in zip(plain.predict(Q), wide.predict(Q), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_several_sets_are_one_at_a_time() -> None:
    together = condition(HYPERS, X, Y).predict(Q)
    for m in range(M):
        alone = condition(one_set(m), X, Y).predict(Q)
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[m], b[0], rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_means_at_the_data_need_no_covariance(kernel: str) -> None:
    posterior = padded(kernel, KNOWN)
    posterior = append_row(posterior, jnp.asarray(Q[0]), jnp.ones((M, 2)))
    fast = np.asarray(posterior.means_at_data())[..., : N + 1]
    slow = np.asarray(posterior.means(posterior.covariance(posterior.X)))[..., : N + 1]
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-9)


def test_means_at_the_data_where_jitter_was_needed() -> None:
    """Duplicates without noise that disagree: the jitter is all that lets the mean pass between."""
    hypers = Hyperparameters([[0.5, 0.5]], [2.0], [0.0], [0.1])
    twice = np.concatenate([X, X])
    posterior = condition(hypers, twice, np.concatenate([Y, Y + 1.0]), "rbf")
    assert posterior.jitter[0] > 0
    slow = np.asarray(posterior.means(posterior.covariance(posterior.X)))
    np.testing.assert_allclose(posterior.means_at_data(), slow, rtol=0, atol=1e-4)


@pytest.mark.parametrize("n", [64, 65, 130, 300])
def test_whitening_by_strips_is_a_product_with_the_inverse(n: int) -> None:
    posterior = condition(HYPERS, RNG.uniform(size=(n, D)), RNG.normal(size=n))
    K = RNG.normal(size=(M, 5, n))
    expected = K @ np.swapaxes(np.asarray(posterior.inverse_factor), 1, 2)
    scale = np.abs(expected).max()
    whitened = posterior.whiten(jnp.asarray(K))
    np.testing.assert_allclose(whitened, expected, rtol=0, atol=1e-13 * scale)


def test_noise_of_a_future_query() -> None:
    """Inferred, or the median of the known ones where all are known."""
    np.testing.assert_array_equal(condition(HYPERS, X, Y).noise, HYPERS.noise)
    np.testing.assert_array_equal(condition(HYPERS, X, Y, noise_var=KNOWN).noise, HYPERS.noise)
    every = np.array([0.5, 0.1, 0.2, 0.9, 0.8, 0.3, 0.4, 0.7])
    np.testing.assert_allclose(condition(HYPERS, X, Y, noise_var=every).noise, 0.45)
    np.testing.assert_allclose(padded("rbf", every).noise, 0.45)


@pytest.mark.parametrize("kernel", KERNELS)
def test_limits(kernel: str) -> None:
    """No noise: the data themselves. All noise: the prior."""
    exact = replace(HYPERS, noise=np.full(M, 1e-10))
    mean, variance = condition(exact, X, Y, kernel).predict(X)
    np.testing.assert_allclose(mean, np.tile(Y, (M, 1)), atol=1e-4)
    np.testing.assert_allclose(variance, 0.0, atol=1e-9)
    deaf = replace(HYPERS, noise=np.full(M, 1e12))
    mean, variance = condition(deaf, X, Y, kernel).predict(Q)
    np.testing.assert_allclose(mean, np.asarray(HYPERS.mean)[:, None] * np.ones(6), rtol=1e-9)
    np.testing.assert_allclose(variance, np.asarray(HYPERS.outputscale)[:, None] * np.ones(6))


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_moments_against_joint_draws(kernel: str) -> None:
    """Regress draws of f(x) on draws of y: no formula for conditional normals in it."""
    rng = np.random.default_rng(3)
    draws, points = 40_000, np.concatenate([X, Q[:1]])
    noises = np.asarray(HYPERS.noise)
    mean, variance = condition(HYPERS, X, Y, kernel).predict(Q[:1])
    for m in range(M):
        K = k(kernel, m, points, points) + 1e-12 * np.eye(N + 1)
        f = rng.normal(size=(draws, N + 1)) @ np.linalg.cholesky(K).T
        y = f[:, :N] + np.sqrt(noises[m]) * rng.normal(size=(draws, N))
        weights, _, _, _ = np.linalg.lstsq(y, f[:, N])
        left = f[:, N] - y @ weights
        # The residual variance has relative standard error √(2/draws); the prediction's standard
        # error is that of a regression: √(s · rᵀ(yᵀy)⁻¹r).
        assert abs(left.var() / variance[m, 0] - 1) < 4 * np.sqrt(2 / draws)
        r = Y - np.asarray(HYPERS.mean)[m]
        error = np.sqrt(variance[m, 0] * r @ np.linalg.solve(y.T @ y, r))
        assert abs(np.asarray(HYPERS.mean)[m] + r @ weights - mean[m, 0]) < 4 * error


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_of_the_moments(kernel: str) -> None:
    # At fresh points and at observed ones, where the distance is zero. Central differences with
    # step eps^⅓ err by about step²·k‴ ≈ 4e-11·a/ℓ³.
    posterior = condition(HYPERS, X, Y, kernel)
    points = np.concatenate([Q, X[:2], [[0.0, 1.0]]])
    step = np.finfo(float).eps ** (1 / 3)

    @jax.jit
    def both(points: jax.Array) -> jax.Array:
        means, variance = posterior.moments(points)
        return jnp.stack([means[:, 0], variance])

    @jax.jit
    def slope(points: jax.Array, direction: jax.Array) -> jax.Array:
        return jax.jvp(both, (points,), (jnp.broadcast_to(direction, points.shape),))[1]

    for direction in np.eye(D):
        ends = [np.asarray(both(jnp.asarray(points + s * step * direction))) for s in (1, -1)]
        numeric = (ends[0] - ends[1]) / (2 * step)
        exact = slope(jnp.asarray(points), jnp.asarray(direction))
        np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_appended_is_refitted(kernel: str) -> None:
    """Two points, each with values of its own under three fantasies, one row at a time."""
    posterior = padded(kernel, KNOWN)
    fantasies = np.random.default_rng(4).normal(size=(2, M, 3))
    grown = posterior
    for x, values in zip(Q[:2], fantasies, strict=True):
        grown = append_row(grown, jnp.asarray(x), jnp.asarray(values))
    means, variance = (np.asarray(v) for v in grown.moments(jnp.asarray(Q)))
    assert means.shape == (M, 3, len(Q))
    both = np.concatenate([X, Q[:2]])
    for m in range(M):
        inferred = np.asarray(HYPERS.noise)[m]
        noises = np.concatenate([np.where(np.isnan(KNOWN), inferred, KNOWN), [inferred] * 2])
        for f in range(3):
            y = np.concatenate([Y, fantasies[:, m, f]])
            truth = textbook(kernel, m, both, y, noises, Q)
            np.testing.assert_allclose(means[m, f], truth[0], rtol=1e-8)
            np.testing.assert_allclose(variance[m], truth[1], rtol=1e-8, atol=1e-12)
        K = np.eye(SIZE)
        K[: N + 2, : N + 2] = k(kernel, m, both, both) + np.diag(noises)
        inverse = np.linalg.inv(np.linalg.cholesky(K))
        np.testing.assert_allclose(grown.inverse_factor[m], inverse, atol=1e-8 * inverse.max())
    np.testing.assert_array_equal(grown.mask, np.arange(SIZE) < N + 2)


def test_appending_a_duplicate_without_noise_stays_finite() -> None:
    silent = replace(HYPERS, noise=np.zeros(M))
    grown = append_row(padded("mixed", np.full(N, np.nan), silent), X[0], jnp.full((M, 1), Y[0]))
    means, variance = (np.asarray(v) for v in grown.moments(jnp.asarray(Q)))
    plain = condition(silent, X, Y).predict(Q)
    # The copy agrees with what is known: it teaches nothing.
    np.testing.assert_allclose(means[:, 0], plain[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(variance, plain[1], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(("kernel", "copies"), [("rbf", 2), ("matern52", 200)])
def test_duplicates_without_noise_climb_the_ladder(kernel: str, copies: int) -> None:
    """Copies that disagree are averaged, and the jitter is reported for the sets that needed it."""
    mixed = Hyperparameters([[0.3, 0.3]] * 2, [2.0, 2.0], [0.0, 1.0], [0.0, 0.0])
    values = np.arange(copies) % 2 * 1.0
    posterior = condition(mixed, np.tile([[0.3, 0.7]], (copies, 1)), values, kernel)
    jitter = np.asarray(posterior.jitter)
    assert 0 < jitter[0] <= 1e-8
    assert jitter[1] == 0
    mean, variance = posterior.predict([[0.3, 0.7], [0.9, 0.1]])
    # Without noise the average; solving at a condition number of copies/1e-10 leaves 1e-3.
    assert mean[0, 0] == pytest.approx(0.5, abs=1e-3)
    assert 0 <= variance[0, 0] <= 2.0 * jitter[0]
    # With unit noise: a/(a + 1/copies) of the way to the average.
    assert mean[1, 0] == pytest.approx(0.5 * 2 / (2 + 1 / copies), rel=1e-9)
    assert variance[1, 0] == pytest.approx(2 / copies / (2 + 1 / copies), rel=1e-9)


def test_a_factor_of_round_off_is_not_taken_for_a_good_one() -> None:
    """A repeated point without noise makes K singular: 40 sets, and none may get away with it."""
    rng = np.random.default_rng(5)
    sets = 40
    scale, outputs = rng.uniform(0.05, 1.0, (sets, 2)), 10 ** rng.uniform(-1, 1, sets)
    hypers = Hyperparameters(scale, outputs, np.zeros(sets), np.zeros(sets))
    twice = np.concatenate([X[:5], X[:1]])
    posterior = condition(hypers, twice, Y[:6])
    mean, _ = posterior.predict(X[:1])
    assert np.all(np.asarray(posterior.jitter) > 0)
    # The jitter of 1e-10 is what keeps the two apart: the average, to about √1e-10 of values ~ 1.
    np.testing.assert_allclose(mean[:, 0], (Y[0] + Y[5]) / 2, atol=1e-3)


def test_each_set_climbs_on_its_own() -> None:
    singular = np.ones((2, 2))
    indefinite = singular - 1e-6 * np.array([[0.0, -1.0], [-1.0, 0.0]])  # eigenvalue −1e-6
    hopeless = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalue −1
    K = np.stack([np.eye(2), singular, indefinite, hopeless])
    C, jitter = (np.asarray(v) for v in factorise(jnp.asarray(K)))
    assert jitter[0] == 0
    assert jitter[1] == JITTERS[1]
    assert 1e-6 <= jitter[2] <= 1e-5
    for m in range(3):
        np.testing.assert_allclose(C[m] @ C[m].T, K[m] + jitter[m] * np.eye(2), atol=1e-14)
    assert jitter[3] == JITTERS[-1]
    assert not np.isfinite(C[3]).all()


def test_a_hopeless_matrix_names_its_sets() -> None:
    posterior = condition(HYPERS, X, Y)
    broken = np.array(posterior.inverse_factor)
    broken[1] = np.nan
    with pytest.raises(FloatingPointError, match=r"set\(s\) \[1\].*jitter of 0\.001"):
        check_factor(replace(posterior, inverse_factor=jnp.asarray(broken)))
    check_factor(posterior)


def test_one_observation() -> None:
    one = Hyperparameters([[0.3]], [2.0], [0.5], [1.0])
    mean, variance = condition(one, [[0.5]], [3.0], "rbf").predict([[0.5], [0.8]])
    h = np.exp(-0.5)
    np.testing.assert_allclose(mean[0], [1 + 2 * 2 / 2.5, 1 + 2 * h * 2 / 2.5])
    np.testing.assert_allclose(variance[0], [2 - 4 / 2.5, 2 - 4 * h**2 / 2.5])


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
        ({"noise_var": np.where(np.arange(N) == 3, -0.1, KNOWN)}, "noise_var"),
        ({"kernel": "cubic"}, "kernel must be one of rbf, matern52, mixed, not 'cubic'"),
    ],
)
def test_condition_refuses(change: dict[str, object], message: str) -> None:
    arguments = {"X": X, "y": Y, "kernel": "rbf", "noise_var": None, **change}
    with pytest.raises(ValueError, match=message):
        condition(HYPERS, **arguments)


def test_predict_refuses_points_of_another_space() -> None:
    with pytest.raises(ValueError, match=r"shape \(q, 2\), not \(4, 1\)"):
        condition(HYPERS, X, Y).predict(np.full((4, 1), 0.5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengthscale": [0.3, 0.7]}, r"lengthscale must have shape \(M, d\), not \(2,\)"),
        ({"lengthscale": np.array(0.3)}, r"lengthscale must have shape \(M, d\), not \(\)"),
        ({"lengthscale": [[0.3, 0.0]] * 3}, "lengthscale must be finite and positive"),
        ({"outputscale": [1.0, 2.0]}, r"outputscale must have shape \(M,\) = \(3,\), not \(2,\)"),
        ({"outputscale": [1.0, -2.0, 1.0]}, "outputscale must be finite and positive"),
        ({"noise": [0.1, -1e-9, 0.1]}, r"noise must be finite and positive \(or zero\)"),
        ({"noise": np.array(0.1)}, r"noise must have shape"),
        ({"mean": [0.0, np.nan, 0.0]}, "mean must be finite"),
        ({"rough": [0.0, 1.1, 0.5]}, "rough must be from 0 to 1, not"),
        ({"rough": [0.0, np.nan, 0.5]}, "rough must be from 0 to 1, not"),
        ({"rough": [0.5]}, r"rough must have shape \(M,\) = \(3,\), not \(1,\)"),
    ],
)
def test_hyperparameters_refuse(change: dict[str, object], message: str) -> None:
    names = ("lengthscale", "outputscale", "noise", "mean")
    arguments = {name: getattr(HYPERS, name) for name in names} | change
    with pytest.raises(ValueError, match=message):
        Hyperparameters(**arguments)


def test_hyperparameters_accept_lists_and_no_noise() -> None:
    hypers = Hyperparameters([[1.0, 2.0]], [1.0], [0.0], [-3.0])
    assert hypers.sets == 1
    assert hypers.lengthscale.dtype == np.float64


def test_without_data_it_is_the_prior() -> None:
    hypers = Hyperparameters([[0.3]], [2.0], [0.1], [1.5])
    mean, variance = condition(hypers, np.zeros((0, 1)), []).predict([[0.5], [0.7]])
    np.testing.assert_allclose(mean, [[1.5, 1.5]])
    np.testing.assert_allclose(variance, [[2.0, 2.0]])
