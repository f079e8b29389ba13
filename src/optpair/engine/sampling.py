"""Sampling: paths of all outcomes, their optima, and posteriors that include pending trials."""

from __future__ import annotations

import numpy as np

from optpair.acquisition.registry import Entry
from optpair.cube.candidates import Screening
from optpair.engine import budget, goals
from optpair.engine.beliefs import believed
from optpair.engine.engine import Engine
from optpair.engine.model import Model
from optpair.engine.plate import Info, Sampled, Shared, fantasised, gaps_of
from optpair.gp import paths as gp_paths
from optpair.gp.paths import Draws, Paths
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.trials.data import Data


def shared_by_plate(
    engine: Engine, stream: Stream, data: Data, shared: Shared, entry: Entry
) -> Sampled:
    """The samples of a plate: the first suggestion draws them, the others add what is pending."""
    info, model, sampled = shared.info, shared.model, shared.sampled
    assert model is not None
    if sampled is None or sampled.paths is None:
        sampled = sample(engine, stream, model, data, info, entry)
        if not engine.sought.narrowed:  # else they are those of a part of the space
            info.gaps = gaps_of(model, sampled)
    else:
        since = data.pending[shared.pending :]
        with info.stage("pending"):
            sampled = sampled._replace(
                posteriors=fantasised(stream, sampled.posteriors, sampled.paths, since)
            )
    shared.sampled, shared.pending = sampled, len(data.pending)
    return sampled


def sample(
    engine: Engine, stream: Stream, model: Model, data: Data, info: Info, entry: Entry
) -> Sampled:
    """What an acquisition function needs, and posteriors that include pending trials."""
    if not entry.needs and len(data.pending) == 0:
        return Sampled(model.posteriors)
    with info.stage("optima"):
        paths = tuple(
            draw_paths(engine, stream.child(3 + column) if column else stream.child(0), posterior)
            for column, posterior in enumerate(model.posteriors)
        )
        optima = anchors = None
        if "optima" in entry.needs:
            anchors = goals.best_data(engine.sought, model.wanted, model.posteriors, data)
            optima = find_optima(engine, stream.child(1), paths, model, data, anchors)
    with info.stage("pending"):
        posteriors = fantasised(stream, model.posteriors, paths, data.pending)
    return Sampled(posteriors, paths, optima, anchors)


def draw_paths(engine: Engine, stream: Stream, posterior: Posterior) -> Paths:
    """Sample paths: the same number in all, even if fewer sets are used than there are."""
    count = engine.settings.pairs
    if engine.inference.standardises:
        count = count * engine.inference.sets // posterior.sets
    draws = Draws.of(stream, posterior, paths=count, features=engine.settings.features)
    return gp_paths.draw(draws, posterior)


def find_optima(
    engine: Engine,
    stream: Stream,
    paths: tuple[Paths, ...],
    model: Model,
    data: Data,
    anchors: Float[np.ndarray, "A D"],
) -> Optima:
    """The optima of sample paths, weighted by the user's beliefs."""
    points = budget.paths_screened(engine.settings, engine.free)
    screening = Screening.of(
        stream, engine.cube, points, boxed=budget.boxed(engine.cube.parameters, data.told)
    )
    goal = goals.goal(model.wanted)
    optima = goal.optima(paths, engine.sought, screening, anchors, engine.steps)
    return optima if engine.beliefs is None else believed(optima, engine.beliefs, model)
