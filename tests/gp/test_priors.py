"""Prior densities of log x against SciPy's of x, with the Jacobian."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, stats

from optpair.gp.priors import PAPER, Density, Gamma, LogNormal, LogUniform, Normal, Prior

GRID = np.linspace(-8.0, 6.0, 57)


# The density of log x is p(x)·x: the Jacobian is the last factor.
@pytest.mark.parametrize(
    ("prior", "d", "reference"),
    [
        (LogNormal(0.3, 0.7), 4, stats.lognorm(0.7, scale=np.exp(0.3))),
        (LogNormal(0.3, 0.7, per_dimension=True), 4, stats.lognorm(0.7, scale=2 * np.exp(0.3))),
        (Prior().lengthscale, 3, stats.lognorm(3**0.5, scale=np.exp(2**0.5) * 3**0.5)),
        (Prior().outputscale, 3, stats.lognorm(0.7)),
        (Prior().noise, 3, stats.lognorm(1.0, scale=np.exp(-4))),
        (Gamma(2.5, 5.0), 2, stats.gamma(2.5, scale=1 / 5)),
        (PAPER.lengthscale, 2, stats.gamma(2.5, scale=1 / 5)),
    ],
)
def test_density_of_the_logarithm_carries_the_jacobian(
    prior: Density, d: int, reference: stats.rv_continuous
) -> None:
    grid = GRID if not isinstance(prior, Gamma) else GRID[GRID < 4]
    found = prior.log_density(grid[:, None], d)[:, 0]
    difference = found - (reference.logpdf(np.exp(grid)) + grid)
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)


def test_gamma_has_the_papers_moments() -> None:
    """Mean ½ and variance 0.1 of ℓ, by integrating the density of log ℓ."""
    prior = PAPER.lengthscale
    grid = np.linspace(-25, 5, 40_001)
    density = np.exp(prior.log_density(grid, 2))
    density /= integrate.trapezoid(density, grid)
    x = np.exp(grid)
    mean = integrate.trapezoid(x * density, grid)
    assert mean == pytest.approx(0.5, rel=1e-6)
    assert integrate.trapezoid((x - mean) ** 2 * density, grid) == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("prior", [LogUniform(1e-2, 1e2), PAPER.noise, PAPER.outputscale])
def test_log_uniform_is_flat_inside_and_gone_soon_outside(prior: LogUniform) -> None:
    low, high = np.log(prior.low), np.log(prior.high)
    inside = np.linspace(low, high, 11)
    np.testing.assert_array_equal(prior.log_density(inside, 2), 0.0)
    outside = np.array([low - 10 * prior.edge, high + 10 * prior.edge])
    np.testing.assert_allclose(prior.log_density(outside, 2), -50.0, rtol=1e-9)
    # Each Gaussian edge carries ½·√2π·edge of mass.
    grid = np.linspace(low - 2, high + 2, 200_001)
    mass = integrate.trapezoid(np.exp(prior.log_density(grid, 2)), grid)
    assert mass == pytest.approx(high - low + prior.edge * np.sqrt(2 * np.pi), rel=1e-6)


@pytest.mark.parametrize("prior", [Prior().lengthscale, Gamma(2.5, 5.0), PAPER.noise])
def test_slopes_against_central_differences(prior: Density) -> None:
    """Inside and outside of a uniform one, but not where it bends."""
    grid, step = np.linspace(-16.01, 2.02, 12), 1e-5
    moved = step * np.eye(len(grid))
    ends = [prior.log_density(grid + s * moved, 3).sum(-1) for s in (1, -1)]
    np.testing.assert_allclose(
        prior.slope(grid, 3), (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("k", [1, 2, 5])
def test_entries_share_what_their_correlation_says(k: int) -> None:
    prior = LogNormal(0.3, 0.7, shared=0.6)
    covariance = 0.7**2 * (0.4 * np.eye(k) + 0.6 * np.ones((k, k)))
    logs = np.random.default_rng(0).normal(size=(20, k))
    reference = stats.multivariate_normal(np.full(k, 0.3), covariance)
    gaps = prior.log_density(logs, 4).sum(-1) - reference.logpdf(logs)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)
    # Starts are linear in standard normals, and have this covariance.
    root = prior.start(np.eye(k), 4) - 0.3
    np.testing.assert_allclose(root @ root.T, covariance, atol=1e-12)


def test_entries_are_alike_whatever_their_order() -> None:
    prior, logs = LogNormal(0.3, 0.7, shared=0.6), np.array([1.0, -2.0, 0.5])
    turned = prior.slope(logs[::-1], 4)[::-1]
    np.testing.assert_allclose(prior.slope(logs, 4), turned, rtol=1e-12)


@pytest.mark.parametrize("prior", [LogNormal(0.3, 0.7), LogNormal(0.3, 0.7, per_dimension=True)])
def test_log_normal_starts_are_its_own_quantiles(prior: LogNormal) -> None:
    loc = 0.3 + np.log(4) / 2 * prior.per_dimension
    starts = prior.start(np.array([-2.0, 0.0, 1.0]), 4)
    np.testing.assert_allclose(starts, loc + 0.7 * np.array([-2.0, 0.0, 1.0]))


def test_other_starts_lie_where_the_density_does() -> None:
    normal = np.linspace(-2.0, 2.0, 9)
    uniform = np.asarray(PAPER.noise.start(normal, 2))
    assert isinstance(PAPER.noise, LogUniform)
    shares = (uniform - np.log(PAPER.noise.low)) / np.log(PAPER.noise.high / PAPER.noise.low)
    np.testing.assert_allclose(shares, stats.norm.cdf(normal), atol=1e-12)
    # Gamma: in order, and from one tail to the other.
    gamma = np.exp(np.asarray(PAPER.lengthscale.start(normal, 2)))
    assert np.all(np.diff(gamma) > 0)
    assert stats.gamma(2.5, scale=0.2).cdf(gamma[0]) < 0.1
    assert stats.gamma(2.5, scale=0.2).cdf(gamma[-1]) > 0.95


def test_default_prior_is_the_documented_one() -> None:
    prior = Prior()
    assert prior.lengthscale == LogNormal(2**0.5, 3**0.5, True, 2 / 3)
    assert prior.outputscale == LogNormal(0.0, 0.7)
    assert prior.noise == LogNormal(-4.0, 1.0)
    assert (prior.mean_scale, prior.noise_floor) == (0.5, 1e-6)
    assert PAPER.mean_scale == 0.0
    assert PAPER.lengthscale == Gamma(2.5, 5.0)


def test_a_standard_normal() -> None:
    grid = np.linspace(-3.0, 3.0, 7)
    gaps = Normal().log_density(grid, 2) - stats.norm.logpdf(grid)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-12)
    np.testing.assert_array_equal(Normal().slope(grid, 2), -grid)
    np.testing.assert_array_equal(Normal().start(grid, 2), grid)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogNormal(0.0, 0.0), r"LogNormal.scale must be a finite number above zero, not 0"),
        (lambda: LogNormal(np.nan, 1.0), r"LogNormal.loc must be a finite number, not nan"),
        (lambda: LogNormal(0.0, 1.0, shared=1.0), r"LogNormal.shared must be from 0 to below 1"),
        (lambda: Gamma(-1.0, 1.0), r"Gamma.shape must be a finite number above zero, not -1"),
        (lambda: LogUniform(1.0, 1.0), r"low must be below high, not 1.0 and 1.0"),
        (lambda: LogUniform(0.0, 1.0), r"LogUniform.low must be a finite number above zero"),
        (lambda: LogUniform(0.1, 1.0, np.inf), r"LogUniform.edge must be a finite number above"),
        (lambda: Prior(outputscale=Normal()), r"outputscale must be a LogNormal, Gamma or Log"),
        (lambda: Prior(mean_scale=-0.1), r"Prior.mean_scale must be at least zero, not -0.1"),
        (lambda: Prior(noise_floor=0.0), r"Prior.noise_floor must be a finite number above zero"),
    ],
)
def test_what_is_no_prior_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
