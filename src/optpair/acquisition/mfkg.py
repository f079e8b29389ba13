"""The multi-fidelity knowledge gradient: what a cheaper look adds to the best mean at the target.

    KG(x, u) = E_y [ max_i m(x_i | y at (x, u)) ] − max_i m(x_i),   x_i ∈ A ∪ {(x, t)}    (M17)
    b_i = cov(f(x_i), f(x, u)) / √(s(x, u) + σ²)

(M15) with all places A at the target fidelity t, and with the point beside x there in place of x
itself (Poloczek et al. 2017; Wu et al. 2020). At the target it is `kg`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optpair.acquisition.base import Context, Points, Rows, check_sets
from optpair.acquisition.beside import Beside, a_target
from optpair.acquisition.kg import (
    DATA,
    KG,
    at_places,
    likely_places,
    lines_gain,
    lines_gain_and_slopes,
)
from optpair.gp.kernels.base import Between, Target
from optpair.gp.posterior import Posterior, as_points
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float
from optpair.runtime.threads import engine_work


@dataclass(frozen=True, repr=False)
class LookKG(KG):
    """The knowledge gradient (M17) of looks at any fidelity, in units of y."""

    targets: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def _aside(self) -> Target:
        return a_target(self.posterior, self.targets)

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """KG(x)."""
        _, _, _, levels, slopes = self._beside(X)
        own = np.broadcast_to(slopes[:, None], levels.shape)
        return np.asarray(np.mean(lines_gain(levels, own), (0, 1)))

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """KG(x), and its derivatives."""
        beside, between, scale, levels, slopes = self._beside(X)
        own = np.broadcast_to(slopes[:, None], levels.shape)
        gains, by_levels, by_slopes = lines_gain_and_slopes(levels, own)
        count = levels.shape[0] * levels.shape[1]
        by_lines = by_slopes.sum(1) / (count * scale)  # by the numerators of b
        by_cross, by_own = by_lines[..., :-1], by_lines[..., -1:]
        by_variance = -np.sum(by_lines * slopes, -1) / (2 * scale[..., 0])
        moved = self.posterior.pull_noise(X, by_variance)
        by_variance[beside.variance[:, : len(X)] <= self.posterior.floor[:, None]] = 0.0
        by_means = by_levels[..., -1] / count
        A, At = beside.whitened
        slope = beside.both.pull(
            np.concatenate([np.zeros_like(by_means), by_means], -1),
            np.concatenate([by_variance, np.zeros_like(by_variance)], -1),
            np.concatenate([-(by_cross @ self.whitened) - by_own * At, -by_own * A], 1),
        )
        slope = beside.folded(slope, self.targets)
        slope += between.pull(by_cross) + beside.prior.pull(by_own)
        return np.mean(gains, (0, 1)), slope.sum(0) + moved

    def _beside(
        self, X: Points
    ) -> tuple[
        Beside,
        Between,
        Float[np.ndarray, "M q 1"],
        Float[np.ndarray, "M F q A"],
        Float[np.ndarray, "M q A"],
    ]:
        """The lines of (M16), √(s + σ²), and what they are made of."""
        posterior = self.posterior
        beside = Beside.of(posterior, self.targets, self._aside, X)
        between = posterior.covariance.between(X, self.places)
        own_variance = beside.variance[:, : len(X)]
        variance = np.maximum(own_variance, posterior.floor[:, None])[..., None]
        cross = between.K - beside.whitened[0] @ self.whitened.mT
        scale = np.sqrt(variance + posterior.noise_at(X)[..., None])
        slopes = np.concatenate([cross, beside.covariance[..., None]], -1) / scale
        own = beside.means[..., None]
        places = np.broadcast_to(self.means[:, :, None], (*own.shape[:3], self.means.shape[2]))
        return beside, between, scale, np.concatenate([places, own], -1), slopes


def build(context: Context) -> KG:
    """KG at any fidelity from what the engine has at hand."""
    optima = context.need_optima("the knowledge gradient")
    return _of(context.posterior, optima, context.targets, context.points)


def _of(
    posterior: Posterior,
    optima: Optima,
    targets: Mapping[int, float],
    points: Float[np.ndarray, "N D"],
) -> KG:
    points, data = points.copy(), posterior.best_data(DATA).copy()
    points[:, list(targets)] = data[:, list(targets)] = list(targets.values())
    of = at_places(posterior, likely_places(posterior, optima.star, points, data))
    parts = of.posterior, of.places, of.means, of.whitened
    return LookKG(*parts, targets) if targets else of


@engine_work
def mf_kg(
    posterior: Posterior,
    optima: Optima,
    targets: Mapping[int, float],
    points: ArrayLike | None = None,
) -> KG:
    """The knowledge gradient of looks at any fidelity, as a function of points, in units of y.

    `targets` are the columns of the fidelities, and what they hold at the target; `points` as in
    `kg`.
    """
    check_sets(posterior, optima.f)
    given = posterior.X if points is None else as_points(points, posterior.dimensions)
    return _of(posterior, optima, targets, given)
