"""Ask and tell: every odd history gets an answer or a clear error."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import (
    Belief,
    Categorical,
    Float,
    Hyperparameters,
    Int,
    Optimizer,
    Recommendation,
    Settings,
    Space,
    acquisition,
    gp,
)
from optpair.engine import step
from optpair.engine.session import DESIGN, SUGGEST
from optpair.trials.data import Data
from shell_cases import KNOWN, SPACE, TINY, cheap, filled, jes, objective, point, python

LEVELS = Space({"n": Int(0, 3), "c": Categorical(["a", "b", "c", "d"])})
EXPLOIT = Settings(**TINY, exploit=1.0)
INFERRED: dict[str, Any] = {"acquisition": "jes-peak", "hyperparameters": "map"}


def sound(optimizer: Optimizer) -> tuple[Recommendation, Belief]:
    """Everything can be asked of it, and every number is finite."""
    for _ in range(2):
        SPACE.check(optimizer.ask().params)
    answer, belief = optimizer.recommend(), optimizer.belief()
    SPACE.check(answer.params)
    numbers = [answer.mean, answer.std, *answer.interval, belief.next_gain, belief.gap]
    assert all(type(number) is float for number in numbers)
    assert np.isfinite(numbers).all()
    assert answer.interval[0] <= answer.mean <= answer.interval[1]
    assert min(answer.std, belief.next_gain, belief.gap) >= 0
    assert belief.values.dtype == np.float64
    assert belief.values.shape == (len(belief.params),)
    assert len(belief.params) in (2, 6)
    assert np.isfinite(belief.values).all()
    assert belief.recommendation == answer  # one question, one answer
    assert optimizer.belief().values.tolist() == belief.values.tolist()
    return answer, belief


def test_nothing_told() -> None:
    optimizer = jes()
    for question in (optimizer.recommend, optimizer.belief):
        with pytest.raises(ValueError, match="no trial has a value yet; tell at least one value"):
            question()
    optimizer.ask()
    with pytest.raises(ValueError, match="no trial has a value yet"):
        optimizer.recommend()


@pytest.mark.parametrize(
    "values",
    [
        [1.0],
        [1.0, 2.0],
        [5.0] * 5,
        [0.0] * 5,
        [1e300, -1e300, 5e299, 0.0, 2e299],
        [1e-300, 3e-300, 2e-300, 0.0, 1e-301],
        [1e300, 1e-300, 1.0, -2.0, 3.0],
        [5e-324, 0.0, 0.0, 5e-324, 0.0],
    ],
    ids=str,
)
def test_values_of_any_size(values: list[float]) -> None:
    answer, _ = sound(filled(cheap(**INFERRED), values))
    assert answer.observed.value == min(values)
    better = sorted(values)[: len(values) // 2 + 1]
    size = max(map(abs, better))  # one absurd value does not count
    if len(values) > 2 and size > 1e-307:
        assert 1e-3 < answer.std / size < 10  # nothing was lost on the way back


@pytest.mark.parametrize("noise_var", [0.0, 1e-300, 1e300])
@pytest.mark.parametrize("values", [[1.0], [1e300, 1e-300, 1.0, -2.0, 3.0]], ids=str)
def test_noise_of_any_size(values: list[float], noise_var: float) -> None:
    sound(filled(cheap(**INFERRED), values, noise_var=noise_var))


@pytest.mark.parametrize("noise", [0, 0.3])
def test_known_noise_is_as_if_told_with_every_trial(noise: float) -> None:
    values = [1.0, 0.5, 2.0, 0.2, 0.7]
    once = filled(cheap(**INFERRED, noise=noise), values)
    each = filled(cheap(**INFERRED), values, noise_var=noise**2)
    assert once.ask().params == each.ask().params
    assert once.recommend().interval == each.recommend().interval
    assert once.recommend().interval != filled(cheap(**INFERRED), values).recommend().interval


def test_known_noise_is_saved(tmp_path: Path) -> None:
    optimizer = filled(cheap(**INFERRED, noise=0), [1.0, 0.5, 2.0, 0.2, 0.7])
    optimizer.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.noise == 0.0
    assert again.ask().params == optimizer.ask().params
    assert again.recommend() == optimizer.recommend()


def test_the_method_itself_with_values_of_any_size() -> None:
    sound(filled(jes(), [1e300, 1e-300, 1.0, -2.0, 3.0]))


@pytest.mark.parametrize("noise_var", [None, 0.0])
def test_two_hundred_copies_of_one_point(noise_var: float | None) -> None:
    optimizer = cheap(settings=EXPLOIT)
    for i in range(200):
        optimizer.tell({"x": 0.5, "c": "a"}, float(i % 2), noise_var=noise_var)
    SPACE.check(optimizer.ask().params)
    answer = optimizer.recommend()
    assert all(map(math.isfinite, [answer.mean, answer.std, *answer.interval]))
    assert optimizer.recommend() == answer


def test_every_trial_failed() -> None:
    optimizer = cheap()
    for _ in range(12):
        optimizer.tell(optimizer.ask(), failed=True)
    SPACE.check(optimizer.ask().params)
    with pytest.raises(ValueError, match="no trial has a value yet: all 12 that ended have failed"):
        optimizer.recommend()


def test_points_are_not_repeated_after_a_failure() -> None:
    optimizer = cheap()
    optimizer.tell(optimizer.ask(), failed=True)
    points = [optimizer.ask().params["x"] for _ in range(8)]
    assert len(set(points)) == 8


@pytest.mark.parametrize("space", [Space({"x": Float(0, 1), "y": Float(0, 1)}), LEVELS], ids=str)
def test_design_points_differ_that_nobody_has_seen(space: Space) -> None:
    """Workers with one seed see the same failure, or not, but not what the others were given."""
    optimizer = cheap(space=space)
    session, nothing = optimizer._session, optimizer._history.data()
    middle = space.decode(np.full(space.layout.dimensions, 0.4))
    failure = replace(nothing, failed=space.encode(middle)[None])

    def given(seen: Data, asked: int) -> tuple[float, ...]:
        own, design = session.stream(SUGGEST, asked), session.stream(DESIGN, 0)
        return tuple(step.suggest(session.engine, own, {}, seen, asked, design)[0].tolist())

    assert len({given(failure, asked) for asked in range(1, 9)}) == 8
    if space is not LEVELS:
        far = {given(failure, asked) for asked in (1, 2, 9, 100, 1000)}
        assert len(far | {given(nothing, asked) for asked in range(1, 9)}) == 13


def test_design_points_keep_away_from_failures() -> None:
    """The half where all trials fail is left: of sixteen points some are in the other."""
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    optimizer = cheap(space=space, hyperparameters="map", settings=Settings(**TINY, initial=30))
    for x, y in [(0.6, 0.2), (0.7, 0.8), (0.9, 0.5), (1.0, 0.0), (1.0, 1.0), (0.6, 0.5)]:
        optimizer.tell({"x": x, "y": y}, failed=True)
    for x, y in [(0.1, 0.2), (0.4, 0.8), (0.2, 0.5), (0.4, 0.1), (0.0, 1.0), (0.4, 0.5)]:
        optimizer.tell({"x": x, "y": y}, 1.0)
    assert all(optimizer.ask().params["x"] < 0.5 for _ in range(6))


def test_most_trials_failed() -> None:
    optimizer = cheap(settings=EXPLOIT)
    for i in range(10):
        trial = optimizer.ask()
        if trial.params["x"] < 0.25 and i > 2:
            optimizer.tell(trial, failed=True)
        else:
            optimizer.tell(trial, float(i))
    assert any(trial.state == "failed" for trial in optimizer.trials)
    SPACE.check(optimizer.recommend().params)


def test_many_asked_before_any_told() -> None:
    optimizer = cheap()
    trials = [optimizer.ask() for _ in range(10)]
    assert len({trial.params["x"] for trial in trials}) == 10
    for trial in reversed(trials):
        optimizer.tell(trial.id, objective(dict(trial.params)))
    assert [t.id for t in optimizer.trials] == list(range(10))
    assert {t.state for t in optimizer.trials} == {"told"}


def test_pending_points_are_accounted_for() -> None:
    optimizer = cheap(settings=Settings(**TINY, exploit=0.0))
    filled(optimizer, [objective(point(i)) for i in range(6)])
    trials = [optimizer.ask() for _ in range(5)]
    # Were they ignored, all would be one point; under noise, one may come twice.
    assert len({(round(t.params["x"], 3), t.params["c"]) for t in trials}) >= 4


def test_only_one_of_the_pending_points_exploits() -> None:
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    optimizer = cheap(space=space, settings=Settings(**TINY | {"steps": 8}, exploit=1.0))
    for x, y in np.random.default_rng(0).uniform(size=(8, 2)):
        optimizer.tell({"x": x, "y": y}, (x - 0.3) ** 2 + (y - 0.6) ** 2)
    kinds = []
    for _ in range(6):  # climbs of the same mean end a little apart
        optimizer.ask()
        kinds.append(optimizer.info.kind)
    assert kinds == ["exploit"] + ["acquire"] * 5


def test_points_of_the_users_own_come_first() -> None:
    optimizer = filled(cheap(), [objective(point(i)) for i in range(6)])
    trial = optimizer.ask()
    assert trial.id == 6
    assert optimizer.info.kind != "design"  # enough was told


@pytest.mark.parametrize(
    "space",
    [
        Space({"a": Categorical(["x", "y", "z"]), "b": Categorical([True, None])}),
        Space({"m": Int(1, 3), "n": Int(1, 1000, log=True)}),
    ],
    ids=["categories", "ints"],
)
def test_spaces_without_a_float(space: Space) -> None:
    optimizer = cheap(space=space, settings=EXPLOIT)
    for i in range(9):  # there are six points in the first: some come twice
        trial = optimizer.ask()
        assert space.check(trial.params) == trial.params
        optimizer.tell(trial, float(i % 4))
    space.check(optimizer.recommend().params)


def test_other_trials_are_refused_and_nothing_changes() -> None:
    optimizer, other = cheap(), cheap(seed=1)
    trial, foreign = optimizer.ask(), other.ask()
    gone = optimizer.ask()
    optimizer.cancel(gone)
    before = json.dumps(optimizer._to_json())
    with pytest.raises(ValueError, match="is of another optimizer"):
        optimizer.tell(foreign, 1.0)
    with pytest.raises(ValueError, match="never asked, or cancelled"):
        optimizer.tell(gone, 1.0)
    with pytest.raises(ValueError, match="never asked, or cancelled"):
        optimizer.cancel(gone)
    with pytest.raises(TypeError, match="value must be one real number"):
        optimizer.tell(trial, [[1.0]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="x must be from"):
        optimizer.tell({"x": 2.0, "c": "a"}, 1.0)
    assert json.dumps(optimizer._to_json()) == before
    optimizer.tell(trial, np.float32(0.5))
    with pytest.raises(ValueError, match="already told"):
        optimizer.tell(trial, 0.5)


def test_an_ask_that_breaks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = cheap()
    expected = cheap().ask()

    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(step, "design_point", stop)
        with pytest.raises(KeyboardInterrupt):
            optimizer.ask()
    assert optimizer.trials == ()
    assert optimizer.ask() == expected


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        ("seed", "0", TypeError),
        ("seed", -1, ValueError),
        ("seed", 1.0, TypeError),
        ("settings", {"sets": 3}, TypeError),
        ("settings", Settings, TypeError),
        ("acquisition", "best", ValueError),
        ("acquisition", 3, TypeError),
        ("acquisition", ["jes"], TypeError),
        ("hyperparameters", "mcmc", ValueError),
        ("hyperparameters", None, ValueError),
        ("hyperparameters", np.ones(3), ValueError),
        ("hyperparameters", {"lengthscale": 1}, ValueError),
        ("direction", "max", ValueError),
    ],
)
def test_options(option: str, value: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"{option} must be"):
        Optimizer(SPACE, **{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "meant"), [("EI", "ei"), ("jess", "jes"), ("log-ei", "logei")])
def test_a_name_that_is_nearly_one(given: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean {meant!r}"):
        Optimizer(SPACE, acquisition=given)


def test_spaces() -> None:
    for space in (None, {"x": Float(0, 1)}, "x"):
        with pytest.raises(TypeError, match="space must be a Space"):
            Optimizer(space)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [np.asarray, lambda v: v], ids=["arrays", "lists"])
def test_known_hyperparameters_must_fit_the_space(make: Any) -> None:
    ones = make([1.0])
    with pytest.raises(ValueError, match="3 length scales per set, but the space has 2 parameters"):
        Optimizer(SPACE, hyperparameters=Hyperparameters(make([[1.0, 1, 1]]), ones, ones, ones))
    with pytest.raises(ValueError, match="shape"):
        Optimizer(SPACE, hyperparameters=Hyperparameters(make([1.0, 1]), ones, ones, ones))
    with pytest.raises(ValueError, match="shape"):
        Optimizer(
            SPACE, hyperparameters=Hyperparameters(make([[1.0, 1]]), ones, make([1.0, 1.0]), ones)
        )
    with pytest.raises(ValueError, match="positive"):
        Optimizer(
            SPACE, hyperparameters=Hyperparameters(make([[1.0, 1]]), make([-1.0]), ones, ones)
        )


def test_known_hyperparameters_are_copied() -> None:
    lengths = np.array([[0.4, 1.0]])
    given = Hyperparameters(lengths, KNOWN.outputscale, KNOWN.noise, KNOWN.mean)
    optimizer = cheap(hyperparameters=given)
    lengths[:] = -1.0
    assert optimizer.configuration["hyperparameters"] == cheap().configuration["hyperparameters"]


@pytest.mark.parametrize("seed", [0, 2**200, np.int64(3)])
def test_seeds(seed: int) -> None:
    first, second = cheap(seed).ask(), cheap(seed).ask()
    assert first == second
    assert Optimizer(SPACE, seed=seed).seed == int(seed)
    assert Optimizer(SPACE).seed != Optimizer(SPACE).seed


def test_questions_do_not_change_what_is_asked() -> None:
    plain, curious = (filled(cheap(**INFERRED), [1.0, 0.5, 2.0]) for _ in range(2))
    for i in range(3):
        curious.recommend()
        curious.belief()
        left, right = plain.ask(), curious.ask()
        assert left == right
        for optimizer in (plain, curious):
            optimizer.tell(i + 3, 0.1 * i)
    assert plain.recommend() == curious.recommend()


def test_threads_share_one_optimizer() -> None:
    optimizer = cheap(settings=Settings(**{**TINY, "initial": 1000}))
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for i in range(25):
                trial = optimizer.ask()
                if i % 5 == 4:
                    optimizer.cancel(trial)
                else:
                    optimizer.tell(trial, objective(dict(trial.params)))
                assert trial.id not in {t.id for t in optimizer.trials if t.state == "pending"}
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(optimizer.trials) == 80
    assert len({trial.params["x"] for trial in optimizer.trials}) == 80  # no suggestion twice
    assert all(trial.value == objective(dict(trial.params)) for trial in optimizer.trials)


def test_copies_and_pickles_continue() -> None:
    optimizer = filled(jes(), [1.0, 0.5, 2.0])
    optimizer.ask()
    copies = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    expected = optimizer.ask()
    assert [made.ask() for made in copies] == [expected, expected]


def test_what_a_person_reads() -> None:
    optimizer = filled(cheap(), [1.0, 0.5, 2.0])
    optimizer.ask()
    text = repr(optimizer)
    assert text.startswith("<Optimizer: minimize over 2 parameters; ")
    assert text.endswith("trials: 1 pending, 3 told, 0 failed; seed 0>")
    recommendation = optimizer.recommend()
    first, second, third = str(recommendation).splitlines()
    assert first == f"recommended    x = {recommendation.params['x']:.5g}, c = 'b'"
    assert second.startswith(f"predicted      {recommendation.mean:.5g}, 95 % interval ")
    assert third == f"best observed  0.5 in trial 1: x = {point(1)['x']:.5g}, c = 'b'"


def test_what_a_person_reads_of_a_belief() -> None:
    belief = filled(jes(), [1.0, 0.5, 2.0]).belief()
    lines = str(belief).splitlines()
    assert len(lines) == 5
    assert lines[3].startswith("optimum ")
    assert lines[4].endswith(f"{belief.next_gain:.3g} nats")


@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e7])
def test_known_is_what_it_says(unit: float) -> None:
    """One value, known hyperparameters: the posterior in closed form, in the user's units."""
    known = Hyperparameters(
        KNOWN.lengthscale, KNOWN.outputscale * unit**2, KNOWN.noise * unit**2, KNOWN.mean * unit
    )
    optimizer = cheap(direction="maximize", hyperparameters=known)
    optimizer.tell({"x": 0.0, "c": "a"}, 2.0 * unit, noise_var=0.25 * unit**2)
    answer = optimizer.recommend()
    assert answer.mean == pytest.approx(unit * 2.0 / 1.25, rel=1e-6)
    assert answer.std == pytest.approx(unit * math.sqrt(1 - 1 / 1.25), rel=1e-6)


