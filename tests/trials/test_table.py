"""Tables of trials as people have them: columns, cells, and what is said of wrong ones."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import numpy as np
import pytest

from optpair import Categorical, Float, Int, Space
from optpair.problem.outcomes import Objective
from optpair.problem.problem import Problem
from optpair.trials import cells
from optpair.trials.history import History
from optpair.trials.records import Record
from optpair.trials.table import parse_csv, records, rows_of, to_csv, to_rows
from optpair.trials.trial import Trial

SPACE = Space(
    {
        "cat": Float(0.1, 10, log=True),
        "temp": Int(20, 80, step=5),
        "solvent": Categorical(["MeCN", "-DMF", 7, True]),
    }
)
PROBLEM = Problem.single(SPACE, "maximize")
GOOD = {"cat": 1.0, "temp": 40, "solvent": "MeCN", "value": 5.0}


def read(text: str, **options: Any) -> list[Record]:
    return records(PROBLEM, parse_csv(text), **options)[0]


def values(rows: list[Record]) -> list[Any]:
    return [row.value for row in rows]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        (" 1e-3 ", 1e-3),
        ("+.5", 0.5),
        ("-3.", -3.0),
        ("'-3", -3),  # as a table of ours has text
        (np.float32(0.5), 0.5),
        (np.array(2), 2),
    ],
)
def test_numbers_are_parsed(text: Any, value: float) -> None:
    found = cells.number("x", cells.bare(text))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("1,5", r"x must be a number, not '1,5'; write a point for the decimal comma: 1.5"),
        ("Failed", r"not 'Failed'; where a trial failed, leave the cell empty and write true in a"),
        ("NaN", r"x must be a number, not 'NaN'; where nothing was measured, leave the cell empty"),
        ("N/A", r"x must be a number, not 'N/A'; where nothing was measured, leave the cell empty"),
        ("1.000,5", "x must be a number, not '1.000,5'$"),
        ("nan", "must be a number, not 'nan'"),
        ("inf", "must be a number, not 'inf'"),
        ("1_000", "must be a number, not '1_000'"),
        ("58 %", "must be a number, not '58 %'"),
        ("1e999", "must be a finite number"),
        ("٣", "must be a number"),
        (True, "must be a number, not True"),
        ([1.0], r"must be a number, not \[1.0\]"),
    ],
)
def test_what_is_no_number(cell: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        cells.number("x", cell)


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("1.5 2", [1.5, 2]),
        ("'-1 +3.", [-1, 3.0]),
        ("12", 12),
        ([1.5, "2"], [1.5, 2]),
        ((0.5,), 0.5),
        (np.array([0.5, 1.5]), [0.5, 1.5]),
        (np.array([0.5]), 0.5),
    ],
)
def test_a_value_may_have_been_measured_several_times(cell: Any, found: Any) -> None:
    assert cells.numbers("x", cells.bare(cell)) == found


@pytest.mark.parametrize("cell", ["58 %", "1 x", [], [1.0, None], [[1.0, 2.0], 3.0], "1, 5"])
def test_what_are_no_numbers(cell: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="x must be a number, not "):
        cells.numbers("x", cell)
    with pytest.raises((TypeError, ValueError), match=r"rows\[0\]: value must be a number"):
        records(PROBLEM, rows_of([GOOD | {"value": cell}]))


class Missing:
    """As pandas' NA: neither equal nor unequal to itself."""

    def __ne__(self, other: object) -> Any:
        raise TypeError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("cell", ["", "  ", None, math.nan, np.nan, np.ma.masked, Missing()])
def test_empty_cells(cell: Any) -> None:
    assert cells.bare(cell) is None


@pytest.mark.parametrize(
    ("cell", "choice"), [(" MeCN ", "MeCN"), ("'-DMF", "-DMF"), ("7.0", 7), ("true", True), (7, 7)]
)
def test_choices_are_known_by_how_they_are_written(cell: Any, choice: Any) -> None:
    found = cells.value_of("solvent", SPACE["solvent"], cells.bare(cell))
    assert found == choice
    assert type(found) is type(choice)


