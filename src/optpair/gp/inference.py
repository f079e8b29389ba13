"""Hyperparameters from data: marginalised by HMC, or the posterior mode (MAP).

The unconstrained vector of one set is θ = (log ℓ_1..d, log a, log σ², μ/scale), and

    log p(θ | y) = −½ rᵀ(K+Σ)⁻¹r − ½ log|K+Σ| + log prior(θ),    r = y − μ.

M chains run side by side, each contributing its last state. They start where the last refresh left
them: they are reweighted by what the new data say of them, resampled where those weights are
uneven (a chain that the data have ruled out would otherwise be stuck), and moved by a few HMC
transitions. A cold start does the same from the prior, letting the data in step by step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from blackjax.diagnostics import potential_scale_reduction
from jaxtyping import Array, Bool, Float

from optpair.gp.kernels import Kernel
from optpair.gp.posterior import Hyperparameters, gram, inverse_lower
from optpair.gp.priors import Prior
from optpair.runtime import compiled, pytree

WINDOW = 32  # draws a chain that the convergence diagnostic looks at
TARGET_ACCEPTANCE = 0.8
LEAPFROGS = 16  # long trajectories: one of them nearly forgets where it started
MASS_GAIN = 0.25  # how far the mass matrix follows the spread of the last draws
COLD_ROUNDS = 24  # refreshes of a cold start; in the first half the data are let in


class Data(NamedTuple):
    """Standardised observations, possibly padded; NaN noise_var means inferred."""

    X: Float[Array, "n D"]
    y: Float[Array, " n"]
    noise_var: Float[Array, " n"]
    mask: Bool[Array, " n"]


class Model(NamedTuple):
    """What is compiled in: kernel, prior, and the parameter each column belongs to."""

    kernel: Kernel
    prior: Prior
    columns: tuple[int, ...]

    @property
    def d(self) -> int:
        """The number of parameters, each with a length scale."""
        return max(self.columns) + 1


@pytree
@dataclass(frozen=True)
class Chains:
    """M warm chains: what the next refresh starts from."""

    position: Float[Array, "M k"]
    log_density: Float[Array, " M"]  # of the positions, when they were last moved
    step_size: Float[Array, ""]
    inverse_mass: Float[Array, " k"]
    recent: Float[Array, "M W k"]  # the last draws, oldest first, for the diagnostic


class Mixing(NamedTuple):
    """Whether the chains mixed: `rhat` near 1, acceptance near its target, no divergences.

    `effective` is how many chains the reweighting left.
    """

    rhat: Float[Array, ""]
    effective: Float[Array, ""]
    acceptance: Float[Array, ""]
    divergences: Float[Array, ""]


@jax.custom_vjp
def gaussian_log_density(K: Float[Array, "n n"], r: Float[Array, " n"]) -> Float[Array, ""]:
    """−½ rᵀK⁻¹r − ½ log|K|, with the closed-form gradient ½(ααᵀ − K⁻¹), α = K⁻¹r."""
    return _gaussian_forward(K, r)[0]


def _gaussian_forward(K: Array, r: Array) -> tuple[Array, tuple[Array, Array]]:
    C = jnp.linalg.cholesky(K)
    inverse = inverse_lower(C)
    white = inverse @ r
    value = -jnp.sum(white**2) / 2 - jnp.sum(jnp.log(jnp.diagonal(C)))
    return value, (inverse, inverse.T @ white)


def _gaussian_backward(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    inverse, alpha = saved
    return g / 2 * (jnp.outer(alpha, alpha) - inverse.T @ inverse), -g * alpha


gaussian_log_density.defvjp(_gaussian_forward, _gaussian_backward)


def unpack(theta: Float[Array, "*M k"], prior: Prior) -> Hyperparameters:
    """θ → hyperparameters; the noise has a floor."""
    return Hyperparameters(
        lengthscale=jnp.exp(theta[..., :-3]),
        outputscale=jnp.exp(theta[..., -3]),
        noise=prior.noise_floor + jnp.exp(theta[..., -2]),
        mean=prior.mean_scale * theta[..., -1],
    )


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
    theta: Float[Array, " k"], data: Data, model: Model, temper: Float[Array, ""] | float = 1.0
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


def start_chains(key: Array, sets: int, model: Model) -> Chains:
    """Chains spread over the prior."""
    d, prior = model.d, model.prior
    spread = jnp.clip(jax.random.normal(key, (sets, d + 3)), -2.0, 2.0)
    position = jnp.concatenate(
        [
            prior.lengthscale.start(spread[:, :d], d),
            prior.outputscale.start(spread[:, d : d + 1], d),
            prior.noise.start(spread[:, d + 1 : d + 2], d),
            spread[:, d + 2 :],
        ],
        axis=1,
    )
    recent = jnp.broadcast_to(position[:, None], (sets, WINDOW, d + 3))
    density = jax.vmap(lambda theta: log_prior(theta, prior))(position)
    return Chains(position, density, jnp.asarray(0.2), jnp.full(d + 3, 0.5), recent)


def resample(
    key: Array, chains: Chains, density: Float[Array, " M"]
) -> tuple[Chains, Float[Array, ""]]:
    """Replace chains that the new log densities rule out by copies of the others.

    Systematic resampling with weights ∝ exp(new − old), only where their effective number falls
    below half or one of them is impossible. Returns that number as well.
    """
    M = len(density)
    change = jnp.where(jnp.isfinite(density), density - chains.log_density, -jnp.inf)
    weights = jax.nn.softmax(jnp.where(jnp.any(jnp.isfinite(change)), change, 0.0))
    effective = 1 / jnp.sum(weights**2)
    points = (jnp.arange(M) + jax.random.uniform(key)) / M
    drawn = jnp.minimum(jnp.searchsorted(jnp.cumsum(weights), points), M - 1)
    impossible = jnp.any(weights == 0)  # without a slope, such a chain would stay for good
    index = jnp.where((effective < M / 2) | impossible, drawn, jnp.arange(M))
    return replace(chains, position=chains.position[index], recent=chains.recent[index]), effective


@compiled("model", "transitions")
def refresh(
    key: Array,
    chains: Chains,
    data: Data,
    temper: Float[Array, ""],
    gain: Float[Array, ""],
    *,
    model: Model,
    transitions: int,
) -> tuple[Chains, Mixing]:
    """Reweight and resample the chains, move them by a few HMC transitions, then adapt.

    `gain` says how far the step size moves towards what these draws suggest: large in a cold start,
    smaller after.
    """
    kernel = blackjax.hmc.build_kernel()
    M = len(chains.position)

    def density(theta: Array) -> Array:
        return log_posterior(theta, data, model, temper)

    def transition(states: Any, key: Array) -> tuple[Any, tuple[Array, Array, Array]]:
        step_key, move_key = jax.random.split(key)
        # A step of its own for each chain: some are short enough wherever a chain may be.
        steps = chains.step_size * jax.random.uniform(step_key, (M,), minval=0.2, maxval=1.3)

        def move(key: Array, state: Any, step: Array) -> Any:
            return kernel(key, state, density, step, chains.inverse_mass, LEAPFROGS)

        states, info = jax.vmap(move)(jax.random.split(move_key, M), states, steps)
        return states, (states.position, info.acceptance_rate, info.is_divergent)

    resample_key, hmc_key = jax.random.split(key)
    chains, effective = resample(resample_key, chains, jax.vmap(density)(chains.position))
    states = jax.vmap(lambda theta: blackjax.hmc.init(theta, density))(chains.position)
    states, (draws, acceptance, divergent) = jax.lax.scan(
        transition, states, jax.random.split(hmc_key, transitions)
    )
    rate = jnp.mean(jnp.nan_to_num(acceptance))
    recent = jnp.concatenate([chains.recent, jnp.swapaxes(draws, 0, 1)], axis=1)[:, -WINDOW:]
    spread = jnp.clip(jnp.var(recent[:, -8:].reshape(-1, recent.shape[-1]), axis=0), 1e-3, 4.0)
    step_size = chains.step_size * jnp.exp(gain * (rate - TARGET_ACCEPTANCE))
    mass = chains.inverse_mass + MASS_GAIN * (spread - chains.inverse_mass)
    moved = Chains(states.position, states.logdensity, jnp.clip(step_size, 1e-3, 1.0), mass, recent)
    rhat = jnp.max(potential_scale_reduction(recent, chain_axis=0, sample_axis=1))
    return moved, Mixing(rhat, effective, rate, jnp.sum(divergent).astype(float))


def cold_start(
    key: Array, sets: int, data: Data, model: Model, transitions: int
) -> tuple[Chains, Mixing]:
    """Chains that have forgotten the prior they started from, with adapted step size and mass."""
    chains = start_chains(jax.random.fold_in(key, 0), sets, model)
    half = COLD_ROUNDS // 2
    for i in range(COLD_ROUNDS):
        chains, mixing = refresh(
            jax.random.fold_in(key, i + 1),
            chains,
            data,
            jnp.asarray(min((i + 1) / half, 1.0) ** 2),
            jnp.asarray(1.0 if i < half else 0.5),
            model=model,
            transitions=transitions,
        )
    return chains, mixing


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
        position=jnp.asarray(factor) * chains.position + change,
        recent=jnp.asarray(factor) * chains.recent + change,
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
        lengths = np.asarray(prior.lengthscale.start(jnp.full(d, shift), d))
        rest = [float(p.start(jnp.asarray(0.0), d)) for p in (prior.outputscale, prior.noise)]
        starts.append(np.concatenate([lengths, rest, [0.0]]))

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _negative(jnp.asarray(theta), data, model=model)
        if not np.isfinite(value):
            return 1e10, np.zeros_like(theta)
        return float(value), np.asarray(slope)

    fits = [
        scipy.optimize.minimize(
            objective, theta, jac=True, method="L-BFGS-B", options={"maxiter": 200}
        )
        for theta in starts
    ]
    return np.asarray(min(fits, key=lambda fit: fit.fun).x)
