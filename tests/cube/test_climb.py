"""Climbs against SciPy on smooth functions, brute force on small spaces, and bad values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.optimize

from cube_cases import MIXED, discrete_part, is_legal
from optpair.cube.candidates import space_filling
from optpair.cube.climb import PRECISE, Bends, Landscape, ascend, climb, maximise
from optpair.cube.cube import Cube
from optpair.cube.lattice import lattice
from optpair.cube.region import Region
from optpair.problem.layout import HOT, Layout

D, STARTS = 3, 8
TINY = 1e-20  # what is left to win where a climb ends
BOX = Cube.box(D)
WHOLE, FREE = Region.whole(BOX), np.ones(D, dtype=bool)
Function = Callable[[np.ndarray], np.ndarray]


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """As the engine runs."""
    with np.errstate(all="ignore"):
        yield


@dataclass
class Known(Landscape):
    """A function of points as a landscape, its slopes by the complex step; counts what is asked."""

    function: Function
    asked: list[int] = field(default_factory=list)
    looked: list[int] = field(default_factory=list)

    def values(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        self.looked.append(len(X))
        return np.asarray(self.function(X))

    def slopes(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.asked.append(len(X))
        columns = [np.imag(self.function(X + 1e-30j * e)) / 1e-30 for e in np.eye(X.shape[1])]
        return self.values(X, rows), np.stack(columns, -1)


def bowl(x: np.ndarray) -> np.ndarray:
    return -np.sum((x - np.array([0.3, 0.62, 0.5])) ** 2 * np.array([1.0, 4.0, 0.3]), -1)


def face(x: np.ndarray) -> np.ndarray:
    """The optimum in the plane x₀ = 1, inside it."""
    return -((x[..., 0] - 1.4) ** 2) - (x[..., 1] - 0.3 * x[..., 0]) ** 2 - (x[..., 2] - 0.7) ** 2


def corner(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(x @ np.array([1.0, -2.0, 0.5])) + 0.1 * np.sum(x, -1))


def valley(x: np.ndarray) -> np.ndarray:
    """A curved ridge, 100 times as steep across as along (Rosenbrock's, in the cube)."""
    z = 3 * x - 1
    across = z[..., 1:] - z[..., :-1] ** 2
    return -np.sum(20 * across**2 + 0.2 * (1 - z[..., :-1]) ** 2, -1)


def skewed(x: np.ndarray) -> np.ndarray:
    """A quadratic with condition number 1e4, whose optimum is cut off by a face."""
    A = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.5], [0.0, 0.5, 1.0]])
    turned = (x - np.array([0.5, 0.9, 1.2])) @ A.T * np.array([1.0, 10.0, 100.0])
    return np.asarray(-np.sum(turned**2, -1) / 100)


def waves(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(np.sin(7 * x + np.arange(3.0)), -1) + x[..., 0] * x[..., 1])


FUNCTIONS = [bowl, face, corner, valley, skewed, waves]


def ascended(
    function: Function, X: np.ndarray, steps: int, free: np.ndarray = FREE, region: Region = WHOLE
) -> tuple[np.ndarray, np.ndarray]:
    end = ascend(Known(function), X, region, free, steps, enough=TINY)
    return end.x, end.value


def scipys(function: Function, x0: np.ndarray) -> float:
    known = Known(function)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = known.slopes(x[None], np.zeros(1, int))
        return -float(value[0]), -slope[0]

    options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-10}
    fit = scipy.optimize.minimize(
        objective, x0, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * D, options=options
    )
    return -float(fit.fun)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_ascent_reaches_scipys_optimum(function: Function) -> None:
    """With 80 evaluations: SciPy's own optimum or, on waves, one that SciPy cannot improve."""
    X = np.random.default_rng(0).uniform(size=(STARTS, D))
    x, value = ascended(function, X, 80)
    best = np.array([scipys(function, x0) for x0 in (x if function is waves else X)])
    first = function(X)
    assert np.all(value >= best - 1e-6 * (best - first))
    np.testing.assert_allclose(value, function(x), rtol=1e-9, atol=1e-12)
    assert np.all((x >= 0) & (x <= 1))
    assert np.all(value >= first)


