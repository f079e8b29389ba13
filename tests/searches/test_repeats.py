"""Repeats: when a point is asked for again, and what two equal values say."""

from __future__ import annotations

import numpy as np
import pytest

from optpair import Float, Int, Optimizer, Settings, Space
from optpair.engine.repeats import COARSE, TRIALS, exact
from optpair.trials.data import Measured
from shell_cases import TINY

SPACE = Space({"a": Float(0, 1), "b": Float(0, 1)})


def measured(places: list[float], values: list[float], noise: float = np.nan) -> Measured:
    n = len(values)
    return Measured(
        np.array(places)[:, None],
        np.array(values),
        np.full(n, noise),
        np.zeros(n, dtype=bool),
        np.arange(n),
    )


@pytest.mark.parametrize(
    ("places", "values", "said"),
    [
        ([], [], False),
        ([0.1], [1.0], False),
        ([0.1, 0.2], [1.0, 2.0], False),  # nothing was repeated
        ([0.1, 0.2, 0.1], [1.0, 2.0, 1.0], True),
        ([0.1, 0.2, 0.1 + 1e-12], [1.0, 2.0, 1.0 + 1e-12], True),  # round-off
        ([0.1, 0.2, 0.1], [1.0, 2.0, 1.0 + 1e-8], False),
        ([0.1, 0.2, 0.1, 0.2], [1.0, 2.0, 1.0, 2.1], False),  # one agrees, another one does not
        ([0.1, 0.2, 0.3, 0.1], [1.0, 2.0, 2.0, 1.0], False),  # coarse values agree by chance
        ([0.1, 0.2, 0.3, 0.1, 0.1, 0.2], [1.0, 2.0, 2.0, 1.0, 1.0, 2.0], True),
        ([0.1, 0.1], [1.0, 1.0], True),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.1], [1.0, 9.0, 9.0, 2.0, 3.0, 1.0], True),  # cut off at 9
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.2], [1.0, 9.0, 9.0, 2.0, 3.0, 9.0], False),  # repeated there
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.1], [1.0, 2.0, 2.0, 3.0, 4.0, 1.0], False),  # in the middle
        ([0.1, 0.2, 0.3, 0.1], [1.0, 2.0, 2.0 + 1e-9, 1.0], True),  # close is not the same
        ([0.1, 0.1, 0.2], [1.0, 1.0, 1.0], False),  # a constant
    ],
)
def test_values_are_exact_where_every_repeat_agrees(
    places: list[float], values: list[float], said: bool
) -> None:
    assert COARSE == 3
    assert exact(measured(places, values)) is said


@pytest.mark.parametrize(("shared", "said"), [(1, False), (2, True), (3, True)])
def test_a_value_may_not_depend_on_every_parameter(shared: int, said: bool) -> None:
    """Points that share half of their coordinates may have the same value for that reason."""
    X = np.random.default_rng(0).uniform(size=(6, 4))
    X[4, :shared], X[5] = X[3, :shared], X[0]
    values = np.array([1.0, 5.0, 3.0, 2.0, 2.0, 1.0])
    none = np.zeros(6, dtype=bool)
    assert exact(Measured(X, values, np.full(6, np.nan), none, np.arange(6))) is said


def test_a_noise_that_was_told_is_believed() -> None:
    assert not exact(measured([0.1, 0.2, 0.1], [1.0, 2.0, 1.0], noise=0.1))


def bowl(params: dict[str, float]) -> float:
    return (params["a"] - 0.3) ** 2 + abs(params["b"] - 0.6)


def search(
    trials: int, spread: float = 0.0, digits: int = 12, **given: object
) -> tuple[Optimizer, list[str]]:
    opt = Optimizer(SPACE, seed=1, **given)  # type: ignore[arg-type]
    rng, kinds = np.random.default_rng(0), []
    for _ in range(trials):
        trial = opt.ask()
        opt.tell(trial, round(bowl(trial.params) + spread * rng.standard_normal(), digits))
        kinds.append(opt.info.kind)
    return opt, kinds


