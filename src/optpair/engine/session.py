"""Sessions: the owner of seed, memory and engine, for every interface of the library."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from optpair.acquisition.registry import (
    CONTROLS,
    Control,
    Entry,
    check_borrows,
    check_goal,
    entry_of,
)
from optpair.cube.cube import Cube, among
from optpair.cube.region import Region
from optpair.engine import fitting, step
from optpair.engine.answers import Answers
from optpair.engine.earlier import borrowed, check_matches
from optpair.engine.engine import HYPER, WIDER, Engine
from optpair.engine.going_on import taken_up
from optpair.engine.model import Memory, OutcomeMemory
from optpair.engine.plate import REPEATED, Info, Shared, ended_alike
from optpair.engine.settings import Settings
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference import Inference, Known, Marginal, Mode
from optpair.gp.kernels import Radial
from optpair.problem.defaults import ACQUISITION, ONCE
from optpair.problem.problem import Problem
from optpair.problem.space import Space
from optpair.problem.stop import Stop
from optpair.runtime.shapes import Bool, Float
from optpair.runtime.streams import Stream, check_seed
from optpair.runtime.threads import engine_work
from optpair.trials.data import Data
from optpair.trials.earlier import EarlierStudy, lend
from optpair.trials.transform import Scaling

DESIGN, SUGGEST, ANSWER, PRUNE = range(4)  # one stream of randomness for each purpose

LARGEST_PLATE = 1000
SPARSE, RARE = 1.25, 1.5  # growth of the trials until the next look, at most

Way = Literal["marginal", "map"]
"""How hyperparameters are found, by name."""


Columns = Mapping[int, float]
"""What some columns of the cube hold."""

NOTHING: Columns = {}


class Look(NamedTuple):
    """Whether a search was over at the last look, and what was seen then."""

    stop: Stop
    fixed: Columns
    data: Data
    over: bool


class Session:
    """A problem, the engine for it, a seed, and what is remembered from step to step."""

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int | None = None,
        acquisition: str | Callable[..., Any] | None = None,
        hyperparameters: Way | Hyperparameters = "marginal",
        settings: Settings | None = None,
        earlier: Sequence[EarlierStudy] = (),
    ) -> None:
        self.problem = problem
        self.seed = secrets.randbits(63) if seed is None else check_seed(seed)
        acquisition = usual(problem) if acquisition is None else acquisition
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
            targets=problem.space.columns_of(problem.space.targets),
            prices=problem.space.prices,
            beliefs=problem.beliefs,
        )
        self.earlier = tuple(earlier)
        if self.earlier:
            self.engine = _after(self.engine, problem, self.earlier)
        self.memory: Memory = {}
        self.info = Info()
        self._shared = Shared()
        self._shared_at: Columns = NOTHING
        self._look: Look | None = None
        self._at: tuple[Columns, Engine] = ({}, self.engine)

    def engine_at(self, fixed: Columns) -> Engine:
        """The engine with some columns held at given values, those of a context."""
        known, engine = self._at
        if fixed != known:
            region = self.engine.anywhere.fixed(fixed)
            region.check()
            engine = replace(self.engine, legal=region)
            self._at = (fixed, engine)
        return engine

    def stream(self, purpose: int, count: int) -> Stream:
        """Random numbers for the count-th use of a purpose: DESIGN, SUGGEST or ANSWER."""
        return Stream.of(self.seed).child(purpose, count)

    @engine_work
    def suggest(
        self,
        data: Data,
        number: int,
        *,
        share: bool = False,
        fixed: Columns = NOTHING,
        resting: Sequence[int] = (),
    ) -> Float[np.ndarray, " D"]:
        """The point of suggestion `number`; what was learnt on the way is remembered.

        With `share` it belongs to the same plate as the suggestion before it, if that was in the
        same context and only pending points were added since. `fixed` are the columns of a context.
        `resting` are told trials that can be continued; `info.continues` says which one is, if any.
        """
        engine = self.engine_at(fixed)
        stream, design = self.stream(SUGGEST, number), self.stream(DESIGN, 0)
        shared, self._shared = self._shared, Shared()  # an interrupted ask leaves nothing behind
        known, self._shared_at = self._shared_at, fixed
        same = share and known == fixed and shared.serves(data)
        shared = replace(shared, info=Info()) if same else Shared()
        x, memory, info = step.suggest(engine, stream, self.memory, data, number, design, shared)
        taken = taken_up(engine, stream, shared, data, resting) if resting else None
        if taken is not None:
            info.continues, x, info.value = taken
            shared.points[-1] = x
        self._remember(memory, info)
        if share:
            self._shared = shared
        return x

    def _remember(self, memory: Memory, info: Info) -> None:
        """Remember what a step found; one that samples no optima says nothing about the end."""
        if info.gaps is None:
            info.gaps = self.info.gaps
        self.memory, self.info = memory, info

    @engine_work
    def plate(
        self, data: Data, number: int, count: int, *, fixed: Columns = NOTHING
    ) -> Float[np.ndarray, "k D"]:
        """The points of a plate of `count` suggestions, from `number` on, chosen together.

        The model, the paths and their optima are made once; each point is pending for those after
        it. If values are exact, or each row of a table is tried at most once, there are fewer once
        no other legal point is left, but at least one.
        """
        engine, design = self.engine_at(fixed), self.stream(DESIGN, 0)
        memory, shared = self.memory, Shared(size=count)
        exact = data.exact or all(o.noise_var == 0 for o in self.problem.outcomes.values())
        exact &= isinstance(self.engine.acquisition, Entry)  # controls repeat what they like
        points: list[Float[np.ndarray, " D"]] = []
        for i in range(number, number + count):
            if points and engine.spent(data):
                break
            x, memory, _ = step.suggest(
                engine, self.stream(SUGGEST, i), memory, data, i, design, shared
            )
            if points and exact and among(x, data.settled, REPEATED):
                break
            points.append(x)
            data = data.awaiting(x)
        self._remember(memory, shared.info)
        return np.array(points)

    @engine_work
    def answers(self, data: Data, *, fixed: Columns = NOTHING) -> Answers:
        """The model of an answer, averaged over more hyperparameter sets than in an ask."""
        engine = self.engine_at(fixed)
        stream, data = self.stream(ANSWER, data.told), fitting.judge(engine, data, Info())
        memory = fitting.update(engine, stream.child(HYPER), self.memory, data, Info())
        model = fitting.condition(engine, memory, data, Info(), wider=stream.child(WIDER))
        return Answers(engine, stream, memory, model, data)

    @engine_work
    def doubted(self, data: Data) -> list[int]:
        """Which of the told trials have a value that is more likely a mistake than a result.

        Without a model: it takes next to no time, unless a value is far above all others.
        """
        judged = fitting.judge(self.engine, data, Info())
        return sorted({int(trial) for trial in data.trial[judged.doubted.any(axis=1)]})

    def done(self, data: Data, stop: Stop, *, fixed: Columns = NOTHING) -> bool:
        """Whether a search is over; see `Stop`.

        A look costs more than an ask, so it is skipped while the optima of the last ask show that
        the end is far: unless the best tried point has half of the required chance, the next look
        is made when the number of trials has grown by half. If asks sample no optima, it is made
        when the number has grown by a quarter.
        """
        check_one_objective(self.problem)
        last, gaps = self._look, self.info.gaps
        if data.told <= self.engine.initial:
            return False
        if last is not None and (last.stop, last.fixed) == (stop, fixed):
            if ended_alike(last.data, data):
                return last.over
            near = gaps is not None and np.mean(gaps <= stop.gap) >= stop.chance / 2
            later = (SPARSE if gaps is None else RARE) * last.data.told
            if last.data.told < data.told < later and not near:
                return False
        look = Look(stop, fixed, data, self.answers(data, fixed=fixed).over(stop))
        self._look = look
        return look.over

    def until(self, data: Data, stop: Stop, *, fixed: Columns = NOTHING) -> int | None:
        """About how many more trials a search takes until it is over; None if unknown."""
        check_one_objective(self.problem)
        if data.told <= self.engine.initial:
            return None
        return self.answers(data, fixed=fixed).until(stop)

    def forget(self) -> None:
        """Start the chains anew, as a value that they have seen was wrong."""
        self.memory = {}

    def to_json(self) -> dict[str, Any]:
        """What exact continuation needs besides the trials."""
        return {name: self._outcome_to_json(own) for name, own in self.memory.items()}

    def _outcome_to_json(self, own: OutcomeMemory) -> dict[str, Any] | None:
        state = self.engine.inference.to_json(own.state)
        if state is None:
            return None
        found = {"told": own.told, "scaling": own.scaling.to_json(), "state": state}
        found |= {"several": True} if own.several else {}
        return found | ({"matches": own.matches} if own.matches else {})

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
            lent = engine.earlier.get(name)
            matches = check_matches(
                own.get("matches", ()), 0 if lent is None else len(lent.sources)
            )
            scaling, several = Scaling.from_json(own["scaling"]), own.get("several", False)
            if not isinstance(several, bool) or (several and not engine.targets):
                raise ValueError(f"several must be whether trials have looks, not {several!r}")
            known = OutcomeMemory(count, scaling, None, matches, several)
            state = engine.inference.from_json(own["state"], engine.process_of(name, known))
            memory[name] = replace(known, state=state)
        self.memory = memory


def region_of(space: Space) -> Region:
    """The part of a space's cube that satisfies its limits."""
    cube, limits = Cube(space.layout), space.limits
    whole = Region.whole(cube)
    if space.shelf is not None:
        return replace(whole, table=space.table, once=not space.shelf.repeat)
    if not limits:
        return whole

    def allowed(X: Float[np.ndarray, "n D"]) -> Bool[np.ndarray, " n"]:
        return np.array([limits.allows(space.decode(x)) for x in X], dtype=bool)

    function = None if limits.function is None else allowed
    region = replace(whole, rows=space.rows if limits.linear else None, allowed=function)
    region.check()
    return region


