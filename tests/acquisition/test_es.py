"""Entropy Search against a closed form, a GP refitted for every outcome, and limits."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from small_study import (
    HYPERS,
    D,
    M,
    X,
    Y,
    both_slopes,
    changed,
    grown,
    known,
    one_set,
    source,
    textbook,
)

from optpair.acquisition.base import Context
from optpair.acquisition.es import CLOSEST, build, es
from optpair.cube.cube import Cube
from optpair.runtime.streams import Stream

module = import_module("optpair.acquisition.es")  # `es` in the package is the function
RNG = source()
R = 6
Z = RNG.uniform(size=(R, D))
Q = np.concatenate([RNG.uniform(size=(9, D)), Z[:3], X[:2], [[0, 0]], [[1, 0]]])
FINE = {"draws": 4096, "outcomes": 21, "temperature": 1e-3}


def entropy(p: np.ndarray) -> float:
    return float(-np.sum(p[p > 0] * np.log(p[p > 0])))


@pytest.mark.parametrize(("m", "kernel"), [(0, "mixed"), (1, "rbf")])
def test_two_representers_have_a_closed_form(m: int, kernel: str) -> None:
    """P(x* = z₁) = Φ((m₁ − m₂)/sd) before and after an outcome, which is integrated over.

    4,096 draws: a probability is off by 0.008 at most (one standard error), and the same draws
    serve before and after.
    """
    alpha = es(known(one_set(m), kernel), Z[:2], **FINE)
    noise = HYPERS.noise[m]
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()

    def h(p: np.ndarray) -> np.ndarray:
        return -(p * np.log(p) + (1 - p) * np.log1p(-p))

    truth = []
    for x in Q:
        mean, V = textbook(m, np.concatenate([Z[:2], x[None]]), kernel=kernel)
        total = V[2, 2] + noise
        gap, spread = mean[0] - mean[1], V[0, 0] + V[1, 1] - 2 * V[0, 1]
        c = V[0, 2] - V[1, 2]
        after = (gap + c * nodes / np.sqrt(total)) / np.sqrt(spread - c**2 / total)
        p = np.clip(stats.norm.cdf(after), 1e-12, 1 - 1e-12)
        now = np.clip(stats.norm.cdf(gap / np.sqrt(spread)), 1e-12, 1 - 1e-12)
        truth.append(float(h(now) - weights @ h(p)))
    assert max(truth) > 0.05
    np.testing.assert_allclose(alpha(Q), truth, atol=0.012)


def test_gain_by_nested_monte_carlo() -> None:
    """Outcomes drawn, the GP refitted with each, and 4,000 draws of f(z) counted after each.

    An outcome from each of 200 equally likely parts, so that neighbours tell their error, and the
    same 4,000 draws before and after. What is allowed beside it is the error of these and of the
    library's 4,096.
    """
    rng = np.random.default_rng(1)
    alpha = es(known(one_set(1)), Z, **FINE)
    mean, V = textbook(1, Z)
    white = rng.normal(size=(4000, R))
    before = (mean + white @ np.linalg.cholesky(V + 1e-10 * np.eye(R)).T).argmax(1)
    start = entropy(np.bincount(before, minlength=R) / len(white))
    assert start > 0.5
    got = alpha(Q)
    assert got[:12].max() > 0.1
    for i in (2, 5, 6, 10, 11):
        centre, spread = textbook(1, Q[i : i + 1])
        after = []
        parts = stats.norm.ppf((np.arange(200) + rng.uniform(size=200)) / 200)
        for y in centre[0] + np.sqrt(spread[0, 0] + 0.3) * parts:
            m, W = textbook(1, Z, np.concatenate([X, Q[i : i + 1]]), np.append(Y, y))
            draws = m + white @ np.linalg.cholesky(W + 1e-10 * np.eye(R)).T
            after.append(entropy(np.bincount(draws.argmax(1), minlength=R) / len(draws)))
        error = np.sqrt(np.mean(np.diff(after) ** 2) / 2 / len(after))
        assert abs(got[i] - (start - np.mean(after))) < 4 * error + 0.02


def test_defaults_are_near_the_fine_function() -> None:
    """Few draws and outcomes and a warm softmax keep the order of points, very nearly."""
    posterior = known()
    points = np.random.default_rng(2).uniform(size=(64, D))
    coarse = es(posterior, Z)(points)
    fine = es(posterior, Z, 1, draws=1024, temperature=1e-3)(points)
    assert stats.spearmanr(coarse, fine)[0] > 0.97
    assert fine[coarse.argmax()] > 0.9 * fine.max()


def test_draws_after_an_outcome_have_its_mean_and_covariance() -> None:
    """(S2): (I − γ c̃c̃ᵀ)² = I − c̃c̃ᵀ/t, so moved draws follow the GP refitted on y."""
    alpha = es(known(one_set(0)), Z, draws=16)
    x, xi = Q[0], 0.7
    mean, V = textbook(0, np.concatenate([Z, x[None]]))
    c, total = V[:R, R], V[R, R] + 0.01
    L_inverse = alpha.inverse[0]
    tilde = L_inverse @ c
    gamma = 1 / (total * (1 + np.sqrt(1 - tilde @ tilde / total)))
    white = np.linalg.solve(L_inverse.T, alpha.mixed[0]).T  # (S, R)
    moved = alpha.draws[0, 0] + np.outer(xi / np.sqrt(total) - gamma * (white @ tilde), c)
    y = mean[R] + xi * np.sqrt(total)
    m, W = textbook(0, Z, np.concatenate([X, x[None]]), np.append(Y, y))
    root = np.linalg.inv(L_inverse) @ (np.eye(R) - gamma * np.outer(tilde, tilde))
    np.testing.assert_allclose(moved, m + white @ root.T, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(root @ root.T, W, atol=1e-6)


@pytest.mark.parametrize(("size", "temperature"), [(1.0, 0.25), (300.0, 0.0)])
def test_gain_by_a_softmax_of_each_draw_and_outcome(size: float, temperature: float) -> None:
    """(S1) to (S4) as they are written; also where e to the power of an exponent is infinite."""
    white = size * np.random.default_rng(5).normal(size=(24, R))
    alpha = module._of(known(one_set(1)), Z, white, 5, temperature)
    f, T, xi = alpha.draws[0, 0], alpha.temperature[0, 0], alpha.outcomes
    for x, value in zip(Q, alpha(Q), strict=True):
        _, V = textbook(1, np.concatenate([Z, x[None]]))
        c, total = V[:R, R], V[R, R] + HYPERS.noise[1]
        rho2 = np.sum((alpha.inverse[0] @ c) ** 2) / total
        gamma = 1 / (total * (1 + np.sqrt(max(1 - rho2, CLOSEST))))
        back = gamma * (c @ alpha.mixed[0])
        moved = [f + np.outer(e / np.sqrt(total) - back, c) for e in xi]
        p = np.array([np.mean([softmax(row / T) for row in rows], 0) for rows in moved])
        truth = entropy(alpha.weights @ p) - alpha.weights @ [entropy(row) for row in p]
        assert value == pytest.approx(truth, rel=1e-6, abs=1e-10)


def test_slope_against_central_differences() -> None:
    """The derivative is that of the function as it stands, softmax and all.

    At a representer ρ² has a maximum; without noise in V the slope of √(1 − ρ²) is bounded by σ.
    """
    alpha = es(known(), Z)
    exact, numeric = both_slopes(alpha, Q)
    assert np.max(np.abs(exact)) > 0.1
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e4])
def test_gain_is_never_negative(noise: float) -> None:
    """Nor infinite, nor more than there is to know; with representers that coincide, too."""
    posterior = known(changed(noise=np.full(M, noise)))
    alpha = es(posterior, np.concatenate([Z[:4], Z[:2]]))
    values = alpha(np.concatenate([Q, Z[:4], X]))
    assert np.all(np.isfinite(values))
    assert np.all(values >= -1e-12)
    assert np.all(values <= np.log(R))


def test_several_sets_are_averaged_gains() -> None:
    together = es(known(), Z, draws=32)(Q)
    each = [es(known(one_set(m)), Z, draws=32)(Q) for m in range(M)]
    np.testing.assert_allclose(together, np.mean(each, 0), rtol=1e-8)
    assert np.std(each, 0).max() > 1e-3


def test_far_away_nothing_is_learnt() -> None:
    alpha = es(known(), Z)
    np.testing.assert_allclose(alpha([[80.0, 90.0]]), 0, atol=1e-12)
    alone = es(known(), Z[:1])
    np.testing.assert_allclose(alone(Q), 0, atol=1e-12)


def test_pending_points_are_averaged_over_fantasies() -> None:
    values = np.random.default_rng(1).normal(size=(M, 2))
    both = es(grown(values), Z, draws=32)
    each = [es(grown(values[:, [i]]), Z, draws=32)(Q) for i in range(2)]
    np.testing.assert_allclose(both(Q), np.mean(each, 0), rtol=1e-8)
    assert np.max(np.abs(each[0] - each[1])) > 1e-3


def test_slope_with_fantasies_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few queries give what one block gives."""
    alpha = es(grown(np.random.default_rng(1).normal(size=(M, 2))), Z, draws=32)
    exact, numeric = both_slopes(alpha, Q)
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-6)
    for rows, count in ((3, 6 * 6), (50, 2), (1000, 1)):
        monkeypatch.setattr(module, "TOGETHER", rows * 32 * R)
        assert len(alpha._blocks(M * 2, len(Q))) == count
        np.testing.assert_allclose(alpha.gradient(Q), exact, rtol=1e-12, atol=1e-14)
    monkeypatch.setattr(module, "CALM", 0.0)  # exponents less their largest
    np.testing.assert_allclose(alpha.gradient(Q), exact, rtol=1e-10, atol=1e-12)


