"""Hyperparameters from data: marginalised by HMC, or the posterior mode (MAP).

M chains run side by side, each contributing its last state. They start where the last refresh left
them: they are reweighted by what the new data say of them, resampled where those weights are
uneven, and some of them, copies and those that have waited longest first, are moved by a long HMC
trajectory. One datum changes the posterior little: moving every chain at every ask would be work
without an effect. A cold start does the same from the prior, letting the data in step by step.

This is sequential Monte Carlo (Chopin 2002). Weights are relative to the average of all chains, at
every refresh: what new data add to the log density of every θ alike, their evidence, says nothing
about θ. A move leaves the posterior as it is, and so a chain's weight: one that is stuck in a mode
of little mass may move there as often as it likes. As answers weigh all chains alike, resampling
comes early.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp

from optpair.gp.likelihood import Data, Densities, Likelihood, Model, Parts, Thetas, log_prior
from optpair.programs import one_blas_thread
from optpair.runtime import Stream

WINDOW = 32  # draws a chain that the convergence diagnostic looks at
TARGET_ACCEPTANCE = 0.8
LEAPFROGS = 12  # long trajectories: one of them nearly forgets where it started
MASS_GAIN = 0.25  # how far the mass matrix follows the spread of the last draws
ANNEALING, SETTLING = 6, 8  # rounds of a cold start: the data are let in, then all is there
COLD_GAIN, WARM_GAIN = 1.0, 0.5  # how far the step size moves towards what draws suggest
EVEN = 0.9  # the effective share of the chains at which their weights are as good as equal,
NEGLIGIBLE = 0.1  # unless one of them has so little
OLDEST = 1_000_000  # the age of a copy
DIVERGENCE = 1000.0  # nats lost on a trajectory that went astray


@dataclass(frozen=True)
class Chains:
    """M warm chains: what the next refresh starts from."""

    position: Float[np.ndarray, "M k"]
    log_density: Float[np.ndarray, " M"]  # of the positions, at the last refresh
    log_weight: Float[np.ndarray, " M"]  # by the data since they were resampled; 1 on average
    age: Int[
        np.ndarray, " M"
    ]  # refreshes since they were moved; copies of another chain come first
    step_size: float
    inverse_mass: Float[np.ndarray, " k"]
    recent: Float[np.ndarray, "M W k"]  # the last draws, oldest first, for the diagnostic


@dataclass(frozen=True)
class Mixing:
    """Whether the chains mixed: `rhat` near 1, acceptance near its target, no divergences."""

    recent: Float[np.ndarray, "M W k"] = field(repr=False)
    effective: float  # chains left by the reweighting, of all
    acceptance: float
    divergences: int

    @cached_property
    def rhat(self) -> float:
        """The largest potential scale reduction over the last draws, Gelman and Rubin's √(V/W)."""
        draws = self.recent.shape[1]
        within = np.mean(np.var(self.recent, axis=1, ddof=1), axis=0)
        between = np.var(np.mean(self.recent, axis=1), axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.sqrt((draws - 1) / draws + between / within)))


class Moved(NamedTuple):
    """The ends of one HMC transition of each of B chains."""

    position: Thetas
    log_density: Densities
    acceptance: Densities  # probabilities
    divergent: Bool[np.ndarray, " B"]


def _move(
    likelihood: Likelihood,
    theta: Thetas,
    momentum: Thetas,
    coin: Densities,
    step: Densities,
    inverse_mass: Float[np.ndarray, " k"],
    power: float,
) -> Moved:
    """One HMC transition of each chain; `momentum` and `coin` are standard normal and uniform."""

    def energy(value: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(inverse_mass * p**2, axis=1) / 2 - value)

    value, slope = likelihood.slope(theta, power)
    h, p = step[:, None], momentum / np.sqrt(inverse_mass)
    x, there, before = theta, value, energy(value, p)
    p = p + h / 2 * slope
    for i in range(LEAPFROGS):
        x = x + h * inverse_mass * p
        there, slope = likelihood.slope(x, power)
        p = p + (h if i < LEAPFROGS - 1 else h / 2) * slope
    with np.errstate(invalid="ignore"):
        gained = before - energy(there, p)
    gained = np.where(np.isnan(gained), -np.inf, gained)
    accepted = np.log(coin) < gained
    return Moved(
        np.where(accepted[:, None], x, theta),
        np.where(accepted, there, value),
        np.exp(np.minimum(gained, 0.0)),
        gained < -DIVERGENCE,
    )


