"""Going on: whether a trial deserves a look at a higher fidelity, compared with the best new trial.

A look at u' after one at u costs the difference cost(u') − cost(u), but at least as much as the
cheapest look, as a program has to start. A running trial goes on while the largest gain per cost of
its further looks is at least that of the best new query, and always while it may be the best of all
trials: if what is predicted of its end is at least the best of all predictions, and it is no
repetition of a whole one. As long as trials have cost at most half of what whole ones would have,
half a standard deviation is added to what is predicted of it. None is ended while there are no more
whole trials than parameters. A resting trial, which can be continued, is compared by its gain per
cost alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optpair.acquisition.registry import Entry
from optpair.cube.cube import among
from optpair.engine import fitting, goals, query, sampling
from optpair.engine.engine import HYPER, PATHS, SEARCH, Engine
from optpair.engine.model import Memory, Model, mean_at
from optpair.engine.plate import Info, Shared
from optpair.engine.worth import Feasibility
from optpair.runtime.shapes import Float, Int
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work
from optpair.trials.data import APART, Data

HOPE = 0.5  # standard deviations by which a running trial may be better than predicted,
AFFORDED = 0.5  # as long as trials have cost at most so much of what whole ones would have
ROUNDED = 1e-9  # of the spread: means of one point may differ by round-off
LEVELS = 8  # looks that are compared between a trial's fidelity and the target
FINALISTS = 32  # of these, over all trials, the number whose gains are computed in full precision


@engine_work
def goes_on(
    engine: Engine,
    stream: Stream,
    memory: Memory,
    data: Data,
    here: Float[np.ndarray, " D"],
    further: Float[np.ndarray, "k D"],
) -> bool:
    """Whether a trial seen at `here` is worth one of the `further` looks."""
    entry = engine.acquisition
    whole, tuned = np.sum(engine.whole(data.points)), engine.cube.parameters - len(engine.targets)
    if whole <= tuned or not (isinstance(entry, Entry) and entry.looks):
        return True
    info = Info()
    memory = fitting.update(engine, stream.child(HYPER), memory, data, info)
    model = fitting.condition(engine, memory, data, info)
    if _may_be_best(engine, model, data, here):
        return True
    sampled = sampling.sample(engine, stream.child(PATHS), model, data, info, entry)
    search = stream.child(SEARCH)
    _, best = query.choose(engine, search, sampled, model, data, entry)
    function, _ = query.landscape(engine, search, sampled, model, data, entry, engine.region)
    values = function.values(further) * _saved(engine, model, here[None], further)
    return bool(np.max(values) >= best)


def _may_be_best(engine: Engine, model: Model, data: Data, here: Float[np.ndarray, " D"]) -> bool:
    """Whether a trial may well be the best of all, among those that are likely feasible.

    A trial where a whole one was before would only repeat it: its gain decides.
    """
    own = engine.at_target(here[None])
    if among(own[0], data.X[engine.whole(data.X)]):
        return False
    tried = goals.best_data(engine.sought, model.wanted, model.posteriors, data)[:1]
    both = np.concatenate([own, tried])
    posterior = model.objective.posterior
    worth = mean_at(posterior, both)
    costs = np.exp(np.sum([price.log_cost(data.points)[0] for price in engine.prices], axis=0))
    if np.mean(costs) <= AFFORDED:
        means, variance = posterior.moments(own)
        worth[0] += HOPE * np.sqrt(np.mean(variance) + np.var(means.mean(1)))
    if model.wanted.constraints:
        likely = Feasibility.of(model, wider=False).chance(both) > goals.LIKELY
        worth = np.where(likely, worth, -np.inf)
    return bool(worth[0] >= worth[1] - ROUNDED and worth[0] > -np.inf)


def _saved(
    engine: Engine,
    model: Model,
    here: Float[np.ndarray, "h D"],
    further: Float[np.ndarray, "k D"],
) -> Float[np.ndarray, " k"]:
    """How many times as much a whole look costs as continuing from the look `here`."""
    if model.cost is None:
        return np.ones(len(further))
    looks = (engine.at_cheapest(here), here, further)
    least, before, after = (np.exp(-model.cost.log_weight(X)) for X in looks)
    return np.asarray(after / np.maximum(after - before, least))


class Taken(NamedTuple):
    """A told trial that is continued, its next look, and the gain per cost of that look."""

    trial: int
    x: Float[np.ndarray, " D"]
    value: float


@engine_work
def taken_up(
    engine: Engine, stream: Stream, shared: Shared, data: Data, resting: Sequence[int]
) -> Taken | None:
    """The resting trial whose next look gains most per cost, if it gains more than a new trial.

    Args:
        engine: the engine.
        stream: the random numbers of the suggestion that was just made.
        shared: what that suggestion has computed.
        data: the data of that suggestion.
        resting: told trials that can be continued.
    """
    entry, model, sampled = engine.acquisition, shared.model, shared.sampled
    best = shared.info.value
    if not (isinstance(entry, Entry) and entry.looks) or shared.info.kind != "acquire":
        return None
    assert model is not None
    assert sampled is not None
    assert best is not None
    of, looks = _further(engine, data.points[list(resting)])
    if len(of) == 0:
        return None
    search = stream.child(SEARCH)
    function, _ = query.landscape(engine, search, sampled, model, data, entry, engine.region)
    last = data.points[list(resting)][of]
    saved = _saved(engine, model, last, looks)
    rough = np.nan_to_num(function.rough.screen(looks) * saved, nan=-np.inf)
    few = np.argsort(-rough, kind="stable")[:FINALISTS]
    values = function.values(looks[few]) * saved[few]
    first = int(np.argmax(values))
    if not values[first] >= best:
        return None
    chosen = few[first]
    return Taken(resting[of[chosen]], looks[chosen], float(values[first]))


def _further(
    engine: Engine, X: Float[np.ndarray, "t D"]
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, "k D"]]:
    """Looks between each point's fidelity and the target, and the point to which each belongs.

    Except for the target itself, each costs at least APART times as much as the point's own look:
    two looks that are close together say little more than one.
    """
    columns, target = list(engine.targets), np.array(list(engine.targets.values()))
    share = np.tile(np.arange(1, LEVELS + 1) / LEVELS, len(X))
    of, looks = np.repeat(np.arange(len(X)), LEVELS), np.repeat(X, LEVELS, axis=0)
    legal, last = looks.copy(), looks.copy()
    legal[:, columns] += share[:, None] * (target - last[:, columns])
    looks[:, columns] = engine.anywhere.made_legal(legal)[:, columns]
    costs = [np.sum([p.log_cost(Z)[0] for p in engine.prices], axis=0) for Z in (last, looks)]
    far = (share == 1) | (costs[1] >= costs[0] + np.log(APART))
    closer = (looks - last)[:, columns] * np.where(target == 0, -1.0, 1.0)
    kept = far & (closer >= 0).all(1) & (closer > 0).any(1) & engine.anywhere.legal(looks)
    rows = np.unique(np.column_stack([of[kept], looks[kept]]), axis=0)
    return rows[:, 0].astype(int), rows[:, 1:]
