"""Limits from end to end: whatever is suggested or recommended keeps them."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import Categorical, Float, Hyperparameters, Int, Optimizer, Settings, Space, minimize
from optpair.cube.candidates import Screening
from optpair.engine.session import region_of
from optpair.runtime.streams import Stream
from shell_cases import TINY, cheap, jes

FIVE = Space({name: Float(0, 1) for name in "abcde"}, where="a + b + c + d + e == 1")
GOAL = {"a": 0.5, "b": 0.3, "c": 0.2, "d": 0.0, "e": 0.0}


def away(params: dict[str, Any]) -> float:
    """The squared distance from a mixture of three."""
    return float(sum((params[name] - goal) ** 2 for name, goal in GOAL.items()))


def searched(space: Space, objective: Any, trials: int, **options: Any) -> Optimizer:
    """After some trials, all of which are legal, as is all that is found."""
    settings = Settings(**{**TINY, **options.pop("settings", {})})
    known = Hyperparameters([[1.5] * len(space)], [1.0], [1e-4], [0.0])
    opt = Optimizer(space, seed=0, settings=settings, hyperparameters=known, **options)
    for _ in range(trials):
        trial = opt.ask()
        assert space.allows(trial.params)
        opt.tell(trial, objective(trial.params))
    belief = opt.belief()
    for params in (belief.recommendation.params, *belief.params):
        assert space.allows(params)
    assert space.allows(opt.recommend(tried=True).params)
    return opt


def test_a_mixture_of_five_is_exact_and_found() -> None:
    opt = searched(FIVE, away, 15, settings={"pairs": 6, "steps": 16})
    for trial in opt.trials:
        assert abs(sum(trial.params.values()) - 1) <= 1e-15
        assert all(0 <= v <= 1 for v in trial.params.values())
    assert len({tuple(trial.params.values()) for trial in opt.trials}) > 12
    # Points of the simplex are 0.38 from the goal on average, squared: 0.2.
    assert away(opt.recommend().params) < 0.01


def test_an_order_holds_and_its_edge_is_found() -> None:
    space = Space(
        {"low": Float(0, 10), "high": Float(-5, 5), "k": Categorical(["u", "v"])},
        where="low <= high",
    )
    opt = searched(space, lambda p: ((p["low"] - 4) ** 2 + (p["high"] - 2) ** 2) / 20, 12)
    assert all(trial.params["low"] <= trial.params["high"] for trial in opt.trials)
    best = opt.recommend().params
    assert abs(best["low"] - 3) < 0.5
    assert abs(best["high"] - 3) < 0.5


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({name: Int(0, 10) for name in "abc"}, ["a + b + c == 10"]),
        ({name: Float(0, 1, step=0.05) for name in "abc"}, ["a + b + c == 1", "a <= b"]),
        ({"a": Float(0, 1), "b": Float(0, 1), "n": Int(0, 5)}, ["a + b + n == 3", "a <= b"]),
        ({"a": Float(0, 1), "b": Float(0, 1)}, ["a == 0.25"]),
        ({"a": Float(0, 1), "b": Float(0, 1)}, ["a + b == 1", "a == 1/3"]),
        ({"a": Float(-1e6, 1e6), "b": Float(0, 1e-3)}, ["a + 1e9*b == 5"]),
        ({"a": Int(0, 10**9), "b": Int(0, 10**9)}, ["a + b == 1000000001"]),
        ({"a": Int(0, 3), "b": Int(0, 3)}, ["a + b == 3"]),
    ],
)
def test_steps_whole_numbers_and_fixed_parameters(
    parameters: dict[str, Any], where: list[str]
) -> None:
    space = Space(parameters, where=where)
    searched(space, lambda p: p["b"] / 1e9 + p["a"] / 1e6, 5, noise=0)


def test_whole_numbers_that_sum_are_exchanged_until_the_best_is_found() -> None:
    space = Space({name: Int(0, 10) for name in "abcd"}, where="a + b + c + d == 10")
    goal = np.array([6, 3, 1, 0])
    opt = searched(
        space, lambda p: float(np.sum((np.array(list(p.values())) - goal) ** 2)) / 50, 12,
        settings={"pairs": 6},
    )  # fmt: skip
    found = np.array(list(opt.recommend().params.values()))
    assert np.abs(found - goal).sum() <= 2


@pytest.mark.parametrize("acquisition", ["pes", "mes", "ts", "kg", "ei", "random", "lattice"])
def test_every_kind_of_acquisition_keeps_limits(acquisition: str) -> None:
    space = Space({name: Float(0, 1) for name in "abc"}, where=["a + b + c == 1", "a <= b"])
    opt = searched(space, lambda p: p["a"] - p["c"], 6, acquisition=acquisition)
    assert len({tuple(trial.params.values()) for trial in opt.trials}) >= 5


def test_random_linear_systems() -> None:
    """Designs, candidates and snapped points are legal, or the limits are refused with reason."""
    legal, refused = 0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        parameters, where = random_system(rng)
        try:
            space = Space(parameters, where=where)
        except ValueError as error:
            refused.append(str(error))
            continue
        region, d = region_of(space), len(parameters)
        screening = Screening.of(Stream.of(seed), region.cube, 8)
        near, filling = screening.points(region, rng.uniform(size=(2, d)))
        far = region.snap(rng.uniform(size=(4, d)))
        for x in np.concatenate([filling, near, far]):
            assert space.allows(space.decode(x)), (seed, where)
        legal += 1
    assert legal >= 25
    assert len(refused) >= 3
    assert all("where leaves no legal point" in reason for reason in refused)


def test_searches_within_random_linear_systems() -> None:
    """Suggestions by the model, a plate and the recommendation; OPTPAIR_SYSTEMS=1000 for more."""
    searched_in, refused = 0, list[str]()
    for seed in range(int(os.environ.get("OPTPAIR_SYSTEMS", "16"))):
        parameters, where = random_system(np.random.default_rng([1, seed]))
        try:
            space = Space(parameters, where=where)
        except ValueError as error:
            refused.append(str(error))
            continue
        quick = Settings(sets=2, pairs=2, candidates=64, features=32, initial=2)
        opt = Optimizer(space, seed=seed, settings=quick, hyperparameters="map")
        for _ in range(4):
            trial = opt.ask()
            opt.tell(trial, float(np.sum(np.sin(3 * space.encode(trial.params)))))
        points = [*(trial.params for trial in (*opt.trials, *opt.ask(2))), opt.recommend().params]
        for params in points:
            assert space.allows(params), (seed, where, params)
            excess = space.rows.A @ space.encode(params) - space.rows.b
            assert np.all(np.where(space.rows.equal, np.abs(excess), excess) <= 1e-12), (
                seed,
                where,
            )
        searched_in += 1
    assert searched_in >= 10


def random_system(rng: np.random.Generator) -> tuple[dict[str, Any], list[str]]:
    """Up to six parameters of all kinds, and up to three limits near the middle."""
    parameters: dict[str, Any] = {}
    for i in range(int(rng.integers(2, 7))):
        low, size = round(float(rng.normal() * 10.0 ** rng.integers(-2, 3)), 3), rng.uniform(-1, 2)
        parameters[f"p{i}"] = [
            Float(low, low + round(float(10**size), 2)),
            Float(0, 1),
            Int(int(low), int(low) + int(rng.integers(1, 20))),
            Float(0, 1, step=0.05),
        ][rng.integers(4)]
    where = []
    for _ in range(int(rng.integers(1, 4))):
        names = rng.choice(list(parameters), int(rng.integers(1, len(parameters) + 1)), False)
        weights = [int(rng.integers(-3, 4)) or 1 for _ in names]
        middle = 0.0
        for name, weight in zip(names, weights, strict=True):
            p = parameters[name]
            middle += weight * (p.low + (p.high - p.low) * rng.uniform(0.2, 0.8))
        terms = " + ".join(f"{w}*{n}" for n, w in zip(names, weights, strict=True))
        sign = rng.choice(["<=", ">=", "=="])
        where.append(f"{terms} {sign} {round(middle, int(rng.integers(0, 3)))}")
    return parameters, where


def test_points_of_your_own_may_break_limits_and_teach() -> None:
    opt = cheap(space=FIVE, hyperparameters="map")
    opt.tell(dict.fromkeys("abcde", 0.5), 3.0)
    with pytest.raises(ValueError, match="none of the told trials is at a legal point"):
        opt.recommend(tried=True)
    assert FIVE.allows(opt.recommend().params)
    opt.tell(GOAL, 0.0)
    opt.tell(dict.fromkeys("abcde", 0.0), -50.0)
    assert FIVE.allows(opt.recommend().params)
    assert opt.recommend(tried=True).params == GOAL
    assert opt.recommend().observed.value == -50.0  # a fact, and no recommendation
    assert FIVE.allows(opt.ask().params)
    assert opt.predict([dict.fromkeys("abcde", 0.0)]).mean.shape == (1,)


def test_an_exact_value_outside_the_limits_is_not_the_answer() -> None:
    opt = cheap(space=FIVE, noise=0.0, hyperparameters="map")
    opt.tell(dict.fromkeys("abcde", 0.0), -50.0)
    assert FIVE.allows(opt.recommend().params)
    opt.tell(GOAL, 0.0)
    answer = opt.recommend()
    assert FIVE.allows(answer.params)
    assert answer.observed.value == -50.0


def test_a_doubted_point_outside_the_limits_is_not_asked_for_again() -> None:
    """Inside, a value that looks like a slip is asked for again; outside, it is not."""
    space = Space({"a": Float(0, 1), "b": Float(0, 1)}, where="a + b <= 1")
    kinds = {}
    for slip in ({"a": 0.2, "b": 0.2}, {"a": 0.9, "b": 0.9}):
        opt = jes(space=space)
        for i in range(12):
            u = 0.618034 * i % 1
            opt.tell({"a": 0.5 * u, "b": 0.5 - 0.5 * u}, u * u + 0.01 * (i % 3))
        opt.tell(slip, -1e4)
        trial = opt.ask()
        assert space.allows(trial.params)
        kinds[slip["a"]] = opt.info.kind
    assert kinds[0.2] == "confirm"
    assert kinds[0.9] != "confirm"


def test_saved_and_pickled_searches_go_on_alike(tmp_path: Path) -> None:
    opt = jes(space=Space({name: Float(0, 1) for name in "abc"}, where=["a + b + c == 1"]))
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, trial.params["a"])
    opt.save(tmp_path / "a.json")
    loaded, copied = Optimizer.load(tmp_path / "a.json"), pickle.loads(pickle.dumps(opt))
    assert loaded.space == copied.space == opt.space
    assert loaded.ask().params == copied.ask().params == opt.ask().params
    assert loaded.recommend().params == opt.recommend().params


def ring(params: dict[str, Any]) -> bool:
    """Away from the middle, and not far from it."""
    square = params["x"] ** 2 + params["y"] ** 2
    return bool(0.5 <= square <= 0.75)


def test_a_function_is_kept_to() -> None:
    space = Space({"x": Float(-1, 1), "y": Float(-1, 1)}, where=ring)
    opt = searched(space, lambda p: p["x"] + p["y"], 10, settings={"steps": 12})
    best = opt.recommend().params
    assert best["x"] + best["y"] < -1.1  # at best −√1.5 = −1.22


def test_a_function_beside_texts_and_whole_numbers(tmp_path: Path) -> None:
    space = Space(
        {"x": Float(0, 1), "y": Float(0, 1), "n": Int(0, 4), "k": Categorical(["u", "v"])},
        where=["x + y == 1", lambda p: p["k"] == "u" or p["x"] * p["n"] <= 1],
    )
    opt = searched(space, lambda p: -p["x"] - p["n"] - (p["k"] == "v"), 6)
    with pytest.raises(TypeError, match="function in where cannot be saved"):
        opt.save(tmp_path / "a.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda p: False, ValueError, "allows none of 16384 points"),
        (lambda p: None, TypeError, "must return True or False, not None"),
        (lambda p: p["z"] > 0, KeyError, "z"),
    ],
)
def test_functions_that_cannot_be_followed(
    function: Any, error: type[Exception], message: str
) -> None:
    space = Space({"x": Float(-1, 1), "y": Float(-1, 1)}, where=function)
    with pytest.raises(error, match=message) as caught:
        cheap(space=space)
    if error is KeyError:
        assert "while where's function was asked about {'x': " in caught.value.__notes__[0]


def test_minimize_and_the_report(tmp_path: Path) -> None:
    space = Space({name: Float(0, 1) for name in "abc"}, where="a + b + c == 1")
    result = minimize(
        lambda p: p["a"] ** 2 + p["b"], space, 5, seed=0, progress=False, settings=Settings(**TINY),
        hyperparameters="map",
    )  # fmt: skip
    assert space.allows(result.x)
    result.optimizer.report(tmp_path / "page.html")
    assert re.search(r"<html", (tmp_path / "page.html").read_text(encoding="utf-8"))