def test_fewer_fantasies_than_pending_points_bring() -> None:
    """The engine's function has no more fantasies than there are draws for: 768/(3·32) = 8."""
    posterior = grown(np.random.default_rng(1).normal(size=(M, 12)))
    alpha = build(Context((posterior,), Cube.box(D), Q, Stream.of(0)))
    assert alpha.draws.shape == (M, 8, 32, len(Q))


def test_representers_are_drawn_anew_for_every_seed() -> None:
    posterior = known()
    points = np.random.default_rng(3).uniform(size=(256, D))
    first, again, other = (es(posterior, points, seed).z for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first, axis=0)) == 32  # without replacement
    assert all(np.any(np.all(points == z, 1)) for z in first)


def test_representers_are_drawn_in_proportion_to_expected_improvement() -> None:
    """One of sixteen points, 20,000 times: every frequency within 4.5 standard errors."""
    posterior = known()
    means, variances = posterior.predict(Q)
    sd = np.sqrt(variances)
    u = (means - posterior.predict(X)[0].max(1, keepdims=True)) / sd
    improvement = (sd * (stats.norm.pdf(u) + u * stats.norm.cdf(u))).mean(0)
    expected = improvement / improvement.sum()
    gumbel = np.random.default_rng(0).gumbel(size=(20_000, len(Q)))
    # The score is log EI plus noise: one call says what log EI is taken to be.
    score = module._log_improvement(posterior, Q)
    chosen = np.argmax(score + gumbel, 1)
    for i in range(20):
        drawn = module._representers(posterior, Q, 1, gumbel[i])
        np.testing.assert_array_equal(drawn, Q[chosen[i : i + 1]])
    counts = np.bincount(chosen, minlength=len(Q)) / len(chosen)
    assert expected.max() > 5 * expected.min()
    assert np.all(np.abs(counts - expected) < 4.5 * np.sqrt(expected / len(chosen)))


def test_wrong_arguments_are_refused() -> None:
    posterior = known()
    with pytest.raises(ValueError, match="points must have shape"):
        es(posterior, np.zeros((3, D + 1)))
    with pytest.raises(ValueError, match="representers must be at least 1"):
        es(posterior, Z, representers=0)
    with pytest.raises(ValueError, match="outcomes must be at least 1"):
        es(posterior, Z, outcomes=0)
    with pytest.raises(ValueError, match="draws must be at least 1"):
        es(posterior, Z, draws=0)
