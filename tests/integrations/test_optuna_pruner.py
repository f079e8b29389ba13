"""The pruner: trials end early where others teach more, and what they reported is no end."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from optpair import Stop
from optpair.integrations.optuna import NOISE_VAR, JESPruner, JESSampler
from optpair.integrations.optuna.steps import Steps, variance_of_one

SPACE = {"x": optuna.distributions.FloatDistribution(0, 1)}
EPOCHS = 27
PRUNED = {0.5: TrialState.PRUNED}


def curve(x: float, epoch: int) -> float:
    """Falls to (x − 0.3)² + 0.1, and later for a larger x."""
    return (x - 0.3) ** 2 + (1.0 + 0.5 * x) * (epoch + 1) ** -0.7


def searched(seed: int = 0, trials: int = 16, pruner: Any = None, **options: Any) -> Any:
    rng, epochs = np.random.default_rng(seed), [0]

    def objective(trial: optuna.Trial) -> float:
        x, luck = trial.suggest_float("x", 0, 1), 0.02 * rng.standard_normal()
        for epoch in range(EPOCHS):
            epochs[0] += 1
            value = curve(x, epoch) + luck
            trial.report(value, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    sampler = JESSampler(seed=seed, search_space=SPACE, **options)
    study = optuna.create_study(sampler=sampler, pruner=pruner or JESPruner())
    study.optimize(objective, n_trials=trials)
    return study, epochs[0] / EPOCHS


@pytest.fixture(scope="module")
def pruned() -> Any:
    return searched()


def test_the_same_answer_for_less_than_half_of_the_epochs(pruned: Any) -> None:
    study, spent = pruned
    assert spent < 8  # of 16 whole trials
    assert [t.state for t in study.trials[:4]] == [TrialState.COMPLETE] * 4
    assert sum(t.state == TrialState.PRUNED for t in study.trials) > 6
    best = study.sampler.recommend(study)
    xs = np.linspace(0, 1, 1001)
    truth = np.array([curve(x, EPOCHS - 1) for x in xs])
    assert set(best.params) == {"x"}
    assert curve(best.params["x"], EPOCHS - 1) < truth.min() + 0.02
    assert best.interval[0] <= curve(best.params["x"], EPOCHS - 1) <= best.interval[1]


@pytest.mark.parametrize("seed", range(4))
def test_a_short_study_does_not_take_the_parameter_for_luck(seed: int) -> None:
    """Without noise x alone sets curves apart, whatever the first few of them seemed to say."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for epoch in range(EPOCHS):
            loss = (x - 0.3) ** 2 + (1 + epoch) ** -0.7
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return loss

    sampler = JESSampler(seed=seed)
    study = optuna.create_study(sampler=sampler, pruner=JESPruner())
    study.optimize(objective, n_trials=16)
    best = sampler.recommend(study)
    assert best.params["x"] == pytest.approx(0.3, abs=0.05)
    assert best.mean == pytest.approx(EPOCHS**-0.7, abs=0.01)


def test_trials_end_at_the_levels_only(pruned: Any) -> None:
    study, _ = pruned
    last = [max(t.intermediate_values) + 1 for t in study.trials]
    assert set(last) <= {1, 3, 9, 27}
    assert Steps.of(study.trials) == Steps(0, 27)


def test_the_model_has_looks_and_no_false_ends(pruned: Any) -> None:
    study, _ = pruned
    sampler = study.sampler
    with sampler._reader.lock:
        model = sampler._reader.read(study, SPACE)
        data = model.data(study)
    assert data.told == len(study.trials)
    target = data.points[:, -1] == 1.0
    assert target.sum() == sum(t.state == TrialState.COMPLETE for t in study.trials)
    assert len(data.X) > data.told
    assert not sampler.done(study, Stop(gap=1e-9))
    assert sampler.belief(study).params[0].keys() == {"x"}


def test_the_same_seed_prunes_the_same(pruned: Any) -> None:
    study, spent = pruned
    again, as_much = searched()
    assert spent == as_much
    assert [t.params for t in again.trials] == [t.params for t in study.trials]
    resumed = pickle.loads(pickle.dumps(study.sampler))
    there, here = (s.recommend(study).params["x"] for s in (resumed, study.sampler))
    assert abs(there - here) < 0.1  # its chains start anew


