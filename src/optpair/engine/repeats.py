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
    if len(measured.y) < 2 or np.isfinite(measured.noise_var).any():
        return False
    place = np.unique(_rounded(measured.X), axis=0, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((measured.y, place))
    step, same = np.diff(measured.y[order]), np.diff(place[order]) == 0
    tiny = 10.0**-DIGITS * np.ptp(measured.y)
    if not same.any() or np.any(np.abs(step[same]) > tiny):
        return False
    each = np.sort(measured.y[np.unique(place, return_index=True)[1]])
    coarse = np.any(np.diff(each) <= tiny)
    return int(np.sum(same)) >= (COARSE if coarse else 1)


def _rounded(X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
    return np.round(X, DIGITS)


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
    seen = np.concatenate([data.X[region.legal(data.X)], data.pending])
    if len(seen) == 0 or len(np.unique(_rounded(seen), axis=0)) < len(seen):
        return None
    points = data.points
    worth = np.where(region.legal(points), data.means(engine.objectives[0]), -np.inf)
    worth = np.where(np.isnan(worth), -np.inf, worth)
    met = goals.met(engine.outcomes.values(), data) & (worth > -np.inf)
    best = int(np.argmax(np.where(met, worth, -np.inf) if met.any() else worth))
    x = points[best]
    return None if np.isneginf(worth[best]) or among(x, data.failed) else x
