"""Repeats: one point evaluated twice tells whether values are noisy.

A rugged function without noise looks like a smooth one with noise, and few trials cannot tell the
two apart. So the best trial is repeated once, unless its noise was told or a point has been
repeated already. If the two values differ, the model learns how noisy they are where it matters
most, and the luck of the best trial is halved. If they are the same, values are exact: from then on
nothing is taken for noise, no point is asked for again, and the best value seen is worth just that.

Coarse values, like an accuracy over few cases, may agree by chance: where different points have the
same value, several repeats have to agree.
"""

from __future__ import annotations

import numpy as np

from optpair.cube.cube import among
from optpair.engine import goals
from optpair.engine.engine import Engine
from optpair.shapes import Float
from optpair.trials.data import Data, Measured

TRIALS = 2  # for each parameter, after which the best one is repeated
COARSE = 3  # repeats that have to agree where different points have the same value
DIGITS = 9  # of the cube, and of the spread of values, to which the same is the same


def exact(measured: Measured) -> bool:
    """Whether values of unknown noise were the same whenever a point was repeated."""
    if np.isfinite(measured.noise_var).any():
        return False
    tiny = 10.0**-DIGITS * float(np.ptp(measured.y)) if len(measured.y) else 0.0
    values: dict[bytes, float] = {}
    repeats = 0
    for x, y in zip(np.round(measured.X, DIGITS), measured.y.tolist(), strict=True):
        first = values.setdefault(x.tobytes(), y)
        if abs(y - first) > tiny:
            return False
        repeats += 1
    repeats -= len(values)
    coarse = bool(np.any(np.diff(np.sort(list(values.values()))) <= tiny))
    return repeats >= (COARSE if coarse else 1)


def _repeated(X: Float[np.ndarray, "n D"]) -> bool:
    """Whether two of some points are the same."""
    return len({x.tobytes() for x in np.round(X, DIGITS)}) < len(X)


def settle(data: Data) -> Data:
    """The data with the outcomes marked whose values repeats have shown to be exact."""
    columns = [c for c in range(data.outcomes) if exact(data.outcome(c))]
    return data.noiseless(columns) if columns else data


def unrepeated(engine: Engine, data: Data) -> Float[np.ndarray, " D"] | None:
    """The point of the best trial, where it is time to repeat it."""
    region, settings = engine.region, engine.settings
    if not (settings.repeat and engine.inference.standardises) or engine.targets or region.once:
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
