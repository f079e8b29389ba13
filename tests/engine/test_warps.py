"""Warps of constraints: their evidence against a slow path, and what is chosen for which values."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.engine.warps import LENGTHS, NOISES, around, evidence, of_looks
from optpair.trials.data import Measured
from optpair.trials.transform import Scaling

INF = np.inf
COLUMNS = (0, 1)
X = np.random.default_rng(0).uniform(size=(24, 2))
SMOOTH = np.sin(3 * X[:, 0]) + X[:, 1]
WILD = np.exp(6 * SMOOTH) - np.exp(6.0)  # as smooth in logarithms, over five decades


def measured(y: np.ndarray) -> Measured:
    n = len(y)
    return Measured(X[:n], y, np.full(n, np.nan), np.zeros(n, dtype=bool), np.arange(n))


def slow(y: np.ndarray, slopes: np.ndarray) -> float:
    """The largest Gaussian likelihood of warped values, over the mean and the variance."""
    best, n = -INF, len(y)
    for length in LENGTHS:
        r = np.sqrt(5 * np.sum((X[:, None] - X) ** 2, -1) / 2) / length
        for noise in NOISES:
            K = (1 + r + r * r / 3) * np.exp(-r) + noise * np.eye(n)
            inverse = np.linalg.inv(K)
            mean = np.sum(inverse @ y) / np.sum(inverse)
            variance = (y - mean) @ inverse @ (y - mean) / n
            log_det = np.linalg.slogdet(K)[1]
            value = -0.5 * (n * np.log(2 * np.pi * variance) + log_det + n)
            best = max(best, float(value))
    return best + float(np.sum(np.log(slopes)))


def test_evidence_is_a_likelihood_with_the_jacobian_of_the_warp() -> None:
    """Up to a constant that is the same for all; slopes by central differences."""
    scalings = [Scaling.of(WILD, False), Scaling.around(WILD, 0.0, 30.0)]
    truth = []
    for scaling in scalings:
        h = 1e-3
        slopes = (scaling.warp(WILD + h) - scaling.warp(WILD - h)) / (2 * h)
        truth.append(slow(scaling.warp(WILD), slopes))
    got = evidence(X, WILD, scalings, COLUMNS)
    assert got[1] - got[0] == pytest.approx(truth[1] - truth[0], abs=1e-3)
    assert got[1] - got[0] > 20


def test_smooth_values_stay_as_they_are() -> None:
    assert around(measured(SMOOTH), (1.0, INF), COLUMNS).centre is None
    assert around(measured(WILD[:3]), (1.0, INF), COLUMNS).centre is None  # too few to say


@pytest.mark.parametrize("huge", [1e300, -1e300, 1e30])
def test_one_huge_value_leaves_the_others_apart(huge: float) -> None:
    y = SMOOTH - 1
    y[7] = huge
    scaling = around(measured(y), (0.0, INF), COLUMNS)
    z = scaling.standardise(np.delete(y, 7))
    assert np.std(z) > 0.05
    np.testing.assert_allclose(scaling.restore(z), np.delete(y, 7), rtol=1e-9, atol=1e-12)
    assert np.sign(huge) * scaling.standardise(np.array(huge)) > np.max(np.abs(z))


@pytest.mark.parametrize("limits", [(0.0, INF), (-INF, 0.0)])
def test_wild_values_are_compressed_around_their_limit(limits: tuple[float, float]) -> None:
    scaling = around(measured(WILD), limits, COLUMNS)
    assert scaling.centre == 0.0
    assert scaling.unit < 500
    plain = np.ptp(Scaling.of(WILD, False).standardise(WILD[np.abs(WILD) < 300]))
    assert np.ptp(scaling.standardise(WILD[np.abs(WILD) < 300])) > 3 * plain


def test_between_two_limits_nothing_is_compressed() -> None:
    scaling = around(measured(WILD), (-400.0, 600.0), COLUMNS)
    assert scaling.centre == 100.0
    assert scaling.unit >= 500


@pytest.mark.parametrize(
    "y",
    [
        np.zeros(24),
        np.full(24, 7.0),
        np.where(np.arange(24) == 3, 1e300, SMOOTH),
        np.where(np.arange(24) % 2, 1.7e308, -1.7e308),
        1e-300 * WILD,
        np.where(np.arange(24) < 20, 0.0, WILD),
    ],
    ids=["on the limit", "the same", "one is huge", "all are huge", "tiny", "most on the limit"],
)
def test_any_values_have_a_scaling(y: np.ndarray) -> None:
    for limits in ((0.0, INF), (-1e308, 1e308), (-1e-320, 1e-320)):
        scaling = around(measured(y), limits, COLUMNS)
        z = scaling.standardise(y)
        assert np.all(np.isfinite(z))
        assert np.all(np.isfinite(scaling.restore(z)))
        assert np.all(np.diff(scaling.standardise(np.sort(y))) >= 0)


# --- values at several fidelities ----------------------------------------------------------------

TARGET = {1: 1.0}
LEVELS = np.where(np.arange(24) % 3 == 2, 1.0, 0.0)
LOOKS = np.column_stack([X[:, 0], LEVELS])


def looks(y: np.ndarray) -> Measured:
    return measured(y)._replace(X=LOOKS)


def test_cheap_looks_that_are_far_below_are_no_cliff() -> None:
    """What they say of the target would be lost if they were compressed."""
    y = np.sin(3 * X[:, 0]) + 8 * LEVELS
    assert of_looks(looks(y), COLUMNS, TARGET).knee is None
    assert Scaling.of(y).knee is not None


def test_cliffs_are_compressed_at_every_fidelity() -> None:
    """Some runs diverge, whichever fidelity they have: elsewhere values differ by one."""
    y = np.where(X[:, 0] > 0.8, -1e4 * X[:, 0], np.sin(3 * X[:, 0]) + LEVELS)
    scaling = of_looks(looks(y), COLUMNS, TARGET)
    assert scaling.knee is not None
    z = scaling.standardise(y)
    inside = X[:, 0] <= 0.8
    assert np.ptp(z[inside]) > 0.2 * np.ptp(z)


def test_what_is_bad_may_be_judged_at_the_target() -> None:
    """Many cheap looks are alike: their spread says nothing of what is good at the target."""
    near = np.where(X[:, 0] > 0.5, 0.9 + 0.02 * X[:, 0], -3 - 4 * X[:, 0])
    y = np.where(LEVELS == 1, near, 0.01 * X[:, 1])
    found = Scaling.of(y, usual=y[LEVELS == 1])
    assert found.knee != Scaling.of(y).knee
    assert found.lowest == y.min()
    np.testing.assert_allclose(found.restore(found.standardise(y)), y, atol=1e-9)


def test_where_trials_have_several_looks_only_a_clear_case_is_not_compressed() -> None:
    """Noisy values, and a bad corner that is not far away: alone such looks stay as they are."""
    noise = 0.2 * np.random.default_rng(3).standard_normal(24)
    y = np.where(X[:, 0] > 0.8, -1.0, 1.0) + 0.3 * X[:, 1] + noise
    alone, of_trials = looks(y), looks(y)._replace(trial=np.arange(24) // 2)
    assert of_trials.several
    assert not alone.several
    assert of_looks(alone, COLUMNS, TARGET).knee is None
    assert of_looks(of_trials, COLUMNS, TARGET).knee is not None
    far = np.sin(3 * X[:, 0]) + 8 * LEVELS
    cheap = of_looks(looks(far)._replace(trial=np.arange(24) // 2), COLUMNS, TARGET)
    np.testing.assert_array_equal(cheap.depth(far), 0)


@pytest.mark.parametrize("count", [1, 3])
def test_few_looks_are_scaled_plainly(count: int) -> None:
    y = np.arange(count, dtype=float)
    assert of_looks(measured(y)._replace(X=LOOKS[:count]), COLUMNS, TARGET).knee is None


def test_doubted_looks_do_not_count() -> None:
    y = np.sin(3 * X[:, 0]) + LEVELS
    wrong = np.arange(24) == 3
    plain = of_looks(looks(y)._replace(doubted=wrong), COLUMNS, TARGET)
    spoilt = of_looks(looks(np.where(wrong, -1e9, y))._replace(doubted=wrong), COLUMNS, TARGET)
    assert plain == spoilt