@pytest.mark.parametrize(
    ("function", "truth"),
    [(bowl, [0.3, 0.62, 0.5]), (face, [1.0, 0.3, 0.7]), (corner, [1.0, 0.0, 1.0])],
    ids=["inside", "face", "corner"],
)
def test_every_start_of_a_unimodal_function_arrives(function: Function, truth: list[float]) -> None:
    X = np.random.default_rng(1).uniform(size=(STARTS, D))
    x, _ = ascended(function, X, 80)
    np.testing.assert_allclose(x, np.tile(truth, (STARTS, 1)), atol=1e-4)
    at_edge = np.isin(truth, [0.0, 1.0])
    np.testing.assert_array_equal(x[:, at_edge], np.tile(truth, (STARTS, 1))[:, at_edge])


@pytest.mark.parametrize("function", [valley, waves], ids=lambda f: f.__name__)
def test_the_value_never_falls(function: Function) -> None:
    """More steps are never worse, from starts in the corners too."""
    corners = [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]]
    X = np.concatenate([np.random.default_rng(2).uniform(size=(4, D)), corners])
    last = function(X)
    for steps in (1, 2, 4, 12, 40):
        _, value = ascended(function, X, steps)
        assert np.all(value >= last)
        last = value


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_climbs_that_drop_out_end_as_they_do_alone(function: Function) -> None:
    """Many climbs, of which some start at their end, against each by itself."""
    X = np.random.default_rng(3).uniform(size=(24, D))
    X[::3] = ascended(function, X[::3], 200)[0]
    known = Known(function)
    together = ascend(known, X, WHOLE, FREE, 120, enough=TINY)
    assert min(known.asked) < 24  # some did drop out
    for i in range(24):
        alone = ascend(Known(function), X[i : i + 1], WHOLE, FREE, 120, enough=TINY)
        span = max(abs(float(function(X[i]))), 1.0)
        assert together.value[i] == pytest.approx(alone.value[0], abs=1e-9 * span)
        np.testing.assert_allclose(together.x[i], alone.x[0], atol=1e-4)


