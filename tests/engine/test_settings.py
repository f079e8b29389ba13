"""Settings: checked when built, plain inside."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from optpair.engine.settings import Settings
from optpair.gp.kernels import Matern52

COUNTS = [f.name for f in dataclasses.fields(Settings) if "int" in str(f.type)]


def test_there_are_counts() -> None:
    assert "sets" in COUNTS
    assert "initial" in COUNTS


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, np.int64(0)])
def test_counts_start_at_one(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*an int of at least [14], not "):
        Settings(**{name: value})


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [1.0, "3", True, math.nan, [3]])
def test_counts_are_ints(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must be .*an int of at least [14], not "):
        Settings(**{name: value})


def test_paths_are_screened_at_four_points_at_least() -> None:
    assert Settings(path_candidates=4).path_candidates == 4
    with pytest.raises(ValueError, match="path_candidates must be None or an int of at least 4"):
        Settings(path_candidates=3)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, np.float32(2)])
def test_exploit_is_a_probability(value: float) -> None:
    with pytest.raises(ValueError, match="exploit must be a probability from 0 to 1"):
        Settings(exploit=value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("exploit", "0.1"), ("exploit", True), ("warp", 1), ("prior", None), ("kernel", 1)],
)
def test_types(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must be"):
        Settings(**{name: value})


def test_kernels_are_listed() -> None:
    with pytest.raises(
        ValueError,
        match="kernel must be one of rbf, matern52, mixed, additive, or a Kernel, not 'matern'",
    ):
        Settings(kernel="matern")  # type: ignore[arg-type]


def test_numpy_numbers_become_plain() -> None:
    settings = Settings(sets=np.int32(3), exploit=np.float32(0.5), initial=np.int64(2))
    assert settings == Settings(sets=3, exploit=0.5, initial=2)
    assert [type(v) for v in (settings.sets, settings.exploit, settings.initial)] == [
        int,
        float,
        int,
    ]


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().sets = 3  # type: ignore[misc]


def test_kernels_by_name_or_as_objects() -> None:
    assert Settings(kernel="matern52") == Settings(kernel=Matern52()) == Settings()
    assert Settings(kernel="rbf") != Settings()
