"""Hyperparameters from data: marginalised by HMC, or the posterior mode (MAP).

The unconstrained vector of one set is θ = (log ℓ_1..d, log a, log σ², μ/scale), and

    log p(θ | y) = −½ rᵀ(K+Σ)⁻¹r − ½ log|K+Σ| + log prior(θ),    r = y − μ.

M chains run side by side, each contributing its last state. They start where the last refresh left
them: they are reweighted by what the new data say of them, resampled where those weights are
uneven (a chain that the data have ruled out would otherwise be stuck), and some of them, copies
and those that have waited longest first, are moved by a long HMC trajectory. One datum changes the
posterior little: moving every chain at every ask would be work without an effect. A cold start
does the same from the prior, letting the data in step by step.

What is done n³ times is compiled; the bookkeeping over a dozen chains is NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Bool, Float, Int
from scipy.special import softmax

from optpair.gp.kernels import Kernel
from optpair.gp.posterior import Hyperparameters, Posterior, fit, gram, gram_of_lower, inverse_lower
from optpair.gp.priors import Prior
from optpair.programs import one_blas_thread
from optpair.runtime import Numbers, Stream, compiled, double, to_numpy

MOST_ROWS = 256  # of more data, hyperparameters are inferred from a part
WINDOW = 32  # draws a chain that the convergence diagnostic looks at
TARGET_ACCEPTANCE = 0.8
LEAPFROGS = 12  # long trajectories: one of them nearly forgets where it started
MASS_GAIN = 0.25  # how far the mass matrix follows the spread of the last draws
ANNEALING, SETTLING = 6, 8  # rounds of a cold start: the data are let in, then all is there
COLD_GAIN, WARM_GAIN = 1.0, 0.5  # how far the step size moves towards what draws suggest
OLDEST = 1_000_000  # the age of a copy
DIVERGENCE = 1000.0  # nats lost on a trajectory that went astray


class Data(NamedTuple):
    """Standardised observations, possibly padded; NaN noise_var means inferred."""

    X: Float[Numbers, "n D"]
    y: Float[Numbers, " n"]
    noise_var: Float[Numbers, " n"]
    mask: Bool[Numbers, " n"]


class Model(NamedTuple):
    """What is compiled in: kernel, prior, and the parameter each column belongs to."""

    kernel: Kernel
    prior: Prior
    columns: tuple[int, ...]

    @property
    def d(self) -> int:
        """The number of parameters, each with a length scale."""
        return max(self.columns) + 1


@dataclass(frozen=True)
class Chains:
    """M warm chains: what the next refresh starts from."""

    position: Float[np.ndarray, "M k"]
    log_density: Float[np.ndarray, " M"]  # of the positions, when they were last moved
    age: Int[np.ndarray, " M"]  # refreshes since then; copies of another chain come first
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
    @double
    def rhat(self) -> float:
        """The largest potential scale reduction over the last draws."""
        from blackjax.diagnostics import potential_scale_reduction

        return float(jnp.max(potential_scale_reduction(self.recent, chain_axis=0, sample_axis=1)))

    @property
    def mixed(self) -> bool:
        """R-hat below 1.2, and hardly a divergence."""
        return self.rhat < 1.2 and self.divergences <= 1


@jax.custom_vjp
def gaussian_log_density(K: Float[Array, "n n"], r: Float[Array, " n"]) -> Float[Array, ""]:
    """−½ rᵀK⁻¹r − ½ log|K|, with the closed-form gradient ½(ααᵀ − K⁻¹), α = K⁻¹r."""
    return _gaussian_forward(K, r)[0]


def _gaussian_forward(K: Array, r: Array) -> tuple[Array, tuple[Array, Array]]:
    C = jnp.linalg.cholesky(K)
    inverse = inverse_lower(C)
    white = inverse @ r
    value = -jnp.sum(white**2) / 2 - jnp.sum(jnp.log(jnp.diagonal(C)))
    return value, (inverse, white @ inverse)


def _gaussian_backward(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    inverse, alpha = saved
    return g / 2 * (jnp.outer(alpha, alpha) - gram_of_lower(inverse)), -g * alpha


gaussian_log_density.defvjp(_gaussian_forward, _gaussian_backward)


def unpack(theta: Float[Array, "*M k"], prior: Prior) -> Hyperparameters:
    """θ → hyperparameters; the noise has a floor."""
    return Hyperparameters(
        lengthscale=jnp.exp(theta[..., :-3]),
        outputscale=jnp.exp(theta[..., -3]),
        noise=prior.noise_floor + jnp.exp(theta[..., -2]),
        mean=prior.mean_scale * theta[..., -1],
    )


@compiled("model")
def posterior(theta: Float[Numbers, "M k"], data: Data, *, model: Model) -> Posterior:
    """The posterior under each of M unconstrained vectors."""
    hypers = unpack(jnp.asarray(theta), model.prior)
    return fit(hypers, *data, kernel=model.kernel, columns=model.columns)


def log_prior(theta: Float[Array, " k"], prior: Prior) -> Float[Array, ""]:
    """log prior(θ), up to a constant."""
    d = theta.shape[-1] - 3
    return (
        jnp.sum(prior.lengthscale.log_density(theta[:-3], d))
        + prior.outputscale.log_density(theta[-3], d)
        + prior.noise.log_density(theta[-2], d)
        - theta[-1] ** 2 / 2
    )


def log_posterior(
    theta: Float[Array, " k"], data: Data, model: Model, temper: Float[Numbers, ""] | float = 1.0
) -> Float[Array, ""]:
    """log p(θ | y), up to a constant, the likelihood to the power `temper`; −inf if not finite."""
    hypers = unpack(theta[None], model.prior)
    inferred, outputscale = jnp.asarray(hypers.noise), jnp.asarray(hypers.outputscale)
    noises = jnp.where(jnp.isfinite(data.noise_var), data.noise_var, inferred[:, None])
    scale = jnp.asarray(hypers.lengthscale)[:, np.asarray(model.columns)]
    K = gram(model.kernel, scale, outputscale, noises, data.X, data.mask)
    r = jnp.where(data.mask, data.y - jnp.asarray(hypers.mean)[0], 0.0)
    value = temper * gaussian_log_density(K[0], r) + log_prior(theta, model.prior)
    return jnp.where(jnp.isfinite(value), value, -jnp.inf)


@compiled("model")
def _densities(
    position: Float[Numbers, "M k"], data: Data, temper: Float[Numbers, ""], *, model: Model
) -> Float[Array, " M"]:
    return jax.vmap(lambda theta: log_posterior(theta, data, model, temper))(position)


class Moved(NamedTuple):
    """The end of one HMC transition of each of B chains."""

    position: Float[Array, "B k"]
    log_density: Float[Array, " B"]
    acceptance: Float[Array, " B"]  # probability
    divergent: Bool[Array, " B"]


@compiled("model")
def _move(
    position: Float[Numbers, "B k"],
    momentum: Float[Numbers, "B k"],
    coin: Float[Numbers, " B"],
    step: Float[Numbers, " B"],
    inverse_mass: Float[Numbers, " k"],
    data: Data,
    temper: Float[Numbers, ""],
    *,
    model: Model,
) -> Moved:
    """One HMC transition of each chain; `momentum` and `coin` are standard normal and uniform.

    BlackJAX is imported to trace this: a process that loads it compiled does without.
    """
    from blackjax.mcmc.integrators import IntegratorState, velocity_verlet
    from blackjax.mcmc.metrics import gaussian_euclidean
    from blackjax.mcmc.trajectory import static_integration

    def density(theta: Array) -> Array:
        return log_posterior(theta, data, model, temper)

    kinetic_energy = gaussian_euclidean(inverse_mass).kinetic_energy
    integrate = static_integration(velocity_verlet(density, kinetic_energy))

    def move(theta: Any, momentum: Any, coin: Any, step: Any) -> Moved:
        value, slope = jax.value_and_grad(density)(theta)
        start = IntegratorState(theta, momentum / jnp.sqrt(inverse_mass), value, slope)
        end = integrate(start, step, LEAPFROGS)
        gained = (end.logdensity - kinetic_energy(end.momentum)) - (
            value - kinetic_energy(start.momentum)
        )
        gained = jnp.where(jnp.isnan(gained), -jnp.inf, gained)
        accepted = jnp.log(coin) < gained
        return Moved(
            jnp.where(accepted, end.position, theta),
            jnp.where(accepted, end.logdensity, value),
            jnp.minimum(jnp.exp(gained), 1.0),
            gained < -DIVERGENCE,
        )

    return jax.vmap(move)(position, momentum, coin, step)


def start_chains(stream: Stream, sets: int, model: Model) -> Chains:
    """Chains spread over the prior."""
    d, prior = model.d, model.prior
    spread = np.clip(stream.draw().standard_normal((sets, d + 3)), -2.0, 2.0)
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
    return Chains(
        position, np.zeros(sets), np.zeros(sets, dtype=int), 0.2, np.full(d + 3, 0.5), recent
    )


def resample(coin: float, chains: Chains, density: Float[np.ndarray, " M"]) -> tuple[Chains, float]:
    """Replace chains that the new log densities rule out by copies of the others.

    Systematic resampling with weights ∝ exp(new − old), only where their effective number falls
    below half or one of them is impossible. Returns that number as well.
    """
    M = len(density)
    change = np.where(np.isfinite(density), density - chains.log_density, -np.inf)
    weights = softmax(change) if np.any(np.isfinite(change)) else np.full(M, 1 / M)
    effective = float(1 / np.sum(weights**2))
    if effective >= M / 2 and np.all(weights > 0):  # an impossible chain has no slope: it stays
        return chains, effective
    index = np.minimum(np.searchsorted(np.cumsum(weights), (np.arange(M) + coin) / M), M - 1)
    copies = np.isin(np.arange(M), np.unique(index, return_index=True)[1], invert=True)
    return (
        replace(
            chains,
            position=chains.position[index],
            log_density=density[index],
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
    chains, effective = _reweigh(stream.child(0), chains, data, np.ones(()), model)
    chains, rate, lost = _moved(stream.child(1), chains, data, np.ones(()), model, moves, gain)
    return chains, Mixing(chains.recent, effective, rate, lost)


def cold_start(
    stream: Stream, sets: int, data: Data, model: Model, moves: int
) -> tuple[Chains, Mixing]:
    """Chains that have forgotten the prior they started from, with adapted step size and mass.

    The data are let in by and by: the likelihood's power grows to 1, then all chains move on.
    """
    chains = start_chains(stream.child(0), sets, model)
    prior = np.asarray(_densities(chains.position, data, np.zeros(()), model=model))
    chains = replace(chains, log_density=prior)
    turns = -(-sets // moves)
    for i in range(ANNEALING + SETTLING):
        power = np.asarray(min((i + 1) / ANNEALING, 1.0) ** 2)
        gain = (COLD_GAIN if i < ANNEALING else WARM_GAIN) / turns
        if i < ANNEALING:
            chains, effective = _reweigh(stream.child(i + 1, 0), chains, data, power, model)
        ended = []
        for turn in range(turns):
            of_turn = stream.child(i + 1, 1 + turn)
            chains, rate, lost = _moved(of_turn, chains, data, power, model, moves, gain)
            ended.append((rate, lost))
    rates, losses = zip(*ended, strict=True)
    return chains, Mixing(chains.recent, effective, float(np.mean(rates)), sum(losses))


def _reweigh(
    stream: Stream, chains: Chains, data: Data, power: np.ndarray, model: Model
) -> tuple[Chains, float]:
    """Bring the chains' densities up to date, and resample where they fell apart."""
    density = np.asarray(_densities(chains.position, data, power, model=model))
    return resample(stream.draw().uniform(), chains, density)


