"""Climbs over the legal points of a region: screen, ascend, polish.

What is climbed is a `Landscape`: values and slopes of rows, each row on its own. An acquisition
function is one landscape for all rows; sample paths have one each, and are told which rows are
whose. Hundreds of climbs run side by side; those that have arrived drop out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from optpair.cube.region import Region

FIRST_RADIUS, LARGEST_RADIUS = 0.1, 0.5
ARRIVED = 1e-9  # a radius of the cube: a climb that steps no further has arrived
MANY = 0.8  # the share of climbs that are still going, at which the others are taken out
ROUNDS = 2  # of discrete moves, each followed by a climb
ROWS = 4096  # rows looked at together in a discrete move, at most

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


class Ended(NamedTuple):
    """Where climbs have ended."""

    x: Num[np.ndarray, "r D"]
    value: Num[np.ndarray, " r"]


@dataclass
class _Climbs:
    """Climbs that are going on."""

    rows: Rows
    x: Num[np.ndarray, "r D"]
    value: Num[np.ndarray, " r"]
    slope: Num[np.ndarray, "r D"]
    inverse: Num[np.ndarray, "r D D"]  # of the negative Hessian, by BFGS
    radius: Num[np.ndarray, " r"]
    fresh: Bool[np.ndarray, " r"]  # no curvature seen yet

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
    radius: float = FIRST_RADIUS,
    arrived: float = ARRIVED,
) -> Ended:
    """Climb from every start at once inside the region, moving the free columns only.

    Projected BFGS with a trust radius: coordinates that press against a face are held, a step that
    does not improve is refused and the radius shrinks, so the value never falls. One evaluation of
    value and slope per step. A climb whose steps are shorter than `arrived` drops out.
    """
    r, D = X.shape
    low, high = region.low.astype(X.dtype), region.high.astype(X.dtype)
    free = free & region.open
    rows = np.arange(r)
    value, slope = landscape.slopes(X, rows)
    at = _Climbs(
        rows,
        X.copy(),
        np.where(np.isnan(value), -np.inf, value).astype(X.dtype),
        np.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0).astype(X.dtype),
        np.broadcast_to(np.eye(D, dtype=X.dtype), (r, D, D)).copy(),
        np.full(r, radius, X.dtype),
        np.ones(r, dtype=bool),
    )
    end = Ended(X.copy(), at.value.copy())
    for _ in range(steps if free.any() else 0):
        moved = _step(landscape, at, low, high, free)
        end.x[at.rows], end.value[at.rows] = at.x, at.value
        going = (at.radius > arrived) & (moved > 0)
        if np.count_nonzero(going) <= MANY * len(going):
            at.keep(going)
            if len(at.rows) == 0:
                break
    return end


def _step(
    landscape: Landscape,
    at: _Climbs,
    low: np.ndarray,
    high: np.ndarray,
    free: Bool[np.ndarray, " D"],
) -> Num[np.ndarray, " r"]:
    """One step of each climb, in place; how far each has tried to go."""
    pressed = ((at.x <= low) & (at.slope < 0)) | ((at.x >= high) & (at.slope > 0)) | ~free
    slope = np.where(pressed, 0, at.slope)
    newton = np.einsum("rij,rj->ri", at.inverse, slope)
    newton[pressed] = 0
    uphill = (np.einsum("ri,ri->r", newton, slope) > 0) & ~at.fresh
    direction = np.where(uphill[:, None], newton, slope)
    length = np.max(np.abs(direction), -1)
    ratio = at.radius / np.where(length > 0, length, 1)
    ratio = np.where(at.fresh, ratio, np.minimum(ratio, 1))
    x = np.clip(at.x + ratio[:, None] * direction, low, high)
    value, slope_there = landscape.slopes(x, at.rows)
    better = value > at.value

    s = x - at.x
    bend = np.where(pressed, 0, at.slope - slope_there)
    _bfgs(at, s, bend)
    moved = np.max(np.abs(s), -1)
    # Growing too eagerly costs refused steps, shrinking too little costs more of them.
    grown = np.minimum(at.radius * 2, LARGEST_RADIUS)
    shrunk = np.minimum(moved, at.radius) / 4
    at.x = np.where(better[:, None], x, at.x)
    at.value = np.where(better, value, at.value)
    at.slope = np.where(better[:, None], slope_there, at.slope)
    at.radius = np.where(better, grown, shrunk)
    return np.asarray(moved)


def _bfgs(at: _Climbs, s: np.ndarray, bend: np.ndarray) -> None:
    """The BFGS update of the inverse Hessian H, skipped where the curvature is not positive.

    H + ρ (1 + ρ bᵀHb) ssᵀ − ρ (s(Hb)ᵀ + (Hb)sᵀ) = H + usᵀ + suᵀ,   ρ = 1/sᵀb,
    u = ρ (½ (1 + ρ bᵀHb) s − Hb),   b the bend of the slope along s
    """
    curvature, squares = np.einsum("ri,ri->r", s, bend), np.einsum("ri,ri->r", bend, bend)
    norms = np.sqrt(np.einsum("ri,ri->r", s, s) * squares)
    usable = (curvature > 1e-8 * norms) & (norms > 0) & np.isfinite(norms)
    first = usable & at.fresh
    if first.any():
        size = curvature[first] / squares[first]
        at.inverse[first] = size[:, None, None] * np.eye(s.shape[1], dtype=s.dtype)
        at.fresh = at.fresh & ~usable
    rho = np.where(usable, 1 / np.where(usable, curvature, 1), 0)
    clean = np.where(usable[:, None], bend, 0)
    turned = np.einsum("rij,rj->ri", at.inverse, clean)
    share = 0.5 * (1 + rho * np.einsum("ri,ri->r", clean, turned))
    u = rho[:, None] * (share[:, None] * s - turned)
    outer = u[:, :, None] * s[:, None, :]
    at.inverse += outer
    at.inverse += np.swapaxes(outer, 1, 2)


def climb(
    landscape: Landscape, X: Num[np.ndarray, "r D"], region: Region, steps: int, arrived: float
) -> Ended:
    """Ascend from legal points to legal points.

    Stepped columns are relaxed on the way up and rounded after. Then each round tries every
    one-move discrete neighbour, takes the best, and ascends again in the continuous columns.
    """
    layout = region.cube.layout
    up = ascend(landscape, X, region, layout.numeric, steps, arrived=arrived)
    if layout.is_continuous:
        return up
    later = max(steps // 2, 4) if layout.continuous.any() else 0
    at, rows = X, np.arange(len(X))
    for _ in range(ROUNDS):
        moved = _best_move(landscape, region, at, region.cube.snap(up.x).astype(X.dtype), rows)
        up = ascend(landscape, moved.x, region, layout.continuous, later, arrived=arrived)
        at = moved.x
    return up


def _best_move(
    landscape: Landscape,
    region: Region,
    x: Num[np.ndarray, "r D"],
    up: Num[np.ndarray, "r D"],
    rows: Rows,
) -> Ended:
    """The best of the legal points `up`, those one discrete move from it, and x."""
    moves = np.concatenate(
        [up[:, None], x[:, None], region.clip(region.cube.neighbours(up)).astype(x.dtype)], axis=1
    )
    r, K, D = moves.shape
    flat, owners = moves.reshape(r * K, D), np.repeat(rows, K)
    values = np.concatenate(
        [
            landscape.values(flat[i : i + ROWS], owners[i : i + ROWS])
            for i in range(0, len(flat), ROWS)
        ]
    ).reshape(r, K)
    best = np.argmax(np.where(np.isnan(values), -np.inf, values), -1)
    return Ended(moves[rows, best], values[rows, best])


def maximise(
    landscape: Landscape,
    region: Region,
    candidates: Float[np.ndarray, "N D"],
    values: Float[np.ndarray, " N"],
    *,
    starts: int,
    steps: int,
) -> tuple[Float[np.ndarray, " D"], float]:
    """The best legal point found, and its value.

    Candidates have been screened; the best of each of `starts` consecutive groups is climbed from.
    Order the candidates by where they come from, and every source has its say.
    """
    N = len(candidates)
    clean = np.where(np.isfinite(values), values, -np.inf)
    groups = np.array_split(np.arange(N), np.arange(1, min(starts, N)) * -(-N // min(starts, N)))
    best = np.array([group[np.argmax(clean[group])] for group in groups if len(group)])
    x, value = climb(landscape, candidates[best], region, steps, ARRIVED)
    winner = int(np.argmax(np.where(np.isfinite(value), value, -np.inf)))
    return x[winner], float(value[winner])
