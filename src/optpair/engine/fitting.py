"""Fitting: values are judged, hyperparameters updated, and posteriors made from both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optpair.acquisition.cost import Cost, fit_cost
from optpair.acquisition.weights import Success, fit_success
from optpair.engine import budget, goals, warps
from optpair.engine.doubt import doubted
from optpair.engine.engine import Engine
from optpair.engine.model import Memory, Model, OutcomeMemory, OutcomeModel
from optpair.engine.plate import Info
from optpair.engine.repeats import settle
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.likelihood import Sample
from optpair.gp.posterior import Posterior, check_factor, fit
from optpair.gp.process import Process
from optpair.problem.outcomes import Objective, Outcome
from optpair.runtime.streams import Stream
from optpair.trials.data import Data, Measured, thinned
from optpair.trials.transform import MOST_NOISE, Scaling


def judge(engine: Engine, data: Data, info: Info) -> Data:
    """The data, with marks on values that are exact or more likely slips.

    With several fidelities nothing is marked: looks at one trial share their luck, and a look at a
    higher fidelity may be far better than all others.
    """
    settings = engine.settings
    if engine.targets or not engine.inference.standardises:
        return data
    if settings.repeat:
        data = settle(data)
    if not settings.doubt:
        return data
    with info.stage("doubt"):
        for column in engine.objectives:
            measured = data.outcome(column)
            found = doubted(measured, engine.process, engine.compresses, settings.most_rows)
            data = data.doubting(column, found)
    return data


def update(engine: Engine, stream: Stream, memory: Memory, data: Data, info: Info) -> Memory:
    """Bring each outcome's hyperparameters, and the scaling they belong to, up to date."""
    updated = {}
    for column, name in enumerate(engine.outcomes):
        own = stream.child(column) if column else stream
        with info.stage("hyperparameters"):
            before, measured = memory.get(name), data.outcome(column)
            updated[name] = _updated(engine, own, name, before, measured, info)
    return updated


def _updated(
    engine: Engine,
    stream: Stream,
    name: str,
    before: OutcomeMemory | None,
    measured: Measured,
    info: Info,
) -> OutcomeMemory:
    n, inference, outcome = len(measured.y), engine.inference, engine.outcomes[name]
    if before is not None and n - before.told < engine.settings.refresh_every:
        return before
    scaling = Scaling()
    if inference.standardises:
        scaling = _scaling(engine, measured, outcome) if n else goals.unmeasured(outcome)
    lent = engine.earlier.get(name)
    matches = () if lent is None else lent.matches(measured, scaling)
    several = bool(engine.targets) and measured.several
    after = OutcomeMemory(n, scaling, None, matches, several)
    process = engine.process_of(name, after)
    state = None
    follows = before is not None and before.several == several
    if before is not None and follows and not (several and budget.anew(before.told, n)):
        ratio = before.scaling.scale / scaling.scale
        offset = (before.scaling.loc - scaling.loc) / scaling.scale
        state = inference.rescaled(before.state, ratio, offset, process)
    sample = _thinned(engine, measured, scaling)
    new = n - (0 if before is None else before.told)
    found = inference.update(stream, state, sample, process, new)
    info.mixing = found.mixing
    return replace(after, state=found.state)


def _scaling(engine: Engine, measured: Measured, outcome: Outcome) -> Scaling:
    """The scaling of an outcome's values."""
    if not engine.settings.warp:
        return Scaling.of(measured.y[~measured.doubted], warp=False)
    columns = engine.process.columns
    if not isinstance(outcome, Objective):
        return warps.around(measured, outcome.limits, columns)
    if engine.targets:
        return warps.of_looks(measured, columns, engine.targets)
    return Scaling.of(measured.y[~measured.doubted])


