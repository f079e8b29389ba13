"""The chance of success against its closed form, and what weights do to an acquisition function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from optpair.acquisition import Acquisition, Success, Values, Weighted, fit_success, weighted
from optpair.acquisition import mean as posterior_mean
from optpair.acquisition import weights as weights_module
from optpair.gp import Hyperparameters, condition
from optpair.gp.hyperparameters import Below
from optpair.gp.inference.mode import fit_mode
from optpair.gp.kernels import Mixed
from optpair.gp.likelihood import Sample
from optpair.gp.process import Process

D, MOST = 2, 256
RNG = np.random.default_rng(0)
TOLD = RNG.uniform(0.0, 0.45, (6, D))
FAILED = RNG.uniform(0.75, 1.0, (4, D))
PROCESS = Process((0, 1), Mixed())
STEP = np.finfo(float).eps ** (1 / 3)
SCALES: tuple[Values, ...] = ("gain", "improvement", "log improvement", "worth")


@pytest.fixture(scope="module")
def success() -> Success:
    return fit_success(PROCESS, TOLD, FAILED, MOST)


def test_lower_near_failures_than_near_what_was_told(success: Success) -> None:
    there, here = success.chance(FAILED), success.chance(TOLD)
    assert there.max() < 0.5 < here.min()
    assert there.min() >= 0
    assert here.max() <= 1


def test_nothing_is_held_against_an_untried_place(success: Success) -> None:
    """Many length scales away the label is N(1, a + σ²): Φ(1/√(a + σ²)), above ½."""
    a, noise = success.labels.outputscale[0], success.labels.noise[0]
    far = success.chance(np.full((1, D), 1e4))[0]
    assert far == pytest.approx(stats.norm.cdf(1 / np.sqrt(a + noise)), rel=1e-9)
    assert far > 0.5


def test_chance_is_that_of_a_regressed_label(success: Success) -> None:
    """Labels ±1 about a mean of 1, by a textbook GP with the fitted hyperparameters."""
    scale, a = success.labels.covariance.scale[0], success.labels.outputscale[0]
    noise = success.labels.noise[0]
    rows = np.concatenate([TOLD, FAILED])
    labels = np.array([1.0] * len(TOLD) + [-1.0] * len(FAILED))
    points = np.random.default_rng(1).uniform(size=(10, D))

    def k(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        u = np.sqrt(5 * np.sum(((A[:, None] - B) / scale) ** 2, -1))
        return np.asarray(a * (1 + u + u**2 / 3) * np.exp(-u))

    K = k(rows, rows) + noise * np.eye(len(rows))
    mean = 1 + k(points, rows) @ np.linalg.solve(K, labels - 1)
    variance = a - np.sum(k(points, rows) * np.linalg.solve(K, k(rows, points)).T, -1)
    truth = stats.norm.cdf(mean / np.sqrt(variance + noise))
    np.testing.assert_allclose(success.chance(points), truth, rtol=1e-6)


def test_of_many_rows_a_part_says_what_the_hyperparameters_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The posterior has them all."""
    seen: list[Sample] = []

    def spy(some: Sample, process: Process) -> np.ndarray:
        seen.append(some)
        return fit_mode(some, process)

    monkeypatch.setattr(weights_module, "fit_mode", spy)
    thinned = fit_success(PROCESS, TOLD, FAILED, 8)
    assert [some.y.tolist() for some in seen] == [[0.0, 0.0, 0.0, -2.0, -2.0]]
    assert len(thinned.labels.X) == len(TOLD) + len(FAILED)
    assert thinned.chance(FAILED).max() < 0.5 < thinned.chance(TOLD).min()


def test_all_failed() -> None:
    """Nothing told at all: every failure lowers its surroundings, and far away stays above ½."""
    alone = fit_success(PROCESS, TOLD[:0], FAILED, MOST)
    assert alone.chance(FAILED).max() < 0.5
    assert alone.chance(np.full((1, D), 1e4))[0] > 0.5


def test_slope_of_the_logarithm(success: Success) -> None:
    points = np.concatenate([FAILED[:2], TOLD[:2], np.random.default_rng(2).uniform(size=(4, D))])
    values, slopes = success.log_slopes(points)
    np.testing.assert_allclose(values, success.log_weight(points), rtol=1e-12)
    for i, e in enumerate(STEP * np.eye(D)):
        numeric = (success.log_weight(points + e) - success.log_weight(points - e)) / (2 * STEP)
        np.testing.assert_allclose(slopes[:, i], numeric, rtol=1e-5, atol=1e-7)


