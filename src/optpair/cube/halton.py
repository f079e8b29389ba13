"""A Halton sequence with random digits: an initial design whose points are apart even if few.

    x_i,j = Σ_k π_jk(digit k of i in base p_j) / p_j^(k+1),    p_j the j-th prime

with random permutations π (Owen 2017). A lattice or a Sobol sequence needs many points, a power of
two, before its coordinates are independent: of four points in three dimensions, two coordinates
would move together.
"""

from __future__ import annotations

import numpy as np

from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream


def halton(stream: Stream, dimensions: int, points: int) -> Float[np.ndarray, "N d"]:
    """The first points of the sequence that belongs to a stream."""
    index, found = np.arange(points), np.empty((points, dimensions))
    for j, base in enumerate(_primes(dimensions)):
        rng = stream.child(j).draw()
        value, rest, size = np.zeros(points), index, 1.0
        while size * points > 1:  # until every point has a cell of its own
            size /= base
            value += size * rng.permutation(base)[rest % base]
            rest = rest // base
        found[:, j] = value + size * rng.uniform()
    return found


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found
