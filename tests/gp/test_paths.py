"""Sample paths against the posterior they are drawn from, and the fast cosine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optpair.runtime import make_key

from optpair.gp.paths import Paths, cos_sin, sample
from optpair.gp.posterior import Hyperparameters, Posterior, condition, fit

KERNELS = ("rbf", "matern52", "mixed")
N, D, SIZE = 8, 2, 16
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(N, D)), RNG.normal(size=N)
# Between the data, at a datum, at two points close together, in a corner.
Q = np.concatenate([RNG.uniform(size=(3, D)), X[:1], [[0.5, 0.5], [0.5, 0.51], [1.0, 0.0]]])
SETS, PATHS = 300, 16
SHAPE = {"paths": PATHS, "features": 32}
NOISES = np.array([np.nan, 0.5, np.nan, 0.02, np.nan, np.nan, 0.1, np.nan])

both = jax.jit(cos_sin)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def hypers(noise: float = 0.05) -> Hyperparameters:
    """The same set many times: frequencies are drawn for each anew."""
    ones = np.ones(SETS)
    lengths = np.tile([[0.3, 0.6]], (SETS, 1))
    return Hyperparameters(lengths, 2.0 * ones, noise * ones, 0.7 * ones, 0.4 * ones)


@jax.jit
def at(paths: Paths, points: jax.Array) -> jax.Array:
    return paths.at(points)


@jax.jit
def own(paths: Paths, points: jax.Array) -> jax.Array:
    return paths.own(points)


def joint(posterior: Posterior, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance at points, under the first set, from K⁻¹ itself."""
    noise = np.asarray(posterior.noise_var)[0]
    everything = np.concatenate([np.asarray(posterior.X), points])
    K = np.asarray(posterior.prior_covariance(jnp.asarray(everything), jnp.asarray(everything)))[0]
    n = len(noise)
    solved = np.linalg.solve(K[:n, :n] + np.diag(noise), K[:n, n:])
    return 0.7 + solved.T @ (Y - 0.7), K[n:, n:] - K[n:, :n] @ solved


@pytest.mark.parametrize("kernel", KERNELS)
def test_paths_have_the_posteriors_mean_and_covariance(kernel: str) -> None:
    """300 sets of frequencies, 16 paths each, with only 32 features: every set is unbiased.

    Given its frequencies a path's mean is exactly m(x); over frequencies its covariance is on
    average that of the posterior, as that is linear in the prior's. So the spread over sets holds
    the errors of both the features and the draws, and 4.5 of its standard errors suffice (35
    comparisons).
    """
    posterior = condition(hypers(), X, Y, kernel, NOISES)
    drawn = sample(make_key(1), posterior, **SHAPE)
    values = np.asarray(at(drawn, jnp.asarray(Q)))
    mean, covariance = joint(posterior, Q)
    centred = values - mean

    def check(each: np.ndarray, truth: np.ndarray) -> None:
        error = each.std(0, ddof=1) / np.sqrt(SETS)
        assert np.all(np.abs(each.mean(0) - truth) < 4.5 * error)

    check(centred.mean(1), np.zeros(len(Q)))
    i, j = np.triu_indices(len(Q))
    check(np.mean(centred[..., i] * centred[..., j], 1), covariance[i, j])


def test_paths_interpolate_as_the_noise_vanishes() -> None:
    gaps = []
    for noise in (1e-4, 1e-6, 1e-8):
        drawn = sample(make_key(3), condition(hypers(noise), X, Y), **SHAPE)
        gaps.append(np.max(np.abs(np.asarray(at(drawn, jnp.asarray(X))) - Y)))
    # A path is within a few σ of each datum: the largest of 38,400 normals is below 6 σ.
    assert np.all(np.array(gaps) < 6 * np.array([1e-2, 1e-3, 1e-4]))
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]


def test_own_points_are_the_same_as_shared_ones() -> None:
    drawn = sample(make_key(4), condition(hypers(), X, Y), **SHAPE)
    points = np.random.default_rng(5).uniform(size=(SETS, PATHS, 2, D))
    got = np.asarray(own(drawn, jnp.asarray(points)))
    for m, p in ((0, 0), (3, 7), (SETS - 1, PATHS - 1)):
        shared = np.asarray(at(drawn, jnp.asarray(points[m, p])))
        np.testing.assert_allclose(got[m, p], shared[m, p], rtol=1e-10, atol=1e-12)
    assert np.std(got[:, :, 0]) > 0.1  # paths do differ


