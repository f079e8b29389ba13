"""Whether a trial that is looked at goes on: what its next look gains, beside the best new trial.

A look at u' after one at u costs what is between them, cost(u') − cost(u). A trial goes on while
the largest gain per cost of its further looks is at least that of the best query anywhere, and
always while it is predicted to be the best of all that were tried.
"""

from __future__ import annotations

import numpy as np

from optpair.acquisition.registry import Entry
from optpair.engine import fitting, goals, query, sampling
from optpair.engine.engine import HYPER, PATHS, SEARCH, Engine
from optpair.engine.model import Memory, mean_at
from optpair.engine.plate import Info
from optpair.shapes import Float
from optpair.streams import Stream
from optpair.threads import engine_work
from optpair.trials.data import Data

SLIGHTEST = 1e-3  # of its cost, which a look beyond another one has at least


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
    values = function.values(further)
    if model.cost is not None:
        before, after = (np.exp(-model.cost.log_weight(X)) for X in (here[None], further))
        values = values * after / np.maximum(after - before, SLIGHTEST * after)
    return bool(np.max(values) >= best)
