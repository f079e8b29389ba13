"""Every name that `Optimizer(acquisition=…)` takes, with everything a history can hold at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optpair.history import Observations

from optpair import Categorical, Float, Hyperparameters, Int, Optimizer, Settings, Space
from optpair.acquisition import CONTROLS, REGISTRY
from optpair.engine import State
from optpair.optimizer import stream
from shell_cases import TINY

SPACE = Space(
    {
        "x": Float(-1.0, 1.0),
        "l": Float(1e-3, 1.0, log=True),
        "i": Int(1, 64),
        "c": Categorical(["a", "b", "c"]),
    }
)
KNOWN = Hyperparameters([[0.4, 0.7, 0.7, 1.0]], [1.0], [0.01], [0.0])
# One set is one shape, whether fitted or given; the other kernel is another shape anyway.
MODES: dict[str, tuple[Any, str]] = {
    "marginal": ("marginal", "mixed"),
    "map": ("map", "rbf"),
    "given": (KNOWN, "rbf"),
}
NOISE_VAR = 0.04
# These may ask for what is pending: `docs/which-acquisition.md` says why.
REPEAT = {"mes", "mes-paths", "ei", "logei", "pi", "ucb", "ts", "mean"}
SEED = 2  # whose first coin says exploit, and whose second does not


def point(rng: np.random.Generator, i: int) -> dict[str, Any]:
    return {
        "x": rng.uniform(-1, 1),
        "l": 10 ** rng.uniform(-3, 0),
        "i": int(rng.integers(1, 65)),
        "c": "abc"[i % 3],
    }


def optimizer(name: str, mode: str, **settings: Any) -> Optimizer:
    """Five told, one of them with known noise, one failed, one pending."""
    hyperparameters, kernel = MODES[mode]
    given = Settings(**{**TINY, "initial": 5, "kernel": kernel, **settings})
    made = Optimizer(
        SPACE, seed=SEED, acquisition=name, hyperparameters=hyperparameters, settings=given
    )
    made.ask()
    rng = np.random.default_rng(0)
    for i in range(6):
        if i == 3:
            made.tell(point(rng, i), failed=True)
        else:
            made.tell(point(rng, i), rng.normal(), noise_var=NOISE_VAR if i == 1 else None)
    return made


def check(name: str, made: Optimizer) -> None:
    """A legal point, of a finite value, that is not pending already."""
    pending = [trial.params for trial in made.trials if trial.state == "pending"]
    trial = made.ask()
    assert SPACE.check(trial.params) == trial.params
    if made.info.kind == "acquire":
        assert trial.params not in pending or name in REPEAT
        assert made.info.value is not None
        assert np.isfinite(made.info.value)


@pytest.fixture
def screened(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The best candidate, not climbed from, which is most of what there is to compile.

    The numbers of candidates are those of no other test, whose compiled code this would become.
    """

    def best(
        function: Any, cube: Any, X: jax.Array, known: jax.Array | None = None, **_: int
    ) -> tuple[jax.Array, jax.Array]:
        values = function.evaluate(X) if known is None else known
        return X[jnp.argmax(values)], jnp.max(values)

    monkeypatch.setattr("optpair.stages.maximize", best)
    return {"candidates": 48, "starts": 3}


@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("name", list(REGISTRY))
def test_every_name_in_every_mode(name: str, mode: str, screened: dict[str, int]) -> None:
    """Marginalised, fitted and given hyperparameters; one trial for each side of γ's coin."""
    made = optimizer(name, mode, exploit=0.5, **screened)
    kinds = []
    for _ in range(2):
        check(name, made)
        kinds.append(made.info.kind)
    assert sorted(kinds) == ["acquire", "exploit"]


@pytest.mark.parametrize("name", list(REGISTRY))
def test_all_that_a_history_holds_counts(name: str, screened: dict[str, int]) -> None:
    """Known noise, what failed and what is pending: each, changed alone, changes the maximum."""
    made = optimizer(name, "given", exploit=0.0, **screened)
    seen = made._history.observations()
    assert (len(seen.failed), len(seen.pending)) == (1, 1)
    louder = np.where(np.isnan(seen.noise_var), np.nan, 25 * NOISE_VAR)
    others = {
        "noise": replace(seen, noise_var=louder),
        "failed": replace(seen, failed=seen.X[:1]),
        "pending": replace(seen, pending=seen.X[-1:]),
    }
    draws = stream(SEED, 1, 1)

    def value(observations: Observations) -> float:
        _, _, info = made._engine.suggest(draws, State(), observations, 1, draws)
        assert info.value is not None
        return info.value

    plain = value(seen)
    for what, changed in others.items():
        if (name, what) != ("ts", "pending"):  # another ask has another path
            assert abs(value(changed) - plain) > 1e-6, what


def test_climbed() -> None:
    check("ucb", optimizer("ucb", "map", exploit=0.0))


@pytest.mark.parametrize("name", list(CONTROLS))
def test_controls_need_no_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does anything told, failed or pending change what they ask for."""

    def stop(*args: object) -> None:
        raise AssertionError("a model was fitted")

    for stage in ("refresh", "condition", "_success", "_design"):
        monkeypatch.setattr(f"optpair.engine.Engine.{stage}", stop)
    plain = Optimizer(SPACE, seed=0, acquisition=name)
    first = [plain.ask().params for _ in range(8)]
    assert len({params["x"] for params in first}) == 8
    busy = Optimizer(SPACE, seed=0, acquisition=name)
    for i in range(8):
        trial = busy.ask()
        assert trial.params == first[i]
        if i % 3 == 0:
            busy.tell(trial, float(i))
        elif i % 3 == 1:
            busy.tell(trial, failed=True)
    assert Optimizer(SPACE, seed=1, acquisition=name).ask().params != first[0]
