"""JES of several outcomes: against one outcome's, in its limits, and against the true gain."""

from __future__ import annotations

import numpy as np
import pytest
from cases import HYPERS, D, M, P, X, condition, source

from optpair.acquisition import cmes_ibo, constrained_ei, ehvi, jes, jes_peak, logei, parego
from optpair.acquisition.special.truncation import divergence
from optpair.cube.cube import Cube
from optpair.gp import Hyperparameters, Posterior
from optpair.gp import condition as gp_condition
from optpair.optima import Optima, Wanted

RNG = source()
INF = np.inf
Y = RNG.normal(size=(3, len(X)))
MODEL = tuple(condition(HYPERS, X, y) for y in Y)
PLACES, BEST = RNG.uniform(0.1, 0.9, (M, P, D)), Y[0].max() + RNG.uniform(0.1, 2.0, (M, P))
PAIRS = Optima.pairs(PLACES, BEST)
Q = RNG.uniform(size=(12, D))


def joint(c: np.ndarray | float, mask: bool = True) -> Optima:
    """The pairs, with a constraint's value at x*."""
    values = np.broadcast_to(c, BEST.shape)
    f = np.stack([BEST, values], -1)[:, :, None]
    return Optima(PLACES[:, :, None], f, np.full((M, P, 1), mask), np.zeros((M, P)))


def limits(low: float, high: float = INF) -> Wanted:
    return Wanted((0,), np.array([-INF, low]), np.array([INF, high]))


def test_one_outcome_is_jes_up_to_how_the_truncation_is_measured() -> None:
    """Conditioning is the same; the truncation is (N3b), within 8 % of the exact divergence.

    At points where no mean is far above f*, as for paths' own maxima: elsewhere (N3b) is up to
    30 % too large.
    """
    general = jes(MODEL[:1], PAIRS, Wanted.single())
    posterior, alpha = MODEL[0], jes(MODEL[0], PAIRS)
    query = posterior.at(Q)
    at = alpha.conditioned.at(Q, query)
    taken = np.sum(at.z**2, 2)
    given = np.maximum(query.variance[:, None] - taken, posterior.floor[:, None, None])
    noise = posterior.noise[:, None, None]
    mean = query.means + np.einsum("mpiq,mpi->mpq", at.z, alpha.conditioned.shift)
    beta = (BEST[..., None] - mean) / np.sqrt(given)
    conditioning = 0.5 * np.log((query.variance[:, None] + noise) / (given + noise))
    truncation = divergence(beta, given / (given + noise))
    exact = (conditioning + truncation).mean((0, 1))
    usual = beta.min((0, 1)) > -1
    assert usual.sum() >= 6
    np.testing.assert_allclose(general(Q)[usual], exact[usual], rtol=0.03)
    part = (general(Q) - conditioning.mean((0, 1))) / truncation.mean((0, 1))
    np.testing.assert_allclose(part[usual], 1.0, atol=0.08)


@pytest.mark.parametrize("function", [jes, jes_peak])
def test_a_constraint_that_always_holds_is_none(function: type) -> None:
    alone = function(MODEL[:1], PAIRS, Wanted.single())
    never_near = function(MODEL[:2], joint(0.0), limits(-1e6))
    np.testing.assert_allclose(never_near(Q), alone(Q), rtol=1e-9)


def test_a_constraint_that_never_holds_leaves_feasibility() -> None:
    """Without a feasible point nothing is conditioned on, and the objective does not matter."""
    wanted, none = limits(0.5), joint(0.0, mask=False)
    gain = jes(MODEL[:2], none, wanted)(Q)
    other = jes((MODEL[2], MODEL[1]), none, wanted)(Q)
    np.testing.assert_allclose(gain, other, rtol=1e-9)
    sure = cmes_ibo(MODEL[:2], none, wanted)(Q)
    assert np.all(gain < sure)
    assert np.max(gain) > 0.01


def test_an_active_constraint_counts_and_another_does_not() -> None:
    """A value at the limit is conditioned on; one well within is not, whatever it is."""
    wanted = limits(0.5)
    within = [jes(MODEL[:2], joint(c), wanted)(Q) for c in (0.9, 2.0)]
    np.testing.assert_array_equal(within[0], within[1])
    active = jes(MODEL[:2], joint(0.5), wanted)(Q)
    assert np.all(active > within[0] - 0.05)
    assert np.max(active - within[0]) > 0.01


