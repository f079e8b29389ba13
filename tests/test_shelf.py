"""Shelves: only the rows of a table exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import Constraint, Objective, Optimizer, Settings, Space, Stop, minimize
from optpair.cube.candidates import ANCHORS, Screening
from optpair.engine import query
from optpair.engine.session import region_of
from optpair.gp import Hyperparameters, condition
from optpair.gp.paths import sample_paths
from optpair.optima.single import Best
from optpair.runtime.streams import Stream


def rows(count: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {"pKa": float(a), "chain": int(b), "ring": str(c)}
        for a, b, c in zip(
            rng.uniform(2, 12, count),
            rng.integers(1, 9, count),
            rng.choice(["none", "one", "two"], count),
            strict=True,
        )
    ]


def lost(row: Any) -> float:
    return (row["pKa"] - 7) ** 2 / 25 + (row["chain"] - 5) ** 2 / 16 + 0.3 * (row["ring"] != "one")


class Table:
    """A table as pandas has it."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self._rows


def test_every_point_is_a_row_and_finds_its_way_back() -> None:
    given = rows()
    space = Space.of_rows(Table(given))
    assert space.table is not None
    for i, row in enumerate(given):
        assert space.decode(space.encode(row)) == row
        assert space.row(row) == i
        assert type(space.decode(space.table[i])["chain"]) is int
    off = given[0] | {"pKa": given[0]["pKa"] + 0.01}
    assert space.row(off) is None
    assert space.allows(given[3])
    assert not space.allows(off)
    again = Space.from_json(space.to_json())
    assert again == space
    assert Space.of_rows(given[:-1]) != space
    assert Space.of_rows(given, repeat=False) != space
    assert "60 rows" in repr(space)


def test_columns_and_log_are_chosen() -> None:
    given = [{"name": f"no {i}", "dose": 10.0**i, "age": i} for i in range(4)]
    space = Space.of_rows(given, columns=["dose"], log=["dose"])
    assert list(space) == ["dose"]
    assert space.table is not None
    np.testing.assert_allclose(space.table[:, 0], [0, 1 / 3, 2 / 3, 1])


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ([], {}, "0 candidates"),
        ([{"a": 1.0}], {}, "1 candidate, which leaves nothing to choose"),
        ([{"a": 1.0}, {"a": 2.0}, {"a": 1}], {}, "rows 0 and 2 are the same"),
        ([{"a": 1.0}, {"a": float("nan")}], {}, "row 1 has nan as 'a'"),
        ([{"a": "x"}, {"a": None}], {}, "row 1 has None as 'a'"),
        ([{"a": 1.0, "b": 2.0}, {"a": 2.0}], {}, "row 1 lacks 'b'"),
        ([{"a": 1.0}, {"a": 2.0, "b": 3.0}], {}, "row 1 also has 'b'"),
        ([{"a": 1.0, "b": 2}, {"a": 2.0, "b": 2}], {}, "column 'b' is 2 in every row"),
        ([{"a": 1.0}, {"a": "x"}], {}, "column 'a' has texts or bools beside numbers"),
        ([{"a": f"no {i}"} for i in range(65)], {}, "65 different texts"),
        ([{"a": 1.0}, {"a": 2.0}, {"a": 1e9}], {}, "rows 0 and 1 differ by less than 1e-05"),
        ([{"a": 1.0}, {"a": 2.0}], {"columns": ["b"]}, "row 0 lacks 'b'"),
        ([{"a": 1.0}, {"a": 2.0}], {"log": ["b"]}, "log has 'b', which is not a column"),
        ([{"a": -1.0}, {"a": 2.0}], {"log": ["a"]}, "column 'a'.*needs low > 0"),
        ([{}, {}], {}, "no columns"),
    ],
)
def test_tables_of_no_use_are_refused(given: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space.of_rows(given, **options)


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"a": [1, 2]}, {}),
        ([1, 2], {}),
        ([{"a": [1]}, {"a": [2]}], {}),
        ([{"a": 1}, {"a": 2}], {"repeat": 1}),
        ([{"a": 1}, {"a": 2}], {"columns": "a"}),
        ([{1: 1}, {1: 2}], {}),
    ],
)
def test_what_is_no_table_is_refused(given: Any, options: Any) -> None:
    with pytest.raises(TypeError):
        Space.of_rows(given, **options)


def test_the_optimum_of_a_path_is_the_best_row() -> None:
    """Against every path at every row, in double precision; 61 rows do not fill groups evenly."""
    space = Space.of_rows(rows(61))
    region = region_of(space)
    hypers = Hyperparameters([[0.2] * 5, [0.5] * 5], [1.0, 2.0], [1e-4, 1e-4], [0.0, 0.1])
    assert space.table is not None
    X = space.table[:9]
    posterior = condition(hypers, X, np.sin(9 * X[:, 0]))
    paths = sample_paths(posterior, 16, seed=3)
    for turn in range(4):  # the best row is among the last as well
        screening = Screening.of(Stream.of(turn), region.cube, 64)
        optima = Best().optima((paths,), region, screening, X[:ANCHORS], 10)
        every = paths.at(space.table)
        np.testing.assert_allclose(optima.best, every.max(-1), rtol=1e-6)
        np.testing.assert_array_equal(optima.star, space.table[np.argmax(every, -1)])


