"""Models of several outcomes, each in its own units, against a textbook GP."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.acquisition.registry import REGISTRY
from optpair.cube.cube import Cube
from optpair.engine.engine import Engine
from optpair.engine.fitting import condition, update
from optpair.engine.model import Model, mean_at, restored
from optpair.engine.plate import Info
from optpair.engine.settings import Settings
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference import Known, Marginal
from optpair.problem.outcomes import Objective
from optpair.problem.problem import Problem
from optpair.runtime.streams import Stream
from optpair.trials.data import Data
from optpair.trials.history import History
from optpair.trials.transform import Scaling
from shell_cases import SPACE, TINY, point

NAMES = ("loss", "gain", "size")
THREE = Problem(SPACE, {n: Objective("maximize" if n == "gain" else "minimize") for n in NAMES})
KNOWN = Hyperparameters([[0.4, 1.0]], [1.0], [0.01], [0.0])


def engine(inference: Known | Marginal) -> Engine:
    return Engine(
        Cube(SPACE.layout), THREE.outcomes, Settings(**TINY), REGISTRY["logei"], inference
    )


@pytest.fixture(scope="module")
def data() -> Data:
    """Eight trials: all have a gain, every second one a loss, none yet a size."""
    history = History(THREE)
    for i in range(8):
        values = {"gain": 100.0 + i} | ({"loss": 1e-3 * i} if i % 2 else {})
        history.tell(point(i), values)
    return history.data()


def conditioned(made: Engine, data: Data) -> Model:
    memory = update(made, Stream.of(0), {}, data, Info())
    assert set(memory) == set(NAMES)
    assert [memory[name].told for name in NAMES] == [4, 8, 0]
    return condition(made, memory, data, Info())


@pytest.fixture(scope="module")
def marginal(data: Data) -> Model:
    return conditioned(engine(Marginal(3, 2)), data)


def test_each_outcome_has_a_posterior_of_its_own_rows(data: Data) -> None:
    model = conditioned(engine(Known(KNOWN)), data)
    assert [len(posterior.X) for posterior in model.posteriors] == [4, 8, 0]
    X = np.stack([SPACE.encode(point(i)) for i in (20, 21)])

    def k(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        scale = np.array([0.4, 1.0, 1.0])
        u = np.sqrt(5 * np.sum(((A[:, None] - B) / scale) ** 2, -1))
        return (1 + u + u**2 / 3) * np.exp(-u)

    for column, outcome in enumerate(model.outcomes):
        rows = data.outcome(column)
        K = k(rows.X, rows.X) + 0.01 * np.eye(len(rows.y))
        truth = k(X, rows.X) @ np.linalg.solve(K, rows.y)
        np.testing.assert_allclose(outcome.estimate(X).mean, truth, rtol=1e-6, atol=1e-9)
    unknown = model.outcomes[2].estimate(X)
    np.testing.assert_allclose(unknown.std, 1.0)  # the prior
    assert model.jitter == 0.0


def test_outcomes_are_in_their_own_units(data: Data, marginal: Model) -> None:
    loss, gain, size = (outcome.estimate(data.X) for outcome in marginal.outcomes)
    assert -8e-3 < loss.mean.min() <= loss.mean.max() < 1e-3  # to be maximised
    assert 95 < gain.mean.min() <= gain.mean.max() < 112
    assert np.isfinite([size.mean, size.std]).all()
    assert {posterior.sets for posterior in marginal.posteriors} == {3}


def test_the_worst_value_is_one_that_was_measured(data: Data) -> None:
    """An outcome that is missing somewhere does not make it unknown."""
    model = conditioned(engine(Known(KNOWN)), data)
    assert model.worst == pytest.approx(-7e-3)


def test_only_one_outcome_is_the_objective(data: Data) -> None:
    with pytest.raises(ValueError, match="unpack"):
        _ = conditioned(engine(Known(KNOWN)), data).objective


def test_the_mean_alone_is_the_mean(marginal: Model) -> None:
    """In blocks, without variances."""
    posterior = marginal.posteriors[1]
    X = np.random.default_rng(0).uniform(size=(700, SPACE.layout.dimensions))
    means = posterior.moments(X)[0].mean((0, 1))
    np.testing.assert_allclose(mean_at(posterior, X), means, rtol=1e-9, atol=1e-12)
    assert mean_at(posterior, X[:0]).shape == (0,)


def test_quantiles_pass_through_the_scaling() -> None:
    y = np.concatenate([np.random.default_rng(0).normal(size=40), [-50.0]])
    scaling = Scaling.of(y)
    estimate = restored(np.array([[-3.0, 0.0]]), np.array([[0.25, 0.25]]), scaling)
    ends = scaling.restore(np.array([-3 - 0.5 * 1.959964, -3 + 0.5 * 1.959964]))
    np.testing.assert_allclose([estimate.low[0], estimate.high[0]], ends, rtol=1e-5)
    assert estimate.mean[0] == scaling.restore(-3.0)
