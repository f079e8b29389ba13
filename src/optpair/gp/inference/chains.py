"""Chains: hyperparameters marginalised by HMC, carried from update to update.

M chains run side by side, each contributing its last state. They start where the last update left
them: they are reweighted by the likelihood of the new data, resampled if the weights are uneven,
and some of them are moved by a long HMC trajectory, copies first, then those that have waited
longest. One datum changes the posterior little, so moving every chain at every update would be
wasted work. A cold start does the same from the prior, letting the data in step by step.

This is sequential Monte Carlo (Chopin 2002). At every update, weights are relative to the average
of all chains: what new data add to the log density of every θ alike, their evidence, says nothing
about θ. A move leaves the posterior as it is, and so a chain's weight: a chain that is stuck in a
mode of little mass keeps its small weight, however often it moves there. As answers weight all
chains equally, resampling comes early.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from optpair.gp.hyperparameters import Hyperparameters, Thetas
from optpair.gp.inference.base import Found
from optpair.gp.inference.documents import array, listed
from optpair.gp.likelihood import Densities, Likelihood, Sample
from optpair.gp.process import Process
from optpair.runtime.shapes import Bool, Float, Int
from optpair.runtime.streams import Stream

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
MOVED_ROWS = 256  # of all chains that an update moves
CATCH_UP = 10  # rounds, at most, when many values were told at once
POOLED = 3  # rounds of the chains that the worth of an answer is averaged over


@dataclass(frozen=True)
class Chains:
    """M warm chains: what the next update starts from."""

    position: Float[np.ndarray, "M k"]
    log_density: Float[np.ndarray, " M"]  # of the positions, at the last update
    log_weight: Float[np.ndarray, " M"]  # by the data since they were resampled; 1 on average
    age: Int[np.ndarray, " M"]  # updates since they were moved; copies of another come first
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


class Transition(NamedTuple):
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
) -> Transition:
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
    return Transition(
        np.where(accepted[:, None], x, theta),
        np.where(accepted, there, value),
        np.exp(np.minimum(gained, 0.0)),
        gained < -DIVERGENCE,
    )


def start_chains(stream: Stream, sets: int, process: Process) -> Chains:
    """Chains spread over the prior."""
    table = process.table
    spread = np.clip(stream.draw().standard_normal((sets, table.size)), -2.0, 2.0)
    position = table.start(spread)
    recent = np.repeat(position[:, None], WINDOW, axis=1)
    none, ages = np.zeros(sets), np.zeros(sets, dtype=int)
    return Chains(position, none, none, ages, 0.2, np.full(table.size, 0.5), recent)


def resample(coin: float, chains: Chains, density: Float[np.ndarray, " M"]) -> tuple[Chains, float]:
    """Reweight the chains by their new log densities; replace those that are ruled out by copies.

    Systematic resampling, only if the effective number of chains falls below nine tenths or the
    weight of one below a tenth. Also returns that number. If all chains are impossible, nothing is
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
    sample: Sample,
    process: Process,
    *,
    moves: int,
    gain: float = WARM_GAIN,
) -> tuple[Chains, Mixing]:
    """Reweight and resample the chains for the data, move `moves` of them by HMC, then adapt."""
    likelihood = Likelihood(sample, process)
    chains, effective = _reweigh(stream.child(0), chains, likelihood)
    chains, rate, lost = _moved(stream.child(1), chains, likelihood, moves, gain)
    return chains, Mixing(chains.recent, effective, rate, lost)


def cold_start(
    stream: Stream, sets: int, sample: Sample, process: Process, moves: int
) -> tuple[Chains, Mixing]:
    """Chains that have forgotten the prior they started from, with adapted step size and mass.

    The data are let in gradually: the likelihood's power grows to 1, then all chains move on.
    """
    chains = start_chains(stream.child(0), sets, process)
    chains = replace(chains, log_density=process.table.log_prior(chains.position)[0])
    turns = -(-sets // moves)
    likelihood = Likelihood(sample, process)
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
    """Bring the chains' densities up to date, and resample if their weights became uneven."""
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


def rescale(chains: Chains, ratio: float, offset: float, process: Process) -> Chains | None:
    """The chains after y became ratio·y + offset; None if the change is too large to follow."""
    if not (1 / 3 < ratio < 3 and abs(offset) < 2):
        return None
    table = process.table
    return replace(
        chains,
        position=table.rescaled(chains.position, ratio, offset),
        recent=table.rescaled(chains.recent, ratio, offset),
    )


@dataclass(frozen=True)
class Marginal:
    """Hyperparameters averaged over M chains; the chains are its state.

    `moves` chains are moved by an update; None means 256 divided by the number of values, at least
    two: all of them while there are few values, when each says most.
    """

    sets: int = 12
    moves: int | None = None

    @property
    def standardises(self) -> bool:
        """Priors are those of standardised values."""
        return True

    def _moves(self, n: int) -> int:
        return self.moves or min(max(MOVED_ROWS // max(n, 1), 2), self.sets)

    def update(
        self, stream: Stream, state: Chains | None, sample: Sample, process: Process, new: int
    ) -> Found:
        """The chains for this sample, after several rounds if many values came at once."""
        moves = self._moves(len(sample.y))
        if state is None:
            return Found(*cold_start(stream, self.sets, sample, process, moves))
        chains, mixing = state, None
        for i in range(min(new, CATCH_UP)):
            chains, mixing = refresh(stream.child(i), chains, sample, process, moves=moves)
        return Found(chains, mixing)

    def rescaled(
        self, state: Chains, ratio: float, offset: float, process: Process
    ) -> Chains | None:
        """The chains after y became ratio·y + offset."""
        return rescale(state, ratio, offset, process)

    def hyperparameters(self, state: Chains, process: Process) -> Hyperparameters:
        """One set for each chain."""
        return process.table.hyperparameters(state.position)

    def wider(
        self, stream: Stream, state: Chains, sample: Sample, process: Process
    ) -> Hyperparameters:
        """Where the chains are after each of a few more rounds.

        Twelve sets are few for the ends of an interval.
        """
        moves = min(4 * self._moves(len(sample.y)), self.sets)
        chains, seen = state, []
        for i in range(POOLED):
            chains, _ = refresh(stream.child(i), chains, sample, process, moves=moves)
            seen.append(chains.position)
        return process.table.hyperparameters(np.concatenate(seen))

    def to_json(self, state: Chains) -> Any:
        """Every array by name; None if the chains are of no more use."""
        held = {f.name: np.asarray(getattr(state, f.name)) for f in fields(state)}
        if not all(np.all(np.isfinite(v)) for name, v in held.items() if name != "log_density"):
            return None
        return {name: listed(value) for name, value in held.items()}

    def from_json(self, document: Any, process: Process) -> Chains:
        """The chains that a document holds."""
        sets, k = self.sets, process.table.size
        age = array("age", document["age"], (sets,))
        if np.any(age < 0) or np.any(age > OLDEST):
            raise ValueError(f"age must be from 0 to {OLDEST}, not {age.tolist()}")
        return Chains(
            position=array("position", document["position"], (sets, k)),
            log_density=array("log_density", document["log_density"], (sets,), missing=-np.inf),
            log_weight=array("log_weight", document["log_weight"], (sets,)),
            age=age.astype(int),
            step_size=float(array("step_size", document["step_size"], (), positive=True)),
            inverse_mass=array("inverse_mass", document["inverse_mass"], (k,), positive=True),
            recent=array("recent", document["recent"], (sets, WINDOW, k)),
        )
