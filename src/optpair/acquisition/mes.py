"""Max-value Entropy Search: how much an evaluation would say about the maximum f*.

For one set and one f*, with β = (f* − m(x)) / √s(x), what knowing f(x) ≤ f* tells of

    f(x), without noise:            −log Φ(β) + ½ β φ(β)/Φ(β)                              (M6)
    y, taken for a normal:          ½ log(1 + s (1 − v(β))/(s v(β) + σ²))                  (M7)
    y, by its exact density:        an integral, `truncation.exact_gain`                   (M8)

(M6) is the form of Wang and Jegelka (2017), called MES; (M7) is GIBBON's, (M8) rectified MES. (M6)
is about f and (M7), (M8) about y: a form without noise is never given a variance with noise in it.
(M7) ≤ (M8), and (M8) tends to (M6) as σ² → 0. Gains are averaged over f* and sets.

f* are the maxima of sample paths or, as in Wang and Jegelka, draws from a Gumbel distribution. That
has the quartiles of the maximum of many points whose values are taken for independent,

    P(f* ≤ t) ≈ Π_i Φ((t − m(x_i)) / √s(x_i))                                              (M9)

which overstates f* the more, the denser the points are: a baseline's choice, not ours.

(M6) depends on β alone: at a place whose mean is close to f* it is as large as ever, however little
is left to learn there, and such a place would be asked for again and again. Wang and Jegelka's code
therefore has no f* below the best value and a bit; here, for (M6),

    f* ≥ m⁺ + σ                                                                           (M6b)

with m⁺ the best posterior mean among the data, and the noise's standard deviation. That holds in
the optimiser; `mes` as a function of arrays takes the f* that it is given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc, ndtri
from jaxtyping import Array, Float

from optpair.acquisition.base import SMALLEST, Acquisition, Context, check_sets, incumbent
from optpair.acquisition.truncation import exact_gain, moment_matched_gain, noiseless_gain
from optpair.cube import Cube
from optpair.gp.posterior import Posterior
from optpair.maximize import screen, sobol, space_filling
from optpair.pairs import OptimalPairs
from optpair.runtime import Stream, compiled, double, make_key, pytree, static

Form = Literal["noiseless", "matched", "exact"]
Maxima = OptimalPairs | Float[Array | np.ndarray, "M P"]

POINTS = 2560  # that the Gumbel approximation is fitted on, at most, beside the data
MAXIMA = 16  # Gumbel draws a set, where fantasies do not say how many
QUARTILES = np.array([0.25, 0.5, 0.75])
ENOUGH = 1e-10  # of log(−log P), which is about as much of the Gumbel distribution's scale
ROUNDS = 40  # of regula falsi, at most: about six are needed


@pytree
@dataclass(frozen=True)
class MES(Acquisition):
    """What an evaluation says about f*, in nats."""

    posterior: Posterior
    f: Float[Array, "M P"]
    form: Form = static()
    screened: Float[Array, " N"] | None = None

    def evaluate(self, X: Float[Array, "q D"]) -> Float[Array, " q"]:
        """α(x), nats."""
        return self.given(*self.posterior.moments(X))

    def given(
        self, means: Float[Array, "M F q"], variance: Float[Array, "M q"]
    ) -> Float[Array, " q"]:
        """α where the posterior has these moments."""
        noise = self.posterior.noise[:, None, None]
        s = jnp.maximum(variance, SMALLEST * self.posterior.outputscale[:, None])[:, None]
        beta = (self.f[..., None] - means) / jnp.sqrt(s)
        if self.form == "noiseless":
            gain = noiseless_gain(beta)  # (M6)
        elif self.form == "matched":
            gain = moment_matched_gain(beta, s, noise)  # (M7)
        else:
            gain = exact_gain(beta, s / (s + noise))  # (M8)
        return jnp.mean(gain, (0, 1))


def build(context: Context, *, form: Form) -> MES:
    """One of the forms, with the maxima of sample paths."""
    if context.stars is None:
        raise ValueError("Max-value Entropy Search from paths needs optimal pairs")
    f = jnp.asarray(context.stars.f)
    if form == "noiseless":
        f = _above_data(context.posterior, f)
    return MES(context.posterior, f, form)


def _above_data(posterior: Posterior, f: Float[Array, "M P"]) -> Float[Array, "M P"]:
    """Maxima that the data do not reach."""
    return jnp.maximum(f, incumbent(posterior) + jnp.sqrt(posterior.noise)[:, None])  # (M6b)


def build_gumbel(context: Context) -> MES:
    """The form without noise, with f* from the Gumbel approximation over the screened points.

    Of more than `POINTS` every second is taken, or every third: what the approximation overstates
    grows with them. Their moments are most of its work, so it is screened with the same.
    """
    posterior, n = context.posterior, len(context.posterior.X)
    fantasies = posterior.residual.shape[1]
    X = jnp.concatenate([posterior.X, context.points])
    means, variance = _moments(posterior, X)
    every = -(-len(context.points) // POINTS)
    some = np.concatenate([np.arange(n), np.arange(n, len(X), every)])
    fitted = _gumbel(posterior, means[..., some], variance[..., some])
    f = _draw(context.key, *fitted, MAXIMA if fantasies == 1 else fantasies)
    acquisition = MES(posterior, _above_data(posterior, f), "noiseless")
    return replace(acquisition, screened=acquisition.given(means[..., n:], variance[..., n:]))


def _moments(
    posterior: Posterior, X: Float[Array, "N D"]
) -> tuple[Float[Array, "M F N"], Float[Array, "M N"]]:
    """m(x) of each fantasy, and s(x), a block of points at a time."""

    def moments(block: Float[Array, "q D"]) -> Float[Array, "M rows q"]:
        means, variance = posterior.moments(block)
        return jnp.concatenate([means, variance[:, None]], 1)

    both = screen(moments, X)
    return both[:, :-1], both[:, -1]


def _draw(
    key: Array, location: Float[Array, "M F"], scale: Float[Array, "M F"], count: int
) -> Float[Array, "M P"]:
    """P draws of f* a set, one from each of P equally likely parts of its Gumbel distribution.

    Sets share their uniform numbers. With fantasies, draw p is from the distribution under
    fantasy p.
    """
    u = (jnp.arange(count) + jax.random.uniform(key, (count,))) / count
    u = jnp.clip(u, 1e-12, 1 - 1e-12)
    return location - scale * jnp.log(-jnp.log(u))


def _gumbel(
    posterior: Posterior, means: Float[Array, "M F N"], variance: Float[Array, "M N"]
) -> tuple[Float[Array, "M F"], Float[Array, "M F"]]:
    """Location a and scale b of exp(−exp(−(t − a)/b)), which has the quartiles of (M9).

    The moments are those at the data, padding included, and at more points.
    """
    more = variance.shape[-1] - len(posterior.X)
    there = jnp.concatenate([posterior.mask, jnp.ones(more, dtype=bool)])
    sd = jnp.sqrt(jnp.maximum(variance, SMALLEST * posterior.outputscale[:, None]))
    low, middle, high = jnp.moveaxis(_quantiles(means, sd[:, None], there), -1, 0)
    first, second, third = np.log(-np.log(QUARTILES))
    scale = (high - low) / (first - third)
    return middle + scale * second, scale


def _quantiles(
    means: Float[Array, "M F N"], sd: Float[Array, "M 1 N"], there: Float[Array, " N"] | Array
) -> Float[Array, "M F 3"]:
    """The quartiles of a maximum of independent normals, by regula falsi (Illinois).

    The q-quantile t has a bracket that cannot fail: every factor of (M9) is at least q, and
    at least one is at most q^(1/N), so that

        max_i m_i + √s_i Φ⁻¹(q)  ≤  t  ≤  max_i m_i + √s_i Φ⁻¹(q^(1/N))

    log(−log P(f* ≤ t)) is close to linear in t. No factor is in its lower tail.
    """
    target = jnp.asarray(np.log(-np.log(QUARTILES)))

    def excess(t: Float[Array, "M F 3"]) -> Float[Array, "M F 3"]:
        z = (t[..., None] - means[:, :, None]) / sd[:, :, None]
        factors = jnp.where(there, jnp.log1p(-erfc(z * np.sqrt(0.5)) / 2), 0.0)
        return jnp.log(jnp.maximum(-jnp.sum(factors, -1), 1e-300)) - target

    def end(z: Float[Array, " 3"]) -> Float[Array, "M F 3"]:
        edges = means[:, :, None] + sd[:, :, None] * z[:, None]
        return jnp.max(jnp.where(there, edges, -jnp.inf), -1)

    count = jnp.sum(there)
    # 1 − q^(1/N) without cancellation: the upper end's normal quantile is deep in the tail.
    low, high = (
        end(ndtri(jnp.asarray(QUARTILES))),
        end(-ndtri(-jnp.expm1(np.log(QUARTILES) / count))),
    )

    def narrow(at: tuple[Array, ...]) -> tuple[Array, ...]:
        low, high, above, below, side, _, _, rounds = at
        slope = above - below
        share = jnp.where(slope > 0, above / jnp.where(slope > 0, slope, 1.0), 0.5)
        t = low + (high - low) * jnp.clip(share, 0.0, 1.0)
        value = excess(t)
        up = value > 0  # t is below the quantile
        return (
            jnp.where(up, t, low),
            jnp.where(up, high, t),
            jnp.where(up, value, above * jnp.where(side < 0, 0.5, 1.0)),
            jnp.where(up, below * jnp.where(side > 0, 0.5, 1.0), value),
            jnp.where(up, 1, -1),
            t,
            value,
            rounds + 1,
        )

    def unfinished(at: tuple[Array, ...]) -> Array:
        *_, value, rounds = at
        return jnp.any(jnp.abs(value) > ENOUGH) & (rounds < ROUNDS)

    side, rounds = jnp.zeros(low.shape, dtype=int), jnp.zeros((), dtype=int)
    unknown = jnp.full(low.shape, jnp.inf)
    ends = excess(low), excess(high)
    start: tuple[Array, ...] = (low, high, *ends, side, low, unknown, rounds)
    *_, t, _, _ = jax.lax.while_loop(unfinished, narrow, start)
    return t


def _of(posterior: Posterior, stars: Maxima, form: Form) -> MES:
    f = stars.f if isinstance(stars, OptimalPairs) else stars
    check_sets(posterior, f)
    return MES(posterior, jnp.asarray(f), form)


@double
def mes(posterior: Posterior, stars: Maxima) -> MES:
    """Max-value Entropy Search without noise: `mes(posterior, stars)(X)` in nats.

    `stars` are optimal pairs, of which f* is used, or values f* of shape (M, P), such as those of
    `gumbel_maxima`. `gibbon` and `rmes` are its forms with noise.
    """
    return _of(posterior, stars, "noiseless")


@double
def gibbon(posterior: Posterior, stars: Maxima) -> MES:
    """Max-value Entropy Search with noise, by moment matching: `gibbon(posterior, stars)(X)`."""
    return _of(posterior, stars, "matched")


@double
def rmes(posterior: Posterior, stars: Maxima) -> MES:
    """Max-value Entropy Search with noise, by the exact density: `rmes(posterior, stars)(X)`."""
    return _of(posterior, stars, "exact")


@compiled("count")
def _maxima(
    key: Array, posterior: Posterior, points: Float[Array, "N D"], count: int
) -> Float[Array, "M P"]:
    moments = _moments(posterior, jnp.concatenate([posterior.X, points]))
    return _above_data(posterior, _draw(key, *_gumbel(posterior, *moments), count))


@double
def gumbel_maxima(
    key: Array | int,
    posterior: Posterior,
    n_maxima: int,
    *,
    cube: Cube | None = None,
    points: int = 2048,
) -> Float[np.ndarray, "M P"]:
    """Draw `n_maxima` values f* under each set from the Gumbel approximation.

    `key` is a JAX key or a seed. It is fitted on the data and `points` that fill [0, 1]^d, or the
    legal points of `cube`. None is below the best posterior mean among the data and the noise's
    standard deviation.
    """
    if n_maxima < 1:
        raise ValueError(f"n_maxima must be at least 1, not {n_maxima}")
    cube = Cube.box(posterior.scale.shape[1]) if cube is None else cube
    shift = Stream.of(key).draw().uniform(size=cube.parameters)
    filling = space_filling(shift, cube, sobol(cube.parameters, points))
    drawn = make_key(key) if isinstance(key, int) else key
    return np.asarray(_maxima(drawn, posterior, filling, n_maxima))
