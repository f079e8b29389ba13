"""EI, its logarithm and noisy EI: closed forms, Monte Carlo and central differences."""

from __future__ import annotations

import numpy as np
import pytest
from cases import (
    HYPERS,
    KERNELS,
    PENDING,
    D,
    M,
    N,
    X,
    Y,
    changed,
    condition,
    grown,
    one_set,
    slopes,
    source,
    textbook,
)
from scipy import stats

from optpair.acquisition import ei, logei, nei
from optpair.acquisition.ei import redrawn as of_white
from optpair.acquisition.ei import white
from optpair.gp import Hyperparameters, Posterior
from optpair.runtime.streams import Stream

RNG = source()
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])


def redrawn(seed: int, posterior: Posterior, draws: int) -> Posterior:
    return of_white(posterior, white(Stream.of(seed), posterior, draws))


def closed_form(mean: np.ndarray, variance: np.ndarray, incumbent: np.ndarray) -> np.ndarray:
    sd = np.sqrt(variance)
    z = (mean - incumbent) / sd
    return sd * (stats.norm.pdf(z) + z * stats.norm.cdf(z))


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_set_has_the_closed_form(kernel: str) -> None:
    """Over the best posterior mean among the data, not the best noisy value."""
    for m in range(M):
        own = one_set(m)
        posterior = condition(own, X, Y, kernel)
        mean, variance = posterior.predict(Q)
        incumbent = posterior.predict(X)[0].max()
        assert abs(incumbent - Y.max()) > 1e-3  # they are two numbers
        truth = closed_form(mean[0], variance[0], incumbent)
        np.testing.assert_allclose(np.exp(logei(posterior)(Q)), truth, rtol=1e-9)


def test_improvements_are_averaged_before_the_logarithm() -> None:
    posterior = condition(HYPERS, X, Y)
    mean, variance = posterior.predict(Q)
    incumbent = posterior.predict(X)[0].max(1, keepdims=True)  # each set has its own
    each = closed_form(mean, variance, incumbent)
    np.testing.assert_allclose(logei(posterior)(Q), np.log(each.mean(0)), rtol=1e-9, atol=1e-9)
    # Not the mean of logarithms:
    assert np.min(np.log(each.mean(0)) - np.log(each).mean(0)) > 1e-3


def test_against_draws() -> None:
    posterior = condition(HYPERS, X, Y)
    mean, variance = posterior.predict(Q)
    incumbent = posterior.predict(X)[0].max(1)[:, None, None]
    draws = np.random.default_rng(1).normal(size=(M, len(Q), 50_000))
    f = mean[..., None] + np.sqrt(variance)[..., None] * draws
    improvement = np.maximum(f - incumbent, 0).mean(0)  # over sets, draw by draw
    error = improvement.std(-1) / np.sqrt(50_000)
    got = np.exp(logei(posterior)(Q))
    assert np.all(np.abs(improvement.mean(-1) - got) < 4 * error)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_against_central_differences(kernel: str) -> None:
    # Data are among the points. step²/6·α‴ is about 1e-8 at these length scales; where log EI is
    # as low as −100 its own round-off, eps·100/step, is as large.
    alpha = logei(condition(HYPERS, X, Y, kernel))
    exact, numeric = slopes(alpha, Q)
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-5)


def test_hopeless_points_keep_their_order() -> None:
    """Without noise, next to bad data: EI itself underflows, its logarithm has a slope to climb."""
    line = np.array([[0.1], [0.5]])
    sure = Hyperparameters([[0.3]], [1.0], [1e-8], [0.0])
    alpha = logei(condition(sure, line, [5.0, -5.0]))
    values = alpha(0.5 + np.array([[0.0], [1e-3], [1e-2], [3e-2], [0.1]]))
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) > 0)
    assert values[0] < -1000


def test_pending_points() -> None:
    """Fantasies have incumbents of their own, the pending point among the candidates for it."""
    fantasies = np.random.default_rng(2).normal(size=(M, 4)) * 3
    seen = np.concatenate([X, [PENDING]])
    each = np.empty((M, 4, len(Q)))
    for p in range(4):
        for m in range(M):
            own = one_set(m)
            posterior = condition(own, seen, np.append(Y, fantasies[m, p]))
            mean, variance = posterior.predict(Q)
            each[m, p] = closed_form(mean[0], variance[0], posterior.predict(seen)[0].max())
    np.testing.assert_allclose(np.exp(logei(grown(fantasies))(Q)), each.mean((0, 1)), rtol=1e-7)


def test_noise_of_the_query_plays_no_part() -> None:
    """EI is about f: with every datum's noise known, the inferred noise does not matter."""
    known = np.full(N, 0.05)
    quiet, loud = (changed(HYPERS, noise=np.full(M, noise)) for noise in (1e-3, 10.0))
    first, second = (logei(condition(h, X, Y, noise_var=known))(Q) for h in (quiet, loud))
    np.testing.assert_allclose(first, second, rtol=1e-12)


