"""Searches whose values are known to be exact: `noise=0`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from optpair import Categorical, Float, Int, Space
from shell_cases import SPACE, filled, jes

SMOOTH: dict[str, tuple[int, Callable[..., float]]] = {
    "wave": (1, lambda x: math.sin(6 * x) + x / 2),
    "ridge": (2, lambda x, y: (x - y) ** 2 + (x - 0.3) ** 2 / 5),
    "bowl": (3, lambda x, y, z: (x - 0.37) ** 2 + (y - 0.37) ** 2 + (z - 0.37) ** 2),
}


@pytest.mark.parametrize(
    ("name", "exploit", "asks"),
    [("wave", None, 60), ("ridge", None, 60), ("bowl", None, 60), ("wave", 1.0, 25)],
)
def test_exact_values_are_not_asked_for_again(name: str, exploit: float | None, asks: int) -> None:
    d, function = SMOOTH[name]
    space = Space({f"x{i}": Float(0, 1) for i in range(d)})
    optimizer, asked = jes(space=space, noise=0, exploit=exploit), []
    for _ in range(asks):
        trial = optimizer.ask()
        asked.append(list(trial.params.values()))
        assert optimizer.info.value is None or math.isfinite(optimizer.info.value)
        optimizer.tell(trial, function(*asked[-1]))
    between = np.abs(np.array(asked)[:, None] - np.array(asked)).max(-1)
    assert between[np.triu_indices(len(asked), 1)].min() > 1e-6


def test_every_point_of_a_small_space_is_asked_for_once_where_values_are_exact() -> None:
    space = Space({"a": Categorical(["u", "v", "w"]), "b": Int(1, 3)})
    optimizer = jes(space=space, noise=0, exploit=0.5)
    for _ in range(9):
        trial = optimizer.ask()
        optimizer.tell(trial, trial.params["b"] + (trial.params["a"] == "v"))
    assert len({tuple(trial.params.values()) for trial in optimizer.trials}) == 9
    space.check(optimizer.ask().params)  # all are known: one of them again


def test_exact_values_that_contradict_each_other_are_averaged() -> None:
    optimizer = filled(jes(noise=0), [1.0, 0.5, 2.0])
    for value in (0.0, 1.0, 0.5):
        optimizer.tell({"x": 0.5, "c": "a"}, value)
    SPACE.check(optimizer.ask().params)
    answer = optimizer.recommend()
    assert optimizer.predict([{"x": 0.5, "c": "a"}]).mean[0] == pytest.approx(0.5, abs=0.05)
    assert all(map(math.isfinite, answer.interval))
