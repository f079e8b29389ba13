"""Functionals that are known, against a GP refitted with them as observations."""

from __future__ import annotations

import numpy as np
import pytest

from gp_cases import HYPERS, KERNELS, KNOWN, D, M, N, Q, X, Y, k, slopes, textbook
from optpair.gp import Hyperparameters, Matern52, condition
from optpair.gp.conditioned import Conditioned, Functionals, condition_on, seen

P = 4
RNG = np.random.default_rng(2)
STAR, OTHER = RNG.uniform(size=(2, M, P, D))
VALUES = RNG.normal(size=(M, P, 1)) + 1.0
SOFT = 1e-6
ONE = np.array([SOFT])


def values_at(star: np.ndarray) -> Functionals:
    return Functionals(((0, star),))


def moments(conditioned: Conditioned, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(K1) and (K2): (M, P, q) each."""
    query = conditioned.posterior.at(X)
    z = conditioned.at(X, query).z
    mean = query.means + np.einsum("mpiq,mpi->mpq", z, conditioned.shift)
    return mean, query.variance[:, None] - np.sum(z**2, 2)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_value_is_one_more_observation(kernel: str) -> None:
    """(K1) and (K2) for J = 1, against a GP refitted on n + 1 rows."""
    posterior = condition(HYPERS, X, Y, kernel, KNOWN)
    known = np.ones((M, P, 1), dtype=bool)
    mean, variance = moments(condition_on(posterior, values_at(STAR), VALUES, known, ONE), Q)
    for m, p in np.ndindex(M, P):
        noises = np.where(np.isnan(KNOWN), HYPERS.noise[m], KNOWN)
        rows = np.concatenate([X, STAR[m, p : p + 1]])
        noises = np.append(noises, SOFT * HYPERS.outputscale[m])
        truth = textbook(kernel, m, rows, np.append(Y, VALUES[m, p]), noises, Q)
        np.testing.assert_allclose(mean[m, p], truth[0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(variance[m, p], np.diagonal(truth[1]), rtol=1e-6, atol=1e-9)


def refitted(
    m: int, groups: list[tuple[int, np.ndarray]], wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance at Q given data and functionals, by one big dense solve.

    All covariances with derivatives are built by differencing the kernel between points: f, slopes
    and curvatures as weights on values at points around each star, so that no closed form of a
    derivative is used.
    """
    step, scale = 5e-3, HYPERS.lengthscale[m]
    points, weights = [], []
    for order, star in groups:
        around = [star]
        rows = [np.eye(1, 1 + 2 * D)[0]]
        for c in range(D):
            around += [star + step * scale * np.eye(D)[c], star - step * scale * np.eye(D)[c]]
        slopes_, bends = [], []
        for c in range(D):
            up, down = np.eye(1 + 2 * D)[1 + 2 * c], np.eye(1 + 2 * D)[2 + 2 * c]
            slopes_.append((up - down) / (2 * step))
            bends.append((up + down - 2 * np.eye(1 + 2 * D)[0]) / step**2)
        rows += (slopes_ if order >= 1 else []) + (bends if order >= 2 else [])
        points.append(np.array(around))
        weights.append(np.array(rows))
    W = np.zeros((sum(map(len, weights)), sum(map(len, points))))
    i = j = 0
    for w in weights:
        W[i : i + w.shape[0], j : j + w.shape[1]] = w
        i, j = i + w.shape[0], j + w.shape[1]
    every = np.concatenate([X, Q, *points])
    K = k("rbf", m, every, every)
    L = np.zeros((N + len(Q) + len(W), len(every)))
    L[: N + len(Q), : N + len(Q)] = np.eye(N + len(Q))
    L[N + len(Q) :, N + len(Q) :] = W
    full, mean = L @ K @ L.T, L @ np.full(len(every), HYPERS.mean[m])
    seen_, asked = np.r_[0:N, N + len(Q) : len(full)], np.arange(N, N + len(Q))
    noise = np.append(np.full(N, HYPERS.noise[m]), np.full(len(W), 0.01 * HYPERS.outputscale[m]))
    V = full[np.ix_(seen_, seen_)] + np.diag(noise)
    cross = full[np.ix_(asked, seen_)]
    residual = np.append(Y, wanted) - mean[seen_]
    solved = np.linalg.solve(V, cross.T)
    variance = np.diagonal(full)[asked] - np.sum(cross * solved.T, 1)
    return mean[asked] + solved.T @ residual, variance


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_are_observations_too(order: int) -> None:
    """f, slopes and curvatures at x*, and f at another point, by brute force (RBF).

    Differences with steps of 0.005 length scales are off by 4e-6 of a sixth derivative (15 a), and
    by eps over the fourth power of the step, 1e-6, where two curvatures meet.
    """
    posterior = condition(HYPERS, X, Y, "rbf")
    functionals = Functionals(((order, STAR), (0, OTHER)))
    J = 2 + order * D
    wanted = RNG.normal(size=(M, P, J))
    known, softness = np.ones((M, P, J), dtype=bool), np.full(J, 0.01)
    got = moments(condition_on(posterior, functionals, wanted, known, softness), Q)
    for m in range(M):
        groups = [(order, STAR[m, 0]), (0, OTHER[m, 0])]
        truth = refitted(m, groups, wanted[m, 0])
        a = HYPERS.outputscale[m]
        np.testing.assert_allclose(got[0][m, 0], truth[0], rtol=0, atol=2e-3 * np.sqrt(a))
        np.testing.assert_allclose(got[1][m, 0], truth[1], rtol=0, atol=1e-3 * a)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_known_holds_afterwards(kernel: str) -> None:
    """At x* the mean is f*, its slope zero and its curvature as wanted; the variance is gone."""
    posterior = condition(HYPERS, X, Y, kernel)
    functionals = Functionals(((2, STAR),))
    wanted = np.concatenate([VALUES, np.zeros((M, P, D)), -np.ones((M, P, D))], -1)
    known, softness = np.ones_like(wanted, dtype=bool), np.full(1 + 2 * D, 1e-10)
    given = condition_on(posterior, functionals, wanted, known, softness)
    for m, p in np.ndindex(M, P):
        x, scale = STAR[m, p], HYPERS.lengthscale[m]
        step = 1e-3 * scale
        around = np.concatenate([[x], x + np.diag(step), x - np.diag(step)])
        mean, variance = (v[m, p] for v in moments(given, around))
        assert mean[0] == pytest.approx(VALUES[m, p, 0], abs=1e-5)
        assert variance[0] == pytest.approx(0.0, abs=1e-6 * HYPERS.outputscale[m])
        up, down = mean[1 : 1 + D], mean[1 + D :]
        np.testing.assert_allclose((up - down) / 2e-3, 0.0, atol=2e-2)
        np.testing.assert_allclose((up + down - 2 * mean[0]) / 1e-6, -1.0, atol=0.3)


def test_what_the_data_say_of_functionals() -> None:
    """Means and covariance are those of the posterior; slopes by differences of them."""
    posterior = condition(HYPERS, X, Y)
    found = seen(posterior, Functionals(((1, STAR), (0, OTHER))))
    for m, p in np.ndindex(M, P):
        x, scale = STAR[m, p], HYPERS.lengthscale[m]
        step = 1e-4 * scale
        points = np.concatenate([[x], x + np.diag(step), x - np.diag(step), OTHER[m, p : p + 1]])
        mean, joint = (v[m] for v in posterior.joint(points))
        W = np.zeros((2 + D, len(points)))
        W[0, 0] = W[-1, -1] = 1
        for c in range(D):
            W[1 + c, 1 + c], W[1 + c, 1 + D + c] = 1 / 2e-4, -1 / 2e-4
        a = HYPERS.outputscale[m]
        np.testing.assert_allclose(found.mean[m, p], W @ mean, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found.covariance[m, p], W @ joint @ W.T, atol=1e-5 * a)


def test_what_is_not_known_has_no_effect() -> None:
    posterior = condition(HYPERS, X, Y)
    both = Functionals(((1, STAR), (0, OTHER)))
    wanted = RNG.normal(size=(M, P, 2 + D))
    known = np.zeros((M, P, 2 + D), dtype=bool)
    known[..., 0] = True
    softness = np.full(2 + D, SOFT)
    part = moments(condition_on(posterior, both, wanted, known, softness), Q)
    first = np.ones((M, P, 1), dtype=bool)
    alone = moments(condition_on(posterior, values_at(STAR), wanted[..., :1], first, ONE), Q)
    for a, b in zip(part, alone, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    none = moments(condition_on(posterior, both, wanted, known & False, softness), Q)
    np.testing.assert_allclose(none[0], np.broadcast_to(posterior.at(Q).means, none[0].shape))
    np.testing.assert_allclose(none[1], np.repeat(posterior.at(Q).variance[:, None], P, 1))


def test_the_order_of_functionals_does_not_matter() -> None:
    posterior = condition(HYPERS, X, Y)
    known, softness = np.ones((M, P, 2 + D), dtype=bool), np.full(2 + D, SOFT)
    wanted = RNG.normal(size=(M, P, 2 + D))
    one = condition_on(posterior, Functionals(((1, STAR), (0, OTHER))), wanted, known, softness)
    turned = np.concatenate([wanted[..., -1:], wanted[..., :-1]], -1)
    two = condition_on(posterior, Functionals(((0, OTHER), (1, STAR))), turned, known, softness)
    for a, b in zip(moments(one, Q), moments(two, Q), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_derivatives_at_two_points_are_refused() -> None:
    posterior = condition(HYPERS, X, Y)
    with pytest.raises(NotImplementedError, match="derivatives at two different points"):
        seen(posterior, Functionals(((1, STAR), (1, OTHER))))


@pytest.mark.parametrize("groups", [((0, STAR),), ((1, STAR),), ((2, STAR), (0, OTHER))])
@pytest.mark.parametrize("kernel", KERNELS)
def test_pull_against_central_differences(
    kernel: str, groups: tuple[tuple[int, np.ndarray], ...]
) -> None:
    """Of z and of both moments, at fresh points, at a datum and at a star."""
    posterior = condition(HYPERS, X, Y, kernel)
    J = sum(1 + order * D for order, _ in groups)
    known, softness = np.ones((M, P, J), dtype=bool), np.full(J, 1e-3)
    wanted = np.zeros((M, P, J))
    given = condition_on(posterior, Functionals(groups), wanted, known, softness)
    points = np.concatenate([Q, X[:1], STAR[0, :1]])
    q = len(points)
    by_z, by_means = RNG.normal(size=(M, P, J, q)), RNG.normal(size=(M, 1, q))
    by_variance = RNG.normal(size=(M, q))

    def total(X: np.ndarray) -> np.ndarray:
        query = posterior.at(X)
        z = given.at(X, query).z
        rest = by_means[:, 0] * query.means[:, 0] + by_variance * query.variance
        return np.sum(by_z * z, (1, 2)) + rest

    query = given.at(points, posterior.at(points))
    exact, numeric = query.pull(by_z, by_means, by_variance), slopes(total, points)
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-4 * np.abs(numeric).max())
    # Without the moments: z alone.
    alone = query.pull(by_z) + posterior.at(points).pull(by_means, by_variance)
    np.testing.assert_allclose(alone, exact, rtol=1e-9, atol=1e-9)


def test_several_sets_are_one_at_a_time() -> None:
    known = np.ones((M, P, 1 + D), dtype=bool)
    wanted, softness = RNG.normal(size=(M, P, 1 + D)), np.full(1 + D, SOFT)
    posterior = condition(HYPERS, X, Y)
    whole = moments(condition_on(posterior, Functionals(((1, STAR),)), wanted, known, softness), Q)
    for m in range(M):
        own = slice(m, m + 1)
        part = condition_on(
            posterior.of_sets(own),
            Functionals(((1, STAR[own]),)),
            wanted[own],
            known[own],
            softness,
        )
        for a, b in zip(whole, moments(part, Q), strict=True):
            np.testing.assert_allclose(a[m], b[0], rtol=1e-9, atol=1e-11)


def test_an_optimum_belongs_to_its_fantasy() -> None:
    """With P fantasies, optimum p is conditioned on the mean of fantasy p."""
    fantasies = RNG.normal(size=(M, P))
    posterior = condition(HYPERS, X, Y).append(Q[0], fantasies)
    known = np.ones((M, P, 1), dtype=bool)
    mean, variance = moments(condition_on(posterior, values_at(STAR), VALUES, known, ONE), Q)
    for p in range(P):
        alone = condition(HYPERS, X, Y).append(Q[0], fantasies[:, p : p + 1])
        given = condition_on(alone, values_at(STAR[:, p : p + 1]), VALUES[:, p : p + 1],
                             known[:, :1], ONE)  # fmt: skip
        truth = moments(given, Q)
        np.testing.assert_allclose(mean[:, p], truth[0][:, 0], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(variance[:, p], truth[1][:, 0], rtol=1e-9, atol=1e-10)


def test_a_star_at_an_observation_without_noise_stays_finite() -> None:
    """What is known already: conditioning on it again changes next to nothing."""
    silent = Hyperparameters([[0.3, 0.7]], [1.0], [0.0], [0.0])
    posterior = condition(silent, X, Y)
    star, known = X[None, :2], np.ones((1, 2, 1 + D), dtype=bool)
    wanted = np.concatenate([Y[None, :2, None], np.zeros((1, 2, D))], -1)
    given = condition_on(posterior, Functionals(((1, star),)), wanted, known, np.full(1 + D, SOFT))
    mean, variance = moments(given, Q)
    assert np.all(np.isfinite(mean))
    assert np.all(variance > -1e-9)
    first = np.zeros_like(known)
    first[..., 0] = True
    same = condition_on(posterior, Functionals(((1, star),)), wanted, first, np.full(1 + D, SOFT))
    np.testing.assert_allclose(
        moments(same, Q)[0][0], posterior.predict(Q)[0].repeat(2, 0), atol=1e-4
    )


def test_without_a_factor_only_the_first_functional_is_known() -> None:
    """Two values at one and the same point, without softness: V is singular."""
    posterior = condition(HYPERS, X[:0], Y[:0])
    twice = Functionals(((0, STAR), (0, STAR)))
    wanted, known = np.repeat(VALUES, 2, -1), np.ones((M, P, 2), dtype=bool)
    mean, variance = moments(condition_on(posterior, twice, wanted, known, np.zeros(2)), Q)
    first = np.ones((M, P, 1), dtype=bool)
    truth = moments(condition_on(posterior, values_at(STAR), VALUES, first, np.zeros(1)), Q)
    np.testing.assert_allclose(mean, truth[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variance, truth[1], rtol=1e-6, atol=1e-6)


def test_outcomes_with_data_of_their_own() -> None:
    """Three posteriors with different rows: each gains as it does alone, and their gains add up.

    ½ log((s + σ²)/(s_p + σ²)) of independent outcomes is that of their joint covariance.
    """
    rows = [X, X[:5], X[2:]]
    values = [Y, -Y[:5], Y[2:] ** 2]
    known = np.ones((M, P, 1), dtype=bool)
    gains, before, after = [], [], []
    for x, y in zip(rows, values, strict=True):
        posterior = condition(HYPERS, x, y, Matern52())
        given = condition_on(posterior, values_at(STAR), VALUES, known, ONE)
        _, variance = moments(given, Q)
        noise = HYPERS.noise[:, None, None]
        total, left = posterior.at(Q).variance[:, None] + noise, variance + noise
        gains.append(0.5 * np.log(total / left))
        before.append(np.broadcast_to(total, left.shape))
        after.append(left)
        assert np.all(gains[-1] >= 0)
    joint = 0.5 * (np.linalg.slogdet(_diagonal(before))[1] - np.linalg.slogdet(_diagonal(after))[1])
    np.testing.assert_allclose(np.sum(gains, 0), joint, rtol=1e-9, atol=1e-12)
    assert not np.allclose(gains[0], gains[1])


def _diagonal(entries: list[np.ndarray]) -> np.ndarray:
    return np.stack(entries, -1)[..., None] * np.eye(len(entries))


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_at_several_points_are_taken_together(kernel: str) -> None:
    """Rows and slopes are those of one point after another, also at a point itself."""
    posterior = condition(HYPERS, X, Y, kernel)
    points = np.concatenate([Q, STAR[0, :1], STAR[0, :1] + 1e-5])
    (values,) = Functionals(((0, STAR), (0, OTHER))).jets(posterior, points)
    each = [values_at(star).jets(posterior, points)[0] for star in (STAR, OTHER)]
    rows = np.concatenate([jet.rows for jet in each], 2)
    np.testing.assert_allclose(values.rows, rows, rtol=1e-11)
    by_rows = RNG.normal(size=rows.shape)
    slope = sum(jet.pull(by_rows[:, :, r : r + 1]) for r, jet in enumerate(each))
    np.testing.assert_allclose(values.pull(by_rows), slope, rtol=1e-9, atol=1e-11)
