"""Trials that are taken up again in Optuna: looks at one run, each a trial of its own."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from optpair import Fidelity, Float, Optimizer, Settings, Space
from optpair.integrations.optuna import CONTINUES, COST, JESSampler
from optpair.integrations.optuna.attributes import revise
from optpair.integrations.optuna.model import StudyModel
from shell_cases import TINY

optuna.logging.set_verbosity(optuna.logging.WARNING)
SPACE = Space({"x": Float(0, 1), "epochs": Fidelity(1, 81, log=True)})
SETTINGS = Settings(**{**TINY, "exploit": 0.0})


def always(trial: optuna.trial.FrozenTrial) -> bool:
    """It left a checkpoint."""
    return trial.params["x"] <= 1


def loss(x: float, epochs: int) -> float:
    return (x - 0.3) ** 2 + 2 * math.exp(-epochs / 20)


def searched(trials: int = 24, **options: Any) -> Any:
    """A study, and what its objective has seen of each trial."""
    options = {"seed": 0, "search_space": SPACE, "settings": SETTINGS, **options}
    study, seen = optuna.create_study(sampler=JESSampler(**options)), []

    def objective(trial: optuna.Trial) -> float:
        x, epochs = trial.suggest_float("x", 0, 1), trial.suggest_int("epochs", 1, 81, log=True)
        before = trial.user_attrs.get(CONTINUES)
        done = 0 if before is None else study.trials[before].params["epochs"]
        trial.set_user_attr(COST, float(epochs - done))
        seen.append(before)
        return loss(x, epochs)

    study.optimize(objective, n_trials=trials)
    return study, seen


def model_of(study: Any) -> StudyModel:
    sampler = study.sampler
    return sampler._reader.read(study, sampler._options.distributions)


@pytest.fixture(scope="module")
def study() -> Any:
    return searched(continuable=always)


def test_a_trial_that_goes_on_is_an_earlier_one_at_a_higher_fidelity(study: Any) -> None:
    study, seen = study
    on = [trial for trial in study.trials if CONTINUES in trial.user_attrs]
    assert len(on) >= 3
    assert seen == [trial.user_attrs.get(CONTINUES) for trial in study.trials]
    before = [study.trials[trial.user_attrs[CONTINUES]] for trial in on]
    for now, was in zip(on, before, strict=True):
        assert now.params["x"] == was.params["x"]  # to the last digit
        assert now.params["epochs"] == 81 or now.params["epochs"] >= 3 * was.params["epochs"]
    assert len({trial.number for trial in before}) == len(before)  # each at most once


def test_the_model_takes_looks_at_one_run_as_the_optimizer_does(study: Any) -> None:
    study, _ = study
    opt, ids = Optimizer(SPACE, seed=0, settings=SETTINGS), {}
    left = {trial.user_attrs.get(CONTINUES) for trial in study.trials}
    for number in [trial.number for trial in study.trials if trial.number not in left]:
        chain = [number]
        while (before := study.trials[chain[0]].user_attrs.get(CONTINUES)) is not None:
            chain.insert(0, before)
        looks = [study.trials[n] for n in chain]
        opt.tell(looks[0].params, looks[0].value, cost=looks[0].user_attrs[COST])
        ids[number] = len(opt.trials) - 1
        for look in looks[1:]:
            at = {"epochs": look.params["epochs"]}
            opt.tell(ids[number], look.value, at=at, cost=look.user_attrs[COST])
    ours, theirs = model_of(study).data(study), opt._history.data()
    for name in ("X", "Y", "trial", "cost"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert ours.told < len(study.trials) == len(ours.X)
    assert np.allclose(ours.cost, 81 ** ours.X[:, 1])  # what a run to there has cost in all
    trial = study.sampler.recommend(study).observed
    assert study.trials[trial.id].params["epochs"] == 81


def test_without_the_function_nothing_is_taken_up() -> None:
    plain, never = searched(10), searched(10, continuable=lambda _: False)
    assert [t.params for t in plain[0].trials] == [t.params for t in never[0].trials]
    assert set(plain[1]) == {None}


def test_the_same_seed_takes_up_the_same(study: Any) -> None:
    again, seen = searched(12, continuable=always)
    assert seen == study[1][:12]
    assert [t.params for t in again.trials] == [t.params for t in study[0].trials[:12]]
    assert pickle.loads(pickle.dumps(again.sampler))._continuable is always


def test_trials_under_a_constraint_are_taken_up_and_shown(tmp_path: Any) -> None:
    """A trial that was continued is a look of the one that continues it, on the page as well."""
    options = {"seed": 0, "search_space": SPACE, "settings": SETTINGS, "continuable": always}
    study = optuna.create_study(sampler=JESSampler(**options))

    def objective(trial: optuna.Trial) -> float:
        x, epochs = trial.suggest_float("x", 0, 1), trial.suggest_int("epochs", 1, 81, log=True)
        trial.set_constraint("limit", x - 0.25)
        return loss(x, epochs)

    study.optimize(objective, n_trials=16)
    on = [t for t in study.trials if CONTINUES in t.user_attrs]
    assert on
    best = study.sampler.recommend(study)
    assert best.params["epochs"] == 81
    assert best.params["x"] == pytest.approx(0.25, abs=0.05)
    assert len(model_of(study).told()) == 16 - len(on)
    study.sampler.report(study, tmp_path / "page.html")
    assert "continued" in (tmp_path / "page.html").read_text(encoding="utf-8")


def resting(study: Any) -> list[int]:
    model = model_of(study)
    return [trial.number for _, trial in model.resting(study, always)]


def test_who_can_be_taken_up() -> None:
    study = optuna.create_study(
        sampler=JESSampler(seed=0, search_space=SPACE, continuable=always, settings=SETTINGS)
    )

    known = study.sampler._options.distributions

    def add(
        epochs: int, before: int | None = None, state: TrialState = TrialState.COMPLETE
    ) -> None:
        trial = study.ask(known)
        params = {"x": 0.5, "epochs": epochs}
        study.add_trial(
            optuna.create_trial(
                params=params,
                distributions=known,
                value=1.0 if state == TrialState.COMPLETE else None,
                user_attrs={} if before is None else {CONTINUES: before},
                state=state,
                system_attrs={"optpair:failed": True} if state == TrialState.FAIL else {},
            )
        )
        study.tell(trial, state=TrialState.FAIL)  # stale: it teaches nothing

    add(1)
    assert resting(study) == [1]
    add(9, before=1)
    assert resting(study) == [3]  # the run is where it was seen last
    add(81, before=3, state=TrialState.FAIL)
    assert resting(study) == []  # it was tried, and failed
    add(81)
    assert resting(study) == []  # it is at the target
    add(3)
    assert resting(study) == [9]
    study.enqueue_trial({"x": 0.5, "epochs": 81}, user_attrs={CONTINUES: 9})
    assert resting(study) == []  # somebody is at it


def test_a_revision_reaches_earlier_looks(study: Any) -> None:
    study, _ = searched(14, continuable=always)
    before = next(t.user_attrs[CONTINUES] for t in study.trials if CONTINUES in t.user_attrs)
    revise(study, before, 7.25)
    assert 7.25 in -model_of(study).data(study).Y
    revise(study, before, None)  # it failed: what goes on from it is a run of its own
    model = model_of(study)
    assert model.data(study).told == len(model.told())
    assert len(model.data(study).failed) == 1


def test_a_page_shows_runs(study: Any) -> None:
    study, _ = study
    subject = study.sampler.subject(study)
    states = [row.state for row in subject.rows]
    on = [trial for trial in study.trials if CONTINUES in trial.user_attrs]
    assert states.count("continued") == len(on)
    assert len(subject.told) == subject.model.answers.data.told
    assert subject.step == "epochs"
    row = subject.rows[on[-1].number]
    assert row.steps[float(on[-1].params["epochs"])] == on[-1].value
    before = study.trials[on[-1].user_attrs[CONTINUES]]
    assert row.steps[float(before.params["epochs"])] == before.value


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="continuable must be a function of a trial, not True"):
        JESSampler(continuable=True)  # type: ignore[arg-type]
