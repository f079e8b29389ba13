"""Taking a trial up again: its next look is compared with the best new trial per cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optpair import Context, Fidelity, Float, Settings, Space
from optpair.engine import fitting, going_on, query, step
from optpair.engine.engine import HYPER, SEARCH
from optpair.engine.going_on import FINALISTS, HOPE, _may_be_best, taken_up
from optpair.engine.model import mean_at
from optpair.engine.plate import Info, Shared
from optpair.engine.session import DESIGN, SUGGEST, Session
from optpair.problem.problem import Problem
from optpair.runtime.shapes import Float as Floats
from optpair.trials.data import Data
from optpair.trials.history import History
from shell_cases import TINY

SPACE = Space({"x": Float(0, 1), "epochs": Fidelity(1, 81, log=True)})
EPOCHS = (1, 1, 3, 9, 27, 81)
BEFORE_TARGET = [0, 1, 2, 3, 4]


def told(space: Space = SPACE, **more: Any) -> tuple[Session, Data]:
    """Six trials, each seen at another fidelity, and costs that differ from what is assumed."""
    problem = Problem.single(space, "minimize")
    history = History(problem)
    for i, epochs in enumerate(EPOCHS):
        x = 0.1 + 0.15 * i
        value = (x - 0.4) ** 2 + 2 * math.exp(-epochs / 20)
        history.tell({"x": x, "epochs": epochs, **more}, value, cost=3.0 + epochs * (1 + x))
    settings = Settings(**{**TINY, "exploit": 0.0})
    return Session(problem, seed=0, settings=settings), history.data()


def suggested(made: Session, data: Data, number: int = 9) -> tuple[Any, Shared]:
    shared = Shared()
    stream = made.stream(SUGGEST, number)
    step.suggest(made.engine, stream, {}, data, number, made.stream(DESIGN, 0), shared)
    return stream, shared


def every_look(made: Session, data: Data, stream: Any, shared: Shared) -> list[tuple[Any, ...]]:
    """The slow way: look by look, in the user's units."""
    engine, entry = made.engine, made.engine.acquisition
    function, _ = query.landscape(
        engine, stream.child(SEARCH), shared.sampled, shared.model, data, entry, engine.region
    )
    space = made.problem.space

    def cost(x: Floats[np.ndarray, " D"]) -> float:
        return float(np.exp(-shared.model.cost.log_weight(x[None]))[0])

    found = []
    for trial, here in enumerate(data.points):
        seen = space.decode(here)
        way = {round(seen["epochs"] ** (1 - k / 8) * 81 ** (k / 8)) for k in range(1, 9)}
        for epochs in way:
            if epochs <= seen["epochs"] or (epochs < 3 * seen["epochs"] and epochs != 81):
                continue
            there = space.encode({**seen, "epochs": epochs})
            least = cost(space.encode({**seen, "epochs": 1}))
            beyond = max(cost(there) - cost(here), least)
            gain = function.values(there[None])[0] * cost(there)
            found.append((gain / beyond, trial, epochs))
    return found


def test_the_look_that_gains_most_per_cost_beyond_the_last_one_is_found() -> None:
    made, data = told()
    stream, shared = suggested(made, data)
    looks = every_look(made, data, stream, shared)
    assert 10 < len(looks) <= FINALISTS  # none is left out by a rough screening
    value, trial, epochs = max(looks)
    shared.info.value = value * 0.999
    found = taken_up(made.engine, stream, shared, data, BEFORE_TARGET)
    assert found is not None
    assert (found.trial, SPACE.decode(found.x)["epochs"]) == (trial, epochs)
    assert found.value == pytest.approx(value)
    assert found.x[0] == data.points[trial, 0]
    shared.info.value = value * 1.001  # a new trial teaches more per cost
    assert taken_up(made.engine, stream, shared, data, BEFORE_TARGET) is None
    shared.info.value = 0.0
    assert taken_up(made.engine, stream, shared, data, [5]) is None  # it is at the target
    others = [t for t in BEFORE_TARGET if t != trial]
    other = taken_up(made.engine, stream, shared, data, others)
    assert other is not None
    assert other.value == pytest.approx(max(look for look in looks if look[1] != trial)[0])


def test_a_suggestion_says_which_trial_goes_on() -> None:
    seen = set()
    for number in (13, 14, 15):
        made, data = told()
        stream, shared = suggested(made, data, number)
        assert shared.info.value is not None
        value, trial, epochs = max(every_look(made, data, stream, shared))
        x = made.suggest(data, number, resting=BEFORE_TARGET)
        goes_on = value >= shared.info.value
        assert made.info.continues == (trial if goes_on else None)
        assert SPACE.decode(x) == (
            {**SPACE.decode(data.points[trial]), "epochs": epochs}
            if goes_on
            else SPACE.decode(shared.points[0])
        )
        seen.add(goes_on)
    assert seen == {True, False}


def test_only_trials_of_the_context_go_on() -> None:
    space = Space({**SPACE, "site": Context(["A", "B"])})
    made, data = told(space, site="A")
    here, there = (made.engine_at(space.columns_of({"site": s})) for s in "AB")
    stream, shared = suggested(made, data)
    shared.info.value = 0.0
    assert taken_up(here, stream, shared, data, BEFORE_TARGET) is not None
    assert taken_up(there, stream, shared, data, BEFORE_TARGET) is None


@pytest.mark.parametrize("acquisition", ["logei", "random"])
def test_functions_that_compare_no_fidelities_take_nothing_up(acquisition: str) -> None:
    _, data = told()
    made = Session(
        Problem.single(SPACE, "minimize"),
        seed=0,
        acquisition=acquisition,
        settings=Settings(**TINY),
    )
    made.suggest(data, 9, resting=BEFORE_TARGET)
    assert made.info.continues is None


def test_what_may_be_the_best_goes_on_unless_it_repeats_a_whole_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, every = told()
    data, engine, info = every.first(5), made.engine, Info()
    memory = fitting.update(engine, made.stream(SUGGEST, 9).child(HYPER), {}, data, info)
    model = fitting.condition(engine, memory, data, info)
    posterior, ends = model.objective.posterior, engine.at_target(data.X)
    means = mean_at(posterior, ends)
    each, variance = posterior.moments(ends)
    hoped = means + HOPE * np.sqrt(variance.mean(0) + each.mean(1).var(0))
    for most, worth in ((1.0, hoped), (0.0, means)):  # what trials may have cost for any hope
        monkeypatch.setattr(going_on, "AFFORDED", most)
        may = [_may_be_best(engine, model, data, x) for x in data.X]
        assert may == (worth >= means.max()).tolist()
    assert 1 < np.sum(hoped >= means.max()) < len(data.X)
    best = data.X[np.argmax(means)]
    seen = replace(data, X=np.concatenate([data.X[:-1], engine.at_target(best[None])]))
    assert not _may_be_best(engine, model, seen, best)  # a whole trial was at that point
