"""Earlier studies: what is read of them, what is borrowed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import (
    Categorical,
    Constraint,
    Context,
    Earlier,
    Fidelity,
    Float,
    Hyperparameters,
    Int,
    Objective,
    Optimizer,
    Settings,
    Space,
    minimize,
)
from optpair.engine.earlier import ROWS

QUICK = Settings(sets=6, pairs=4)
SPACE = Space({"x": Float(0, 1), "y": Float(0, 1)})


def bowl(params: dict[str, Any], x: float = 0.3, y: float = 0.7) -> float:
    """Lowest at (x, y)."""
    return float((params["x"] - x) ** 2 + (params["y"] - y) ** 2)


def rows(
    count: int = 25, seed: int = 0, scale: float = 10.0, offset: float = 5.0, **at: float
) -> list[dict[str, Any]]:
    """A study of another bowl, at random points."""
    points = np.random.default_rng(seed).uniform(size=(count, 2)).tolist()
    params = [{"x": x, "y": y} for x, y in points]
    return [{**p, "value": offset + scale * bowl(p, **at)} for p in params]


def noise(count: int = 25, seed: int = 1) -> list[dict[str, Any]]:
    """A study of nothing."""
    values = np.random.default_rng(seed).normal(size=count)
    return [{**row, "value": float(v)} for row, v in zip(rows(count, seed), values, strict=True)]


def run(opt: Optimizer, trials: int, **at: float) -> Optimizer:
    """Some trials of a bowl."""
    for _ in range(trials):
        trial = opt.ask()
        opt.tell(trial, bowl(dict(trial.params), **at))
    return opt


def after(*earlier: Any, seed: int = 0, **options: Any) -> Optimizer:
    """An optimiser of a bowl after earlier studies."""
    return Optimizer(SPACE, seed=seed, settings=QUICK, earlier=earlier, **options)


def test_the_first_trial_is_where_the_earlier_study_was_best() -> None:
    trial = after(rows()).ask()
    assert bowl(dict(trial.params)) < 0.1**2


def test_what_is_alike_is_borrowed_and_what_is_not_is_not() -> None:
    named = [Earlier(rows(), name="alike"), Earlier(noise(), name="nothing")]
    opt = run(after(*named), 5)
    lent = opt.borrowed()["value"]
    assert lent["alike"].alike > 0.8
    assert lent["alike"].explains > 0.8
    assert lent["nothing"].explains < 0.3
    assert (lent["alike"].used, lent["alike"].rows) == (25, 25)
    best = opt.recommend()
    assert bowl(dict(best.params)) < 0.05**2
    assert best.borrowed == {name: own.explains for name, own in lent.items()}
    assert "borrowed from  alike (explains " in str(best)
    assert Optimizer(SPACE, settings=QUICK).configuration["earlier"] == []


def test_few_trials_after_a_related_study_are_worth_many_without() -> None:
    cold = [run(Optimizer(SPACE, seed=s, settings=QUICK), 4).recommend() for s in range(3)]
    warm = [run(after(rows(seed=s), seed=s), 4).recommend() for s in range(3)]
    worth = [np.mean([np.log10(bowl(dict(r.params)) + 1e-9) for r in own]) for own in (cold, warm)]
    assert worth[1] < worth[0] - 0.5


def test_the_design_shrinks_but_never_grows() -> None:
    space = Space({f"x{i}": Float(0, 1) for i in range(6)})
    study = [{f"x{i}": i / 7, "value": float(v)} for v in range(5) for i in [v]]
    opt = Optimizer(space, seed=0, settings=QUICK, earlier=[study])
    kinds = []
    for _ in range(4):
        trial = opt.ask()
        kinds.append(opt.info.kind)
        opt.tell(trial, 1.0 + trial.id)
    assert kinds[:3] == ["design"] * 3
    assert kinds[3] != "design"
    assert after(rows())._session.engine.initial == 3 == Optimizer(SPACE)._session.engine.initial


def test_a_saved_search_goes_on_as_if_never_saved(tmp_path: Path) -> None:
    opt = run(after(Earlier(rows(), name="May"), noise()), 5)
    opt.save(tmp_path / "run.json")
    loaded = Optimizer.load(tmp_path / "run.json")
    assert loaded.borrowed() == opt.borrowed()
    for _ in range(2):
        one, other = opt.ask(), loaded.ask()
        assert one.params == other.params
        opt.tell(one, bowl(dict(one.params)))
        loaded.tell(other, bowl(dict(other.params)))
    assert loaded.recommend() == opt.recommend()
    again = run(after(Earlier(rows(), name="May"), noise()), 5)
    assert [t.params for t in again.trials] == [t.params for t in opt.trials[:5]]


def test_units_behind_the_names_of_columns_are_left_out(tmp_path: Path) -> None:
    plain, table = rows(8), tmp_path / "may.csv"
    lines = [f"{row['x']!r},{row['y']!r},{row['value']!r} {row['value']!r},Ann" for row in plain]
    table.write_text("\n".join(["x (mol/L),y [°C],value (%),operator", *lines]))
    (study,) = after(table)._session.earlier
    assert study.rows == after(plain)._session.earlier[0].rows


def test_a_value_that_cannot_be_is_refused_in_an_earlier_table() -> None:
    wanted = {"yield": Objective("maximize", bounds=(0, 100))}
    table = [{"x": 0.1, "y": 0.2, "yield": v, "loss": 494.0} for v in (49.0, 494.0)]
    with pytest.raises(
        ValueError, match=r"earlier\[0\]: yield must be within its bounds, 0 to 100"
    ):
        Optimizer(SPACE, outcomes=wanted, earlier=[table])
    assert Optimizer(SPACE, outcomes=wanted, earlier=[table[:1]])
    assert Optimizer(SPACE, outcomes=wanted, earlier=[Earlier(table, value="loss")])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("x,y,yield (%)", r"earlier\[0\]: it has no column 'value' with the values; there are 'x'"),
        ("X (mol/L),y,value", r"it has no column 'x': did you mean 'X \(mol/L\)'\? Rename it"),
        ("x,y [log],value", "may hold logarithms of parameter 'y'"),
        ("a,b,value", "shares no parameter with the space"),
    ],
)
def test_a_column_that_is_missed_is_named(tmp_path: Path, header: str, message: str) -> None:
    (tmp_path / "may.csv").write_text(f"{header}\n0.1,0.2,3\n0.3,0.4,5\n")
    with pytest.raises(ValueError, match=message):
        after(tmp_path / "may.csv")


def test_a_damaged_earlier_study_in_a_file_is_named(tmp_path: Path) -> None:
    run(after(rows()), 1).save(tmp_path / "run.json")
    document = json.loads((tmp_path / "run.json").read_text())
    for damage in ([{"name": 3, "rows": []}], [{"name": "a", "rows": []}], [{"rows": []}], [[1]]):
        (tmp_path / "bad.json").write_text(json.dumps({**document, "earlier": damage}))
        with pytest.raises(ValueError, match=r"bad\.json is damaged"):
            Optimizer.load(tmp_path / "bad.json")


def test_every_kind_of_source_says_the_same(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    told = Optimizer(SPACE, seed=0, settings=QUICK)
    told.tell_many(rows())
    told.save(tmp_path / "may.json")
    told.to_csv(tmp_path / "may.csv")
    study = optuna.create_study(study_name="may")
    space = {name: optuna.distributions.FloatDistribution(0, 1) for name in SPACE}
    for row in rows():
        params = {name: row[name] for name in SPACE}
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=space, value=row["value"])
        )
    sources = [told, str(tmp_path / "may.json"), tmp_path / "may.csv", study, rows()]
    found = [after(source)._session for source in sources]
    names = [session.earlier[0].name for session in found]
    assert names == ["study 1", "may", "may", "may", "study 1"]
    for session in found:
        assert session.earlier[0].rows == found[0].earlier[0].rows
    result = minimize(bowl, SPACE, 4, seed=0, progress=False, settings=QUICK, earlier=[told])
    assert after(result)._session.earlier[0].name == "study 1"


def test_tables_of_pandas_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    assert after(pandas.DataFrame(rows()))._session.earlier == after(rows())._session.earlier


def test_what_was_good_then_is_good_now_whichever_way_round() -> None:
    upside = [{**row, "value": -row["value"]} for row in rows()]
    told = Optimizer(SPACE, direction="maximize", settings=QUICK)
    told.tell_many(upside)
    same = after(rows())._session.earlier[0].rows
    assert after(told)._session.earlier[0].rows == same
    assert after(Earlier(upside, direction="maximize"))._session.earlier[0].rows == same
    named = [{"x": r["x"], "y": r["y"], "loss": r["value"]} for r in rows()]
    assert after(Earlier(named, value="loss"))._session.earlier[0].rows == same


def test_outcomes_are_found_by_name() -> None:
    outcomes: dict[str, Any] = {"cost": Objective("minimize"), "heat": Constraint(high=1.0)}
    table = [{**r, "cost": r["value"], "heat": 2 * r["x"]} for r in rows()]
    opt = Optimizer(SPACE, outcomes=outcomes, seed=0, settings=QUICK, earlier=[table])
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, {"cost": bowl(dict(trial.params)), "heat": 2 * trial.params["x"]})
    assert set(opt.borrowed()) == {"cost", "heat"}
    assert opt.recommend().chance > 0.5
    half = [{"x": r["x"], "y": r["y"], "cost": r["value"]} for r in rows()]
    opt = Optimizer(SPACE, outcomes=outcomes, seed=0, settings=QUICK, earlier=[half])
    assert set(opt._session.engine.earlier) == {"cost"}
    front: dict[str, Any] = {"cost": "minimize", "heat": "minimize"}
    opt = Optimizer(SPACE, outcomes=front, seed=0, settings=QUICK, earlier=[table])
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, {"cost": bowl(dict(trial.params)), "heat": 2 * trial.params["x"]})
    assert len(opt.recommend().points) >= 1


MIXED = Space(
    {
        "x": Float(0, 1),
        "n": Int(1, 64, log=True),
        "kind": Categorical(["a", "b", "c"]),
        "depth": Int(2, 5, when={"kind": "b"}),
        "new": Float(0, 1),
    }
)


def test_spaces_may_overlap_in_part(tmp_path: Path) -> None:
    """Parameters that one of them lacks, other ranges, other choices: all of it has a place."""
    rng = np.random.default_rng(0)
    table = [
        {
            "x": float(rng.uniform(-0.5, 1.5)),  # a wider range
            "n": int(rng.integers(1, 100)),
            "kind": str(rng.choice(["a", "b", "gone"])),
            "depth": int(rng.integers(2, 6)),
            "old": float(rng.uniform()),
            "value": float(rng.normal()),
        }
        for _ in range(30)
    ]
    table.append({**table[0], "x": 1e6})  # too far away: left out
    opt = Optimizer(
        MIXED, seed=0, settings=QUICK, earlier=[Earlier(table, params={"new": 0.25}, name="old")]
    )
    given = opt._session.engine.earlier["value"].alone
    assert len(given.y) == 30
    assert set(given.X[:, -1]) == {0.25}
    assert given.X[:, 0].min() < 0
    assert given.X[:, 0].max() > 1
    for _ in range(5):
        trial = opt.ask()
        assert MIXED.allows(trial.params)
        opt.tell(trial, float(trial.params["x"]))
    best = opt.recommend()
    assert MIXED.allows(best.params)
    assert all(MIXED.allows(params) for params in opt.belief().params)
    opt.save(tmp_path / "mixed.json")
    assert Optimizer.load(tmp_path / "mixed.json").ask().params == opt.ask().params


def test_limits_and_contexts_hold_after_earlier_studies() -> None:
    space = Space(
        {"x": Float(0, 1), "y": Float(0, 1), "site": Context(["A", "B"])}, where=["x + y <= 0.8"]
    )
    opt = Optimizer(space, seed=0, settings=QUICK, earlier=[rows()])
    for i in range(5):
        trial = opt.ask(context={"site": "AB"[i % 2]})
        assert space.allows(trial.params)
        opt.tell(trial, bowl(dict(trial.params)))
    best = opt.recommend(context={"site": "B"})
    assert best.params["site"] == "B"
    assert space.allows(best.params)


def test_looks_share_their_luck_after_earlier_studies(tmp_path: Path) -> None:
    space = Space({**SPACE, "epochs": Fidelity(1, 27, log=True)})
    opt = Optimizer(space, seed=0, settings=QUICK, earlier=[rows()])
    lent = opt._session.engine.earlier["value"].alone
    assert set(lent.X[:, 2]) == {1.0}  # at the target
    for _ in range(5):
        trial = opt.ask()
        value = bowl(dict(trial.params)) + 1 / trial.params["epochs"]
        if trial.params["epochs"] > 1:
            opt.tell(trial, value + 0.1, at={"epochs": 1})
        opt.tell(trial, value)
    assert opt.recommend().params["epochs"] == 27
    opt.save(tmp_path / "looks.json")
    assert Optimizer.load(tmp_path / "looks.json").ask().params == opt.ask().params


def test_of_thousands_of_rows_those_are_kept_that_help() -> None:
    many, best = rows(4000), {"x": 0.3, "y": 0.7}
    opt = run(after(Earlier(many, name="much"), Earlier(noise(300), name="little")), 4)
    lent = opt.borrowed()["value"]
    assert lent["much"].rows == 4000
    assert lent["much"].used + lent["little"].used <= ROWS
    assert bowl(dict(opt.recommend().params)) < 0.05**2
    given = opt._session.engine.earlier["value"].alone
    X = given.X[given.study == 0]
    distance = np.linalg.norm(X - [best["x"], best["y"]], axis=1)
    assert np.mean(distance < 0.25) > np.pi * 0.25**2  # more of them where it is good,
    assert np.mean(distance > 0.5) > 0.1  # and some of them everywhere


def test_many_studies_share_the_rows() -> None:
    opt = after(*(rows(12, seed=s) for s in range(20)))
    given = opt._session.engine.earlier["value"].alone
    assert given.studies == 16
    assert len(given.y) == ROWS


@pytest.mark.parametrize(
    "values", [[1.0] * 8, [1e300, -1e300] * 4, [0.0] * 7 + [1e-300], [5.0, 5.0, 5.0 + 1e-9] * 3]
)
def test_any_values_will_do(values: list[float]) -> None:
    table = [{**row, "value": v} for row, v in zip(rows(len(values)), values, strict=True)]
    opt = run(after(table), 4)
    assert np.isfinite(opt.recommend().mean)


def test_duplicates_and_two_rows_will_do() -> None:
    assert run(after(rows(1) * 30), 4).borrowed()["value"]["study 1"].rows == 30
    assert run(after(rows(2)), 4).borrowed() == {}


def test_repeated_rows_and_one_value_have_an_answer() -> None:
    """One value says nothing of units, and repeated rows without noise make a singular matrix."""
    one = after([*rows(), *rows()])
    one.tell(one.ask(), 0.5)
    assert np.isfinite(one.recommend().mean)
    assert 0 <= one.recommend().borrowed["study 1"] <= 1


def test_a_revised_or_failed_trial_changes_nothing_else() -> None:
    opt = after(rows())
    opt.tell(opt.ask(), failed=True)
    run(opt, 4)
    opt.revise(opt.trials[1], 3.0)
    assert np.isfinite(opt.recommend().mean)
    assert len(opt.ask(3)) == 3


BAD: list[tuple[Any, type[Exception], str]] = [
    ("may.json", TypeError, "earlier must be a list of studies"),
    (3, TypeError, "earlier must be a list of studies"),
    ([3], TypeError, r"earlier\[0\]: it must be an Optimizer, a file"),
    ([rows(), {"x": 1}], TypeError, r"earlier\[1\]: it must be an Optimizer"),
    (["nowhere.json"], ValueError, r"earlier\[0\]: nowhere.json cannot be read"),
    ([[]], ValueError, r"earlier\[0\]: study 1 has no value of 'value': it needs at least one"),
    ([[{"x": 0.5}]], ValueError, r"earlier\[0\]: it has no column 'value' with the values"),
    ([Optimizer(Space({"x": Float(0, 1)}))], ValueError, "has no value of 'value'"),
    ([[{"a": 1, "value": 2}]], ValueError, "shares no parameter with the space, which has 'x'"),
    ([[{"x": 1, "loss": 2}]], ValueError, "no column 'value' with the values; there are"),
    ([[{"x": 0.5, "value": float("inf")}]], ValueError, "value must be finite"),
    ([[{"x": 0.5, "value": "much"}]], ValueError, r"rows\[0\]"),
    ([[{"x": 1e9, "value": 1.0}]], ValueError, "every row of study 1 is far outside"),
    ([[1, 2]], TypeError, r"rows\[0\] must be a dict"),
    ([Earlier(rows(), name="a"), Earlier(rows(), name="a")], ValueError, "two earlier studies"),
    ([Earlier(rows(), params={"w": 1})], ValueError, "params has 'w', which is no parameter of"),
    ([Earlier(rows(), params={"y": "b"})], TypeError, r"earlier\[0\]: params: y must be a number"),
    ([Earlier(rows(), params={"y": 9})], ValueError, "params: y is 9, more than 3 times the range"),
]


@pytest.mark.parametrize(("given", "kind", "message"), BAD)
def test_what_is_no_study_is_refused(given: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Optimizer(SPACE, earlier=given)


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ValueError, match="acquisition 'lognei' redraws what was observed"):
        after(rows(), acquisition="lognei")
    known = Hyperparameters([[0.3, 0.3]], [1.0], [0.01], [0.0])
    with pytest.raises(ValueError, match="earlier studies and known hyperparameters"):
        after(rows(), hyperparameters=known)
    two = Optimizer(SPACE, outcomes={"a": "minimize", "b": "minimize"})
    two.tell({"x": 0.1, "y": 0.2}, {"a": 1.0, "b": 2.0})
    with pytest.raises(ValueError, match="its outcomes are 'a', 'b', and here 'value'"):
        after(two)
    assert len(after(Earlier(two, value="b"))._session.earlier[0].rows) == 1
    with pytest.raises(ValueError, match="value='c' is none of its outcomes"):
        after(Earlier(two, value="c"))
    with pytest.raises(ValueError, match="direction must be"):
        Earlier(rows(), direction="up")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="params must be a dict"):
        Earlier(rows(), params=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name must be a text"):
        Earlier(rows(), name="")


def test_the_mode_of_hyperparameters_borrows_too() -> None:
    opt = run(after(rows(), hyperparameters="map"), 5)
    assert bowl(dict(opt.recommend().params)) < 0.1**2


def test_a_checkpoint_keeps_the_earlier_studies(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    options: dict[str, Any] = {"seed": 0, "progress": False, "checkpoint": file, "settings": QUICK}
    minimize(bowl, SPACE, 4, earlier=[rows()], **options)
    once = minimize(bowl, SPACE, 6, earlier=[rows()], **options)
    whole = minimize(bowl, SPACE, 6, seed=0, progress=False, settings=QUICK, earlier=[rows()])
    assert [t.params for t in once.trials] == [t.params for t in whole.trials]
    with pytest.raises(ValueError, match="another earlier"):
        minimize(bowl, SPACE, 7, earlier=[noise()], **options)
    assert minimize(bowl, SPACE, 7, **options).nfev == 7


def test_the_report_says_what_was_borrowed(tmp_path: Path) -> None:
    opt = run(after(Earlier(rows(), name="May & June"), Earlier(noise(), name="nothing")), 4)
    opt.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Borrowed from earlier studies" in page
    assert "May &amp; June" in page
    run(Optimizer(SPACE, seed=0, settings=QUICK), 3).report(tmp_path / "plain.html")
    assert "Borrowed" not in (tmp_path / "plain.html").read_text(encoding="utf-8")


def test_the_sampler_borrows_from_other_studies() -> None:
    optuna = pytest.importorskip("optuna")
    from optpair.integrations.optuna import JESSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: Any) -> float:
        return bowl({name: trial.suggest_float(name, 0, 1) for name in SPACE})

    before = optuna.create_study(study_name="May", sampler=optuna.samplers.RandomSampler(seed=0))
    before.optimize(objective, n_trials=20)
    space = {name: optuna.distributions.FloatDistribution(0, 1) for name in SPACE}
    sampler = JESSampler(seed=0, settings=QUICK, search_space=space, earlier=[before])
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=5)
    assert bowl(study.trials[0].params) < 0.15**2
    assert 0.1 < sampler.recommend(study).borrowed["May"] <= 1
    with pytest.raises(TypeError, match="earlier must be a list"):
        JESSampler(earlier=before)
