"""Points that fill a polytope: a sweep of Gibbs sampling with evenly spread numbers.

Within its affine hull, u = c + Z z, the polytope has a point in the inside. Chains that start there
(hit and run, Smith 1984) find its shape, and leave a pool of points all over it. One step from each
of these along every axis of the shape, to a given share of the chord, makes a new point. If the
polytope is a box, the shares themselves are the points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.problem.linear import Rows
from optpair.runtime.shapes import Float

POOL = 512  # points that a sweep starts from
ROUNDS = 3  # of chains, each in the shape that the last one has found
FLAT = 1e-7  # of the cube: directions in which a polytope is not wider have no inside


@dataclass(frozen=True, eq=False)
class Hull:
    """The affine hull of a polytope, and the polytope's shape in it."""

    centre: Float[np.ndarray, " C"]
    axes: Float[np.ndarray, "A C"]
    """Directions, as long as the polytope is wide there: one standard deviation."""
    sides: Float[np.ndarray, "m A"]
    """Rows of the polytope in the axes: sides @ z ≤ slack."""
    slack: Float[np.ndarray, " m"]
    pool: Float[np.ndarray, "P A"]

    @classmethod
    def of(cls, rows: Rows, low: Float[np.ndarray, " C"], high: Float[np.ndarray, " C"]) -> Hull:
        """The hull of the points between bounds and within rows; there must be one."""
        G = np.concatenate([rows.A[~rows.equal], np.eye(len(low)), -np.eye(len(low))])
        h = np.concatenate([rows.b[~rows.equal], high, -low])
        centre, flat = _inside(G, h, rows.A[rows.equal], rows.b[rows.equal])
        E = np.concatenate([rows.A[rows.equal], G[flat]])
        e = np.concatenate([rows.b[rows.equal], h[flat]])
        basis = np.eye(len(low))
        if len(E):
            centre = centre - np.linalg.lstsq(E, E @ centre - e, rcond=1e-10)[0]
            _, sizes, V = np.linalg.svd(E)
            basis = V[np.count_nonzero(sizes > 1e-10 * sizes[0]) :]
        centre = np.clip(centre, low, high)
        G, h = G[~flat], h[~flat]
        return cls._shaped(centre, basis, G, np.maximum(h - G @ centre, 0.0))

    @classmethod
    def _shaped(
        cls, centre: np.ndarray, basis: np.ndarray, G: np.ndarray, slack: np.ndarray
    ) -> Hull:
        """The shape, as chains that are always the same find it."""
        rng, A = np.random.default_rng(0), len(basis)
        hull = cls(centre, basis, G @ basis.T, slack, np.zeros((POOL, A)))
        for _ in range(ROUNDS if A else 0):
            z = hull.pool
            for _ in range(10 + 2 * A):
                z = hull._step(z, rng.standard_normal((POOL, A)), rng.uniform(size=POOL))
            inner = z @ hull.axes @ basis.T
            widths, turned = np.linalg.eigh(np.cov(inner.T).reshape(A, A))
            scale = np.maximum(np.sqrt(np.maximum(widths, 0.0)), 1e-12)[::-1]  # the widest first
            axes = (turned.T[::-1] * scale[:, None]) @ basis
            hull = cls(centre, axes, G @ axes.T, slack, inner @ turned[:, ::-1] / scale)
        return hull

    def points(self, U: Float[np.ndarray, "N A"], first: int = 0) -> Float[np.ndarray, "N C"]:
        """Points of the polytope from points of [0,1]^A, the i-th from the pool's first + i."""
        if len(self.axes) == 0:
            return np.repeat(self.centre[None], len(U), axis=0)
        z = self.pool[(first + np.arange(len(U))) % POOL]
        for axis, share in zip(np.eye(len(self.axes)), U.T, strict=False):
            z = self._step(z, np.broadcast_to(axis, z.shape), share)
        return np.asarray(self.centre + z @ self.axes)

    def _step(self, z: np.ndarray, direction: np.ndarray, share: np.ndarray) -> np.ndarray:
        """To a share of the chord through each point."""
        rate, slack = direction @ self.sides.T, np.maximum(self.slack - z @ self.sides.T, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = slack / rate
        ahead = np.min(np.where(rate > 1e-14, reach, np.inf), axis=1)
        behind = np.max(np.where(rate < -1e-14, reach, -np.inf), axis=1)
        chord = np.where(np.isfinite(ahead) & np.isfinite(behind), ahead - behind, 0.0)
        begin = np.where(chord > 0, behind, 0.0)
        return np.asarray(z + (begin + share * chord)[:, None] * direction)


def _inside(
    G: np.ndarray, h: np.ndarray, E: np.ndarray, e: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A point with room on every side that has any, and which sides have none.

    One linear programme: maximise Σ s, 0 ≤ s ≤ 1, G x + s ≤ α h, E x = α e, α ≥ 1; then x / α.
    """
    from scipy.optimize import linprog  # late: it takes long to import

    m, n = G.shape
    found = linprog(
        np.concatenate([np.zeros(n + 1), -np.ones(m)]),
        A_ub=np.hstack([G, -h[:, None], np.eye(m)]),
        b_ub=np.zeros(m),
        A_eq=np.hstack([E, -e[:, None], np.zeros((len(E), m))]) if len(E) else None,
        b_eq=np.zeros(len(E)) if len(E) else None,
        bounds=[(None, None)] * n + [(1.0, 1.0 / FLAT)] + [(0.0, 1.0)] * m,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        raise ValueError(f"the limits leave no point of the cube: {found.message}")
    x, flat = found.x[:n] / found.x[n], found.x[n + 1 :] < 0.5
    return x, flat
