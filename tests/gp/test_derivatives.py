"""Covariances with derivatives against autodiff, known values, spectral draws and differences."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optpair.gp import derivatives, kernels
from optpair.gp.kernels import Correlation

KERNELS = ("rbf", "matern52", "mixed")
M, P, D = 2, 3, 2
RNG = np.random.default_rng(0)
SCALE, OUTPUT = np.array([[0.3, 0.7], [0.2, 0.4]]), np.array([2.0, 0.5])
STAR = RNG.uniform(size=(M, P, D))
POINTS = np.concatenate([RNG.uniform(size=(4, D)), STAR[0, :1], STAR[1, 1:2]])
STEP = np.finfo(float).eps ** (1 / 3)
ROUGH = np.array([0.3, 0.9])  # shares of Matérn-5/2 in `mixed`

compiled = jax.jit(derivatives.cross)


def of_sets(kernel: str) -> Correlation:
    return Correlation(kernel, jnp.asarray(ROUGH) if kernel == "mixed" else None)


def of_set(kernel: str, m: int) -> Correlation:
    return Correlation(kernel, jnp.asarray(ROUGH[m]) if kernel == "mixed" else None)


def cross(kernel: str, *arrays: np.ndarray) -> jax.Array:
    return compiled(of_sets(kernel), *arrays)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@jax.jit
def by_autodiff(
    kernel: Correlation, scale: jax.Array, output: jax.Array, star: jax.Array, x: jax.Array
) -> jax.Array:
    """(f, g, h) at x* with f(x): k and its derivatives in x*, times powers of ℓ."""

    def k(z: jax.Array) -> jax.Array:
        delta = (x - z) / scale
        return output * kernels.correlation(kernel, jnp.sum(delta * delta))

    slope, bend = scale * jax.jacfwd(k)(star), scale**2 * jnp.diag(jax.hessian(k)(star))
    return jnp.concatenate([k(star)[None], slope, bend])


@pytest.mark.parametrize("kernel", KERNELS)
def test_closed_forms_are_the_kernels_derivatives(kernel: str) -> None:
    """(D1) to (D3), at points apart from x* and at x* itself."""
    got = np.asarray(cross(kernel, SCALE, OUTPUT, STAR, POINTS))
    for m, p, i in np.ndindex(M, P, len(POINTS)):
        truth = by_autodiff(of_set(kernel, m), SCALE[m], OUTPUT[m], STAR[m, p], POINTS[i])
        np.testing.assert_allclose(got[m, p, :, i], truth, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("kernel", "second", "fourth"), [("rbf", 1, 3), ("matern52", 5 / 3, 25)])
def test_known_values_at_one_point(kernel: str, second: float, fourth: float) -> None:
    """(D4): −k″(0) and k⁗(0) in one dimension; a third of the latter between two coordinates."""
    V = np.asarray(derivatives.at_one_point(Correlation(kernel), jnp.ones(1), D))[0]
    truth = np.zeros((1 + 2 * D, 1 + 2 * D))
    truth[0, 0] = 1
    truth[0, 3:] = truth[3:, 0] = -second
    truth[1:3, 1:3] = second * np.eye(2)
    truth[3:, 3:] = fourth * np.array([[1, 1 / 3], [1 / 3, 1]])
    np.testing.assert_allclose(V, truth, rtol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_point_against_differences_of_the_cross_covariances(kernel: str) -> None:
    """cov(g_k, ·) and cov(h_k, ·) by differencing cov(f(x), ·) in x around x*.

    Steps of 1e-4 of a length scale: the error of a second difference is 1e-8 k⁗ + eps·1e8.
    The kernel's fifth derivative jumps at zero for Matérn-5/2, where it is first order, 1e-4 k⁗′.
    """
    step = 1e-4
    V = np.asarray(derivatives.at_one_point(of_sets(kernel), jnp.asarray(OUTPUT), D))
    star = STAR[:, :1]
    for m in range(M):
        moves = step * SCALE[m] * np.concatenate([np.eye(D), np.zeros((1, D)), -np.eye(D)])
        rows = (
            np.asarray(cross(kernel, SCALE, OUTPUT, star, star[m, 0] + moves))[m, 0].T / OUTPUT[m]
        )
        up, here, down = rows[:D], rows[D], rows[D + 1 :]
        slopes, bends = (up - down) / (2 * step), (up - 2 * here + down) / step**2
        tolerance = 1e-5 if kernel == "rbf" else 2e-2
        np.testing.assert_allclose(slopes, V[m, 1 : D + 1] / OUTPUT[m], atol=1e-5)
        np.testing.assert_allclose(bends, V[m, D + 1 :] / OUTPUT[m], atol=tolerance)


def test_covariances_are_averages_over_the_spectral_density() -> None:
    """k = a E cos ω·(x − x*): derivatives are averages too, inside 5 standard errors (RBF).

    Matérn's frequencies have too heavy a tail for the average of ω⁴ to have a standard error.
    """
    normal = np.random.default_rng(0).standard_normal((M, 40_000, D))
    unused = np.ones((M, 40_000))  # Matérn's alone
    rbf = Correlation("rbf")
    omega = np.asarray(kernels.frequencies(rbf, normal, unused, unused, jnp.asarray(SCALE)))
    for m in range(M):
        star, x, w = STAR[m, 0], POINTS[0], omega[m] * SCALE[m]
        phase = omega[m] @ (x - star)
        c, s = np.cos(phase)[:, None], np.sin(phase)[:, None]
        draws = OUTPUT[m] * np.concatenate([c, w * s, -(w**2) * c], 1)
        got = np.asarray(cross("rbf", SCALE, OUTPUT, STAR, POINTS))[m, 0, :, 0]
        error = draws.std(0) / np.sqrt(len(w))
        assert np.all(np.abs(got - draws.mean(0)) < 5 * error)
        fourth = OUTPUT[m] * w[:, :, None] ** 2 * w[:, None, :] ** 2
        V = np.asarray(derivatives.at_one_point(rbf, jnp.asarray(OUTPUT), D))[m, D + 1 :, D + 1 :]
        assert np.all(np.abs(V - fourth.mean(0)) < 5 * fourth.std(0) / np.sqrt(len(w)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_in_the_query_against_central_differences(kernel: str) -> None:
    """At x* itself the slope of cov(f(x), h) is zero by symmetry, and never NaN."""

    @jax.jit
    def slope(points: jax.Array, direction: jax.Array) -> jax.Array:
        tangent = jnp.broadcast_to(direction, points.shape)
        return jax.jvp(lambda X: cross(kernel, SCALE, OUTPUT, STAR, X), (points,), (tangent,))[1]

    for direction in np.eye(D):
        ends = [np.asarray(cross(kernel, SCALE, OUTPUT, STAR, POINTS + s * STEP * direction))
                for s in (1, -1)]  # fmt: skip
        numeric = (ends[0] - ends[1]) / (2 * STEP)
        exact = np.asarray(slope(jnp.asarray(POINTS), jnp.asarray(direction)))
        np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


def test_points_may_belong_to_a_star() -> None:
    """Points of each star, of each set, or shared: the same rows."""
    shared = np.asarray(cross("matern52", SCALE, OUTPUT, STAR, POINTS))
    of_set = np.broadcast_to(POINTS, (M, 1, *POINTS.shape))
    own = np.broadcast_to(POINTS, (M, P, *POINTS.shape))
    np.testing.assert_allclose(cross("matern52", SCALE, OUTPUT, STAR, of_set), shared, rtol=1e-13)
    np.testing.assert_allclose(cross("matern52", SCALE, OUTPUT, STAR, own), shared, rtol=1e-13)
    other = np.asarray(cross("matern52", SCALE, OUTPUT, STAR, own + 0.1))
    assert np.max(np.abs(other - shared)) > 0.1


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_joint_covariance_is_positive_definite(kernel: str) -> None:
    """(f, g, h) at x*, and f at other points."""
    apart = np.asarray(cross(kernel, SCALE, OUTPUT, STAR, POINTS[:4]))
    here = np.asarray(derivatives.at_one_point(of_sets(kernel), jnp.asarray(OUTPUT), D))
    for m, p in np.ndindex(M, P):
        r = np.sqrt(np.sum(((POINTS[:4, None] - POINTS[:4]) / SCALE[m]) ** 2, -1))
        K = OUTPUT[m] * np.asarray(kernels.correlation(of_set(kernel, m), jnp.asarray(r**2)))
        full = np.block([[here[m], apart[m, p]], [apart[m, p].T, K]])
        assert np.linalg.eigvalsh(full).min() > 1e-8
