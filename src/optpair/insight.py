"""What people ask of a fitted model: values anywhere, what matters, how much is noise, what was
known when.

As in the engine everything is to be maximised, on the cube, and answers are in raw units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import ndtr, ndtri

from optpair.cube import Cube
from optpair.engine import CONFIDENCE, Engine, Info, Pairs, State, Surrogate
from optpair.gp.kernels import correlation
from optpair.gp.mixture import TINY
from optpair.gp.posterior import Posterior
from optpair.history import Observations
from optpair.maximize import sobol
from optpair.runtime import Numbers, Stream, compiled, double

FEW_ROWS, ROWS = 32, 512  # points that a compiled prediction takes at once
MOST_POINTS = 2**14  # at which effects are measured
BISECTIONS = 100


class Predicted(NamedTuple):
    """What is believed of the noiseless value at q points; low and high hold 95 %."""

    mean: Float[np.ndarray, " q"]
    std: Float[np.ndarray, " q"]
    low: Float[np.ndarray, " q"]
    high: Float[np.ndarray, " q"]


class Noise(NamedTuple):
    """The standard deviation of a value's noise, and its share of the variance of the values."""

    std: float
    share: float | None  # None where all values are the same


class Effects(NamedTuple):
    """Shares of the variance of the predicted value over the whole space, one a parameter.

    first: what a parameter explains on its own. total: together with all its interactions.
    """

    first: Float[np.ndarray, " d"]
    total: Float[np.ndarray, " d"]


@double
def fitted(
    engine: Engine, stream: Stream, state: State, observations: Observations
) -> tuple[State, Surrogate]:
    """The model that `recommend` and `belief` use, given the same stream, and its state."""
    return engine.answering(stream, state, observations)


@double
def predict(surrogate: Surrogate, X: Float[np.ndarray, "q D"]) -> Predicted:
    """The values at some points, averaged over the sets as a recommendation's is."""
    means, variances = _moments(surrogate, X)
    sds, scaling = np.sqrt(variances), surrogate.scaling
    mean, sd = means.mean(0), np.sqrt(variances.mean(0) + means.var(0))
    around = scaling.restore(np.stack([mean - sd, mean + sd]))
    low, high = (
        scaling.restore(quantiles(means, sds, p))
        for p in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    )
    return Predicted(scaling.restore(mean), around[1] / 2 - around[0] / 2, low, high)


def signed(predicted: Predicted, sign: float) -> Predicted:
    """Of the objective that is maximised: of its negative, where the sign is −1."""
    mean, std, low, high = predicted
    return Predicted(sign * mean, std, *((low, high) if sign > 0 else (-high, -low)))


def _moments(
    surrogate: Surrogate, X: Float[np.ndarray, "q D"]
) -> tuple[Float[np.ndarray, "M q"], Float[np.ndarray, "M q"]]:
    """The sets' means and variances, a block of points at a time."""
    found = [surrogate.predict(block) for block in _blocks(X)]
    means, variances = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
    return means[:, : len(X)], variances[:, : len(X)]


