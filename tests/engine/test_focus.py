"""Boxes around the best trial: where they are, when there are none, and that a query is in one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optpair import Categorical, Constraint, Fidelity, Float, Int, Objective, Settings
from optpair.cube.region import Region
from optpair.engine import fitting
from optpair.engine.engine import FOCUS
from optpair.engine.focus import SIDES, part
from optpair.engine.model import Memory, Model
from optpair.engine.plate import Info, Shared
from optpair.engine.session import DESIGN, SUGGEST, Session
from optpair.engine.step import suggest
from optpair.gp import Hyperparameters
from optpair.problem.problem import Problem
from optpair.problem.space import Space
from optpair.runtime.streams import Stream
from optpair.trials.data import Data
from optpair.trials.history import History
from shell_cases import TINY

LINES = {f"x{i}": Float(0, 1) for i in range(6)}
SINGLE = {"value": Objective("maximize", noise=0)}
STREAMS = 400  # a share of ¼ is known to 0.022


def session(
    space: Space | None = None, outcomes: Any = SINGLE, **options: Any
) -> tuple[Session, Data]:
    """A session, and a few trials of a bowl that is best where all numbers are 0.1."""
    problem = Problem(space or Space(LINES), outcomes)
    history, rng = History(problem), np.random.default_rng(0)
    cube = Session(problem, seed=0).engine.anywhere
    for x in cube.fill(rng.uniform(size=(12, cube.cube.parameters))):
        params = problem.space.decode(x)
        score = -sum((v - 0.1) ** 2 for v in params.values() if isinstance(v, float))
        history.tell(params, {name: score + k for k, name in enumerate(outcomes)})
    chosen = {"settings": Settings(**{**TINY, "exploit": 0.0}), **options}
    return Session(problem, seed=0, **chosen), history.data()


def model_of(made: Session, data: Data) -> tuple[Memory, Model]:
    memory = fitting.update(made.engine, Stream.of(0), {}, data, Info())
    return memory, fitting.condition(made.engine, memory, data, Info())


def parts(made: Session, data: Data) -> list[Region]:
    """Where the queries of many streams are looked for."""
    _, model = model_of(made, data)
    return [part(made.engine, Stream.of(seed), model, data) for seed in range(STREAMS)]


def test_boxes_have_several_sides_and_the_best_trial() -> None:
    made, data = session()
    found = parts(made, data)
    best = data.X[np.argmax(data.Y[:, 0])]
    assert best.min() < SIDES[-2] / 2  # so near a face that larger boxes are not centred there
    sides = np.array([region.high - region.low for region in found])
    np.testing.assert_allclose(sides, sides[:, :1].repeat(6, 1), atol=1e-12)
    for side in SIDES:
        share = np.mean(np.abs(sides[:, 0] - side) < 1e-9)
        assert share == pytest.approx(1 / len(SIDES), abs=4 * 0.022)
    for region in found:
        assert np.all((region.low >= 0) & (region.high <= 1))
        assert region.legal(best[None]).all()
        assert region.narrowed == (region is not made.engine.anywhere)
        middle = (region.low + region.high) / 2
        inner = (region.low > 0) & (region.high < 1)
        np.testing.assert_allclose(middle[inner], best[inner], atol=1e-12)


def test_levels_and_categories_are_not_confined() -> None:
    space = Space({**LINES, "n": Int(1, 9), "c": Categorical(["a", "b", "c"])})
    found = next(region for region in parts(*session(space)) if region.narrowed)
    free = np.flatnonzero(~found.cube.continuous)
    assert len(free) == 4
    np.testing.assert_array_equal(found.low[free], 0.0)
    np.testing.assert_array_equal(found.high[free], 1.0)


@pytest.mark.parametrize(
    ("space", "outcomes", "options"),
    [
        (Space(LINES), {"value": Objective("maximize")}, {}),
        (Space(LINES), {"a": Objective(noise=0), "b": Objective(noise=0)}, {}),
        (Space(LINES), SINGLE, {"settings": Settings(**TINY, focus=False)}),
        (Space(LINES, where=["x0 <= x1"]), SINGLE, {}),
        (
            Space({**LINES, "c": Categorical(["a", "b"]), "z": Float(0, 1, when={"c": "a"})}),
            SINGLE,
            {},
        ),
        (Space({**LINES, "u": Fidelity(1, 9)}), SINGLE, {}),
        (Space({f"n{i}": Int(1, 9) for i in range(6)}), SINGLE, {}),
        (
            Space(LINES),
            SINGLE,
            {"hyperparameters": Hyperparameters([[0.4] * 6], [1.0], [1e-6], [0.0])},
        ),
    ],
    ids=["noise", "front", "setting", "limits", "conditions", "fidelity", "levels", "known"],
)
def test_there_are_no_boxes(space: Space, outcomes: Any, options: Any) -> None:
    made, data = session(space, outcomes, **options)
    nobody: Any = None  # needs a model to see it
    for seed in range(20):
        assert part(made.engine, Stream.of(seed), nobody, data) is made.engine.anywhere


def test_a_constraint_has_boxes() -> None:
    outcomes = {**SINGLE, "limit": Constraint(low=-9.0, noise=0)}
    assert any(region.narrowed for region in parts(*session(outcomes=outcomes)))


def test_queries_and_plates_are_in_their_boxes() -> None:
    """And what a box says of its optimum is not taken for what is left to be won in all."""
    made, data = session()
    memory, model = model_of(made, data)
    kinds = set()
    for number in range(12, 20):
        stream, shared = made.stream(SUGGEST, number), Shared()
        x, memory, info = suggest(
            made.engine, stream, memory, data, number, made.stream(DESIGN, 0), shared
        )
        assert info.kind == "acquire"
        region = part(made.engine, stream.child(FOCUS), model, data)
        assert shared.region is not None
        np.testing.assert_array_equal(shared.region.low, region.low)
        assert region.legal(x[None]).all()
        assert (info.gaps is None) == region.narrowed
        if region.narrowed and len(kinds) < 2:
            assert region.legal(made.plate(data, number, 4)).all()
        kinds.add(region.narrowed)
    assert kinds == {True, False}
