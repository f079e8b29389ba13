"""Ask and tell: the face of the library, in the user's units."""

from __future__ import annotations

import difflib
import functools
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, SupportsFloat, TypeVar, cast, get_args

import numpy as np
from jaxtyping import Float

from optpair import insight, report, saving
from optpair.acquisition import NAMES
from optpair.ahead import Ahead
from optpair.default import ACQUISITION
from optpair.engine import Best, Engine, Info, Pairs, State
from optpair.files import Copies
from optpair.gp.posterior import Hyperparameters
from optpair.history import Direction, History, Trial
from optpair.history import State as TrialState
from optpair.runtime import Stream, check_seed, refuse_fork
from optpair.settings import Settings
from optpair.space import Space

DESIGN, SUGGEST, ANSWER = range(3)  # one stream of randomness for each purpose

Mode = Literal["marginal", "map"]
Decode = Callable[[np.ndarray], Mapping[str, Any]]
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Recommendation:
    """The best predicted point, and how sure that prediction is.

    `mean`, `std` and `interval` (95 %) are about the noiseless value at `params`. `observed` is the
    told trial with the best value: under noise, often only the luckiest one. `left_out` are
    parameters that trials have and the model has not, each with the reason.
    """

    params: Mapping[str, Any]
    mean: float
    std: float
    interval: tuple[float, float]
    observed: Trial
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        low, high = self.interval
        best = self.observed
        left_out = "".join(f"\nleft out       {line}" for line in report.left_out(self.left_out))
        return (
            f"recommended    {_listed(self.params)}\n"
            f"predicted      {self.mean:.6g}, 95 % interval {low:.6g} to {high:.6g}\n"
            f"best observed  {best.value:.6g} in trial {best.id}: {_listed(best.params)}"
            f"{left_out}"
        )

    __repr__ = __str__


@dataclass(frozen=True)
class Prediction:
    """What is believed of the noiseless value at some points, one entry a point.

    `low` and `high` hold 95 % of the belief.
    """

    mean: Float[np.ndarray, " q"]
    std: Float[np.ndarray, " q"]
    low: Float[np.ndarray, " q"]
    high: Float[np.ndarray, " q"]


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

    def __str__(self) -> str:
        low, high = np.quantile(self.values, [0.025, 0.975])
        return (
            f"{self.recommendation}\n"
            f"optimum        {low:.6g} to {high:.6g} in 95 % of {len(self.values)} samples\n"
            f"still unknown  {self.gap:.6g} to be won; the next trial is worth "
            f"{self.next_gain:.3g} nats"
        )

    __repr__ = __str__


def _locked(
    method: Callable[Concatenate[Optimizer, P], R],
) -> Callable[Concatenate[Optimizer, P], R]:
    """One thread at a time; and a forked child, which may inherit a locked lock, is refused."""

    @functools.wraps(method)
    def inner(self: Optimizer, /, *args: P.args, **kwargs: P.kwargs) -> R:
        refuse_fork()
        with self._lock:
            return method(self, *args, **kwargs)

    return inner


