"""The maximiser against SciPy on smooth functions, brute force on small spaces, and bad values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from optpair.maximize import BLOCK, Search, ascend, climb, maximize, screen, sobol, space_filling
from optpair.runtime import Stream, pytree, static

from optpair.cube import HOT, Cube

D, STARTS = 3, 8
FREE = np.ones(D, dtype=bool)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def bowl(x: jax.Array) -> jax.Array:
    return -jnp.sum((x - jnp.array([0.3, 0.62, 0.5])) ** 2 * jnp.array([1.0, 4.0, 0.3]), -1)


def face(x: jax.Array) -> jax.Array:
    """The optimum in the plane x₀ = 1, inside it."""
    return -((x[..., 0] - 1.4) ** 2) - (x[..., 1] - 0.3 * x[..., 0]) ** 2 - (x[..., 2] - 0.7) ** 2


def corner(x: jax.Array) -> jax.Array:
    return jnp.exp(x @ jnp.array([1.0, -2.0, 0.5])) + 0.1 * jnp.sum(x, -1)


def valley(x: jax.Array) -> jax.Array:
    """A curved ridge, 100 times as steep across as along (Rosenbrock's, in the cube)."""
    z = 3 * x - 1
    across = z[..., 1:] - z[..., :-1] ** 2
    return -jnp.sum(20 * across**2 + 0.2 * (1 - z[..., :-1]) ** 2, -1)


def skewed(x: jax.Array) -> jax.Array:
    """A quadratic with condition number 1e4, whose optimum is cut off by a face."""
    A = jnp.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.5], [0.0, 0.5, 1.0]])
    turned = (x - jnp.array([0.5, 0.9, 1.2])) @ A.T * jnp.array([1.0, 10.0, 100.0])
    return -jnp.sum(turned**2, -1) / 100


def waves(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(7 * x + jnp.arange(3.0)), -1) + x[..., 0] * x[..., 1]


FUNCTIONS = [bowl, face, corner, valley, skewed, waves]


@lru_cache
def compiled_ascent(
    function: Callable[[jax.Array], jax.Array], free: tuple[bool, ...], steps: int
) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    return jax.jit(partial(ascend, function, free=np.array(free), steps=steps))


def ascended(
    function: Callable[[jax.Array], jax.Array], X: np.ndarray, steps: int, free: np.ndarray = FREE
) -> tuple[np.ndarray, np.ndarray]:
    x, value = compiled_ascent(function, tuple(free), steps)(jnp.asarray(X))
    return np.asarray(x), np.asarray(value)


def scipys(function: Callable[[jax.Array], jax.Array], x0: np.ndarray) -> float:
    slope = jax.jit(jax.value_and_grad(lambda x: -function(x)))

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = slope(jnp.asarray(x))
        return float(value), np.asarray(gradient)

    options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-10}
    fit = scipy.optimize.minimize(
        objective, x0, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * D, options=options
    )
    return -float(fit.fun)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_ascent_reaches_scipys_optimum(function: Callable[[jax.Array], jax.Array]) -> None:
    """With 80 evaluations: SciPy's own optimum or, on waves, one that SciPy cannot improve."""
    X = np.random.default_rng(0).uniform(size=(STARTS, D))
    x, value = ascended(function, X, 80)
    best = np.array([scipys(function, x0) for x0 in (x if function is waves else X)])
    first = np.asarray(function(jnp.asarray(X)))
    assert np.all(value >= best - 1e-6 * (best - first))
    np.testing.assert_allclose(value, function(jnp.asarray(x)), rtol=1e-9, atol=1e-12)
    assert np.all((x >= 0) & (x <= 1))
    assert np.all(value >= first)


