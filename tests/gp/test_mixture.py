"""Mixtures of normals against one normal, root finding and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from optpair.gp.mixture import moments, quantile

MEANS, SDS = np.array([-1.0, 0.3, 4.0]), np.array([0.5, 2.0, 0.1])
PROBABILITIES = [1e-6, 0.025, 0.3, 0.5, 0.66, 0.7, 0.975, 1 - 1e-6]


def quantile_of(probability: float, means: np.ndarray = MEANS, sds: np.ndarray = SDS) -> float:
    return float(quantile(means[:, None], sds[:, None], probability)[0])


def moments_of(means: np.ndarray = MEANS, sds: np.ndarray = SDS) -> tuple[float, float]:
    mean, sd = moments(means[:, None], sds[:, None])
    return float(mean[0]), float(sd[0])


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_one_component_is_a_normal(probability: float) -> None:
    one = np.array([2.0]), np.array([0.3])
    truth = stats.norm(2.0, 0.3).ppf(probability)
    assert quantile_of(probability, *one) == pytest.approx(truth, rel=1e-12)
    assert moments_of(*one) == (pytest.approx(2.0), pytest.approx(0.3))


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_invert_the_distribution_function(probability: float) -> None:
    def gap(x: float) -> float:
        return float(np.mean(stats.norm.cdf(x, MEANS, SDS))) - probability

    truth = optimize.brentq(gap, -30, 30, xtol=1e-13)
    assert quantile_of(probability) == pytest.approx(truth, abs=1e-8)


def test_moments_and_quantiles_against_draws() -> None:
    rng = np.random.default_rng(0)
    n = 200_000
    which = rng.integers(3, size=n)
    draws = rng.normal(MEANS[which], SDS[which])
    mean, sd = moments_of()
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(n)
    squares = (draws - mean) ** 2
    assert abs(squares.mean() - sd**2) < 4 * squares.std() / np.sqrt(n)
    for p in (0.025, 0.5, 0.975):
        share = np.mean(draws < quantile_of(p))
        assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / n)


def test_certain_components() -> None:
    """Without spread the quantiles are the means themselves."""
    for unit in (1.0, 1e10):
        certain = unit * np.array([1.0, 2.0]), np.zeros(2)
        assert quantile_of(0.25, *certain) == pytest.approx(unit)
        assert quantile_of(0.75, *certain) == pytest.approx(2 * unit)
        assert moments_of(*certain)[1] == pytest.approx(0.5 * unit)


def test_units_do_not_matter() -> None:
    for unit in (1e-200, 1e200):
        scaled = unit * MEANS, unit * SDS
        assert quantile_of(0.9, *scaled) == pytest.approx(unit * quantile_of(0.9), rel=1e-12)
        assert moments_of(*scaled)[1] == pytest.approx(unit * moments_of()[1], rel=1e-12)


def test_many_values_are_one_at_a_time() -> None:
    rng = np.random.default_rng(1)
    means, sds = rng.normal(size=(3, 5)), rng.uniform(0.1, 2.0, (3, 5))
    together, found = quantile(means, sds, 0.9), moments(means, sds)
    for i in range(5):
        assert together[i] == pytest.approx(quantile_of(0.9, means[:, i], sds[:, i]), rel=1e-12)
        mean, sd = moments_of(means[:, i], sds[:, i])
        assert (found[0][i], found[1][i]) == (pytest.approx(mean), pytest.approx(sd))
