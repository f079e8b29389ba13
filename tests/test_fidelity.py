"""Fidelities: cheaper looks at a trial, and what they cost."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

from optpair import (
    Categorical,
    Constraint,
    Context,
    Fidelity,
    Float,
    Hyperparameters,
    Int,
    Optimizer,
    Space,
    maximize,
    minimize,
)
from optpair.engine.session import Session
from optpair.problem.problem import Problem

SPACE = Space({"x": Float(0, 1), "epochs": Fidelity(1, 81, log=True)})
MESH = Space({"x": Float(0, 1), "cells": Fidelity(8, 64), "h": Fidelity(0.1, 1.0, target=0.1)})


def loss(p):
    """Lowest at 0.3 in the end, at 0.6 at first, and falling with every epoch."""
    u = math.log(p["epochs"]) / math.log(81)
    return (p["x"] - 0.3 - 0.3 * (1 - u) ** 2) ** 2 + 2 * math.exp(-3 * u)


def biased(p):
    """As far above at every point, at each of the epochs."""
    return (p["x"] - 0.3) ** 2 + 2 * math.exp(-3 * math.log(p["epochs"]) / math.log(81))


def told(count=14, f=loss, space=SPACE, **options):
    opt = Optimizer(space, seed=0, **options)
    for _ in range(count):
        trial = opt.ask()
        opt.tell(trial, f(trial.params))
    return opt


def saved(opt, folder):
    opt.save(folder / "run.json")
    return Optimizer.load(folder / "run.json")


@pytest.fixture(scope="module")
def searched():
    return told(24, biased, noise=0.02)


# --- several outcomes ----------------------------------------------------------------------------

WIDE = Space({"x": Float(0, 1), "z": Float(0, 1), "epochs": Fidelity(1, 27, log=True)})


def several(p):
    u = math.log(p["epochs"]) / math.log(27)
    loss = (p["x"] - 0.3) ** 2 + (p["z"] - 0.5) ** 2 + math.exp(-3 * u)
    return {"loss": loss, "size": p["x"] + 0.1 * (1 - u)}


def test_a_constraint_at_several_fidelities(tmp_path):
    """The best feasible point at the target: x = 0.5, which is infeasible nowhere below it."""
    outcomes = {"loss": "minimize", "size": Constraint(low=0.5)}
    opt = told(24, several, WIDE, outcomes=outcomes)
    assert np.median([t.params["epochs"] for t in opt.trials]) < 14
    best = opt.recommend()
    assert best.params["epochs"] == 27
    assert best.chance >= 0.95
    assert best.params["x"] == pytest.approx(0.5, abs=0.02)
    assert best.params["z"] == pytest.approx(0.5, abs=0.1)
    assert {p["epochs"] for p in opt.belief().params} == {27}
    tried = opt.recommend(tried=True)
    assert tried.params["epochs"] == 27
    page = opt.report(tmp_path / "page.html")
    assert page["recommendation"]["params"]["epochs"] == 27
    opt.save(tmp_path / "run.json")
    assert Optimizer.load(tmp_path / "run.json").ask().params == opt.ask().params


def test_looks_at_several_outcomes():
    """Told on the way, each outcome at its fidelity; what was not measured is left out."""
    outcomes = {"loss": "minimize", "size": Constraint(low=0.5)}
    opt = told(8, several, WIDE, outcomes=outcomes)
    trial = opt.ask()
    for epochs in (1, 9):
        found = several({**trial.params, "epochs": epochs})
        opt.tell(trial, found if epochs == 9 else {"loss": found["loss"]}, at={"epochs": epochs})
    known = opt.trials[-1]
    assert known.actual["epochs"] == 9
    assert list(known.looks[0].outcomes) == ["loss"]
    assert len(opt.ask(3)) == 3


def test_a_cheap_look_within_the_limits_meets_nothing():
    """At one epoch every size is within the limits; at the target that needs x ≥ 0.5."""
    outcomes = {"loss": "minimize", "size": Constraint(low=0.5)}
    opt = Optimizer(WIDE, outcomes=outcomes, seed=0)
    for x in np.linspace(0.02, 0.3, 6):
        opt.tell({"x": x, "z": 0.5, "epochs": 1}, {"loss": 1.0 + x, "size": 0.6 + x})
    assert opt._session.engine.exploit(opt._history.data()) == 0.5
    opt.tell({"x": 0.8, "z": 0.5, "epochs": 27}, {"loss": 0.9, "size": 0.8})
    assert opt._session.engine.exploit(opt._history.data()) == 0.1


def test_a_front_at_several_fidelities():
    opt = told(20, several, WIDE, outcomes={"loss": "minimize", "size": "minimize"})
    assert opt.spent < 12
    front = opt.recommend()
    assert {point.params["epochs"] for point in front.points} == {27}
    for point in front.points:  # the front is z = 0.5 and x ≤ 0.3
        assert point.params["x"] < 0.4
        truth = several(point.params)
        assert abs(point.outcomes["loss"].mean - truth["loss"]) < 0.1
    assert {point.params["epochs"] for point in opt.recommend(tried=True).points} == {27}
    assert opt.belief().hypervolume_gap >= 0


# --- what a Fidelity is --------------------------------------------------------------------------


def test_a_fidelity_is_its_own_kind_of_parameter():
    for p, like in ((Fidelity(1, 81, log=True), Int), (Fidelity(0.1, 1.0), Float)):
        assert isinstance(p, Fidelity)
        assert isinstance(p, like)
        assert pickle.loads(pickle.dumps(p)) == copy.deepcopy(p) == p
    assert isinstance(Fidelity(0, 1), Float)  # a share of the data
    assert Fidelity(1, 9).target == 9
    assert repr(Fidelity(1, 9, log=True, target=3)) == "Fidelity(1, 9, log=True, target=3)"
    for space in (SPACE, MESH):
        assert Space.from_json(space.to_json()) == space
    assert MESH.targets == {"cells": 64, "h": 0.1}


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: Fidelity(1, 9, target=10), ValueError, "target must be from 1 to 9"),
        (lambda: Fidelity(1, 9, target=2.5), ValueError, "target must be from 1 to 9 in steps"),
        (lambda: Fidelity(0.1, 1.0, target=math.nan), ValueError, "target must be a finite"),
        (lambda: Fidelity(9, 1), ValueError, "did you swap them"),
        (lambda: Fidelity(-1, 9), ValueError, "low must be at least 0"),
        (lambda: Fidelity(0, 9, log=True), ValueError, "log=True needs low > 0"),
        (lambda: Fidelity(1, 9, guess=3), TypeError, "not guess"),
        (lambda: Fidelity(1), TypeError, "not 1 bounds"),
        (lambda: Space({"e": Fidelity(1, 9)}), ValueError, "nothing to tune"),
        (
            lambda: Space({"x": Float(0, 1), "e": Fidelity(0.1, 1.0)}, where="x <= e"),
            ValueError,
            "a Fidelity and not tuned",
        ),
        (
            lambda: Space({"e": Fidelity(1, 9), "x": Float(0, 1, when={"e": 9})}),
            ValueError,
            "a Fidelity",
        ),
        (
            lambda: Optimizer(
                SPACE, hyperparameters=Hyperparameters([[0.3, 1.0]], [1.0], [0.01], [0.0])
            ),
            ValueError,
            "no 'common' and no 'curve'",
        ),
    ],
)
def test_what_is_no_fidelity(make, kind, said):
    with pytest.raises(kind, match=said):
        make()


def test_what_looks_are_taken_to_cost():
    """In proportion to the fidelity; to its inverse where the target is low; one target is 1."""
    assert SPACE.relative_cost({"x": 0, "epochs": 9}) == pytest.approx(1 / 9)
    assert MESH.relative_cost({"x": 0, "cells": 16, "h": 0.4}) == pytest.approx(1 / 4 / 4)
    wide = Space({"x": Float(0, 1), "share": Fidelity(0.0, 1.0)})
    assert wide.relative_cost({"x": 0, "share": 0.0}) == pytest.approx(0.01)
    assert Space({"x": Float(0, 1)}).relative_cost({"x": 0}) == 1.0
    (price,) = wide.prices
    X = np.array([[0.3, 0.2], [0.3, 0.9]])
    step = [0.0, 1e-6]
    numeric = (price.log_cost(X + step)[0] - price.log_cost(X - step)[0]) / 2e-6
    np.testing.assert_allclose(price.log_cost(X)[1], numeric, rtol=1e-6)


# --- searching -----------------------------------------------------------------------------------


def test_a_search_looks_cheaply_and_answers_at_the_target(searched):
    epochs = [trial.params["epochs"] for trial in searched.trials]
    assert np.median(epochs) <= 27
    assert 81 in epochs
    assert searched.spent < 8  # of 24
    best = searched.recommend()
    assert best.params["epochs"] == 81
    assert abs(best.params["x"] - 0.3) < 0.06
    assert best.interval[0] <= 2 * math.exp(-3) <= best.interval[1]
    assert "epochs = 81" in str(best)


def test_runs_that_diverge_do_not_drown_the_others():
    """At every fidelity, from x = 0.75 on: elsewhere values differ by less than two."""

    def diverging(p):
        return several(p)["loss"] if p["x"] < 0.75 else 1e5 * math.exp(5 * p["x"])

    opt = told(24, diverging, WIDE)
    assert sum(trial.value > 1e5 for trial in opt.trials) >= 2
    best = opt.recommend()
    truth = diverging(best.params)
    assert truth < math.exp(-3) + 0.2
    assert best.interval[0] <= truth <= best.interval[1]
    assert best.interval[1] - best.interval[0] < 2


def test_belief_and_predictions_name_the_fidelity(searched):
    belief = searched.belief()
    assert {p["epochs"] for p in belief.params} == {81}
    at_end = searched.predict([{"x": 0.3}, {"x": 0.3, "epochs": 81}, {"x": 0.3, "epochs": 1}])
    assert at_end.mean[0] == at_end.mean[1]
    assert at_end.mean[2] > 1.5
    tried = searched.recommend(tried=True)
    assert tried.params["epochs"] == 81
    whole = [t.params["x"] for t in searched.trials if t.params["epochs"] == 81]
    assert tried.params["x"] in whole


def test_the_target_need_not_be_the_high_end():
    space = Space({"x": Float(0, 1), "h": Fidelity(0.1, 1.0, log=True, target=0.1)})
    result = minimize(
        lambda p: (p["x"] - 0.3) ** 2 + p["h"], space, 16, seed=0, progress=False, noise=0.05
    )
    assert result.x["h"] == 0.1
    assert abs(result.x["x"] - 0.3) < 0.1
    assert result.trials[0].params["h"] == 1.0  # the cheap end


def test_several_fidelities_contexts_and_categories_go_together():
    space = Space(
        {
            "x": Float(0, 1),
            "c": Categorical(["u", "v"]),
            "epochs": Fidelity(1, 27, log=True),
            "rows": Fidelity(0.1, 1.0),
            "site": Context(["A", "B"]),
        }
    )
    opt = Optimizer(space, seed=0)
    for i in range(12):
        trial = opt.ask(context={"site": "AB"[i % 2]})
        p = trial.params
        opt.tell(trial, (p["x"] - 0.4) ** 2 + (p["c"] == "u") + 1 / p["epochs"] - 0.1 * p["rows"])
    best = opt.recommend(context={"site": "B"})
    assert best.params["epochs"] == 27
    assert best.params["rows"] == 1.0
    assert best.params["site"] == "B"
    assert best.params["c"] == "v"
    assert opt.spent < 6


@pytest.mark.parametrize("name", ["ei", "random", "ts", "ucb"])
def test_what_cannot_compare_fidelities_stays_at_the_target(name):
    opt = told(8, acquisition=name)
    late = [t.params["epochs"] for t in opt.trials[4:]]
    assert set(late) == {81}


@pytest.mark.parametrize("name", ["jes", "jes-peak", "mf-mes", "mf-kg"])
def test_what_compares_fidelities_uses_them(name):
    opt = told(14, acquisition=name, noise=0.01)
    assert opt.spent < 9
    assert len({t.params["epochs"] for t in opt.trials}) > 2
    assert abs(opt.recommend().params["x"] - 0.3) < 0.2


def test_plates_are_of_different_looks():
    opt = told(6)
    plate = opt.ask(4)
    assert len({(t.params["x"], t.params["epochs"]) for t in plate}) == 4


def test_every_kernel_serves():
    from optpair import Settings

    for kernel in ("rbf", "mixed", "additive"):
        opt = told(8, settings=Settings(kernel=kernel))
        assert opt.recommend().params["epochs"] == 81


# --- looks ---------------------------------------------------------------------------------------


def test_one_trial_is_told_many_times():
    opt = Optimizer(SPACE, seed=0)
    trial = opt.ask()
    for epochs in (1, 3, 9):
        opt.tell(trial, 1.0 / epochs, at={"epochs": epochs}, cost=2.0)
    (now,) = opt.trials
    assert (now.value, now.state) == (1 / 9, "told")
    assert now.actual["epochs"] == 9
    assert [look.at["epochs"] for look in now.looks] == [1, 3]
    assert now.spent == opt.spent == 6.0
    data = opt._history.data()
    np.testing.assert_allclose(data.Y[:, 0], [-1, -1 / 3, -1 / 9])
    np.testing.assert_allclose(data.X[:, 1], [0, 0.25, 0.5])
    np.testing.assert_allclose(data.cost, [2, 4, 6])
    assert (data.told, len(data.points)) == (1, 1)
    np.testing.assert_allclose(data.means(0), [-1 / 9])
    assert data.points[0, 1] == pytest.approx(0.5)
    opt.revise(trial, 0.4, at={"epochs": 3})
    opt.revise(trial, 0.2)
    assert [m.outcomes["value"].value for m in opt.trials[0].seen] == [1.0, 0.4, 0.2]


def test_of_many_looks_some_are_rows():
    """Thirds of thirds of the target, and the last."""
    opt = Optimizer(SPACE, seed=0)
    trial = opt.ask()
    for epochs in range(1, 51):
        opt.tell(trial, 1.0 / epochs, at={"epochs": epochs}, cost=2.0)
    data = opt._history.data()
    rows = [round(1 / -y) for y in data.Y[:, 0]]
    assert rows == [1, 3, 9, 27, 50]
    np.testing.assert_allclose(data.cost, [2.0 * n for n in rows])
    assert len(opt.trials[0].seen) == 50


def test_a_trial_ends_where_it_was_asked_to():
    opt = Optimizer(SPACE, seed=0)
    trial = next(t for t in iter(opt.ask, None) if t.params["epochs"] > 3)
    opt.tell(trial, 1.0, at={"epochs": 2})
    opt.tell(trial, 0.5)
    known = opt.trials[trial.id]
    assert known.actual == trial.params
    assert len(known.looks) == 1
    with pytest.raises(ValueError, match="already told"):
        opt.tell(trial, 0.4)
    opt.tell(trial, 0.3, at={"epochs": 81})
    assert opt.trials[trial.id].value == 0.3


def test_a_run_may_fail_on_the_way():
    opt = Optimizer(SPACE, seed=0)
    trial = next(t for t in iter(opt.ask, None) if t.params["epochs"] > 3)
    opt.tell(trial, 1.0, at={"epochs": 2}, cost=1.0)
    opt.tell(trial, failed=True, reason="it diverged", cost=0.5)
    known = opt.trials[trial.id]
    assert (known.state, known.spent, len(known.looks)) == ("failed", 1.5, 1)


def bad_looks():
    at = {"epochs": 9}
    yield {"at": {"epochs": 82}}, ValueError, "at 'epochs' must be from 1 to 81"
    yield {"at": {"epochs": 2.5}}, ValueError, "at 'epochs' must be from 1 to 81"
    yield {"at": {"epoch": 9}}, ValueError, "which is no Fidelity"
    yield {"at": {}}, ValueError, "at is missing 'epochs'"
    yield {"at": 9}, TypeError, "at must be a dict"
    yield {"at": {"epochs": 3}}, ValueError, "looks at one trial get closer"
    yield {"at": {"epochs": 1}}, ValueError, "looks at one trial get closer"
    yield {"at": at, "cost": 0.0}, ValueError, "cost must be a finite number above 0"
    yield {"at": at, "cost": math.nan}, ValueError, "cost must be a finite number above 0"
    yield {"at": at, "cost": -1}, ValueError, "cost must be a finite number above 0"
    yield {"at": at, "cost": "free"}, TypeError, "cost must be one real number"
    yield {"at": at, "failed": True, "value": None}, ValueError, "a look that failed"
    yield {"at": at, "params": {"x": 0.1}}, TypeError, "params and at"
    yield {"at": at, "value": math.nan}, ValueError, "value must be finite"


@pytest.mark.parametrize(("given", "kind", "said"), list(bad_looks()))
def test_bad_looks_change_nothing(given, kind, said):
    opt = Optimizer(SPACE, seed=0)
    trial = opt.ask()
    opt.tell(trial, 1.0, at={"epochs": 3})
    before = opt.trials
    with pytest.raises(kind, match=said):
        opt.tell(trial, given.pop("value", 0.5), **given)
    assert opt.trials == before
    with pytest.raises(TypeError, match="among its parameters"):
        opt.tell({"x": 0.1, "epochs": 3}, 1.0, at={"epochs": 9})
    other = Optimizer(Space({"x": Float(0, 1)}))
    with pytest.raises(ValueError, match="has no Fidelity"):
        other.tell(other.ask(), 1.0, at={"epochs": 9})


def test_saving_resumes_exactly(tmp_path):
    opt = told(8)
    opt.tell(opt.trials[0], 0.2, at={"epochs": 81}, cost=3.0)
    opt.save(tmp_path / "run.json")
    loaded = Optimizer.load(tmp_path / "run.json")
    assert loaded.trials == opt.trials
    assert pickle.loads(pickle.dumps(opt)).trials == opt.trials
    for _ in range(3):
        trial = opt.ask()
        assert loaded.ask().params == trial.params
        for one in (opt, loaded):
            one.tell(trial.id, loss(trial.params), cost=float(trial.params["epochs"]))
    assert told(10).trials == told(10).trials


def test_noise_may_grow_once_trials_have_several_looks(tmp_path):
    """Then it is inferred how; before that all looks are equally noisy, as they always were."""
    opt = told(8)
    before = opt.model().objective.posterior
    assert before.growing is None
    assert not opt._session.memory["value"].several
    for epochs in (3, 27, 81):
        opt.tell(opt.trials[2], loss({"x": 0.4, "epochs": epochs}), at={"epochs": epochs})
    for one in (opt, saved(opt, tmp_path)):
        one.ask()
        after = one.model().objective.posterior
        assert one._session.memory["value"].several
        assert after.growing.rate.shape == (after.sets, 1)
        X = np.array([[0.4, 0.0], [0.4, 1.0]])
        np.testing.assert_array_equal(after.noise_at(X)[:, 1], after.noise)
        assert np.all(after.noise_at(X)[:, 0] > after.noise)
    loaded = saved(opt, tmp_path)
    assert loaded._session.memory["value"].several
    assert loaded.ask().params == opt.ask().params


@pytest.mark.parametrize("wrong", ["yes", None])
def test_a_memory_that_does_not_say_whether_there_are_looks(tmp_path, wrong):
    opt = told(8)
    document = opt._session.to_json()
    document["value"]["several"] = wrong
    with pytest.raises(ValueError, match="several must be"):
        opt._session.restore(document, {"value": 8})


def test_known_hyperparameters_may_say_how_noise_grows():
    known = {"lengthscale": [[0.5, 1.0]], "outputscale": [1.0], "noise": [0.01], "mean": [0.5]}
    known |= {"common": [0.5], "curve": [0.5]}
    growing = Hyperparameters(**known, growth=[[1.0]])
    own = [
        told(6, hyperparameters=h).model().objective.posterior
        for h in (growing, Hyperparameters(**known))
    ]
    assert own[1].growing is None
    X = np.array([[0.4, 0.0], [0.4, 0.5], [0.4, 1.0]])
    np.testing.assert_allclose(own[0].noise_at(X)[0], [0.81, 0.09, 0.01], rtol=1e-9)
    with pytest.raises(ValueError, match="growth must have shape"):
        Hyperparameters(**known, growth=[1.0])
    with pytest.raises(ValueError, match="growth must be finite and positive"):
        Hyperparameters(**known, growth=[[-1.0]])


# --- costs ---------------------------------------------------------------------------------------


def test_a_plain_search_does_not_see_equal_costs():
    """Nor one or two of them."""
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    found = []
    for costs in (None, 7.0):
        opt = Optimizer(space, seed=3)
        for _ in range(9):
            trial = opt.ask()
            opt.tell(trial, trial.params["x"] ** 2, cost=costs)
        found.append([trial.params for trial in opt.trials])
    assert found[0] == found[1]


def test_costs_that_differ_are_spared():
    """Two wells, the right one a little deeper and twenty times as costly to look at."""
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})

    def f(p):
        return -math.exp(-20 * (p["x"] - 0.2) ** 2) - 1.02 * math.exp(-20 * (p["x"] - 0.8) ** 2)

    def cost(p):
        return 20.0 if p["x"] > 0.5 else 1.0

    spent = []
    for price in (None, cost):
        result = minimize(f, space, 16, seed=1, cost=price, progress=False)
        spent.append(sum(cost(t.params) for t in result.trials[3:]))
    assert spent[1] < 0.6 * spent[0]


def test_told_costs_count_more_than_what_is_assumed():
    """Where all looks cost the same, only those at the target are worth it."""
    opt = Optimizer(SPACE, seed=0, noise=0.01)
    for _ in range(16):
        trial = opt.ask()
        opt.tell(trial, loss(trial.params), cost=1.0 + 1e-4 * trial.id)
    late = [t.params["epochs"] for t in opt.trials[8:]]
    assert np.median(late) > 27


def test_the_bar_shows_the_best_whole_look(capfd):
    maximize(lambda p: 1000.0 if p["epochs"] < 81 else 2.0, SPACE, 5, seed=0)
    assert "best observed 1000" not in capfd.readouterr().err
    maximize(lambda p: 2.0, SPACE, 20, seed=0, cost=lambda p: 1.0)
    assert "best observed 2" in capfd.readouterr().err


def test_budgets():
    result = minimize(loss, SPACE, budget_cost=3.0, seed=0, progress=False)
    assert 3.0 <= result.optimizer.spent < 4.01
    assert "then the budget of 3 was spent" in result.message
    priced = minimize(
        loss, SPACE, 9, budget_cost=100, cost=lambda p: p["epochs"], seed=0, progress=False
    )
    assert priced.optimizer.spent == sum(t.params["epochs"] for t in priced.trials)
    timed = maximize(lambda p: p["x"], SPACE, 50, budget_seconds=1e-6, seed=0, progress=False)
    assert timed.nfev == 1
    assert timed.trials[0].cost > 0
    plain = minimize(
        lambda p: p["x"], Space({"x": Float(0, 1)}), budget_cost=4, progress=False, seed=0
    )
    assert plain.nfev == 4


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({}, TypeError, "evaluations is missing"),
        ({"budget_cost": 0}, ValueError, "budget_cost must be a finite number above 0"),
        ({"budget_seconds": math.nan}, ValueError, "budget_seconds must be a finite"),
        ({"budget_cost": 1, "budget_seconds": 1}, ValueError, "cannot be given together"),
        ({"budget_seconds": 1, "cost": len}, ValueError, "cannot be given together"),
        ({"budget_cost": 1, "cost": 3}, TypeError, "cost must be a function"),
        ({"evaluations": 3, "cost": lambda p: 0.0}, ValueError, "cost must be a finite"),
    ],
)
def test_bad_budgets(options, kind, said):
    with pytest.raises(kind, match=said):
        minimize(loss, SPACE, progress=False, **options)


def test_a_checkpoint_goes_on_within_its_budget(tmp_path):
    path = tmp_path / "run.json"
    kept = {"seed": 0, "progress": False, "checkpoint": path}
    minimize(loss, SPACE, budget_cost=1.5, **kept)
    resumed = minimize(loss, SPACE, budget_cost=3.0, **kept)
    whole = minimize(loss, SPACE, budget_cost=3.0, seed=0, progress=False)
    assert [t.params for t in resumed.trials] == [t.params for t in whole.trials]


def test_the_report_names_the_fidelity(tmp_path, searched):
    found = searched.report(tmp_path / "page.html")
    assert found["recommendation"]["params"]["epochs"] == 81
    assert "epochs" in (tmp_path / "page.html").read_text()


def test_regions_of_queries_and_of_optima():
    engine = Session(Problem.single(SPACE, "minimize"), seed=0).engine
    assert not engine.region.held.any()
    assert engine.sought.held.tolist() == [False, True]
    plain = Session(Problem.single(Space({"x": Float(0, 1)}), "minimize"), seed=0).engine
    assert plain.sought is plain.region
