"""The knowledge gradient against integration, refitted GPs, draws and central differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from small_study import (
    HYPERS,
    PENDING,
    STEP,
    D,
    M,
    P,
    X,
    Y,
    both_slopes,
    grown,
    known,
    one_set,
    source,
)

from optpair.acquisition.base import Context
from optpair.acquisition.kg import at_places, build, kg, lines_gain, lines_gain_and_slopes
from optpair.cube.cube import Cube
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.posterior import condition
from optpair.optima.base import Optima
from optpair.runtime.streams import Stream

RNG = source()
STARS = Optima.pairs(RNG.uniform(size=(M, P, D)), np.zeros((M, P)))  # f* is not used
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], STARS.star[0, :2], [[1.0, 0.0]]])


def of_set(m: int) -> Optima:
    return Optima.pairs(STARS.star[m : m + 1], STARS.best[m : m + 1])


def integral(a: np.ndarray, b: np.ndarray) -> float:
    """E max (a + bz) − max a, by the trapezoid rule between the kinks."""
    kinks = [(a[i] - a[j]) / (b[j] - b[i]) for i in range(len(a)) for j in range(i) if b[i] != b[j]]
    ends = np.unique(np.clip([-12.0, 12.0, *kinks], -12, 12))
    total = 0.0
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for low, high in itertools.pairwise(ends):
        for left in np.linspace(low, high, 5)[:-1]:
            width = (high - low) / 4
            z = left + width * (nodes + 1) / 2
            over = np.max(a[:, None] + b[:, None] * z, 0) - a.max()
            total += width / 2 * float(weights @ (over * stats.norm.pdf(z)))
    return total


def test_two_lines_have_a_closed_form() -> None:
    """s (φ(c) − c Φ(−c)) with s = |b₂ − b₁| and c = |a₂ − a₁|/s, also where that is tiny."""
    for a2, b2 in ((-0.3, 0.5), (-1.0, -2.0), (-3.0, 0.1), (0.0, 1.0), (0.4, -1.0)):
        s = abs(b2 - 0.2)
        c = abs(a2) / s
        truth = s * (stats.norm.pdf(c) - c * stats.norm.sf(c))
        got = float(lines_gain(np.array([0.0, a2]), np.array([0.2, b2])))
        assert got == pytest.approx(truth, rel=1e-10 if c < 6 else 1e-4, abs=0)


def test_many_lines_by_integration() -> None:
    """Random ones; with copies, with parallel ones, with one that is nowhere the largest."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 6, 9))
    a[1, 5], b[1, 5] = a[1, 2], b[1, 2]  # the same line twice
    b[2, :4] = b[2, 4]  # parallel
    b[3] = 0.7  # all parallel: nothing can change
    a[4, 3], b[4, 3] = -50.0, 0.0
    b[5] *= 1e-3
    got = lines_gain(a, b)
    truth = [integral(a[i], b[i]) for i in range(6)]
    np.testing.assert_allclose(got, truth, rtol=1e-9, atol=1e-13)
    assert got[3] == 0
    assert np.all(got[[0, 1, 2, 4]] > 1e-3)


