"""Optuna studies with several objectives, and with constraints."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from optpair import Constraint, Float, Hyperparameters, Objective, Optimizer, Settings, Space
from optpair.engine import step
from optpair.engine.engine import Engine
from optpair.engine.plate import Info
from optpair.integrations.optuna import NOISE_VAR, JESSampler
from optpair.results.front import Front
from optpair.trials.data import Data

pytestmark = pytest.mark.filterwarnings("ignore:.*set_metric_names is experimental")

TINY = Settings(
    initial=5,
    sets=3,
    pairs=2,
    features=64,
    candidates=64,
    path_candidates=64,
    starts=2,
    steps=4,
    moves=2,
)
QUICK: dict[str, Any] = {"seed": 0, "hyperparameters": "map", "settings": TINY}
SPACE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(0.0, 1.0),
    "y": FloatDistribution(0.0, 1.0),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What the sampler logs."""
    texts: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("optuna.optpair")
    logger.addHandler(handler)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield texts
    logger.removeHandler(handler)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Data]]:
    """The outcomes and the data that an engine was shown, ask by ask."""
    shown: list[tuple[Any, Data]] = []

    def suggest(engine: Engine, stream: object, memory: object, data: Data, *rest: object) -> Any:
        shown.append((dict(engine.outcomes), data))
        x = np.random.default_rng(len(shown)).uniform(size=engine.cube.dimensions)
        return x, memory, Info()

    monkeypatch.setattr(step, "suggest", suggest)
    return shown


def add(study: optuna.Study, x: float, *values: float, **options: Any) -> None:
    params = {"x": x, "y": 0.5}
    study.add_trial(
        create_trial(params=params, distributions=SPACE, values=list(values), **options)
    )


def both(trial: optuna.Trial) -> tuple[float, float]:
    """One is least at x = 0.2, the other at x = 0.8, both at y = 0.5."""
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    return (x - 0.2) ** 2 + (y - 0.5) ** 2, -((x - 0.8) ** 2) - (y - 0.5) ** 2


def limited(trial: optuna.Trial) -> float:
    """Least at x = 0.2, but x has to be at least 0.5."""
    value, _ = both(trial)
    trial.set_constraint("far", 0.5 - trial.params["x"])
    return value


def test_several_objectives_give_a_front() -> None:
    sampler = JESSampler(search_space=SPACE, **QUICK)
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.set_metric_names(["left", "right"])
    study.optimize(both, n_trials=9)
    front = sampler.recommend(study, reference={"left": 0.5, "right": -0.5})
    assert isinstance(front, Front)
    assert front.reference == {"left": 0.5, "right": -0.5}
    left, right = front.best_for({"left": 1}), front.best_for({"right": 1})
    assert abs(left.params["x"] - 0.2) < 0.15
    assert abs(right.params["x"] - 0.8) < 0.15
    assert right.means["right"] > left.means["right"]
    observed = {tuple(m.value for m in trial.outcomes.values()) for trial in front.observed}
    assert observed == {tuple(t.values) for t in study.best_trials}  # a repeat counts once
    belief = sampler.belief(study)
    assert set(belief.gap) == {"left", "right"}
    assert isinstance(belief.recommendation, Front)


def test_it_is_what_the_optimizer_says() -> None:
    """The same trials told to both, one objective of each direction and a constraint."""
    sampler = JESSampler(search_space=SPACE, **QUICK)
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    outcomes = {"0": "minimize", "1": "maximize", "far": Constraint(high=0)}
    own = Optimizer(
        Space({"x": Float(0, 1), "y": Float(0, 1)}),
        outcomes=outcomes,  # type: ignore[arg-type]
        **QUICK,
    )
    for i in range(8):
        x = i / 7
        add(study, x, x**2, -((1 - x) ** 2), constraints={"far": 0.4 - x})
        own.tell({"x": x, "y": 0.5}, {"0": x**2, "1": -((1 - x) ** 2), "far": 0.4 - x})
    assert str(sampler.recommend(study)) == str(own.recommend())


def test_a_constraint_is_met_by_the_recommendation() -> None:
    sampler = JESSampler(search_space=SPACE, **QUICK)
    study = optuna.create_study(sampler=sampler)
    study.optimize(limited, n_trials=9)
    best = sampler.recommend(study)
    assert best.chance >= 0.95
    assert 0.5 <= best.params["x"] < 0.6
    assert best.limits == {"far": Constraint(high=0)}
    assert "feasible       with a probability of" in str(best)
    assert best.observed.id == study.best_trial.number
    assert sampler.belief(study).possible == 1.0


def test_the_same_seed_gives_the_same_points() -> None:
    def points() -> list[dict[str, Any]]:
        study = optuna.create_study(sampler=JESSampler(**QUICK))
        study.optimize(limited, n_trials=7)
        return [trial.params for trial in study.trials]

    assert points() == points()