def test_choices_that_are_written_alike_are_refused() -> None:
    with pytest.raises(ValueError, match=r"c is '1', which may be any of \[1, '1'\]"):
        cells.value_of("c", Categorical([1, "1", "a"]), "1")
    with pytest.raises(ValueError, match=r"c must be one of \['a', 'b'\], not ''"):
        cells.value_of("c", Categorical(["a", "b"]), None)
    assert cells.value_of("c", Categorical([None, "b"]), None) is None
    assert cells.value_of("c", Categorical(["", "b"]), None) == ""


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    lines = [["cat", "temp", "solvent", "value"], ["1.5", "40", "MeCN", "5"]]
    text = "\r\n".join(delimiter.join(line) for line in lines)
    (row,) = read(text)
    assert row.params == {"cat": 1.5, "temp": 40, "solvent": "MeCN"}
    assert (row.where, row.value, row.notes) == ("line 2", {"value": 5}, {})


def test_a_delimiter_in_quotes_is_none() -> None:
    (row,) = read('"a, b, c, d";cat;temp;solvent;value\n"x;\ny";1;40;MeCN;5\n')
    assert row.notes == {"a, b, c, d": "x;\ny"}
    assert row.where == "line 3"  # a cell has two lines


def test_units_behind_names_are_left_out() -> None:
    head = "cat [mol %],temp (°C),solvent,yield (%),temp 2 (K)"
    (row,) = read(f"{head}\n1,40,MeCN,5,300", value="yield")
    assert row.params == {"cat": 1, "temp": 40, "solvent": "MeCN"}
    assert row.value == {"value": 5}
    assert row.notes == {"temp 2 (K)": "300"}


def test_an_exact_name_comes_before_one_with_a_unit() -> None:
    (row,) = read("cat,temp,temp (K),solvent,value\n1,40,313,MeCN,5")
    assert row.params["temp"] == 40
    assert row.notes == {"temp (K)": "313"}


