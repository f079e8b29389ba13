"""Levels within linear limits, against a list of all of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from optpair.cube.cube import Cube
from optpair.cube.levels import Levels
from optpair.cube.region import Region
from optpair.problem.space import Categorical, Float, Int, Space


def region_of(space: Space) -> Region:
    d = space.layout.dimensions
    return Region(Cube(space.layout), np.zeros(d), np.ones(d), space.rows)


INTS = Space({name: Int(0, 10) for name in "abc"}, where="a + b + c == 10")
TENTHS = Space({name: Float(0, 1, step=0.1) for name in "abc"}, where="a + b + c == 1")
ODD = Space({name: Int(0, 20) for name in "abc"}, where="3*a + 5*b + 7*c == 61")


def test_every_point_is_a_legal_one_and_all_are_found() -> None:
    for space in (INTS, TENTHS):
        X = region_of(space).fill(np.random.default_rng(0).uniform(size=(2000, 3)))
        values = np.array([list(space.decode(x).values()) for x in X], dtype=float)
        total = 10 if space is INTS else 1
        np.testing.assert_allclose(values.sum(1), total, atol=1e-15 * 10)
        levels = {tuple(np.rint(v * 10 / total).astype(int).tolist()) for v in values}
        every = {p for p in product(range(11), repeat=3) if sum(p) == 10}
        assert levels <= every
        assert len(levels) > 0.9 * len(every)


def test_weights_that_do_not_fit_are_looked_for_one_by_one() -> None:
    X = region_of(ODD).fill(np.random.default_rng(0).uniform(size=(200, 3)))
    found = {tuple(ODD.decode(x).values()) for x in X}
    every = {p for p in product(range(21), repeat=3) if 3 * p[0] + 5 * p[1] + 7 * p[2] == 61}
    assert found <= every
    assert len(found) > len(every) / 2


def test_rounding_is_repaired_one_level_at_a_time() -> None:
    relaxed = np.random.default_rng(3).dirichlet(np.ones(3), 200)
    levels = Levels.of(INTS.rows, INTS.layout, np.zeros(3), np.ones(3))
    rounded = np.rint(relaxed * 10) / 10
    got = levels.repaired(rounded, relaxed)
    wrong = np.abs(rounded.sum(1) - 1) > 1e-9
    assert 0.1 < wrong.mean() < 0.9
    np.testing.assert_allclose(got.sum(1), 1, atol=1e-12)
    np.testing.assert_array_equal(got[~wrong], rounded[~wrong])
    assert np.max(np.abs(got - relaxed)) < 0.1 + 1e-12


def test_rounding_goes_to_a_near_legal_point() -> None:
    region, rng = region_of(INTS), np.random.default_rng(1)
    relaxed = rng.dirichlet(np.ones(3), 100)
    got = region.snap(relaxed) * 10
    np.testing.assert_allclose(got, np.rint(got), atol=1e-12)
    np.testing.assert_allclose(got.sum(1), 10, atol=1e-12)
    assert np.max(np.abs(got - 10 * relaxed)) < 1.0


def test_neighbours_exchange_levels() -> None:
    region = region_of(INTS)
    near = region.neighbours(np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])) * 10
    moved = [{tuple(p) for p in np.rint(points).astype(int).tolist()} for points in near]
    # One level from a column to another; single moves leave the sum, and are none.
    swaps = {(2, 3, 5)} | {
        tuple(np.array([2, 3, 5]) + np.eye(3, dtype=int)[i] - np.eye(3, dtype=int)[j])
        for i, j in product(range(3), repeat=2)
    }
    assert moved[0] == {tuple(map(int, swap)) for swap in swaps}
    assert moved[1] == {(0, 0, 10), (1, 0, 9), (0, 1, 9)}


def test_a_continuous_column_makes_up_for_a_level() -> None:
    space = Space(
        {"n": Int(0, 4), "x": Float(0, 1), "y": Float(0, 1), "kind": Categorical(["u", "v"])},
        where=["n/4 + x + y == 1.2", "x <= y"],
    )
    region, rng = region_of(space), np.random.default_rng(2)
    X = region.fill(rng.uniform(size=(64, 4)))
    near = region.neighbours(X).reshape(-1, 5)
    for x in np.concatenate([X, near, region.snap(rng.uniform(size=(64, 5)))]):
        values: dict[str, Any] = space.decode(x)
        assert space.allows(values)
        assert abs(values["n"] / 4 + values["x"] + values["y"] - 1.2) <= 1e-12
    assert {space.decode(x)["n"] for x in X} == {0, 1, 2, 3, 4}
    assert {space.decode(x)["kind"] for x in near} == {"u", "v"}
