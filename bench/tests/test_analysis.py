"""What rows say, on rows made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wilcoxon

from optpair_bench.analysis import statistics
from optpair_bench.running import experiments
from optpair_bench.running.rows import Row

GP = experiments.get("gp")


def row(method: str, seed: int, *regrets: float, task: str = "gp2") -> Row:
    return {
        "experiment": "gp",
        "task": task,
        "method": method,
        "seed": seed,
        "evaluations": 10 * (len(regrets) - 1),
        "dimensions": 2,
        "initial": 3,
        "noise_var": 0.01,
        "settings": None,
        "checkpoints": {
            "evaluations": [10 * i for i in range(len(regrets))],
            "inference": list(regrets),
            "simple": [2 * r for r in regrets],
            "observed": [1 - r for r in regrets],
        },
        "ask_seconds": {"median": 0.5, "p95": 0.7, "total": 10.0},
        "seconds": 12.0,
    }


# log10 at the end: jes −1, −2; ei 0, −2.
ROWS = [
    row("jes", 0, 1.0, 0.1),
    row("jes", 1, 1.0, 0.01),
    row("ei", 0, 1, 1),
    row("ei", 1, 1, 0.01),
]


def test_a_table_s_regret_of_zero_is_floored_by_the_noise() -> None:
    """The noise's standard deviation is 0.1."""
    for task, floor in (("gp2", -8.0), ("hpo-car", -4.0)):
        rows = [row("jes", 0, 1.0, 0.0, task=task)]
        assert statistics.final(rows, "jes", "inference") == {0: pytest.approx(floor)}
        curve = statistics.curve(rows, "jes", "inference")
        assert curve is not None
        assert curve.values[0, -1] == pytest.approx(floor)


def test_a_curve_by_hand() -> None:
    curve = statistics.curve(ROWS, "jes", "inference")
    assert curve is not None
    assert curve.evaluations.tolist() == [0, 10]
    assert curve.seeds == (0, 1)
    np.testing.assert_allclose(curve.mean, [0, -1.5])
    np.testing.assert_allclose(curve.error, [0, 0.5])  # s.d. √½ over √2
    np.testing.assert_allclose(curve.median, [0, -1.5])
    assert statistics.curve(ROWS, "mes", "inference") is None


def test_curves_of_rows_with_other_checkpoints_meet_where_they_can() -> None:
    longer = row("jes", 2, 1.0, 0.5, 0.1)
    longer["checkpoints"]["evaluations"] = [0, 5, 10]
    curve = statistics.curve([*ROWS, longer], "jes", "inference")
    assert curve is not None
    assert curve.evaluations.tolist() == [0, 10]
    assert curve.values[2].tolist() == [0.0, -1.0]


def test_the_longest_budget_counts() -> None:
    more = [*ROWS, row("jes", 0, 1, 1, 1)]
    assert {r["evaluations"] for r in statistics.of_task(more, "gp2")} == {20}
    assert {r["evaluations"] for r in statistics.of_task(more, "gp2", 10)} == {10}  # where there
    assert {r["evaluations"] for r in statistics.of_task(more, "gp2", 30)} == {20}


def test_regrets_are_floored_and_observed_values_are_not_logs() -> None:
    assert statistics.transform([-1e-12, 1e-3], "simple", 1e-8).tolist() == [-8.0, -3.0]
    assert statistics.final([row("jes", 3, 0.25)], "jes", "observed") == {3: 0.75}


def test_evaluations_to_a_target() -> None:
    found = [row("jes", 0, 1, 0.5, 0.05), row("jes", 1, 1, 0.1, 0.3), row("jes", 2, 1, 1, 1)]
    assert statistics.to_target(found, "jes", "inference", 0.1) == [20, 10, np.inf]


