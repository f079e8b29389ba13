"""PES against a dense GP that observes derivatives, rejection sampling, limits, closed forms."""

from __future__ import annotations

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from small_study import (
    HYPERS,
    KERNELS,
    D,
    M,
    N,
    P,
    X,
    Y,
    both_slopes,
    changed,
    correlation,
    grown,
    known,
    one_set,
    share,
    source,
)

from optpair.acquisition.base import Context
from optpair.acquisition.pes import DELTA, SOFTNESS, build, pes
from optpair.cube.cube import Cube
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.posterior import Posterior, condition
from optpair.optima.base import Optima
from optpair.problem.layout import Layout
from optpair.runtime.streams import Stream

RNG = source()
PLACES = RNG.uniform(0.05, 0.95, size=(M, P, D))
PLACES[0, 0, 0], PLACES[1, 1], PLACES[2, 2, 1] = 0.0, [1.0, 0.0], 1.0  # on faces, in a corner
STARS = Optima.pairs(PLACES, np.full((M, P), np.nan))  # f* is not used
Q = np.concatenate(
    [RNG.uniform(size=(9, D)), PLACES[0, :2], PLACES[1, :1], X[:2], [[0, 0]], [[1, 0]]]
)


def at(x: np.ndarray) -> Optima:
    """Optima at these places, with values that are not used."""
    return Optima.pairs(x, np.zeros(x.shape[:2]))


def derivative(rough: float, delta: np.ndarray, orders: np.ndarray) -> float:
    """Of h(|δ|²) by the entries of δ, by differences of 50 digits."""

    def h(*entries: mp.mpf) -> mp.mpf:
        r2 = mp.fsum(e * e for e in entries)
        u = mp.sqrt(5 * r2)
        return (1 - rough) * mp.exp(-r2 / 2) + rough * (1 + u + u * u / 3) * mp.exp(-u)

    with mp.workdps(50):
        places = tuple(mp.mpf(float(e)) for e in delta)
        return float(mp.diff(h, places, tuple(int(n) for n in orders)))


def dense(
    rough: float,
    scale: np.ndarray,
    a: float,
    star: np.ndarray,
    free: np.ndarray,
    points: np.ndarray,
) -> np.ndarray:
    """Prior covariance of (g and −h of free coordinates at x*, f at points).

    Nothing is taken from the library: derivatives are those of the kernel's definition.
    """
    units = np.eye(len(scale), dtype=int)[np.flatnonzero(free)]
    orders = [*units, *(2 * units)]
    signs = np.array([1.0] * len(units) + [-1.0] * len(units))
    here, apart = np.empty((len(orders),) * 2), np.empty((len(orders), len(points)))
    for i, one in enumerate(orders):
        for j, other in enumerate(orders):  # of the second argument: a sign for each order
            turned = signs[i] * signs[j] * (-1) ** other.sum()
            here[i, j] = a * turned * derivative(rough, np.zeros(len(scale)), one + other)
        for j, x in enumerate(points):
            apart[i, j] = a * signs[i] * derivative(rough, (star - x) / scale, one)
    r2 = np.sum(((points[:, None] - points) / scale) ** 2, -1)
    return np.block([[here, apart], [apart.T, a * correlation(r2, rough)]])


