"""From a history to the next point, a recommendation and a belief about the optimum.

The engine is a pure step, `(key, state, observations) -> (suggestion, state, info)`. The state is
what makes the next step cheap (warm chains), never what makes it right: an engine that starts cold
from the same observations gives as good an answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from optpair.acquisition import CONTROLS, REGISTRY
from optpair.cube import Cube
from optpair.failures import SuccessChance, fit_success
from optpair.gp import inference
from optpair.gp import paths as gp_paths
from optpair.gp.inference import Chains, Data, Model
from optpair.gp.mixture import Mixture
from optpair.gp.paths import Paths
from optpair.gp.posterior import Hyperparameters, Posterior, check_factor, fit
from optpair.history import Observations
from optpair.maximize import sobol, space_filling
from optpair.pairs import ANCHORS, OptimalPairs, optima
from optpair.runtime import double, wait
from optpair.scaling import Scaling
from optpair.settings import Settings
from optpair.stages import best_mean, choose, fantasise

SMALLEST_SIZE = 16
DESIGN_POINTS = 1024
WARM_GAIN = 0.5
CONFIDENCE = 0.95
EXPLOIT = 0.1


@dataclass(frozen=True)
class State:
    """What the next step starts from: hyperparameters, and the scaling of y that they belong to."""

    told: int = 0  # observations at the last refresh
    scaling: Scaling | None = None
    theta: Float[np.ndarray, "M k"] | None = None
    chains: Chains | None = None


@dataclass(frozen=True)
class Mixing:
    """Whether the chains over the hyperparameters mixed at their last refresh."""

    rhat: float
    effective: float  # chains left by the reweighting, of all
    acceptance: float
    divergences: int

    @property
    def mixed(self) -> bool:
        """R-hat below 1.2, and hardly a divergence."""
        return self.rhat < 1.2 and self.divergences <= 1


@dataclass
class Info:
    """How a step was made: what it was for, how it went, and where the time was spent."""

    kind: Literal["design", "exploit", "acquire"] = "design"
    value: float | None = None  # of the acquisition function (in nats for JES)
    mixing: Mixing | None = None
    jitter: float = 0.0  # the largest relative jitter that a factorisation needed
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage."""
        begin = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


class Surrogate(NamedTuple):
    """The model of one step: the posterior, and the chance of success where something failed."""

    posterior: Posterior
    success: SuccessChance | None
    worst: Array
    scaling: Scaling


class Sampled(NamedTuple):
    """The posterior with pending points in it, and the paths or pairs that are needed."""

    posterior: Posterior
    paths: Paths | None
    stars: OptimalPairs | None


class Best(NamedTuple):
    """The best predicted point, and what is believed of the objective there, in raw units."""

    x: Float[np.ndarray, " D"]
    mean: float
    std: float
    interval: tuple[float, float]  # 95 %


class Pairs(NamedTuple):
    """Sampled optimal pairs in raw units, and what is still unknown."""

    best: Best
    x: Float[np.ndarray, "L D"]
    f: Float[np.ndarray, " L"]
    next_gain: float
    gap: float


def padded_size(n: int) -> int:
    """The number of rows that n observations are padded to: a few sizes, a third apart or so."""
    size = SMALLEST_SIZE
    while size < n:
        size = size * 3 // 2 if size >= 64 and size & (size - 1) == 0 else _next_power(size)
    return size


def _next_power(size: int) -> int:
    return 1 << size.bit_length()


