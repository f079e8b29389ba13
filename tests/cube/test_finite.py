"""All points of a region are listed where there are few, and no others."""

from __future__ import annotations

from itertools import product

import numpy as np

from optpair import Categorical, Fidelity, Float, Int, Optimizer, Ordinal, Settings, Space
from optpair.cube.finite import MOST, all_points
from optpair.engine.session import region_of


def listed(space: Space) -> list[tuple[object, ...]]:
    points = all_points(region_of(space))
    assert points is not None
    return sorted(tuple(space.decode(x).items()) for x in points)


def test_every_kind_of_level() -> None:
    space = Space(
        {
            "n": Int(1, 3),
            "log": Int(1, 4, log=True),
            "at": Ordinal([1, 2, 50]),
            "c": Categorical(["a", "b"]),
            "step": Float(0, 1, step=0.5),
        }
    )
    every = product([1, 2, 3], [1, 2, 3, 4], [1, 2, 50], ["a", "b"], [0.0, 0.5, 1.0])
    names = space.names
    assert listed(space) == sorted(tuple(zip(names, own, strict=True)) for own in every)


def test_conditions_and_limits() -> None:
    tree = Space({"c": Categorical(["a", "b"]), "n": Int(1, 3, when={"c": "a"})})
    assert listed(tree) == sorted([*((("c", "a"), ("n", n)) for n in (1, 2, 3)), (("c", "b"),)])
    limited = Space({"a": Int(0, 3), "b": Int(0, 3)}, where="a + b == 3")
    assert listed(limited) == [(("a", a), ("b", 3 - a)) for a in range(4)]
    table = Space.of_rows([{"a": 1.5}, {"a": 2.5}])
    assert listed(table) == [(("a", 1.5),), (("a", 2.5),)]


def test_many_points_are_not_listed() -> None:
    assert all_points(region_of(Space({"x": Float(0, 1), "c": Categorical(["a", "b"])}))) is None
    assert all_points(region_of(Space({"n": Int(0, MOST)}))) is None
    assert len(listed(Space({"n": Int(1, MOST)}))) == MOST
    held = region_of(Space({"x": Float(0, 1), "n": Int(1, 3)})).fixed({0: 0.25})
    points = all_points(held)
    assert points is not None
    np.testing.assert_array_equal(points[:, 0], 0.25)
    assert len(points) == 3


def test_a_search_without_repeats_is_exhausted() -> None:
    """Every point is tried before the end, in whatever order; without `once` there is no end."""
    space = Space({"n": Int(1, 12), "c": Categorical(["a", "b"])})
    settings = Settings(sets=2, pairs=2, features=32, candidates=16, starts=1, once=True)
    for chosen, ends in ((settings, True), (None, False)):
        optimizer = Optimizer(space, seed=0, hyperparameters="map", settings=chosen)
        for n, c in product(range(1, 13), "ab"):
            assert not optimizer.exhausted
            optimizer.tell({"n": n, "c": c}, 0.1 * n)
        assert optimizer.exhausted == ends
    optimizer = Optimizer(space, seed=0, hyperparameters="map", settings=settings)
    tried = set()
    while not optimizer.exhausted:
        trial = optimizer.ask()
        tried.add(repr(trial.params))
        optimizer.tell(trial, (trial.params["n"] - 4) ** 2)
    assert len(tried) == len(optimizer.trials) == 24


def test_looks_of_every_fidelity_are_listed() -> None:
    space = Space({"n": Int(1, 3), "epochs": Fidelity(1, 2)})
    points = all_points(region_of(space))
    assert points is not None
    assert len(points) == 6
