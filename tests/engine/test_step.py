"""Steps: design, exploitation, acquisition; and that a stream and data say everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optpair.engine.fitting import fitted
from optpair.engine.plate import Info
from optpair.engine.session import DESIGN, SUGGEST, Session
from optpair.engine.settings import Settings
from optpair.engine.step import suggest
from optpair.gp import Hyperparameters
from optpair.gp.likelihood import Sample
from optpair.problem.problem import Problem
from optpair.trials.data import Data
from optpair.trials.history import History
from shell_cases import KNOWN, SPACE, TINY, objective, point

PROBLEM = Problem.single(SPACE, "minimize")


def session(**settings: Any) -> Session:
    chosen = Settings(**{**TINY, **settings})
    return Session(PROBLEM, seed=0, acquisition="logei", hyperparameters=KNOWN, settings=chosen)


def data(count: int) -> Data:
    history = History(PROBLEM)
    for i in range(count):
        history.tell(point(i), objective(point(i)))
    return history.data()


def step(made: Session, seen: Data, number: int) -> tuple[list[float], Info]:
    own, design = made.stream(SUGGEST, number), made.stream(DESIGN, 0)
    x, _, info = suggest(made.engine, own, {}, seen, number, design)
    return x.tolist(), info


def test_kinds_of_steps() -> None:
    assert step(session(), data(2), 2)[1].kind == "design"
    assert step(session(), data(3), 3)[1].kind == "acquire"
    assert step(session(exploit=1.0), data(3), 3)[1].kind == "exploit"
    assert step(session(initial=7), data(6), 6)[1].kind == "design"
    info = step(session(), data(6), 6)[1]
    assert info.value is not None
    assert {"hyperparameters", "condition", "maximise"} <= set(info.seconds)


def test_steps_are_functions_of_stream_and_data() -> None:
    made, seen = session(), data(5)
    first = step(made, seen, 5)[0]
    step(made, seen, 6)
    assert step(made, seen, 5)[0] == first
    assert step(session(), data(5), 5)[0] == first
    assert step(made, data(4), 5)[0] != first


def test_exploitation_is_where_the_mean_is_best() -> None:
    made, seen = session(exploit=1.0), data(6)
    x = np.array(step(made, seen, 6)[0])
    answers = made.answers(seen)
    best = made.engine.cube.spread(np.random.default_rng(0).uniform(size=(4000, 2)))
    assert answers.predict(x[None]).mean[0] >= answers.predict(best).mean.max() - 1e-3


def test_what_is_exploited_already_is_not_asked_again() -> None:
    made, seen = session(exploit=1.0), data(6)
    x, info = step(made, seen, 6)
    again, other = step(made, replace(seen, pending=np.array([x])), 7)
    assert (info.kind, other.kind) == ("exploit", "acquire")
    assert again != x


@pytest.mark.parametrize("count", [3, 6])
def test_points_are_legal(count: int) -> None:
    for number in range(4):
        x = np.array(step(session(), data(count), number)[0])
        np.testing.assert_array_equal(SPACE.encode(SPACE.decode(x)), x)


def test_a_sampled_set_without_a_factor_is_spared() -> None:
    """A length scale of 1e-200: distances overflow, and the matrix has no factor."""
    rng = np.random.default_rng(0)
    sample = Sample(rng.uniform(size=(9, 3)), rng.standard_normal(9), np.full(9, np.nan))
    lengths = np.array([[0.5, 0.5, 0.5], [1e-200, 0.5, 0.5]])
    hypers = Hyperparameters(lengths, np.ones(2), np.full(2, 1e-6), np.zeros(2))
    inferred: Any = {"acquisition": "logei", "hyperparameters": "marginal"}
    engine = Session(PROBLEM, seed=0, settings=Settings(**TINY), **inferred).engine
    with np.errstate(all="ignore"):
        (kept,) = fitted(engine, [hypers], [sample], [engine.process], 9)
        assert kept.sets == 1
        np.testing.assert_array_equal(kept.covariance.scale[0], lengths[0])
        with pytest.raises(FloatingPointError, match="hyperparameter set"):
            fitted(engine, [hypers.some(slice(1, 2))], [sample], [engine.process], 9)


def test_a_set_is_spared_in_every_outcome() -> None:
    """Where one outcome's matrix has no factor: all outcomes keep the same sets."""
    rng = np.random.default_rng(0)
    samples = [Sample(rng.uniform(size=(9, 3)), rng.standard_normal(9), np.full(9, np.nan))] * 2
    bad = np.array([[0.5, 0.5, 0.5], [1e-200, 0.5, 0.5], [0.4, 0.4, 0.4]])
    hypers = [
        Hyperparameters(lengths, np.ones(3), np.full(3, 1e-6), np.zeros(3))
        for lengths in (bad, np.full((3, 3), 0.6))
    ]
    inferred: Any = {"acquisition": "logei", "hyperparameters": "marginal"}
    engine = Session(PROBLEM, seed=0, settings=Settings(**TINY), **inferred).engine
    with np.errstate(all="ignore"):
        first, second = fitted(engine, hypers, samples, [engine.process] * 2, 9)
    assert first.sets == second.sets == 2
    np.testing.assert_array_equal(first.covariance.scale, bad[[0, 2]])
