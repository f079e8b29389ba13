"""Plates: several trials at once that are good together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from optpair import (
    Constraint,
    Float,
    Hyperparameters,
    Int,
    Objective,
    Optimizer,
    Settings,
    Space,
    acquisition,
)
from optpair.acquisition.registry import CONTROLS, REGISTRY
from optpair.engine import fitting, optimum, sampling, step
from optpair.engine.engine import Engine
from optpair.engine.plate import SAME_OPTIMUM, Shared
from outcome_cases import ALL, CONSTRAINED, FRONT, SPACE, several, told
from shell_cases import TINY, cheap, filled, jes, objective

SQUARE = Space({"a": Float(0, 1), "b": Float(0, 1)})
SETS = 12  # all the same: as many optimal pairs as by default
SMOOTH = Hyperparameters(
    np.full((SETS, 2), 0.25), np.ones(SETS), np.full(SETS, 0.01), np.zeros(SETS)
)
EIGHT = [1.0, 0.5, 2.0, 0.7, 1.1, 0.2, 0.9, 0.4]


def square(seed: int, **options: Any) -> Optimizer:
    """Twelve noisy values of a bowl, with known hyperparameters."""
    optimizer = Optimizer(SQUARE, seed=seed, hyperparameters=SMOOTH, **options)
    rng = np.random.default_rng(seed)
    for a, b in rng.uniform(size=(12, 2)):
        value = 4 * (a - 0.4) ** 2 + 4 * (b - 0.6) ** 2 + 0.1 * rng.normal()
        optimizer.tell({"a": float(a), "b": float(b)}, float(value))
    return optimizer


def on_cube(optimizer: Optimizer, trials: list[Any]) -> np.ndarray:
    return np.array([optimizer.space.encode(trial.params) for trial in trials])


def nearest(points: np.ndarray) -> np.ndarray:
    """How far each point is from the nearest other: the largest difference of a column."""
    apart = np.abs(points[:, None] - points[None]).max(-1)
    return np.asarray(np.where(np.eye(len(points)) > 0, np.inf, apart).min(1))


def kinds_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of all suggestions from now on."""
    found: list[str] = []
    inner = step.suggest

    def suggest(engine: Engine, *args: Any) -> Any:
        suggested = inner(engine, *args)
        found.append(suggested[2].kind)
        return suggested

    monkeypatch.setattr(step, "suggest", suggest)
    return found


def test_a_plate_is_a_list_and_begins_with_the_next_trial() -> None:
    plate, one = filled(jes(), EIGHT).ask(4), filled(jes(), EIGHT).ask()
    assert [trial.id for trial in plate] == [8, 9, 10, 11]
    assert all(trial.state == "pending" for trial in plate)
    assert plate[0] == one
    assert filled(jes(), EIGHT).ask(1) == [one]


