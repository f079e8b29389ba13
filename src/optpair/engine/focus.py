"""Boxes around the best trial, in which most queries are chosen where values are exact.

With more than a few parameters there is hardly anything that a few dozen values rule out: in some
far corner of the cube nearly every sample path is higher than at the best trial. A search for the
best point of the whole space then asks in corners, again and again. So, of four queries, three are
chosen as if a box were all there is: sample paths have their optima in it, and the query is in it.
The fourth is chosen in the whole space. The side of the box is drawn each time, so nothing has to
be adapted.

There are no boxes if values are noisy, with few parameters or with very many: they were no better
there (docs/answers.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optpair.cube.region import Region
from optpair.engine import goals
from optpair.engine.engine import Engine
from optpair.engine.model import Model
from optpair.runtime.streams import Stream
from optpair.trials.data import Data

SIDES = (1.0, 0.4, 0.2, 0.1)  # of boxes; 1 is the whole space


def part(engine: Engine, stream: Stream, model: Model, data: Data) -> Region:
    """Where one query or plate is looked for: in a box around the best trial, or anywhere.

    Only continuous parameters are confined to it. Several objectives have no best trial, and limits
    on the inputs, conditions and fidelities have regions of their own: there are no boxes then.
    """
    region = engine.anywhere
    if not (engine.focuses and data.exact and region.is_box):
        return region
    side = SIDES[stream.draw().integers(len(SIDES))]
    confined = engine.cube.continuous & region.open
    if side == 1.0 or not confined.any():
        return region
    centre = goals.best_data(engine.sought, model.wanted, model.posteriors, data)[0]
    low = np.clip(centre - side / 2, 0.0, 1.0 - side)
    return replace(
        region,
        low=np.where(confined, low, region.low),
        high=np.where(confined, low + side, region.high),
    )
