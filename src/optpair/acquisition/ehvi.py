"""Expected hypervolume improvement over the front of posterior means.

    (H1)  HVI(z) = Σ_k Π_o (min(z_o, u_ko) − l_ko)₊,    boxes k: what the front leaves, above r
    (H2)  EHVI(x) = Σ_k Π_o [E(z_o − l_ko)₊ − E(z_o − u_ko)₊]

as the boxes are disjoint and the outcomes independent; each expectation is an EI (M10). The front
is that of the posterior means at the data that are feasible, under each set and fantasy, and the
reference r lies a tenth of its extent below its worst values. With constraints, times the chance
(C1); where nothing is feasible yet, that chance times Π √a_o. The noisy form draws the values of
all outcomes at the data by (M12), and averages. After Emmerich (2006), Daulton et al. (2021) and,
for the logarithm, Ament et al. (2023).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from optpair.acquisition.base import Context
from optpair.acquisition.cei import all_redrawn
from optpair.acquisition.chance import Improvement, Log, OutcomeMoments, means_at, met, observed
from optpair.acquisition.special.cells import Cells, cells
from optpair.acquisition.special.normal import log_ei_and_slope
from optpair.gp.posterior import Posterior
from optpair.optima.base import Wanted
from optpair.optima.pareto import undominated
from optpair.runtime.shapes import Bool, Float

DRAWS = 8  # of the values at the data, per set
MARGIN = 0.1  # of the front's extent: how far below it the reference is


@dataclass(frozen=True, repr=False)
class EHVI(Improvement):
    """The mean expected hypervolume improvement, or its logarithm."""

    model: tuple[Posterior, ...]
    wanted: Wanted
    boxes: Cells
    reference: Float[np.ndarray, "M F K"]
    there: Bool[np.ndarray, "M F"]  # whether there is a front
    log: bool

    def improvement(self, seen: list[OutcomeMoments]) -> Log:
        """log EHVI, or log Π √a_o where there is no front."""
        factors = [self._factor(seen[o], k) for k, o in enumerate(self.wanted.objectives)]
        each = np.sum([factor[0] for factor in factors], axis=0)
        value = np.asarray(logsumexp(each, axis=2))
        share = np.exp(each - value[:, :, None])
        size = np.sum([np.log(self.model[o].outputscale) for o in self.wanted.objectives], axis=0)
        there = self.there[..., None]
        by = {}
        for o, (_, by_mean, by_sd) in zip(self.wanted.objectives, factors, strict=True):
            mean, sd = ((share * part).sum(2) for part in (by_mean, by_sd))
            by[o] = np.where(there, mean, 0.0), np.where(there, sd, 0.0)
        return Log(np.where(there, value, 0.5 * size[:, None, None]), by)

    def _factor(self, seen: OutcomeMoments, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log [E(z − l)₊ − E(z − u)₊] of each box (M, F, B, q), by the mean and the deviation."""
        floor = self.reference[..., k, None]
        edges = np.maximum(self.boxes.edges[k], floor)
        ends = np.concatenate([floor, np.full_like(floor, np.inf), edges], -1)
        low, high = ends[..., self.boxes.lower[k]], ends[..., self.boxes.upper[k]]
        means, sd = seen.means[:, :, None], seen.sd[:, :, None]
        at_low, slope_low = log_ei_and_slope((means - low[..., None]) / sd)
        open_end = np.isinf(high)[..., None]
        with np.errstate(all="ignore"):
            z = (means - np.where(np.isinf(high), 0.0, high)[..., None]) / sd
            at_high, slope_high = log_ei_and_slope(z)
            less = np.where(open_end, 0.0, np.exp(np.minimum(at_high - at_low, 0.0)))
            left = np.maximum(1 - less, 1e-300)
            value = np.log(sd) + at_low + np.log(left)
            # ∂ log(e^a − e^b) = (a′ − e^(b−a) b′) / (1 − e^(b−a))
            by_mean = (slope_low - less * slope_high) / (left * sd)
            z_low = (means - low[..., None]) / sd
            own, other = 1 - slope_low * z_low, 1 - slope_high * z
            by_sd = (own - less * other) / (left * sd)
        shut = np.broadcast_to((high <= low)[..., None], value.shape)
        return (
            np.where(shut, -np.inf, value),
            np.where(shut, 0.0, by_mean),
            np.where(shut, 0.0, by_sd),
        )


def ehvi(model: tuple[Posterior, ...], wanted: Wanted, *, log: bool) -> EHVI:
    """Expected hypervolume improvement over the front of posterior means at the data."""
    means = means_at(model, observed(model, wanted))
    feasible = met(means, wanted)
    f = np.stack([means[o] for o in wanted.objectives], -1)
    mask = np.stack([undominated(of_set, there) for of_set, there in zip(f, feasible, strict=True)])
    best = np.where(mask[..., None], f, -np.inf).max(2, initial=-np.inf)
    worst = np.where(mask[..., None], f, np.inf).min(2, initial=np.inf)
    there = np.asarray(mask.any(-1))
    size = np.sqrt(np.stack([model[o].outputscale for o in wanted.objectives], -1))[:, None]
    extent = np.where(there[..., None], best - worst, 0.0)
    reference = np.where(there[..., None], worst, 0.0) - MARGIN * np.maximum(extent, MARGIN * size)
    return EHVI(model, wanted, cells(f, mask), reference, there, log)


def build(context: Context, *, log: bool) -> EHVI:
    """EHVI from what the engine has at hand."""
    return ehvi(context.model, context.wanted, log=log)


def build_noisy(context: Context, *, log: bool) -> EHVI:
    """Noisy EHVI from what the engine has at hand."""
    return ehvi(all_redrawn(context, DRAWS), context.wanted, log=log)
