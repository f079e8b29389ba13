"""Max-value Entropy Search: its four forms, and f* from the Gumbel approximation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import (
    HYPERS,
    PENDING,
    D,
    M,
    N,
    P,
    X,
    Y,
    changed,
    condition,
    grown,
    log_density,
    one_set,
    slopes,
    source,
)
from scipy import integrate, optimize, special, stats

from optpair.acquisition import (
    REGISTRY,
    Context,
    gibbon,
    gumbel_maxima,
    jes,
    mes,
    mes_noisy,
    pi,
    rmes,
)
from optpair.acquisition.mes import MES, _draw, _gumbel, _quantiles, build
from optpair.cube.cube import Cube
from optpair.gp import Hyperparameters, Posterior
from optpair.optima import Optima, sample
from optpair.runtime.streams import Stream

RNG = source()
STARS = Y.max() + RNG.uniform(0.1, 2.0, (M, P))
Q = np.concatenate([RNG.uniform(size=(9, D)), X[:4], [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]])
FORMS = (mes, gibbon, rmes, mes_noisy)


def test_without_noise_it_is_the_entropy_that_truncation_takes() -> None:
    """H of a normal less SciPy's entropy of a truncated one; the noise plays no part."""
    posterior = condition(HYPERS, X, Y)
    mean, variance = posterior.predict(Q)
    f = STARS - 1.5  # above and below the means
    beta = (f[:, :, None] - mean[:, None]) / np.sqrt(variance)[:, None]
    truth = stats.norm.entropy() - stats.truncnorm.entropy(-40.0, np.minimum(beta, 8.0))
    assert np.min(beta) < -1
    assert np.min(truth.mean((0, 1))) > 1e-3
    np.testing.assert_allclose(mes(posterior, f)(Q), truth.mean((0, 1)), rtol=1e-7, atol=1e-9)


def test_with_noise_it_is_the_entropy_of_y() -> None:
    """By integrating the density of y = f + ε with f below f*."""
    posterior = condition(one_set(1), X, Y)
    noise, f = 0.3, STARS[1, 0]
    mean, variance = (v[0] for v in posterior.predict(Q[:3]))
    truth = np.empty(3)
    for i, (m, s) in enumerate(zip(mean, variance, strict=True)):

        def surprise(y: float, m: float = m, s: float = s) -> float:
            log = float(log_density(y, m, s, noise, f))
            return -np.exp(log) * log

        ends = m - 9 * np.sqrt(s + noise), m + 9 * np.sqrt(s + noise)
        entropy, _ = integrate.quad(surprise, *ends, limit=200, epsabs=1e-11)
        truth[i] = np.log(2 * np.pi * np.e * (s + noise)) / 2 - entropy
    np.testing.assert_allclose(rmes(posterior, np.array([[f]]))(Q[:3]), truth, rtol=1e-7)


def test_divergence_of_y() -> None:
    """∫ p(y | f ≤ f*) log (p(y | f ≤ f*)/p(y)), integrated; without noise it is −log Φ(β)."""
    posterior = condition(one_set(1), X, Y)
    noise, f = 0.3, STARS[1, 0] - 1.5
    mean, variance = (v[0] for v in posterior.predict(Q[:3]))
    truth = np.empty(3)
    for i, (m, s) in enumerate(zip(mean, variance, strict=True)):

        def term(y: float, m: float = m, s: float = s) -> float:
            log = float(log_density(y, m, s, noise, f))
            return np.exp(log) * (log - stats.norm.logpdf(y, m, np.sqrt(s + noise)))

        ends = m - 9 * np.sqrt(s + noise), m + 9 * np.sqrt(s + noise)
        truth[i], _ = integrate.quad(term, *ends, limit=200, epsabs=1e-11)
    got = mes_noisy(posterior, np.array([[f]]))(Q[:3])
    np.testing.assert_allclose(got, truth, rtol=1e-7)
    beta = (f - mean) / np.sqrt(variance)
    r = stats.norm.pdf(beta) / stats.norm.cdf(beta)
    share = variance / (variance + noise)
    other = rmes(posterior, np.array([[f]]))(Q[:3]) - 0.5 * share * beta * r
    np.testing.assert_allclose(got, other, rtol=1e-9)
    sure = condition(changed(one_set(1), noise=np.full(1, 1e-10)), X, Y)
    mean, variance = (v[0] for v in sure.predict(Q[:9]))
    np.testing.assert_allclose(
        mes_noisy(sure, np.array([[f]]))(Q[:9]),
        -stats.norm.logcdf((f - mean) / np.sqrt(variance)),
        rtol=1e-3,
        atol=1e-14,
    )


