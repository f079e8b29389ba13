"""How much work a step gets, by how much there is to learn from it.

Padded sizes, points screened, steps climbed, chains moved; and what is spared where data are many.
"""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import numpy as np

from optpair.history import Observations
from optpair.settings import Settings

SMALLEST_SIZE, SMALL_SIZE = 64, 128
FEW_DIMENSIONS = 8
EARLY, AHEAD = 48, 16  # trials before a padded size is needed: time to compile it
CANDIDATES, CANDIDATES_BESIDE_PAIRS = 2048, 128
PATH_CANDIDATES = 1024  # half of them in one or two dimensions
MOVED_ROWS = 384  # of all chains that an update moves
CATCH_UP = 10  # updates of the chains, at most, when many values were told at once
POOLED = 3  # rounds of the chains that the worth of an answer is averaged over


def padded_size(n: int, dimensions: int) -> int:
    """The number of rows that n observations are padded to: 64, 128, then an eighth or so more.

    Few sizes, as each is compiled; but what is done with them costs up to their square. Where there
    are many dimensions 64 is left out, as a search of them is soon past it.
    """
    if n <= SMALLEST_SIZE and dimensions <= FEW_DIMENSIONS:
        return SMALLEST_SIZE
    if n <= SMALL_SIZE:
        return SMALL_SIZE
    step = _power_below(n) // 4
    return -(-n // step) * step


def _power_below(n: int) -> int:
    """The largest power of two below n."""
    return 1 << max((n - 1).bit_length() - 1, 0)


def size_ahead(n: int, least: int, dimensions: int) -> int:
    """The padded size to have compiled while the n-th trial runs; none is needed before `least`."""
    soon = n + (EARLY if n < SMALLEST_SIZE else AHEAD)  # the first asks are the quickest
    return padded_size(max(soon, least), dimensions)


def screened(settings: Settings, *, pairs: bool) -> int:
    """Space-filling points at which a function is screened, beside optimal pairs or without."""
    return settings.candidates or (CANDIDATES_BESIDE_PAIRS if pairs else CANDIDATES)


def paths_screened(settings: Settings, dimensions: int) -> int:
    """Space-filling points at which sample paths are screened: a plane is soon filled."""
    fewer = 2 if dimensions <= 2 else 1
    return settings.path_candidates or PATH_CANDIDATES // fewer


def climb_steps(settings: Settings, dimensions: int) -> int:
    """Steps of a climb: nearly all have arrived after these."""
    return settings.steps or min(6 + 4 * dimensions, 24)


def chain_moves(settings: Settings, n: int) -> int:
    """Chains that an update moves, of `settings.sets`: each costs up to n³."""
    return settings.moves or min(max(MOVED_ROWS // max(n, 1), 2), settings.sets)


def thinned(observations: Observations, most: int) -> Observations:
    """What hyperparameters are inferred from: every observation or, of many, `most` of them.

    Those whose contents have the lowest checksums: as good as drawn by lot, and a new observation
    takes the place of at most one, in whatever order they come, so that chains can be followed.
    """
    keep = np.arange(len(observations.y))
    if len(keep) > most:
        rows = np.column_stack([observations.X, observations.y])
        keep = np.sort(np.argsort([crc32(row.tobytes()) for row in rows], kind="stable")[:most])
    return replace(
        observations,
        X=observations.X[keep],
        y=observations.y[keep],
        noise_var=observations.noise_var[keep],
        pending=observations.pending[:0],
        failed=observations.failed[:0],
    )


def set_stride(rows: int, sets: int, most: int) -> int:
    """Every how many-th set is used: many data leave little doubt, and each set costs n³.

    At least three of them stay, or all.
    """
    return max(1, min(-(-rows // most), sets // 3))