def test_ei_is_what_logei_is_the_logarithm_of() -> None:
    posterior = condition(HYPERS, X, Y)
    np.testing.assert_allclose(ei(posterior)(Q), np.exp(logei(posterior)(Q)), rtol=1e-12)
    np.testing.assert_allclose(
        nei(posterior, 3)(Q), np.exp(nei(posterior, 3, log=True)(Q)), rtol=1e-12
    )


def test_noisy_ei_by_draws_of_everything() -> None:
    """max(0, f(x) − max f(X)) with f(x) and f(X) drawn together, 200,000 times a set.

    The library integrates over f(x) in closed form, and over f(X) by 4,096 draws.
    """
    posterior = condition(HYPERS, X, Y)
    points, draws, mine = Q[:4], 200_000, 4096
    rng = np.random.default_rng(7)
    improvements = np.zeros((draws, len(points)))
    for m in range(M):
        mean, covariance = textbook(m, np.concatenate([X, points]))
        f = rng.multivariate_normal(mean, covariance, draws, method="eigh")
        improvements += np.maximum(f[:, N:] - f[:, :N].max(1, keepdims=True), 0) / M
    got = nei(posterior, 0, draws=mine)(points)
    error = improvements.std(0) * np.sqrt(1 / draws + 1 / mine)
    assert np.all(np.abs(improvements.mean(0) - got) < 4 * error)
    # It is another quantity than EI, whose incumbent is certain and uncorrelated.
    assert np.any(np.abs(ei(posterior)(points) - got) > 8 * error)


def test_draws_at_the_data_have_the_posteriors_moments() -> None:
    posterior = condition(HYPERS, X, Y)
    draws = 8192
    drawn = redrawn(1, posterior, draws)
    for m in range(M):
        mean, covariance = textbook(m, X)
        f = drawn.at(posterior.X).means[m]
        sd = np.sqrt(np.diag(covariance))
        assert np.all(np.abs(f.mean(0) - mean) < 4.5 * sd / np.sqrt(draws))
        spread = np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / draws)
        assert np.all(np.abs(np.cov(f.T) - covariance) < 4.5 * spread)


def test_a_draw_is_a_gp_conditioned_on_it_without_noise() -> None:
    """Refitted on the drawn values with the nugget for noise, one draw at a time."""
    posterior = condition(HYPERS, X, Y)
    drawn = redrawn(2, posterior, 3)
    means, variance = drawn.moments(Q)
    for m in range(M):
        own = one_set(m)
        nugget = drawn.noise_var[m]
        assert np.all(nugget == 1e-8 * HYPERS.outputscale[m])
        for p in range(3):
            f = drawn.residual[m, p] + HYPERS.mean[m]
            mean, var = condition(own, X, f, noise_var=nugget).predict(Q)
            np.testing.assert_allclose(means[m, p], mean[0], rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(variance[m], var[0], rtol=1e-6, atol=1e-8)


def test_without_noise_noisy_ei_is_ei() -> None:
    """Also where only some data are without noise: those are not drawn."""
    posterior = condition(changed(HYPERS, noise=np.full(M, 1e-9)), X, Y)
    np.testing.assert_allclose(nei(posterior)(Q[:9]), ei(posterior)(Q[:9]), rtol=1e-5)
    known = np.where(np.arange(N) < 4, 1e-12, np.nan)
    some = redrawn(2, condition(HYPERS, X, Y, noise_var=known), 3)
    f = some.residual + HYPERS.mean[:, None, None]
    np.testing.assert_allclose(f[..., :4], np.broadcast_to(Y[:4], (M, 3, 4)), atol=1e-7)
    assert np.all(np.std(f[..., 4:], 1) > 1e-3)


def test_noisy_ei_with_duplicates_and_pending_points() -> None:
    """Nothing breaks where K is singular."""
    twice = condition(HYPERS, np.tile(X, (2, 1)), np.tile(Y, 2))
    assert np.all(np.isfinite(nei(twice)(Q)))
    fantasies = np.random.default_rng(2).normal(size=(M, 4)) * 3
    alpha = nei(grown(fantasies), draws=2)
    assert alpha.incumbent.shape == (M, 8)
    assert np.all(np.isfinite(alpha(Q)))


def test_noisy_slope_against_central_differences() -> None:
    # Away from the data, where the variance left is the nugget's.
    exact, numeric = slopes(nei(condition(HYPERS, X, Y), draws=4), Q[:9])
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-7)


def test_one_datum_more_leaves_the_numbers_of_the_others() -> None:
    """Draw p of fantasy f is number p F + f."""
    fewer, more = condition(HYPERS, X[:-1], Y[:-1]), condition(HYPERS, X, Y)
    first, second = (white(Stream.of(3), posterior, 5) for posterior in (fewer, more))
    np.testing.assert_array_equal(second[:, :, : N - 1], first)
    values = np.stack([np.zeros(M), np.full(M, 50.0)], 1)
    drawn = redrawn(0, grown(values), 3).residual[..., -1]
    assert np.all(drawn[:, 1::2] > drawn[:, ::2].max(1, keepdims=True))


def test_draws_of_noisy_ei_are_checked() -> None:
    with pytest.raises(ValueError, match="draws must be at least 1"):
        nei(condition(HYPERS, X, Y), draws=0)