def given(
    mean: np.ndarray, V: np.ndarray, rows: list[int], values: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian vector after noisy values of some of its entries."""
    solved = np.linalg.solve(V[np.ix_(rows, rows)] + np.diag(noise), V[rows]).T
    return mean + solved @ (values - mean[rows]), V - solved @ V[rows]


def slow_sites(mean: np.ndarray, V: np.ndarray, sweeps: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Plain EP for mean and covariance: sites recomputed from SciPy's moments, q by inversion."""
    k = len(mean)
    tau, nu = np.zeros(k), np.zeros(k)
    for _ in range(sweeps):
        for i in range(k):
            q = np.linalg.inv(np.linalg.inv(V) + np.diag(tau))
            centre = q @ (np.linalg.solve(V, mean) + nu)
            precision = 1 / q[i, i] - tau[i]
            cavity = (centre[i] / q[i, i] - nu[i]) / precision
            sd = precision**-0.5
            law = stats.truncnorm(-cavity / sd, np.inf, loc=cavity, scale=sd)
            tau[i] = 1 / law.var() - precision
            nu[i] = law.mean() / law.var() - cavity * precision
    return tau, nu


def slow(kernel: str, m: int, p: int, points: np.ndarray) -> np.ndarray:
    """(P1) to (P5) for one set and one x*, from one dense Gaussian over everything."""
    scale, a, noise, mu, rough = (v[m] for v in HYPERS.values().values())
    star = PLACES[m, p]
    free = (star > 0) & (star < 1)
    c = int(free.sum())
    values = np.concatenate([X, [star], points])
    V = dense(share(kernel, rough), scale, a, star, free, values)
    mean = np.concatenate([np.zeros(2 * c), np.full(len(values), mu)])
    data = list(range(2 * c, 2 * c + N))
    mean, V = given(mean, V, data, Y, np.full(N, noise))
    best = data[int(np.argmax(mean[data]))]
    at, query = 2 * c + N, list(range(2 * c + N + 1, len(mean)))
    s = np.diag(V)[query]
    mean, V = given(mean, V, list(range(c)), np.zeros(c), np.full(c, DELTA * a))
    T = np.zeros((c + 1 + 1 + len(points), len(mean)))  # (−h, f(x*) − f(x_b), f(x*), f(x))
    T[np.arange(c), np.arange(c, 2 * c)] = 1
    T[c, [at, best]] = 1, -1
    T[np.arange(c + 1, len(T)), [at, *query]] = 1
    mean, V = T @ mean, T @ V @ T.T
    k = c + 1
    V_w = V[:k, :k] + SOFTNESS * a * np.eye(k)
    tau, nu = slow_sites(mean[:k], V_w)
    mean, V = given(mean, V, list(range(k)), nu / tau, 1 / tau + SOFTNESS * a)
    gains = np.empty(len(points))
    for i in range(len(points)):
        f = k + 1 + i
        spread = V[k, k] + V[f, f] - 2 * V[k, f]
        left = V[f, f]
        if spread > 1e-9 * a:
            beta = (mean[k] - mean[f]) / np.sqrt(spread)
            v = stats.truncnorm.var(-np.inf, beta)
            left = left - (V[f, f] - V[k, f]) ** 2 / spread * (1 - v)
        gains[i] = (np.log(s[i] + noise) - np.log(left + noise)) / 2
    return gains


def one_of(m: int, p: int, kernel: str = "mixed") -> tuple[Posterior, Optima]:
    return known(one_set(m), kernel), at(PLACES[m : m + 1, p : p + 1])


@pytest.mark.parametrize(("kernel", "m", "p"), [("rbf", 0, 1), ("mixed", 1, 0), ("rbf", 2, 2)])
def test_pes_is_a_dense_gp_with_derivatives_and_plain_ep(kernel: str, m: int, p: int) -> None:
    """The last of the three is on a face, where one coordinate has conditions."""
    alpha = pes(*one_of(m, p, kernel))
    assert alpha.converged.all()
    # EP stops at 1e-7; where t is nearly constant, floors differ.
    np.testing.assert_allclose(alpha(Q), slow(kernel, m, p, Q), rtol=2e-5)


def test_the_conditioned_process_by_rejection() -> None:
    """One dimension: draws of (h, f(x*), f(x_b), f(x)) given the data and g = 0, kept where they
    satisfy (P1) and (P2): mean and variance of f(x); then where f(x) ≤ f(x*) too: the variance.

    EP's own error is a few per cent of a standard deviation; Monte Carlo's is a tenth of that.
    """
    rng = np.random.default_rng(1)
    rows, values = np.array([[0.1], [0.45], [0.9]]), np.array([0.0, 0.6, -0.4])
    own = Hyperparameters([[0.2]], [1.0], [0.01], [0.0])
    queries = np.array([[0.02], [0.3], [0.62], [0.7], [0.78], [1.0]])
    for star in (0.3, 0.66):
        everything = np.concatenate([rows, [[star]], queries])
        V = dense(1.0, np.array([0.2]), 1.0, np.array([star]), np.array([True]), everything)
        mean = np.zeros(len(V))
        mean, V = given(mean, V, [2, 3, 4], values, np.full(3, 0.01))
        mean, V = given(mean, V, [0], np.zeros(1), np.full(1, DELTA))
        draws = rng.multivariate_normal(mean, V, 300_000, method="svd")
        bent, best, top = draws[:, 1], draws[:, 3], draws[:, 5]
        kept = draws[(bent >= 0) & (top >= best)]
        assert len(kept) > 10_000
        f, error = kept[:, 6:], 1 / np.sqrt(len(kept))

        posterior = condition(own, rows, values)
        alpha = pes(posterior, at(np.full((1, 1, 1), star)))
        left = alpha.left(alpha.conditioned.at(queries, posterior.at(queries)))
        variance = (left.variance - left.taken)[0, 0]
        sd = f.std(0)
        assert np.all(np.abs(left.mean[0, 0] - f.mean(0)) / sd < 0.05 + 4 * error)
        assert np.all(np.abs(variance / sd**2 - 1) < 0.05 + 6 * error)

        # The same with the query's own truncation, which is the library's gain.
        _, s = posterior.predict(queries)
        for i in range(len(queries)):
            below = f[f[:, i] <= kept[:, 5], i]
            assert len(below) > 2_000
            truth = np.log((s[0, i] + 0.01) / (below.var() + 0.01)) / 2
            allowed = 0.04 + 4 / np.sqrt(2 * len(below))
            assert alpha(queries[i : i + 1])[0] == pytest.approx(truth, abs=allowed)


def discrete(*columns: int) -> Cube:
    """The square, with eleven levels in some columns."""
    ones = np.ones(D)
    return Cube(Layout(10 * ones, ones, np.zeros(D, bool), (0, 1), columns, ()))


def test_without_conditions_only_the_query_is_truncated() -> None:
    """Discrete columns, and data far below x*: all that is left is f(x) ≤ f(x*), a closed form."""
    low = np.full(N, -8.0)
    hypers = Hyperparameters([[0.3, 0.7]], [1.0], [0.01], [0.0])
    posterior = condition(hypers, X * 0.3, low)
    star = np.array([[0.9, 0.8]])
    alpha = pes(posterior, at(star[None]), cube=discrete(0, 1))
    points = np.random.default_rng(4).uniform(0.7, 1.0, size=Q.shape)
    everything = np.concatenate([X * 0.3, star, points])
    V = dense(1.0, np.array([0.3, 0.7]), 1.0, star[0], np.zeros(2, bool), everything)
    mean, V = given(np.zeros(len(V)), V, list(range(N)), low, np.full(N, 0.01))
    m, V = mean[N:], V[N:, N:]
    truth = []
    for i in range(1, len(m)):
        spread = V[0, 0] + V[i, i] - 2 * V[0, i]
        v = stats.truncnorm.var(-np.inf, (m[0] - m[i]) / np.sqrt(spread))
        left = V[i, i] - (V[i, i] - V[0, i]) ** 2 / spread * (1 - v)
        truth.append(np.log((V[i, i] + 0.01) / (left + 0.01)) / 2)
    assert max(truth) > 0.01
    np.testing.assert_allclose(alpha(points), truth, rtol=1e-7, atol=1e-12)


def test_far_away_nothing_but_the_bound_is_learnt() -> None:
    """Many length scales off, f(x) is N(μ, a), apart from f(x*): t is their difference."""
    alpha = pes(known(), STARS)
    a, noise, mu = (v[:, None] for v in (HYPERS.outputscale, HYPERS.noise, HYPERS.mean))
    m, s = alpha.star_mean, alpha.star_variance
    v = stats.truncnorm.var(-np.inf, (m - mu) / np.sqrt(a + s))
    left = a - a**2 / (a + s) * (1 - v)
    truth = np.mean(np.log((a + noise) / (left + noise)) / 2)
    np.testing.assert_allclose(alpha([[80.0, 90.0]]), truth, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slope_against_central_differences(kernel: str) -> None:
    """Everywhere; at x* itself t is constant to fourth order and its variance floored."""
    alpha = pes(known(kernel=kernel), STARS)
    special = np.min(np.abs(Q[:, None] - PLACES.reshape(-1, D)).max(-1), -1) == 0
    exact, numeric = both_slopes(alpha, Q[~special])
    assert np.max(np.abs(exact)) > 0.1
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-2, 1e4])
def test_gain_is_never_negative(noise: float) -> None:
    """Nor infinite: at x*, at data and without noise; for x* that the data rule out as well."""
    posterior = known(changed(noise=np.full(M, noise)))
    points = np.concatenate([np.random.default_rng(3).uniform(size=(200, D)), Q])
    alpha = pes(posterior, STARS)
    values = alpha(points)
    assert np.all(np.isfinite(values))
    assert np.all(values >= 0)
    assert values.max() > 1e-6


