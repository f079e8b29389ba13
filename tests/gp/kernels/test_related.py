"""Earlier studies: (R1) to (R5) against dense algebra, limits, Monte Carlo and differences."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.gp.conditioned import Functionals, seen
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.kernels import Additive, Given, Kernel, Matern52, Mixed, Related
from optpair.gp.kernels.related import OFFSET_VAR
from optpair.gp.likelihood import Likelihood, Sample
from optpair.gp.paths import sample_paths
from optpair.gp.posterior import Posterior, fit
from optpair.gp.priors import Prior
from optpair.gp.process import Process

RNG = np.random.default_rng(7)
D = 3
COLUMNS = (0, 1, 2)
STUDY = np.repeat([0, 1], [5, 4])
EARLIER = Given(
    RNG.uniform(size=(9, D)),
    RNG.normal(size=9),
    np.repeat([0.02, 0.3], [5, 4]),
    STUDY,
    np.log([[0.4, 0.9, 2.0], [0.7, 0.3, 1.0]]),
    np.array([[0.5, 0.6, 0.7], [1.0, 0.4, 0.5]]),
)
PRESENT = Sample(RNG.uniform(size=(6, D)), RNG.normal(size=6), np.full(6, np.nan))
R = np.array([[0.9, 0.2], [0.05, 0.7], [0.99, 0.98]])
M = len(R)
BASE = {
    "lengthscale": np.array([[0.5, 0.8, 1.5], [0.3, 0.3, 2.0], [1.0, 0.6, 0.9]]),
    "outputscale": np.array([0.7, 1.6, 0.3]),
    "noise": np.array([0.01, 0.2, 0.05]),
    "mean": np.array([0.3, -0.2, 1.0]),
}
SETS = Hyperparameters(**BASE, related0=R[:, 0], related1=R[:, 1])
QUERY = RNG.uniform(size=(7, D))


def related(base: Kernel | None = None) -> Related:
    """A kernel that knows the rows of both studies."""
    return Related(base or Matern52(), EARLIER)


def posterior(r: np.ndarray | None = None, given: Given = EARLIER) -> Posterior:
    """Of the present values, after the earlier ones."""
    own = R if r is None else r
    hypers = Hyperparameters(**BASE, **{f"related{t}": own[:, t] for t in range(given.studies)})
    return fit(hypers, PRESENT, kernel=Related(Matern52(), given), columns=COLUMNS)


def correlation(X: np.ndarray, Y: np.ndarray, m: int) -> np.ndarray:
    """h under set m, one entry at a time."""
    apart = (X[:, None] - Y) / BASE["lengthscale"][m]
    r = np.sqrt(5 * np.sum(apart**2, -1))
    return np.asarray((1 + r + r**2 / 3) * np.exp(-r))


def dense(m: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The joint law of rows and f(points) under set m, from (R2): y − μ, K, cross, prior."""
    X = np.concatenate([EARLIER.X, PRESENT.X, points])
    study = np.concatenate([STUDY, np.full(len(X) - len(STUDY), 2)])
    r = np.append(R[m], 1.0)
    pairs = np.outer(r[study], r[study])
    pairs[study[:, None] == study] = 1.0
    K = pairs * correlation(X, X, m) * BASE["outputscale"][m]
    K += OFFSET_VAR * ((study[:, None] == study) & (study < 2))
    n = len(STUDY) + len(PRESENT.y)
    noise = np.concatenate([EARLIER.noise_var, np.full(len(PRESENT.y), BASE["noise"][m])])
    y = np.append(EARLIER.y, PRESENT.y) - BASE["mean"][m]
    return y, K[:n, :n] + np.diag(noise), K[:n, n:], K[n:, n:]


def test_a_posterior_is_that_of_the_joint_law() -> None:
    mean, variance = posterior().moments(QUERY)
    for m in range(M):
        y, K, cross, prior = dense(m, QUERY)
        solved = np.linalg.solve(K, cross)
        np.testing.assert_allclose(mean[m, 0], BASE["mean"][m] + y @ solved, atol=1e-9)
        truth = np.diagonal(prior) - np.sum(cross * solved, 0)
        np.testing.assert_allclose(variance[m], truth, atol=1e-9)


