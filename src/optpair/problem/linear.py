"""Linear limits as rows on the unit cube, and whether any legal point is within them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optpair.problem.layout import Layout
from optpair.problem.limits import Limit, exact, numeric, span
from optpair.problem.parameters import Parameter
from optpair.runtime.shapes import Bool, Float

UNMET = 1e-9  # of a row's largest weight: limits that miss each other by more have no common point
PATIENCE = 10.0  # seconds to look for whole numbers within limits


@dataclass(frozen=True, eq=False)
class Rows:
    """A u ≤ b or, in the rows that are `equal`, A u = b; the largest weight of each row is 1."""

    A: Float[np.ndarray, "k D"]
    b: Float[np.ndarray, " k"]
    equal: Bool[np.ndarray, " k"]

    @classmethod
    def of(cls, limits: Sequence[Limit], parameters: Mapping[str, Parameter]) -> Rows:
        """The rows of limits in the parameters' units; every parameter in them is one column."""
        widths = [len(getattr(p, "choices", " ")) for p in parameters.values()]
        column = dict(zip(parameters, np.cumsum([0, *widths[:-1]]).tolist(), strict=True))
        A, b = np.zeros((len(limits), sum(widths))), np.zeros(len(limits))
        for k, limit in enumerate(limits):
            owners = {name: numeric(parameters[name]) for name, _ in limit.weights}
            weights = {name: w * span(owners[name]) for name, w in limit.weights}
            lowest = sum(w * exact(owners[name].low) for name, w in limit.weights)
            largest = max(map(abs, weights.values()))
            for name, weight in weights.items():
                A[k, column[name]] = float(weight / largest)
            b[k] = float(max(min((limit.high - lowest) / largest, _FAR), -_FAR))
        return cls(A, b, np.array([limit.equal for limit in limits], dtype=bool))

    def some(self, chosen: Sequence[int]) -> Rows:
        """Some of the rows."""
        rows = np.array(chosen, dtype=int)
        return Rows(self.A[rows], self.b[rows], self.equal[rows])


_FAR = Fraction(10**12)  # a row's right side beyond this is out of every point's reach


def check_region(
    limits: Sequence[Limit], parameters: Mapping[str, Parameter], layout: Layout
) -> None:
    """Refuse limits that no legal point meets, and say which contradict each other."""
    rows = Rows.of(limits, parameters)
    if _possible(rows, layout):
        return
    needed = list(range(len(limits)))
    for k in range(len(limits)):  # leave out what is not needed for the contradiction
        without = [i for i in needed if i != k]
        if not _possible(rows.some(without), layout):
            needed = without
    texts = list(dict.fromkeys(limits[k].text for k in needed))
    names = dict.fromkeys(name for k in needed for name, _ in limits[k].weights)
    ranges = "; ".join(f"{name!r}: {parameters[name]!r}" for name in names)
    both = "cannot be met" if len(texts) == 1 else "contradict each other"
    raise ValueError(
        f"where leaves no legal point: {' and '.join(map(repr, texts))} {both} with {ranges}; "
        "correct a limit, or widen a range"
    )


def _possible(rows: Rows, layout: Layout) -> bool:
    """Whether some legal point meets all rows."""
    if len(rows.b) == 0:
        return True
    columns = np.flatnonzero(rows.A.any(0))
    if _least_excess(rows, columns) > UNMET:
        return False
    stepped = [c for c in columns if c in layout.stepped]
    return not stepped or levels(rows, layout, np.zeros(layout.dimensions)) is not None


def _least_excess(rows: Rows, columns: np.ndarray) -> float:
    """The least t so that a point of the cube breaks no row by more than t."""
    from scipy.optimize import linprog  # late: it takes long to import, and few have limits

    A, equal = rows.A[:, columns], rows.equal
    sides = np.concatenate([A, -A[equal]])
    ones = -np.ones((len(sides), 1))
    high = np.concatenate([rows.b, -rows.b[equal]])
    n = len(columns)
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.hstack([sides, ones]),
        b_ub=high,
        bounds=[(0.0, 1.0)] * n + [(0.0, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    return float(found.x[-1]) if found.x is not None else np.inf


def levels(
    rows: Rows, layout: Layout, reward: Float[np.ndarray, " D"]
) -> Float[np.ndarray, " D"] | None:
    """A legal point that meets all rows, the one with the largest reward · u, or None.

    Columns without a row are 0. Where the search runs out of patience, what it has found so far.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    columns = np.flatnonzero(rows.A.any(0))
    whole = np.isin(columns, layout.stepped)
    last = np.where(whole, layout.last[columns], 1.0)
    A = rows.A[:, columns] / last
    size = np.max(np.abs(A), axis=1)  # weights near zero would be taken for zero
    low = np.where(rows.equal, rows.b / size, -np.inf)
    found = milp(
        -reward[columns] / last,
        constraints=LinearConstraint(A / size[:, None], low, rows.b / size),
        integrality=whole.astype(int),
        bounds=Bounds(0.0, last),
        options={"time_limit": PATIENCE},
    )
    if found.x is None:
        return None
    point = np.zeros(rows.A.shape[1])
    point[columns] = np.where(whole, np.rint(found.x), found.x) / last
    return np.clip(point, 0.0, 1.0)
