"""Mixtures of normals against one normal, root finding and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from optpair.gp.mixture import Mixture

MIXTURE = Mixture(np.array([-1.0, 0.3, 4.0]), np.array([0.5, 2.0, 0.1]))
PROBABILITIES = [1e-6, 0.025, 0.3, 0.5, 0.66, 0.7, 0.975, 1 - 1e-6]


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_one_component_is_a_normal(probability: float) -> None:
    one = Mixture(np.array([2.0]), np.array([0.3]))
    truth = stats.norm(2.0, 0.3).ppf(probability)
    assert one.quantile(probability) == pytest.approx(truth, rel=1e-12)
    assert (one.mean, one.sd) == (pytest.approx(2.0), pytest.approx(0.3))


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_invert_the_distribution_function(probability: float) -> None:
    def gap(x: float) -> float:
        return float(np.mean(stats.norm.cdf(x, MIXTURE.means, MIXTURE.sds))) - probability

    truth = optimize.brentq(gap, -30, 30, xtol=1e-13)
    assert MIXTURE.quantile(probability) == pytest.approx(truth, abs=1e-8)


def test_moments_and_quantiles_against_draws() -> None:
    rng = np.random.default_rng(0)
    n = 200_000
    which = rng.integers(3, size=n)
    draws = rng.normal(MIXTURE.means[which], MIXTURE.sds[which])
    assert abs(draws.mean() - MIXTURE.mean) < 4 * MIXTURE.sd / np.sqrt(n)
    squares = (draws - MIXTURE.mean) ** 2
    assert abs(squares.mean() - MIXTURE.sd**2) < 4 * squares.std() / np.sqrt(n)
    for p in (0.025, 0.5, 0.975):
        share = np.mean(draws < MIXTURE.quantile(p))
        assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / n)


def test_certain_components() -> None:
    """Without spread the quantiles are the means themselves."""
    for unit in (1.0, 1e10):
        certain = Mixture(unit * np.array([1.0, 2.0]), np.zeros(2))
        assert certain.quantile(0.25) == pytest.approx(unit)
        assert certain.quantile(0.75) == pytest.approx(2 * unit)
        assert certain.sd == pytest.approx(0.5 * unit)


def test_units_do_not_matter() -> None:
    for unit in (1e-200, 1e200):
        scaled = Mixture(unit * MIXTURE.means, unit * MIXTURE.sds)
        assert scaled.quantile(0.9) == pytest.approx(unit * MIXTURE.quantile(0.9), rel=1e-12)