def test_rows_are_told_whose_they_are() -> None:
    """Each row climbs a bowl of its own, also after others have dropped out."""
    centres = np.random.default_rng(4).uniform(-0.2, 1.2, (12, D))

    class Own(Known):
        def slopes(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            self.asked.append(len(X))
            gap = X - centres[rows]
            return -np.sum(gap**2, -1), -2 * gap

    X = np.full((12, D), 0.5)
    X[:4] = np.clip(centres[:4], 0, 1)
    known = Own(bowl)
    x, *_ = ascend(known, X, WHOLE, FREE, 40, enough=TINY)
    np.testing.assert_allclose(x, np.clip(centres, 0, 1), atol=1e-5)
    assert known.asked[-1] < 12


def test_a_first_step_that_overshoots_is_refused() -> None:
    """However small the fall is: a faint bowl, from starts nearer its top than the first radius."""

    def faint(x: np.ndarray) -> np.ndarray:
        return 1e-9 * bowl(x)

    X = np.array([0.3, 0.62, 0.5]) + np.random.default_rng(10).uniform(-0.02, 0.02, (STARTS, D))
    first = faint(X)
    x, value = ascended(faint, X, 1)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(value, first, rtol=1e-12)
    _, value = ascended(faint, X, 30)
    assert np.all(value > 1e-3 * first)  # and it does get there


BEND = 1 / (2 * np.array([1.0, 4.0, 0.3]))  # the inverse of `bowl`'s curvature


def test_a_bowl_that_bends_as_expected_takes_one_step() -> None:
    X = np.array([0.3, 0.62, 0.5]) + np.random.default_rng(12).uniform(-0.09, 0.09, (STARTS, D))
    x, *_ = ascend(Known(bowl), X, WHOLE, FREE, 1, enough=TINY, bends=Bends(BEND, sized=True))
    np.testing.assert_allclose(x, np.tile([0.3, 0.62, 0.5], (STARTS, 1)), atol=1e-12)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_how_columns_compare_is_enough_to_climb_a_bowl(factor: float) -> None:
    """In columns scaled by what is expected it is round: a first step, and one that ends it."""
    X = np.array([0.3, 0.62, 0.5]) + np.random.default_rng(13).uniform(-0.2, 0.2, (STARTS, D))
    bends = Bends(np.tile(factor * BEND, (STARTS, 1)), sized=False)
    x, *_ = ascend(Known(bowl), X, WHOLE, FREE, 2, enough=TINY, radius=0.01, bends=bends)
    moved = np.max(np.abs(x - X), axis=1)
    x, *_ = ascend(Known(bowl), X, WHOLE, FREE, 6, enough=TINY, radius=0.01, bends=bends)
    np.testing.assert_allclose(x, np.tile([0.3, 0.62, 0.5], (STARTS, 1)), atol=1e-9)
    assert np.all(moved < 0.05)  # the radius holds whatever is expected


def test_nothing_has_arrived_by_what_is_expected() -> None:
    """A bowl a thousand times as flat as expected: what is left is seen, not foretold."""
    X = np.random.default_rng(14).uniform(size=(STARTS, D))
    wrong = Bends(1e-3 * BEND, sized=True)
    x, *_ = ascend(Known(bowl), X, WHOLE, FREE, 60, enough=1e-9, bends=wrong)
    np.testing.assert_allclose(x, np.tile([0.3, 0.62, 0.5], (STARTS, 1)), atol=1e-3)


def test_only_free_columns_move() -> None:
    X = np.random.default_rng(3).uniform(size=(STARTS, D))
    x, _ = ascended(bowl, X, 40, np.array([True, False, True]))
    np.testing.assert_array_equal(x[:, 1], X[:, 1])
    np.testing.assert_allclose(x[:, [0, 2]], np.tile([0.3, 0.5], (STARTS, 1)), atol=1e-4)
    stay, value = ascended(bowl, X, 40, np.zeros(D, dtype=bool))
    np.testing.assert_array_equal(stay, X)
    np.testing.assert_allclose(value, bowl(X))


def test_a_region_is_not_left() -> None:
    region = Region(BOX, np.array([0.4, 0.1, 0.2]), np.array([0.9, 0.5, 0.2]))
    X = region.clip(np.random.default_rng(6).uniform(size=(STARTS, D)))
    x, _ = ascended(bowl, X, 60, region=region)
    np.testing.assert_allclose(x, np.tile([0.4, 0.5, 0.2], (STARTS, 1)), atol=1e-6)


def test_a_start_at_the_optimum_stays() -> None:
    X = np.tile([[0.3, 0.62, 0.5]], (STARTS, 1))
    before = X.copy()
    x, value = ascended(bowl, X, 80)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(value, 0.0)
    np.testing.assert_array_equal(X, before)


def test_ascent_survives_nan_beyond_a_cliff() -> None:
    def cliff(x: np.ndarray) -> np.ndarray:
        return np.where(np.real(x[..., 0]) > 0.4, np.nan, bowl(x))

    X = np.random.default_rng(5).uniform(0, 0.35, size=(STARTS, D))
    x, value = ascended(cliff, X, 60)
    assert np.all(np.isfinite(value))
    np.testing.assert_allclose(x, np.tile([0.3, 0.62, 0.5], (STARTS, 1)), atol=1e-3)


def test_a_start_without_a_value_harms_no_other() -> None:
    def holed(x: np.ndarray) -> np.ndarray:
        return np.where(np.real(x[..., 0]) > 0.9, np.nan, bowl(x))

    X = np.random.default_rng(5).uniform(0, 0.8, size=(STARTS, D))
    X[3] = 0.95
    x, value = ascended(holed, X, 60)
    others = np.arange(STARTS) != 3
    np.testing.assert_allclose(x[others], np.tile([0.3, 0.62, 0.5], (STARTS - 1, 1)), atol=1e-4)
    assert value[3] == -np.inf or np.isfinite(value[3])


def test_single_precision_stays_single() -> None:
    X = np.random.default_rng(1).uniform(size=(STARTS, D)).astype(np.float32)

    class Single(Known):
        def slopes(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            value, slope = super().slopes(X.astype(float), rows)
            return value.astype(np.float32), slope.astype(np.float32)

    end = ascend(Single(bowl), X, WHOLE, FREE, 60, enough=TINY)
    assert end.x.dtype == end.value.dtype == np.float32
    np.testing.assert_allclose(end.x, np.tile([0.3, 0.62, 0.5], (STARTS, 1)), atol=5e-3)


# --- mixed spaces -------------------------------------------------------------------------------


def mixed_function(x: np.ndarray) -> np.ndarray:
    """Smooth in the relaxed columns; each category has an optimum of its own."""
    chosen = x[..., 3:] / HOT
    target = chosen @ np.array([[0.2, 0.9, 0.1], [0.7, 0.3, 0.6], [0.5, 0.55, 0.95]])
    bonus = chosen @ np.array([0.0, 0.3, 0.2])
    bumps = 0.05 * np.cos(9 * x[..., 1] + 4 * x[..., 2])
    return np.asarray(bonus + bumps - np.sum((x[..., :3] - target) ** 2, -1))


def brute_force() -> float:
    rows = discrete_part()
    grid = np.linspace(0, 1, 2001)
    everything = np.concatenate(
        [np.repeat(grid, len(rows))[:, None], np.tile(rows, (len(grid), 1))], axis=1
    )
    return float(np.max(mixed_function(everything)))


def test_climbing_in_a_mixed_space_ends_at_legal_points() -> None:
    X = MIXED.spread(np.random.default_rng(7).uniform(size=(16, 4)))
    x, value, _ = climb(Known(mixed_function), X, Region.whole(MIXED), 20, enough=PRECISE)
    assert is_legal(x)
    np.testing.assert_allclose(value, mixed_function(x), rtol=1e-9, atol=1e-12)
    assert np.all(value >= mixed_function(X))
    # A grid of 2,001 is within 1e-7 of the continuous optimum.
    assert value.max() >= brute_force() - 1e-6


def test_discrete_moves_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X = MIXED.spread(np.random.default_rng(7).uniform(size=(16, 4)))
    whole = climb(Known(mixed_function), X, Region.whole(MIXED), 20, enough=PRECISE)
    monkeypatch.setattr("optpair.cube.climb.ROWS", 3 * 64)
    parts = climb(Known(mixed_function), X, Region.whole(MIXED), 20, enough=PRECISE)
    np.testing.assert_array_equal(parts.x, whole.x)


def test_of_many_categories_some_are_tried_at_each_turn() -> None:
    """With 200 categories a climb looks at about 64 per turn, and its end is legal."""
    layout = Layout(
        np.ones(201), np.ones(201), np.zeros(201, dtype=bool), (0,) + (1,) * 200, (), ((1, 201),)
    )
    cube = Cube(layout)
    X = cube.spread(np.random.default_rng(9).uniform(size=(5, 2)))
    known = Known(lambda x: -((x[..., 0] - 0.3) ** 2) + x[..., 1:] @ np.linspace(0, 1, 200))
    end = climb(known, X, Region.whole(cube), 8, enough=PRECISE)
    np.testing.assert_array_equal(cube.snap(end.x), end.x)
    assert max(known.looked) <= 5 * (64 + 2 + 4)
    assert np.all(end.value >= known.function(X))


def test_a_fixed_category_is_kept() -> None:
    low, high = np.zeros(6), np.ones(6)
    low[3:] = high[3:] = [HOT, 0.0, 0.0]
    region = Region(MIXED, low, high)
    X = region.clip(MIXED.spread(np.random.default_rng(8).uniform(size=(8, 4))))
    x, value, _ = climb(Known(mixed_function), X, region, 20, enough=PRECISE)
    np.testing.assert_array_equal(x[:, 3:], np.tile([HOT, 0.0, 0.0], (8, 1)))
    assert is_legal(x)
    assert np.all(value >= mixed_function(X))


def test_where_all_that_is_discrete_is_fixed_there_is_one_climb() -> None:
    """As on the slice of a fidelity: nothing is moved, and nothing is climbed twice."""
    start = MIXED.spread(np.random.default_rng(8).uniform(size=(8, 4)))
    start[:, ~MIXED.continuous] = start[0, ~MIXED.continuous]
    low, high = np.zeros(6), np.ones(6)
    low[~MIXED.continuous] = high[~MIXED.continuous] = start[0, ~MIXED.continuous]
    region, known, alone = Region(MIXED, low, high), Known(mixed_function), Known(mixed_function)
    end = climb(known, start, region, 20, enough=PRECISE)
    once = ascend(alone, start, region, MIXED.continuous, 20, enough=PRECISE)
    np.testing.assert_array_equal(end.x, once.x)
    assert known.looked == alone.looked


# --- maximise -----------------------------------------------------------------------------------


def best(
    function: Function, candidates: np.ndarray, starts: int, values: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    told = function(candidates) if values is None else values
    return maximise(
        Known(function), WHOLE, candidates, told, starts=starts, steps=30, enough=PRECISE
    )


def test_maximise_is_global_on_waves() -> None:
    shift = np.random.default_rng(0).uniform(size=D)
    x, value = best(waves, space_filling(shift, BOX, lattice(D, 300)), 5)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 61)] * D), -1).reshape(-1, D)
    assert value >= waves(grid).max()
    assert value == pytest.approx(float(waves(x)))


