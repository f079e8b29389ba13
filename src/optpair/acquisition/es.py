"""Entropy Search: the expected fall in the entropy of x* over a few representer points.

Hennig and Schuler (2012), by Monte Carlo. R representer points z stand for the space, drawn anew
for every function in proportion to Expected Improvement, without replacement. Under one set the
posterior of f(z) is N(m, V), V = LLᵀ, and S draws f_s = m + Lε_s say which point is likely to be
the best. An outcome y at x, standardised to ξ ~ N(0, 1), moves every draw along one direction,
c = cov(f(z), f(x)):

    (S1)  t = s(x) + σ²,    c̃ = L⁻¹c,    ρ² = |c̃|²/t,    γ = 1/(t (1 + √(1 − ρ²)))
    (S2)  f_s(ξ) = f_s + c (ξ/√t − γ c̃·ε_s),   draws of N(m + cξ/√t, V − ccᵀ/t)
    (S3)  p_i(ξ) = mean over s of softmax_i(f_s(ξ)/T),   the chance that x* is z_i
    (S4)  α(x) = H[Σ_k w_k p(ξ_k)] − Σ_k w_k H[p(ξ_k)],   in nats, averaged over sets

with K Gauss–Hermite outcomes ξ_k of weights w_k. V − ccᵀ/t = L(I − c̃c̃ᵀ/t)Lᵀ, and
I − γc̃c̃ᵀ is the root of what is in brackets: hence (S2). The draws are the same for all x and ξ, and
as ξ moves f_s by a term without s, one exponential a draw serves all outcomes.

The softmax stands for the argmax, which counted draws would turn into steps without a slope. T is
a share (`TEMPERATURE`) of the mean gap between a draw's best and second best value, so that it
shrinks with what is left to be decided (to 1/105 of the largest standard deviation of f(z), where
numbers end); the derivative is exact for (S4) as it stands here. An average of p(ξ_k), rather than
the p of now, is the entropy to start from: the two are equal in the limit, and by concavity no gain
is negative.

With few draws gains come out too large. An entropy of S draws over R points about as likely falls
short by (R − 1)/(2S) nats. The average of p(ξ_k) holds more different draws than each p(ξ_k)
does, so that the first entropy of (S4) falls short by less than the second: α is too large by up
to that, 0.03 nats with 512 draws (one set) and 0.24 with 64 (twelve sets), and by less where x
decides little.

The density that representer points are drawn from would enter an entropy of x* over the continuum,
but not its expected fall: the mean of p(ξ) is the p of now.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dtrtri
from scipy.special import logsumexp

from optpair.acquisition.base import Acquisition, Context, Points, Rows, incumbent
from optpair.acquisition.special.normal import log_ei
from optpair.gp.linalg import factorise
from optpair.gp.posterior import SMALLEST, Posterior, Query
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work

REPRESENTERS = 32
DRAWS = 768  # over all sets and fantasies
FEWEST, MOST = 32, 512  # of them, for one set and fantasy
OUTCOMES = 5
TEMPERATURE = 0.25
SOFTNESS = 1e-8  # of the output scale, on the diagonal of V
CLOSEST = 1e-6  # 1 − ρ², at least
RANGE = 600.0  # e to the power of more is too large or too small a number
LEAST = 1e-300  # a probability whose logarithm is taken, at least
CALM = 80.0  # exponents within ± this need not be held against their largest
TOGETHER = 65_536  # exponentials of draws made together: they stay in cache


class Response(NamedTuple):
    """What an outcome at each query does to f(z) (S1)."""

    total: Float[np.ndarray, "M q"]  # t = s + σ²
    c: Float[np.ndarray, "M R q"]  # cov(f(z), f(x))
    tilde: Float[np.ndarray, "M R q"]  # L⁻¹c
    rho2: Float[np.ndarray, "M q"]
    gamma: Float[np.ndarray, "M q"]
    along: Float[np.ndarray, "M S q"]  # c̃·ε_s


class Shifts(NamedTuple):
    """What moves the draws of each of B sets and fantasies at each query, in units of T."""

    direction: Float[np.ndarray, "*B q R"]  # c/T
    back: Float[np.ndarray, "*B q S"]  # γ c̃·ε_s
    root: Float[np.ndarray, "*B q"]  # √t


class Chances(NamedTuple):
    """p(ξ) at q queries under g sets and fantasies (S3), and what it is made of."""

    E: Float[np.ndarray, "g q R S"]  # the draws' exponentials, up to a factor
    G: Float[np.ndarray, "g q K R"]  # the outcomes', the same
    inverse: Float[np.ndarray, "g q K S"]  # 1/Σ_r EG
    p: Float[np.ndarray, "g q K R"]
    mean: Float[np.ndarray, "g q 1 R"]  # Σ_k w_k p(ξ_k)


@dataclass(frozen=True, repr=False)
class ES(Acquisition):
    """α_ES (S4), in nats."""

    posterior: Posterior
    z: Float[np.ndarray, "R D"]
    whitened: Float[np.ndarray, "M R n"]  # C⁻¹k(X, z)
    inverse: Float[np.ndarray, "M R R"]  # L⁻¹
    mixed: Float[np.ndarray, "M R S"]  # L⁻ᵀε, so that c̃·ε = c·L⁻ᵀε
    draws: Float[np.ndarray, "M F S R"]  # f_s
    temperature: Float[np.ndarray, "M F"]  # T
    outcomes: Float[np.ndarray, " K"]  # ξ
    weights: Float[np.ndarray, " K"]  # w

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.dimensions

    @cached_property
    def _exponents(self) -> Float[np.ndarray, "B 1 R S"]:
        """f_s/T less its largest entry, of every set and fantasy."""
        _, _, S, R = self.draws.shape
        scaled = (self.draws / self.temperature[..., None, None]).reshape(-1, 1, S, R)
        relative = scaled - np.max(scaled, -1, keepdims=True)
        return np.ascontiguousarray(relative.mT)

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """α(x), nats."""
        query = self.posterior.at(X)
        between = self.posterior.covariance.between(X, self.z)
        moved = self._moved(self._response(query, between.K))
        gains = np.empty(moved.root.shape)
        for some in self._blocks(len(gains), len(X)):
            gains[some] = self._gains(self._chances(some[0], Shifts(*(v[some] for v in moved))))
        return np.asarray(np.mean(gains, 0))

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """α(x), and its derivatives."""
        query = self.posterior.at(X)
        between = self.posterior.covariance.between(X, self.z)
        response = self._response(query, between.K)
        moved = self._moved(response)
        by_moved = Shifts(*(np.empty(v.shape) for v in moved))
        gains = np.empty(moved.root.shape)
        for some in self._blocks(len(gains), len(X)):
            own = Shifts(*(v[some] for v in moved))
            chances = self._chances(some[0], own)
            gains[some] = self._gains(chances)
            for whole, part in zip(by_moved, self._pull(chances, own), strict=True):
                whole[some] = part
        by_c, by_total = self._pull_response(response, by_moved)
        by_variance = np.where(query.variance > self.posterior.floor[:, None], by_total, 0.0)
        slope = query.pull(None, by_variance, -(by_c @ self.whitened)) + between.pull(by_c)
        return np.mean(gains, 0), slope.sum(0)

    def _blocks(self, sets: int, points: int) -> list[tuple[slice, slice]]:
        """Some sets and fantasies, and some queries, at a time."""
        rows = max(TOGETHER // (self.draws.shape[2] * self.draws.shape[3]), 1)
        most = max(rows // max(points, 1), 1)
        return [
            (slice(i, i + most), slice(j, j + rows))
            for i in range(0, sets, most)
            for j in range(0, points, rows)
        ]

    def _response(self, query: Query, prior: Float[np.ndarray, "M q R"]) -> Response:
        """(S1)."""
        variance = np.maximum(query.variance, self.posterior.floor[:, None])
        total = variance + self.posterior.noise[:, None]
        c = prior.mT - self.whitened @ query.A.mT
        tilde = self.inverse @ c
        rho2 = np.einsum("mrq,mrq->mq", tilde, tilde) / total
        gamma = 1 / (total * (1 + np.sqrt(np.maximum(1 - rho2, CLOSEST))))
        return Response(total, c, tilde, rho2, gamma, self.mixed.mT @ c)

    def _moved(self, response: Response) -> Shifts:
        F = self.temperature.shape[1]
        back = (response.gamma[:, None] * response.along).mT
        each = (response.c.mT, back, np.sqrt(response.total))
        c, back, root = (np.repeat(v, F, 0) for v in each)
        return Shifts(c / self.temperature.reshape(-1, 1, 1), back, root)

    def _pull_response(
        self, response: Response, by_moved: Shifts
    ) -> tuple[Float[np.ndarray, "M q R"], Float[np.ndarray, "M q"]]:
        """Through (S1): derivatives of the mean gain by c and by t."""
        total, _, tilde, rho2, gamma, along = response
        shape = self.temperature.shape
        by_c = by_moved.direction / self.temperature.reshape(-1, 1, 1)
        by_c, by_back, by_root = (
            v.reshape(*shape, *v.shape[1:]).sum(1) / self.temperature.size
            for v in (by_c, by_moved.back, by_moved.root)
        )
        by_gamma = np.einsum("mqs,msq->mq", by_back, along)
        left = np.sqrt(np.maximum(1 - rho2, CLOSEST))
        by_rho2 = np.where(1 - rho2 > CLOSEST, by_gamma * gamma**2 * total / (2 * left), 0.0)
        by_c += (gamma[..., None] * by_back) @ self.mixed.mT
        by_c += (tilde * (2 * by_rho2 / total)[:, None]).mT @ self.inverse
        by_total = by_root / (2 * np.sqrt(total)) - (by_gamma * gamma + by_rho2 * rho2) / total
        return by_c, by_total

    def _chances(self, sets: slice, moved: Shifts) -> Chances:
        """The chance of each representer after each outcome."""
        direction, back, root = moved
        E = direction[..., None] * -back[..., None, :]
        E += self._exponents[sets]
        if np.max(np.abs(direction)) * np.max(np.abs(back)) > CALM:
            E -= np.max(E, -2, keepdims=True)
        np.exp(E, out=E)
        G = self.outcomes[:, None] * (direction / root[..., None])[..., None, :]
        G = np.exp(G - np.max(G, -1, keepdims=True))
        inverse = 1 / (G @ E)
        p = G * (inverse @ E.mT) / back.shape[-1]  # (S2), (S3)
        return Chances(E, G, inverse, p, (self.weights @ p)[..., None, :])

    def _gains(self, chances: Chances) -> Float[np.ndarray, "g q"]:
        """(S4)."""
        before, after = _entropy(chances.mean)[..., 0], _entropy(chances.p)
        return np.asarray(before - after @ self.weights)

    def _pull(self, chances: Chances, moved: Shifts) -> Shifts:
        """Derivatives of (S4) by what moves the draws, through the softmax π of each.

        With b_kr the derivative of the gain by p_r(ξ_k) and b̄_sk = Σ_r π_skr b_kr, that by an
        exponent is π_skr (b_kr − b̄_sk)/S. Only its sums over draws or representers are needed, some
        of them times c or c̃·ε, and all are products with E.
        """
        E, G, inverse, p, mean = chances
        direction, back, root = moved
        S = back.shape[-1]
        by_p = self.weights[:, None] * np.log(np.maximum(p, LEAST) / np.maximum(mean, LEAST))
        push, sideways, backwards = G * by_p, direction[..., None, :], back[..., None, :]
        over_r = np.concatenate([push, push * sideways, G * sideways], -2) @ E
        first, second, third = np.split(over_r, 3, -2)
        average = first * inverse  # b̄
        by_back = np.sum((third * average - second) * inverse, -2) / S
        average *= inverse
        over_s = np.concatenate([average, average * backwards, inverse * backwards], -2)
        first, second, third = np.split(over_s @ E.mT / S, 3, -2)
        by_lift = p * by_p - G * first
        lifted = self.outcomes @ by_lift / root[..., None]
        by_direction = np.sum(G * second - push * third, -2) + lifted
        return Shifts(by_direction, by_back, -np.sum(lifted * direction, -1) / root)


def _entropy(p: Float[np.ndarray, "*b R"]) -> Float[np.ndarray, "*b"]:
    """−Σ p log p, with 0 log 0 = 0."""
    return np.asarray(-np.sum(p * np.log(np.maximum(p, LEAST)), -1))


def _log_improvement(
    posterior: Posterior, points: Float[np.ndarray, "N D"]
) -> Float[np.ndarray, " N"]:
    """The logarithm of the mean Expected Improvement (M10) over sets and fantasies."""
    means, variance = posterior.moments(points)
    sd = np.sqrt(np.maximum(variance, posterior.floor[:, None]))[:, None]
    each = np.log(sd) + log_ei((means - incumbent(posterior)[..., None]) / sd)
    return np.asarray(logsumexp(each, axis=(0, 1)) - np.log(each.shape[0] * each.shape[1]))


def _representers(
    posterior: Posterior,
    points: Float[np.ndarray, "N D"],
    count: int,
    gumbel: Float[np.ndarray, " N"],
) -> Float[np.ndarray, "R D"]:
    """Points drawn in proportion to their mean Expected Improvement, without replacement.

    The largest of log EI plus Gumbel noise are such a draw.
    """
    if count == len(points):
        return points
    score = _log_improvement(posterior, points) + gumbel
    return points[np.argsort(-score, kind="stable")[:count]]


def _of(
    posterior: Posterior,
    z: Float[np.ndarray, "R D"],
    white: Float[np.ndarray, "S R"],
    outcomes: int,
    temperature: float,
) -> ES:
    """What all candidates share, from representer points and standard normal numbers."""
    query = posterior.at(z)
    W, a = query.A, posterior.outputscale[:, None]
    V = posterior.covariance.between(z, z).K - W @ W.mT
    softened = V + (SOFTNESS * a)[..., None] * np.eye(len(z))
    L = np.stack([factorise(of_set)[0] for of_set in softened])
    inverse = np.stack([dtrtri(of_set, lower=1)[0] for of_set in L])
    values = query.means[:, :, None] + (white @ L.mT)[:, None]
    nodes, weights = np.polynomial.hermite_e.hermegauss(outcomes)
    # |c_i|/√t is at most the standard deviation of f(z_i), and two may move apart.
    widest = np.sqrt(np.max(np.diagonal(V, axis1=1, axis2=2), -1, keepdims=True, initial=0.0))
    coldest = np.maximum(2 * np.max(nodes) / RANGE * widest, SMALLEST**0.5 * np.sqrt(a))
    return ES(
        posterior,
        z,
        W,
        inverse,
        (white @ inverse).mT,
        values,
        np.maximum(temperature * _gap(values), coldest),
        nodes,
        weights / weights.sum(),
    )


def _gap(draws: Float[np.ndarray, "M F S R"]) -> Float[np.ndarray, "M F"]:
    """The mean distance between the best and the second best value of a draw."""
    if draws.shape[-1] == 1:
        return np.zeros(draws.shape[:2])
    best = np.partition(draws, -2, axis=-1)[..., -2:]
    return np.asarray(np.mean(best[..., 1] - best[..., 0], -1))


def _draws(posterior: Posterior) -> int:
    """Draws for each set and fantasy: the more of these, the fewer."""
    return int(np.clip(DRAWS // (posterior.sets * posterior.fantasies), FEWEST, MOST))


def _drawn(
    stream: Stream,
    posterior: Posterior,
    points: Float[np.ndarray, "N D"],
    representers: int,
    draws: int,
    outcomes: int = OUTCOMES,
    temperature: float = TEMPERATURE,
) -> ES:
    """ES with random numbers from a stream."""
    count = min(representers, len(points))
    gumbel = stream.child(0).draw().gumbel(size=len(points))
    z = _representers(posterior, points, count, gumbel)
    white = stream.child(1).draw().standard_normal((draws, count))
    return _of(posterior, z, white, outcomes, temperature)


def build(context: Context) -> ES:
    """ES from what the engine has at hand; no more fantasies than there are draws for."""
    most = max(DRAWS // (context.posterior.sets * FEWEST), 1)
    posterior = context.posterior.some_fantasies(most)
    return _drawn(context.stream, posterior, context.points, REPRESENTERS, _draws(posterior))


@engine_work
def es(
    posterior: Posterior,
    points: ArrayLike,
    seed: int = 0,
    *,
    representers: int = REPRESENTERS,
    draws: int | None = None,
    outcomes: int = OUTCOMES,
    temperature: float = TEMPERATURE,
) -> ES:
    """Entropy Search as a function of points: `es(posterior, points)(X)` in nats.

    Args:
        posterior: what is known of the objective.
        points: (N, d); representer points are drawn from these, or are all of them if there are no
            more than `representers`.
        seed: the same seed gives the same function.
        representers: the number of representer points.
        draws: of the values there, for each set and fantasy.
        outcomes: of an evaluation.
        temperature: of the softmax, relative to the mean gap between a draw's best two values.
    """
    given = np.asarray(points, dtype=np.float64)
    d = posterior.dimensions
    if given.ndim != 2 or given.shape[1] != d or len(given) == 0:
        raise ValueError(f"points must have shape (N, {d}) with N ≥ 1, not {given.shape}")
    draws = _draws(posterior) if draws is None else draws
    counts = {"representers": representers, "draws": draws, "outcomes": outcomes}
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    return _drawn(Stream.of(seed), posterior, given, representers, draws, outcomes, temperature)
