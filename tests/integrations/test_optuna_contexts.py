"""Parameters of a study that are given, and not chosen."""

from __future__ import annotations

from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from optpair import Settings  # noqa: E402
from optpair.integrations.optuna import JESSampler  # noqa: E402

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
        ({"site": "C"}, ValueError, "cannot be held: a value is not legal"),
        ({"x": 7.0}, ValueError, "cannot be held"),
    ],
)
def test_what_is_no_context_is_refused(
    study: Any, context: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        study.sampler.recommend(study, context=context)
