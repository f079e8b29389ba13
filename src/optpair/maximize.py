"""Maximisation over the legal points of the cube: screen, ascend, polish.

A function here maps points (..., r, D) to values (..., r), each row on its own: an acquisition
function has no leading axes, sample paths have (set, path). Everything is traced and batched, so
that hundreds of starts cost little more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from optpair.cube import Cube, Moves
from optpair.programs import kept
from optpair.runtime import Numbers, Stream, compiled

BLOCK = 128  # rows screened at once, at most: their kernel rows stay in cache
ROWS = 768  # rows evaluated at once in a discrete move, at most: those of all functions together
FIRST_RADIUS, LARGEST_RADIUS = 0.1, 0.5
ROUNDS = 2  # of discrete moves, each followed by a climb

Function = Callable[[Float[Array, "*b r D"]], Float[Array, "*b r"]]


@runtime_checkable
class OnCube(Protocol):
    """A function on the cube that is also a pytree, so that compiled code is reused."""

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """Values at the points X."""
        ...


@lru_cache(maxsize=32)
def sobol(parameters: int, points: int) -> Float[np.ndarray, "N d"]:
    """Sobol points of the unit cube, the same ones always; shift them by a key."""

    def make() -> np.ndarray:
        from scipy.stats import qmc  # takes half a second to import

        rounded = 1 << (points - 1).bit_length()
        return np.asarray(qmc.Sobol(parameters, scramble=True, rng=0).random(rounded)[:points])

    return kept(f"sobol-{parameters}-{points}-scipy-{version('scipy')}", make)


def space_filling(
    shift: Float[Numbers, " d"], cube: Cube, base: Float[Numbers, "N d"]
) -> Float[Array, "N D"]:
    """Legal points that fill the space: Sobol points, shifted around the torus."""
    return cube.spread((jnp.asarray(base) + shift) % 1.0)


def near(
    scale: Float[Array, "N 1"], moves: Moves, cube: Cube, anchors: Float[Array, "A D"]
) -> Float[Array, "N D"]:
    """Legal points near the anchors, moved by so much; the anchors themselves come first."""
    points = len(scale)
    centres = jnp.tile(anchors, (-(-points // len(anchors)), 1))[:points]
    moved = cube.perturb(moves, centres, scale)
    return jnp.where(jnp.arange(points)[:, None] < len(anchors), centres, moved)


class Search(NamedTuple):
    """The points of a screening, up to the anchors that some of them surround."""

    base: Float[Numbers, "N d"]  # Sobol points
    shift: Float[Numbers, " d"]  # of all of them
    scale: Float[Numbers, "n 1"]  # distances from the anchors
    moves: Moves

    @classmethod
    def of(cls, stream: Stream, cube: Cube, points: int, anchors: int) -> Search:
        """`points` that fill the space, and a quarter as many at 0.001 to 0.3 from the anchors."""
        rng, around = stream.draw(), max(points // 4, anchors)
        return cls(
            sobol(cube.parameters, points),
            rng.uniform(size=cube.parameters),
            10 ** rng.uniform(-3.0, -0.5, (around, 1)),
            cube.moves(rng, around),
        )

    def points(
        self, cube: Cube, anchors: Float[Array, "A D"]
    ) -> tuple[Float[Array, "n D"], Float[Array, "N D"]]:
        """Those near the anchors, and those that fill the space."""
        surrounding = near(jnp.asarray(self.scale), self.moves, cube, anchors)
        return surrounding, space_filling(self.shift, cube, self.base)


def screen(
    function: Function, X: Float[Array, "*c N D"], block: int = BLOCK
) -> Float[Array, "*b N"]:
    """Values at many points, shared or each function's own, a block of them at a time."""
    *own, N, D = X.shape
    blocks = -(-N // block)
    rows = -(-N // blocks)
    spare = jnp.broadcast_to(X[..., -1:, :], (*own, blocks * rows - N, D))
    padded = jnp.concatenate([X, spare], -2).reshape(*own, blocks, rows, D)
    values = jax.lax.map(function, jnp.moveaxis(padded, -3, 0))
    return jnp.moveaxis(values, 0, -2).reshape(*values.shape[1:-1], -1)[..., :N]


class _Climb(NamedTuple):
    x: Array
    value: Array
    slope: Array
    inverse: Array  # of the negative Hessian, by BFGS
    radius: Array
    fresh: Array  # no curvature seen yet


def ascend(
    function: Function,
    X: Float[Array, "*b r D"],
    free: Bool[Numbers, " D"],
    steps: int | Array,
    radius: float = FIRST_RADIUS,
) -> tuple[Float[Array, "*b r D"], Float[Array, "*b r"]]:
    """Climb from every start at once inside [0, 1]^D, moving the free columns only.

    Projected BFGS with a trust radius: coordinates that press against a face are held, a step that
    does not improve is refused and the radius shrinks, so the value never falls. One evaluation of
    the function and its gradient a step.
    """
    mask = jnp.asarray(free)
    eye = jnp.eye(X.shape[-1], dtype=X.dtype)

    def gradient(X: Array) -> tuple[Array, Array]:
        values, pullback = jax.vjp(function, X)
        return values, pullback(jnp.ones_like(values))[0]

    def step(_: Array | int, at: _Climb) -> _Climb:
        pressed = ((at.x <= 0) & (at.slope < 0)) | ((at.x >= 1) & (at.slope > 0)) | ~mask
        slope = jnp.where(pressed, 0.0, at.slope)
        newton = jnp.where(pressed, 0.0, jnp.sum(at.inverse * slope[..., None, :], -1))
        uphill = jnp.sum(newton * slope, -1, keepdims=True) > 0
        direction = jnp.where(uphill & ~at.fresh[..., None], newton, slope)
        length = jnp.max(jnp.abs(direction), -1, keepdims=True)
        ratio = at.radius[..., None] / jnp.where(length > 0, length, 1.0)
        ratio = jnp.where(at.fresh[..., None], ratio, jnp.minimum(ratio, 1.0))
        x = jnp.clip(at.x + ratio * direction, 0.0, 1.0)
        value, slope_there = gradient(x)
        better = value > at.value

        s = x - at.x
        bend = jnp.where(pressed, 0.0, at.slope - slope_there)
        inverse, learnt = _bfgs(at.inverse, s, bend, at.fresh, eye)
        # Growing too eagerly costs refused steps, shrinking too little costs more of them.
        grown = jnp.minimum(at.radius * 2, LARGEST_RADIUS)
        shrunk = jnp.minimum(jnp.max(jnp.abs(s), -1), at.radius) / 4
        return _Climb(
            x=jnp.where(better[..., None], x, at.x),
            value=jnp.where(better, value, at.value),
            slope=jnp.where(better[..., None], slope_there, at.slope),
            inverse=inverse,
            radius=jnp.where(better, grown, shrunk),
            fresh=at.fresh & ~learnt,
        )

    # Nothing is known at the start: without a slope the first step stays there and looks around.
    start = _Climb(
        X,
        jnp.full(X.shape[:-1], -jnp.inf, X.dtype),
        jnp.zeros_like(X),
        jnp.broadcast_to(eye, (*X.shape, X.shape[-1])),
        jnp.full(X.shape[:-1], radius / 2, X.dtype),
        jnp.ones(X.shape[:-1], dtype=bool),
    )
    end = jax.lax.fori_loop(0, steps + 1, step, start)
    return end.x, end.value


def _bfgs(inverse: Array, s: Array, bend: Array, fresh: Array, eye: Array) -> tuple[Array, Array]:
    """The BFGS update of an inverse Hessian H, skipped where the curvature is not positive.

    H + ρ (1 + ρ bᵀHb) ssᵀ − ρ (s(Hb)ᵀ + (Hb)sᵀ),   ρ = 1/sᵀb, b the bend of the slope along s
    """
    curvature = jnp.sum(s * bend, -1)
    norms = jnp.sqrt(jnp.sum(s * s, -1) * jnp.sum(bend * bend, -1))
    usable = (curvature > 1e-8 * norms) & (norms > 0)
    rho = jnp.where(usable, 1 / jnp.where(usable, curvature, 1.0), 0.0)[..., None, None]
    size = curvature / jnp.where(usable, jnp.sum(bend * bend, -1), 1.0)
    base = jnp.where(fresh[..., None, None], size[..., None, None] * eye, inverse)
    turned = jnp.sum(base * bend[..., None, :], -1)
    share = 1 + rho * jnp.sum(bend * turned, -1)[..., None, None]
    both = s[..., :, None] * turned[..., None, :]
    updated = base + rho * (
        share * s[..., :, None] * s[..., None, :] - both - jnp.swapaxes(both, -1, -2)
    )
    return jnp.where(usable[..., None, None], updated, inverse), usable


def climb(
    function: Function, cube: Cube, X: Float[Array, "*b r D"], steps: int
) -> tuple[Float[Array, "*b r D"], Float[Array, "*b r"]]:
    """Ascend from legal points to legal points.

    Stepped columns are relaxed on the way up and rounded after. Then each round tries every
    one-move discrete neighbour, takes the best, and ascends again in the continuous columns.
    """
    if cube.is_continuous:
        return ascend(function, X, cube.continuous, steps)
    later = max(steps // 2, 4) if cube.continuous.any() else 0

    def one_round(k: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        x, first = at[0], k == 0
        free = jnp.where(first, cube.numeric, cube.continuous)
        up, value = ascend(function, x, free, jnp.where(first, steps, later))
        return jax.lax.cond(  # type: ignore[no-any-return]
            k < ROUNDS, lambda: _best_move(function, cube, x, cube.snap(up)), lambda: (up, value)
        )

    # In a loop the function is compiled twice, for a climb and for moves, however many there are.
    start = X, jnp.full(X.shape[:-1], -jnp.inf, X.dtype)
    end: tuple[Array, Array] = jax.lax.fori_loop(0, ROUNDS + 1, one_round, start)
    return end


def _best_move(function: Function, cube: Cube, x: Array, up: Array) -> tuple[Array, Array]:
    """The best of the legal points `up`, those one discrete move from it, and x."""
    moves = jnp.concatenate([up[..., None, :], x[..., None, :], cube.neighbours(up)], axis=-2)
    *batch, r, K, D = moves.shape
    block = max(ROWS // int(np.prod(batch)), 1)
    values = screen(function, moves.reshape(*batch, r * K, D), block).reshape(*batch, r, K)
    best = jnp.argmax(jnp.where(jnp.isnan(values), -jnp.inf, values), -1)[..., None]
    value = jnp.take_along_axis(values, best, -1)[..., 0]
    return jnp.take_along_axis(moves, best[..., None], -2)[..., 0, :], value


@compiled("starts", "steps")
def maximize(
    function: OnCube,
    cube: Cube,
    candidates: Float[Array, "N D"],
    values: Float[Array, " N"] | None = None,
    *,
    starts: int,
    steps: int,
) -> tuple[Float[Array, " D"], Float[Array, ""]]:
    """The best legal point found, and its value.

    Candidates are screened, unless their values are known; the best of each of `starts` consecutive
    groups is climbed from. Order the candidates by where they come from, and every source has its
    say.
    """
    N = len(candidates)
    values = screen(function.evaluate, candidates) if values is None else values
    values = jnp.where(jnp.isfinite(values), values, -jnp.inf)
    groups = min(starts, N)
    size = -(-N // groups)
    padded = jnp.concatenate([values, jnp.full(groups * size - N, -jnp.inf)])
    best = jnp.argmax(padded.reshape(groups, size), -1) + size * jnp.arange(groups)
    best = jnp.minimum(best, N - 1)
    x, value = climb(function.evaluate, cube, candidates[best], steps)
    winner = jnp.argmax(jnp.where(jnp.isfinite(value), value, -jnp.inf))
    return x[winner], value[winner]