@pytest.mark.parametrize("function", [bowl, face, corner], ids=lambda f: f.__name__)
def test_every_start_of_a_unimodal_function_arrives(
    function: Callable[[jax.Array], jax.Array],
) -> None:
    X = np.random.default_rng(1).uniform(size=(STARTS, D))
    x, _ = ascended(function, X, 80)
    truth = {
        "bowl": [0.3, 0.62, 0.5],
        "face": [1.0, 0.3, 0.7],
        "corner": [1.0, 0.0, 1.0],
    }[function.__name__]
    np.testing.assert_allclose(x, np.tile(truth, (STARTS, 1)), atol=1e-4)
    for column, edge in ((0, 1.0),) if function is face else ():
        np.testing.assert_array_equal(x[:, column], edge)  # on the face, not near it
    if function is corner:
        np.testing.assert_array_equal(x, np.tile(truth, (STARTS, 1)))


@pytest.mark.parametrize("function", [valley], ids=lambda f: f.__name__)
def test_the_value_never_falls(function: Callable[[jax.Array], jax.Array]) -> None:
    """More steps are never worse, from starts in the corners too."""
    X = np.concatenate(
        [
            np.random.default_rng(2).uniform(size=(4, D)),
            [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]],
        ]
    )
    last = np.asarray(function(jnp.asarray(X)))
    for steps in (1, 4, 12):
        _, value = ascended(function, X, steps)
        assert np.all(value >= last)
        last = value


def test_a_first_step_that_overshoots_is_refused() -> None:
    """However small the fall is: a faint bowl, from starts nearer its top than the first radius."""

    def faint(x: jax.Array) -> jax.Array:
        return 1e-9 * bowl(x)

    X = np.array([0.3, 0.62, 0.5]) + np.random.default_rng(10).uniform(-0.02, 0.02, (STARTS, D))
    first = np.asarray(faint(jnp.asarray(X)))
    x, value = ascended(faint, X, 1)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(value, first, rtol=1e-12)
    _, value = ascended(faint, X, 30)
    assert np.all(value > 1e-3 * first)  # and it does get there


def test_only_free_columns_move() -> None:
    X = np.random.default_rng(3).uniform(size=(STARTS, D))
    x, _ = ascended(bowl, X, 40, np.array([True, False, True]))
    np.testing.assert_array_equal(x[:, 1], X[:, 1])
    np.testing.assert_allclose(x[:, [0, 2]], np.tile([0.3, 0.5], (STARTS, 1)), atol=1e-4)


def test_a_start_at_the_optimum_stays() -> None:
    X = np.tile([[0.3, 0.62, 0.5]], (STARTS, 1))
    x, value = ascended(bowl, X, 80)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(value, 0.0)


def test_leading_axes_are_climbed_on_their_own() -> None:
    """Functions (2, 3, r, D) → (2, 3, r), each with an optimum of its own."""
    centres = np.random.default_rng(4).uniform(-0.2, 1.2, (2, 3, 1, D))

    def many(X: jax.Array) -> jax.Array:
        return -jnp.sum((X - jnp.asarray(centres)) ** 2, -1)

    x, _ = ascended(many, np.full((2, 3, 4, D), 0.5), 30)
    truth = np.broadcast_to(np.clip(centres, 0, 1), x.shape)
    np.testing.assert_allclose(x, truth, atol=1e-5)


def test_ascent_survives_nan_beyond_a_cliff() -> None:
    def cliff(x: jax.Array) -> jax.Array:
        return jnp.where(x[..., 0] > 0.4, jnp.nan, bowl(x))

    X = np.random.default_rng(5).uniform(0, 0.35, size=(STARTS, D))
    x, value = ascended(cliff, X, 60)
    assert np.all(np.isfinite(value))
    np.testing.assert_allclose(x, np.tile([0.3, 0.62, 0.5], (STARTS, 1)), atol=1e-3)


@pytest.mark.parametrize("points", [1, 3 * BLOCK - 7])
def test_screening_is_direct_evaluation(points: int) -> None:
    X = np.random.default_rng(6).uniform(size=(points, D))
    got = np.asarray(jax.jit(partial(screen, waves))(jnp.asarray(X)))
    np.testing.assert_allclose(got, np.asarray(waves(jnp.asarray(X))), rtol=1e-12)

    def pair(X: jax.Array) -> jax.Array:
        return jnp.stack([waves(X), bowl(X)])

    got = np.asarray(jax.jit(partial(screen, pair))(jnp.asarray(X)))
    np.testing.assert_allclose(got, np.asarray(pair(jnp.asarray(X))), rtol=1e-12)


