"""Limits: what a text means, what is refused, and values that keep them to the last digit."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optpair.problem.limits import Limits, parse
from optpair.problem.linear import Rows
from optpair.problem.space import Categorical, Float, Int, Ordinal, Space

THREE: dict[str, Any] = {name: Float(0, 1) for name in "abc"}
MANY: dict[str, Any] = {
    "a": Float(0, 1),
    "beta": Float(-2, 2),
    "n": Int(0, 10),
    "grid": Float(0, 1, step=0.1),
    "rate": Float(1e-3, 1, log=True),
    "width": Int(1, 64, log=True),
    "kind": Categorical(["x", "y"]),
    "two words": Float(0, 1),
}


def meaning(text: str) -> list[tuple[dict[str, Fraction], Fraction, bool]]:
    return [(dict(limit.weights), limit.high, limit.equal) for limit in parse(text)]


@pytest.mark.parametrize(
    ("text", "weights", "high", "equal"),
    [
        ("a + b + c == 1", {"a": 1, "b": 1, "c": 1}, 1, True),
        ("low <= high", {"low": 1, "high": -1}, 0, False),
        ("low < high", {"low": 1, "high": -1}, 0, False),
        ("a >= 0.1", {"a": -1}, "-0.1", False),
        ("2*a + b <= 3", {"a": 2, "b": 1}, 3, False),
        ("-(a - 2*(b + 1))/4 > 0.3*2", {"a": "1/4", "b": "-1/2"}, "-0.1", False),
        ("a*2/3 + 1 == +b - 1e-3", {"a": "2/3", "b": -1}, "-1.001", True),
        ("`two words` + a + a <= 1", {"two words": 1, "a": 2}, 1, False),
        (" a\t<= 1 ", {"a": 1}, 1, False),
    ],
)
def test_what_a_text_means(
    text: str, weights: dict[str, Any], high: int | str, equal: bool
) -> None:
    exact = {name: Fraction(weight) for name, weight in weights.items()}
    assert meaning(text) == [(exact, Fraction(high), equal)]


def test_a_chain_is_a_limit_for_each_comparison() -> None:
    assert meaning("0.2 <= a + b <= 0.8") == meaning("a + b >= 0.2") + meaning("a + b <= 0.8")
    assert meaning("a <= b == c") == meaning("a <= b") + meaning("b == c")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("a * beta <= 1", r"'a \* beta <= 1' is not linear; use a function"),
        ("1 / a <= 1", "is not linear"),
        ("a ** 2 <= 1", r"numbers, names, \+ - \* / and parentheses, not 'a \*\* 2'"),
        ("__import__('os').abort() <= a", 'not "__import__'),
        ("a.real <= 1", "not 'a.real'"),
        ("a <= True", "not 'True'"),
        ("a <= 'b'", "not"),
        ("a + 1", "must be a comparison"),
        ("a = 1", "cannot be read; for = write ==; write it like"),
        ("a ≤ 1", "cannot be read; for ≤ write <=; write it like"),
        ("a => 1", "cannot be read; for => write >=; write it like"),
        ("a >= 0.2 and a <= 1", "has an `and`: give a text for each part, in a list"),
        ("a <=", "cannot be read"),
        ("", "cannot be read"),
        ("a \0 <= 1", "cannot be read"),
        ("(" * 500 + "a" + ")" * 500 + " <= 1", "cannot be read|nested too deeply"),
        ("-" * 3000 + "a <= 1", "cannot be read|nested too deeply"),
        ("a" * 6000 + " <= 1", "6005 characters"),
        ("a != 1", "<=, >=, <, > and =="),
        ("a in n", "<=, >=, <, > and =="),
        ("a / 0 <= 1", "divides by zero"),
        ("a / (1 - 1) <= 1", "divides by zero"),
        ("a <= 1e999", "beyond 1e300"),
        ("1 <= 2", "names no parameter"),
        ("a - a <= 2", "names no parameter"),
        ("Beta <= 1", r"unknown name 'Beta'; did you mean 'beta'\?"),
        ("zzz <= 1", "unknown name 'zzz'. The space has 'a', 'beta'"),
        ("kind <= 1", "'kind', which has no number; use a function"),
        ("rate <= 1", "'rate', which is on a log scale"),
        ("width <= a", "'width', which is on a log scale"),
        (["a <= 1", lambda p: True, lambda p: False], "one function, not 2"),
    ],
)
def test_what_is_refused(where: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space(MANY, where=where)


@pytest.mark.parametrize("where", [5, None, [5], {"a": 1}, [["a <= 1"]]])
def test_what_is_no_limit(where: Any) -> None:
    with pytest.raises(TypeError, match="where must"):
        Space(THREE, where=where)


@pytest.mark.parametrize(
    ("where", "named", "not_named"),
    [
        (["a + beta >= 4"], ["'a + beta >= 4' cannot be met"], []),
        (
            ["n <= 3", "a >= 0.5", "a <= 0.2"],
            ["'a >= 0.5' and 'a <= 0.2' contradict"],
            ["'n <= 3'"],
        ),
        (["n == 2.5"], ["'n == 2.5' cannot be met"], []),
        (["grid + n == 1.05"], ["'grid + n == 1.05' cannot be met"], []),
        (["a + beta == 1", "a + beta == 1.00001"], ["contradict each other"], []),
        (["a <= beta", "beta <= n - 10", "a >= 0.1"], ["'a <= beta'", "'beta <= n - 10'"], []),
    ],
)
def test_an_empty_region_is_refused_with_the_reason(
    where: list[str], named: list[str], not_named: list[str]
) -> None:
    with pytest.raises(ValueError, match="where leaves no legal point") as caught:
        Space(MANY, where=where)
    assert all(text in str(caught.value) for text in named)
    assert not any(text in str(caught.value) for text in not_named)


def test_whole_numbers_are_refused_just_where_none_fit() -> None:
    """Against every point of a small grid."""
    both: dict[str, Any] = {"n": Int(0, 3), "m": Int(-2, 2)}
    points = list(itertools.product(range(4), range(-2, 3)))
    for w, v, high in itertools.product([-3, 2, 5], [2, 3], range(-6, 9, 2)):
        possible = any(w * n + v * m == high for n, m in points)
        try:
            Space(both, where=f"{w}*n + {v}*m == {high}")
        except ValueError:
            assert not possible
        else:
            assert possible


def test_redundant_and_fixing_limits_are_fine() -> None:
    space = Space(THREE, where=["a + b <= 1", "2*a + 2*b <= 2", "a <= 5", "c == 0.25"])
    assert space.allows({"a": 0.5, "b": 0.5, "c": 0.25})
    assert not space.allows({"a": 0.5, "b": 0.5, "c": 0.26})


def test_spaces_are_equal_by_their_limits_and_come_back_from_json() -> None:
    space = Space(THREE, where=["a + b == 1", "`c` <= 0.5"])
    assert space == Space(THREE, where=("a + b == 1", "`c` <= 0.5"))
    assert space != Space(THREE, where=["a + b == 1"])
    assert space != Space(THREE)
    assert Space(space) == space
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space
    assert eval(repr(space)) == space
    assert "where" not in Space(THREE).to_json()
    damaged = space.to_json() | {"where": ["a + b == 9"]}
    with pytest.raises(ValueError, match="damaged"):
        Space.from_json(damaged)


def test_a_function_cannot_be_saved() -> None:
    def small(params: dict[str, Any]) -> bool:
        return bool(params["a"] * params["b"] <= 0.1)

    space = Space(THREE, where=["a <= b", small])
    assert space == Space(THREE, where=["a <= b", small])
    assert space != Space(THREE, where=["a <= b"])
    assert space.allows({"a": 0.1, "b": 0.2, "c": 0})
    assert not space.allows({"a": 0.5, "b": 0.6, "c": 0})
    assert not space.allows({"a": 0.2, "b": 0.1, "c": 0})
    with pytest.raises(TypeError, match="function in where cannot be saved"):
        space.to_json()
    with pytest.raises(TypeError, match=r"must return True or False, not 0\.5"):
        Space(THREE, where=lambda p: p["a"]).allows({"a": 0.5, "b": 0.5, "c": 0.5})  # type: ignore[arg-type, return-value]


def test_points_that_break_a_limit_pass_the_check() -> None:
    space = Space(THREE, where="a + b + c == 1")
    assert space.check({"a": 1, "b": 1, "c": 1}) == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert space.decode([1.0, 1.0, 0.5]) == {"a": 1.0, "b": 1.0, "c": 0.5}


def test_rows_are_the_limits_on_the_cube() -> None:
    space = Space(MANY, where=["2*beta - n <= 1", "grid + a == 0.7", "0.1 <= n/3"])
    rng = np.random.default_rng(0)
    for x in rng.uniform(size=(20, space.layout.dimensions)):
        values: dict[str, Any] = space.decode(x)
        u = space.encode(values)
        beta, n, grid, a = (values[name] for name in ("beta", "n", "grid", "a"))
        over = np.array([2 * beta - n - 1, grid + a - 0.7, 0.1 - n / 3])
        scale = np.array([10, 1, 10 / 3])  # of the largest term over its range
        np.testing.assert_allclose(space.rows.A @ u - space.rows.b, over / scale, atol=1e-11)
    assert space.rows.equal.tolist() == [False, True, False]


def test_decoded_values_keep_limits_to_the_last_digit() -> None:
    """Points of a mixture with thirds, an order and a vertex, rounded to twelve digits."""
    space = Space(
        {"a": Float(0, 1), "b": Float(0, 0.7), "c": Float(0.1, 1), "d": Float(-3, 100)},
        where=["a + b + c == 1", "a <= b", "d / 3 == b + 0.1"],
    )
    rng = np.random.default_rng(1)
    thirds = rng.dirichlet(np.ones(3), 200) * 0.9 + [0, 0, 0.1]
    points = [*np.sort(thirds[:, :2], axis=1), (0, 0), (0, 0.7), (0.45, 0.45), (1 / 3, 1 / 3)]
    for a, b in points:
        if b > 0.7:
            continue
        x = np.array([a, b / 0.7, (0.9 - a - b) / 0.9, (3 * (b + 0.1) + 3) / 103])
        values: dict[str, Any] = space.decode(np.clip(x, 0, 1))
        assert space.allows(values)
        assert abs(values["a"] + values["b"] + values["c"] - 1) <= 3e-16
        assert values["a"] <= values["b"]
        assert abs(values["d"] / 3 - values["b"] - 0.1) <= 1e-12
        assert abs(values["a"] - a) <= 1e-9
        assert abs(values["b"] - b) <= 1e-9
        assert len(repr(values["a"])) <= 18


def test_values_that_were_suggested_stay_what_they_are() -> None:
    """On the way to the cube and back: what is told is what was run."""
    space = Space(THREE, where="a + b + c == 1")
    for x in np.random.default_rng(0).dirichlet(np.ones(3), 100):
        values = space.decode(x)
        again = space.decode(space.encode(values))
        assert again == values


def test_levels_at_uneven_distances_are_no_line() -> None:
    with pytest.raises(ValueError, match=r"'n', an Ordinal, .* use a function"):
        Space({"n": Ordinal([1, 2, 5]), "x": Float(0, 9)}, where=["n <= x"])


def test_fixed_parameters_leave_the_rest_of_a_limit() -> None:
    limits = Limits.parse(["a + b + c <= 1", "b == 0.5"])
    left = limits.fixed({"b": 0.5})
    assert [(dict(limit.weights), limit.high) for limit in left.linear] == [
        ({"a": 1, "c": 1}, Fraction(1, 2))
    ]
    with pytest.raises(ValueError, match=r"'b == 0\.5' cannot be met"):
        limits.fixed({"b": 0.25})
    with pytest.raises(ValueError, match="'b', which has no number"):
        limits.fixed({"b": "x"})


def test_huge_ranges_make_finite_rows() -> None:
    parameters: dict[str, Any] = {"a": Float(-1e300, 1e300), "b": Float(0, 1)}
    rows = Rows.of(tuple(parse("a + b <= 1e299")), parameters)
    assert np.isfinite(rows.A).all()
    np.testing.assert_allclose(rows.b, [0.55])