def test_a_chance_that_underflows_keeps_its_logarithm(success: Success) -> None:
    """Many failures at one place, without noise: P(label > 0) is below what float64 holds."""
    sure = Hyperparameters([[1.0, 1.0]], [1e-6], [1e-9], [0.0])
    labels = condition(sure, FAILED, np.full(len(FAILED), -2.0))
    hopeless = Success(labels, np.ones(1))
    values, slopes = hopeless.log_slopes(FAILED[:1])
    assert hopeless.chance(FAILED[:1])[0] == 0
    assert -np.inf < values[0] < -1000
    assert np.all(np.isfinite(slopes))


@dataclass(frozen=True)
class Plain(Acquisition):
    """α(x) = level + x₀²."""

    level: float

    @property
    def dimensions(self) -> int:
        return D

    def values(self, X: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        return np.asarray(self.level + X[:, 0] ** 2)

    def slopes(
        self, X: np.ndarray, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.values(X), 2 * X * [1.0, 0.0]


@dataclass(frozen=True)
class Tilt:
    """w(x) = exp(−rate x₁)."""

    rate: float

    def log_weight(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(-self.rate * X[:, 1])

    def log_slopes(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.log_weight(X), np.tile([0.0, -self.rate], (len(X), 1))


def test_how_weights_act(success: Success) -> None:
    """Times what is at least 0, added to a logarithm, and between a worth and the worst."""
    points = np.random.default_rng(3).uniform(size=(8, D))
    plain, values = Plain(2.0), 2 + points[:, 0] ** 2
    chance = success.chance(points)
    assert chance.min() < 0.5 < chance.max()
    for weights, p in (
        ((success,), chance),
        ((success, Tilt(3.0)), chance * np.exp(-3 * points[:, 1])),
    ):
        truths = {
            "gain": values * p,
            "improvement": values * p,
            "log improvement": values + np.log(p),
            "worth": p * values + (1 - p) * -3.0,
        }
        for scale in SCALES:
            got = weighted(plain, scale, weights, -3.0)
            np.testing.assert_allclose(got(points), truths[scale], rtol=1e-9)


def test_without_weights_it_is_the_acquisition_itself() -> None:
    plain = Plain(1.0)
    assert weighted(plain, "gain", (), 0.0) is plain


@pytest.mark.parametrize("scale", SCALES)
def test_slopes_of_what_is_weighted(success: Success, scale: Values) -> None:
    points = np.random.default_rng(5).uniform(size=(9, D))
    alpha = Weighted(Plain(-0.4), (success, Tilt(0.7)), -3.0, scale)
    values, slopes = alpha.slopes(points)
    np.testing.assert_allclose(values, alpha.values(points), rtol=1e-12)
    for i, e in enumerate(STEP * np.eye(D)):
        numeric = (alpha.values(points + e) - alpha.values(points - e)) / (2 * STEP)
        np.testing.assert_allclose(slopes[:, i], numeric, rtol=1e-6, atol=1e-7)


def test_a_worth_below_zero_is_not_drawn_to_failures(success: Success) -> None:
    """A product would make a worth of −1 look better where trials fail."""
    points = np.array([TOLD[0], FAILED[0]])
    level = Plain(-2.0)  # a little more at the failure, as x₀ is larger there
    product = level.values(points) * success.chance(points)
    assert product[0] < product[1]
    safe, risky = weighted(level, "worth", (success,), -5.0).values(points)
    assert safe > risky


def test_averaged_mean(success: Success) -> None:
    """m(x) averaged over sets; with failures about, what is gained over the worst times P."""
    hypers = Hyperparameters([[0.3, 0.7], [0.2, 0.4]], [1.0, 2.0], [0.1, 0.01], [0.0, 1.0])
    posterior = condition(hypers, TOLD, np.linspace(-1, 2, len(TOLD)))
    points = np.random.default_rng(4).uniform(size=(8, D))
    mean = posterior.predict(points)[0].mean(0)
    plain = posterior_mean(posterior)
    np.testing.assert_allclose(plain(points), mean, rtol=1e-10)
    expected = (mean + 1) * success.chance(points) - 1
    got = weighted(plain, "worth", (success,), -1.0)(points)
    np.testing.assert_allclose(got, expected, rtol=1e-8)


# --- categories: which of two is to blame ---------------------------------------------------------

PAIRS = Process((0, 1, 1, 2, 2), Mixed())
HOT = np.sqrt(0.5)


def pairs(*rows: tuple[float, int, int]) -> np.ndarray:
    """Points of a number and two parameters with two categories each."""
    X = np.zeros((len(rows), 5))
    for x, (number, one, other) in zip(X, rows, strict=True):
        x[[0, 1 + one, 3 + other]] = number, HOT, HOT
    return X


def test_one_failure_does_not_write_off_a_category() -> None:
    """What failed with both may be the fault of either, of both together, or of the number."""
    told = pairs((0.6, 1, 0), (0.3, 1, 1), (0.8, 1, 1), (0.4, 1, 0), (0.95, 1, 1))
    for failed in (pairs((0.5, 0, 0)), pairs((0.5, 0, 0), (0.7, 0, 0))):
        success = fit_success(PAIRS, told, failed, MOST)
        assert success.chance(failed).max() < 0.01
        assert 0.2 < success.chance(pairs((0.5, 0, 1)))[0] < 0.6
        assert success.chance(pairs((0.5, 1, 0), (0.5, 1, 1))).min() > 0.9
        assert success.shares.sum() == pytest.approx(1.0, rel=1e-12)


def test_failures_in_all_its_company_write_a_category_off() -> None:
    told = pairs((0.6, 1, 0), (0.3, 1, 1), (0.8, 1, 1), (0.4, 1, 0))
    both = fit_success(PAIRS, told, pairs((0.5, 0, 0), (0.4, 0, 1)), MOST)
    assert both.chance(pairs((0.45, 0, 0), (0.45, 0, 1))).max() < 0.02


def test_what_fails_by_its_number_fails_in_every_category() -> None:
    """The more failures a number explains, the more the model without categories counts."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, (24, 2))
    told = pairs(*((0.5 * u, *own) for u, own in zip(rng.uniform(size=12), kinds, strict=False)))
    many = zip(rng.uniform(size=12), kinds[12:], strict=True)
    failed = pairs(*((0.7 + 0.3 * u, *own) for u, own in many if tuple(own) != (1, 1)))
    success = fit_success(PAIRS, told, failed, MOST)
    assert success.shares[0] > 0.5
    assert success.chance(pairs((0.85, 1, 1)))[0] < 0.2  # where nobody has tried


def test_two_models_have_slopes_and_sum_up() -> None:
    told, failed = pairs((0.6, 1, 0), (0.3, 1, 1)), pairs((0.5, 0, 0), (0.9, 1, 0))
    success = fit_success(PAIRS, told, failed, MOST)
    points = pairs((0.4, 0, 1), (0.7, 1, 0), (0.9, 1, 1))
    each = stats.norm.cdf(success.standardised(points))
    np.testing.assert_allclose(success.chance(points), success.shares @ each, rtol=1e-10)
    values, slopes = success.log_slopes(points)
    np.testing.assert_allclose(values, success.log_weight(points), rtol=1e-12)
    for i, e in enumerate(STEP * np.eye(5)):
        numeric = (success.log_weight(points + e) - success.log_weight(points - e)) / (2 * STEP)
        np.testing.assert_allclose(slopes[:, i], numeric, rtol=1e-4, atol=1e-6)


def test_categories_apart_are_at_least_a_length_scale_apart() -> None:
    table = Process((0, 1, 1, 2, 2), Mixed(), categories_apart=True).table
    theta = table.start(np.zeros(table.size))
    for u in (-3.0, 0.0, 3.0, 30.0):
        table.parts(theta)["lengthscale"][:] = u
        scale = table.hyperparameters(theta[None]).lengthscale[0]
        expected = [np.exp(u), *2 * [1 / (1 + np.exp(-u))]]
        np.testing.assert_allclose(scale, expected, rtol=1e-12)
    assert not Process((0, 1, 2), Mixed()).categories
    below, u = Below((np.inf, 1.0, 0.5)), np.array([-1.0, 0.3, 2.0])
    numeric = (below.value(u + STEP) - below.value(u - STEP)) / (2 * STEP)
    np.testing.assert_allclose(below.slope(u), numeric, rtol=1e-8)
