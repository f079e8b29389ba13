"""Worths under constraints: chances against Monte Carlo, derivatives, limits, dominance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from optpair import gp
from optpair.acquisition.mean import mean
from optpair.engine.worth import (
    AIM,
    STEEP,
    Compromise,
    Feasibility,
    Penalised,
    non_dominated,
    penalty,
    rank,
    unwanted,
)
from optpair.gp.posterior import Posterior
from optpair.optima.base import Wanted

RNG = np.random.default_rng(3)
X = RNG.uniform(size=(12, 2))
QUERY = RNG.uniform(size=(7, 2))
HYPERS = gp.Hyperparameters([[0.3, 0.5], [0.5, 0.3]], [1.0, 1.5], [0.01, 0.02], [0.0, 0.2])


def posterior(function: str) -> Posterior:
    y = {"bowl": -4 * np.sum((X - 0.4) ** 2, 1), "wave": np.sin(5 * X[:, 0]) + X[:, 1]}[function]
    return gp.condition(HYPERS, X, y)


BOWL, WAVE = posterior("bowl"), posterior("wave")
ONE = np.ones(1)
BOTH = Feasibility((BOWL, WAVE), np.array([-0.5, -np.inf]), np.array([np.inf, 0.8]), np.ones(2))
BAND = Feasibility((WAVE,), np.array([0.0]), np.array([0.6]), ONE)
WIDE = replace(BOTH, stretch=np.array([1.5, 3.0]))


def numeric(function: object, X: np.ndarray, h: float = 1e-5) -> np.ndarray:
    slopes = np.empty(X.shape)
    for j in range(X.shape[1]):
        step = h * np.eye(X.shape[1])[j]
        slopes[:, j] = (function(X + step) - function(X - step)) / (2 * h)  # type: ignore[operator]
    return slopes


@pytest.mark.parametrize("given", [BOTH, WIDE], ids=["as it is", "stretched"])
def test_a_chance_is_what_draws_of_both_outcomes_say(given: Feasibility) -> None:
    """20000 draws: four standard errors are at most 0.0142."""
    rng, draws = np.random.default_rng(0), 20000
    truth = np.ones(len(QUERY))
    for own, low, high, c in given._each():
        means, variance = own.predict(QUERY)
        sets = rng.integers(0, 2, draws)
        noise = c * np.sqrt(variance[sets]) * rng.standard_normal((draws, len(QUERY)))
        values = means[sets] + noise
        truth *= np.mean((values >= low) & (values <= high), 0)
    np.testing.assert_allclose(given.chance(QUERY), truth, atol=0.0142)


def test_chances_at_the_limits() -> None:
    nothing = Feasibility((WAVE,), np.array([-1e9]), np.array([1e9]), ONE)
    np.testing.assert_allclose(nothing.chance(QUERY), 1.0)
    never = Feasibility((WAVE,), np.array([1e9]), np.array([np.inf]), ONE)
    assert np.all(never.chance(QUERY) == 0.0)
    assert np.all(np.isfinite(never.log_weight(QUERY)))
    assert np.all(np.isfinite(never.log_slopes(QUERY)[1]))
    mirrored = Feasibility((BOWL, BOWL), np.full(2, -0.5), np.full(2, np.inf), np.ones(2))
    alone = Feasibility((BOWL,), np.array([-0.5]), np.array([np.inf]), ONE)
    np.testing.assert_allclose(mirrored.chance(QUERY), alone.chance(QUERY) ** 2)


@pytest.mark.parametrize("feasibility", [BOTH, BAND, WIDE], ids=["both", "band", "wide"])
def test_slopes_of_a_chance(feasibility: Feasibility) -> None:
    values, slopes = feasibility.log_slopes(QUERY)
    np.testing.assert_allclose(values, feasibility.log_weight(QUERY), rtol=1e-9)
    np.testing.assert_allclose(slopes, numeric(feasibility.log_weight, QUERY), rtol=1e-4, atol=1e-6)


def test_slopes_of_a_worth_under_constraints() -> None:
    weights = np.array([[0.3, 0.7], [0.9, 0.1]])
    worth = Compromise((mean(BOWL), mean(WAVE)), weights, np.array([1.0, 2.0]))
    penalised, rows = Penalised(worth, BAND), np.arange(len(QUERY)) % 2
    values, slopes = penalised.slopes(QUERY, rows)
    np.testing.assert_allclose(values, penalised.values(QUERY, rows))
    truth = numeric(lambda X: penalised.values(X, rows), QUERY)
    np.testing.assert_allclose(slopes, truth, rtol=1e-4, atol=1e-5)


def test_slopes_stay_finite_where_nothing_is_feasible() -> None:
    never = Feasibility((WAVE,), np.array([1e9]), np.array([np.inf]), ONE)
    values, slopes = Penalised(mean(BOWL), never).slopes(QUERY)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes))


def test_a_penalty_counts_standard_deviations() -> None:
    chances = np.array([AIM, ndtr(ndtri(AIM) - 1), 1.0, 0.999])
    np.testing.assert_allclose(penalty(np.log(chances)), [0, STEEP, 0, 0], atol=1e-9)
    assert np.isfinite(penalty(np.array([-1e30]))[0])


def test_a_compromise_is_as_good_as_its_worst_objective() -> None:
    worth = Compromise((mean(BOWL), mean(WAVE)), np.array([[1.0, 2.0]]), np.zeros(2))
    got = worth.of(np.array([[-1.0, -3.0], [-5.0, -1.0]]))
    np.testing.assert_allclose(got, [-6 + 0.01 * -7, -5 + 0.01 * -7])  # (W2)


def test_ranks() -> None:
    worth = np.array([3.0, 2.0, 1.0])
    assert np.argmax(rank(worth, None)) == 0
    assert np.argmax(rank(worth, np.array([0.5, 0.96, 0.99]))) == 1
    assert np.argmax(rank(worth, np.array([0.5, 0.6, 0.7]))) == 2  # none is sure: the likeliest


def test_where_all_is_hopeless_what_comes_closest_goes_first() -> None:
    """Chances of 1e-9 and 1e-300 say how far away data are; distances from the limits do better."""
    worth, chance = np.array([0.0, 1.0, 2.0]), np.array([1e-9, 1e-300, 0.0])
    beyond = np.array([1.5, 0.7, 0.7])
    assert np.argmax(rank(worth, chance, None, beyond)) == 2  # as close as the other, and better
    assert np.argmax(rank(worth, chance)) == 0
    tried = np.array([False, True, False])
    assert np.argmax(rank(worth, chance, tried, beyond)) == 1


def test_no_chance_is_above_one() -> None:
    """Rounding of the mean over sets must not lift it."""
    scales = np.linspace(0.01, 2.0, 36)
    hypers = gp.Hyperparameters(
        np.tile([0.3, 0.5], (36, 1)), scales, np.full(36, 0.01), np.zeros(36)
    )
    own = gp.condition(hypers, X, np.sin(5 * X[:, 0]))
    sure = Feasibility((own,), np.array([-20.0]), np.array([np.inf]), ONE)
    points = RNG.uniform(size=(500, 2))
    assert sure.chance(points).max() <= 1.0
    assert sure.log_slopes(points)[0].max() <= 0.0


def test_what_was_found_feasible_goes_before_what_is_only_guessed_to_be() -> None:
    worth, chance = np.array([3.0, 2.0, 1.0, 0.0]), np.array([0.5, 0.4, 0.94, 0.3])
    tried = np.array([True, True, False, True])
    assert np.argmax(rank(worth, chance, tried)) == 0
    assert np.argmax(rank(worth, chance, ~tried)) == 2
    assert np.argmax(rank(worth, chance, np.zeros(4, dtype=bool))) == 2
    chance[2] = 0.95  # sure enough: now the best of those counts
    assert np.argmax(rank(worth, chance, tried)) == 2


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_what_is_not_dominated(objectives: int) -> None:
    values = np.random.default_rng(1).integers(0, 6, (40, objectives)).astype(float)
    kept = values[non_dominated(values)]
    assert len(kept) == len(np.unique(kept, axis=0))
    for row in values:
        beaten = np.any(np.all(values >= row, 1) & np.any(values > row, 1))
        assert beaten != bool(np.any(np.all(kept == row, 1)))
    assert non_dominated(values[:0]).shape == (0,)


def test_how_far_values_are_out() -> None:
    wanted = Wanted((0,), np.array([-np.inf, 1.0, -1.0]), np.array([np.inf, np.inf, 1.0]))
    Y = np.array([[0.0, 2.0, 0.0], [0.0, 0.5, 3.0], [0.0, np.nan, 0.0], [np.nan, 1.0, 1.0]])
    np.testing.assert_array_equal(unwanted(wanted, Y), [0.0, 2.5, np.inf, 0.0])