def test_slopes_are_known_where_no_constraint_is_active() -> None:
    wanted = limits(0.5)
    active = joint(0.5)
    np.testing.assert_allclose(
        jes_peak(MODEL[:2], active, wanted)(Q), jes(MODEL[:2], active, wanted)(Q), rtol=1e-9
    )
    within = joint(0.9)
    apart = jes_peak(MODEL[:2], within, wanted)(Q) - jes(MODEL[:2], within, wanted)(Q)
    assert np.max(apart) > 0.01


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="2 posteriors need `wanted`"):
        jes(MODEL[:2], joint(0.0))  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="same outcomes, not of 2, 2 and 1"):
        jes(MODEL[:2], PAIRS, limits(0.0))
    with pytest.raises(ValueError, match="hyperparameter sets"):
        jes(tuple(p.of_sets(slice(0, 1)) for p in MODEL[:2]), joint(0.0), limits(0.0))


def entropy(z: np.ndarray, noise: float, rng: np.random.Generator) -> float:
    """Of draws seen through noise, by leaving one out."""
    y = z + np.sqrt(noise) * rng.normal(size=z.shape)
    power = -np.sum((y[:, None] - z) ** 2, -1) / (2 * noise)
    np.fill_diagonal(power, -INF)
    top = power.max(1)
    density = np.exp(power - top[:, None]).sum(1) / (len(z) - 1)
    return float(-np.mean(top + np.log(density)) + np.log(2 * np.pi * noise))


