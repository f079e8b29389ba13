"""What the engine is shown of an Optuna study, and what comes back."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial

from optpair import Categorical, Float, Hyperparameters, Optimizer, Ordinal, Settings, Space
from optpair.engine import step as engine_step
from optpair.engine.engine import Engine
from optpair.engine.plate import Info
from optpair.integrations.optuna import NOISE_VAR, JESSampler, attributes
from optpair.integrations.optuna.space import Domain
from optpair.trials.data import Data

TINY = Settings(
    sets=3,
    pairs=2,
    features=64,
    candidates=64,
    path_candidates=64,
    starts=2,
    steps=4,
    moves=2,
)
KNOWN = Hyperparameters(np.array([[0.4, 1.0]]), np.array([1.0]), np.array([0.01]), np.array([0.0]))
CHEAP: dict[str, Any] = {"acquisition": "logei", "hyperparameters": KNOWN, "settings": TINY}
SPACE: dict[str, BaseDistribution] = {
    "a": FloatDistribution(-1.0, 1.0),
    "b": CategoricalDistribution(["u", "v"]),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Data]:
    """What an engine that only fills space was shown, ask by ask."""
    shown: list[Data] = []

    def suggest(engine: Engine, stream: object, memory: object, data: Data, *rest: object) -> Any:
        shown.append(data)
        x = np.random.default_rng(len(shown)).uniform(size=engine.cube.dimensions)
        return x, memory, Info()

    monkeypatch.setattr(engine_step, "suggest", suggest)
    return shown


def study_with(sampler: JESSampler, **options: Any) -> optuna.Study:
    return optuna.create_study(sampler=sampler, **options)


def tell(study: optuna.Study, a: float, value: float, **attributes: Any) -> None:
    study.add_trial(
        create_trial(
            params={"a": a, "b": "u"}, distributions=SPACE, value=value, user_attrs=attributes
        )
    )


def bowl(trial: optuna.Trial) -> float:
    a = trial.suggest_float("a", -1.0, 1.0)
    return (a - 0.3) ** 2 + (trial.suggest_categorical("b", ["u", "v"]) == "v")


def test_the_default_method_finds_the_optimum_and_says_how_sure_it_is() -> None:
    sampler = JESSampler(seed=0, settings=TINY)
    study = study_with(sampler)
    study.optimize(bowl, n_trials=12)
    best = sampler.recommend(study)
    assert best.params["b"] == "u"
    assert abs(best.params["a"] - 0.3) < 0.25
    assert best.interval[0] <= best.mean <= best.interval[1]
    assert best.observed.id == study.best_trial.number
    assert dict(best.observed.params) == study.best_params
    belief = sampler.belief(study)
    assert len(belief.values) == len(belief.params) == TINY.sets * TINY.pairs
    assert set(belief.params[0]) == {"a", "b"}
    assert belief.gap >= 0
    assert belief.recommendation.mean < 0.3


def test_the_same_seed_gives_the_same_points() -> None:
    def points(seed: int) -> list[dict[str, Any]]:
        study = study_with(JESSampler(seed=seed, **CHEAP))
        study.optimize(bowl, n_trials=6)
        return [trial.params for trial in study.trials]

    assert points(1) == points(1)
    assert points(1) != points(2)


def test_maximising_mirrors_minimising() -> None:
    def points(direction: str, sign: float) -> list[dict[str, Any]]:
        study = study_with(JESSampler(seed=3, **CHEAP), direction=direction)
        study.optimize(lambda trial: sign * bowl(trial), n_trials=6)
        return [trial.params for trial in study.trials]

    assert points("minimize", 1.0) == points("maximize", -1.0)


def test_threads_share_one_sampler_and_see_each_other(seen: list[Data]) -> None:
    together = threading.Barrier(4, timeout=60)

    def objective(trial: optuna.Trial) -> float:
        value = bowl(trial)
        together.wait()  # all four are out
        return value

    study = study_with(JESSampler(seed=0, search_space=SPACE))
    study.optimize(objective, n_trials=4, n_jobs=4)
    assert [len(shown.pending) for shown in seen] == [0, 1, 2, 3]


def test_values_noise_failures_and_what_teaches_nothing(seen: list[Data]) -> None:
    sampler = JESSampler(seed=0, search_space=SPACE)
    study = study_with(sampler, direction="maximize")
    tell(study, -1.0, 5.0)
    tell(study, 0.0, 7.0, **{NOISE_VAR: 0.25})
    tell(study, 1.0, float("inf"))  # Optuna takes it for a value
    tell(study, 0.2, 1.0, **{NOISE_VAR: -1.0})  # not a variance
    study.tell(study.ask(SPACE), state=TrialState.FAIL)  # the objective failed
    lost = create_trial(params={"a": 0.1, "b": "v"}, distributions=SPACE, state=TrialState.FAIL)
    study.add_trial(lost)  # as Optuna fails a trial whose heartbeat stopped
    tell(study, 0.5, 2.0)
    study.ask(SPACE)
    last = seen[-1]
    np.testing.assert_allclose(last.X[:, 0], [0.0, 0.5, 0.6, 0.75])
    np.testing.assert_array_equal(last.Y[:, 0], [5.0, 7.0, 1.0, 2.0])
    np.testing.assert_array_equal(last.noise_var[:, 0], [np.nan, 0.25, np.nan, np.nan])
    assert last.failed.shape == (2, 3)
    assert 1.0 in last.failed[:, 0]
    assert last.pending.shape == (0, 3)


def test_noise_of_all_trials_and_of_one(seen: list[Data]) -> None:
    sampler = JESSampler(seed=0, search_space=SPACE, noise=0.5)
    study = study_with(pickle.loads(pickle.dumps(sampler)))
    tell(study, -1.0, 5.0)
    tell(study, 0.0, 7.0, **{NOISE_VAR: 0.0})
    study.ask(SPACE)
    np.testing.assert_array_equal(seen[-1].noise_var[:, 0], [0.25, 0.0])
    with pytest.raises(ValueError, match=r"noise must be None, .*, not -1"):
        JESSampler(noise=-1)


def test_a_parameter_that_is_not_asked_for_is_where_it_was_suggested(
    seen: list[Data],
) -> None:
    study = study_with(JESSampler(seed=0, search_space=SPACE))
    study.optimize(lambda trial: trial.suggest_float("a", -1.0, 1.0), n_trials=4)
    assert [shown.told for shown in seen] == [0, 1, 2, 3]
    assert np.all(np.count_nonzero(seen[-1].X[:, 1:], axis=1) == 1)  # one of u and v each


def test_values_of_trials_outside_the_space_are_said_to_be_left_out(
    seen: list[Data],
) -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("optuna.optpair").addHandler(handler)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = study_with(JESSampler(seed=0, search_space=SPACE))
    for a in (0.1, 0.2):
        study.add_trial(create_trial(params={"a": a}, distributions={"a": SPACE["a"]}, value=1.0))
    study.ask(SPACE)
    study.ask(SPACE)
    assert [shown.told for shown in seen] == [0, 0]
    logging.getLogger("optuna.optpair").removeHandler(handler)
    assert [text.partition(":")[0] for text in said] == [
        "The model leaves out trial 0 and 1 more like it"
    ]
    assert "missing 'b'" in said[0]


def test_values_off_the_grid_or_outside_teach_and_are_not_suggested(seen: list[Data]) -> None:
    space = Space({"c": Float(0.05, 1, log=True, digits=2), "d": Float(0, 1, digits=2)})
    sampler = JESSampler(seed=0, search_space=space, settings=Settings(sets=6, pairs=4))
    study = optuna.create_study(sampler=sampler, direction="maximize")
    wide = {"c": FloatDistribution(0.01, 9, log=True), "d": FloatDistribution(0, 1)}
    for c, value in ((0.1234, 30.0), (0.5432, 90.0), (1.5, 85.0), (0.12, 10.0), (0.2, 11.0)):
        study.add_trial(create_trial(params={"c": c, "d": 0.5}, distributions=wide, value=value))
    best = sampler.recommend(study)
    assert (best.observed.value, best.observed.params["c"]) == (90.0, 0.5432)
    assert space.fits(best.params)
    assert best.params["c"] > 0.3
    assert space.fits(study.ask(dict(sampler.infer_relative_search_space(study, None))).params)


@pytest.mark.parametrize(
    ("error", "failed"), [(KeyError, 1), (NameError, 0), (KeyboardInterrupt, 0)]
)
def test_only_what_is_caught_is_a_failure_of_the_place(
    seen: list[Data], error: type[BaseException], failed: int
) -> None:
    def objective(trial: optuna.Trial) -> float:
        bowl(trial)
        raise error("stop")

    study = study_with(JESSampler(seed=0, search_space=SPACE))
    with suppress(NameError, KeyboardInterrupt):
        study.optimize(objective, n_trials=1, catch=(KeyError,))
    study.ask(SPACE)
    assert len(seen[-1].failed) == failed


def test_brackets_of_hyperband_keep_what_they_know(seen: list[Data]) -> None:
    """Optuna makes a new object of each bracket at every ask; each has its own trials."""
    made: list[object] = []
    sampler = JESSampler(seed=0, search_space=SPACE)
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3)
    study = study_with(sampler, pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        value = bowl(trial)
        trial.report(value, 1)
        trial.should_prune()
        made.extend(d for d in sampler._reader.models.values() if d not in made)
        return value

    study.optimize(objective, n_trials=12)
    assert 1 < len(made) <= 3
    assert sum(len(model.trials) for model in sampler._reader.models.values()) <= 12


def test_a_pruned_trial_counts_as_what_it_reported(seen: list[Data]) -> None:
    study = study_with(JESSampler(seed=0, search_space=SPACE))
    for reports in ([4.0, 3.0], []):
        trial = study.ask(SPACE)
        for step, value in enumerate(reports):
            trial.report(value, step)
        study.tell(trial, state=TrialState.PRUNED)
    study.ask(SPACE)
    np.testing.assert_array_equal(seen[-1].Y[:, 0], [-4.0, -3.0])
    np.testing.assert_array_equal(seen[-1].X[:, -1], [0.0, 0.5])  # of three steps, at the least
    assert len(seen[-1].failed) == 0


def test_an_enqueued_trial_is_taken_as_it_is_and_is_pending_before(
    seen: list[Data],
) -> None:
    study = study_with(JESSampler(seed=0, search_space=SPACE))
    running = study.ask(SPACE)
    study.enqueue_trial({"a": 0.5, "b": "v"})
    study.enqueue_trial({"a": -0.5})
    assert study.ask(SPACE).params == {"a": 0.5, "b": "v"}
    assert len(seen) == 1  # the engine was not asked
    assert study.ask(SPACE).params["a"] == -0.5
    np.testing.assert_allclose(
        sorted(seen[-1].pending[:, 0]), sorted([0.5 + running.params["a"] / 2, 0.75])
    )
    study.ask(SPACE)
    assert 0.25 in seen[-1].pending[:, 0]


@pytest.mark.parametrize("names", [2, 200])
def test_other_processes_see_running_trials_whole(
    tmp_path: Path, seen: list[Data], names: int
) -> None:
    """Each worker has its own study and sampler; only the storage is shared."""
    space: dict[str, BaseDistribution] = {
        f"parameter_{i:03d}": FloatDistribution(0.0, 1.0) for i in range(names)
    }
    url = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(study_name="s", storage=url)
    workers = [
        optuna.load_study(
            study_name="s", storage=url, sampler=JESSampler(seed=0, search_space=space)
        )
        for _ in range(3)
    ]
    trials = []
    for study in workers:
        trial = study.ask()
        trial.suggest_float("parameter_000", 0.0, 1.0)  # the others are not in the storage yet
        trials.append(trial)
    assert [len(shown.pending) for shown in seen] == [0, 1, 2]
    frozen = workers[0].get_trials(deepcopy=False)[0]
    point = attributes.published(frozen, space)
    assert point is not None
    for name in space:
        assert trials[0].suggest_float(name, 0.0, 1.0) == point[name]
    pieces = [
        text for key, text in frozen.system_attrs.items() if key.startswith(attributes.PARAMS)
    ]
    assert all(len(text) <= 2000 for text in pieces)
    assert (len(pieces) > 1) == (names > 2)
    frozen.params.clear()
    frozen.system_attrs.pop(
        next(key for key in frozen.system_attrs if key.startswith(attributes.PARAMS))
    )
    assert attributes.published(frozen, space) is None  # half of it is none of it


def test_what_trials_do_not_share_is_sampled_independently_and_said_once(
    seen: list[Data],
) -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("optuna.optpair")
    logger.addHandler(handler)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = study_with(JESSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x + trial.suggest_float("odd" if trial.number % 2 else "even", 0, 1)

    study.optimize(objective, n_trials=6)
    logger.removeHandler(handler)
    assert len(said) == 2
    assert "'odd' independently" in said[0]
    assert "'even' independently" in said[1]
    assert all(shown.X.shape[1] == 1 for shown in seen[1:])


def test_what_is_left_out_of_a_recommendation_is_named(tmp_path: Path) -> None:
    def add(params: dict[str, float], value: float) -> None:
        distributions = {name: FloatDistribution(0.0, 1.0) for name in params}
        study.add_trial(create_trial(params=params, distributions=distributions, value=value))

    hyperparameters = Hyperparameters(
        np.array([[0.4]]), np.array([1.0]), np.array([0.01]), np.array([0.0])
    )
    sampler = JESSampler(seed=0, **{**CHEAP, "hyperparameters": hyperparameters})
    study = study_with(sampler)
    for i in range(4):
        add({"x": i / 4, "even" if i % 2 == 0 else "<odd>": 0.5}, i / 4)
    best = sampler.recommend(study)
    why = "not in all trials, or not with the same distribution"
    assert best.left_out == {"even": why, "<odd>": why}
    assert str(best).endswith(f"\nleft out       even, <odd> ({why})")
    assert sampler.belief(study).recommendation.left_out == best.left_out
    summary = sampler.report(study, tmp_path / "page.html")
    assert summary["left_out"] == best.left_out
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"Left out: even, &lt;odd&gt; ({why})" in text
    given = JESSampler(
        seed=0,
        search_space={"x": FloatDistribution(0.0, 1.0)},
        **{**CHEAP, "hyperparameters": hyperparameters},
    )
    assert given.recommend(study).left_out["even"] == "not in search_space"


def test_independent_values_differ_by_trial_and_follow_the_seed() -> None:
    def values() -> list[float]:
        study = study_with(JESSampler(seed=5))
        return [study.ask({"x": FloatDistribution(0, 1)}).params["x"] for _ in range(4)]

    assert len(set(values())) == 4
    assert values() == values()


def test_trials_are_read_once(seen: list[Data], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    encode = Domain.encode
    monkeypatch.setattr(
        Domain, "encode", lambda *args, **kw: (read.append(1), encode(*args, **kw))[1]
    )
    study = study_with(JESSampler(seed=0, search_space=SPACE))
    for i in range(1000):
        tell(study, -1 + i / 500, float(i))
    for _ in range(10):
        study.tell(study.ask(SPACE), 0.0)
    assert [shown.told for shown in seen] == list(range(1000, 1010))
    assert len(read) == 1009


def read_from_the_database(folder: Path, told: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Trials that six asks fetch, after the first, while another worker writes."""
    fetched: list[int] = []
    get_trials = RDBStorage._get_trials

    def counted(*args: Any, **options: Any) -> Any:
        found = get_trials(*args, **options)
        fetched.append(len(found))
        return found

    name, url = f"told-{told}", f"sqlite:///{folder}/study.db"
    other = optuna.create_study(study_name=name, storage=url)
    for i in range(told):
        tell(other, -1 + i / 500, float(i))
    sampler = JESSampler(seed=0, search_space=SPACE)
    study = optuna.load_study(study_name=name, storage=url, sampler=sampler)
    monkeypatch.setattr(RDBStorage, "_get_trials", counted)
    study.tell(study.ask(SPACE), 0.0)
    assert sum(fetched) >= told
    fetched.clear()
    for i in range(6):
        tell(other, i / 6, 1.0)
        study.tell(study.ask(SPACE), 0.0)
    monkeypatch.undo()
    return sum(fetched)


