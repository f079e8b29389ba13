"""From a history to the next point, a recommendation and a belief about the optimum.

The engine is a pure step, `(key, state, observations) -> (suggestion, state, info)`. The state is
what makes the next step cheap (warm chains), never what makes it right: an engine that starts cold
from the same observations gives as good an answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from optpair import effort, stages
from optpair.acquisition import CONTROLS, REGISTRY
from optpair.cube import Cube
from optpair.default import ACQUISITION
from optpair.failures import SuccessChance, fit_success
from optpair.gp import inference
from optpair.gp.inference import Chains, Mixing
from optpair.gp.likelihood import Data, Model, unpack
from optpair.gp.mixture import Mixture
from optpair.gp.paths import Draws
from optpair.gp.posterior import Hyperparameters, Posterior, check_factor, fit
from optpair.history import Observations
from optpair.maximize import Search, sobol
from optpair.pairs import ANCHORS
from optpair.programs import one_blas_thread
from optpair.runtime import Numbers, Stream, double
from optpair.scaling import Scaling
from optpair.settings import Settings
from optpair.stages import Sampled

DESIGN_POINTS = 1024
OWN = 16  # points of which the safest is taken after failures
CONFIDENCE = 0.95
EXPLOIT = 0.1
SAME_OPTIMUM = 1e-3  # of the cube: two climbs of the same function end so close, or closer
COIN, HYPER, PATHS, SEARCH, POOL = range(5)  # one stream of randomness for each purpose


@dataclass(frozen=True)
class State:
    """What the next step starts from: hyperparameters, and the scaling of y that they belong to."""

    told: int = 0  # observations at the last refresh
    scaling: Scaling | None = None
    theta: Float[np.ndarray, "M k"] | None = None
    chains: Chains | None = None
    pooled: Float[np.ndarray, "A k"] | None = None  # more sets, of an answer


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
    pooled: Posterior | None = None
    """Under more sets, where what a point is worth is the question, and not where to look."""

    def predict(
        self, X: Float[np.ndarray, "q D"]
    ) -> tuple[Float[np.ndarray, "M q"], Float[np.ndarray, "M q"]]:
        """The sets' means and variances of the noiseless value, standardised."""
        return (self.posterior if self.pooled is None else self.pooled).predict(X)


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