def test_units_of_parameters_are_compared() -> None:
    problem = Problem.single(Space({"temp (C)": Float(0, 100)}), "minimize")
    for head in ("temp", "temp (C)", "temp [C]"):
        (row,) = records(problem, parse_csv(f"{head},value\n20,1"))[0]
        assert row.params == {"temp (C)": 20}
    with pytest.raises(ValueError, match=r"column 'temp \(K\)' has another unit than parameter"):
        records(problem, parse_csv("temp (K),value\n293,1"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat,tmp,solvent,value\n1,40,MeCN,5", r"parameter 'temp' \(did you mean 'tmp'"),
        ("cat,Temp,solvent,value\n1,40,MeCN,5", r"did you mean 'Temp'\? Rename it, or say col"),
        ("cat,temp,solvent,yield\n1,40,MeCN,5", "no column of outcome 'value'; name the column"),
        ("cat,temp (K),temp (C),solvent,value\n1,4,4,MeCN,5", "two columns, 'temp .K.' and 'temp"),
        ("cat [log],temp,solvent,value\n0,40,MeCN,5", r"'cat \[log\]' may hold logarithms"),
        ("cat (log10),temp,solvent,value\n0,40,MeCN,5", "may hold logarithms"),
        ("cat,temp,solvent,value\n1,40,MeCN,5\n1,x,MeCN,5", "^line 3: temp must be a number, not"),
        ("cat,temp,solvent,value\n1,40,DMF,5", "line 2: solvent must be one of"),
        ("cat,temp,solvent,value\n,40,MeCN,5", "line 2: cat is empty"),
        ("cat,temp,solvent,value\n1,5,40,MeCN,5", "line 2: it has 5 cells, and the header has 4; "),
        ("cat;temp;solvent;value\n1,5;40;MeCN;5", "decimal comma: 1.5; nothing was changed"),
        ("cat,temp,solvent,cat,value\n", "two columns are called 'cat'"),
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ('cat,temp,solvent,value\n1,40,"Me"CN,5', "line 2: ',' expected after"),
    ],
)  # fmt: skip
def test_what_is_no_table(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(text)


def test_columns_may_have_other_names() -> None:
    text = "Temp;c;s;Ausbeute\n40;1;MeCN;5"
    other = {"Temp": "temp", "c": "cat", "s": "solvent", "Ausbeute": "value"}
    assert values(read(text, columns=other)) == [{"value": 5}]
    with pytest.raises(ValueError, match="columns has 'T'; there are 'Temp', 'c', 's'"):
        read(text, columns={"T": "temp"})
    with pytest.raises(ValueError, match="two columns would be called 'c'"):
        read(text, columns={"Temp": "c"})
    with pytest.raises(TypeError, match="columns must be a dict"):
        read(text, columns=["temp"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="column 'temp' cannot be two things at once"):
        read("temp,cat,solvent\n40,1,MeCN", value="temp")


def test_rows_without_a_value_are_skipped_and_counted() -> None:
    text = "cat,temp,solvent,value,failed\n1,40,MeCN,,\n,,,,\n1,45,MeCN,5,no\n1,50,MeCN,,yes\n9"
    found, skipped, _ = records(PROBLEM, parse_csv(text))
    assert [(row.where, row.value, row.failed) for row in found] == [
        ("line 4", {"value": 5}, False),
        ("line 5", None, True),
    ]
    assert skipped == 2  # the blank line is no row


def test_states_and_reasons() -> None:
    head = "cat,temp,solvent,value,state,reason,trial\n"
    found = read(f"{head}1,40,MeCN,,failed,it burnt,3\n1,45,MeCN,5,Pending,because,\n")
    assert [(r.failed, r.reason, r.trial, dict(r.notes)) for r in found] == [
        (True, "it burnt", 3, {}),
        (False, None, None, {"reason": "because"}),
    ]


def test_columns_that_mean_something_else_are_notes() -> None:
    head = "cat,temp,solvent,value,state,trial,failed\n"
    (row,) = read(f"{head}1,40,MeCN,5,solid,A12,perhaps\n")
    assert row.notes == {
        "state (note)": "solid",
        "trial (note)": "A12",
        "failed (note)": "perhaps",
    }
    (row,) = read(f"{head}1,40,MeCN,5,told,12,no\n", trial=None)
    assert row.trial is None
    assert row.notes == {}


def test_dicts_and_tables() -> None:
    class Frame:
        def to_dict(self, way: str) -> list[dict[str, Any]]:
            assert way == "records"
            return [GOOD | {"trial": 3.0, "note": 0}, GOOD | {"value": math.nan, "note": None}]

    found, skipped, notes = records(PROBLEM, rows_of(Frame()))
    assert [(row.where, row.trial, dict(row.notes)) for row in found] == [
        ("rows[0]", 3, {"note": "0"})
    ]
    assert (skipped, notes) == (1, ("note",))
    assert records(PROBLEM, rows_of([])) == ([], 0, ())


@pytest.mark.parametrize("rows", [GOOD, "a.csv", 3, None, [3], [{1: 2}], [GOOD, None]])
def test_what_are_no_rows(rows: Any) -> None:
    with pytest.raises(TypeError, match=r"must be a list of dicts|must be a dict by the names"):
        rows_of(rows)


def test_several_outcomes() -> None:
    outcomes = {"a": Objective("minimize"), "b": Objective("maximize")}
    problem = Problem(Space({"x": Float(0, 1)}), outcomes)
    text = "x,a,b,b noise_var\n0.1,1,2,0.5\n0.2,3,,\n"
    found, _, _ = records(problem, parse_csv(text))
    assert values(found) == [{"a": 1, "b": 2}, {"a": 3}]
    assert found[0].noise_var == {"b": 0.5}
    history = History(problem)
    history.tell_all(found)
    again = History(problem)
    again.tell_all(records(problem, rows_of(to_rows(problem, tuple(history))))[0])
    assert tuple(again) == tuple(history)
    with pytest.raises(ValueError, match=r"value='a' is for one outcome; of several, rename"):
        records(problem, parse_csv(text), value="a")


def test_parameters_that_are_called_as_columns_are() -> None:
    problem = Problem.single(
        Space({n: Float(0, 1) for n in ("value", "state", "trial")}), "minimize"
    )
    history = History(problem)
    history.tell({"value": 0.1, "state": 0.2, "trial": 0.3}, 4.0, noise_var=0.5)
    (row,) = to_rows(problem, tuple(history))
    assert row == {
        "trial_": 0, "state_": "told", "value_": 4.0, "noise_var": 0.5,
        "value": 0.1, "state": 0.2, "trial": 0.3,
    }  # fmt: skip
    again = History(problem)
    again.tell_all(records(problem, rows_of([row]), trial="trial_")[0])
    assert tuple(again) == tuple(history)


def test_there_and_back_with_everything_in_it() -> None:
    history = History(PROBLEM)
    first = history.add({"cat": 1.0, "temp": 40, "solvent": "-DMF"})
    history.tell(first, 1 / 3, noise_var=0.1, params={"temp": 41.5}, notes={"by": "=1+1", "n": 3})
    history.tell({"cat": 0.1 + 0.2, "temp": 45, "solvent": 7}, failed=True, reason="@home")
    history.tell({"cat": 2.0, "temp": 55, "solvent": 7}, [-1 / 3, 4.0])
    history.add({"cat": 2.0, "temp": 50, "solvent": True})
    assert to_rows(PROBLEM, tuple(history))[2]["value"] == [-1 / 3, 4.0]
    text = to_csv(PROBLEM, tuple(history))
    for line in csv.reader(io.StringIO(text)):
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in line)
    found, skipped, _ = records(PROBLEM, parse_csv(text))
    assert skipped == 1
    assert history.tell_all(found) == [None, None, None]  # known already
    other = History(PROBLEM)
    other.tell_all(found)
    for was, now in zip(history, other, strict=False):
        assert (now.actual, now.outcomes, now.notes, now.reason) == (
            *(was.actual, was.outcomes, was.notes, was.reason),
        )
    assert parse_csv(to_csv(PROBLEM, ())) == []


def test_a_wrong_row_changes_nothing() -> None:
    history = History(PROBLEM)
    pending = history.add({"cat": 1.0, "temp": 40, "solvent": "MeCN"})
    before = (tuple(history), history.next_id)
    good = read("cat,temp,solvent,value\n1,40,MeCN,5\n2,40,MeCN,6\n3,400,MeCN,7")
    with pytest.raises(ValueError, match="line 4: temp is 400, more than 3 times the range"):
        history.tell_all(good)
    assert (tuple(history), history.next_id) == before
    history.tell_all(good[:2])
    assert history[pending.id].value == 5  # its parameters mean that trial
    assert [trial.value for trial in history] == [5, 6]


def test_a_row_of_a_trial_that_was_told_otherwise() -> None:
    history = History(PROBLEM)
    history.tell({"cat": 1.0, "temp": 40, "solvent": "MeCN"}, 5)
    head = "trial,cat,temp,solvent,value\n"
    assert history.tell_all(read(f"{head}0,1,40,MeCN,5")) == [None]
    for line in ("0,1,40,MeCN,6", "0,1,45,MeCN,5", "0,1,40,MeCN,5\n0,1,41,MeCN,5"):
        with pytest.raises(
            ValueError, match=r"trial 0 was already told otherwise \(value 5.0, .*\); "
        ):
            history.tell_all(read(f"{head}{line}"))
    added = history.tell_all(read(f"{head}0,1,45,MeCN,5", trial=None))
    assert [trial.id for trial in added if trial] == [1]


def test_what_was_really_run_is_kept_beside_what_was_asked() -> None:
    history = History(PROBLEM)
    asked = history.add({"cat": 1.0, "temp": 40, "solvent": "MeCN"})
    told = history.tell(asked, 5.0, params={"temp": 42.5})
    assert told.params == asked.params
    assert told.actual == {"cat": 1.0, "temp": 42.5, "solvent": "MeCN"}
    assert history.data().X[0, 1] == pytest.approx(22.5 / 60)
    history.revise(told, 6.0)
    assert history[0].actual["temp"] == 42.5
    history.revise(told, 6.0, params={"temp": 40})
    assert history[0].told_params is None
    assert history.data().X[0].tolist() == SPACE.encode(asked.params).tolist()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"temp": 500}, "more than 3 times the range"),
        ({"tempp": 50}, r"unknown 'tempp' \(did you mean 'temp'\?\)"),
        ({"temp": "50"}, "temp must be a"),
        ({"solvent": "water"}, "must be one of"),
        ([50], "params must be a dict of what was really run"),
    ],
)
def test_what_cannot_have_been_run(params: Any, message: str) -> None:
    history = History(PROBLEM)
    asked = history.add({"cat": 1.0, "temp": 40, "solvent": "MeCN"})
    with pytest.raises((TypeError, ValueError), match=message):
        history.tell(asked, 5.0, params=params)
    assert tuple(history) == (asked,)


