"""Steps: from data to the next point to evaluate.

Every step is a pure function of a stream, a memory and data. The memory (warm chains) makes the
next step cheaper, but no more correct: an engine that starts cold from the same data gives answers
as good.
"""

from __future__ import annotations

import numpy as np

from optpair.acquisition.registry import Entry
from optpair.cube.cube import among
from optpair.engine import fitting, focus, optimum, query, sampling
from optpair.engine.design import design_point
from optpair.engine.engine import COIN, FOCUS, HYPER, PATHS, SEARCH, Engine
from optpair.engine.model import Memory, Model
from optpair.engine.plate import REPEATED, SAME_OPTIMUM, Info, Shared
from optpair.engine.repeats import unrepeated
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.trials.data import Data


def suggest(
    engine: Engine,
    stream: Stream,
    memory: Memory,
    data: Data,
    asked: int,
    design: Stream,
    shared: Shared | None = None,
) -> tuple[Float[np.ndarray, " D"], Memory, Info]:
    """The next point to evaluate; `asked` counts the suggestions made before.

    `shared` is what earlier suggestions of the same plate have computed; their points are pending.
    """
    shared = shared or Shared()
    x, memory = _suggested(engine, stream, memory, data, asked, design, shared)
    shared.data, shared.kinds = data, shared.kinds | {shared.info.kind}
    shared.points.append(x)
    return x, memory, shared.info


def _suggested(
    engine: Engine,
    stream: Stream,
    memory: Memory,
    data: Data,
    asked: int,
    design: Stream,
    shared: Shared,
) -> tuple[Float[np.ndarray, " D"], Memory]:
    info = shared.info
    if not isinstance(engine.acquisition, Entry):
        return engine.acquisition(design, engine.asked_from(data), asked), memory
    if data.told < engine.initial:
        return design_point(engine, design, data, asked, shared), memory
    data = fitting.judge(engine, data, info)
    confirm = not (engine.once or "confirm" in shared.kinds)
    again = _to_repeat(engine, data) if confirm else None
    if again is not None:
        info.kind = "confirm"
        return again, memory
    share = engine.exploit(data) * _share_spent(engine, data)
    exploit = stream.child(COIN).draw().uniform() < shared.exploiting(share)
    memory = fitting.update(engine, stream.child(HYPER), memory, data, info)
    if shared.model is None:
        shared.model = fitting.condition(engine, memory, data, info)
    model = shared.model
    if exploit:
        with info.stage("maximise"):
            x = optimum.predicted(
                engine, stream.child(SEARCH), model, data, known=engine.known(data)
            )
        if not (among(x, data.pending, SAME_OPTIMUM) or among(x, engine.known(data), REPEATED)):
            info.kind = "exploit"
            return x, memory
    info.kind = "acquire"
    return _acquired(engine, engine.acquisition, stream, model, data, shared), memory


def _acquired(
    engine: Engine, entry: Entry, stream: Stream, model: Model, data: Data, shared: Shared
) -> Float[np.ndarray, " D"]:
    """Where the acquisition function is largest, in the part of the space that is looked at."""
    info = shared.info
    if shared.region is None:
        shared.region = focus.part(engine, stream.child(FOCUS), model, data)
    engine = engine.within(shared.region)
    sampled = sampling.shared_by_plate(engine, stream.child(PATHS), data, shared, entry)
    search = stream.child(SEARCH)
    with info.stage("maximise"):
        x, info.value = query.choose(engine, search, sampled, model, data, entry, shared)
    return x


def _to_repeat(engine: Engine, data: Data) -> Float[np.ndarray, " D"] | None:
    """A point to repeat before anything else: a doubted one, or the best."""
    doubted = _unconfirmed(engine, data)
    return unrepeated(engine, data) if doubted is None else doubted


def _unconfirmed(engine: Engine, data: Data) -> Float[np.ndarray, " D"] | None:
    """The legal point of the best doubted value that was not repeated yet."""
    for column in engine.objectives:
        rows = np.flatnonzero(data.doubted[:, column])
        rows = rows[engine.region.legal(data.X[rows])]
        for row in rows[np.argsort(-data.Y[rows, column], kind="stable")]:
            others = np.delete(data.X, row, axis=0)
            if not among(data.X[row], np.concatenate([others, data.pending, data.failed])):
                return data.X[row]
    return None


def _share_spent(engine: Engine, data: Data) -> float:
    """The average cost of a trial, relative to one at the target that confirms the best point.

    γ is a share of the cost that goes to confirming, not a share of the trials.
    """
    if not engine.prices:
        return 1.0
    logs = np.sum([price.log_cost(data.points)[0] for price in engine.prices], axis=0)
    return float(np.mean(np.exp(np.minimum(logs, 0.0))))
