"""Conditional parameters: points hold what is active, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optpair import Categorical, Context, Float, Int, Optimizer, Ordinal, Space
from optpair.cube.cube import Cube
from optpair.cube.lattice import lattice
from optpair.engine.session import region_of
from optpair.gp import Hyperparameters
from optpair.gp.kernels import as_kernel

TREE = Space(
    {
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "kernel": Categorical(["linear", "rbf", "poly"]),
        "gamma": Float(1e-3, 10, log=True, when={"kernel": ["rbf", "poly"]}),
        "x": Float(0, 1),
        "solver": Categorical(["a", "b"], when={"degree": 3}),
        "shrink": Ordinal([1, 2, 5, 10], when={"solver": "b"}),
        "tail": Float(0, 1, when={"shrink": (2, 10)}),
    }
)
BRANCHES: list[dict[str, Any]] = [
    {"kernel": "linear", "x": 0.5},
    {"kernel": "rbf", "gamma": 0.1, "x": 0.5},
    {"degree": 2, "kernel": "poly", "gamma": 0.1, "x": 0.5},
    {"degree": 3, "kernel": "poly", "gamma": 0.1, "x": 0.5, "solver": "a"},
    {"degree": 3, "kernel": "poly", "gamma": 0.1, "x": 0.5, "solver": "b", "shrink": 5},
    {
        "degree": 3,
        "kernel": "poly",
        "gamma": 0.1,
        "x": 0.5,
        "solver": "b",
        "shrink": 2,
        "tail": 0.2,
    },
]


def random_tree(seed: int) -> Space:
    """Up to eight parameters of any kind, each perhaps depending on one or two before it."""
    rng = random.Random(seed)
    parameters: dict[str, Any] = {}
    for i in range(rng.randint(2, 8)):
        when: dict[str, Any] = {}
        deciding = [n for n, p in parameters.items() if not isinstance(p, Float) or p.step]
        for parent in rng.sample(deciding, min(len(deciding), rng.choice([0, 1, 1, 2]))):
            p = parameters[parent]
            legal = [Space({"p": _always(p)}).decode([u] * _width(p))["p"] for u in (0.0, 1.0)]
            if isinstance(p, Categorical):
                legal = list(p.choices)
            when[parent] = rng.choice([legal[0], legal[-1], legal[:2]])
        kinds: list[Callable[..., Any]] = [
            lambda **w: Float(-1, 3, **w),
            lambda **w: Float(0, 1, step=0.25, **w),
            lambda **w: Float(1e-3, 1, log=True, **w),
            lambda **w: Int(1, 5, **w),
            lambda **w: Int(1, 64, log=True, **w),
            lambda **w: Ordinal([1, 2, 5, 10], **w),
            lambda **w: Categorical(["a", "b", "c"][: rng.randint(2, 3)], **w),
            lambda **w: Categorical([True, 1, None], **w),
        ]
        parameters[f"p{i}"] = rng.choice(kinds)(when=when or None)
    names = list(parameters)
    rng.shuffle(names)
    return Space({name: parameters[name] for name in names})


def _always(p: Any) -> Any:
    return replace(p, when=None)


def _width(p: Any) -> int:
    return len(p.choices) if isinstance(p, Categorical) else 1


@pytest.mark.parametrize("params", BRANCHES)
def test_points_hold_what_is_active(params: dict[str, Any]) -> None:
    assert TREE.check(params) == params
    assert list(TREE.check(params)) == [name for name in TREE if name in params]
    x = TREE.encode(params)
    assert TREE.decode(x) == params
    awake = Cube(TREE.layout).awake(x)
    owner = [list(TREE)[i] for i in TREE.layout.owner]
    assert {name for name, on in zip(owner, awake, strict=True) if on} == set(params)
    np.testing.assert_array_equal(x[~awake], TREE.layout.asleep[~awake])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel": "rbf", "x": 0.5}, r"missing 'gamma' \(it is there only when kernel is one of"),
        ({"kernel": "linear", "x": 0.5, "gamma": 1.0}, "inactive 'gamma'"),
        ({"kernel": "linear", "x": 0.5, "tail": 1.0}, r"inactive 'tail' .* shrink is one of 2, 10"),
        ({"kernel": "tanh", "x": 0.5}, "kernel must be one of"),
    ],
)
def test_what_is_inactive_or_missing_is_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TREE.check(params)


def two(**fields: Any) -> Space:
    return Space({"a": Categorical([True, 1, "b"]), "c": Float(0, 1), "d": Float(0, 1, **fields)})


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: two(when={"z": 1}), ValueError, "names 'z', which is not another parameter"),
        (lambda: two(when={"d": 1}), ValueError, "names 'd', which is not another parameter"),
        (lambda: two(when={"a": "c"}), ValueError, "a must be one of"),
        (lambda: two(when={"c": 0.5}), ValueError, "may be any number in a range"),
        (lambda: Space({"s": Context([1, 2]), "u": Float(0, 1, when={"s": 1})}), ValueError,
         "'s', a Context"),
        (lambda: two(when={}), TypeError, "when must be a dict"),
        (lambda: two(when="a"), TypeError, "when must be a dict"),
        (lambda: two(when={"a": {1}}), TypeError, "when must be a dict"),
        (lambda: two(when={"a": []}), ValueError, "no value of 'a'"),
        (lambda: Space({"a": Int(0, 1, when={"b": 1}), "b": Int(0, 1, when={"a": 1})}),
         ValueError, "in a circle"),
        (lambda: Space(two(when={"a": 1}), ["c + d <= 1"]), ValueError, "'d', which has `when`"),
        (lambda: Space({"n": Int(1, 3), "u": Float(0, 1), "v": Float(0, 1, when={"n": 2})},
                       ["n + u <= 3"]), ValueError, "'n', which others depend on"),
    ],
)  # fmt: skip
def test_bad_conditions_are_refused(
    build: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()


def test_true_and_one_are_two_values() -> None:
    space = two(when={"a": True})
    assert space.fits({"a": 1, "c": 0.0})
    assert space.fits({"a": True, "c": 0.0, "d": 0.0})
    assert not space.fits({"a": 1, "c": 0.0, "d": 0.0})


def test_conditions_are_saved() -> None:
    again = Space.from_json(TREE.to_json())
    assert again == TREE
    assert again.conditions.when == TREE.conditions.when
    assert "when" not in Space({"x": Float(0, 1)}).to_json()["parameters"][0]


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_moves_in_random_trees_are_legal(first: int) -> None:
    rng = np.random.default_rng(first)
    for seed in range(first, first + 20):
        space = random_tree(seed)
        cube, region = Cube(space.layout), region_of(space)
        X = region.fill(lattice(cube.parameters, 16))
        moves = cube.moves(rng, len(X))
        near = region.near(moves, X, 0.2)
        moved = region.neighbours(X).reshape(-1, cube.dimensions)
        snapped = region.snap(rng.uniform(size=X.shape))
        for points in (X, near, moved, snapped):
            assert region.legal(points).all()
            for x in points[:: max(len(points) // 8, 1)]:
                params = space.decode(x)
                assert space.check(params) == params
                np.testing.assert_allclose(space.encode(params), x, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_suggestions_in_random_trees_are_legal(seed: int) -> None:
    space = random_tree(seed)
    opt = Optimizer(space, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(len(space) + 3):
        trial = opt.ask()
        assert space.check(trial.params) == trial.params
        opt.tell(trial, float(rng.normal()))
    found = opt.recommend()
    assert space.check(found.params) == found.params
    for params in opt.belief().params:
        assert space.check(params) == params


def test_switching_a_branch_tries_several_values() -> None:
    space = Space({"a": Categorical(["p", "q"]), "u": Float(0, 1, when={"a": "q"})})
    region = region_of(space)
    near = region.neighbours(space.encode({"a": "p"})[None])[0]
    values = [space.decode(x) for x in near]
    assert {params["a"] for params in values} == {"q"}
    assert len({params["u"] for params in values}) == 8
    back = region.neighbours(space.encode({"a": "q", "u": 0.3})[None])[0]
    assert all(space.decode(x) == {"a": "p"} for x in back)


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_covariances_of_branches_are_positive_definite(kernel: str) -> None:
    """Inactive parameters have a place of the cube: the kernel is one on the cube.

    Points that differ in what is inactive alone are one point; those of two branches have a
    covariance that inactive values cannot change.
    """
    cube = Cube(TREE.layout)
    X = np.unique(cube.spread(np.random.default_rng(0).uniform(size=(60, len(TREE)))), axis=0)
    hypers = Hyperparameters([[0.7] * len(TREE)], [1.0], [1e-6], [0.0])
    K = as_kernel(kernel).bind(hypers, TREE.layout.owner).between(X, X).K[0]
    least = 1e-9 if kernel == "matern52" else -1e-12  # round-off of 60 values of size 1
    assert np.linalg.eigvalsh(K).min() > least
    one, other = TREE.encode(BRANCHES[0]), TREE.encode(BRANCHES[0])
    other[~cube.awake(other)] = 0.9  # whatever stands there is put in its place
    np.testing.assert_array_equal(cube.settled(other), one)
