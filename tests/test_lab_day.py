"""A day in the lab, from last year's sheet to the recommendation, as its people would have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import Categorical, Float, Int, Optimizer, Settings, Space, Stop

SPACE = Space(
    {
        "catalyst": Float(0.1, 10.0, log=True, digits=2),
        "temperature": Int(20, 80, step=5),
        "solvent": Categorical(["MeCN", "DMF"]),
    }
)
QUICK = Settings(sets=4, pairs=4)
ROWS, OFF, OUTSIDE = 20, 42, 85  # rows of the sheet, and temperatures that are on no grid
UNMEASURED = 13  # a row without a value
OPERATORS = ("Ann", "Bob")


def true_yield(params: Any) -> float:
    """In per cent; the best are 87 % with 2 mol % at 60 °C in MeCN."""
    away = (np.log10(params["catalyst"]) - 0.3) ** 2 + ((params["temperature"] - 60) / 40) ** 2
    return float(87 * np.exp(-away) - 8 * (params["solvent"] == "DMF"))


def measured(params: Any, run: int) -> float:
    """With an error of half a per cent, which belongs to the run."""
    return round(true_yield(params) + 0.5 * float(np.random.default_rng(run).normal()), 1)


def sheet() -> str:
    """Last year's, with units, an extra column, and what the bath really had."""
    rng = np.random.default_rng(0)
    lines = ["catalyst (mol %);temperature (°C);solvent;yield (%);operator"]
    for i in range(ROWS):
        point = {
            "catalyst": float(f"{10 ** rng.uniform(-1, 1):.2g}"),
            "temperature": {3: OFF, 7: OUTSIDE}.get(i, 20 + 5 * int(rng.integers(13))),
            "solvent": ("MeCN", "DMF")[rng.integers(2)],
        }
        value = "" if i == UNMEASURED else str(measured(point, i))
        cells = [*(str(v) for v in point.values()), value, OPERATORS[i % 2]]
        lines.append(";".join(cells))
    return "\n".join(lines)


def test_a_day_in_the_lab(tmp_path: Path) -> None:
    book, notebook = tmp_path / "2025.csv", tmp_path / "yield.json"
    book.write_text(sheet(), encoding="utf-8-sig")  # as spreadsheets write it

    # in the morning: last year's rows, and a plate of eight
    opt = Optimizer(SPACE, direction="maximize", seed=7, settings=QUICK)
    said = opt.read_csv(book, value="yield")
    assert str(said) == "19 told, 0 failed, 1 without a value skipped; kept as notes: operator"
    strange = [t.actual["temperature"] for t in opt.trials if not SPACE.fits(t.actual)]
    assert strange == [OFF, OUTSIDE]
    assert {trial.notes["operator"] for trial in opt.trials} == set(OPERATORS)
    plate = opt.ask(8)
    assert opt.info.kind != "design"  # the sheet has taught enough
    assert all(SPACE.fits(trial.params) for trial in plate)
    assert len({tuple(trial.params.values()) for trial in plate}) == len(plate)
    opt.save(notebook)

    # at noon, in another process: what the wells gave
    opt = Optimizer.load(notebook)
    for trial in plate[:5]:
        opt.tell(trial.id, [measured(trial.params, 100 * trial.id + k) for k in range(2)])
    really = {**plate[5].params, "temperature": plate[5].params["temperature"] + 1.5}
    opt.tell(plate[5].id, measured(really, 5), params={"temperature": really["temperature"]})
    opt.tell(plate[6].id, failed=True, reason="it decomposed", notes={"operator": "Ann"})
    opt.cancel(plate[7].id)
    states = {trial.id: trial.state for trial in opt.trials}
    assert [states.get(trial.id) for trial in plate] == ["told"] * 6 + ["failed", None]
    assert opt.trials[plate[5].id].actual == really
    assert len(opt.trials[plate[0].id].outcomes["value"].replicates) == 2

    # a digit was swapped, and is put right
    right = [measured(plate[1].params, 1), measured(plate[1].params, 2)]
    opt.revise(plate[1].id, [right[0], 10 * right[1]])
    wrong = opt.trials[plate[1].id].value
    opt.revise(plate[1].id, right)
    assert wrong is not None
    assert wrong > opt.trials[plate[1].id].value == pytest.approx(np.mean(right))

    # in the afternoon: one at a time, until two per cent at most are left to be won
    stop, runs = Stop(gap=2.0, chance=0.9), 0
    while not opt.done(stop) and runs < 25:
        trial = opt.ask()
        opt.tell(trial, measured(trial.params, 1000 + runs))
        runs += 1
    assert opt.done(stop)
    assert opt.until(stop) == 0
    found = opt.recommend()
    assert SPACE.fits(found.params)
    assert true_yield(found.params) >= 87 - 2
    assert found.interval[0] <= true_yield(found.params) <= found.interval[1]

    # in the evening: a sheet that goes back in without a row twice, and a page
    opt.to_csv(tmp_path / "2026.csv")
    told = sum(trial.state in ("told", "failed") for trial in opt.trials)
    again = opt.read_csv(tmp_path / "2026.csv")
    assert str(again).startswith(f"0 told, 0 failed, {told} known already")
    page = tmp_path / "yield.html"
    opt.report(page)
    text = page.read_text(encoding="utf-8")
    assert "operator" in text
    assert "it decomposed" in text