def test_the_best_tried_is_the_best_predicted_trial() -> None:
    space = Space({"x": Float(-1.0, 1.0)})
    known = Hyperparameters(np.array([[0.4]]), np.array([1.0]), np.array([0.01]), np.array([0.0]))
    optimizer = cheap(space=space, hyperparameters=known)
    given = [
        (-0.9, 0.5, 0.01),
        (-0.3, -3.0, 100.0),
        (0.123456789123456789, -0.4, 0.01),
        (0.8, 0.2, 0.02),
    ]
    for x, value, noise_var in given:
        optimizer.tell({"x": x}, value, noise_var=noise_var)
    optimizer.tell({"x": -0.5}, failed=True)
    best = optimizer.recommend(tried=True)
    X = np.array([[(x + 1) / 2] for x, _, _ in given])
    y, noise_var = -np.array([row[1] for row in given]), np.array([row[2] for row in given])
    posterior = gp.condition(known, X, y, noise_var=noise_var)
    mean, variance = (moment[0] for moment in posterior.predict(X))
    assert mean.argmax() == 2  # the luckiest is the second
    assert best.params == optimizer.trials[2].params  # to the last digit
    assert best.mean == pytest.approx(-mean[2])
    assert best.std == pytest.approx(variance[2] ** 0.5)
    assert best.observed == optimizer.trials[1]
    assert optimizer.recommend().mean <= best.mean + 1e-9
    optimizer.revise(1, given[1][1], noise_var=1e-4)  # it was no luck after all
    assert optimizer.recommend(tried=True).params == optimizer.trials[1].params


