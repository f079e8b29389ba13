"""Gains of cheaper looks against closed forms, draws, refitted GPs and central differences."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cases import slopes

from optpair.acquisition import (
    REGISTRY,
    Acquisition,
    Context,
    gibbon,
    jes,
    kg,
    mf_jes,
    mf_kg,
    mf_mes,
)
from optpair.acquisition.special.truncation import truncated_moments
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.gp import Hyperparameters, Posterior
from optpair.gp.kernels import Curves, Matern52
from optpair.gp.noise import Growth
from optpair.gp.posterior import as_sample, fit
from optpair.optima import Optima
from optpair.problem.parameters import Price
from optpair.runtime.streams import Stream

D, M, P, N = 3, 2, 3, 9
TARGETS = {1: 1.0, 2: 0.4}  # two fidelities, one with its target inside
KERNEL = Curves(Matern52(), tuple(TARGETS))
HYPERS = Hyperparameters(
    [[0.4, 1.2, 0.9], [0.7, 0.8, 2.0]],
    [1.0, 2.0],
    [0.02, 0.1],
    [0.1, -0.3],
    common=[0.3, 0.6],
    curve=[0.5, 0.8],
    growth=[[0.3, 0.2], [0.8, 1.0]],
)
STEPS, MESH = Price(1, 1.0, 9.0, True, 9.0), Price(2, 0.1, 0.6, False, 0.3)
GROWTH = Growth((STEPS, MESH))
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(N, D)), RNG.normal(size=N)
Q = RNG.uniform(0.02, 0.98, size=(12, D))
SCREENED = RNG.uniform(size=(20, D))


def at_target(points: np.ndarray) -> np.ndarray:
    found = points.copy()
    found[..., list(TARGETS)] = list(TARGETS.values())
    return found


STARS = Optima.pairs(at_target(RNG.uniform(size=(M, P, D))), Y.max() + RNG.uniform(0.1, 1, (M, P)))


def posterior(rows: np.ndarray = X, y: np.ndarray = Y, m: int | None = None) -> Posterior:
    hypers = HYPERS if m is None else HYPERS.some(slice(m, m + 1))
    sample = as_sample(rows, y, None, D)
    return fit(hypers, sample, kernel=KERNEL, columns=(0, 1, 2), growth=GROWTH)


@cache
def built(name: str, pending: bool = False) -> Acquisition:
    """As the engine builds it."""
    own = posterior()
    if pending:
        values = np.random.default_rng(3).normal(size=(M, P))
        own = own.with_fantasies(P).append(np.array([0.3, 0.2, 0.7]), values)
    cube = Cube.box(D)
    sought = Region.whole(cube).fixed(TARGETS)
    parts = (own,), cube, SCREENED, Stream.of(0), None, STARS
    return REGISTRY[name].build(Context(*parts, region=sought, targets=TARGETS))


LOOKING = [name for name, entry in REGISTRY.items() if entry.looks]


def test_who_looks() -> None:
    assert LOOKING == ["jes", "jes-exact", "jes-peak", "mf-mes", "mf-kg"]


def test_at_the_target_nothing_changes() -> None:
    """There ρ = 1: (N5) is (M4), and the place beside x is x."""
    own, T = posterior(), at_target(Q)
    pairs = [
        (mf_jes(own, STARS, TARGETS), jes(own, STARS)),
        (mf_jes(own, STARS, TARGETS, exact=True), jes(own, STARS, exact=True)),
        (mf_mes(own, STARS, TARGETS), gibbon(own, STARS)),
        (mf_kg(own, STARS, TARGETS, T), kg(own, STARS, T)),
    ]
    for looking, plain in pairs[:3]:
        np.testing.assert_allclose(looking(T), plain(T), rtol=1e-7)
    data = own.best_data(4)  # kg's own places are where the data were
    assert not np.allclose(data, at_target(data))
    assert np.all(pairs[3][0](T) > 0)


def moments(m: int, points: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of f at points, with the pair p as a tenth observation."""
    star, best = STARS.star[m, p], STARS.best[m, p]
    soft = 1e-8 * HYPERS.outputscale[m]  # δ
    sample = as_sample(np.vstack([X, star]), np.append(Y, best), [np.nan] * N + [soft], D)
    own = fit(HYPERS.some(slice(m, m + 1)), sample, kernel=KERNEL, columns=(0, 1, 2), growth=GROWTH)
    mean, covariance = own.joint(points)
    return mean[0], covariance[0]


def noise_at(x: np.ndarray, m: int) -> float:
    """(L4) from its definition."""
    steps, mesh = 9 ** x[1], 0.1 + 0.5 * x[2]
    rates = HYPERS.own["growth"][m]
    return float(HYPERS.noise[m] * (9 / steps) ** rates[0] * (0.3 / mesh) ** rates[1])


