"""The predicted optimum: where the posterior mean is largest and trials are likely to succeed."""

from __future__ import annotations

import numpy as np

from optpair.acquisition.base import Acquisition, bends
from optpair.acquisition.weights import weighted
from optpair.cube.climb import PRECISE, maximise
from optpair.engine import candidates, goals
from optpair.engine.engine import Engine
from optpair.engine.model import Model
from optpair.engine.worth import Feasibility, compromise, plain, rank, under_constraints
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.trials.data import Data

LIKELY = 64  # screened points whose chance of being feasible is computed


def predicted(
    engine: Engine,
    stream: Stream,
    model: Model,
    data: Data,
    *,
    wider: bool = False,
    known: Float[np.ndarray, "k D"] | None = None,
) -> Float[np.ndarray, " D"]:
    """The argmax of the averaged posterior mean, where trials are likely to succeed.

    In a table, rows that are `known` are left out. With several objectives it is the best for a
    random compromise. Under constraints it is the best of the points that are likely feasible or,
    if there are none, the likeliest; `wider` judges that by the sets of an answer.
    """
    constrained = bool(model.wanted.constraints)
    weights = () if model.success is None else (model.success,)  # an answer costs nothing
    function = weighted(_worth(stream, model), "worth", weights, model.worst)
    penalised = under_constraints(function, model, wider=wider)
    region = engine.sought if known is None else engine.sought.without(known)
    anchors = goals.best_data(region, model.wanted, model.posteriors, data)
    points = candidates.screened(engine, stream.child(1), region, anchors, data, optima=False)
    if region is not engine.sought:
        points = points[region.legal(points)]
    values, starts, steps = penalised.screen(points), engine.settings.starts, engine.steps
    x, _ = maximise(
        penalised,
        region,
        points,
        values,
        starts=starts,
        steps=steps,
        enough=PRECISE,
        bends=bends(model.posteriors[0]),
    )
    if not constrained:
        return x
    likely = points[np.argsort(-values, kind="stable")[:LIKELY]]
    few = np.concatenate([x[None], data.X[region.matches(data.X)], likely])
    chance = Feasibility.of(model, wider=wider).chance(few)
    return few[int(np.argmax(rank(function.values(few), chance)))]


def _worth(stream: Stream, model: Model) -> Acquisition:
    """What a point is worth: the mean of the only objective, or of a random compromise."""
    count = len(model.wanted.objectives)
    if count == 1:
        return plain(model)
    return compromise(model, stream.child(2).draw().dirichlet(np.ones(count))[None])
