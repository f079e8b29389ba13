"""Goals: limits pass through scalings, and every kind of problem has its own."""

from __future__ import annotations

import numpy as np
import pytest

from optpair import gp
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.engine.goals import best_data, goal, met, unmeasured, wanted
from optpair.optima import Best
from optpair.optima.base import Wanted
from optpair.optima.feasible import BestFeasible
from optpair.optima.pareto import Pareto
from optpair.problem.outcomes import Constraint, Objective
from optpair.trials.data import Data
from optpair.trials.transform import Scaling

INF = np.inf


def test_limits_pass_through_the_scaling() -> None:
    """A value is within its limits if and only if the standardised one is."""
    outcomes = [Objective("maximize"), Constraint(high=3.0), Constraint(-1, 1)]
    rng = np.random.default_rng(0)
    Y = rng.normal(0, 3, (60, 3)) - np.where(rng.uniform(size=(60, 3)) < 0.1, 500, 0)
    scalings = [Scaling.of(Y[:, 0]), Scaling.around(Y[:, 1], -3.0, 0.5), Scaling.of(Y[:, 2], False)]
    found = wanted(outcomes, scalings)
    assert found.objectives == (0,)
    assert (found.low[0], found.high[0], found.high[1]) == (-INF, INF, INF)
    for k, outcome in enumerate(outcomes[1:], 1):
        assert isinstance(outcome, Constraint)
        z = scalings[k].standardise(Y[:, k])
        inside = (z >= found.low[k]) & (z <= found.high[k])
        assert inside.tolist() == [outcome.met(outcome.sign * y) for y in Y[:, k]]
        assert 0 < inside.sum() < 60


def test_every_problem_has_its_goal() -> None:
    free, limit = (-INF, INF), (-INF, 0.0)
    low, high = np.array([free, limit]).T
    assert isinstance(goal(Wanted.single()), Best)
    assert isinstance(goal(Wanted((0,), low, high)), BestFeasible)
    assert isinstance(goal(Wanted((0, 1), np.full(2, -INF), np.full(2, INF))), Pareto)


@pytest.mark.parametrize(
    ("outcome", "chance"),
    [(Constraint(high=20), 0.5), (Constraint(low=-3e200), 0.5), (Constraint(2, 6), 0.683)],
)
def test_whether_limits_hold_is_open_before_anything_is_measured(
    outcome: Constraint, chance: float
) -> None:
    """Under a standard normal prior."""
    from scipy.special import ndtr

    found = wanted([outcome], [unmeasured(outcome)])
    assert ndtr(found.high[0]) - ndtr(found.low[0]) == pytest.approx(chance, abs=1e-3)
    assert unmeasured(Objective()) == Scaling()


def test_the_observed_points_to_look_around() -> None:
    X = np.linspace(0.05, 0.95, 10)[:, None]
    hypers = gp.Hyperparameters([[0.3]], [1.0], [1e-4], [0.0])
    up, down = (gp.condition(hypers, X, sign * (X[:, 0] - 0.5)) for sign in (1, -1))
    none = np.zeros((0, 1))
    data = Data(X, np.zeros((10, 2)), np.zeros((10, 2)), none, none, np.zeros((10, 2), bool),
                np.arange(10), np.full(10, np.nan))  # fmt: skip
    both = Wanted((0, 1), np.full(2, -INF), np.full(2, INF))
    first = best_data(Region.whole(Cube.box(1)), both, (up, down), data)
    assert sorted(first[:3, 0]) == pytest.approx([0.05, 0.45, 0.95], abs=0.11)
    limited = Wanted((0,), np.array([-INF, 0.0]), np.full(2, INF))
    within = best_data(Region.whole(Cube.box(1)), limited, (up, down), data)
    assert within[:5, 0] == pytest.approx([0.45, 0.35, 0.25, 0.15, 0.05])
    assert len(within) == 8
    alone = best_data(Region.whole(Cube.box(1)), Wanted.single(), (up,), data)
    np.testing.assert_array_equal(alone, up.best_data(8))


def test_trials_that_meet_all_limits() -> None:
    outcomes = [Objective("minimize"), Constraint(high=3.0), Constraint(-1, 1)]
    Y = np.array([[0.0, -3.0, 1.0], [0.0, -3.1, 0.0], [0.0, -2.0, 1.1], [np.nan, 5.0, 0.0]])
    Y = np.concatenate([Y, [[0.0, np.nan, 0.0]]])
    nothing, rows = np.zeros((0, 1)), np.arange(5)
    data = Data(
        np.zeros((5, 1)),
        Y,
        np.full(Y.shape, np.nan),
        nothing,
        nothing,
        np.zeros(Y.shape, bool),
        rows,
        np.full(5, np.nan),
    )
    assert met(outcomes, data).tolist() == [True, False, False, True, False]
    assert met([Objective()], data).all()
