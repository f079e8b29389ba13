"""The chance of success against its closed form, and what it does to an acquisition function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from optpair import failures
from optpair.acquisition import mean as posterior_mean
from optpair.acquisition.base import Acquisition
from optpair.failures import SuccessChance, Weighted, fit_success, weighted
from optpair.gp.inference import map_fit
from optpair.gp.likelihood import Data, Model
from optpair.gp.posterior import Hyperparameters, condition
from optpair.gp.priors import Prior
from optpair.runtime import pytree

D, SIZE, MOST = 2, 16, 256
RNG = np.random.default_rng(0)
TOLD = RNG.uniform(0.0, 0.45, (6, D))
FAILED = RNG.uniform(0.75, 1.0, (4, D))
MODEL = Model("matern52", Prior(), (0, 1))


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def success() -> SuccessChance:
    with jax.enable_x64(True):
        return fit_success(MODEL, TOLD, FAILED, SIZE, MOST)


def chance(success: SuccessChance, points: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(SuccessChance.evaluate)(success, jnp.asarray(points)))


def test_lower_near_failures_than_near_what_was_told(success: SuccessChance) -> None:
    there, here = chance(success, FAILED), chance(success, TOLD)
    assert there.max() < here.min()
    assert there.max() < 0.5 < here.min()
    assert there.min() >= 0
    assert here.max() <= 1


def test_nothing_is_held_against_an_untried_place(success: SuccessChance) -> None:
    """Many length scales away the label is N(1, a + σ²): Φ(1/√(a + σ²)), above ½."""
    a, noise = float(success.labels.outputscale[0]), float(success.labels.noise[0])
    far = chance(success, np.full((1, D), 1e4))[0]
    assert far == pytest.approx(stats.norm.cdf(1 / np.sqrt(a + noise)), rel=1e-9)
    assert far > 0.5


def test_chance_is_that_of_a_regressed_label(success: SuccessChance) -> None:
    """Labels ±1 about a mean of 1, by a textbook GP with the fitted hyperparameters."""
    scale, a = np.asarray(success.labels.scale)[0], float(success.labels.outputscale[0])
    noise = float(success.labels.noise[0])
    rows = np.concatenate([TOLD, FAILED])
    labels = np.array([1.0] * len(TOLD) + [-1.0] * len(FAILED))
    points = np.random.default_rng(1).uniform(size=(10, D))

    def k(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        u = np.sqrt(5 * np.sum(((A[:, None] - B) / scale) ** 2, -1))
        return a * (1 + u + u**2 / 3) * np.exp(-u)

    K = k(rows, rows) + noise * np.eye(len(rows))
    mean = 1 + k(points, rows) @ np.linalg.solve(K, labels - 1)
    variance = a - np.sum(k(points, rows) * np.linalg.solve(K, k(rows, points)).T, -1)
    truth = stats.norm.cdf(mean / np.sqrt(variance + noise))
    np.testing.assert_allclose(chance(success, points), truth, rtol=1e-6)


def test_of_many_rows_a_part_says_what_the_hyperparameters_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The posterior has them all."""
    seen: list[Data] = []

    def spy(some: Data, model: Model) -> np.ndarray:
        seen.append(some)
        return map_fit(some, model)

    monkeypatch.setattr(failures, "map_fit", spy)
    thinned = fit_success(MODEL, TOLD, FAILED, SIZE, SIZE // 2)
    assert [some.y.tolist() for some in seen] == [[0.0, 0.0, 0.0, -2.0, -2.0]]
    assert int(np.sum(thinned.labels.mask)) == len(TOLD) + len(FAILED)
    assert chance(thinned, FAILED).max() < 0.5 < chance(thinned, TOLD).min()


def test_all_failed() -> None:
    """Nothing told at all: every failure lowers its surroundings, and far away stays above ½."""
    alone = fit_success(MODEL, TOLD[:0], FAILED, SIZE, MOST)
    assert chance(alone, FAILED).max() < 0.5
    assert chance(alone, np.full((1, D), 1e4))[0] > 0.5


def test_slope_of_the_chance(success: SuccessChance) -> None:
    points = np.concatenate([FAILED[:2], TOLD[:2], np.random.default_rng(2).uniform(size=(4, D))])
    step = np.finfo(float).eps ** (1 / 3)
    slopes = jax.jit(jax.grad(lambda X: jnp.sum(success.evaluate(X))))(jnp.asarray(points))
    assert np.all(np.isfinite(slopes))
    for i, e in enumerate(step * np.eye(D)):
        numeric = (chance(success, points + e) - chance(success, points - e)) / (2 * step)
        np.testing.assert_allclose(slopes[:, i], numeric, rtol=1e-5, atol=1e-7)


@pytree
@dataclass(frozen=True)
class Plain(Acquisition):
    """α(x) = level + x₀."""

    level: jax.Array

    def evaluate(self, X: jax.Array) -> jax.Array:
        return self.level + X[:, 0]


def test_how_a_chance_weighs(success: SuccessChance) -> None:
    """Times what is at least 0, added to a logarithm, and between a worth and the worst."""
    points = np.random.default_rng(3).uniform(size=(8, D))
    plain, worst = Plain(jnp.asarray(2.0)), jnp.asarray(-3.0)
    values, p = 2 + points[:, 0], chance(success, points)
    assert p.min() < 0.5 < p.max()
    truths = {
        "gain": values * p,
        "improvement": values * p,
        "log improvement": values + np.log(p),
        "worth": p * values + (1 - p) * -3.0,
    }
    for kind, truth in truths.items():
        got = Weighted(plain, success, worst, kind).evaluate(jnp.asarray(points))  # type: ignore[arg-type]
        np.testing.assert_allclose(got, truth, rtol=1e-9)
    assert weighted(plain, "gain", None, worst) is plain


def test_a_worth_below_zero_is_not_drawn_to_failures(success: SuccessChance) -> None:
    """A product would make a worth of −1 look better where trials fail."""
    points, p = np.array([TOLD[0], FAILED[0]]), chance(success, np.array([TOLD[0], FAILED[0]]))
    level = Plain(jnp.asarray(-2.0))  # a little more at the failure, as x₀ is larger there
    assert (-2 + points[0, 0]) * p[0] < (-2 + points[1, 0]) * p[1]
    safe, risky = Weighted(level, success, jnp.asarray(-5.0), "worth").evaluate(jnp.asarray(points))
    assert safe > risky


def test_averaged_mean() -> None:
    """m(x) averaged over sets; with failures about, what is gained over the worst times P."""
    hypers = Hyperparameters([[0.3, 0.7], [0.2, 0.4]], [1.0, 2.0], [0.1, 0.01], [0.0, 1.0])
    y = np.linspace(-1, 2, len(TOLD))
    posterior = condition(hypers, TOLD, y)
    points = np.random.default_rng(4).uniform(size=(8, D))
    mean = posterior.predict(points)[0].mean(0)
    plain, worst = posterior_mean(posterior), jnp.asarray(-1.0)
    np.testing.assert_allclose(plain(points), mean, rtol=1e-10)
    sure = fit_success(MODEL, TOLD, FAILED, SIZE, MOST)
    expected = (mean + 1) * chance(sure, points) - 1
    np.testing.assert_allclose(weighted(plain, "worth", sure, worst)(points), expected, rtol=1e-8)
