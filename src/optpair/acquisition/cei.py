"""Expected Improvement under constraints.

    (C2)  CEI(x) = EI(x) · Pr(feasible),    m⁺ = max of m(x_i) over data whose means are feasible

EI as in (M10), the chance as in (C1), after Gardner et al. (2014), in logarithms. Where no datum is
feasible yet, under a set or a fantasy, nothing can be improved on: what counts is the chance alone,
times √a, so that it has the units of an improvement. The noisy form draws the values of all
outcomes at the data by (M12), after Letham et al. (2019): which data are feasible is then drawn,
too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optpair.acquisition.base import Context
from optpair.acquisition.chance import Improvement, Log, OutcomeMoments, means_at, met, observed
from optpair.acquisition.ei import DRAWS, redrawn, white
from optpair.acquisition.special.normal import log_ei_and_slope
from optpair.gp.posterior import Posterior
from optpair.optima.base import Wanted
from optpair.runtime.shapes import Float


@dataclass(frozen=True, repr=False)
class ConstrainedEI(Improvement):
    """The mean constrained EI, or its logarithm."""

    model: tuple[Posterior, ...]
    wanted: Wanted
    incumbent: Float[np.ndarray, "M F"]  # −∞ where nothing is feasible
    log: bool

    def improvement(self, seen: list[OutcomeMoments]) -> Log:
        """log EI, or log √a where there is no incumbent."""
        (o,) = self.wanted.objectives
        own = seen[o]
        there = np.isfinite(self.incumbent)[..., None]
        best = np.where(there, self.incumbent[..., None], 0.0)
        z = (own.means - best) / own.sd
        log_improvement, slope = log_ei_and_slope(z)
        size = 0.5 * np.log(self.model[o].outputscale)[:, None, None]
        value = np.where(there, np.log(own.sd) + log_improvement, size)
        by_mean = np.where(there, slope / own.sd, 0.0)
        return Log(value, {o: (by_mean, np.where(there, (1 - slope * z) / own.sd, 0.0))})


def constrained_ei(model: tuple[Posterior, ...], wanted: Wanted, *, log: bool) -> ConstrainedEI:
    """Constrained EI over the best feasible posterior mean."""
    (o,) = wanted.objectives
    means = means_at(model, observed(model, wanted))
    best = np.where(met(means, wanted), means[o], -np.inf).max(-1, initial=-np.inf)
    return ConstrainedEI(model, wanted, best, log)


def build(context: Context, *, log: bool) -> ConstrainedEI:
    """Constrained EI from what the engine has at hand."""
    return constrained_ei(context.model, context.wanted, log=log)


def build_noisy(context: Context, *, log: bool) -> ConstrainedEI:
    """Constrained noisy EI from what the engine has at hand."""
    model = all_redrawn(context, DRAWS)
    return constrained_ei(model, context.wanted, log=log)


def all_redrawn(context: Context, draws: int) -> tuple[Posterior, ...]:
    """Every outcome given draws of its values at the data, each from a stream of its own."""
    most = max(posterior.fantasies for posterior in context.model)
    each = -(-draws // most)
    found = []
    for o, posterior in enumerate(context.model):
        own = posterior if posterior.fantasies == most else posterior.with_fantasies(most)
        stream = context.stream.child(o) if o else context.stream
        found.append(redrawn(own, white(stream, own, each)))
    return tuple(found)
