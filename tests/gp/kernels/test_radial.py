"""Radial kernels against their formulas, central differences and their spectral densities."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from gp_cases import KERNELS, STEP, RationalQuadratic, correlation, slopes
from optpair import Float, Optimizer, Settings, Space, gp
from optpair.gp import Hyperparameters, Kernel
from optpair.gp.kernels import KERNELS as NAMED
from optpair.gp.kernels import Frequencies, Radial, as_kernel
from optpair.gp.kernels.base import Covariance
from optpair.gp.process import Process

SCALE, OUTPUT = np.array([[0.3, 0.7], [0.05, 2.0], [1.5, 0.2]]), np.array([2.0, 0.5, 30.0])
ROUGH = np.array([0.3, 0.9, 1e-3])
SETS = Hyperparameters(SCALE, OUTPUT, np.ones(3), np.zeros(3), rough=ROUGH)
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(7, 2)), RNG.uniform(size=(5, 2))
Y[0], Y[1], Y[2] = X[0], 0.0, 1.0
NAMES = list(KERNELS)
OWN = RationalQuadratic()
RADIAL: list[Radial] = [KERNELS["rbf"], KERNELS["matern52"], KERNELS["mixed"], OWN]  # type: ignore[list-item]


def bound(
    kernel: Kernel, sets: slice = slice(None), columns: tuple[int, ...] = (0, 1)
) -> Covariance:
    return kernel.bind(SETS.some(sets), columns)


def dense(kernel: str, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    r = np.sqrt(np.sum(((X[None, :, None] - Y[None, None]) / SCALE[:, None, None]) ** 2, -1))
    each = [correlation(kernel, r[m], ROUGH[m]) for m in range(3)]
    return OUTPUT[:, None, None] * np.stack(each)


# --- h and its derivatives ----------------------------------------------------------------------

FORMULAS = {
    "rbf": lambda s: mpmath.exp(-s / 2),
    "matern52": lambda s: (1 + mpmath.sqrt(5 * s) + 5 * s / 3) * mpmath.exp(-mpmath.sqrt(5 * s)),
    "mixed": lambda s: 0.7 * FORMULAS["rbf"](s) + 0.3 * FORMULAS["matern52"](s),
    "rational_quadratic": lambda s: (1 + s / 4) ** -2,
}


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
def test_h_and_its_derivatives_in_r2(kernel: Radial) -> None:
    r2 = np.array([1e-4, 0.03, 0.5, 1.0, 4.0, 30.0])
    terms = kernel.terms(r2, {"rough": np.array(0.3)}, 3)
    with mpmath.workdps(40):
        for order, got in enumerate(terms):
            truth = [mpmath.diff(FORMULAS[kernel.name], mpmath.mpf(s), order) for s in r2.tolist()]
            np.testing.assert_allclose(got, np.array(truth, float), rtol=1e-11)
    for order in range(4):
        fewer = kernel.terms(r2, {"rough": np.array(0.3)}, order)
        assert len(fewer) == order + 1
        for mine, whole in zip(fewer, terms, strict=False):
            np.testing.assert_array_equal(mine, whole)


@pytest.mark.parametrize(
    ("name", "first", "second"), [("rbf", -1 / 2, 1 / 4), ("matern52", -5 / 6, 25 / 12)]
)
def test_h_where_points_coincide(name: str, first: float, second: float) -> None:
    """k″(0) = 2h′ = −5/3 and k⁗(0) = 12h″ = 25 of Matérn-5/2; h‴ is taken as 0."""
    terms = KERNELS[name].terms(np.zeros((1, 2)), {}, 3)  # type: ignore[attr-defined]
    np.testing.assert_allclose(terms[0], 1.0, rtol=1e-15)
    np.testing.assert_allclose(terms[1], first, rtol=1e-15)
    np.testing.assert_allclose(terms[2], second, rtol=1e-15)
    assert np.all(np.isfinite(terms[3]))
    assert name == "rbf" or np.all(terms[3] == 0)


@pytest.mark.parametrize(("share", "name"), [(0.0, "rbf"), (1.0, "matern52")])
def test_all_smooth_and_all_rough_are_the_kernels_themselves(share: float, name: str) -> None:
    r2 = np.random.default_rng(5).uniform(0.0, 9.0, (2, 6))
    mixed = gp.Mixed().terms(r2, {"rough": np.full((2, 1), share)}, 3)
    plain = KERNELS[name].terms(r2, {}, 3)  # type: ignore[attr-defined]
    for got, truth in zip(mixed, plain, strict=True):
        np.testing.assert_allclose(got, truth, rtol=1e-13, atol=1e-16)


def test_the_derivative_by_the_rough_share() -> None:
    r2 = np.random.default_rng(4).uniform(0.01, 9.0, (3, 5))

    def value(rough: np.ndarray) -> np.ndarray:
        return np.asarray(gp.Mixed().terms(r2, {"rough": rough[:, None]}, 0)[0])

    slope = (value(ROUGH + STEP) - value(ROUGH - STEP)) / (2 * STEP)
    got = gp.Mixed().by_own(r2, {"rough": ROUGH[:, None]})["rough"]
    np.testing.assert_allclose(got, slope, rtol=0, atol=1e-9)


# --- covariances between points -----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_values_follow_the_formula(name: str) -> None:
    # r² loses eps·(|Z|² + |Y|²) ≤ eps·2·(0.5/0.05)² = 5e-14 to the matrix product; |dh/dr²| ≤ 1.
    got = bound(KERNELS[name]).between(X, Y).K / OUTPUT[:, None, None]
    np.testing.assert_allclose(got, dense(name, X, Y) / OUTPUT[:, None, None], rtol=0, atol=1e-13)
    assert got[0, 0, 0] == pytest.approx(1.0, rel=1e-14)  # a coincident pair
    np.testing.assert_array_equal(bound(KERNELS[name]).diagonal(X), np.tile(OUTPUT, (7, 1)).T)


def test_points_of_each_set_are_its_own() -> None:
    own = np.stack([X, X + 0.1, X - 0.1])
    covariance = bound(gp.Matern52())
    got = covariance.between(own, Y).K
    each = [covariance.between(own[m], Y).K[m] for m in range(3)]
    np.testing.assert_allclose(got, each, rtol=1e-12)
    both = covariance.between(own, own).K
    each = [covariance.between(own[m], own[m]).K[m] for m in range(3)]
    np.testing.assert_allclose(both, each, rtol=1e-12)


def test_some_of_the_sets() -> None:
    for kernel in KERNELS.values():
        whole = bound(kernel).between(X, Y).K
        for chosen in (slice(1, 3), np.array([2, 0])):
            part = bound(kernel).of_sets(chosen)
            np.testing.assert_allclose(part.between(X, Y).K, whole[chosen], rtol=1e-13)


def test_columns_share_the_length_scale_of_their_parameter() -> None:
    hypers = Hyperparameters([[0.3, 0.7]], [2.0], [0.1], [0.0])
    wide = Hyperparameters([[0.7, 0.3, 0.3]], [2.0], [0.1], [0.0])
    Z = np.random.default_rng(1).uniform(size=(4, 3))
    one = gp.RBF().bind(hypers, (1, 0, 0)).between(Z, Z).K
    np.testing.assert_allclose(one, gp.RBF().bind(wide, (0, 1, 2)).between(Z, Z).K, rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_short_length_scales_keep_coincident_points_together(name: str) -> None:
    # The centring bounds |Z| by 0.5/ℓ·√D: r² is off by at most about eps·(0.5/ℓ)²·2D = 2e-11.
    Z = np.random.default_rng(1).uniform(size=(50, 2))
    short = Hyperparameters([[1e-3, 1e-3]], [1.0], [0.1], [0.0], rough=[0.3])
    K = KERNELS[name].bind(short, (0, 1)).between(Z, Z).K[0]
    np.testing.assert_allclose(np.diagonal(K), 1.0, rtol=0, atol=5e-10)
    assert K.max() <= 1.0


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
def test_pull_against_central_differences(kernel: Radial) -> None:
    # Every pair at once, the coincident one too. Central differences err by step²/6·k‴ plus
    # eps·k/step: with k‴ up to 12 a/ℓ³ at ℓ = 0.05 that is 6e-7 a and 4e-11 a.
    covariance = bound(kernel)
    weights = np.random.default_rng(2).normal(size=(3, 7, 5)) / OUTPUT[:, None, None]
    numeric = slopes(lambda X: np.sum(weights * covariance.between(X, Y).K, -1), X)
    exact = covariance.between(X, Y).pull(weights.copy())
    np.testing.assert_allclose(exact, numeric, rtol=1e-6, atol=5e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_slope_is_zero_where_points_coincide(name: str) -> None:
    # Only round-off is left: eps·(|Z| + |Y|)/ℓ·a.
    x = np.array([[0.31, 0.77]])
    slope = bound(KERNELS[name]).between(x, x).pull(np.ones((3, 1, 1)))
    np.testing.assert_allclose(slope[1], 0.0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_has_unit_output_scale(name: str) -> None:
    """Round-off of single precision is 6e-8·(|Z|² + |W|²) ≤ 2e-5 in r², at |Z| = 0.5/0.05."""
    exact = bound(KERNELS[name])
    rough = exact.single()
    between = rough.between(X.astype(np.float32), Y.astype(np.float32))
    assert between.K.dtype == np.float32
    truth = exact.between(X, Y)
    np.testing.assert_allclose(between.K, truth.K / OUTPUT[:, None, None], rtol=0, atol=5e-5)
    weights = np.ones((3, 7, 5))
    slope = between.pull(weights.astype(np.float32))
    assert slope.dtype == np.float32
    np.testing.assert_allclose(
        slope, truth.pull(weights) / OUTPUT[:, None, None], rtol=1e-3, atol=2e-3
    )


# --- jets ---------------------------------------------------------------------------------------

P = 3
STAR = np.random.default_rng(3).uniform(size=(3, P, 2))
POINTS = np.concatenate([X[:4], STAR[0, :1], STAR[1, 1:2]])
WIDE = Hyperparameters(
    [[0.3, 0.7], [0.2, 0.4], [0.9, 0.25]], [2.0, 0.5, 3.0], np.ones(3), np.zeros(3), rough=ROUGH
)


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
def test_jets_are_derivatives_of_the_kernel(kernel: Radial) -> None:
    """(D1) to (D3) by differencing k(x*, x) in x*, at points apart from x* and at x* itself.

    Steps of 1e-4 of a length scale: the error of a second difference is 1e-8 k⁗ + 1e8·eps, and
    that of Matérn-5/2 at x* itself is 1e-4 k‴′, whose fifth derivative jumps there.
    """
    covariance, step = kernel.bind(WIDE, (0, 1)), 1e-4
    rows = covariance.jets(STAR, POINTS, 2).rows
    assert rows.shape == (3, P, 5, len(POINTS))
    for m, p in np.ndindex(3, P):
        one, scale = covariance.of_sets(slice(m, m + 1)), WIDE.lengthscale[m]
        moves = step * scale * np.concatenate([np.eye(2), np.zeros((1, 2)), -np.eye(2)])
        K = one.between(STAR[m, p] + moves, POINTS).K[0]
        up, here, down = K[:2], K[2], K[3:]
        a = WIDE.outputscale[m]
        np.testing.assert_allclose(rows[m, p, 0], here, rtol=0, atol=1e-13 * a)
        np.testing.assert_allclose(rows[m, p, 1:3], (up - down) / (2 * step), atol=1e-6 * a)
        bends = (up - 2 * here + down) / step**2
        np.testing.assert_allclose(rows[m, p, 3:], bends, rtol=0, atol=3e-3 * a)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_lower_orders_are_the_first_rows(order: int) -> None:
    covariance = gp.Matern52().bind(WIDE, (0, 1))
    J = 1 + 2 * order
    whole = covariance.jets(STAR, POINTS, 2).rows
    np.testing.assert_array_equal(covariance.jets(STAR, POINTS, order).rows, whole[:, :, :J])
    variance = covariance.jet_variance(2)
    np.testing.assert_array_equal(covariance.jet_variance(order), variance[:, :J, :J])


@pytest.mark.parametrize(("name", "second", "fourth"), [("rbf", 1, 3), ("matern52", 5 / 3, 25)])
def test_known_values_at_one_point(name: str, second: float, fourth: float) -> None:
    """(D4): −k″(0) and k⁗(0) in one dimension; a third of the latter between two coordinates."""
    V = KERNELS[name].bind(WIDE, (0, 1)).jet_variance(2) / WIDE.outputscale[:, None, None]
    truth = np.zeros((5, 5))
    truth[0, 0] = 1
    truth[0, 3:] = truth[3:, 0] = -second
    truth[1:3, 1:3] = second * np.eye(2)
    truth[3:, 3:] = fourth * np.array([[1, 1 / 3], [1 / 3, 1]])
    np.testing.assert_allclose(V, np.tile(truth, (3, 1, 1)), rtol=1e-14)


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
def test_one_point_against_differences_of_the_jets(kernel: Radial) -> None:
    """(D4): cov(g_k, ·) and cov(h_k, ·) by differencing cov(f(x), ·) in x around x*.

    Steps as above; Matérn's fifth derivative jumps at zero, where the error is of first order.
    """
    covariance, step = kernel.bind(WIDE, (0, 1)), 1e-4
    V, star = covariance.jet_variance(2), STAR[:, :1]
    tolerance = 2e-2 if kernel.name in ("matern52", "mixed") else 1e-5
    for m in range(3):
        moves = (
            step * WIDE.lengthscale[m] * np.concatenate([np.eye(2), np.zeros((1, 2)), -np.eye(2)])
        )
        rows = covariance.jets(star, star[m, 0] + moves, 2).rows[m, 0].T
        up, here, down = rows[:2], rows[2], rows[3:]
        a = WIDE.outputscale[m]
        np.testing.assert_allclose((up - down) / (2 * step) / a, V[m, 1:3] / a, atol=1e-5)
        bends = (up - 2 * here + down) / step**2
        np.testing.assert_allclose(bends / a, V[m, 3:] / a, atol=tolerance)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
def test_pull_of_jets_against_central_differences(kernel: Radial, order: int) -> None:
    """At x* itself the slope of cov(f(x), h) is zero by symmetry, and never NaN."""
    covariance = kernel.bind(WIDE, (0, 1))
    weights = np.random.default_rng(4).normal(size=(3, P, 1 + 2 * order, len(POINTS)))

    def total(X: np.ndarray) -> np.ndarray:
        return np.sum(weights * covariance.jets(STAR, X, order).rows, (1, 2))

    exact = covariance.jets(STAR, POINTS, order).pull(weights)
    np.testing.assert_allclose(exact, slopes(total, POINTS), rtol=1e-6, atol=2e-4)


def test_points_of_jets_may_belong_to_a_set_or_a_star() -> None:
    covariance = gp.Matern52().bind(WIDE, (0, 1))
    shared = covariance.jets(STAR, POINTS, 2).rows
    of_set = np.broadcast_to(POINTS, (3, *POINTS.shape))
    own = np.broadcast_to(POINTS, (3, P, *POINTS.shape))
    for points in (of_set, own):
        np.testing.assert_allclose(covariance.jets(STAR, points, 2).rows, shared, rtol=1e-13)
    other = covariance.jets(STAR, own + 0.1 * np.arange(P)[:, None, None], 2).rows
    np.testing.assert_allclose(other[:, 0], shared[:, 0], rtol=1e-13)
    assert np.max(np.abs(other[:, 1] - shared[:, 1])) > 0.1


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
def test_the_joint_covariance_is_positive_definite(kernel: Radial) -> None:
    """(f, g, h) at x*, and f at other points."""
    covariance = kernel.bind(WIDE, (0, 1))
    apart, here = covariance.jets(STAR, POINTS[:4], 2).rows, covariance.jet_variance(2)
    K = covariance.between(POINTS[:4], POINTS[:4]).K
    for m, p in np.ndindex(3, P):
        full = np.block([[here[m], apart[m, p]], [apart[m, p].T, K[m]]])
        assert np.linalg.eigvalsh(full).min() > 1e-8


# --- spectral densities -------------------------------------------------------------------------

DELTAS = np.array([[0.1, 0.0], [0.0, 0.3], [0.2, -0.2], [-0.3, 1.0]])
EVEN = Hyperparameters([[0.3, 0.7]], [1.0], [0.1], [0.0], rough=[0.3])


def drawn(kernel: Kernel, count: int, repeats: int, seed: int = 3) -> np.ndarray:
    """Averages of cos ω·Δ over `count` frequencies, repeated: (repeats, deltas)."""
    many = Hyperparameters(**{k: np.repeat(v, repeats, axis=0) for k, v in EVEN.values().items()})
    draws = Frequencies.of(np.random.default_rng(seed), repeats, count, 2)
    omega = kernel.bind(many, (0, 1)).frequencies(draws)
    return np.asarray(np.cos(omega @ DELTAS.T).mean(1))


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("count", [5, 64])
def test_features_reproduce_the_kernel(kernel: Radial, count: int) -> None:
    """k(Δ)/a = E cos ω·Δ over many lots of dependent frequencies, within 4.5 standard errors."""
    means = drawn(kernel, count, 4000)
    K = kernel.bind(EVEN, (0, 1)).between(DELTAS, np.zeros((1, 2))).K[0, :, 0]
    error = means.std(0) / np.sqrt(len(means))
    assert np.all(np.abs(means.mean(0) - K) < 4.5 * error + 1e-5)


def test_features_of_one_kernel_do_not_fit_the_other() -> None:
    """The test above has the power to tell the kernels apart."""
    means = drawn(gp.RBF(), 64, 4000)
    error = means.std(0) / np.sqrt(len(means))
    for other in (gp.Matern52(), gp.Mixed()):
        K = other.bind(EVEN, (0, 1)).between(DELTAS, np.zeros((1, 2))).K[0, :, 0]
        assert np.max(np.abs(means.mean(0) - K) / error) > 8


@pytest.mark.parametrize("name", NAMES)
def test_orthogonal_stratified_draws_are_better_than_independent_ones(name: str) -> None:
    """Less than half of the variance, over all of Δ together; a variance of 4000 is good to 2 %."""
    together = drawn(KERNELS[name], 64, 4000).var(0)
    alone = drawn(KERNELS[name], 1, 40_000).var(0) / 64
    assert np.sum(together) < 0.5 * np.sum(alone)


@pytest.mark.parametrize("dimensions", [1, 3, 5])
def test_directions_are_orthogonal_and_even(dimensions: int) -> None:
    """All second and fourth moments of directions are those of the sphere, within 4.5 errors."""
    lots = 20_000
    draws = Frequencies.of(np.random.default_rng(0), lots, dimensions + 2, dimensions)
    x = draws.direction
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1.0, rtol=1e-12)
    block = x[:, :dimensions]
    gram = block @ np.swapaxes(block, 1, 2)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(dimensions), gram.shape), atol=1e-12)
    for i in range(dimensions + 2):
        second, square = x[:, i, :, None] * x[:, i, None], x[:, i] ** 2
        fourth = square[:, :, None] * square[:, None]
        truth = (1 + 2 * np.eye(dimensions)) / (dimensions * (dimensions + 2))
        for each, mean in ((second, np.eye(dimensions) / dimensions), (fourth, truth)):
            error = each.std(0) / np.sqrt(lots)
            assert np.all(np.abs(each.mean(0) - mean) < 4.5 * error + 1e-12)
    # One level in each of F equal parts.
    parts = np.sort(np.floor(draws.level * (dimensions + 2)), axis=1)
    np.testing.assert_array_equal(parts, np.tile(np.arange(dimensions + 2.0), (lots, 1)))


def test_jets_are_averages_over_the_spectral_density() -> None:
    """k = a E cos ω·(x − x*): derivatives are averages too, inside 5 standard errors (RBF).

    Matérn's frequencies have too heavy a tail for the average of ω⁴ to have a standard error.
    """
    covariance = gp.RBF().bind(WIDE, (0, 1))
    omega = np.random.default_rng(0).standard_normal((3, 40_000, 2)) / WIDE.lengthscale[:, None]
    for m in range(3):
        star, x, w = STAR[m, 0], POINTS[0], omega[m] * WIDE.lengthscale[m]
        phase = omega[m] @ (x - star)
        c, s = np.cos(phase)[:, None], np.sin(phase)[:, None]
        draws = WIDE.outputscale[m] * np.concatenate([c, w * s, -(w**2) * c], 1)
        got = covariance.jets(STAR, POINTS, 2).rows[m, 0, :, 0]
        assert np.all(np.abs(got - draws.mean(0)) < 5 * draws.std(0) / np.sqrt(len(w)))
        fourth = WIDE.outputscale[m] * w[:, :, None] ** 2 * w[:, None, :] ** 2
        V = covariance.jet_variance(2)[m, 3:, 3:]
        assert np.all(np.abs(V - fourth.mean(0)) < 5 * fourth.std(0) / np.sqrt(len(w)))


# --- pairs of data ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
def test_pairs_of_data_are_the_upper_triangle(kernel: Radial) -> None:
    values = Process((0, 1), kernel).table.values(
        np.random.default_rng(6).normal(size=(3, 5 + len(kernel.blocks())))
    )
    fit = kernel.pairwise(X, (0, 1)).fit(values)
    own = {
        name: v[:, 0] for name, v in values.items() if name not in ("lengthscale", "noise", "mean")
    }
    hypers = Hyperparameters(values["lengthscale"], noise=np.ones(3), mean=np.zeros(3), **own)
    K = kernel.bind(hypers, (0, 1)).between(X, X).K
    i, j = np.triu_indices(len(X), 1)
    np.testing.assert_allclose(fit.pairs, K[:, i, j], rtol=1e-9)
    np.testing.assert_array_equal(fit.diagonal, hypers.outputscale)


@pytest.mark.parametrize("kernel", RADIAL, ids=lambda kernel: kernel.name)
def test_pull_of_pairs_against_central_differences(kernel: Radial) -> None:
    rng = np.random.default_rng(7)
    table = Process((0, 0), kernel).table
    values = table.values(0.5 * rng.normal(size=(2, table.size)))
    pairs = kernel.pairwise(X, (0, 0))
    by_pairs, by_diagonal = rng.normal(size=(2, 21)), rng.normal(size=2)

    def total(values: dict[str, np.ndarray]) -> np.ndarray:
        fit = pairs.fit(values)
        return np.sum(by_pairs * fit.pairs, 1) + by_diagonal * fit.diagonal

    found = pairs.fit(values).pull(by_pairs, by_diagonal)
    assert set(found) == {"lengthscale", "outputscale", *(b.name for b in kernel.blocks())}
    for name, slope in found.items():
        ends = [total(values | {name: values[name] + s * STEP}) for s in (1, -1)]
        np.testing.assert_allclose(
            slope[:, 0], (ends[0] - ends[1]) / (2 * STEP), rtol=1e-6, atol=1e-7
        )


# --- kernels by name, and a user's own ----------------------------------------------------------


def test_kernels_by_name() -> None:
    assert [as_kernel(name) for name in NAMES] == [gp.RBF(), gp.Matern52(), gp.Mixed()]
    assert list(NAMED) == [*NAMES, "additive"]
    assert as_kernel(OWN) is OWN
    with pytest.raises(
        ValueError, match=r"rbf, matern52, mixed, additive, or a Kernel, not 'cubic'"
    ):
        as_kernel("cubic")
    with pytest.raises(TypeError, match=r"kernel must be one of rbf.*not 3"):
        as_kernel(3)


def test_a_kernel_says_what_it_misses() -> None:
    plain = Hyperparameters([[0.3]], [1.0], [0.1], [0.0])
    with pytest.raises(ValueError, match=r"Mixed.*needs hyperparameters called \['rough'\]"):
        gp.Mixed().bind(plain, (0,))


def test_a_users_own_kernel_conditions_and_draws() -> None:
    """Against (1 + r²/4)⁻² in a dense solve, and its paths against the posterior."""
    hypers = Hyperparameters([[0.3, 0.6]] * 400, [2.0] * 400, [0.05] * 400, [0.5] * 400)
    y = np.random.default_rng(8).normal(size=7)
    posterior = gp.condition(hypers, X, y, kernel=OWN)

    def k(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return 2 * (1 + np.sum(((A[:, None] - B) / [0.3, 0.6]) ** 2, -1) / 4) ** -2.0

    K = k(X, X) + 0.05 * np.eye(7)
    mean, variance = posterior.predict(Y)
    cross = k(Y, X)
    np.testing.assert_allclose(mean[0], 0.5 + cross @ np.linalg.solve(K, y - 0.5), rtol=1e-9)
    truth = 2 - np.sum(cross * np.linalg.solve(K, cross.T).T, 1)
    np.testing.assert_allclose(variance[0], truth, rtol=1e-9)
    values = gp.sample_paths(posterior, 8, features=64).at(Y)
    spread = ((values - mean[:, None]) ** 2).mean(1)
    error = spread.std(0) / np.sqrt(len(spread))
    assert np.all(np.abs(spread.mean(0) - truth) < 4.5 * error)


def test_a_users_own_kernel_searches() -> None:
    small = {"sets": 3, "pairs": 2, "features": 64, "candidates": 64, "path_candidates": 64}
    optimizer = Optimizer(
        Space({"x": Float(0.0, 1.0)}), seed=0, settings=Settings(kernel=OWN, **small)
    )
    for _ in range(8):
        trial = optimizer.ask()
        optimizer.tell(trial, (trial.params["x"] - 0.3) ** 2)
    assert optimizer.recommend().params["x"] == pytest.approx(0.3, abs=0.1)
