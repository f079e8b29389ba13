"""Information-directed sampling: its ratio, its limits, and the trials that it asks for."""

from __future__ import annotations

import numpy as np
import pytest
from cases import HYPERS, D, M, P, X, Y, chosen, condition, grown, slopes, source

from optpair.acquisition import Context, ids, jes, mean
from optpair.acquisition.ids import LEAST, build
from optpair.cube.cube import Cube
from optpair.gp import Posterior
from optpair.optima import Optima, sample
from optpair.runtime.streams import Stream

RNG = source()
STARS = Optima.pairs(RNG.uniform(size=(M, P, D)), Y.max() + RNG.uniform(0.1, 2.0, (M, P)))
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])
UNIT2 = float(np.mean(HYPERS.outputscale))


def regret(posterior: Posterior, stars: Optima = STARS) -> np.ndarray:
    """E f* − E m(x), from what is told of the posterior."""
    return np.asarray(stars.best.mean() - posterior.predict(Q)[0].mean(0))


def test_gain_over_squared_regret() -> None:
    posterior = condition(HYPERS, X, Y)
    truth = jes(posterior, STARS)(Q) * UNIT2 / regret(posterior) ** 2
    np.testing.assert_allclose(ids(posterior, STARS)(Q), truth, rtol=1e-9)
    context = Context((posterior,), Cube.box(D), Q, Stream.of(0), None, STARS)
    np.testing.assert_allclose(build(context)(Q), truth, rtol=1e-9)


def test_regret_by_draws() -> None:
    """E[f* − f(x)] over optimal pairs and values that are drawn, within 4.5 standard errors."""
    posterior, points, count = condition(HYPERS, X, Y), Q[:6], 60
    stars = sample(posterior, count, features=256, candidates=256, steps=12)
    means, variance = posterior.predict(points)
    f = means[:, None] + np.sqrt(variance)[:, None] * np.random.default_rng(2).normal(
        size=(M, count, len(points))
    )
    drawn = stars.best[..., None] - f
    error = np.sqrt(drawn.var(1).sum(0) / count) / M
    got = np.sqrt(UNIT2 * jes(posterior, stars)(points) / ids(posterior, stars)(points))
    assert np.all(np.abs(got - drawn.mean((0, 1))) < 4.5 * error)


def test_far_maxima_leave_the_gain_to_decide() -> None:
    """Where f* is far above all means, all regrets are about alike: the order is that of the gain.

    With the same gain everywhere but for round-off, it is that of the mean.
    """
    posterior = condition(HYPERS, X, Y)
    far = Optima.pairs(STARS.star, STARS.best + 1e5)
    order = np.argsort(ids(posterior, far)(Q[:9]))
    np.testing.assert_array_equal(order, np.argsort(jes(posterior, far)(Q[:9])))


def test_no_regret_is_below_the_least() -> None:
    """Maxima below the means: the price is the least everywhere, and its slope that of the gain."""
    posterior = condition(HYPERS, X, Y)
    low = Optima.pairs(STARS.star, STARS.best - 30.0)
    assert np.all(regret(posterior, low) < 0)
    alpha, gain = ids(posterior, low), jes(posterior, low)
    np.testing.assert_allclose(alpha(Q), gain(Q) / LEAST**2, rtol=1e-9)
    np.testing.assert_allclose(alpha.gradient(Q), gain.gradient(Q) / LEAST**2, rtol=1e-9)


def test_it_prefers_the_better_of_two_places_that_say_as_much() -> None:
    """Two flanks of one gain and of two means: the higher is asked for."""
    posterior = condition(HYPERS, X, Y)
    alpha, gain, worth = ids(posterior, STARS)(Q), jes(posterior, STARS)(Q), mean(posterior)(Q)
    ratio = alpha / gain
    np.testing.assert_array_equal(np.argsort(ratio), np.argsort(worth))


def test_fantasies_belong_to_their_optimum() -> None:
    """With a pending point the regret is under each path's own fantasy, by its weight."""
    values = np.random.default_rng(1).normal(size=(M, P))
    posterior = grown(values)
    weighted = Optima(STARS.x, STARS.f, STARS.mask, np.log(np.arange(1.0, P + 1)) * np.ones((M, 1)))
    shares = np.arange(1.0, P + 1) / np.sum(np.arange(1.0, P + 1)) / M
    means = posterior.moments(Q)[0]
    gap = np.einsum("mpq,p->q", STARS.best[..., None] - means, shares)
    truth = jes(posterior, weighted)(Q) * UNIT2 / gap**2
    np.testing.assert_allclose(ids(posterior, weighted)(Q), truth, rtol=1e-9)


def test_slope_against_central_differences() -> None:
    exact, numeric = slopes(ids(condition(HYPERS, X, Y), STARS), Q)
    assert np.max(np.abs(exact)) > 0.1
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


def test_the_rough_one_has_the_rough_gain_and_the_same_regret() -> None:
    alpha = ids(condition(HYPERS, X, Y), STARS)
    np.testing.assert_allclose(alpha.rough(Q) / alpha.gain.rough(Q), alpha(Q) / alpha.gain(Q))


def test_what_is_refused() -> None:
    posterior = condition(HYPERS, X, Y)
    with pytest.raises(ValueError, match="needs optima"):
        build(Context((posterior,), Cube.box(D), X, Stream.of(0)))
    with pytest.raises(ValueError, match="hyperparameter sets"):
        ids(condition(chosen([0, 1]), X, Y), STARS)
