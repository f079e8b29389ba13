"""The chance of success against its closed form, and what it does to an acquisition function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest
from jaxtyping import Float
from scipy import stats

from optpair.acquisition import weights
from optpair.acquisition.base import Acquisition, Rows, Values
from optpair.acquisition.mean import mean as posterior_mean
from optpair.acquisition.weights import Success, Weighted, fit_success, weighted
from optpair.gp import Hyperparameters, condition
from optpair.gp.inference.mode import fit_mode
from optpair.gp.kernels import Matern52
from optpair.gp.likelihood import Sample
from optpair.gp.priors import Prior
from optpair.gp.process import Process

D, MOST = 2, 256
RNG = np.random.default_rng(0)
TOLD = RNG.uniform(0.0, 0.45, (6, D))
FAILED = RNG.uniform(0.75, 1.0, (4, D))
PROCESS = Process((0, 1), Matern52(), Prior())


@pytest.fixture(scope="module")
def success() -> Success:
    return fit_success(PROCESS, TOLD, FAILED, MOST)


def test_lower_near_failures_than_near_what_was_told(success: Success) -> None:
    there, here = success.chance(FAILED), success.chance(TOLD)
    assert 0 <= there.min() <= there.max() < 0.5 < here.min() <= here.max() <= 1


def test_nothing_is_held_against_an_untried_place(success: Success) -> None:
    """Many length scales away the label is N(1, a + σ²): Φ(1/√(a + σ²)), above ½."""
    a, noise = float(success.labels.outputscale[0]), float(success.labels.noise[0])
    far = success.chance(np.full((1, D), 1e4))[0]
    assert far == pytest.approx(stats.norm.cdf(1 / np.sqrt(a + noise)), rel=1e-9)
    assert far > 0.5


def test_chance_is_that_of_a_regressed_label(success: Success) -> None:
    """Labels ±1 about a mean of 1, by a textbook GP with the fitted hyperparameters."""
    rows = np.concatenate([TOLD, FAILED])
    labels = np.array([1.0] * len(TOLD) + [-1.0] * len(FAILED))
    own = Process((0, 1), Matern52(), Prior(mean_scale=0.0))
    theta = fit_mode(Sample(rows, labels - 1, np.full(10, np.nan)), own)
    found = own.table.hyperparameters(theta[None])
    scale, a, noise = found.lengthscale[0], float(found.outputscale[0]), float(found.noise[0])
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

    def spy(sample: Sample, process: Process) -> np.ndarray:
        seen.append(sample)
        return fit_mode(sample, process)

    monkeypatch.setattr(weights, "fit_mode", spy)
    thinned = fit_success(PROCESS, TOLD, FAILED, 5)
    assert [sample.y.tolist() for sample in seen] == [[0.0, 0.0, 0.0, -2.0, -2.0]]
    assert len(thinned.labels.X) == len(TOLD) + len(FAILED)
    assert thinned.chance(FAILED).max() < 0.5 < thinned.chance(TOLD).min()


def test_all_failed() -> None:
    """Nothing told at all: every failure lowers its surroundings, and far away stays above ½."""
    alone = fit_success(PROCESS, TOLD[:0], FAILED, MOST)
    assert alone.chance(FAILED).max() < 0.5
    assert alone.chance(np.full((1, D), 1e4))[0] > 0.5


POINTS = np.concatenate([FAILED[:2], TOLD[:2], np.random.default_rng(2).uniform(size=(4, D))])
STEPS = np.finfo(float).eps ** (1 / 3) * np.eye(D)


def test_slope_of_the_chance(success: Success) -> None:
    logs, slopes = success.log_slopes(POINTS)
    np.testing.assert_allclose(logs, success.log_weight(POINTS), rtol=1e-9)
    for i, e in enumerate(STEPS):
        up, down = success.log_weight(POINTS + e), success.log_weight(POINTS - e)
        np.testing.assert_allclose(slopes[:, i], (up - down) / (2 * e[i]), rtol=1e-5, atol=1e-7)


@dataclass(frozen=True)
class Plain(Acquisition):
    """α(x) = level + x₀."""

    level: float

    @property
    def dimensions(self) -> int:
        return D

    def values(self, X: Float[np.ndarray, "q D"], rows: Rows = None) -> Float[np.ndarray, " q"]:
        return np.asarray(self.level + X[:, 0])

    def slopes(
        self, X: Float[np.ndarray, "q D"], rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        return self.values(X), np.tile([1.0, 0.0], (len(X), 1))


def test_how_a_chance_weighs(success: Success) -> None:
    """Times what is at least 0, added to a logarithm, and between a worth and the worst."""
    points = np.random.default_rng(3).uniform(size=(8, D))
    values, p = 2 + points[:, 0], success.chance(points)
    assert p.min() < 0.5 < p.max()
    truths = {
        "gain": values * p,
        "improvement": values * p,
        "log improvement": values + np.log(p),
        "worth": p * values + (1 - p) * -3.0,
    }
    assert set(truths) == set(get_args(Values))
    for kind, truth in truths.items():
        got = Weighted(Plain(2.0), (success,), -3.0, kind).values(points)  # type: ignore[arg-type]
        np.testing.assert_allclose(got, truth, rtol=1e-9)
    plain = Plain(2.0)
    assert weighted(plain, "gain", (), -3.0) is plain


@pytest.mark.parametrize("kind", get_args(Values))
def test_slopes_of_what_is_weighted(success: Success, kind: Values) -> None:
    made = Weighted(Plain(2.0), (success, success), -3.0, kind)
    values, slopes = made.slopes(POINTS)
    np.testing.assert_allclose(values, made.values(POINTS), rtol=1e-12)
    for i, e in enumerate(STEPS):
        up, down = made.values(POINTS + e), made.values(POINTS - e)
        np.testing.assert_allclose(slopes[:, i], (up - down) / (2 * e[i]), rtol=1e-5, atol=1e-7)


def test_a_worth_below_zero_is_not_drawn_to_failures(success: Success) -> None:
    """A product would make a worth of −1 look better where trials fail."""
    points = np.array([TOLD[0], FAILED[0]])
    p = success.chance(points)
    assert (-2 + points[0, 0]) * p[0] < (-2 + points[1, 0]) * p[1]
    safe, risky = Weighted(Plain(-2.0), (success,), -5.0, "worth").values(points)
    assert safe > risky


def test_averaged_mean(success: Success) -> None:
    """m(x) averaged over sets; with failures about, what is gained over the worst times P."""
    hypers = Hyperparameters([[0.3, 0.7], [0.2, 0.4]], [1.0, 2.0], [0.1, 0.01], [0.0, 1.0])
    posterior = condition(hypers, TOLD, np.linspace(-1, 2, len(TOLD)))
    points = np.random.default_rng(4).uniform(size=(8, D))
    mean, plain = posterior.predict(points)[0].mean(0), posterior_mean(posterior)
    np.testing.assert_allclose(plain.values(points), mean, rtol=1e-10)
    expected = (mean + 1) * success.chance(points) - 1
    got = weighted(plain, "worth", (success,), -1.0).values(points)
    np.testing.assert_allclose(got, expected, rtol=1e-8)
