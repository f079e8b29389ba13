"""JES against a GP refitted with each pair, closed forms, limits and Monte Carlo."""

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
    P,
    X,
    Y,
    changed,
    condition,
    grown,
    k,
    log_density,
    one_set,
    slopes,
    source,
    textbook,
)
from scipy import integrate, stats

from optpair.acquisition import Context, jes
from optpair.acquisition.jes import build
from optpair.cube.cube import Cube
from optpair.gp import Hyperparameters
from optpair.optima import Optima
from optpair.runtime.streams import Stream

RNG = source()
# Pairs at random places, from just above the best datum to far above it.
STARS = Optima.pairs(x=RNG.uniform(size=(M, P, D)), f=Y.max() + RNG.uniform(0.1, 2.0, (M, P)))
FANTASIES = np.random.default_rng(1).normal(size=(M, P))
# Random points, pairs' own, data, corners: 16 points for every test.
Q = np.concatenate(
    [RNG.uniform(size=(9, D)), STARS.star[0, :2], STARS.star[1, :1], X[:2], [[0, 0]], [[1, 0]]]
)


def refit(
    kernel: str, m: int, X: np.ndarray, y: np.ndarray, noises: np.ndarray, Q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    mean, covariance = textbook(m, Q, X, y, noises=noises, kernel=kernel)
    return mean, np.diagonal(covariance)


def slow(
    kernel: str,
    Q: np.ndarray,
    delta: float,
    rows: np.ndarray = X,
    targets: np.ndarray | None = None,
) -> np.ndarray:
    """½ log(s + σ²) − ½ log(s_p v + σ²) of each set and pair: (M, P, q).

    For each a GP of its own on n + 1 points, the pair being one of them, with noise δ·a (nothing,
    where δ is 0); the variance of f below f* is that of SciPy's truncated normal. `targets`
    (M, P, n) are the values that path p has seen, by default Y.
    """
    gains = np.empty((M, P, len(Q)))
    for m, p in np.ndindex(M, P):
        noise, a = HYPERS.noise[m], HYPERS.outputscale[m]
        y = Y if targets is None else targets[m, p]
        noises = np.full(len(rows), noise)
        _, s = refit(kernel, m, rows, y, noises, Q)
        star, f = STARS.star[m, p], STARS.best[m, p]
        more = np.concatenate([rows, [star]]), np.append(y, f), np.append(noises, delta * a)
        mean, given = refit(kernel, m, *more, Q)
        given = np.maximum(given, 1e-15)
        truncated = stats.truncnorm.var(-np.inf, (f - mean) / np.sqrt(given)) * given
        gains[m, p] = (np.log(s + noise) - np.log(truncated + noise)) / 2
    return gains


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("delta", [1e-12, 1e-8, 1e-2])
def test_jes_is_a_gp_refitted_on_each_pair(kernel: str, delta: float) -> None:
    """(M1)–(M5): δ is the noise, relative to the output scale, with which a pair is observed."""
    alpha = jes(condition(HYPERS, X, Y, kernel), STARS, delta=delta)
    truth = slow(kernel, Q, delta).mean((0, 1))
    # At x* what is left of the variance is δ or round-off, 1e-15 of a, against σ² = 0.01.
    np.testing.assert_allclose(alpha(Q), truth, rtol=1e-6)


def test_the_exact_truncation_is_the_entropy_of_y() -> None:
    """H[y] − H[y | pair, f ≤ f*], the second by integrating the density of y."""
    posterior = condition(HYPERS, X, Y)
    points = Q[:3]
    gains = np.empty((M, P, len(points)))
    for m, p in np.ndindex(M, P):
        noise, star, f = HYPERS.noise[m], STARS.star[m, p], STARS.best[m, p]
        noises = np.full(N, noise)
        _, s = refit("mixed", m, X, Y, noises, points)
        more = np.concatenate([X, [star]]), np.append(Y, f), np.append(noises, 0.0)
        mean, given = refit("mixed", m, *more, points)
        for i, (mu, v) in enumerate(zip(mean, given, strict=True)):
            total = v + noise

            def surprise(y: float, at: tuple[float, ...] = (mu, v, noise, f)) -> float:
                log = float(log_density(y, *at))
                return -np.exp(log) * log

            window = mu - 9 * np.sqrt(total), min(mu + 9 * np.sqrt(total), f + 9 * noise**0.5)
            entropy, _ = integrate.quad(surprise, *window, limit=200, epsabs=1e-10)
            gains[m, p, i] = np.log(2 * np.pi * np.e * (s[i] + noise)) / 2 - entropy
    exact = jes(posterior, STARS, delta=1e-12, exact=True)(points)
    np.testing.assert_allclose(exact, gains.mean((0, 1)), rtol=1e-6)


def test_moment_matching_is_a_lower_bound() -> None:
    posterior = condition(HYPERS, X, Y)
    points = np.random.default_rng(2).uniform(size=(216, D))
    matched, exact = jes(posterior, STARS)(points), jes(posterior, STARS, exact=True)(points)
    assert np.all(matched <= exact + 1e-12)
    assert np.max(exact - matched) > 1e-3  # they are two functions


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-2, 1e4])
def test_gain_is_never_negative(exact: bool, noise: float) -> None:
    """Nor infinite: also for pairs below the data, at x*, at data, and without noise."""
    posterior = condition(changed(noise=np.full(M, noise)), X, Y)
    points = np.concatenate([np.random.default_rng(3).uniform(size=(200, D)), Q])
    for shift in (0.0, -3.0, 20.0):
        alpha = jes(posterior, Optima.pairs(STARS.star, STARS.best + shift), exact=exact)(points)
        assert np.all(np.isfinite(alpha))
        assert np.all(alpha >= (-1e-14 if exact else 0.0))  # the quadrature's round-off


