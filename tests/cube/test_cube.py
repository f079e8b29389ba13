"""Legal points as arrays: checked against the space's exact arithmetic, and in frequency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from optpair import Categorical, Float, Int, Space
from optpair.cube.cube import Cube, among
from optpair.problem.layout import HOT, Layout

SPACES = [
    Space(
        {
            "x": Float(-1.0, 2.0),
            "n": n,
            "act": Categorical(["a", "b", "c"]),
            "lr": Float(1e-5, 1.0, log=True),
            "w": w,
            "flag": Categorical([True, 1]),
            "s": s,
        }
    )
    for n, w, s in [
        (Int(1, 8), Int(1, 12, log=True), Float(0.0, 1.0, step=0.1)),
        (Int(0, 1), Int(16, 1024, log=True), Float(-0.3, 0.35, step=0.2)),
        (Int(-50, 1000, step=7), Int(3, 4, log=True), Float(1e6, 1e6 + 3, step=0.25)),
        (Int(0, 2**40), Int(1, 2**40, log=True), Float(0.0, 1e-3, step=1e-9)),
    ]
]
SMALL = SPACES[0]
CUBE = Cube(SMALL.layout)
GROUPS = [[0], [1], [2, 3, 4], [5], [6], [7, 8], [9]]  # the columns of each parameter


def cube_of(space: Space) -> Cube:
    return Cube(space.layout)


def snap(cube: Cube, X: np.ndarray) -> np.ndarray:
    return np.asarray(cube.snap(X))


def spread(cube: Cube, U: np.ndarray) -> np.ndarray:
    return np.asarray(cube.spread(U))


def neighbours(cube: Cube, X: np.ndarray) -> np.ndarray:
    return np.asarray(cube.neighbours(X))


def perturb(cube: Cube, seed: int, X: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    return np.asarray(cube.perturb(cube.moves(np.random.default_rng(seed), len(X)), X, scale))


def uniform(cube: Cube, seed: int, n: int = 512) -> np.ndarray:
    """Points in and around the cube, a third of them on faces."""
    return np.clip(np.random.default_rng(seed).uniform(-0.5, 1.5, (n, cube.dimensions)), -0.1, 1.1)


def changed(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Which parameters differ: (..., d)."""
    return np.stack([(X != Y)[..., columns].any(-1) for columns in GROUPS], axis=-1)


def test_structure() -> None:
    layout, cube = SMALL.layout, cube_of(SMALL)
    assert (cube.dimensions, cube.parameters) == (10, 7)
    assert layout.owner == (0, 1, 2, 2, 2, 3, 4, 5, 5, 6)
    assert layout.stepped == (1, 6, 9)
    assert layout.groups == ((2, 5), (7, 9))
    assert np.flatnonzero(cube.continuous).tolist() == [0, 5]
    assert np.flatnonzero(layout.numeric).tolist() == [0, 1, 5, 6, 9]
    assert pytest.approx(1.0, abs=1e-15) == np.hypot(HOT, HOT)


@pytest.mark.parametrize("space", SPACES)
def test_snap_agrees_with_the_space_and_is_idempotent(space: Space) -> None:
    X = uniform(cube_of(space), 0)
    legal = snap(cube_of(space), X)
    assert legal.dtype == np.float64
    np.testing.assert_array_equal(snap(cube_of(space), legal), legal)
    for x, y in zip(X, legal, strict=True):
        # decode(x) rounds by itself: both must choose the same level, to the last digit.
        assert space.decode(y) == space.decode(x)
        narrow = 1e-10 if space["s"].low == 1e6 else 1e-12  # type: ignore[union-attr]
        np.testing.assert_allclose(space.encode(space.decode(y)), y, rtol=0, atol=narrow)


def test_snap_by_hand() -> None:
    #             x    n=1+7u  act              lr   w: 12^u  flag      s
    x = np.array([1.3, 0.5, 0.2, 0.9, 0.9, -1.0, 0.5, 0.0, 0.0, 0.449])
    legal = snap(CUBE, np.tile(x, (512, 1)))[0]
    w = np.log(3) / np.log(12)  # 12^½ = 3.46 is nearer to 3
    np.testing.assert_allclose(
        legal, [1.0, 4 / 7, 0, HOT, 0, 0.0, w, HOT, 0, 0.4], rtol=0, atol=1e-15
    )


def test_snap_rounds_a_log_column_in_the_users_units() -> None:
    # Between 1 and 2 the switch is at 1.5, which is 0.585 of the way on the log scale.
    u = np.log([1.499, 1.501]) / np.log(12)
    X = np.zeros((512, 10))
    X[:2, 6] = u
    legal = snap(CUBE, X)[:2, 6]
    np.testing.assert_allclose(legal, [0.0, np.log(2) / np.log(12)], rtol=0, atol=1e-15)


@pytest.mark.parametrize("space", SPACES)
def test_ends_are_exact(space: Space) -> None:
    X = np.tile(np.array([[0.0], [1.0]]), (256, 10))
    legal = snap(cube_of(space), X)
    numeric = space.layout.numeric
    np.testing.assert_array_equal(legal[:, numeric], X[:, numeric])


