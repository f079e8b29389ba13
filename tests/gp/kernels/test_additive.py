"""The additive kernel against its formula, central differences and its spectral density."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gp_cases import STEP, slopes
from optpair import Categorical, Float, Optimizer, Settings, Space, gp
from optpair.gp import Additive, Hyperparameters
from optpair.gp.conditioned import Functionals, condition_on
from optpair.gp.inference.mode import fit_mode
from optpair.gp.kernels import Frequencies
from optpair.gp.likelihood import Likelihood, Sample
from optpair.gp.process import Process

COLUMNS = (0, 1, 1, 2)  # the second parameter is a category with two columns
M, D, P = 3, 4, 3
SHARE = np.array([0.3, 0.9, 1e-3])
SETS = Hyperparameters(
    [[0.3, 0.7, 1.1], [0.4, 2.0, 0.9], [1.5, 0.5, 0.6]],
    [2.0, 0.5, 3.0],
    np.full(M, 0.1),
    np.zeros(M),
    interactions=SHARE,
)
RNG = np.random.default_rng(0)
X, Y, STAR = RNG.uniform(size=(7, D)), RNG.uniform(size=(5, D)), RNG.uniform(size=(M, P, D))
Y[0] = X[0]
POINTS = np.concatenate([X[:4], STAR[0, :1], STAR[1, 1:2]])
COVARIANCE = Additive().bind(SETS, COLUMNS)
PURE = Additive(interactions=False).bind(SETS, COLUMNS)


def matern(r: np.ndarray) -> np.ndarray:
    u = np.sqrt(5) * r
    return np.asarray((1 + u + u**2 / 3) * np.exp(-u))


def dense(m: int, A: np.ndarray, B: np.ndarray, share: float | None = None) -> np.ndarray:
    """(A1) from its definition: three one-parameter terms of length scale ℓ/√3, and one of all."""
    scaled = (A[:, None] - B) / SETS.lengthscale[m][list(COLUMNS)]
    groups = (scaled[..., :1], scaled[..., 1:3], scaled[..., 3:])
    single = sum(matern(np.sqrt(3 * np.sum(part**2, -1))) for part in groups) / 3
    w = SHARE[m] if share is None else share
    return np.asarray(
        SETS.outputscale[m] * ((1 - w) * single + w * matern(np.sqrt(np.sum(scaled**2, -1))))
    )


# --- covariances between points -----------------------------------------------------------------


def test_values_follow_the_formula() -> None:
    between = COVARIANCE.between(X, Y)
    for m in range(M):
        np.testing.assert_allclose(between.K[m], dense(m, X, Y), rtol=1e-12)
        np.testing.assert_allclose(PURE.between(X, Y).K[m], dense(m, X, Y, 0.0), rtol=1e-12)
    np.testing.assert_array_equal(COVARIANCE.diagonal(X), np.tile(SETS.outputscale, (7, 1)).T)
    np.testing.assert_allclose(between.K[:, 0, 0], SETS.outputscale, rtol=1e-14)


def test_all_interactions_and_one_parameter_are_matern() -> None:
    whole = Hyperparameters(**SETS.values() | {"interactions": np.ones(M)})
    plain = Hyperparameters(**{k: v for k, v in SETS.values().items() if k != "interactions"})
    truth = gp.Matern52().bind(plain, COLUMNS)
    np.testing.assert_allclose(
        Additive().bind(whole, COLUMNS).between(X, Y).K, truth.between(X, Y).K, rtol=1e-12
    )
    one = Hyperparameters([[0.3]], [2.0], [0.1], [0.0], interactions=[0.4])
    line = gp.Matern52().bind(one, (0,)).between(X[:, :1], Y[:, :1]).K
    for kernel in (Additive(), Additive(interactions=False)):
        got = kernel.bind(one, (0,)).between(X[:, :1], Y[:, :1]).K
        np.testing.assert_allclose(got, line, rtol=1e-12)


def test_functions_without_interactions_are_sums() -> None:
    """f(a, b) − f(a', b) − f(a, b') + f(a', b') has no variance where w = 0, and some above."""
    square = np.array([[0.1, 0.2], [0.8, 0.2], [0.1, 0.9], [0.8, 0.9]])
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    for share, none in ((0.0, True), (0.3, False)):
        hypers = Hyperparameters([[0.3, 0.5]], [2.0], [0.1], [0.0], interactions=[share])
        K = Additive().bind(hypers, (0, 1)).between(square, square).K[0]
        assert (abs(signs @ K @ signs) < 1e-12) == none


def test_some_of_the_sets_and_points_of_each_set() -> None:
    whole = COVARIANCE.between(X, Y).K
    for chosen in (slice(1, 3), np.array([2, 0])):
        part = COVARIANCE.of_sets(chosen)
        np.testing.assert_allclose(part.between(X, Y).K, whole[chosen], rtol=1e-13)
        target = COVARIANCE.target(Y).of_sets(chosen)
        np.testing.assert_allclose(target.between(X).K, whole[chosen], rtol=1e-13)
        pure = PURE.of_sets(chosen).between(X, Y).K
        np.testing.assert_allclose(pure, PURE.between(X, Y).K[chosen], rtol=1e-13)
    own = np.stack([X, X + 0.1, X - 0.1])
    each = [COVARIANCE.between(own[m], Y).K[m] for m in range(M)]
    np.testing.assert_allclose(COVARIANCE.between(own, Y).K, each, rtol=1e-12)


@pytest.mark.parametrize("covariance", [COVARIANCE, PURE], ids=["interactions", "pure"])
def test_pull_against_central_differences(covariance: object) -> None:
    """The coincident pair too; differences err by step²/6·k‴ < 1e-8 with k‴ < 200 a."""
    weights = np.random.default_rng(2).normal(size=(M, 7, 5))
    numeric = slopes(lambda X: np.sum(weights * covariance.between(X, Y).K, -1), X)  # type: ignore[attr-defined]
    exact = covariance.between(X, Y).pull(weights.copy())  # type: ignore[attr-defined]
    np.testing.assert_allclose(exact, numeric, rtol=1e-7, atol=1e-7)


def test_single_precision_has_unit_output_scale() -> None:
    rough = COVARIANCE.single().between(X.astype(np.float32), Y.astype(np.float32))
    truth, a = COVARIANCE.between(X, Y), SETS.outputscale[:, None, None]
    assert rough.K.dtype == np.float32
    np.testing.assert_allclose(rough.K, truth.K / a, rtol=0, atol=2e-6)
    slope = rough.pull(np.ones((M, 7, 5), np.float32))
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope, truth.pull(np.ones((M, 7, 5))) / a, rtol=1e-4, atol=1e-4)


# --- jets ---------------------------------------------------------------------------------------


def around(m: int, star: np.ndarray, step: float) -> np.ndarray:
    """x*, up and down in each column, by a step in length scales."""
    moves = step * np.diag(SETS.lengthscale[m][list(COLUMNS)])
    return star + np.concatenate([moves, np.zeros((1, D)), -moves])


def test_jets_are_derivatives_of_the_kernel() -> None:
    """By differencing k(x*, x) in x*; the errors are those of the radial kernels' test."""
    rows, step = COVARIANCE.jets(STAR, POINTS, 2).rows, 1e-4
    assert rows.shape == (M, P, 1 + 2 * D, len(POINTS))
    for m, p in np.ndindex(M, P):
        K = dense(m, around(m, STAR[m, p], step), POINTS)
        up, here, down = K[:D], K[D], K[D + 1 :]
        a = SETS.outputscale[m]
        np.testing.assert_allclose(rows[m, p, 0], here, rtol=0, atol=1e-13 * a)
        np.testing.assert_allclose(rows[m, p, 1 : 1 + D], (up - down) / (2 * step), atol=1e-6 * a)
        bends = (up - 2 * here + down) / step**2
        np.testing.assert_allclose(rows[m, p, 1 + D :], bends, rtol=0, atol=2e-2 * a)