def test_chances_of_being_the_best_row_come_true() -> None:
    """On functions drawn from the model itself; a chance is a count of eight times 96 samples."""
    hypers = Hyperparameters([[0.15, 0.3]] * 4, [1.0] * 4, [1e-6] * 4, [0.0] * 4)
    said, came, told = [], [], 8
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table = [{"a": float(a), "b": float(b)} for a, b in rng.uniform(size=(40, 2)).round(6)]
        space = Space.of_rows(table, repeat=False)
        assert space.table is not None
        prior = condition(hypers, space.table[:0], np.zeros(0))
        y = sample_paths(prior, 1, seed=seed).at(space.table)[0, 0]
        quick = Settings(sets=4, pairs=24)
        opt = Optimizer(
            space,
            direction="maximize",
            seed=seed,
            noise=0.0,
            hyperparameters=hypers,
            settings=quick,
        )
        for row, value in zip(table[:told], y, strict=False):
            opt.tell(row, float(value))
        belief = opt.belief()
        assert len(belief.params) == 8 * 96
        for params, chance in belief.likeliest(40):
            said.append(chance)
            came.append(space.row(params) == int(np.argmax(y)))
    chances, hits = np.array(said), np.array(came)
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 1.0)):
        own = (low < chances) & (chances <= high)
        error = np.sqrt(np.mean(chances[own] * (1 - chances[own])) / own.sum())
        assert own.sum() >= 10
        assert abs(np.mean(hits[own]) - np.mean(chances[own])) < 3 * error


