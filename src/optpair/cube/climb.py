"""Climbs over the legal points of a region: screen, ascend, polish.

What is climbed is a `Landscape`: values and slopes of rows, each row on its own. An acquisition
function is one landscape for all rows; sample paths have one each, and are told which rows are
whose. Hundreds of climbs run side by side; those that have arrived drop out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from optpair.cube.faces import Held
from optpair.cube.region import Region
from optpair.runtime.shapes import Bool, Float, Int, Num

FIRST_RADIUS, LARGEST_RADIUS = 0.1, 0.5
SCREENED_RADIUS = 0.05  # of the first step from a candidate that was screened
SHORTEST = 1e-9  # a radius of the cube: a climb that steps no further has arrived
MANY = 0.8  # the share of climbs that are still going, at which the others are taken out
ENOUGH = 2e-3  # of the spread of screened values: less is not worth another step,
PRECISE = 1e-8  # unless an answer is looked for, and not a query
SLACK, WARMING = 4, 2  # rivals are given up that promise less than 1/4 of their lag, after 2 steps
ROUNDS = 2  # of discrete moves, each followed by a climb
ROWS, NEIGHBOURS = 8192, 64  # rows looked at together in a discrete move, and moves of each

Rows = Int[np.ndarray, " r"]


@runtime_checkable
class Landscape(Protocol):
    """What is climbed: rows are numbered from 0, in the order of the starts."""

    def values(self, X: Num[np.ndarray, "r D"], rows: Rows) -> Num[np.ndarray, " r"]:
        """Values of the rows at their points."""
        ...

    def slopes(
        self, X: Num[np.ndarray, "r D"], rows: Rows
    ) -> tuple[Num[np.ndarray, " r"], Num[np.ndarray, "r D"]]:
        """Values, and their derivatives by the points."""
        ...


class Curvature(NamedTuple):
    """What climbs have learnt of the landscape around their ends, in the columns that were free."""

    inverse: Num[np.ndarray, "r C C"]  # of the negative Hessian, by BFGS
    fresh: Bool[np.ndarray, " r"]  # nothing was learnt


class Bends(NamedTuple):
    """How landscapes are expected to bend, before anything is learnt of them."""

    inverse: Num[np.ndarray, "*r D"]  # of the negative second derivative along each column
    sized: bool  # whether its size is known; otherwise only how the columns compare


class Ended(NamedTuple):
    """Where climbs have ended."""

    x: Num[np.ndarray, "r D"]
    value: Num[np.ndarray, " r"]
    curvature: Curvature


@dataclass
class Climbs:
    """Climbs that are going on."""

    rows: Rows
    x: Num[np.ndarray, "r D"]
    value: Num[np.ndarray, " r"]
    slope: Num[np.ndarray, "r D"]
    inverse: Num[np.ndarray, "r C C"]  # of the negative Hessian, by BFGS, in the free columns
    radius: Num[np.ndarray, " r"]
    fresh: Bool[np.ndarray, " r"]  # no curvature seen yet
    sized: Bool[np.ndarray, " r"]  # the inverse has the right size, as seen or as expected
    expected: Num[np.ndarray, "r C"]  # the inverse's diagonal, before anything is seen

    def keep(self, going: Bool[np.ndarray, " r"]) -> None:
        """Take out all others."""
        for name, part in vars(self).items():
            setattr(self, name, part[going])


def ascend(
    landscape: Landscape,
    X: Num[np.ndarray, "r D"],
    region: Region,
    free: Bool[np.ndarray, " D"],
    steps: int,
    *,
    enough: float,
    radius: float = FIRST_RADIUS,
    known: Curvature | None = None,
    bends: Bends | None = None,
    rivals: int = 1,
) -> Ended:
    """Climb from every start at once inside the region, moving the free columns only.

    Projected BFGS with a trust radius: faces that a climb presses against hold it, a step that does
    not improve, or is not allowed, is refused and the radius shrinks, so the value never falls. One
    evaluation of value and slope per step. A climb that expects to win less than `enough` (half of
    the Newton step times the slope) has arrived, and drops out. `known` is what an earlier climb
    has learnt, `bends` what is expected otherwise: it sets the first step, but does not decide that
    a climb has arrived. Of each `rivals` consecutive climbs only the best counts: those that lag
    far behind are given up.
    """
    columns, rows = np.flatnonzero(free & region.open), np.arange(len(X))
    r, C = len(X), len(columns)
    value, slope = _slopes(landscape, X, rows, region)
    expected = np.ones((r, C), X.dtype)
    if bends is not None:
        expected[:] = bends.inverse[..., columns]
    if known is None or known.inverse.shape[-1] != C:
        known = Curvature(expected[:, :, None] * np.eye(C, dtype=X.dtype), np.ones(r, dtype=bool))
    sized = ~known.fresh if bends is None else ~known.fresh | bends.sized
    at = Climbs(
        rows,
        X.copy(),
        np.where(np.isnan(value), -np.inf, value).astype(X.dtype),
        np.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0).astype(X.dtype),
        known.inverse.astype(X.dtype),
        np.full(r, radius, X.dtype),
        known.fresh.copy(),
        sized,
        expected,
    )
    learnt = Curvature(at.inverse.copy(), at.fresh.copy())
    end = Ended(X.copy(), at.value.copy(), learnt)
    best = np.full(-(-r // rivals), -np.inf, X.dtype)
    for step in range(steps if C else 0):
        direction, held, promise = _direction(at, region, columns)
        going = (at.radius > SHORTEST) & (promise > enough)
        if rivals > 1 and step >= WARMING:
            np.maximum.at(best, at.rows // rivals, at.value)
            going &= at.value + SLACK * promise >= best[at.rows // rivals]
        if np.count_nonzero(going) <= MANY * len(going):
            note(at, end)
            at.keep(going)
            if len(at.rows) == 0:
                return end
            direction, held = direction[going], held.some(going)
        _step(landscape, at, region, columns, direction, held)
    note(at, end)
    return end


def _slopes(
    landscape: Landscape, X: Num[np.ndarray, "r D"], rows: Rows, region: Region
) -> tuple[Num[np.ndarray, " r"], Num[np.ndarray, "r D"]]:
    """Values and slopes; along parameters that are inactive there is nowhere to go."""
    value, slope = landscape.slopes(X, rows)
    if region.cube.layout.conditions:
        slope = np.where(region.cube.awake(X), slope, 0)
    return value, slope


def note(at: Climbs, end: Ended) -> None:
    """Write down where climbs are."""
    end.x[at.rows], end.value[at.rows] = at.x, at.value
    end.curvature.inverse[at.rows], end.curvature.fresh[at.rows] = at.inverse, at.fresh


def _direction(
    at: Climbs, region: Region, columns: Int[np.ndarray, " C"]
) -> tuple[Num[np.ndarray, "r C"], Held, Num[np.ndarray, " r"]]:
    """Where to step, what holds climbs back, and what may be won."""
    held = region.hold(at.x, at.slope[:, columns], columns)
    slope = held.along(at.slope[:, columns])
    newton = held.along(np.matvec(at.inverse, slope))
    along = np.vecdot(newton, slope)
    usable = (along > 0) & at.sized
    promise = np.where(usable & ~at.fresh, along / 2, np.where(slope.any(1), np.inf, 0))
    if not usable.all():
        newton = np.where(usable[:, None], newton, held.along(at.expected * slope))
    return newton, held, promise


def _step(
    landscape: Landscape,
    at: Climbs,
    region: Region,
    columns: Int[np.ndarray, " C"],
    direction: Num[np.ndarray, "r C"],
    held: Held,
) -> None:
    """One step of each climb, in place."""
    length = np.max(np.abs(direction), -1)
    ratio = at.radius / np.where(length > 0, length, 1)
    ratio = np.where(at.sized, np.minimum(ratio, 1), ratio)
    x = region.step(at.x, ratio[:, None] * direction, columns)
    value, slope = _slopes(landscape, x, at.rows, region)
    better = value > at.value
    if region.allowed is not None:
        better[better] = region.allows(x[better])

    s = np.subtract(x[:, columns], at.x[:, columns], order="C")  # the order of sums depends on it
    bfgs(at, s, held.along((at.slope - slope)[:, columns]))
    # Growing too eagerly costs refused steps, shrinking too little costs more of them.
    grown = np.minimum(at.radius * 2, LARGEST_RADIUS)
    shrunk = np.minimum(np.max(np.abs(s), -1), at.radius) / 4
    at.x = np.where(better[:, None], x, at.x)
    at.value = np.where(better, value, at.value)
    at.slope = np.where(better[:, None], slope, at.slope)
    at.radius = np.where(better, grown, shrunk)


def bfgs(at: Climbs, s: np.ndarray, bend: np.ndarray) -> None:
    """The BFGS update of the inverse Hessian H, skipped where the curvature is not positive.

    H + ρ (1 + ρ bᵀHb) ssᵀ − ρ (s(Hb)ᵀ + (Hb)sᵀ) = H + usᵀ + suᵀ,   ρ = 1/sᵀb,
    u = ρ (½ (1 + ρ bᵀHb) s − Hb),   b the bend of the slope along s
    """
    curvature = np.vecdot(s, bend)
    norms = np.sqrt(np.vecdot(s, s) * np.vecdot(bend, bend))
    usable = (curvature > 1e-8 * norms) & (norms > 0) & np.isfinite(norms)
    first = usable & ~at.sized
    if first.any():
        size = curvature[first] / np.vecdot(bend[first], at.expected[first] * bend[first])
        at.inverse[first] = (size[:, None] * at.expected[first])[:, :, None] * np.eye(s.shape[1])
    at.fresh, at.sized = at.fresh & ~usable, at.sized | usable
    rho = np.where(usable, 1 / np.where(usable, curvature, 1), 0)
    clean = np.where(usable[:, None], bend, 0)
    turned = np.matvec(at.inverse, clean)
    share = 0.5 * (1 + rho * np.vecdot(clean, turned))
    u = rho[:, None] * (share[:, None] * s - turned)
    outer = u[:, :, None] * s[:, None, :]
    at.inverse += outer
    at.inverse += outer.mT


def climb(
    landscape: Landscape,
    X: Num[np.ndarray, "r D"],
    region: Region,
    steps: int,
    *,
    enough: float,
    radius: float = FIRST_RADIUS,
    bends: Bends | None = None,
    rivals: int = 1,
    by: Callable[..., Ended] = ascend,
) -> Ended:
    """Ascend from legal points to legal points by the function `by`, called like `ascend`.

    Stepped columns are relaxed on the way up and rounded after. Then each round tries every
    one-move discrete neighbour, takes the best, and ascends again in the continuous columns.
    """
    layout = region.cube.layout
    relaxed = layout.numeric & ~layout.deciding  # what decides which others are active stays
    up = by(
        landscape,
        X,
        region,
        relaxed,
        steps,
        enough=enough,
        radius=radius,
        bends=bends,
        rivals=rivals,
    )
    if not np.any(region.open & ~layout.continuous):  # nothing is left to be moved
        return up
    later = max(steps // 2, 4) if layout.continuous.any() else 0
    at = X
    for turn in range(ROUNDS):
        at = _moved(landscape, region, at, region.snap(up.x, at).astype(X.dtype), turn)
        up = by(
            landscape,
            at,
            region,
            layout.continuous,
            later,
            enough=enough,
            radius=radius,
            bends=bends,
            rivals=rivals,
        )
    return up


def _moved(
    landscape: Landscape,
    region: Region,
    x: Num[np.ndarray, "r D"],
    up: Num[np.ndarray, "r D"],
    turn: int,
) -> Num[np.ndarray, "r D"]:
    """The best of the legal points `up`, those one discrete move from it, and x.

    Of more than `NEIGHBOURS` moves some are tried at each turn, others at the next.
    """
    found = np.empty_like(x)
    for i in range(0, len(x), ROWS // NEIGHBOURS):
        rows = np.arange(i, min(i + ROWS // NEIGHBOURS, len(x)))
        near = region.neighbours(up[rows], NEIGHBOURS, turn).astype(x.dtype)
        moves = np.concatenate([up[rows, None], x[rows, None], near], axis=1)
        r, K, D = moves.shape
        values = landscape.values(moves.reshape(r * K, D), np.repeat(rows, K)).reshape(r, K)
        best = np.argmax(np.where(np.isnan(values), -np.inf, values), -1)
        found[rows] = moves[np.arange(r), best]
    return found


def maximise(
    landscape: Landscape,
    region: Region,
    candidates: Float[np.ndarray, "N D"],
    values: Float[np.ndarray, " N"],
    *,
    starts: int,
    steps: int,
    enough: float = ENOUGH,
    bends: Bends | None = None,
) -> tuple[Float[np.ndarray, " D"], float]:
    """The best legal point found, and its value.

    Candidates have been screened; the best of each of `starts` consecutive groups is climbed from.
    Order the candidates by where they come from, and every source has its say.
    """
    N = len(candidates)
    clean = np.where(np.isfinite(values), values, -np.inf)
    groups = np.array_split(np.arange(N), np.arange(1, min(starts, N)) * -(-N // min(starts, N)))
    best = np.array([group[np.argmax(clean[group])] for group in groups if len(group)])
    finite = values[np.isfinite(values)]
    spread = float(np.max(finite) - np.median(finite)) if len(finite) else 0.0
    X, least = candidates[best], enough * spread
    x, value, _ = climb(
        landscape,
        X,
        region,
        steps,
        enough=least,
        radius=SCREENED_RADIUS,
        bends=bends,
        rivals=len(X),
    )
    winner = int(np.argmax(np.where(np.isfinite(value), value, -np.inf)))
    return x[winner], float(value[winner])
