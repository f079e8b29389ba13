"""Candidates: points that fill a region, and points at which a function is screened."""

from __future__ import annotations

import numpy as np

from optpair.cube.candidates import Screening
from optpair.cube.halton import halton
from optpair.cube.region import Region
from optpair.engine import budget
from optpair.engine.beliefs import BELIEVED, drawn
from optpair.engine.engine import Engine
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.trials.data import Data

FILLING = 1024  # points of a design


def screened(
    engine: Engine,
    stream: Stream,
    region: Region,
    anchors: Float[np.ndarray, "A D"],
    data: Data,
    *,
    optima: bool,
) -> Float[np.ndarray, "N D"]:
    """The points at which a function is screened."""
    count = budget.screened(engine.settings, optima=optima)
    screening = Screening.of(
        stream, engine.cube, count, boxed=budget.boxed(engine.cube.parameters, data.told)
    )
    most = budget.LISTED if optima else None
    found = np.concatenate(screening.points(region, anchors, most))
    if engine.beliefs is None or not engine.beliefs.placed:
        return found
    more = drawn(stream.child(1), engine.beliefs, region, BELIEVED)
    return np.concatenate([found, more])


def filling(
    engine: Engine, region: Region, stream: Stream, count: int = FILLING
) -> Float[np.ndarray, "N D"]:
    """Points spread evenly over a region."""
    return region.fill(halton(stream, engine.cube.parameters, count))