def _moved(
    stream: Stream,
    chains: Chains,
    data: Data,
    power: np.ndarray,
    model: Model,
    moves: int,
    gain: float,
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
    moved = to_numpy(_move(start, momentum, coins, steps, mass, data, power, model=model))
    position, log_density, age = chains.position.copy(), chains.log_density.copy(), chains.age + 1
    position[who], log_density[who], age[who] = moved.position, moved.log_density, 0
    recent = np.concatenate([chains.recent[:, 1:], position[:, None]], axis=1)
    spread = np.clip(np.var(recent[:, -8:].reshape(-1, recent.shape[-1]), axis=0), 1e-3, 4.0)
    rate = float(np.mean(moved.acceptance))
    step_size = chains.step_size * np.exp(gain * (rate - TARGET_ACCEPTANCE))
    grown = Chains(
        position,
        log_density,
        np.minimum(age, OLDEST),
        float(np.clip(step_size, 1e-3, 1.0)),
        mass + MASS_GAIN * (spread - mass),
        recent,
    )
    return grown, rate, int(np.sum(moved.divergent))


def rescale(chains: Chains, shift: tuple[float, float], prior: Prior) -> Chains | None:
    """The same chains after y became ratio·y + offset; None where that is too far to follow."""
    ratio, offset = shift
    if not (1 / 3 < ratio < 3 and abs(offset) < 2):
        return None
    change = np.zeros(chains.position.shape[1])
    change[-3:-1] = 2 * np.log(ratio)
    factor = np.ones_like(change)
    if prior.mean_scale > 0:
        factor[-1], change[-1] = ratio, offset / prior.mean_scale
    return replace(
        chains,
        position=factor * chains.position + change,
        recent=factor * chains.recent + change,
    )


@compiled("model")
def _negative(theta: Array, data: Data, *, model: Model) -> tuple[Array, Array]:
    value, slope = jax.value_and_grad(log_posterior)(theta, data, model)
    return -value, -slope


def map_fit(
    data: Data, model: Model, start: Float[np.ndarray, " k"] | None = None
) -> Float[np.ndarray, " k"]:
    """The posterior mode θ by L-BFGS-B from a few starts, `start` among them where given."""
    d, prior = model.d, model.prior
    starts = [] if start is None else [np.asarray(start)]
    for shift in (-1.0, 0.0):
        lengths = prior.lengthscale.start(np.full(d, shift), d)
        rest = [float(p.start(np.zeros(()), d)) for p in (prior.outputscale, prior.noise)]
        starts.append(np.concatenate([lengths, rest, [0.0]]))

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _negative(jnp.asarray(theta), data, model=model)
        if not np.isfinite(value):
            return 1e10, np.zeros_like(theta)
        return float(value), np.asarray(slope)

    with one_blas_thread():
        fits = [
            scipy.optimize.minimize(
                objective, theta, jac=True, method="L-BFGS-B", options={"maxiter": 200}
            )
            for theta in starts
        ]
    return np.asarray(min(fits, key=lambda fit: fit.fun).x)
