"""JES with flat optima against dense conditioning, draws, and JES itself."""

from __future__ import annotations

import numpy as np
import pytest
from cases import KERNELS, D, M, N, P, condition, grown, slopes
from scipy import stats

from optpair.acquisition import jes, jes_peak
from optpair.acquisition.jes import DELTA, FLAT, JES
from optpair.cube.cube import Cube
from optpair.gp import Hyperparameters
from optpair.gp.conditioned import _inverse_or_first
from optpair.optima import Optima
from optpair.problem.layout import Layout

RNG = np.random.default_rng(3)
X, Y = RNG.uniform(size=(N, D)), RNG.normal(size=N)
SCALE, OUTPUT, NOISE, MEAN = np.array([0.3, 0.7]), 2.0, 0.05, 0.4
ROUGH = 0.4
HYPERS = Hyperparameters(SCALE[None], [OUTPUT], [NOISE], [MEAN], rough=[ROUGH])
STARS = Optima.pairs(RNG.uniform(0.1, 0.9, (1, P, D)), Y.max() + RNG.uniform(0.1, 1.0, (1, P)))
Q = RNG.uniform(size=(6, D))


def covariances(kernel: str, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """k from its definition, (a, b)."""
    r = np.sqrt(np.sum(((A[:, None] - B) / SCALE) ** 2, -1))
    u = np.sqrt(5) * r
    share = {"rbf": 0.0, "mixed": ROUGH}[kernel]
    h = (1 - share) * np.exp(-(r**2) / 2) + share * (1 + u + u**2 / 3) * np.exp(-u)
    return np.asarray(OUTPUT * h)


def slopes_at(kernel: str, star: np.ndarray, B: np.ndarray) -> np.ndarray:
    """ℓ ∂k(x*, y)/∂x* at all y, (D, b), by hand: both radial parts fall along x* − y."""
    apart = (star - B) / SCALE
    u = np.sqrt(5 * np.sum(apart**2, -1))
    share = {"rbf": 0.0, "mixed": ROUGH}[kernel]
    fall = (1 - share) * np.exp(-(u**2) / 10) + share * 5 / 3 * (1 + u) * np.exp(-u)
    return np.asarray(-OUTPUT * fall * apart.T)


def joint(kernel: str, star: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of (f(Q), f(x*), slopes at x*)."""
    points = np.concatenate([Q, star[None]])
    slopes = slopes_at(kernel, star, points)
    share = {"rbf": 0.0, "mixed": ROUGH}[kernel]
    own = OUTPUT * ((1 - share) + share * 5 / 3) * np.eye(D)  # −∂²k/∂x² at 0, in length scales
    prior = np.block([[covariances(kernel, points, points), slopes.T], [slopes, own]])
    cross = np.concatenate([covariances(kernel, points, X), slopes_at(kernel, star, X)])
    solved = np.linalg.solve(covariances(kernel, X, X) + NOISE * np.eye(N), cross.T)
    level = np.concatenate([np.full(len(points), MEAN), np.zeros(D)])
    return level + solved.T @ (Y - MEAN), prior - cross @ solved


def parts(alpha: JES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """s, what a pair takes from it, and f* − m_p, at Q."""
    query = alpha.posterior.at(Q)
    z = alpha.conditioned.at(Q, query).z
    return query.variance, np.sum(z**2, 2), alpha._above(query.means, z)


@pytest.mark.parametrize("kernel", KERNELS)
def test_conditioning_is_that_of_the_joint_normal(kernel: str) -> None:
    alpha = jes_peak(condition(HYPERS, X, Y, kernel), STARS)
    variance, taken, above = parts(alpha)
    q, gains = len(Q), []
    for p in range(P):
        mean, S = joint(kernel, STARS.star[0, p])
        V = S[q:, q:] + OUTPUT * np.diag([DELTA] + [FLAT] * D)
        wanted = np.concatenate([STARS.best[0, p : p + 1], np.zeros(D)])
        weights = np.linalg.solve(V, S[q:, :q])
        given = mean[:q] + weights.T @ (wanted - mean[q:])
        np.testing.assert_allclose(variance[0], np.diagonal(S)[:q], rtol=1e-8)
        lost = np.sum(weights * S[q:, :q], 0)
        np.testing.assert_allclose(taken[0, p], lost, rtol=1e-6, atol=1e-9)
        expected = STARS.best[0, p] - given
        np.testing.assert_allclose(above[0, p], expected, rtol=0, atol=1e-6)
        left = np.diagonal(S)[:q] - lost
        truncated = left * stats.truncnorm.var(-np.inf, expected / np.sqrt(left))
        gains.append(np.log((np.diagonal(S)[:q] + NOISE) / (truncated + NOISE)) / 2)
    np.testing.assert_allclose(alpha(Q), np.mean(gains, 0), rtol=1e-5)


def test_what_is_left_is_what_draws_leave() -> None:
    """The residual of f(x), regressed on (f(x*), slopes) over draws; 4.5 standard errors."""
    draws = 40_000
    alpha = jes_peak(condition(HYPERS, X, Y), STARS)
    variance, taken, _ = parts(alpha)
    mean, S = joint("mixed", STARS.star[0, 0])
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
    corners = Optima.pairs(np.round(STARS.star), STARS.best)
    np.testing.assert_allclose(
        jes_peak(posterior, corners)(Q), jes(posterior, corners)(Q), rtol=1e-8, atol=1e-12
    )
    ones = np.ones(D)
    levels = Cube(Layout(9 * ones, ones, np.zeros(D, dtype=bool), (0, 1), (0, 1), ()))
    np.testing.assert_allclose(
        jes_peak(posterior, STARS, cube=levels)(Q), jes(posterior, STARS)(Q), rtol=1e-8, atol=1e-12
    )


def test_pending_points_have_a_fantasy_for_each_path() -> None:
    """Pair p is conditioned on in the process that has seen fantasy p: one fantasy at a time."""
    rng = np.random.default_rng(4)
    places, f = rng.uniform(0.1, 0.9, (M, P, D)), rng.uniform(2.0, 4.0, (M, P))
    values = rng.normal(size=(M, P))
    together = jes_peak(grown(values), Optima.pairs(places, f))(Q)
    own = [slice(p, p + 1) for p in range(P)]
    each = [jes_peak(grown(values[:, p]), Optima.pairs(places[:, p], f[:, p]))(Q) for p in own]
    np.testing.assert_allclose(together, np.mean(each, 0), rtol=1e-7)
    mixed = jes_peak(grown(values[:, ::-1]), Optima.pairs(places, f))(Q)
    assert np.max(np.abs(mixed / together - 1)) > 1e-3


@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_against_central_differences(kernel: str) -> None:
    exact, numeric = slopes(jes_peak(condition(HYPERS, X, Y, kernel), STARS), Q)
    assert np.max(np.abs(exact)) > 0.1
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


def test_a_slope_takes_more() -> None:
    posterior = condition(HYPERS, X, Y)
    _, more, _ = parts(jes_peak(posterior, STARS))
    _, less, _ = parts(jes(posterior, STARS))
    assert np.all(more > less - 1e-9)
    assert np.max(more - less) > 0.01 * OUTPUT


def test_a_matrix_without_a_factor_leaves_the_value_alone() -> None:
    good = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    torn, lost = good.copy(), good.copy()
    torn[1, 1] = 0.2  # its determinant is negative
    lost[0, 0] = -1e-9  # round-off has taken the value as well
    inverse = _inverse_or_first(np.array([[good, torn, lost]]), np.array([0.25]))[0]
    np.testing.assert_allclose(inverse[0], np.linalg.inv(np.linalg.cholesky(good)), atol=1e-14)
    np.testing.assert_array_equal(inverse[1], np.diag([0.5, 0, 0]))
    np.testing.assert_array_equal(inverse[2], np.diag([2.0, 0, 0]))


def test_sets_must_agree() -> None:
    two = Optima.pairs(np.repeat(STARS.star, 2, 0), np.repeat(STARS.best, 2, 0))
    with pytest.raises(ValueError, match="sets"):
        jes_peak(condition(HYPERS, X, Y), two)