def test_nothing_is_borrowed_from_unrelated_studies() -> None:
    alone = fit(Hyperparameters(**BASE), PRESENT, kernel=Matern52(), columns=COLUMNS)
    beside = posterior(np.zeros((M, 2)))
    for found, truth in zip(beside.moments(QUERY), alone.moments(QUERY), strict=True):
        np.testing.assert_allclose(found, truth, atol=1e-10)
    np.testing.assert_allclose(beside.means_at_data(), alone.means_at_data(), atol=1e-10)
    np.testing.assert_allclose(beside.left_out(), alone.left_out(), atol=1e-10)
    np.testing.assert_array_equal(beside.told, PRESENT.X)
    values = {**BASE, **{f"related{t}": np.zeros(M) for t in range(2)}}
    theta = _theta(related(), values)
    cold = _likelihood(Matern52()).density(_theta(Matern52(), BASE))
    apart = _process(related()).table.log_prior(theta)[0]
    plain = _process(Matern52()).table.log_prior(_theta(Matern52(), BASE))[0]
    np.testing.assert_allclose(
        _likelihood(related()).density(theta) - apart, cold - plain, atol=1e-8
    )


def test_rows_of_the_same_function_are_data() -> None:
    """With r = 1 an earlier study is more data, but for its own offset."""
    scales = EARLIER.log_lengthscale[:1], EARLIER.unsure[:1]
    one = Given(EARLIER.X[:5], EARLIER.y[:5], np.full(5, 1e-4), STUDY[:5], *scales)
    found = posterior(np.ones((M, 1)), one)
    for m in range(M):
        sets = Hyperparameters(**{k: v[m : m + 1] for k, v in BASE.items()})
        X = np.concatenate([one.X, PRESENT.X])
        kernel = Matern52().bind(sets, COLUMNS)
        noise = np.append(one.noise_var, np.full(6, sets.noise[0]))
        K = kernel.between(X, X).K[0] + np.diag(noise)
        K[:5, :5] += OFFSET_VAR
        y = np.append(one.y, PRESENT.y) - sets.mean[0]
        cross = kernel.between(X, QUERY).K[0]
        truth = sets.mean[0] + y @ np.linalg.solve(K, cross)
        np.testing.assert_allclose(found.moments(QUERY)[0][m, 0], truth, atol=1e-8)


def test_paths_have_the_moments_of_the_posterior() -> None:
    known = posterior()
    paths = sample_paths(known, 4000, seed=3, features=4096).at(QUERY)
    mean, variance = known.moments(QUERY)
    error = np.sqrt(variance / paths.shape[1])
    assert (
        np.max(np.abs(paths.mean(1) - mean[:, 0]) / error) < 5
    )  # features of all paths are shared
    np.testing.assert_allclose(paths.var(1) / variance, 1.0, atol=0.2)


def test_single_precision_ranks_alike() -> None:
    paths = sample_paths(posterior(), 3, seed=0)
    size = np.sqrt(BASE["outputscale"])[:, None, None]
    close = paths.single().at(QUERY.astype(np.float32)) * size + BASE["mean"][:, None, None]
    np.testing.assert_allclose(close, paths.at(QUERY), atol=2e-3)


def test_slopes_of_moments_are_central_differences() -> None:
    known, step = posterior(), 1e-6
    rng = np.random.default_rng(0)
    by_means, by_variance = rng.normal(size=(M, 1, 7)), rng.normal(size=(M, 7))

    def total(X: np.ndarray) -> np.ndarray:
        query = known.at(X)
        return np.asarray(
            np.sum(by_means[:, 0] * query.means[:, 0] + by_variance * query.variance, 0)
        )

    slope = known.at(QUERY).pull(by_means, by_variance).sum(0)
    for k in range(D):
        away = step * np.eye(D)[k]
        truth = (total(QUERY + away) - total(QUERY - away)) / (2 * step)
        np.testing.assert_allclose(slope[:, k], truth, rtol=1e-5, atol=1e-6)


