"""Kernels as objects: covariances of a GP's values and derivatives, and what they pull back.

A kernel is a name, a table of its hyperparameters, and three things that it can be bound to: the
pairs of some data (to infer hyperparameters), hyperparameter sets (to condition and predict), and
random numbers (to draw from its spectral density). Whatever depends on a point x has a forward pass
and `pull`, its vector–Jacobian product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from optpair.gp.hyperparameters import Block, Hyperparameters, Tie
from optpair.gp.priors import Density
from optpair.runtime.shapes import Float, Num

Columns = tuple[int, ...]
"""The parameter that each column of the cube belongs to."""
Points = Num[np.ndarray, "*sets q D"]
"""Points that all sets share, (q, D), or points of each set, (M, q, D)."""
Along = tuple[int, ...] | None
"""The columns in which derivatives are taken; None means all."""
Others = Num[np.ndarray, "*others n D"]
"""The same for points on the other side of a covariance."""


@runtime_checkable
class Between(Protocol):
    """Covariances between two groups of points under M sets, with derivatives in the first."""

    @property
    def K(self) -> Num[np.ndarray, "M q n"]:
        """The covariances."""
        ...

    def pull(self, by_K: Num[np.ndarray, "M q n"]) -> Num[np.ndarray, "M q D"]:
        """Σ by_K · ∂K/∂x of each set."""
        ...


@runtime_checkable
class Target(Protocol):
    """Points that covariances are taken with, prepared once."""

    def between(self, X: Points) -> Between:
        """cov(f(x), f(y)) with each point y."""
        ...

    def of_sets(self, chosen: slice | np.ndarray) -> Target:
        """Of some of the sets."""
        ...


@runtime_checkable
class Jets(Protocol):
    """Covariances of f(x) with f and its derivatives at given points, and derivatives in x."""

    @property
    def rows(self) -> Float[np.ndarray, "M P J q"]:
        """The covariances, f first, then the slopes, then the curvatures."""
        ...

    def pull(self, by_rows: Float[np.ndarray, "M P J q"]) -> Float[np.ndarray, "M q D"]:
        """Σ by_rows · ∂rows/∂x of each set, over all given points."""
        ...


class Frequencies(NamedTuple):
    """Random numbers that frequencies are made of, F for each of M sets.

    Directions are orthogonal, D at a time, and there is one level in each of F equal parts of
    [0, 1]: half as many then approximate a kernel as well as independent draws do.
    """

    direction: Float[np.ndarray, "M F D"]  # of unit length
    level: Float[np.ndarray, "M F"]  # of the distribution of the length
    coin: Float[np.ndarray, "M F"]  # uniform

    @classmethod
    def of(cls, rng: np.random.Generator, sets: int, count: int, dimensions: int) -> Frequencies:
        """Draw them."""
        blocks = -(-count // dimensions)
        normal = rng.standard_normal((sets, blocks, dimensions, dimensions))
        turned = np.linalg.qr(normal)[0].reshape(sets, -1, dimensions)[:, :count]
        places = rng.permuted(np.tile(np.arange(count), (sets, 1)), axis=1)
        level = (places + rng.uniform(size=(sets, count))) / count
        return cls(turned, level, rng.uniform(size=(sets, count)))


def even_amplitudes(
    outputscale: Num[np.ndarray, " M"], draws: Frequencies
) -> Float[np.ndarray, "M F"]:
    """√(a/F), where frequencies are drawn from the spectral density of the whole kernel."""
    size = np.sqrt(outputscale / draws.coin.shape[-1])[:, None]
    return np.broadcast_to(size, draws.coin.shape)


@runtime_checkable
class Covariance(Protocol):
    """A kernel bound to M hyperparameter sets."""

    @property
    def scale(self) -> Num[np.ndarray, "M D"]:
        """The length scale of each column: the unit in which derivatives are taken."""
        ...

    @property
    def outputscale(self) -> Num[np.ndarray, " M"]:
        """a, the prior variance."""
        ...

    def diagonal(self, X: Points) -> Num[np.ndarray, "M q"]:
        """var f(x)."""
        ...

    def target(self, Y: Others) -> Target:
        """Points that covariances are taken with, again and again."""
        ...

    def between(self, X: Points, Y: Others) -> Between:
        """cov(f(x), f(y))."""
        ...

    def jets(
        self, star: Float[np.ndarray, "M P D"], X: Points, order: int, along: Along = None
    ) -> Jets:
        """cov of f(x) with f, g and h at each x*, up to `order` (0, 1 or 2) derivatives."""
        ...

    def jet_variance(self, order: int, along: Along = None) -> Float[np.ndarray, "M J J"]:
        """Prior covariance of (f, g, h) at one point, the same everywhere."""
        ...

    def frequencies(self, draws: Frequencies) -> Float[np.ndarray, "M F D"]:
        """Draws from the spectral density, in radians per unit of x."""
        ...

    def amplitudes(self, draws: Frequencies) -> Float[np.ndarray, "M F"]:
        """The standard deviations of frequencies' weights, whose squares sum to a."""
        ...

    def single(self) -> Covariance:
        """The same in single precision, with unit output scale, for comparing points."""
        ...

    def of_sets(self, chosen: slice | np.ndarray) -> Covariance:
        """Of some of the sets."""
        ...


@runtime_checkable
class PairwiseFit(Protocol):
    """Covariances of pairs of data under B sets, without noise."""

    @property
    def diagonal(self) -> Float[np.ndarray, " B"]:
        """The variance of each point, the same for all."""
        ...

    @property
    def pairs(self) -> Float[np.ndarray, "B p"]:
        """The covariance of each pair, in the order of `numpy.triu_indices(n, 1)`."""
        ...

    def pull(
        self, by_pairs: Float[np.ndarray, "B p"], by_diagonal: Float[np.ndarray, " B"]
    ) -> dict[str, Float[np.ndarray, "B _"]]:
        """Derivatives by the value of each hyperparameter, by name."""
        ...


@runtime_checkable
class Pairwise(Protocol):
    """A kernel bound to data: what is the same for all hyperparameters is computed once."""

    def fit(self, values: Mapping[str, Float[np.ndarray, "B _"]]) -> PairwiseFit:
        """Under the hyperparameters `values`, by name."""
        ...


class Kernel(ABC):
    """A covariance function with hyperparameters of its own."""

    name: ClassVar[str]
    given: Any = None
    """Rows that are known beforehand, of earlier studies: see `optpair.gp.kernels.related`."""

    @abstractmethod
    def blocks(self) -> tuple[Block, ...]:
        """The kernel's hyperparameters beside length scale, output scale, noise and mean."""

    @abstractmethod
    def bind(self, hypers: Hyperparameters, columns: Columns) -> Covariance:
        """The covariance under some hyperparameter sets."""

    @abstractmethod
    def pairwise(self, X: Float[np.ndarray, "n D"], columns: Columns) -> Pairwise:
        """The covariance at some data."""

    def links(self, covariance: Covariance, hypers: Hyperparameters) -> Any:
        """How rows that are known beforehand enter a posterior; None without such rows."""
        return None

    def tie(self, prior: Density, d: int) -> Tie | None:
        """What the kernel's own hyperparameters say about the length scales, if anything."""
        return None