def test_a_point_of_ones_own_is_legal_or_says_where_it_may_go() -> None:
    history = History(PROBLEM)
    with pytest.raises(
        ValueError, match=r"in steps of 5, not 42; if it was really run so, tell_many"
    ):
        history.tell({"cat": 1.0, "temp": 42, "solvent": "MeCN"}, 5.0)
    with pytest.raises(ValueError, match=r"in steps of 5, not 4200$"):
        history.tell({"cat": 1.0, "temp": 4200, "solvent": "MeCN"}, 5.0)
    with pytest.raises(TypeError, match="params goes with a trial that was asked for"):
        history.tell({"cat": 1.0, "temp": 40, "solvent": "MeCN"}, 5.0, params={"temp": 42})
    assert len(history) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"notes": "by Ann"}, "notes must be a dict of text"),
        ({"notes": {3: "a"}}, "the name of a note must be text, not 3"),
        ({"notes": {" ": "a"}}, "the name of a note must be text"),
        ({"notes": {"a": [1]}}, r"note 'a' must be text or a number, not \[1\]"),
        ({"notes": {"temp": "a"}}, "a note cannot be called 'temp'"),
        ({"notes": {"value": "a"}}, "a note cannot be called 'value'"),
        ({"notes": {"noise_var": "a"}}, "a note cannot be called 'noise_var'"),
        ({"reason": "late"}, "pass it with failed=True, or use notes"),
        ({"failed": True, "value": None, "reason": 3}, "reason must be text, not 3"),
    ],
)
def test_notes_and_reasons_are_text(options: Any, message: str) -> None:
    history = History(PROBLEM)
    asked = history.add({"cat": 1.0, "temp": 40, "solvent": "MeCN"})
    with pytest.raises((TypeError, ValueError), match=message):
        history.tell(asked, **{"value": 5.0, **options})
    assert tuple(history) == (asked,)


