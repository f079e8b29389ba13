"""The knowledge gradient: what an evaluation is expected to add to the best posterior mean.

    KG(x) = E_y [ max_i m(x_i | y at x) ] − max_i m(x_i),   x_i ∈ A ∪ {x}                 (M15)
    m(x_i | y at x) = m(x_i) + b_i z,   b_i = cov(f(x_i), f(x)) / √(s(x) + σ²),   z ~ N(0, 1)

The maximum over the whole space is replaced by one over a few places A where it may be: the set's
own sampled optima, the best data, and the screened points of highest mean. As x is among the
places, a point is not paid for what the mean promises already.

The expectation of the largest of a few lines is exact. With line 0 the largest at z = 0, and
(l_i, u_i) where line i is the largest,

    KG = Σ_i (b_i − b_0) (g(l_i) − g(u_i)),    g(c) = φ(c) − |c| Φ(−|c|)                  (M16)

over the lines that are the largest somewhere: every term is at least 0. Values are averaged over
sets and fantasies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """KG(x)."""
        posterior = self.posterior
        K = posterior.covariance(X)
        A = posterior.whiten(K)
        floor = SMALLEST * posterior.outputscale[:, None]
        variance = jnp.maximum(posterior.variance(A), floor)
        cross = posterior.prior_covariance(X, self.places) - A @ jnp.swapaxes(self.whitened, 1, 2)
        scale = jnp.sqrt(variance + posterior.noise[:, None])[..., None]
        slopes = jnp.concatenate([cross, variance[..., None]], -1) / scale
        means = posterior.means(K)
        there = jnp.broadcast_to(self.means[:, :, None], (*means.shape, self.means.shape[-1]))
        levels = jnp.concatenate([there, means[..., None]], -1)
        each = jnp.broadcast_to(slopes[:, None], levels.shape)
        return jnp.mean(lines_gain(levels, each), (0, 1))


@jax.custom_jvp
def lines_gain(a: Float[Array, "*b A"], b: Float[Array, "*b A"]) -> Float[Array, "*b"]:
    """E max_i (a_i + b_i z) − max_i a_i for z ~ N(0, 1), exactly (M16).

    At least 0, and exact to round-off also where it is far below a and b. Its derivative is that of
    an envelope, Σ (Φ(u_i) − Φ(l_i)) da_i + (φ(l_i) − φ(u_i)) db_i − da_0.
    """
    a, b, _ = _by_slope(a, b)
    low, high, largest = _envelope(a, b)
    rise = b - jnp.take_along_axis(b, jnp.argmax(a, -1)[..., None], -1)
    part = rise * (_tail_mean(low) - _tail_mean(high))
    return jnp.sum(jnp.where(largest, jnp.maximum(part, 0.0), 0.0), -1)


@lines_gain.defjvp
def _lines_gain_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    a, b, order = _by_slope(*primals)
    a_step, b_step = (jnp.take_along_axis(step, order, -1) for step in tangents)
    low, high, largest = _envelope(a, b)
    chance = jnp.where(largest, _between(low, high), 0.0)
    push = jnp.where(largest, _density(low) - _density(high), 0.0)
    now = jax.nn.one_hot(jnp.argmax(a, -1), a.shape[-1], dtype=a.dtype)
    return lines_gain(*primals), jnp.sum((chance - now) * a_step + push * b_step, -1)


def _by_slope(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Lines sorted by slope, then by level, and their order.

    What is sorted is stored. Compared while they are computed, two equal lines may be rounded in
    two ways, and each be the steeper one.
    """
    order = jnp.broadcast_to(jnp.arange(a.shape[-1]), a.shape)
    b, a, order = jax.lax.sort((b, a, order), num_keys=2)
    return a, b, order


def _envelope(
    a: Float[Array, "*b A"], b: Float[Array, "*b A"]
) -> tuple[Float[Array, "*b A"], Float[Array, "*b A"], Bool[Array, "*b A"]]:
    """Where each sorted line is the largest, and whether it is anywhere, within ±40."""
    above = a[..., None, :] - a[..., :, None]  # of j over i
    steeper = b[..., None, :] - b[..., :, None]
    crossing = -above / jnp.where(steeper == 0, 1.0, steeper)
    low = jnp.max(jnp.where(steeper < 0, crossing, -_FAR), -1)
    high = jnp.min(jnp.where(steeper > 0, crossing, _FAR), -1)
    hidden = jnp.append(b[..., 1:] == b[..., :-1], jnp.zeros_like(b[..., :1], dtype=bool), -1)
    return low, high, (low < high) & ~hidden


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
    K = posterior.covariance(places)
    return KG(posterior, places, posterior.means(K), posterior.whiten(K))


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