def test_one_point_against_differences_of_the_jets() -> None:
    """cov(g, ·) and cov(h, ·) at x*; Matérn's fifth derivative jumps there, hence 0.1 of 225 a."""
    V, step = COVARIANCE.jet_variance(2), 1e-4
    for m in range(M):
        rows = COVARIANCE.jets(STAR, around(m, STAR[m, 0], step), 2).rows[m, 0].T
        up, here, down = rows[:D], rows[D], rows[D + 1 :]
        a = SETS.outputscale[m]
        np.testing.assert_allclose(here[0], V[m, 0, 0], rtol=1e-13)
        np.testing.assert_allclose((up - down) / (2 * step) / a, V[m, 1 : 1 + D] / a, atol=1e-4)
        bends = (up - 2 * here + down) / step**2
        np.testing.assert_allclose(bends / a, V[m, 1 + D :] / a, atol=0.1)
    pure = PURE.jet_variance(2)
    assert np.all(pure[:, 1 + D, 2 + D :] == 0)  # curvatures of two parameters
    assert np.all(pure[:, 2 + D, 3 + D] > 0)  # and of two columns of one


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("along", [None, (0, 3), (2,), ()])
def test_jets_along_some_columns_are_some_of_the_rows(
    order: int, along: tuple[int, ...] | None
) -> None:
    columns = range(D) if along is None else along
    chosen = [0, *(1 + o * D + c for o in range(order) for c in columns)]
    whole, V = COVARIANCE.jets(STAR, POINTS, 2).rows, COVARIANCE.jet_variance(2)
    jets = COVARIANCE.jets(STAR, POINTS, order, along)
    np.testing.assert_allclose(jets.rows, whole[:, :, chosen], rtol=1e-13)
    some = COVARIANCE.jet_variance(order, along)
    np.testing.assert_allclose(some, V[:, chosen][:, :, chosen], rtol=1e-13)
    weights = np.random.default_rng(4).normal(size=jets.rows.shape)

    def total(X: np.ndarray) -> np.ndarray:
        return np.sum(weights * COVARIANCE.jets(STAR, X, order, along).rows, (1, 2))

    numeric = slopes(total, POINTS)
    np.testing.assert_allclose(jets.pull(weights), numeric, rtol=1e-6, atol=2e-3)


