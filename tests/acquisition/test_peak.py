"""JES with flat optima against dense conditioning, draws, and JES itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optpair.acquisition.peak import SLOPE, VALUE
from optpair.pairs import OptimalPairs
from scipy import stats

from acquisition_cases import KERNELS, D, M, N, P, grown, slopes
from optpair.acquisition import jes, jes_peak, peak
from optpair.cube import Cube
from optpair.gp import kernels
from optpair.gp.posterior import Hyperparameters, condition

RNG = np.random.default_rng(3)
X, Y = RNG.uniform(size=(N, D)), RNG.normal(size=N)
SCALE, OUTPUT, NOISE, MEAN = np.array([0.3, 0.7]), 2.0, 0.05, 0.4
ROUGH = 0.4
HYPERS = Hyperparameters(SCALE[None], [OUTPUT], [NOISE], [MEAN], [ROUGH])
STARS = OptimalPairs(RNG.uniform(0.1, 0.9, (1, P, D)), Y.max() + RNG.uniform(0.1, 1.0, (1, P)))
Q = RNG.uniform(size=(6, D))


def joint(kernel: str, star: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of (f(Q), f(x*), slopes at x*); slopes by differentiation."""

    of = kernels.Correlation(kernel, jnp.asarray(ROUGH))

    def k(x: jax.Array, y: jax.Array) -> jax.Array:
        return OUTPUT * kernels.correlation(of, jnp.sum(((x - y) / SCALE) ** 2))

    def slope(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.grad(k)(x, y) * SCALE

    def bend(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.jacfwd(slope, 1)(x, y) * SCALE

    def table(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        rows = jax.vmap(lambda x: jax.vmap(lambda y: k(x, y))(jnp.asarray(B)))(jnp.asarray(A))
        return np.asarray(rows)

    points = np.concatenate([Q, star[None]])
    slopes = np.asarray(jax.vmap(lambda y: slope(jnp.asarray(star), y))(jnp.asarray(points))).T
    own = np.asarray(bend(jnp.asarray(star), jnp.asarray(star)))
    prior = np.block([[table(points, points), slopes.T], [slopes, own]])
    at_data = np.asarray(jax.vmap(lambda y: slope(jnp.asarray(star), y))(jnp.asarray(X))).T
    cross = np.concatenate([table(points, X), at_data])
    solved = np.linalg.solve(table(X, X) + NOISE * np.eye(N), cross.T)
    level = np.concatenate([np.full(len(points), MEAN), np.zeros(D)])
    return level + solved.T @ (Y - MEAN), prior - cross @ solved


@pytest.mark.parametrize("kernel", KERNELS)
def test_conditioning_is_that_of_the_joint_normal(kernel: str) -> None:
    alpha = jes_peak(condition(HYPERS, X, Y, kernel), STARS)
    variance, taken, above = (np.asarray(v) for v in alpha.conditioned(jnp.asarray(Q)))
    q, gains = len(Q), []
    for p in range(P):
        mean, S = joint(kernel, np.asarray(STARS.x)[0, p])
        V = S[q:, q:] + OUTPUT * np.diag([VALUE] + [SLOPE] * D)
        wanted = np.concatenate([np.asarray(STARS.f)[0, p : p + 1], np.zeros(D)])
        weights = np.linalg.solve(V, S[q:, :q])
        given = mean[:q] + weights.T @ (wanted - mean[q:])
        np.testing.assert_allclose(variance[0], np.diagonal(S)[:q], rtol=1e-8)
        lost = np.sum(weights * S[q:, :q], 0)
        np.testing.assert_allclose(taken[0, p], lost, rtol=1e-6, atol=1e-9)
        expected = np.asarray(STARS.f)[0, p] - given
        np.testing.assert_allclose(above[0, p], expected, rtol=0, atol=1e-6)
        left = np.diagonal(S)[:q] - lost
        truncated = left * stats.truncnorm.var(-np.inf, expected / np.sqrt(left))
        gains.append(np.log((np.diagonal(S)[:q] + NOISE) / (truncated + NOISE)) / 2)
    np.testing.assert_allclose(alpha(Q), np.mean(gains, 0), rtol=1e-5)


def test_what_is_left_is_what_draws_leave() -> None:
    """The residual of f(x), regressed on (f(x*), slopes) over draws; 4.5 standard errors."""
    draws = 40_000
    alpha = jes_peak(condition(HYPERS, X, Y), STARS)
    variance, taken, _ = (np.asarray(v) for v in alpha.conditioned(jnp.asarray(Q)))
    mean, S = joint("mixed", np.asarray(STARS.x)[0, 0])
    sampled = RNG.multivariate_normal(mean, S, size=draws, method="eigh") - mean
    q = len(Q)
    fitted = sampled[:, q:] @ np.linalg.lstsq(sampled[:, q:], sampled[:, :q], rcond=None)[0]
    left = np.var(sampled[:, :q] - fitted, 0)
    expected = variance[0] - taken[0, 0]
    assert np.all(np.abs(left - expected) < 4.5 * expected * np.sqrt(2 / draws) + 1e-4 * OUTPUT)


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_slopes_it_is_jes(kernel: str) -> None:
    """In corners, and where all is discrete."""
    posterior = condition(HYPERS, X, Y, kernel)
    corners = OptimalPairs(np.round(np.asarray(STARS.x)), STARS.f)
    np.testing.assert_allclose(
        jes_peak(posterior, corners)(Q), jes(posterior, corners)(Q), rtol=1e-8, atol=1e-12
    )
    ones = np.ones(D)
    levels = Cube(9 * ones, ones, np.zeros(D, dtype=bool), (0, 1), (0, 1), ())
    np.testing.assert_allclose(
        jes_peak(posterior, STARS, cube=levels)(Q), jes(posterior, STARS)(Q), rtol=1e-8, atol=1e-12
    )


def test_pending_points_have_a_fantasy_for_each_path() -> None:
    """Pair p is conditioned on in the process that has seen fantasy p: one fantasy at a time."""
    rng = np.random.default_rng(4)
    places, f = rng.uniform(0.1, 0.9, (M, P, D)), rng.uniform(2.0, 4.0, (M, P))
    values = rng.normal(size=(M, P))
    together = jes_peak(grown(values), OptimalPairs(places, f))(Q)
    own = [slice(p, p + 1) for p in range(P)]
    each = [jes_peak(grown(values[:, p]), OptimalPairs(places[:, p], f[:, p]))(Q) for p in own]
    np.testing.assert_allclose(together, np.mean(each, 0), rtol=1e-7)
    mixed = jes_peak(grown(values[:, ::-1]), OptimalPairs(places, f))(Q)
    assert np.max(np.abs(mixed / together - 1)) > 1e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_against_central_differences(kernel: str) -> None:
    exact, numeric = slopes(jes_peak(condition(HYPERS, X, Y, kernel), STARS), Q)
    assert np.max(np.abs(exact)) > 0.1
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


def test_a_slope_takes_more() -> None:
    posterior = condition(HYPERS, X, Y)
    _, more, _ = jes_peak(posterior, STARS).conditioned(jnp.asarray(Q))
    _, less, _ = jes(posterior, STARS).conditioned(jnp.asarray(Q))
    assert np.all(np.asarray(more) > np.asarray(less) - 1e-9)
    assert np.max(np.asarray(more) - np.asarray(less)) > 0.01 * OUTPUT


def test_a_matrix_without_a_factor_leaves_the_value_alone() -> None:
    good = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    torn, lost = good.copy(), good.copy()
    torn[1, 1] = 0.2  # its determinant is negative
    lost[0, 0] = -1e-9  # round-off has taken the value as well
    with jax.enable_x64(True):
        V, least = jnp.asarray([[good, torn, lost]]), jnp.asarray([0.25])
        inverse = np.asarray(jax.jit(peak._inverse_factor)(V, least))[0]
    np.testing.assert_allclose(inverse[0], np.linalg.inv(np.linalg.cholesky(good)), atol=1e-14)
    np.testing.assert_array_equal(inverse[1], np.diag([0.5, 0, 0]))
    np.testing.assert_array_equal(inverse[2], np.diag([2.0, 0, 0]))


def test_sets_must_agree() -> None:
    two = OptimalPairs(np.repeat(STARS.x, 2, 0), np.repeat(STARS.f, 2, 0))
    with pytest.raises(ValueError, match="sets"):
        jes_peak(condition(HYPERS, X, Y), two)
