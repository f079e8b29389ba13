"""Information-directed sampling: how much an evaluation says about the optimum, for its regret.

By Russo and Van Roy (2014), in its deterministic form: the next trial has the smallest ratio of
squared expected regret and information gain. As something to be maximised, that is

    (I1)  Δ(x) = max(E f* − E m(x), ε) / √(E a),    ε = 10⁻³ √(E a)
    (I2)  α(x) = g(x) / Δ(x)²

with E the mean over sets and their optimal pairs, g the gain of `jes` (M5) in nats, and a the
output scale: regret is without units. A trial may cost regret only where it pays in information, so
that the trials themselves become good ones, as those of `jes` need not be; `mean` looks at the
regret alone, `jes` at the gain alone.

E f* comes from a few dozen sample paths, and may be below the best mean by chance: what is left of
a regret is then ε, as without it a place of no regret would be worth any price.

Where this differs from the paper: g is about the pair (x*, f*) and not x* alone, its entropies are
those of `jes`, and the space is searched as a whole where the paper has a list of actions. The
paper also draws between two actions, which can do better than the best single one; this does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optpair.acquisition.base import Acquisition, Context, Points, Rows, check_sets
from optpair.acquisition.jes import JES, jes
from optpair.acquisition.mean import Mean
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Bool, Float
from optpair.runtime.threads import engine_work

LEAST = 1e-3  # √a: no regret is taken to be below


@dataclass(frozen=True, repr=False)
class IDS(Acquisition):
    """Nats per squared regret, in units of the output scale (I2)."""

    gain: JES
    mean: Mean
    best: float  # E f*
    unit: float  # √(E a)

    @property
    def posterior(self) -> Posterior:
        """The posterior, without the pairs."""
        return self.gain.posterior

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.gain.dimensions

    @property
    def rough(self) -> IDS:
        """With the rough gain."""
        return replace(self, gain=self.gain.rough)

    def _regret(
        self, means: Float[np.ndarray, " q"]
    ) -> tuple[Float[np.ndarray, " q"], Bool[np.ndarray, " q"]]:
        """Δ, and where it is above the least."""
        regret = (self.best - means) / self.unit
        return np.maximum(regret, LEAST), regret > LEAST  # (I1)

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """α(x)."""
        regret, _ = self._regret(self.mean.values(X))
        return np.asarray(self.gain.values(X) / regret**2)  # (I2)

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """α(x), and its derivatives."""
        gain, gain_slopes = self.gain.slopes(X)
        means, mean_slopes = self.mean.slopes(X)
        regret, free = self._regret(means)
        by_gain = 1 / regret**2
        values = gain * by_gain
        by_mean = 2 * values / (regret * self.unit) * free
        return values, by_gain[:, None] * gain_slopes + by_mean[:, None] * mean_slopes


def _of(gain: JES) -> IDS:
    posterior, shares = gain.posterior, gain.weights
    together = np.broadcast_to(posterior.weights, (*shares.shape, len(posterior.X)))
    weights = np.einsum("mpn,mp->mn", together, shares)
    mean = Mean(posterior, float(np.mean(posterior.mean)), weights)
    unit = float(np.sqrt(np.mean(posterior.outputscale)))
    return IDS(gain, mean, float(np.sum(shares * gain.f)), unit)


def build(context: Context) -> IDS:
    """IDS from what the engine has at hand."""
    return _of(jes(context.posterior, context.need_optima("Joint Entropy Search")))


@engine_work
def ids(posterior: Posterior, optima: Optima) -> IDS:
    """Information-directed sampling as a function of points: `ids(posterior, optima)(X)`.

    In nats per squared regret, regret in units of the square root of the mean output scale.
    """
    check_sets(posterior, optima.f)
    return _of(jes(posterior, optima))