# --- mixed spaces -------------------------------------------------------------------------------

# A continuous column, one of five linear levels, an int from 1 to 8 on a log scale, three choices.
MIXED = Cube(
    last=np.array([1.0, 4.0, 7.0, 1.0, 1.0, 1.0]),
    offset=np.ones(6),
    log=np.array([False, False, True, False, False, False]),
    parameter=(0, 1, 2, 3, 3, 3),
    stepped=(1, 2),
    groups=((3, 6),),
)
LEVELS = np.arange(5) / 4, np.log(np.arange(1, 9)) / np.log(8)


def discrete_part() -> np.ndarray:
    """Every legal combination of the discrete columns: 5 × 8 × 3."""
    return np.array([[u, v, *(HOT * e)] for u, v in product(*LEVELS) for e in np.eye(3)])


def mixed_function(x: jax.Array) -> jax.Array:
    """Smooth in the relaxed columns; each category has an optimum of its own."""
    chosen = x[..., 3:] / HOT
    target = chosen @ jnp.array([[0.2, 0.9, 0.1], [0.7, 0.3, 0.6], [0.5, 0.55, 0.95]])
    bonus = chosen @ jnp.array([0.0, 0.3, 0.2])
    bumps = 0.05 * jnp.cos(9 * x[..., 1] + 4 * x[..., 2])
    return bonus + bumps - jnp.sum((x[..., :3] - target) ** 2, -1)


def brute_force() -> float:
    rows = discrete_part()
    grid = np.linspace(0, 1, 2001)
    everything = np.concatenate(
        [np.repeat(grid, len(rows))[:, None], np.tile(rows, (len(grid), 1))], axis=1
    )
    return float(np.max(np.asarray(mixed_function(jnp.asarray(everything)))))


def is_legal(x: np.ndarray) -> bool:
    rows = discrete_part()
    near_one = np.min(np.abs(x[..., None, 1:] - rows).max(-1), -1) < 1e-12
    return bool(np.all(near_one) and np.all((x[..., 0] >= 0) & (x[..., 0] <= 1)))


def test_climbing_in_a_mixed_space_ends_at_legal_points() -> None:
    X = np.asarray(MIXED.spread(np.random.default_rng(7).uniform(size=(16, 4))))
    x, value = jax.jit(partial(climb, mixed_function, steps=20))(MIXED, jnp.asarray(X))
    assert is_legal(np.asarray(x))
    np.testing.assert_allclose(value, mixed_function(x), rtol=1e-9, atol=1e-12)
    assert np.all(np.asarray(value) >= np.asarray(mixed_function(jnp.asarray(X))))
    # A grid of 2,001 is within 1e-7 of the continuous optimum.
    assert np.asarray(value).max() >= brute_force() - 1e-6


SHIFTS = np.random.default_rng(0).uniform(size=(2, 3))


@pytree
@dataclass(frozen=True)
class Named:
    """One of the functions above as the pytree that `maximize` takes."""

    shift: jax.Array
    function: Callable[[jax.Array], jax.Array] = static()

    def evaluate(self, X: jax.Array) -> jax.Array:
        return self.function(X) + self.shift


def test_maximize_is_global_on_waves() -> None:
    candidates = space_filling(SHIFTS[0, :D], Cube.box(D), sobol(D, 300))
    x, value = maximize(Named(jnp.asarray(0.0), waves), Cube.box(D), candidates, starts=5, steps=30)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 61)] * D), -1).reshape(-1, D)
    assert float(value) >= np.asarray(waves(jnp.asarray(grid))).max()
    assert float(value) == pytest.approx(float(waves(x)))