def test_signed_rank() -> None:
    differences = [0.3, -0.1, 0.5, 0.7, 0.2, 0.9, 0.0]
    assert statistics.signed_rank(differences) == pytest.approx(wilcoxon(differences[:-1]).pvalue)
    # Of six equal signs, two of the 2⁶ patterns are as extreme.
    assert statistics.signed_rank([1.0, 2, 3, 4, 5, 6]) == pytest.approx(2 / 64)
    assert statistics.signed_rank([0.0] * 8) == 1.0
    assert np.isnan(statistics.signed_rank([1.0] * 5))


def test_holm_by_hand() -> None:
    # Sorted: 0.01·4, 0.02·3, 0.03·2 (not below the one before), 0.5.
    found = statistics.holm([0.02, 0.5, float("nan"), 0.01, 0.03])
    np.testing.assert_allclose(found, [0.06, 0.5, np.nan, 0.04, 0.06])


def test_ties_are_ties_whatever_the_rounding() -> None:
    # All of |d| equal: ±1 by signs alone, five of six: p = 2 · (6 + 1) / 2⁶.
    differences = [0.1 + 0.2, 0.3, 0.3, 0.3, 0.3, -0.3]
    assert statistics.signed_rank(differences) == pytest.approx(14 / 64)


def test_the_direction_is_that_of_the_ranks() -> None:
    # The mean is negative, but two of the three ranks, 1 + 2, equal the third.
    assert statistics.direction([1.0, 2.0, -9.0]) == 0
    assert statistics.direction([1.0, 2.0, 3.0, -9.0]) == 2
    assert statistics.direction([0.0]) == 0


def test_p_values_are_corrected_by_task() -> None:
    rows = [
        row(method, seed, 1.0, level * 10.0**-seed, task=task)
        for task in ("gp2", "gp4")
        for method, level in (("jes", 1.0), ("mes", 2.0), ("pes", 3.0))
        for seed in range(6)
    ]
    # Six equal signs: p = 2/64 before; two methods per task, not four in the table.
    found = [line.p for line in statistics.summary(rows, GP, "inference") if line.method != "jes"]
    np.testing.assert_allclose(found, 4 * [4 / 64])


def test_the_value_at_the_nearest_checkpoint() -> None:
    found = [row("jes", 0, 1.0, 0.1, 0.01)]  # at 0, 10, 20
    assert statistics.final(found, "jes", "inference", at=14) == {0: -1.0}
    assert statistics.final(found, "jes", "inference", at=99) == {0: -2.0}
    assert statistics.final(found, "jes", "inference", floor=0.05) == {0: pytest.approx(-1.30103)}


def test_average_ranks() -> None:
    assert statistics.average_ranks(ROWS, ["jes", "ei"], "inference") == {"jes": 1.25, "ei": 1.75}
    assert statistics.average_ranks(ROWS, ["jes", "ei"], "observed") == {"jes": 1.25, "ei": 1.75}
    assert statistics.average_ranks(ROWS, ["jes", "mes"], "inference") == {}


def test_tasks_weigh_equally_in_ranks_and_short_runs_do_not_count() -> None:
    # On gp4 EI wins its one seed; on gp2 the ranks are 1.25 and 1.75 over two.
    more = [*ROWS, row("jes", 0, 1, 1, task="gp4"), row("ei", 0, 1, 0.1, task="gp4")]
    expected = {"jes": 1.625, "ei": 1.375}
    assert statistics.average_ranks(more, ["jes", "ei"], "inference") == expected
    short = [row("jes", seed, 9.0) for seed in (0, 1)]
    assert statistics.average_ranks([*more, *short], ["jes", "ei"], "inference") == expected
    shown = statistics.markdown([*more, row("mes", 0, 1, 1)], GP, "inference")
    assert "or more, on every task: EI 1.38, JES 1.62." in shown  # MES did not


def test_methods_stand_in_one_order_wherever_they_are_in_a_file() -> None:
    names = ["jes", "ei", "optpair", "jes-peak", "jes:pairs=20", "optuna-gp", "of-old"]
    for order in (names, names[::-1], sorted(names)):
        rows = [row(name, 0, 1.0, 0.1) for name in order]
        found = statistics.methods_of(rows, GP)
        assert found == ["jes", "ei", "optpair", "jes:pairs=20", "jes-peak", *names[-2:]]


