"""The kernel of curves against its formula, central differences and its spectral density."""

from __future__ import annotations

import numpy as np
import pytest

from gp_cases import STEP, slopes
from optpair import gp
from optpair.gp import Hyperparameters
from optpair.gp.inference.mode import fit_mode
from optpair.gp.kernels import RBF, Curves, Frequencies, Matern52, Mixed
from optpair.gp.kernels.radial import Radial
from optpair.gp.likelihood import Likelihood, Sample
from optpair.gp.process import Process

COLUMNS = (0, 1, 2)
KERNEL = Curves(Mixed(), (1, 2))  # two fidelities
M, D, P = 3, 3, 2
SETS = Hyperparameters(
    [[0.3, 2.0, 1.1], [0.4, 3.0, 0.9], [1.5, 0.5, 0.6]],
    [2.0, 0.5, 3.0],
    np.full(M, 0.1),
    np.zeros(M),
    rough=[0.2, 0.7, 1.0],
    common=[0.3, 0.9, 1e-3],
    curve=[0.4, 0.7, 1.3],
)
RNG = np.random.default_rng(0)
X, Y, STAR = RNG.uniform(size=(7, D)), RNG.uniform(size=(5, D)), RNG.uniform(size=(M, P, D))
COVARIANCE = KERNEL.bind(SETS, COLUMNS)


def mixed(r2: np.ndarray, rough: float) -> np.ndarray:
    u = np.sqrt(5 * r2)
    return np.asarray((1 - rough) * np.exp(-r2 / 2) + rough * (1 + u + u**2 / 3) * np.exp(-u))


