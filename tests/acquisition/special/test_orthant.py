"""Expectation propagation on an orthant: exact cases, Monte Carlo, a plain slow version, limits."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

from optpair.acquisition.special.orthant import TOLERANCE, match_site, propagate

K, B = 3, 8
RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=(B, K))
ROOTS = RNG.normal(size=(B, K, K))
COVARIANCE = ROOTS @ np.swapaxes(ROOTS, 1, 2) + 0.1 * np.eye(K)
ALL = np.ones((B, K), dtype=bool)


def q_of(
    mean: np.ndarray, V: np.ndarray, tau: np.ndarray, nu: np.ndarray
) -> tuple[np.ndarray, ...]:
    precision = np.linalg.inv(V) + np.diag(tau)
    covariance = np.linalg.inv(precision)
    return covariance @ (np.linalg.solve(V, mean) + nu), covariance


def truncated(mean: float, variance: float) -> tuple[float, float]:
    """Mean and variance of N(mean, variance) above zero, by SciPy."""
    sd = np.sqrt(variance)
    law = stats.truncnorm(-mean / sd, np.inf, loc=mean, scale=sd)
    return float(law.mean()), float(law.var())


def test_one_variable_is_exact() -> None:
    """EP with a single site is moment matching itself."""
    mean = np.array([-4.0, -1.0, 0.0, 0.5, 3.0, 9.0, -2.0, 1.0])[:, None]
    V = np.array([1.0, 4.0, 0.3, 2.0, 1.0, 1.0, 9.0, 1e-4])[:, None, None]
    tau, nu, change, _ = propagate(mean, V, np.ones((B, 1), dtype=bool))
    assert np.all(change <= TOLERANCE)
    for b in range(B):
        centre, variance = q_of(mean[b], V[b], tau[b], nu[b])
        expected = truncated(mean[b, 0], V[b, 0, 0])
        assert centre[0] == pytest.approx(expected[0], rel=1e-6)
        assert variance[0, 0] == pytest.approx(expected[1], rel=1e-6)


def test_independent_variables_are_exact() -> None:
    V = np.stack([np.diag(v) for v in np.exp(RNG.normal(size=(B, K)))])
    tau, nu, *_ = propagate(MEAN, V, ALL)
    for b in range(B):
        centre, covariance = q_of(MEAN[b], V[b], tau[b], nu[b])
        expected = [truncated(m, v) for m, v in zip(MEAN[b], np.diag(V[b]), strict=True)]
        np.testing.assert_allclose(centre, [e[0] for e in expected], rtol=1e-6)
        np.testing.assert_allclose(np.diag(covariance), [e[1] for e in expected], rtol=1e-6)


def test_every_site_matches_moments_at_the_end() -> None:
    """A plain check of the fixed point: cavities by subtraction, moments by SciPy."""
    tau, nu, change, _ = propagate(MEAN, COVARIANCE, ALL)
    assert np.all(change <= TOLERANCE)
    for b in range(B):
        centre, covariance = q_of(MEAN[b], COVARIANCE[b], tau[b], nu[b])
        for i in range(K):
            precision = 1 / covariance[i, i] - tau[b, i]
            cavity = (centre[i] / covariance[i, i] - nu[b, i]) / precision
            expected = truncated(cavity, 1 / precision)
            assert centre[i] == pytest.approx(expected[0], rel=1e-5)
            assert covariance[i, i] == pytest.approx(expected[1], rel=1e-5)


def test_moments_by_rejection() -> None:
    """Against draws from the truncated Gaussian: EP's own error is below 3 % of a deviation here.

    Its variances are off by a few per cent where variables correlate, and it is known for that.
    """
    rng = np.random.default_rng(1)
    tau, nu, *_ = propagate(MEAN, COVARIANCE, ALL)
    compared = 0
    for b in range(B):
        draws = rng.multivariate_normal(MEAN[b], COVARIANCE[b], 400_000, method="cholesky")
        kept = draws[np.all(draws >= 0, 1)]
        if len(kept) < 4_000:
            continue
        compared += 1
        centre, covariance = q_of(MEAN[b], COVARIANCE[b], tau[b], nu[b])
        sd, error = kept.std(0), 1 / np.sqrt(len(kept))
        assert np.all(np.abs(centre - kept.mean(0)) / sd < 0.03 + 4 * error)
        assert np.all(np.abs(np.diag(covariance) / sd**2 - 1) < 0.1 + 8 * error)
    assert compared >= 5


def test_sites_only_add_information() -> None:
    """τ ≥ 0 and ν ≥ 0, also for cavities far on either side."""
    for scale in (1.0, 30.0, 1e3):
        sites = propagate(scale * MEAN, COVARIANCE, ALL)
        assert np.all(sites.precision >= 0)
        assert np.all(sites.shift >= 0)
        assert np.all(np.isfinite(sites.shift))
    beta = np.linspace(-1e4, 40.0, 2001)
    tau, nu = match_site(beta, np.ones_like(beta))
    assert np.all((tau >= 0) & (nu >= 0) & np.isfinite(tau) & np.isfinite(nu))
    assert np.all(np.diff(tau) <= 1e-12 * tau[:-1])  # the more it cuts, the sharper the site


def test_a_truncation_that_cuts_nothing_has_no_site() -> None:
    far = propagate(MEAN + 1e3, COVARIANCE, ALL)
    assert np.all(far.precision == 0)
    assert np.all(far.sweeps == 1)


def test_inactive_truncations_are_left_out() -> None:
    """The other variables get the sites that they would have without the inactive one."""
    active = ALL.copy()
    active[:, 1] = False
    some = propagate(MEAN, COVARIANCE, active)
    keep = [0, 2]
    fewer = propagate(MEAN[:, keep], COVARIANCE[:, keep][:, :, keep], ALL[:, keep])
    assert np.all(some.precision[:, 1] == 0)
    np.testing.assert_allclose(some.precision[:, keep], fewer.precision, rtol=1e-6)


def test_a_batch_is_one_at_a_time() -> None:
    """A vector that has converged leaves the batch, and the others do not notice."""
    together = propagate(MEAN, COVARIANCE, ALL)
    assert len(set(together.sweeps.tolist())) > 1
    for b in range(B):
        alone = propagate(MEAN[b : b + 1], COVARIANCE[b : b + 1], ALL[b : b + 1])
        np.testing.assert_allclose(alone.precision[0], together.precision[b], rtol=1e-10)
        assert int(alone.sweeps[0]) == int(together.sweeps[b])


def test_damping_does_not_change_the_answer() -> None:
    plain, damped = (partial(propagate, damping=d, sweeps=200) for d in (1.0, 0.4))
    a, b = plain(MEAN, COVARIANCE, ALL), damped(MEAN, COVARIANCE, ALL)
    np.testing.assert_allclose(a.precision, b.precision, rtol=1e-5)
    assert b.sweeps.max() > a.sweeps.max()


def test_no_floating_point_warning_escapes() -> None:
    """A host may have them all raised, underflow included."""
    scales = np.array([1e-30, 1e-6, 1.0, 1e6])[:, None, None]
    V = scales[..., None] * COVARIANCE
    with np.errstate(all="raise"):
        for far in (-1e3, 0.0, 1e3):
            propagate((MEAN + far) * np.sqrt(scales), V, np.broadcast_to(ALL, (4, B, K)))
        match_site(np.linspace(-1e4, 1e4, 4001), np.array(1e-9))


def test_any_batch_shape() -> None:
    before = MEAN.copy(), COVARIANCE.copy()
    flat = propagate(MEAN, COVARIANCE, ALL)
    shaped = propagate(MEAN.reshape(2, 4, K), COVARIANCE.reshape(2, 4, K, K), ALL.reshape(2, 4, K))
    for a, b in zip(flat, shaped, strict=True):
        assert b.shape == (2, 4, *a.shape[1:])
        np.testing.assert_array_equal(a, b.reshape(a.shape))
    one = propagate(MEAN[0], COVARIANCE[0], ALL[0])
    assert one.precision.shape == (K,)
    assert one.change.shape == one.sweeps.shape == ()
    none = propagate(MEAN[:0], COVARIANCE[:0], ALL[:0])
    assert none.precision.shape == (0, K)
    np.testing.assert_array_equal(MEAN, before[0])  # sweeps work in place on copies
    np.testing.assert_array_equal(COVARIANCE, before[1])


def test_what_did_not_converge_is_said() -> None:
    sites = propagate(MEAN, COVARIANCE, ALL, sweeps=1)
    assert np.all(sites.sweeps == 1)
    assert sites.change.max() > 1e-2


def test_nearly_degenerate_covariances_give_finite_sites() -> None:
    """Copies of one variable, tiny variances, and bounds that are hopelessly violated."""
    ones = np.ones((K, K))
    for V in (ones + 1e-10 * np.eye(K), 1e-12 * (ones + np.eye(K)), np.diag([1.0, 1e-14, 1e6])):
        for centre in (-1e3, -1.0, 0.0, 1.0):
            many = np.broadcast_to(V, (B, K, K))
            sites = propagate(np.full((B, K), centre), many, ALL)
            assert np.all(np.isfinite(sites.precision))
            assert np.all(sites.precision >= 0)