def test_each_source_of_candidates_is_climbed_from() -> None:
    """Two narrow peaks, one group of candidates near each: the screening's best is not the best."""
    low, high = np.array([0.2, 0.2, 0.2]), np.array([0.8, 0.8, 0.8])

    def peaks(x: jax.Array) -> jax.Array:
        one = jnp.exp(-20 * jnp.sum((x - low) ** 2, -1))
        return one + 1.5 * jnp.exp(-20 * jnp.sum((x - high) ** 2, -1))

    rng = np.random.default_rng(8)
    candidates = np.concatenate(
        [low + 0.01 * rng.normal(size=(10, D)), high - 0.2 + 0.01 * rng.normal(size=(10, D))]
    )
    function = Named(jnp.asarray(0.0), peaks)
    box = Cube.box(D)
    x, _ = maximize(function, box, jnp.asarray(candidates), starts=2, steps=30)
    np.testing.assert_allclose(x, high, atol=1e-3)
    one, _ = maximize(function, box, jnp.asarray(candidates), starts=1, steps=30)
    np.testing.assert_allclose(one, low, atol=1e-3)
    told = jnp.arange(20.0)  # values that are known are not asked for: the last is the best
    last, _ = maximize(function, box, jnp.asarray(candidates), told, starts=1, steps=30)
    np.testing.assert_allclose(last, high, atol=1e-3)


@pytest.mark.parametrize("starts", [1, 7])
def test_maximize_passes_over_nan_and_infinite_values(starts: int) -> None:
    def broken(x: jax.Array) -> jax.Array:
        value = jnp.where(x[..., 0] < 0.25, jnp.nan, bowl(x))
        return jnp.where(x[..., 1] < 0.2, -jnp.inf, value)

    candidates = np.random.default_rng(9).uniform(size=(50, D))
    candidates[:8, 0] = 0.1  # a whole group of NaN
    x, value = maximize(
        Named(jnp.asarray(0.0), broken),
        Cube.box(D),
        jnp.asarray(candidates),
        starts=starts,
        steps=30,
    )
    np.testing.assert_allclose(x, [0.3, 0.62, 0.5], atol=1e-3)
    assert float(value) == pytest.approx(0.0, abs=1e-6)


# --- candidates ---------------------------------------------------------------------------------


def test_sobol_points_fill_the_cube() -> None:
    points = sobol(2, 100)
    assert points.shape == (100, 2)
    np.testing.assert_array_equal(points, sobol(2, 100))
    # The first 64 of a Sobol sequence: one in each cell of an 8 × 8 grid.
    cells = (np.floor(points[:64] * 8) @ [8, 1]).astype(int)
    assert sorted(cells) == list(range(64))


def test_space_filling_shifts() -> None:
    base = jnp.asarray(sobol(2, 64))
    first, second = (
        np.asarray(jax.jit(space_filling)(SHIFTS[i, :2], Cube.box(2), base)) for i in (0, 1)
    )
    np.testing.assert_allclose(first, (np.asarray(base) + SHIFTS[0, :2]) % 1, atol=1e-12)
    assert np.abs(first - second).max() > 0.01
    assert np.all((first >= 0) & (first < 1))


def test_points_near_anchors() -> None:
    anchors = jnp.asarray([[0.2, 0.8], [0.5, 0.0]])
    search = Search.of(Stream.of(0), Cube.box(2), 804, len(anchors))
    points, fill = (np.asarray(p) for p in search.points(Cube.box(2), anchors))
    assert fill.shape == (804, 2)
    np.testing.assert_array_equal(points[:2], anchors)
    assert np.all((points >= 0) & (points <= 1))
    moved = np.abs(points - np.asarray(anchors)[np.arange(201) % 2]).max(1)[2:]
    # Step sizes are log-uniform on [10⁻³, 10⁻½] times a normal: a third lie below 10^-2.2 or so.
    assert np.median(moved) == pytest.approx(10**-1.75, rel=0.5)
    assert np.quantile(moved, 0.1) < 5e-3
    assert np.quantile(moved, 0.9) > 0.08
