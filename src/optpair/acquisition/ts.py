"""Thompson sampling: the next trial is where one sample of the objective is largest.

The path is drawn under one hyperparameter set, chosen at random. What is pending needs no
fantasies: another ask has another path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optpair.acquisition.base import Acquisition, Context, Points, Rows
from optpair.gp.paths import Paths, sample_paths
from optpair.gp.posterior import Posterior
from optpair.shapes import Float
from optpair.streams import Stream
from optpair.threads import engine_work


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


def build(context: Context) -> TS:
    """One of the paths that the engine has drawn."""
    if context.paths is None:
        raise ValueError("Thompson sampling needs sample paths")
    (paths,) = context.paths
    chosen, path = (int(i) for i in context.stream.draw().integers(paths.shape))
    return _one(paths, chosen, path)


def _one(paths: Paths, chosen: int, path: int) -> TS:
    """One path of one set."""
    own, only = paths.of_sets(slice(chosen, chosen + 1)), slice(path, path + 1)
    drawn = {name: getattr(own, name)[:, only] for name in ("cosine", "sine", "update")}
    return TS(replace(own, **drawn))


@engine_work
def ts(posterior: Posterior, seed: int = 0, *, features: int = 1024) -> TS:
    """One sample of the objective as a function of points: `ts(posterior, seed)(X)`.

    The seed chooses the hyperparameter set, and the path under it. Of fantasies, which are draws
    themselves, the path has seen the first.
    """
    chosen = int(Stream.of(seed).draw().integers(posterior.sets))
    own = posterior.of_sets(slice(chosen, chosen + 1)).some_fantasies(1)
    return TS(sample_paths(own, 1, seed, features=features))
