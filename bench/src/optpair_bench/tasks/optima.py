"""Best points of the packages' functions, and their spreads: measured once, kept in a file.

The best point is the best of those that the package names and of a long search: the ends of climbs
from the best of many Sobol points, half of them on faces and corners of the cube, and of
differential evolution. The file keeps points only: their values are the functions' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution, minimize
from scipy.stats import qmc

from optpair.runtime.shapes import Float
from optpair_bench.tasks import packages
from optpair_bench.tasks.functions import Optimum

SPREAD_POINTS = 2**12
SEARCH_POINTS = 2**13
STARTS = 24
GENERATIONS = 400
MEMBERS = 60
SEEDS = 2
EXACT = 1e-9
"""In units of the spread: a search must beat the package's point by more."""


def spread(function: packages.Packaged) -> float:
    """The standard deviation over Sobol points of the cube."""
    points = qmc.Sobol(len(function.start), scramble=True, rng=0).random(SPREAD_POINTS)
    return float(np.std(function(points)))


def search(function: packages.Packaged, points: int = SEARCH_POINTS) -> Optimum:
    """The largest value that a long search finds on the cube."""
    d = len(function.start)
    u = qmc.Sobol(d, scramble=True, rng=1).random(points)
    u[1::2] = np.clip(0.5 + 1.6 * (u[1::2] - 0.5), 0.0, 1.0)
    starts = list(u[np.argsort(-function(u))[:STARTS]])
    starts += [_evolve(function, d, seed) for seed in range(SEEDS)]
    ends = [_climb(function, x) for x in starts]
    ends.append(_climb(function, max(ends, key=lambda end: end.f).x, "Nelder-Mead"))
    return max(ends, key=lambda end: end.f)


def _negative(function: packages.Packaged, x: Float[np.ndarray, " d"]) -> float:
    value = -float(function(x[None])[0])
    return value if np.isfinite(value) else np.inf


def _evolve(function: packages.Packaged, d: int, seed: int) -> Float[np.ndarray, " d"]:
    end = differential_evolution(
        lambda x: _negative(function, x),
        [(0.0, 1.0)] * d,
        maxiter=GENERATIONS,
        popsize=max(2, MEMBERS // d),
        tol=1e-10,
        polish=False,
        rng=seed,
    )
    return np.asarray(end.x)


def _climb(
    function: packages.Packaged, x: Float[np.ndarray, " d"], method: str = "L-BFGS-B"
) -> Optimum:
    end = minimize(
        lambda z: _negative(function, np.clip(z, 0.0, 1.0)),
        x,
        method=method,
        bounds=[(0.0, 1.0)] * len(x),
        options={"maxfun" if method == "L-BFGS-B" else "maxfev": 400 * len(x)},
    )
    ends = [np.clip(end.x, 0.0, 1.0), np.asarray(x)]
    values = function(np.array(ends))
    best = int(np.argmax(values))
    return Optimum(ends[best], float(values[best]))


def measure(name: str) -> dict[str, Any]:
    """A task's spread and best point, and whether the package or the search knows it."""
    function = packages.bare(name)
    size = spread(function)
    cubes = [function.inside(z) for z in packages.claimed(name)]
    named = [Optimum(x, float(function(x[None])[0])) for x in cubes if x is not None]
    known = max(named, key=lambda end: end.f, default=None)
    found = search(function)
    best, source = found, "search"
    if known is not None and found.f <= known.f + EXACT * size:
        best, source = known, "package"
    return {"spread": size, "x": [float(u) for u in best.x], "from": source}


def write(path: Path, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure tasks and put them into the file, whose other tasks stay."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in names:
        found[name] = measure(name)
        lines = [f" {json.dumps(key)}: {json.dumps(found[key])}" for key in sorted(found)]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        yield name, found[name]