@dataclass(frozen=True)
class Engine:
    """The whole method, as functions of a key, a state and observations."""

    cube: Cube
    settings: Settings
    acquisition: str
    hyperparameters: Literal["marginal", "map"] | Hyperparameters

    @property
    def model(self) -> Model:
        """Kernel, prior and columns, as compiled in."""
        return Model(self.settings.kernel, self.settings.prior, self.cube.parameter)

    @property
    def initial(self) -> int:
        """Told trials before the model is used."""
        chosen = self.settings.initial
        return self.cube.parameters + 1 if chosen is None else chosen

    @property
    def exploit(self) -> float:
        """γ: by default 0.1, or 0 where the hyperparameters are known."""
        if self.settings.exploit is not None:
            return self.settings.exploit
        return 0.0 if isinstance(self.hyperparameters, Hyperparameters) else EXPLOIT

    @double
    def suggest(
        self, key: Array, state: State, observations: Observations, asked: int, design_key: Array
    ) -> tuple[Float[np.ndarray, " D"], State, Info]:
        """The next point to evaluate; `asked` counts the suggestions made before."""
        info = Info()
        if self.acquisition in CONTROLS:
            point = CONTROLS[self.acquisition](design_key, self.cube, asked)
            return np.asarray(point), state, info
        if len(observations.y) < self.initial:
            return self._design(design_key, observations, asked), state, info
        coin_key, hyper_key, path_key, choose_key = jax.random.split(key, 4)
        exploit = bool(jax.random.uniform(coin_key) < self.exploit)
        state = self.refresh(hyper_key, state, observations, info)
        surrogate = self.condition(state, observations, info)
        if exploit:
            with info.stage("maximise"):
                best = self._best(choose_key, surrogate)
            if not _among(best.x, observations.pending):
                info.kind = "exploit"
                return best.x, state, info
        info.kind = "acquire"
        sampled = self.sample(path_key, surrogate, observations, info, self.acquisition)
        with info.stage("maximise"):
            x, value = self._choose(choose_key, sampled, surrogate, self.acquisition)
        info.value = value
        return x, state, info

    @double
    def recommend(self, key: Array, state: State, observations: Observations) -> Best:
        """The best predicted point."""
        hyper_key, best_key = jax.random.split(key)
        state = self.refresh(hyper_key, state, observations, Info())
        return self._best(best_key, self.condition(state, observations, Info()))

    @double
    def belief(self, key: Array, state: State, observations: Observations) -> Pairs:
        """Optimal pairs, and what is still unknown about the optimum."""
        hyper_key, best_key, path_key, choose_key = jax.random.split(key, 4)
        info = Info()
        state = self.refresh(hyper_key, state, observations, info)
        surrogate = self.condition(state, observations, info)
        best = self._best(best_key, surrogate)
        sampled = self.sample(path_key, surrogate, observations, info, "jes")
        _, gain = self._choose(choose_key, sampled, surrogate, "jes")
        assert sampled.stars is not None
        f = surrogate.scaling.restore(np.asarray(sampled.stars.f).reshape(-1))
        x = np.asarray(sampled.stars.x).reshape(-1, self.cube.dimensions)
        gap = max(float(np.mean(f / 2 - best.mean / 2)) * 2, 0.0)  # halves cannot overflow
        return Pairs(best, x, f, max(gain, 0.0), gap)

    def refresh(self, key: Array, state: State, observations: Observations, info: Info) -> State:
        """Bring the hyperparameters, and the scaling they belong to, up to date with the data."""
        if isinstance(self.hyperparameters, Hyperparameters):
            return State(len(observations.y), Scaling())
        n = len(observations.y)
        if state.scaling is not None and n - state.told < self.settings.refresh_every:
            return state
        with info.stage("hyperparameters"):
            scaling = Scaling.of(observations.y, self.settings.warp)
            data = self._data(observations, scaling)
            if self.hyperparameters == "map":
                start = None if state.theta is None else state.theta[0]
                theta = inference.map_fit(data, self.model, start)[None]
                return State(n, scaling, theta)
            chains, mixing = self._advance(key, state, data, scaling, n)
            info.mixing = Mixing(
                float(mixing.rhat),
                float(mixing.effective),
                float(mixing.acceptance),
                int(mixing.divergences),
            )
            return State(n, scaling, np.asarray(chains.position), chains)

    def _advance(
        self, key: Array, state: State, data: Data, scaling: Scaling, n: int
    ) -> tuple[Chains, inference.Mixing]:
        settings = self.settings
        chains = state.chains and inference.rescale(
            state.chains, _shift(state.scaling, scaling), self.settings.prior
        )
        if chains is None:
            return inference.cold_start(key, settings.sets, data, self.model, settings.transitions)
        for i in range(min(n - state.told, 5)):  # catch up when many were told at once
            chains, mixing = inference.refresh(
                jax.random.fold_in(key, i),
                chains,
                data,
                jnp.asarray(1.0),
                jnp.asarray(WARM_GAIN),
                model=self.model,
                transitions=settings.transitions,
            )
        return chains, mixing

    def condition(self, state: State, observations: Observations, info: Info) -> Surrogate:
        """The posterior, and the chance of success where something failed."""
        scaling = state.scaling
        assert scaling is not None
        data = self._data(observations, scaling)
        with info.stage("condition"):
            if isinstance(self.hyperparameters, Hyperparameters):
                hypers = jax.tree.map(jnp.asarray, self.hyperparameters)
            else:
                hypers = inference.unpack(jnp.asarray(state.theta), self.settings.prior)
            posterior = fit(hypers, *data, kernel=self.settings.kernel, columns=self.cube.parameter)
            check_factor(posterior)
            info.jitter = max(info.jitter, float(np.max(np.asarray(posterior.jitter))))
        success = self._success(data, observations, info)
        worst = jnp.min(jnp.where(data.mask, data.y, jnp.inf))
        return Surrogate(posterior, success, worst, scaling)

    def _success(self, data: Data, observations: Observations, info: Info) -> SuccessChance | None:
        if len(observations.failed) == 0:
            return None
        with info.stage("failures"):
            return fit_success(self.model, data, observations.failed)

    def sample(
        self,
        key: Array,
        surrogate: Surrogate,
        observations: Observations,
        info: Info,
        name: str,
    ) -> Sampled:
        """What the acquisition function `name` needs, and the posterior with pending points."""
        settings, needs = self.settings, REGISTRY[name].needs
        path_key, optima_key, noise_key = jax.random.split(key, 3)
        if needs == "nothing" and len(observations.pending) == 0:
            return Sampled(surrogate.posterior, None, None)
        stars = None
        with info.stage("pairs"):
            paths = gp_paths.sample(
                path_key, surrogate.posterior, paths=settings.pairs, features=settings.features
            )
            if needs == "pairs":
                stars = wait(
                    optima(
                        optima_key,
                        paths,
                        self.cube,
                        jnp.asarray(sobol(self.cube.parameters, settings.path_candidates)),
                        points=max(settings.path_candidates // 4, ANCHORS),
                        steps=settings.steps,
                    )
                )
        with info.stage("pending"):
            pending = np.zeros_like(surrogate.posterior.X)
            pending[: len(observations.pending)] = observations.pending
            count = jnp.asarray(len(observations.pending))
            posterior = wait(fantasise(noise_key, paths, jnp.asarray(pending), count))
        return Sampled(posterior, paths if needs == "paths" else None, stars)

    def _choose(
        self,
        key: Array,
        sampled: Sampled,
        surrogate: Surrogate,
        name: str,
    ) -> tuple[Float[np.ndarray, " D"], float]:
        x, value = choose(
            key,
            *sampled,
            surrogate.success,
            surrogate.worst,
            self.cube,
            self._base(),
            name=name,
            points=max(self.settings.candidates // 4, ANCHORS),
            starts=self.settings.starts,
            steps=self.settings.steps,
        )
        return np.asarray(x), float(value)

    def _best(self, key: Array, surrogate: Surrogate) -> Best:
        x, means, variances = best_mean(
            key,
            surrogate.posterior,
            surrogate.success,
            surrogate.worst,
            self.cube,
            self._base(),
            points=max(self.settings.candidates // 4, ANCHORS),
            starts=self.settings.starts,
            steps=self.settings.steps,
        )
        return _restored(np.asarray(x), means, variances, surrogate.scaling)

    def _base(self) -> Array:
        return jnp.asarray(sobol(self.cube.parameters, self.settings.candidates))

    def _design(
        self, key: Array, observations: Observations, asked: int
    ) -> Float[np.ndarray, " D"]:
        """The next space-filling point; after failures, the safest of the next few."""
        points = np.asarray(
            space_filling(key, self.cube, jnp.asarray(sobol(self.cube.parameters, DESIGN_POINTS)))
        )
        if len(observations.failed) == 0:
            return np.asarray(points[asked % DESIGN_POINTS])
        seen = np.concatenate([observations.X, observations.pending, observations.failed])
        order = np.roll(points, -(asked % DESIGN_POINTS), axis=0)
        new = order[[not _among(x, seen) for x in order]]
        few = (new if len(new) else order)[:16]
        success = fit_success(self.model, self._data(observations, Scaling()), observations.failed)
        return np.asarray(few[np.argmax(success.evaluate(jnp.asarray(few)))])

    def _data(self, observations: Observations, scaling: Scaling) -> Data:
        """Standardised observations, padded with room for what is pending or failed."""
        n = len(observations.y)
        size = padded_size(n + max(len(observations.pending), len(observations.failed)))
        X = np.zeros((size, self.cube.dimensions))
        y, noise_var = np.zeros(size), np.full(size, np.nan)
        X[:n], y[:n] = observations.X, scaling.standardise(observations.y)
        noise_var[:n] = np.maximum(
            scaling.variance(observations.noise_var, observations.y),
            self.settings.prior.noise_floor,
        )
        return Data(
            jnp.asarray(X), jnp.asarray(y), jnp.asarray(noise_var), jnp.asarray(np.arange(size) < n)
        )


def _among(x: np.ndarray, rows: np.ndarray) -> bool:
    """Whether a point is one of the rows, up to round-off."""
    return bool(np.any(np.all(np.abs(rows - x) < 1e-9, axis=1)))


def _restored(x: np.ndarray, means: Array, variances: Array, scaling: Scaling) -> Best:
    """What the sets say of the value at x, in raw units; quantiles pass through any scaling."""
    value = Mixture(np.asarray(means), np.sqrt(np.asarray(variances)))
    ends = [value.quantile(p) for p in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)]
    mean, low, high = scaling.restore(np.array([value.mean, *ends]))
    around = scaling.restore(np.array([value.mean - value.sd, value.mean + value.sd]))
    return Best(x, float(mean), float(around[1] / 2 - around[0] / 2), (float(low), float(high)))


def _shift(old: Scaling | None, new: Scaling) -> tuple[float, float]:
    """How standardised values change from one scaling to the next: y' = ratio·y + offset."""
    assert old is not None
    return old.scale / new.scale, (old.loc - new.loc) / new.scale
