"""Transforms between raw values and the ones that the model sees.

Objectives that people tune have a good region that matters and cliffs that do not: a diverged run
says that a place is bad, not how bad. Values are therefore kept as they are down to a knee a little
below the median, compressed below it, and once more where they are absurd,

    w(y) = y                         y ≥ knee
    w(y) = knee − unit · depth(b)    y < knee, b = (knee − y)/unit

    depth(b) = log(1 + b)            up to 3, where b = 19
    depth(b) = 3 + log(log(1 + b) − 2)

with unit the robust spread of the better half (1.4826 × its median distance from the median) and
knee = median − unit; then standardised to zero mean and unit variance. w is monotone and smooth to
first order, so quantiles pass through it exactly, and where the optimum is it changes nothing. A
value of −1e12 among values around 1 is 6 units deep: one of them does not squeeze the others.

Of a constraint every digit counts near its limit, on both sides, and hardly any far from it. Its
values are compressed, if at all, around that limit, or the middle between two: see `engine.warps`.

    (Y1)  w(y) = centre + unit · asinh((y − centre)/unit)

It is nearly linear up to a unit, and a logarithm beyond it. What is more than 1e10 units away
counts as 1e10 units: a value of 1e300 says no more.

The way back is the inverse of w down to the lowest value that was seen. Below it, where the inverse
would explode (an exponential of an exponential), it goes on along its tangent there; around a
limit likewise, on both sides, as far from it as a value was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from optpair.runtime.shapes import Float

ROUND_OFF = 1e-13  # relative differences below this are round-off of the values themselves
SMALLEST = 1e-307
LOWEST = -np.finfo(np.float64).max  # as far as restored values go
DEEPEST = 1e305  # units below the knee, at most
DEEP = 3.0  # where values are compressed once more
FAR = 1e10  # units from the centre of limits, at most
MOST_NOISE = 1e8  # a standardised noise variance at which a value teaches nothing


@dataclass(frozen=True)
class Scaling:
    """standardised = (w(y) − loc) / scale, for values to be maximised; no knee means w(y) = y."""

    loc: float = 0.0
    scale: float = 1.0
    knee: float | None = None
    unit: float = 1.0
    lowest: float = 0.0  # of the values, or as far below the centre as one is from it
    centre: float | None = None  # of a constraint's limits: compressed on both sides, no knee

    @classmethod
    def of(
        cls,
        y: Float[np.ndarray, " n"],
        warp: bool = True,
        usual: Float[np.ndarray, " k"] | None = None,
    ) -> Scaling:
        """The scaling that suits the values y, of any size; constant values get any scale.

        What is bad is judged by the values `usual`, which are among y; by default by all of y.
        """
        largest = float(np.max(np.abs(y)))
        if largest == 0.0:
            return cls()
        relative = y / largest  # so that nothing overflows on the way
        judged = relative if usual is None else usual / largest
        first = cls._knee(judged) if warp else cls()
        warped = first.warp(relative)
        size = float(np.max(np.abs(warped)))
        share = float(np.std(warped / size)) if size > 0 else 0.0
        spread = share * size if share > ROUND_OFF else 1.0
        return replace(
            first,
            loc=float(np.mean(warped)) * largest,
            scale=max(spread * largest, SMALLEST),
            knee=None if first.knee is None else first.knee * largest,
            unit=max(first.unit * largest, SMALLEST),
            lowest=float(np.min(y)),
        )

    @classmethod
    def _knee(cls, y: Float[np.ndarray, " n"]) -> Scaling:
        middle = float(np.median(y))
        better = y[y >= middle]
        unit = 1.4826 * float(np.median(better - middle))
        if unit <= ROUND_OFF * float(np.max(np.abs(better))):  # half of the values are the same
            unit = float(np.std(y))
            if unit <= ROUND_OFF:  # of the largest, which is at most 1: all of them are
                return cls()
        return cls(knee=middle - unit, unit=unit)

    @classmethod
    def around(cls, y: Float[np.ndarray, " n"], centre: float, unit: float) -> Scaling:
        """The scaling of the values of a constraint, compressed by (Y1)."""
        away = y / unit - centre / unit
        warped = np.arcsinh(np.clip(away, -FAR, FAR))
        spread = float(np.std(warped))
        furthest = float(np.max(np.abs(away))) * unit
        return cls(
            loc=centre + unit * float(np.mean(warped)),
            scale=max(unit * (spread if spread > ROUND_OFF else 1.0), SMALLEST),
            unit=max(unit, SMALLEST),
            lowest=max(centre - furthest, LOWEST),
            centre=centre,
        )

    def depth(self, y: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """How many units y is below the knee; 0 above, and without a knee."""
        with np.errstate(over="ignore"):
            return self._below(y)

    def _below(self, y: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """How many units y is below the knee."""
        if self.knee is None:
            return np.zeros_like(y)
        return np.maximum(self.knee / self.unit - y / self.unit, 0.0)

    def warp(self, y: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """w(y)."""
        if self.centre is not None:
            away = np.clip(y / self.unit - self.centre / self.unit, -FAR, FAR)
            return np.asarray(self.centre + self.unit * np.arcsinh(away))  # (Y1)
        below = self._below(y)
        knee = 0.0 if self.knee is None else self.knee
        return np.where(below > 0, knee - self.unit * _depth(below), y)

    def standardise(self, y: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """From raw values to the model's."""
        return np.asarray(self.warp(y) / self.scale - self.loc / self.scale)

    def variance(
        self, noise_var: Float[np.ndarray, "*n"], y: Float[np.ndarray, "*n"]
    ) -> Float[np.ndarray, "*n"]:
        """From raw noise variances at the values y to the model's: times the slope squared."""
        with np.errstate(over="ignore"):
            slope = self.slope(y)
            scaled = (noise_var * slope / self.scale) * slope / self.scale
        return np.asarray(np.minimum(scaled, MOST_NOISE))

    def slope(self, y: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """w′(y)."""
        if self.centre is not None:
            return np.asarray(1 / np.hypot(1.0, y / self.unit - self.centre / self.unit))
        return 1 / _steepness(self._below(y))

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Scaling:
        """The scaling that a document holds, or an error that says what is wrong with it."""
        found: dict[str, float | None] = {}
        for name in (item.name for item in fields(cls)):
            value = document[name]
            if value is None and name in ("knee", "centre"):
                found[name] = None
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{name} must be a number, not {value!r}")
            if not np.isfinite(value) or (name in ("scale", "unit") and value <= 0):
                raise ValueError(f"{name} must be finite, and positive for a scale, not {value!r}")
            found[name] = float(value)
        return cls(**found)  # type: ignore[arg-type]

    def restore(self, z: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"]:
        """From the model's values to raw ones.

        The inverse of `standardise` for values that are not below the lowest one seen, and its
        tangent from there on: monotone, smooth to first order, and finite.
        """
        warped = self.loc + self.scale * np.asarray(z, dtype=np.float64)
        if self.centre is not None:
            return self._around(warped / self.unit - self.centre / self.unit)
        deepest = np.minimum(self._below(np.asarray(self.lowest)), DEEPEST)
        depth, last = self._below(warped), _depth(deepest)
        with np.errstate(over="ignore"):
            beyond = _steepness(deepest) * np.maximum(depth - last, 0.0)
            below = np.minimum(_undepth(np.minimum(depth, last)), deepest) + beyond
            knee = 0.0 if self.knee is None else self.knee
            deep = np.maximum(knee - self.unit * below, LOWEST)
        return np.where(below > 0, deep, warped)

    def _around(self, t: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """The inverse of (Y1) as far as values were seen, and its tangents from there on."""
        assert self.centre is not None
        last = np.arcsinh(np.minimum(self.centre / self.unit - self.lowest / self.unit, FAR))
        with np.errstate(over="ignore"):
            beyond = np.cosh(last) * np.maximum(np.abs(t) - last, 0.0)
            away = np.sinh(np.minimum(np.abs(t), last)) + beyond
            return np.clip(self.centre + np.copysign(self.unit * away, t), LOWEST, -LOWEST)


def _depth(below: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """depth(b)."""
    once = np.log1p(below)
    return np.asarray(np.minimum(once, DEEP) + np.log1p(np.maximum(once - DEEP, 0.0)))


def _undepth(depth: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """The inverse of `_depth`, up to DEEPEST."""
    once = np.minimum(depth, DEEP) + np.expm1(np.maximum(depth - DEEP, 0.0))
    return np.asarray(np.expm1(once))


def _steepness(below: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """1 / depth'(b), how fast b grows with the depth."""
    return np.asarray((1 + below) * (1 + np.maximum(np.log1p(below) - DEEP, 0.0)))
