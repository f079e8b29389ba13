"""Data that people already have: it teaches, wherever it is, and is never suggested there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import (
    Categorical,
    Float,
    Hyperparameters,
    Int,
    Optimizer,
    Ordinal,
    Settings,
    Space,
    Stop,
)
from optpair.cube.region import Region
from optpair.engine import goals
from shell_cases import TINY

SPACE = Space(
    {"dose": Float(0, 1, digits=2), "temp": Int(20, 80, step=10), "n": Ordinal([1, 2, 5])}
)
OFF: list[dict[str, Any]] = [
    {"dose": 0.555, "temp": 50, "n": 2, "value": 9.0},
    {"dose": 0.5, "temp": 57.5, "n": 2, "value": 9.5},
    {"dose": 0.5, "temp": 50, "n": 3, "value": 9.2},
    {"dose": 1.2, "temp": 95, "n": 2, "value": 12.0},
]
ON: list[dict[str, Any]] = [
    {"dose": 0.1 * i, "temp": 20 + 10 * (i % 7), "n": (1, 2, 5)[i % 3], "value": 5.0 + i % 4}
    for i in range(8)
]


KNOWN = Hyperparameters([[0.4, 0.4, 0.4]], [4.0], [0.05], [6.0])


def made(acquisition: str = "logei", **options: Any) -> Optimizer:
    chosen = {"hyperparameters": KNOWN, "settings": Settings(**{**TINY, "exploit": 0.5})}
    chosen["acquisition"] = acquisition
    return Optimizer(SPACE, direction="maximize", seed=0, **{**chosen, **options})


@pytest.mark.parametrize(
    ("acquisition", "noise"),
    [("jes-peak", None), ("jes-peak", 0.0), ("logei", 0.0), ("ts", None), ("kg", None)],
)
def test_what_is_off_the_grid_is_never_suggested(acquisition: str, noise: float | None) -> None:
    opt = made(acquisition, noise=noise)
    opt.tell_many(OFF + ON)
    for i in range(4):
        trial = opt.ask()
        assert SPACE.fits(trial.params)
        opt.tell(trial, 6.0 + 0.1 * i)
    best = opt.recommend()
    assert SPACE.fits(best.params)
    assert best.observed.value == 12.0  # a fact, and no recommendation
    if best.std > 0:  # what is promised is promised of the point that is recommended
        assert best.mean == pytest.approx(float(opt.predict([best.params]).mean[0]), rel=1e-6)
    assert SPACE.fits(opt.recommend(tried=True).params)
    assert all(SPACE.fits(params) for params in opt.belief().params)


def test_what_is_off_the_grid_teaches() -> None:
    near = {"dose": 0.5, "temp": 50, "n": 2}
    without, with_ = made(), made()
    without.tell_many(ON)
    with_.tell_many(ON + [OFF[1]] * 3)
    assert with_.predict([near]).mean[0] > without.predict([near]).mean[0] + 0.5
    assert with_.predict([near]).std[0] < without.predict([near]).std[0]


def test_a_value_at_the_same_place_counts_the_same_however_it_was_told() -> None:
    one, other = made(), made()
    for row in ON:
        one.tell({name: row[name] for name in SPACE}, row["value"])
    other.tell_many([{name: str(cell) for name, cell in row.items()} for row in ON])
    assert one.trials == other.trials
    assert one.ask() == other.ask()


def test_nothing_legal_was_tried() -> None:
    opt = made()
    opt.tell_many(OFF)
    with pytest.raises(ValueError, match="none of the told trials is at a legal point"):
        opt.recommend(tried=True)
    assert SPACE.fits(opt.recommend().params)
    exact = made(noise=0)
    exact.tell_many(OFF)
    assert SPACE.fits(exact.recommend().params)


def test_the_best_exact_value_that_may_be_recommended() -> None:
    opt = made(noise=0, acquisition="mean")
    opt.tell_many([*ON, OFF[3]])
    best = opt.recommend()
    assert SPACE.fits(best.params)
    if best.std == 0:
        assert best.mean == max(row["value"] for row in ON)
    assert opt.recommend(tried=True).mean == max(row["value"] for row in ON)


def test_a_doubted_value_off_the_grid_is_not_asked_for_again() -> None:
    opt = Optimizer(SPACE, direction="maximize", seed=0, settings=Settings(**TINY, doubt=True))
    rows = [row | {"value": 5.0 + 0.01 * i} for i, row in enumerate(ON + ON)]
    opt.tell_many([*rows, OFF[1] | {"value": 900.0}])
    trial = opt.ask()
    assert opt.info.kind != "confirm"
    assert SPACE.fits(trial.params)
    legal = Optimizer(SPACE, direction="maximize", seed=0, settings=Settings(**TINY, doubt=True))
    legal.tell_many([*rows, OFF[1] | {"temp": 50, "value": 900.0}])
    legal.ask()
    assert legal.info.kind == "confirm"


def test_screening_starts_from_legal_points(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    anchors = goals.best_data

    def spy(region: Region, *rest: Any) -> Any:
        seen.append((region, anchors(region, *rest)))
        return seen[-1][1]

    monkeypatch.setattr(goals, "best_data", spy)
    opt = made()
    opt.tell_many(OFF + ON)
    opt.ask()
    assert seen
    assert all(region.legal(points).all() for region, points in seen)


def test_saved_and_resumed_exactly(tmp_path: Path) -> None:
    opt = Optimizer(SPACE, direction="maximize", seed=3, settings=Settings(**TINY))
    opt.tell_many(OFF + ON)
    trial = opt.ask()
    opt.tell(trial, 7.0, params={"temp": 33}, notes={"by": "Ann"})
    opt.tell(opt.ask(), failed=True, reason="it burnt")
    opt.save(tmp_path / "a.json")
    again = Optimizer.load(tmp_path / "a.json")
    assert again.trials == opt.trials
    assert [again.ask() for _ in range(2)] == [opt.ask() for _ in range(2)]


def test_the_order_of_rows_is_a_matter_of_numbers_only() -> None:
    one, other = made(), made()
    one.tell_many(OFF + ON)
    other.tell_many((OFF + ON)[::-1])
    assert [t.actual for t in one.trials] == [t.actual for t in other.trials][::-1]
    assert SPACE.fits(one.ask().params)
    assert SPACE.fits(other.ask().params)


def test_a_revised_point_starts_the_chains_anew() -> None:
    opt = Optimizer(SPACE, direction="maximize", seed=0, settings=Settings(**TINY))
    opt.tell_many(ON)
    opt.ask()
    opt.revise(0, ON[0]["value"])
    assert opt._session.memory
    opt.revise(0, ON[0]["value"], params={"temp": 21})
    assert not opt._session.memory


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            b"dose,temp,n,value\n0.1,20,1,\xe9",
            {},
            r"a\.csv is not in utf-8-sig: .*encoding='cp1252'",
        ),
        ("dose,temp,n,value\n".encode("utf-16"), {}, r"not in utf-8-sig: .*encoding='utf-16'"),
        (b"dose,heat,n,value\n0.1,20,1,1", {}, r"no column of parameter 'temp'; .* say columns="),
        (b"dose,temp,n,value\n0.1,20,1,1", {"encoding": "klingon"}, "is not in klingon"),
        (b"dose,temp,n,value\n0.1,20,1,1", {"delimiter": "; "}, "delimiter must be one character"),
        (b"dose,temp,n,value\n0.1,20,1,1\n0.1,20,1,x", {}, r"a\.csv: line 3: value must be a num"),
        (b"dose,temp,n,value\n0.1,999,1,1", {}, r"a\.csv: line 2: temp is 999, more than 3"),
    ],
)
def test_files_that_are_refused_change_nothing(
    tmp_path: Path, content: bytes, options: Any, message: str
) -> None:
    path, opt = tmp_path / "a.csv", made()
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        opt.read_csv(path, **options)
    assert opt.trials == ()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        made().read_csv(tmp_path / "none.csv")
    with pytest.raises(OSError, match="none"):
        made().to_csv(tmp_path / "none" / "a.csv")


def test_notes_and_reasons_are_on_the_page(tmp_path: Path) -> None:
    opt = made()
    opt.tell_many([row | {"by": f"<b>Ann {i}</b>"} for i, row in enumerate(OFF)])
    opt.tell(opt.ask(), failed=True, reason="it burnt")
    opt.report(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;Ann 3&lt;/b&gt;" in page
    assert "it burnt" in page
    assert "57.5" in page


def test_a_day_in_the_lab(tmp_path: Path) -> None:
    """Last year's file, experiments run a little differently, a correction, a plate, a stop."""
    space = Space(
        {
            "catalyst": Float(0.1, 10, log=True, digits=2),
            "temperature": Int(20, 80, step=5),
            "equivalents": Ordinal([1, 1.5, 2, 5]),
        }
    )

    def percent(params: Any) -> float:
        decades, degrees = np.log10(params["catalyst"] / 2), params["temperature"] - 55
        return float(80 * np.exp(-(decades**2) - (degrees / 30) ** 2) + params["equivalents"])

    rng = np.random.default_rng(0)
    lines = ["catalyst (mol %);temperature (°C);equivalents;yield (%);operator"]
    for i in range(20):
        params = space.decode(rng.uniform(size=3)) | ({"temperature": 42} if i == 7 else {})
        given = "" if i == 11 else f"{percent(params) + rng.normal():.1f}"
        cells = ";".join(str(params[name]) for name in space)
        lines.append(f"{cells};{given};{'=Ann' if i % 2 else ' Bob '}")
    old = tmp_path / "2025.csv"
    old.write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")

    options: dict[str, Any] = {"hyperparameters": "map", "settings": Settings(**TINY)}
    opt = Optimizer(space, direction="maximize", seed=1, **options)
    taken = opt.read_csv(old, value="yield")
    assert str(taken) == "19 told, 0 failed, 1 without a value skipped; kept as notes: operator"
    assert opt.trials[7].params["temperature"] == 42
    assert opt.trials[7].notes == {"operator": "=Ann"}

    plate = [opt.ask() for _ in range(3)]
    assert all(space.fits(trial.params) for trial in plate)
    opt.tell(plate[0], percent(plate[0].params), params={"catalyst": 2.13})
    opt.tell(plate[1], failed=True, reason="the flask broke", notes={"operator": "Ann"})
    opt.save(tmp_path / "lab.json")
    sheet = tmp_path / "today.csv"
    opt.to_csv(sheet)
    head, *rows = sheet.read_text(encoding="utf-8").splitlines()
    assert rows[-1].startswith(f"{plate[2].id},pending,,")
    filled = rows[-1].replace("pending,,", "pending,50.5,", 1)  # as somebody types it in
    sheet.write_text("\n".join([head, *rows[:-1], filled]), encoding="utf-8")

    opt = Optimizer.load(tmp_path / "lab.json")
    back = opt.read_csv(sheet)
    assert (len(back.trials), back.known, back.skipped) == (1, 21, 0)
    assert opt.trials[-1].value == 50.5
    opt.revise(plate[2].id, 55.0, notes={"remark": "a typing error"})
    eight = opt.ask(8)
    assert len({tuple(trial.params.values()) for trial in eight}) == 8
    for trial in eight:  # each is run twice
        opt.tell(trial, [percent(trial.params) + rng.normal() for _ in range(2)])
    assert {len(trial.outcomes["value"].values) for trial in opt.trials[-8:]} == {2}
    opt.to_csv(sheet)
    again = opt.read_csv(sheet)
    assert (len(again.trials), again.known, again.skipped) == (0, 30, 0)
    best = opt.recommend()
    assert space.fits(best.params)
    assert abs(best.params["temperature"] - 55) <= 20
    assert opt.done(Stop(gap=100.0))  # of a yield there is no more
    assert not opt.done(Stop(gap=1e-9, chance=0.99))
    opt.save(tmp_path / "lab.json")
    assert Optimizer.load(tmp_path / "lab.json").ask() == opt.ask()


