"""Stopping: by what is left to be won, and by time."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import Constraint, Float, Optimizer, Settings, Space, Stop, maximize, minimize
from optpair.engine import session
from optpair.engine.answers import Answers
from optpair.engine.gaps import left_to_win
from outcome_cases import ALL, CONSTRAINED, FRONT, several, told
from shell_cases import TINY, filled, jes, objective

LINE = Space({"x": Float(0, 1)})
EASY = Stop(gap=0.05)


def bowl(params: dict[str, Any]) -> float:
    return 4 * float(params["x"] - 0.3) ** 2


def search(evaluations: int = 30, **options: Any) -> Any:
    options = {"settings": Settings(**TINY), "progress": False, "seed": 0} | options
    return minimize(bowl, LINE, evaluations, **options)


@pytest.mark.parametrize(
    ("gap", "chance"),
    [
        *((gap, 0.9) for gap in (-1, math.nan, math.inf, 1e301, 10**400)),
        *((0.1, chance) for chance in (0, 1.1, math.nan)),
    ],
)
def test_impossible_stops_are_refused(gap: float, chance: float) -> None:
    with pytest.raises(ValueError, match=r"(gap must be a number from 0|chance must be a prob)"):
        Stop(gap, chance)


@pytest.mark.parametrize("wrong", [True, "0.1", None, [0.1], 1j])
def test_stops_of_another_type_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="gap must be"):
        Stop(wrong)
    with pytest.raises(TypeError, match="chance must be"):
        Stop(0.1, wrong)
    with pytest.raises(TypeError, match=r"stop must be a Stop, like Stop\(gap=0.01\)"):
        jes().done(wrong)
    with pytest.raises(TypeError, match="stop must be a Stop"):
        search(stop=wrong or "0.1")


def test_numbers_of_any_kind_are_plain_floats() -> None:
    stop = Stop(np.float32(0.5), np.int64(1))  # type: ignore[arg-type]
    assert (type(stop.gap), type(stop.chance)) == (float, float)
    assert stop == Stop(0.5, 1.0)


def test_the_gaps_of_paths_cannot_overflow_nor_be_negative() -> None:
    f, here = np.array([1.0, 2.0, 1.7e308]), np.array([0.5, 2.1, -1.7e308])
    gaps = left_to_win(f, here)
    np.testing.assert_allclose(gaps[:2], [0.5, 0.0])
    assert np.isfinite(gaps).all()


def test_a_search_is_over_where_the_belief_says_so() -> None:
    optimizer = search(10).optimizer
    belief = optimizer.belief()
    assert belief.chance(math.inf) == 1
    assert belief.gap == pytest.approx(belief.gaps.mean())
    for gap in np.quantile(belief.gaps, [0.2, 0.5, 0.95]):
        for chance in (0.1, 0.4, 0.9, 1.0):
            expected = np.mean(belief.gaps <= gap) >= chance
            assert optimizer.done(Stop(float(gap), chance)) == expected


def test_minimize_stops_early_and_says_why() -> None:
    result = search(stop=EASY)
    assert 2 < result.nfev < 30
    assert result.message == (
        f"{result.nfev} evaluations were made, then the search was over: at most 0.05 is left to "
        "be won, with a chance of 0.9"
    )
    assert bowl(dict(result.x)) <= EASY.gap
    again = search(result.nfev)
    assert [t.params for t in again.trials] == [t.params for t in result.trials]


def test_maximize_stops_too() -> None:
    options: dict[str, Any] = {"settings": Settings(**TINY), "progress": False, "seed": 0}
    result = maximize(lambda p: -bowl(p), LINE, 30, stop=EASY, **options)
    assert result.nfev == search(stop=EASY).nfev


def test_a_checkpoint_of_a_stopped_search_is_over_at_once(tmp_path: Path) -> None:
    first = search(stop=EASY, checkpoint=tmp_path / "run.json")
    again = search(stop=EASY, checkpoint=tmp_path / "run.json")
    assert (again.nfev, again.message, again.x) == (first.nfev, first.message, first.x)


def test_a_search_is_never_over_before_its_design_is_or_without_values() -> None:
    sure = Stop(gap=1e300, chance=0.01)
    optimizer = jes()
    assert not optimizer.done(sure)
    trial = optimizer.ask()
    optimizer.tell(trial, failed=True)
    assert not optimizer.done(sure)
    while len(optimizer.trials) - 1 < optimizer._session.engine.initial:
        trial = optimizer.ask()
        optimizer.tell(trial, objective(dict(trial.params)))
        assert not optimizer.done(sure)
    trial = optimizer.ask()
    optimizer.tell(trial, objective(dict(trial.params)))
    assert optimizer.done(sure)


def test_a_search_is_not_over_while_a_value_is_in_doubt() -> None:
    optimizer = jes(space=LINE)
    for i in range(20):
        x = i / 19
        optimizer.tell({"x": x}, -80.0 if i == 14 else (x - 0.3) ** 2 + 0.01 * np.sin(37.0 * i))
    assert optimizer.recommend().doubted
    assert not optimizer.done(Stop(gap=1e300, chance=0.01))
    optimizer.revise(14, float((14 / 19 - 0.3) ** 2))
    assert optimizer.done(Stop(gap=1e300, chance=0.01))


def test_looks_are_spared_while_the_end_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    inner = Answers.over

    def over(self: Answers, stop: Stop) -> bool:
        looks.append(self.data.told)
        return inner(self, stop)

    monkeypatch.setattr(Answers, "over", over)
    search(12, stop=Stop(gap=0.0, chance=1.0))
    assert looks == [3, 5, 8, 12, 12]  # half as many again, and how far off the end is
    looks.clear()
    search(12, stop=Stop(gap=0.0, chance=1.0), acquisition="logei")
    assert looks == [3, 4, 5, 7, 9, 12, 12]  # a quarter more
    looks.clear()
    result = search(stop=EASY)
    assert looks[-1] == result.nfev > looks[-2]
    assert session.RARE > session.SPARSE > 1


def test_asking_again_gives_the_same_answer_and_changes_nothing() -> None:
    optimizer = search(8).optimizer
    before = optimizer._to_json()
    answers = [optimizer.done(EASY) for _ in range(3)]
    assert len(set(answers)) == 1
    assert optimizer._to_json() == before


def test_a_revised_value_is_looked_at_again() -> None:
    optimizer = filled(jes(), [1.0, 0.5, 2.0, 0.7, 1.1])
    sure = Stop(gap=1e300, chance=0.01)
    assert optimizer.done(sure)
    optimizer.revise(0, failed=True)
    assert optimizer.done(sure)
    hardly = Stop(gap=float(np.median(optimizer.belief().gaps)), chance=0.4)
    assert optimizer.done(hardly)
    optimizer.revise(1, 0.5, noise_var=1e4)  # the best value says nothing any more
    assert not optimizer.done(Stop(gap=hardly.gap, chance=1.0))
    assert optimizer.done(hardly) == (optimizer.belief().chance(hardly.gap) >= hardly.chance)
    for trial in (1, 2, 3):
        optimizer.revise(trial, failed=True)
    assert not optimizer.done(sure)


def test_seconds_end_a_search() -> None:
    def slow(params: dict[str, Any]) -> float:
        time.sleep(0.03)
        return bowl(params)

    result = minimize(slow, LINE, 1000, seconds=0.05, progress=False, acquisition="random")
    assert result.nfev < 50
    assert result.message.endswith("made, then the 0.05 seconds were over")
    one = minimize(slow, LINE, 1000, seconds=1e-9, progress=False, acquisition="random")
    assert one.nfev == 1


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_impossible_seconds_are_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds must be a finite number above 0"):
        search(seconds=seconds)


@pytest.mark.parametrize("seconds", ["1", True, [1.0]])
def test_seconds_of_another_type_are_refused(seconds: Any) -> None:
    with pytest.raises(TypeError, match="seconds must be one real number"):
        search(seconds=seconds)


def test_optimizers_go_on_after_a_stop() -> None:
    optimizer = search(stop=EASY).optimizer
    assert isinstance(optimizer, Optimizer)
    assert optimizer.ask().state == "pending"


def test_under_constraints_paths_with_a_feasible_point_count() -> None:
    optimizer = told(several(CONSTRAINED, way="map"), 16)
    belief = optimizer.belief()
    assert len(belief.gaps) == len(belief.values) > 0
    assert belief.recommendation.chance >= 0.95
    for gap, chance in zip(np.quantile(belief.gaps, [0.2, 0.9]), (0.5, 0.5), strict=True):
        expected = np.mean(belief.gaps <= gap) >= chance
        assert optimizer.done(Stop(float(gap), chance)) == expected
    optimizer.ask()
    gaps = optimizer.info.gaps
    assert gaps is not None
    assert np.isfinite(gaps).any()


def test_nothing_is_won_before_the_constraints_are_likely_met() -> None:
    """However good the value of a recommendation is that is not likely to be feasible."""
    outcomes = {**CONSTRAINED, "load": Constraint(high=0.073)}
    optimizer = told(several(outcomes, way="map"), 8)
    belief = optimizer.belief()
    assert belief.recommendation.chance < 0.95
    assert 0 < belief.possible < 1
    assert len(belief.gaps) == len(belief.params) > 0
    assert belief.chance(1e6) == 1
    assert not optimizer.done(Stop(1e6, 0.01))


def test_no_chance_of_anything_without_a_feasible_sample() -> None:
    optimizer = told(several({**CONSTRAINED, "load": Constraint(high=-0.3)}, way="map"), 8)
    belief = optimizer.belief()
    assert (len(belief.gaps), belief.gap, belief.chance(1e6)) == (0, 0.0, 0.0)
    assert not optimizer.done(Stop(1e6, 0.01))


@pytest.mark.parametrize("outcomes", [FRONT, ALL])
def test_a_stop_is_refused_where_there_are_several_objectives(outcomes: dict[str, Any]) -> None:
    optimizer, calls = several(outcomes), []
    with pytest.raises(ValueError, match=r"stop needs one objective, and there are 'gain', 'cost'"):
        optimizer.done(EASY)
    with pytest.raises(ValueError, match="leave stop out and end the search by its evaluations"):
        minimize(calls.append, LINE, 3, outcomes=outcomes, stop=EASY, progress=False)  # type: ignore[arg-type]
    assert calls == []
