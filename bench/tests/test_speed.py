"""Plans and tables of the speed benchmark, and one tiny measurement."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import asdict

import numpy as np
import pytest
from optpair.effort import padded_size
from rich.console import Console

from optpair.engine.settings import Settings
from optpair_bench import tasks
from optpair_bench.methods import peers
from optpair_bench.running import cores
from optpair_bench.tasks import gp_sample
from optpair_bench.timing import limits, report, speed


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
    assert {"condition", "pairs", "maximise"} <= set(timing.stages)
    assert sum(timing.stages.values()) <= 1.5 * timing.median
    assert "whole ask" in text(report.stage_table(timing))


def test_inputs_of_few_levels() -> None:
    plan = speed.Plan(2, n=5, sets=2, pairs=2, candidates=32, repeats=2, levels=4)
    X, _ = speed.told(gp_sample(2), 9, levels=4)
    assert set(np.unique(X * 3)) == {0.0, 1.0, 2.0, 3.0}
    study = speed.optimizer(plan, gp_sample(2), 5)
    assert all(x in range(4) for x in study.ask().params.values())
    for setting in ({"paper": True}, {"study": 3}, {"paced": 3}):
        with pytest.raises(ValueError, match="have no levels"):
            speed.Plan(levels=4, **setting)


def test_every_ask_of_a_paced_study() -> None:
    plan = speed.Plan(2, paced=2, pace=0.2)
    begin = time.perf_counter()
    seconds = speed.paced(plan)
    assert len(seconds) == 2
    assert 0 < sum(seconds) < time.perf_counter() - begin - 2 * plan.pace
    with pytest.raises(ValueError, match="at least two evaluations"):
        speed.Plan(paced=1)
    shown = report.paced_line(plan, [0.7, 0.1, 0.3, 0.2])
    assert "first ask 0.70 s; later ones 0.200 s in the median, 0.30 s at most" in shown


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
    shown = text(report.ask_table(speed.Plan(paper=True), timings))
    lines = {line.split("│")[1].strip(): line for line in shown.splitlines() if "│" in line}
    assert "5.0" in lines["other"]
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
    assert "69.1" in text(report.ask_table(plan, timings))  # Table 1's PES, 34.53 / 0.5
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


def test_limits_count_every_stage_and_grow_with_the_work() -> None:
    rates = limits.Rates(product=1e-11, factor=1e-10, kernel=1e-9, feature=2e-9, gain=2e-8)
    small, large = (limits.stages(Settings(), "jes", 6, n, rates, rates) for n in (100, 200))
    assert set(small) == {"hyperparameters", "condition", "pairs", "maximise"}
    assert all(0 < small[name] < large[name] for name in small)
    # Factorisations are cubic, kernels square: 200 rows against 100.
    assert 4 < large["condition"] / small["condition"] < 8
    assert 0 < limits.screening(Settings(), "jes", 6, 100, rates) < small["maximise"]
    twice = limits.stages(Settings(moves=6), "jes", 6, 100, rates, rates)
    assert small["hyperparameters"] < twice["hyperparameters"] < 2 * small["hyperparameters"]
    # A known slope costs a row of products each, and changes nothing but the maximiser's work.
    peak = limits.stages(Settings(), "jes-peak", 6, 100, rates, rates)
    assert {name for name in small if peak[name] != small[name]} == {"maximise"}
    rows, points = padded_size(100, 6), limits.candidates(Settings())
    more = limits.screening(Settings(), "jes-peak", 6, 100, rates)
    more -= limits.screening(Settings(), "jes", 6, 100, rates)
    each = (rows * 6 + 7**2 - 1) * rates.product
    assert more == pytest.approx(points * Settings().sets * Settings().pairs * each)
    shown = text(report.stage_table(speed.Timing("optpair jes", 6, [0.1], {"pairs": 0.05}), small))
    assert "limit" in shown
    assert "whole ask" in shown


def test_rates_are_those_of_a_computer() -> None:
    rates, single = limits.measure(32, 2), limits.measure(32, 2, "float32")
    for rate in (*vars(rates).values(), *vars(single).values()):
        assert 1e-13 < rate < 1e-6