def test_several_optima_and_sets_are_averaged_gains() -> None:
    """A batch of EPs is one EP at a time."""
    together = pes(known(), STARS)
    each = np.array([[pes(*one_of(m, p))(Q) for p in range(P)] for m in range(M)])
    np.testing.assert_allclose(together(Q), each.mean((0, 1)), rtol=1e-8)
    assert np.min(np.std(each, (0, 1))) > 1e-4
    assert together.converged.shape == (M, P)
    assert together.converged.all()
    assert together.report.startswith("EP converged for 100.0% of 12 optima")


def test_on_a_face_a_coordinate_has_no_conditions() -> None:
    """x* on a face is x* in a space where that column is discrete; a hair inside it is not."""
    posterior = known()
    face = PLACES.copy()
    face[..., 0] = 0.0
    on = pes(posterior, at(face))(Q)
    np.testing.assert_allclose(on, pes(posterior, at(face), cube=discrete(0))(Q), rtol=1e-12)
    # The other coordinate's conditions are still there: dropping them changes the function.
    neither = pes(posterior, at(face), cube=discrete(0, 1))(Q)
    assert np.max(np.abs(neither / on - 1)) > 0.05
    face[..., 0] = 0.01
    assert np.max(np.abs(pes(posterior, at(face))(Q) / on - 1)) > 0.05


