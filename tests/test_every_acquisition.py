"""Every name that `Optimizer(acquisition=…)` takes, with everything a history can hold at once."""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np
import pytest

from optpair import Categorical, Float, Hyperparameters, Int, Optimizer, Settings, Space
from optpair.acquisition import CONTROLS, NAMES
from shell_cases import TINY

SPACE = Space({"x": Float(-1.0, 1.0), "i": Int(1, 64, log=True), "c": Categorical(["a", "b", "c"])})
KNOWN = Hyperparameters([[0.4, 0.7, 1.0]], [1.0], [0.01], [0.0])
MODES: tuple[Any, ...] = ((KNOWN, "rbf"), ("map", "matern52"), ("marginal", "matern52"))
CASES = [(name, *MODES[i % 3]) for i, name in enumerate(NAMES)]


def optimizer(name: str, mode: Any, **settings: Any) -> Optimizer:
    """Five told, one of them with known noise, one failed, one pending."""
    given = Settings(**{**TINY, "initial": 5, "exploit": 0.0, **settings})
    made = Optimizer(SPACE, seed=0, acquisition=name, hyperparameters=mode, settings=given)
    made.ask()
    rng = np.random.default_rng(0)
    for i in range(6):
        params = {"x": rng.uniform(-1, 1), "i": int(rng.integers(1, 65)), "c": "abc"[i % 3]}
        if i == 3:
            made.tell(params, failed=True)
        else:
            made.tell(params, rng.normal(), noise_var=0.04 if i == 1 else None)
    return made


def check(name: str, made: Optimizer) -> None:
    trial = made.ask()
    assert SPACE.check(trial.params) == trial.params
    assert trial.params != made.trials[0].params  # what is pending
    if name in CONTROLS:
        assert made.info.kind == "design"
    else:
        assert made.info.kind == "acquire"
        assert made.info.value is not None
        assert np.isfinite(made.info.value)


@pytest.mark.parametrize(("name", "mode", "kernel"), CASES, ids=[case[0] for case in CASES])
def test_every_name(name: str, mode: Any, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Screened and not climbed, which is most of what there is to compile.

    The numbers of candidates are those of no other test, whose compiled code this would become.
    """

    def stay(function: Any, cube: Any, X: jax.Array, steps: int) -> tuple[jax.Array, jax.Array]:
        return X, function(X)

    # By its place in the table: the package has a function of the module's name.
    monkeypatch.setattr(sys.modules["optpair.maximize"], "climb", stay)
    check(name, optimizer(name, mode, kernel=kernel, candidates=48, starts=3))


def test_climbed() -> None:
    check("ucb", optimizer("ucb", "map"))


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
