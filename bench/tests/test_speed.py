"""Plans and tables of the speed benchmark, and one tiny measurement."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import asdict

import numpy as np
import pytest
from rich.console import Console

from optpair import Float, Optimizer, Space
from optpair_bench import tasks
from optpair_bench.methods import peers
from optpair_bench.running import cores
from optpair_bench.tasks import gp_sample
from optpair_bench.timing import outcomes, processes, report, speed


def text(renderable: object) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_paper_setting() -> None:
    settings = speed.Plan(paper=True).settings
    assert (settings.sets, settings.pairs) == (10, 10)
    assert (settings.candidates, settings.starts, settings.exploit) == (10_000, 1, 0.0)
    hypers = speed.given_sets(tasks.gp_sample(4), 10)
    assert np.shape(hypers.lengthscale) == (10, 4)
    assert len(np.unique(np.asarray(hypers.lengthscale))) == 40


def test_given_numbers_replace_defaults() -> None:
    settings = speed.Plan(sets=3, pairs=2, candidates=64).settings
    assert (settings.sets, settings.pairs, settings.candidates) == (3, 2, 64)


def test_unknown_method() -> None:
    with pytest.raises(ValueError, match="method must be one of jes"):
        speed.Plan(method="jess")


def test_a_tiny_measurement() -> None:
    plan = speed.Plan(2, n=5, sets=1, pairs=2, candidates=32, repeats=2, paper=True)
    (timing,) = speed.warm([speed.ours(plan)])
    assert len(timing.seconds) == 2
    assert {"condition", "optima", "maximise"} <= set(timing.stages)
    assert sum(timing.stages.values()) <= 1.5 * timing.median
    assert "whole ask" in text(report.stage_table(timing))


def test_inputs_of_few_levels() -> None:
    plan = speed.Plan(2, n=5, sets=2, pairs=2, candidates=32, repeats=2, levels=4)
    X, _ = speed.told(gp_sample(2), 9, levels=4)
    assert set(np.unique(X * 3)) == {0.0, 1.0, 2.0, 3.0}
    study = speed.optimizer(plan, gp_sample(2), 5)
    assert all(x in range(4) for x in study.ask().params.values())
    with pytest.raises(ValueError, match="has no levels, and 4 were given"):
        speed.Plan(levels=4, paper=True)


def test_a_new_process_is_timed_from_its_start() -> None:
    found = processes.in_new_process(processes._COLD, {"dimensions": 2, "n": 5, "method": "mes"})
    assert 0 < found["first ask"] < found["in all"]
    assert 0 < found["imports"] < found["in all"]
    assert found["imports"] + found["first ask"] <= found["in all"]
    assert 40 < found["peak MB"] < 400
    with pytest.raises(OSError, match=r"the new process failed: .*broken"):
        processes.in_new_process("raise ValueError('broken')", {})


def test_memory_is_counted_in_a_process_of_its_own() -> None:
    held = np.ones(60_000_000)  # 480 MB, which a forked child would share
    plan = speed.Plan(2, n=5, sets=1, pairs=2, candidates=32)
    assert 60 < processes.memory(plan, "optpair jes-peak") < 400
    assert processes.peak() > held.nbytes / 2**20


def test_the_slowest_ask_is_beside_its_neighbours() -> None:
    seconds = [0.01] * 20 + [0.1] * 10 + [0.9] + [0.2] * 9
    found = processes.Long(2, seconds, 100.0)
    assert found.slowest == 30
    assert found.near == pytest.approx(0.1)  # ten of 0.1 and nine of 0.2
    assert processes.Long(2, [0.5, 0.1, 0.3], 1.0).near == pytest.approx(0.2)
    shown = text(report.long_table([found]))
    for cell in ("2-D, 40 trials", "0.900", "30", "9.0"):
        assert cell in shown
    with pytest.raises(ValueError, match="at least 2 evaluations, not 1"):
        processes.long(speed.Plan(2), 1)


def test_every_ask_of_a_search() -> None:
    found = processes.long(speed.Plan(2), 5)
    assert len(found.seconds) == 5
    assert found.slowest >= 3  # asks of the initial design need no model
    assert all(second > 0 for second in found.seconds)


def test_whole_searches_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fake(script: str, given: dict[str, int]) -> dict[str, float]:
        name = processes.OPTUNA if script == processes._OPTUNA_SEARCH else processes.OURS
        calls.append(name)
        late = 9.0 if len(calls) == 1 else 0.0  # the first of three rounds
        return {"seconds": late + (4.0 if name == processes.OPTUNA else 2.0), "peak MB": 80.0}

    monkeypatch.setattr(processes, "in_new_process", fake)
    found = processes.whole(6, 100, with_peers=True)
    assert calls == [processes.OURS, processes.OPTUNA] * 3
    assert found.seconds == {processes.OURS: 2.0, processes.OPTUNA: 4.0}
    shown = text(report.search_table([found]))
    assert "6-D, 100 evaluations" in shown
    assert "2.0" in next(line for line in shown.splitlines() if "GPSampler" in line)


def test_a_whole_search_of_the_library() -> None:
    given = {"dimensions": 2, "evaluations": 4}
    found = processes.in_new_process(processes._SEARCH, given)
    assert 0 < found["seconds"] < 120


def test_everyone_has_a_turn() -> None:
    plan, asked = speed.Plan(2, n=5, repeats=2 * speed.TURN), []

    class Peer:
        def __init__(self, name: str) -> None:
            self.name = name

        def ask(self) -> np.ndarray:
            asked.append(self.name)
            return np.full(2, 0.5)

        def tell(self, x: np.ndarray, y: float) -> None:
            assert np.isfinite(y)

    few, many = (speed.Timed(n, plan, Peer(n), warm=1, repeats=r) for n, r in (("a", 2), ("b", 99)))
    timings = speed.warm([few, many])
    assert "".join(asked) == "aaa" + "b" * (2 * speed.TURN + 1)
    assert [len(timing.seconds) for timing in timings] == [2, 2 * speed.TURN]

    asked.clear()
    speed.warm([speed.Timed(n, plan, Peer(n), warm=0, repeats=99) for n in "ab"])
    assert "".join(asked) == ("a" * speed.TURN + "b" * speed.TURN) * 2


def test_ratios_are_to_the_first_line() -> None:
    timings = [
        speed.Timing("optpair jes", 6, [0.1, 0.2, 0.3]),
        speed.Timing("other", 6, [1.0]),
    ]
    shown = text(report.ask_table(speed.Plan(paper=True), timings, [90.0, 400.0]))
    lines = {line.split("│")[1].strip(): line for line in shown.splitlines() if "│" in line}
    assert "5.0" in lines["other"]
    assert "400" in lines["other"]
    assert "7.8" in lines["the paper's Table 1, on its authors' machine: jes"]  # 1.56 / 0.2


def test_methods_stand_beside_each_other() -> None:
    plan = speed.Plan(4, n=50, beside=("mes", "pes"), paper=True)
    times = dict(zip(plan.methods, (0.5, 0.4, 1.0), strict=True))
    timings = [speed.Timing(f"optpair {name}", 4, [t, t]) for name, t in times.items()]
    asks = [asdict(timing) for timing in timings]
    shown = text(report.method_table([{"plan": asdict(plan), "asks": asks}]))
    assert "4-D, n = 50" in shown
    for cell in ("0.500 ± 0.000 (1.00)", "0.400 ± 0.000 (0.80)", "1.000 ± 0.000 (2.00)"):
        assert cell in shown
    assert "69.1" in text(report.ask_table(plan, timings, [90.0] * 3))  # Table 1's PES, 34.53 / 0.5
    with pytest.raises(ValueError, match="method must be one of jes"):
        speed.Plan(beside=("ei", "pess"))


def test_growth_leaves_out_what_was_not_timed() -> None:
    def timed(n: int, **seconds: float) -> dict[str, object]:
        asks = [{"name": name, "median": median} for name, median in seconds.items()]
        return {"plan": asdict(speed.Plan(6, n=n)), "asks": asks}

    shown = text(report.growth_table([timed(100, ours=0.1, slow=9.0), timed(2000, ours=1.5)]))
    lines = {line.split("│")[1].strip(): line for line in shown.splitlines() if "n =" in line}
    assert "0.100" in lines["6-D, n = 100"]
    assert "9.000" in lines["6-D, n = 100"]
    assert [cell.strip() for cell in lines["6-D, n = 2000"].split("│")[2:4]] == ["1.500", ""]


def test_peers_know_their_budgets() -> None:
    names = [entry.name for entry in peers.entries(True, (0.3, 10.0, 0.01))]
    assert any("10,000 raw" in name for name in names)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores cannot be chosen here")
def test_pinned_processes_get_the_chosen_core() -> None:
    before = cores.available()
    with cores.pinned(before[-1:]):
        code = "import os; print(sorted(os.sched_getaffinity(0)))"
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.stdout.strip() == str(before[-1:])
    assert cores.available() == before


def test_fewer_cores_run_the_same_command_again() -> None:
    command = [sys.executable, "-m", "optpair_bench.cli", "speed", "--threads", "1"]
    done = subprocess.run([*command, "--method", "guess"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "method must be one of" in done.stderr


def test_more_cores_than_there_are() -> None:
    with pytest.raises(ValueError, match="cores are available"):
        cores.rerun(10_000)


def test_thin_slices_of_fifteen_dimensions_are_quick() -> None:
    """Designs and suggestions where 1 in 10^5 points of the cube is legal, or none by chance."""
    names = [f"x{i}" for i in range(15)]
    thin = f"0.5 <= ({' + '.join(names)}) / 15 <= 0.50001"
    for where in ([thin, "x0 <= x1 <= x2 <= x3"], [f"{' + '.join(names)} == 1"]):
        space = Space({name: Float(0, 1) for name in names}, where=where)
        begin = time.process_time()
        opt = Optimizer(space, seed=0, hyperparameters="map")
        for i in range(18):
            trial = opt.ask()
            assert space.allows(trial.params)
            opt.tell(trial, (trial.params["x0"] - 0.3) ** 2 + i % 3)
        assert time.process_time() - begin < 20.0  # about 2 s


def test_asks_with_several_outcomes_are_timed_in_turn() -> None:
    plan = speed.Plan(dimensions=2, n=6, repeats=1)
    found = outcomes.measure(plan.dimensions, plan.n, plan.repeats)
    assert {name: len(seconds) for name, seconds in found.items()} == {
        "one objective": 1,
        "one constraint": 1,
        "two objectives": 1,
        "a fidelity": 1,
    }
    assert all(own > 0 for seconds in found.values() for own in seconds)
    known = {"one objective": [0.02], "one constraint": [0.03], "two objectives": [0.05]}
    said = text(report.outcome_table([(plan, known)]))
    assert "20.0 (1.00)" in said
    assert "30.0 (1.50)" in said
    assert "50.0 (2.50)" in said
