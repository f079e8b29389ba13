"""Study files that borrow from other studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from optpair.studies import commands
from optpair.studies.config import StudyError, load
from optpair.studies.samplers import make_sampler

SPACE = """
[space]
x = { float = [0, 1] }
y = { float = [0, 1] }
[settings]
sets = 6
pairs = 4
"""
TABLE = "x,y,value\n" + "\n".join(
    f"{i / 5},{j / 5},{(i / 5 - 0.4) ** 2 + (j / 5 - 0.6) ** 2}" for i in range(6) for j in range(6)
)


def write(folder: Path, name: str, earlier: str = "") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(f"[study]\n{earlier}\n{SPACE}")
    return path


def bowl(x: float, y: float) -> float:
    return (x - 0.4) ** 2 + (y - 0.6) ** 2


def fill(path: Path, trials: int) -> None:
    file = load(path)
    for _ in range(trials):
        (asked,) = commands.ask(file)
        value = bowl(**asked["params"])
        commands.tell(file, asked["trial"], commands.Told({"value": value}))


def test_a_study_file_borrows_from_a_table_and_from_another_study(tmp_path: Path) -> None:
    may = write(tmp_path, "may")
    fill(may, 8)
    (tmp_path / "a.csv").write_text(TABLE)
    june = write(tmp_path, "june", 'earlier = ["may.toml", "a.csv"]')
    fill(june, 4)
    found = commands.recommend(load(june))
    assert set(found["borrowed"]) == {"may", "a"}
    assert "borrowed from" in found["text"]
    assert bowl(**found["params"]) < 0.05**2


@pytest.mark.parametrize(
    ("earlier", "message"),
    [
        ("earlier = 3", r"\[study\] earlier must be files"),
        ('earlier = ["none.csv"]', r"june.toml: \[study\] earlier has 'none.csv', and there is no"),
        ('earlier = ["june.toml"]', "which is this study itself"),
    ],
)
def test_what_is_no_file_is_named(tmp_path: Path, earlier: str, message: str) -> None:
    path = write(tmp_path, "june", earlier)
    with pytest.raises(StudyError, match=message):
        make_sampler(load(path))
