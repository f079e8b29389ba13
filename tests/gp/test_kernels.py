"""Kernels against their formulas, their derivatives' closed forms and their spectral densities."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optpair.gp import kernels
from optpair.gp.kernels import Correlation

KERNELS = ("rbf", "matern52", "mixed")
STEP = np.finfo(float).eps ** (1 / 3)
SCALE, OUTPUT = np.array([[0.3, 0.7], [0.05, 2.0], [1.5, 0.2]]), np.array([2.0, 0.5, 30.0])
ROUGH = np.array([0.3, 0.9, 1e-3])  # shares of Matérn-5/2 in `mixed`

compiled = jax.jit(kernels.cross)


def of_sets(kernel: str, sets: int = 3) -> Correlation:
    return Correlation(kernel, jnp.asarray(ROUGH[:sets]) if kernel == "mixed" else None)


def of_one(kernel: str) -> Correlation:
    """Of no set: for arrays without their axis."""
    return Correlation(kernel, jnp.asarray(ROUGH[0]) if kernel == "mixed" else None)


def cross(kernel: str, scale: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    of = of_sets(kernel, len(scale))
    return np.asarray(compiled(of, jnp.asarray(scale), *map(jnp.asarray, arrays)))


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def formula(kernel: str, r: np.ndarray) -> np.ndarray:
    """h as a function of the distance itself, which is each set's own."""
    if kernel == "mixed":
        share = ROUGH.reshape(3, *[1] * (r.ndim - 1))
        return (1 - share) * formula("rbf", r) + share * formula("matern52", r)
    if kernel == "rbf":
        return np.exp(-(r**2) / 2)
    return (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


def dense(kernel: str, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """k(X, Y) under each set, from differences of points rather than a matrix product."""
    r = np.sqrt(np.sum(((X[None, :, None] - Y[None, None]) / SCALE[:, None, None]) ** 2, -1))
    return OUTPUT[:, None, None] * formula(kernel, r)


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(7, 2)), rng.uniform(size=(5, 2))
    Y[0], Y[1], Y[2] = X[0], 0.0, 1.0
    return X, Y


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_follow_the_formula(kernel: str, points: tuple[np.ndarray, np.ndarray]) -> None:
    # r² loses eps·(|Z|² + |Y|²) ≤ eps·2·(0.5/0.05)² = 5e-14 to the matrix product; |dh/dr²| ≤ 1.
    X, Y = points
    got = cross(kernel, SCALE, OUTPUT, X, Y)
    np.testing.assert_allclose(
        got / OUTPUT[:, None, None],
        dense(kernel, X, Y) / OUTPUT[:, None, None],
        rtol=0,
        atol=1e-13,
    )
    assert got[0, 0, 0] == pytest.approx(OUTPUT[0], rel=1e-14)  # a coincident pair


def test_points_of_each_set_are_its_own(points: tuple[np.ndarray, np.ndarray]) -> None:
    X, Y = points
    own = np.stack([X, X + 0.1, X - 0.1])
    got = cross("matern52", SCALE, OUTPUT, own, Y)
    each = [cross("matern52", SCALE, OUTPUT, own[m], Y)[m] for m in range(3)]
    np.testing.assert_allclose(got, each, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_short_length_scales_keep_coincident_points_together(kernel: str) -> None:
    # The centring bounds |Z| by 0.5/ℓ·√D: r² is off by at most about eps·(0.5/ℓ)²·2D = 2e-11.
    X = np.random.default_rng(1).uniform(size=(50, 2))
    one = np.full((1, 2), 1e-3)
    K = cross(kernel, one, np.ones(1), X, X)[0]
    np.testing.assert_allclose(np.diagonal(K), 1.0, rtol=0, atol=5e-10)
    assert K.max() <= 1.0


# (second, fourth) derivative of h(|x|) in x at 0, in units of a/ℓ² and a/ℓ⁴.
AT_ZERO = {
    "rbf": (-1.0, 3.0),
    "matern52": (-5 / 3, 25.0),
    "mixed": (-0.7 - 0.3 * 5 / 3, 0.7 * 3 + 0.3 * 25),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_at_coincident_points(kernel: str, order: int) -> None:
    a, ell, x0 = 2.0, 0.3, 0.2

    def value(x: jax.Array) -> jax.Array:
        one, scale, output = of_sets(kernel, 1), jnp.array([[ell]]), jnp.array([a])
        return kernels.cross(one, scale, output, x[None, None], jnp.array([[x0]]))[0, 0, 0]

    derivative = value
    for _ in range(order):
        derivative = jax.grad(derivative)
    second, fourth = AT_ZERO[kernel]
    truth = {1: 0.0, 2: second * a / ell**2, 3: 0.0, 4: fourth * a / ell**4}[order]
    assert float(jax.jit(derivative)(jnp.array(x0))) == pytest.approx(truth, rel=1e-12, abs=1e-9)


def closed_derivatives(kernel: str, x: np.ndarray) -> list[np.ndarray]:
    """The first four derivatives of h(|x|) for x > 0, by hand."""
    if kernel == "mixed":
        both = (closed_derivatives(of, x) for of in ("rbf", "matern52"))
        return [0.7 * smooth + 0.3 * rough for smooth, rough in zip(*both, strict=True)]
    if kernel == "rbf":
        e = np.exp(-(x**2) / 2)
        return [-x * e, (x**2 - 1) * e, (3 * x - x**3) * e, (x**4 - 6 * x**2 + 3) * e]
    u = np.sqrt(5) * x
    e = np.exp(-u)
    return [
        -np.sqrt(5) / 3 * u * (1 + u) * e,
        -5 / 3 * (1 + u - u**2) * e,
        np.sqrt(5) * 5 / 3 * (3 * u - u**2) * e,
        25 / 3 * (3 - 5 * u + u**2) * e,
    ]


@pytest.mark.parametrize("kernel", KERNELS)
def test_derivatives_away_from_zero(kernel: str) -> None:
    x = np.array([1e-3, 0.1, 0.7, 2.0, 6.0])

    def value(x: jax.Array) -> jax.Array:
        return kernels.correlation(of_one(kernel), x * x)

    derivative = value
    for truth in closed_derivatives(kernel, x):
        derivative = jax.grad(derivative)
        got = jax.jit(jax.vmap(derivative))(jnp.asarray(x))
        np.testing.assert_allclose(got, truth, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_against_central_differences(
    kernel: str, points: tuple[np.ndarray, np.ndarray]
) -> None:
    # Every pair at once, the coincident one too. Central differences err by step²/6·k‴ plus
    # eps·k/step: with k‴ up to 12 a/ℓ³ at ℓ = 0.05 that is 6e-7 a and 4e-11 a.
    X, Y = points
    weights = np.random.default_rng(2).normal(size=(3, 7, 5)) / OUTPUT[:, None, None]

    def total(X: jax.Array, Y: jax.Array, scale: jax.Array) -> jax.Array:
        return jnp.sum(
            jnp.asarray(weights) * kernels.cross(of_sets(kernel), scale, jnp.asarray(OUTPUT), X, Y)
        )

    gradients = jax.jit(jax.grad(total, (0, 1, 2)))(
        jnp.asarray(X), jnp.asarray(Y), jnp.asarray(SCALE)
    )
    value = jax.jit(total)
    arguments = [X, Y, SCALE]
    for i, gradient in enumerate(gradients):
        for index in np.ndindex(*arguments[i].shape):
            ends = []
            for sign in (1, -1):
                moved = [np.array(v) for v in arguments]
                moved[i][index] += sign * STEP
                ends.append(float(value(*map(jnp.asarray, moved))))
            slope = (ends[0] - ends[1]) / (2 * STEP)
            assert float(gradient[index]) == pytest.approx(slope, rel=1e-6, abs=5e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_is_zero_where_points_coincide(kernel: str) -> None:
    # Only round-off is left: eps·(|Z| + |Y|)/ℓ·a.
    x = jnp.array([[0.31, 0.77]])

    def value(X: jax.Array) -> jax.Array:
        own = of_sets(kernel), jnp.asarray(SCALE), jnp.asarray(OUTPUT)
        return kernels.cross(*own, X, x)[1, 0, 0]

    np.testing.assert_allclose(jax.jit(jax.grad(value))(x), 0.0, atol=1e-12)


def spectral(kernel: str) -> np.ndarray:
    rng, (sets, d) = np.random.default_rng(3), SCALE.shape
    normal, chi2 = rng.standard_normal((sets, 200_000, d)), rng.chisquare(5, (sets, 200_000))
    coin = rng.uniform(size=(sets, 200_000))
    drawn = kernels.frequencies(of_sets(kernel), normal, chi2, coin, jnp.asarray(SCALE))
    return np.asarray(drawn)


@pytest.mark.parametrize("kernel", KERNELS)
def test_spectral_draws_reproduce_the_kernel(kernel: str) -> None:
    # k(Δ)/a = E cos(ω·Δ): the mean of 200,000 cosines, within 4 of its standard errors.
    omega = spectral(kernel)
    for delta in ([0.1, 0.0], [0.0, 0.3], [0.2, -0.2], [-0.3, 1.0]):
        cosines = np.cos(omega @ np.array(delta))
        error = cosines.std(1) / np.sqrt(cosines.shape[1])
        truth = formula(kernel, np.linalg.norm(np.array(delta) / SCALE, axis=1))
        assert np.all(np.abs(cosines.mean(1) - truth) < 4 * error)


def test_spectral_draws_of_one_kernel_do_not_fit_the_other() -> None:
    """The test above has the power to tell the kernels apart."""
    omega = spectral("rbf")
    cosines = np.cos(omega @ np.array([0.2, -0.2]))
    error = cosines.std(1) / np.sqrt(cosines.shape[1])
    for other in ("matern52", "mixed"):
        wrong = formula(other, np.linalg.norm(np.array([0.2, -0.2]) / SCALE, axis=1))
        assert np.max(np.abs(cosines.mean(1) - wrong) / error) > 8


def test_the_slopes_of_numpy_arrays() -> None:
    """h is that of JAX arrays; h′ and the derivative in ρ against central differences."""
    r2 = np.random.default_rng(4).uniform(0.01, 9.0, (3, 5))
    for kernel in KERNELS:

        def value(r2: np.ndarray, rough: np.ndarray = ROUGH, kernel: str = kernel) -> np.ndarray:
            return kernels.correlation_and_slopes(Correlation(kernel, rough), r2)[0]

        h, bend, by_rough = kernels.correlation_and_slopes(Correlation(kernel, ROUGH), r2)
        np.testing.assert_allclose(h, kernels.correlation(of_sets(kernel), jnp.asarray(r2)))
        slope = (value(r2 + STEP) - value(r2 - STEP)) / (2 * STEP)
        np.testing.assert_allclose(bend, slope, rtol=1e-6)
        if by_rough is None:
            assert kernel != "mixed"
            continue
        slope = (value(r2, ROUGH + STEP) - value(r2, ROUGH - STEP)) / (2 * STEP)
        np.testing.assert_allclose(by_rough, slope, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("share", "kernel"), [(0.0, "rbf"), (1.0, "matern52")])
def test_all_smooth_and_all_rough_are_the_kernels_themselves(share: float, kernel: str) -> None:
    r2 = jnp.asarray(np.random.default_rng(5).uniform(0.0, 9.0, (2, 6)))
    mixed, plain = Correlation("mixed", jnp.full(2, share)), Correlation(kernel)
    np.testing.assert_allclose(
        kernels.correlation_derivatives(mixed, r2),
        kernels.correlation_derivatives(plain, r2),
        rtol=1e-13,
        atol=1e-16,
    )


def test_unknown_kernel_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"rbf, matern52, mixed.*'cubic'"):
        kernels.check_kernel("cubic")
    assert [kernels.check_kernel(name) for name in KERNELS] == list(KERNELS)
