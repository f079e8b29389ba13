"""What is asked of a fitted model, against the engine's answers, closed forms and slow paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optpair import Categorical, Float, Int, Optimizer, Space
from optpair.engine.answers import Answers
from optpair.engine.effects import variance_shares
from optpair.engine.gaps import still_to_win
from optpair.gp.inference.chains import POOLED
from shell_cases import SPACE, cheap, filled, jes, objective, point

VALUES = [objective(point(i)) for i in range(6)]


def answers(optimizer: Optimizer) -> Answers:
    return optimizer._session.answers(optimizer._history.data())


@pytest.fixture(scope="module")
def known() -> Answers:
    return answers(filled(cheap(), VALUES))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_prediction_at_the_recommendation_is_the_recommendation(direction: str) -> None:
    optimizer = filled(cheap(direction=direction), VALUES)
    best = optimizer.recommend()
    got = optimizer.predict([best.params, point(0), point(1)])
    assert got.mean[0] == pytest.approx(best.mean, rel=1e-9)
    assert got.std[0] == pytest.approx(best.std, rel=1e-6)
    assert (got.low[0], got.high[0]) == pytest.approx(best.interval, rel=1e-6)
    assert got.mean[1:] == pytest.approx(VALUES[:2], abs=0.1)
    assert np.all(got.low < got.mean)
    assert np.all(got.mean < got.high)


def test_the_gap_is_between_a_path_and_its_own_maximum() -> None:
    """E[f* − f(x̂)] is E f* − m(x̂), up to the standard error of the mean of f(x̂) over the paths."""
    optimizer = filled(jes(pairs=64), VALUES)
    asked = answers(optimizer)
    pairs, objective = asked.belief(), asked.model.objective
    means, variance = objective.posterior.predict(pairs.best.x[None])
    left = np.mean(pairs.f) - float(objective.scaling.restore(means.mean()))
    error = objective.scaling.scale * np.sqrt(variance.mean() / pairs.f.size)
    assert pairs.gap == pytest.approx(left, abs=4 * error)
    low, high = pairs.gap_interval
    assert 0 <= low <= pairs.gap <= high


def test_the_gap_is_never_negative_and_has_an_interval() -> None:
    f = np.array([1.0, 2.0, 3.0, 0.5])
    gap, (low, high) = still_to_win(f, np.array([1.0, 1.0, 1.0, 0.6]))
    assert gap == pytest.approx(0.75)
    assert (low, high) == pytest.approx((0.0, np.quantile([0, 1, 2, 0], 0.975)))
    rare, interval = still_to_win(np.array([1.0] * 99 + [301.0]), np.ones(100))
    assert (rare, interval) == (3.0, (0.0, 3.0))  # one path in a hundred
    huge = still_to_win(np.array([1.7e308, 1.0]), np.full(2, -1.7e308))
    assert np.all(np.isfinite([huge[0], *huge[1]]))


def test_an_answer_is_worth_what_more_sets_say_of_it(known: Answers) -> None:
    """Chains that move on: the ask's own sets say where, three rounds of them what it is worth."""
    optimizer = filled(jes(), VALUES)
    asked = answers(optimizer)
    objective = asked.model.objective
    assert objective.wider is not None
    assert (objective.posterior.sets, objective.wider.sets) == (3, POOLED * 3)
    best = asked.recommend()
    more = objective.wider.predict(best.x[None])[0].mean(0)
    own = objective.posterior.predict(best.x[None])[0].mean(0)
    assert best.worth.mean == pytest.approx(objective.scaling.restore(more)[0], rel=1e-9)
    assert best.worth.mean != pytest.approx(objective.scaling.restore(own)[0], rel=1e-9)
    pairs = asked.belief()
    assert pairs.best.worth.mean == best.worth.mean
    assert optimizer._session.memory == {}  # an ask goes on from its own chains
    assert known.model.objective.wider is None
    late, early = asked.past([6, 2])
    assert late.best.worth.mean == pytest.approx(best.worth.mean, rel=0.2)
    assert late.best.worth.mean > early.best.worth.mean


def test_predictions_of_many_points_are_those_of_each() -> None:
    optimizer = filled(cheap(), VALUES)
    points = [point(i) for i in range(40)]  # more than one block
    together = optimizer.predict(points)
    apart = [optimizer.predict([p]) for p in points[::13]]
    for name in ("mean", "std", "low", "high"):
        got = getattr(together, name)
        assert got.shape == (40,)
        each = [float(getattr(one, name)[0]) for one in apart]
        np.testing.assert_allclose(got[::13], each, rtol=1e-9)
    assert optimizer.predict([]).mean.shape == (0,)