SHEET = """temperature (°C),solvent,yield (%)
30,MeCN,31.0
40,MeCN,48.5
60,MeCN,71.5
60,MeCN,71.5
50,DMF,62.0
70,DMF,55.0
30,DMF,35.0
"""


def sheet(tmp_path: Path, text: str = SHEET) -> Path:
    path = tmp_path / "lab.csv"
    path.write_text(text, encoding="utf-8")
    return path


def lab_of() -> Optimizer:
    space = Space({"temperature": Int(20, 80, step=5), "solvent": Categorical(["MeCN", "DMF"])})
    return Optimizer(space, direction="maximize", seed=0)


def test_a_sheet_that_is_read_again_adds_only_what_is_new(tmp_path: Path) -> None:
    opt, path = lab_of(), sheet(tmp_path)
    assert str(opt.read_csv(path, value="yield")) == "7 told, 0 failed"
    again = opt.read_csv(path, value="yield")
    assert (again.trials, again.known) == ((), 7)
    assert str(again) == "0 told, 0 failed, 7 known already"
    longer = sheet(tmp_path, f"{SHEET}60,MeCN,71.5\n65,DMF,61.0\n")
    found = opt.read_csv(longer, value="yield")
    assert [trial.value for trial in found.trials] == [71.5, 61.0]  # a third repeat, a new point
    assert opt.read_csv(longer, value="yield").known == 9
    assert len(opt.read_csv(longer, value="yield", repeats=True).trials) == 9
    assert len(opt.trials) == 18


