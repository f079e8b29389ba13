"""Runs, rows and their file, on one tiny run; tables on rows made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from optpair.bench import methods, regret, tasks

# The shapes are those of test_speed, so that nothing is compiled twice.
SMALL = {"pairs": 2, "features": 512, "candidates": 32, "starts": 1}
JES = regret.Run("gp2", "jes", 0, evaluations=2, every=1, settings=SMALL)
RANDOM = regret.Run("branin", "random", 0, 0.0, evaluations=20)


def row(method: str, seed: int, inference: float, simple: float = 0.1) -> regret.Row:
    return RANDOM.identity() | {
        "method": method,
        "seed": seed,
        "checkpoints": [{"evaluations": 20, "inference": inference, "simple": simple}],
        "ask_seconds": {"median": 0.5, "p95": 0.7, "total": 10.0},
    }


def text(*renderables: object) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(*renderables)
    return capture.get()


def test_a_run_of_the_library() -> None:
    result = regret.run(JES)
    assert [c["evaluations"] for c in result["checkpoints"]] == [1, 2]
    assert all(c["inference"] >= 0 and c["simple"] >= 0 for c in result["checkpoints"])
    assert result["model"] == "known"
    assert result["settings"]["pairs"] == 2
    assert result["ask_seconds"]["total"] > 0
    assert {"optpair", "jax", "python"} <= set(result["versions"])
    json.dumps(result)


def test_random_search_without_noise_has_equal_regrets() -> None:
    result = regret.run(RANDOM)
    last = result["checkpoints"][-1]
    assert last["evaluations"] == 20
    assert last["inference"] == pytest.approx(last["simple"])

    task = tasks.make("branin", 0)
    queried = [task.generator("random", i).random(2) for i in range(1, 21)]
    values = task.value(np.vstack([task.initial(3), queried]))
    assert last["simple"] == pytest.approx(task.optimum.f - values.max())


def test_what_is_on_file_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "new" / "rows.jsonl"
    quiet = Console(quiet=True)
    first = regret.benchmark([RANDOM], out, console=quiet)
    monkeypatch.setattr(regret, "run", lambda spec: pytest.fail("was run again"))
    assert regret.benchmark([RANDOM], out, console=quiet) == first
    assert len(regret.read(out)) == 1


@pytest.mark.parametrize(
    "other",
    [{"seed": 1}, {"evaluations": 21}, {"noise_var": 0.5}, {"settings": {"pairs": 3}}],
)
def test_another_configuration_is_another_run(other: dict[str, object]) -> None:
    changed = regret.Run(**(vars(RANDOM) | other))
    assert regret._key(changed.identity()) != regret._key(RANDOM.identity())


def test_a_line_cut_off_by_a_kill_costs_that_line_only(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    regret.append(out, row("jes", 0, 0.1))
    with out.open("a") as file:
        file.write('{"task": "bran')
    assert len(regret.read(out)) == 1
    regret.append(out, row("jes", 1, 0.2))
    assert [r["seed"] for r in regret.read(out)] == [0, 1]


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "other.jsonl"
    out.write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match="line 1"):
        regret.read(out)


def test_tables_show_means_and_paired_differences() -> None:
    rows = [row("jes", s, 10.0 ** -(s + 1)) for s in (0, 1)]
    rows += [row("logei", s, 10.0 ** -(2 * s)) for s in (0, 1)]
    shown = text(*regret.tables(rows))
    # log10: jes −1, −2; logei 0, −2; differences 1, 0.
    assert "-1.50 ± 0.50" in shown
    assert "-1.00 ± 1.00" in shown
    assert "+0.50 ± 0.50" in shown
    assert "branin, 20 evaluations, marginal hyperparameters" in shown


def test_log_regret_is_floored() -> None:
    assert regret.log_regrets([row("jes", 3, -1e-12)], "jes", "inference") == {3: -8.0}


def test_mean_and_error_of_few_values() -> None:
    mean, error = regret.mean_and_error([2.0])
    assert mean == 2.0
    assert np.isnan(error)
    assert regret.mean_and_error([1.0, 3.0]) == (2.0, 1.0)


def test_a_beaten_optimum_is_noticed() -> None:
    rows = [row("jes", 0, 1e-9), row("jes", 1, -1e-3)]
    assert [r["seed"] for r in regret.beaten(rows)] == [1]


def test_gp_tasks_have_the_paper_settings_by_default() -> None:
    identity = regret.Run("gp2", "jes", 0).identity()
    assert identity["model"] == "known"
    assert identity["evaluations"] == 100
    chosen = {k: identity["settings"][k] for k in ("kernel", "pairs", "exploit", "initial")}
    assert chosen == {"kernel": "rbf", "pairs": 100, "exploit": 0.0, "initial": 3}
    hypers = methods.known_hyperparameters(tasks.make("gp2"))
    assert np.asarray(hypers.lengthscale).tolist() == [[0.1, 0.1]]


def test_other_tasks_have_no_known_hyperparameters() -> None:
    with pytest.raises(ValueError, match="branin are not known"):
        methods.known_hyperparameters(tasks.make("branin"))
