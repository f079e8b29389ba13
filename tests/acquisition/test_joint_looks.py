"""Gains of cheaper looks at several outcomes: limits, refitted GPs and central differences."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cases import slopes
from test_looks import (
    GROWTH,
    HYPERS,
    KERNEL,
    STARS,
    TARGETS,
    D,
    M,
    N,
    P,
    Q,
    X,
    Y,
    at_target,
    noise_at,
)

from optpair.acquisition import REGISTRY, Acquisition, Context, jes
from optpair.acquisition.joint_looks import LookJointJES
from optpair.acquisition.special.truncation import divergence
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.gp.posterior import Posterior, as_sample, fit
from optpair.optima import Optima, Wanted
from optpair.runtime.streams import Stream

INF = np.inf
RNG = np.random.default_rng(5)
OTHER = RNG.normal(size=N)


def posterior(y: np.ndarray, rows: np.ndarray = X) -> Posterior:
    return fit(HYPERS, as_sample(rows, y, None, D), kernel=KERNEL, columns=(0, 1, 2), growth=GROWTH)


MODEL = posterior(Y), posterior(OTHER)
LIMITED = Wanted((0,), np.array([-INF, 0.2]), np.array([INF, INF]))
FRONT = Wanted((0, 1), np.full(2, -INF), np.full(2, INF))


def best_feasible(c: float, mask: bool = True) -> Optima:
    """The pairs of one outcome, with a constraint's value at x*."""
    f = np.stack([STARS.best, np.full((M, P), c)], -1)[:, :, None]
    return Optima(STARS.star[:, :, None], f, np.full((M, P, 1), mask), np.zeros((M, P)))


def sets() -> Optima:
    """Pareto sets of two points."""
    x = at_target(RNG.uniform(size=(M, P, 2, D)))
    f = np.stack([STARS.best + 0.1, np.full((M, P), OTHER.max() + 0.3)], -1)[:, :, None]
    f = f + np.array([[0.0, 0.0], [-0.5, 0.4]])
    return Optima(x, f, np.ones((M, P, 2), dtype=bool), np.zeros((M, P)))


CASES = {
    "active": (best_feasible(0.2), LIMITED),
    "within": (best_feasible(0.9), LIMITED),
    "none": (best_feasible(0.0, mask=False), LIMITED),
    "front": (sets(), FRONT),
}


@cache
def built(case: str, name: str = "jes-peak", *, pending: bool = False) -> Acquisition:
    """As the engine builds it."""
    model = MODEL
    if pending:
        rng = np.random.default_rng(3)
        model = tuple(
            own.with_fantasies(P).append(np.array([0.3, 0.2, 0.7]), rng.normal(size=(M, P)))
            for own in MODEL
        )
    cube, (optima, wanted) = Cube.box(D), CASES[case]
    sought = Region.whole(cube).fixed(TARGETS)
    parts = model, cube, Q, Stream.of(0), None, optima
    return REGISTRY[name].build(Context(*parts, wanted=wanted, region=sought, targets=TARGETS))


@pytest.mark.parametrize("case", CASES)
def test_at_the_target_nothing_changes(case: str) -> None:
    """There a look is a value: (N7) gives σ² itself."""
    looking, (optima, wanted), T = built(case, "jes"), CASES[case], at_target(Q)
    assert isinstance(looking, LookJointJES)
    np.testing.assert_allclose(looking(T), jes(MODEL, optima, wanted)(T), rtol=1e-6)
    assert not np.allclose(looking(Q), jes(MODEL, optima, wanted)(Q), rtol=0.01)


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("name", ["jes", "jes-peak"])
@pytest.mark.parametrize("case", CASES)
def test_slopes_against_central_differences(case: str, name: str, pending: bool) -> None:
    alpha = built(case, name, pending=pending)
    found, numeric = slopes(alpha, Q)
    np.testing.assert_allclose(found, numeric, rtol=5e-5, atol=1e-5 * np.abs(numeric).max())
    np.testing.assert_allclose(alpha.slopes(Q)[0], alpha.values(Q), rtol=1e-10)


