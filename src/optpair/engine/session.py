"""Sessions: the one owner of seed, memory and engine, for every face of the library."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from optpair.acquisition.registry import CONTROLS, Control, Entry, check_goal, entry_of
from optpair.cube.cube import Cube
from optpair.cube.region import Region
from optpair.engine.answers import Answers
from optpair.engine.model import Memory, OutcomeMemory
from optpair.engine.settings import Settings
from optpair.engine.step import HYPER, WIDER, Engine, Info
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference import Inference, Known, Marginal, Mode
from optpair.problem.defaults import ACQUISITION
from optpair.problem.problem import Problem
from optpair.problem.space import Space
from optpair.shapes import Bool, Float
from optpair.streams import Stream, check_seed
from optpair.threads import engine_work
from optpair.trials.data import Data
from optpair.trials.transform import Scaling

DESIGN, SUGGEST, ANSWER = range(3)  # one stream of randomness for each purpose

Way = Literal["marginal", "map"]
"""How hyperparameters are found, by name."""


class Session:
    """A problem, the engine for it, a seed, and what is remembered from step to step."""

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int | None = None,
        acquisition: str | Callable[..., Any] = ACQUISITION,
        hyperparameters: Way | Hyperparameters = "marginal",
        settings: Settings | None = None,
    ) -> None:
        self.problem = problem
        self.seed = secrets.randbits(63) if seed is None else check_seed(seed)
        self.acquisition = acquisition
        self.hyperparameters = hyperparameters
        self.settings = check_settings(settings)
        region = region_of(problem.space)
        self.engine = Engine(
            region.cube,
            problem.outcomes,
            self.settings,
            _control(acquisition) or _serving(acquisition, problem),
            make_inference(problem, hyperparameters, self.settings),
            legal=region,
        )
        self.memory: Memory = {}
        self.info = Info()

    def stream(self, purpose: int, count: int) -> Stream:
        """Random numbers for the count-th use of a purpose: DESIGN, SUGGEST or ANSWER."""
        return Stream.of(self.seed).child(purpose, count)

    @engine_work
    def suggest(self, data: Data, number: int) -> Float[np.ndarray, " D"]:
        """The point of suggestion `number`; what was learnt on the way is remembered."""
        stream, design = self.stream(SUGGEST, number), self.stream(DESIGN, 0)
        x, memory, info = self.engine.suggest(stream, self.memory, data, number, design)
        self.memory, self.info = memory, info
        return x

    @engine_work
    def answers(self, data: Data) -> Answers:
        """The model of an answer: hyperparameters are averaged over more sets than in an ask."""
        stream, data = self.stream(ANSWER, data.told), self.engine.judge(data, Info())
        memory = self.engine.update(stream.child(HYPER), self.memory, data, Info())
        model = self.engine.condition(memory, data, Info(), wider=stream.child(WIDER))
        return Answers(self.engine, stream, memory, model, data)

    def forget(self) -> None:
        """Start the chains anew: a value that they followed was wrong."""
        self.memory = {}

    def to_json(self) -> dict[str, Any]:
        """What exact continuation needs beside the trials."""
        return {name: self._outcome_to_json(own) for name, own in self.memory.items()}

    def _outcome_to_json(self, own: OutcomeMemory) -> dict[str, Any] | None:
        state = self.engine.inference.to_json(own.state)
        if state is None:
            return None
        return {"told": own.told, "scaling": own.scaling.to_json(), "state": state}

    def restore(self, document: Mapping[str, Any], told: Mapping[str, int]) -> None:
        """Remember what a document holds; `told` counts the values of each outcome."""
        memory = {}
        for name, own in document.items():
            if name not in self.problem.outcomes:
                raise ValueError(f"the memory of {name!r} is of no outcome of this problem")
            if own is None:
                continue
            count, least = own["told"], 1 if len(told) == 1 else 0
            counts = isinstance(count, int) and not isinstance(count, bool)
            if not counts or not least <= count <= told[name]:
                raise ValueError(f"the memory has seen {count!r} values, not those of the trials")
            engine = self.engine
            state = engine.inference.from_json(own["state"], engine.process)
            memory[name] = OutcomeMemory(count, Scaling.from_json(own["scaling"]), state)
        self.memory = memory


def region_of(space: Space) -> Region:
    """The part of a space's cube that is within its limits."""
    cube, limits = Cube(space.layout), space.limits
    whole = Region.whole(cube)
    if not limits:
        return whole

    def allowed(X: Float[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        return np.array([limits.allows(space.decode(x)) for x in X], dtype=bool)

    function = None if limits.function is None else allowed
    region = replace(whole, rows=space.rows if limits.linear else None, allowed=function)
    region.check()
    return region


def check_settings(given: object) -> Settings:
    """The given settings, or the defaults for None."""
    settings = Settings() if given is None else given
    if not isinstance(settings, Settings):
        raise TypeError(f"settings must be a Settings, like Settings(sets=6), not {given!r}")
    return settings


def _control(given: object) -> Control | None:
    return CONTROLS.get(given) if isinstance(given, str) else None


def _serving(given: str | Callable[..., Any], problem: Problem) -> Entry:
    """The entry of an acquisition function, if it serves what the problem looks for."""
    entry = entry_of(given)
    check_goal(entry, problem.goal)
    return entry


def make_inference(problem: Problem, given: object, settings: Settings) -> Inference:
    """How hyperparameters are found, from a name or from known values in the user's units."""
    if isinstance(given, str) and given == "marginal":
        return Marginal(settings.sets, settings.moves)
    if isinstance(given, str) and given == "map":
        return Mode()
    if not isinstance(given, Hyperparameters):
        raise ValueError(
            f"hyperparameters must be 'marginal', 'map' or Hyperparameters, not {given!r}"
        )
    if len(problem.outcomes) > 1:
        raise ValueError(
            f"hyperparameters can be known of one outcome, not of {len(problem.outcomes)}: give "
            "'marginal' or 'map'"
        )
    if given.parameters != len(problem.space):
        raise ValueError(
            f"hyperparameters have {given.parameters} length scales per set, but the space has "
            f"{len(problem.space)} parameters: one length scale per parameter"
        )
    return Known(given.times(problem.objective.sign))
