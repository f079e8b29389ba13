"""Optuna: asks in a row that share a model, and the callback that ends a study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution

from optpair import Settings, Space, Stop
from optpair.engine import sampling
from optpair.integrations.optuna import JESSampler, StopCallback

TINY = Settings(
    sets=3, pairs=2, features=64, candidates=64, path_candidates=64, starts=2, steps=4, moves=2
)
SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(0.0, 1.0)}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def bowl(trial: optuna.Trial) -> float:
    return 4 * (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2


def tiny(**settings: Any) -> JESSampler:
    return JESSampler(seed=0, search_space=SPACE, settings=TINY, **settings)


def asked(study: optuna.Study, count: int) -> list[optuna.Trial]:
    trials = [study.ask() for _ in range(count)]
    for trial in trials:
        trial.suggest_float("x", 0.0, 1.0)
    return trials


def test_asks_in_a_row_share_what_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    inner = sampling.find_optima

    def optima(*args: Any) -> Any:
        made.append(1)
        return inner(*args)

    study = optuna.create_study(sampler=tiny())
    study.optimize(bowl, n_trials=4)
    monkeypatch.setattr(sampling, "find_optima", optima)
    batch = asked(study, 5)
    points = np.sort([trial.params["x"] for trial in batch])
    assert np.diff(points).min() >= 1e-3
    assert len(made) == 1
    study.tell(batch[0], 0.5)  # a value: the next ask looks anew
    asked(study, 1)
    assert len(made) == 2
    asked(study, 1)
    assert len(made) == 2
    study.tell(batch[2], state=optuna.trial.TrialState.FAIL)
    asked(study, 1)
    assert len(made) == 3


def test_batches_follow_the_seed() -> None:
    found = []
    for _ in range(2):
        study = optuna.create_study(sampler=tiny())
        study.optimize(bowl, n_trials=4)
        found.append([trial.params["x"] for trial in asked(study, 4)])
    assert found[0] == found[1]


def test_the_callback_ends_a_study() -> None:
    study = optuna.create_study(sampler=tiny())
    study.optimize(bowl, n_trials=20, callbacks=[StopCallback(Stop(0.3, 0.8))])
    assert 2 < len(study.trials) < 20
    belief = study.sampler.belief(study)  # type: ignore[attr-defined]
    assert belief.chance(0.3) >= 0.8


def test_the_callback_asks_a_model_of_its_own_where_there_is_none() -> None:
    random = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=random)
    study.optimize(bowl, n_trials=20, callbacks=[StopCallback(Stop(1e9), sampler=tiny())])
    assert len(study.trials) == 3  # the first after a design of two
    nothing = optuna.create_study(sampler=random)
    nothing.optimize(lambda trial: 1.0, n_trials=4, callbacks=[StopCallback(Stop(1e9))])
    assert len(nothing.trials) == 4  # no parameter, no model


def test_how_many_more_trials_a_study_takes() -> None:
    study, stop, sampler = optuna.create_study(sampler=tiny()), Stop(0.02), tiny()
    assert sampler.until(study, stop) is None
    study.optimize(bowl, n_trials=4)
    belief, more = study.sampler.belief(study), sampler.until(study, stop)  # type: ignore[attr-defined]
    assert more
    assert belief.chance(stop.gap) < stop.chance
    assert sampler.until(study, Stop(1e9)) == 0
    nothing = optuna.create_study(sampler=tiny())
    nothing.optimize(lambda trial: 1.0, n_trials=1)
    assert JESSampler(seed=0).until(nothing, stop) is None
    with pytest.raises(TypeError, match="stop must be a Stop"):
        sampler.until(study, 0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0.1, None, "Stop"])
def test_wrong_callbacks_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="stop must be a Stop"):
        StopCallback(wrong)
    with pytest.raises(TypeError, match="sampler must be a JESSampler"):
        StopCallback(Stop(0.1), sampler=wrong or "tpe")


def test_a_study_ends_once_every_row_has_been_tried() -> None:
    space = Space.of_rows([{"x": i / 4} for i in range(5)], repeat=False)
    study = optuna.create_study(sampler=JESSampler(seed=0, search_space=space, settings=TINY))
    study.optimize(bowl, n_trials=9)
    assert sorted(trial.params["x"] for trial in study.trials) == [i / 4 for i in range(5)]
    study = optuna.create_study(sampler=JESSampler(seed=0, search_space=space, settings=TINY))
    for _ in range(5):  # nothing can be stopped where nobody optimises
        trial = study.ask()
        study.tell(trial, bowl(trial))
    with pytest.raises(ValueError, match="all 5 rows have been tried"):
        study.ask().suggest_float("x", 0.0, 1.0)