def test_other_samplers_may_be_pruned_too() -> None:
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0), pruner=JESPruner(complete=3)
    )

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for epoch in range(9):
            trial.report(curve(x, epoch), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return curve(x, 8)

    study.optimize(objective, n_trials=14)
    states = [t.state for t in study.trials]
    assert states[:3] == [TrialState.COMPLETE] * 3
    assert TrialState.PRUNED in states
    best = min(t.value for t in study.trials if t.state == TrialState.COMPLETE)
    assert best < curve(0.3, 8) + 0.05


def test_other_pruners_leave_no_false_ends() -> None:
    study, _ = searched(pruner=optuna.pruners.MedianPruner(n_startup_trials=4))
    assert any(t.state == TrialState.PRUNED for t in study.trials)
    best = study.sampler.recommend(study)
    assert best.interval[0] <= curve(best.params["x"], EPOCHS - 1) <= best.interval[1]


def test_a_study_without_reports_is_as_it_was() -> None:
    studies = []
    for pruner in (JESPruner(), optuna.pruners.NopPruner()):
        study = optuna.create_study(sampler=JESSampler(seed=0), pruner=pruner)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=6)
        studies.append([t.params for t in study.trials])
    assert studies[0] == studies[1]


@pytest.mark.parametrize("by_function", [False, True])
def test_pruning_under_a_constraint(by_function: bool, tmp_path: Any) -> None:
    """x may be 0.25 at most, and is known from the first epoch on."""
    options: dict[str, Any] = {}
    if by_function:
        options["constraints_func"] = lambda trial: [trial.params["x"] - 0.25]
    sampler, fits = JESSampler(seed=0, search_space=SPACE, **options), [0]
    study = optuna.create_study(sampler=sampler, pruner=JESPruner())

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if not by_function:
            trial.set_constraint("limit", x - 0.25)
        for epoch in range(EPOCHS):
            fits[0] += 1
            trial.report(curve(x, epoch), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return curve(x, epoch)

    study.optimize(objective, n_trials=14)
    assert fits[0] < 0.9 * 14 * EPOCHS  # many trials at the limit are the best so far, by a hair
    best = sampler.recommend(study)
    assert best.params["x"] == pytest.approx(0.25, abs=0.01)
    assert best.chance >= 0.95
    model = sampler._reader.read(study, SPACE)
    assert model.domain.steps is not None
    for trial in model.told():  # a limit is known of what was seen last
        assert len(trial.outcomes) == 2
        assert all(len(look.outcomes) == 1 for look in trial.looks)
    assert len(model.told()) == 14
    sampler.report(study, tmp_path / "page.html")


def test_where_steps_are_not_modelled_a_pruned_trial_teaches_nothing() -> None:
    sampler = JESSampler(seed=0, search_space=SPACE)
    study = optuna.create_study(sampler=sampler, directions=["minimize", "minimize"])
    for x in (0.1, 0.5, 0.9):
        trial = study.ask(SPACE)
        study.tell(trial, [curve(x, 3), x] if x != 0.5 else None, state=PRUNED.get(x))
    model = sampler._reader.read(study, SPACE)
    assert model.domain.steps is None
    assert [trial.id for trial in model.told()] == [0, 2]


def test_several_objectives_are_not_pruned() -> None:
    sampler = JESSampler(seed=0, search_space=SPACE)
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.optimize(lambda t: (t.suggest_float("x", 0, 1), t.params["x"]), n_trials=4)
    assert len(study.trials) == 4


def trial_of(values: dict[int, float], state: TrialState = TrialState.COMPLETE) -> Any:
    return create_trial(
        params={"x": 0.5}, distributions=SPACE, value=1.0, intermediate_values=values, state=state
    )


def test_steps() -> None:
    whole = trial_of(dict.fromkeys(range(10, 20), 1.0))
    cut = trial_of({10: 1.0, 30: 2.0}, TrialState.PRUNED)
    assert Steps.of([]) is None
    assert Steps.of([trial_of({})]) is None
    assert Steps.of([trial_of({5: 1.0})]) is None  # one step is the end
    assert Steps.of([whole, cut]) == Steps(10, 10)
    assert Steps.of([cut]) == Steps(10, 22)  # it has not come to its end
    assert Steps.of([trial_of({1: np.nan, 3: np.inf, 4: 1.0, 9: 2.0})]) == Steps(4, 6)
    assert Steps(0, 81).levels == [1, 3, 9, 27, 81]
    assert Steps(0, 5).levels == [1, 2, 5]
    assert Steps(10, 10).looks(whole).keys() == {1, 2, 4, 10}
    assert Steps(10, 10).looks(cut).keys() == {1}


FOLDS, LOUD, QUIET = 9, 0.3, 0.02  # the noise of one fold, and of all of them together


@pytest.fixture(scope="module")
def folded() -> Any:
    """A study that reports running means of folds; every third trial was pruned at the first."""
    rng = np.random.default_rng(0)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        apart = rng.standard_normal(FOLDS)
        scores = 4 * (x - 0.3) ** 2 + LOUD * (apart - apart.mean()) + QUIET * rng.standard_normal()
        means = np.cumsum(scores) / np.arange(1, FOLDS + 1)
        for step, mean in enumerate(means[: 1 if trial.number % 3 == 2 else FOLDS]):
            trial.report(mean, step)
        if trial.number % 3 == 2:
            raise optuna.TrialPruned
        return float(means[-1])

    study.optimize(objective, n_trials=36)
    return study


def test_the_noise_of_running_means_falls_with_the_step(folded: Any) -> None:
    whole = [t for t in folded.trials if t.state == TrialState.COMPLETE]
    one = variance_of_one(folded.trials)
    assert one is not None
    # the median of 24 variances with 8 degrees of freedom: a standard error of about 14 %
    assert one == pytest.approx(LOUD**2, rel=0.4)
    assert variance_of_one(whole) == one
    sampler = JESSampler(seed=0, search_space=SPACE, running_means=True)
    data = sampler._reader.read(folded, SPACE).data(folded)
    steps = np.round(FOLDS ** data.X[:, -1]).astype(int)  # on their scale
    expected = np.where(steps == FOLDS, np.nan, one / steps)
    np.testing.assert_allclose(data.noise_var[:, 0], expected)
    assert set(steps) == {1, 3, 9}


def test_running_means_make_intervals_narrower(folded: Any) -> None:
    widths = []
    for running_means in (False, True):
        sampler = JESSampler(seed=0, search_space=SPACE, running_means=running_means)
        best = sampler.recommend(folded)
        low, high = best.interval
        assert low <= 4 * (best.params["x"] - 0.3) ** 2 <= high
        widths.append(high - low)
    assert widths[1] < widths[0]


def test_variance_of_one() -> None:
    scores = [1.0, 3.0, 2.0, 6.0]
    means = dict(enumerate(np.cumsum(scores) / np.arange(1, 5)))
    middle = (1 - 2 / 27) ** 3  # of chi-square with 3 degrees of freedom, over 3
    found = variance_of_one([trial_of(means)])
    assert found == pytest.approx(np.var(scores, ddof=1) / middle)
    assert variance_of_one([]) is None
    assert variance_of_one([trial_of(means, TrialState.PRUNED)]) is None
    assert variance_of_one([trial_of({0: 1.0, 1: 2.0, 3: 1.0})]) is None  # a step is missing
    assert variance_of_one([trial_of(dict.fromkeys(range(5), 1.0))]) is None  # no spread


def test_a_noise_that_was_told_counts() -> None:
    study = optuna.create_study()
    for number in range(3):
        trial = study.ask(SPACE)
        for step, value in enumerate((1.0, 2.0 + number, 1.5)):
            trial.report(value, step)
        trial.set_user_attr(NOISE_VAR, 0.25)
        pruned = number == 2
        study.tell(trial, None if pruned else 1.5, TrialState.PRUNED if pruned else None)
    sampler = JESSampler(seed=0, search_space=SPACE, running_means=True)
    data = sampler._reader.read(study, SPACE).data(study)
    target = data.X[:, -1] == 1.0
    assert target.sum() == 3  # the third trial was pruned at its last step
    assert set(data.noise_var[target, 0][:2]) == {0.25}


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"complete": 0}, ValueError),
        ({"complete": 2.5}, TypeError),
        ({"complete": True}, TypeError),
        ({"sampler": 3}, TypeError),
    ],
)
def test_bad_options(options: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match="must be"):
        JESPruner(**options)


def test_running_means_are_a_yes_or_no() -> None:
    with pytest.raises(TypeError, match="running_means must be True or False, not 'yes'"):
        JESSampler(running_means="yes")  # type: ignore[arg-type]


def test_pages_and_recommendations_have_the_users_parameters_alone(tmp_path: Any) -> None:
    """Not the steps that are modelled beside them; even where one has the same name."""

    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["still", "moving"])
        step = trial.suggest_float("step", 0, 1) if kind == "moving" else 0.9
        for epoch in range(4):
            trial.report(value := curve(step, epoch), epoch)
            if trial.number % 3 == 2:
                raise optuna.TrialPruned
        return value

    sampler = JESSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=14)
    assert list(sampler.recommend(study).params) == ["kind", "step"]  # in the objective's order
    subject = sampler.subject(study)
    assert subject.model is not None
    assert len(subject.model.space) == 3
    assert {row.number: dict(row.params) for row in subject.rows} == {
        t.number: t.params for t in study.trials
    }
    said = sampler.report(study, tmp_path / "page.html")
    assert said["recommendation"]["params"].keys() == said["matters"].keys() == {"kind", "step"}
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "14 trials: 10 told, 4 pruned · 2 parameters" in text
    assert "optpair:step" not in text