def start_chains(stream: Stream, sets: int, model: Model) -> Chains:
    """Chains spread over the prior."""
    d, prior = model.d, model.prior
    spread = np.clip(stream.draw().standard_normal((sets, model.k)), -2.0, 2.0)
    position = np.concatenate(
        [
            prior.lengthscale.start(spread[:, :d], d),
            prior.outputscale.start(spread[:, d : d + 1], d),
            prior.noise.start(spread[:, d + 1 : d + 2], d),
            spread[:, d + 2 :],
        ],
        axis=1,
    )
    recent = np.repeat(position[:, None], WINDOW, axis=1)
    none, ages = np.zeros(sets), np.zeros(sets, dtype=int)
    return Chains(position, none, none, ages, 0.2, np.full(model.k, 0.5), recent)


def resample(coin: float, chains: Chains, density: Float[np.ndarray, " M"]) -> tuple[Chains, float]:
    """Reweight the chains by their new log densities; replace those that are ruled out by copies.

    Systematic resampling, only where the effective number of chains falls below nine tenths or the
    weight of one below a tenth. Returns that number as well. Where all are impossible nothing is
    done.
    """
    M, possible = len(density), np.isfinite(density)
    if not possible.any():
        return chains, float(M)
    followed = possible & np.isfinite(chains.log_density)
    change = density[followed] - chains.log_density[followed]
    total = np.where(possible, np.mean(change) if followed.any() else 0.0, -np.inf)
    total[followed] = chains.log_weight[followed] + change
    log_weight = total - logsumexp(total) + np.log(M)
    weights = np.exp(log_weight) / M
    effective = float(1 / np.sum(weights**2))
    if effective >= EVEN * M and np.all(weights * M > NEGLIGIBLE):
        return replace(chains, log_density=density, log_weight=log_weight), effective
    index = np.minimum(np.searchsorted(np.cumsum(weights), (np.arange(M) + coin) / M), M - 1)
    copies = np.isin(np.arange(M), np.unique(index, return_index=True)[1], invert=True)
    return (
        replace(
            chains,
            position=chains.position[index],
            log_density=density[index],
            log_weight=np.zeros(M),
            age=np.where(copies, OLDEST, chains.age[index]),
            recent=chains.recent[index],
        ),
        effective,
    )


def refresh(
    stream: Stream,
    chains: Chains,
    data: Data,
    *,
    model: Model,
    moves: int,
    gain: float = WARM_GAIN,
) -> tuple[Chains, Mixing]:
    """Reweight and resample the chains for the data, move `moves` of them by HMC, then adapt."""
    with one_blas_thread():
        likelihood = Likelihood(data, model)
        chains, effective = _reweigh(stream.child(0), chains, likelihood)
        chains, rate, lost = _moved(stream.child(1), chains, likelihood, moves, gain)
    return chains, Mixing(chains.recent, effective, rate, lost)


