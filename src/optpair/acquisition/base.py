"""What every acquisition function is, and what it may be built from.

An acquisition function gives its value and its partial derivatives by the few numbers that it
depends on: means and variances, or covariances with sampled optima. The chain rule from there to
the point is written once, here, with the posterior's `pull`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optpair.cube.candidates import space_filling
from optpair.cube.climb import PRECISE, Bends, maximise
from optpair.cube.cube import Cube
from optpair.cube.lattice import lattice
from optpair.cube.region import Region
from optpair.gp.paths import Paths
from optpair.gp.posterior import BLOCK, Posterior, as_points
from optpair.optima.base import Optima, Wanted
from optpair.runtime.shapes import Bool, Float, Int
from optpair.runtime.streams import Stream
from optpair.runtime.threads import engine_work

FACE = 1e-6  # a coordinate closer to 0 or 1 is on a face

Points = Float[np.ndarray, "q D"]
Rows = Int[np.ndarray, " q"] | None
Values = Literal["gain", "improvement", "log improvement", "worth"]
"""What the values of an acquisition function are.

A `gain` (nats, or a probability) and an `improvement` (in units of y) are at least 0; a `worth` is
a value of the objective. This decides how they change with the units of y, and how weights act on
them: see `optpair.acquisition.weights`.
"""


@dataclass(frozen=True)
class Context:
    """What an acquisition function may be built from.

    With pending points the posteriors have a fantasy for each path: path p, optimum p and fantasy p
    belong together.
    """

    model: tuple[Posterior, ...]
    """One posterior per outcome, all with the same number of sets."""
    cube: Cube
    points: Float[np.ndarray, "N D"]
    """Legal points that fill the space and surround the best data: those that are screened."""
    stream: Stream
    paths: tuple[Paths, ...] | None = None
    """Sample paths of each outcome, where the registry says that they are needed."""
    optima: Optima | None = None
    """The paths' optima, where the registry says that they are needed."""
    wanted: Wanted = field(default_factory=Wanted.single)
    """What is wanted of each outcome."""
    region: Region | None = None
    """Where the optima may be; the whole cube by default."""
    targets: Mapping[int, float] = field(default_factory=dict)
    """The columns of fidelities, and what they hold where the optima are."""

    def flat(self, x: Float[np.ndarray, "M P D"]) -> Bool[np.ndarray, "M P D"]:
        """The coordinates of optima in which the slope is zero."""
        flat = interior(x, self.cube)
        return flat if self.region is None else flat & self.region.loose(x)

    @property
    def posterior(self) -> Posterior:
        """The model of the only outcome."""
        (only,) = self.model
        return only

    def need_optima(self, name: str) -> Optima:
        """The optima, or an error if there are none."""
        if self.optima is None:
            raise ValueError(f"{name} needs optima of sample paths")
        return self.optima


