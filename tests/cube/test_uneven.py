"""Uneven levels on the cube: snapping, shares, neighbours, and which points are legal."""

from __future__ import annotations

import numpy as np
import pytest

from optpair import Categorical, Float, Int, Optimizer, Ordinal, Space
from optpair.cube.cube import Cube
from optpair.problem.layout import Grid, Layout
from shell_cases import CHEAP

SPACE = Space(
    {
        "x": Float(0, 1),
        "o": Ordinal([1, 2, 5, 10, 100]),
        "c": Categorical(["a", "b"]),
        "n": Int(0, 4),
        "lr": Float(1e-3, 1, log=True, digits=2),
    }
)
CUBE = Cube(SPACE.layout)


def drawn(seed: int, n: int = 400) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.2, 1.2, (n, CUBE.dimensions))


def test_snap_agrees_with_the_space_and_is_idempotent() -> None:
    X = drawn(0)
    legal = np.asarray(CUBE.snap(X))
    np.testing.assert_array_equal(CUBE.snap(legal), legal)
    for x, y in zip(X, legal, strict=True):
        assert SPACE.decode(y) == SPACE.decode(x)
        np.testing.assert_allclose(SPACE.encode(SPACE.decode(y)), y, rtol=0, atol=1e-12)


def test_ordinals_are_equally_likely_and_digits_follow_the_scale() -> None:
    n = 5000
    ramp = (np.arange(n) + 0.5) / n
    rows = [SPACE.decode(x) for x in np.asarray(CUBE.spread(np.tile(ramp[:, None], (1, 5))))]
    levels = SPACE["o"].levels  # type: ignore[union-attr]
    assert [sum(row["o"] == level for row in rows) for level in levels] == [n // 5] * 5
    rates = np.array([row["lr"] for row in rows], dtype=float)
    for split in (0.01, 0.1):  # a decade is a third of three, to half a level's width
        width = np.log10((split + 0.1 * split) / split) / 3
        assert abs(np.mean(rates < split * 0.999) - (np.log10(split) + 3) / 3) < width


def test_spread_takes_both_ends() -> None:
    ends = [SPACE.decode(x) for x in np.asarray(CUBE.spread(np.array([[0.0] * 5, [1.0] * 5])))]
    assert [(end["o"], end["lr"]) for end in ends] == [(1, 0.001), (100, 1.0)]


def test_neighbours_are_one_level_away() -> None:
    x = SPACE.encode({"x": 0.5, "o": 5, "c": "a", "n": 4, "lr": 0.1})
    moves = [SPACE.decode(row) for row in np.asarray(CUBE.neighbours(x[None]))[0]]
    assert {move["o"] for move in moves} == {2, 5, 10}
    assert {move["lr"] for move in moves} == {0.099, 0.1, 0.11}
    at_end = SPACE.encode({"x": 0.5, "o": 100, "c": "a", "n": 4, "lr": 1.0})
    moves = [SPACE.decode(row) for row in np.asarray(CUBE.neighbours(at_end[None]))[0]]
    assert {move["o"] for move in moves} == {10, 100}


def test_perturbed_points_are_legal_and_levels_move() -> None:
    rng = np.random.default_rng(0)
    X = np.tile(SPACE.encode({"x": 0.5, "o": 5, "c": "a", "n": 2, "lr": 0.1}), (300, 1))
    moved = np.asarray(CUBE.perturb(CUBE.moves(rng, 300), X, 1e-6))
    np.testing.assert_allclose(CUBE.snap(moved), moved, rtol=0, atol=1e-12)
    assert {SPACE.decode(row)["o"] for row in moved} == {2, 5, 10}


def test_what_is_legal() -> None:
    rows = [
        {"x": 0.5, "o": 5, "c": "a", "n": 2, "lr": 0.1},
        {"x": 1.5, "o": 5, "c": "a", "n": 2, "lr": 0.1},
        {"x": 0.5, "o": 6, "c": "a", "n": 2, "lr": 0.1},
        {"x": 0.5, "o": 5, "c": "a", "n": 2.5, "lr": 0.1},
        {"x": 0.5, "o": 5, "c": "a", "n": 2, "lr": 0.111},
    ]
    X = np.array([SPACE.encode(row, anywhere=True) for row in rows])
    assert CUBE.is_legal(X).tolist() == [True, False, False, False, False]
    near = CUBE.made_legal(X)
    np.testing.assert_array_equal(near[0], X[0])
    assert CUBE.is_legal(near).all()
    assert SPACE.decode(near[1])["x"] == 1.0
    assert SPACE.decode(near[4])["lr"] == 0.11


def test_a_grid_belongs_to_a_stepped_column() -> None:
    ones, grid = np.ones(2), Grid(np.array([0.0, 1.0]), np.array([0.5]), np.array([0.5]))
    fields = (ones, ones, ones < 0, (0, 1))
    Layout(*fields, (1,), (), {1: grid})
    for stepped, column in (((1,), 0), ((), 1)):
        with pytest.raises(ValueError, match="must be stepped and have last"):
            Layout(*fields, stepped, (), {column: grid})
    with pytest.raises(ValueError, match="grids has 2 levels for column 1"):
        Layout(2 * ones, ones, ones < 0, (0, 1), (1,), (), {1: grid})


def test_suggestions_and_recommendations_are_levels() -> None:
    space = Space({"o": Ordinal([1, 2, 5, 10]), "lr": Float(1e-3, 1, log=True, digits=1)})
    opt = Optimizer(space, seed=0, **CHEAP)
    for _ in range(8):
        trial = opt.ask()
        assert space.fits(trial.params)
        assert type(trial.params["o"]) is int
        opt.tell(trial, abs(trial.params["o"] - 5) + abs(np.log10(trial.params["lr"]) + 2))
    found = opt.recommend().params
    assert space.fits(found)
    assert float(f"{found['lr']:.0e}") == found["lr"]


def test_an_exact_level_is_not_asked_for_again() -> None:
    space = Space({"o": Ordinal([1, 2, 5, 10]), "lr": Float(0.1, 1, log=True, digits=1)})
    opt = Optimizer(space, seed=0, noise=0, **CHEAP)
    seen = set()
    for _ in range(25):
        trial = opt.ask()
        seen.add((trial.params["o"], trial.params["lr"]))
        opt.tell(trial, (trial.params["o"] - 5) ** 2 + trial.params["lr"])
    assert len(seen) == 25
