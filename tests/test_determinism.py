"""The same seed, asks and tells give the same points: again, after a load, in another process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optpair import Optimizer, Settings
from shell_cases import CHEAP, SPACE, TINY, cheap, jes, objective, point, python

Made = Callable[[], Optimizer]


def step(optimizer: Optimizer, i: int) -> dict[str, Any]:
    """One ask, and what is told of it: now and then nothing, a failure, or a noise variance."""
    trial = optimizer.ask()
    kind = i % 7
    if kind == 3:
        optimizer.cancel(optimizer.ask())
    if kind == 4:
        return dict(trial.params)  # stays pending
    if kind == 5:
        optimizer.tell(point(i), 0.25, noise_var=0.5)
    optimizer.tell(trial, objective(dict(trial.params)))
    return dict(trial.params)


def answers(optimizer: Optimizer) -> list[Any]:
    """Everything that can be asked, as exact numbers."""
    recommendation, belief = optimizer.recommend(), optimizer.belief()
    numbers = [recommendation.mean, recommendation.std, *recommendation.interval]
    numbers += [*belief.values.tolist(), belief.next_gain, belief.gap]
    return [recommendation.params, [number.hex() for number in numbers]]


def run(optimizer: Optimizer, steps: range) -> list[Any]:
    return [step(optimizer, i) for i in steps]


MODES: dict[str, Made] = {
    "marginal": jes,
    "every third, mixed": lambda: jes(refresh_every=3, kernel="mixed", sets=2),
    "known": cheap,
    "map": lambda: cheap(hyperparameters="map"),
    "maximising": lambda: Optimizer(
        SPACE, direction="maximize", seed=2**200, **{**CHEAP, "settings": Settings(**TINY)}
    ),
}


@pytest.mark.parametrize("mode", MODES)
def test_a_saved_run_continues_exactly(tmp_path: Path, mode: str) -> None:
    """Saved and loaded after every step: in the design, with pending trials, between refreshes."""
    whole, parts = MODES[mode](), MODES[mode]()
    path = tmp_path / "run.json"
    for i in range(9):
        assert step(whole, i) == step(parts, i)
        parts.save(path)
        first = path.read_bytes()
        parts = Optimizer.load(path)
        parts.save(path)
        assert path.read_bytes() == first
        assert parts.trials == whole.trials


def test_failures_continue_exactly(tmp_path: Path) -> None:
    whole = cheap(settings=Settings(**TINY, exploit=1.0))
    for i in range(4):
        whole.tell(point(i), float(i))
    whole.tell(whole.ask(), failed=True)
    whole.save(tmp_path / "run.json")
    parts = Optimizer.load(tmp_path / "run.json")
    for _ in range(3):
        left, right = whole.ask(), parts.ask()
        assert left == right
        for optimizer in (whole, parts):
            optimizer.tell(left, failed=True)
    assert whole.recommend() == parts.recommend()


OTHER = """
import json, sys
from optpair import Optimizer
from shell_cases import jes
from test_determinism import answers, run

fresh, loaded = jes(), Optimizer.load(sys.argv[1])
print(json.dumps([run(fresh, range(8)), answers(fresh), run(loaded, range(5, 8)), answers(loaded)]))
"""


def test_another_process_gives_the_same_points_bit_by_bit(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    optimizer = jes()
    points = run(optimizer, range(5))
    optimizer.save(path)
    points += run(optimizer, range(5, 8))
    expected = answers(optimizer)
    done = python(OTHER, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    fresh, fresh_answers, loaded, loaded_answers = json.loads(done.stdout)
    assert fresh == points
    assert loaded == points[5:]
    assert fresh_answers == loaded_answers == expected


def test_seeds_matter() -> None:
    assert run(cheap(0), range(3)) != run(cheap(1), range(3))


KNOWN_BEST = (-0.246925673864, 0.3084983270481234)


def test_points_that_were_once_given() -> None:
    """A change of these is a change for everybody who has noted a seed: say so in the changelog."""
    optimizer = cheap()
    points = run(optimizer, range(5))
    design = [(-0.246925673864, "a"), (0.753074326136, "b"), (-0.746925673864, "b")]
    assert [(params["x"], params["c"]) for params in points] == [
        *design,
        (1.0, "a"),
        (0.241581123576, "a"),
    ]
    best = optimizer.recommend()
    assert best.params["x"] == pytest.approx(KNOWN_BEST[0], abs=1e-6)
    assert best.mean == pytest.approx(KNOWN_BEST[1], rel=1e-6)
    method = jes()
    fourth = run(method, range(4))[3]
    assert fourth["x"] == pytest.approx(-0.758960168786, abs=1e-4)
    assert fourth["c"] == "a"


BLOCKS = [
    "optpair.gp.posterior.BLOCK",
    "optpair.gp.posterior.FEWEST",
    "optpair.gp.paths.BLOCK",
    "optpair.acquisition.base.BLOCK",
]


def test_block_sizes_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last digits differ, as sums are added up in another order."""
    whole = cheap(acquisition="jes-peak")
    points = run(whole, range(5))
    for name in BLOCKS:
        monkeypatch.setattr(name, 7)
    parts = cheap(acquisition="jes-peak")
    for before, after in zip(points, run(parts, range(5)), strict=True):
        assert after["c"] == before["c"]
        assert after["x"] == pytest.approx(before["x"], abs=1e-4)
    left, right = whole.belief(), parts.belief()
    assert right.values == pytest.approx(left.values, abs=1e-4)
