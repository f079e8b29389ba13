"""Parameters of a study that are given, and not chosen."""

from __future__ import annotations

from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from optpair import Categorical, Context, Float, Settings, Space, Stop  # noqa: E402
from optpair.integrations.optuna import JESPruner, JESSampler, StopCallback  # noqa: E402

QUICK = Settings(sets=6, pairs=4)
SPACE = {
    "x": optuna.distributions.FloatDistribution(0, 1),
    "site": optuna.distributions.CategoricalDistribution(["A", "B"]),
}


def objective(trial: Any) -> float:
    best = {"A": 0.2, "B": 0.8}[trial.suggest_categorical("site", ["A", "B"])]
    return float((trial.suggest_float("x", 0, 1) - best) ** 2)


@pytest.fixture(scope="module")
def study() -> Any:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = optuna.create_study(sampler=JESSampler(seed=0, settings=QUICK, search_space=SPACE))
    for i in range(14):
        made.enqueue_trial({"site": "AB"[i % 2]})
    made.optimize(objective, n_trials=14)
    return made


def test_what_is_not_given_is_chosen_for_what_is(study: Any) -> None:
    assert [t.params["site"] for t in study.trials] == ["A", "B"] * 7
    late = [t for t in study.trials if t.number >= 8]
    near = [abs(t.params["x"] - {"A": 0.2, "B": 0.8}[t.params["site"]]) < 0.15 for t in late]
    assert sum(near) >= 4


def test_an_answer_is_for_a_context(study: Any) -> None:
    for site, best in (("A", 0.2), ("B", 0.8)):
        found = study.sampler.recommend(study, context={"site": site})
        assert found.params["site"] == site
        assert found.params["x"] == pytest.approx(best, abs=0.05)
    assert study.sampler.recommend(study).params["site"] in "AB"


@pytest.mark.parametrize(
    ("context", "kind", "message"),
    [
        ("A", TypeError, "context must be a dict"),
        ({"place": "A"}, ValueError, "context has 'place', which is not modelled; there are"),
        ({"site": "C"}, ValueError, "cannot be fixed: a value is not legal"),
        ({"x": 7.0}, ValueError, "cannot be fixed"),
    ],
)
def test_what_is_no_context_is_refused(
    study: Any, context: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        study.sampler.recommend(study, context=context)


# --- a Context among the parameters ---------------------------------------------------------------

GIVEN = Space({"x": Float(0, 1), "site": Context(["A", "B"]), "heat": Context(-10, 40)})


def sited(trials: int = 10, **options: Any) -> Any:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = JESSampler(seed=0, settings=QUICK, search_space=GIVEN, **options)
    made = optuna.create_study(sampler=sampler)
    for i in range(trials):
        made.enqueue_trial({"site": "AB"[i % 2], "heat": 20.0 + i / 3})
    made.optimize(lambda t: objective(t) + 0 * t.suggest_float("heat", -10, 40), n_trials=trials)
    return made


@pytest.fixture(scope="module")
def given() -> Any:
    return sited()


def test_a_context_is_given_to_the_last_digit(given: Any) -> None:
    assert [t.params["heat"] for t in given.trials] == [20.0 + i / 3 for i in range(10)]
    late = {t.params["site"]: t.params["x"] for t in given.trials[-2:]}
    assert late["A"] < late["B"]


def test_an_answer_needs_every_context(given: Any) -> None:
    sampler, there = given.sampler, {"site": "B", "heat": 25.0}
    assert sampler.recommend(given, context=there).params["heat"] == pytest.approx(25.0)
    assert sampler.belief(given, context=there).params[0]["site"] == "B"
    assert not sampler.done(given, Stop(gap=1e-12), context=there)
    for ask in (sampler.recommend, sampler.belief):
        with pytest.raises(ValueError, match="context is missing: 'site', 'heat' must be given"):
            ask(given)
        with pytest.raises(ValueError, match="context is missing 'heat'"):
            ask(given, context={"site": "A"})
        with pytest.raises(ValueError, match=r"heat' must be from -10\.0 to 40\.0, not 99"):
            ask(given, context={"site": "A", "heat": 99.0})
    with pytest.raises(ValueError, match="context is missing"):
        sampler.done(given, Stop(gap=1.0))
    page = sampler.subject(given)
    assert page.model.answers.engine.sought.matches(page.told[-1].x[None]).all()


def test_callbacks_ask_for_a_context() -> None:
    made = sited(6)
    made.enqueue_trial({"site": "A", "heat": 20.0})
    stop = StopCallback(Stop(gap=10.0), context={"site": "A", "heat": 20.0})
    made.optimize(
        lambda t: objective(t) + 0 * t.suggest_float("heat", -10, 40), 1, callbacks=[stop]
    )
    assert made._stop_flag


def test_a_trial_without_its_context_is_refused() -> None:
    made = optuna.create_study(sampler=JESSampler(seed=0, search_space=GIVEN))
    made.enqueue_trial({"site": "A"})
    with pytest.raises(ValueError, match=r"has no 'heat', which is a Context: .*enqueue_trial"):
        made.optimize(objective, n_trials=1)


def held(sampler: Any, **more: Any) -> Any:
    """A study in which both sites take turns."""
    made = optuna.create_study(sampler=sampler)
    for i in range(8):
        made.enqueue_trial({"site": "AB"[i % 2], "heat": 20.0})

    def chosen(trial: Any) -> float:
        kinds = [trial.suggest_categorical(name, choices) == "u" for name, choices in more.items()]
        return objective(trial) + 0 * trial.suggest_float("heat", -10, 40) + sum(kinds)

    made.optimize(chosen, n_trials=8)
    assert [t.params["site"] for t in made.trials] == ["A", "B"] * 4
    model = sampler._reader.read(made, sampler._options.distributions)
    there = {"site": "B", "heat": 20.0}
    assert model.fixed(there) == model.problem.space.columns_of(there)
    return made


def test_contexts_are_held_under_limits_and_conditions() -> None:
    some = {"where": lambda p: p["x"] <= 0.5, "settings": QUICK, "seed": 0}
    limited = held(JESSampler(search_space=dict(GIVEN), **some))
    assert all(t.params["x"] <= 0.5 for t in limited.trials)
    more = {**GIVEN, "kind": Categorical(["u", "v"]), "y": Float(0, 1, when={"kind": "u"})}
    held(JESSampler(search_space=Space(more), settings=QUICK, seed=0), kind=["u", "v"])


def test_trials_with_steps_go_on_by_their_context() -> None:
    sampler = JESSampler(seed=0, settings=QUICK, search_space=GIVEN)
    made = optuna.create_study(sampler=sampler, pruner=JESPruner(complete=3))

    def looked_at(trial: Any) -> float:
        end = objective(trial) + 0 * trial.suggest_float("heat", -10, 40)
        for epoch in range(9):
            trial.report(end + 1 / (1 + epoch), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return end

    for i in range(10):
        made.enqueue_trial({"site": "AB"[i % 2], "heat": 20.0})
    made.optimize(looked_at, n_trials=10)
    assert any(t.state == optuna.trial.TrialState.PRUNED for t in made.trials)
