"""What is asked of a fitted model, against the engine's answers, closed forms and slow paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from optpair.effort import POOLED

from optpair import Categorical, Float, Int, Optimizer, Space, insight
from optpair.engine import Info
from optpair.gp.mixture import Mixture
from optpair.optimizer import ANSWER, stream
from shell_cases import SPACE, cheap, filled, jes, objective, point

VALUES = [objective(point(i)) for i in range(6)]


def fitted(optimizer: Optimizer):  # type: ignore[no-untyped-def]
    history, engine = optimizer._history, optimizer._engine
    key = stream(optimizer.seed, ANSWER, history.count("told"))
    now = history.observations()
    state, surrogate = insight.fitted(engine, key, optimizer._state, now)
    return engine, key, state, surrogate, now


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


def test_an_answer_is_worth_what_more_sets_say_of_it() -> None:
    """Chains that move on: the ask's own sets say where, three rounds of them what it is worth."""
    optimizer = filled(jes(sets=4), VALUES)
    engine, key, state, surrogate, now = fitted(optimizer)
    assert state.pooled is not None
    assert state.theta is not None
    assert len(state.pooled) == POOLED * len(state.theta) == 12
    assert len(np.unique(state.pooled[:, 0])) > len(state.theta)
    best = engine.recommend(key, optimizer._state, now)
    own, _ = surrogate.posterior.predict(best.x[None])
    more, _ = surrogate.predict(best.x[None])
    assert more.shape == (12, 1)
    assert best.mean == pytest.approx(surrogate.scaling.restore(more.mean(0))[0], rel=1e-9)
    assert best.mean != pytest.approx(surrogate.scaling.restore(own.mean(0))[0], rel=1e-9)
    pairs = engine.belief(key, optimizer._state, now)
    assert pairs.best.mean == best.mean
    # f* were drawn under the ask's own sets: what may be won is the difference to their mean.
    left = np.mean(pairs.f) - surrogate.scaling.restore(own.mean(0))[0]
    assert pairs.gap == pytest.approx(max(left, 0.0), rel=1e-6, abs=1e-9)
    assert pairs.gap > 0
    assert optimizer._state.pooled is None  # an ask goes on from its own chains
    assert fitted(filled(cheap(), VALUES))[2].pooled is None  # one set by its mode


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


def test_quantiles_of_many_mixtures_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    means, sds = rng.normal(size=(3, 20)), rng.uniform(0, 2, size=(3, 20))
    sds[:, 0] = 0.0
    for p in (0.025, 0.5, 0.975):
        slow = [Mixture(means[:, i], sds[:, i]).quantile(p) for i in range(20)]
        np.testing.assert_allclose(insight.quantiles(means, sds, p), slow, atol=1e-12)


def test_shares_of_variance_of_a_sum_are_its_terms() -> None:
    """Σ a_j x_j: a_j² / Σ a², with nothing between them."""
    a = np.array([3.0, 2.0, 0.0])
    found = insight.variance_shares(lambda U: U @ a, 3)
    assert found is not None
    np.testing.assert_allclose(found.total, a**2 / np.sum(a**2), atol=2e-3)
    np.testing.assert_allclose(found.first, found.total, atol=0.02)


def test_shares_of_variance_of_a_product_are_shared() -> None:
    """x₁x₂ about its mean: V = 7/144, alone 3/7 each, together 1/7."""
    found = insight.variance_shares(lambda U: U[:, 0] * U[:, 1], 2)
    assert found is not None
    np.testing.assert_allclose(found.first, 3 / 7, atol=0.02)
    np.testing.assert_allclose(found.total, 4 / 7, atol=0.01)


def test_a_constant_has_no_effects() -> None:
    assert insight.variance_shares(lambda U: np.full(len(U), 3.0), 2) is None


def test_effects_find_the_parameter_that_matters() -> None:
    engine, _, _, surrogate, _ = fitted(filled(cheap(), VALUES))
    found = insight.effects(engine, surrogate)
    assert found is not None
    assert found.total[1] > 0.3  # the price for b
    assert np.all(found.first <= found.total)


def test_noise_in_raw_units() -> None:
    """Known hyperparameters have noise 0.01, whatever the data; the share is of their variance."""
    optimizer = filled(cheap(), VALUES)
    *_, surrogate, now = fitted(optimizer)
    noise = insight.noise(surrogate, now)
    assert noise.std == pytest.approx(0.1)
    assert noise.share == pytest.approx(0.01 / np.var(VALUES))
    same = replace(now, y=np.ones(6))
    assert insight.noise(surrogate, same).share is None


def test_nearness_is_one_on_the_slice_and_falls_off_it() -> None:
    engine, _, _, surrogate, _ = fitted(filled(cheap(), VALUES))
    here = SPACE.encode({"x": 0.0, "c": "a"})
    others = np.stack([SPACE.encode(p) for p in ({"x": 0.9, "c": "a"}, {"x": 0.9, "c": "b"})])
    near = insight.nearness(engine, surrogate, others, here)
    assert near[0, 0] == pytest.approx(1.0)  # along x it is on the slice
    assert near[0, 1] < 0.6  # along c it is 0.45 away, at length scale 0.4
    r = 1.0  # two categories are as far apart as a unit step, at length scale 1
    matern = (1 + 5**0.5 * r + 5 * r * r / 3) * np.exp(-(5**0.5) * r)
    assert near[1, 0] == pytest.approx(matern, rel=1e-9)


def test_today_replayed_is_today() -> None:
    """The same values, by the same state: only the stream differs from the belief's own."""
    optimizer = filled(jes(), VALUES)
    engine, key, state, surrogate, now = fitted(optimizer)
    believed = insight.believe(engine, key, surrogate, now)
    assert believed.best.mean == engine.belief(key, optimizer._state, now).best.mean
    assert -believed.best.mean == optimizer.belief().recommendation.mean
    first = replace(now, X=now.X[:2], y=now.y[:2], noise_var=now.noise_var[:2])
    early, late = insight.replay(engine, key, state, surrogate, [first, now])
    assert late.best.mean == pytest.approx(believed.best.mean, rel=1e-3, abs=1e-3)
    assert late.best.std < early.best.std
    alone = engine.condition(state, first, Info())
    assert alone.posterior.mask.sum() == 2


def test_every_kind_of_parameter_is_predicted() -> None:
    space = Space({"n": Int(1, 3), "c": Categorical(["a", "b", "c"]), "x": Float(1, 9, log=True)})
    optimizer = Optimizer(space, seed=0, hyperparameters="map")
    for i in range(4):
        optimizer.tell({"n": 1 + i % 3, "c": "abc"[i % 3], "x": 1.0 + i}, float(i))
    got = optimizer.predict([{"n": 2, "c": "b", "x": 2.0}])
    assert np.isfinite([got.mean[0], got.std[0], got.low[0], got.high[0]]).all()
