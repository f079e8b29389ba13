"""Notes on what looks wrong: each is said where it should be, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_cases import made_up

from optpair import Float, Optimizer, Settings, Space
from optpair.engine.answers import LeftOut
from optpair.report.findings import Findings, gather
from optpair.report.health import notes
from optpair.report.plane import interaction
from optpair.report.subject import Subject
from optpair.report.words import verdict
from optpair.trials.estimate import Estimate
from shell_cases import TINY


def case(explained: float = 0.9, off: float = 0.0) -> tuple[Subject, Findings]:
    """A healthy search of a hundred trials; one of them may be off by some half intervals."""
    subject, found = made_up(Space({"lr": Float(1e-4, 1.0, log=True), "x": Float(0, 1)}), 100)
    y = np.array([row.value for row in subject.told], dtype=float)
    middle = y.copy()
    middle[9] -= off
    ones = np.ones(len(y))
    check = LeftOut(
        np.arange(100), y, Estimate(middle, ones / 2, middle - 1, middle + 1), explained
    )
    inner = [{"lr": 0.01, "x": 0.5}] * 96
    best = replace(found.recommended, params=inner[0])
    return subject, replace(found, check=check, stars=inner, recommended=best)


def test_a_healthy_search_has_none() -> None:
    assert notes(*case()) == []


def test_at_a_bound() -> None:
    subject, found = case()
    edge = [{"lr": 1.0, "x": 0.5}] * 96
    at = replace(found, stars=edge, recommended=replace(found.recommended, params=edge[0]))
    (said,) = notes(subject, at)
    assert said.startswith("100 % of the samples of the optimum are at the upper bound of lr (1)")
    assert "widen the range" in said
    assert notes(subject, replace(at, total={"lr": 0.001, "x": 0.999})) == []  # it hardly matters
    assert notes(subject, replace(at, recommended=found.recommended)) == []


def test_nothing_explains_the_outcome() -> None:
    (said,) = notes(*case(explained=-0.1))
    assert said.startswith("No parameter explains this outcome")


def test_where_nothing_is_explained_nothing_is_advised() -> None:
    subject, found = case(explained=-0.1)
    edge = [{"lr": 1.0, "x": 0.5}] * 96
    best = replace(found.recommended, params=edge[0])
    found = replace(found, stars=edge, recommended=best, halved=7)
    assert len(notes(subject, found)) == 1  # not that the samples are at a bound
    said = verdict(subject, found)
    assert said.headline == "The model cannot predict yet."
    assert "more trials" not in said.reason


def test_a_trial_is_far_from_the_others() -> None:
    (said,) = notes(*case(off=5.0))
    assert said.startswith("Trial 9 is far from what the others predict")
    assert notes(*case(off=1.5)) == []
    subject, found = case(off=5.0)
    assert notes(subject, replace(found, doubted=[(subject.told[9], 0.0)])) == []  # said elsewhere


def test_intervals_that_are_too_narrow() -> None:
    subject, found = case()
    assert found.check is not None
    narrow = replace(found, check=found.check._replace(y=found.check.y + 1.5))
    (said,) = notes(subject, narrow)
    assert said.startswith("Only 0 of 100 values are in the 95 % interval")


def test_hyperparameters_that_did_not_mix() -> None:
    subject, found = case()
    assert notes(subject, replace(found, sets=(9, 16))) == []
    (said,) = notes(subject, replace(found, sets=(3, 16)))
    assert said.startswith("Hyperparameters did not mix: only 3 of 16 sets differ")


def test_the_two_parameters_that_interact_are_found(tmp_path: Path) -> None:
    space = Space({name: Float(-1, 1) for name in "abc"})
    optimizer = Optimizer(space, seed=0, hyperparameters="map", settings=Settings(**TINY), noise=0)
    rng = np.random.default_rng(0)
    for a, b, c in rng.uniform(-1, 1, size=(40, 3)):
        optimizer.tell({"a": a, "b": b, "c": c}, float(a * c + b + 0.3 * c))
    found = gather(optimizer.subject())
    assert found is not None
    assert found.plane is not None
    assert set(found.plane.names) == {"a", "c"}
    assert found.plane.mean.shape == (len(found.plane.across), len(found.plane.up))
    assert found.check is not None
    assert found.check.explained > 0.9
    assert found.success is None


def test_interaction_is_what_rows_and_columns_leave() -> None:
    rng = np.random.default_rng(0)
    rows, columns = rng.normal(size=(5, 1)), rng.normal(size=(1, 7))
    assert interaction(rows + columns)[0] == pytest.approx(0.0, abs=1e-30)
    product = (rows - rows.mean()) * (columns - columns.mean())
    assert interaction(product + rows)[0] == pytest.approx(float(np.mean(product**2)))
