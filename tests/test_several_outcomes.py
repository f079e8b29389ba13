"""Several outcomes at the optimizer: what is told, asked, answered, saved and refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import Constraint, Front, Objective, Optimizer, Recommendation, minimize
from optpair.acquisition.registry import REGISTRY
from optpair.results.front import reference_of
from outcome_cases import ALL, CONSTRAINED, FRONT, SPACE, point, several, told, truth
from shell_cases import KNOWN, TINY, Settings


@pytest.fixture(scope="module")
def constrained() -> Optimizer:
    return told(several(CONSTRAINED, steps=10, candidates=256), 16)


@pytest.fixture(scope="module")
def best(constrained: Optimizer) -> Recommendation:
    return constrained.recommend()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def front() -> Optimizer:
    return told(several(ALL, steps=10, candidates=256), 16)


@pytest.fixture(scope="module")
def found(front: Optimizer) -> Front:
    return front.recommend()  # type: ignore[no-any-return]


def test_one_outcome_is_as_a_direction(tmp_path: Path) -> None:
    """The same points, bit for bit, and the same answers."""
    settings = Settings(**TINY)
    plain = Optimizer(SPACE, direction="maximize", seed=3, noise=0.1, settings=settings)
    named = Optimizer(
        SPACE, outcomes={"gain": Objective("maximize", 0.1)}, seed=3, settings=settings
    )
    for _ in range(6):
        one, other = plain.ask(), named.ask()
        assert one.params == other.params
        plain.tell(one, truth(one.params)["gain"])
        named.tell(other, {"gain": truth(one.params)["gain"]})
    best, same = plain.recommend(), named.recommend()
    assert (best.params, best.mean, best.interval) == (same.params, same.mean, same.interval)
    assert best.chance is same.chance is None
    assert same.outcomes["gain"].interval == same.interval
    np.testing.assert_array_equal(plain.belief().values, named.belief().values)
    np.testing.assert_array_equal(plain.predict([point(0)]).mean, named.predict([point(0)]).mean)
    assert "maximize gain over 2 parameters" in repr(named)


def test_the_best_point_within_limits(constrained: Optimizer, best: Recommendation) -> None:
    assert isinstance(best, Recommendation)
    assert best.chance is not None
    assert best.chance >= 0.95
    assert truth(best.params)["load"] <= 0.5
    assert truth(best.params)["gain"] > 0.9  # 0.96 on the limit, 1 beyond it
    assert best.mean == best.outcomes["gain"].mean
    assert best.outcomes["load"].interval[0] < 0.5
    assert best.observed.outcomes["load"].value <= 0.5
    feasible = [t for t in constrained.trials if t.outcomes["load"].value <= 0.5]
    most = max(t.outcomes["gain"].value for t in feasible)
    assert best.observed.outcomes["gain"].value == most
    said = str(best)
    assert "predicted      load " in said
    assert "(must be at most 0.5)" in said
    assert "feasible       with a probability of 9" in said


def test_the_chance_is_that_of_the_predictions(constrained: Optimizer) -> None:
    """Almost all of a sure point's interval is within the limits, and none of a hopeless one's."""
    answers = constrained._session.answers(constrained._history.data())
    X = np.array([SPACE.encode(p) for p in ({"x": 0.1, "y": 0.5}, {"x": 0.95, "y": 0.5})])
    assert answers.chance(X) == pytest.approx([1.0, 0.0], abs=0.02)
    predicted = constrained.predict([{"x": 0.1, "y": 0.5}, {"x": 0.95, "y": 0.5}])
    assert set(predicted) == {"gain", "load"}
    assert predicted["load"].high[0] < 0.5 < predicted["load"].low[1]


def test_the_best_tried_point_within_limits(constrained: Optimizer) -> None:
    best = constrained.recommend(tried=True)
    assert best.params in [t.params for t in constrained.trials]
    assert truth(best.params)["load"] <= 0.5


def test_a_belief_under_constraints(constrained: Optimizer) -> None:
    belief = constrained.belief()
    assert belief.possible == 1.0
    assert np.all(belief.values <= 1.0)
    assert np.median(belief.values) > 0.9
    assert np.median([p["x"] for p in belief.params]) < 0.7  # the limit is at 0.6
    assert belief.gap >= 0
    assert belief.next_gain >= 0


def test_nothing_is_feasible() -> None:
    optimizer = told(several({"gain": "maximize", "load": Constraint(low=30)}, way="map"), 8)
    best = optimizer.recommend()
    assert best.chance < 0.001
    assert "this one is predicted to come closest, with a probability of" in str(best)
    assert "came closest   gain = " in str(best)
    closest = max(optimizer.trials, key=lambda t: t.outcomes["load"].value)
    assert best.observed == closest
    assert best.outcomes["load"].mean > closest.outcomes["load"].value - 0.1
    assert optimizer.recommend(tried=True).params == closest.params
    belief = optimizer.belief()
    assert belief.possible == 0.0
    assert len(belief.values) == 0
    assert belief.gap == 0.0
    assert "no sample has a point that meets all constraints" in str(belief)
    assert set(optimizer.ask().params) == {"x", "y"}


def test_no_front_is_feasible() -> None:
    optimizer = told(several({**FRONT, "load": Constraint(low=30)}, way="map"), 8)
    closest = max(optimizer.trials, key=lambda t: t.outcomes["load"].value)
    belief = optimizer.belief()
    (only,) = belief.recommendation.points
    assert only.outcomes["load"].mean > closest.outcomes["load"].value - 0.1
    assert belief.possible == 0.0
    assert "this one is predicted to come closest" in str(belief)
    assert str(belief).endswith("no sample has a point that meets all constraints")
    assert told(several(FRONT, way="map"), 6).belief().possible is None


@pytest.mark.parametrize("outcomes", [CONSTRAINED, ALL], ids=["limit", "front"])
def test_a_limit_that_was_never_measured_is_named(outcomes: Any) -> None:
    optimizer = several(outcomes, way="map")
    for i in range(6):
        optimizer.tell(
            point(i), {n: v for n, v in truth(point(i)).items() if n in FRONT and n in outcomes}
        )
    found = optimizer.recommend()
    assert found.unmeasured == ("load",)
    assert "no trial has a value yet" in str(found)
    assert "came closest" not in str(found)
    optimizer.tell(point(6), {"load": 0.3})
    assert optimizer.recommend().unmeasured == ()


def test_trials_test_what_is_likeliest_until_one_has_met_all_limits() -> None:
    hopeless = told(several({"gain": "maximize", "load": Constraint(low=30)}, way="map"), 6)
    met = told(several(CONSTRAINED, way="map"), 6)
    known = several(CONSTRAINED, way="map", exploit=0.2)
    gammas = [o._session.engine.exploit(o._history.data()) for o in (hopeless, met, known)]
    assert gammas == [0.5, 0.1, 0.2]
    one = Optimizer(SPACE, hyperparameters=KNOWN)
    assert one._session.engine.exploit(one._history.data()) == 0.0
    free = Optimizer(SPACE)
    assert free._session.engine.exploit(free._history.data()) == 0.1


def test_a_trial_that_met_the_limits_goes_before_a_guess() -> None:
    """Noise of 0.3 in the load leaves no point sure; one trial was within the limit."""
    limit = Constraint(high=0.1, noise=0.3)
    optimizer = several({"gain": "maximize", "load": limit}, way="map")
    for i in range(8):
        load = 0.09 if i == 5 else 0.4
        optimizer.tell(point(i), {"gain": 0.1 * i, "load": load})
    best = optimizer.recommend()
    assert best.chance < 0.95
    assert best.params == pytest.approx(point(5))
    front = several({"gain": "maximize", "cost": "minimize", "load": limit}, way="map")
    for i in range(8):
        values = {"gain": 0.1 * i, "cost": 0.2 * i, "load": 0.09 if i == 5 else 0.4}
        front.tell(point(i), values)
    (only,) = front.recommend().points
    assert only.params == pytest.approx(point(5))


def test_a_margin_vanishes_where_values_are_exact() -> None:
    """Without noise and without being told so, the margin to the limit shrinks."""
    optimizer = told(several(CONSTRAINED, steps=10, candidates=256), 40)
    best = optimizer.recommend()
    assert 0.48 < truth(best.params)["load"] <= 0.5


def test_exact_values_recommend_what_has_met_the_limits() -> None:
    """To the last digit: any other point might break one, however sure its prediction is."""
    exact = {"gain": Objective("maximize", noise=0), "load": Constraint(high=0.5, noise=0)}
    optimizer = several(exact, steps=10, candidates=256)
    for i in range(8):
        optimizer.tell(point(i), {k: truth(point(i))[k] for k in exact})
    met = [t for t in optimizer.trials if t.outcomes["load"].value <= 0.5]
    first = max(met, key=lambda trial: trial.outcomes["gain"].value)
    best = optimizer.recommend()
    assert (best.params, best.mean) == (first.params, first.outcomes["gain"].value)
    assert best.chance == 1.0
    assert best.std == 0.0
    assert best.outcomes["load"].mean == first.outcomes["load"].value


def test_no_zero_has_a_sign() -> None:
    optimizer = several({"gain": Objective("minimize", noise=0)})
    for i in range(4):
        optimizer.tell(point(i), {"gain": 0.0 if i == 2 else 1.0})
    assert "-0" not in str(optimizer.recommend()).splitlines()[1]


def test_between_two_limits() -> None:
    optimizer = told(several({"gain": "maximize", "load": Constraint(0.2, 0.3)}, steps=8), 16)
    best = optimizer.recommend()
    assert 0.17 < truth(best.params)["load"] < 0.33
    memory = optimizer._session.answers(optimizer._history.data()).memory
    assert memory["load"].scaling.knee is None  # neither side is bad


def test_a_front_of_compromises(found: Front) -> None:
    assert isinstance(found, Front)
    assert 5 <= len(found) <= 16
    assert found.feasible
    gains = [p.outcomes["gain"].mean for p in found.points]
    costs = [p.outcomes["cost"].mean for p in found.points]
    assert gains == sorted(gains)
    assert costs == sorted(costs)  # no point is better in both
    for own in found.points:
        assert truth(own.params)["load"] <= 0.55
        assert own.outcomes["gain"].interval[1] <= 1.0
    assert np.median([abs(p.params["y"] - 0.4) for p in found.points]) < 0.2
    low, high = found.hypervolume_interval
    assert low <= found.hypervolume <= high
    assert set(found.reference) == {"gain", "cost"}
    assert found.reference["gain"] < min(gains)
    assert found.reference["cost"] > max(costs)


def test_the_observed_front(front: Optimizer, found: Front) -> None:
    values = {t.id: [o.value for o in t.outcomes.values()] for t in front.trials}
    met = {k: v for k, v in values.items() if v[2] <= 0.5}
    best = [
        k
        for k, (gain, cost, _) in met.items()
        if not any(g >= gain and c <= cost and (g, c) != (gain, cost) for g, c, _ in met.values())
    ]
    assert sorted(t.id for t in found.observed) == sorted(best)


def test_a_front_of_tried_points(front: Optimizer) -> None:
    params = [t.params for t in front.trials]
    tried = front.recommend(tried=True)
    for own in tried.points:
        near = [max(abs(own.params[k] - p[k]) for k in p) for p in params]
        assert min(near) < 1e-9


def test_a_reference_of_ones_own(front: Optimizer, found: Front) -> None:
    wide = front.recommend(reference={"gain": -1.0, "cost": 3.0})
    assert wide.reference == {"gain": -1.0, "cost": 3.0}
    assert wide.hypervolume > found.hypervolume
    for wrong, match in (
        ({"gain": 0.0}, "reference needs a value of every objective; 'cost' is missing"),
        ({"gain": 0.0, "costs": 1.0}, "reference must have names among .*did you mean 'cost'?"),
        ({"gain": 0.0, "cost": np.nan}, r"reference\['cost'\] must be a finite number"),
    ):
        with pytest.raises(ValueError, match=match):
            reference_of(wrong, front.problem)


def test_a_finer_front(front: Optimizer, found: Front) -> None:
    finer, coarser = front.recommend(points=40), front.recommend(points=np.int64(3))
    assert len(coarser) == 3 < len(found) <= 16 < len(finer) <= 40
    assert finer.hypervolume > coarser.hypervolume
    assert [p.params for p in front.recommend(points=16).points] == [p.params for p in found.points]


@pytest.mark.parametrize(
    ("points", "kind"), [(0, ValueError), (2.5, TypeError), (True, TypeError), ("9", TypeError)]
)
def test_a_front_has_a_whole_number_of_points(
    front: Optimizer, points: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="points must be"):
        front.recommend(points=points)


def test_one_objective_has_no_points(constrained: Optimizer) -> None:
    with pytest.raises(ValueError, match="points is for several objectives"):
        constrained.recommend(points=9)


def test_a_belief_about_fronts(front: Optimizer) -> None:
    belief = front.belief()
    assert len(belief.params) == len(belief.values) == 6  # sets times pairs
    for params, values in zip(belief.params, belief.values, strict=True):
        assert len(params) == len(values["gain"]) == len(values["cost"])
        assert np.all(values["gain"] <= 1.0)
    assert set(belief.gap) == set(belief.gap_interval) == {"gain", "cost"}
    for name, gap in belief.gap.items():
        low, high = belief.gap_interval[name]
        assert 0 <= low <= gap <= high
    low, high = belief.hypervolume_gap_interval
    assert 0 <= low <= belief.hypervolume_gap <= high
    assert "still to win   hypervolume: about" in str(belief)


@pytest.mark.parametrize("outcomes", [CONSTRAINED, ALL], ids=["limit", "front"])
def test_saved_and_pickled_it_goes_on(outcomes: Any, tmp_path: Path) -> None:
    optimizer = told(several(outcomes), 5)
    optimizer.ask()
    optimizer.tell(point(9), {"gain": [0.5, 0.6]}, noise_var={"gain": 0.01})
    optimizer.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.problem == optimizer.problem
    assert again.trials == optimizer.trials
    twin = pickle.loads(pickle.dumps(optimizer))
    points = [made.ask().params for made in (optimizer, again, twin)]
    assert points[0] == points[1] == points[2]
    assert str(again.recommend()) == str(optimizer.recommend())


def test_the_same_seed_gives_the_same_points() -> None:
    def points() -> list[Any]:
        optimizer, seen = several(ALL, seed=5, way="map"), []
        for _ in range(6):
            trial = optimizer.ask()
            seen.append(trial.params)
            optimizer.tell(trial, truth(trial.params))
        return seen

    assert points() == points()


def test_an_outcome_that_nobody_has_measured() -> None:
    optimizer = several(ALL)
    for i in range(5):
        optimizer.tell(point(i), {"gain": truth(point(i))["gain"]})
    for _ in range(2):
        trial = optimizer.ask()
        optimizer.tell(trial, {"gain": truth(trial.params)["gain"]})
    with pytest.raises(ValueError, match="no trial has a value of 'cost' yet, which is an object"):
        optimizer.recommend()
    optimizer.tell(point(8), {"cost": 0.3})
    found = optimizer.recommend()
    assert not found.feasible  # whether the limit holds is open
    assert 0.3 < found.points[0].chance < 0.7
    assert found.observed == ()


@pytest.mark.parametrize(
    "values",
    [[1.0] * 6, [1e300, -1e300, 1e300, 1.0, 2.0, 3.0], [1e-300] * 3 + [2e-300] * 3],
    ids=["constant", "huge", "tiny"],
)
@pytest.mark.parametrize("outcomes", [CONSTRAINED, ALL], ids=["limit", "front"])
def test_values_of_any_size(values: list[float], outcomes: Any) -> None:
    wide = {name: "maximize" if name == "gain" else own for name, own in outcomes.items()}
    optimizer = several(wide, way="map")
    for i, value in enumerate(values):
        optimizer.tell(point(i), dict.fromkeys(outcomes, value))
    assert set(optimizer.ask().params) == {"x", "y"}
    found = optimizer.recommend()
    means = [p.means for p in found.points] if isinstance(found, Front) else [found.outcomes]
    assert means
    assert str(found)
    assert str(optimizer.belief())


def test_replicates_count_one_by_one() -> None:
    """Three values of a point say more than their mean alone, and how noisy a value is."""
    settings = Settings(**TINY)
    listed = Optimizer(SPACE, outcomes={"gain": "maximize"}, seed=0, settings=settings)
    single = Optimizer(SPACE, outcomes={"gain": "maximize"}, seed=0, settings=settings)
    rng = np.random.default_rng(0)
    for i in range(4):
        values = truth(point(i))["gain"] + 0.1 * rng.standard_normal(3)
        listed.tell(point(i), {"gain": values.tolist()})
        for value in values:
            single.tell(point(i), {"gain": value})
    assert listed.trials[0].value == pytest.approx(
        np.mean(listed.trials[0].outcomes["gain"].values)
    )
    one, other = (o._session.answers(o._history.data()) for o in (listed, single))
    np.testing.assert_array_equal(one.data.Y, other.data.Y)
    assert one.data.told == 4
    best = listed.recommend()
    means = {t.id: t.value for t in listed.trials}
    assert best.observed.id == max(means, key=lambda k: means[k] or 0.0)
    assert listed.recommend(tried=True).params in [t.params for t in listed.trials]


def test_a_wrong_variance_is_named() -> None:
    optimizer = several(CONSTRAINED)
    with pytest.raises(
        ValueError, match=r"noise_var\['load'\] must be a finite variance ≥ 0, not -1"
    ):
        optimizer.tell(point(0), {"gain": 0.5, "load": 0.1}, noise_var={"load": -1.0})
    assert optimizer.trials == ()


def test_a_revised_outcome_starts_the_chains_anew() -> None:
    optimizer = told(several(FRONT), 5)
    optimizer.ask()
    assert optimizer._session.memory
    optimizer.revise(0, {"gain": 0.4, "cost": truth(point(0))["cost"]})
    assert optimizer._session.memory == {}
    assert optimizer.trials[0].outcomes["gain"].value == 0.4
    with pytest.raises(ValueError, match="gain must be within its bounds, -inf to 1, not 4"):
        optimizer.revise(0, {"gain": 4.0})
    assert optimizer.trials[0].outcomes["gain"].value == 0.4


def test_a_slip_in_one_objective_is_named() -> None:
    optimizer = several({"gain": "maximize", "cost": "minimize"}, way="map")
    for i in range(12):
        values = truth(point(i))
        optimizer.tell(point(i), {"gain": values["gain"] * (100 if i == 4 else 1), "cost": i % 3})
    assert optimizer.ask().params == pytest.approx(point(4))
    assert optimizer.info.kind == "confirm"
    (doubt,) = optimizer.recommend().doubted
    assert (doubt.trial.id, doubt.outcome) == (4, "gain")
    assert "trial 4: gain " in str(doubt)


def test_bounds_hold_everywhere() -> None:
    """An accuracy is never above 1, whatever the model thinks."""
    rng = np.random.default_rng(2)
    settings = Settings(**{**TINY, "pairs": 16})

    def filled(bounds: tuple[float, float] | None) -> Optimizer:
        outcome = Objective("maximize", bounds=bounds)
        made = Optimizer(SPACE, outcomes={"accuracy": outcome}, seed=0, settings=settings)
        for i in range(8):
            made.tell(point(i), {"accuracy": 0.99 - 0.3 * abs(point(i)["x"] - 0.5)})
        return made

    free, bounded = filled(None), filled((0.0, 1.0))
    assert np.mean(free.belief().values > 1.0) > 0.1
    belief, best = bounded.belief(), bounded.recommend()
    assert np.all(belief.values <= 1.0)
    assert best.mean + belief.gap <= 1.0
    assert best.interval[1] <= 1.0
    params = [{"x": x, "y": y} for x, y in rng.uniform(size=(50, 2))]
    ours, theirs = bounded.predict(params), free.predict(params)
    np.testing.assert_array_equal(ours.high, np.minimum(theirs.high, 1.0))  # quantiles pass through
    np.testing.assert_array_equal(ours.low, np.minimum(theirs.low, 1.0))


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        (
            {"direction": "minimize"},
            ValueError,
            "direction='minimize' and outcomes cannot be",
        ),
        ({"noise": 0.1}, ValueError, r"noise=0.1 and outcomes .* Objective\('minimize', noise=0\)"),
        ({"acquisition": "ei"}, ValueError, "'ei' is not for several objectives; use one of jes"),
        (
            {"hyperparameters": KNOWN},
            ValueError,
            "can be known of one outcome, not of 2: give",
        ),
    ],
)
def test_what_does_not_go_together(options: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        Optimizer(SPACE, outcomes=FRONT, **options)


def test_what_a_front_has_not(front: Optimizer, constrained: Optimizer) -> None:
    with pytest.raises(ValueError, match="there are several objectives, 'gain', 'cost'"):
        _ = front.direction
    assert constrained.direction == "maximize"
    for made in (front, constrained):
        with pytest.raises(ValueError, match="subject is for one objective without constraints;"):
            made.subject()
    with pytest.raises(ValueError, match="reference is for several objectives"):
        constrained.recommend(reference={"gain": 0.0})


@pytest.mark.parametrize("name", [n for n, e in REGISTRY.items() if "front" in e.goals])
def test_those_that_serve_fronts(name: str) -> None:
    optimizer = told(
        Optimizer(SPACE, outcomes=ALL, seed=0, acquisition=name, settings=Settings(**TINY)), 4
    )
    assert set(optimizer.ask().params) == {"x", "y"}


SMALL: dict[str, Any] = {"settings": Settings(**TINY), "progress": False, "seed": 1}


def test_a_search_for_a_front(tmp_path: Path) -> None:
    calls = []

    def function(params: dict[str, Any]) -> dict[str, float]:
        calls.append(params)
        values = truth(params)
        if len(calls) == 2:
            return values | {"cost": np.nan}  # not measured
        return dict.fromkeys(values, np.nan) if len(calls) == 3 else values

    file = tmp_path / "run.json"
    result = minimize(function, SPACE, 4, outcomes=ALL, checkpoint=file, **SMALL)
    assert [t.state for t in result.trials][:3] == ["told", "told", "failed"]
    assert set(result.trials[1].outcomes) == {"gain", "load"}
    assert isinstance(result.recommendation, Front)
    assert result.x in [p.params for p in result.recommendation.points]
    assert set(result.fun) == set(ALL)
    assert "Result(fun={gain = " in repr(result)
    longer = minimize(function, SPACE, 5, outcomes=ALL, checkpoint=file, **SMALL)
    assert longer.nfev == 5
    with pytest.raises(
        ValueError, match=r"holds a search with other outcomes, \{'gain': Objective"
    ):
        minimize(function, SPACE, 5, outcomes=FRONT, checkpoint=file, **SMALL)
    with pytest.raises(ValueError, match="holds a search with other outcomes"):
        minimize(function, SPACE, 5, checkpoint=file, **SMALL)


@pytest.mark.parametrize(
    ("returned", "kind", "match"),
    [
        (1.0, TypeError, "what the objective returns must be a dict with some of 'gain', 'load'"),
        ({"gian": 1.0}, ValueError, "names of outcomes, 'gain', 'load', not 'gian'; did you mean"),
        ({"gain": 1.5}, ValueError, "gain must be within its bounds, -inf to 1, not 1.5"),
        ({"gain": "1"}, TypeError, "what the objective returns as 'gain' must be one real number"),
    ],
)
def test_what_a_function_may_not_return(returned: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match) as raised:
        minimize(lambda p: returned, SPACE, 3, outcomes=CONSTRAINED, **SMALL)
    assert len(raised.value.optimizer.trials) == 0  # type: ignore[attr-defined]


def test_a_function_may_return_lists_of_what_was_measured_several_times() -> None:
    def function(params: dict[str, Any]) -> dict[str, Any]:
        values = truth(params)
        return {"gain": [values["gain"], np.inf, values["gain"] - 0.1], "load": (np.nan,)}

    first, *_ = minimize(function, SPACE, 3, outcomes=CONSTRAINED, **SMALL).trials
    assert list(first.outcomes) == ["gain"]
    assert len(first.outcomes["gain"].values) == 2
    assert first.value is None  # that of one of two outcomes
    assert "outcomes={'gain': " in repr(first)


def test_all_that_was_returned_is_missing() -> None:
    with pytest.raises(RuntimeError, match="all 3 evaluations failed"):
        minimize(lambda p: {"gain": np.nan}, SPACE, 3, outcomes=CONSTRAINED, **SMALL)