def condition(
    engine: Engine, memory: Memory, data: Data, info: Info, wider: Stream | None = None
) -> Model:
    """The posterior of each outcome, and the chance of success if some trials failed.

    `wider` draws more hyperparameter sets for the intervals of an answer. With very many data the
    few sets at hand serve for those too: drawing more would double the cost of the answer.
    """
    measured = [data.outcome(column) for column in range(len(engine.outcomes))]
    known = [memory[name] for name in engine.outcomes]
    processes = [engine.process_of(name, memory[name]) for name in engine.outcomes]
    pairs = list(zip(measured, known, strict=True))
    samples = [_standardised(engine, own, of.scaling) for own, of in pairs]
    rows = max(len(own.y) for own in measured) + max(len(data.pending), len(data.failed))
    with info.stage("condition"):
        hypers = [
            engine.inference.hyperparameters(of.state, process)
            for of, process in zip(known, processes, strict=True)
        ]
        posteriors = fitted(engine, hypers, samples, processes, rows)
    wide: list[Posterior] | list[None] = [None] * len(known)
    if wider is not None and budget.scarce(rows, hypers[0].sets, engine.settings.most_rows):
        wide = posteriors if engine.inference.standardises else wide
    elif wider is not None:
        more = [
            engine.inference.wider(
                wider.child(column), of.state, _thinned(engine, own, of.scaling), processes[column]
            )
            for column, (own, of) in enumerate(pairs)
        ]
        found = [hypers for hypers in more if hypers is not None]
        wide = fitted(engine, found, samples, processes, rows) if found else wide
    scalings, outcomes = [of.scaling for of in known], list(engine.outcomes.values())
    models = tuple(
        OutcomeModel(scaling, posterior, more, outcome.reach, engine.cube.parameters)
        for scaling, posterior, more, outcome in zip(
            scalings, posteriors, wide, outcomes, strict=True
        )
    )
    first = engine.objectives[0]
    worst = float(np.min(scalings[first].standardise(measured[first].y), initial=np.inf))
    weights = success(engine, data, info), _cost(engine, data, info)
    model = Model(models, *weights, worst, goals.wanted(outcomes, scalings))
    info.jitter = max(info.jitter, model.jitter)
    return model


def fitted(
    engine: Engine,
    hypers: list[Hyperparameters],
    samples: list[Sample],
    processes: list[Process],
    rows: int,
) -> list[Posterior]:
    """Posteriors under every set or, if data are many, under some; given sets are all used.

    Every outcome has the same sets.
    """
    if engine.inference.standardises:
        stride = budget.set_stride(rows, hypers[0].sets, engine.settings.most_rows)
        hypers = [own.some(slice(None, None, stride)) for own in hypers]
    posteriors = [
        fit(
            own,
            sample,
            kernel=process.kernel,
            columns=process.columns,
            growth=process.growth,
        )
        for own, sample, process in zip(hypers, samples, processes, strict=True)
    ]
    sound = np.all([posterior.sound for posterior in posteriors], axis=0)
    if engine.inference.standardises and sound.any() and not sound.all():
        return [p.of_sets(sound) for p in posteriors]  # a set that was sampled can be spared
    for posterior in posteriors:
        check_factor(posterior)
    return posteriors


def success(engine: Engine, data: Data, info: Info) -> Success | None:
    """The chance that a trial succeeds, if some have failed."""
    if len(data.failed) == 0:
        return None
    with info.stage("failures"):
        return fit_success(engine.process, data.X, data.failed, engine.settings.most_rows)


def _cost(engine: Engine, data: Data, info: Info) -> Cost | None:
    """What queries cost, if costs differ."""
    with info.stage("costs"):
        return fit_cost(engine.process, data.X, data.cost, engine.prices, engine.settings.most_rows)


def _standardised(engine: Engine, measured: Measured, scaling: Scaling) -> Sample:
    """Standardised values or, if hyperparameters are known, values in their units."""
    noise_var, floor = measured.noise_var, engine.process.prior.noise_floor
    if engine.inference.standardises:
        noise_var = scaling.variance(noise_var, measured.y)
    else:
        known = engine.inference.hyperparameters({}, engine.process)
        floor *= float(np.max(known.outputscale))
    y = np.where(measured.doubted, 0.0, scaling.standardise(measured.y))
    noise_var = np.where(measured.doubted, MOST_NOISE, noise_var)
    run = measured.trial if engine.targets else None
    return Sample(measured.X, y, np.maximum(noise_var, floor), run)


def _thinned(engine: Engine, measured: Measured, scaling: Scaling) -> Sample:
    """The rows from which hyperparameters are inferred."""
    return _standardised(engine, thinned(measured, engine.settings.most_rows), scaling)
