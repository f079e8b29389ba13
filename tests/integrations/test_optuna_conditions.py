"""Conditions of Optuna studies: learnt from which parameters appear together."""

from __future__ import annotations

import math
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, Trial, TrialState

from optpair import Categorical, Float, Space
from optpair.integrations.optuna import JESPruner, JESSampler
from optpair.integrations.optuna.conditions import alike, learn, learn_from


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


def test_pruned_trials_show_their_branch() -> None:
    """A branch of which every trial was pruned is modelled as any other."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for number in range(12):
        trial = study.ask()
        kind = trial.suggest_categorical("kind", ["short", "long"])
        if kind == "short":
            study.tell(trial, trial.suggest_float("x", 0, 1))
            continue
        trial.suggest_float("y", 0, 1)
        if number % 2:
            trial.report(0.5, 0)
        study.tell(trial, state=TrialState.PRUNED)
    whole = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert any(t.intermediate_values for t in study.trials)
    sampler = JESSampler(seed=0)
    sampler._reader.check(study)
    assert sampler._reader.modelled(study).keys() == {"kind", "x", "y"}
    assert sampler._reader._shown(study).conditions == {
        "x": ("kind", (0.0,)),
        "y": ("kind", (1.0,)),
    }
    assert sampler._reader.left_out(study) == {}
    assert learn_from(whole, whole).distributions.keys() == {"kind", "x"}


def test_a_trial_pruned_before_its_last_parameter_spoils_nothing() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for number in range(6):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        trial.report(0.5, 0)
        if number == 3:
            study.tell(trial, state=TrialState.PRUNED)
            continue
        study.tell(trial, trial.suggest_float("late", 0, 1))
    sampler = JESSampler(seed=0)
    sampler._reader.check(study)
    assert sampler._reader.modelled(study).keys() == {"x", "late"}


def test_each_branch_has_a_whole_trial_before_any_of_it_is_pruned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the model says: without one whole trial, nobody knows how such a trial ends."""
    monkeypatch.setattr("optpair.integrations.optuna.model.goes_on", lambda *_: False)

    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["steady", "late"])
        x = trial.suggest_float("x", 0, 1) if kind == "steady" else trial.suggest_float("y", 0, 1)
        for step in range(9):
            trial.report(x, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    space = Space(
        {
            "kind": Categorical(["steady", "late"]),
            "x": Float(0, 1, when={"kind": "steady"}),
            "y": Float(0, 1, when={"kind": "late"}),
        }
    )
    sampler = JESSampler(seed=0, search_space=space)
    study = optuna.create_study(sampler=sampler, pruner=JESPruner(complete=1))
    for kind, name in [("steady", "x"), ("steady", "x"), ("late", "y"), ("late", "y")]:
        study.enqueue_trial({"kind": kind, name: 0.5})
    study.optimize(objective, n_trials=4)
    ends = [trial.state == TrialState.COMPLETE for trial in study.trials]
    assert ends == [True, False, True, False]
