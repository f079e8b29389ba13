"""The knowledge gradient: what an evaluation is expected to add to the best posterior mean.

    KG(x) = E_y [ max_i m(x_i | y at x) ] − max_i m(x_i),   x_i ∈ A ∪ {x}                 (M15)
    m(x_i | y at x) = m(x_i) + b_i z,   b_i = cov(f(x_i), f(x)) / √(s(x) + σ²),   z ~ N(0, 1)

The maximum over the whole space is replaced by one over a few places A where it may be: the set's
own sampled optima, the best data, and the screened points of highest mean. As x is among the
places, a point is not paid for what the mean promises already.

The expectation of the largest of a few lines is exact. They are the largest one after the other, in
the order of their slopes; with c_j where line j hands over to line j + 1,

    KG = Σ_j (b_{j+1} − b_j) g(c_j),    g(c) = φ(c) − |c| Φ(−|c|)                         (M16)

over the lines that are the largest somewhere: every term is at least 0. The walk along them looks
at every line once for each hand-over, of which there are few, and sorts nothing.

Values are averaged over sets and fantasies. Where nothing is pending all fantasies are the same,
and one of them is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from optpair.acquisition.base import SMALLEST, Acquisition, Context, check_sets
from optpair.acquisition.normal import log_ei, log_ndtr
from optpair.gp.posterior import Posterior
from optpair.pairs import OptimalPairs, best_data
from optpair.runtime import compiled, double, pytree

DATA = 4  # best data points among the places
POINTS = 4  # screened points among them
FANTASIES = 32  # of what is pending, over all sets
_DENSITY = 1 / math.sqrt(2 * math.pi)
_FAR = 40.0  # standard deviations: nothing is out there


@pytree
@dataclass(frozen=True)
class KG(Acquisition):
    """The knowledge gradient (M15), in units of y."""

    posterior: Posterior
    places: Float[Array, "M A D"]
    means: Float[Array, "M F A"]
    whitened: Float[Array, "M A n"]  # C⁻¹k(X, x_i)
    weights: Float[Array, "M F n"]  # of the fantasies that are averaged over
    alone: Bool[Array, ""]  # whether they are all the same

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """KG(x)."""
        posterior = replace(self.posterior, weights=self.weights)
        K = posterior.covariance(X)
        A = posterior.whiten(K)
        floor = SMALLEST * posterior.outputscale[:, None]
        variance = jnp.maximum(posterior.variance(A), floor)
        cross = posterior.prior_covariance(X, self.places) - A @ jnp.swapaxes(self.whitened, 1, 2)
        scale = jnp.sqrt(variance + posterior.noise[:, None])[..., None]
        slopes = jnp.concatenate([cross, variance[..., None]], -1) / scale
        means = posterior.means(K)

        def average(there: Float[Array, "M F A"], here: Float[Array, "M F q"]) -> Array:
            shape = (*here.shape, there.shape[-1])
            places = jnp.broadcast_to(there[:, :, None], shape)
            levels = jnp.concatenate([places, here[..., None]], -1)
            gains = lines_gain(levels, jnp.broadcast_to(slopes[:, None], levels.shape))
            return jnp.mean(gains, (0, 1))

        if means.shape[1] == 1:
            return average(self.means, means)
        value: Array = jax.lax.cond(
            self.alone,
            lambda: average(self.means[:, :1], means[:, :1]),
            lambda: average(self.means, means),
        )
        return value


@jax.custom_jvp
def lines_gain(a: Float[Array, "*b A"], b: Float[Array, "*b A"]) -> Float[Array, "*b"]:
    """E max_i (a_i + b_i z) − max_i a_i for z ~ N(0, 1), exactly (M16).

    At least 0, and exact to round-off also where it is far below a and b. Its derivative is that of
    an envelope, Σ (Φ(u_i) − Φ(l_i)) da_i + (φ(l_i) − φ(u_i)) db_i − da_0: line i is the largest
    between l_i and u_i, and line 0 at z = 0.
    """
    first = _first(a, b)

    def meet(walk: tuple[_Walk, Array]) -> tuple[_Walk, Array]:
        at, total = walk
        after, rise = _hand_over(a, b, at)
        more = jnp.where(after.going, rise * _tail_mean(after.z), 0.0)  # (M16)
        return after, total + more

    start = (first, jnp.zeros(a.shape[:-1]))
    _, total = jax.lax.while_loop(lambda walk: jnp.any(walk[0].going), meet, start)
    return total


@lines_gain.defjvp
def _lines_gain_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    a, b = primals
    low, high = _envelope(a, b)
    now = jax.nn.one_hot(jnp.argmax(a, -1), a.shape[-1], dtype=a.dtype)
    chance, push = _between(low, high) - now, _density(low) - _density(high)
    return lines_gain(a, b), jnp.sum(chance * tangents[0] + push * tangents[1], -1)


class _Walk(NamedTuple):
    """Where a walk along the largest lines, from z = −40 upwards, has come to."""

    line: Array  # the largest above z
    z: Array
    going: Array  # whether there may be another one


def _first(a: Float[Array, "*b A"], b: Float[Array, "*b A"]) -> _Walk:
    line = jnp.argmax(a - _FAR * b, -1)
    return _Walk(line, jnp.full(line.shape, -_FAR), jnp.ones(line.shape, dtype=bool))


def _hand_over(
    a: Float[Array, "*b A"], b: Float[Array, "*b A"], at: _Walk
) -> tuple[_Walk, Float[Array, "*b"]]:
    """On to the steeper line that is met first, and how much steeper it is.

    Slopes only rise, so that the walk ends also where round-off makes lines meet in no order.
    """
    level, slope = (jnp.take_along_axis(v, at.line[..., None], -1) for v in (a, b))
    rise = b - slope
    steeper = rise > 0
    meeting = jnp.where(steeper, (level - a) / jnp.where(steeper, rise, 1.0), jnp.inf)
    line = jnp.argmin(meeting, -1)
    z, more = (jnp.take_along_axis(v, line[..., None], -1)[..., 0] for v in (meeting, rise))
    going = at.going & (z < _FAR)
    moved = jnp.maximum(jnp.where(going, z, at.z), at.z)
    return _Walk(jnp.where(going, line, at.line), moved, going), more


def _envelope(
    a: Float[Array, "*b A"], b: Float[Array, "*b A"]
) -> tuple[Float[Array, "*b A"], Float[Array, "*b A"]]:
    """Where each line is the largest, within ±40; from 40 to 40 if nowhere."""
    lines = jnp.arange(a.shape[-1])

    def meet(walk: tuple[_Walk, Array, Array]) -> tuple[_Walk, Array, Array]:
        at, low, high = walk
        after, _ = _hand_over(a, b, at)
        z, going = after.z[..., None], after.going[..., None]
        high = jnp.where(going & (lines == at.line[..., None]), z, high)
        return after, jnp.where(going & (lines == after.line[..., None]), z, low), high

    first = _first(a, b)
    low = jnp.where(lines == first.line[..., None], -_FAR, jnp.full(a.shape, _FAR))
    start = (first, low, jnp.full(a.shape, _FAR))
    _, low, high = jax.lax.while_loop(lambda walk: jnp.any(walk[0].going), meet, start)
    return low, high


def _tail_mean(c: Array) -> Array:
    """g(c) = E max(0, z − |c|)."""
    return jnp.exp(log_ei(-jnp.abs(c)))


def _density(c: Array) -> Array:
    return jnp.exp(-0.5 * c * c) * _DENSITY


def _between(low: Array, high: Array) -> Array:
    """Φ(high) − Φ(low), from the side where both are small."""
    flip = low > 0
    upper, lower = jnp.where(flip, -low, high), jnp.where(flip, -high, low)
    return jnp.exp(log_ndtr(upper)) - jnp.exp(log_ndtr(lower))


def build(context: Context) -> KG:
    """KG from what the engine has at hand."""
    if context.stars is None:
        raise ValueError("the knowledge gradient needs optimal pairs")
    return _of(context.posterior, jnp.asarray(context.stars.x), context.points)


def _of(posterior: Posterior, x: Float[Array, "M P D"], points: Float[Array, "N D"]) -> KG:
    sets, _, D = x.shape
    screened = jnp.mean(posterior.means(posterior.covariance(points)), 1)
    _, best = jax.lax.top_k(screened, min(POINTS, len(points)))
    data = jnp.broadcast_to(best_data(posterior, DATA), (sets, DATA, D))
    places = jnp.concatenate([x, data, points[best]], 1)
    return _at(posterior, places)


def _at(posterior: Posterior, places: Float[Array, "M A D"]) -> KG:
    sets, fantasies, _ = posterior.weights.shape
    weights = posterior.weights[:, : min(fantasies, -(-FANTASIES // sets))]
    K = posterior.covariance(places)
    means = replace(posterior, weights=weights).means(K)
    alone = jnp.all(weights == weights[:, :1])
    return KG(posterior, places, means, posterior.whiten(K), weights, alone)


_compiled = compiled()(_of)


@double
def kg(posterior: Posterior, stars: OptimalPairs, points: ArrayLike | None = None) -> KG:
    """The knowledge gradient as a function of points, in units of y: `kg(posterior, stars)(X)`.

    The places where the best posterior mean may be are the optima x*, the best data and the best
    of `points` (N, d), by default the data.
    """
    check_sets(posterior, stars.f)
    given = posterior.X[posterior.mask] if points is None else points
    return _compiled(posterior, jnp.asarray(stars.x), jnp.asarray(given))