def test_constraints_appear_and_may_be_missing(seen: list[tuple[Any, Data]]) -> None:
    study = optuna.create_study(sampler=JESSampler(search_space=SPACE, **QUICK))
    add(study, 0.1, 1.0)
    study.ask(SPACE)
    assert seen[-1][0] == {"value": Objective("minimize")}
    add(study, 0.2, 2.0, constraints={"small": 0.5})
    add(study, 0.3, 3.0, constraints={"small": -0.5, "large": 7.0})
    study.ask(SPACE)
    outcomes, data = seen[-1]
    met = Constraint(high=0)
    assert outcomes == {"value": Objective("minimize"), "large": met, "small": met}
    np.testing.assert_array_equal(
        data.Y, [[-1.0, np.nan, np.nan], [-2.0, np.nan, -0.5], [-3.0, -7.0, 0.5]]
    )
    assert len(data.pending) == 1


def test_what_counts_as_failed_among_several(seen: list[tuple[Any, Data]]) -> None:
    sampler = JESSampler(search_space=SPACE, **QUICK)
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    add(study, 0.1, 1.0, 10.0)
    add(study, 0.2, float("inf"), 20.0)
    add(study, 0.3, 3.0, 30.0, constraints={"c": float("inf")})
    add(study, 0.4, 4.0, 40.0, constraints={"c": -float("inf")})
    study.tell(study.ask(SPACE), state=TrialState.FAIL)
    study.tell(study.ask(SPACE), state=TrialState.PRUNED)
    study.ask(SPACE)
    data = seen[-1][1]
    np.testing.assert_array_equal(data.Y, [[-1.0, 10.0, np.nan], [-4.0, 40.0, np.nan]])
    assert len(data.failed) == 3
    assert {0.2, 0.3} < set(data.failed[:, 0])


def constraints(trial: FrozenTrial) -> tuple[float, float]:
    return trial.user_attrs["a"], trial.user_attrs["b"]


def test_a_function_of_constraints_is_written_where_optuna_reads_it(
    seen: list[tuple[Any, Data]],
) -> None:
    sampler = JESSampler(search_space=SPACE, constraints_func=constraints, **QUICK)
    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=pickle.loads(pickle.dumps(sampler))
    )

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        both(trial)
        trial.set_user_attr("a", trial.number - 1.0)
        trial.set_user_attr("b", -3.0)
        if trial.number == 2:
            raise KeyError("no constraint is asked of what failed")
        return 5.0 - trial.number, 5.0 - trial.number

    study.optimize(objective, n_trials=4, catch=KeyError)
    assert [trial.constraints for trial in study.trials] == [
        {"0": -1.0, "1": -3.0},
        {"0": 0.0, "1": -3.0},
        {},
        {"0": 2.0, "1": -3.0},
    ]
    assert [trial.number for trial in study.best_trials] == [1]  # 3 is better, and breaks one
    outcomes, data = seen[-1]
    assert list(outcomes) == ["0", "1", "constraint 0", "constraint 1"]
    np.testing.assert_array_equal(data.Y[:, 2], [1.0, 0.0])


def test_a_constraints_function_is_a_function() -> None:
    with pytest.raises(TypeError, match="constraints_func must be a function of a trial"):
        JESSampler(constraints_func=[0.0])  # type: ignore[arg-type]


@pytest.mark.parametrize("returned", [0.5, None, ["high"], [float("nan")]])
def test_what_a_constraints_function_may_not_return(returned: Any) -> None:
    study = optuna.create_study(sampler=JESSampler(constraints_func=lambda _: returned, **QUICK))
    match = "must return a list of numbers, each at most 0 if the trial meets that constraint, and"
    with pytest.raises((TypeError, ValueError), match=match):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)


@pytest.mark.parametrize(
    ("metrics", "names"),
    [
        (["gain", "cost"], ["gain", "cost", "constraint cost", "constraint 1"]),
        (["same", "same"], ["0", "1", "cost", "constraint 1"]),
    ],
)
def test_no_two_outcomes_share_a_name(
    seen: list[tuple[Any, Data]], metrics: list[str], names: list[str]
) -> None:
    sampler = JESSampler(search_space=SPACE, **QUICK)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    add(study, 0.5, 1.0, 2.0, constraints={"1": 0.0, "cost": -1.0})
    study.ask(SPACE)
    assert list(seen[-1][0]) == ["0", "1", "cost", "constraint 1"]
    study.set_metric_names(metrics)
    study.ask(SPACE)
    assert list(seen[-1][0]) == names