@engine_work
def _after(engine: Engine, problem: Problem, earlier: tuple[EarlierStudy, ...]) -> Engine:
    """The same engine with earlier studies."""
    if not engine.inference.standardises:
        raise ValueError(
            "earlier studies and known hyperparameters cannot be given together: how related a "
            "study is has to be inferred; give hyperparameters='marginal', or leave earlier out"
        )
    if isinstance(engine.acquisition, Entry):
        check_borrows(engine.acquisition, problem.goal)
    lent = lend(earlier, problem)
    found = {
        name: borrowed(
            lent, column, engine.process, warp=engine.compresses and name in problem.objectives
        )
        for column, name in enumerate(problem.outcomes)
    }
    return replace(engine, earlier={name: own for name, own in found.items() if own is not None})


def check_one_objective(problem: Problem) -> None:
    """Check that there is one objective: a front has no gap by which to end a search."""
    if problem.goal == "front":
        raise ValueError(
            f"stop needs one objective, and there are {', '.join(map(repr, problem.objectives))}: "
            "make all but one a Constraint, or leave stop out and end the search by its "
            "evaluations, by seconds, or by what belief().hypervolume_gap says"
        )


def check_plate(n: object) -> int:
    """The number of trials of a plate, as a plain int."""
    accepted = f"an int from 1 to {LARGEST_PLATE}, or left out for one trial that is not in a list"
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"n must be {accepted}, not {n!r:.80}")
    if not 1 <= n <= LARGEST_PLATE:
        raise ValueError(f"n must be {accepted}, not {n!r:.80}")
    return int(n)