def test_a_corrected_value_leaves_no_trace() -> None:
    """A slip of the pen, found after the chains have followed it."""
    values = [objective(point(i)) for i in range(6)]
    slipped = filled(jes(), [*values[:2], 1e3 * values[2], *values[3:]])
    slipped.cancel(slipped.ask())
    wrong = slipped.recommend()
    slipped.revise(2, values[2])
    right = filled(jes(), values)
    assert slipped.trials == right.trials
    assert slipped.recommend() == right.recommend() != wrong


@pytest.mark.parametrize(("direction", "mean"), [("minimize", 3.0), ("maximize", -7.0)])
def test_known_hyperparameters_are_in_the_users_units(direction: Any, mean: float) -> None:
    """Many length scales from the only value, the mean is what the user said it is."""
    known = Hyperparameters([[0.01, 0.01]], [4.0], [0.01], [mean])
    optimizer = cheap(direction=direction, hyperparameters=known)
    optimizer.tell({"x": -1.0, "c": "a"}, 100.0)
    far = optimizer.predict([{"x": 1.0, "c": "b"}, {"x": 0.0, "c": "a"}])
    assert far.mean == pytest.approx([mean, mean], abs=1e-6)
    assert far.std == pytest.approx([2.0, 2.0], rel=1e-6)
    loaded = pickle.loads(pickle.dumps(optimizer))
    assert loaded.predict([{"x": 1.0, "c": "b"}]).mean[0] == far.mean[0]