def test_the_best_trial_is_repeated_once() -> None:
    opt, kinds = search(12, spread=0.05)
    after = TRIALS * 2
    assert [i for i, kind in enumerate(kinds) if kind == "confirm"] == [after]
    best = min(opt.trials[:after], key=lambda t: t.value)
    assert opt.trials[after].params == best.params
    assert opt.recommend().std > 0.0


def test_equal_values_are_exact() -> None:
    """Nothing is asked for again, and the best value is worth just that."""
    opt, kinds = search(15)
    assert kinds.count("confirm") == 1
    points = [tuple(t.params.values()) for t in opt.trials]
    assert len(set(points)) == len(points) - 1
    found = opt.recommend()
    assert found.mean == min(t.value for t in opt.trials) == round(bowl(found.params), 12)
    assert found.interval == (found.mean, found.mean)


def test_a_rugged_function_is_told_from_a_noisy_one() -> None:
    """The same values, up to noise, but at the repeated point: intervals there differ."""
    exactly, noisy = search(12)[0], search(12, spread=0.02)[0]
    assert exactly.recommend().std == 0.0 < noisy.recommend().std


def test_coarse_values_that_agree_prove_nothing_yet() -> None:
    opt, kinds = search(12, digits=1)
    assert "confirm" in kinds
    assert opt.recommend().std > 0


@pytest.mark.parametrize(
    "given", [{"noise": 0}, {"noise": 0.1}, {"settings": Settings(repeat=False)}]
)
def test_nothing_is_repeated_where_there_is_no_need(given: dict[str, object]) -> None:
    assert "confirm" not in search(8, **given)[1]


def test_points_that_are_asked_for_once_are_not_asked_for_again() -> None:
    """With much noise points are repeated; with `once`, only when no other is left."""
    rng = np.random.default_rng(0)
    asked = {}
    for once in (False, True):
        opt = Optimizer(
            Space({"n": Int(1, 9)}), seed=0, noise=0.5, settings=Settings(**TINY, once=once)
        )
        for _ in range(10):
            trial = opt.ask()
            opt.tell(trial, trial.params["n"] + 0.5 * rng.standard_normal())
        asked[once] = [trial.params["n"] for trial in opt.trials]
    assert len(set(asked[False])) < 9
    assert sorted(asked[True][:9]) == list(range(1, 10))
    assert len(asked[True]) == 10


def test_several_objectives_repeat_nothing() -> None:
    opt = Optimizer(SPACE, seed=1, outcomes={"loss": "minimize", "cost": "minimize"})
    for _ in range(8):
        trial = opt.ask()
        assert opt.info.kind != "confirm"
        opt.tell(trial, {"loss": bowl(trial.params), "cost": trial.params["a"]})


def test_a_repeat_of_ones_own_is_enough() -> None:
    opt = Optimizer(SPACE, seed=1)
    for a, b in ((0.1, 0.2), (0.5, 0.5), (0.9, 0.3), (0.1, 0.2), (0.4, 0.8)):
        opt.tell({"a": a, "b": b}, bowl({"a": a, "b": b}))
    opt.ask()
    assert opt.info.kind != "confirm"
    assert opt.recommend().std == 0.0


def test_a_repeat_that_failed_is_not_tried_for_ever() -> None:
    opt, _ = search(TRIALS * 2)
    trial = opt.ask()
    assert opt.info.kind == "confirm"
    opt.tell(trial, failed=True)
    opt.ask()
    assert opt.info.kind != "confirm"


def test_workers_do_not_repeat_one_point_twice() -> None:
    opt, _ = search(TRIALS * 2)
    plate = opt.ask(4)
    points = {tuple(t.params.values()) for t in plate}
    told = {tuple(t.params.values()) for t in opt.trials if t.state == "told"}
    assert len(points) == 4
    assert len(points & told) == 1


def test_a_saved_run_knows_that_values_are_exact(tmp_path) -> None:  # type: ignore[no-untyped-def]
    opt, _ = search(9)
    opt.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.ask().params == opt.ask().params
    assert again.recommend().std == 0.0
