"""FITBO against a dense GP of g, draws from its mixture, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from cases import HYPERS, PENDING, D, M, P, X, Y, changed, condition, k, one_set, slopes, source

from optpair.acquisition import Context, fitbo
from optpair.acquisition.fitbo import CLOSEST, FITBO, build
from optpair.cube.cube import Cube
from optpair.optima import Optima
from optpair.runtime.streams import Stream

RNG = source()
PLACES = RNG.uniform(size=(M, P, D))
VALUES = Y.max() + RNG.uniform(-0.3, 2.0, (M, P))  # one of them is below a noisy value
STARS = Optima.pairs(PLACES, VALUES)
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])


def textbook_g(m: int, f: float, y: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of g at Q by a plain GP of g: kernel and noise of f over γ²."""
    gamma = np.sqrt(2 * max(f - HYPERS.mean[m], CLOSEST * np.sqrt(HYPERS.outputscale[m])))
    top = HYPERS.mean[m] + gamma**2 / 2
    g = np.sqrt(2 * np.maximum(top - y, 0.0))
    K = k(m, rows, rows) / gamma**2 + HYPERS.noise[m] / gamma**2 * np.eye(len(rows))
    cross = k(m, Q, rows) / gamma**2
    mean = gamma + cross @ np.linalg.solve(K, g - gamma)
    variance = np.diag(k(m, Q, Q)) / gamma**2 - np.sum(cross * np.linalg.solve(K, cross.T).T, 1)
    return mean, variance


def parts(alpha: FITBO) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of y under each set and f*: (M, P, q) each."""
    query = alpha.posterior.at(Q)
    _, of = alpha.mixture(query.means, query.variance)
    return of.mean, of.variance


def test_each_part_is_a_gp_of_g() -> None:
    """(F1) to (F3): f* − ½ m_g², and m_g² s_g + σ², with g from a GP of its own."""
    mean, variance = parts(fitbo(condition(HYPERS, X, Y), STARS))
    assert np.any(Y.max() > VALUES)
    for m, p in np.ndindex(M, P):
        f = VALUES[m, p]
        g, s = textbook_g(m, f, Y, X)
        top = max(f, HYPERS.mean[m] + CLOSEST * np.sqrt(HYPERS.outputscale[m]))
        np.testing.assert_allclose(mean[m, p], top - g**2 / 2, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(variance[m, p], g**2 * s + HYPERS.noise[m], rtol=1e-6)


def test_the_gain_by_draws_from_the_mixture() -> None:
    """½ log of the variance of 400,000 draws of y, less the mean entropy of the parts."""
    alpha, draws = fitbo(condition(HYPERS, X, Y), STARS), 400_000
    mean, variance = parts(alpha)
    rng = np.random.default_rng(2)
    m, p = rng.integers(M, size=draws), rng.integers(P, size=draws)
    for i, got in enumerate(alpha(Q)[:5]):
        y = mean[m, p, i] + np.sqrt(variance[m, p, i]) * rng.normal(size=draws)
        squares = (y - y.mean()) ** 2
        error = squares.std() / squares.mean() / np.sqrt(draws) / 2
        truth = np.log(y.var()) / 2 - np.mean(np.log(variance[..., i])) / 2
        assert abs(got - truth) < 4.5 * error


def test_moment_matching_is_above_the_mixtures_entropy() -> None:
    """A normal has the most entropy of all with its variance; by a sum over a fine grid of y."""
    alpha = fitbo(condition(HYPERS, X, Y), STARS)
    mean, variance = parts(alpha)
    for i, got in enumerate(alpha(Q)[:9]):
        m, v = mean[..., i].ravel(), variance[..., i].ravel()
        y = np.linspace(np.min(m - 9 * np.sqrt(v)), np.max(m + 9 * np.sqrt(v)), 40_001)
        density = np.mean(
            np.exp(-((y - m[:, None]) ** 2) / (2 * v[:, None])) / np.sqrt(2 * np.pi * v[:, None]), 0
        )
        terms = -density * np.log(np.maximum(density, 1e-300))
        gain = np.sum(terms) * (y[1] - y[0]) - np.mean(np.log(2 * np.pi * np.e * v)) / 2
        assert 0 <= gain <= got + 1e-6
        assert got < gain + 0.5


def test_the_line_is_the_square_where_little_is_unknown() -> None:
    """f* − ½g² by draws of g: where s_g is small beside m_g², mean and variance are (F3)'s."""
    alpha = fitbo(condition(one_set(0), X, Y), Optima.pairs(PLACES[:1, :1], VALUES[:1, :1] + 3.0))
    query = alpha.posterior.at(Q)
    g, of = alpha.mixture(query.means, query.variance)
    centre = alpha.centre[0, 0]
    s_g = query.variance[0] / centre**2
    near = s_g < 1e-2 * g[0, 0] ** 2
    assert np.sum(near) >= 4
    drawn = g[0, 0] + np.sqrt(s_g) * np.random.default_rng(3).normal(size=(200_000, len(Q)))
    f = alpha.f[0, 0] - drawn**2 / 2
    noise = HYPERS.noise[0]
    # ½ s_g of the mean and ½ s_g² of the variance are left out: at most 0.5 % of either.
    sd = f.std(0)
    assert np.all(np.abs(of.mean[0, 0] - f.mean(0))[near] < 0.06 * sd[near])
    np.testing.assert_allclose(of.variance[0, 0][near], (f.var(0) + noise)[near], rtol=0.03)


