"""AEGiS: what its coin says, the Pareto set, and the tradeoff that is maximised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import HYPERS, D, M, X, Y, condition, grown, slopes, source

from optpair import Float, Optimizer, Settings, Space
from optpair.acquisition import Acquisition, Context, aegis, mean, ts
from optpair.acquisition.aegis import Tradeoff, _pareto, build, schedule
from optpair.acquisition.mean import Mean
from optpair.acquisition.ts import TS
from optpair.cube.cube import Cube
from optpair.gp import Hyperparameters, Posterior, sample_paths
from optpair.runtime.streams import Stream

RNG = source()
POINTS = RNG.uniform(size=(400, D))
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])


def both(posterior: Posterior, points: np.ndarray) -> np.ndarray:
    """m and √s, averaged over sets: (q, 2)."""
    means, variance = posterior.predict(points)
    return np.stack([means.mean(0), np.sqrt(variance).mean(0)], -1)


def dominated(values: np.ndarray) -> np.ndarray:
    """Which rows another is no worse than, and better in something: by all pairs."""
    no_worse = np.all(values[:, None] >= values, -1)
    return np.asarray(np.any(no_worse & np.any(values[:, None] > values, -1), 0))


def tradeoffs(posterior: Posterior, count: int) -> list[Tradeoff]:
    found: list[Acquisition] = [
        aegis(posterior, POINTS, seed, epsilon=0.5) for seed in range(4 * count)
    ]
    return [alpha for alpha in found if isinstance(alpha, Tradeoff)][:count]


@pytest.mark.parametrize(("epsilon", "d"), [(0.5, 1), (0.5, 4), (1 / 3, 9), (0.25, 16)])
def test_less_is_left_to_chance_in_more_dimensions(epsilon: float, d: int) -> None:
    assert schedule(d) == pytest.approx(epsilon)


@pytest.mark.parametrize("parameters", [2, 9])
def test_coins_fall_as_often_as_they_should(parameters: int) -> None:
    """600 asks: greedy in 1 − 2ε of them, each of the others in ε, within 4 standard errors."""
    ones = np.ones(parameters)
    rows = np.random.default_rng(0).uniform(size=(4, parameters))
    posterior = condition(Hyperparameters([ones], [1.0], [0.1], [0.0]), rows, np.arange(4.0))
    paths = sample_paths(posterior, 2, features=8)
    kinds = []
    for seed in range(600):
        context = Context(
            (posterior,), Cube.box(parameters), rows, Stream.of(seed).child(7), (paths,)
        )
        kinds.append(type(build(context)))
    epsilon = schedule(parameters)
    for kind, chance in ((Mean, 1 - 2 * epsilon), (TS, epsilon), (Tradeoff, epsilon)):
        error = math.sqrt(chance * (1 - chance) / 600)
        assert abs(kinds.count(kind) / 600 - chance) <= 4 * error


def test_the_pareto_set_is_what_nothing_dominates() -> None:
    """Against all pairs; with ties, duplicates of a point are one."""
    values = np.random.default_rng(1).normal(size=(300, 2))
    np.testing.assert_array_equal(_pareto(*values.T), np.flatnonzero(~dominated(values)))
    coarse = np.round(values, 1)
    got = _pareto(*coarse.T)
    assert not dominated(coarse)[got].any()
    wanted = np.unique(coarse[~dominated(coarse)], axis=0)
    np.testing.assert_array_equal(np.unique(coarse[got], axis=0), wanted)
    assert len(got) == len(wanted)


def test_every_point_of_the_pareto_set_is_drawn() -> None:
    posterior = condition(HYPERS, X, Y)
    values = both(posterior, POINTS)
    front = values[~dominated(values)]
    drawn = np.array([(alpha.centre, alpha.spread) for alpha in tradeoffs(posterior, 200)])
    apart = np.abs(drawn[:, None] - front).max(-1)
    assert np.max(apart.min(1)) < 1e-9
    counts = np.bincount(np.argmin(apart, 1), minlength=len(front))
    share = 1 / len(front)
    assert len(front) > 5
    assert np.all(np.abs(counts - 200 * share) < 4.5 * math.sqrt(200 * share * (1 - share)))


def test_the_tradeoff_is_the_lesser_of_two() -> None:
    posterior = condition(HYPERS, X, Y)
    m, sd = both(posterior, Q).T
    for alpha in tradeoffs(posterior, 5):
        truth = alpha.centre + np.minimum(m - alpha.centre, sd - alpha.spread)
        np.testing.assert_allclose(alpha(Q), truth, rtol=1e-9, atol=1e-12)


def test_its_maximum_is_no_worse_than_the_point_drawn() -> None:
    """In both, and nothing on a fine grid dominates it by more than the climb leaves."""
    posterior = condition(HYPERS, X, Y)
    side = np.linspace(0.0, 1.0, 101)
    grid = both(posterior, np.stack(np.meshgrid(side, side), -1).reshape(-1, D))
    for alpha in tradeoffs(posterior, 6):
        x, value = alpha.maximum()
        m, sd = both(posterior, x[None])[0]
        assert value >= alpha.centre - 1e-9
        assert m >= alpha.centre - 1e-9
        assert sd >= alpha.spread - 1e-9
        assert not np.any(np.all(grid > np.array([m, sd]) + 0.02, -1))


def test_greedy_and_paths_are_the_mean_and_ts() -> None:
    posterior = condition(HYPERS, X, Y)
    greedy = aegis(posterior, POINTS, epsilon=0.0)
    np.testing.assert_array_equal(greedy(Q), mean(posterior)(Q))
    seed = next(s for s in range(20) if isinstance(aegis(posterior, POINTS, s), TS))
    np.testing.assert_array_equal(aegis(posterior, POINTS, seed)(Q), ts(posterior, seed)(Q))


def test_slope_against_central_differences() -> None:
    """Both sides of the kink are met."""
    posterior = condition(HYPERS, X, Y)
    m, sd = both(posterior, Q).T
    sides = set()
    for alpha in tradeoffs(posterior, 8):
        exact, numeric = slopes(alpha, Q)
        np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-6)
        sides |= set((m - alpha.centre <= sd - alpha.spread).tolist())
    assert sides == {True, False}


def test_pending_points_are_less_uncertain() -> None:
    """Fantasies are averaged, and √s is that of the grown posterior."""
    posterior = grown(np.random.default_rng(1).normal(size=(M, 4)))
    means, variance = posterior.moments(Q)
    m, sd = means.mean((0, 1)), np.sqrt(variance).mean(0)
    (alpha,) = tradeoffs(posterior, 1)
    truth = np.minimum(m, alpha.centre + sd - alpha.spread)
    np.testing.assert_allclose(alpha(Q), truth, rtol=1e-9, atol=1e-12)
    exact, numeric = slopes(alpha, Q)
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-6)


def test_workers_ask_for_different_points() -> None:
    """Six asks at once in five dimensions: no two alike but for greedy ones."""
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(5)})
    small = {"sets": 3, "pairs": 2, "features": 64, "candidates": 64, "path_candidates": 64}
    optimizer = Optimizer(
        space, seed=0, acquisition="aegis", settings=Settings(exploit=0.0, **small)
    )
    for _ in range(8):
        trial = optimizer.ask()
        optimizer.tell(trial, sum((v - 0.4) ** 2 for v in trial.params.values()))
    asked = np.array([list(optimizer.ask().params.values()) for _ in range(6)])
    apart = np.abs(asked[:, None] - asked).max(-1) + np.eye(6)
    assert np.sum(apart.min(1) > 1e-3) >= 4


def test_what_is_refused() -> None:
    posterior = condition(HYPERS, X, Y)
    with pytest.raises(ValueError, match="AEGiS needs sample paths"):
        build(Context((posterior,), Cube.box(D), X, Stream.of(0)))
    for wrong in (-0.1, 0.6, math.nan):
        with pytest.raises(ValueError, match=r"epsilon must be from 0 to 0\.5, or None, not"):
            aegis(posterior, POINTS, epsilon=wrong)
    with pytest.raises(ValueError, match="points must be at least one"):
        aegis(posterior, np.zeros((0, D)))
    with pytest.raises(ValueError, match="shape"):
        aegis(posterior, np.zeros((3, D + 1)))