@dataclass(frozen=True)
class Engine:
    """The whole method, as functions of a key, a state and observations."""

    cube: Cube
    settings: Settings
    acquisition: str
    hyperparameters: Literal["marginal", "map"] | Hyperparameters
    least: int = 1  # observations that there is room for, at least

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
        self, stream: Stream, state: State, observations: Observations, asked: int, design: Stream
    ) -> tuple[Float[np.ndarray, " D"], State, Info]:
        """The next point to evaluate; `asked` counts the suggestions made before."""
        info = Info()
        if self.acquisition in CONTROLS:
            return CONTROLS[self.acquisition](design, self.cube, asked), state, info
        if len(observations.y) < self.initial:
            return self._design(design, observations, asked), state, info
        exploit = stream.child(COIN).draw().uniform() < self.exploit
        state = self.refresh(stream.child(HYPER), state, observations, info)
        surrogate = self.condition(state, observations, info)
        if exploit:
            with info.stage("maximise"):
                best = self._best(stream.child(SEARCH), surrogate)
            if not _among(best.x, observations.pending, SAME_OPTIMUM):
                info.kind = "exploit"
                return best.x, state, info
        info.kind = "acquire"
        sampled = self.sample(stream.child(PATHS), surrogate, observations, info, self.acquisition)
        with info.stage("maximise"):
            x, value = self._choose(stream.child(SEARCH), sampled, surrogate, self.acquisition)
        info.value = value
        return x, state, info

    @double
    def recommend(self, stream: Stream, state: State, observations: Observations) -> Best:
        """The best predicted point."""
        _, surrogate = self.answering(stream, state, observations)
        return self._worth(self._best(stream.child(SEARCH), surrogate), surrogate)

    @double
    def best_tried(
        self, stream: Stream, state: State, observations: Observations
    ) -> tuple[int, Best]:
        """The observation with the best predicted value: its row, and what is believed there."""
        _, surrogate = self.answering(stream, state, observations)
        means, variances = surrogate.predict(np.asarray(surrogate.posterior.X))
        row = int(np.argmax(means.mean(axis=0)[: len(observations.y)]))
        x = observations.X[row]
        return row, _restored(x, means[:, row], variances[:, row], surrogate.scaling)

    @double
    def belief(self, stream: Stream, state: State, observations: Observations) -> Pairs:
        """Optimal pairs, and what is still unknown about the optimum."""
        _, surrogate = self.answering(stream, state, observations)
        return self.believe(stream, surrogate, observations)

    def believe(self, stream: Stream, surrogate: Surrogate, observations: Observations) -> Pairs:
        """The belief of a model that is there already."""
        best = self._best(stream.child(SEARCH), surrogate)
        sampled = self.sample(stream.child(PATHS), surrogate, observations, Info(), ACQUISITION)
        _, gain = self._choose(stream.child(SEARCH), sampled, surrogate, ACQUISITION)
        assert sampled.stars is not None
        f = surrogate.scaling.restore(np.asarray(sampled.stars.f).reshape(-1))
        x = np.asarray(sampled.stars.x).reshape(-1, self.cube.dimensions)
        gap = max(float(np.mean(f / 2 - best.mean / 2)) * 2, 0.0)  # halves cannot overflow
        return Pairs(self._worth(best, surrogate), x, f, max(gain, 0.0), gap)

    @double
    def rehearse(
        self, rows: int, pending: bool = False, failed: bool = False, recommend: bool = True
    ) -> None:
        """Go through each compiled stage, with a few made-up observations and room for `rows`."""
        if self.acquisition in CONTROLS:
            return
        engine, stream = replace(self, least=rows), Stream.of(0)
        X, y = stream.draw().uniform(size=(3, self.cube.dimensions)), np.array([0.0, 1.0, 2.0])
        observations = Observations(X, y, np.full(3, np.nan), X[: int(pending)], X[: int(failed)])
        sets = self.settings.sets if self.hyperparameters == "marginal" else 1
        theta = inference.start_chains(stream, sets, self.model).position
        surrogate = engine.condition(State(3, Scaling(), theta), observations, Info())
        sampled = engine.sample(stream, surrogate, observations, Info(), self.acquisition)
        engine._choose(stream, sampled, surrogate, self.acquisition)
        if recommend:
            engine._best(stream, surrogate)

    def refresh(
        self, stream: Stream, state: State, observations: Observations, info: Info
    ) -> State:
        """Bring the hyperparameters, and the scaling they belong to, up to date with the data."""
        if isinstance(self.hyperparameters, Hyperparameters):
            return State(len(observations.y), Scaling())
        n = len(observations.y)
        if state.scaling is not None and n - state.told < self.settings.refresh_every:
            return state
        with info.stage("hyperparameters"):
            scaling = Scaling.of(observations.y, self.settings.warp)
            data = self._data(effort.thinned(observations, self.settings.most_rows), scaling)
            if self.hyperparameters == "map":
                start = None if state.theta is None else state.theta[0]
                theta = inference.map_fit(data, self.model, start)[None]
                return State(n, scaling, theta)
            chains, info.mixing = self._advance(stream, state, data, scaling, n)
            return State(n, scaling, chains.position, chains)

    def _advance(
        self, stream: Stream, state: State, data: Data, scaling: Scaling, n: int
    ) -> tuple[Chains, Mixing]:
        settings = self.settings
        chains = state.chains and inference.rescale(
            state.chains, _shift(state.scaling, scaling), self.model
        )
        moves = effort.chain_moves(settings, len(data.y))
        if chains is None:
            return inference.cold_start(stream, settings.sets, data, self.model, moves)
        for i in range(min(n - state.told, effort.CATCH_UP)):
            chains, mixing = inference.refresh(
                stream.child(i), chains, data, model=self.model, moves=moves
            )
        return chains, mixing

    def answering(
        self, stream: Stream, state: State, observations: Observations
    ) -> tuple[State, Surrogate]:
        """The model of an answer, and its state.

        Twelve sets are few for the ends of an interval: the chains move on, and where they have
        been is pooled.
        """
        state = self.refresh(stream.child(HYPER), state, observations, Info())
        if state.chains is not None:
            state = replace(state, pooled=self._pool(stream.child(POOL), state, observations))
        return state, self.condition(state, observations, Info())

    def _pool(
        self, stream: Stream, state: State, observations: Observations
    ) -> Float[np.ndarray, "A k"]:
        """Where the chains are after each of a few more rounds."""
        assert state.scaling is not None
        assert state.chains is not None
        data = self._data(effort.thinned(observations, self.settings.most_rows), state.scaling)
        moves = min(4 * effort.chain_moves(self.settings, len(data.y)), self.settings.sets)
        chains, seen = state.chains, []
        for i in range(effort.POOLED):
            chains, _ = inference.refresh(
                stream.child(i), chains, data, model=self.model, moves=moves
            )
            seen.append(chains.position)
        return np.concatenate(seen)

    def condition(self, state: State, observations: Observations, info: Info) -> Surrogate:
        """The posterior, and the chance of success where something failed."""
        scaling = state.scaling
        assert scaling is not None
        data, size = self._data(observations, scaling), self.size(observations)
        posterior = self._posterior(state.theta, data, size, info)
        success = self._success(observations, info)
        more = state.pooled
        pooled = None if more is None else self._posterior(more, data, size, info)
        return Surrogate(posterior, success, np.min(data.y, initial=np.inf), scaling, pooled)

    def _posterior(
        self, theta: Float[np.ndarray, "M k"] | None, data: Data, size: int, info: Info
    ) -> Posterior:
        """Under the sets θ or, where they are known, the given hyperparameters."""
        with info.stage("condition"):
            hypers, model = self.hyperparameters, self.model
            if not isinstance(hypers, Hyperparameters):
                assert theta is not None
                some = theta[:: effort.set_stride(size, len(theta), self.settings.most_rows)]
                hypers = unpack(some, model)
            with one_blas_thread():
                posterior = fit(
                    hypers, *data, kernel=model.kernel, columns=model.columns, size=size
                )
            check_factor(posterior)
            info.jitter = max(info.jitter, float(np.max(np.asarray(posterior.jitter))))
        return posterior

    def _success(self, observations: Observations, info: Info) -> SuccessChance | None:
        if len(observations.failed) == 0:
            return None
        with info.stage("failures"):
            size = self.size(observations)
            most = self.settings.most_rows
            return fit_success(self.model, observations.X, observations.failed, size, most)

    def sample(
        self,
        stream: Stream,
        surrogate: Surrogate,
        observations: Observations,
        info: Info,
        name: str,
    ) -> Sampled:
        """What the acquisition function `name` needs, and the posterior with pending points."""
        settings, needs = self.settings, REGISTRY[name].needs
        posterior = surrogate.posterior
        if needs == "nothing" and len(observations.pending) == 0:
            return Sampled(posterior, None, None)
        with info.stage("pairs"):
            paths = settings.pairs
            if self.hyperparameters == "marginal":  # as many in all, where fewer sets are used
                paths = paths * settings.sets // len(posterior.mean)
            draws = Draws.of(stream.child(0), posterior, paths=paths, features=settings.features)
            points = effort.paths_screened(settings, self.cube.dimensions)
            search = Search.of(stream.child(1), self.cube, points, ANCHORS)
            sampled = stages.sample(
                draws,
                search,
                posterior,
                self.cube,
                steps=effort.climb_steps(settings, self.cube.dimensions),
                pairs=needs == "pairs",
            )
        with info.stage("pending"):
            posterior = self._with_pending(stream.child(2), sampled, observations)
        return Sampled(posterior, sampled.paths if needs == "paths" else None, sampled.stars)

    def _with_pending(
        self, stream: Stream, sampled: Sampled, observations: Observations
    ) -> Posterior:
        posterior, paths, _ = sampled
        count = len(observations.pending)
        if count == 0:
            return posterior
        assert paths is not None
        M, P, n = paths.update.shape
        pending = np.zeros((n, self.cube.dimensions))
        pending[:count] = observations.pending
        white = stream.draw().standard_normal((n, M, P))
        return stages.fantasise(white, posterior, paths, pending, np.asarray(count))

    def _choose(
        self, stream: Stream, sampled: Sampled, surrogate: Surrogate, name: str
    ) -> tuple[Float[np.ndarray, " D"], float]:
        settings = self.settings
        x, value = stages.choose(
            stream.child(0).key(),
            self._search(stream.child(1), pairs=REGISTRY[name].needs == "pairs"),
            sampled,
            surrogate.success,
            surrogate.worst,
            self.cube,
            name=name,
            starts=settings.starts,
            steps=effort.climb_steps(settings, self.cube.dimensions),
        )
        return np.asarray(x), float(value)

    def _best(self, stream: Stream, surrogate: Surrogate) -> Best:
        settings = self.settings
        x, means, variances = stages.best_mean(
            self._search(stream.child(1), pairs=False),
            surrogate.posterior,
            surrogate.success,
            surrogate.worst,
            self.cube,
            starts=settings.starts,
            steps=effort.climb_steps(settings, self.cube.dimensions),
        )
        return _restored(np.asarray(x), means, variances, surrogate.scaling)

    def _worth(self, best: Best, surrogate: Surrogate) -> Best:
        """The same point, with what the sets of an answer say of it."""
        if surrogate.pooled is None:
            return best
        means, variances = surrogate.predict(best.x[None])
        return _restored(best.x, means[:, 0], variances[:, 0], surrogate.scaling)

    def _search(self, stream: Stream, *, pairs: bool) -> Search:
        return Search.of(stream, self.cube, effort.screened(self.settings, pairs=pairs), ANCHORS)

    def _design(
        self, stream: Stream, observations: Observations, asked: int
    ) -> Float[np.ndarray, " D"]:
        """The next space-filling point; after failures, the safest of a few that are its own.

        No two numbers near each other choose from the same few, and none of these is a point of
        the design without failures: workers that do not see each other's points differ as well.
        """
        if len(observations.failed) == 0:
            points = self._points(stream, DESIGN_POINTS)
            return np.asarray(points[asked % DESIGN_POINTS])
        order, own = self._own(stream, asked)
        seen = np.concatenate([observations.X, observations.pending, observations.failed])
        few = _unseen(order[:own], seen)
        if len(few) == 0:  # some levels and categories are few
            few = _unseen(order[:DESIGN_POINTS], seen)[:own]
        if len(few) == 0:
            few = order[:own]
        success = self._success(observations, Info())
        assert success is not None
        return np.asarray(few[np.argmax(success.evaluate(jnp.asarray(few)))])

    def _own(self, stream: Stream, asked: int) -> tuple[Float[np.ndarray, "N D"], int]:
        """The points after the design's, from those that belong to `asked` on, and how many do.

        Where there are few legal points at all, so many that eight numbers in a row differ.
        """
        points = self._points(stream, DESIGN_POINTS * (1 + OWN))[DESIGN_POINTS:]
        if not self.cube.continuous.any():
            points = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]
        own = min(max(len(points) // 8, 1), OWN)
        start = own * (asked % (len(points) // own))
        return np.roll(points, -start, axis=0), own

    def _points(self, stream: Stream, count: int) -> Float[np.ndarray, "N D"]:
        d = self.cube.parameters
        shift = stream.draw().uniform(size=d)
        return np.asarray(stages.fill(shift, self.cube, sobol(d, count)))

    def _data(self, observations: Observations, scaling: Scaling) -> Data:
        """Standardised observations or, where hyperparameters are known, in their units."""
        noise_var = scaling.variance(observations.noise_var, observations.y)
        floor = self.settings.prior.noise_floor
        if isinstance(self.hyperparameters, Hyperparameters):
            noise_var = observations.noise_var
            floor *= float(np.max(self.hyperparameters.outputscale))
        y = scaling.standardise(observations.y)
        return Data(observations.X, y, np.maximum(noise_var, floor))

    def size(self, observations: Observations) -> int:
        """The rows that observations are padded to, with room for what is pending or failed."""
        more = max(len(observations.pending), len(observations.failed))
        return effort.padded_size(max(len(observations.y) + more, self.least), self.cube.dimensions)


def _unseen(points: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The points that are none of those seen."""
    return points[[not _among(x, seen) for x in points]]


def _among(x: np.ndarray, rows: np.ndarray, within: float = 1e-9) -> bool:
    """Whether a point is one of the rows, up to a distance in each column."""
    return bool(np.any(np.all(np.abs(rows - x) < within, axis=1)))


def _restored(x: np.ndarray, means: Numbers, variances: Numbers, scaling: Scaling) -> Best:
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