def test_what_teaches_most_is_looked_for_in_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of more rows than there are points that fill any other space."""
    found: list[tuple[Any, float]] = []
    inner = query.maximise

    def maximise(acquisition: Any, *args: Any, **kwargs: Any) -> Any:
        x, value = inner(acquisition, *args, **kwargs)
        found.append((acquisition, value))
        return x, value

    monkeypatch.setattr(query, "maximise", maximise)
    given = [row | {"pKa": 2 + i / 200} for i, row in enumerate(rows(2000))]
    space = Space.of_rows(given)
    opt = Optimizer(space, seed=0, settings=Settings(exploit=0.0))
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, lost(trial.params))
    assert len(found) >= 3
    for acquisition, value in found:
        assert value == pytest.approx(float(np.max(acquisition.values(space.table))))


def test_suggestions_and_recommendations_are_rows() -> None:
    space = Space.of_rows(rows())
    opt = Optimizer(space, noise=0, seed=0)
    opt.tell(rows()[0] | {"pKa": 6.5}, 0.4)  # off the shelf: it teaches
    for _ in range(14):
        trial = opt.ask()
        assert trial.params in space.shelf.rows  # type: ignore[union-attr]
        opt.tell(trial, lost(trial.params))
    plate = opt.ask(4)
    numbers = [space.row(t.params) for t in opt.trials[1:]]
    assert None not in numbers
    assert len(set(numbers)) == len(numbers) == 18  # exact values are not asked for again
    assert len(plate) == 4
    best = opt.recommend()
    assert space.row(best.params) is not None
    assert best.mean <= min(t.value for t in opt.trials[1:] if t.value is not None)
    chances = opt.belief().likeliest(100)
    assert sum(chance for _, chance in chances) == pytest.approx(1)
    assert chances == sorted(chances, key=lambda pair: -pair[1])
    assert all(space.row(params) is not None for params, _ in chances)


@pytest.mark.parametrize("acquisition", ["jes-peak", "logei", "random"])
def test_each_row_once(acquisition: str) -> None:
    given = rows(12)
    space = Space.of_rows(given, repeat=False)
    opt = Optimizer(space, acquisition=acquisition, seed=1)
    for i in range(8):
        trial = opt.ask()
        opt.tell(trial, failed=True) if i in (0, 6) else opt.tell(trial, lost(trial.params))
    out = opt.ask()
    assert len(opt.ask(8)) == 3  # all that are left
    assert {space.row(t.params) for t in opt.trials} == set(range(12))
    before = opt.trials
    with pytest.raises(ValueError, match="all 12 rows have been tried"):
        opt.ask()
    assert opt.trials == before
    opt.cancel(out)
    assert opt.ask().params == out.params
    assert space.row(opt.recommend().params) is not None


@pytest.mark.parametrize(
    ("repeat", "outcomes", "name"),
    [
        (False, None, "ids"),
        (True, None, "jes-peak"),
        (False, {"a": Objective("maximize"), "b": Constraint(high=1)}, "jes-peak"),
    ],
)
def test_trials_that_are_answers_should_be_good(repeat: bool, outcomes: Any, name: str) -> None:
    opt = Optimizer(Space.of_rows(rows(), repeat=repeat), outcomes=outcomes)
    assert opt.configuration["acquisition"] == name
    given = Optimizer(Space.of_rows(rows(), repeat=repeat), outcomes=outcomes, acquisition="jes")
    assert given.configuration["acquisition"] == "jes"


def test_noise_lets_rows_be_repeated() -> None:
    given = rows(3, seed=4)
    opt = Optimizer(Space.of_rows(given), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, lost(trial.params) + 0.1 * rng.standard_normal())
    assert len(opt.trials) == 8


def test_a_saved_shelf_goes_on(tmp_path: Path) -> None:
    opt = Optimizer(Space.of_rows(rows(), repeat=False), seed=5)
    for _ in range(6):
        trial = opt.ask()
        opt.tell(trial, lost(trial.params))
    opt.save(tmp_path / "shelf.json")
    loaded = Optimizer.load(tmp_path / "shelf.json")
    assert loaded.space == opt.space
    assert loaded.ask().params == opt.ask().params
    opt.report(tmp_path / "shelf.html")


def test_several_outcomes_of_a_shelf() -> None:
    space = Space.of_rows(rows())
    outcomes = {"loss": Objective("minimize", noise=0), "price": Constraint(high=6.0, noise=0)}
    opt = Optimizer(space, outcomes=outcomes, seed=0)
    for _ in range(10):
        trial = opt.ask()
        opt.tell(trial, {"loss": lost(trial.params), "price": float(trial.params["chain"])})
    assert space.row(opt.recommend().params) is not None
    front = Optimizer(space, outcomes={"loss": "minimize", "chain": "maximize"}, seed=0)
    for _ in range(8):
        trial = front.ask()
        front.tell(trial, {"loss": lost(trial.params), "chain": float(trial.params["chain"])})
    assert all(space.row(point.params) is not None for point in front.recommend().points)


def test_minimize_finds_the_best_row() -> None:
    given = rows(200, seed=2)
    result = minimize(lost, Space.of_rows(given), 30, noise=0, seed=0, progress=False)
    assert lost(result.x) == min(map(lost, given))


def test_a_search_ends_once_every_row_has_been_tried(tmp_path: Path) -> None:
    space, file = Space.of_rows([{"a": float(i)} for i in range(5)], repeat=False), tmp_path / "a"
    options: dict[str, Any] = {"progress": False, "seed": 0, "checkpoint": file}
    result = minimize(lambda p: float(p["a"]), space, 8, **options)
    assert result.nfev == 5
    assert result.message == "5 evaluations were made, then every row had been tried"
    assert result.optimizer.exhausted
    again = minimize(lambda p: float(p["a"]), space, 8, **options)
    assert (again.nfev, again.message) == (result.nfev, result.message)


def test_a_forecast_looks_ahead_to_the_last_row() -> None:
    opt = Optimizer(Space.of_rows(rows(12), repeat=False), seed=1)
    for _ in range(7):
        trial = opt.ask()
        opt.tell(trial, lost(trial.params))
    ahead = opt._session.answers(opt._history.data()).forecast()
    assert ahead is not None
    assert len(ahead.gaps) == 6  # now, and after each of the five that are left


def test_what_is_out_is_not_left() -> None:
    opt = Optimizer(Space.of_rows([{"a": 0.0}, {"a": 1.0}], repeat=False), seed=0)
    opt.ask()
    assert not opt.exhausted
    out = opt.ask()
    assert opt.exhausted
    opt.cancel(out)
    assert not opt.exhausted
    assert not Optimizer(Space.of_rows([{"a": 0.0}, {"a": 1.0}])).exhausted


def test_a_shelf_that_is_used_up_has_answers(tmp_path: Path) -> None:
    space = Space.of_rows([{"a": float(i)} for i in range(4)], repeat=False)
    one = Optimizer(space, seed=0)
    two = Optimizer(space, outcomes={"a": "minimize", "b": "maximize"}, seed=0)
    for i in range(4):
        one.tell({"a": float(i)}, float(i))
        two.tell({"a": float(i)}, {"a": i, "b": i * i})
    assert one.belief().next_gain == two.belief().next_gain == 0
    assert one.until(Stop(gap=0.0, chance=1.0)) in (None, 0)
    page = one.report(tmp_path / "page.html")
    assert page["next_gain"] == 0
    assert page["verdict"].startswith("Every row has been tried. Each row is tried once.")


def test_exploiting_takes_the_best_row_that_nobody_has_tried() -> None:
    """Of exact values the best predicted row is mostly one that is known, which says nothing."""
    space = Space.of_rows(rows())
    opt = Optimizer(space, noise=0, seed=3, settings=Settings(exploit=1.0))
    ranks = []
    for turn in range(14):
        trial = opt.ask()
        if turn > len(space) + 1:
            assert space.shelf is not None
            tried = [space.row(t.params) for t in opt.trials[:-1]]
            left = [row for i, row in enumerate(space.shelf.rows) if i not in tried]
            *means, own = opt.predict([*left, trial.params]).mean
            ranks.append(int(np.sum(np.array(means) < own)))
        opt.tell(trial, lost(trial.params))
    assert len(ranks) >= 8
    assert np.mean(np.array(ranks) <= 2) > 0.8  # an answer has more sets than an ask
    assert np.median(ranks) == 0