def test_notes_are_added_and_a_reason_goes_with_its_failure() -> None:
    history = History(PROBLEM)
    asked = history.add({"cat": 1.0, "temp": 40, "solvent": "MeCN"})
    told = history.tell(asked, failed=True, reason="it burnt", notes={"by": "Ann"})
    assert (told.reason, dict(told.notes)) == ("it burnt", {"by": "Ann"})
    with pytest.raises(TypeError):
        told.notes["by"] = "Bob"  # type: ignore[index]
    told = history.revise(told, 5.0, notes={"batch": 12})
    assert (told.reason, dict(told.notes)) == (None, {"by": "Ann", "batch": "12"})


def test_saved_with_everything() -> None:
    history = History(PROBLEM)
    asked = history.add({"cat": 1.0, "temp": 40, "solvent": "MeCN"})
    history.tell(asked, 5.0, params={"temp": 41}, notes={"by": "Ann"})
    history.tell_all(read("cat,temp,solvent,value\n30,90,MeCN,5"))
    history.tell({"cat": 1.0, "temp": 40, "solvent": "MeCN"}, failed=True, reason="it burnt")
    document = history.to_json()
    again = History.from_json(document)
    assert tuple(again) == tuple(history)
    assert again.to_json() == document
    np.testing.assert_array_equal(again.data().X, history.data().X)
    plain = History(PROBLEM)
    plain.tell({"cat": 1.0, "temp": 40, "solvent": "MeCN"}, 5)
    assert set(plain.to_json()["trials"][0]) == {"id", "params", "state", "outcomes"}
    for state in ("told", "pending"):  # a point that is not legal must say that it was really run
        broken = History.from_json(document).to_json()
        row = broken["trials"][1]
        row["state"], row["outcomes"] = state, row["outcomes"] if state == "told" else {}
        if state == "told":
            del row["actual"]
        with pytest.raises(ValueError, match=r"cat must be from 0.1 to 10.0"):
            History.from_json(broken)


def test_a_trial_shows_what_was_asked() -> None:
    trial = Trial(0, {"x": 1.0}, told_params={"x": 1.5})
    assert (trial.params["x"], trial.actual["x"], Trial(0, {"x": 1.0}).actual["x"]) == (1, 1.5, 1)