def test_slopes_of_lines_against_central_differences() -> None:
    rng = np.random.default_rng(2)
    a, b, da, db = rng.normal(size=(4, 5, 9))
    value, by_a, by_b = lines_gain_and_slopes(a, b)
    ends = [lines_gain(a + s * STEP * da, b + s * STEP * db) for s in (1, -1)]
    exact = np.sum(by_a * da + by_b * db, -1)
    np.testing.assert_allclose(exact, (ends[0] - ends[1]) / (2 * STEP), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(value, lines_gain(a, b))


def test_it_is_a_gp_refitted_on_each_outcome() -> None:
    """y at x by Gauss–Legendre, a GP on n + 1 points for each, its best mean over the places."""
    posterior = known(one_set(1))
    alpha = kg(posterior, of_set(1))
    z, w = np.polynomial.legendre.leggauss(200)
    z, w = 6 * z, 6 * w * stats.norm.pdf(6 * z)
    for x in Q[[0, 13]]:
        places = np.concatenate([alpha.places[0], [x]])
        mean, variance = (v[0, 0] for v in posterior.predict([x]))
        before = posterior.predict(places)[0].max()
        ys = mean + np.sqrt(variance + 0.3) * z
        rows = np.concatenate([X, [x]])
        after = [
            condition(one_set(1), rows, np.append(Y, y), "mixed").predict(places)[0].max()
            for y in ys
        ]
        truth = float(w @ (np.array(after) - before))
        # A kink between two of 200 nodes is off by about (12/200)²/12 of its change of slope.
        assert alpha([x])[0] == pytest.approx(truth, rel=2e-3, abs=1e-5)


def test_against_draws() -> None:
    posterior = known()
    alpha = kg(posterior, STARS)
    draws = np.random.default_rng(3).normal(size=100_000)
    for x in Q[:3]:
        each = np.empty((M, len(draws)))
        for m in range(M):
            own = known(one_set(m))
            places = np.concatenate([alpha.places[m], [x]])
            mean, _ = own.predict(places)
            _, variance = own.predict([x])
            noise = HYPERS.noise[m]
            # The covariance with f(x), from what one noisy look at x does to the mean.
            y = float(own.predict([x])[0][0, 0]) + 1.0
            seen = condition(one_set(m), np.concatenate([X, [x]]), np.append(Y, y), "mixed")
            slope = (seen.predict(places)[0][0] - mean[0]) * np.sqrt(variance[0, 0] + noise)
            lines = mean[0][:, None] + slope[:, None] * draws
            each[m] = lines.max(0) - mean[0].max()
        average = each.mean(0)
        error = average.std() / np.sqrt(len(draws))
        assert abs(alpha([x])[0] - average.mean()) < 4 * error


def test_slope_against_central_differences() -> None:
    """Away from the places, where max_i m(x_i) passes from one to x itself and has a kink."""
    alpha = kg(known(), STARS)
    exact, numeric = both_slopes(alpha, Q[:9])
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-7)


def test_each_fantasy_has_a_best_place_of_its_own() -> None:
    """Each fantasy has means of its own; the places are shared."""
    values = np.random.default_rng(1).normal(size=(M, P)) * 2
    points = np.random.default_rng(4).uniform(size=(20, D))
    alpha = kg(grown(values), STARS, points)
    assert alpha.places.shape == (M, P + 8, D)
    each = []
    for m, p in np.ndindex(M, P):
        rows = np.concatenate([X, [PENDING]])
        own = condition(one_set(m), rows, np.append(Y, values[m, p]), "mixed")
        only = alpha.places[m : m + 1]
        each.append(at_places(own, only)(Q))
    np.testing.assert_allclose(alpha(Q), np.mean(each, 0), rtol=1e-7, atol=1e-10)
    exact, numeric = both_slopes(alpha, Q[:9])
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-7)


def test_fantasies_are_no_more_than_needed() -> None:
    """32 over three sets: eleven of twelve; the best of the points are those of all."""
    values = np.random.default_rng(1).normal(size=(M, 12))
    points = np.random.default_rng(4).uniform(size=(300, D))
    posterior = grown(values)
    alpha = kg(posterior, STARS, points)
    assert alpha.means.shape == (M, 11, P + 8)
    mean, _ = posterior.predict(points)
    best = points[np.argsort(-mean, axis=1)[:, :4]]
    np.testing.assert_array_equal(alpha.places[:, P + 4 :], best)


def test_what_is_known_teaches_nothing() -> None:
    """At a datum without noise nothing can change; with much noise 13 lines have b ≤ a/σ."""
    sure = Hyperparameters([[0.3, 0.7]], [1.0], [1e-10], [0.0])
    alpha = kg(condition(sure, X, Y), of_set(0))
    assert np.max(alpha(X)) < 1e-4 < np.max(alpha(Q))
    loud = kg(condition(Hyperparameters([[0.3, 0.7]], [1.0], [1e6], [0.0]), X, Y), of_set(0))
    assert np.max(loud(Q)) < 1e-3 * np.sqrt(2 * np.log(13))


def test_what_is_refused() -> None:
    posterior = known()
    with pytest.raises(ValueError, match="needs optima of sample paths"):
        build(Context((posterior,), Cube.box(D), X, Stream.of(0)))
    with pytest.raises(ValueError, match="hyperparameter sets"):
        kg(posterior, Optima.pairs(STARS.star[:2], STARS.best[:2]))
    with pytest.raises(ValueError, match="points must have shape"):
        kg(posterior, STARS, X[:, :1])