def test_an_ask_fetches_what_is_new_however_long_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []

    def suggest(engine: Engine, stream: object, memory: object, data: Data, *_: object) -> Any:
        shown.append(data.told)
        return np.full(engine.cube.dimensions, 0.5), memory, Info()

    with pytest.MonkeyPatch.context() as engine:
        engine.setattr(engine_step, "suggest", suggest)
        few = read_from_the_database(tmp_path, 10, monkeypatch)
        many = read_from_the_database(tmp_path, 50, monkeypatch)
    assert shown[-1] == 50 + 1 + 6 + 5
    assert few == many < 6 * 10


@pytest.mark.parametrize(
    ("distribution", "values"),
    [
        (FloatDistribution(0.0, 0.7, step=0.1), [0.0, 0.3, 0.7]),
        (FloatDistribution(1e-7, 1.0, log=True), [1e-7, 1e-3, 1.0]),
        (IntDistribution(-4, 10, step=2), [-4, 2, 10]),
        (IntDistribution(1, 1000, log=True), [1, 31, 1000]),
        (CategoricalDistribution([None, True, 1.5, "a"]), [None, True, 1.5, "a"]),
    ],
)
def test_values_survive_the_cube(distribution: BaseDistribution, values: list[Any]) -> None:
    domain = Domain({"p": distribution})
    for value in values:
        x = domain.encode({"p": value})
        assert x is not None
        assert domain.decode(x)["p"] == value
    assert domain.encode({"p": 1e9}) is None
    assert domain.encode({}) is None