def textbook(x: np.ndarray) -> float:
    """(M4) with (N5) by refitting a GP for each pair."""
    total = 0.0
    for m, p in np.ndindex(M, P):
        mean, K = moments(m, np.stack([x, at_target(x)]), p)
        before = posterior(m=m).predict(x[None])[1][0, 0] + noise_at(x, m)
        beta = (STARS.best[m, p] - mean[1]) / np.sqrt(K[1, 1])
        rho2 = K[0, 1] ** 2 / (K[0, 0] * K[1, 1])
        lost = float(truncated_moments(np.array(beta)).lost)
        after = K[0, 0] * (1 - rho2 * lost) + noise_at(x, m)  # (N5)
        total += 0.5 * np.log(before / after)
    return total / (M * P)


def test_against_refitted_posteriors() -> None:
    np.testing.assert_allclose(built("jes")(Q), [textbook(x) for x in Q], rtol=1e-5)


def test_the_variance_against_draws() -> None:
    """(N5): f(x, u) where f(x, t) is at most f*, within 4.5 standard errors of 400,000 draws."""
    m, p, x = 0, 1, np.array([0.55, 0.95, 0.42])
    mean, K = moments(m, np.stack([x, at_target(x)]), p)
    best = mean[1] + 0.3 * np.sqrt(K[1, 1])  # a truncation that bites
    draws = np.random.default_rng(1).multivariate_normal(mean, K, size=400_000)
    kept = draws[draws[:, 1] <= best, 0]
    rho2 = K[0, 1] ** 2 / (K[0, 0] * K[1, 1])
    lost = float(truncated_moments(np.array(0.3)).lost)
    squares = (kept - kept.mean()) ** 2
    error = squares.std() / np.sqrt(len(kept))
    assert abs(squares.mean() - K[0, 0] * (1 - rho2 * lost)) < 4.5 * error
    assert rho2 * lost > 0.1


def test_no_gain_is_negative_and_a_bound_is_below_the_integral() -> None:
    for name in LOOKING:
        assert np.all(built(name)(Q) >= 0)
    assert np.all(built("jes")(Q) <= built("jes-exact")(Q) + 1e-9)
    assert np.all(built("mf-mes")(Q) <= built("jes")(Q) + 1e-9)


def test_a_fidelity_that_has_nothing_to_do_with_the_target_says_little() -> None:
    """Length scales of 0.02 in the fidelities: at other values of them nothing is learnt."""
    values = HYPERS.values() | {"lengthscale": [[0.4, 0.02, 0.02]] * 2, "common": [0.0, 0.0]}
    own = fit(
        Hyperparameters(**values),
        as_sample(X, Y, None, D),
        kernel=KERNEL,
        columns=(0, 1, 2),
        growth=GROWTH,
    )
    far = np.column_stack([Q[:, 0], np.full(12, 0.5), np.full(12, 0.9)])
    for alpha in (mf_jes(own, STARS, TARGETS), mf_mes(own, STARS, TARGETS)):
        assert np.max(alpha(far)) < 1e-6 * np.max(alpha(at_target(far)))


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("name", LOOKING)
def test_slopes_against_central_differences(name: str, pending: bool) -> None:
    alpha = built(name, pending)
    found, numeric = slopes(alpha, Q)
    np.testing.assert_allclose(found, numeric, rtol=2e-5, atol=2e-6 * np.abs(numeric).max())
    np.testing.assert_allclose(alpha.slopes(Q)[0], alpha.values(Q), rtol=1e-10)


def test_the_knowledge_gradient_against_refitted_posteriors() -> None:
    """E max over places at the target of means that know y, by 200 quantiles of y."""
    x = np.array([0.45, 0.7, 0.6])
    alpha, total = built("mf-kg"), 0.0
    assert hasattr(alpha, "places")
    z = np.polynomial.hermite_e.hermegauss(120)
    for m in range(M):
        places = np.vstack([alpha.places[m], at_target(x)])
        np.testing.assert_array_equal(places, at_target(places))
        before = posterior(m=m)
        mean, variance = before.predict(x[None])
        best = before.predict(places)[0][0].max()
        spread = np.sqrt(variance[0, 0] + noise_at(x, m))
        for node, weight in zip(*z, strict=True):
            y = mean[0, 0] + spread * node
            after = posterior(np.vstack([X, x]), np.append(Y, y), m).predict(places)[0][0].max()
            total += weight * (after - best) / np.sqrt(2 * np.pi)
    assert alpha(x[None])[0] == pytest.approx(total / M, rel=0.02)  # of a sum with kinks


def test_several_sets_are_the_mean_of_one_at_a_time() -> None:
    for make in (mf_jes, mf_mes):
        alone = [
            make(
                posterior(m=m),
                Optima.pairs(STARS.star[m : m + 1], STARS.best[m : m + 1]),
                TARGETS,
            )(Q)
            for m in range(M)
        ]
        np.testing.assert_allclose(make(posterior(), STARS, TARGETS)(Q), np.mean(alone, 0))


def test_some_pairs_rank_points() -> None:
    rough = built("jes").rough
    assert rough.f.shape == (M, 2)
    assert rough.targets == TARGETS
    some = Optima.pairs(STARS.star[:, :2], STARS.best[:, :2])
    np.testing.assert_allclose(rough(Q), mf_jes(posterior(), some, TARGETS)(Q))
