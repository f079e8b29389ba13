"""Goals: what a search looks for, given the outcomes that people want."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from optpair.cube.candidates import ANCHORS
from optpair.cube.region import Region
from optpair.engine.model import mean_at
from optpair.engine.worth import Feasibility
from optpair.gp.posterior import Posterior
from optpair.optima.base import Goal, Wanted
from optpair.optima.feasible import BestFeasible
from optpair.optima.pareto import Pareto
from optpair.optima.single import Best
from optpair.problem.outcomes import Constraint, Objective, Outcome
from optpair.runtime.shapes import Bool, Float
from optpair.trials.data import Data
from optpair.trials.transform import Scaling

LIKELY = 0.5  # a chance of being feasible: above it an observed point counts by its mean,
LOST = 1e6  # and below it by that chance


def goal(wanted: Wanted) -> Goal:
    """The best point, the best feasible one, or a front."""
    if len(wanted.objectives) > 1:
        return Pareto(wanted)
    return BestFeasible(wanted) if wanted.constraints else Best()


def objectives(outcomes: Iterable[Outcome]) -> tuple[int, ...]:
    """The columns of the objectives."""
    return tuple(c for c, outcome in enumerate(outcomes) if isinstance(outcome, Objective))


def wanted(outcomes: Sequence[Outcome], scalings: Sequence[Scaling]) -> Wanted:
    """What is wanted of each outcome, standardised: limits pass through a monotone scaling."""
    pairs = [
        [_standardised(scaling, end) for end in outcome.limits]
        for outcome, scaling in zip(outcomes, scalings, strict=True)
    ]
    low, high = np.array(pairs).T
    return Wanted(objectives(outcomes), low, high)


def _standardised(scaling: Scaling, end: float) -> float:
    return float(scaling.standardise(np.asarray(end))) if np.isfinite(end) else end


def met(outcomes: Iterable[Outcome], data: Data) -> Bool[np.ndarray, " t"]:
    """Which told trials have values within all limits; all of them without limits."""
    found = np.ones(data.told, dtype=bool)
    for column, outcome in enumerate(outcomes):
        if isinstance(outcome, Constraint):
            low, high = outcome.limits
            means = data.means(column)
            found &= (low <= means) & (means <= high)
    return found


def unmeasured(outcome: Outcome) -> Scaling:
    """The scaling of an outcome without values: whether its limits hold is open."""
    ends = [end for end in outcome.limits if np.isfinite(end)]
    if not ends:
        return Scaling()
    scale = ends[1] / 2 - ends[0] / 2 if len(ends) == 2 else max(abs(ends[0]), 1.0)
    return Scaling(loc=sum(end / len(ends) for end in ends), scale=scale)


def best_data(
    region: Region, wanted: Wanted, posteriors: tuple[Posterior, ...], data: Data
) -> Float[np.ndarray, "A D"]:
    """The observed points to screen around, or legal points next to them.

    These are the points with the highest means; with several objectives, in turn the best for each
    objective and the best compromises. Under constraints, points that are likely feasible come
    first.
    """
    if len(posteriors) == 1 and not region.held.any():
        return region.made_legal(posteriors[0].best_data(ANCHORS))
    X = region.made_legal(data.X) if region.held.any() else data.X
    means = np.stack([mean_at(posteriors[column], X) for column in wanted.objectives])
    ranks = [*means, means.min(0)] if len(means) > 1 else [*means]
    if wanted.constraints:
        logs = Feasibility.within(wanted, posteriors).log_weight(X)
        ranks = [np.where(logs > np.log(LIKELY), rank, logs - LOST) for rank in ranks]
    turns = np.stack([np.argsort(-rank, kind="stable") for rank in ranks], 1).reshape(-1)
    order = turns[np.sort(np.unique(turns, return_index=True)[1])]
    return region.made_legal(X[np.resize(order, ANCHORS if len(order) else 0)])