def test_the_model_and_the_paths_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def count(module: ModuleType, name: str) -> None:
        inner: Callable[..., Any] = getattr(module, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            made.append(name)
            return inner(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)

    count(fitting, "condition")
    count(sampling, "draw_paths")
    count(sampling, "find_optima")
    filled(jes(exploit=0.0), EIGHT).ask(5)
    assert made == ["condition", "draw_paths", "find_optima"]


def test_a_plate_spreads_as_asks_one_by_one_do() -> None:
    together, single = [], []
    for seed in range(4):
        optimizer = square(seed)
        together.append(nearest(on_cube(optimizer, optimizer.ask(8))).mean())
        optimizer = square(seed)
        single.append(nearest(on_cube(optimizer, [optimizer.ask() for _ in range(8)])).mean())
    difference = np.array(together) - np.array(single)
    error = float(np.std(difference, ddof=1)) / np.sqrt(len(difference))
    assert abs(difference.mean()) < 3 * error
    assert min(together) > 0.05  # of the square's side; the best point eight times would be 0


def test_no_two_trials_of_a_plate_are_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the acquisition function has the same maximum all the time."""
    kinds = kinds_of(monkeypatch)
    for seed in range(3):
        optimizer = square(seed, acquisition="mean")
        points = on_cube(optimizer, optimizer.ask(8))
        assert nearest(points).min() >= SAME_OPTIMUM
    assert set(kinds) == {"acquire"}


@pytest.mark.parametrize("name", sorted(acquisition.names()))
def test_every_acquisition_function_fills_a_plate(name: str) -> None:
    if name in CONTROLS or "best" in REGISTRY[name].goals:
        optimizer = filled(cheap(acquisition=name), EIGHT)
    else:
        outcomes = FRONT if "front" in REGISTRY[name].goals else CONSTRAINED
        settings = Settings(**TINY)
        optimizer = Optimizer(
            SPACE, outcomes=outcomes, seed=0, acquisition=name, hyperparameters="map",
            settings=settings,
        )  # fmt: skip
        told(optimizer, 6)
    points = on_cube(optimizer, optimizer.ask(4))
    assert nearest(points).min() >= SAME_OPTIMUM


def test_each_path_supplies_its_own_value_at_the_points_of_a_plate() -> None:
    optimizer = square(0, noise=1e-4)
    session, data, shared = optimizer._session, optimizer._history.data(), Shared()
    memory: Any = {}
    for i in range(4):
        x, memory, _ = step.suggest(
            session.engine, session.stream(1, i), memory, data, i, session.stream(0, 0), shared
        )
        data = data.awaiting(x)
    assert shared.model is not None
    assert shared.sampled is not None
    assert shared.sampled.paths is not None
    (posterior,), (paths,) = shared.sampled.posteriors, shared.sampled.paths
    earlier = np.array(shared.points[:3])
    np.testing.assert_array_equal(posterior.X[-3:], earlier)
    noise = float(np.sqrt(posterior.noise.max()))
    means, values = posterior.moments(earlier)[0], paths.at(earlier)
    np.testing.assert_allclose(means, values, atol=5 * noise)
    assert values.std(1).min() > 50 * noise
    grown = shared.model.posteriors[0]
    for x in earlier:
        grown = grown.append(x, np.zeros((grown.sets, 1)))
    probe = np.random.default_rng(0).uniform(size=(20, 2))
    np.testing.assert_allclose(posterior.moments(probe)[1], grown.moments(probe)[1], atol=1e-9)


def test_the_first_plate_is_the_design() -> None:
    optimizer = jes()
    plate = optimizer.ask(8)
    other = jes()
    assert plate == [other.ask() for _ in range(8)]


def test_a_plate_exploits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds, searches = kinds_of(monkeypatch), list[int]()
    inner = optimum.predicted

    def predicted(engine: Engine, *args: Any, **options: Any) -> Any:
        searches.append(1)
        return inner(engine, *args, **options)

    monkeypatch.setattr(optimum, "predicted", predicted)
    filled(jes(exploit=1.0), EIGHT).ask(4)
    assert kinds == ["exploit", "acquire", "acquire", "acquire"]
    assert len(searches) == 1


@pytest.mark.parametrize(("size", "chance"), [(1, 0.1), (2, 0.4), (4, 0.8), (5, 1.0), (8, 1.0)])
def test_how_often_a_plate_exploits(size: int, chance: float) -> None:
    """Coins that are thrown one after the other, until one suggestion exploits."""
    missed, shared = 1.0, Shared(size=size)
    for _ in range(size):
        missed *= 1 - shared.exploiting(0.1)
        shared.points.append(np.zeros(1))
    assert missed == pytest.approx(1 - chance)
    shared.kinds.add("exploit")
    assert shared.exploiting(0.1) == 0
    assert Shared(size=size).exploiting(0.0) == 0
    assert Shared(size=size).exploiting(1.0) == 1


def test_the_last_of_a_plate_makes_up_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = kinds_of(monkeypatch)
    for seed in range(3):
        filled(jes(seed=seed, exploit=None), EIGHT).ask(8)
        assert kinds[-8:].count("exploit") == 1


def test_a_plate_confirms_once(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space({"x": Float(0, 1)})
    optimizer = jes(space=space)
    for i in range(20):
        x = i / 19
        value = (x - 0.3) ** 2 + 0.01 * np.sin(37.0 * i)
        optimizer.tell({"x": x}, -80.0 if i in (5, 14) else float(value))
    assert len(optimizer.recommend().doubted) == 2
    kinds = kinds_of(monkeypatch)
    optimizer.ask(4)
    assert kinds.count("confirm") == 1


def test_few_legal_points_are_repeated_only_under_noise() -> None:
    space = Space({"k": Int(1, 3)})
    noisy = jes(space=space)
    assert sorted(trial.params["k"] for trial in noisy.ask(3)) == [1, 2, 3]
    for trial in noisy.trials:
        noisy.tell(trial, float(trial.params["k"]))
    plate = [trial.params["k"] for trial in noisy.ask(8)]
    assert len(plate) == 8
    assert sorted(plate[:3]) == [1, 2, 3]  # repeats come when all have been


def test_exact_values_make_a_plate_shorter() -> None:
    space = Space({"k": Int(1, 5)})
    exact = jes(space=space, noise=0)
    first = exact.ask(3)
    for trial in first:
        exact.tell(trial, float(trial.params["k"]))
    rest = exact.ask(8)
    assert sorted(trial.params["k"] for trial in [*first, *rest]) == [1, 2, 3, 4, 5]
    assert len(exact.ask(8)) == 1  # as ask() gives one
    assert len(jes(space=space, noise=0).ask(8)) == 5


def test_a_saved_search_goes_on_with_the_same_plate(tmp_path: Path) -> None:
    optimizer = filled(jes(), EIGHT)
    optimizer.ask(3)
    optimizer.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.ask(3) == optimizer.ask(3)
    assert again.ask() == optimizer.ask()


@pytest.mark.parametrize("n", [0, -1, 1001, 10**400])
def test_impossible_sizes_are_refused(n: int) -> None:
    optimizer = filled(jes(), EIGHT)
    with pytest.raises(ValueError, match=r"n must be an int from 1 to 1000"):
        optimizer.ask(n)
    assert len(optimizer.trials) == 8


@pytest.mark.parametrize("n", [True, 2.5, "8", float("nan"), [8]])
def test_sizes_of_another_type_are_refused(n: Any) -> None:
    with pytest.raises(TypeError, match=r"n must be an int from 1 to 1000"):
        jes().ask(n)


def test_trials_of_a_plate_are_told_and_cancelled_like_others() -> None:
    optimizer = filled(jes(), EIGHT)
    first, second, third = optimizer.ask(3)
    optimizer.tell(second, objective(dict(second.params)))
    optimizer.cancel(first)
    optimizer.tell(third, failed=True)
    assert [trial.id for trial in optimizer.trials][-2:] == [second.id, third.id]
    assert optimizer.ask().id == third.id + 1


@pytest.mark.parametrize("outcomes", [CONSTRAINED, FRONT, ALL], ids=["limit", "front", "both"])
def test_a_plate_with_several_outcomes(outcomes: dict[str, Any]) -> None:
    """Legal, different, and the same each time."""
    optimizer, same, single = (told(several(outcomes, way="map"), 6) for _ in range(3))
    plate = optimizer.ask(3)
    assert nearest(on_cube(optimizer, plate)).min() >= SAME_OPTIMUM
    assert all(SPACE.decode(SPACE.encode(trial.params)) == trial.params for trial in plate)
    assert same.ask(3) == plate
    assert single.ask() == plate[0]


def test_every_outcome_knows_the_points_of_a_plate() -> None:
    optimizer = told(several(ALL, way="map", exploit=0.0), 6)
    session, data, shared = optimizer._session, optimizer._history.data(), Shared()
    memory: Any = {}
    for i in range(3):
        x, memory, _ = step.suggest(
            session.engine, session.stream(1, i), memory, data, i, session.stream(0, 0), shared
        )
        data = data.awaiting(x)
    assert shared.sampled is not None
    assert shared.model is not None
    pairs = zip(shared.sampled.posteriors, shared.model.posteriors, strict=True)
    for grown, plain in pairs:
        now, before = (p.moments(data.pending[:2])[1] for p in (grown, plain))
        assert (now < 0.9 * before).all()


def test_a_plate_within_limits_on_the_inputs() -> None:
    space = Space({"a": Float(0, 1), "b": Float(0, 1), "c": Float(0, 1)}, where=["a + b + c == 1"])
    optimizer = Optimizer(
        space, outcomes=FRONT, seed=1, hyperparameters="map", settings=Settings(**TINY)
    )
    for number in range(2):  # of the design, and of the model
        plate = optimizer.ask(5)
        assert nearest(on_cube(optimizer, plate)).min() > 0
        for trial in plate:
            a, b, c = trial.params.values()
            assert a + b + c == pytest.approx(1.0, abs=1e-12)
            optimizer.tell(trial, {"gain": 1 - (a - 0.2) ** 2 - number, "cost": b})


def test_a_point_with_something_missing_may_be_in_a_plate_again() -> None:
    """Where values are exact, only points whose outcomes are all known end a plate early."""
    exact = {"gain": Objective("maximize", noise=0), "load": Constraint(high=0.5, noise=0)}
    optimizer = Optimizer(Space({"x": Int(0, 2)}), outcomes=exact, settings=Settings(**TINY))
    for x in range(3):
        optimizer.tell({"x": x}, {"gain": 0.1 * x})
    assert sorted(trial.params["x"] for trial in optimizer.ask(9)) == [0, 1, 2]