def test_ordinals_are_modelled_in_their_order() -> None:
    space: dict[str, BaseDistribution] = {"batch": CategoricalDistribution([64, 16, 32])}
    domain = Domain(space, ["batch"])
    assert domain.space == Space({"batch": Ordinal([16, 32, 64])})
    for value in (16, 32, 64):
        x = domain.encode({"batch": value})
        assert x is not None
        assert domain.decode(x) == {"batch": value}
    assert domain.encode({"batch": 48}) is None
    assert domain.choices == {}
    sampler = JESSampler(seed=0, search_space=space, ordinals=["batch"], settings=TINY)
    study = study_with(pickle.loads(pickle.dumps(sampler)))
    study.optimize(lambda trial: trial.suggest_categorical("batch", [64, 16, 32]), n_trials=5)
    assert sampler.recommend(study).params == {"batch": 16}


def test_guesses_come_first() -> None:
    space: dict[str, BaseDistribution] = {
        "lr": FloatDistribution(1e-4, 1, log=True),
        "act": CategoricalDistribution(["a", "b", "c"]),
    }
    told: dict[str, Any] = {"guess": {"lr": 1e-2, "act": "b"}, "sure": {"act": 0.9}}
    sampler = JESSampler(seed=0, search_space=space, settings=TINY, **told)
    study = study_with(pickle.loads(pickle.dumps(sampler)))
    assert study.ask(space).params == {"lr": pytest.approx(1e-2), "act": "b"}


