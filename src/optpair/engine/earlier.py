"""Earlier studies, each fitted by itself, on the scale of the present values.

Each study has its own most likely hyperparameters. They give the noise of its values, length scales
that the present ones may resemble, and predictions. The predictions show in which units the study
is: its values become α + β y, with α and β such that the predictions at the points of the present
trials have the mean and the spread of the values there. Two studies of one function then look
alike, whatever their units, and the values of both pass through the same transform.

If there are many rows, the most informative are kept: one by one, the row with the largest

    log √v + z

where v is the variance left at its point by the rows kept so far, and z is its own value, both in
units of the study. Such a row is far from the others, and good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference.mode import fit_mode
from optpair.gp.kernels import Given
from optpair.gp.likelihood import Sample
from optpair.gp.linalg import inverse_factors
from optpair.gp.posterior import Posterior, fit
from optpair.gp.priors import LogNormal
from optpair.gp.process import Process
from optpair.problem.defaults import LARGEST
from optpair.runtime.shapes import Float, Int
from optpair.trials.data import Measured, thinned
from optpair.trials.earlier import Lent
from optpair.trials.transform import Scaling

ROWS = 96  # rows kept of all studies together
LEAST = 6  # rows of a study, at least
STUDIES = ROWS // LEAST  # studies at most: those with most rows
FEWEST = 3  # values: a study with fewer is ignored
FITTED = 128  # rows used to find a study's own hyperparameters
CHOSEN_FROM = 2048  # rows of a study that are considered
CLOSE = 0.5  # the standard deviation of log ℓ around the log ℓ of a study with many rows
FEW = 8.0  # and how it grows with parameters per row
RELATED = 0.9  # r of every study, before anything is known about it
SMALLEST = 0.02  # of a study's own scale: its predictions may be the same at all trials
ABSURD = 19.0  # units below the knee: values there say nothing about the units


Match = tuple[float, float]
"""α and β."""


@dataclass(frozen=True, eq=False)
class Source:
    """One earlier study of one outcome, to be maximised: the rows kept, and its own model."""

    name: str
    count: int
    """How many rows have a value; not all may be kept."""
    X: Float[np.ndarray, "k D"]
    y: Float[np.ndarray, " k"]
    noise: Float[np.ndarray, " k"]
    """Standard deviations."""
    scaling: Scaling
    """Of its own values."""
    model: Posterior
    log_lengthscale: Float[np.ndarray, " d"]
    unsure: Float[np.ndarray, " d"]

    def matched(self, measured: Measured, scaling: Scaling) -> Match:
        """The units in which its predictions resemble the present values."""
        counted = ~measured.doubted
        usual = counted & (scaling.depth(measured.y) <= ABSURD)
        some = usual if np.sum(usual) >= FEWEST else counted
        y, X = measured.y[some], measured.X[some]
        if len(y) == 0:
            return 0.0, 1.0
        means, _ = self.model.moments(X)
        predicted = self.scaling.restore(means[0, 0])
        with np.errstate(over="ignore", invalid="ignore"):
            least = SMALLEST * self.scaling.scale
            factor = float(np.std(y) / max(float(np.std(predicted)), least))
            shift = float(np.mean(y) - factor * np.mean(predicted))
        return (shift, factor) if np.isfinite(shift) else (float(np.mean(y)), 0.0)


@dataclass(frozen=True, eq=False)
class Borrowed:
    """Earlier studies of one outcome."""

    sources: tuple[Source, ...]

    def matches(self, measured: Measured, scaling: Scaling) -> tuple[Match, ...]:
        """The units of each study that match the present values."""
        return tuple(source.matched(measured, scaling) for source in self.sources)

    def given(self, scaling: Scaling, matches: Sequence[Match]) -> Given:
        """The rows of all studies, in the units and on the scale of the present study."""
        pairs = list(zip(self.sources, matches, strict=True))
        with np.errstate(over="ignore"):
            y = [np.clip(m[0] + m[1] * source.y, -LARGEST, LARGEST) for source, m in pairs]
            noise = [np.minimum(m[1] * source.noise, LARGEST**0.5) for source, m in pairs]
        values, noises = np.concatenate(y), np.concatenate(noise) ** 2
        return Given(
            np.concatenate([source.X for source in self.sources]),
            scaling.standardise(values),
            scaling.variance(noises, values),
            np.repeat(np.arange(len(pairs)), [len(source.y) for source in self.sources]),
            np.stack([source.log_lengthscale for source in self.sources]),
            np.stack([source.unsure for source in self.sources]),
        )

    @property
    def alone(self) -> Given:
        """The rows of all studies, each on its own scale: before there are present values."""
        own = [(s.scaling.loc / s.scaling.scale, 1 / s.scaling.scale) for s in self.sources]
        return self.given(Scaling(), [(-shift, factor) for shift, factor in own])


class Lending(NamedTuple):
    """What an earlier study lends to a model."""

    explains: float
    """How much is borrowed: the share of the present function's variance, at the points of the
    trials, that the study's rows alone explain, averaged over the hyperparameters."""
    alike: float
    """r², the share of its function's variance that it has in common with the present function,
    averaged over the hyperparameters."""
    used: int
    """Rows that the model uses,"""
    rows: int
    """of this many that have a value."""


