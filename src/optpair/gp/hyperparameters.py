"""Hyperparameters: sets of values by name, and the table that lays them out in one vector θ.

A table is a row of blocks: name, number of entries, the transform between an entry u of θ and the
value v, the prior of u, and how the value changes with the units of y. No entry is found by its
position.

| transform       | v(u)            | for                              |
|-----------------|-----------------|----------------------------------|
| `Exp(floor)`    | floor + exp u   | length scales, variances         |
| `Times(factor)` | factor · u      | the mean                         |
| `Logit(factor)` | expit(factor·u) | a share                          |
| `Below(most)`   | 1/(1/most + e⁻ᵘ)| length scales that have an end   |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from optpair.gp.priors import Density, LogNormal, Normal
from optpair.runtime.shapes import Float

Thetas = Float[np.ndarray, "B k"]


@dataclass(frozen=True)
class Exp:
    """v = floor + exp u."""

    floor: float = 0.0

    def value(self, u: np.ndarray) -> np.ndarray:
        """v(u)."""
        return np.asarray(self.floor + np.exp(u))

    def slope(self, u: np.ndarray) -> np.ndarray:
        """dv/du."""
        return np.asarray(np.exp(u))

    def rescaled(self, u: np.ndarray, ratio: float, offset: float, power: int) -> np.ndarray:
        """u after v became ratio^power · v; the floor stays."""
        return np.asarray(u + power * np.log(ratio))


@dataclass(frozen=True)
class Times:
    """v = factor · u."""

    factor: float

    def value(self, u: np.ndarray) -> np.ndarray:
        """v(u)."""
        return np.asarray(self.factor * u)

    def slope(self, u: np.ndarray) -> np.ndarray:
        """dv/du."""
        return np.full_like(u, self.factor)

    def rescaled(self, u: np.ndarray, ratio: float, offset: float, power: int) -> np.ndarray:
        """u after v became ratio · v + offset, where it has the units of y."""
        return np.asarray(ratio * u + offset / self.factor) if power and self.factor else u


@dataclass(frozen=True)
class Logit:
    """v = expit(factor · u), from 0 to 1."""

    factor: float

    def value(self, u: np.ndarray) -> np.ndarray:
        """v(u)."""
        return np.asarray(expit(self.factor * u))

    def slope(self, u: np.ndarray) -> np.ndarray:
        """dv/du."""
        v = self.value(u)
        return np.asarray(self.factor * v * (1 - v))

    def rescaled(self, u: np.ndarray, ratio: float, offset: float, power: int) -> np.ndarray:
        """A share has no units."""
        return u


@dataclass(frozen=True)
class Below:
    """v = 1/(1/most + e⁻ᵘ): exp u, but below `most`, which each entry has for itself."""

    most: tuple[float, ...]

    def value(self, u: np.ndarray) -> np.ndarray:
        """v(u)."""
        return np.asarray(1 / (1 / np.array(self.most) + np.exp(-u)))

    def slope(self, u: np.ndarray) -> np.ndarray:
        """dv/du."""
        return np.asarray(self.value(u) ** 2 * np.exp(-u))

    def rescaled(self, u: np.ndarray, ratio: float, offset: float, power: int) -> np.ndarray:
        """A length scale has no units of y."""
        return u


@dataclass(frozen=True)
class Block:
    """One hyperparameter of a model: `size` entries of θ."""

    name: str
    size: int
    transform: Exp | Times | Logit | Below
    prior: Density
    power: int = 0
    """The power of the units of y that the value has: 2 for a variance, 1 for a mean."""


@runtime_checkable
class Tie(Protocol):
    """A factor of the prior that ties blocks to each other."""

    def log_density(
        self, parts: Mapping[str, np.ndarray]
    ) -> tuple[Float[np.ndarray, " B"], dict[str, np.ndarray]]:
        """Its logarithm, and the derivatives by the entries of θ that it depends on, by name."""
        ...

    def start(self, parts: Mapping[str, np.ndarray]) -> None:
        """Adjust the tied entries to each other, in place."""
        ...


@dataclass(frozen=True)
class Table:
    """All hyperparameters of a model, in the order in which θ holds them."""

    blocks: tuple[Block, ...]
    d: int
    """The number of parameters, which some priors depend on."""
    tie: Tie | None = None

    @property
    def size(self) -> int:
        """The length of θ, k."""
        return sum(block.size for block in self.blocks)

    def parts(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """The entries of θ by name, as views: the last axis is that of θ."""
        return {name: theta[..., place] for name, place in self._places.items()}

    @cached_property
    def _places(self) -> dict[str, slice]:
        ends = np.cumsum([block.size for block in self.blocks]).tolist()
        return {b.name: slice(end - b.size, end) for b, end in zip(self.blocks, ends, strict=True)}

    def values(self, theta: Thetas) -> dict[str, Float[np.ndarray, "B _"]]:
        """The hyperparameters that θ stands for."""
        parts = self.parts(theta)
        return {b.name: b.transform.value(parts[b.name]) for b in self.blocks}

    def chain(self, theta: Thetas, by_value: Mapping[str, np.ndarray]) -> Thetas:
        """Derivatives by θ from those by the values."""
        parts = self.parts(theta)
        slopes = [by_value[b.name] * b.transform.slope(parts[b.name]) for b in self.blocks]
        return np.concatenate(slopes, axis=1)

    def log_prior(self, theta: Thetas) -> tuple[Float[np.ndarray, " B"], Thetas]:
        """log prior(θ), up to a constant, and its slope."""
        value, slope = self._log_separate(theta)
        if self.tie is None:
            return value, slope
        more, by_part = self.tie.log_density(self.parts(theta))
        for name, by in by_part.items():
            slope[:, self._places[name]] += by
        return value + more, slope

    def _log_separate(self, theta: Thetas) -> tuple[Float[np.ndarray, " B"], Thetas]:
        """The sum over the blocks."""
        if self._normal is not None:
            centre, precision = self._normal
            away = theta - centre
            slope = away @ -precision
            return np.vecdot(away, slope) / 2, slope
        parts = self.parts(theta)
        values = [b.prior.log_density(parts[b.name], self.d).sum(axis=1) for b in self.blocks]
        slopes = [b.prior.slope(parts[b.name], self.d) for b in self.blocks]
        return np.sum(values, axis=0), np.concatenate(slopes, axis=1)

    @cached_property
    def _normal(self) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]] | None:
        """Centre and precision of θ if every prior is normal; kept, as chains ask for it often."""
        centre, precision = np.zeros(self.size), np.zeros((self.size, self.size))
        for block in self.blocks:
            if not isinstance(block.prior, LogNormal | Normal):
                return None
            place = self._places[block.name]
            centre[place], precision[place, place] = block.prior.normal(block.size, self.d)
        return centre, precision

    def start(self, normal: np.ndarray) -> np.ndarray:
        """θ at the given number of standard deviations from the centre of the prior."""
        parts = self.parts(normal)
        starts = [b.prior.start(parts[b.name], self.d) for b in self.blocks]
        theta = np.concatenate(starts, axis=-1)
        if self.tie is not None:
            self.tie.start(self.parts(theta))
        return theta

    def rescaled(self, theta: np.ndarray, ratio: float, offset: float) -> np.ndarray:
        """θ after y became ratio·y + offset."""
        parts = self.parts(theta)
        moved = [b.transform.rescaled(parts[b.name], ratio, offset, b.power) for b in self.blocks]
        return np.concatenate(moved, axis=-1)

    def hyperparameters(self, theta: Thetas) -> Hyperparameters:
        """The sets that θ stands for."""
        values = self.values(theta)
        values |= {b.name: values[b.name][:, 0] for b in self.blocks if b.name not in _WIDE}
        return Hyperparameters(**values)


Values = ArrayLike | Sequence[float] | Sequence[Sequence[float]]
_SHARES = ("rough", "interactions", "common", "luck")
_WIDE = ("lengthscale", "growth")  # several to a set
_LOWEST = {"lengthscale": 0.0, "outputscale": 0.0, "curve": 0.0}
_LOWEST["noise"] = _LOWEST["growth"] = -float(np.finfo(float).tiny)


class Hyperparameters:
    """M sets of hyperparameters, in the units of what they describe.

    For `Optimizer(hyperparameters=…)` these are your own units: values as you tell them, and
    length scales as shares of a parameter's range.

    Args:
        lengthscale: shape (M, d), one per parameter.
        outputscale: the variance of f, shape (M,).
        noise: the variance of the noise, shape (M,).
        mean: the mean of f, shape (M,).
        own: those of the kernel, shape (M,) each. `rough`, from 0 to 1, is the share of Matérn-5/2
            in the kernel `mixed`; `interactions`, likewise, that of all parameters together in
            `additive`; `common` that of the curve over fidelities, and `curve` its length scale,
            where the space has a `Fidelity`; `luck` is the share of noise that looks at one trial
            have in common, 0 where it is not given; `growth`, of shape (M, C) for C fidelities, is
            the power by which noise grows as looks get cheaper, likewise.

    Raises:
        ValueError: if a shape is wrong, or a value is not finite or not positive where it must be.

    Examples:
        >>> Hyperparameters(lengthscale=[[0.2, 0.3]], outputscale=[1.0], noise=[0.01], mean=[0.0])
        Hyperparameters(1 set of 2 length scales)
    """

    def __init__(
        self, lengthscale: Values, outputscale: Values, noise: Values, mean: Values, **own: Values
    ) -> None:
        given: dict[str, Any] = {
            "lengthscale": lengthscale,
            "outputscale": outputscale,
            "noise": noise,
            "mean": mean,
            **own,
        }
        checked = {name: np.array(value, dtype=np.float64) for name, value in given.items()}
        for name, value in checked.items():
            self._check(name, value, np.atleast_1d(checked["lengthscale"]).shape[0])
        self.lengthscale: Float[np.ndarray, "M d"] = checked.pop("lengthscale")
        self.outputscale: Float[np.ndarray, " M"] = checked.pop("outputscale")
        self.noise: Float[np.ndarray, " M"] = checked.pop("noise")
        self.mean: Float[np.ndarray, " M"] = checked.pop("mean")
        self.own: Mapping[str, Float[np.ndarray, " M"]] = MappingProxyType(checked)

    @staticmethod
    def _check(name: str, value: np.ndarray, sets: int) -> None:
        axes = 2 if name in _WIDE else 1
        if value.ndim != axes or value.shape[0] != sets or value.size == 0:
            wanted = "(M, d)" if axes == 2 else f"(M,) = ({sets},)"
            raise ValueError(f"{name} must have shape {wanted}, not {value.shape}")
        if name in _SHARES and not np.all((value >= 0) & (value <= 1)):
            raise ValueError(f"{name} must be from 0 to 1, not {value.tolist()}")
        if not np.all(np.isfinite(value)) or np.any(value <= _LOWEST.get(name, -np.inf)):
            kind = "finite and positive" if name in _LOWEST else "finite"
            kind += " (or zero)" if name in ("noise", "growth") else ""
            raise ValueError(f"{name} must be {kind}, not {value.tolist()}")

    @property
    def sets(self) -> int:
        """M, the number of sets."""
        return len(self.outputscale)

    @property
    def parameters(self) -> int:
        """d, the number of length scales of a set."""
        return int(self.lengthscale.shape[1])

    def values(self) -> dict[str, np.ndarray]:
        """All of them by name."""
        named = ("lengthscale", "outputscale", "noise", "mean")
        return {name: getattr(self, name) for name in named} | dict(self.own)

    def times(self, sign: float) -> Hyperparameters:
        """Those of f, or of −f: the mean changes its sign, nothing else does."""
        return Hyperparameters(**self.values() | {"mean": sign * self.mean})

    def some(self, chosen: slice) -> Hyperparameters:
        """Some of the sets."""
        return Hyperparameters(**{name: value[chosen] for name, value in self.values().items()})

    def __reduce__(self) -> tuple[Callable[[], Hyperparameters], tuple[()]]:
        return partial(Hyperparameters, **self.values()), ()

    def __repr__(self) -> str:
        sets = "1 set" if self.sets == 1 else f"{self.sets} sets"
        return f"Hyperparameters({sets} of {self.parameters} length scales)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hyperparameters):
            return NotImplemented
        mine, theirs = self.values(), other.values()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[name], theirs[name]) for name in mine
        )

    __hash__ = None  # type: ignore[assignment]
