"""Contexts: what is given with every trial, and never chosen."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from optpair import (
    Categorical,
    Constraint,
    Context,
    Float,
    Int,
    Optimizer,
    Settings,
    Space,
    Stop,
    minimize,
)
from optpair.cube.candidates import Screening
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.problem.layout import HOT
from optpair.runtime.streams import Stream

SPACE = Space({"x": Float(-1, 1), "k": Int(0, 4), "site": Context(["A", "B", "C"])})
WARM = Space({"x": Float(-1, 1), "heat": Context(0, 10)})
BEST = {"A": -0.5, "B": 0.4, "C": 0.4}


def loss(p):
    return (p["x"] - BEST[p["site"]]) ** 2 + 0.1 * (p["k"] - 3) ** 2


def told(space=SPACE, count=20, contexts=({"site": "A"}, {"site": "B"}), f=loss, **options):
    opt = Optimizer(space, seed=0, **options)
    for i in range(count):
        trial = opt.ask(context=contexts[i % len(contexts)])
        opt.tell(trial, f(trial.params))
    return opt


@pytest.fixture(scope="module")
def two_sites():
    return told(noise=0.01)


def test_a_context_is_its_own_kind_of_parameter():
    for p, like in ((Context(["A", "B"]), Categorical(["A", "B"])), (Context(0, 1), Float(0, 1))):
        assert isinstance(p, Context)
        assert isinstance(p, type(like))
        assert p != like
        assert pickle.loads(pickle.dumps(p)) == copy.deepcopy(p) == p
    assert repr(Context(1, 10, log=True)) == "Context(1.0, 10.0, log=True)"
    assert Context(choices=["A", "B"]) == Context(["A", "B"])
    assert Space.from_json(SPACE.to_json()) == SPACE
    assert Space.from_json(WARM.to_json()) == WARM
    assert SPACE.contexts == ("site",)


def test_every_trial_is_in_the_given_context(two_sites):
    sites = [trial.params["site"] for trial in two_sites.trials]
    assert sites == ["A", "B"] * 10
    plate = pickle.loads(pickle.dumps(two_sites)).ask(3, context={"site": "C"})
    assert [trial.params["site"] for trial in plate] == ["C"] * 3


def test_a_number_comes_back_to_the_last_digit():
    opt, heat = Optimizer(WARM, seed=0), 1.2345678901234567
    trial = opt.ask(context={"heat": heat})
    opt.tell(trial, 1.0)
    assert trial.params["heat"] == heat
    assert opt.recommend(context={"heat": heat}).params["heat"] == heat


def test_the_optimum_of_each_context_is_found(two_sites):
    for site in "AB":
        best = two_sites.recommend(context={"site": site})
        assert best.params["site"] == site
        assert best.params["k"] == 3
        assert abs(best.params["x"] - BEST[site]) < 0.15  # a twelfth of the range, with σ = 0.01
        assert best.observed.params["site"] == site
        assert two_sites.recommend(context={"site": site}, tried=True).params["site"] == site


def test_a_context_without_trials_has_answers_too(two_sites):
    best = two_sites.recommend(context={"site": "C"})
    assert best.params["site"] == "C"
    here = two_sites.recommend(context={"site": "A"})
    assert best.std > 3 * here.std
    with pytest.raises(ValueError, match="none of the told trials"):
        two_sites.recommend(context={"site": "C"}, tried=True)


def test_belief_is_on_the_slice(two_sites):
    belief = two_sites.belief(context={"site": "B"})
    assert {p["site"] for p in belief.params} == {"B"}
    assert abs(np.mean([p["x"] for p in belief.params]) - BEST["B"]) < 0.2
    assert not two_sites.done(Stop(gap=1e-9), context={"site": "C"})
    assert two_sites.done(Stop(gap=2.0), context={"site": "A"})


def test_the_recommendation_is_the_best_of_a_fine_grid_on_the_slice():
    opt = told(
        WARM,
        24,
        [{"heat": 1.0}, {"heat": 4.0}, {"heat": 9.0}],
        lambda p: (p["x"] - p["heat"] / 10) ** 2,
        noise=0.05,
    )
    best = opt.recommend(context={"heat": 6.5})
    grid = [{"x": x, "heat": 6.5} for x in np.linspace(-1, 1, 401)]
    means = opt.predict(grid).mean
    assert best.mean <= means.min() + 1e-3 * np.ptp(means)
    assert (best.params["x"] - 0.65) ** 2 < 2 * 0.05  # two standard deviations of the noise


def test_saving_resumes_exactly(tmp_path):
    opt = told(count=8)
    opt.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.ask(context={"site": "B"}).params == opt.ask(context={"site": "B"}).params


def test_limits_and_fronts_stay_in_the_context():
    space = Space({"x": Float(0, 1), "site": Context(["A", "B"])})
    wishes = {"cost": "minimize", "heat": Constraint(high=0.5)}

    def measured(p):  # B is cheaper everywhere
        return {"cost": p["x"] - 5 * (p["site"] == "B"), "heat": 1 - p["x"]}

    opt = told(space, 7, [{"site": "A"}, {"site": "B"}], measured, outcomes=wishes)
    best = opt.recommend(context={"site": "A"})
    assert best.params["site"] == best.observed.params["site"] == "A"
    assert opt.ask(context={"site": "A"}).params["site"] == "A"
    front = told(
        space,
        7,
        [{"site": "A"}, {"site": "B"}],
        measured,
        outcomes={"cost": "minimize", "heat": "minimize"},
    ).recommend(context={"site": "A"})
    assert {point.params["site"] for point in front.points} == {"A"}
    assert {trial.params["site"] for trial in front.observed} == {"A"}


def test_a_function_may_limit_by_the_context():
    space = Space(
        {"x": Float(0, 1), "site": Context(["A", "B", "C"])},
        where=lambda p: {"A": p["x"] < 0.3, "B": p["x"] > 0.8, "C": False}[p["site"]],
    )
    opt = Optimizer(space, seed=1)
    for site, low, high in (("A", 0, 0.3), ("B", 0.8, 1)) * 3:
        trial = opt.ask(context={"site": site})
        assert low <= trial.params["x"] <= high
        opt.tell(trial, trial.params["x"])
    with pytest.raises(ValueError, match="allows none"):
        opt.ask(context={"site": "C"})


@pytest.mark.parametrize("name", ["jes", "logei", "pes", "ts", "random"])
def test_acquisition_functions_stay_in_the_context(name):
    opt = told(WARM, 6, [{"heat": 2.5}], lambda p: p["x"] ** 2 + p["heat"], acquisition=name)
    assert {trial.params["heat"] for trial in opt.trials} == {2.5}


def test_minimize_and_the_report_know_the_context(tmp_path):
    seen = []

    def objective(p):
        seen.append(p["site"])
        return loss(p)

    result = minimize(
        objective, SPACE, 6, seed=0, progress=False, context={"site": "B"}, stop=Stop(gap=1e-9)
    )
    assert result.x["site"] == "B"
    assert set(seen) == {"B"}
    page = result.optimizer.report(tmp_path / "page.html")  # of the last trial's context
    assert page["recommendation"]["params"]["site"] == "B"
    found = result.optimizer.subject(context={"site": "A"}).model.answers.recommend()
    assert SPACE.decode(found.x)["site"] == "A"
    with pytest.raises(ValueError, match="context is missing: 'site'"):
        minimize(objective, SPACE, 2, progress=False, checkpoint=tmp_path / "none.json")
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (None, ValueError, "context is missing: 'site' must be given"),
        ({}, ValueError, "missing 'site'"),
        ({"site": "D"}, ValueError, "context 'site' must be one of"),
        ({"site": "A", "x": 0.1}, ValueError, "'x', which is chosen"),
        ({"place": "A"}, ValueError, "context has 'place'"),
        ("A", TypeError, "context must be a dict"),
    ],
)
def test_a_wrong_context_is_refused_and_changes_nothing(given, error, said):
    opt = told(count=4)
    before = opt.trials
    for call in (opt.ask, opt.recommend, opt.belief):
        with pytest.raises(error, match=said):
            call(context=given)
    assert opt.trials == before
    assert opt.ask(context={"site": "A"}).id == 4


def test_what_cannot_be_a_context():
    with pytest.raises(ValueError, match="nothing to tune"):
        Space({"site": Context(["A", "B"])})
    with pytest.raises(ValueError, match="Context and not tuned"):
        Space({"x": Float(0, 1), "heat": Context(0, 1)}, where=["x <= heat"])
    with pytest.raises(ValueError, match="has no Context"):
        Optimizer(Space({"x": Float(0, 1)})).ask(context={"site": "A"})
    with pytest.raises(TypeError, match="not step"):
        Context(0, 1, step=0.1)
    with pytest.raises(TypeError, match="takes choices"):
        Context()
    with pytest.raises(ValueError, match="two choices or more"):
        Context(["A"])
    with pytest.raises(ValueError, match="low must be below high"):
        Context(2, 1)


def test_a_region_holds_its_fixed_columns():
    space = Space({"x": Float(0, 1), "k": Int(0, 4), "site": Context(["A", "B"])})
    cube = Cube(space.layout)
    columns = space.columns_of({"site": "B"})
    assert columns == {2: 0.0, 3: HOT}
    region = Region.whole(cube).fixed(columns)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 4))
    held = np.array([0.0, HOT])
    screening = Screening.of(Stream.of(0), cube, 32)
    near, filling = screening.points(region, cube.snap(X[:3]))
    neighbours = region.neighbours(filling).reshape(-1, 4)
    for points in (near, filling, region.snap(X), region.made_legal(X), neighbours):
        assert np.array_equal(points[:, 2:], np.tile(held, (len(points), 1)))
        assert region.legal(points).all()
        assert region.matches(points).all()
    assert not region.matches(cube.snap(X)).all()
    assert region.loose(X[None]).tolist() == [[[True, True, False, False]] * 50]


def test_a_search_over_estimators_refuses_a_context():
    pytest.importorskip("sklearn")
    from optpair.integrations.sklearn.space import NumberedSpace

    with pytest.raises(ValueError, match="'site' is a Context"):
        NumberedSpace(SPACE)


def test_time_is_a_context_and_the_optimum_drifts():
    space = Space({"dose": Float(0, 1), "week": Context(0, 52)})
    opt = Optimizer(space, seed=0, settings=Settings(sets=6, pairs=4))
    for week in range(20):
        trial = opt.ask(context={"week": week})
        opt.tell(trial, (trial.params["dose"] - 0.2 - 0.6 * week / 52) ** 2)
    for week in (2, 20):
        best = opt.recommend(context={"week": week})
        assert best.params["dose"] == pytest.approx(0.2 + 0.6 * week / 52, abs=0.06)
    late = opt.predict([{"dose": 0.5, "week": week} for week in (10, 52)])
    assert late.std[1] > 2 * late.std[0]  # of a time that nobody has seen less is known
