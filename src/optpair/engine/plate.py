"""Plates: what the suggestions of one plate share, and how each was made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from optpair.cube.cube import among
from optpair.cube.region import Region
from optpair.engine.model import Model
from optpair.gp.inference import Mixing
from optpair.gp.paths import Paths
from optpair.gp.posterior import Posterior
from optpair.optima.base import Optima
from optpair.runtime.shapes import Float
from optpair.runtime.streams import Stream
from optpair.trials.data import Data

FEWER = 4  # one screened point in so many is screened again for the rest of a plate
REPEATED = 1e-5  # of the cube: this close to an exact value, another one teaches nothing
AS_OFTEN = 2  # a plate exploits this often, compared with as many trials one by one
SAME_OPTIMUM = 1e-3  # of the cube: two climbs to the same point end this close


@dataclass
class Info:
    """How a step was made: its purpose, how it went, and where the time was spent."""

    kind: Literal["design", "confirm", "exploit", "acquire"] = "design"
    value: float | None = None  # of the acquisition function (in nats for JES)
    continues: int | None = None  # the told trial that is continued, if one is
    mixing: Mixing | None = None
    jitter: float = 0.0  # the largest relative jitter that a factorisation needed
    gaps: Float[np.ndarray, " L"] | None = field(default=None, repr=False)
    """How far each path's optimum was above the best tried point, in raw units, when optima were
    last sampled; infinite if no point of a path is feasible."""
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage."""
        begin = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


class Sampled(NamedTuple):
    """Posteriors with pending points in them, and the paths and optima that were drawn."""

    posteriors: tuple[Posterior, ...]
    paths: tuple[Paths, ...] | None = None
    optima: Optima | None = None
    anchors: Float[np.ndarray, "A D"] | None = None
    """The best data, without pending points, if optima were searched for around them."""


@dataclass
class Shared:
    """What the suggestions of one plate share: the model, the paths and their optima."""

    data: Data | None = None  # the data that the last of them has seen
    model: Model | None = None
    region: Region | None = None  # the part of the space in which the plate is chosen
    sampled: Sampled | None = None
    pending: int = 0  # points whose fantasies are in the posteriors
    points: list[Float[np.ndarray, " D"]] = field(default_factory=list)  # the plate so far
    promising: Float[np.ndarray, "N D"] | None = None  # the best points that the first has screened
    kinds: set[str] = field(default_factory=set)
    size: int = 1  # how many suggestions the plate has, where that is known
    info: Info = field(default_factory=Info)

    def exploiting(self, share: float) -> float:
        """The probability that the next suggestion exploits, for a share γ of all trials.

        A plate exploits once at most: of n suggestions one does with a probability of 2nγ, or
        surely, and its last one makes up for the others. A plate is a whole round, after which the
        best predicted point should have been tried: where values are exact, the answer is a trial.
        """
        if "exploit" in self.kinds:
            return 0.0
        if self.size == 1 or len(self.points) < self.size - 1:
            return share
        none = (1 - share) ** (self.size - 1)
        wanted = min(AS_OFTEN * self.size * share, 1.0)
        return 1 - (1 - wanted) / none if none > 0 else 1.0

    def serves(self, data: Data) -> bool:
        """Whether only pending points were added since, those of the plate among them."""
        before = self.data
        if before is None or len(data.pending) < len(before.pending):
            return False
        out = data.pending[: len(before.pending)]
        return ended_alike(before, data) and np.array_equal(before.pending, out)


def ended_alike(one: Data, other: Data) -> bool:
    """Whether the same trials have ended in the same ways."""
    names = ("X", "Y", "noise_var", "failed", "trial", "cost")
    parts = ((getattr(one, name), getattr(other, name)) for name in names)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in parts)


def gaps_of(model: Model, sampled: Sampled) -> Float[np.ndarray, " L"] | None:
    """What each path has left to win at the best tried point, if optima were drawn.

    It is infinite if no point of a path is feasible; a front has no such number.
    """
    (_, paths, optima, anchors), wanted = sampled, model.wanted
    if optima is None or paths is None or anchors is None or wanted.goal == "front":
        return None
    (column,), objective = wanted.objectives, model.objective
    here = objective.restore(paths[column].at(anchors[:1]).reshape(-1))
    best = objective.restore(optima.f[:, :, 0, column].reshape(-1))
    return np.where(optima.mask[:, :, 0].reshape(-1), best - here, np.inf)


def fantasised(
    stream: Stream,
    posteriors: tuple[Posterior, ...],
    paths: tuple[Paths, ...],
    pending: Float[np.ndarray, "p D"],
) -> tuple[Posterior, ...]:
    """The posterior of each outcome, conditioned on the pending points."""
    return tuple(
        _fantasised(stream.child(2, column), posterior, path, pending)
        for column, (posterior, path) in enumerate(zip(posteriors, paths, strict=True))
    )


def _fantasised(
    stream: Stream, posterior: Posterior, paths: Paths, pending: Float[np.ndarray, "p D"]
) -> Posterior:
    """Conditioned on the pending points, each path supplying its own noisy value there."""
    if len(pending) == 0:
        return posterior
    M, P = paths.shape
    noise = np.broadcast_to(np.sqrt(posterior.noise_at(pending)), (M, len(pending)))
    white = stream.draw().standard_normal((len(pending), M, P))
    values = paths.at(pending)
    grown = posterior.with_fantasies(P)
    for i, x in enumerate(pending):
        grown = grown.append(x, values[:, :, i] + noise[:, i, None] * white[i])
    return grown


def promising(
    points: Float[np.ndarray, "N D"], values: Float[np.ndarray, " N"], starts: int
) -> Float[np.ndarray, "n D"]:
    """The best of each group, from which climbs start.

    A point hardly ever teaches more once others are pending, so the rest can be left out.
    """
    clean = np.nan_to_num(values, nan=-np.inf)
    groups = np.array_split(np.arange(len(points)), starts)
    ranked = [group[np.argsort(-clean[group], kind="stable")] for group in groups]
    return points[np.concatenate([group[: -(-len(group) // FEWER)] for group in ranked])]


def taken(
    x: Float[np.ndarray, " D"],
    known: Float[np.ndarray, "k D"],
    own: Float[np.ndarray, "o D"],
    apart: float = SAME_OPTIMUM,
) -> bool:
    """Whether an exact value is known this close by, or another point of the plate is there."""
    return among(x, known, REPEATED) or among(x, own, apart)