def test_what_a_look_says_of_the_target_against_refitted_posteriors() -> None:
    """(N7): the squared correlation of y and f(x, t), where the pair is one more observation."""
    alpha = built("active", "jes")
    assert isinstance(alpha, LookJointJES)
    own = alpha._looks(Q)[0]
    share = own.given / (own.given + own.noise)
    for m, p in np.ndindex(M, P):
        soft = 1e-8 * HYPERS.outputscale[m]
        rows, y = np.vstack([X, STARS.star[m, p]]), np.append(Y, STARS.best[m, p])
        sample = as_sample(rows, y, [np.nan] * N + [soft], D)
        one = HYPERS.some(slice(m, m + 1))
        refitted = fit(one, sample, kernel=KERNEL, columns=(0, 1, 2), growth=GROWTH)
        for i, x in enumerate(Q):
            mean, K = (part[0] for part in refitted.joint(np.stack([x, at_target(x)])))
            rho2 = K[0, 1] ** 2 / (K[1, 1] * (K[0, 0] + noise_at(x, m)))
            assert share[m, p, i] == pytest.approx(rho2, rel=1e-4)
            assert own.mean[m, p, i] == pytest.approx(mean[1], abs=1e-4)


def test_a_constraint_that_always_holds_is_none() -> None:
    """The rest is the conditioning of a look, and the exact divergence at the target by ρ_y²."""
    always = Wanted((0,), np.array([-INF, -1e6]), np.array([INF, INF]))
    parts = MODEL, Cube.box(D), Q, Stream.of(0), None, best_feasible(0.0)
    alpha = REGISTRY["jes"].build(Context(*parts, wanted=always, targets=TARGETS))
    assert isinstance(alpha, LookJointJES)
    total = np.zeros(len(Q))
    for m, p in np.ndindex(M, P):
        one = HYPERS.some(slice(m, m + 1))
        before = MODEL[0].of_sets(slice(m, m + 1)).predict(Q)[1][0]
        before += [noise_at(x, m) for x in Q]
        soft = 1e-8 * HYPERS.outputscale[m]
        rows, y = np.vstack([X, STARS.star[m, p]]), np.append(Y, STARS.best[m, p])
        sample = as_sample(rows, y, [np.nan] * N + [soft], D)
        refitted = fit(one, sample, kernel=KERNEL, columns=(0, 1, 2), growth=GROWTH)
        for i, x in enumerate(Q):
            mean, K = (part[0] for part in refitted.joint(np.stack([x, at_target(x)])))
            after = K[0, 0] + noise_at(x, m)
            beta = (STARS.best[m, p] - mean[1]) / np.sqrt(K[1, 1])
            seen = divergence(np.array(beta), np.array(K[0, 1] ** 2 / (K[1, 1] * after)))
            total[i] += (0.5 * np.log(before[i] / after) + float(seen)) / (M * P)
    np.testing.assert_allclose(alpha(Q), total, rtol=0.08)


@pytest.mark.parametrize("case", CASES)
def test_a_fidelity_that_has_nothing_to_do_with_the_target_says_little(case: str) -> None:
    values = HYPERS.values() | {"lengthscale": [[0.4, 0.02, 0.02]] * 2, "common": [0.0, 0.0]}
    optima, wanted = CASES[case]
    model = tuple(replace_scales(own, values) for own in MODEL)
    parts = model, Cube.box(D), Q, Stream.of(0), None, optima
    alpha = REGISTRY["jes"].build(Context(*parts, wanted=wanted, targets=TARGETS))
    far = np.column_stack([Q[:, 0], np.full(12, 0.5), np.full(12, 0.9)])
    assert np.max(alpha(far)) < 1e-6 * np.max(alpha(at_target(far)))
    assert np.min(alpha(far)) >= 0


def replace_scales(own: Posterior, values: dict[str, object]) -> Posterior:
    y = Y if own is MODEL[0] else OTHER
    sample = as_sample(X, y, None, D)
    return fit(type(HYPERS)(**values), sample, kernel=KERNEL, columns=(0, 1, 2), growth=GROWTH)


def test_some_optima_rank_points() -> None:
    alpha = built("front", "jes")
    rough = alpha.rough
    assert isinstance(rough, LookJointJES)
    assert rough.targets == TARGETS
    assert rough.weights.shape[1] < P
    assert np.all(np.isfinite(rough(Q)))