def cold_start(
    stream: Stream, sets: int, data: Data, model: Model, moves: int
) -> tuple[Chains, Mixing]:
    """Chains that have forgotten the prior they started from, with adapted step size and mass.

    The data are let in by and by: the likelihood's power grows to 1, then all chains move on.
    """
    chains = start_chains(stream.child(0), sets, model)
    chains = replace(chains, log_density=log_prior(chains.position, model)[0])
    turns = -(-sets // moves)
    with one_blas_thread():
        likelihood = Likelihood(data, model)
        for i in range(ANNEALING + SETTLING):
            power = min((i + 1) / ANNEALING, 1.0) ** 2
            gain = (COLD_GAIN if i < ANNEALING else WARM_GAIN) / turns
            if i < ANNEALING:
                chains, effective = _reweigh(stream.child(i + 1, 0), chains, likelihood, power)
            ended = []
            for turn in range(turns):
                of_turn = stream.child(i + 1, 1 + turn)
                chains, rate, lost = _moved(of_turn, chains, likelihood, moves, gain, power)
                ended.append((rate, lost))
    rates, losses = zip(*ended, strict=True)
    return chains, Mixing(chains.recent, effective, float(np.mean(rates)), sum(losses))


def _reweigh(
    stream: Stream, chains: Chains, likelihood: Likelihood, power: float = 1.0
) -> tuple[Chains, float]:
    """Bring the chains' densities up to date, and resample where they fell apart."""
    density = likelihood.density(chains.position, power)
    return resample(stream.draw().uniform(), chains, density)


def _moved(
    stream: Stream,
    chains: Chains,
    likelihood: Likelihood,
    moves: int,
    gain: float,
    power: float = 1.0,
) -> tuple[Chains, float, int]:
    """Move the chains that waited longest; adapt the step size, and the mass to their spread.

    Also returns their mean acceptance, and how many of them diverged.
    """
    rng = stream.draw()
    who = np.argsort(-chains.age, kind="stable")[:moves]
    # A step of its own for each chain: some are short enough wherever a chain may be.
    steps = chains.step_size * rng.uniform(0.2, 1.3, len(who))
    momentum = rng.standard_normal((len(who), chains.position.shape[1]))
    coins = rng.uniform(size=len(who))
    start, mass = chains.position[who], chains.inverse_mass
    moved = _move(likelihood, start, momentum, coins, steps, mass, power)
    position, log_density, age = chains.position.copy(), chains.log_density.copy(), chains.age + 1
    position[who], log_density[who], age[who] = moved.position, moved.log_density, 0
    recent = np.concatenate([chains.recent[:, 1:], position[:, None]], axis=1)
    spread = np.clip(np.var(recent[:, -8:].reshape(-1, recent.shape[-1]), axis=0), 1e-3, 4.0)
    rate = float(np.mean(moved.acceptance))
    step_size = chains.step_size * np.exp(gain * (rate - TARGET_ACCEPTANCE))
    grown = Chains(
        position,
        log_density,
        chains.log_weight,
        np.minimum(age, OLDEST),
        float(np.clip(step_size, 1e-3, 1.0)),
        mass + MASS_GAIN * (spread - mass),
        recent,
    )
    return grown, rate, int(np.sum(moved.divergent))


def rescale(chains: Chains, shift: tuple[float, float], model: Model) -> Chains | None:
    """The same chains after y became ratio·y + offset; None where that is too far to follow."""
    ratio, offset = shift
    if not (1 / 3 < ratio < 3 and abs(offset) < 2):
        return None
    change, factor = np.zeros(model.k), np.ones(model.k)
    moved = Parts.of(change[None], model.d)  # views
    moved.outputscale[:] = moved.noise[:] = 2 * np.log(ratio)
    if model.prior.mean_scale > 0:
        moved.mean[:] = offset / model.prior.mean_scale
        Parts.of(factor[None], model.d).mean[:] = ratio
    return replace(
        chains,
        position=factor * chains.position + change,
        recent=factor * chains.recent + change,
    )


def map_fit(
    data: Data, model: Model, start: Float[np.ndarray, " k"] | None = None
) -> Float[np.ndarray, " k"]:
    """The posterior mode θ by L-BFGS-B from a few starts, `start` among them where given."""
    from scipy.optimize import minimize  # a tenth of a second, for those who need it

    d, prior = model.d, model.prior
    starts = [] if start is None else [np.asarray(start)]
    for shift in (-1.0, 0.0):
        lengths = prior.lengthscale.start(np.full(d, shift), d)
        rest = [p.start(np.zeros(1), d) for p in (prior.outputscale, prior.noise)]
        starts.append(np.concatenate([lengths, *rest, np.zeros(model.k - d - 2)]))

    likelihood = Likelihood(data, model)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = likelihood.slope(theta[None])
        return (-float(value[0]), -slope[0]) if np.isfinite(value[0]) else (1e10, slope[0])

    with one_blas_thread():
        fits = [
            minimize(objective, theta, jac=True, method="L-BFGS-B", options={"maxiter": 200})
            for theta in starts
        ]
    return np.asarray(min(fits, key=lambda fit: fit.fun).x)