def test_spread_gives_each_level_its_share() -> None:
    n = 5040  # a multiple of 8 levels, of 3 and of 2 categories
    ramp = (np.arange(n) + 0.5) / n
    X = spread(CUBE, np.tile(ramp[:, None], (1, 7)))
    np.testing.assert_array_equal(snap(CUBE, np.resize(X, (512, 10))), np.resize(X, (512, 10)))
    np.testing.assert_array_equal(X[:, 0], ramp)
    rows = [SMALL.decode(x) for x in X]
    legal: dict[str, Sequence[object]] = {"n": range(1, 9), "act": "abc", "flag": [True, 1]}
    for name, levels in legal.items():
        found = [sum((type(r[name]), r[name]) == (type(v), v) for r in rows) for v in levels]
        assert found == [n // len(levels)] * len(levels), name
    steps = [sum(r["s"] == v / 10 for r in rows) for v in range(11)]
    assert sum(steps) == n
    assert max(steps) - min(steps) <= 1


def test_spread_on_a_log_scale_is_uniform_in_the_logarithm() -> None:
    n = 5040
    ramp = (np.arange(n) + 0.5) / n
    X = spread(CUBE, np.tile(ramp[:, None], (1, 7)))
    found = np.bincount(np.array([SMALL.decode(x)["w"] for x in X]), minlength=13)[1:]
    v = np.arange(1, 13)
    share = np.log((v + 0.5) / (v - 0.5)) / np.log(12.5 / 0.5)
    assert found.sum() == n
    assert np.abs(found - n * share).max() <= 1


def test_spread_takes_both_ends() -> None:
    U = np.tile(np.array([[0.0], [1.0]]), (2520, 7))
    X = spread(CUBE, U)
    assert SMALL.decode(X[0]) == {
        "x": -1.0, "n": 1, "act": "a", "lr": 1e-5, "w": 1, "flag": True, "s": 0.0,
    }  # fmt: skip
    assert SMALL.decode(X[1]) == {
        "x": 2.0, "n": 8, "act": "c", "lr": 1.0, "w": 12, "flag": 1, "s": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("space", SPACES)
def test_neighbours_are_legal_and_one_move_away(space: Space) -> None:
    X = snap(cube_of(space), uniform(cube_of(space), 1))
    near = neighbours(cube_of(space), X)
    assert near.shape == (512, 2 * 3 + 2 + 1, 10)
    flat = near.reshape(-1, 512, 10)
    for block in flat:
        np.testing.assert_allclose(snap(cube_of(space), block), block, rtol=0, atol=1e-15)
    moved = changed(X[:, None], near)
    assert moved.sum(-1).max() == 1
    # Ups, downs, then categories; a stepped column stays put only at an end.
    expected = [1, 4, 6, 1, 4, 6, 2, 2, 5]
    ends = X[:, [1, 6, 9]]
    for k, parameter in enumerate(expected):
        at_end = np.zeros(512, dtype=bool) if k >= 6 else ends[:, k % 3] == (1.0 if k < 3 else 0.0)
        np.testing.assert_array_equal(moved[:, k, parameter], ~at_end)


@pytest.mark.parametrize("some", [slice(None), slice(1, None, 3), slice(4, None, 9)])
def test_some_neighbours_are_those_of_all(some: slice) -> None:
    X = CUBE.spread(np.random.default_rng(4).uniform(size=(7, CUBE.parameters)))
    every = neighbours(CUBE, X)
    assert every.shape[1] == CUBE.discrete_moves
    np.testing.assert_array_equal(CUBE.neighbours(X, some), every[:, some])


def test_neighbours_by_hand() -> None:
    params = {"x": 0.5, "n": 3, "act": "b", "lr": 0.1, "w": 12, "flag": 1, "s": 0.0}
    near = neighbours(CUBE, np.tile(SMALL.encode(params), (512, 1)))[0]
    found = [SMALL.decode(x) for x in near]
    moves: list[dict[str, object]] = [
        {"n": 4}, {"w": 12}, {"s": 0.1}, {"n": 2}, {"w": 11}, {"s": 0.0},
        {"act": "c"}, {"act": "a"}, {"flag": True},
    ]  # fmt: skip
    assert found == [params | move for move in moves]
    assert found[-1]["flag"] is True


@pytest.mark.parametrize("space", SPACES)
def test_perturb_is_legal_and_moves_a_subset(space: Space) -> None:
    X = snap(cube_of(space), uniform(cube_of(space), 2))
    Y = perturb(cube_of(space), 3, X, 0.1)
    np.testing.assert_allclose(snap(cube_of(space), Y), Y, rtol=0, atol=1e-15)
    moved = changed(X, Y)
    assert 0.1 < moved.mean() < 0.5
    assert moved.any(-1).mean() > 0.6  # the rest drew its own category, or a face
    assert (~moved.all(-1)).mean() > 0.95
    assert (moved.mean(0) > 0.08).all()


def test_perturb_frequencies() -> None:
    inside = {"x": 0.5, "n": 3, "act": "b", "lr": 0.003, "w": 5, "flag": 1, "s": 0.5}
    X = np.tile(SMALL.encode(inside), (512, 1))
    runs = [perturb(CUBE, seed, X, 1e-3) for seed in range(16)]
    Y = np.concatenate(runs)
    moved = changed(X[0], Y)
    # In the subset: by its own coin (0.3, as 2/7 is less) or as the one that always moves.
    p = 1 - 0.7 * 6 / 7
    chance = np.array([1, 0.5, 2 / 3, 1, 0.5, 0.5, 0.5]) * p  # steps: the nudge; k: 1 − 1/k
    error = np.sqrt(chance * (1 - chance) / len(Y))
    assert (np.abs(moved.mean(0) - chance) < 4 * error).all()
    step = (Y - X[0])[moved[:, 0], 0]
    assert step.std() == pytest.approx(1e-3, rel=4 / np.sqrt(2 * len(step)))
    levels = [SMALL.decode(y)["n"] for y in Y[moved[:, 1]]]
    assert set(levels) == {2, 4}
    assert 0.4 < np.mean(np.array(levels) == 2) < 0.6


def test_perturb_lands_on_faces_and_leaves_them() -> None:
    corner = {"x": 2.0, "n": 8, "act": "b", "lr": 1e-5, "w": 1, "flag": 1, "s": 1.0}
    X = np.tile(SMALL.encode(corner), (512, 1))
    Y = perturb(CUBE, 0, X, 1e-3)
    moved = changed(X, Y).mean(0)
    p = 0.4
    assert moved[0] == pytest.approx(p / 2, abs=0.08)  # half of the steps are clipped
    assert moved[1] == pytest.approx(p / 2, abs=0.08)  # nudged inwards, never outwards
    X[:, 0] = 0.99
    wide = perturb(CUBE, 0, X, 0.3)
    assert 0.1 < (wide[:, 0] == 1.0).mean() < 0.3  # p times P(step > 0.01) = 0.4 · 0.49


def test_perturb_takes_a_scale_for_each_point_and_repeats_with_its_seed() -> None:
    X = np.full((512, 10), 0.5)
    X = snap(CUBE, X)
    scale = np.where(np.arange(512)[:, None] < 256, 1e-6, 0.1)
    Y = perturb(CUBE, 5, X, scale)
    np.testing.assert_array_equal(Y, perturb(CUBE, 5, X, scale))
    assert (perturb(CUBE, 6, X, scale) != Y).any()
    jump = np.abs(Y - X)[:, 0]
    assert 0 < jump[:256].max() < 1e-5 < 0.05 < jump[256:].max()


def test_box() -> None:
    cube = Cube.box(3)
    assert cube.continuous.all()
    assert cube.layout.numeric.all()
    assert (cube.dimensions, cube.parameters) == (3, 3)
    X = np.random.default_rng(0).uniform(-0.5, 1.5, (2, 5, 3))
    np.testing.assert_array_equal(snap(cube, X), np.clip(X, 0, 1))
    np.testing.assert_array_equal(spread(cube, np.clip(X, 0, 1)), np.clip(X, 0, 1))
    assert neighbours(cube, X).shape == (2, 5, 0, 3)
    Y = perturb(cube, 0, np.full((10, 3), 0.5), 0.1)
    assert (Y != 0.5).any(-1).all()


def test_one_parameter_always_moves() -> None:
    Y = perturb(Cube.box(1), 0, np.full((64, 1), 0.5), 0.1)
    assert (Y != 0.5).all()


def test_a_layout_that_contradicts_itself_is_refused() -> None:
    ones, no = np.ones(2), np.zeros(2, dtype=bool)
    with pytest.raises(ValueError, match=r"last must have shape \(3,\).*not \(2,\)"):
        Layout(ones, ones, no, (0, 1, 2), (), ())
    with pytest.raises(ValueError, match="every index from 0"):
        Layout(ones, ones, no, (0, 2), (), ())
    with pytest.raises(ValueError, match="overlaps"):
        Layout(ones, ones, no, (0, 0), (1,), ((0, 2),))


def test_among() -> None:
    rows = np.array([[0.1, 0.2], [0.3, 0.4]])
    assert among(np.array([0.3, 0.4 + 1e-12]), rows)
    assert not among(np.array([0.3, 0.2]), rows)
    assert among(np.array([0.31, 0.41]), rows, within=0.02)
    assert not among(np.array([0.3, 0.4]), rows[:0])


def test_single_precision_stays_single() -> None:
    X = snap(CUBE, uniform(CUBE, 4)).astype(np.float32)
    for found in (snap(CUBE, X), neighbours(CUBE, X)):
        assert found.dtype == np.float32
    np.testing.assert_allclose(snap(CUBE, X), snap(CUBE, X.astype(float)), atol=1e-6)


def test_nothing_is_changed_in_place() -> None:
    X = uniform(CUBE, 5)
    before = X.copy()
    legal = snap(CUBE, X)
    neighbours(CUBE, legal)
    perturb(CUBE, 0, legal, 0.3)
    spread(CUBE, np.clip(X[:, :7], 0, 1))
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(legal, snap(CUBE, X))
