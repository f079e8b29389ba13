"""Uneven levels: ordinals, and floats of so many digits, there and back exactly."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

from optpair import Float, Int, Ordinal, Space

ORDINALS = [
    Ordinal([1, 2, 5, 10]),
    Ordinal([10, 20, 25, 30]),
    Ordinal([0, 1e-6, 1e-4, 1e-2, 1]),
    Ordinal([-3, 0.5, 7]),
    Ordinal([1e-300, 1e300]),
    Ordinal(np.geomspace(1e-4, 1e4, 40)),
    Ordinal([10**20, 10**20 + 10**6, 10**20 + 3 * 10**6]),
]
DIGITS = [
    Float(1e-5, 1, log=True, digits=2),
    Float(1e-5, 1, log=True, digits=1),
    Float(0.3, 20, log=True, digits=3),
    Float(9.9, 10, log=True, digits=2),
    Float(2e-7, 9e5, log=True, digits=2),
    Float(0, 1, digits=2),
    Float(-0.25, 0.999, digits=2),
    Float(20, 80, digits=0),
]


def levels(p: Any) -> list[float]:
    """Every legal value, in order."""
    layout = Space({"v": p}).layout
    return [p._decode([u]) for u in layout.levels(0)]


@pytest.mark.parametrize(
    ("given", "spacing"),
    [
        ([1, 2, 5, 10], "log"),
        ([10, 20, 25, 30], "value"),
        ([1, 2, 3], "value"),
        ([1, 50, 100], "value"),
        ([16, 32, 64, 256], "log"),
        ([1e-4, 1e-3, 1e-2], "log"),
        ([0, 1e-6, 1e-4, 1e-2, 1], "even"),
        ([-1, 0, 5], "value"),
        ([1, 1.001, 1000], "even"),
    ],
)
def test_levels_are_spaced_as_they_are_spread_most_evenly(given: Any, spacing: str) -> None:
    assert Ordinal(given).spacing == spacing


def test_places_follow_the_spacing() -> None:
    def places(spacing: Any) -> list[float]:
        p = Ordinal([1, 2, 5, 10], spacing=spacing)
        return [Space({"v": p}).encode({"v": v}).item() for v in p.levels]

    assert places("value") == pytest.approx([0, 1 / 9, 4 / 9, 1], rel=1e-15)
    assert places("log") == pytest.approx([0, math.log10(2), math.log10(5), 1], rel=1e-15)
    assert places("even") == pytest.approx([0, 1 / 3, 2 / 3, 1], rel=1e-15)


@pytest.mark.parametrize("p", ORDINALS, ids=repr)
def test_ordinals_round_trip_with_their_types(p: Ordinal) -> None:
    space = Space({"v": p})
    for level in p.levels:
        back = space.decode(space.encode({"v": level}))["v"]
        assert back == level
        assert type(back) is type(level)
    assert [space.decode([u])["v"] for u in (0.0, 1.0, -0.2, 1.2)] == [p.low, p.high] * 2
    for u in np.random.default_rng(0).uniform(size=500):
        assert space.decode([u])["v"] in p.levels


def test_the_nearest_level_is_the_nearest_place() -> None:
    space = Space({"v": Ordinal([1, 2, 10], spacing="value")})  # at 0, 1/9 and 1
    decoded = [space.decode([u])["v"] for u in (0.0555, 0.0556, 0.555, 0.556)]
    assert decoded == [1, 2, 2, 10]


def test_order_does_not_matter_and_round_off_is_forgiven() -> None:
    assert Ordinal([10, 1, 5]) == Ordinal([1, 5, 10])
    space = Space({"v": Ordinal([0.1, 0.3, 1])})
    assert space.check({"v": 0.1 + 0.2}) == {"v": 0.3}
    assert space.check({"v": np.float32(0.1)}) == {"v": 0.1}
    whole = space.check({"v": 1.0})["v"]
    assert type(whole) is int


@pytest.mark.parametrize("p", DIGITS, ids=repr)
def test_values_have_only_so_many_digits(p: Float) -> None:
    assert p.digits is not None
    space, random = Space({"v": p}), np.random.default_rng(0)
    for u in [*random.uniform(-0.1, 1.1, 500), 0.0, 1.0]:
        v: Any = space.decode([u])["v"]
        assert type(v) is float
        assert p.low <= v <= p.high
        shown = f"{v:.{p.digits - 1}e}" if p.log else f"{v:.{p.digits}f}"
        assert float(shown) == v
        assert space.decode(space.encode({"v": v})) == {"v": v}


def test_every_value_of_so_many_digits_is_legal() -> None:
    assert levels(Float(8, 100, log=True, digits=1)) == [8, 9, *range(10, 101, 10)]
    assert len(levels(Float(1e-5, 1, log=True, digits=2))) == 5 * 90 + 1
    assert levels(Float(0.1, 0.35, digits=1)) == [0.1, 0.2, 0.3]


def test_the_model_sees_the_rounded_value() -> None:
    space = Space({"v": Float(1e-3, 1, log=True, digits=1)})
    assert space.encode({"v": 0.03}).item() == pytest.approx(math.log10(30) / 3, rel=1e-15)
    with pytest.raises(ValueError, match=r"from 0.001 to 1.0 with 1 significant figure, not 0.035"):
        space.encode({"v": 0.035})
    with pytest.raises(ValueError, match=r"from 0.0 to 1.0 with 2 decimals, not 0.125"):
        Space({"v": Float(0, 1, digits=2)}).encode({"v": 0.125})


def test_decimals_are_a_step() -> None:
    a, b = Space({"v": Float(0, 1, digits=2)}), Space({"v": Float(0, 1, step=0.01)})
    for u in np.random.default_rng(0).uniform(size=200):
        assert a.decode([u]) == b.decode([u])
    assert a.layout.last == b.layout.last


@pytest.mark.parametrize("p", ORDINALS + DIGITS, ids=repr)
def test_saved_and_back(p: Any) -> None:
    space = Space({"v": p})
    again = Space.from_json(json.loads(json.dumps(space.to_json())))
    assert again == space
    assert repr(again) == repr(space)
    assert pickle.loads(pickle.dumps(space)) == space


def test_what_has_no_digits_is_saved_without() -> None:
    assert "digits" not in Space({"v": Float(0, 1)}).to_json()["parameters"][0]


untyped: Any = (Ordinal, Float)
O, F = untyped  # noqa: E741


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: O("123"), TypeError, r"like \[1, 2, 5, 10\], not '123'"),
        (lambda: O({1, 2}), TypeError, "a list or tuple of numbers"),
        (lambda: O(["a", "b"]), TypeError, "must be numbers, not 'a'; what has no number is Cat"),
        (lambda: O([True, 2]), TypeError, "must be numbers, not True"),
        (lambda: O([1, None]), TypeError, "must be numbers, not None"),
        (lambda: O([1, math.nan]), ValueError, "must be a finite number, not nan"),
        (lambda: O([1, math.inf]), ValueError, "must be a finite number, not inf"),
        (lambda: O([1, 2, 1.0]), ValueError, "is given twice"),
        (lambda: O([]), ValueError, "two levels or more"),
        (lambda: O([3]), ValueError, "leave it out of the space"),
        (lambda: O([-1e308, 1e308]), ValueError, "must be within 1e308"),
        (lambda: O(range(2**16 + 1)), ValueError, "use Int, or Float with a step"),
        (lambda: O([1, 2], spacing="linear"), ValueError, "'value', 'log' or 'even', not 'linear'"),
        (lambda: O([1, 2], spacing=True), ValueError, "'value', 'log' or 'even', not True"),
        (lambda: O([0, 2], spacing="log"), ValueError, "spacing='log' needs levels above 0"),
        (lambda: O([0, 1e-9, 1], spacing="value"), ValueError, "use spacing='even'"),
        (lambda: F(0, 1, digits=1.5), TypeError, "digits must be an int from 0 to 12"),
        (lambda: F(0, 1, digits=True), TypeError, "digits must be an int"),
        (lambda: F(0, 1, digits=-1), ValueError, "digits must be an int from 0 to 12"),
        (lambda: F(0, 1, digits=13), ValueError, "digits must be an int from 0 to 12"),
        (lambda: F(1, 2, digits=0, log=True), ValueError, "digits must be an int from 1 to 12"),
        (lambda: F(0, 1, digits=2, step=0.1), ValueError, "step and digits do not go together"),
        (lambda: F(0.125, 1, digits=2), ValueError, "low has more than 2 decimals; 0.12 would do"),
        (lambda: F(1e-3, 0.125, log=True, digits=2), ValueError, "high has more than 2 signif"),
        (lambda: F(1e-9, 1, log=True, digits=5), ValueError, "give fewer digits"),
        (lambda: F(0, 0.4, digits=0), ValueError, "step must be positive and at most high - low"),
    ],
)  # fmt: skip
def test_what_is_refused(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (3, ValueError, r"v must be one of \[1, 2, 5, 10\], not 3"),
        (11, ValueError, "must be one of"),
        ("2", TypeError, "v must be a number, not '2'"),
        (True, TypeError, "v must be a number, not True"),
        (math.nan, ValueError, "v must be a finite number"),
    ],
)
def test_values_that_are_no_levels(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Space({"v": Ordinal([1, 2, 5, 10])}).check({"v": value})


ANYWHERE: list[tuple[Any, Any, float]] = [
    (Float(0, 10), 12.5, 1.25),
    (Float(0, 10), -5, -0.5),
    (Float(0, 10, step=2), 3, 0.3),
    (Float(0, 9, step=2), 9, 9 / 8),  # the last level is 8
    (Float(0, 1, digits=1), 0.25, 0.25),
    (Float(1, 100, log=True), 1000, 1.5),
    (Float(1, 100, log=True), 0.1, -0.5),
    (Float(1, 100, log=True, digits=1), 15, math.log10(15) / 2),
    (Int(20, 80, step=5), 42, 22 / 60),
    (Int(20, 80, step=5), 42.5, 22.5 / 60),
    (Int(1, 100, log=True), 10.5, math.log10(10.5) / 2),
    (Int(1, 100, log=True), 1000, 1.5),
    (Ordinal([10, 20, 25, 30]), 15, 0.25),
    (Ordinal([1, 2, 5, 10]), 100, 2.0),
    (Ordinal([1, 2, 5, 10], spacing="even"), 3.5, 0.5),
    (Ordinal([1, 2, 5, 10], spacing="even"), 15, 4 / 3),
]


@pytest.mark.parametrize(("p", "value", "u"), ANYWHERE, ids=repr)
def test_what_was_really_run_has_a_place(p: Any, value: Any, u: float) -> None:
    space = Space({"v": p})
    assert not space.fits({"v": value})
    kept = space.check({"v": value}, anywhere=True)["v"]
    assert kept == value
    assert type(kept) is (float if isinstance(p, Float) else type(value))
    assert space.encode({"v": value}, anywhere=True).item() == pytest.approx(u, rel=1e-12)


@pytest.mark.parametrize("p", [*ORDINALS, *DIGITS, Float(0, 1), Int(1, 9, log=True)], ids=repr)
def test_legal_values_are_where_they_always_are(p: Any) -> None:
    space = Space({"v": p})
    for u in (0.0, 0.3, 0.77, 1.0):
        v = space.decode([u])
        assert space.fits(v)
        assert space.check(v, anywhere=True) == v
        np.testing.assert_array_equal(space.encode(v, anywhere=True), space.encode(v))


@pytest.mark.parametrize(
    ("p", "value", "message"),
    [
        (Float(20, 80), 333.15, "more than 3 times the range outside of 20.0 to 80.0: is it in ot"),
        (Int(20, 80), -200, "more than 3 times the range"),
        (Float(1e-3, 1, log=True), 0.0, "v must be above 0, as its scale is logarithmic, not 0.0"),
        (Int(1, 9, log=True), -1, "must be above 0"),
        (Ordinal([1, 2, 5, 10]), 0, "must be above 0"),
        (Float(0, 1), math.nan, "finite number"),
    ],
)
def test_what_has_no_place(p: Any, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space({"v": p}).check({"v": value}, anywhere=True)