def test_the_value_of_a_pair_is_not_used() -> None:
    posterior = known()
    a, b = (pes(posterior, Optima.pairs(PLACES, np.full((M, P), f)))(Q) for f in (1.0, 100.0))
    np.testing.assert_array_equal(a, b)


def test_optima_count_by_their_weights() -> None:
    """Gains are averaged by the weights of all optima, whatever their sets."""
    log_weight = np.array([[0.0, 1.0, -1.0, 0.5], [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, -30.0]])
    together = pes(known(), replace(STARS, log_weight=log_weight))(Q)
    each = np.array([[pes(*one_of(m, p))(Q) for p in range(P)] for m in range(M)])
    share = np.exp(log_weight) / np.exp(log_weight).sum()
    np.testing.assert_allclose(together, np.einsum("mpq,mp->q", each, share), rtol=1e-8)


def test_pending_points_have_a_fantasy_for_each_path() -> None:
    """x*_p is conditioned in the process that has seen fantasy p: P posteriors of one fantasy."""
    values = np.random.default_rng(1).normal(size=(M, P))
    together = pes(grown(values), STARS)(Q)
    each = [pes(grown(values[:, [p]]), at(PLACES[:, [p]]))(Q) for p in range(P)]
    np.testing.assert_allclose(together, np.mean(each, 0), rtol=1e-7)
    mixed = pes(grown(values), at(PLACES[:, ::-1].copy()))(Q)
    assert np.max(np.abs(mixed / together - 1)) > 1e-3


def test_slope_with_fantasies() -> None:
    alpha = pes(grown(np.random.default_rng(1).normal(size=(M, P))), STARS)
    exact, numeric = both_slopes(alpha, Q[:9])
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 37.0])
def test_units_of_y_do_not_matter(unit: float) -> None:
    plain = pes(known(), STARS)(Q)
    scaled = changed(
        outputscale=unit**2 * HYPERS.outputscale,
        noise=unit**2 * HYPERS.noise,
        mean=unit * (HYPERS.mean + 5),
    )
    moved = pes(condition(scaled, X, unit * (Y + 5), "mixed"), STARS)(Q)
    np.testing.assert_allclose(moved, plain, rtol=1e-6)


def branin(U: np.ndarray) -> np.ndarray:
    u, v = 15 * U[:, 0] - 5, 15 * U[:, 1]
    bent = v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6
    return -(bent**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_branin_without_noise_and_with_duplicates(kernel: str) -> None:
    """Where the paper's PES had numerical trouble: dense, repeated data around the three optima.

    x* is each optimum, an optimum found to 1e-4 only, a datum, and a place that the data rule out.
    """
    rng = np.random.default_rng(7)
    optima = np.array([[0.1239, 0.8183], [0.5428, 0.1517], [0.9617, 0.165]])
    near = np.repeat(optima, 6, 0) + 0.01 * rng.normal(size=(18, 2))
    rows = np.clip(np.concatenate([rng.uniform(size=(10, 2)), near, near[:2], near[:2]]), 0, 1)
    y = branin(rows)
    y = (y - y.mean()) / y.std()
    hypers = Hyperparameters(
        [[0.2, 0.4], [0.3, 0.8], [0.5, 1.0]],
        [2.0, 5.0, 10.0],
        [1e-6, 1e-6, 0.0],
        [-1.0, 0.0, 0.0],
        rough=[1.0, 1.0, 1.0],
    )
    posterior = condition(hypers, rows, y, kernel)
    places = np.stack([optima, optima + 1e-4, near[:3], rng.uniform(size=(3, 2))], 1)
    alpha = pes(posterior, at(places))
    assert alpha.converged.all(), alpha.report
    values = alpha(np.concatenate([rng.uniform(size=(100, 2)), rows, places.reshape(-1, 2)]))
    assert np.all(np.isfinite(values))
    assert np.all(values >= 0)
    assert np.all(np.isfinite(alpha.gradient(rows)))


def test_optima_are_needed() -> None:
    with pytest.raises(ValueError, match="needs optima of sample paths"):
        build(Context((known(),), Cube.box(D), X, Stream.of(0)))


def test_optima_of_another_number_of_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="hyperparameter sets"):
        pes(known(), at(PLACES[:2]))
