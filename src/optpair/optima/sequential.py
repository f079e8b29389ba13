"""Sequential quadratic climbs: joint paths under limits, hundreds side by side.

At every step the score is taken to be quadratic, and the limits to be linear. With s the slope of
the score, g the gaps beyond the limits, J the slopes of these, and H the inverse of how the
Lagrangian bends down, by BFGS, the step is

    d = H (s − Jᵀλ),    λ = argmin ½ λᵀ J H Jᵀ λ − λᵀ (g + J H s)  over  0 ≤ λ ≤ ν

which arrives on the limits that are active as fast as Newton's method does. ν is the most that a
violation may cost: so there is a step where limits cannot all be met. A step has to improve the
augmented Lagrangian

    score(f) − Σ (max(0, λ + ρ g)² − λ²) / 2ρ

whose value at the end of a climb is nearly that of the best point under the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.cube.climb import (
    FIRST_RADIUS,
    LARGEST_RADIUS,
    MANY,
    SHORTEST,
    SLACK,
    WARMING,
    Bends,
    Climbs,
    Curvature,
    Ended,
    bfgs,
    note,
)
from optpair.cube.faces import Held
from optpair.cube.region import Region
from optpair.optima.joint import Limited, Outcomes, Parts, Rows
from optpair.runtime.shapes import Bool, Int, Num

MOST = 300.0  # ν
WEIGHT = 30.0  # ρ
SWEEPS = 3  # over the multipliers, each followed by a step along a face of their box
NEAR = 1e-2  # of √a: a gap up to which a climb's value can be compared with its rivals'
DEAD = 1e-12  # of a gap: where no more can be changed, nothing can be done about it
RIDGE = 1e-6  # of the gaps' products, whose slopes may depend on each other


@dataclass
class _Rises(Climbs):
    """Climbs under limits: values and slopes are those of the score."""

    gaps: Num[np.ndarray, "r m"]
    normals: Num[np.ndarray, "r m D"]
    multipliers: Num[np.ndarray, "r m"]

    @classmethod
    def begin(
        cls, X: Num[np.ndarray, "r D"], parts: Parts, known: Curvature, radius: float
    ) -> _Rises:
        """At their starts, where nothing presses yet."""
        r, expected = len(X), np.diagonal(known.inverse, axis1=1, axis2=2)
        return cls(
            np.arange(r),
            X.copy(),
            parts.value,
            parts.slope,
            known.inverse.astype(X.dtype),
            np.full(r, radius, X.dtype),
            known.fresh.copy(),
            np.ones(r, dtype=bool),
            expected.astype(X.dtype),
            parts.gaps,
            parts.normals,
            np.zeros_like(parts.gaps),
        )

    def lagrangian(
        self, value: Num[np.ndarray, " r"], gaps: Num[np.ndarray, "r m"]
    ) -> Num[np.ndarray, " r"]:
        """The augmented Lagrangian where the score and the gaps are these."""
        known = self.multipliers
        pushed = np.maximum(known + WEIGHT * gaps, 0)
        return value - np.sum(pushed * pushed - known * known, 1) / (2 * WEIGHT)


def rise(
    landscape: Limited,
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
    """As `optpair.cube.climb.ascend`, under limits: values are of the augmented Lagrangian."""
    columns = np.flatnonzero(free & region.open)
    steps = steps if len(columns) else 0
    if known is None or known.inverse.shape[-1] != len(columns):
        known = _expected(bends, X, columns)
    at = _Rises.begin(X, _parts(landscape, X, np.arange(len(X)), region), known, radius)
    learnt = Curvature(at.inverse.copy(), at.fresh.copy())
    end = Ended(X.copy(), np.full(len(X), -np.inf, X.dtype), learnt)
    for step in range(steps + 1):
        direction, held, promise = _direction(at, region, columns)
        value = at.lagrangian(at.value, at.gaps)
        going = (at.radius > SHORTEST) & (promise > enough)
        if rivals > 1 and step >= WARMING:
            end.value[at.rows] = np.where((at.gaps <= NEAR).all(1), value, -np.inf)
            best = end.value.reshape(-1, rivals).max(1)
            going &= value + SLACK * promise >= best[at.rows // rivals]
        if step == steps or np.count_nonzero(going) <= MANY * len(going):
            note(at, end)
            end.value[at.rows] = value
            if step == steps or not going.any():
                break
            at.keep(going)
            direction, held, value = direction[going], held.some(going), value[going]
        _step(landscape, at, region, columns, direction, held, value)
    return end


def multipliers(
    landscape: Limited,
    X: Num[np.ndarray, "r D"],
    region: Region,
    there: Outcomes,
    known: Curvature,
) -> Num[np.ndarray, "r m"]:
    """λ of each limit at some points, where the outcomes are these."""
    columns = np.flatnonzero(region.cube.continuous & region.open)
    if known.inverse.shape[-1] != len(columns):
        known = Curvature(np.tile(np.eye(len(columns)), (len(X), 1, 1)), known.fresh)
    at = _Rises.begin(X, _awake(landscape.of(there, np.arange(len(X))), X, region), known, 1.0)
    for _ in range(2):  # which faces hold depends on the multipliers
        _direction(at, region, columns)
    return at.multipliers


def _expected(
    bends: Bends | None, X: Num[np.ndarray, "r D"], columns: Int[np.ndarray, " C"]
) -> Curvature:
    """What is expected before anything is learnt."""
    inverse = np.ones((len(X), len(columns)), X.dtype)
    if bends is not None:
        inverse[:] = bends.inverse[..., columns]
    eye = np.eye(len(columns), dtype=X.dtype)
    return Curvature(inverse[:, :, None] * eye, np.ones(len(X), dtype=bool))


def _parts(landscape: Limited, X: Num[np.ndarray, "r D"], rows: Rows, region: Region) -> Parts:
    return _awake(landscape.parts(X, rows), X, region)


def _awake(parts: Parts, X: Num[np.ndarray, "r D"], region: Region) -> Parts:
    """Along parameters that are inactive there is nowhere to go."""
    if not region.cube.layout.conditions:
        return parts
    awake = region.cube.awake(X)
    return parts._replace(slope=parts.slope * awake, normals=parts.normals * awake[:, None])


def _direction(
    at: _Rises, region: Region, columns: Int[np.ndarray, " C"]
) -> tuple[Num[np.ndarray, "r C"], Held, Num[np.ndarray, " r"]]:
    """Where to step, what holds climbs back, and what may be won; sets the multipliers."""
    slope, normals = at.slope[:, columns], at.normals[:, :, columns]
    held = region.hold(at.x, slope - np.vecmat(at.multipliers, normals), columns)
    slope, normals = held.along(slope), _all_along(held, normals)
    newton = held.along(np.matvec(at.inverse, slope))
    turned = _all_along(held, normals @ at.inverse)  # H is symmetric
    products, reached = normals @ turned.mT, at.gaps + np.matvec(normals, newton)
    at.multipliers = _least(products, reached, at.multipliers)
    direction = newton - np.vecmat(at.multipliers, turned)
    rest, beyond = slope - np.vecmat(at.multipliers, normals), np.maximum(at.gaps, 0)
    along = np.vecdot(rest, direction)
    promise = along / 2 + np.vecdot(at.multipliers + WEIGHT / 2 * beyond, beyond)
    return direction, held, np.where(at.fresh & rest.any(1), np.inf, promise)


def _all_along(held: Held, normals: Num[np.ndarray, "r m C"]) -> Num[np.ndarray, "r m C"]:
    """The part of several vectors per climb that is free."""
    if held.normals is None:
        return np.where(held.pressed[:, None], 0, normals)
    return np.stack([held.along(normal) for normal in normals.swapaxes(0, 1)], 1)


def _least(
    products: Num[np.ndarray, "r m m"],
    reached: Num[np.ndarray, "r m"],
    known: Num[np.ndarray, "r m"],
) -> Num[np.ndarray, "r m"]:
    """argmin ½ λᵀAλ − λᵀb over 0 ≤ λ ≤ ν: by sweeps over all, and along faces of that box."""
    size = np.diagonal(products, axis1=1, axis2=2)
    dead = size <= DEAD
    rate = np.where(dead, 0, 1 / np.where(dead, 1, size))
    found = np.where(dead, np.where(reached > 0, MOST, 0), known).astype(reached.dtype)
    m = size.shape[1]
    for _ in range(SWEEPS if m > 1 else m):
        for i in range(m):
            short = reached[:, i] - np.vecdot(products[:, i], found)
            found[:, i] = np.clip(found[:, i] + rate[:, i] * short, 0, MOST)
        if m > 1:
            found += _along_face(products, reached, found, dead)
    return np.clip(found, 0, MOST)


def _along_face(
    products: Num[np.ndarray, "r m m"],
    reached: Num[np.ndarray, "r m"],
    found: Num[np.ndarray, "r m"],
    dead: Bool[np.ndarray, "r m"],
) -> Num[np.ndarray, "r m"]:
    """The step of those at neither bound to where they are least together, or to a bound."""
    free = (found > 0) & (found < MOST) & ~dead
    system = np.where(free[:, :, None] & free[:, None], products, 0)
    index = np.arange(found.shape[1])
    system[:, index, index] = np.where(free, system[:, index, index] * (1 + RIDGE), 1)
    short = np.where(free, reached - np.matvec(products, found), 0)
    step = np.linalg.solve(system, short[..., None])[..., 0]
    room = np.where(step > 0, MOST - found, found)
    part = np.where(free, room / np.maximum(np.abs(step), 1e-30), np.inf).min(1)
    return np.minimum(part, 1)[:, None] * step


def _step(
    landscape: Limited,
    at: _Rises,
    region: Region,
    columns: Int[np.ndarray, " C"],
    direction: Num[np.ndarray, "r C"],
    held: Held,
    before: Num[np.ndarray, " r"],
) -> None:
    """One step of each climb, in place."""
    length = np.max(np.abs(direction), -1)
    ratio = np.minimum(at.radius / np.where(length > 0, length, 1), 1)
    x = region.step(at.x, ratio[:, None] * direction, columns)
    parts = _parts(landscape, x, at.rows, region)
    better = at.lagrangian(parts.value, parts.gaps) > before
    if region.allowed is not None:
        better[better] = region.allows(x[better])
    s = np.subtract(x[:, columns], at.x[:, columns], order="C")
    bend = at.slope - parts.slope - np.vecmat(at.multipliers, at.normals - parts.normals)
    bfgs(at, s, held.along(bend[:, columns]))
    grown = np.minimum(at.radius * 2, LARGEST_RADIUS)
    shrunk = np.minimum(np.max(np.abs(s), -1), at.radius) / 4
    at.radius = np.where(better, grown, shrunk)
    at.x = np.where(better[:, None], x, at.x)
    at.value = np.where(better, parts.value, at.value)
    at.slope = np.where(better[:, None], parts.slope, at.slope)
    at.gaps = np.where(better[:, None], parts.gaps, at.gaps)
    at.normals = np.where(better[:, None, None], parts.normals, at.normals)
