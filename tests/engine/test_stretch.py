"""How much wider an answer's intervals are than its sets say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from optpair import Categorical, Optimizer, Space, gp
from optpair.engine.model import OutcomeModel, stretch
from optpair.trials.transform import MOST_NOISE, Scaling

HYPERS = gp.Hyperparameters([[0.4, 0.5], [0.3, 0.8]], [1.0, 2.0], [0.1, 0.2], [0.3, 0.0])
POINTS = np.random.default_rng(1).uniform(size=(14, 2))
SMALL = 0.01 * np.random.default_rng(2).normal(size=14)
Q = np.array([[0.2, 0.3], [0.9, 0.9]])


def heavy(degrees: int) -> float:
    return float(t.ppf(0.975, degrees) / norm.ppf(0.975))


def test_values_that_are_foretold_leave_the_tail_of_few_data() -> None:
    assert stretch(gp.condition(HYPERS, POINTS, SMALL)) == pytest.approx(heavy(14 - 2 * 2 - 1))
    assert stretch(gp.condition(HYPERS, POINTS[:4], SMALL[:4])) == pytest.approx(heavy(3))
    assert stretch(gp.condition(HYPERS, POINTS[:1], SMALL[:1])) == 1.0


def test_what_is_learnt_is_counted_by_parameters_and_not_by_columns() -> None:
    """Two columns of the choices of one category have one length scale."""
    posterior = gp.condition(HYPERS, POINTS, SMALL)
    assert stretch(posterior, 1) == pytest.approx(heavy(14 - 2 - 1))
    model = OutcomeModel(Scaling(), posterior, posterior, parameters=1)
    assert model.stretch == pytest.approx(heavy(11))


def test_categories_with_many_choices_have_intervals_of_the_right_width() -> None:
    """Sums of effects: 95 % of unseen rows are inside, and not all of them."""
    inside = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        effects = rng.normal(size=(3, 8))
        space = Space({name: Categorical(range(8)) for name in "abc"})
        rows = rng.permutation(8**3)[:130]
        points = np.stack(np.unravel_index(rows, (8, 8, 8)), 1)
        truth = effects[np.arange(3), points].sum(1) + 0.3 * rng.normal(size=len(points))
        params = [dict(zip("abc", map(int, point), strict=True)) for point in points]
        opt = Optimizer(space, direction="maximize", seed=seed, noise=0.0)
        opt.tell_many([{**p, "value": v} for p, v in zip(params[:30], truth, strict=False)])
        found = opt.predict(params[30:])
        inside.append(np.mean((found.low <= truth[30:]) & (truth[30:] <= found.high)))
    assert 0.9 <= np.mean(inside) <= 0.995


def test_values_that_are_not_stretch_by_their_spread() -> None:
    values = 30 * SMALL + 5 * (np.arange(14) % 2)
    posterior = gp.condition(HYPERS, POINTS, values)
    squares = []
    for i in range(14):  # by models that never saw the value
        others = np.arange(14) != i
        rest = gp.condition(HYPERS, POINTS[others], values[others])
        mean, variance = rest.predict(POINTS[[i]])
        squares.append((values[i] - mean[:, 0]) ** 2 / (variance[:, 0] + HYPERS.noise))
    assert np.mean(squares) > 2
    expected = np.sqrt((1 + np.sqrt(2 / 14)) * np.mean(squares)) * heavy(9)
    assert stretch(posterior) == pytest.approx(expected, rel=1e-8)


def test_values_that_teach_nothing_do_not_count() -> None:
    noise_var = np.append(np.full(14, np.nan), MOST_NOISE)
    points, values = np.vstack([POINTS, [[0.5, 0.5]]]), np.append(SMALL, 0.0)
    posterior = gp.condition(HYPERS, points, values, noise_var=noise_var)
    assert stretch(posterior) == pytest.approx(heavy(9))


def test_intervals_are_stretched_around_the_mean() -> None:
    posterior = gp.condition(HYPERS, POINTS, SMALL + 3 * (np.arange(14) % 2))
    plain = OutcomeModel(Scaling(), posterior).estimate(Q)
    wide = OutcomeModel(Scaling(), posterior, posterior).estimate(Q)
    c = stretch(posterior)
    assert c > 1.2
    for end in ("low", "high"):
        away, before = getattr(wide, end) - wide.mean, getattr(plain, end) - plain.mean
        np.testing.assert_allclose(away, c * before, rtol=1e-9)
    np.testing.assert_allclose(wide.mean, plain.mean, rtol=1e-12)
    np.testing.assert_allclose(wide.std, c * plain.std, rtol=1e-9)
