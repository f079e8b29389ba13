"""Ask and tell: the face of the library, in the user's units."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, SupportsFloat

import jax
import numpy as np
from jaxtyping import Array, Float

from optpair import saving
from optpair.acquisition import REGISTRY
from optpair.engine import Best, Engine, Info, State
from optpair.gp.posterior import Hyperparameters
from optpair.history import Direction, History, Trial
from optpair.runtime import check_seed, double, make_key
from optpair.settings import Settings

CONFIDENCE = 0.95
DESIGN, SUGGEST, RECOMMEND, BELIEF = range(4)  # one stream of randomness for each purpose


@dataclass(frozen=True)
class Recommendation:
    """The best predicted point, and how sure that prediction is.

    `mean`, `std` and `interval` (95 %) are about the noiseless value at `params`. `observed` is the
    told trial with the best value: under noise, often only the luckiest one.
    """

    params: Mapping[str, Any]
    mean: float
    std: float
    interval: tuple[float, float]
    observed: Trial


@dataclass(frozen=True)
class Belief:
    """Samples of the optimal pair (x*, f*) in the user's units, and what is still unknown.

    `next_gain` is what the best next trial would teach about the pair, in nats. `gap` is how much
    better the optimum is expected to be than the recommendation.
    """

    params: tuple[Mapping[str, Any], ...]
    values: Float[np.ndarray, " L"]
    next_gain: float
    gap: float
    recommendation: Recommendation


class Optimizer:
    """Suggests trials, learns from what they gave, recommends the best predicted point.

    >>> from optpair import Float, Optimizer, Space
    >>> opt = Optimizer(Space({"x": Float(-1, 1)}), direction="minimize", seed=0)
    >>> trial = opt.ask()
    >>> opt.tell(trial, trial.params["x"] ** 2)
    >>> len(opt.trials)
    1

    direction: `"minimize"` or `"maximize"`.
    seed: any non-negative int; the same seed, asks and tells give the same points. None draws one.
    acquisition: a name in `optpair.acquisition.REGISTRY`.
    hyperparameters: `"marginal"` (averaged over by MCMC), `"map"` (the posterior mode), or known
        `Hyperparameters` in the user's units, of the sign-flipped objective when minimising.
    settings: see `Settings`.
    """

    def __init__(
        self,
        space: Any,
        *,
        direction: Direction = "minimize",
        seed: int | None = None,
        acquisition: str = "jes",
        hyperparameters: Literal["marginal", "map"] | Hyperparameters = "marginal",
        settings: Settings | None = None,
    ) -> None:
        self._history = History(space, direction)
        self._seed = secrets.randbits(63) if seed is None else check_seed(seed)
        settings = Settings() if settings is None else settings
        if not isinstance(settings, Settings):
            raise TypeError(f"settings must be a Settings, not {type(settings).__name__}")
        if acquisition not in REGISTRY:
            raise ValueError(
                f"acquisition must be one of {', '.join(REGISTRY)}, not {acquisition!r}"
            )
        _check_hyperparameters(hyperparameters, len(self.space))
        self._engine = Engine(self.space.cube, settings, acquisition, hyperparameters)
        self._state = State()
        self._asked = 0
        self._info = Info()

    @property
    def space(self) -> Any:
        """The space that is searched."""
        return self._history.space

    @property
    def direction(self) -> Direction:
        """`"minimize"` or `"maximize"`."""
        return self._history.direction

    @property
    def seed(self) -> int:
        """The seed, drawn or given."""
        return self._seed

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial so far: pending, told and failed."""
        return tuple(self._history)

    @property
    def info(self) -> Info:
        """How the last suggestion was made: kind, mixing of the chains, jitter, seconds a stage."""
        return self._info

    def ask(self) -> Trial:
        """The next trial to run. It is pending until it is told or cancelled."""
        x, self._state, self._info = self._engine.suggest(
            self._key(SUGGEST, self._asked),
            self._state,
            self._history.observations(),
            self._asked,
            self._key(DESIGN, 0),
        )
        self._asked += 1
        return self._history.add(self.space.decode(x))

    def tell(
        self,
        trial: Trial | int | Mapping[str, Any],
        value: SupportsFloat | None = None,
        *,
        noise_var: SupportsFloat | None = None,
        failed: bool = False,
    ) -> None:
        """Report what a trial gave: a finite value, or `failed=True`.

        `trial` is what `ask` returned, its id, or a dict of parameters for a point of your own.
        `noise_var` is the variance of this value's noise, where it is known.
        """
        self._history.tell(trial, value, noise_var=noise_var, failed=failed)

    def cancel(self, trial: Trial | int) -> None:
        """Forget a suggestion that will never be evaluated. It teaches nothing."""
        self._history.cancel(trial)

    def recommend(self) -> Recommendation:
        """The best predicted point over the whole space, with its 95 % interval."""
        self._need_values()
        told = self._history.count("told")
        best = self._engine.recommend(
            self._key(RECOMMEND, told), self._state, self._history.observations()
        )
        return self._recommendation(best)

    def belief(self) -> Belief:
        """Samples of where the optimum is and what it is worth, and what is still unknown."""
        self._need_values()
        told = self._history.count("told")
        pairs = self._engine.belief(
            self._key(BELIEF, told), self._state, self._history.observations()
        )
        return Belief(
            params=tuple(self.space.decode(x) for x in pairs.x),
            values=self._history.sign * pairs.f,
            next_gain=pairs.next_gain,
            gap=pairs.gap,
            recommendation=self._recommendation(pairs.best),
        )

    def save(self, path: str | Path) -> None:
        """Write everything that exact continuation needs, as JSON, in one atomic step."""
        saving.write(path, self._to_json())

    @classmethod
    def load(cls, path: str | Path) -> Optimizer:
        """The optimiser that `save` wrote; it continues as the saved one would have."""
        document = saving.read(path)
        with saving.blame(path):
            return cls._from_json(document)

    def _need_values(self) -> None:
        if self._history.count("told") == 0:
            failed = self._history.count("failed")
            extra = f" ({failed} failed)" if failed else ""
            raise ValueError(f"no trial has a value yet{extra}: tell at least one first")

    def _recommendation(self, best: Best) -> Recommendation:
        sign, tail = self._history.sign, (1 - CONFIDENCE) / 2
        ends = sorted(sign * best.value.quantile(p) for p in (tail, 1 - tail))
        observed = self._history.best_observed()
        assert observed is not None
        return Recommendation(
            params=self.space.decode(best.x),
            mean=sign * best.value.mean,
            std=best.value.sd,
            interval=(ends[0], ends[1]),
            observed=observed,
        )

    @double
    def _key(self, purpose: int, count: int) -> Array:
        return jax.random.fold_in(jax.random.fold_in(make_key(self._seed), purpose), count)

    def _to_json(self) -> dict[str, Any]:
        return {
            "seed": self._seed,
            "asked": self._asked,
            "acquisition": self._engine.acquisition,
            "hyperparameters": saving.hyperparameters_to_json(self._engine.hyperparameters),
            "settings": saving.settings_to_json(self._engine.settings),
            "state": saving.state_to_json(self._state),
            "history": self._history.to_json(),
        }

    @classmethod
    def _from_json(cls, document: Mapping[str, Any]) -> Optimizer:
        history = History.from_json(document["history"])
        optimizer = cls(
            history.space,
            direction=history.direction,
            seed=document["seed"],
            acquisition=document["acquisition"],
            hyperparameters=saving.hyperparameters_from_json(document["hyperparameters"]),
            settings=saving.settings_from_json(document["settings"]),
        )
        optimizer._history = history
        optimizer._asked = saving.as_count(document["asked"])
        optimizer._state = saving.state_from_json(document["state"], history, optimizer._engine)
        return optimizer


def _check_hyperparameters(given: object, parameters: int) -> None:
    if isinstance(given, Hyperparameters):
        shape = np.shape(given.lengthscale)
        if shape[1] != parameters:
            raise ValueError(
                f"hyperparameters have {shape[1]} length scales a set, but the space has "
                f"{parameters} parameters"
            )
    elif given not in ("marginal", "map"):
        raise ValueError(
            f"hyperparameters must be 'marginal', 'map' or Hyperparameters, not {given!r}"
        )