def test_the_joint_covariance_is_positive_definite() -> None:
    apart, here = COVARIANCE.jets(STAR, POINTS[:4], 2).rows, COVARIANCE.jet_variance(2)
    K = COVARIANCE.between(POINTS[:4], POINTS[:4]).K
    for m, p in np.ndindex(M, P):
        full = np.block([[here[m], apart[m, p]], [apart[m, p].T, K[m]]])
        assert np.linalg.eigvalsh(full).min() > 1e-8


# --- paths --------------------------------------------------------------------------------------


def drawn(kernel: Additive, m: int, count: int, repeats: int) -> np.ndarray:
    """Averages of cos ω·Δ over `count` frequencies, repeated: (repeats, deltas)."""
    values = {name: np.repeat(v[m : m + 1], repeats, axis=0) for name, v in SETS.values().items()}
    draws = Frequencies.of(np.random.default_rng(3), repeats, count, D)
    omega = kernel.bind(Hyperparameters(**values), COLUMNS).frequencies(draws)
    return np.asarray(np.cos(omega @ (X - Y[1]).T).mean(1))


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(("m", "count"), [(0, 5), (0, 64), (1, 7)])
def test_features_reproduce_the_kernel(pure: bool, m: int, count: int) -> None:
    """k/a = E cos ω·Δ over many lots of dependent frequencies, within 4.5 standard errors."""
    means = drawn(Additive(interactions=not pure), m, count, 4000)
    K = dense(m, X, Y[1:2], 0.0 if pure else None)[:, 0] / SETS.outputscale[m]
    error = means.std(0) / np.sqrt(len(means))
    assert np.all(np.abs(means.mean(0) - K) < 4.5 * error + 1e-5)
    other = dense(m, X, Y[1:2], 0.6)[:, 0] / SETS.outputscale[m]
    assert np.max(np.abs(means.mean(0) - other) / error) > 8


