"""Output-space Predictive Entropy Search against a dense GP with plain EP, and by rejection."""

from __future__ import annotations

import numpy as np
import pytest
from cases import HYPERS, PENDING, D, M, N, P, X, Y, changed, condition, one_set, source, textbook
from cases import slopes as both_slopes
from scipy import stats

from optpair.acquisition import Context, gibbon, opes
from optpair.acquisition.opes import MOST, OPES, SOFTNESS, build
from optpair.cube.cube import Cube
from optpair.gp import Hyperparameters
from optpair.optima import Optima
from optpair.runtime.streams import Stream

RNG = source()
PLACES = RNG.uniform(size=(M, P, D))
BEST = int(np.argmax(Y))
_SEEN = [textbook(m, X[[BEST]]) for m in range(M)]
VALUES = np.array(
    [mean[0] + np.sqrt(V[0, 0]) * RNG.uniform(-1.0, 1.5, P) for mean, V in _SEEN]
)  # the best datum may exceed these
STARS = Optima.pairs(PLACES, VALUES)
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])


def one_of(m: int, p: int) -> Optima:
    return Optima.pairs(PLACES[m : m + 1, p : p + 1], VALUES[m : m + 1, p : p + 1])


def moments(alpha: OPES, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """m_o and s_o: (M, P, q) each."""
    query = alpha.posterior.at(points)
    z = alpha.conditioned.at(points, query).z
    mean = query.means + np.einsum("mpiq,mpi->mpq", z, alpha.conditioned.shift)
    return mean, query.variance[:, None] - np.sum(z**2, 2)


def slow_sites(mean: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Plain EP for w ≥ 0: sites from SciPy's moments, q by inversion."""
    tau, nu = np.zeros(len(mean)), np.zeros(len(mean))
    for _ in range(60):
        for i in range(len(mean)):
            q = np.linalg.inv(np.linalg.inv(V) + np.diag(tau))
            centre = q @ (np.linalg.solve(V, mean) + nu)
            precision = 1 / q[i, i] - tau[i]
            cavity, sd = (centre[i] / q[i, i] - nu[i]) / precision, precision**-0.5
            law = stats.truncnorm(-cavity / sd, np.inf, loc=cavity, scale=sd)
            tau[i] = 1 / law.var() - precision
            nu[i] = law.mean() / law.var() - cavity * precision
    return tau, nu


def slow(m: int, f: float, points: np.ndarray) -> np.ndarray:
    """(O1) to (O4) for one set and one f*, from one dense Gaussian over data and queries."""
    mean, V = textbook(m, np.concatenate([X, points]))
    a, noise = HYPERS.outputscale[m], HYPERS.noise[m]
    at_data = V[:N, :N] + SOFTNESS * a * np.eye(N)
    tau, nu = slow_sites(f - mean[:N], at_data)
    # Sites are looks at w = f* − f(X), with noise 1/τ, that saw ν/τ.
    tau, nu = np.maximum(tau, 1e-12), np.where(tau > 1e-12, nu, 0.0)
    gain = np.linalg.solve(at_data + np.diag(1 / tau), V[:N]).T
    new = mean + gain @ (f - nu / tau - mean[:N])
    left = V - gain @ V[:N]
    s, s_o = np.diag(V)[N:], np.diag(left)[N:]
    v = stats.truncnorm.var(-np.inf, (f - new[N:]) / np.sqrt(s_o))
    return np.asarray(np.log((s + noise) / (s_o * v + noise)) / 2)


@pytest.mark.parametrize(("m", "p"), [(0, 1), (1, 0), (2, 3)])
def test_opes_is_a_dense_gp_with_plain_ep(m: int, p: int) -> None:
    """EP stops at 1e-7 there and here; what is left is the square root of that at worst."""
    alpha = opes(condition(one_set(m), X, Y), one_of(m, p))
    np.testing.assert_allclose(alpha(Q), slow(m, VALUES[m, p], Q), rtol=2e-5, atol=1e-8)


def test_one_datum_by_rejection() -> None:
    """EP with one site is exact: mean and variance of f(x) where f(x_1) ≤ f*, over 400,000 draws.

    The datum, 1.5 above a mean of 0 with noise 0.3, exceeds f* = 0.8 more often than not.
    """
    own = Hyperparameters([[0.3]], [1.0], [0.3], [0.0])
    rows, f, queries = np.array([[0.4]]), 0.8, np.array([[0.1], [0.35], [0.4], [0.6], [1.0]])
    posterior = condition(own, rows, np.array([1.5]))
    alpha = opes(posterior, Optima.pairs(np.full((1, 1, 1), 0.5), np.full((1, 1), f)))
    mean, V = (v[0] for v in posterior.joint(np.concatenate([rows, queries])))
    draws = np.random.default_rng(3).multivariate_normal(mean, V, 400_000, method="svd")
    kept = draws[draws[:, 0] <= f][:, 1:]
    assert 0.05 < len(kept) / len(draws) < 0.5
    got = [v[0, 0] for v in moments(alpha, queries)]
    error = np.sqrt(kept.var(0) / len(kept))
    assert np.all(np.abs(got[0] - kept.mean(0)) < 4.5 * error)
    squares = (kept - kept.mean(0)) ** 2
    assert np.all(np.abs(got[1] - squares.mean(0)) < 4.5 * squares.std(0) / np.sqrt(len(kept)))


def test_all_data_by_rejection() -> None:
    """Draws kept where f is below f* at all data: moments of f(x), and of f(x) ≤ f* the gain.

    EP's own error is a few hundredths of a standard deviation; Monte Carlo's is a tenth of that.
    """
    m, noise, f = 1, HYPERS.noise[1], float(np.mean(VALUES[1]))
    posterior, points = condition(one_set(m), X, Y), np.concatenate([Q[:5], X[[BEST]] + 0.03])
    mean, V = textbook(m, np.concatenate([X, points]))
    draws = np.random.default_rng(4).multivariate_normal(mean, V, 400_000, method="svd")
    kept = draws[np.all(draws[:, :N] <= f, 1)][:, N:]
    assert 0.02 < len(kept) / len(draws) < 0.5
    alpha = opes(posterior, Optima.pairs(np.full((1, 1, D), 0.5), np.full((1, 1), f)))
    (new,), (left,) = (v[0] for v in moments(alpha, points))
    sd, error = kept.std(0), 1 / np.sqrt(len(kept))
    assert np.all(np.abs(new - kept.mean(0)) / sd < 0.03 + 4 * error)
    assert np.all(np.abs(left / sd**2 - 1) < 0.05 + 6 * error)
    assert np.max(np.abs(mean[N:] - kept.mean(0)) / sd) > 0.5  # what there is to be met
    assert np.max(np.diag(V)[N:] / sd**2) > 1.3
    for i, got in enumerate(alpha(points)):
        below = kept[kept[:, i] <= f, i]
        truth = np.log((V[N + i, N + i] + noise) / (below.var() + noise)) / 2
        assert got == pytest.approx(truth, abs=0.02 + 4 / np.sqrt(2 * len(below)))


def test_without_noise_it_is_gibbon() -> None:
    """The data are known, and below f*: there is nothing more that f* tells of them."""
    exact = changed(noise=np.zeros(M))
    high = Optima.pairs(PLACES, Y.max() + 0.1 + np.abs(VALUES))
    posterior = condition(exact, X, Y)
    np.testing.assert_allclose(
        opes(posterior, high)(Q[:9]), gibbon(posterior, high)(Q[:9]), rtol=1e-6
    )
    noisy = condition(HYPERS, X, Y)
    assert np.max(np.abs(opes(noisy, STARS)(Q) - gibbon(noisy, STARS)(Q))) > 0.01


def test_far_above_the_data_it_is_gibbon_too() -> None:
    posterior = condition(HYPERS, X, Y)
    far = Optima.pairs(PLACES, 12.0 + VALUES)
    np.testing.assert_allclose(opes(posterior, far)(Q), gibbon(posterior, far)(Q), atol=1e-9)


def test_a_lucky_datum_is_known_to_have_been_lucky() -> None:
    """f* below what was seen: the mean around the datum falls, and that is learnt from f*."""
    best = X[[BEST]]
    posterior = condition(HYPERS, X, Y)
    alpha = opes(posterior, STARS)
    mean, variance = moments(alpha, best)
    assert np.all(mean < posterior.predict(best)[0][:, None])
    assert np.all(variance < posterior.predict(best)[1][:, None])


def test_a_place_counts_once() -> None:
    """Two looks at a place say what their mean with half of the noise says."""
    twice = condition(HYPERS, np.concatenate([X, X[:1]]), np.append(Y, Y[0]))
    known = np.full(N, np.nan)
    once = [
        condition(one_set(m), X, Y, None, np.where(np.arange(N) == 0, HYPERS.noise[m] / 2, known))
        for m in range(M)
    ]
    each = [opes(once[m], Optima.pairs(PLACES[m : m + 1], VALUES[m : m + 1]))(Q) for m in range(M)]
    np.testing.assert_allclose(opes(twice, STARS)(Q), np.mean(each, 0), rtol=1e-5, atol=1e-8)


def test_of_many_data_those_that_may_exceed_are_bounded() -> None:
    """40 data, of which 16 have sites; data that are far below f* would not change a thing."""
    rng = np.random.default_rng(5)
    rows = rng.uniform(size=(40, D))
    high = rows[:, 0] > 0.7
    y = np.where(high, 1.0, -6.0) + 0.3 * rng.normal(size=40)
    assert high.sum() < MOST
    hypers = Hyperparameters([[0.1, 0.1]], [4.0], [0.3], [0.0])
    star = Optima.pairs(np.full((1, 1, D), 0.5), np.full((1, 1), 1.2))
    posterior = condition(hypers, rows, y)
    alpha = opes(posterior, star)
    assert alpha.conditioned.shift.shape[2] == MOST
    mean, V = (v[0] for v in posterior.joint(np.concatenate([rows, Q])))
    some = V[:40, :40] + SOFTNESS * 4 * np.eye(40)
    tau, nu = slow_sites(1.2 - mean[:40], some)
    tau, nu = np.maximum(tau, 1e-12), np.where(tau > 1e-12, nu, 0.0)
    gain = np.linalg.solve(some + np.diag(1 / tau), V[:40]).T
    got = moments(alpha, Q)
    np.testing.assert_allclose(
        got[0][0, 0], (mean + gain @ (1.2 - nu / tau - mean[:40]))[40:], atol=1e-4
    )
    np.testing.assert_allclose(got[1][0, 0], np.diag(V - gain @ V[:40])[40:], atol=1e-4)


def test_fantasies_belong_to_their_optimum() -> None:
    values = np.random.default_rng(1).normal(size=(M, P))
    grown = condition(HYPERS, X, Y).append(PENDING, values)
    rows = np.concatenate([X, [PENDING]])
    each = [
        opes(condition(one_set(m), rows, np.append(Y, values[m, p])), one_of(m, p))(Q)
        for m, p in np.ndindex(M, P)
    ]
    np.testing.assert_allclose(opes(grown, STARS)(Q), np.mean(each, 0), rtol=1e-5, atol=1e-8)


def test_slope_against_central_differences() -> None:
    alpha = opes(condition(HYPERS, X, Y), STARS)
    exact, numeric = both_slopes(alpha, Q)
    assert np.max(np.abs(exact)) > 0.1
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-2, 1e4])
def test_gain_is_never_negative(noise: float) -> None:
    """Nor infinite, with f* that the data rule out as well."""
    posterior = condition(changed(noise=np.full(M, noise)), X, Y)
    for shift in (-30.0, -1.0, 0.0, 30.0):
        values = opes(posterior, Optima.pairs(PLACES, VALUES + shift))(Q)
        assert np.all(np.isfinite(values))
        assert np.min(values) >= 0


def test_without_data_only_the_query_is_bounded() -> None:
    posterior = condition(HYPERS, np.zeros((0, D)), np.zeros(0))
    np.testing.assert_allclose(opes(posterior, STARS)(Q), gibbon(posterior, STARS)(Q), rtol=1e-9)


def test_the_rough_one_has_some_of_the_optima() -> None:
    posterior = condition(HYPERS, X, Y)
    few = Optima.pairs(PLACES[:, : P // 2], VALUES[:, : P // 2])
    rough = opes(posterior, STARS).rough
    assert isinstance(rough, OPES)
    # Which data have sites does not depend on how many optima there are: all of them do.
    np.testing.assert_allclose(rough(Q), opes(posterior, few)(Q), rtol=1e-5, atol=1e-8)


def test_what_is_refused() -> None:
    posterior = condition(HYPERS, X, Y)
    with pytest.raises(ValueError, match="needs optima"):
        build(Context((posterior,), Cube.box(D), X, Stream.of(0)))
    with pytest.raises(ValueError, match="hyperparameter sets"):
        opes(posterior, one_of(0, 0))
