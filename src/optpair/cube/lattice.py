"""A lattice sequence: points of the unit cube that fill it evenly, any number of them.

    x_i = frac(b(i) z),    b(i) the binary digits of i mirrored at the point

The first 2^m points are a rank-1 lattice (Sloan and Joe 1994) for every m, and those in between
spread evenly, too. The generators z were chosen component by component, each the best of 600 odd
numbers by the largest worst-case error P₂ (weights 1/k) over the first 2^3 to 2^13 points. SciPy's
Sobol points are a little more even; importing them takes longer than a whole small search.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from optpair.runtime.shapes import Float

BITS = 32
GENERATORS = (
    1, 2643, 4667, 6347, 3995, 6947, 5699, 2521, 7669, 1337, 2085, 2427, 2779, 3851, 6809, 1543,
    5033, 3041, 3341, 7063, 2365, 5085, 8111, 3759, 1895, 4595, 6897, 4085, 5319, 1177, 5363, 2991,
    3129, 2663, 5925, 5667, 1733, 2155, 4527, 4293, 1593, 8135, 6923, 6155, 1035, 4363, 1547, 7249,
    3897, 313, 709, 3409, 3595, 1221, 1805, 5899, 8133, 1523, 6133, 3083, 5947, 827, 3013, 1851,
)  # fmt: skip


@lru_cache(maxsize=32)
def lattice(dimensions: int, points: int) -> Float[np.ndarray, "N d"]:
    """The first points of the sequence, the same ones always: shift them at random.

    >>> lattice(2, 4).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.25, 0.75], [0.75, 0.25]]
    """
    index = np.arange(points, dtype=np.uint64)
    mirrored = np.zeros_like(index)
    for bit in range(BITS):
        mirrored |= ((index >> np.uint64(bit)) & np.uint64(1)) << np.uint64(BITS - 1 - bit)
    turned = mirrored[:, None] * _generators(dimensions)
    found = (turned % np.uint64(2**BITS)) / 2.0**BITS
    found.flags.writeable = False
    return np.asarray(found)


def _generators(dimensions: int) -> np.ndarray:
    """The table's, and odd numbers drawn once and for all where a space has more dimensions."""
    more = dimensions - len(GENERATORS)
    drawn = np.random.default_rng(0).integers(2**19, 2**20, max(more, 0)) * 2 + 1
    return np.concatenate([GENERATORS, drawn])[:dimensions].astype(np.uint64)
