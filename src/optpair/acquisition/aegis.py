"""AEGiS, asynchronous ε-greedy global search: for many trials at once.

By De Ath, Everson and Fieldsend (2021). Every ask tosses a coin, and looks

    (G1)  with probability 1 − 2ε where m is largest,  with ε where a sample path is largest,
          with ε at a random point of the Pareto set of m and √s,    ε = min(½, 1/√d)

m and √s are means over sets. Asks that do not see each other differ by their coins, paths and
points, so that workers need not wait. In up to four dimensions nothing is greedy.

The Pareto set is that of the screened points: those of which none has both a higher m and a higher
√s. Of these one is drawn, z, and what is maximised is the lesser of two gains over it,

    (G2)  m(z) + min(m(x) − m(z), √s(x) − √s(z))

which is largest at a point that is no worse than z in either: on the Pareto set of the whole space.

Where this differs from the paper: the Pareto set is found so and not by an evolutionary search, and
what is pending counts by the fantasies that all acquisition functions have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from optpair.acquisition.base import Acquisition, Context, OfMoments, Partials, bounded
from optpair.acquisition.mean import mean
from optpair.acquisition.ts import build as build_ts
from optpair.acquisition.ts import ts
from optpair.gp.posterior import Posterior, as_points
from optpair.runtime.shapes import Float, Int
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work


@dataclass(frozen=True, repr=False)
class Tradeoff(OfMoments):
    """The lesser of the gains over a point in m and in √s (G2), in units of y."""

    posterior: Posterior
    centre: float  # m(z)
    spread: float  # √s(z)

    def of_moments(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, " q"]:
        """Values where the posterior has these moments."""
        m, sd = _both(self.posterior, means, variance)
        return np.asarray(np.minimum(m, self.centre + (sd - self.spread)))  # (G2)

    def partials(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Partials:
        """Values, and the derivatives of the lesser of the two."""
        m, sd = _both(self.posterior, means, variance)
        other = self.centre + (sd - self.spread)
        of_mean = m <= other
        s, free = bounded(self.posterior, variance)
        by_means = of_mean * np.full(means.shape, 1 / (means.shape[0] * means.shape[1]))
        by_variance = ~of_mean * 0.5 / (np.sqrt(s) * len(s)) * free
        return Partials(np.minimum(m, other), by_means, by_variance)


def _both(
    posterior: Posterior, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """m and √s, averaged over sets and fantasies."""
    s, _ = bounded(posterior, variance)
    return means.mean((0, 1)), np.sqrt(s).mean(0)


def _pareto(
    first: Float[np.ndarray, " N"], second: Float[np.ndarray, " N"]
) -> Int[np.ndarray, " k"]:
    """The entries of which none is larger in one and no smaller in the other."""
    order = np.lexsort((-second, -first))
    best = np.maximum.accumulate(np.append(-np.inf, second[order]))[:-1]
    return np.sort(order[second[order] > best])


def _tradeoff(posterior: Posterior, points: Float[np.ndarray, "N D"], stream: Stream) -> Tradeoff:
    m, sd = _both(posterior, *posterior.moments(points))
    chosen = int(stream.draw().choice(_pareto(m, sd)))
    return Tradeoff(posterior, float(m[chosen]), float(sd[chosen]))


def schedule(parameters: int) -> float:
    """ε of so many parameters."""
    return min(0.5, 1 / math.sqrt(parameters))


def _side(stream: Stream, epsilon: float) -> str:
    """What the coin says (G1)."""
    u = stream.draw().uniform()
    return "path" if u < epsilon else "tradeoff" if u < 2 * epsilon else "mean"


def build(context: Context) -> Acquisition:
    """AEGiS from what the engine has at hand."""
    if context.paths is None:
        raise ValueError("AEGiS needs sample paths")
    coin, own = context.stream.child(0), context.stream.child(1)
    side = _side(coin, schedule(context.cube.parameters))
    if side == "path":
        return build_ts(replace(context, stream=own))
    if side == "tradeoff":
        return _tradeoff(context.posterior, context.points, own)
    return mean(context.posterior)


@engine_work
def aegis(
    posterior: Posterior, points: ArrayLike, seed: int = 0, *, epsilon: float | None = None
) -> Acquisition:
    """AEGiS as a function of points: `aegis(posterior, points, seed)(X)`, in units of y.

    Args:
        posterior: what is known of the objective.
        points: (N, d); the Pareto set is that of these.
        seed: tosses the coin, and draws the path or the point.
        epsilon: from 0 to ½; None means min(½, 1/√d).
    """
    given = as_points(points, posterior.dimensions)
    if len(given) == 0:
        raise ValueError("points must be at least one, for a Pareto set to be found among them")
    used = schedule(posterior.dimensions) if epsilon is None else epsilon
    if not 0 <= used <= 0.5:
        raise ValueError(f"epsilon must be from 0 to 0.5, or None, not {epsilon!r}")
    side, own = _side(Stream.of(seed).child(0), used), Stream.of(seed).child(1)
    if side == "path":
        return ts(posterior, seed)
    return _tradeoff(posterior, given, own) if side == "tradeoff" else mean(posterior)
