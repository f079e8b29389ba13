"""Queries: where an acquisition function is largest, among points that may be asked for."""

from __future__ import annotations

import numpy as np

from optpair.acquisition.base import Acquisition, Context, bends
from optpair.acquisition.registry import Entry
from optpair.acquisition.weights import Weight, weighted
from optpair.cube.climb import maximise
from optpair.cube.lattice import lattice
from optpair.cube.region import Region
from optpair.engine import budget, candidates, goals
from optpair.engine.beliefs import Placed
from optpair.engine.engine import Engine
from optpair.engine.model import Model
from optpair.engine.plate import REPEATED, SAME_OPTIMUM, Sampled, Shared, promising, taken
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.trials.data import Data

FULL = 4  # one sampled optimum in so many keeps its fidelity, the others get other fidelities
FINALISTS = 256  # rows of a table that are compared with all pairs, as no climb follows
LEVELS = 32  # fidelities that are compared where a climb has ended


def choose(
    engine: Engine,
    stream: Stream,
    sampled: Sampled,
    model: Model,
    data: Data,
    entry: Entry,
    shared: Shared | None = None,
) -> tuple[Float[np.ndarray, " D"], float]:
    """Build an acquisition function and maximise it, over points that are not known or taken.

    Neither an exact value nor a point of the same plate is asked for again. If the maximum is at
    one of those, the best other screened point takes its place or, if there is none, another
    point that fills the space.
    """
    shared = shared or Shared()
    optima, known = sampled.optima, engine.known(data)
    region = engine.region.without(known)
    acquisition, points = landscape(engine, stream, sampled, model, data, entry, region)
    if optima is not None:
        stars = optima.some_points(budget.STARS)
        if engine.targets and region is engine.anywhere:
            levels = lattice(len(engine.targets), len(stars)).copy()
            levels[::FULL] = list(engine.targets.values())
            stars = engine.looks(region, stars, levels)
        if region is not engine.region:
            stars = stars[region.legal(stars)]
        points = np.concatenate([stars, points])
    values, starts = acquisition.screened, budget.starts(engine.settings, len(engine.targets))
    if values is None:
        if optima is not None and shared.promising is not None:
            points = shared.promising
        values = acquisition.rough.screen(points)
        if optima is not None and shared.promising is None:
            shared.promising = promising(points, values, starts)
        if region.table is not None and acquisition.rough is not acquisition:
            best = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")[:FINALISTS]
            points, values = points[best], acquisition.screen(points[best])
    shape = bends(model.posteriors[0])
    x, value = maximise(
        acquisition, region, points, values, starts=starts, steps=engine.steps, bends=shape
    )
    if engine.targets and region is engine.anywhere:
        x, value = _best_look(engine, acquisition, region, x, value)
    own, every = np.array(shared.points).reshape(-1, len(x)), region.listed()
    if every is None and len(known) and engine.listed is not None:
        every = engine.listed.table
    apart = SAME_OPTIMUM if every is None else REPEATED  # few points are compared exactly
    if taken(x, known, own, apart):
        ranked = points[np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")]
        if every is not None:
            ranked = np.concatenate([ranked, every])
        elif len(own):
            filling = candidates.filling(engine, region, stream.child(3))
            ranked = np.concatenate([ranked, filling])
        other = next((point for point in ranked if not taken(point, known, own, apart)), x)
        x, value = other, float(acquisition.values(other[None])[0])
    return x, value


def _best_look(
    engine: Engine,
    acquisition: Acquisition,
    region: Region,
    x: Float[np.ndarray, " D"],
    value: float,
) -> tuple[Float[np.ndarray, " D"], float]:
    """The best fidelity for a point: a climb moves by one level at a time, and may stop early."""
    levels = lattice(len(engine.targets), LEVELS).copy()
    levels[:2] = [0.0], [1.0]
    looks = engine.looks(region, np.tile(x, (LEVELS, 1)), levels)
    values = acquisition.values(looks)
    best = int(np.argmax(values))
    return (looks[best], float(values[best])) if values[best] > value else (x, value)


def landscape(
    engine: Engine,
    stream: Stream,
    sampled: Sampled,
    model: Model,
    data: Data,
    entry: Entry,
    region: Region,
) -> tuple[Acquisition, Float[np.ndarray, "N D"]]:
    """The acquisition function as it is maximised, and the points at which it is screened."""
    posteriors, paths, optima, anchors = sampled
    paths = paths if "paths" in entry.needs else None
    if anchors is None or posteriors[0] is not model.posteriors[0]:  # something is pending
        anchors = goals.best_data(engine.sought, model.wanted, posteriors, data)
    points = candidates.screened(
        engine, stream.child(1), region, anchors, data, optima=optima is not None
    )
    context = Context(
        posteriors,
        engine.cube,
        points,
        stream.child(0),
        paths,
        optima,
        model.wanted,
        engine.sought,
        engine.targets,
    )
    weights: tuple[Weight, ...] = model.weights
    if engine.beliefs is not None and engine.beliefs.placed and optima is None:
        weights = (*weights, Placed(engine.beliefs, data.told))
    return weighted(entry.build(context), entry.scale, weights, model.worst), points


def next_gain(
    engine: Engine, stream: Stream, sampled: Sampled, model: Model, data: Data, entry: Entry
) -> float:
    """What the best next trial would teach; zero if no point is left to ask for."""
    if engine.spent(data):
        return 0.0
    return max(choose(engine, stream, sampled, model, data, entry)[1], 0.0)
