"""The user's values ↔ the unit cube: exact round trips, and errors that help."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optpair.problem.space import Categorical, Float, Int, Space

LINES = [
    Float(0.0, 1.0),
    Float(-5.0, 10.0),
    Float(0.1, 0.7),
    Float(-1e308, 0.0),
    Float(0.0, 1e308),
    Float(-4e307, 5e307),
    Float(0.0, 1e-310),
    Float(1e6, 1e6 + 1.0),
    Float(1.0, 1.0 + 1e-6),
    Float(-1 / 3, math.pi),
]


LOGS = [
    Float(1e-5, 1.0, log=True),
    Float(1e-300, 1e300, log=True),
    Float(1e-300, 1e308, log=True),
    Float(1.0, 1.1, log=True),
    Float(1e300, 1.001e300, log=True),
    Float(3e-7, 3.0001e-7, log=True),
    Float(1.0, 1.0 + 1e-6, log=True),
    Float(math.pi, 100 * math.pi, log=True),
]


STEPS = [
    Float(0.0, 1.0, step=0.1),
    Float(0.0, 0.35, step=0.1),
    Float(-0.3, 0.3, step=0.2),
    Float(0.6, 0.7, step=0.1),
    Float(1e6, 1e6 + 2, step=0.01),
    Float(0.0, 1.0, step=1 / 3),
    Float(0.1, 1e8, step=1e-3),
]


INTS = [
    Int(0, 1),
    Int(-3, 12),
    Int(0, 100, step=7),
    Int(10**20, 10**20 + 10**9, step=3),
    Int(0, 2**40),
    Int(1, 1000, log=True),
    Int(16, 1024, log=True),
    Int(1, 2**40, log=True),
    Int(2**39, 2**40, log=True),
]


CHOICES = Categorical([None, True, 1, 1.0, "1", False, 0, "", "relu"])


MIXED = Space(
    {"lr": Float(1e-5, 1, log=True), "width": Int(8, 64, step=8), "act": Categorical(["a", "b"])}
)


def there_and_back(space: Space, params: dict[str, Any]) -> dict[str, Any]:
    return space.decode(space.encode(params))


@pytest.mark.parametrize("p", LINES + LOGS + STEPS, ids=repr)
def test_suggested_floats_round_trip_exactly(p: Float) -> None:
    space = Space({"v": p})
    for u in [*np.random.default_rng(0).uniform(size=2000), 1e-13, 1e-16, 1 - 1e-13, 1 - 1e-16]:
        v = space.decode([u])
        assert type(v["v"]) is float
        assert p.low <= v["v"] <= p.high
        assert there_and_back(space, v) == v


@pytest.mark.parametrize("p", LINES + LOGS, ids=repr)
def test_bounds_are_exact(p: Float) -> None:
    space = Space({"v": p})
    assert [space.decode([u])["v"] for u in (0.0, 1.0, -0.2, 1.2)] == [p.low, p.high] * 2
    assert [space.encode({"v": v}).item() for v in (p.low, p.high)] == [0.0, 1.0]


@pytest.mark.parametrize("p", [*LINES[:6], LINES[9], *LOGS[:5], LOGS[7]], ids=repr)
def test_decoding_loses_less_than_1e_12_of_the_range(p: Float) -> None:
    space = Space({"v": p})
    u = np.random.default_rng(1).uniform(size=2000)
    back = np.array([space.encode(space.decode([v])).item() for v in u])
    assert np.abs(back - u).max() < 1e-12


def test_decoding_follows_the_scale() -> None:
    space = Space({"a": Float(-5, 10), "b": Float(1e-4, 1, log=True), "c": Float(-1e308, 0)})
    assert space.decode([0.5, 0.25, 0.25]) == {"a": 2.5, "b": 1e-3, "c": -7.5e307}
    assert space.encode({"a": 2.5, "b": 1e-3, "c": -7.5e307}) == pytest.approx(
        [0.5, 0.25, 0.25], rel=1e-15
    )
    wide = Space({"v": Float(1e-300, 1e300, log=True)})
    assert [wide.decode([u])["v"] for u in (0.25, 0.5, 0.75)] == [1e-150, 1.0, 1e150]


def test_a_users_floats_of_twelve_digits_round_trip_exactly() -> None:
    random = np.random.default_rng(2)
    line, log = Space({"v": Float(0, 1)}), Space({"v": Float(1e-300, 1e300, log=True)})
    narrow = Space({"v": Float(0.5, 0.6, log=True)})
    for digits in random.integers(10**11, 10**12, 3000).tolist():
        v = {"v": digits / 10**12}
        assert there_and_back(line, v) == v
        v = {"v": float(f"{digits}e{random.integers(-300, 280)}")}
        assert there_and_back(log, v) == v
        v = {"v": round(0.5 + digits / 10**13, 12)}
        assert there_and_back(narrow, v) == v


def test_no_negative_zero() -> None:
    space = Space({"v": Float(-1, 1)})
    v = space.decode([0.5 - 1e-16])["v"]
    assert math.copysign(1.0, v) == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize("p", INTS, ids=repr)
def test_ints_round_trip_exactly(p: Int) -> None:
    space, last = Space({"v": p}), (p.high - p.low) // p.step
    near_ends = {i for i in range(50) if i <= last} | {last - i for i in range(50) if i <= last}
    drawn = np.random.default_rng(0).integers(0, last, 2000, endpoint=True).tolist()
    logs = [int(math.expm1(u)) for u in np.linspace(0, math.log1p(last), 500)]
    for i in [*near_ends, *drawn, *logs]:
        v = {"v": p.low + min(i, last) * p.step}
        assert there_and_back(space, v) == v
    for u in np.random.default_rng(1).uniform(-0.1, 1.1, 1000):
        value = space.decode([u])["v"]
        assert type(value) is int
        assert p.low <= value <= p.high
        assert (value - p.low) % p.step == 0


def test_int_scales() -> None:
    space = Space({"a": Int(0, 10), "b": Int(1, 100, log=True), "c": Int(0, 10, step=4)})
    assert space.decode([0.26, 0.5, 1.0]) == {"a": 3, "b": 10, "c": 8}
    assert space.encode({"a": 3, "b": 10, "c": 4}) == pytest.approx([0.3, 0.5, 0.5], rel=1e-15)


def test_steps_are_clean_decimals() -> None:
    def levels(p: Any) -> list[Any]:
        return [Space({"v": p}).decode([u])["v"] for u in np.linspace(0, 1, 1 + p._last)]

    assert levels(STEPS[0]) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert levels(STEPS[1]) == [0.0, 0.1, 0.2, 0.3]
    assert levels(STEPS[2]) == [-0.3, -0.1, 0.1, 0.3]
    assert levels(STEPS[3]) == [0.6, 0.7]
    assert levels(STEPS[4])[:3] == [1000000.0, 1000000.01, 1000000.02]
    assert levels(STEPS[4])[-1] == 1000002.0
    computed = 0.7 - 0.4  # 0.29999999999999993: meant to be reached
    assert levels(Float(0, computed, step=0.1)) == [0.0, 0.1, 0.2, computed]
    assert levels(STEPS[5]) == [0.0, 0.333333333333, 0.666666666667, 1.0]
    assert levels(Float(0, 1, step=0.1 + 0.2)) == [0.0, 0.3, 0.6, 0.9]


def test_categories_round_trip_with_their_types() -> None:
    space = Space({"c": CHOICES})
    for i, choice in enumerate(CHOICES.choices):
        x = space.encode({"c": choice})
        assert np.flatnonzero(x).tolist() == [i]
        assert x[i] == math.sqrt(0.5)
        assert space.decode(x)["c"] is choice
    assert space.decode([0.5, 0.2] + [0.5] * 7) == {"c": None}  # the first on ties


def test_check_forgives_round_off_only() -> None:
    space = Space({"v": Float(0, 0.3)})
    assert space.check({"v": 0.1 + 0.2}) == {"v": 0.3}
    assert space.check({"v": -1e-13}) == {"v": 0.0}
    for v in (0.3 + 1e-12, -1e-12):
        with pytest.raises(ValueError, match=r"from 0.0 to 0.3"):
            space.check({"v": v})
    log = Space({"v": Float(1e-20, 1, log=True)})
    assert log.check({"v": 1e-20 * (1 - 5e-13)}) == {"v": 1e-20}
    with pytest.raises(ValueError, match=r"from 1e-20 to 1.0"):
        log.check({"v": 0.0})
    stepped = Space({"v": Float(0, 1, step=0.1)})
    assert stepped.check({"v": 0.1 * 3}) == {"v": 0.3}
    assert stepped.check({"v": np.float32(0.7)}) == {"v": 0.7}


VALUES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"lr": 2.0}, ValueError, r"lr must be from 1e-05 to 1.0, not 2.0"),
    ({"lr": math.nan}, ValueError, "lr must be a finite number, not nan"),
    ({"lr": math.inf}, ValueError, "lr must be a finite number, not inf"),
    ({"lr": 10**400}, ValueError, "lr must be a finite number, not 1000"),
    ({"lr": True}, TypeError, "lr must be a number, not True"),
    ({"lr": "0.1"}, TypeError, "lr must be a number, not '0.1'"),
    ({"lr": None}, TypeError, "lr must be a number, not None"),
    ({"lr": np.array([0.1])}, TypeError, r"lr must be a number, not array"),
    ({"width": 7}, ValueError, "width must be from 8 to 64 in steps of 8, not 7"),
    ({"width": 65}, ValueError, "width must be from 8 to 64"),
    ({"width": 12}, ValueError, "in steps of 8, not 12"),
    ({"width": 16.5}, ValueError, "in steps of 8, not 16.5"),
    ({"width": math.nan}, ValueError, "not nan"),
    ({"width": -math.inf}, ValueError, "not -inf"),
    ({"width": True}, TypeError, "width must be an int, not True"),
    ({"width": "16"}, TypeError, "width must be an int, not '16'"),
    ({"act": "c"}, ValueError, r"act must be one of \['a', 'b'\], not 'c'"),
    ({"act": ["a"]}, ValueError, r"act must be one of"),
]


@pytest.mark.parametrize(("change", "error", "message"), VALUES)
def test_bad_values_are_refused(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        MIXED.check({"lr": 0.1, "width": 16, "act": "a"} | change)


def test_values_between_steps_are_refused() -> None:
    space = Space({"v": Float(0, 0.35, step=0.1)})
    for v in (0.15, 0.35, 0.1 + 2e-7):
        with pytest.raises(ValueError, match=r"in steps of 0.1"):
            space.check({"v": v})


def test_categories_of_another_type_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be one of \[1, 2\], not True"):
        Space({"v": Categorical([1, 2])}).check({"v": True})
    with pytest.raises(ValueError, match=r"must be one of \[1, 2\], not 1.0"):
        Space({"v": Categorical([1, 2])}).check({"v": 1.0})


untyped: Any = (Float, Int, Categorical, Space)  # a type checker would refuse what follows


F, I, C, S = untyped  # noqa: E741


BUILD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: F(math.nan, 1), ValueError, "Float's low must be a finite number, not nan"),
    (lambda: F(0, math.inf), ValueError, "Float's high must be a finite number, not inf"),
    (lambda: F("0", 1), TypeError, "Float's low must be a number, not '0'"),
    (lambda: F(False, 1), TypeError, "Float's low must be a number, not False"),
    (lambda: F(None, 1), TypeError, "Float's low must be a number, not None"),
    (lambda: F(1, 1), ValueError, "nothing to tune: leave it out of the space"),
    (lambda: F(2, 1), ValueError, "low must be below high; did you swap them"),
    (lambda: F(0, 1, log=True), ValueError, "log=True needs low > 0"),
    (lambda: F(-1, 1, log=True), ValueError, "log=True needs low > 0"),
    (lambda: F(1e-310, 1, log=True), ValueError, "low must be at least 1e-300"),
    (lambda: F(1, 2, log="yes"), TypeError, "log must be True or False"),
    (lambda: F(1, 2, log=True, step=0.1), ValueError, "step and log=True"),
    (lambda: F(1, 2, log=True, step=1), ValueError, "step and log=True"),
    (lambda: F(0, 1, step=0), ValueError, "step must be positive"),
    (lambda: F(0, 1, step=-0.1), ValueError, "step must be positive"),
    (lambda: F(0, 1, step=1.5), ValueError, "at most high - low"),
    (lambda: F(0, 1, step=math.nan), ValueError, "Float's step must be a finite number"),
    (lambda: F(0, 1, step=1e-13), ValueError, r"more than 2\*\*40 levels"),
    (lambda: F(1e16, 1e16 + 64, step=1), ValueError, "lost in rounding"),
    (lambda: F(1, 1 + 1e-12), ValueError, "tune the distance from low"),
    (lambda: F(-1e308, 1e308), ValueError, "must be within 1e308"),
    (lambda: F(0, 1.5e308), ValueError, "must be within 1e308"),
    (lambda: I(1.5, 3), TypeError, "Int's low must be an int, not 1.5; or use Float"),
    (lambda: I(1, 16.0), TypeError, "Int's high must be an int, not 16.0"),
    (lambda: I(False, 3), TypeError, "Int's low must be an int, not False"),
    (lambda: I(1, 3, step=0.5), TypeError, "Int's step must be an int, not 0.5"),
    (lambda: I(3, 3), ValueError, "nothing to tune: leave it out of the space"),
    (lambda: I(3, 1), ValueError, "did you swap them"),
    (lambda: I(0, 3, log=True), ValueError, "log=True needs low > 0"),
    (lambda: I(1, 9, log=True, step=2), ValueError, "step and log=True"),
    (lambda: I(1, 9, step=0), ValueError, "step must be positive"),
    (lambda: I(1, 9, step=9), ValueError, "at most high - low"),
    (lambda: I(1, 9, log=1), TypeError, "log must be True or False"),
    (lambda: I(0, 2**40 + 1), ValueError, r"more than 2\*\*40 levels"),
    (lambda: I(2**40, 2**40 + 1, log=True), ValueError, r"high must be at most 2\*\*40 with log"),
    (lambda: I(10**400, 10**400 + 9), ValueError, r"bounds must be within ±1e\+300"),
    (lambda: C("abc"), TypeError, r"list or tuple, like \['a', 'b'\], not 'abc'"),
    (lambda: C({"a", "b"}), TypeError, "must be a list or tuple"),
    (lambda: C({"a": 1, "b": 2}), TypeError, "must be a list or tuple"),
    (lambda: C(3), TypeError, "must be a list or tuple"),
    (lambda: C([]), ValueError, "two choices or more"),
    (lambda: C(["a"]), ValueError, "leave it out of the space"),
    (lambda: C(["a", "b", "a"]), ValueError, "'a' is given twice"),
    (lambda: C([0.0, -0.0]), ValueError, "is given twice"),
    (lambda: C(["a", ("b",)]), TypeError, r"None, bool, int, float or str.*\('b',\)"),
    (lambda: C([math.sin, math.cos]), TypeError, "give it a name"),
    (lambda: C([1.0, math.nan]), ValueError, "must be finite, not nan"),
    (lambda: S({}), ValueError, "at least one parameter"),
    (lambda: S([("x", Float(0, 1))]), TypeError, "Space takes a dict"),
    (lambda: S({"": Float(0, 1)}), TypeError, "a name with a Float, Int, Ordinal or Categorical"),
    (lambda: S({3: Float(0, 1)}), TypeError, "not 3: Float"),
    (lambda: S({"x": (0, 1)}), TypeError, r"not 'x': \(0, 1\)"),
    (lambda: S({"x": Float}), TypeError, "not 'x': <class"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "error", "message"), BUILD)
def test_bad_spaces_are_refused(
    build: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()


def test_numpy_scalars_become_plain() -> None:
    assert repr(I(np.int64(1), np.int8(5))) == repr(Int(1, 5))
    assert repr(F(np.float64(1), np.int8(5))) == repr(Float(1, 5))
    assert repr(C(np.arange(2))) == "Categorical(choices=(0, 1), when=None)"
    choices = C([np.bool_(True), np.str_("a"), np.float64(2)]).choices
    assert [type(choice) for choice in choices] == [bool, str, float]


US = [i / 97 for i in range(1, 97)]


@pytest.mark.parametrize(
    "parameter",
    [
        Float(-(2**53), 1),
        Float(-1, 2**53),
        Float(-1e300, 1),
        Float(0, 1e308),
        Float(1, 1 + 1e-6),
        Float(1, 1 + 1e-6, log=True),
        Float(1e-300, 1e300, log=True),
    ],
    ids=str,
)
def test_values_come_back_within_twelve_digits(parameter: Float) -> None:
    space, low, high = Space({"x": parameter}), parameter.low, parameter.high
    inner = {math.nextafter(low, math.inf), math.nextafter(high, -math.inf)}
    inner |= {x for x in (0.0, -1.0, 0.5) if low < x < high}
    if parameter.log:
        inner |= {low * (high / low) ** u if high < 1e9 else 10.0 ** (600 * u - 300) for u in US}
    else:
        inner |= {low + u * (high - low) for u in US}
    for x in inner:
        (u,) = space.encode({"x": x})
        assert 0 < u < 1, x
        # Half of the twelfth digit; of the value, that may be 1.00000000000.
        within = 5.01e-12 * x if parameter.log else 1.01e-12 * (high - low)
        assert abs(space.decode([u])["x"] - x) <= within
    assert [space.encode({"x": x})[0] for x in (low, high)] == [0.0, 1.0]
    assert [space.decode([u])["x"] for u in (0.0, 1.0)] == [low, high]


@pytest.mark.parametrize("log", [False, True])
def test_the_narrowest_range_keeps_points_of_the_cube(log: bool) -> None:
    """What is suggested stands for the point that it was made from, to 1e-9."""
    space = Space({"x": Float(1, 1 + 2.3e-7, log=log)})
    for u in US:
        assert abs(space.encode(space.decode([u]))[0] - u) < 1e-9
    with pytest.raises(ValueError, match="does not resolve so narrow a range"):
        Float(1, 1 + 2e-7, log=log)