def test_gain_against_nested_draws() -> None:
    """What (f, c) at x says about (x*, f*), from 20,000 joint paths on a line.

    Paths are sorted into cells of x* and f*, of 250 each. The true gain and α have the same order,
    and agree to 30 % of the largest: cells are coarse, and f ≤ f* is imposed at x alone.
    """
    rng, noise, low = np.random.default_rng(1), 0.1, 0.5
    hypers = Hyperparameters([[0.25]], [1.0], [noise], [0.0])
    data = rng.uniform(size=(3, 1))
    model = tuple(gp_condition(hypers, data, rng.normal(size=3)) for _ in range(2))
    grid, places = np.linspace(0, 1, 21)[:, None], np.array([1, 6, 11, 19])
    f, c = (draws(posterior, grid, 20_000, rng) for posterior in model)
    feasible = c >= low
    none = ~feasible.any(1)
    index = np.where(none, 21, np.where(feasible, f, -INF).argmax(1))
    star = np.where(none, 0.0, np.where(feasible, f, -INF).max(1))
    true = np.zeros(len(places))
    for cell in np.unique(index):
        own = np.flatnonzero(index == cell)
        own = own[np.argsort(star[own])]
        for part in np.array_split(own, max(len(own) // 250, 1)):
            for i, x in enumerate(places):
                few = rng.permutation(part)[:250]
                z = np.stack([f[few, x], c[few, x]], 1)
                true[i] -= len(part) / len(f) * entropy(z, noise, rng) if len(few) > 9 else 0.0
    for posterior in model:
        true += 0.5 * np.log(2 * np.pi * np.e * (posterior.predict(grid[places])[1][0] + noise))
    some = np.flatnonzero(~none)[:600]
    x = grid[index[some]]
    at = np.stack([star[some], c[some, index[some]]], -1)
    at[:, 1] = np.where(at[:, 1] < low + 0.1, low, at[:, 1])  # between two points of the grid
    stars = Optima(
        x[None, :, None], at[None, :, None], np.ones((1, len(some), 1), bool), np.zeros((1, 600))
    )
    alpha = jes(model, stars, limits(low))(grid[places])
    assert np.max(np.abs(alpha - true)) < 0.3 * np.max(true)
    assert np.corrcoef(alpha, true)[0, 1] > 0.95


def draws(
    posterior: Posterior, grid: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Joint draws of f on a grid."""
    mean, covariance = posterior.joint(grid)
    factor = np.linalg.cholesky(covariance[0] + 1e-9 * np.eye(len(grid)))
    return mean[0] + rng.normal(size=(count, len(grid))) @ factor.T


def sampled(count: int) -> list[np.ndarray]:
    """Values of all outcomes at Q under each set: (M, count, q)."""
    rng = np.random.default_rng(3)
    found = []
    for posterior in MODEL:
        mean, variance = posterior.predict(Q)
        normal = rng.normal(size=(M, count, len(Q)))
        found.append(mean[:, None] + np.sqrt(variance)[:, None] * normal)
    return found


def test_constrained_ei_against_draws() -> None:
    """(C2) within five standard errors; with a limit far away, EI; without data that fit, (C1)."""
    f, c, _ = sampled(20_000)
    wanted = limits(-0.3, 0.8)
    alpha = constrained_ei(MODEL[:2], wanted, log=False)
    won = np.maximum(f - alpha.incumbent[:, :1, None], 0.0) * ((c > -0.3) & (c < 0.8))
    error = np.sqrt(won.var(1).mean(0) / (M * 20_000))
    assert np.all(np.abs(alpha(Q) - won.mean((0, 1))) < 5 * error + 1e-9)
    far = constrained_ei(MODEL[:2], limits(-1e6), log=True)
    np.testing.assert_allclose(far(Q), logei(MODEL[0])(Q), rtol=1e-9)
    nowhere = constrained_ei(MODEL[:2], limits(50.0), log=True)
    assert np.all(np.isinf(nowhere.incumbent))
    assert np.all(np.isfinite(nowhere(Q)))
    assert np.all(np.isfinite(nowhere.gradient(Q)))


@pytest.mark.parametrize("objectives", [2, 3])
def test_hypervolume_improvement_against_draws(objectives: int) -> None:
    """(H2) within five standard errors of the mean of (H1), box by box."""
    wanted = Wanted(tuple(range(objectives)), np.full(objectives, -INF), np.full(objectives, INF))
    alpha = ehvi(MODEL[:objectives], wanted, log=False)
    z = np.stack(sampled(4000)[:objectives], -1)[..., None, :]  # (M, S, q, 1, K)
    low, high = alpha.boxes.bounds()[:, :, 0]
    reference = alpha.reference[:, 0, None]
    low, high = np.maximum(low, reference), np.maximum(high, reference)
    won = np.maximum(np.minimum(z, high[:, None, None]) - low[:, None, None], 0.0)
    each = won.prod(-1).sum(-1)
    error = np.sqrt(each.var(1).mean(0) / (M * 4000))
    assert np.all(np.abs(alpha(Q) - each.mean((0, 1))) < 5 * error + 1e-9)


def test_parego_against_draws() -> None:
    """(H4) within five standard errors."""
    wanted = Wanted((0, 1), np.full(2, -INF), np.full(2, INF))
    weights = np.array([1.0, 0.6])
    alpha = parego(MODEL[:2], wanted, weights)
    each = []
    for posterior, z, w in zip(MODEL[:2], sampled(20_000)[:2], weights, strict=True):
        size = np.sqrt(posterior.outputscale)[:, None, None]
        each.append(w * (z - posterior.mean[:, None, None]) / size)
    won = np.maximum(np.min(each, 0) - alpha.incumbent[:, :1, None], 0.0)
    error = np.sqrt(won.var(1).mean(0) / (M * 20_000))
    assert np.all(np.abs(np.exp(alpha(Q)) - won.mean((0, 1))) < 5 * error + 1e-9)
    assert Cube.box(D).dimensions == alpha.dimensions


def test_no_gain_is_more_than_a_look_can_tell() -> None:
    """A front of two points that every path is far above in between: A is certain there."""
    places = np.broadcast_to(RNG.uniform(0.1, 0.9, (2, D)), (M, P, 2, D))
    f = np.broadcast_to(np.array([[-9.0, -8.0], [-8.0, -9.0]]), (M, P, 2, 2))
    low = Optima(places, f, np.ones((M, P, 2), dtype=bool), np.zeros((M, P)))
    alpha = jes(MODEL[:2], low, Wanted((0, 1), np.full(2, -INF), np.full(2, INF)))
    told = [0.5 * np.log1p(o.predict(Q)[1] / o.noise[:, None]).mean(0) for o in MODEL[:2]]
    values, most = alpha(Q), np.sum(told, axis=0)
    assert np.all(values <= most * (1 + 1e-9))
    np.testing.assert_allclose(values, most, rtol=0.5)
    step = 1e-6 * np.eye(D)
    ends = [[alpha(Q + sign * row) for row in step] for sign in (1, -1)]
    slopes = (np.array(ends[0]) - np.array(ends[1])).T / 2e-6
    np.testing.assert_allclose(alpha.gradient(Q), slopes, rtol=1e-4, atol=1e-5)
