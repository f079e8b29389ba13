"""PI, UCB, Thompson sampling, the mean and the controls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import HYPERS, PENDING, D, M, N, X, Y, condition, grown, one_set, slopes, source
from scipy import stats

from optpair.acquisition import CONTROLS, Acquisition, Context, mean, pi, ts, ucb
from optpair.acquisition.pi import build as build_pi
from optpair.acquisition.ts import build as build_ts
from optpair.acquisition.ucb import build as build_ucb
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.gp import sample_paths
from optpair.problem.layout import Layout
from optpair.runtime.streams import Stream

RNG = source()
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])
# A number, an integer from 1 to 1000 on a log scale, and one of three categories.
MIXED = Cube(
    Layout(
        last=np.array([1.0, 999.0, 1.0, 1.0, 1.0]),
        offset=np.ones(5),
        log=np.array([False, True, False, False, False]),
        owner=(0, 1, 2, 2, 2),
        stepped=(1,),
        groups=((2, 5),),
    )
)


def context(**more: object) -> Context:
    posterior = condition(HYPERS, X, Y)
    return Context((posterior,), Cube.box(D), Q, Stream.of(0), **more)  # type: ignore[arg-type]


def test_probability_of_improvement() -> None:
    """P(f > best mean among the data + 0.01 √a), averaged over sets; by draws too."""
    posterior = condition(HYPERS, X, Y)
    mean, variance = posterior.predict(Q)
    margin = 0.01 * np.sqrt(HYPERS.outputscale)
    best = posterior.predict(X)[0].max(1) + margin
    z = (mean - best[:, None]) / np.sqrt(variance)
    np.testing.assert_allclose(pi(posterior)(Q), stats.norm.cdf(z).mean(0), rtol=1e-10)
    np.testing.assert_allclose(build_pi(context())(Q), pi(posterior)(Q), rtol=1e-12)
    draws = np.random.default_rng(1).normal(size=(M, len(Q), 50_000))
    share = ((mean[..., None] + np.sqrt(variance)[..., None] * draws) > best[:, None, None]).mean(0)
    error = share.std(-1) / np.sqrt(50_000)
    assert np.all(np.abs(share.mean(-1) - pi(posterior)(Q)) < 4 * error + 1e-6)


def test_thresholds_of_pi() -> None:
    posterior = condition(HYPERS, X, Y)
    mean, variance = posterior.predict(Q)
    each = np.array([0.0, 1.0, 2.0])
    for given in (each, 1.5):
        z = (mean - np.broadcast_to(given, M)[:, None]) / np.sqrt(variance)
        got = pi(posterior, threshold=given)(Q)
        np.testing.assert_allclose(got, stats.norm.cdf(z).mean(0), rtol=1e-10)
    assert np.all(pi(posterior, margin=1.0)(Q) < pi(posterior, margin=0.0)(Q))
    with pytest.raises(ValueError, match="threshold must be a number or have shape"):
        pi(posterior, threshold=[1.0, 2.0])


def test_confidence_bound() -> None:
    """The mean bound over sets; κ grows with observations and parameters, and can be given."""
    posterior = condition(HYPERS, X, Y)
    mean, variance = posterior.predict(Q)
    kappa = math.sqrt(0.4 * math.log(N ** (D / 2 + 2) * math.pi**2 / 0.3))
    assert 1.9 < kappa < 2
    for given, used in ((None, kappa), (0.5, 0.5), (0.0, 0.0)):
        truth = (mean + used * np.sqrt(variance)).mean(0)
        np.testing.assert_allclose(ucb(posterior, kappa=given)(Q), truth, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(build_ucb(context())(Q), ucb(posterior)(Q), rtol=1e-12)
    mixed = Context((posterior,), MIXED, Q, Stream.of(0))
    assert build_ucb(mixed).kappa > kappa  # three parameters
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="kappa must be"):
            ucb(posterior, kappa=wrong)


def test_confidence_bound_covers() -> None:
    """A one-sided bound: f is below it in Φ(κ) of the draws of one set."""
    own = one_set(0)
    posterior = condition(own, X, Y)
    m, s = (v[0] for v in posterior.predict(Q))
    draws = m + np.sqrt(s) * np.random.default_rng(2).normal(size=(20_000, len(Q)))
    share = (draws < ucb(posterior, kappa=1.5)(Q)).mean(0)
    p = stats.norm.cdf(1.5)
    assert np.all(np.abs(share - p) < 4 * np.sqrt(p * (1 - p) / 20_000))


def test_the_mean_is_the_mean() -> None:
    posterior = condition(HYPERS, X, Y)
    np.testing.assert_allclose(mean(posterior)(Q), posterior.predict(Q)[0].mean(0), rtol=1e-10)


def test_fantasies_are_averaged() -> None:
    values = np.random.default_rng(1).normal(size=(M, 4))
    rows = np.concatenate([X, [PENDING]])
    for function in (pi, ucb, mean):
        one = []
        for m, p in np.ndindex(M, 4):
            own = one_set(m)
            one.append(function(condition(own, rows, np.append(Y, values[m, p])))(Q))  # type: ignore[operator]
        np.testing.assert_allclose(
            function(grown(values))(Q), np.mean(one, 0), rtol=1e-7, atol=1e-10
        )  # type: ignore[operator]


def test_a_path_is_one_of_the_posteriors() -> None:
    """Of 120 seeds: mean and variance of the mixture over sets, and every set equally often."""
    posterior = condition(HYPERS, X, Y)
    seeds = 120
    drawn = [ts(posterior, seed, features=256) for seed in range(seeds)]
    values = np.array([alpha(Q) for alpha in drawn])
    means, variances = posterior.predict(Q)
    total = variances.mean(0) + means.var(0)
    error = np.sqrt(total / seeds)
    assert np.all(np.abs(values.mean(0) - mean(posterior)(Q)) < 4 * error)
    assert np.all(values.var(0) < 2 * total)
    assert np.all(values.var(0) > total / 2)
    scales = [float(alpha.path.covariance.outputscale[0]) for alpha in drawn]
    counts = [scales.count(a) for a in (1.0, 4.0, 0.5)]
    assert sum(counts) == seeds
    assert min(counts) > 40 - 4 * math.sqrt(120 * 2 / 9)


def test_a_path_of_the_engine() -> None:
    """One of the drawn paths, unchanged, the same for the same seed and another for another."""
    posterior = condition(HYPERS, X, Y)
    paths = sample_paths(posterior, 4, 5, features=64)
    every = paths.at(Q).reshape(-1, len(Q))
    chosen = set()
    for seed in range(12):
        given = Context((posterior,), Cube.box(D), Q, Stream.of(seed), (paths,))
        values = build_ts(given)(Q)
        same = np.flatnonzero(np.all(np.abs(every - values) < 1e-9, axis=1))
        assert len(same) == 1
        chosen.add(int(same[0]))
    assert len(chosen) > 4
    with pytest.raises(ValueError, match="needs sample paths"):
        build_ts(context())


@pytest.mark.parametrize("name", ["pi", "ucb", "mean", "ts"])
def test_slope_against_central_differences(name: str) -> None:
    posterior = condition(HYPERS, X, Y)
    alpha: Acquisition = {"pi": pi, "ucb": ucb, "mean": mean, "ts": ts}[name](posterior)  # type: ignore[operator]
    exact, numeric = slopes(alpha, Q)
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", list(CONTROLS))
def test_controls_are_legal_differ_and_repeat_by_stream(name: str) -> None:
    control, stream, region = CONTROLS[name], Stream.of(3), Region.whole(MIXED)
    points = np.array([control(stream, region, i) for i in range(40)])
    np.testing.assert_allclose(points, MIXED.snap(points), atol=1e-12)
    assert len(np.unique(points[:, 0])) == 40
    np.testing.assert_array_equal(points[17], control(stream, region, 17))
    assert np.max(np.abs(points[17] - control(Stream.of(4), region, 17))) > 1e-6


def test_controls_fill_the_cube() -> None:
    """Uniform marginals for both; the lattice's points are far more even, also past 1,024."""
    box = Region.whole(Cube.box(2))
    drawn = {
        name: np.array([control(Stream.of(0), box, i) for i in range(1000, 1064)])
        for name, control in CONTROLS.items()
    }
    assert stats.kstest(drawn["random"].ravel(), "uniform").pvalue > 0.01
    even = {name: stats.qmc.discrepancy(points) for name, points in drawn.items()}
    assert even["lattice"] < even["random"] / 2
