"""Stationary kernels: the functions h(r²) of radial kernels, and their spectral densities.

| name       | h(r²)                           | spectral density of x/ℓ              |
|------------|---------------------------------|--------------------------------------|
| `rbf`      | exp(−r²/2)                      | standard normal                      |
| `matern52` | (1 + √5 r + 5r²/3) exp(−√5 r)   | multivariate Student-t, 5 d.o.f.     |
| `mixed`    | (1 − ρ) `rbf` + ρ `matern52`    | one of the two, the latter by ρ      |

How smooth an objective is decides how far its values can be predicted, and is seldom known. In
`mixed` the rough share ρ is a hyperparameter like the others, and the data decide.

In r², Matérn-5/2 is twice differentiable at 0: h′(0) = −5/6 and h″(0) = 25/12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import fdtri, gammaincinv

from optpair.gp.hyperparameters import Block, Logit
from optpair.gp.kernels.base import Frequencies
from optpair.gp.kernels.radial import Own, Radial, Reals
from optpair.gp.priors import Normal
from optpair.runtime.shapes import Float

SQRT5 = 5.0**0.5


@dataclass(frozen=True)
class RBF(Radial):
    """exp(−r²/2): infinitely smooth."""

    name: ClassVar[str] = "rbf"

    def terms(self, r2: Reals, own: Own, order: int) -> tuple[Reals, ...]:
        """h, h′, … up to `order`."""
        h = np.exp(r2 * -0.5)
        return tuple(h * factor for factor in (1.0, -0.5, 0.25, -0.125)[: order + 1])

    def begin(self, r2: Reals, own: Own) -> tuple[Reals, Callable[[], Reals]]:
        """h, and what gives h′ = −h/2."""
        r2 *= -0.5
        h = np.exp(r2, out=r2)
        return h.copy(), lambda: h * -0.5

    def quantile(self, level: Reals, dimensions: int) -> Reals:
        """Of √χ², with D degrees of freedom."""
        return np.sqrt(2 * gammaincinv(dimensions / 2, level))


@dataclass(frozen=True)
class Matern52(Radial):
    """(1 + √5 r + 5r²/3) exp(−√5 r): twice differentiable."""

    name: ClassVar[str] = "matern52"

    def terms(self, r2: Reals, own: Own, order: int) -> tuple[Reals, ...]:
        """h, h′, … up to `order`."""
        r = np.sqrt(r2)
        r *= SQRT5
        e = np.exp(-r)
        found = [(1 + r * (1 + r * (1 / 3))) * e]
        if order >= 1:
            found.append((1 + r) * e * (-5 / 6))
        if order >= 2:
            found.append(e * (25 / 12))
        if order >= 3:
            found.append(np.divide(e * (-125 / 24), r, out=np.zeros_like(r), where=r > 0))
        return tuple(found)

    def begin(self, r2: Reals, own: Own) -> tuple[Reals, Callable[[], Reals]]:
        """h, and what gives h′ without another exponential."""
        h = r2 * (5 / 3)
        r2 *= 5
        r = np.sqrt(r2, out=r2)
        e = np.negative(r)
        np.exp(e, out=e)
        h += r
        h += 1
        h *= e

        def bend() -> Reals:
            h1 = r + 1
            h1 *= e
            h1 *= -5 / 6
            return h1

        return h, bend

    def quantile(self, level: Reals, dimensions: int) -> Reals:
        """Of √(D F), F of D and 5 degrees of freedom: the length of a Student-t vector."""
        return np.sqrt(dimensions * fdtri(dimensions, 5, level))


@dataclass(frozen=True)
class Mixed(Radial):
    """(1 − ρ) RBF + ρ Matérn-5/2, with the rough share ρ inferred.

    log(ρ/(1 − ρ)) ~ N(0, spread²): as likely smooth as rough, and more often than not nearly one
    of the two.
    """

    name: ClassVar[str] = "mixed"
    spread: float = 4.0
    _smooth: RBF = field(default=RBF(), init=False, repr=False)
    _rough: Matern52 = field(default=Matern52(), init=False, repr=False)

    def blocks(self) -> tuple[Block, ...]:
        """The rough share ρ."""
        return (Block("rough", 1, Logit(self.spread), Normal()),)

    def terms(self, r2: Reals, own: Own, order: int) -> tuple[Reals, ...]:
        """h, h′, … up to `order`."""
        smooth, rough = self._smooth.terms(r2, {}, order), self._rough.terms(r2, {}, order)
        share = own["rough"]
        return tuple(s + share * (r - s) for s, r in zip(smooth, rough, strict=True))

    def begin(self, r2: Reals, own: Own) -> tuple[Reals, Callable[[], Reals]]:
        """h, and what gives h′."""
        (smooth, first), (rough, second) = (
            part.begin(r2.copy(), {}) for part in (self._smooth, self._rough)
        )
        share = own["rough"]

        def bend() -> Reals:
            flat = first()
            return flat + share * (second() - flat)

        return smooth + share * (rough - smooth), bend

    def by_own(self, r2: Reals, own: Own) -> dict[str, Reals]:
        """By ρ."""
        (smooth,), (rough,) = self._smooth.terms(r2, {}, 0), self._rough.terms(r2, {}, 0)
        return {"rough": rough - smooth}

    def quantile(self, level: Reals, dimensions: int) -> Reals:
        """There is one for each of the two: see `lengths`."""
        raise NotImplementedError

    def lengths(self, draws: Frequencies, own: Own) -> Float[np.ndarray, "M F"]:
        """A uniform number below ρ makes a frequency one of Matérn's."""
        rough = draws.coin < own["rough"][:, None]
        smooth = self._smooth.lengths(draws, {})
        return np.where(rough, self._rough.lengths(draws, {}), smooth)