def test_stratified_draws_are_better_than_independent_ones() -> None:
    """Terms by their shares, and levels even within each: less than half of the variance."""
    together, alone = drawn(Additive(), 0, 64, 4000), drawn(Additive(), 0, 1, 40_000)
    assert np.sum(together.var(0)) < 0.5 * np.sum(alone.var(0) / 64)


def test_a_frequency_belongs_to_one_term() -> None:
    """A share w of them has all columns, the others those of one parameter, equally many each."""
    draws = Frequencies.of(np.random.default_rng(3), M, 300, D)
    there = COVARIANCE.frequencies(draws) != 0
    patterns = {(1, 1, 1, 1): SHARE}
    patterns |= dict.fromkeys(((1, 0, 0, 0), (0, 1, 1, 0), (0, 0, 0, 1)), (1 - SHARE) / 3)
    counts = [np.all(there == np.array(p, dtype=bool), -1).sum(-1) for p in patterns]
    assert np.all(np.sum(counts, 0) == 300)
    expected = 300 * np.array(list(patterns.values()))
    assert np.all(np.abs(np.array(counts) - expected) <= 1 + 1e-9)


def test_posterior_and_paths() -> None:
    """Against a dense solve; the paths' variance inside 4.5 standard errors over 400 sets."""
    values = {name: np.repeat(v[:1], 400, axis=0) for name, v in SETS.values().items()}
    plane = values | {"lengthscale": values["lengthscale"][:, [0, 1, 1, 2]]}
    y = np.random.default_rng(8).normal(size=7)
    covariance = Additive().bind(Hyperparameters(**plane), (0, 1, 2, 3))
    posterior = gp.condition(Hyperparameters(**plane), X, y, kernel="additive")
    K = covariance.between(X, X).K[0] + 0.1 * np.eye(7)
    cross = covariance.between(Y, X).K[0]
    mean, variance = posterior.predict(Y)
    np.testing.assert_allclose(mean[0], cross @ np.linalg.solve(K, y), rtol=1e-9)
    truth = 2 - np.sum(cross * np.linalg.solve(K, cross.T).T, 1)
    np.testing.assert_allclose(variance[0], truth, rtol=1e-9)
    drawn = gp.sample_paths(posterior, 8, features=64).at(Y)
    spread = ((drawn - mean[:, None]) ** 2).mean(1)
    error = spread.std(0) / np.sqrt(len(spread))
    assert np.all(np.abs(spread.mean(0) - truth) < 4.5 * error)


def test_a_flat_optimum_is_met() -> None:
    """Value and slopes that are conditioned on are what the posterior has there."""
    posterior = gp.condition(SETS_4, X, np.arange(7.0), kernel="additive")
    wanted = np.concatenate([np.full((M, P, 1), 9.0), np.zeros((M, P, D))], -1)
    known = np.ones(wanted.shape, dtype=bool)
    functionals = Functionals(((1, STAR),))
    found = condition_on(posterior, functionals, wanted, known, np.full(1 + D, 1e-10))

    def means(X: np.ndarray) -> np.ndarray:
        query = posterior.at(X)
        return np.asarray(
            query.means + np.einsum("mpiq,mpi->mpq", found.at(X, query).z, found.shift)
        )

    for m, p in np.ndindex(M, P):
        at = STAR[m, p][None]
        assert means(at)[m, p, 0] == pytest.approx(9.0, abs=1e-4)
        np.testing.assert_allclose(slopes(means, at)[m, p, 0], 0.0, atol=1e-3)


SETS_4 = Hyperparameters(
    **SETS.values() | {"lengthscale": SETS.lengthscale[:, list(COLUMNS)], "noise": [0.1] * M}
)


# --- inference ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Additive(), Additive(interactions=False)])
def test_pairs_of_data_and_their_pull(kernel: Additive) -> None:
    rng = np.random.default_rng(7)
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
        return np.sum(by_pairs * fit.pairs, 1) + by_diagonal * fit.diagonal

    found = pairs.fit(values).pull(by_pairs, by_diagonal)
    assert set(found) == {"lengthscale", "outputscale", *(b.name for b in kernel.blocks())}
    for name, slope in found.items():
        for i in range(slope.shape[1]):
            step = STEP * np.eye(slope.shape[1])[i]
            ends = [total(values | {name: values[name] + s * step}) for s in (1, -1)]
            numeric = (ends[0] - ends[1]) / (2 * STEP)
            np.testing.assert_allclose(slope[:, i], numeric, rtol=1e-6, atol=1e-7)