def check_settings(given: object) -> Settings:
    """The given settings, or the defaults for None."""
    settings = Settings() if given is None else given
    if not isinstance(settings, Settings):
        raise TypeError(f"settings must be a Settings, like Settings(sets=6), not {given!r}")
    return settings


def _control(given: object) -> Control | None:
    return CONTROLS.get(given) if isinstance(given, str) else None


def _serving(given: str | Callable[..., Any], problem: Problem) -> Entry:
    """The registry entry of an acquisition function, if it suits the problem's goal."""
    entry = entry_of(given)
    check_goal(entry, problem.goal)
    return entry


def usual(problem: Problem) -> str:
    """The acquisition function of a problem for which none was asked for."""
    shelf = problem.space.shelf
    once = shelf is not None and not shelf.repeat
    return ONCE if once and problem.goal == "best" else ACQUISITION


def make_inference(problem: Problem, given: object, settings: Settings) -> Inference:
    """The way to find hyperparameters, from its name or from known values in the user's units."""
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
    missing = [name for name in ("common", "curve") if name not in given.own]
    if problem.space.targets and isinstance(settings.kernel, Radial) and missing:
        raise ValueError(
            f"hyperparameters have no {' and no '.join(map(repr, missing))}, which a space with a "
            "Fidelity needs: the share of the curve that all points have in common, and its length "
            "scale"
        )
    return Known(given.times(problem.objective.sign))
