"""Effects: which parameters a function depends on, alone and together (Sobol indices)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from optpair.cube.lattice import lattice
from optpair.runtime.shapes import Float

MOST_POINTS = 2**14  # points at which a function is evaluated, for each kind of index
INTERACTING = 5  # parameters of which every pair is examined
SEEN = 0.01  # the smallest share of the variance that counts for a pair


class Effects(NamedTuple):
    """Shares of the variance of a function over the whole space.

    first: what each parameter explains on its own. total: the same with all its interactions.
    pairs: what two parameters explain together beyond what each explains alone, for those that
    interact most.
    """

    first: Float[np.ndarray, " d"]
    total: Float[np.ndarray, " d"]
    pairs: Mapping[tuple[int, int], float]


def variance_shares(
    function: Callable[[np.ndarray], np.ndarray], parameters: int
) -> Effects | None:
    """Sobol indices of a function of [0, 1]^d; None if it is constant.

    With A and B two designs, AB_j the first with column j of the second, and AB_jk with two,

        first_j = E[f(B) (f(AB_j) − f(A))] / V,    total_j = E[(f(A) − f(AB_j))²] / 2V
        pair_jk = E[f(B) (f(AB_jk) − f(A))] / V − first_j − first_k
    """
    A, B, mixed = _at_designs(function, parameters, [(j,) for j in range(parameters)])
    centre = np.mean([A, B])
    variance = float(np.mean([A**2, B**2]) - centre**2)
    if not variance > 1e-12 * max(float(np.mean([A**2, B**2])), 1e-12):
        return None
    first = np.mean((B - centre) * (mixed - A), axis=1) / variance
    total = np.clip(np.mean((A - mixed) ** 2, axis=1) / (2 * variance), 0.0, 1.0)
    shares = np.clip(first, 0.0, total)
    return Effects(shares, total, _pairs(function, shares, total))


def _pairs(
    function: Callable[[np.ndarray], np.ndarray],
    first: Float[np.ndarray, " d"],
    total: Float[np.ndarray, " d"],
) -> Mapping[tuple[int, int], float]:
    """What pairs of parameters explain together and neither alone, the largest first."""
    rest = total - first
    most = sorted(np.argsort(-rest, kind="stable")[:INTERACTING].tolist())
    most = [j for j in most if rest[j] >= SEEN]
    if len(most) < 2:
        return {}
    both = list(combinations(most, 2))
    A, B, mixed = _at_designs(function, len(first), [*((j,) for j in most), *both])
    centre, variance = np.mean([A, B]), np.var([A, B])
    closed = np.mean((B - centre) * (mixed - A), axis=1) / variance
    alone = dict(zip(most, closed, strict=False))
    found = {
        (j, k): float(min(share - alone[j] - alone[k], rest[j], rest[k]))
        for (j, k), share in zip(both, closed[len(most) :], strict=True)
    }
    return {
        pair: share for pair, share in sorted(found.items(), key=lambda p: -p[1]) if share >= SEEN
    }


def _at_designs(
    function: Callable[[np.ndarray], np.ndarray], parameters: int, taken: Sequence[tuple[int, ...]]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, "t n"]]:
    """The function at two designs, and at the first with given columns of the second."""
    points = 1 << int(np.log2(MOST_POINTS / (len(taken) + 2)))
    both = (lattice(2 * parameters, points) + 0.5 / points) % 1.0
    A, B = both[:, :parameters], both[:, parameters:]
    mixed = [np.where(np.isin(np.arange(parameters), columns), B, A) for columns in taken]
    values = function(np.concatenate([A, B, *mixed])).reshape(len(taken) + 2, points)
    return values[0], values[1], values[2:]
