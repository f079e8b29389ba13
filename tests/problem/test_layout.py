"""Layouts: which columns of the cube are whose."""

from __future__ import annotations

import numpy as np
import pytest

from optpair.problem.layout import HOT, Layout
from optpair.problem.space import Categorical, Float, Int, Space

MIXED = Space(
    {
        "lr": Float(1e-5, 1, log=True),
        "c": Categorical(["a", "b", "c"]),
        "width": Int(8, 64, step=8),
        "n": Int(4, 100, log=True),
        "p": Float(0, 1, step=0.25),
    }
).layout


def test_columns_of_a_space() -> None:
    assert MIXED.owner == (0, 1, 1, 1, 2, 3, 4)
    assert MIXED.stepped == (4, 5, 6)
    assert MIXED.groups == ((1, 4),)
    assert (MIXED.dimensions, MIXED.parameters) == (7, 5)
    assert MIXED.last.tolist() == [1, 1, 1, 1, 7, 96, 4]
    assert MIXED.offset.tolist() == [1, 1, 1, 1, 1, 4, 1]
    assert MIXED.log.tolist() == [False] * 5 + [True, False]
    assert MIXED.numeric.tolist() == [True] + [False] * 3 + [True] * 3
    assert MIXED.continuous.tolist() == [True] + [False] * 6


def test_two_categories_are_as_far_apart_as_a_unit_step() -> None:
    space = Space({"c": Categorical(["a", "b", "c"])})
    a, b = space.encode({"c": "a"}), space.encode({"c": "b"})
    assert np.linalg.norm(a - b) == pytest.approx(1.0, rel=1e-15)
    assert a.max() == HOT


def test_a_box_is_continuous() -> None:
    box = Layout.box(3)
    assert box.continuous.all()
    assert box.continuous.all()
    assert (box.dimensions, box.parameters) == (3, 3)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"last": np.ones(2)}, r"last must have shape \(3,\), one entry per column, not \(2,\)"),
        ({"log": np.zeros((3, 1), bool)}, "log must have shape"),
        ({"owner": (0, 2, 2)}, "owner must use every index from 0"),
        ({"groups": ((1, 3),), "stepped": (2,)}, "overlaps the one-hot groups"),
    ],
)
def test_what_is_no_layout(change: dict[str, object], match: str) -> None:
    ones = np.ones(3)
    fields = {"last": ones, "offset": ones, "log": ones < 0, "owner": (0, 1, 2)}
    with pytest.raises(ValueError, match=match):
        Layout(**{**fields, "stepped": (), "groups": (), **change})  # type: ignore[arg-type]
