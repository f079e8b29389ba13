"""Faces of a polytope: which of them hold a climb back, and how to move along them.

The polytope is low ≤ x ≤ high, A x ≤ b, with = in the rows that are `equal`. What is left to each
row, b − A x, is its slack. All functions take many points at once, each with bounds and slack of
its own; rows of A need not be independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.runtime.shapes import Bool, Float, Num

BENDS = 12  # faces that one step may be turned along
CORRECTIONS = 16  # of a point that is not within the limits
RIDGE = 1e-12  # of the rows' products, where rows depend on each other
CLEAN = 1e-15  # of the cube: what rounding leaves of a slack


@dataclass(frozen=True, eq=False)
class Held:
    """What climbs may not move along: columns that are pressed, and normals of faces."""

    pressed: Bool[np.ndarray, "r C"]
    normals: Float[np.ndarray, "r k C"] | None = None
    """Zero in pressed columns, and in rows that hold nothing back."""
    products: Float[np.ndarray, "r k k"] | None = None

    @classmethod
    def of(
        cls,
        A: Float[np.ndarray, "k C"],
        pressed: Bool[np.ndarray, "r C"],
        held: Bool[np.ndarray, "r k"],
    ) -> Held:
        """Columns that are pressed, and rows of A that hold."""
        normals = np.where(held[:, :, None] & ~pressed[:, None, :], A, 0.0)
        products = normals @ normals.mT
        eye = np.eye(len(A))
        empty = np.diagonal(products, axis1=1, axis2=2)[:, :, None] <= RIDGE
        return cls(pressed, normals, products + np.where(empty, 1.0, RIDGE) * eye)

    def along(self, V: Num[np.ndarray, "r C"]) -> Num[np.ndarray, "r C"]:
        """The part of vectors that is free."""
        free = np.where(self.pressed, 0, V)
        if self.normals is None:
            return free
        return (free - np.vecmat(self.forces(free), self.normals)).astype(V.dtype)

    def forces(self, free: Num[np.ndarray, "r C"]) -> Float[np.ndarray, "r k"]:
        """How hard vectors push against each face."""
        assert self.normals is not None
        assert self.products is not None
        pushed = np.matvec(self.normals, free)
        if self.products.shape[1] == 1:
            return np.asarray(pushed / self.products[:, 0])
        return np.asarray(np.linalg.solve(self.products, pushed[..., None])[..., 0])

    def some(self, chosen: Bool[np.ndarray, " r"]) -> Held:
        """Some of the climbs."""
        if self.normals is None or self.products is None:
            return Held(self.pressed[chosen])
        return Held(self.pressed[chosen], self.normals[chosen], self.products[chosen])


def hold(
    A: Float[np.ndarray, "k C"],
    equal: Bool[np.ndarray, " k"],
    slack: Float[np.ndarray, "r k"],
    x: Num[np.ndarray, "r C"],
    low: Num[np.ndarray, " C"],
    high: Num[np.ndarray, " C"],
    slope: Num[np.ndarray, "r C"],
    close: float,
) -> Held:
    """The faces within `close` that the slope presses against.

    All faces at hand hold at first; then, one by one, the one that pulls hardest lets go.
    """
    at_low, at_high = x <= low + close, x >= high - close
    pressed, held = at_low | at_high, equal | (slack <= close)
    tiny = 1e-9 * np.max(np.abs(slope), axis=1, initial=0.0)
    C, rows = x.shape[1], np.arange(len(x))
    for _ in range(C + len(A)):
        faces = Held.of(A, pressed, held)
        force = faces.forces(np.where(pressed, 0.0, slope))
        rest = slope - np.where(held, force, 0.0) @ A
        inward = np.maximum(np.where(at_low, rest, -np.inf), np.where(at_high, -rest, -np.inf))
        pull = np.concatenate(
            [np.where(pressed, inward, -np.inf), np.where(held & ~equal, -force, -np.inf)], axis=1
        )
        worst = np.argmax(pull, axis=1)
        loose = pull[rows, worst] > tiny
        if not loose.any():
            return faces
        column, row = loose & (worst < C), loose & (worst >= C)
        pressed[rows[column], worst[column]] = False
        held[rows[row], worst[row] - C] = False
    return Held.of(A, pressed, held)


def slide(
    A: Float[np.ndarray, "k C"],
    equal: Bool[np.ndarray, " k"],
    slack: Float[np.ndarray, "r k"],
    x: Num[np.ndarray, "r C"],
    move: Num[np.ndarray, "r C"],
    low: Num[np.ndarray, "*r C"],
    high: Num[np.ndarray, "*r C"],
) -> Float[np.ndarray, "r C"]:
    """Legal points moved as far as they go, along each face that is in the way."""
    x, left, slack = x.astype(np.float64), move.astype(np.float64), slack.copy()
    pressed = np.broadcast_to(low >= high, x.shape).copy()
    held = np.broadcast_to(equal, slack.shape).copy()
    going = np.ones(len(x), dtype=bool)
    for _ in range(BENDS):
        left[going] = Held.of(A, pressed[going], held[going]).along(left[going])
        rate = left @ A.T
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = np.where(~held & (rate > CLEAN), np.maximum(slack, 0.0) / rate, np.inf)
            ends = np.where(left > 0, (high - x) / left, (low - x) / left)
            ends = np.where(~pressed & (np.abs(left) > CLEAN), np.maximum(ends, 0.0), np.inf)
        first = np.minimum(rows.min(1, initial=np.inf), ends.min(1, initial=np.inf))
        share = np.where(going, np.minimum(first, 1.0), 0.0)[:, None]
        x = np.clip(x + share * left, low, high)
        slack -= share * rate
        going &= first < 1.0
        if not going.any():
            break
        hit = going & np.isfinite(first)
        near = (first * (1 + 1e-12))[:, None]
        pressed |= hit[:, None] & (ends <= near)
        held |= hit[:, None] & (rows <= near)
        left *= 1.0 - share
    return x


def restore(
    A: Float[np.ndarray, "k C"],
    b: Float[np.ndarray, " k"],
    equal: Bool[np.ndarray, " k"],
    x: Float[np.ndarray, "r C"],
    low: Float[np.ndarray, "*r C"],
    high: Float[np.ndarray, "*r C"],
) -> Float[np.ndarray, "r C"]:
    """Points near others and within the limits, by small corrections; some may stay outside."""
    low, high = np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape)
    x = np.clip(x, low, high)
    pressed = low >= high
    held = np.broadcast_to(equal, (len(x), len(A))).copy()
    going = np.arange(len(x))
    for _ in range(CORRECTIONS):
        over = x[going] @ A.T - b
        held[going] |= over > CLEAN
        over = np.where(held[going], over, 0.0)
        wrong = np.any(np.abs(over) > CLEAN, axis=1) & ~np.all(pressed[going], axis=1)
        going, over = going[wrong], over[wrong]
        if len(going) == 0:
            break
        faces = Held.of(A, pressed[going], held[going])
        assert faces.normals is not None
        assert faces.products is not None
        force = np.linalg.solve(faces.products, over[..., None])[..., 0]
        target = x[going] - np.vecmat(force, faces.normals)
        after = np.clip(target, low[going], high[going])
        pressed[going] |= np.abs(after - target) > CLEAN
        moved = np.max(np.abs(after - x[going]), axis=1) > 0.0
        x[going] = after
        going = going[moved]
    return x