def lending(lent: Borrowed, posterior: Posterior) -> dict[str, Lending]:
    """What each study lends, by name."""
    links, covariance = posterior.links, posterior.covariance
    assert links is not None
    found, begin = {}, 0
    for source in lent.sources:
        rows = slice(begin, begin + len(source.y))
        r, begin = links.loading[:, rows], rows.stop
        K = r[:, :, None] * r[:, None] * covariance.between(source.X, source.X).K  # (R3)
        cross = r[:, None] * covariance.between(posterior.told, source.X).K
        inverse = inverse_factors(K + links.apart[:, rows, rows])
        share = np.sum((cross @ inverse.mT) ** 2, -1) / covariance.diagonal(posterior.told)
        found[source.name] = Lending(
            float(np.clip(np.mean(share), 0.0, 1.0)),
            float(np.mean(r**2)),
            len(source.y),
            source.count,
        )
    return found


def borrowed(lent: Sequence[Lent], column: int, process: Process, *, warp: bool) -> Borrowed | None:
    """What earlier studies say about an outcome; None if that is too little."""
    measured = [_measured(own, column) for own in lent]
    order = sorted(range(len(lent)), key=lambda t: (-len(measured[t].y), t))
    chosen = sorted(t for t in order[:STUDIES] if len(measured[t].y) >= FEWEST)
    if not chosen:
        return None
    most = max(ROWS // len(chosen), LEAST)
    names = [lent[t].name for t in chosen]
    pairs = zip(names, (measured[t] for t in chosen), strict=True)
    return Borrowed(tuple(_source(name, own, process, most, warp) for name, own in pairs))


def _measured(own: Lent, column: int) -> Measured:
    """The rows of a study with a value of an outcome."""
    there = ~np.isnan(own.Y[:, column])
    y, noise_var = own.Y[there, column], own.noise_var[there, column]
    return Measured(own.X[there], y, noise_var, np.zeros(len(y), dtype=bool), np.arange(len(y)))


def _source(name: str, every: Measured, process: Process, most: int, warp: bool) -> Source:
    scaling, few = Scaling.of(every.y, warp), thinned(every, CHOSEN_FROM)
    sample = _standardised(thinned(few, FITTED), scaling, process)
    theta = fit_mode(sample, process)
    hypers = process.table.hyperparameters(theta[None])
    model = fit(hypers, sample, kernel=process.kernel, columns=process.columns)
    a, noise, mean = (float(v[0]) for v in (hypers.outputscale, hypers.noise, hypers.mean))
    candidates = _standardised(few, scaling, process)
    known = np.where(np.isnan(candidates.noise_var), noise, candidates.noise_var) / a
    unit = Sample(candidates.X, (candidates.y - mean) / np.sqrt(a), known)
    rows = _telling(unit, lambda X, Y: model.covariance.between(X, Y).K[0] / a, most)
    raw = np.where(np.isnan(few.noise_var), noise**0.5 * scaling.scale, np.sqrt(few.noise_var))
    return Source(
        name,
        len(every.y),
        few.X[rows],
        few.y[rows],
        raw[rows],
        scaling,
        model,
        process.table.parts(theta)["lengthscale"],
        _unsure(every.X, process),
    )


def _standardised(measured: Measured, scaling: Scaling, process: Process) -> Sample:
    """Standardised values, none with less noise than the model can resolve."""
    noise_var = scaling.variance(measured.noise_var, measured.y)
    known = np.maximum(noise_var, process.prior.noise_floor)
    return Sample(measured.X, scaling.standardise(measured.y), known)


def _unsure(X: Float[np.ndarray, "n D"], process: Process) -> Float[np.ndarray, " d"]:
    """Standard deviations of log ℓ: large with few rows, the prior's if a parameter is constant."""
    owner, varied = np.asarray(process.columns), np.ptp(X, axis=0) > 0
    seen = np.array([varied[owner == k].any() for k in range(process.d)])
    prior = process.prior.lengthscale
    widest = prior.scale if isinstance(prior, LogNormal) else 1.0
    return np.where(seen, min(CLOSE * np.sqrt(1 + FEW * process.d / len(X)), widest), widest)


Correlation = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _telling(sample: Sample, correlation: Correlation, most: int) -> Int[np.ndarray, " k"]:
    """The most informative rows, in their order, by a pivoted factorisation."""
    n = len(sample.y)
    if n <= most:
        return np.arange(n)
    left, factor, chosen = np.ones(n), np.zeros((n, most)), list[int]()
    for k in range(most):
        score = np.log(np.maximum(left, 1e-12)) / 2 + sample.y
        score[chosen] = -np.inf
        i = int(np.argmax(score))
        K = correlation(sample.X, sample.X[i : i + 1])[:, 0]
        pivot = np.sqrt(max(left[i], 0.0) + sample.noise_var[i])
        factor[:, k] = (K - factor[:, :k] @ factor[i, :k]) / pivot
        left -= factor[:, k] ** 2
        chosen.append(i)
    return np.sort(chosen)


def beforehand(process: Process) -> Posterior:
    """What earlier studies alone say before the first trial, if all of them are related."""
    given, blocks = process.kernel.given, process.table.blocks
    values = {block.name: block.transform.value(np.zeros(1)) for block in blocks}
    values |= {name: np.full(1, RELATED) for name in given.names}
    values["lengthscale"] = np.exp(given.log_lengthscale.mean(0))[None]
    nothing = Sample(given.X[:0], given.y[:0], given.y[:0])
    hypers, kernel = Hyperparameters(**values), process.kernel
    return fit(hypers, nothing, kernel=kernel, columns=process.columns)


def check_matches(given: object, count: int) -> tuple[Match, ...]:
    """The units of so many studies, as they were saved; ValueError if they are not units."""
    found = np.asarray(given, dtype=np.float64).reshape(-1, 2)
    if len(found) != count or not np.all(np.isfinite(found)):
        raise ValueError(f"matches must be two numbers for each of {count} studies, not {given!r}")
    return tuple((float(shift), float(factor)) for shift, factor in found)