def test_moment_matched_closed_form() -> None:
    """½ log of the ratio of variances of y, the second with SciPy's truncated normal."""
    posterior = condition(HYPERS, X, Y)
    mean, s = (v[:, None] for v in posterior.predict(Q))
    noise = HYPERS.noise[:, None, None]
    v = stats.truncnorm.var(-np.inf, (STARS[..., None] - mean) / np.sqrt(s))
    truth = np.log((s + noise) / (s * v + noise)) / 2
    np.testing.assert_allclose(gibbon(posterior, STARS)(Q), truth.mean((0, 1)), rtol=1e-7)


@pytest.mark.parametrize(("form", "noise"), [(mes, 0.0), (rmes, 0.3)])
def test_entropies_by_draws(form: type[MES], noise: float) -> None:
    """H[f] or H[y] less the mean surprise of 200,000 draws with f ≤ f*."""
    posterior = condition(one_set(1), X, Y)
    draws, f = 200_000, float(np.max(posterior.predict(Q)[0])) + 0.3
    got = form(posterior, np.array([[f]]))(Q[:4])  # type: ignore[call-arg,arg-type]
    rng = np.random.default_rng(8)
    for i, (m, s) in enumerate(zip(*(v[0, :4] for v in posterior.predict(Q)), strict=True)):
        above = (f - m) / np.sqrt(s)
        below = m + np.sqrt(s) * stats.truncnorm.rvs(-np.inf, above, size=draws, random_state=rng)
        y = below + np.sqrt(noise) * rng.normal(size=draws)
        log = log_density(y, m, s, noise, f)
        gain = np.log(2 * np.pi * np.e * (s + noise)) / 2 + log.mean()
        assert abs(got[i] - gain) < 4 * log.std() / np.sqrt(draws)


def test_moment_matched_by_draws() -> None:
    """½ log of the ratio of variances of y, with and without f ≤ f*, over 400,000 draws."""
    posterior = condition(one_set(1), X, Y)
    draws, f = 400_000, float(np.max(posterior.predict(Q)[0])) + 0.3
    mean, variance = (v[0] for v in posterior.predict(Q[:4]))
    rng = np.random.default_rng(1)
    z = stats.truncnorm.rvs(
        -np.inf,
        (f - mean) / np.sqrt(variance),
        size=(draws, 4),
        random_state=rng,
    )
    y = np.sqrt(variance) * z + np.sqrt(0.3) * rng.normal(size=(draws, 4))
    ratio = (variance + 0.3) / y.var(0)
    centred = (y - y.mean(0)) ** 2
    error = centred.std(0) / centred.mean(0) / np.sqrt(draws) / 2
    assert np.all(np.abs(gibbon(posterior, np.array([[f]]))(Q[:4]) - np.log(ratio) / 2) < 4 * error)


def test_moment_matching_is_a_lower_bound() -> None:
    posterior = condition(HYPERS, X, Y)
    points = np.random.default_rng(2).uniform(size=(216, D))
    matched, exact = gibbon(posterior, STARS)(points), rmes(posterior, STARS)(points)
    assert np.all(matched <= exact + 1e-12)
    assert np.max(exact - matched) > 1e-3


def test_less_noise_tells_more_and_none_is_the_noiseless_form() -> None:
    """The query's noise alone; noise blurs the edge at f* over σ/√s, about 1e-5 at the last."""
    posterior = condition(HYPERS, X, Y)
    quieter = [replace(posterior, noise=np.full(M, noise)) for noise in (1.0, 1e-2, 1e-13)]
    values = [rmes(quiet, STARS)(Q) for quiet in quieter]
    assert np.all(np.diff(values, axis=0) > 0)
    np.testing.assert_allclose(values[-1], mes(posterior, STARS)(Q), rtol=1e-4, atol=1e-5)


