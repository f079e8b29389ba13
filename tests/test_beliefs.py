"""Beliefs: guesses of where the optimum is, and what it may be worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import Categorical, Float, Int, Objective, Optimizer, Ordinal, Space
from optpair.engine.beliefs import Placed
from optpair.optima.base import KEPT, Optima, flattened
from optpair.problem.beliefs import WIDTH, Beliefs
from optpair.problem.problem import Problem

SPACE = Space(
    {
        "lr": Float(1e-4, 1, log=True, guess=1e-2, sure=0.8),
        "width": Int(1, 9, guess=3),
        "act": Categorical(["relu", "tanh", "gelu"], guess="tanh", sure=0.6),
        "free": Float(0, 1),
    }
)


def beliefs(space: Space = SPACE, **more: Any) -> Beliefs:
    found = Problem(space, {"y": Objective(**more)}).beliefs
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(0, 1, guess=2), "Float's guess must be from 0.0 to 1.0"),
        (lambda: Int(0, 9, guess=2.5), "Int's guess must be from 0 to 9"),
        (lambda: Ordinal([1, 2, 5], guess=3), "Ordinal's guess must be one of"),
        (lambda: Categorical(["a", "b"], guess="c"), "Categorical's guess must be one of"),
        (lambda: Float(0, 1, sure=0.5), "needs a guess to be sure of"),
        (lambda: Float(0, 1, guess=0.5, sure=1), "above 0 and at most 0.99, not 1"),
        (lambda: Float(0, 1, guess=0.5, sure=0), "above 0 and at most 0.99, not 0"),
        (lambda: Objective(guess=(2, 1)), "Objective's guess must be a pair"),
        (lambda: Objective(sure=0.5), "needs a guess to be sure of"),
        (lambda: Objective(guess=(0, 1), sure=2), "at most 0.99, not 2"),
    ],
)
def test_what_cannot_be_believed_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_beliefs_of_a_wrong_type_are_refused() -> None:
    with pytest.raises(TypeError, match="Objective's guess must be a pair"):
        Objective(guess=0.9)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="belief must be a function"):
        Optimizer(SPACE, belief=3)  # type: ignore[arg-type]
    opt = Optimizer(Space({"x": Float(0, 1)}), belief=lambda p: "high")  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="belief must return a number, not 'high'"):
        opt.ask()
    with pytest.raises(ValueError, match="needs one objective"):
        Optimizer(SPACE, outcomes={"a": Objective(guess=(0, 1)), "b": "minimize"})


@pytest.mark.parametrize("guess", [0.5, 0.03])
def test_the_density_is_a_mixture_that_integrates_to_one(guess: float) -> None:
    """(B1) of one parameter, also where the guess is near an end."""
    only = beliefs(Space({"x": Float(0, 1, guess=guess, sure=0.8)}))
    u = (np.arange(4000) + 0.5) / 4000
    density = np.exp(only.log_density(u[:, None]))
    assert np.mean(density) == pytest.approx(1, abs=1e-5)
    assert density[-1] == pytest.approx(0.2, rel=1e-3)
    inside = 1.0 if guess == 0.5 else 0.6179114  # Φ(0.3): the rest is cut off
    peak = 0.2 + 0.8 / (WIDTH * inside * np.sqrt(2 * np.pi))
    assert density.max() == pytest.approx(peak, rel=1e-3)


def test_guesses_hold_or_fail_together() -> None:
    """(B1) by hand; marginally each guess keeps its own chance, here by draws over the cube."""
    b = beliefs()
    at = {"lr": 1e-2, "width": 3, "act": "tanh", "free": 0.1}
    X = np.array([SPACE.encode(at), SPACE.encode(at | {"free": 0.9})])
    one, other = np.exp(b.log_density(X))
    assert one == other
    normal = 1 / (WIDTH * np.sqrt(2 * np.pi))
    wide = normal / 0.9937903  # width = 3 of 9 is 2.5 standard deviations from its end
    (lr, width, act) = (0.8, 0.7, 0.6)
    rest = (1 - width / lr) + width / lr * wide
    whole = normal * rest * ((1 - act / lr) + act / lr * 3)
    assert one == pytest.approx(0.2 + 0.8 * whole, rel=1e-4)
    away = SPACE.encode(at | {"act": "gelu"})[None]
    assert np.exp(b.log_density(away)[0]) == pytest.approx(
        0.2 + 0.8 * normal * rest * (1 - act / lr), rel=1e-4
    )
    surest = SPACE.encode(at | {"lr": 1e-4})[None]  # the others agree, which counts for nothing
    assert np.exp(b.log_density(surest)[0]) == pytest.approx(0.2, rel=0.01)
    assert [g.near(X).all() for g in b.guesses] == [True, True, True]
    assert [bool(g.near(away)[0]) for g in b.guesses] == [True, True, False]


def test_nothing_is_said_of_an_inactive_parameter() -> None:
    space = Space(
        {
            "kernel": Categorical(["linear", "rbf"]),
            "gamma": Float(1e-3, 10, log=True, guess=0.01, sure=0.9, when={"kernel": "rbf"}),
            "kind": Categorical(["a", "b"], guess="a", sure=0.9, when={"kernel": "rbf"}),
        }
    )
    linear, right, wrong = np.exp(
        beliefs(space).log_density(
            np.array(
                [
                    space.encode({"kernel": "linear"}),
                    space.encode({"kernel": "rbf", "gamma": 0.01, "kind": "a"}),
                    space.encode({"kernel": "rbf", "gamma": 10, "kind": "b"}),
                ]
            )
        )
    )
    assert linear == pytest.approx(1)
    assert right > 5
    assert wrong == pytest.approx(0.1, rel=0.01)


def test_six_wrong_guesses_leave_optima_alike() -> None:
    """Of 96 optima all over six dimensions, hardly any is near a point: the others weigh alike."""
    space = Space({f"x{i}": Float(0, 1, guess=0.15) for i in range(6)})
    b, rng = beliefs(space), np.random.default_rng(0)
    stars = rng.uniform(0.3, 1, (12, 8, 6))
    stars[..., 0] = 0.15  # one coordinate agrees
    optima = Optima.pairs(stars, np.zeros((12, 8)))
    weighed = optima.believed(b.log_density(stars.reshape(-1, 6)).reshape(12, 8))
    assert np.ptp(weighed.weights) < 0.05 * weighed.weights.mean()
    stars[0, :3] = 0.15
    weighed = optima.believed(b.log_density(stars.reshape(-1, 6)).reshape(12, 8))
    assert weighed.weights[0, :3].min() > 3 * weighed.weights[1:].max()


def test_the_best_value_is_believed_in_its_own_units() -> None:
    for direction, sign in (("maximize", 1.0), ("minimize", -1.0)):
        b = beliefs(Space({"x": Float(0, 1)}), direction=direction, guess=(0.8, 1.0), sure=0.9)
        f = sign * np.array([0.9, 1.0, 0.8, 5.0, -5.0])
        middle, high, low, *far = b.log_value(f)
        assert high == pytest.approx(low)
        assert middle > high > far[0] == pytest.approx(far[1])
        assert np.exp(far[0]) == pytest.approx(0.1 * WIDTH)


def test_draws_follow_the_belief() -> None:
    """800 draws: shares within 5 standard errors of what is sure, and what is not spreads."""
    b, rng = beliefs(), np.random.default_rng(0)
    X = np.array([SPACE.layout.dimensions * [0.0]] * 800)
    X[:, 0] = rng.uniform(size=800)
    X[:, 2] = np.sqrt(0.5)
    X = b.drawn(rng, X)
    tanh = X[:, 3] > 0
    assert abs(np.mean(tanh) - 0.6) < 5 * np.sqrt(0.24 / 800)
    assert np.mean(np.abs(X[tanh, 0] - 0.5) < 3 * WIDTH) > 0.99  # together
    close = np.mean(np.abs(X[:, 0] - 0.5) < 2 * WIDTH)
    expected = 0.8 * 0.9545 + 0.2 * 0.4
    assert abs(close - expected) < 5 * np.sqrt(expected * (1 - expected) / 800)


def test_weights_keep_a_third_of_the_optima() -> None:
    """(B2)."""
    rng = np.random.default_rng(1)
    mild, wild = 0.1 * rng.standard_normal((4, 8)), 50 * rng.standard_normal((4, 8))
    np.testing.assert_array_equal(flattened(mild), mild)
    optima = Optima.pairs(rng.uniform(size=(4, 8, 2)), rng.uniform(size=(4, 8))).believed(wild)
    weights = optima.weights
    assert weights.sum() == pytest.approx(1)
    assert 1 / (weights**2).sum() == pytest.approx(32 * KEPT, rel=1e-6)
    assert np.argmax(weights) == np.argmax(wild)
    assert np.corrcoef(np.log(weights).ravel(), wild.ravel())[0, 1] == pytest.approx(1)
    counts = np.bincount(optima.evenly(), minlength=32)
    assert np.all(np.abs(counts - 32 * weights.ravel()) <= 1)
    plain = Optima.pairs(optima.star, optima.best)
    np.testing.assert_array_equal(plain.evenly(), np.arange(32))


def test_the_weight_of_a_query_fades_and_has_slopes() -> None:
    b = beliefs()
    X = np.random.default_rng(2).uniform(0.1, 0.9, (5, 6))
    early, late = Placed(b, 4), Placed(b, 40)
    np.testing.assert_allclose(early.log_weight(X), b.log_density(X))
    np.testing.assert_allclose(late.log_weight(X), b.log_density(X) / 4)
    slopes = early.log_slopes(X)[1]
    z, pi = (X[:, 0] - 0.5) / WIDTH, np.exp(b.log_density(X))
    exact = -(pi - 0.2) / pi * z / WIDTH  # the whole of what is believed has the factor of lr
    np.testing.assert_allclose(slopes[:, 0], exact, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(slopes[:, 5], 0)


def loss(p: Any) -> float:
    return float(
        (np.log10(p["lr"]) + 2.1) ** 2 + (p["width"] - 4) ** 2 / 20 + (p["free"] - 0.4) ** 2
    )


@pytest.mark.parametrize("acquisition", ["jes-peak", "logei", "ts"])
def test_the_guess_comes_first_and_a_search_goes_on_exactly(
    acquisition: str, tmp_path: Path
) -> None:
    opt = Optimizer(SPACE, acquisition=acquisition, seed=3)
    first = opt.ask()
    assert {n: first.params[n] for n in ("width", "act")} == {"width": 3, "act": "tanh"}
    assert first.params["lr"] == pytest.approx(1e-2)
    opt.tell(first, loss(first.params))
    for _ in range(6):
        trial = opt.ask()
        assert SPACE.fits(trial.params)
        opt.tell(trial, loss(trial.params))
    opt.save(tmp_path / "run.json")
    loaded = Optimizer.load(tmp_path / "run.json")
    assert loaded.space == opt.space
    assert loaded.ask().params == opt.ask().params


def test_a_right_belief_moves_the_samples_and_data_overrule_a_wrong_one() -> None:
    def near(guess: float | None, told: int) -> float:
        more = {} if guess is None else {"guess": guess, "sure": 0.9}
        opt = Optimizer(Space({"x": Float(0, 1, **more)}), noise=0, seed=0)  # type: ignore[arg-type]
        for x in np.linspace(0.02, 0.98, told):
            opt.tell({"x": float(x)}, float((x - 0.4) ** 2 * (told > 3)))
        return float(np.mean([abs(p["x"] - 0.9) < 0.2 for p in opt.belief().params]))

    assert near(0.9, 3) > near(None, 3) + 0.1  # three values that are alike say little
    assert near(0.9, 12) == near(None, 12) == 0


def test_a_page_and_a_belief_say_what_the_data_make_of_a_guess(tmp_path: Path) -> None:
    opt = Optimizer(SPACE, seed=3)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, loss(trial.params))
    belief = opt.belief()
    guesses = [
        "lr = about 0.01 (80 % sure)",
        "width = about 3 (70 % sure)",
        "act = 'tanh' (60 % sure)",
    ]
    assert list(belief.agree) == guesses
    assert all(0 <= share <= 1 for share in belief.agree.values())
    assert str(belief).count("of the sampled optima agree, by the data alone") == 3
    opt.report(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "Believed: width = about 3 (70 % sure): " in page


def test_a_function_says_where_to_look_and_is_not_saved(tmp_path: Path) -> None:
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    opt = Optimizer(space, belief=lambda p: -50 * (p["x"] + p["y"] - 0.3) ** 2, seed=0)
    first = opt.ask()
    assert abs(first.params["x"] + first.params["y"] - 0.3) < 0.2
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"])
    opt.belief()
    with pytest.raises(TypeError, match="belief that is a function cannot be saved"):
        opt.save(tmp_path / "run.json")


def test_the_guess_of_a_best_value_moves_the_sampled_values() -> None:
    def mean(objective: Objective) -> float:
        opt = Optimizer(Space({"x": Float(0, 1)}), outcomes={"y": objective}, seed=0)
        for x, y in ((0.1, 1.0), (0.5, 1.5), (0.9, 0.7)):
            opt.tell({"x": x}, {"y": y})
        return float(np.mean(opt.belief().values))

    plain = mean(Objective("maximize"))
    assert mean(Objective("maximize", guess=(1.8, 2.2), sure=0.95)) > plain + 0.05
    saved = Objective("maximize", guess=(2.4, 2.8), sure=0.95).to_json()
    assert saved["guess"] == [2.4, 2.8]
