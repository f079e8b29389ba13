"""Rounding that keeps linear limits: values that come from the cube have twelve digits each.

Three of them that were rounded on their own sum to one only up to these digits. A few of the
continuous ones, those with most room, are set so that the limits hold to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optpair.problem.limits import Limit
from optpair.problem.parameters import Float, Parameter

LEFT = 1e-7  # of a limit's largest term: what rounding and climbs may leave
TIGHT = 1e-10  # so close to a limit, a point is taken to be on it
MET = 1e-14  # what is left of a limit that was made to hold
EXACT = 1e-12  # a limit that is missed by no more is met: rounding alone can miss it so
DIGITS = 15  # of a range that a value which was set has, where these are enough

Weights = dict[str, float]


@dataclass(frozen=True)
class FloatLimit:
    """A limit in floats, relative to its largest term."""

    weights: Weights
    high: float
    equal: bool

    def excess(self, values: Mapping[str, Any]) -> float:
        """By how much values are above `high`."""
        return math.fsum([*(w * values[name] for name, w in self.weights.items()), -self.high])

    def missed(self, values: Mapping[str, Any]) -> float:
        """By how much values miss the limit."""
        excess = self.excess(values)
        return abs(excess) if self.equal else max(excess, 0.0)


class Rounding:
    """The linear limits of some parameters, ready to be kept."""

    def __init__(self, limits: Sequence[Limit], parameters: Mapping[str, Parameter]) -> None:
        self._rows = []
        for limit in limits:
            scale = limit.scale(parameters)
            weights = {name: float(w / scale) for name, w in limit.weights}
            self._rows.append(FloatLimit(weights, float(limit.high / scale), limit.equal))
        used = {name for row in self._rows for name in row.weights}
        self._free = {
            name: p
            for name, p in parameters.items()
            if name in used and isinstance(p, Float) and p.step is None
        }

    def restored(self, values: dict[str, Any]) -> dict[str, Any]:
        """Values that were rounded, within the limits again.

        If they are far from the limits, another point is meant: it stays as it is.
        """
        excess = [row.excess(values) for row in self._rows]
        pairs = list(zip(self._rows, excess, strict=True))
        least = max(abs(e) if row.equal else e for row, e in pairs)
        if least > LEFT:
            return values
        broken = [row for row, e in pairs if row.equal or e > 0.0]
        if not broken:
            return values
        near = [row for row, e in pairs if row.equal or e > -TIGHT]
        best = values
        for chosen, faces in ((broken, True), (near, True), (broken, False), (near, False)):
            exact = self._solved(values, chosen, faces)
            for moved in (self._short(values, exact), exact):
                missed = self._missed(moved)
                if missed <= MET:
                    return moved
                if missed < least:
                    best, least = moved, missed
        return best

    def met(self, values: Mapping[str, Any]) -> bool:
        """Whether values are within all limits, up to rounding."""
        return all(row.missed(values) <= EXACT for row in self._rows)

    def _missed(self, values: Mapping[str, Any]) -> float:
        """By how much the limits are missed; without end where a range is left."""
        if not all(p.low <= values[name] <= p.high for name, p in self._free.items()):
            return math.inf
        return max(row.missed(values) for row in self._rows)

    def _short(self, values: dict[str, Any], moved: dict[str, Any]) -> dict[str, Any]:
        """With no more digits than are needed."""
        short = dict(moved)
        for name, p in self._free.items():
            if moved[name] not in (values[name], p.low, p.high):
                digits = DIGITS - math.ceil(math.log10(p.high - p.low))
                short[name] = round(moved[name], digits) + 0.0
        return short

    def _solved(
        self, values: dict[str, Any], rows: Sequence[FloatLimit], faces: bool
    ) -> dict[str, Any]:
        """Values that meet limits with equality, by elimination: those with most room change.

        With `faces`, values that are all but at an end of their range are put there and stay.
        """
        found, room = dict(values), {}
        for name, p in self._free.items():
            span, value = p.high - p.low, values[name]
            inside = min(value - p.low, p.high - value)
            if faces and inside <= TIGHT * span:
                found[name] = p.low if value - p.low <= p.high - value else p.high
            else:
                room[name] = max(inside, 1e-12 * span)
        pivots: list[tuple[str, Weights, float]] = []
        for limit in rows:
            row, excess = dict(limit.weights), limit.excess(found)
            for name, known, rest in pivots:
                factor = row.pop(name, 0.0)
                for other, weight in known.items():
                    row[other] = row.get(other, 0.0) - factor * weight
                excess -= factor * rest
            usable = [name for name in room if abs(row.get(name, 0.0)) > 1e-12]
            if usable:
                name = max(usable, key=lambda n: abs(row[n]) * room[n])
                del room[name]
                weight = row.pop(name)
                scaled = {n: w / weight for n, w in row.items() if w}
                pivots.append((name, scaled, excess / weight))
        change: Weights = {}
        for name, row, excess in reversed(pivots):
            change[name] = -excess - sum(w * change.get(n, 0.0) for n, w in row.items())
        for name, by in change.items():
            found[name] += by
        return found
