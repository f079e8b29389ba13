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

Values are averaged over sets and fantasies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optpair.acquisition.base import Acquisition, Context, Points, Rows, check_sets
from optpair.acquisition.special.normal import Reals, log_ei, log_ndtr
from optpair.gp.kernels.base import Between
from optpair.gp.posterior import Posterior, Query, as_points
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float, Int
from optpair.runtime.threads import engine_work

DATA = 4  # best data points among the places
POINTS = 4  # screened points among them
FANTASIES = 32  # of what is pending, over all sets
_DENSITY = 1 / math.sqrt(2 * math.pi)
_FAR = 40.0  # standard deviations: nothing is out there


class Lines(NamedTuple):
    """m(x_i | y at x) as lines in z: those of the places, and last that of x itself."""

    query: Query
    between: Between  # x and the places
    scale: Float[np.ndarray, "M q 1"]  # √(s + σ²)
    levels: Float[np.ndarray, "M F q A"]
    slopes: Float[np.ndarray, "M q A"]


@dataclass(frozen=True, repr=False)
class KG(Acquisition):
    """The knowledge gradient (M15), in units of y."""

    posterior: Posterior
    """With the fantasies that are averaged over."""
    places: Float[np.ndarray, "M A D"]
    means: Float[np.ndarray, "M F A"]
    whitened: Float[np.ndarray, "M A n"]  # C⁻¹k(X, x_i)

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.dimensions

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """KG(x)."""
        lines = self._lines(X)
        slopes = np.broadcast_to(lines.slopes[:, None], lines.levels.shape)
        return np.asarray(np.mean(lines_gain(lines.levels, slopes), (0, 1)))

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """KG(x), and its derivatives."""
        query, between, scale, levels, slopes = self._lines(X)
        own = np.broadcast_to(slopes[:, None], levels.shape)
        gains, by_levels, by_slopes = lines_gain_and_slopes(levels, own)
        count = levels.shape[0] * levels.shape[1]
        by_lines = by_slopes.sum(1) / (count * scale)  # by the numerators of b
        by_cross = by_lines[..., :-1]
        by_scale = -np.sum(by_lines * slopes, -1)
        by_variance = by_lines[..., -1] + by_scale / (2 * scale[..., 0])
        by_variance[query.variance <= self.posterior.floor[:, None]] = 0.0
        by_means = by_levels[..., -1] / count
        slope = query.pull(by_means, by_variance, -(by_cross @ self.whitened))
        return np.mean(gains, (0, 1)), (slope + between.pull(by_cross)).sum(0)

    def _lines(self, X: Points) -> Lines:
        posterior = self.posterior
        query = posterior.at(X)
        between = posterior.covariance.between(X, self.places)
        variance = np.maximum(query.variance, posterior.floor[:, None])[..., None]
        cross = between.K - query.A @ self.whitened.mT
        scale = np.sqrt(variance + posterior.noise[:, None, None])
        slopes = np.concatenate([cross, variance], -1) / scale
        here = query.means[..., None]
        there = np.broadcast_to(self.means[:, :, None], (*here.shape[:3], self.means.shape[2]))
        return Lines(query, between, scale, np.concatenate([there, here], -1), slopes)


def lines_gain(
    a: Float[np.ndarray, "*b A"], b: Float[np.ndarray, "*b A"]
) -> Float[np.ndarray, "*b"]:
    """E max_i (a_i + b_i z) − max_i a_i for z ~ N(0, 1), exactly (M16).

    At least 0, and exact to round-off also where it is far below a and b.
    """
    A = a.shape[-1]
    walk = _walk(a.reshape(-1, A), b.reshape(-1, A))
    return _total(walk, a.shape[:-1])


def lines_gain_and_slopes(
    a: Float[np.ndarray, "*b A"], b: Float[np.ndarray, "*b A"]
) -> tuple[Float[np.ndarray, "*b"], Float[np.ndarray, "*b A"], Float[np.ndarray, "*b A"]]:
    """The gain of `lines_gain` and its derivatives in a and b, those of an envelope.

        Φ(u_i) − Φ(l_i), less 1 for the largest a_i,    φ(l_i) − φ(u_i)

    where line i is the largest between l_i and u_i; 0 where it is nowhere.
    """
    shape, A = a.shape, a.shape[-1]
    flat = a.reshape(-1, A)
    walk = _walk(flat, b.reshape(-1, A))
    every = np.arange(len(flat))
    low, high = np.full(flat.shape, _FAR), np.full(flat.shape, _FAR)
    low[every, walk.first] = -_FAR
    high[walk.row, walk.before] = walk.z
    low[walk.row, walk.after] = walk.z
    somewhere = np.nonzero(low < high)
    by_a, by_b = np.zeros(flat.shape), np.zeros(flat.shape)
    start, end = low[somewhere], high[somewhere]
    by_a[somewhere] = _between(start, end)
    by_b[somewhere] = _density(start) - _density(end)
    by_a[every, np.argmax(flat, -1)] -= 1
    return _total(walk, shape[:-1]), by_a.reshape(shape), by_b.reshape(shape)


