"""CMES-IBO: what knowing the value of the best feasible point tells, as a lower bound.

    (C3)  α(x) = mean over sets of the mean over that set's optima of −log(1 − Z(x))

with Z of (N1) under the posterior itself: (N2), without conditioning on the optimum and without
noise. After Takeno et al. (2022), whose bound it is for one objective under constraints; for
several objectives it is the same with the region that a Pareto set leaves.
"""

from __future__ import annotations

from optpair.acquisition.base import Context
from optpair.acquisition.joint import JointJES, forbidden
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima, Wanted


def build(context: Context) -> JointJES:
    """CMES-IBO from what the engine has at hand."""
    return cmes_ibo(context.model, context.need_optima("CMES-IBO"), context.wanted)


def cmes_ibo(model: tuple[Posterior, ...], optima: Optima, wanted: Wanted) -> JointJES:
    """CMES-IBO as a function of points: `cmes_ibo(model, optima, wanted)(X)` in nats."""
    return JointJES(model, forbidden(optima, wanted), optima.weights, noisy=False)  # (C3)