def test_the_table() -> None:
    shown = statistics.markdown(ROWS, GP, "inference").splitlines()
    assert (
        shown[2] == "| GP 2-D | JES | 2 | −1.50 ± 0.50 (−1.50) | 10 (100 % reach it) |  |  | 0.5 |"
    )
    assert shown[3].startswith("| GP 2-D | EI | 2 | −1.00 ± 1.00 (−1.00) | – (50 % reach it) |")
    assert "+0.50 ± 0.50" in shown[3]
    assert "JES 1.25, EI 1.75" in shown[-1]
    assert statistics.markdown([], GP, "inference") == "Not run yet.\n"


def test_a_beaten_optimum_is_noticed() -> None:
    assert [r["seed"] for r in statistics.beaten([*ROWS, row("jes", 7, 1, -1e-3)])] == [7]


def test_figures_are_drawn_from_rows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from optpair_bench.figures import regret

    drawn = regret.draw(GP, [*ROWS, row("sobol", 0, 1, 0.5, task="gp4")], tmp_path)
    assert [path.name for path in drawn] == ["gp-inference.png", "gp-simple.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    assert regret.draw(GP, [], tmp_path) == []
    assert regret.repetitions(ROWS, ["jes", "ei"]) == "2"
    more = [*ROWS, row("ei", 2, 1, 1)]
    assert regret.repetitions(more, ["jes", "ei"]) == "2 of JES; 3 of EI"
    more += [row("mes", seed, 1, 1) for seed in range(3)]
    assert regret.repetitions(more, ["jes", "ei", "mes"]) == "3; 2 of JES"


def test_other_libraries_beside_ours_task_by_task(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from optpair_bench.analysis import overall
    from optpair_bench.figures import regret

    rows = [row("optpair", seed, 1, 0.1, task=task) for seed in (0, 1) for task in ("gp2", "gp4")]
    assert regret.together(rows, "optpair", tmp_path) is None
    rows += [row("optuna-gp", 0, 1, 0.3), row("optuna-gp", 1, 1, 0.5), row("botorch-jes", 0, 1, 1)]
    path = regret.together(rows, "optpair", tmp_path)
    assert path is not None
    assert path.read_bytes().startswith(b"\x89PNG")
    found = overall.blocks(rows, "optpair", 50)[:1]
    axis = regret._forest(found, "optpair", 50).axes[0]
    points = [line.get_xydata()[0][0] for line in axis.lines if line.get_marker() in ("o", "D")]
    expected = np.log10([3, 5]).mean()
    assert points == pytest.approx([expected, expected])  # one seed is not shown: how sure is it?
    names = [text.get_text() for text in axis.get_yticklabels()]
    assert names == ["GP 2-D", "mean of its tasks"]


def test_other_libraries_are_dashed() -> None:
    pytest.importorskip("matplotlib")
    from optpair_bench.figures import regret

    names = ["jes", "mes", "pes", "ei", "optpair", "jes-peak", "optuna-gp", "optuna-tpe"]
    names += ["botorch-lognei", "botorch-jes"]
    shown = regret.looks(names)
    assert len(set(shown.values())) == len(names)
    assert shown["botorch-lognei"][0] == shown["mes"][0]
    assert len(set(regret.looks(["jes:pairs=4", "jes:pairs=20"]).values())) == 2


def test_a_method_that_is_no_more_stands_where_its_successor_does() -> None:
    given = [row(name, 0, 1.0) for name in ("optuna-gp", "sobol", "unheard-of", "random", "mes")]
    assert statistics.methods_of(given, GP) == ["mes", "random", "sobol", "optuna-gp", "unheard-of"]
    assert statistics.label("sobol") == "Sobol"