def test_slope_of_the_likelihood_against_central_differences() -> None:
    process = Process(COLUMNS, Additive())
    ours = Likelihood(Sample(X, np.sin(9 * X[:, 0]), np.full(7, np.nan)), process)
    theta = 0.5 * np.random.default_rng(1).normal(size=(3, process.table.size))
    _, slope = ours.slope(theta)
    for i, e in enumerate(STEP * np.eye(theta.shape[1])):
        difference = (ours.density(theta + e) - ours.density(theta - e)) / (2 * STEP)
        np.testing.assert_allclose(slope[:, i], difference, rtol=1e-7, atol=1e-6)


def test_the_data_say_how_much_parameters_interact() -> None:
    """60 values of a sum of four waves, and of a product: the mode's share is near 0 and near 1."""
    X = np.random.default_rng(5).uniform(size=(60, 4))
    waves = np.sin(6 * X + np.arange(4))
    shares = []
    for y in (waves.sum(1), 4 * np.prod(waves[:, :2], 1)):
        process = Process((0, 1, 2, 3), Additive())
        sample = Sample(X, (y - y.mean()) / y.std(), np.full(60, np.nan))
        theta = fit_mode(sample, process)
        shares.append(process.table.hyperparameters(theta[None]).own["interactions"][0])
    assert shares[0] < 0.1
    assert shares[1] > 0.5


def test_many_parameters_are_learnt_from_few_trials() -> None:
    """A sum of eight waves from 40 values: a third of the error of Matérn-5/2, or less."""
    rng = np.random.default_rng(6)
    X, Q = rng.uniform(size=(40, 8)), rng.uniform(size=(200, 8))

    def f(X: np.ndarray) -> np.ndarray:
        return np.asarray(np.sin(5 * X + np.arange(8)).sum(1))

    errors = []
    for kernel in (Additive(), gp.Matern52()):
        process = Process(tuple(range(8)), kernel)
        theta = fit_mode(Sample(X, f(X) / 2, np.full(40, np.nan)), process)
        hypers = process.table.hyperparameters(theta[None])
        mean, _ = gp.condition(hypers, X, f(X) / 2, kernel).predict(Q)
        errors.append(np.sqrt(np.mean((2 * mean[0] - f(Q)) ** 2)))
    assert errors[0] < errors[1] / 3


# --- by name ------------------------------------------------------------------------------------


def test_it_searches_by_name_and_is_saved(tmp_path: Path) -> None:
    """With a category, JES-peak and pending trials; the loaded search asks for the same point."""
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "c": Categorical(["u", "v", "w"])})
    small = {"sets": 3, "pairs": 2, "features": 64, "candidates": 64, "path_candidates": 64}
    optimizer = Optimizer(space, seed=0, settings=Settings(kernel="additive", **small))
    for _ in range(14):
        trial = optimizer.ask()
        x, y, c = (trial.params[name] for name in ("x", "y", "c"))
        optimizer.tell(trial, (x - 0.3) ** 2 + (y - 0.6) ** 2 + 0.2 * "uvw".index(c))
    best = optimizer.recommend()
    assert best.params["x"] == pytest.approx(0.3, abs=0.15)
    assert best.params["c"] == "u"
    optimizer.save(tmp_path / "saved.json")
    again = Optimizer.load(tmp_path / "saved.json")
    assert again.ask().params == optimizer.ask().params


def test_what_is_refused() -> None:
    plain = Hyperparameters([[0.3]], [1.0], [0.1], [0.0])
    with pytest.raises(ValueError, match=r"needs hyperparameters called \['interactions'\], or"):
        Additive().bind(plain, (0,))
    assert Additive(interactions=False).bind(plain, (0,)).share is None
    for wrong in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="interactions must be from 0 to 1"):
            Hyperparameters([[0.3]], [1.0], [0.1], [0.0], interactions=[wrong])