def test_noise_by_name(seen: list[tuple[Any, Data]], said: list[str]) -> None:
    sampler = JESSampler(search_space=SPACE, noise=0, **QUICK)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    bound = {"small": 0.5}
    add(study, 0.1, 1.0, 2.0, constraints=bound)
    add(study, 0.2, 1.0, 2.0, constraints=bound, user_attrs={NOISE_VAR: {"1": 0.25, "small": 4}})
    add(study, 0.3, 1.0, 2.0, user_attrs={NOISE_VAR: 0.25})
    add(study, 0.4, 1.0, 2.0, user_attrs={NOISE_VAR: {"smal": 0.25}})
    study.ask(SPACE)
    nan = np.nan
    np.testing.assert_array_equal(
        seen[-1][1].noise_var, [[0, 0, nan], [0, 0.25, 4], [0, 0, nan], [0, 0, nan]]
    )
    first, second = said
    assert first.startswith(f"Trial 2's {NOISE_VAR} is not used: of several objectives it must be")
    assert second.endswith("not 'smal'; did you mean 'small'?")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 0.1}, "noise=0.1 is for one objective, and study 'two' has 2"),
        ({"acquisition": "mes"}, "acquisition 'mes' is not for several objectives; use one of"),
        (
            {"hyperparameters": Hyperparameters(*(np.ones(s) for s in ((1, 2), 1, 1, 1)))},
            "hyperparameters can be known of one outcome, not of 2",
        ),
    ],
)
def test_what_is_not_for_several_objectives_is_refused_at_the_first_trial(
    options: dict[str, Any], message: str
) -> None:
    study = optuna.create_study(
        study_name="two", directions=["minimize"] * 2, sampler=JESSampler(**{**QUICK, **options})
    )
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            study.ask(SPACE)


def test_what_is_not_for_constraints_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'mes' is not for an objective under constraints"):
        JESSampler(constraints_func=constraints, **{**QUICK, "acquisition": "mes"})


def test_a_page_of_several_outcomes(tmp_path: Path) -> None:
    sampler = JESSampler(search_space=SPACE, **QUICK)
    bound, two = (
        optuna.create_study(sampler=sampler),
        optuna.create_study(directions=["minimize"] * 2, sampler=sampler),
    )
    for x in (0.2, 0.5, 0.9):
        add(bound, x, 1.0 - x, constraints={"small": x - 0.6})
        add(two, x, x, 2.0 - x)
    found = sampler.report(bound, tmp_path / "bound.html")
    assert found["recommendation"]["chance"] == sampler.recommend(bound).chance
    assert "Beside the limits" in (tmp_path / "bound.html").read_text(encoding="utf-8")
    front = sampler.report(two, tmp_path / "two.html")["front"]
    assert len(front) == len(sampler.recommend(two))
    assert "The best compromises" in (tmp_path / "two.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="reference is for several objectives"):
        sampler.recommend(bound, reference={"value": 1.0})


def test_a_page_without_a_parameter_to_model(tmp_path: Path) -> None:
    sampler = JESSampler(**QUICK)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    with pytest.raises(ValueError, match="no parameter that all completed trials share"):
        sampler.report(study, tmp_path / "page.html")


def test_a_front_names_what_it_leaves_out() -> None:
    sampler = JESSampler(search_space={"x": SPACE["x"]}, **QUICK)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    for i in range(4):
        add(study, i / 3, i / 3, 1 - i / 3)
    front = sampler.recommend(study)
    assert front.left_out == {"y": "not in search_space"}
    assert str(front).endswith("\nleft out       y (not in search_space)")
    assert sampler.belief(study).recommendation.left_out == front.left_out


def accuracy(trial: optuna.Trial) -> float:
    luck = 0.02 * (trial.number % 2)
    return 0.99 - 0.02 * trial.suggest_float("x", 0, 1) - luck


def test_predictions_stay_within_bounds() -> None:
    highest = []
    for bounds in (None, (0, 1)):
        sampler = JESSampler(seed=0, bounds=bounds)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(accuracy, n_trials=4)
        assert sampler.recommend(study).interval[1] <= max(sampler.belief(study).values)
        highest.append(max(sampler.belief(study).values))
    assert highest[0] > 1 + 1e-6
    assert highest[1] == 1.0


def test_bounds_of_several_objectives_have_names() -> None:
    sampler = JESSampler(seed=0, bounds={"accuracy": (0, 1)})
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.set_metric_names(["accuracy", "size"])
    study.optimize(lambda trial: (accuracy(trial), trial.params["x"]), n_trials=2)
    objectives = sampler._reader.outcomes(study).objectives
    assert objectives["accuracy"].bounds == (0.0, 1.0)
    assert objectives["size"].bounds is None


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((0, 1), "bounds=.0.0, 1.0. are for one objective, and study .* has 2; give a dict like"),
        ({"accurcy": (0, 1)}, "bounds has 'accurcy', .* did you mean 'accuracy'"),
    ],
)
def test_bounds_without_a_place(bounds: Any, said: str) -> None:
    study = optuna.create_study(directions=["maximize", "minimize"])
    study.set_metric_names(["accuracy", "size"])
    study.sampler = JESSampler(seed=0, bounds=bounds)
    with pytest.raises(ValueError, match=said):
        study.ask(SPACE)


def test_bad_bounds() -> None:
    with pytest.raises(ValueError, match="bounds must increase"):
        JESSampler(bounds=(1, 0))
    with pytest.raises(TypeError, match="bounds must be a pair"):
        JESSampler(bounds=3)  # type: ignore[arg-type]
