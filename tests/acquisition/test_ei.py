"""Log EI against the closed form, Monte Carlo and central differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from optpair.acquisition import logei
from optpair.acquisition.ei import LogEI
from optpair.gp.posterior import Hyperparameters, append, condition, fit

KERNELS = ("rbf", "matern52")
N, D, M, SIZE = 8, 2, 3, 16
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(N, D)), RNG.normal(size=N)
HYPERS = Hyperparameters(
    lengthscale=[[0.3, 0.7], [0.2, 0.4], [0.5, 0.25]],
    outputscale=[1.0, 4.0, 0.5],
    noise=[0.01, 0.3, 0.05],
    mean=[0.2, -1.0, 0.5],
)
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def closed_form(mean: np.ndarray, variance: np.ndarray, incumbent: np.ndarray) -> np.ndarray:
    sd = np.sqrt(variance)
    z = (mean - incumbent) / sd
    return sd * (stats.norm.pdf(z) + z * stats.norm.cdf(z))


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_set_has_the_closed_form(kernel: str) -> None:
    """Over the best posterior mean among the data, not the best noisy value."""
    for m in range(M):
        own = Hyperparameters(*(np.asarray(v)[m : m + 1] for v in jax.tree.leaves(HYPERS)))
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
    step = np.finfo(float).eps ** (1 / 3)
    value = jax.jit(LogEI.evaluate)

    @jax.jit
    def slope(alpha: LogEI, points: jax.Array, direction: jax.Array) -> jax.Array:
        tangent = jnp.broadcast_to(direction, points.shape)
        return jax.jvp(alpha.evaluate, (points,), (tangent,))[1]

    for direction in np.eye(D):
        ends = [np.asarray(value(alpha, jnp.asarray(Q + s * step * direction))) for s in (1, -1)]
        exact = slope(alpha, jnp.asarray(Q), jnp.asarray(direction))
        np.testing.assert_allclose(exact, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-5)


def test_hopeless_points_keep_their_order() -> None:
    """Without noise, next to bad data: EI itself underflows, its logarithm has a slope to climb."""
    line = np.array([[0.1], [0.5]])
    sure = Hyperparameters([[0.3]], [1.0], [1e-8], [0.0])
    alpha = logei(condition(sure, line, [5.0, -5.0]))
    values = alpha(0.5 + np.array([[0.0], [1e-3], [1e-2], [3e-2], [0.1]]))
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) > 0)
    assert values[0] < -1000


def test_padding_and_pending_points() -> None:
    """Fantasies have incumbents of their own, the pending point among the candidates for it."""
    rows, values, noises = np.full((SIZE, D), 0.3), np.full(SIZE, 9.0), np.full(SIZE, np.nan)
    rows[:N], values[:N] = X, Y
    wide = fit(
        jax.tree.map(jnp.asarray, HYPERS),
        *(jnp.asarray(v) for v in (rows, values, noises, np.arange(SIZE) < N)),
        kernel="matern52",
        columns=(0, 1),
    )
    np.testing.assert_allclose(logei(wide)(Q), logei(condition(HYPERS, X, Y))(Q), rtol=1e-8)
    fantasies = np.random.default_rng(2).normal(size=(M, 4)) * 3
    x = np.array([0.35, 0.85])
    grown = jax.jit(append)(wide, jnp.asarray(x), jnp.asarray(fantasies))
    seen = np.concatenate([X, [x]])
    each = np.empty((M, 4, len(Q)))
    for p in range(4):
        for m in range(M):
            own = Hyperparameters(*(np.asarray(v)[m : m + 1] for v in jax.tree.leaves(HYPERS)))
            posterior = condition(own, seen, np.append(Y, fantasies[m, p]))
            mean, variance = posterior.predict(Q)
            each[m, p] = closed_form(mean[0], variance[0], posterior.predict(seen)[0].max())
    np.testing.assert_allclose(np.exp(logei(grown)(Q)), each.mean((0, 1)), rtol=1e-7)


def test_noise_of_the_query_plays_no_part() -> None:
    """EI is about f: with every datum's noise known, the inferred noise does not matter."""
    known = np.full(N, 0.05)
    quiet, loud = (replace(HYPERS, noise=np.full(M, noise)) for noise in (1e-3, 10.0))
    first, second = (logei(condition(h, X, Y, noise_var=known))(Q) for h in (quiet, loud))
    np.testing.assert_allclose(first, second, rtol=1e-12)