@pytest.mark.parametrize("unit", [1.0, 1e150])
def test_rough_paths_are_the_same_in_other_units(unit: float) -> None:
    """In units of √a and from 0, to single precision: also where f would not fit in it."""
    known = hypers()
    grown = Hyperparameters(
        known.lengthscale, unit**2 * known.outputscale, unit**2 * known.noise, unit * known.mean
    )
    paths = sample(make_key(1), condition(grown, X, unit * Y), **SHAPE)
    exact = (np.asarray(at(paths, jnp.asarray(Q))) / unit - 0.7) / np.sqrt(2.0)
    rough = jax.jit(lambda p, q: p.rough().at(q))(paths, jnp.asarray(Q, jnp.float32))
    assert rough.dtype == jnp.float32
    np.testing.assert_allclose(rough, exact, rtol=0, atol=1e-4)
    each = jnp.broadcast_to(jnp.asarray(Q, jnp.float32), (SETS, PATHS, *Q.shape))
    alone = jax.jit(lambda p, q: p.rough().own(q))(paths, each)
    assert alone.dtype == jnp.float32
    np.testing.assert_allclose(alone, exact, rtol=0, atol=1e-4)


def test_paths_of_a_set_share_their_frequencies_and_sets_do_not() -> None:
    drawn = sample(make_key(4), condition(hypers(), X, Y), **SHAPE)
    assert drawn.turns.shape == (SETS, 16, D)
    assert drawn.cosine.shape == drawn.sine.shape == (SETS, PATHS, 16)
    assert np.all(np.abs(np.asarray(drawn.turns[0] - drawn.turns[1])) > 0)


def test_padding_does_not_change_what_is_drawn() -> None:
    plain = condition(hypers(), X, Y, "matern52", NOISES)
    wide = fit(hypers(), X, Y, NOISES, kernel="matern52", columns=(0, 1), size=SIZE)
    wide = replace(wide, X=wide.X.at[N:].set(0.3), noise_var=wide.noise_var.at[:, N:].set(2.0))
    drawn = [sample(make_key(6), p, **SHAPE) for p in (plain, wide)]
    first, second = (np.asarray(at(paths, jnp.asarray(Q))) for paths in drawn)
    np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-14)
    other = sample(make_key(7), plain, **SHAPE)
    assert np.abs(np.asarray(at(other, jnp.asarray(Q))) - first).max() > 0.1  # the key matters


def test_gradient_of_a_path() -> None:
    # step²/6·f‴ + eps·f/step ≈ 1e-9 for length scales of 0.3; at a datum too.
    drawn = sample(make_key(4), condition(hypers(), X, Y), **SHAPE)
    step = np.finfo(float).eps ** (1 / 3)

    @jax.jit
    def slope(paths: Paths, points: jax.Array, direction: jax.Array) -> jax.Array:
        tangent = jnp.broadcast_to(direction, points.shape)
        return jax.jvp(paths.at, (points,), (tangent,))[1]

    for direction in np.eye(D):
        ends = [np.asarray(at(drawn, jnp.asarray(Q + s * step * direction))) for s in (1, -1)]
        exact = slope(drawn, jnp.asarray(Q), jnp.asarray(direction))
        np.testing.assert_allclose(exact, (ends[0] - ends[1]) / (2 * step), atol=1e-6)


TURNS = np.concatenate(
    [
        np.linspace(-2, 2, 4001),
        np.random.default_rng(8).uniform(-1000, 1000, 4000),
        [0.0, 0.25, 0.5, 0.75, 1.0, -0.5, 1e-300, 12345.5],
    ]
)


def test_fast_cosine_and_sine() -> None:
    # The reference reduces its own argument: 2π·(t − round t), exact to eps.
    angle = 2 * np.pi * (TURNS - np.round(TURNS))
    c, s = (np.asarray(v) for v in both(jnp.asarray(TURNS)))
    np.testing.assert_allclose(c, np.cos(angle), rtol=0, atol=1e-12)
    np.testing.assert_allclose(s, np.sin(angle), rtol=0, atol=1e-12)


def test_fast_cosine_far_out() -> None:
    t = np.array([1e6 + 0.1, -1e6 + 0.3, 999_999.875])
    angle = 2 * np.pi * (t - np.round(t))
    c, s = (np.asarray(v) for v in both(jnp.asarray(t)))
    np.testing.assert_allclose(c, np.cos(angle), rtol=0, atol=1e-9)
    np.testing.assert_allclose(s, np.sin(angle), rtol=0, atol=1e-9)


def test_fast_cosine_in_single_precision() -> None:
    t = np.linspace(-10, 10, 4001, dtype=np.float32)
    c, s = both(jnp.asarray(t))
    assert c.dtype == s.dtype == jnp.float32
    angle = 2 * np.pi * t.astype(float)
    np.testing.assert_allclose(c, np.cos(angle), rtol=0, atol=1e-5)
    np.testing.assert_allclose(s, np.sin(angle), rtol=0, atol=1e-5)


def test_slope_of_the_fast_cosine() -> None:
    t = jnp.asarray(TURNS)
    angle = 2 * np.pi * (TURNS - np.round(TURNS))
    _, (dc, ds) = jax.jit(lambda t: jax.jvp(cos_sin, (t,), (jnp.ones_like(t),)))(t)
    np.testing.assert_allclose(dc, -2 * np.pi * np.sin(angle), rtol=0, atol=1e-11)
    np.testing.assert_allclose(ds, 2 * np.pi * np.cos(angle), rtol=0, atol=1e-11)
