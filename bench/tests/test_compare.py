"""Two files of rows, run by run: what got worse is seen, what has no pair is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from optpair_bench.analysis import compare
from optpair_bench.cli import app
from optpair_bench.running import rows
from optpair_bench.running.rows import Key, Row


def row(method: str, seed: int, regret: float, task: str = "gp2", evaluations: int = 4) -> Row:
    return {
        "experiment": "gp",
        "task": task,
        "method": method,
        "seed": seed,
        "evaluations": evaluations,
        "noise_var": 0.01,
        "settings": None,
        "versions": {},
        "checkpoints": {
            "evaluations": [0, evaluations],
            "inference": [1.0, regret],
            "simple": [1.0, 1.0],
            "observed": [0.0, -regret],
        },
    }


def by_key(*given: Row) -> dict[Key, Row]:
    return {rows.key(one): one for one in given}


OLD = by_key(
    *(row("jes", seed, 0.1) for seed in range(4)),
    *(row("jes", seed, 0.1, task="gp4") for seed in range(4)),
    *(row("mes", seed, 0.1) for seed in range(4)),
    row("pes", 0, 0.1),
)
NEW = by_key(
    *(row("jes", seed, 1.0 + 0.01 * seed) for seed in range(4)),  # one decade worse
    *(row("jes", seed, 0.1, task="gp4") for seed in range(4)),  # as before
    *(row("mes", seed, 0.01 - 1e-4 * seed) for seed in range(3)),  # one decade better
    row("mes", 9, 9.0),  # no such seed
    row("mes", 3, 9.0, evaluations=5),  # no such budget
    row("pes", 0, 1.0),  # one pair
)


def test_differences_are_of_the_same_runs() -> None:
    found = compare.differences(OLD, NEW)
    assert list(found) == [
        ("jes", "gp", "gp2"),
        ("jes", "gp", "gp4"),
        ("mes", "gp", "gp2"),
        ("pes", "gp", "gp2"),
    ]
    assert found["jes", "gp", "gp2"] == pytest.approx([1.0, 1.0043, 1.0086, 1.0128], abs=1e-4)
    assert found["jes", "gp", "gp4"] == [0.0] * 4
    assert [len(values) for values in found.values()] == [4, 4, 3, 1]


def test_the_table_says_what_got_worse() -> None:
    lines = {
        tuple(cell.strip() for cell in line.split("|")[1:3]): line.split("|")[3:6]
        for line in compare.markdown(OLD, NEW).splitlines()[2:]
    }
    cells = {name: [cell.strip() for cell in rest] for name, rest in lines.items()}
    assert cells["JES", "GP 2-D (`gp`)"] == ["4", "+1.01 ± 0.00", "**worse**"]
    assert cells["JES", "GP 4-D (`gp`)"] == ["4", "+0.00 ± 0.00", ""]
    assert cells["**JES**", "all of these"] == ["8", "+0.50 ± 0.19", "**worse**"]
    assert cells["MES", "GP 2-D (`gp`)"] == ["3", "−1.00 ± 0.00", "better"]
    assert cells["PES", "GP 2-D (`gp`)"] == ["1", "+1.00", "too few"]
    assert cells["**all**", ""] == ["12", "+0.17 ± 0.24", ""]


def test_of_observed_values_more_is_better() -> None:
    table = compare.markdown(OLD, NEW, "observed")
    worse = next(line for line in table.splitlines() if "GP 2-D" in line and "JES" in line)
    assert "−0.9150" in worse  # −1.015 on average, from −0.1
    assert "**worse**" in worse


def test_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none of the 1 new runs is among the 13 old ones"):
        compare.markdown(OLD, by_key(row("jes", 99, 0.1)))
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    rows.append(one, *OLD.values())
    rows.append(two, *NEW.values())
    done = CliRunner().invoke(app, ["compare", str(one), str(two)])
    assert done.exit_code == 0
    assert done.output == compare.markdown(OLD, NEW)
    done = CliRunner().invoke(app, ["compare", str(one), str(tmp_path / "three.jsonl")])
    assert done.exit_code == 1
    assert "there is no file" in done.output
