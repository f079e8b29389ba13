"""Rows on disk: whole, whoever writes and whoever is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from optpair_bench.running import rows


def row(seed: int = 0, **other: Any) -> rows.Row:
    return {
        "experiment": "gp",
        "task": "gp2",
        "method": "jes",
        "seed": seed,
        "evaluations": 4,
        "dimensions": 2,
        "settings": {"pairs": 8},
        "versions": {"optpair": "1"},
        "checkpoints": {"evaluations": [0, 4], "inference": [0.5, 0.25]},
    } | other


def test_the_first_row_of_a_run_counts(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.jsonl"
    for seed, value in ((0, 1.0), (1, 2.0), (0, 3.0)):
        rows.append(path, row(seed, value=value))
    assert [r["value"] for r in rows.read(path).values()] == [1.0, 2.0]


@pytest.mark.parametrize("other", [{"evaluations": 5}, {"method": "mes"}, {"task": "gp4"}])
def test_another_configuration_is_another_run(other: dict[str, object]) -> None:
    assert rows.key(row() | other) != rows.key(row())


def test_a_line_cut_off_by_a_kill_costs_that_line_only(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows.append(path, row(0))
    with path.open("a") as file:
        file.write('{"task": "bran')
    assert len(rows.read(path)) == 1
    rows.append(path, row(1))
    assert [r["seed"] for r in rows.read(path).values()] == [0, 1]


def test_a_row_is_read_as_it_was_written_and_what_is_shared_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    written = [row(0), row(1), row(2, settings={"pairs": 9}), row(3)]
    for one in written:
        rows.append(path, one)
    assert list(rows.read(path).values()) == written
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert ["with" in line for line in lines] == [True, False, False, True, False, False]
    assert {"settings", "versions", "dimensions"}.isdisjoint(lines[1])


def test_files_may_be_put_together_in_any_order(tmp_path: Path) -> None:
    one, two, both = (tmp_path / f"{name}.jsonl" for name in ("one", "two", "both"))
    rows.append(one, row(0), row(1))
    rows.append(two, row(1), row(2, settings={"pairs": 9}))
    lines = (one.read_text() + two.read_text()).splitlines()
    both.write_text("\n".join(reversed(lines)) + "\n")
    assert sorted(rows.read(both).values(), key=rows.key) == [
        row(0),
        row(1),
        row(2, settings={"pairs": 9}),
    ]


def test_a_shared_line_cut_off_by_a_kill_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows.append(path, row(0))
    path.write_bytes(path.read_bytes().splitlines()[0][:-3])
    rows.append(path, row(1))
    assert list(rows.read(path).values()) == [row(1)]


def test_a_row_without_what_it_was_made_with_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows.append(path, row(0))
    path.write_text(path.read_text().splitlines()[1] + "\n")
    with pytest.raises(ValueError, match=r"line 1 of .* was made with"):
        rows.read(path)


def test_merging_adds_what_is_missing_and_keeps_what_is_there(tmp_path: Path) -> None:
    out, one, two = (tmp_path / f"{name}.jsonl" for name in ("out", "one", "two"))
    rows.append(out, row(0))
    rows.append(one, row(0), row(1))
    other = row(1, checkpoints={"evaluations": [0, 4], "inference": [9.0, 9.0]})
    rows.append(two, other, row(2))
    assert rows.merge(out, [one, two]) == rows.Merged(added=2, there=1, other=1)
    assert list(rows.read(out).values()) == [row(0), row(1), row(2)]
    before = out.read_bytes()
    assert rows.merge(out, [one, two]).added == 0
    assert out.read_bytes() == before
    with pytest.raises(FileNotFoundError, match="none"):
        rows.merge(out, [tmp_path / "none.jsonl"])


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match="line 1"):
        rows.read(path)


def test_no_number_that_json_does_not_know(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        rows.append(tmp_path / "rows.jsonl", row(value=float("nan")))


WRITER = """
import sys
from pathlib import Path
from optpair_bench.running.rows import append
first = int(sys.argv[2])
for seed in range(first, first + 40):
    append(Path(sys.argv[1]), {"experiment": "gp", "task": "gp2", "method": "jes", "seed": seed,
        "evaluations": 4, "checkpoints": {}, "long": "x" * 9000})
"""


def test_writers_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(100 * i)]) for i in range(3)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum("with" in line for line in lines) == 1
    seeds = [line["seed"] for line in lines if "seed" in line]
    assert sorted(seeds) == [100 * i + j for i in range(3) for j in range(40)]


CLAIMER = """
import sys
from pathlib import Path
from optpair_bench.running.rows import Claims
claims = Claims(Path(sys.argv[1]))
print(claims.take(("gp", 1)), claims.take(("gp", 2)), flush=True)
sys.stdin.read()
"""


def test_a_claim_is_seen_by_others_and_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    mine = rows.Claims(path)
    assert mine.take(("gp", 1))
    other = subprocess.Popen(
        [sys.executable, "-c", CLAIMER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline().split() == ["False", "True"]
        assert not mine.take(("gp", 2))
        other.kill()
        other.wait(10)
    assert mine.take(("gp", 2))
    mine.close()