def test_a_value_appended_is_a_value_fitted() -> None:
    x, y = QUERY[0], 0.4
    grown = posterior().append(x, np.full((M, 1), y))
    more = Sample(np.vstack([PRESENT.X, x]), np.append(PRESENT.y, y), np.full(7, np.nan))
    truth = fit(SETS, more, kernel=related(), columns=COLUMNS)
    for found, wanted in zip(grown.moments(QUERY[1:]), truth.moments(QUERY[1:]), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_optima_are_seen_through_the_loadings() -> None:
    known = posterior()
    star = np.broadcast_to(QUERY[None, :2], (M, 2, D)).copy()
    found = seen(known, Functionals(((0, star),)))
    mean, variance = known.moments(QUERY[:2])
    np.testing.assert_allclose(found.mean[..., 0], mean[:, 0], atol=1e-9)
    np.testing.assert_allclose(found.covariance[..., 0, 0], variance, atol=1e-9)


def _process(kernel: Kernel) -> Process:
    return Process(COLUMNS, kernel, Prior())


def _likelihood(kernel: Kernel) -> Likelihood:
    return Likelihood(PRESENT, _process(kernel))


def _theta(kernel: Kernel, values: dict[str, np.ndarray]) -> np.ndarray:
    """θ of some values; a share of 0 is as far as it goes."""
    parts = []
    for block in _process(kernel).table.blocks:
        v = np.asarray(values[block.name], float).reshape(M, -1)
        if block.name == "mean":
            parts.append(v / 0.5)
        elif block.name == "noise":
            parts.append(np.log(v - 1e-6))
        elif block.name in ("lengthscale", "outputscale"):
            parts.append(np.log(v))
        else:
            parts.append(np.clip(np.log(v + 1e-300) - np.log1p(-v), -700, 700) / 4.0)
    return np.concatenate(parts, 1)


@pytest.mark.parametrize("base", [Matern52(), Mixed(), Additive()], ids=lambda k: k.name)
def test_the_likelihood_is_of_the_present_values_given_the_earlier(base: Kernel) -> None:
    kernel = related(base)
    more = {"rough": np.array([0.2, 0.5, 0.9]), "interactions": np.array([0.2, 0.5, 0.9])}
    values = {**BASE, **more, "related0": R[:, 0], "related1": R[:, 1]}
    theta = _theta(kernel, values)
    process = _process(kernel)
    found = _likelihood(kernel).density(theta) - process.table.log_prior(theta)[0]
    hypers = process.table.hyperparameters(theta)
    for m in range(M):
        one = hypers.some(slice(m, m + 1))
        known = fit(one, PRESENT, kernel=kernel, columns=COLUMNS)
        empty = PRESENT.some(slice(0))
        prior = fit(one, empty, kernel=kernel, columns=COLUMNS)
        mean, cov = prior.joint(PRESENT.X)
        K = cov[0] + one.noise[0] * np.eye(6)
        away = PRESENT.y - mean[0]
        truth = -0.5 * (away @ np.linalg.solve(K, away) + np.linalg.slogdet(K)[1])
        assert found[m] == pytest.approx(truth, abs=1e-7)
        assert known.before == 9


@pytest.mark.parametrize("base", [Matern52(), Mixed(), Additive()], ids=lambda k: k.name)
@pytest.mark.parametrize("temper", [0.3, 1.0])
def test_the_slope_of_the_likelihood_is_central_differences(base: Kernel, temper: float) -> None:
    kernel = related(base)
    more = {"rough": np.array([0.2, 0.5, 0.9]), "interactions": np.array([0.2, 0.5, 0.9])}
    theta = _theta(kernel, {**BASE, **more, "related0": R[:, 0], "related1": R[:, 1]})
    likelihood, step = _likelihood(kernel), 1e-5
    value, slope = likelihood.slope(theta, temper)
    np.testing.assert_allclose(value, likelihood.density(theta, temper), rtol=1e-12)
    for k in range(theta.shape[1]):
        away = step * np.eye(theta.shape[1])[k]
        ends = [likelihood.density(theta + sign * away, temper) for sign in (1, -1)]
        np.testing.assert_allclose(
            slope[:, k], (ends[0] - ends[1]) / (2 * step), rtol=2e-5, atol=2e-5
        )


def test_related_studies_say_what_length_scales_are() -> None:
    """(R5) integrates to one over log ℓ, whatever r is; at r = 0 it is the prior."""
    prior, d = Prior().lengthscale, 1
    scales = np.log([[0.4], [0.9]]), np.array([[0.5], [0.7]])
    one = Given(EARLIER.X, EARLIER.y, EARLIER.noise_var, STUDY, *scales)
    tie = Related(Matern52(), one).tie(prior, d)
    assert tie is not None
    grid = np.linspace(-15, 20, 20001)[:, None]
    centre, precision = prior.normal(1, 1)  # type: ignore[union-attr]
    p = np.exp(-0.5 * precision[0, 0] * (grid[:, 0] - centre[0]) ** 2) * np.sqrt(
        precision[0, 0] / (2 * np.pi)
    )
    for u in ([-9.0, -9.0], [0.3, -1.0], [2.0, 1.0], [9.0, -9.0]):
        parts = {
            "lengthscale": grid,
            **{f"related{t}": np.full((len(grid), 1), u[t]) for t in (0, 1)},
        }
        density = p * np.exp(tie.log_density(parts)[0])
        assert np.trapezoid(density, grid[:, 0]) == pytest.approx(1.0, abs=1e-6)
        if u == [-9.0, -9.0]:
            np.testing.assert_allclose(density, p, atol=1e-9)
        if u == [9.0, -9.0]:
            away = (grid[:, 0] - np.log(0.4)) / 0.5
            near = np.exp(-0.5 * away**2) / (0.5 * np.sqrt(2 * np.pi))
            np.testing.assert_allclose(density, near, atol=1e-6)
