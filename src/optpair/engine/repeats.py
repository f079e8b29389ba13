"""Repeats: one point evaluated twice tells whether values are noisy.

A rugged function without noise looks like a smooth one with noise, and few trials cannot tell the
two apart. So the best trial is repeated once, unless its noise was told or a point has been
repeated already. If the two values differ, the model learns how noisy values are where it matters
most, and the luck of the best trial is halved. If they agree, values count as exact: from then on
nothing is attributed to noise, no point is asked for twice, and the best value is taken as it is.

Coarse values, such as an accuracy over few cases, may agree by chance: if different points have the
same value, several repeats have to agree. That does not count for values that are cut off at an
end, and for points that share half of their coordinates. Where there are several objectives, no
value is taken as it is, and nothing is repeated.
"""

from __future__ import annotations

import numpy as np

from optpair.cube.cube import among
from optpair.engine import goals
from optpair.engine.engine import Engine
from optpair.runtime.shapes import Float
from optpair.trials.data import Data, Measured
from optpair.trials.transform import ROUND_OFF

TRIALS = 2  # trials per parameter, after which the best one is repeated
COARSE = 3  # repeats that have to agree if different points have the same value
DIGITS = 9  # tolerances, of the cube and of the spread of values, within which two are the same


def exact(measured: Measured) -> bool:
    """Whether values of unknown noise agreed whenever a point was repeated."""
    if np.isfinite(measured.noise_var).any():
        return False
    tiny = 10.0**-DIGITS * float(np.ptp(measured.y)) if len(measured.y) else 0.0
    X = np.round(measured.X, DIGITS)
    places: dict[bytes, int] = {}
    again: set[float] = set()
    for row, x in enumerate(X):
        first = float(measured.y[places.setdefault(x.tobytes(), row)])
        if abs(measured.y[row] - first) > tiny:
            return False
        if places[x.tobytes()] != row:
            again.add(first)
    rows = list(places.values())
    repeats = len(X) - len(rows)
    return repeats > 0 and repeats >= (COARSE if _coarse(X[rows], measured.y[rows], again) else 1)


def _coarse(X: Float[np.ndarray, "n D"], y: Float[np.ndarray, " n"], again: set[float]) -> bool:
    """Whether different points have the same value, other than by the nature of the function.

    Values that were not repeated may be cut off at the lowest or the highest of them. And points
    that share half of their coordinates may differ only in what the value does not depend on.
    """
    order = np.argsort(y)
    X, y = X[order], y[order]
    same = np.diff(y) <= ROUND_OFF * np.abs(y[1:])
    for end in {float(y[0]), float(y[-1])} - again:
        if np.count_nonzero(y != end) >= COARSE:
            same &= y[1:] != end
    shared = np.mean(X[1:][same] == X[:-1][same], axis=1)
    return bool(np.any(shared < 0.5))


def _repeated(X: Float[np.ndarray, "n D"]) -> bool:
    """Whether any two of some points are the same."""
    return len({x.tobytes() for x in np.round(X, DIGITS)}) < len(X)


def settle(data: Data) -> Data:
    """The data, with a mark on outcomes whose values repeats have shown to be exact."""
    columns = [c for c in range(data.outcomes) if exact(data.outcome(c))]
    return data.noiseless(columns) if columns else data


def unrepeated(engine: Engine, data: Data) -> Float[np.ndarray, " D"] | None:
    """The point of the best trial, if it is time to repeat it."""
    region, settings = engine.region, engine.settings
    if not (settings.repeat and engine.inference.standardises) or engine.targets or engine.once:
        return None
    if len(engine.objectives) > 1:
        return None
    if data.told < max(engine.initial, TRIALS * engine.cube.parameters):
        return None
    if not np.isnan(data.noise_var).all(0).any():  # the noise of every outcome was told
        return None
    if _repeated(np.concatenate([data.X, data.pending])):
        return None
    points = data.points
    worth = np.where(region.legal(points), data.means(engine.objectives[0]), -np.inf)
    worth = np.where(np.isnan(worth), -np.inf, worth)
    met = goals.met(engine.outcomes.values(), data) & (worth > -np.inf)
    best = int(np.argmax(np.where(met, worth, -np.inf) if met.any() else worth))
    x = points[best]
    return None if np.isneginf(worth[best]) or among(x, data.failed) else x