def test_far_maxima_leave_the_posterior_itself() -> None:
    """As f* → ∞: the mixture of the sets' own predictions, about which α is closed form."""
    posterior = condition(HYPERS, X, Y)
    alpha = fitbo(posterior, Optima.pairs(PLACES, np.full((M, P), 1e7)))
    mean, s = posterior.predict(Q)
    v = s + HYPERS.noise[:, None]
    got = parts(alpha)
    np.testing.assert_allclose(got[0][:, 0], mean, rtol=0, atol=1e-4)
    np.testing.assert_allclose(got[1][:, 0], v, rtol=1e-5)
    truth = np.log(v.mean(0) + mean.var(0)) / 2 - np.log(v).mean(0) / 2
    np.testing.assert_allclose(alpha(Q), truth, rtol=1e-4)


def test_one_part_has_nothing_to_tell() -> None:
    alpha = fitbo(condition(one_set(1), X, Y), Optima.pairs(PLACES[1:2, :1], VALUES[1:2, :1]))
    np.testing.assert_allclose(alpha(Q), 0.0, atol=1e-14)


def test_fantasies_belong_to_their_optimum() -> None:
    """A GP of g for each set and path, with that path's own value at the pending point."""
    values = np.random.default_rng(1).normal(size=(M, P))
    mean, variance = parts(fitbo(condition(HYPERS, X, Y).append(PENDING, values), STARS))
    rows = np.concatenate([X, [PENDING]])
    for m, p in np.ndindex(M, P):
        g, s = textbook_g(m, VALUES[m, p], np.append(Y, values[m, p]), rows)
        top = max(VALUES[m, p], HYPERS.mean[m] + CLOSEST * np.sqrt(HYPERS.outputscale[m]))
        np.testing.assert_allclose(mean[m, p], top - g**2 / 2, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(variance[m, p], g**2 * s + HYPERS.noise[m], rtol=1e-6)


def test_slope_against_central_differences() -> None:
    exact, numeric = slopes(fitbo(condition(HYPERS, X, Y), STARS), Q)
    assert np.max(np.abs(exact)) > 0.1
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e4])
def test_gain_is_never_negative(noise: float) -> None:
    """Nor infinite, with f* below all data as well."""
    posterior = condition(changed(noise=np.full(M, noise)), X, Y)
    for shift in (-30.0, 0.0, 30.0):
        values = fitbo(posterior, Optima.pairs(PLACES, VALUES + shift))(Q)
        assert np.all(np.isfinite(values))
        assert np.min(values) >= -1e-14


def test_what_is_refused() -> None:
    posterior = condition(HYPERS, X, Y)
    with pytest.raises(ValueError, match="needs optima"):
        build(Context((posterior,), Cube.box(D), X, Stream.of(0)))
    with pytest.raises(ValueError, match="hyperparameter sets"):
        fitbo(posterior, Optima.pairs(PLACES[:2], VALUES[:2]))
