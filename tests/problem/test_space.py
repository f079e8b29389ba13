"""Spaces: names, order, and errors that help."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from test_parameters import CHOICES, INTS, LINES, LOGS, MIXED, STEPS

from optpair.problem.space import Categorical, Float, Int, Space


def test_check_returns_plain_values_in_the_spaces_order() -> None:
    given = {"act": np.str_("b"), "width": np.int32(16), "lr": np.float32(0.5)}
    clean = MIXED.check(given)
    assert clean == {"lr": 0.5, "width": 16, "act": "b"}
    assert list(clean) == ["lr", "width", "act"]
    assert [type(v) for v in clean.values()] == [float, int, str]
    assert list(given) == ["act", "width", "lr"]
    assert type(MIXED.check({"lr": 1, "width": 16.0, "act": "a"})["lr"]) is float
    assert type(MIXED.check({"lr": 1, "width": np.array(16.0), "act": "a"})["width"]) is int


def test_all_wrong_names_are_listed_at_once() -> None:
    with pytest.raises(ValueError, match="do not fit the space") as caught:
        MIXED.check({"LR": 0.1, "widht": 16, "zebra": 1})
    assert str(caught.value) == (
        "params do not fit the space: unknown 'LR' (did you mean 'lr'?), "
        "unknown 'widht' (did you mean 'width'?), unknown 'zebra', missing 'lr', "
        "missing 'width', missing 'act'. The space has 'lr', 'width', 'act'"
    )
    with pytest.raises(TypeError, match="params must be a mapping"):
        MIXED.check([0.1, 16, "a"])  # type: ignore[arg-type]


@pytest.mark.parametrize("x", [[0.5] * 3, [0.5] * 5, [[0.5] * 4], [0.5, math.nan, 0.0, 1.0]])
def test_decode_refuses_what_is_not_a_point(x: Any) -> None:
    with pytest.raises(ValueError, match="x must be 4 numbers"):
        MIXED.decode(x)


def test_a_space_is_a_read_only_mapping() -> None:
    parameters: dict[str, Any] = {"b": Int(0, 3), "a": Float(0, 1)}
    space = Space(parameters)
    parameters["c"] = Int(0, 3)
    assert space.names == tuple(space) == ("b", "a")
    assert len(space) == 2
    assert space["b"] == Int(0, 3)
    assert "c" not in space
    assert Space(space) == space
    assert eval(repr(space)) == space
    with pytest.raises(TypeError):
        space["b"] = Int(0, 4)  # type: ignore[index]
    with pytest.raises(AttributeError):
        space["b"].low = 4  # type: ignore[misc]


def test_equality_is_exact() -> None:
    one = Space({"a": Int(0, 3), "b": Categorical([1, 2])})
    assert one == Space({"a": Int(0, 3), "b": Categorical((1, 2))})
    assert one != Space({"b": Categorical([1, 2]), "a": Int(0, 3)})  # the order makes the cube
    assert one != Space({"a": Int(0, 3), "b": Categorical([True, 2])})
    assert one != Space({"a": Float(0, 3), "b": Categorical([1, 2])})
    assert one != {"a": Int(0, 3), "b": Categorical([1, 2])}
    assert hash(Categorical([1, 2])) == hash(Categorical((1, 2)))


def test_json_round_trip() -> None:
    parameters: dict[str, Any] = {
        str(i): p for i, p in enumerate([*LINES, *LOGS, *STEPS, *INTS, CHOICES])
    }
    space = Space(parameters)
    back = Space.from_json(json.loads(json.dumps(space.to_json(), allow_nan=False)))
    assert back == space
    assert back.names == space.names
    assert MIXED.to_json() == {
        "parameters": [
            {"name": "lr", "kind": "Float", "low": 1e-5, "high": 1.0, "log": True, "step": None},
            {"name": "width", "kind": "Int", "low": 8, "high": 64, "log": False, "step": 8},
            {"name": "act", "kind": "Categorical", "choices": ["a", "b"]},
        ]
    }


def damaged() -> list[Any]:
    whole = MIXED.to_json()["parameters"]
    without = [[{k: v for k, v in p.items() if k != lost} for p in whole] for lost in whole[0]]
    return [
        None,
        [],
        {},
        {"parameters": None},
        {"parameters": []},
        {"parameters": ["lr"]},
        {"parameters": [*whole, whole[0]]},
        {"parameters": [whole[0] | {"kind": "Complex"}]},
        {"parameters": [whole[0] | {"kind": ["Float"]}]},
        {"parameters": [whole[0] | {"name": 3}]},
        {"parameters": [whole[0] | {"low": 2.0}]},
        {"parameters": [whole[0] | {"low": "0"}]},
        {"parameters": [whole[0] | {"colour": "red"}]},
        *({"parameters": entries} for entries in without),
    ]


@pytest.mark.parametrize("data", damaged())
def test_damaged_json_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="not a space that optpair saved, or damaged"):
        Space.from_json(data)