def test_without_noise_a_maximum_that_is_known_stays_worth_a_look() -> None:
    """Where f* = m(x), f(x) ≤ f* halves what f(x) may be, however narrow that is: log 2.

    With noise the gain is at most ½ log(1 + s/σ²), which vanishes with s. This is why `mes` and
    `mes-paths` ask for a point again that is pending or has been seen many times.
    """
    # All but one datum are known well; the noise of a query is still the inferred one.
    known = condition(one_set(1), X, Y, noise_var=np.append(np.full(N - 1, 1e-3), np.nan))
    mean, s = (float(v[0, 0]) for v in known.predict(X))
    f = np.array([[mean]])
    assert mes(known, f)(X[:4])[0] == pytest.approx(np.log(2), rel=1e-6)
    for form in (gibbon, rmes):
        assert 0 < form(known, f)(X[:4])[0] < np.log1p(s / 0.3) / 2 < 2e-3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-2, 1e4])
def test_gain_is_never_negative_nor_infinite(form: type[MES], noise: float) -> None:
    posterior = condition(changed(noise=np.full(M, noise)), X, Y)
    for shift in (0.0, -6.0, 20.0):
        alpha = form(posterior, STARS + shift)(Q)  # type: ignore[call-arg,arg-type]
        assert np.all(np.isfinite(alpha))
        assert np.all(alpha >= -1e-14)


def test_one_maximum_has_the_choice_of_pi() -> None:
    """Both fall in β = (f* − m)/√s alone."""
    posterior = condition(one_set(0), X, Y)
    points = np.random.default_rng(3).uniform(size=(256, D))
    for f in (0.5, 1.5, 3.0):
        gain, chance = mes(posterior, np.array([[f]]))(points), pi(posterior, threshold=f)(points)
        np.testing.assert_array_equal(np.argsort(gain), np.argsort(chance))


def test_jes_tells_at_least_as_much() -> None:
    """Information about (x*, f*) is at least that about f*, in expectation over the pair.

    Exact terms, 200 pairs, at points apart from the data: the mean difference is positive by more
    than four of its standard errors at most of them, and nowhere negative by as much.
    """
    own = Hyperparameters([[0.3, 0.4]], [1.0], [0.1], [0.0])
    posterior = condition(own, X, Y)
    stars = sample(posterior, 200, features=256, candidates=256, steps=8)
    points = np.random.default_rng(4).uniform(size=(6, D))
    differences = np.array(
        [
            jes(posterior, pair, exact=True)(points) - rmes(posterior, pair)(points)
            for pair in (
                Optima.pairs(stars.star[:, i : i + 25], stars.best[:, i : i + 25])
                for i in range(0, 200, 25)
            )
        ]
    )
    error = differences.std(0, ddof=1) / np.sqrt(len(differences))
    assert np.all(differences.mean(0) > -4 * error)
    assert np.sum(differences.mean(0) > 4 * error) >= 4


@pytest.mark.parametrize("form", FORMS)
def test_slope_against_central_differences(form: type[MES]) -> None:
    alpha = form(condition(HYPERS, X, Y), STARS)  # type: ignore[call-arg,arg-type]
    exact, numeric = slopes(alpha, Q)
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


def test_sets_and_fantasies_are_averaged_gains() -> None:
    """Fantasy p belongs to f*_p: a GP refitted for each, one at a time."""
    values = np.random.default_rng(1).normal(size=(M, P))
    each = [
        gibbon(
            condition(one_set(m), np.concatenate([X, [PENDING]]), np.append(Y, values[m, p])),
            STARS[m : m + 1, p : p + 1],
        )(Q)
        for m, p in np.ndindex(M, P)
    ]
    np.testing.assert_allclose(gibbon(grown(values), STARS)(Q), np.mean(each, 0), rtol=1e-7)


def test_quartiles_of_a_maximum() -> None:
    """Against SciPy's root of the product; spreads from 1e-6 to 1, and one point alone."""
    rng = np.random.default_rng(5)
    means = rng.normal(size=(2, 3, 400))
    sd = 10 ** rng.uniform(-6, 0, (2, 1, 400))
    means[1, :, 0] = 5.0  # one point decides
    sd[1, :, 0] = 1e-4
    got = _quantiles(means, sd)
    for i, j in np.ndindex(2, 3):
        for k, q in enumerate((0.25, 0.5, 0.75)):

            def above(t: float, i: int = i, j: int = j, q: float = q) -> float:
                z = (t - means[i, j]) / sd[i, 0]
                return float(np.sum(stats.norm.logcdf(z)) - np.log(q))

            root = optimize.brentq(above, -1, 10, xtol=1e-14, rtol=1e-14)
            assert got[i, j, k] == pytest.approx(root, abs=1e-10)
    alone = _quantiles(means[..., 3:4], sd[..., 3:4])
    normal = means[..., 3:4] + sd[..., 3:4] * special.ndtri([0.25, 0.5, 0.75])
    np.testing.assert_allclose(alone, normal, rtol=1e-12)


