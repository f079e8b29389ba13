"""Whether a trial that was looked at goes on: what its next look gains, beside the best new trial.

A look at u' after one at u costs what is between them, cost(u') − cost(u), and at least what the
cheapest look costs, as a program has to start. A trial that is being looked at goes on while the
largest gain per cost of its further looks is at least that of the best query anywhere, and always
while it is predicted to be the best of all that were tried. One that rests, and can be taken up
again, is compared by its gain per cost alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optpair.acquisition.registry import Entry
from optpair.engine import fitting, goals, query, sampling
from optpair.engine.engine import HYPER, PATHS, SEARCH, Engine
from optpair.engine.model import Memory, Model, mean_at
from optpair.engine.plate import Info, Shared
from optpair.shapes import Float, Int
from optpair.streams import Stream
from optpair.threads import engine_work
from optpair.trials.data import APART, Data

LEVELS = 8  # looks that are compared on the way of a trial to the target
FINALISTS = 32  # of them, over all trials, whose gains are computed to the last digit


@engine_work
def goes_on(
    engine: Engine,
    stream: Stream,
    memory: Memory,
    data: Data,
    here: Float[np.ndarray, " D"],
    further: Float[np.ndarray, "k D"],
) -> bool:
    """Whether a trial that was looked at `here` is worth one of the `further` looks at it."""
    entry = engine.acquisition
    if data.told < engine.initial or not (isinstance(entry, Entry) and entry.looks):
        return True
    info = Info()
    memory = fitting.update(engine, stream.child(HYPER), memory, data, info)
    model = fitting.condition(engine, memory, data, info)
    posterior, own = model.objective.posterior, engine.at_target(here[None])
    tried = goals.best_data(engine.sought, model.wanted, model.posteriors, data)
    if mean_at(posterior, own)[0] >= mean_at(posterior, tried)[0]:
        return True
    sampled = sampling.sample(engine, stream.child(PATHS), model, data, info, entry)
    search = stream.child(SEARCH)
    _, best = query.choose(engine, search, sampled, model, data, entry)
    function, _ = query.landscape(engine, search, sampled, model, data, entry, engine.region)
    values = function.values(further) * _saved(engine, model, here[None], further)
    return bool(np.max(values) >= best)


def _saved(
    engine: Engine,
    model: Model,
    here: Float[np.ndarray, "h D"],
    further: Float[np.ndarray, "k D"],
) -> Float[np.ndarray, " k"]:
    """How many times as much whole looks cost as what is beyond the look `here`."""
    if model.cost is None:
        return np.ones(len(further))
    looks = (engine.at_cheapest(here), here, further)
    least, before, after = (np.exp(-model.cost.log_weight(X)) for X in looks)
    return np.asarray(after / np.maximum(after - before, least))


class Taken(NamedTuple):
    """A told trial that is taken up again, its next look, and what that gains per cost."""

    trial: int
    x: Float[np.ndarray, " D"]
    value: float


@engine_work
def taken_up(
    engine: Engine, stream: Stream, shared: Shared, data: Data, resting: Sequence[int]
) -> Taken | None:
    """The resting trial whose next look gains most per cost, where that is more than a new trial's.

    Args:
        engine: the engine.
        stream: that of the suggestion which has just been made.
        shared: what that suggestion has made on its way.
        data: what it has seen.
        resting: told trials that can go on.
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
    """Looks on the way from each point to the target, and whose they are: far enough, or its end.

    They are taken to cost APART times as much as those before: looks that are close say little
    more than one.
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
