"""Workers that are killed lose nothing that was told, and the soak test would notice if so."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from optpair.integrations.optuna.attributes import OUTCOMES
from optpair_bench.soak import apart, check
from optpair_bench.soak import value as branin
from optpair_bench.soak import values as outcomes


def soak(*options: str) -> dict[str, Any]:
    """`optpair bench soak`, in a process of its own."""
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-m", "optpair_bench.cli", "soak", *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert shown.stdout, shown.stderr
    found: dict[str, Any] = json.loads(shown.stdout)
    assert shown.returncode == 0, found
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/study.db"
    return str(request.getfixturevalue("postgres"))


def test_killed_workers_lose_at_most_what_they_were_running(storage: str) -> None:
    found = soak("--storage", storage, "--kills", "12", "--evaluations", "8")
    assert found["kills"] >= 12
    assert found["said"] > 8  # something was told while workers were being killed
    assert found["lost"] == found["wrong"] == found["half_written"] == []
    assert found["duplicated"] == 0
    assert found["told"] == found["wanted"]
    assert found["counts"]["stale"] > 0
    assert set(found["counts"]) <= {"told", "stale", "cancelled"}  # nothing is left running


def test_killed_workers_lose_nothing_of_several_outcomes(postgres: str) -> None:
    """A constraint and two objectives, of which one is not always measured; four workers."""
    found = soak("--storage", postgres, "--several", "--kills", "8", "--evaluations", "12")
    assert found["kills"] == 12  # the four that were left after the last one, too
    assert found["said"] > 12
    assert found["lost"] == found["wrong"] == found["half_written"] == []
    assert found["duplicated"] == 0
    assert found["told"] == found["wanted"]
    assert 0 < found["partly"] < found["told"]
    assert set(found["counts"]) <= {"told", "stale", "cancelled"}


def test_eight_workers_share_a_server(postgres: str) -> None:
    options = ("--kills", "0", "--workers", "8", "--evaluations", "48", "--stale-after", "30")
    found = soak("--storage", postgres, *options)
    assert found["told"] == found["said"] == 48
    assert found["lost"] == found["wrong"] == found["half_written"] == []
    assert found["duplicated"] == 0
    assert set(found["counts"]) <= {"told", "cancelled"}


NOON = datetime(2025, 1, 1, 12)
PLANE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(-5, 10),
    "y": FloatDistribution(0, 15),
}


def told(number: int, params: dict[str, float], value: float, begin: int, end: int) -> FrozenTrial:
    trial = optuna.create_trial(
        params=params, distributions={name: PLANE[name] for name in params}, value=value
    )
    trial.number = number
    trial.datetime_start = NOON + timedelta(seconds=begin)
    trial.datetime_complete = NOON + timedelta(seconds=end)
    return trial


def test_every_fault_would_be_found(tmp_path: Path) -> None:
    here, there = {"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}
    found = [
        told(0, here, branin(here), 0, 1),
        told(1, here, branin(here), 0, 1),  # the same point again
        told(2, there, 7.0, 0, 1),  # not its value
        told(3, {"x": 1.0}, 1.0, 0, 1),  # not its parameters
    ]
    log = tmp_path / "told.txt"
    said = [(0, branin(here)), (0, branin(here)), (2, 8.0), (5, 9.0), (6, branin(here))]
    log.write_text("".join(f"{n} {json.dumps({'value': value})}\n" for n, value in said))
    faults = check(found, log)
    assert faults["lost"] == [2, 5]
    assert faults["late"] == [6]
    assert faults["wrong"] == [2]
    assert faults["half_written"] == [3]
    assert faults["duplicated"] == 2


def test_faults_of_several_outcomes_would_be_found(tmp_path: Path) -> None:
    here, there, far = {"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}, {"x": 9.0, "y": 14.0}
    found = [
        joint(0, here, outcomes(here)),
        joint(1, there, outcomes(there) | {"load": 0.0}),  # not its value
        joint(2, there, outcomes(there), values=[1.0, 2.0]),  # another to Optuna
        joint(3, far, outcomes(far)),  # an objective was not measured
    ]
    log = tmp_path / "told.txt"
    log.write_text("".join(f"{i} {json.dumps(outcomes(t.params))}\n" for i, t in enumerate(found)))
    faults = check(found, log)
    assert (faults["told"], faults["partly"]) == (4, 1)
    assert faults["wrong"] == [1]
    assert faults["half_written"] == [2]
    assert faults["lost"] == [1, 2]


def joint(
    number: int,
    params: dict[str, float],
    found: dict[str, float],
    values: list[float] | None = None,
) -> FrozenTrial:
    whole = "reach" in found
    trial = optuna.create_trial(
        params=params,
        distributions=PLANE,
        state=TrialState.COMPLETE if whole else TrialState.PRUNED,
        values=(values or [found["branin"], found["reach"]]) if whole else None,
        user_attrs={OUTCOMES: found},
    )
    trial.number = number
    return trial


def test_distances_are_to_what_could_be_seen(tmp_path: Path) -> None:
    places = [(0.0, 0.0), (0.0, 3.0), (0.3, 3.0), (9.0, 9.0)]
    times = [(0, 100), (10, 20), (15, 30), (40, 50)]  # the third is asked for during the second
    found = [
        told(i, {"x": x, "y": y}, 0.0, *time)
        for i, ((x, y), time) in enumerate(zip(places, times, strict=True))
    ]
    begun = tmp_path / "begun.txt"
    rows = [
        json.dumps([(NOON + timedelta(seconds=begin + 1)).isoformat(), x, y])
        for (x, y), (begin, _) in zip(places, times, strict=True)
    ]
    begun.write_text("\n".join(rows))
    first, second, third, fourth = apart(found, begun)
    assert first == {"trials": 0}
    assert second == {"trials": 1, "mean": 0.2, "median": 0.2, "clumped": 0.0}
    assert third == {"trials": 1, "mean": 0.02, "median": 0.02, "clumped": 1.0}
    assert fourth["median"] == round(9 * 2**0.5 / 15, 4)
