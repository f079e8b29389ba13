"""Conditions of Optuna studies: learnt from which parameters appear together."""

from __future__ import annotations

import math
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, Trial

from optpair.integrations.optuna import JESSampler
from optpair.integrations.optuna.conditions import alike, learn


def tree(trial: Any) -> float:
    x = trial.suggest_float("x", 0, 1)
    kernel = trial.suggest_categorical("kernel", ["linear", "rbf", "poly"])
    if kernel == "linear":
        return float((x - 0.3) ** 2 + 0.3)
    gamma = trial.suggest_float("gamma", 1e-3, 10, log=True)
    miss = (x - 0.3) ** 2 + (math.log10(gamma) + 1) ** 2 / 10
    if kernel == "rbf":
        return float(miss + 0.2 + 0 * trial.suggest_int("only", 3, 3))
    degree = trial.suggest_int("degree", 2, 5)
    extra = trial.suggest_float("tail", 0, 1) if degree == 3 else 0.5
    return float(miss + 0.1 * abs(degree - 3) + (extra - 0.8) ** 2)


def searched(trials: int, seed: int) -> tuple[optuna.Study, JESSampler]:
    sampler = JESSampler(seed=seed)
    study = optuna.create_study(sampler=sampler)
    study.optimize(tree, n_trials=trials)
    return study, sampler


def runs(params: dict[str, Any]) -> None:
    """Every active parameter is named, and no other."""
    trial = optuna.trial.FixedTrial(params)
    tree(trial)
    assert set(trial.params) == set(params)


def test_a_nested_condition_is_learnt() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(tree, n_trials=60)
    trials: list[FrozenTrial] = study.trials
    learnt = learn(trials, alike(trials))
    assert learnt["gamma"] == ("kernel", (1.0, 2.0))
    assert learnt["degree"] == ("kernel", (2.0,))
    assert learnt["only"] == ("kernel", (1.0,))
    assert learnt["tail"] == ("degree", (3.0,))
    assert set(learnt) == {"gamma", "degree", "only", "tail"}


def test_what_nothing_explains_is_not_learnt() -> None:
    def odd(trial: Trial) -> float:
        trial.suggest_categorical("a", ["p", "q"])
        return trial.suggest_float("u", 0, 1) if trial.number % 3 else 0.0

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(odd, n_trials=20)
    assert learn(study.trials, alike(study.trials)) == {}


@pytest.mark.parametrize("seed", [0, 1])
def test_suggestions_are_modelled_and_the_recommendation_runs(seed: int) -> None:
    study, sampler = searched(18, seed)
    assert not set(sampler._reader.left_out(study))
    model = sampler._reader.answering(study)[0]
    assert len(model.told()) == 18  # every trial is modelled
    found = sampler.recommend(study)
    runs(dict(found.params))
    names = ("kernel", "degree")
    tried = {name: {trial.params.get(name) for trial in study.trials} for name in names}
    for params in sampler.belief(study).params:
        if all(params.get(name) in tried[name] for name in names):  # of others nobody has seen any
            runs(dict(params))


def test_a_page_of_a_conditional_study(tmp_path: Any) -> None:
    study, sampler = searched(12, 2)
    sampler.report(study, tmp_path / "study.html")
    assert "gamma" in (tmp_path / "study.html").read_text()