def dense(m: int, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(A2) from its definition."""
    apart, own = A[:, None] - B, {name: v[m] for name, v in SETS.own.items()}
    every = mixed(np.sum((apart / SETS.lengthscale[m]) ** 2, -1), own["rough"])
    common = mixed(np.sum((apart[..., 1:] / own["curve"]) ** 2, -1), own["rough"])
    w = own["common"]
    return np.asarray(SETS.outputscale[m] * ((1 - w) * every + w * common))


def test_values_follow_the_formula() -> None:
    between = COVARIANCE.between(X, Y)
    for m in range(M):
        np.testing.assert_allclose(between.K[m], dense(m, X, Y), rtol=1e-12)
    np.testing.assert_array_equal(COVARIANCE.diagonal(X), np.tile(SETS.outputscale, (7, 1)).T)
    np.testing.assert_allclose(COVARIANCE.of_sets(slice(1, 2)).between(X, Y).K[0], between.K[1])


def test_without_a_common_curve_it_is_its_base() -> None:
    none = Hyperparameters(**SETS.values() | {"common": np.zeros(M)})
    plain = Mixed().bind(SETS, COLUMNS).between(X, Y).K
    np.testing.assert_allclose(KERNEL.bind(none, COLUMNS).between(X, Y).K, plain, rtol=1e-12)


def test_the_common_curve_says_nothing_of_the_points() -> None:
    """With w = 1 two points at one fidelity differ by nothing."""
    all_common = Hyperparameters(**SETS.values() | {"common": np.ones(M)})
    K = KERNEL.bind(all_common, COLUMNS).between(X, X * [0, 1, 1] + [0.5, 0, 0]).K
    np.testing.assert_allclose(K[:, np.arange(7), np.arange(7)], COVARIANCE.diagonal(X), rtol=1e-9)


def test_slopes_against_central_differences() -> None:
    by_K = np.random.default_rng(2).normal(size=(M, 7, 5))
    found = COVARIANCE.between(X, Y).pull(by_K)

    def total(A: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(by_K * COVARIANCE.between(A, Y).K, -1))

    np.testing.assert_allclose(found, slopes(total, X), rtol=1e-6, atol=1e-7)


def test_points_at_one_fidelity_are_no_exception() -> None:
    """The common part is made once for all of them: values and slopes as one at a time."""
    here = X.copy()
    here[:, 1:] = [0.7, 0.2]
    by_K = np.random.default_rng(2).normal(size=(M, 7, 5))
    together = COVARIANCE.between(here, Y)
    assert together.common.K.shape[1] == 1
    moved = together.pull(by_K)
    for q in range(7):
        alone = COVARIANCE.between(here[q : q + 1], Y)
        np.testing.assert_allclose(together.K[:, q], alone.K[:, 0], rtol=1e-12)
        np.testing.assert_allclose(moved[:, q], alone.pull(by_K[:, q : q + 1])[:, 0], rtol=1e-9)


def test_fidelities_that_come_again_are_no_exception() -> None:
    """Of many points the common part is made once for each fidelity, and what is kept is right."""
    rng = np.random.default_rng(4)
    many = np.column_stack([rng.uniform(size=90), rng.integers(0, 3, (90, 2)) / 2])
    by_K = rng.normal(size=(M, 90, 5))
    target = COVARIANCE.target(Y)
    together = target.between(many)
    moved = together.pull(by_K)
    for level in np.unique(many[:, 1:], axis=0):
        here = np.all(many[:, 1:] == level, axis=1)
        for _ in range(2):  # made, then kept
            own = target.between(many[here])
            np.testing.assert_allclose(together.K[:, here], own.K, rtol=1e-12)
            np.testing.assert_allclose(moved[:, here], own.pull(by_K[:, here]), rtol=1e-9)
    for m in range(M):
        np.testing.assert_allclose(together.K[m], dense(m, many, Y), rtol=1e-12)
    own = np.tile(many[None, :6], (M, 1, 1))
    own[..., 1:] = [0.5, 1.0]
    np.testing.assert_allclose(target.between(own).K, target.between(own[0]).K, rtol=1e-12)


def test_jets_are_the_derivatives_of_the_kernel() -> None:
    rows = COVARIANCE.jets(STAR, X, 1).rows
    for m, p in np.ndindex(M, P):
        np.testing.assert_allclose(rows[m, p, 0], dense(m, STAR[m, p][None], X)[0], rtol=1e-9)
        for k, e in enumerate(STEP * np.eye(D)):
            ends = [dense(m, (STAR[m, p] + s * e)[None], X)[0] for s in (1, -1)]
            slope = SETS.lengthscale[m, k] * (ends[0] - ends[1]) / (2 * STEP)
            np.testing.assert_allclose(rows[m, p, 1 + k], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("count", [2, 17, 64])
def test_features_reproduce_the_kernel(count: int) -> None:
    """k = E Σ A² cos ω·Δ over many lots of frequencies, within 4.5 standard errors."""
    repeats = 4000
    for m in range(M):
        values = {n: np.repeat(v[m : m + 1], repeats, axis=0) for n, v in SETS.values().items()}
        draws = Frequencies.of(np.random.default_rng(3), repeats, count, D)
        covariance = KERNEL.bind(Hyperparameters(**values), COLUMNS)
        waves = np.cos(covariance.frequencies(draws) @ (X - Y[1]).T)
        sums = np.sum(covariance.amplitudes(draws)[..., None] ** 2 * waves, 1)
        error = sums.std(0) / np.sqrt(repeats)
        assert np.all(np.abs(sums.mean(0) - dense(m, X, Y[1:2])[:, 0]) < 4.5 * error + 1e-5)


def test_most_features_are_of_the_points_whatever_the_share() -> None:
    """A curve that explains nearly everything leaves the paths at the target as fine as ever."""
    most = Hyperparameters(**SETS.values() | {"common": np.full(M, 0.999)})
    draws = Frequencies.of(np.random.default_rng(3), M, 64, D)
    covariance = KERNEL.bind(most, COLUMNS)
    own = covariance.frequencies(draws)[..., 0] != 0
    assert np.all(own.sum(-1) == 56)
    squares = covariance.amplitudes(draws) ** 2
    np.testing.assert_allclose(np.sum(squares, 1), SETS.outputscale)
    np.testing.assert_allclose(np.sum(squares * own, 1), 0.001 * SETS.outputscale)


@pytest.mark.parametrize("base", [Matern52(), RBF(), Mixed()])
def test_pairs_of_data_and_their_pull(base: Radial) -> None:
    rng, kernel = np.random.default_rng(7), Curves(base, (1, 2))
    table = Process(COLUMNS, kernel).table
    values = table.values(0.5 * rng.normal(size=(2, table.size)))
    own = {name: v[:, 0] for name, v in values.items() if name != "lengthscale"}
    covariance = kernel.bind(Hyperparameters(values["lengthscale"], **own), COLUMNS)
    pairs = kernel.pairwise(X, COLUMNS)
    i, j = np.triu_indices(len(X), 1)
    np.testing.assert_allclose(
        pairs.fit(values).pairs, covariance.between(X, X).K[:, i, j], rtol=1e-9
    )
    by_pairs, by_diagonal = rng.normal(size=(2, 21)), rng.normal(size=2)

    def total(values: dict[str, np.ndarray]) -> np.ndarray:
        fit = pairs.fit(values)
        return np.asarray(np.sum(by_pairs * fit.pairs, 1) + by_diagonal * fit.diagonal)

    found = pairs.fit(values).pull(by_pairs, by_diagonal)
    assert set(found) == {"lengthscale", "outputscale", *(b.name for b in kernel.blocks())}
    for name, slope in found.items():
        for c in range(slope.shape[1]):
            step = STEP * np.eye(slope.shape[1])[c]
            ends = [total(values | {name: values[name] + s * step}) for s in (1, -1)]
            numeric = (ends[0] - ends[1]) / (2 * STEP)
            np.testing.assert_allclose(slope[:, c], numeric, rtol=1e-6, atol=1e-7)


def test_slope_of_the_likelihood_against_central_differences() -> None:
    process = Process(COLUMNS, KERNEL)
    ours = Likelihood(Sample(X, np.sin(9 * X[:, 0]), np.full(7, np.nan)), process)
    theta = 0.5 * np.random.default_rng(1).normal(size=(3, process.table.size))
    _, slope = ours.slope(theta)
    for i, e in enumerate(STEP * np.eye(theta.shape[1])):
        difference = (ours.density(theta + e) - ours.density(theta - e)) / (2 * STEP)
        np.testing.assert_allclose(slope[:, i], difference, rtol=1e-7, atol=1e-6)


def curve(x: np.ndarray, u: np.ndarray, *, kind: str) -> np.ndarray:
    """Learning curves over u of points x: all of them end at (x − ½)²."""
    end = (x - 0.5) ** 2
    if kind == "saturating":  # each falls to its end, at one pace
        return np.asarray(end + 2.0 * np.exp(-4 * u))
    if kind == "biased":  # and cheap looks are too good by as much everywhere
        return np.asarray(end - 3.0 * (1 - u) ** 2)
    return np.asarray(end + 0.6 * (1 - u) * (x - 0.2))  # crossing: the order changes on the way


@pytest.mark.parametrize("kind", ["saturating", "biased", "crossing"])
def test_the_end_of_curves_is_foretold_from_cheap_looks(kind: str) -> None:
    """24 looks, three of them at the end: half of the error of the plain kernel, or as good."""
    rng = np.random.default_rng(4)
    x, u = rng.uniform(size=24), rng.uniform(0.0, 0.7, size=24)
    x[:3], u[:3] = [0.1, 0.4, 0.9], 1.0
    y = curve(x, u, kind=kind)
    Q = np.column_stack([np.linspace(0, 1, 41), np.ones(41)])
    truth, errors = curve(Q[:, 0], Q[:, 1], kind=kind), []
    for kernel in (Curves(Matern52(), (1,)), Matern52()):
        process = Process((0, 1), kernel)
        sample = Sample(np.column_stack([x, u]), (y - y.mean()) / y.std(), np.full(24, 1e-6))
        hypers = process.table.hyperparameters(fit_mode(sample, process)[None])
        mean, _ = gp.condition(hypers, *sample[:2], kernel, sample[2]).predict(Q)
        error = y.mean() + y.std() * mean[0] - truth
        errors.append(float(np.std(error)))  # a shift is no matter: where is it lowest?
    if kind == "crossing":
        assert errors[0] < max(1.2 * errors[1], 0.01)
    else:
        assert errors[0] < 0.5 * errors[1]
    assert errors[0] < 0.2 * np.std(truth)
