"""Faces of a polytope: climbs that slide along them, against SciPy's own solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from optpair.cube.climb import ascend, climb
from optpair.cube.cube import Cube
from optpair.cube.faces import Held, restore, slide
from optpair.cube.region import Region
from optpair.problem.limits import parse
from optpair.problem.linear import Rows
from optpair.problem.space import Float


def within(d: int, texts: Sequence[str]) -> Region:
    """The part of [0,1]^d, x0 to x(d − 1), within limits."""
    parameters: dict[str, Any] = {f"x{i}": Float(0, 1) for i in range(d)}
    rows = Rows.of([limit for text in texts for limit in parse(text)], parameters)
    return Region(Cube.box(d), np.zeros(d), np.ones(d), rows)


@dataclass(frozen=True)
class Bowl:
    """The same concave quadratic for every row."""

    centre: np.ndarray
    H: np.ndarray

    def values(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        away = X - self.centre
        return np.asarray(-0.5 * np.vecdot(away @ self.H, away)).astype(X.dtype)

    def slopes(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.values(X, rows), (-(X - self.centre) @ self.H).astype(X.dtype)


CASES = {
    "mixture": (5, ["x0 + x1 + x2 + x3 + x4 == 1"]),
    "order": (4, ["x0 <= x1 <= x2 <= x3"]),
    "two mixtures": (6, ["x0 + x1 + x2 == 1", "x3 + x4 + x5 == 1", "x0 <= x3"]),
    "weights": (4, ["0.2 <= 2*x0 - x1 + x2/3 <= 0.8", "x0 + x3 >= 0.5"]),
    "thin": (8, ["0.4999 <= x0 + x1 - x2 + x3/2 - x7 <= 0.5001", "x4 + x5 == x6"]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_climbs_end_where_a_solver_ends(name: str) -> None:
    d, texts = CASES[name]
    region, rng = within(d, texts), np.random.default_rng(0)
    rows = region.rows
    assert rows is not None
    starts = region.fill(rng.uniform(size=(6, d)))
    limits = [
        {"type": "eq" if e else "ineq", "fun": lambda x, a=a, b=b: b - a @ x}
        for a, b, e in zip(rows.A, rows.b, rows.equal, strict=True)
    ]
    for _ in range(3):
        B = rng.standard_normal((d, d))
        bowl = Bowl(rng.uniform(-0.3, 1.3, d), B @ B.T / d + 0.1 * np.eye(d))
        solved = minimize(
            lambda x, b=bowl: -b.values(x[None], np.zeros(1))[0],
            starts[0],
            bounds=[(0, 1)] * d,
            constraints=limits,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        up = climb(bowl, starts, region, 80, enough=1e-13)
        assert region.legal(up.x).all()
        # SLSQP takes its slopes from differences: 1e-7 is what it is good for.
        np.testing.assert_allclose(up.value.max(), -solved.fun, atol=1e-7)
        rough = climb(bowl, starts.astype(np.float32), region, 24, enough=1e-6)
        end = region.snap(rough.x.astype(np.float64))
        assert region.legal(end).all()
        np.testing.assert_allclose(bowl.values(end, end).max(), -solved.fun, atol=1e-4)


@pytest.mark.parametrize(
    ("texts", "centre", "starts"),
    [
        (["x0 + x1 + x2 == 1"], [0.2, 0.3, 0.5], np.eye(3)),
        (["x0 <= x1 <= x2"], [0.2, 0.3, 0.5], [[0, 0, 0], [1, 1, 1], [0, 0, 1], [0.5, 0.5, 0.5]]),
        (["x0 + x1 <= 1", "x0 + x1 + x2 <= 1"], [0.2, 0.1, 0.3], [[1, 0, 0], [0.5, 0.5, 0]]),
    ],
)
def test_faces_let_go_of_climbs_that_lead_away(texts: list[str], centre: Any, starts: Any) -> None:
    """From corners, where all faces are at hand, to an optimum inside."""
    bowl = Bowl(np.array(centre), np.diag([1.0, 2.0, 3.0]))
    up = climb(bowl, np.array(starts, dtype=float), within(3, texts), 60, enough=1e-16)
    np.testing.assert_allclose(up.x, np.tile(centre, (len(starts), 1)), atol=1e-6)


def test_values_never_fall_and_every_step_is_legal() -> None:
    region, rng = within(5, CASES["mixture"][1]), np.random.default_rng(1)
    bowl, X = Bowl(rng.uniform(size=5), np.eye(5)), region.fill(rng.uniform(size=(20, 5)))
    before, free = bowl.values(X, X), np.ones(5, dtype=bool)
    for steps in range(1, 10):
        up = ascend(bowl, X, region, free, steps, enough=0.0)
        assert region.legal(up.x).all()
        assert np.all(up.value >= before)
        before = up.value


def test_columns_that_are_not_free_stay() -> None:
    region, rng = within(5, CASES["mixture"][1]), np.random.default_rng(2)
    X = region.fill(rng.uniform(size=(20, 5)))
    free = np.array([True, False, True, True, False])
    up = ascend(Bowl(rng.uniform(size=5), np.eye(5)), X, region, free, 30, enough=0.0)
    np.testing.assert_array_equal(up.x[:, ~free], X[:, ~free])
    assert region.legal(up.x).all()
    assert np.max(np.abs(up.x - X)) > 0.1


def test_what_is_held_is_left_out() -> None:
    A = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [2.0, 2.0, 0.0]]) / np.sqrt(2)
    pressed = np.array([[False, False, False], [True, False, False], [False, False, False]])
    held = np.array([[True, False, False], [True, True, False], [True, False, True]])
    V = np.array([[1.0, 0.0, 5.0], [1.0, 2.0, 3.0], [1.0, 0.0, 5.0]])
    # The first loses its part along (1, 1, 0); the second has no freedom left; the third holds
    # the same face twice.
    along = Held.of(A, pressed, held).along(V)
    np.testing.assert_allclose(along, [[0.5, -0.5, 5], [0, 0, 0], [0.5, -0.5, 5]], atol=1e-10)


def test_slides_go_along_the_faces_in_their_way() -> None:
    """In the triangle x + y ≤ 1: into the hypotenuse, along it, and to its end."""
    A, equal = np.array([[1.0, 1.0]]) / np.sqrt(2), np.array([False])
    x = np.array([[0.2, 0.2]] * 4)
    move = np.array([[0.1, 0.2], [0.6, 0.6], [0.9, 0.5], [9.0, 0.0]])
    slack = np.full((4, 1), (1 - 0.4) / np.sqrt(2))
    got = slide(A, equal, slack, x, move, np.zeros(2), np.ones(2))
    np.testing.assert_allclose(got, [[0.3, 0.4], [0.5, 0.5], [0.7, 0.3], [1.0, 0.0]], atol=1e-12)


def test_corrections_are_short_and_may_fail() -> None:
    A, b, equal = np.array([[1.0, 1.0, 1.0]]), np.array([1.0]), np.array([True])
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.2, 1.2, (50, 3))
    got = restore(A, b, equal, X, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(got.sum(1), 1.0, atol=1e-14)
    assert np.all((got >= 0) & (got <= 1))
    inside = np.all((X > 0.1) & (X < 0.5), axis=1)
    away = np.sqrt(np.sum((got - X) ** 2, axis=1))
    assert inside.any()
    np.testing.assert_allclose(away[inside], (np.abs(X.sum(1) - 1) / np.sqrt(3))[inside])
    fixed = np.array([[0.9, 0.9, 0.2]])
    low, high = np.array([[0.9, 0.9, 0.0]]), np.array([[0.9, 0.9, 1.0]])
    assert restore(A, b, equal, fixed, low, high).sum() > 1.5
