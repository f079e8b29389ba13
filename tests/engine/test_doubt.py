"""Doubt: slips are found and confirmed or dropped; what is only unusual is believed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from optpair import Float, Optimizer, Space
from optpair.engine.doubt import CHANCE, SLIP, _log_odds, doubted
from optpair.gp.inference.mode import fit_mode
from optpair.gp.likelihood import Sample
from optpair.gp.posterior import fit
from optpair.gp.process import Process
from optpair.trials.data import Measured
from optpair.trials.transform import Scaling

PROCESS = Process((0, 1))
SPACE = Space({"u": Float(0, 1), "v": Float(0, 1)})
N, MOST = 20, 256


def bowl(X: np.ndarray) -> np.ndarray:
    return np.asarray(50 - 80 * ((X[..., 0] - 0.3) ** 2 + (X[..., 1] - 0.6) ** 2))


def measured(seed: int, function: Callable[[np.ndarray], np.ndarray] = bowl) -> Measured:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N, 2))
    y = function(X) + 0.5 * rng.standard_normal(N)
    return Measured(X, y, np.full(N, np.nan), np.zeros(N, dtype=bool), np.arange(N))


def with_value(data: Measured, row: int, value: float) -> Measured:
    y = data.y.copy()
    y[row] = value
    return data._replace(y=y)


def found(data: Measured) -> list[int]:
    return np.flatnonzero(doubted(data, PROCESS, True, MOST)).tolist()


def test_the_odds_are_those_of_two_normal_distributions() -> None:
    data, others = with_value(measured(0), 4, 120.0), np.arange(N) != 4
    X, y = data.X[others], data.y[others]
    scaling = Scaling.of(y)
    sample = Sample(X, scaling.standardise(y), np.full(N - 1, np.nan))
    hypers = PROCESS.table.hyperparameters(fit_mode(sample, PROCESS)[None])
    posterior = fit(hypers, sample, kernel=PROCESS.kernel, columns=PROCESS.columns)
    mean, variance = posterior.predict(data.X[4:5])
    value, spread = scaling.standardise(np.array(120.0)), variance[0, 0] + hypers.noise[0]
    usual = stats.norm.logpdf(value, mean[0, 0], np.sqrt(spread))
    slip = stats.norm.logpdf(value, mean[0, 0], np.sqrt(spread + SLIP**2))
    truth = np.log(CHANCE / (1 - CHANCE)) + slip - usual
    assert _log_odds(data, 4, others, PROCESS, True, MOST) == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_a_slip_is_found_and_nothing_else(seed: int) -> None:
    data = measured(seed)
    assert found(data) == []
    assert found(with_value(data, 7, 10 * np.max(data.y))) == [7]


@pytest.mark.parametrize("value", [1e30, 1e200, 1e308])
def test_an_absurd_value_is_a_slip(value: float) -> None:
    with np.errstate(all="ignore"):
        assert found(with_value(measured(0), 7, value)) == [7]


def test_two_slips_do_not_hide_each_other() -> None:
    data = measured(0)
    assert found(with_value(with_value(data, 7, 420.0), 12, 380.0)) == [7, 12]


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_units_do_not_matter(unit: float) -> None:
    data = with_value(measured(1), 3, 500.0)
    assert found(data._replace(y=data.y * unit)) == [3]


def test_a_repeat_that_agrees_is_believed_and_one_that_does_not_is_not() -> None:
    data = with_value(measured(2), 7, 420.0)
    for value, doubts in ((421.0, []), (float(bowl(data.X[7])), [7])):
        again = Measured(
            np.concatenate([data.X, data.X[7:8]]),
            np.append(data.y, value),
            np.full(N + 1, np.nan),
            np.zeros(N + 1, dtype=bool),
            np.arange(N + 1),
        )
        assert found(again) == doubts


def test_what_is_known_to_be_noisy_is_no_slip() -> None:
    data = with_value(measured(0), 7, 420.0)
    noise_var = data.noise_var.copy()
    noise_var[7] = 300.0**2
    assert found(data._replace(noise_var=noise_var)) == []


def test_exact_values_are_believed() -> None:
    data = with_value(measured(0), 7, 420.0)
    assert found(data._replace(noise_var=np.zeros(N))) == []


@pytest.mark.parametrize("y", [np.zeros(N), np.full(N, 1e300), np.arange(N) * 1e-300])
def test_constant_and_absurd_values_are_survived(y: np.ndarray) -> None:
    assert found(measured(0)._replace(y=y)) == []


def test_of_a_few_values_none_is_usual() -> None:
    few = Measured(*(part[:5] for part in with_value(measured(0), 2, 500.0)))
    assert found(few) == []


def test_a_confirmation_that_is_under_way_is_not_asked_for_again() -> None:
    optimizer = Optimizer(SPACE, direction="maximize", seed=0)
    data = measured(0)
    for x, y in zip(data.X, with_value(data, 7, 500.0).y, strict=True):
        optimizer.tell({"u": float(x[0]), "v": float(x[1])}, float(y))
    first = optimizer.ask()
    assert optimizer.info.kind == "confirm"
    assert first.params == pytest.approx({"u": data.X[7, 0], "v": data.X[7, 1]})
    optimizer.ask()
    assert optimizer.info.kind != "confirm"