def test_each_source_of_candidates_is_climbed_from() -> None:
    """Two narrow peaks, one group of candidates near each: the screening's best is not the best."""
    low, high = np.full(D, 0.2), np.full(D, 0.8)

    def peaks(x: np.ndarray) -> np.ndarray:
        one = np.exp(-20 * np.sum((x - low) ** 2, -1))
        return np.asarray(one + 1.5 * np.exp(-20 * np.sum((x - high) ** 2, -1)))

    rng = np.random.default_rng(8)
    candidates = np.concatenate(
        [low + 0.01 * rng.normal(size=(10, D)), high - 0.2 + 0.01 * rng.normal(size=(10, D))]
    )
    np.testing.assert_allclose(best(peaks, candidates, 2)[0], high, atol=1e-3)
    np.testing.assert_allclose(best(peaks, candidates, 1)[0], low, atol=1e-3)
    last, _ = best(peaks, candidates, 1, np.arange(20.0))  # values are taken as they are told
    np.testing.assert_allclose(last, high, atol=1e-3)


@pytest.mark.parametrize("starts", [1, 3, 7, 50, 80])
def test_maximise_passes_over_nan_and_infinite_values(starts: int) -> None:
    def broken(x: np.ndarray) -> np.ndarray:
        value = np.where(np.real(x[..., 0]) < 0.25, np.nan, bowl(x))
        return np.where(np.real(x[..., 1]) < 0.2, -np.inf, value)

    candidates = np.random.default_rng(9).uniform(size=(50, D))
    candidates[:8, 0] = 0.1  # a whole group of NaN
    x, value = best(broken, candidates, starts)
    np.testing.assert_allclose(x, [0.3, 0.62, 0.5], atol=1e-3)
    assert value == pytest.approx(0.0, abs=1e-6)


def hills(x: np.ndarray) -> np.ndarray:
    """A hill of height 1 on the left, and one of height 3 on the right."""
    centre = np.array([0.2, 0.5, 0.5]), np.array([0.8, 0.5, 0.5])
    left, right = (np.exp(-20 * np.sum((x - c) ** 2, -1)) for c in centre)
    return left + 3 * right


def test_rivals_that_lag_far_behind_are_given_up() -> None:
    starts = np.array([[0.3, 0.4, 0.6], [0.75, 0.45, 0.5], [0.15, 0.5, 0.45], [0.9, 0.6, 0.5]])
    alone, together = Known(hills), Known(hills)
    each = ascend(alone, starts, WHOLE, FREE, 30, enough=TINY)
    pairs = ascend(together, starts, WHOLE, FREE, 30, enough=TINY, rivals=2)
    assert sum(together.asked) < 0.8 * sum(alone.asked)
    np.testing.assert_array_equal(pairs.value[[1, 3]], each.value[[1, 3]])
    assert np.all(pairs.value[[0, 2]] < 1.1)