def test_a_belief_is_about_the_parameters_as_the_study_has_them() -> None:
    """As in an optimizer, to the last digit; single values and choices have their names."""
    seen: list[dict[str, Any]] = []

    def near(p: dict[str, Any]) -> float:
        seen.append(p)
        return -20 * abs(p["x"] - 0.8) - 3 * (p["act"] != "b")

    known = {"act": CategoricalDistribution(["a", "b"]), "x": FloatDistribution(0, 1)}
    told: dict[str, Any] = {"settings": TINY, "seed": 0}
    alone = {"one": FloatDistribution(3, 3)}
    sampler = JESSampler(search_space=known | alone, belief=near, **told)
    study = optuna.create_study(sampler=sampler)
    space = Space({"act": Categorical(["a", "b"]), "x": Float(0, 1)})
    opt = Optimizer(space, direction="minimize", belief=near, **told)
    for _ in range(6):
        trial, asked = opt.ask(), study.ask(known | alone)
        assert asked.params == {**trial.params, "one": 3.0}
        value = (asked.params["x"] - 0.3) ** 2
        study.tell(asked, value)
        opt.tell(trial, value)
    assert {"act": "b", "one": 3.0} in [{"act": p["act"], "one": p.get("one")} for p in seen]
    with pytest.raises(TypeError, match="belief must be a function of a dict of parameters"):
        JESSampler(belief=0.5)  # type: ignore[arg-type]


