"""Lists of all points: where every column has levels or categories, and there are few of them."""

from __future__ import annotations

from itertools import product

import numpy as np

from optpair.cube.region import Region
from optpair.problem.layout import HOT
from optpair.runtime.shapes import Float

MOST = 4096  # points, conditions and limits aside, up to which they are listed


def all_points(region: Region) -> Float[np.ndarray, "N D"] | None:
    """All legal points; None if they are too many to list."""
    layout = region.cube.layout
    if region.table is not None:
        return region.table
    if np.any(layout.continuous & ~region.held) or _many(region):
        return None
    choices = [_choices(region, first, past) for first, past in _parameters(region)]
    if np.prod([float(len(own)) for own in choices]) > MOST:
        return None
    points = np.array([np.concatenate(own) for own in product(*choices)])
    points = np.unique(np.round(region.cube.settled(points), 12), axis=0)
    return points[region.legal(points) & region.matches(points)]


def _parameters(region: Region) -> list[tuple[int, int]]:
    """The first column of each parameter, and the one past its last."""
    owner = np.array(region.cube.layout.owner)
    firsts = np.flatnonzero(np.diff(owner, prepend=-1)).tolist()
    return list(zip(firsts, [*firsts[1:], len(owner)], strict=True))


def _many(region: Region) -> bool:
    """Whether one parameter alone has too many levels to list."""
    layout = region.cube.layout
    stepped = [k for k in np.flatnonzero(~region.held) if layout.numeric[k]]
    return any(layout.last[k] >= MOST for k in stepped if k not in layout.grids)


def _choices(region: Region, first: int, past: int) -> Float[np.ndarray, "L k"]:
    """What the columns of a parameter may hold."""
    layout = region.cube.layout
    if region.held[first:past].all():
        return region.low[None, first:past]
    if layout.numeric[first]:
        return layout.levels(first)[:, None]
    return np.eye(past - first) * HOT