@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_against_central_differences(kernel: str) -> None:
    """Everywhere, with x* and the data among the points.

    Near x* the variance left, δ·a, is crossed in √δ = 1e-4 of a length scale, some 16 steps: the
    differences' step²·α‴ is then about 1e-4 there, and 1e-8 elsewhere.
    """
    alpha = jes(condition(HYPERS, X, Y, kernel), STARS)
    special = np.min(np.abs(Q[:, None] - STARS.star.reshape(-1, D)).max(-1), -1) == 0
    exact, numeric = slopes(alpha, Q)
    np.testing.assert_allclose(exact[:, ~special], numeric[:, ~special], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(exact[:, special], numeric[:, special], rtol=1e-3, atol=1e-3)


def test_several_sets_are_averaged_gains() -> None:
    together = jes(condition(HYPERS, X, Y), STARS)(Q)
    each = []
    for m in range(M):
        own = one_set(m)
        stars = Optima.pairs(STARS.star[m : m + 1], STARS.best[m : m + 1])
        each.append(jes(condition(own, X, Y), stars)(Q))
    np.testing.assert_allclose(together, np.mean(each, 0), rtol=1e-10)
    assert np.min(np.std(each, 0)) > 1e-4


@pytest.mark.parametrize("unit", [1e-6, 37.0])
def test_units_of_y_do_not_matter(unit: float) -> None:
    plain = jes(condition(HYPERS, X, Y), STARS)(Q)
    scaled = changed(
        outputscale=unit**2 * HYPERS.outputscale,
        noise=unit**2 * HYPERS.noise,
        mean=unit * HYPERS.mean + 5 * unit,
    )
    posterior = condition(scaled, X, unit * (Y + 5))
    moved = jes(posterior, Optima.pairs(STARS.star, unit * (STARS.best + 5)))(Q)
    np.testing.assert_allclose(moved, plain, rtol=1e-7)


def test_gain_at_the_pair_itself() -> None:
    """f(x*) becomes known: ½ log(1 + s*/σ²), and there is nothing left to truncate."""
    posterior = condition(HYPERS, X, Y)
    star = Optima.pairs(STARS.star[:, :1], STARS.best[:, :1])
    for m in range(M):
        _, s = posterior.predict(STARS.star[m, :1])
        own = one_set(m)
        single = condition(own, X, Y)
        alpha = jes(single, Optima.pairs(star.star[m : m + 1], star.best[m : m + 1]), delta=1e-12)
        truth = np.log1p(s[m, 0] / HYPERS.noise[m]) / 2
        assert alpha(STARS.star[m, :1])[0] == pytest.approx(truth, rel=1e-6)


def test_far_away_only_the_truncation_is_left() -> None:
    """Many length scales from everything f ~ N(μ, a), and all that is learnt is f ≤ f*."""
    a, noise, mu = (v[:, None] for v in (HYPERS.outputscale, HYPERS.noise, HYPERS.mean))
    v = stats.truncnorm.var(-np.inf, (STARS.best - mu) / np.sqrt(a))
    truth = np.mean((np.log(a + noise) - np.log(a * v + noise)) / 2)
    alpha = jes(condition(HYPERS, X, Y), STARS)
    np.testing.assert_allclose(alpha([[80.0, 90.0]]), truth, rtol=1e-9)


def test_a_bound_far_above_is_no_bound() -> None:
    """f* → ∞: what is left is the conditioning gain alone, known without v.

    Pairs sit where the variance is largest: elsewhere q may exceed s*, and m_p rise above f*.
    """
    posterior = condition(HYPERS, X, Y)
    points = np.concatenate([np.random.default_rng(6).uniform(size=(240, D)), Q])
    _, variance = posterior.predict(points)
    star = points[variance.argmax(1)]
    high = Optima.pairs(np.tile(star[:, None], (1, P, 1)), np.full((M, P), 1e4))
    got = jes(posterior, high, delta=1e-12)(Q)
    gains = np.empty((M, len(Q)))
    for m in range(M):
        noise = HYPERS.noise[m]
        noises = np.full(N, noise)
        _, s = refit("mixed", m, X, Y, noises, Q)
        more = np.concatenate([X, star[m : m + 1]]), np.append(Y, 0.0), np.append(noises, 0.0)
        _, given = refit("mixed", m, *more, Q)
        gains[m] = np.log((s + noise) / (given + noise)) / 2
    np.testing.assert_allclose(got, gains.mean(0), rtol=1e-6)


def test_without_noise_jes_becomes_thompson_sampling() -> None:
    """One pair, 3,000 candidates and x*: as σ² → 0 the argmax is x*, then its neighbours."""
    candidates = np.random.default_rng(4).uniform(size=(3000, D))
    one = Optima.pairs(STARS.star[:1, :1], STARS.best[:1, :1])
    star, scale = one.star[0, 0], HYPERS.lengthscale[0]
    distance = np.linalg.norm((candidates - star) / scale, axis=1)
    ranks = []
    for noise in (1.0, 1e-3, 1e-9):
        own = Hyperparameters(HYPERS.lengthscale[:1], [1.0], [noise], [0.0])
        # All data but one have noise of their own, so that little but the query's changes.
        posterior = condition(own, X, Y, noise_var=np.where(np.arange(N) == 0, np.nan, 1e-3))
        alpha = jes(posterior, one)
        values = alpha(candidates)
        ranks.append(int(np.sum(distance < distance[values.argmax()])))
    assert alpha(star[None])[0] > values.max() + 1
    assert ranks[2] < 30  # the nearest 1 %
    assert ranks[0] > 100


def test_pending_points_have_a_fantasy_for_each_path() -> None:
    """Path p has seen its own value at the pending point, and its pair is conditioned on that."""
    posterior = grown(FANTASIES)
    rows = np.concatenate([X, [PENDING]])
    targets = np.concatenate([np.broadcast_to(Y, (M, P, N)), FANTASIES[..., None]], -1)
    truth = slow("mixed", Q, 1e-8, rows, targets).mean((0, 1))
    np.testing.assert_allclose(jes(posterior, STARS)(Q), truth, rtol=1e-6)
    # It is a different function from one that mixes the fantasies up.
    swapped = slow("mixed", Q, 1e-8, rows, targets[:, ::-1]).mean((0, 1))
    assert np.max(np.abs(swapped / truth - 1)) > 1e-3


def test_candidates_are_ranked_by_half_of_the_pairs() -> None:
    few = -(-P // 2)
    stars = Optima.pairs(STARS.star[:, :few], STARS.best[:, :few])
    plain = condition(HYPERS, X, Y)
    np.testing.assert_allclose(jes(plain, STARS).rough(Q), jes(plain, stars)(Q), rtol=1e-9)
    assert np.max(np.abs(jes(plain, STARS).rough(Q) / jes(plain, STARS)(Q) - 1)) > 1e-3
    truth = jes(grown(FANTASIES[:, :few]), stars)(Q)
    np.testing.assert_allclose(jes(grown(FANTASIES), STARS).rough(Q), truth, rtol=1e-9)


def test_a_pending_point_is_worth_less() -> None:
    high = Optima.pairs(
        STARS.star, STARS.best + 1e3
    )  # no truncation: fantasies' values do not matter
    without = jes(condition(HYPERS, X, Y), high)
    assert jes(grown(FANTASIES), high)(PENDING[None])[0] < without(PENDING[None])[0]


def test_gain_by_monte_carlo() -> None:
    """Mutual information of y and f(x*) without truncation, from draws of both.

    For a normal pair it is −½ log(1 − ρ²); ρ from 100,000 joint draws has standard error
    (1 − ρ²)/√draws. The pair is where the variance is largest: see the test of a bound far above.
    """
    rng = np.random.default_rng(5)
    draws = 100_000
    posterior, points = condition(one_set(0), X, Y), rng.uniform(size=(240, D))
    star = points[posterior.predict(points)[1][0].argmax()][None, None]
    alpha = jes(posterior, Optima.pairs(star, np.full((1, 1), 1e4)), delta=1e-12)
    everything = np.concatenate([X, star[0], Q[:4]])
    K = k(0, everything, everything)
    noises = np.full(N, 0.01)
    solved = np.linalg.solve(K[:N, :N] + np.diag(noises), K[:N, N:])
    covariance = K[N:, N:] - K[N:, :N] @ solved
    f = rng.multivariate_normal(np.zeros(5), covariance, draws, method="cholesky")
    y = f[:, 1:] + 0.1 * rng.normal(size=(draws, 4))
    rho = np.array([np.corrcoef(f[:, 0], y[:, i])[0, 1] for i in range(4)])
    error = np.abs(rho) / np.sqrt(draws)  # of −½ log(1 − ρ²), by the delta method
    assert np.all(np.abs(alpha(Q[:4]) + np.log(1 - rho**2) / 2) < 4 * error)


@pytest.mark.parametrize("exact", [False, True])
def test_the_whole_gain_by_draws(exact: bool) -> None:
    """y given the data and one pair, from draws of f(x) that are thrown away above f*.

    Moment matching is ½ log of the ratio of variances; the exact gain, an entropy less the mean
    surprise.
    """
    rng, draws, noise = np.random.default_rng(9), 400_000, 0.3
    star, f = STARS.star[1, 0], STARS.best[1, 0]
    one = Optima.pairs(STARS.star[1:2, :1], STARS.best[1:2, :1])
    got = jes(condition(one_set(1), X, Y), one, delta=1e-12, exact=exact)(Q[:4])
    noises = np.append(np.full(N, noise), 0.0)
    mean, V = textbook(1, Q[:4], np.vstack([X, star]), np.append(Y, f), noises=noises)
    before = np.diagonal(textbook(1, Q[:4])[1]) + noise
    for i, (m, v) in enumerate(zip(mean, np.diagonal(V), strict=True)):
        drawn = rng.normal(m, np.sqrt(v), draws)
        kept = drawn[drawn <= f]
        assert 0.05 < len(kept) / draws < 0.999
        y = kept + np.sqrt(noise) * rng.normal(size=len(kept))
        if exact:
            log = log_density(y, m, v, noise, f)
            gain = np.log(2 * np.pi * np.e * before[i]) / 2 + log.mean()
            error = log.std() / np.sqrt(len(y))
        else:
            squares = (y - y.mean()) ** 2
            gain = np.log(before[i] / squares.mean()) / 2
            error = squares.std() / squares.mean() / np.sqrt(len(y)) / 2
        assert abs(got[i] - gain) < 4 * error


def test_pairs_are_needed() -> None:
    with pytest.raises(ValueError, match="needs optima"):
        build(Context((condition(HYPERS, X, Y),), Cube.box(D), X, Stream.of(0)))


def test_pairs_of_another_number_of_sets_are_refused() -> None:
    posterior = condition(HYPERS, X, Y)
    stars = Optima.pairs(STARS.star[:2], STARS.best[:2])
    with pytest.raises(ValueError, match="hyperparameter sets"):
        jes(posterior, stars)