def test_a_row_that_was_corrected_is_not_told_beside_the_mistake(tmp_path: Path) -> None:
    opt = lab_of()
    opt.read_csv(sheet(tmp_path, SHEET.replace("62.0", "620")), value="yield")
    path = sheet(tmp_path)
    with pytest.raises(
        ValueError, match=r"line 6: it was read before as trial 4 \(620; .*revise\(4"
    ):
        opt.read_csv(path, value="yield")
    opt.revise(4, 62.0)
    assert opt.read_csv(path, value="yield").known == 7
    assert [trial.value for trial in opt.trials] == [31.0, 48.5, 71.5, 71.5, 62.0, 55.0, 35.0]


def test_a_row_after_trials_of_other_doors_is_new(tmp_path: Path) -> None:
    opt = lab_of()
    opt.read_csv(sheet(tmp_path), value="yield")
    opt.tell({"temperature": 65, "solvent": "DMF"}, 60.5)
    found = opt.read_csv(sheet(tmp_path, f"{SHEET}65,DMF,61.0\n"), value="yield")
    assert [trial.id for trial in found.trials] == [8]


def test_a_slip_is_named_when_it_is_read(tmp_path: Path) -> None:
    opt = lab_of()
    noisy = SHEET.replace("71.5\n60,MeCN,71.5", "71.5\n60,MeCN,70.1")  # equal repeats are exact
    found = opt.read_csv(sheet(tmp_path, noisy.replace("62.0", "620")), value="yield")
    assert [trial.id for trial in found.doubted] == [4]
    assert str(found).endswith(
        "\ndoubted: trial 4 with 620, far better than the others predict; revise it if it is a "
        "mistake"
    )
    opt.revise(4, 62.0)
    assert opt.read_csv(sheet(tmp_path, noisy), value="yield").doubted == ()