class Acquisition(ABC):
    """A function of points on the cube, to be maximised.

    It is a `Landscape` that all rows share. Calling it is for people: it takes anything array-like.
    """

    screened: Float[np.ndarray, " N"] | None = None
    """Values at its context's points, where building it has told them."""

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """The number of columns of a point, D."""

    @abstractmethod
    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """Values at the points X, each on its own."""

    @abstractmethod
    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """Values at the points X, and their derivatives there."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(in {self.dimensions}-D)"

    @property
    def rough(self) -> Acquisition:
        """What candidates are compared by before the best are climbed from: itself, or cheaper."""
        return self

    def screen(self, X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, " N"]:
        """Values at many points, a block of them at a time."""
        return np.concatenate([np.zeros(0), *(self.values(X[b]) for b in self.blocks(len(X)))])

    def blocks(self, count: int) -> Iterator[slice]:
        """Slices of that many points; by default as large as suits its posterior, if it has one."""
        posterior = getattr(self, "posterior", None)
        if posterior is not None:
            return posterior.blocks(count)
        return (slice(i, i + BLOCK) for i in range(0, count, BLOCK))

    @engine_work
    def __call__(self, X: ArrayLike) -> Float[np.ndarray, " q"]:
        """Values at the points X, shape (q, d)."""
        return self.screen(as_points(X, self.dimensions))

    @engine_work
    def maximum(
        self,
        seed: int = 0,
        *,
        cube: Cube | None = None,
        candidates: int = 2048,
        starts: int = 8,
        steps: int = 50,
    ) -> tuple[Float[np.ndarray, " d"], float]:
        """The best point found, and its value.

        Args:
            seed: shifts the points that are screened.
            cube: its legal points are searched; [0, 1]^d by default.
            candidates: space-filling points that are screened.
            starts: the best of so many groups of them are climbed from.
            steps: steps of a climb.
        """
        cube = Cube.box(self.dimensions) if cube is None else cube
        shift = Stream.of(seed).draw().uniform(size=cube.parameters)
        points = space_filling(shift, cube, lattice(cube.parameters, candidates))
        values = self.screen(points)
        posterior = getattr(self, "posterior", None)
        return maximise(
            self,
            Region.whole(cube),
            points,
            values,
            starts=starts,
            steps=steps,
            enough=PRECISE,
            bends=None if posterior is None else bends(posterior),
        )

    @engine_work
    def gradient(self, X: ArrayLike) -> Float[np.ndarray, "q d"]:
        """Derivatives at the points X, shape (q, d)."""
        return self.slopes(as_points(X, self.dimensions))[1]


class Partials(NamedTuple):
    """Values, and their derivatives by the moments of the posterior."""

    values: Float[np.ndarray, " q"]
    by_means: Float[np.ndarray, "M F q"]
    by_variance: Float[np.ndarray, "M q"]


class OfMoments(Acquisition):
    """An acquisition function that depends on x through m(x) and s(x) alone."""

    posterior: Posterior

    @abstractmethod
    def of_moments(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Float[np.ndarray, " q"]:
        """Values where the posterior has these moments."""

    @abstractmethod
    def partials(
        self, means: Float[np.ndarray, "M F q"], variance: Float[np.ndarray, "M q"]
    ) -> Partials:
        """Values, and their derivatives by the moments."""

    @property
    def dimensions(self) -> int:
        """The number of columns of a point, D."""
        return self.posterior.dimensions

    def values(self, X: Points, rows: Rows = None) -> Float[np.ndarray, " q"]:
        """Values at the points X."""
        query = self.posterior.at(X)
        return self.of_moments(query.means, query.variance)

    def slopes(
        self, X: Points, rows: Rows = None
    ) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q D"]]:
        """Values at the points X, and their derivatives there."""
        query = self.posterior.at(X)
        values, by_means, by_variance = self.partials(query.means, query.variance)
        return values, query.pull(by_means, by_variance).sum(0)


def bends(posterior: Posterior) -> Bends:
    """How strongly functions of a posterior are expected to bend, by its length scales."""
    return Bends(np.exp(2 * np.mean(np.log(posterior.covariance.scale), axis=0)), sized=False)


def bounded(
    posterior: Posterior, variance: Float[np.ndarray, "M q"]
) -> tuple[Float[np.ndarray, "M q"], Bool[np.ndarray, "M q"]]:
    """s(x) with round-off kept out, and where s(x) is not below what round-off leaves."""
    floor = posterior.floor[:, None]
    return np.maximum(variance, floor), variance >= floor


def incumbent(posterior: Posterior) -> Float[np.ndarray, "M F"]:
    """m⁺ = max_i m(x_i), the best posterior mean among the observed points."""
    return np.asarray(np.max(posterior.means_at_data(), -1, initial=-np.inf))


def check_sets(posterior: Posterior, values: np.ndarray) -> None:
    """Raise unless values were drawn under as many sets as the posterior has."""
    if posterior.sets != len(values):
        raise ValueError(
            f"optima of {len(values)} hyperparameter sets, but the posterior has {posterior.sets}"
        )


def interior(x: Float[np.ndarray, "M P D"], cube: Cube) -> Bool[np.ndarray, "M P D"]:
    """Where the slope of optima is zero: in active, continuous columns, and not on a face."""
    return cube.continuous & cube.awake(x) & (x > FACE) & (x < 1 - FACE)
