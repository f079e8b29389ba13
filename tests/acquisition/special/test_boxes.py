"""Boxes, chances and gains of forbidden regions against draws, quadrature and limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from optpair.acquisition.special.boxes import Forbidden, trigamma
from optpair.acquisition.special.cells import cells
from optpair.acquisition.special.factors import pair_covariance, tail_variance
from optpair.acquisition.special.intervals import log_between
from optpair.acquisition.special.truncation import divergence, moment_matched_gain
from optpair.cube.lattice import lattice

RNG = np.random.default_rng(0)
INF = np.inf
NORMALS = ndtri((lattice(2, 2**14) + np.array([0.3217, 0.7811])) % 1)


def region(f: np.ndarray, *limits: tuple[int, float, float]) -> Forbidden:
    """Of one set and one optimum, (R, K)."""
    boxes = cells(f[None, None], np.ones((1, 1, len(f)), dtype=bool))
    return Forbidden(tuple(range(f.shape[1])), boxes, limits)


def each(*values: float) -> tuple[np.ndarray, ...]:
    return tuple(np.full((1, 1, 1), v) for v in values)


@pytest.mark.parametrize("objectives", [1, 2, 3, 4])
def test_boxes_are_a_partition_of_what_is_not_dominated(objectives: int) -> None:
    f, mask = RNG.normal(size=(2, 3, 6, objectives)), RNG.uniform(size=(2, 3, 6)) < 0.8
    mask[0, 0] = False
    low, high = cells(f, mask).bounds()
    z = RNG.normal(size=(500, objectives))
    for m, p in np.ndindex(2, 3):
        inside = ((z[:, None] > low[m, p]) & (z[:, None] <= high[m, p])).all(-1).sum(1)
        beaten = (f[m, p][mask[m, p]] >= z[:, None]).all(-1).any(1)
        np.testing.assert_array_equal(inside, ~beaten)
    assert low.shape[2] == {1: 1, 2: 7, 3: 28, 4: 84}[objectives]


def front(seed: int, objectives: int = 2) -> np.ndarray:
    """Points of a front around the origin."""
    directions = np.abs(np.random.default_rng(seed).normal(size=(8, objectives)))
    return 1.2 * directions / np.linalg.norm(directions, axis=1, keepdims=True)


@pytest.mark.parametrize("objectives", [2, 3])
def test_chance_of_a_front_against_draws(objectives: int) -> None:
    f = front(1, objectives)
    means, given = each(0.4, 0.1, -0.3)[:objectives], each(0.5, 1.2, 0.8)[:objectives]
    z = np.array(means).ravel() + np.sqrt(np.array(given).ravel()) * RNG.normal(
        size=(40_000, objectives)
    )
    share = np.mean(~(f >= z[:, None]).all(-1).any(1))
    error = np.sqrt(share * (1 - share) / len(z))
    found = np.exp(region(f).log_chance(means, given)).item()
    assert found == pytest.approx(share, abs=4 * error)


def by_draws(
    f: np.ndarray, limits: list[tuple[int, float, float]], rho2: np.ndarray, means: np.ndarray
) -> float:
    """(N3) of two outcomes with unit variance, by 16,384 quasi-random outcomes."""

    def chance(m: np.ndarray, sd: np.ndarray) -> np.ndarray:
        total = np.ones(len(m))
        objectives = 2 - len(limits)
        low, high = region(f[:, :objectives]).cells.bounds()[:, 0, 0]
        sides = [
            ndtr((high[:, o] - m[:, o, None]) / sd[o]) - ndtr((low[:, o] - m[:, o, None]) / sd[o])
            for o in range(objectives)
        ]
        total = np.prod(sides, 0).sum(1)
        for o, least, most in limits:
            total *= ndtr((most - m[:, o]) / sd[o]) - ndtr((least - m[:, o]) / sd[o])
        return total

    Z = chance(means[None], np.ones(2))[0]
    seen = chance(means + np.sqrt(rho2) * NORMALS, np.sqrt(1 - rho2))
    w = (1 - seen) / (1 - Z)
    return float(np.mean(np.where(w > 0, w * np.log(np.maximum(w, 1e-300)), 0.0) - w + 1))


@pytest.mark.parametrize("rho2", [(0.1, 0.1), (0.5, 0.7), (0.9, 0.6), (0.99, 0.99)])
@pytest.mark.parametrize(
    "limits", [[], [(1, -0.3, INF)], [(1, 0.8, INF)], [(1, -0.5, 0.6)], [(1, -INF, 0.2)]]
)
def test_gain_against_quasi_random_outcomes(
    limits: list[tuple[int, float, float]], rho2: tuple[float, float]
) -> None:
    """Within 12 % of (N3) for boxes and for fronts: the beta distribution has two moments of P."""
    means = np.array([0.4, 0.2])
    share = np.array(rho2)
    f = front(2) if not limits else np.array([[1.0, 0.0]])
    exact = by_draws(f, limits, share, means)
    made = region(f if not limits else f[:, :1], *limits)
    gain = made.gain(each(*means), each(1.0, 1.0), each(*(1 / share - 1))).item()
    assert gain == pytest.approx(exact, rel=0.12)
    assert exact > 1e-3


@pytest.mark.parametrize("case", ["box", "front"])
def test_without_noise_it_is_the_logarithm(case: str) -> None:
    """(N3b) tends to (N2) as √(1 − ρ²) does to 0, from below."""
    made = region(front(3)) if case == "front" else region(np.array([[0.7]]), (1, -0.2, INF))
    moments = each(0.3, 0.1), each(1.0, 0.6)
    sure = made.gain(*moments, each(0.0, 0.0), noisy=False).item()
    assert sure == pytest.approx(-np.log1p(-np.exp(made.log_chance(*moments).item())), rel=1e-9)
    gains = [made.gain(*moments, each(n, n)).item() for n in (1e-2, 1e-4, 1e-8, 0.0)]
    assert np.all(np.diff(gains) > 0)
    assert gains[-2] == pytest.approx(sure, rel=1e-3)
    assert gains[-1] == pytest.approx(sure, rel=1e-9)


def test_one_objective_is_a_truncated_normal() -> None:
    """Within 4 % of the exact divergence for β ≥ −1, ρ² from 0.01 to 0.9999; (M4) is below it."""
    for beta in (-1.0, 0.0, 1.0, 2.0, 3.0):
        for rho2 in (0.01, 0.1, 0.5, 0.9, 0.99, 0.9999):
            exact = divergence(np.array(beta), np.array(rho2)).item()
            made = region(np.array([[beta]]))
            gain = made.gain(each(0.0), each(1.0), each(1 / rho2 - 1)).item()
            assert gain == pytest.approx(exact, rel=0.055)


def test_moments_are_weak_for_constraints() -> None:
    """(N4) at σ² → 0 loses half of (N2): the variances of z outside a box hardly fall."""
    z = RNG.normal(size=(400_000, 2))
    left = z[~((z > [0.5, 0.0]).all(1))]
    weak = -0.5 * np.sum(np.log(np.minimum(left.var(0), 1.0)))
    made = region(np.array([[0.5]]), (1, 0.0, INF))
    sure = made.gain(each(0.0, 0.0), each(1.0, 1.0), each(0.0, 0.0), noisy=False).item()
    assert weak < 0.7 * sure
    one = moment_matched_gain(np.array(0.5), np.array(1.0), np.array(0.5)).item()
    assert one > 0


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_tail_variance_against_the_bivariate_normal(share: float) -> None:
    for low in (-3.0, -0.5, 0.0, 2.0):
        joint = stats.multivariate_normal([0, 0], [[1, share], [share, 1]])
        exact = joint.cdf([-low, -low]) - ndtr(-low) ** 2
        value, by_low, by_share = tail_variance(np.array([low]), np.array([share]))
        assert value.item() == pytest.approx(exact, rel=1e-5, abs=1e-9)
        ends = [tail_variance(np.array([low + e]), np.array([share]))[0] for e in (1e-5, -1e-5)]
        assert by_low.item() == pytest.approx((ends[0] - ends[1]).item() / 2e-5, abs=1e-7)
        ends = [tail_variance(np.array([low]), np.array([share + e]))[0] for e in (1e-6, -1e-6)]
        assert by_share.item() == pytest.approx((ends[0] - ends[1]).item() / 2e-6, rel=1e-4)
        high = low + 0.8
        cross = pair_covariance(np.array([low]), np.array([high]), np.array([share]))[0].item()
        exact = joint.cdf([-low, -high]) - ndtr(-low) * ndtr(-high)
        assert cross == pytest.approx(exact, rel=2e-3, abs=2e-5)


def test_gains_hold_in_both_tails() -> None:
    """Means up to 40 deviations on either side: finite, never negative, slopes finite."""
    for made in (region(np.array([[0.0]]), (1, 0.0, INF)), region(front(4))):
        for away in (-40.0, -9.0, 9.0, 40.0):
            for noise in (0.0, 0.1):
                moments = each(away, away), each(1.0, 1.0), each(noise, noise)
                value, by_means, by_given, by_noise = made.gain_and_slopes(*moments)
                assert value.item() >= 0
                assert np.isfinite(value.item())
                assert np.all(np.isfinite(by_means))
                assert np.all(np.isfinite(by_given))
                assert np.all(np.isfinite(by_noise))
        assert made.gain(each(-40.0, -40.0), each(1.0, 1.0), each(0.1, 0.1)).item() == 0.0


def test_interval_chance_in_its_tails() -> None:
    low = np.array([-1.0, 5.0, 30.0, -31.0, -INF, 2.0])
    high = np.array([0.5, 6.0, 31.0, -30.0, -20.0, INF])
    value, by_low, by_high = log_between(low, high)
    plain = np.log(ndtr(high[:1]) - ndtr(low[:1]))
    np.testing.assert_allclose(value[:1], plain, rtol=1e-12)
    assert value[2] == pytest.approx(value[3], rel=1e-12)
    np.testing.assert_allclose(value[4:], stats.norm.logcdf([-20.0, -2.0]), rtol=1e-12)
    assert np.all(np.isfinite(by_low))
    assert np.all(np.isfinite(by_high))
    step = 1e-6
    ends = [log_between(low[:4] + e, high[:4])[0] for e in (step, -step)]
    np.testing.assert_allclose(by_low[:4], (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-9)


def test_trigamma() -> None:
    x = np.array([1.0, 2.0, 10.0, 1e6])
    known = [np.pi**2 / 6, np.pi**2 / 6 - 1, 0.10516633568168575, 1.0000005000001667e-06]
    np.testing.assert_allclose(trigamma(x), known, rtol=1e-11)


@pytest.mark.parametrize("objectives", [1, 2])
def test_slopes_by_mean_variance_and_noise(objectives: int) -> None:
    """Of (N3b), against central differences."""
    f = front(2, 2) if objectives == 2 else np.array([[0.7]])
    made = region(f, (objectives, -0.4, 0.9))
    moments = [each(*own[: objectives + 1]) for own in ((0.3, -0.2, 0.1), (0.8, 1.1, 0.6))]
    moments.append(each(*(0.2, 0.5, 0.3)[: objectives + 1]))
    _, *found = made.gain_and_slopes(*moments)
    for part, o in np.ndindex(3, objectives + 1):
        ends = []
        for step in (1e-5, -1e-5):
            moved = [list(own) for own in moments]
            moved[part][o] = moved[part][o] + step
            ends.append(made.gain(*(tuple(own) for own in moved)).item())
        numeric = (ends[0] - ends[1]) / 2e-5
        assert found[part][o].item() == pytest.approx(numeric, rel=1e-5, abs=1e-8)