def test_guesses_come_first_where_the_space_is_not_known() -> None:
    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("lr", 1e-4, 1, log=True) + trial.suggest_float("b", 0, 1)

    study = optuna.create_study(sampler=JESSampler(seed=0, guess={"lr": 1e-2}))
    study.optimize(objective, n_trials=2)
    assert study.trials[0].params["lr"] == 1e-2
    assert study.trials[1].params["lr"] != 1e-2
    plain = optuna.create_study(sampler=JESSampler(seed=0))
    plain.optimize(objective, n_trials=1)
    assert study.trials[0].params["b"] == plain.trials[0].params["b"]
    wrong = optuna.create_study(sampler=JESSampler(seed=0, guess={"lr": 3}))
    with pytest.raises(ValueError, match=r"Float's guess must be from 0.0001 to 1.0, not 3"):
        wrong.optimize(objective, n_trials=1)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"guess": {"lr": 3}}, "Float's guess must be from 0.0 to 1.0, not 3"),
        ({"guess": {"mass": 3}}, "guess has 'mass', which search_space has not"),
        ({"sure": {"lr": 0.5}}, "sure has 'lr', for which there is no guess"),
        ({"guess": 3}, "guess must be a dict"),
        ({"guess": {"lr": 0.3}, "sure": {"lr": 3}}, "at most 0.99, not 3"),
    ],
)
def test_what_guesses_cannot_be(told: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        JESSampler(search_space={"lr": FloatDistribution(0, 1)}, **told)


@pytest.mark.parametrize(
    ("ordinals", "message"),
    [
        (
            ["act"],
            "ordinals names 'act', whose choices have no order: Ordinal's levels must be numbers",
        ),
        (["lr"], "ordinals names 'lr', which is not categorical"),
        ("act", r"ordinals must be a list of names, like \['batch'\], not 'act'"),
        (None, "ordinals must be a list of names"),
    ],
)
def test_what_ordinals_cannot_be(ordinals: Any, message: str) -> None:
    space = {"act": CategoricalDistribution(["a", "b"]), "lr": FloatDistribution(0, 1)}
    with pytest.raises((TypeError, ValueError), match=message):
        JESSampler(search_space=space, ordinals=ordinals)


def test_one_legal_value_and_too_fine_a_range_are_left_out_of_the_model(
    seen: list[Data],
) -> None:
    space: dict[str, BaseDistribution] = {
        **SPACE,
        "one": IntDistribution(3, 3),
        "fine": IntDistribution(0, 2**50),
        "large": IntDistribution(2**60, 2**60 + 994, step=7),  # stored as a float, another
    }
    sampler = JESSampler(seed=0, search_space=space)
    study = study_with(sampler)
    trial = study.ask(space)
    assert trial.params["one"] == 3
    assert 0 <= trial.params["fine"] <= 2**50
    study.tell(trial, 1.0)
    study.ask(space)
    assert seen[-1].X.shape == (1, 3)


def test_a_sampler_turns_to_another_study(seen: list[Data]) -> None:
    sampler = JESSampler(seed=0, search_space=SPACE)
    first, second = study_with(sampler), study_with(sampler)
    tell(first, 0.0, 1.0)
    first.ask(SPACE)
    second.ask(SPACE)
    assert [shown.told for shown in seen] == [1, 0]


def test_a_sampler_can_be_pickled(seen: list[Data]) -> None:
    study = study_with(JESSampler(seed=0, search_space=SPACE))
    tell(study, 0.0, 1.0)
    copy = pickle.loads(pickle.dumps(study.sampler))
    study.sampler = copy
    study.ask(SPACE)
    assert seen[-1].told == 1


def test_nothing_to_recommend_is_said() -> None:
    sampler = JESSampler(seed=0)
    study = study_with(sampler)
    with pytest.raises(ValueError, match="no parameter that all completed trials share"):
        sampler.recommend(study)
    sampler = JESSampler(seed=0, search_space=SPACE)
    with pytest.raises(ValueError, match="has a value yet"):
        sampler.belief(study)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed must be a non-negative int"),
        ({"acquisition": "guess"}, "acquisition must be one of"),
        ({"settings": 3}, "settings must be a Settings"),
    ],
)
def test_bad_options_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        JESSampler(**options)


