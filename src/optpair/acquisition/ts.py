"""Thompson sampling: the next trial is where one sample of the objective is largest.

The path is drawn under one hyperparameter set, chosen at random. What is pending needs no
fantasies: another ask has another path.

Of several outcomes it is a joint path: the objective less ten times what limits are violated by or,
with several objectives, a Chebyshev scalarisation with random weights w, less the same,

    (T1)  min_o w_o (f_o(x) − μ_o)/√a_o − 10 Σ_k (violation of limit k)/√a_k

which is in units of √a_o; with one objective all is times √a, plus μ, so that it is in units of y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from optpair.acquisition.base import Acquisition, Context, Points, Rows
from optpair.gp.paths import Paths, sample_paths
from optpair.gp.posterior import Posterior
from optpair.optima.base import Wanted
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work

PENALTY = 10.0  # what a violation costs, in units of √a
LEAST = 0.01  # of a weight


@dataclass(frozen=True, repr=False)
class TS(Acquisition):
    """One sample path, in units of y."""

    path: Paths  # one path of one set

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return int(self.path.X.shape[1])

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """f(x)."""
        return np.asarray(self.path.at(X)[0, 0])

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """f(x), and its derivatives."""
        values, slopes = self.path.own(X[None], np.zeros((1, len(X)), dtype=int))
        return values[0], slopes[0]


@dataclass(frozen=True, repr=False)
class JointTS(Acquisition):
    """One joint sample path, scalarised."""

    paths: tuple[TS, ...]  # of each outcome
    wanted: Wanted
    weights: Float[np.ndarray, " K"]

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.paths[0].dimensions

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """The penalised scalarisation (T1)."""
        return self.slopes(X)[0]

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """The penalised scalarisation (T1), and its derivatives."""
        scaled = [self._scaled(o, X) for o in range(len(self.paths))]
        each = np.stack([w * scaled[o][0] for w, o in self._objectives()])
        least = np.argmin(each, 0)
        slopes = np.stack([w * scaled[o][1] for w, o in self._objectives()])
        value, slope = each[least, np.arange(len(X))], slopes[least, np.arange(len(X))]
        for o in self.wanted.constraints:
            level, size = self._units(o)
            for end, side in ((self.wanted.low[o], -1.0), (self.wanted.high[o], 1.0)):
                gap = side * (scaled[o][0] - (end - level) / size)
                value = value - PENALTY * np.maximum(gap, 0.0)
                slope = slope - PENALTY * side * (gap > 0)[:, None] * scaled[o][1]
        if len(self.wanted.objectives) > 1:
            return value, slope
        level, size = self._units(self.wanted.objectives[0])
        return level + size * value, size * slope

    def _objectives(self) -> Iterator[tuple[float, int]]:
        return zip(self.weights, self.wanted.objectives, strict=True)

    def _units(self, o: int) -> tuple[float, float]:
        """μ and √a of an outcome."""
        path = self.paths[o].path
        return float(path.mean[0]), float(np.sqrt(path.covariance.outputscale[0]))

    def _scaled(self, o: int, X: Points) -> tuple[np.ndarray, np.ndarray]:
        """An outcome and its slope, from μ and in units of √a."""
        level, size = self._units(o)
        value, slope = self.paths[o].slopes(X)
        return (value - level) / size, slope / size


def build(context: Context) -> TS | JointTS:
    """One of the paths that the engine has drawn."""
    if context.paths is None:
        raise ValueError("Thompson sampling needs sample paths")
    chosen, path = (int(i) for i in context.stream.draw().integers(context.paths[0].shape))
    drawn = tuple(_one(paths, chosen, path) for paths in context.paths)
    if context.wanted.goal == "best":
        return drawn[0]
    objectives = len(context.wanted.objectives)
    weights = context.stream.child(1).draw().dirichlet(np.ones(objectives))
    raised = np.maximum(weights, LEAST)
    return JointTS(drawn, context.wanted, raised / raised.max())


def _one(paths: Paths, chosen: int, path: int) -> TS:
    """One path of one set."""
    own, only = paths.of_sets(slice(chosen, chosen + 1)), slice(path, path + 1)
    names = ["cosine", "sine", "update"] + ([] if own.smooth is None else ["smooth"])
    return TS(replace(own, **{name: getattr(own, name)[:, only] for name in names}))


@engine_work
def ts(posterior: Posterior, seed: int = 0, *, features: int = 1024) -> TS:
    """One sample of the objective as a function of points: `ts(posterior, seed)(X)`.

    The seed chooses the hyperparameter set, and the path under it. Fantasies are draws themselves:
    the path is conditioned on the first.
    """
    chosen = int(Stream.of(seed).draw().integers(posterior.sets))
    own = posterior.of_sets(slice(chosen, chosen + 1)).some_fantasies(1)
    return TS(sample_paths(own, 1, seed, features=features))