def _blocks(X: Float[np.ndarray, "q D"]) -> list[Float[np.ndarray, "rows D"]]:
    """The points in blocks of one size, the last of them padded: two shapes to compile."""
    rows = FEW_ROWS if len(X) <= FEW_ROWS else ROWS
    padded = np.zeros((-(-max(len(X), 1) // rows) * rows, X.shape[1]))
    padded[: len(X)] = X
    return [padded[i : i + rows] for i in range(0, len(padded), rows)]


def quantiles(
    means: Float[np.ndarray, "M q"], sds: Float[np.ndarray, "M q"], probability: float
) -> Float[np.ndarray, " q"]:
    """The quantiles of q mixtures of M normals: `Mixture.quantile`, for many at once."""
    edges = means + sds * ndtri(probability)
    low, high = edges.min(0), edges.max(0)
    for _ in range(BISECTIONS):
        middle = low + (high - low) / 2
        with np.errstate(over="ignore"):  # infinitely many deviations away is an answer
            below = ndtr((middle - means) / np.maximum(sds, TINY)).mean(0) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(low + (high - low) / 2)


def noise(surrogate: Surrogate, observations: Observations) -> Noise:
    """The noise of a value near the optimum, where the scaling compresses nothing."""
    variance = float(np.mean(np.asarray(surrogate.posterior.noise)))
    spread = float(np.var(surrogate.scaling.standardise(observations.y)))
    std = float(np.sqrt(variance)) * surrogate.scaling.scale
    return Noise(std, min(variance / spread, 1.0) if spread > 0 else None)


@double
def effects(engine: Engine, surrogate: Surrogate) -> Effects | None:
    """Which parameters matter to the predicted value, as the model sees values (scaled)."""

    def mean(U: Float[np.ndarray, "N d"]) -> Float[np.ndarray, " N"]:
        blocks = (U[i : i + ROWS] for i in range(0, len(U), ROWS))
        means = [np.asarray(_mean(surrogate.posterior, engine.cube, block)) for block in blocks]
        return np.concatenate(means)

    return variance_shares(mean, engine.cube.parameters)


@compiled()
def _mean(posterior: Posterior, cube: Cube, U: Float[Numbers, "q d"]) -> Float[Array, " q"]:
    return jnp.mean(posterior.means(posterior.covariance(cube.spread(U))), (0, 1))


def variance_shares(
    function: Callable[[np.ndarray], np.ndarray], parameters: int
) -> Effects | None:
    """First-order and total Sobol indices of a function of [0, 1]^d; None where it is constant.

    With A and B two designs and AB_j the first with column j of the second,

        first_j = E[f(B) (f(AB_j) − f(A))] / V,    total_j = E[(f(A) − f(AB_j))²] / 2V
    """
    points = 1 << int(np.log2(MOST_POINTS / (parameters + 2)))
    both = sobol(2 * parameters, points)
    A, B = both[:, :parameters], both[:, parameters:]
    mixed = [np.where(np.arange(parameters) == j, B, A) for j in range(parameters)]
    values = function(np.concatenate([A, B, *mixed])).reshape(parameters + 2, points)
    centre = values[:2].mean()
    fA, fB, fAB = values[0] - centre, values[1] - centre, values[2:] - centre
    variance = float(np.mean(values[:2] ** 2) - centre**2)
    if not variance > 1e-12 * max(float(np.mean(values**2)), 1e-12):
        return None
    first = np.mean(fB * (fAB - fA), axis=1) / variance
    total = np.mean((fA - fAB) ** 2, axis=1) / (2 * variance)
    total = np.clip(total, 0.0, 1.0)
    return Effects(np.clip(first, 0.0, total), total)


@double
def nearness(
    engine: Engine,
    surrogate: Surrogate,
    X: Float[np.ndarray, "n D"],
    x: Float[np.ndarray, " D"],
) -> Float[np.ndarray, "n d"]:
    """How close each point is to the slice through x along each parameter, from 0 to 1.

    That is the prior correlation of the value there with the value at the slice's point that has
    the same value of the parameter, averaged over the sets.
    """
    blocks = _blocks(X)
    near = [np.asarray(_nearness(surrogate.posterior, engine.cube, block, x)) for block in blocks]
    return np.concatenate(near)[: len(X)]


@compiled()
def _nearness(
    posterior: Posterior, cube: Cube, X: Float[Numbers, "q D"], x: Float[Numbers, " D"]
) -> Float[Array, "q d"]:
    own = np.asarray(cube.parameter)[:, None] == np.arange(cube.parameters)
    scaled = jnp.asarray(X - x) ** 2 / posterior.scale[:, None, :] ** 2
    others = scaled @ (~own).astype(float)
    return jnp.mean(correlation(posterior.kernel, others), axis=0)


@double
def believe(
    engine: Engine, stream: Stream, surrogate: Surrogate, observations: Observations
) -> Pairs:
    """What `Engine.belief` says, of a model that is there already."""
    return engine.believe(stream, surrogate, observations)


@double
def replay(
    engine: Engine,
    stream: Stream,
    state: State,
    surrogate: Surrogate,
    pasts: Sequence[Observations],
) -> list[Pairs]:
    """The belief after each of some past values, by today's `state` and chance of success.

    All are padded to as many rows as today's: the same programs do for them.
    """
    same = replace(engine, least=len(surrogate.posterior.mask))
    found = []
    for past in pasts:
        alone = replace(past, pending=past.pending[:0], failed=past.failed[:0])
        then = same.condition(state, alone, Info())._replace(success=surrogate.success)
        found.append(same.believe(stream.child(len(past.y)), then, alone))
    return found