def test_the_library_itself_does_not_import_optuna() -> None:
    script = "import sys, optpair; optpair.Optimizer; print('optuna' in sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "False"


MIXTURE: dict[str, BaseDistribution] = {
    **{name: FloatDistribution(0.0, 1.0) for name in "abc"},
    "kind": CategoricalDistribution(["u", None]),
    "fixed": FloatDistribution(0.25, 0.25),
}


def mixed(trial: optuna.Trial) -> float:
    found = {name: trial.suggest_float(name, 0.0, 1.0) for name in "abc"}
    trial.suggest_categorical("kind", ["u", None])
    trial.suggest_float("fixed", 0.25, 0.25)
    return found["a"] ** 2 - found["b"]


def test_limits_are_kept_from_the_first_trial_on() -> None:
    def few(params: dict[str, Any]) -> bool:
        return bool(params["kind"] == "u" or params["a"] <= params["fixed"])

    sampler = JESSampler(
        seed=0,
        search_space=MIXTURE,
        where=["a + b + c + fixed == 1", few],
        acquisition="logei",
        hyperparameters="map",
        settings=TINY,
    )
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"a": 1.0, "b": 1.0, "c": 1.0, "kind": "u", "fixed": 0.25})
    study.optimize(mixed, n_trials=9)
    for trial in study.trials[1:]:
        assert abs(sum(trial.params[name] for name in "abc") - 0.75) <= 1e-12
        assert few(trial.params)
    assert {trial.params["kind"] for trial in study.trials} == {"u", None}
    found = sampler.recommend(study).params
    assert abs(sum(found[name] for name in "abc") - 0.75) <= 1e-12
    assert few(dict(found))


def test_limits_survive_pickling() -> None:
    sampler = JESSampler(seed=0, search_space=MIXTURE, where=["a + b + c == 1"])
    found = [pickle.loads(pickle.dumps(sampler)), sampler]
    studies = [optuna.create_study(sampler=one) for one in found]
    first, second = (study.ask(MIXTURE).params for study in studies)
    assert first == second
    assert abs(first["a"] + first["b"] + first["c"] - 1) <= 1e-12


@pytest.mark.parametrize(
    ("where", "space", "message"),
    [
        (["a + b == 1"], None, "where needs search_space"),
        (["a + d == 1"], MIXTURE, "unknown name 'd'"),
        (["a + kind == 1"], MIXTURE, "'kind', which has no number"),
        (["a + b == 3"], MIXTURE, "leaves no legal point"),
        (["fixed == 1"], MIXTURE, "'fixed == 1' cannot be met"),
        ([lambda p: False], MIXTURE, "allows none of"),
    ],
)
def test_limits_that_are_refused(where: Any, space: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JESSampler(search_space=space, where=where)
