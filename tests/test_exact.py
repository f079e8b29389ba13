"""Searches whose values are known to be exact: `noise=0`."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from optpair import Categorical, Float, Int, Optimizer, Settings, Space
from shell_cases import SPACE, TINY, filled, jes

SMOOTH: dict[str, tuple[int, Callable[..., float]]] = {
    "wave": (1, lambda x: math.sin(6 * x) + x / 2),
    "ridge": (2, lambda x, y: (x - y) ** 2 + (x - 0.3) ** 2 / 5),
    "bowl": (3, lambda x, y, z: (x - 0.37) ** 2 + (y - 0.37) ** 2 + (z - 0.37) ** 2),
}


@pytest.mark.parametrize(
    ("name", "exploit", "asks"),
    [("wave", None, 40), ("ridge", None, 40), ("bowl", None, 40), ("wave", 1.0, 20)],
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


def rastrigin(*x: float) -> float:
    """A bowl with a thousand dents over [0, 1]^3, off the middle."""
    z = [10.24 * v - 4.42 for v in x]
    return sum(v**2 - 10 * math.cos(2 * math.pi * v) + 10 for v in z)


def ackley(*x: float) -> float:
    """A plain full of dents around one deep hole, off the middle."""
    z = np.array([65 * v - 29.5 for v in x])
    waves = np.exp(np.mean(np.cos(2 * np.pi * z)))
    return float(20 + np.e - 20 * np.exp(-0.2 * np.sqrt(np.mean(z**2))) - waves)


@pytest.mark.parametrize(
    ("function", "acquisition", "seeds"),
    [(rastrigin, "jes-peak", 2), (rastrigin, "lattice", 6), (ackley, "lattice", 6)],
)
def test_what_is_recommended_is_as_good_as_the_best_exact_value(
    function: Callable[..., float], acquisition: str, seeds: int
) -> None:
    """Worse only where a 95 % interval misses by its far end, in one case of 40: once at most."""
    space = Space({f"x{i}": Float(0, 1) for i in range(3)})
    worse = 0
    for seed in range(seeds):
        optimizer = Optimizer(
            space, seed=seed, noise=0, acquisition=acquisition, settings=Settings(**TINY)
        )
        for _ in range(30):
            trial = optimizer.ask()
            optimizer.tell(trial, function(*trial.params.values()))
        best = optimizer.recommend()
        worse += function(*best.params.values()) > (best.observed.value or 0.0)
    assert worse <= 1


def bowl(xs: list[float], noise: float | None = 0) -> Optimizer:
    """Values of (x − 0.3)² at some points, each with a lower neighbour."""
    optimizer = jes(space=Space({"x": Float(0, 1)}), noise=noise)
    for x in xs:
        optimizer.tell({"x": x}, (x - 0.3) ** 2)
    return optimizer


def test_a_point_that_is_sure_to_be_better_is_recommended() -> None:
    best = bowl([0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0]).recommend()
    assert best.params["x"] == pytest.approx(0.3, abs=0.02)
    assert best.interval[1] < 0.01 - 1e-6  # the best observed value
    assert best.std > 0


def test_else_the_best_exact_value_is_recommended_to_the_last_digit() -> None:
    optimizer = bowl([0.0, 1 / 3, 0.31, 1.0])
    observed = optimizer.recommend().observed
    for best in (optimizer.recommend(), optimizer.recommend(tried=True)):
        assert best.params == observed.params == {"x": 0.31}
        assert (best.mean, best.std, best.interval) == (
            observed.value,
            0.0,
            (observed.value, observed.value),
        )
    assert "exact value    0.0001; no other point is sure to be better\n" in str(best)
    belief = optimizer.belief()
    assert belief.recommendation == optimizer.recommend()
    assert belief.gap == pytest.approx(best.mean - np.mean(np.minimum(belief.values, best.mean)))
    for other in (bowl([0.0, 1 / 3, 0.31, 1.0], noise=None), bowl([0.0, 1 / 3, 0.31, 1.0])):
        other.tell({"x": 0.31}, 0.0002)  # noise that is not known, or a value that contradicts
        assert other.recommend().std > 0


def test_exact_values_have_no_noise_on_a_page(tmp_path: Path) -> None:
    optimizer = bowl([0.0, 1 / 3, 0.31, 1.0])
    found = optimizer.report(tmp_path / "page.html")
    assert (found["noise_std"], found["noise_share"]) == (0.0, 0.0)
    assert found["recommendation"] == {
        "params": {"x": 0.31},
        "mean": optimizer.recommend().mean,
        "interval": [optimizer.recommend().mean] * 2,
        "trial": 2,
    }
