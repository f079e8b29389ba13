"""Max-value Entropy Search: how much an evaluation would say about the maximum f*.

For one set and one f*, with β = (f* − m(x)) / √s(x), what knowing f(x) ≤ f* tells of

    f(x), without noise:            −log Φ(β) + ½ β φ(β)/Φ(β)                              (M6)
    y, taken for a normal:          ½ log(1 + s (1 − v(β))/(s v(β) + σ²))                  (M7)
    y, by its exact density:        an integral, `truncation.exact_gain`                   (M8)
    y, by divergence:               KL(p(y | f(x) ≤ f*) ‖ p(y)), `truncation.divergence`  (M8b)

(M6) is the form of Wang and Jegelka (2017), called MES; (M7) is GIBBON's, (M8) rectified MES. (M6)
is about f and (M7), (M8) about y: a form without noise is never given a variance with noise in it.
(M7) ≤ (M8), and (M8) tends to (M6) as σ² → 0. Gains are averaged over f* and sets.

(M8b) is the lower bound on information of Takeno et al. (2022): whatever density q(y | f*) is used,
the mean of log q(y | f*)/p(y) over all (y, f*) is at most what y says about f*, which does not hold
of a mean difference of entropies, (M8). q is here p(y | f(x) ≤ f*). Without noise that logarithm is
−log Φ(β) whatever y is; with noise its mean is taken under q itself, the divergence. One by one the
two forms differ by ½ s/(s + σ²) β φ(β)/Φ(β).

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

import numpy as np
from scipy.special import erfc, ndtri

from optpair.acquisition.base import (
    Context,
    OfMoments,
    Partials,
    bounded,
    check_sets,
    incumbent,
)
from optpair.acquisition.special.truncation import (
    divergence,
    divergence_and_slopes,
    exact_gain,
    exact_gain_and_slopes,
    moment_matched_gain,
    moment_matched_gain_and_slopes,
    noiseless_gain,
    noiseless_gain_and_slope,
)
from optpair.cube.candidates import space_filling
from optpair.cube.cube import Cube
from optpair.cube.lattice import lattice
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work

Form = Literal["noiseless", "matched", "exact", "divergence"]
Maxima = Optima | Float[np.ndarray, "M P"]

POINTS = 2560  # that the Gumbel approximation is fitted on, at most, beside the data
MAXIMA = 16  # Gumbel draws per set, where fantasies do not say how many
QUARTILES = np.array([0.25, 0.5, 0.75])
ENOUGH = 1e-10  # of log(−log P), which is about as much of the Gumbel distribution's scale
ROUNDS = 40  # of regula falsi, at most: about six are needed


@dataclass(frozen=True, repr=False)
class MES(OfMoments):
    """What an evaluation says about f*, in nats."""

    posterior: Posterior
    f: Float[np.ndarray, "M P"]
    weights: Float[np.ndarray, "M P"]  # of the maxima; one in all
    form: Form
    screened: Float[np.ndarray, " N"] | None = None

    def of_moments(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, " q"]:
        """α where the posterior has these moments, nats."""
        noise = self.posterior.noise[:, None, None]
        s = bounded(self.posterior, variance)[0][:, None]
        beta = (self.f[..., None] - means) / np.sqrt(s)
        if self.form == "noiseless":
            gain = noiseless_gain(beta)  # (M6)
        elif self.form == "matched":
            gain = moment_matched_gain(beta, s, noise)  # (M7)
        elif self.form == "exact":
            gain = exact_gain(beta, s / (s + noise))  # (M8)
        else:
            gain = divergence(beta, s / (s + noise))  # (M8b)
        return np.asarray(np.einsum("mpq,mp->q", gain, self.weights))

    def partials(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Partials:
        """α, and its derivatives: those by β lead to both moments, those by s to one."""
        noise = self.posterior.noise[:, None, None]
        within, free = bounded(self.posterior, variance)
        s = within[:, None]
        root = np.sqrt(s)
        beta = (self.f[..., None] - means) / root
        by_s: np.ndarray | float
        if self.form == "noiseless":
            (gain, by_beta), by_s = noiseless_gain_and_slope(beta), 0.0
        elif self.form == "matched":
            gain, by_beta, by_s, _ = moment_matched_gain_and_slopes(beta, s, noise)
        else:
            of = exact_gain_and_slopes if self.form == "exact" else divergence_and_slopes
            gain, by_beta, by_share = of(beta, s / (s + noise))
            by_s = by_share * noise / (s + noise) ** 2
        weights = self.weights[..., None]
        by_means = -weights * by_beta / root
        by_variance = np.sum(weights * (by_s - 0.5 * by_beta * beta / s), 1) * free
        if means.shape[1] == 1:
            by_means = by_means.sum(1, keepdims=True)
        return Partials(np.einsum("mpq,mp->q", gain, self.weights), by_means, by_variance)


def build(context: Context, *, form: Form) -> MES:
    """One of the forms, with the maxima of sample paths."""
    optima = context.need_optima("Max-value Entropy Search from paths")
    f = optima.best
    if form == "noiseless":
        f = _above_data(context.posterior, f)
    return MES(context.posterior, f, optima.weights, form)


def _above_data(posterior: Posterior, f: Float[np.ndarray, "M P"]) -> Float[np.ndarray, "M P"]:
    """Maxima that the data do not reach."""
    return np.asarray(
        np.maximum(f, incumbent(posterior) + np.sqrt(posterior.noise)[:, None])
    )  # (M6b)


def build_gumbel(context: Context) -> MES:
    """The form without noise, with f* from the Gumbel approximation over the screened points.

    Of more than `POINTS` every second is taken, or every third: what the approximation overstates
    grows with them. Their moments are most of its work, so it is screened with the same.
    """
    fantasies = context.posterior.fantasies
    uniform = context.stream.draw().uniform(size=MAXIMA if fantasies == 1 else fantasies)
    return _by_gumbel(context.posterior, context.points, uniform)


def _by_gumbel(
    posterior: Posterior,
    points: Float[np.ndarray, "N D"],
    uniform: Float[np.ndarray, " P"],
) -> MES:
    """(M6) with f* at these uniform numbers' places in the Gumbel distribution."""
    n = len(posterior.told)
    means, variance = posterior.moments(np.concatenate([posterior.told, points]))
    every = max(-(-len(points) // POINTS), 1)
    some = np.concatenate([np.arange(n), np.arange(n, n + len(points), every)])
    fitted = _gumbel(posterior, means[..., some], variance[..., some])
    f = _above_data(posterior, _draw(uniform, *fitted))
    acquisition = MES(posterior, f, _alike(f), "noiseless")
    screened = acquisition.of_moments(means[..., n:], variance[..., n:])
    return replace(acquisition, screened=screened)


def _alike(f: Float[np.ndarray, "M P"]) -> Float[np.ndarray, "M P"]:
    return np.full(f.shape, 1 / f.size)


def _draw(
    uniform: Float[np.ndarray, " P"],
    location: Float[np.ndarray, "M F"],
    scale: Float[np.ndarray, "M F"],
) -> Float[np.ndarray, "M P"]:
    """P draws of f* per set, one from each of P equally likely parts of its Gumbel distribution.

    Sets share their uniform numbers. With fantasies, draw p is from the distribution under
    fantasy p.
    """
    u = (np.arange(len(uniform)) + uniform) / len(uniform)
    u = np.clip(u, 1e-12, 1 - 1e-12)
    return np.asarray(location - scale * np.log(-np.log(u)))


def _gumbel(
    posterior: Posterior, means: Float[np.ndarray, "M F N"], variance: Float[np.ndarray, "M N"]
) -> tuple[Float[np.ndarray, "M F"], Float[np.ndarray, "M F"]]:
    """Location a and scale b of exp(−exp(−(t − a)/b)), which has the quartiles of (M9)."""
    sd = np.sqrt(bounded(posterior, variance)[0])
    low, middle, high = np.moveaxis(_quantiles(means, sd[:, None]), -1, 0)
    first, second, third = np.log(-np.log(QUARTILES))
    scale = (high - low) / (first - third)
    return middle + scale * second, scale


def _quantiles(
    means: Float[np.ndarray, "M F N"], sd: Float[np.ndarray, "M 1 N"]
) -> Float[np.ndarray, "M F 3"]:
    """The quartiles of a maximum of independent normals, by regula falsi (Illinois).

    The q-quantile t has a bracket that cannot fail: every factor of (M9) is at least q, and
    at least one is at most q^(1/N), so that

        max_i m_i + √s_i Φ⁻¹(q)  ≤  t  ≤  max_i m_i + √s_i Φ⁻¹(q^(1/N))

    log(−log P(f* ≤ t)) is close to linear in t. No factor is in its lower tail.
    """
    target = np.log(-np.log(QUARTILES))

    def excess(t: np.ndarray) -> np.ndarray:
        z = (t[..., None] - means[:, :, None]) / sd[:, :, None]
        surprise = -np.sum(np.log1p(-0.5 * erfc(z * np.sqrt(0.5))), -1)
        return np.asarray(np.log(np.maximum(surprise, 1e-300)) - target)

    def end(z: np.ndarray) -> np.ndarray:
        return np.asarray(np.max(means[:, :, None] + sd[:, :, None] * z[:, None], -1))

    # 1 − q^(1/N) without cancellation: the upper end's normal quantile is deep in the tail.
    low = end(ndtri(QUARTILES))
    high = end(-ndtri(-np.expm1(np.log(QUARTILES) / means.shape[-1])))
    above, below = excess(low), excess(high)
    side, t = np.zeros(low.shape, dtype=int), low
    for _ in range(ROUNDS):
        slope = above - below
        share = np.where(slope > 0, above / np.where(slope > 0, slope, 1.0), 0.5)
        t = low + (high - low) * np.clip(share, 0.0, 1.0)
        value = excess(t)
        if np.all(np.abs(value) <= ENOUGH):
            break
        up = value > 0  # t is below the quantile
        low, high = np.where(up, t, low), np.where(up, high, t)
        above, below = (
            np.where(up, value, above * np.where(side < 0, 0.5, 1.0)),
            np.where(up, below * np.where(side > 0, 0.5, 1.0), value),
        )
        side = np.where(up, 1, -1)
    return t


def _of(posterior: Posterior, optima: Maxima, form: Form) -> MES:
    f = optima.best if isinstance(optima, Optima) else np.asarray(optima, dtype=np.float64)
    check_sets(posterior, f)
    return MES(posterior, f, optima.weights if isinstance(optima, Optima) else _alike(f), form)


@engine_work
def mes(posterior: Posterior, optima: Maxima) -> MES:
    """Max-value Entropy Search without noise: `mes(posterior, optima)(X)` in nats.

    `optima` are optimal pairs, of which f* is used, or values f* of shape (M, P), such as those of
    `gumbel_maxima`. `gibbon`, `rmes` and `mes_noisy` are its forms with noise.
    """
    return _of(posterior, optima, "noiseless")


@engine_work
def gibbon(posterior: Posterior, optima: Maxima) -> MES:
    """Max-value Entropy Search with noise, by moment matching: `gibbon(posterior, optima)(X)`."""
    return _of(posterior, optima, "matched")


@engine_work
def rmes(posterior: Posterior, optima: Maxima) -> MES:
    """Max-value Entropy Search with noise, by the exact density: `rmes(posterior, optima)(X)`."""
    return _of(posterior, optima, "exact")


@engine_work
def mes_noisy(posterior: Posterior, optima: Maxima) -> MES:
    """Max-value Entropy Search with noise, as a divergence: `mes_noisy(posterior, optima)(X)`."""
    return _of(posterior, optima, "divergence")


@engine_work
def gumbel_maxima(
    posterior: Posterior,
    count: int,
    seed: int = 0,
    *,
    cube: Cube | None = None,
    points: int = 2048,
) -> Float[np.ndarray, "M P"]:
    """Draw `count` values f* under each set from the Gumbel approximation.

    It is fitted on the data and `points` that fill [0, 1]^d, or the legal points of `cube`. No
    value is below the best posterior mean among the data plus the noise's standard deviation.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    cube = Cube.box(posterior.dimensions) if cube is None else cube
    rng = Stream.of(seed).draw()
    shift = rng.uniform(size=cube.parameters)
    filling = space_filling(shift, cube, lattice(cube.parameters, points))
    moments = posterior.moments(np.concatenate([posterior.told, filling]))
    drawn = _draw(rng.uniform(size=count), *_gumbel(posterior, *moments))
    return _above_data(posterior, drawn)