class Optimizer:
    """Suggests trials, learns from what they gave, recommends the best predicted point.

    >>> from optpair import Float, Optimizer, Space
    >>> opt = Optimizer(Space({"x": Float(-1, 1)}), direction="minimize", seed=0)
    >>> trial = opt.ask()
    >>> opt.tell(trial, trial.params["x"] ** 2)
    >>> len(opt.trials)
    1

    Threads may share one: each call waits for the one before. A forked child may not use one that
    its parent has used; spawn instead.

    direction: `"minimize"` or `"maximize"`.
    seed: any non-negative int; the same seed, asks and tells give the same points. None draws one.
    acquisition: a name in `optpair.acquisition.NAMES`.
    hyperparameters: `"marginal"` (averaged over by MCMC), `"map"` (the posterior mode), or known
        `Hyperparameters` in the user's units, of the sign-flipped objective when minimising.
    settings: see `Settings`.
    """

    def __init__(
        self,
        space: Space,
        *,
        direction: Direction = "minimize",
        seed: int | None = None,
        acquisition: str = ACQUISITION,
        hyperparameters: Mode | Hyperparameters = "marginal",
        settings: Settings | None = None,
    ) -> None:
        self._history = History(space, direction)
        self._seed = secrets.randbits(63) if seed is None else check_seed(seed)
        self._engine = make_engine(self.space, acquisition, hyperparameters, settings)
        self._state = State()
        self._asked = 0
        self._info = Info()
        self._lock = threading.RLock()
        self._ahead = Ahead(self._engine)
        self._copies = Copies()

    @property
    def space(self) -> Space:
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
    def configuration(self) -> dict[str, Any]:
        """Everything it was made with, as JSON."""
        return {
            "space": self.space.to_json(),
            "direction": self.direction,
            "seed": self._seed,
            "acquisition": self._engine.acquisition,
            "hyperparameters": saving.hyperparameters_to_json(self._engine.hyperparameters),
            "settings": saving.settings_to_json(self._engine.settings),
        }

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial so far: pending, told and failed."""
        return tuple(self._history)

    @property
    def info(self) -> Info:
        """How the last suggestion was made: kind, mixing of the chains, jitter, seconds a stage."""
        return self._info

    def __repr__(self) -> str:
        counts = [f"{self._history.count(state)} {state}" for state in get_args(TrialState)]
        return (
            f"<Optimizer: {self.direction} {_listed(self.space, ' in ')}; "
            f"trials: {', '.join(counts)}; seed {self.seed}>"
        )

    @_locked
    def ask(self) -> Trial:
        """The next trial to run. It is pending until it is told or cancelled."""
        observations = self._history.observations()
        self._ahead.now(observations)
        x, state, info = self._engine.suggest(
            stream(self._seed, SUGGEST, self._asked),
            self._state,
            observations,
            self._asked,
            stream(self._seed, DESIGN, 0),
        )
        trial = self._history.add(self.space.decode(x))
        self._state, self._info, self._asked = state, info, self._asked + 1
        self._ahead.later(observations)
        return trial

    @_locked
    def tell(
        self,
        trial: Trial | int | Mapping[str, Any],
        value: SupportsFloat | None = None,
        *,
        noise_var: SupportsFloat | None = None,
        failed: bool = False,
    ) -> None:
        """Report what a trial gave: a finite value, or `failed=True`.

        `trial` is what `ask` returned, its id, or a dict of parameters: those of a pending trial
        mean that trial, others a point of your own.
        `noise_var` is the variance of this value's noise, where it is known.
        """
        self._history.tell(trial, value, noise_var=noise_var, failed=failed)

    @_locked
    def revise(
        self,
        trial: Trial | int,
        value: SupportsFloat | None = None,
        *,
        noise_var: SupportsFloat | None = None,
        failed: bool = False,
    ) -> None:
        """Correct what was told of a trial: as `tell`, in place of what was told before."""
        before = self._history.known(trial)
        after = self._history.revise(trial, value, noise_var=noise_var, failed=failed)
        if before.value != after.value:
            self._state = State()  # chains that followed a wrong value start anew

    @_locked
    def cancel(self, trial: Trial | int) -> None:
        """Forget a suggestion that will never be evaluated. It teaches nothing."""
        self._history.cancel(trial)

    @_locked
    def recommend(self, *, tried: bool = False) -> Recommendation:
        """The best predicted point over the whole space, with its 95 % interval.

        With `tried`, the best predicted of the told trials: a promise that was put to the test.
        """
        self._need_values()
        seen = self._history.observations()
        question = stream(self._seed, ANSWER, len(seen.y)), self._state, seen
        sign, observed = self._history.sign, self._best()
        if not tried:
            best = self._engine.recommend(*question)
            return make_recommendation(best, self.space.decode, sign, observed)
        row, best = self._engine.best_tried(*question)
        told = [trial for trial in self._history if trial.state == "told"]
        return make_recommendation(best, lambda x: told[row].params, sign, observed)

    @_locked
    def belief(self) -> Belief:
        """Samples of where the optimum is and what it is worth, and what is still unknown."""
        self._need_values()
        told = self._history.count("told")
        pairs = self._engine.belief(
            stream(self._seed, ANSWER, told), self._state, self._history.observations()
        )
        return make_belief(pairs, self.space.decode, self._history.sign, self._best())

    @_locked
    def predict(self, params: Sequence[Mapping[str, Any]]) -> Prediction:
        """What is believed of the noiseless value at each of some points, told or not."""
        if isinstance(params, Mapping) or not isinstance(params, Sequence):
            raise TypeError(
                "params must be a list of dicts, one a point (of a pandas table: "
                f"table.to_dict('records')), not {params!r}"
            )
        self._need_values()
        rows = [self.space.encode(point) for point in params]
        X = np.array(rows, float).reshape(len(rows), self.space.cube.dimensions)
        key = stream(self._seed, ANSWER, self._history.count("told"))
        now = self._history.observations()
        _, surrogate = insight.fitted(self._engine, key, self._state, now)
        return Prediction(*insight.signed(insight.predict(surrogate, X), self._history.sign))

    @_locked
    def report(self, path: str | Path, *, name: str = "optpair") -> dict[str, Any]:
        """Write a page of HTML on what was found, which needs nothing else; see `optpair.report`.

        `name` is its heading. Returns what stands on it: the path, the recommendation, and more.
        """
        points = self._history.points
        rows = tuple(
            report.Row(t.id, t.state, t.params, t.value, t.noise_var, x=points[t.id])
            for t in self._history
        )
        key = stream(self._seed, ANSWER, self._history.count("told"))
        model = report.Model(self.space, self._engine, self._state, key)
        return report.write(report.Subject(name, self.direction, rows, model), path)

    @_locked
    def save(self, path: str | Path) -> None:
        """Write everything that exact continuation needs, as JSON, in one atomic step.

        A file that this one has loaded or saved before, and somebody else has changed since, is
        left as it is: that is a FileExistsError.
        """
        self._copies.write(path, saving.dumps(self._to_json()))

    @classmethod
    def load(cls, path: str | Path) -> Optimizer:
        """The optimiser that `save` wrote; it continues as the saved one would have."""
        copies = Copies()
        document = saving.loads(copies.read(path), path)
        with saving.blame(path):
            loaded = cls._from_json(document)
        loaded._copies = copies
        return loaded

    def _need_values(self) -> None:
        if self._history.count("told") == 0:
            failed = self._history.count("failed")
            extra = f": all {failed} that ended have failed" if failed else ""
            raise ValueError(f"no trial has a value yet{extra}; tell at least one value first")

    def _best(self) -> Trial:
        observed = self._history.best_observed()
        assert observed is not None
        return observed

    def __reduce__(self) -> tuple[Callable[..., Optimizer], tuple[dict[str, Any]]]:
        with self._lock:
            return Optimizer._from_json, (self._to_json(),)

    def _to_json(self) -> dict[str, Any]:
        return {
            **self.configuration,
            "asked": self._asked,
            "state": saving.state_to_json(self._state),
            **self._history.to_json(),
        }

    @classmethod
    def _from_json(cls, document: Mapping[str, Any]) -> Optimizer:
        history = History.from_json(document)
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


def make_engine(
    space: Space,
    acquisition: object,
    hyperparameters: object,
    settings: object,
) -> Engine:
    """The engine over a space, made from what a user gave, or an error that says what is wrong."""
    return Engine(
        space.cube,
        check_settings(settings),
        check_acquisition(acquisition),
        check_hyperparameters(hyperparameters, len(space)),
    )


def stream(seed: int, purpose: int, count: int) -> Stream:
    """Random numbers for the count-th use of a purpose: DESIGN, SUGGEST or ANSWER."""
    return Stream.of(seed).child(purpose, count)


def make_recommendation(best: Best, decode: Decode, sign: float, observed: Trial) -> Recommendation:
    """The engine's answer in the user's units."""
    low, high = sorted(sign * end for end in best.interval)
    return Recommendation(decode(best.x), sign * best.mean, best.std, (low, high), observed)


def make_belief(pairs: Pairs, decode: Decode, sign: float, observed: Trial) -> Belief:
    """The engine's optimal pairs in the user's units."""
    return Belief(
        params=tuple(decode(x) for x in pairs.x),
        values=sign * pairs.f,
        next_gain=pairs.next_gain,
        gap=pairs.gap,
        recommendation=make_recommendation(pairs.best, decode, sign, observed),
    )


def check_settings(given: object) -> Settings:
    """The given settings, or the defaults for None."""
    settings = Settings() if given is None else given
    if not isinstance(settings, Settings):
        raise TypeError(f"settings must be a Settings, like Settings(sets=6), not {given!r}")
    return settings


def check_acquisition(given: object) -> str:
    """The name of an acquisition function, or of a control."""
    if not isinstance(given, str) or given not in NAMES:
        close = difflib.get_close_matches(str(given).lower(), NAMES, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"acquisition must be one of {', '.join(NAMES)}, not {given!r}{hint}")
    return given


def check_hyperparameters(given: object, parameters: int) -> Mode | Hyperparameters:
    """A mode's name, or a checked copy of known values."""
    if isinstance(given, str) and given in get_args(Mode):
        return cast(Mode, given)
    if not isinstance(given, Hyperparameters):
        raise ValueError(
            f"hyperparameters must be 'marginal', 'map' or Hyperparameters, not {given!r}"
        )
    known = Hyperparameters(
        *(np.array(getattr(given, f.name), dtype=np.float64) for f in fields(given))
    )
    columns = np.shape(known.lengthscale)[1]
    if columns != parameters:
        raise ValueError(
            f"hyperparameters have {columns} length scales a set, but the space has "
            f"{parameters} parameters: one length scale a parameter"
        )
    return known


def _listed(items: Mapping[str, Any], sign: str = " = ") -> str:
    """name = value, name = value: numbers as they are, text quoted."""
    return ", ".join(f"{name}{sign}{value!r}" for name, value in items.items())