def gumbel(posterior: Posterior, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _gumbel(posterior, *posterior.moments(np.concatenate([posterior.X, points])))


def test_gumbel_has_the_quartiles_and_the_draws_are_its_own() -> None:
    posterior = condition(HYPERS, X, Y)
    points = np.random.default_rng(6).uniform(size=(300, D))
    location, scale = gumbel(posterior, points)
    mean, variance = posterior.predict(np.concatenate([X, points]))
    for m in range(M):
        low, middle, high = stats.gumbel_r.ppf([0.25, 0.5, 0.75], location[m, 0], scale[m, 0])

        def log_share(t: float, m: int = m) -> float:
            return float(stats.norm.logcdf((t - mean[m]) / np.sqrt(variance[m])).sum())

        assert np.exp(log_share(middle)) == pytest.approx(0.5, rel=1e-8)
        wide = optimize.brentq(lambda t: log_share(t) - np.log(0.75), low - 9, high + 9)
        narrow = optimize.brentq(lambda t: log_share(t) - np.log(0.25), low - 9, high + 9)
        assert high - low == pytest.approx(wide - narrow, rel=1e-8)
    drawn = _draw(np.random.default_rng(0).uniform(size=64), location, scale)
    u = stats.gumbel_r.cdf(drawn, location, scale)
    np.testing.assert_array_equal(np.floor(64 * u), np.tile(np.arange(64), (M, 1)))
    draws = gumbel_maxima(posterior, 64)
    np.testing.assert_array_equal(draws, gumbel_maxima(posterior, 64))
    assert np.max(np.abs(draws - gumbel_maxima(posterior, 64, 1))) > 1e-3


def test_independent_points_overstate_the_maximum() -> None:
    """Where the points are many length scales apart the approximation is right, else too high."""
    lattice = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), -1).reshape(-1, 2)
    one = Hyperparameters([[0.05, 0.05]], [1.0], [1e-4], [0.0])
    apart = condition(one, [[-9.0, -9.0]], [0.0])
    location, scale = (v[0, 0] for v in gumbel(apart, lattice))
    draws = np.random.default_rng(7).normal(size=(20_000, len(lattice))).max(1)
    medians = np.median(draws), location - scale * np.log(np.log(2))
    assert abs(medians[0] - medians[1]) < 4 * 1.25 * draws.std() / np.sqrt(20_000)
    same = condition(changed(one, lengthscale=np.full((1, 2), 1e3)), [[-9.0, -9.0]], [0.0])
    dense, _ = (v[0, 0] for v in gumbel(same, lattice))
    assert dense > 0.02  # one value everywhere, N(0, 1e-4): its median is 0


@pytest.mark.parametrize("name", ["mes", "mes-paths"])
def test_a_well_known_place_is_not_asked_for_again(name: str) -> None:
    """A hundred looks at the best place: next to nothing is left to learn there, as β ≥ 10."""
    many = np.concatenate([X, np.repeat(X[[np.argmax(Y)]], 100, axis=0)])
    posterior = condition(HYPERS, many, np.concatenate([Y, np.full(100, np.max(Y))]))
    stars = Optima.pairs(np.broadcast_to(X[np.argmax(Y)], (M, 4, D)), np.full((M, 4), np.max(Y)))
    context = Context((posterior,), Cube.box(D), X, Stream.of(0), None, stars)
    alpha = REGISTRY[name].build(context)
    assert isinstance(alpha, MES)
    best = np.max(posterior.means_at_data()[:, 0], axis=-1)
    sigma = np.sqrt(HYPERS.noise)
    assert np.all(alpha.f >= (best + 0.999 * sigma)[:, None])
    assert float(alpha(X[[np.argmax(Y)]])[0]) < 1e-20
    assert float(mes(posterior, stars)(X[[np.argmax(Y)]])[0]) > 0.1  # as f* is given, it is used


def test_what_is_refused() -> None:
    posterior = condition(HYPERS, X, Y)
    with pytest.raises(ValueError, match="needs optima"):
        build(Context((posterior,), Cube.box(D), X, Stream.of(0)), form="exact")
    with pytest.raises(ValueError, match="hyperparameter sets"):
        mes(posterior, STARS[:2])
    with pytest.raises(ValueError, match="count must be at least 1"):
        gumbel_maxima(posterior, 0)
