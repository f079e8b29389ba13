"""Forecasts: what will be left to win after more trials, and when that is little enough.

Each of some sampled paths plays the truth, and the search for its optimum goes on, restricted to a
few hundred points. A trial goes where the expected improvement is largest, averaged over the
hyperparameter sets, weighted by how well each has predicted the new values so far. The paths of all
sets, conditioned on these values, then show what the model would believe by that time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optpair.acquisition.special.normal import log_ei
from optpair.cube.candidates import Screening
from optpair.engine.engine import Engine
from optpair.engine.gaps import left_to_win
from optpair.engine.model import Model
from optpair.engine.plate import Sampled
from optpair.problem.stop import Stop
from optpair.runtime.shapes import Bool, Float, Int
from optpair.runtime.streams import Stream
from optpair.trials.data import Data

TRIALS = 50  # trials into the future
TRUTHS = 24  # paths that are searched
SETS, PATHS = 12, 8  # sets that make up the belief, and paths of each, at most
POINTS, STARS = 128, 96  # points that fill the space, and sampled optima beside them, at most
SMALLEST = 1e-12  # the smallest variance that is compared with others


@dataclass(frozen=True)
class Forecast:
    """What each path of each set has left to win after 0, 1, 2, … trials of each search."""

    gaps: Float[np.ndarray, "t S M P"]
    weights: Float[np.ndarray, "t S M"]

    def until(self, stop: Stop) -> int | None:
        """The median number of trials until a search is over; None if half of them never are."""
        shares = np.mean(self.gaps <= stop.gap, axis=-1)
        return _median(np.vecdot(self.weights, shares) >= stop.chance)

    def halved(self) -> int | None:
        """The median number of trials until the expected gap has halved; None without a gap."""
        expected = np.vecdot(self.weights, np.mean(self.gaps / self.gaps.shape[-1], axis=-1))
        return _median(expected <= expected[0] / 2) if np.all(expected[0] > 0) else None


def _median(reached: Bool[np.ndarray, "t S"]) -> int | None:
    """The median of the first times at which something holds; None if that is never."""
    first = np.where(reached.any(0), np.argmax(reached, axis=0), len(reached))
    middle = int(np.sort(first)[len(first) // 2])
    return middle if middle < len(reached) else None


def forecast(
    engine: Engine,
    stream: Stream,
    model: Model,
    sampled: Sampled,
    data: Data,
    x: Float[np.ndarray, " D"],
) -> Forecast:
    """The forecast for the only objective, if x is recommended now."""
    (column,), objective, region = model.wanted.objectives, model.objective, engine.sought
    paths, optima, anchors = sampled.paths, sampled.optima, sampled.anchors
    assert paths is not None
    assert optima is not None
    assert anchors is not None
    screening = Screening.of(stream.child(0), engine.cube, POINTS)
    around = screening.points(region, anchors, POINTS)
    points = np.concatenate([x[None], optima.some_points(STARS), *around])
    points = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]
    sets = slice(None, None, -(-objective.posterior.sets // SETS))
    posterior = objective.posterior.of_sets(sets)
    values = paths[column].of_sets(sets).at(points)[:, :PATHS]
    once = engine.once
    free = region.without(engine.known(data)).legal(points) if once else np.full(len(points), True)
    noise_var = posterior.noise
    if posterior.growing is None:
        noise_var = np.median(posterior.noise_var[:, posterior.before :], axis=1)
    begin = Believed(*posterior.joint(points), values, noise_var)
    seen = searched(stream.child(1), begin, free, once=once)
    gaps = left_to_win(objective.restore(seen.best), objective.restore(seen.here))
    return Forecast(gaps, seen.weights)


class Believed(NamedTuple):
    """The belief about the values at Q points: moments under each set, and paths."""

    means: Float[np.ndarray, "M Q"]
    covariance: Float[np.ndarray, "M Q Q"]
    paths: Float[np.ndarray, "M P Q"]
    noise_var: Float[np.ndarray, " M"]
    """Of a new value."""


class Progress(NamedTuple):
    """The best value of each path, and its value at the point of highest mean, after each trial."""

    best: Float[np.ndarray, "t S M P"]
    here: Float[np.ndarray, "t S M P"]
    weights: Float[np.ndarray, "t S M"]
    """The weights of the sets, by how well they have predicted the new values."""


def searched(
    stream: Stream,
    begin: Believed,
    free: Bool[np.ndarray, " Q"],
    *,
    once: bool = False,
    truths: int = TRUTHS,
    trials: int = TRIALS,
) -> Progress:
    """Search some of the paths for their best points; the first point is recommended at the start.

    Args:
        stream: the random numbers of the noise.
        begin: the belief before the first of these trials.
        free: the points that may be tried.
        once: whether each point is tried at most once, so that there may be fewer trials.
        truths: how many paths are searched, taken as evenly as possible from all sets.
        trials: how many trials each search makes.
    """
    (M, P, Q), rng = begin.paths.shape, stream.draw()
    trials = min(trials, int(np.sum(free))) if once else trials
    chosen = np.unique(np.linspace(0, M * P - 1, min(truths, M * P)).astype(np.int64))
    truth, noise_var = begin.paths.reshape(-1, Q)[chosen], begin.noise_var[chosen // P]
    searches = _Searches(begin, len(chosen), trials)
    left = np.tile(free, (len(chosen), 1))
    moments = [searches.seen(np.zeros(len(chosen), np.int64))]
    for _ in range(trials):
        tried = np.argmax(np.where(left, searches.gain(), -np.inf), axis=1)
        exact = np.take_along_axis(truth, tried[:, None], axis=1)[:, 0]
        y = exact + np.sqrt(noise_var) * rng.standard_normal(len(chosen))
        searches.tell(tried, y, rng.standard_normal((len(chosen), M, P)))
        np.put_along_axis(left, tried[:, None], not once, axis=1)
        moments.append(searches.seen(searches.best()))
    return Progress(*(np.stack(part) for part in zip(*moments, strict=True)))


class _Searches:
    """S searches side by side."""

    def __init__(self, begin: Believed, searches: int, trials: int) -> None:
        M, _, Q = begin.paths.shape
        variance = np.diagonal(begin.covariance, axis1=1, axis2=2)
        self._begin, self._told = begin, 0
        self._means = np.tile(begin.means, (searches, 1, 1))
        self._variance = np.tile(variance, (searches, 1, 1))
        self._paths = np.tile(begin.paths, (searches, 1, 1, 1))
        self._rows = np.zeros((searches, M, trials, Q))  # rows of the factor, one for each trial
        self._log_weight = np.zeros((searches, M))
        self._floor = np.maximum(SMALLEST * variance.max(1), SMALLEST)[:, None]

    @property
    def _weights(self) -> Float[np.ndarray, "S M"]:
        weights = np.exp(self._log_weight - self._log_weight.max(1, keepdims=True))
        return weights / weights.sum(1, keepdims=True)

    def gain(self) -> Float[np.ndarray, "S Q"]:
        """The logarithm of the expected improvement on the best mean of each set, averaged."""
        sd = np.sqrt(np.maximum(self._variance, self._floor))
        each = np.log(sd) + log_ei((self._means - self._means.max(-1, keepdims=True)) / sd)
        each += self._log_weight[..., None]
        most = each.max(1)
        return np.log(np.sum(np.exp(each - most[:, None]), axis=1)) + most

    def best(self) -> Int[np.ndarray, " S"]:
        """The point of highest mean in each search."""
        return np.argmax(np.vecdot(self._weights[:, None], np.moveaxis(self._means, 1, 2)), axis=1)

    def tell(
        self,
        tried: Int[np.ndarray, " S"],
        y: Float[np.ndarray, " S"],
        white: Float[np.ndarray, "S M P"],
    ) -> None:
        """Condition each search on its new value, by one more row of the factor."""
        at, t, noise_var = tried[:, None, None], self._told, self._begin.noise_var
        before = np.take_along_axis(self._rows[:, :, :t], at[..., None], axis=3)[..., 0]
        k = np.moveaxis(self._begin.covariance[:, tried], 0, 1)
        k = k - (before[:, :, None] @ self._rows[:, :, :t])[:, :, 0]
        scale = np.sqrt(self._of(self._variance, at).clip(0.0) + noise_var)
        row = self._rows[:, :, t] = k / scale[..., None]
        surprise = (y[:, None] - self._of(self._means, at)) / scale
        self._means = self._means + row * surprise[..., None]
        self._variance = self._variance - row**2
        self._log_weight = self._log_weight - surprise**2 / 2 - np.log(scale)
        noisy = self._of(self._paths, at[..., None]) + np.sqrt(noise_var)[:, None] * white
        missing = (y[:, None, None] - noisy) / scale[..., None]
        self._paths += missing[..., None] * row[:, :, None]
        self._told = t + 1

    def seen(self, x: Int[np.ndarray, " S"]) -> Progress:
        """The best value of each path, and its value at the best point of each search."""
        here = self._of(self._paths, x[:, None, None, None])
        return Progress(self._paths.max(-1), here, self._weights)

    def _of(self, values: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The entries of each search at its point."""
        return np.take_along_axis(values, at, axis=-1)[..., 0]