def test_what_cannot_be_predicted() -> None:
    with pytest.raises(ValueError, match="no trial has a value yet"):
        cheap().predict([point(0)])
    optimizer = filled(cheap(), VALUES)
    with pytest.raises(TypeError, match="params must be a list of dicts"):
        optimizer.predict(point(0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="x must be from"):
        optimizer.predict([{"x": 7.0, "c": "a"}])


def test_shares_of_variance_of_a_sum_are_its_terms() -> None:
    """Σ a_j x_j: a_j² / Σ a², with nothing between them."""
    a = np.array([3.0, 2.0, 0.0])
    found = variance_shares(lambda U: U @ a, 3)
    assert found is not None
    np.testing.assert_allclose(found.total, a**2 / np.sum(a**2), atol=4e-3)
    np.testing.assert_allclose(found.first, found.total, atol=0.02)


def test_shares_of_variance_of_a_product_are_shared() -> None:
    """x₁x₂ about its mean: V = 7/144, alone 3/7 each, together 1/7."""
    found = variance_shares(lambda U: U[:, 0] * U[:, 1], 2)
    assert found is not None
    np.testing.assert_allclose(found.first, 3 / 7, atol=0.02)
    np.testing.assert_allclose(found.total, 4 / 7, atol=0.01)


def test_pairs_of_parameters_explain_what_neither_does_alone() -> None:
    """Ishigami's function: the first and the third interact (0.2437), the second stands alone."""

    def ishigami(U: np.ndarray) -> np.ndarray:
        a, b, c = np.pi * (2 * U.T - 1)
        return np.asarray(np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a))

    found = variance_shares(ishigami, 3)
    assert found is not None
    assert list(found.pairs) == [(0, 2)]
    assert found.pairs[0, 2] == pytest.approx(0.2437, abs=0.01)
    product = variance_shares(lambda U: U[:, 0] * U[:, 1] + U[:, 2], 4)  # 1/144 of 7/144 + 1/12
    assert product is not None
    assert product.pairs == {(0, 1): pytest.approx(1 / 19, abs=0.01)}
    plain = variance_shares(lambda U: U @ np.array([3.0, 2.0, 0.0]), 3)
    assert plain is not None
    assert plain.pairs == {}


def test_a_constant_has_no_effects() -> None:
    assert variance_shares(lambda U: np.full(len(U), 3.0), 2) is None


def test_effects_find_the_parameter_that_matters(known: Answers) -> None:
    found = known.effects()
    assert found is not None
    assert found.total[1] > 0.3  # the price for b
    assert np.all(found.first <= found.total)


def test_noise_in_raw_units(known: Answers) -> None:
    """Known hyperparameters have noise 0.01, whatever the data; the share is of their variance."""
    assert known.noise().std == pytest.approx(0.1)
    assert known.noise().share == pytest.approx(0.01 / np.var(VALUES))
    same = replace(known.data, Y=np.ones((6, 1)))
    assert replace(known, data=same).noise().share is None


def test_nearness_is_one_on_the_slice_and_falls_off_it(known: Answers) -> None:
    here = SPACE.encode({"x": 0.0, "c": "a"})
    others = np.stack([SPACE.encode(p) for p in ({"x": 0.9, "c": "a"}, {"x": 0.9, "c": "b"})])
    near = known.nearness(others, here)
    assert near[0, 0] == pytest.approx(1.0)  # along x it is on the slice
    assert near[0, 1] < 0.6  # along c it is 0.45 away, at length scale 0.4
    r = 1.0  # two categories are as far apart as a unit step, at length scale 1
    matern = (1 + 5**0.5 * r + 5 * r * r / 3) * np.exp(-(5**0.5) * r)
    assert near[1, 0] == pytest.approx(matern, rel=1e-9)


def test_the_past_is_what_was_known_then(known: Answers) -> None:
    """With known hyperparameters, exactly what would have been answered."""
    then = answers(filled(cheap(), VALUES[:3]))
    (replayed,) = known.past([3])
    assert replayed.best.worth.mean == pytest.approx(float(then.recommend().worth.mean), abs=1e-3)


def test_the_best_of_what_was_tried(known: Answers) -> None:
    answer = known.tried()
    assert answer.trial == int(np.argmax(known.predict(known.data.X).mean))
    np.testing.assert_array_equal(answer.x, known.data.X[answer.trial])


def test_every_kind_of_parameter_is_predicted() -> None:
    space = Space({"n": Int(1, 3), "c": Categorical(["a", "b", "c"]), "x": Float(1, 9, log=True)})
    optimizer = Optimizer(space, seed=0, hyperparameters="map")
    for i in range(4):
        optimizer.tell({"n": 1 + i % 3, "c": "abc"[i % 3], "x": 1.0 + i}, float(i))
    got = optimizer.predict([{"n": 2, "c": "b", "x": 2.0}])
    assert np.isfinite([got.mean[0], got.std[0], got.low[0], got.high[0]]).all()