class _Walk(NamedTuple):
    """The lines that are the largest one after the other, from z = −40 upwards."""

    first: Int[np.ndarray, " B"]  # the largest line at −40
    row: Int[np.ndarray, " H"]  # hand-overs: of which row,
    before: Int[np.ndarray, " H"]  # from which line
    after: Int[np.ndarray, " H"]  # to which,
    z: Float[np.ndarray, " H"]  # where,
    rise: Float[np.ndarray, " H"]  # and how much steeper it is


def _walk(a: Float[np.ndarray, "B A"], b: Float[np.ndarray, "B A"]) -> _Walk:
    """All hand-overs: each is to the steeper line that is met first.

    Slopes only rise, so that the walk ends also where round-off makes lines meet in no order.
    """
    first = np.argmax(a - _FAR * b, -1)
    row, line, z = np.arange(len(a)), first, np.full(len(a), -_FAR)
    found = []
    while len(row):
        every = np.arange(len(row))
        rise = b - b[every, line][:, None]
        meeting = np.full(a.shape, np.inf)
        np.divide(a[every, line][:, None] - a, rise, out=meeting, where=rise > 0)
        after = np.argmin(meeting, -1)
        met = meeting[every, after]
        going = np.flatnonzero(met < _FAR)
        z = np.maximum(met[going], z[going])
        row, before, line, rise = row[going], line[going], after[going], rise[going, after[going]]
        found.append((row, before, line, z, rise))
        a, b = a[going], b[going]
    parts = zip(*found, strict=True) if found else ((first[:0],) * 3 + (z, z))
    return _Walk(first, *(np.concatenate(part) for part in parts))


def _total(walk: _Walk, shape: tuple[int, ...]) -> Reals:
    """Σ_j (b_{j+1} − b_j) g(c_j) (M16), g(c) = E max(0, z − |c|)."""
    terms = walk.rise * np.exp(log_ei(-np.abs(walk.z)))
    total = np.bincount(walk.row, terms, len(walk.first)).astype(float)  # int where H = 0
    return total.reshape(shape)


def _density(c: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    return np.asarray(np.exp(-0.5 * c * c) * _DENSITY)


def _between(
    low: Float[np.ndarray, " N"], high: Float[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """Φ(high) − Φ(low), from the side where both are small."""
    flip = low > 0
    upper, lower = np.where(flip, -low, high), np.where(flip, -high, low)
    return np.asarray(np.exp(log_ndtr(upper)) - np.exp(log_ndtr(lower)))


def _means(posterior: Posterior, points: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "M N"]:
    """The posterior mean of each set, averaged over fantasies, a block of points at a time."""
    weights = posterior.weights.mean(1)
    found = np.repeat(posterior.mean[:, None], len(points), 1)
    for block in posterior.blocks(len(points)):
        K = posterior.target.between(points[block]).K
        found[:, block] += np.matvec(K, weights)
    return found


def _of(
    posterior: Posterior, x: Float[np.ndarray, "M P D"], points: Float[np.ndarray, "N D"]
) -> KG:
    return at_places(posterior, likely_places(posterior, x, points, posterior.best_data(DATA)))


def likely_places(
    posterior: Posterior,
    x: Float[np.ndarray, "M P D"],
    points: Float[np.ndarray, "N D"],
    data: Float[np.ndarray, "k D"],
) -> Float[np.ndarray, "M A D"]:
    """Where the best posterior mean may be: sampled optima, the best data, and the best points."""
    order = np.argsort(-_means(posterior, points), axis=1, kind="stable")
    data = np.broadcast_to(data, (len(x), *data.shape))
    return np.concatenate([x, data, points[order[:, :POINTS]]], 1)


def at_places(posterior: Posterior, places: Float[np.ndarray, "M A D"]) -> KG:
    """The knowledge gradient with these places, and some of the fantasies."""
    fewer = posterior.some_fantasies(-(-FANTASIES // posterior.sets))
    query = fewer.at(places)
    return KG(fewer, places, query.means, query.A)


def build(context: Context) -> KG:
    """KG from what the engine has at hand."""
    optima = context.need_optima("the knowledge gradient")
    return _of(context.posterior, optima.star, context.points)


@engine_work
def kg(posterior: Posterior, optima: Optima, points: ArrayLike | None = None) -> KG:
    """The knowledge gradient as a function of points, in units of y: `kg(posterior, optima)(X)`.

    The places where the best posterior mean may be are the optima x*, the best data and the best
    of `points` (N, d), by default the data.
    """
    check_sets(posterior, optima.f)
    given = posterior.told if points is None else as_points(points, posterior.dimensions)
    return _of(posterior, optima.star, given)