def bound(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return mean + 2 * np.sqrt(variance)


def of_context(context: acquisition.Context) -> acquisition.Acquisition:
    return acquisition.REGISTRY["jes"].build(context)


@pytest.mark.parametrize("function", [bound, of_context])
def test_an_acquisition_function_of_ones_own(tmp_path: Path, function: Any) -> None:
    optimizer = filled(cheap(acquisition=function), [1.0, 0.5, 2.0, 0.7])
    SPACE.check(optimizer.ask().params)
    assert optimizer.info.kind == "acquire"
    with pytest.raises(TypeError, match="of your own cannot be saved: register it under a name"):
        optimizer.save(tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="cannot be saved"):
        pickle.dumps(optimizer)


def test_ones_own_function_is_what_is_maximised() -> None:
    """At the point it chose, it is at least what it is anywhere else."""
    optimizer = filled(cheap(acquisition=bound), [1.0, 0.5, 2.0, 0.7])
    posterior = optimizer.model().objective.posterior
    x = SPACE.encode(optimizer.ask().params)
    U = np.random.default_rng(0).uniform(size=(500, 2))
    everywhere = optimizer._session.engine.cube.spread(U)
    there, elsewhere = (
        bound(*(moment.mean(0) for moment in posterior.predict(X))) for X in (x[None], everywhere)
    )
    assert there[0] >= elsewhere.max() - 1e-3


@dataclass(frozen=True)
class Mine(gp.kernels.Matern52):
    """A kernel that has no name."""


def test_a_kernel_of_ones_own(tmp_path: Path) -> None:
    settings = Settings(**TINY, kernel=Mine())
    optimizer = filled(cheap(settings=settings), [1.0, 0.5, 2.0, 0.7])
    plain = filled(cheap(), [1.0, 0.5, 2.0, 0.7])
    assert optimizer.ask() == plain.ask()
    with pytest.raises(TypeError, match=r"the kernel Mine\(.*cannot be saved: it has no name"):
        optimizer.save(tmp_path / "run.json")


def test_the_model_is_what_answers_come_from() -> None:
    optimizer = filled(cheap(), [1.0, 0.5, 2.0, 0.7])
    model = optimizer.model()
    X = np.stack([SPACE.encode(point(i)) for i in (7, 8)])
    mean, variance = model.objective.posterior.predict(X)
    got = optimizer.predict([point(7), point(8)])
    assert got.mean == pytest.approx(-mean[0], rel=1e-9)
    assert got.std == pytest.approx(np.sqrt(variance[0]), rel=1e-9)
    with pytest.raises(ValueError, match="no trial has a value yet"):
        cheap().model()


def test_a_host_that_makes_overflow_an_error(tmp_path: Path) -> None:
    values = [1e300, 1e-300, 1.0, -2.0, 3.0]
    with np.errstate(all="raise"):
        optimizer = filled(cheap(**INFERRED), values)
        optimizer.tell(optimizer.ask(), failed=True)
        optimizer.ask()
        optimizer.recommend()
        optimizer.recommend(tried=True)
        str(optimizer.belief())
        optimizer.predict([point(7)])
        optimizer.revise(0, 1.0)
        optimizer.report(tmp_path / "page.html")
        assert set(np.geterr().values()) == {"raise"}


MANY = """
import resource
from optpair import Float, Int, Optimizer, Space
from shell_cases import CHEAP

def some(first, count):
    for i in range(first, first + count):
        optimizer = Optimizer(Space({"x": Float(0, 1 + i), "n": Int(1, 5 + i)}), seed=i, **CHEAP)
        for k in range(3):
            optimizer.tell({"x": 0.3 * k, "n": 1 + k}, float(k))
        optimizer.ask()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before = some(0, 40)
print((some(100, 200) - before) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has other units")
def test_many_spaces_leave_memory_flat() -> None:
    done = python(MANY)
    assert done.stderr == ""
    assert float(done.stdout) < 4.0  # megabytes


def test_a_belief_may_be_about_what_was_tried(tmp_path: Path) -> None:
    optimizer = filled(cheap(), [0.3, 0.7, 0.1, 0.9, 0.4])
    tried = optimizer.recommend(tried=True)
    belief = optimizer.belief(tried=True)
    assert belief.recommendation.params == tried.params in [t.params for t in optimizer.trials]
    assert belief.recommendation.mean == tried.mean
    assert optimizer.report(tmp_path / "a.html", tried=True)["recommendation"]["trial"] is not None
    assert optimizer.belief().recommendation.params != tried.params
    assert optimizer.report(tmp_path / "b.html")["recommendation"]["trial"] is None
    np.testing.assert_array_equal(belief.values, optimizer.belief().values)  # of the whole space
