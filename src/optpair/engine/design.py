"""Designs: the trials before the model is used."""

from __future__ import annotations

import numpy as np

from optpair.acquisition.base import bends
from optpair.acquisition.mean import mean
from optpair.cube.candidates import ANCHORS
from optpair.cube.climb import maximise
from optpair.cube.cube import among
from optpair.cube.region import Region
from optpair.engine import candidates, fitting
from optpair.engine.beliefs import first_believed
from optpair.engine.earlier import beforehand
from optpair.engine.engine import Engine
from optpair.engine.plate import Info, Shared
from optpair.problem.outcomes import Objective
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.trials.data import Data

OWN = 16  # points of which the safest is taken after failures


def design_point(
    engine: Engine,
    stream: Stream,
    data: Data,
    asked: int,
    shared: Shared | None = None,
) -> Float[np.ndarray, " D"]:
    """The next space-filling point; after failures, the safest of a few that are its own.

    No two numbers near each other choose from the same few, and none of these is a point of
    the design without failures: workers that do not see each other's points differ as well.
    """
    seen = data.seen
    region = engine.region.without(seen)
    first = _foretold(engine, stream.child(asked), region, data) if asked == 0 else None
    if first is not None and not among(first, seen):
        return first
    if engine.beliefs is not None and engine.beliefs.placed and asked % 2 == 0:
        x = first_believed(stream.child(asked), engine.beliefs, region, asked)
        if not among(x, seen):
            return x
    if len(data.failed) == 0:
        points = np.roll(candidates.filling(engine, region, stream), -asked, axis=0)
        if engine.targets and region is engine.anywhere:
            points = _cheap(engine, region, points, asked)
        known = np.array([*engine.known(data), *([] if shared is None else shared.points)])
        known = known.reshape(-1, engine.cube.dimensions)
        return next((x for x in points if not among(x, known)), points[0])
    order, own = _own_points(engine, region, stream, asked)
    few = _unseen(order[:own], seen)
    if len(few) == 0:  # some levels and categories are few
        few = _unseen(order[: candidates.FILLING], seen)[:own]
    if len(few) == 0:
        few = order[:own]
    success = fitting.success(engine, data, Info())
    assert success is not None
    return np.asarray(few[np.argmax(success.log_weight(few))])


def _cheap(
    engine: Engine, region: Region, points: Float[np.ndarray, "N D"], asked: int
) -> Float[np.ndarray, "N D"]:
    """Points of a design at their fidelities: cheap, half-way to the target, …, at the target.

    There are few levels, as looks at one and the same can be compared at once: what is common
    to them need not be known.
    """
    targets, cheap = np.array(list(engine.targets.values())), engine.cheapest
    turn = asked % engine.initial
    share = 1.0 if turn == engine.initial - 1 else 0.5 * (turn % 2)
    level = cheap + (targets - cheap) * share
    return engine.looks(region, points, np.tile(level, (len(points), 1)))


def _foretold(
    engine: Engine, stream: Stream, region: Region, data: Data
) -> Float[np.ndarray, " D"] | None:
    """The best point by what earlier studies say of the only objective, if they do."""
    known = [name for name in engine.earlier if isinstance(engine.outcomes[name], Objective)]
    if len(known) != 1 or len(engine.objectives) != 1:
        return None
    posterior = beforehand(engine.process_of(known[0]))
    good = np.argsort(-posterior.residual[0, 0], kind="stable")[:ANCHORS]
    anchors = region.made_legal(posterior.X[good])
    points = candidates.screened(engine, stream, region, anchors, data, optima=False)
    function, starts = mean(posterior), engine.settings.starts
    values = function.screen(points)
    shape = bends(posterior)
    return maximise(
        function, region, points, values, starts=starts, steps=engine.steps, bends=shape
    )[0]


def _own_points(
    engine: Engine, region: Region, stream: Stream, asked: int
) -> tuple[Float[np.ndarray, "N D"], int]:
    """The points after the design's, from those that belong to `asked` on, and how many do.

    Where there are few legal points at all, so many that eight numbers in a row differ.
    """
    points = candidates.filling(engine, region, stream, candidates.FILLING * (1 + OWN))[
        candidates.FILLING :
    ]
    if not engine.cube.continuous.any():
        points = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]
    own = min(max(len(points) // 8, 1), OWN)
    start = own * (asked % (len(points) // own))
    return np.roll(points, -start, axis=0), own


def _unseen(
    points: Float[np.ndarray, "N D"], seen: Float[np.ndarray, "k D"]
) -> Float[np.ndarray, "n D"]:
    """The points that are none of those seen."""
    return points[[not among(x, seen) for x in points]]
